// The queues of the mailbox: PDID, place in memory, head and tails of each virtual interface, and their registers.
//
//   offset        register  width  who    what
//   i·4096 + 0    HEAD      16     rw     entries that the process has taken, counted on
//   i·4096 + 8    TAIL      16     r      entries that are in memory, counted on
//   2^18 + i·4096 + 0   PDID  16   rw     system software: opens the queue for packets of a protection domain
//   2^18 + i·4096 + 8   BASE  49   rw     system software: closes the queue, and places it: the address of its first entry
//   2^18 + i·4096 + 16  ERROR  1   r      system software: memory has refused an entry since the queue was placed
//
// Pages of a process (i below 64) and of the system are apart, so that each can be mapped on its own. Of the two tails
// one counts what has been put, which decides whether there is room, the other what memory has answered, which the
// process reads.
//
//   reset ─► clearing, an address a cycle ─► closed, empty ── PDID ──► open ── an entry is refused ──► failed
//                                               ▲                       │                                │
//                                               └───────── BASE ────────┴────────────────────────────────┘
//
//   BASE:  IDLE ── it is offered: closes ──► DECIDING ──► DRAINING ── memory has answered ──► it is taken: empty
//
// A packet for a closed queue is refused, whatever its PDID. The packet of an entry that memory refuses has been
// acknowledged: the tail that the process reads stays before it, so that nothing is taken for a message that is none.
// So the queue fills up, and refuses, until the system places it anew.
//
// A store of BASE waits until memory has answered each entry that was put before it. So what the process of a queue
// has not taken never comes to the next one, and the memory is free behind the store. Entries stay where only PDID is
// stored anew.

`default_nettype none

module mailbox_queues #(
    parameter int INTERFACES = 64,
    parameter int REMEMBERED = 1024
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset all is emptied, an address a cycle.
    output logic                          clearing,
    output logic [$clog2(REMEMBERED)-1:0] clear_address,

    // What a packet asks: answered one cycle later.
    input  wire logic [$clog2(INTERFACES)-1:0] asked_interface,
    output logic                               is_open,
    output logic      [                  15:0] pdid,
    output logic      [                  15:0] head,
    output logic      [                  15:0] tail,

    input wire logic                          put,
    input wire logic [$clog2(INTERFACES)-1:0] put_interface,
    input wire logic [                  15:0] put_tail,

    input  wire logic [$clog2(INTERFACES)-1:0] base_interface,
    output logic      [                  48:0] base,

    input wire logic                          written,
    input wire logic [$clog2(INTERFACES)-1:0] written_interface,
    input wire logic                          write_failed,

    input  wire logic [18:0] awaddr,
    input  wire logic        awvalid,
    output logic             awready,
    input  wire logic [63:0] wdata,
    input  wire logic [ 7:0] wstrb,
    input  wire logic        wvalid,
    output logic             wready,
    output logic      [ 1:0] bresp,
    output logic             bvalid,
    input  wire logic        bready,
    input  wire logic [18:0] araddr,
    input  wire logic        arvalid,
    output logic             arready,
    output logic      [63:0] rdata,
    output logic      [ 1:0] rresp,
    output logic             rvalid,
    input  wire logic        rready
);
  localparam int InterfaceBits = $clog2(INTERFACES);
  localparam int ClearBits = $clog2(REMEMBERED);
  if (REMEMBERED < INTERFACES) $fatal(1, "fewer packets are remembered than there are interfaces");

  typedef struct packed {
    logic is_open;
    logic [15:0] pdid;
  } domain_t;
  typedef struct packed {
    logic failed;
    logic [15:0] tail;
  } written_t;

  typedef enum logic [1:0] {
    IDLE,
    DECIDING,
    DRAINING
  } state_t;

  state_t state;
  domain_t domains[INTERFACES];
  logic [48:0] bases[INTERFACES];
  logic [15:0] heads[INTERFACES];
  logic [15:0] tails[INTERFACES];
  written_t in_memory[INTERFACES];

  // --- Writes ---

  // Entries that memory has not answered, and those of them that were put before a queue was closed. Memory answers
  // in their order. A packet whose look-up was in the cycle of the closing is put in the next one.
  logic [15:0] under_way, before_closing;
  wire [15:0] still_under_way = under_way + 16'(put) - 16'(written);
  // Tails have one port to be written by.
  wire may_place = state == DRAINING && before_closing == '0 && !put && !written;

  wire [InterfaceBits-1:0] written_page = awaddr[12+:InterfaceBits];
  wire has_page = {1'b0, awaddr[17:12]} < 7'(INTERFACES);
  wire is_system = awaddr[18];
  wire is_second = awaddr[11:3] == 9'd1;
  wire is_first = awaddr[11:3] == 9'd0;
  wire is_known = has_page && (is_first || is_second && is_system) && wstrb == '1;
  wire places = is_known && is_system && is_second;
  wire may_answer = !clearing && (!bvalid || bready);
  wire is_written = awvalid && wvalid && may_answer && (!places || may_place);

  assign awready = is_written;
  assign wready  = is_written;

  wire opened = is_written && is_known && is_system && is_first;
  wire head_moved = is_written && is_known && !is_system;
  wire placed = is_written && places;
  wire closes = state == IDLE && awvalid && wvalid && may_answer && places;

  always_ff @(posedge clk) begin
    under_way <= still_under_way;
    before_closing <= state == DRAINING ? before_closing - 16'(written && before_closing != '0) : still_under_way;
    unique case (state)
      IDLE: if (closes) state <= DECIDING;
      DECIDING: state <= DRAINING;
      default: if (placed) state <= IDLE;
    endcase
    if (reset || clearing) begin
      state <= IDLE;
      under_way <= '0;
    end
  end

  wire [InterfaceBits-1:0] emptied = clearing ? clear_address[InterfaceBits-1:0] : written_page;
  wire empties = clearing || placed;

  wire written_t counted = in_memory[written_interface];
  wire fails = counted.failed || write_failed;

  always_ff @(posedge clk) begin
    if (clearing || closes || opened) domains[emptied] <= opened ? {1'b1, wdata[15:0]} : '0;
    if (empties) bases[emptied] <= clearing ? '0 : wdata[48:0];
    if (empties || head_moved) heads[emptied] <= head_moved ? wdata[15:0] : '0;
    if (empties || put) tails[empties?emptied : put_interface] <= empties ? '0 : put_tail;
    if (empties || written)
      in_memory[empties?emptied : written_interface] <= empties ? '0 : {fails, counted.tail + 16'(!fails)};

    if (bready) bvalid <= 1'b0;
    if (is_written) begin
      bvalid <= 1'b1;
      bresp  <= is_known ? 2'b00 : 2'b10;
    end
    if (clearing) begin
      clear_address <= clear_address + 1'b1;
      if (clear_address == ClearBits'(REMEMBERED - 1)) clearing <= 1'b0;
    end
    if (reset) begin
      clearing <= 1'b1;
      clear_address <= '0;
      bvalid <= 1'b0;
    end
  end

  // --- Reads ---

  assign base = bases[base_interface];

  always_ff @(posedge clk) begin
    {is_open, pdid} <= domains[asked_interface];
    head <= heads[asked_interface];
    tail <= tails[asked_interface];
  end

  wire [InterfaceBits-1:0] read_page = araddr[12+:InterfaceBits];
  assign arready = !clearing && (!rvalid || rready);

  always_ff @(posedge clk) begin
    if (rready) rvalid <= 1'b0;
    if (arvalid && arready) begin
      rvalid <= 1'b1;
      rresp  <= 2'b00;
      unique case ({
        araddr[18], araddr[11:3]
      })
        10'h000: rdata <= 64'(heads[read_page]);
        10'h001: rdata <= 64'(in_memory[read_page].tail);
        10'h200: rdata <= 64'(domains[read_page].pdid);
        10'h201: rdata <= 64'(bases[read_page]);
        10'h202: rdata <= 64'(in_memory[read_page].failed);
        default: begin
          rdata <= '0;
          rresp <= 2'b10;
        end
      endcase
      if ({1'b0, araddr[17:12]} >= 7'(INTERFACES)) rresp <= 2'b10;
    end
    if (reset) rvalid <= 1'b0;
  end

  wire unused_ok = &{1'b0, awaddr[2:0], araddr[2:0], wdata};
endmodule

`default_nettype wire

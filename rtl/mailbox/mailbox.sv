// The mailbox: writes small messages of other nodes into queues of host memory, one for each virtual interface,
// and answers each of them.
//
//   network ─► mailbox_receive ─ verdict ─► mailbox_check ─┬─► answer ────────► network
//                    │    ▲                                └─► mailbox_write ─► host memory (AXI4)
//                 payload │ PDID, head, tail                        │ written
//                         └───────────── mailbox_queues ◄───────────┘
//                                             ▲ registers (AXI4-Lite): a process moves its head, reads the tail
//
//   empty ─ put ─► holding ─ put ─► full        the block moves the tail, the process the head
//         ◄ take ─         ◄ take ─
//
// From TR-488 §4.4: 64 interfaces; the PDID is compared; a negative acknowledgement for a foreign PDID, a packet in
// error and a full mailbox, otherwise an acknowledgement; tails are kept here, heads by the process; entries go to
// memory through the coherent port (footnote 1 of §4.6). Ours: entries of a queue, the cycles of a check, the table
// by which a repeated packet is known, the registers, what becomes of a queue whose entry memory has refused, and of one
// that another process gets.
//
// Cycles: a header that is on the bus in cycle n, with the check idle, has its answer and the first word of its entry
// on the buses in cycle n + CHECK. Checks follow each other every CHECK cycles.

`default_nettype none

module mailbox
  import exanet::*;
#(
    // Bits of the buses to network and memory: 128 and 512 are built.
    parameter int DATA_WIDTH = 128,
    parameter int INTERFACES = 64,
    // Entries of a queue.
    parameter int ENTRIES = 64,
    // Cycles of a check, from the header on.
    parameter int CHECK = 11,
    // Packets that are here and not yet answered.
    parameter int SLOTS = 128,
    // Accepted packets that are remembered, so that one that is repeated is not put twice.
    parameter int REMEMBERED = 1024
) (
    input wire logic clk,
    input wire logic reset,

    // The node of this interface: the source of answers.
    input wire logic [21:0] node,

    // Small messages.
    input  wire logic                  s_axis_net_tvalid,
    output logic                       s_axis_net_tready,
    input  wire logic [DATA_WIDTH-1:0] s_axis_net_tdata,
    input  wire logic                  s_axis_net_tlast,

    // Answers.
    output logic                       m_axis_net_tvalid,
    input  wire logic                  m_axis_net_tready,
    output logic      [DATA_WIDTH-1:0] m_axis_net_tdata,
    output logic                       m_axis_net_tlast,

    // Entries.
    output logic      [             0:0] m_axi_awid,
    output logic      [            48:0] m_axi_awaddr,
    output logic      [             7:0] m_axi_awlen,
    output logic      [             2:0] m_axi_awsize,
    output logic      [             1:0] m_axi_awburst,
    output logic                         m_axi_awvalid,
    input  wire logic                    m_axi_awready,
    output logic      [  DATA_WIDTH-1:0] m_axi_wdata,
    output logic      [DATA_WIDTH/8-1:0] m_axi_wstrb,
    output logic                         m_axi_wlast,
    output logic                         m_axi_wvalid,
    input  wire logic                    m_axi_wready,
    input  wire logic [             0:0] m_axi_bid,
    input  wire logic [             1:0] m_axi_bresp,
    input  wire logic                    m_axi_bvalid,
    output logic                         m_axi_bready,

    // Registers: see mailbox_queues.
    input  wire logic [18:0] s_axil_awaddr,
    input  wire logic        s_axil_awvalid,
    output logic             s_axil_awready,
    input  wire logic [63:0] s_axil_wdata,
    input  wire logic [ 7:0] s_axil_wstrb,
    input  wire logic        s_axil_wvalid,
    output logic             s_axil_wready,
    output logic      [ 1:0] s_axil_bresp,
    output logic             s_axil_bvalid,
    input  wire logic        s_axil_bready,
    input  wire logic [18:0] s_axil_araddr,
    input  wire logic        s_axil_arvalid,
    output logic             s_axil_arready,
    output logic      [63:0] s_axil_rdata,
    output logic      [ 1:0] s_axil_rresp,
    output logic             s_axil_rvalid,
    input  wire logic        s_axil_rready,

    // The verdict on each packet, as it falls: for a comparison with the model.
    output logic       verdict_valid,
    output logic [7:0] verdict_kind,
    output logic       verdict_put
);
  localparam int InterfaceBits = $clog2(INTERFACES);
  localparam int IndexBits = $clog2(ENTRIES);
  localparam int SlotBits = $clog2(SLOTS);

  if (INTERFACES < 2 || INTERFACES > 64 || INTERFACES != 1 << InterfaceBits)
    $fatal(1, "%0d interfaces: 2, 4, … 64 have pages in the registers", INTERFACES);
  if (ENTRIES < 2 || ENTRIES != 1 << IndexBits) $fatal(1, "%0d entries are no power of two", ENTRIES);
  if (CHECK < 6 || CHECK > 63) $fatal(1, "a check of %0d cycles: the logic takes 6 to 63", CHECK);
  // The longest packet, and three cycles to its verdict.
  if (DATA_WIDTH > 128 && CHECK < SmallWords + 6)
    $fatal(1, "a check of %0d cycles is shorter than a packet takes word by word", CHECK);

  // What is known of a packet behind its footer.
  typedef struct packed {
    kind_t                    kind;
    logic                     put;
    logic [InterfaceBits-1:0] interface_number;
    logic [IndexBits-1:0]     index;
    logic [2:0]               words;
    logic [21:0]              source;
    logic [31:0]              number;
    logic [31:0]              identity;
  } verdict_t;

  logic header_taken, slot_freed;
  logic clearing;
  logic [$clog2(REMEMBERED)-1:0] clear_address;

  // From mailbox_receive to mailbox_queues and back: the look-up of a packet's queue.
  logic [InterfaceBits-1:0] asked_interface;
  logic queue_open;
  logic [15:0] queue_pdid, queue_tail, queue_head;
  logic put;
  logic [InterfaceBits-1:0] put_interface;
  logic [15:0] put_tail;

  verdict_t fallen, verdict;
  logic fallen_valid, verdict_ready, verdict_there, verdict_fits;

  // Words of a beat, and beats of an entry.
  localparam int Lanes = DATA_WIDTH / 128;
  localparam int Beats = SmallWords / Lanes;

  logic word_valid, word_ready, word_last;
  word_t word;

  logic payload_write;
  logic [SlotBits+1:0] payload_write_address;
  word_t payload_write_data;
  logic [$clog2(SLOTS*Beats)-1:0] payload_read_address;
  logic [DATA_WIDTH-1:0] payload_read_data;

  logic write_start, write_idle, write_done;
  logic written;
  logic [InterfaceBits-1:0] written_interface;
  logic [InterfaceBits-1:0] base_interface;
  logic [48:0] base;

  assign verdict_valid = fallen_valid;
  assign verdict_kind  = fallen.kind;
  assign verdict_put   = fallen.put;

  // A packet has the cycles of a check, and fewer words.
  stream_words #(
      .DATA_WIDTH(DATA_WIDTH)
  ) words (
      .clk,
      .reset,
      .in_valid (s_axis_net_tvalid),
      .in_ready (s_axis_net_tready),
      .in_data  (s_axis_net_tdata),
      .in_last  (s_axis_net_tlast),
      .out_valid(word_valid),
      .out_ready(word_ready),
      .out_data (word),
      .out_last (word_last)
  );

  mailbox_receive #(
      .INTERFACES(INTERFACES),
      .ENTRIES(ENTRIES),
      .SLOTS(SLOTS),
      .REMEMBERED(REMEMBERED),
      .verdict_t(verdict_t)
  ) receive (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .net_valid(word_valid),
      .net_ready(word_ready),
      .net_data(word),
      .net_last(word_last),
      .header_taken,
      .slot_freed,
      .payload_write,
      .payload_address(payload_write_address),
      .payload_data(payload_write_data),
      .asked_interface,
      .queue_open,
      .queue_pdid,
      .queue_head,
      .queue_tail,
      .put,
      .put_interface,
      .put_tail,
      .verdict(fallen),
      .verdict_valid(fallen_valid)
  );

  // There is a place for each slot.
  fifo #(
      .WIDTH($bits(verdict_t)),
      .DEPTH(SLOTS)
  ) verdicts (
      .clk,
      .reset,
      .in_valid (fallen_valid),
      .in_ready (verdict_fits),
      .in_data  (fallen),
      .out_valid(verdict_there),
      .out_ready(verdict_ready),
      .out_data (verdict)
  );

  // A word goes to its lane of a beat to memory.
  wire [Lanes-1:0] payload_lane = Lanes'(payload_write) << payload_write_address % (SlotBits + 2)'(Lanes);

  ram #(
      .WIDTH(DATA_WIDTH),
      .DEPTH(SLOTS * Beats),
      .LANE (128)
  ) payload (
      .clk,
      .write(payload_lane),
      .write_address(($clog2(SLOTS * Beats))'(payload_write_address / (SlotBits + 2)'(Lanes))),
      .write_data({Lanes{payload_write_data}}),
      .read_address(payload_read_address),
      .read_data(payload_read_data)
  );

  mailbox_check #(
      .DATA_WIDTH(DATA_WIDTH),
      .CHECK(CHECK),
      .SLOTS(SLOTS)
  ) check (
      .clk,
      .reset,
      .node,
      .header_taken,
      .verdict_valid(verdict_there),
      .verdict_ready,
      .kind(verdict.kind),
      .put(verdict.put),
      .source(verdict.source),
      .number(verdict.number),
      .identity(verdict.identity),
      .write_idle,
      .write_start,
      .answer_valid(m_axis_net_tvalid),
      .answer_ready(m_axis_net_tready),
      .answer_data(m_axis_net_tdata),
      .answer_last(m_axis_net_tlast)
  );

  // The slot of a refused packet is free at once, that of another when its entry is written.
  assign slot_freed = write_done || (verdict_there && verdict_ready && !verdict.put);

  mailbox_write #(
      .DATA_WIDTH(DATA_WIDTH),
      .INTERFACES(INTERFACES),
      .ENTRIES(ENTRIES),
      .SLOTS(SLOTS)
  ) write (
      .clk,
      .reset,
      .next_packet(verdict_there && verdict_ready),
      .start(write_start),
      .interface_number(verdict.interface_number),
      .index(verdict.index),
      .words(verdict.words),
      .idle(write_idle),
      .done(write_done),
      .base_interface,
      .base,
      .payload_address(payload_read_address),
      .payload_data(payload_read_data),
      .written,
      .written_interface,
      .awid(m_axi_awid),
      .awaddr(m_axi_awaddr),
      .awlen(m_axi_awlen),
      .awsize(m_axi_awsize),
      .awburst(m_axi_awburst),
      .awvalid(m_axi_awvalid),
      .awready(m_axi_awready),
      .wdata(m_axi_wdata),
      .wstrb(m_axi_wstrb),
      .wlast(m_axi_wlast),
      .wvalid(m_axi_wvalid),
      .wready(m_axi_wready),
      .bvalid(m_axi_bvalid),
      .bready(m_axi_bready)
  );

  mailbox_queues #(
      .INTERFACES(INTERFACES),
      .REMEMBERED(REMEMBERED)
  ) queues (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .asked_interface,
      .is_open(queue_open),
      .pdid(queue_pdid),
      .head(queue_head),
      .tail(queue_tail),
      .put,
      .put_interface,
      .put_tail,
      .base_interface,
      .base,
      .written,
      .written_interface,
      .write_failed(m_axi_bresp[1]),
      .awaddr(s_axil_awaddr),
      .awvalid(s_axil_awvalid),
      .awready(s_axil_awready),
      .wdata(s_axil_wdata),
      .wstrb(s_axil_wstrb),
      .wvalid(s_axil_wvalid),
      .wready(s_axil_wready),
      .bresp(s_axil_bresp),
      .bvalid(s_axil_bvalid),
      .bready(s_axil_bready),
      .araddr(s_axil_araddr),
      .arvalid(s_axil_arvalid),
      .arready(s_axil_arready),
      .rdata(s_axil_rdata),
      .rresp(s_axil_rresp),
      .rvalid(s_axil_rvalid),
      .rready(s_axil_rready)
  );

  always_ff @(posedge clk) begin
    if (!reset)
      assert (!fallen_valid || verdict_fits)
      else $error("a verdict without a place");
  end

  // One master, one thread: the answers to writes come in order.
  wire unused_ok = &{1'b0, m_axi_bid, m_axi_bresp[0]};
endmodule

`default_nettype wire

// What the system gives the receive unit: the PDID of each virtual interface, and its queue of notifications.
//
//   offset              register  width  who
//   i·4096 + 0          PDID      16     rw    the protection domain of the interface
//   i·4096 + 8          BASE      42     rw    rank and address of its first notification; the queue is empty then
//
// Pages are the system's. A notification takes the place of the oldest: its process has to keep up.

`default_nettype none

module rdma_receive_registers #(
    parameter int INTERFACES = 64,
    parameter int NOTIFICATIONS = 64,
    parameter int CLEAR_BITS = 10
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset all is emptied, an address a cycle.
    output logic                  clearing,
    output logic [CLEAR_BITS-1:0] clear_address,

    input  wire logic [$clog2(INTERFACES)-1:0] asked_interface,
    output logic      [                  15:0] pdid,

    // The place of the next notification of an interface, and which round of the queue it is in.
    input  wire logic                          notified,
    input  wire logic [$clog2(INTERFACES)-1:0] notified_interface,
    output logic      [                  41:0] notification_address,
    output logic                               notification_phase,

    input  wire logic [17:0] awaddr,
    input  wire logic        awvalid,
    output logic             awready,
    input  wire logic [63:0] wdata,
    input  wire logic [ 7:0] wstrb,
    input  wire logic        wvalid,
    output logic             wready,
    output logic      [ 1:0] bresp,
    output logic             bvalid,
    input  wire logic        bready,
    input  wire logic [17:0] araddr,
    input  wire logic        arvalid,
    output logic             arready,
    output logic      [63:0] rdata,
    output logic      [ 1:0] rresp,
    output logic             rvalid,
    input  wire logic        rready
);
  localparam int InterfaceBits = $clog2(INTERFACES);
  localparam int TailBits = $clog2(NOTIFICATIONS) + 1;

  logic [15:0] pdids[INTERFACES];
  logic [41:0] bases[INTERFACES];
  logic [TailBits-1:0] tails[INTERFACES];

  wire [InterfaceBits-1:0] page = awaddr[12+:InterfaceBits];
  wire has_page = {1'b0, awaddr[17:12]} < 7'(INTERFACES);
  wire is_pdid = awaddr[11:3] == 9'd0;
  wire is_base = awaddr[11:3] == 9'd1;
  // A queue that is placed is emptied, and waits while another is written to.
  wire may_write = !clearing && (!bvalid || bready) && !(is_base && notified);
  wire is_written = awvalid && wvalid && may_write;
  wire is_known = has_page && (is_pdid || is_base) && wstrb == '1;
  wire placed = is_written && is_known && is_base;

  assign awready = is_written;
  assign wready  = is_written;

  wire [InterfaceBits-1:0] written_page = clearing ? clear_address[InterfaceBits-1:0] : page;
  wire [TailBits-1:0] tail = tails[notified_interface];

  assign pdid = pdids[asked_interface];
  assign notification_address = bases[notified_interface] + 42'({tail[TailBits-2:0], 4'd0});
  // Memory is zero as a queue begins: the first round has ones.
  assign notification_phase = !tail[TailBits-1];

  always_ff @(posedge clk) begin
    if (clearing || is_written && is_known && is_pdid) pdids[written_page] <= clearing ? '0 : wdata[15:0];
    if (clearing || placed) bases[written_page] <= clearing ? '0 : wdata[41:0];
    if (clearing || placed || notified)
      tails[clearing||placed?written_page : notified_interface] <= clearing || placed ? '0 : tail + 1'b1;

    if (bready) bvalid <= 1'b0;
    if (is_written) begin
      bvalid <= 1'b1;
      bresp  <= is_known ? 2'b00 : 2'b10;
    end
    if (clearing) begin
      clear_address <= clear_address + 1'b1;
      if (&clear_address) clearing <= 1'b0;
    end
    if (reset) begin
      clearing <= 1'b1;
      clear_address <= '0;
      bvalid <= 1'b0;
    end
  end

  wire [InterfaceBits-1:0] read_page = araddr[12+:InterfaceBits];
  assign arready = !clearing && (!rvalid || rready);

  always_ff @(posedge clk) begin
    if (rready) rvalid <= 1'b0;
    if (arvalid && arready) begin
      rvalid <= 1'b1;
      rdata  <= araddr[3] ? 64'(bases[read_page]) : 64'(pdids[read_page]);
      rresp  <= araddr[11:4] != '0 || {1'b0, araddr[17:12]} >= 7'(INTERFACES) ? 2'b10 : 2'b00;
    end
    if (reset) rvalid <= 1'b0;
  end

  wire unused_ok = &{1'b0, awaddr[2:0], araddr[2:0], wdata};
endmodule

`default_nettype wire

// Writes entries to host memory: each is one burst, a line of the second-level cache whatever the payload: four beats of
// a word, or fewer where a beat has more of them. The tail that a process sees moves when the memory has answered.
//
//   start ──► AW: address of the entry ─┐
//        └──► W: the words of the slot ─┴─► idle ─► … B ──► written: the tail of its queue

`default_nettype none

module mailbox_write
  import exanet::*;
#(
    parameter  int DATA_WIDTH  = 128,
    parameter  int INTERFACES  = 64,
    parameter  int ENTRIES     = 64,
    parameter  int SLOTS       = 128,
    localparam int Lanes       = DATA_WIDTH / 128,
    localparam int Beats       = SmallWords / Lanes,
    localparam int AddressBits = $clog2(SLOTS * Beats)
) (
    input wire logic clk,
    input wire logic reset,

    // The packet in the next slot is answered, and is to be written if `start` is high as well.
    input  wire logic                          next_packet,
    input  wire logic                          start,
    input  wire logic [$clog2(INTERFACES)-1:0] interface_number,
    input  wire logic [   $clog2(ENTRIES)-1:0] index,
    input  wire logic [                   2:0] words,
    // Another may be started; the last word of one has been taken.
    output logic                               idle,
    output logic                               done,

    // The queue of an interface in memory.
    output logic      [$clog2(INTERFACES)-1:0] base_interface,
    input  wire logic [                  48:0] base,

    output logic      [AddressBits-1:0] payload_address,
    input  wire logic [ DATA_WIDTH-1:0] payload_data,

    output logic                          written,
    output logic [$clog2(INTERFACES)-1:0] written_interface,

    output logic      [             0:0] awid,
    output logic      [            48:0] awaddr,
    output logic      [             7:0] awlen,
    output logic      [             2:0] awsize,
    output logic      [             1:0] awburst,
    output logic                         awvalid,
    input  wire logic                    awready,
    output logic      [  DATA_WIDTH-1:0] wdata,
    output logic      [DATA_WIDTH/8-1:0] wstrb,
    output logic                         wlast,
    output logic                         wvalid,
    input  wire logic                    wready,
    input  wire logic                    bvalid,
    output logic                         bready
);
  // Writes that memory has not answered.
  localparam int Outstanding = 16;

  logic [$clog2(SLOTS)-1:0] slot, next_slot;
  logic [1:0] beat;
  logic [2:0] payload_words;
  logic may_be_outstanding;

  assign idle = !awvalid && !wvalid && may_be_outstanding;
  assign done = wvalid && wready && wlast && (!awvalid || awready) || awvalid && awready && !wvalid;

  assign awid = '0;
  assign awlen = 8'(Beats - 1);
  assign awsize = 3'($clog2(DATA_WIDTH / 8));
  assign awburst = 2'b01;
  assign base_interface = interface_number;

  for (genvar i = 0; i < Lanes; i++) begin : g_lanes
    wire [2:0] place = 3'(Lanes * beat + i);
    assign wdata[128*i+:128] = place < payload_words ? swap_bytes(payload_data[128*i+:128]) : '0;
  end
  assign wstrb = '1;
  assign wlast = beat == 2'(Beats - 1);

  // The word of the next cycle.
  wire [1:0] next_beat = wvalid && wready ? beat + 1'b1 : beat;
  assign payload_address = AddressBits'(Beats) * AddressBits'(wvalid ? slot : next_slot)
      + AddressBits'(wvalid ? next_beat : '0);

  always_ff @(posedge clk) begin
    if (awready) awvalid <= 1'b0;
    if (wvalid) begin
      beat <= next_beat;
      if (wready && wlast) wvalid <= 1'b0;
    end
    if (start) begin
      awaddr <= base + 49'({index, 6'd0});
      awvalid <= 1'b1;
      wvalid <= 1'b1;
      beat <= '0;
      slot <= next_slot;
      payload_words <= words;
    end
    if (next_packet) next_slot <= next_slot + 1'b1;
    if (reset) begin
      awvalid <= 1'b0;
      wvalid <= 1'b0;
      next_slot <= '0;
    end
  end

  assign bready = 1'b1;

  fifo #(
      .WIDTH($clog2(INTERFACES)),
      .DEPTH(Outstanding)
  ) outstanding (
      .clk,
      .reset,
      .in_valid (start),
      .in_ready (may_be_outstanding),
      .in_data  (interface_number),
      .out_valid(),
      .out_ready(bvalid),
      .out_data (written_interface)
  );
  assign written = bvalid;
endmodule

`default_nettype wire

// A queue: what was written first is at its output.
//
//   in ──► [ words ] ──► out, in the cycle after it was written where the queue is empty
//
// The words are distributed RAM. `in_ready` is low while the queue is full, and does not look at `out_ready`.

`default_nettype none

module fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 16
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic             in_valid,
    output logic                  in_ready,
    input  wire logic [WIDTH-1:0] in_data,

    output logic                  out_valid,
    input  wire logic             out_ready,
    output logic      [WIDTH-1:0] out_data
);
  localparam int AddressBits = $clog2(DEPTH);
  if (DEPTH != 1 << AddressBits) $fatal(1, "the depth %0d of a queue is no power of two", DEPTH);

  logic [WIDTH-1:0] words[DEPTH];
  // One bit more than an address: full and empty differ.
  logic [AddressBits:0] head, tail;

  assign in_ready  = tail - head != (AddressBits + 1)'(DEPTH);
  assign out_valid = tail != head;
  assign out_data  = words[head[AddressBits-1:0]];

  always_ff @(posedge clk) begin
    if (in_valid && in_ready) begin
      words[tail[AddressBits-1:0]] <= in_data;
      tail <= tail + 1'b1;
    end
    if (out_valid && out_ready) head <= head + 1'b1;
    if (reset) begin
      head <= '0;
      tail <= '0;
    end
  end
endmodule

`default_nettype wire

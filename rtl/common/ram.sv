// A memory with a port for writes and a port for reads, as block RAM has them.
//
//   write, byte lanes ──► words ──► read data, one cycle after the address
//
// A read beside a write of the same word gives the old one.

`default_nettype none

module ram #(
    parameter int WIDTH = 128,
    parameter int DEPTH = 512,
    // Bits of a lane of writes.
    parameter int LANE  = WIDTH
) (
    input wire logic clk,

    input wire logic [   WIDTH/LANE-1:0] write,
    input wire logic [$clog2(DEPTH)-1:0] write_address,
    input wire logic [        WIDTH-1:0] write_data,

    input  wire logic [$clog2(DEPTH)-1:0] read_address,
    output logic      [        WIDTH-1:0] read_data
);
  if (WIDTH % LANE != 0) $fatal(1, "a word of %0d bits is not whole lanes of %0d", WIDTH, LANE);

  logic [WIDTH-1:0] words[DEPTH];

  always_ff @(posedge clk) begin
    for (int i = 0; i < WIDTH / LANE; i++) begin
      if (write[i]) words[write_address][LANE*i+:LANE] <= write_data[LANE*i+:LANE];
    end
    read_data <= words[read_address];
  end
endmodule

`default_nettype wire

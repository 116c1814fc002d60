// A stream whose beats are several words wide, as words one after the other.
//
//   in ──► [ header | payload | payload | payload ] ──► header, payload, payload, payload, …, footer
//          [ payload | footer |   0     |    0    ]
//
// The highest word of a beat travels first. A packet begins with a beat of its own, and zeros follow the footer, whose
// place is known by the size in the header. A beat is taken with the last of its words, the first of which is at the
// output at once. Where a beat is one word this is a piece of wire.

`default_nettype none

module stream_words
  import exanet::*;
#(
    parameter int DATA_WIDTH = 512
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic                  in_valid,
    output logic                       in_ready,
    input  wire logic [DATA_WIDTH-1:0] in_data,
    input  wire logic                  in_last,

    output logic      out_valid,
    input  wire logic out_ready,
    output word_t     out_data,
    output logic      out_last
);
  localparam int Words = DATA_WIDTH / 128;
  if (DATA_WIDTH != 128 * Words || Words != 1 << $clog2(Words))
    $fatal(1, "a bus of %0d bits is not 1, 2, 4, … words of 128", DATA_WIDTH);

  assign out_valid = in_valid;

  if (Words == 1) begin : g_wire
    assign in_ready = out_ready;
    assign out_data = in_data;
    assign out_last = in_last;
    wire unused_ok = &{1'b0, clk, reset};
  end else begin : g_words
    logic is_header;
    logic [$clog2(Words)-1:0] place;
    // Words to the footer, as the header has them.
    logic [6:0] left;

    wire header_t header = header_t'(in_data[DATA_WIDTH-1-:128]);
    wire [6:0] words_left = is_header ? words_of(header.size) + 1'b1 : left;
    wire is_last_place = place == $clog2(Words)'(Words - 1);

    assign out_data = in_data[128*(Words-1-int'(place))+:128];
    // A packet of another length than its header says ends with the beat.
    assign out_last = in_last && (is_last_place || words_left == '0);
    assign in_ready = out_ready && (is_last_place || out_last);

    always_ff @(posedge clk) begin
      if (out_valid && out_ready) begin
        is_header <= out_last;
        place <= out_last ? '0 : place + 1'b1;
        left <= words_left == '0 ? '0 : words_left - 1'b1;
      end
      if (reset) begin
        is_header <= 1'b1;
        place <= '0;
      end
    end

    wire unused_ok = &{1'b0, header};
  end
endmodule

`default_nettype wire

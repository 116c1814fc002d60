// The packets that a mailbox has accepted, by source and number: one whose acknowledgement was lost comes again.
//
//   asked ──► place ──► was it accepted? one cycle later
//                └────► accept: it is from now on
//
// A packet is forgotten when another takes its place.

`default_nettype none

module accepted_packets #(
    parameter  int PLACES    = 1024,
    localparam int PlaceBits = $clog2(PLACES)
) (
    input wire logic clk,

    input wire logic                 clearing,
    input wire logic [PlaceBits-1:0] clear_address,

    input wire logic [21:0] asked_source,
    input wire logic [31:0] asked_number,

    // The packet that was asked for in the cycle before.
    input  wire logic [21:0] source,
    input  wire logic [31:0] number,
    output logic             was_accepted,
    input  wire logic        accept
);
  typedef struct packed {
    logic        valid;
    logic [21:0] source;
    logic [31:0] number;
  } accepted_t;

  // The place of a packet, by the low bits of its source and number.
  function automatic logic [PlaceBits-1:0] place_of(logic [PlaceBits-1:0] of, logic [PlaceBits-1:0] counted);
    return counted ^ {of[PlaceBits/2-1:0], of[PlaceBits-1:PlaceBits/2]};
  endfunction

  accepted_t known, written;
  assign written = '{valid: !clearing, source: source, number: number};
  assign was_accepted = known.valid && known.source == source && known.number == number;

  ram #(
      .WIDTH($bits(accepted_t)),
      .DEPTH(PLACES)
  ) places (
      .clk,
      .write(clearing || accept),
      .write_address(clearing ? clear_address : place_of(source[PlaceBits-1:0], number[PlaceBits-1:0])),
      .write_data(written),
      .read_address(place_of(asked_source[PlaceBits-1:0], asked_number[PlaceBits-1:0])),
      .read_data(known)
  );

  wire unused_ok = &{1'b0, asked_source, asked_number};
endmodule

`default_nettype wire

// The next packet: what the engine has made is looked up, and its header kept until it is taken.
//
//   made ─► WAIT ─► LOOK_UP ── still ongoing? ──► prepared ─► packetizer_transmit
//                       └─ answered meanwhile: no packet ◄─┘ before the network takes its header
//
// While one packet is on the bus the next is prepared: packets follow each other without a gap.

`default_nettype none

module packetizer_prepare
  import exanet::*;
#(
    parameter int CHANNEL_BITS = 8,
    parameter int POST_BITS = 35
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    input  wire logic                    made_valid,
    output logic                         made_ready,
    input  wire logic [CHANNEL_BITS-1:0] made_channel,
    input  wire logic [   POST_BITS-1:0] made_post,

    // The channel and its descriptor: there one cycle later, beside `looked_up`.
    output logic         [CHANNEL_BITS-1:0] looked_up_channel,
    output logic                            looked_up,
    input  wire logic                       looked_up_ongoing,
    input  wire logic    [   POST_BITS-1:0] looked_up_post,
    input  wire header_t                    descriptor,

    // A channel is answered or given up.
    input wire logic                    left_valid,
    input wire logic [CHANNEL_BITS-1:0] left_channel,

    // A packet of which a beat has been taken stays.
    input  wire logic                    begun,
    output logic                         prepared,
    input  wire logic                    taken,
    output header_t                      header,
    output logic      [CHANNEL_BITS-1:0] channel,
    output logic      [   POST_BITS-1:0] post
);
  typedef enum logic {
    WAIT,
    LOOK_UP
  } state_t;

  state_t state;
  // The channel has been left in the cycle of its look-up, which does not show that.
  logic has_left;
  logic [CHANNEL_BITS-1:0] next_channel;
  logic [POST_BITS-1:0] next_post;

  assign made_ready = state == WAIT && (!prepared || taken);
  assign looked_up_channel = made_channel;
  assign looked_up = state == LOOK_UP;
  wire is_due = looked_up_ongoing && looked_up_post == next_post && !has_left
      && !(left_valid && left_channel == next_channel);
  wire is_withdrawn = !begun && left_valid && left_channel == channel;

  always_ff @(posedge clk) begin
    if (taken || is_withdrawn) prepared <= 1'b0;
    unique case (state)
      WAIT:
      if (made_valid && made_ready) begin
        state <= LOOK_UP;
        next_channel <= made_channel;
        next_post <= made_post;
        has_left <= left_valid && left_channel == made_channel;
      end
      default: begin
        state <= WAIT;
        prepared <= is_due;
        channel <= next_channel;
        post <= next_post;
        header <= descriptor;
        header.kind <= posted_kind(descriptor.kind);
        header.source <= node;
      end
    endcase
    if (reset) begin
      state <= WAIT;
      prepared <= 1'b0;
    end
  end
endmodule

`default_nettype wire

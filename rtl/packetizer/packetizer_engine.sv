// The engine of the packetizer: gives each packet its cycles, in the order in which posts and repeats come.
//
//   post, repeat ─► [ started ] ─► IDLE ── ENGINE cycles ──► [ made ] ─► transmit
//
// Both queues hold whatever there can be: a post and a repeat of each channel.

`default_nettype none

module packetizer_engine #(
    parameter int CHANNEL_BITS = 8,
    // Bits that name a post.
    parameter int POST_BITS = 35,
    parameter int ENGINE = 9
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic                    start_valid,
    output logic                         start_ready,
    input  wire logic [CHANNEL_BITS-1:0] start_channel,
    input  wire logic [   POST_BITS-1:0] start_post,

    output logic                         made_valid,
    input  wire logic                    made_ready,
    output logic      [CHANNEL_BITS-1:0] made_channel,
    output logic      [   POST_BITS-1:0] made_post
);
  localparam int Depth = 2 << CHANNEL_BITS;
  // Of the packet's cycles transmit takes the last: two to look the channel up, one is the queue's.
  localparam int Made = ENGINE - 3;

  typedef enum logic {
    IDLE,
    WORKING
  } state_t;

  state_t state;
  logic [5:0] cycles;
  logic [CHANNEL_BITS-1:0] channel;
  logic [POST_BITS-1:0] post;
  logic started_valid, made_taken;
  logic [CHANNEL_BITS-1:0] started_channel;
  logic [POST_BITS-1:0] started_post;

  wire is_made = state == WORKING && cycles == 6'(Made);

  fifo #(
      .WIDTH(CHANNEL_BITS + POST_BITS),
      .DEPTH(Depth)
  ) started (
      .clk,
      .reset,
      .in_valid (start_valid),
      .in_ready (start_ready),
      .in_data  ({start_channel, start_post}),
      .out_valid(started_valid),
      .out_ready(state == IDLE),
      .out_data ({started_channel, started_post})
  );

  always_ff @(posedge clk) begin
    unique case (state)
      IDLE:
      if (started_valid) begin
        state   <= WORKING;
        cycles  <= 6'd1;
        channel <= started_channel;
        post    <= started_post;
      end
      default: begin
        if (!is_made || made_taken) cycles <= cycles + 1'b1;
        if (cycles == 6'(ENGINE - 1)) state <= IDLE;
      end
    endcase
    if (reset) state <= IDLE;
  end

  fifo #(
      .WIDTH(CHANNEL_BITS + POST_BITS),
      .DEPTH(Depth)
  ) made (
      .clk,
      .reset,
      .in_valid (is_made),
      .in_ready (made_taken),
      .in_data  ({channel, post}),
      .out_valid(made_valid),
      .out_ready(made_ready),
      .out_data ({made_channel, made_post})
  );
endmodule

`default_nettype wire

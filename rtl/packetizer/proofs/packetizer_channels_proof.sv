// A channel changes as the table at the head of packetizer_channels.sv says, and by nothing else: whatever comes in
// whatever order.

`default_nettype none

module packetizer_channels_proof #(
    parameter int CHANNEL_BITS = 1,
    parameter int TIME_BITS = 8
) (
    input wire logic                    clk,
    input wire logic                    reset,
    input wire logic [   TIME_BITS-1:0] now,
    input wire logic                    due_valid,
    input wire logic [CHANNEL_BITS-1:0] due_channel,
    input wire logic [   TIME_BITS-1:0] due_time,
    input wire logic                    answer_valid,
    input wire logic [CHANNEL_BITS-1:0] answer_channel,
    input wire logic                    answer_number,
    input wire logic                    answer_accepted,
    input wire logic                    sent_valid,
    input wire logic [CHANNEL_BITS-1:0] sent_channel,
    input wire logic                    sent_number,
    input wire logic                    post_valid,
    input wire logic [CHANNEL_BITS-1:0] post_channel,
    input wire logic                    post_number,
    input wire logic                    clear_valid,
    input wire logic [CHANNEL_BITS-1:0] clear_channel
);
  localparam logic [2:0] Idle = 0, Ongoing = 1, Acknowledged = 2, Refused = 3, TimedOut = 4;

  logic clearing, sent_ready, post_ready, repeat_valid, change_valid;
  logic [CHANNEL_BITS-1:0] clear_address, repeat_channel, change_channel;
  logic [2:0] change_state;

  packetizer_channels #(
      .CHANNEL_BITS(CHANNEL_BITS),
      .TIME_BITS(TIME_BITS),
      .TIMEOUT(20),
      .LONGEST_TIMEOUT(80),
      .REPETITIONS(2)
  ) dut (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .now,
      .due_valid,
      .due_channel,
      .due_time,
      .answer_valid,
      .answer_ready(),
      .answer_channel,
      .answer_number({31'd0, answer_number}),
      .answer_accepted,
      .sent_valid,
      .sent_ready,
      .sent_channel,
      .sent_post({34'd0, sent_number}),
      .post_valid,
      .post_ready,
      .post_channel,
      .post({34'd0, post_number}),
      .clear_valid,
      .clear_ready(),
      .clear_channel,
      .load_valid(1'b0),
      .load_ready(),
      .load_channel('0),
      .loaded(),
      .loaded_state(),
      .repeat_valid,
      .repeat_channel,
      .repeat_post(),
      .looked_up_channel('0),
      .looked_up_ongoing(),
      .looked_up_post(),
      .scanned_channel('0),
      .scanned_waits(),
      .scanned_deadline(),
      .change_valid,
      .change_channel,
      .change_state
  );

  // What the changes on the port make of each channel.
  logic [2:0] state[1 << CHANNEL_BITS];
  logic [2:0] from;
  assign from = state[change_channel];

  always_ff @(posedge clk) begin
    if (change_valid) state[change_channel] <= change_state;
    if (reset || clearing) for (int i = 0; i < 1 << CHANNEL_BITS; i++) state[i] <= Idle;

    if (!reset && !clearing) begin
      // The table has what the port has told, but for a change that is under way.
      for (int i = 0; i < 1 << CHANNEL_BITS; i++) begin
        assert (dut.channels.words[i][35+TIME_BITS+6+:3] == state[i]);
        assert (state[i] <= TimedOut);
      end
      if (dut.changing_valid) assert (dut.channel.state == state[dut.changing.channel]);
      if (change_valid)
        unique case (change_state)
          Ongoing: assert (from != Ongoing);
          Acknowledged, Refused, TimedOut: assert (from == Ongoing);
          default: assert (from == Refused || from == TimedOut);
        endcase
      // Only a channel whose answer is awaited is repeated.
      if (repeat_valid) assert (state[repeat_channel] == Ongoing);
    end
  end
endmodule

`default_nettype wire

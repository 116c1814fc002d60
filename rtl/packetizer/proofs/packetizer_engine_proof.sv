// The engine makes a packet for each start: none is lost, none is made twice, and no queue overflows while there is
// one start for each post and each repeat of a channel at most.

`default_nettype none

module packetizer_engine_proof #(
    parameter int CHANNEL_BITS = 1,
    parameter int ENGINE = 6
) (
    input wire logic                    clk,
    input wire logic                    reset,
    input wire logic                    starts,
    input wire logic [CHANNEL_BITS-1:0] start_channel,
    input wire logic                    made_ready
);
  localparam int Most = 2 << CHANNEL_BITS;

  logic start_ready, made_valid;
  logic [CHANNEL_BITS-1:0] made_channel;

  // Packets that are started and not made, or made and not taken.
  logic [3:0] held;
  wire start_valid = starts && held < 4'(Most);

  packetizer_engine #(
      .CHANNEL_BITS(CHANNEL_BITS),
      .ENGINE(ENGINE)
  ) dut (
      .clk,
      .reset,
      .start_valid,
      .start_ready,
      .start_channel,
      .start_post('0),
      .made_valid,
      .made_ready,
      .made_channel,
      .made_post ()
  );

  // The packet in the engine is not in the queue of those that are made yet.
  wire in_engine = dut.state == 1'b1 && dut.cycles <= 6'(ENGINE - 3);

  always_ff @(posedge clk) begin
    held <= held + 4'(start_valid) - 4'(made_valid && made_ready);
    if (reset) held <= '0;

    if (!reset) begin
      assert (held <= 4'(Most));
      assert (held == 4'(3'(dut.started.tail - dut.started.head)) + 4'(in_engine) + 4'(3'(dut.made.tail - dut.made.head)));
      assert (3'(dut.started.tail - dut.started.head) <= 3'(Most));
      assert (3'(dut.made.tail - dut.made.head) <= 3'(Most));
      // No start and no packet finds its queue full.
      assert (!start_valid || start_ready);
      assert (!dut.is_made || dut.made_taken);
      assert (dut.state == 1'b0 || dut.cycles >= 6'd1 && dut.cycles <= 6'(ENGINE - 1));
    end
  end
endmodule

`default_nettype wire

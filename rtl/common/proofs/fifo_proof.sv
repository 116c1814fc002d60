// The queue never holds more than its depth, never gives what was not put, and gives each word once and in order.
//
//   in ──► dut ──► out      held: words put and not taken; followed: how many are ahead of one that is looked at

`default_nettype none

module fifo_proof #(
    parameter int WIDTH = 2,
    parameter int DEPTH = 4
) (
    input wire logic             clk,
    input wire logic             reset,
    input wire logic             in_valid,
    input wire logic [WIDTH-1:0] in_data,
    input wire logic             out_ready,
    // The word that is followed: chosen at will when it is put.
    input wire logic             follow
);
  logic in_ready, out_valid;
  logic [WIDTH-1:0] out_data;

  fifo #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) dut (
      .clk,
      .reset,
      .in_valid,
      .in_ready,
      .in_data,
      .out_valid,
      .out_ready,
      .out_data
  );

  wire  put = in_valid && in_ready;
  wire  taken = out_valid && out_ready;
  logic followed;
  logic [2:0] held, ahead;
  logic [WIDTH-1:0] word;

  always_ff @(posedge clk) begin
    held <= held + 3'(put) - 3'(taken);
    if (!followed && put && follow) begin
      followed <= 1'b1;
      ahead <= held - 3'(taken);
      word <= in_data;
    end else if (followed && taken) begin
      if (ahead == '0) followed <= 1'b0;
      ahead <= ahead - 1'b1;
    end
    if (reset) begin
      held <= '0;
      followed <= 1'b0;
    end

    if (!reset) begin
      assert (held <= 3'(DEPTH));
      assert (held == dut.tail - dut.head);
      assert (in_ready == (held != 3'(DEPTH)));
      assert (out_valid == (held != '0));
      // The followed word lies where it was put, and is the next when none is ahead of it.
      assert (!followed || ahead < held);
      assert (!followed || dut.words[2'(dut.head+ahead)] == word);
      assert (!(followed && ahead == '0) || out_data == word);
    end
  end
endmodule

`default_nettype wire

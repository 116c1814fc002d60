// The check of the mailbox answers each packet once: no more answers than headers, none without a verdict, two words
// each; and starts an entry only for what is put.

`default_nettype none

module mailbox_check_proof
  import exanet::*;
#(
    parameter int CHECK = 6,
    parameter int SLOTS = 4
) (
    input wire logic         clk,
    input wire logic         reset,
    input wire logic         header,
    input wire logic         verdict,
    input wire kind_t        kind,
    input wire logic         put,
    input wire logic  [21:0] source,
    input wire logic  [31:0] number,
    input wire logic         write_idle,
    input wire logic         answer_ready
);
  logic verdict_ready, write_start, answer_valid, answer_last;
  word_t answer_data;

  // Packets whose header has come and which are not answered; of them, those with a verdict.
  logic [2:0] unanswered, verdicts;
  wire header_taken = header && unanswered < 3'(SLOTS);
  wire falls = verdict && verdicts < unanswered;
  wire verdict_valid = verdicts != '0;
  wire answered = verdict_valid && verdict_ready;

  mailbox_check #(
      .CHECK(CHECK),
      .SLOTS(SLOTS)
  ) dut (
      .clk,
      .reset,
      .node('0),
      .header_taken,
      .verdict_valid,
      .verdict_ready,
      .kind,
      .put,
      .source,
      .number,
      .identity('0),
      .write_idle,
      .write_start,
      .answer_valid,
      .answer_ready,
      .answer_data,
      .answer_last
  );

  // Words of an answer that are still to go.
  logic [1:0] words;

  always_ff @(posedge clk) begin
    unanswered <= unanswered + 3'(header_taken) - 3'(answered);
    verdicts <= verdicts + 3'(falls) - 3'(answered);
    words <= answered ? 2'd2 : words - 2'(answer_valid && answer_ready);
    if (reset) begin
      unanswered <= '0;
      verdicts <= '0;
      words <= '0;
    end

    if (!reset) begin
      // Headers wait, or the check has one: none is lost, none is counted twice.
      assert (unanswered <= 3'(SLOTS) && verdicts <= unanswered);
      assert (unanswered == dut.waiting + 3'(dut.state == 2'd1));
      assert (dut.state != 2'd3);
      assert (!answered || words == '0);
      assert (answer_valid == (words != '0));
      assert (answer_last == (words == 2'd1));
      assert (words == (dut.answer_state == 2'd0 ? 2'd0 : dut.answer_state == 2'd1 ? 2'd2 : 2'd1));
      assert (dut.answer_state != 2'd3);
      assert (write_start == (answered && put));
    end
  end
endmodule

`default_nettype wire

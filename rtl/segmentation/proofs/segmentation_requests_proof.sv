// A read channel is never given to two requests; each request is answered once, in two words; what gets a channel is
// acknowledged.
//
//   requests ──► dut ─┬─ post ──► free: a bit for each read channel ── any that is free ──► dut
//                     └─ answer      ▲ any channel may be freed in any cycle

`default_nettype none

module segmentation_requests_proof
  import exanet::*;
#(
    parameter int PAGES = 2,
    parameter int REMEMBERED = 16
) (
    input wire logic         clk,
    input wire logic         reset,
    input wire logic         net_valid,
    input wire logic [127:0] net_data,
    input wire logic         net_last,
    input wire logic [ 15:0] pdid,
    input wire logic         post_ready,
    input wire logic         answer_ready,
    input wire logic         frees,
    input wire logic         freed_page,
    input wire logic [  4:0] freed_channel,
    input wire logic [  4:0] offered_channel
);
  logic net_ready, asked_page, post_valid, answer_valid, answer_last;
  logic [6:0] post_channel;
  // Read channels that are free, of each page, and one of the page that was asked for in the cycle before.
  logic [1:0][31:0] free;
  logic has_free;
  logic [4:0] next_free;

  segmentation_requests #(
      .PAGES(PAGES),
      .REMEMBERED(REMEMBERED)
  ) dut (
      .clk,
      .reset,
      .clearing(1'b0),
      .clear_address('0),
      .node('0),
      .net_valid,
      .net_ready,
      .net_data,
      .net_last,
      .asked_page,
      .has_free,
      .next_free,
      .pdid,
      .post_valid,
      .post_ready,
      .post_channel,
      .post_source(),
      .post_destination(),
      .answer_valid,
      .answer_ready,
      .answer_data(),
      .answer_last
  );

  // A header has come, and no footer; a footer, and no answer that is whole. A word of the answer has gone; a channel
  // was given.
  logic in_packet, open, header_gone, given;
  wire taken = net_valid && net_ready;
  wire footer_taken = taken && in_packet && net_last;
  wire word_gone = answer_valid && answer_ready;
  wire posted = post_valid && post_ready;

  always_ff @(posedge clk) begin
    has_free  <= free[asked_page][offered_channel];
    next_free <= offered_channel;
    if (frees) free[freed_page][freed_channel] <= 1'b1;
    if (posted) free[post_channel[6]][post_channel[4:0]] <= 1'b0;
    if (taken) in_packet <= !net_last;
    if (footer_taken) open <= 1'b1;
    if (word_gone) header_gone <= !answer_last;
    if (word_gone && answer_last) open <= 1'b0;
    given <= (given || posted) && !footer_taken;
    if (reset) begin
      free <= '1;
      in_packet <= 1'b0;
      open <= 1'b0;
      header_gone <= 1'b0;
      given <= 1'b0;
    end

    if (!reset) begin
      // A channel that is given is free, and a read channel of the page that was asked for.
      assert (!post_valid || free[post_channel[6]][post_channel[4:0]]);
      assert (!post_valid || post_channel[6:5] == {asked_page, 1'b1});
      // Once for a request, and before its answer.
      assert (!posted || open && !given && !answer_valid);
      // One request at a time, and an answer of two words to each.
      assert (!taken || !open);
      assert (!answer_valid || open && answer_last == header_gone);
      // What gets a channel is acknowledged.
      assert (!given || dut.kind == ACKNOWLEDGEMENT || !open);
      // So that an induction holds: the states, and the channels that were free when they were looked up.
      assert (in_packet == (dut.state == 3'd1));
      assert (open == (dut.state >= 3'd2));
      assert (header_gone == (dut.state == 3'd7));
      assert (!given || dut.state == 3'd0 || dut.state == 3'd1 || dut.state >= 3'd6);
      assert (dut.state != 3'd3 || !has_free || free[asked_page][next_free]);
      assert (!(dut.state inside {3'd4, 3'd5}) || !dut.starts || dut.kind == ACKNOWLEDGEMENT);
      // As long as a channel is to be given, it is free.
      assert (dut.state != 3'd4 || !dut.starts || free[dut.post_channel[6]][dut.post_channel[4:0]]);
      assert (dut.state != 3'd4 || dut.post_channel[6:5] == {asked_page, 1'b1});
    end
  end
endmodule

`default_nettype wire

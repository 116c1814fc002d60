// An entry is written whole: one address and four words for each start, the last of them marked; and never more writes
// outstanding than answers have room for.

`default_nettype none

module mailbox_write_proof
  import exanet::*;
#(
    parameter int SLOTS = 4
) (
    input wire logic       clk,
    input wire logic       reset,
    input wire logic       wants,
    input wire logic [1:0] index,
    input wire logic [2:0] words,
    input wire logic       awready,
    input wire logic       wready,
    input wire logic       answers
);
  logic idle, done, awvalid, wvalid, wlast;
  wire start = wants && idle;

  // Addresses and words of the entry that are still to go; writes that memory has not answered.
  logic addresses;
  logic [2:0] beats;
  logic [4:0] outstanding;
  wire bvalid = answers && outstanding > 5'(addresses || beats != '0);

  mailbox_write #(
      .INTERFACES(2),
      .ENTRIES(4),
      .SLOTS(SLOTS)
  ) dut (
      .clk,
      .reset,
      .next_packet(start),
      .start,
      .interface_number(1'b0),
      .index,
      .words,
      .idle,
      .done,
      .base_interface(),
      .base('0),
      .payload_address(),
      .payload_data('0),
      .written(),
      .written_interface(),
      .awid(),
      .awaddr(),
      .awlen(),
      .awsize(),
      .awburst(),
      .awvalid,
      .awready,
      .wdata(),
      .wstrb(),
      .wlast,
      .wvalid,
      .wready,
      .bvalid,
      .bready()
  );


  always_ff @(posedge clk) begin
    addresses <= start || addresses && !awready;
    beats <= start ? 3'd4 : beats - 3'(wvalid && wready);
    outstanding <= outstanding + 5'(start) - 5'(bvalid);
    if (reset) begin
      addresses <= 1'b0;
      beats <= '0;
      outstanding <= '0;
    end

    if (!reset) begin
      assert (awvalid == addresses);
      assert (wvalid == (beats != '0));
      assert (beats <= 3'd4);
      assert (!wvalid || {1'b0, dut.beat} == 3'd4 - beats);
      assert (!wvalid || wlast == (beats == 3'd1));
      assert (outstanding <= 5'd16);
      assert (outstanding == dut.outstanding.tail - dut.outstanding.head);
      // The slot comes back once, with the last of address and words.
      assert (done == ((awvalid || wvalid) && (!awvalid || awready) && (!wvalid || wready && wlast)));
    end
  end
endmodule

`default_nettype wire

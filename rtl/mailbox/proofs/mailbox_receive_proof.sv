// The receive path of the mailbox takes a packet once and whole: a verdict for each footer, three cycles behind it, and
// never more packets than slots.
//
//   network ──► dut ──► verdict      used: packets taken whose slot has not come back

`default_nettype none

module mailbox_receive_proof
  import exanet::*;
#(
    parameter int INTERFACES = 2,
    parameter int ENTRIES    = 2,
    parameter int SLOTS      = 2,
    parameter int REMEMBERED = 16
) (
    input wire logic         clk,
    input wire logic         reset,
    input wire logic         net_valid,
    input wire logic [127:0] net_data,
    input wire logic         net_last,
    input wire logic         frees,
    input wire logic         queue_open,
    input wire logic [ 15:0] queue_pdid,
    input wire logic [ 15:0] queue_head,
    input wire logic [ 15:0] queue_tail
);
  typedef struct packed {
    kind_t       kind;
    logic        put;
    logic        interface_number;
    logic        index;
    logic [2:0]  words;
    logic [21:0] source;
    logic [31:0] number;
    logic [31:0] identity;
  } verdict_t;

  logic net_ready, header_taken, payload_write, put, verdict_valid;
  logic [2:0] payload_address;
  verdict_t verdict;

  // Packets that have a slot, and of them those whose footer has not come.
  logic [1:0] used, open;
  wire slot_freed = frees && used > open;

  mailbox_receive #(
      .INTERFACES(INTERFACES),
      .ENTRIES(ENTRIES),
      .SLOTS(SLOTS),
      .REMEMBERED(REMEMBERED),
      .verdict_t(verdict_t)
  ) dut (
      .clk,
      .reset,
      .clearing(1'b0),
      .clear_address('0),
      .net_valid,
      .net_ready,
      .net_data,
      .net_last,
      .header_taken,
      .slot_freed,
      .payload_write,
      .payload_address,
      .payload_data(),
      .asked_interface(),
      .queue_open,
      .queue_pdid,
      .queue_head,
      .queue_tail,
      .put,
      .put_interface(),
      .put_tail(),
      .verdict,
      .verdict_valid
  );

  wire taken = net_valid && net_ready;
  wire footer_taken = taken && open != '0 && net_last;
  logic [2:0] footers;
  logic [2:0] payload;

  always_ff @(posedge clk) begin
    used <= used + 2'(header_taken) - 2'(slot_freed);
    open <= open + 2'(header_taken) - 2'(footer_taken);
    footers <= {footers[1:0], footer_taken};
    payload <= header_taken ? '0 : payload + 3'(payload_write);
    if (reset) begin
      used <= '0;
      open <= '0;
      footers <= '0;
      payload <= '0;
    end

    if (!reset) begin
      // Slots are conserved.
      assert (used <= 2'(SLOTS));
      assert ((SLOTS + 1) > 32'(used) && dut.slots_used == used);
      assert (open <= used);
      // One packet is under way at most, and in the state that says so.
      assert (open == 2'(dut.state == 1'b1));
      // A verdict for each footer, and for nothing else.
      assert ({dut.decided.valid, dut.looked_up.valid, dut.sound.valid} == footers);
      assert (verdict_valid == footers[2]);
      // Nothing is put into a queue that is not open.
      assert (!put || queue_open);
      // Nothing is put without an acknowledgement.
      assert (!put || verdict_valid && verdict.kind == ACKNOWLEDGEMENT);
      // Payload of a packet does not reach the next slot.
      assert (payload <= 3'd4 && (dut.state == 1'b0 || dut.words <= 3'd5));
      assert (!payload_write || payload_address == {dut.slot, payload[1:0]});
      assert (dut.state == 1'b0 || payload == (dut.words < 3'd4 ? dut.words : 3'd4));
    end
  end
endmodule

`default_nettype wire

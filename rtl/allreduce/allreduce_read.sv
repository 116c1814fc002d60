// What the accelerator reads from memory: its own vector, and the table of ranks for the packets that it sends.
//
//   fetch ──┐                              ┌─ thread 0 ─► own vector
//           ├─► [ asked ] ─► memory (AXI4) ┤
//   lookup ─┴─► [ lookups ] ◄── purpose ── └─ thread 1 ─► four pairs ─► a packet for each member that it is for
//
// A lookup reads the pairs of a board: two words, each with two pairs. A pair has the network address first and then
// the rank. The server is the member whose address is a multiple of four.

`default_nettype none

module allreduce_read
  import exanet::*;
  import reduction::*;
(
    input wire logic clk,
    input wire logic reset,

    input  wire program_t       programmed,
    input  wire logic           fetch,
    // It has a slot: its vector has a place.
    input  wire logic           has_slot,
    output logic                own_write,
    output logic          [3:0] own_word,
    output word_t               own_data,
    // Beside its last word.
    output logic                fetched,

    input wire logic    lookup_valid,
    input wire lookup_t lookup,
    input wire slot_t   running_slot,

    // Packets for those who were looked up, and which vector of an operation has gone.
    output logic             packet_valid,
    output outgoing_t        packet,
    input  wire logic        packet_ready,
    output logic             sent_vector,
    // Packets of the operation are still to come.
    output logic             looks_up,
    // Whom the last vector for one module, or the first of the last questions has gone to.
    output logic      [21:0] last_to,

    output logic      [  0:0] arid,
    output logic      [ 48:0] araddr,
    output logic      [  7:0] arlen,
    output logic              arvalid,
    input  wire logic         arready,
    input  wire logic [  0:0] rid,
    input  wire logic [127:0] rdata,
    input  wire logic         rvalid,
    output logic              rready
);
  wire [4:0] words = 5'((programmed.bytes + 9'd15) >> 4);

  // --- Requests ---

  logic asked_fits, lookups_fit, lookup_there, lookup_done;
  logic [7:0] length;
  lookup_t looked_up;

  fifo #(
      .WIDTH(1 + 49 + 8),
      .DEPTH(16)
  ) asked (
      .clk,
      .reset,
      .in_valid(fetch || lookup_valid),
      .in_ready(asked_fits),
      .in_data  (fetch ? {1'b0, programmed.data, 8'(words) - 8'd1} : {1'b1, programmed.pairs + 49'({lookup.board, 5'd0}), 8'd1}),
      .out_valid(arvalid),
      .out_ready(arready),
      .out_data({arid, araddr, length})
  );
  assign arlen = length;

  fifo #(
      .WIDTH($bits(lookup_t)),
      .DEPTH(16)
  ) lookups (
      .clk,
      .reset,
      .in_valid (lookup_valid),
      .in_ready (lookups_fit),
      .in_data  (lookup),
      .out_valid(lookup_there),
      .out_ready(lookup_done),
      .out_data (looked_up)
  );

  // --- The own vector, filled up with zeros behind its last byte ---

  logic [4:0] word;
  wire  [8:0] left = programmed.bytes - {word, 4'd0};

  assign own_write = rvalid && rready && rid == 1'b0;
  assign own_word  = word[3:0];
  assign fetched   = own_write && word + 1'b1 == words;
  always_comb begin
    for (int i = 0; i < 16; i++) own_data[8*i+:8] = 9'(i) < left ? rdata[8*i+:8] : '0;
  end

  always_ff @(posedge clk) begin
    if (fetch) word <= '0;
    else if (own_write) word <= word + 1'b1;
  end

  // --- Pairs ---

  logic is_second;
  word_t first;
  logic [21:0] held_member[4];
  logic [3:0] left_to_send;
  wire is_pair = rvalid && rready && rid == 1'b1;
  wire is_last_pair = is_pair && is_second;
  logic [21:0] member[4];
  logic [3:0] is_server, is_for;

  // Packets go one after the other, the first beside the last pair. The others wait.
  assign rready = rid == 1'b0 ? has_slot : left_to_send == '0 && (!is_second || packet_ready);

  always_comb begin
    member[0] = is_last_pair ? first[21:0] : held_member[0];
    member[1] = is_last_pair ? first[85:64] : held_member[1];
    member[2] = is_last_pair ? rdata[21:0] : held_member[2];
    member[3] = is_last_pair ? rdata[85:64] : held_member[3];
    for (int i = 0; i < 4; i++) is_server[i] = member[i][1:0] == 2'd0;
    unique case (looked_up.purpose)
      FOR_RESULT: is_for = ~is_server;
      FOR_ASK: is_for = looked_up.missing;
      default: is_for = is_server;
    endcase
  end

  wire  [3:0] to_send = is_last_pair ? is_for : left_to_send;
  logic [1:0] chosen;
  always_comb begin
    chosen = '0;
    for (int i = 3; i >= 0; i--) if (to_send[i]) chosen = 2'(i);
  end
  wire [3:0] others = to_send & (to_send - 1'b1);

  assign packet_valid = to_send != '0;
  assign lookup_done = (is_last_pair || left_to_send != '0) && packet_ready && others == '0;
  assign looks_up = lookup_there;
  assign sent_vector = packet_valid && packet_ready && looked_up.purpose != FOR_ASK;

  always_comb begin
    packet = '{
        kind: ASK,
        step: '0,
        to: member[chosen],
        id: programmed.id,
        bytes: looked_up.purpose == FOR_ASK ? '0 : programmed.bytes,
        slot: running_slot,
        version: looked_up.version
    };
    unique case (looked_up.purpose)
      FOR_CONTRIBUTION: begin
        packet.kind = CONTRIBUTION;
        packet.step = {6'd0, programmed.own[1:0]};
      end
      FOR_EXCHANGE: begin
        packet.kind = EXCHANGE;
        packet.step = {4'd0, looked_up.version} + 8'd1;
      end
      FOR_RESULT: packet.kind = RESULT;
      default: packet.kind = ASK;
    endcase
  end

  always_ff @(posedge clk) begin
    if (is_pair) begin
      is_second <= !is_second;
      first <= rdata;
    end
    if (is_last_pair) held_member <= member;
    if (is_last_pair || (left_to_send != '0 && packet_ready)) left_to_send <= packet_ready ? others : to_send;
    if (packet_valid && packet_ready && looked_up.purpose != FOR_RESULT && (is_last_pair || looked_up.purpose != FOR_ASK))
      last_to <= packet.to;
    if (!reset) begin
      assert (!(fetch || lookup_valid) || asked_fits && (lookups_fit || !lookup_valid))
      else $error("a read without a place");
      assert (!is_pair || lookup_there)
      else $error("pairs that nobody wants");
    end
    if (reset) begin
      is_second <= 1'b0;
      left_to_send <= '0;
    end
  end

  wire unused_ok = &{1'b0, programmed, looked_up, first, rdata};
endmodule

`default_nettype wire

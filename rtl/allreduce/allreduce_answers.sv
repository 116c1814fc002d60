// Answers to modules that wait for a vector of this one, and the record of what was sent to whom.
//
//   asked ─► [ questions ] ─► IDLE ─► SEARCH, a version a cycle ─► ANSWER ─┬─ was sent: the vector once more ─► IDLE
//                              └─ of an operation without a slot ────►      ├─ the operation has failed: FAILED
//                                                                           └─ otherwise: NOT_YET, this one is alive
//
// A vector counts as sent if its receiver was looked up by the cycle in which the question came.
// In one operation a module sends another one vector at most: to ask, the operation's name is enough. TR-488 §4.7 has no
// retransmission between modules; the asking is ours, as crates/weft-nic/src/allreduce/repair.rs has it.

`default_nettype none

module allreduce_answers
  import reduction::*;
(
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,
    input wire logic        is_server,

    // A question; whether the operation has a slot here, and whether it has failed.
    input wire logic                 asked,
    input wire logic          [21:0] asked_from,
    input wire operation_id_t        asked_id,
    input wire logic                 asked_hit,
    input wire slot_t                asked_slot,
    input wire logic                 asked_failed,

    // A slot has another operation.
    input wire logic  renewed,
    input wire slot_t renewed_slot,

    // A vector has been sent.
    input wire logic      sent,
    input wire outgoing_t sent_packet,

    output logic      packet_valid,
    input  wire logic packet_ready,
    output outgoing_t packet
);
  typedef struct packed {
    logic [21:0] from;
    operation_id_t id;
    logic hit;
    slot_t slot;
    logic failed;
    // What was sent as it came.
    logic [15:0] was_sent;
    logic result_sent;
  } question_t;
  typedef enum logic [1:0] {
    IDLE,
    SEARCH,
    ANSWER
  } state_t;

  state_t state;
  question_t question;
  logic there, fits;
  version_t version;
  logic found;

  // What was sent, by slot and version; a result goes to several.
  logic [15:0] was_sent[Slots];
  logic [Slots-1:0] result_sent;
  version_t result_version[Slots];
  logic [8:0] bytes[Slots];
  logic [1:0] own[Slots];
  logic [21:0] sent_to[16*Slots];

  fifo #(
      .WIDTH($bits(question_t)),
      .DEPTH(16)
  ) questions (
      .clk,
      .reset,
      .in_valid(asked),
      .in_ready(fits),
      .in_data({
        asked_from, asked_id, asked_hit, asked_slot, asked_failed, was_sent[asked_slot], result_sent[asked_slot]
      }),
      .out_valid(there),
      .out_ready(state == ANSWER && packet_ready),
      .out_data(question)
  );

  wire is_of_board = is_server && question.from[21:2] == node[21:2];
  // By now the slot may have another operation.
  wire is_result = is_of_board && question.result_sent && result_sent[question.slot];
  wire is_sent = question.was_sent[version] && was_sent[question.slot][version];
  wire is_this = is_sent && sent_to[{question.slot, version}] == question.from;

  assign packet_valid = state == ANSWER;
  always_comb begin
    packet = '{
        kind: question.failed ? FAILED : NOT_YET,
        step: '0,
        to: question.from,
        id: question.id,
        bytes: '0,
        slot: question.slot,
        version: version
    };
    if (found) begin
      packet.kind  = !is_server ? CONTRIBUTION : is_of_board ? RESULT : EXCHANGE;
      packet.step  = !is_server ? 8'(own[question.slot]) : is_of_board ? '0 : 8'(version) + 8'd1;
      packet.bytes = bytes[question.slot];
    end
  end

  always_ff @(posedge clk) begin
    unique case (state)
      IDLE: begin
        version <= '0;
        found   <= 1'b0;
        if (there) state <= question.hit ? SEARCH : ANSWER;
      end
      SEARCH:
      if (is_of_board) begin
        found   <= is_result;
        version <= result_version[question.slot];
        state   <= ANSWER;
      end else if (is_this || version == 4'd8) begin
        found <= is_this;
        state <= ANSWER;
      end else version <= version + 1'b1;
      default: if (packet_ready) state <= IDLE;
    endcase
    if (sent) begin
      bytes[sent_packet.slot] <= sent_packet.bytes;
      if (sent_packet.kind == RESULT) begin
        result_sent[sent_packet.slot] <= 1'b1;
        result_version[sent_packet.slot] <= sent_packet.version;
      end else begin
        was_sent[sent_packet.slot][sent_packet.version] <= 1'b1;
        sent_to[{sent_packet.slot, sent_packet.version}] <= sent_packet.to;
        own[sent_packet.slot] <= sent_packet.step[1:0];
      end
    end
    if (renewed) begin
      was_sent[renewed_slot] <= '0;
      result_sent[renewed_slot] <= 1'b0;
    end
    if (reset) begin
      state <= IDLE;
      result_sent <= '0;
      for (int i = 0; i < Slots; i++) was_sent[i] <= '0;
    end
  end

  // One that does not fit is asked again.
  wire unused_ok = &{1'b0, fits, node, sent_packet};
endmodule

`default_nettype wire

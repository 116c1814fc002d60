// The check of the mailbox: gives each packet its cycles, one packet at a time, and sends the answer.
//
//   IDLE ── a header is here ──► CHECKING ── CHECK cycles, verdict, place for answer and entry ──► ANSWERED ──► IDLE
//
//   answer:  NONE ── start ──► ANSWER_HEADER ──► ANSWER_FOOTER ──► NONE
//              └─── start, beats of more words: both in one ───► ANSWER_FOOTER
//
// The cycles begin with the header, so that the payload comes meanwhile (TR-488 §6.1.1 calls its time negligible).

`default_nettype none

module mailbox_check
  import exanet::*;
#(
    parameter int DATA_WIDTH = 128,
    parameter int CHECK = 11,
    parameter int SLOTS = 128
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    input wire logic header_taken,

    input  wire logic         verdict_valid,
    output logic              verdict_ready,
    input  wire kind_t        kind,
    input  wire logic         put,
    input  wire logic  [21:0] source,
    input  wire logic  [31:0] number,
    input  wire logic  [31:0] identity,

    input  wire logic write_idle,
    output logic      write_start,

    output logic                       answer_valid,
    input  wire logic                  answer_ready,
    output logic      [DATA_WIDTH-1:0] answer_data,
    output logic                       answer_last
);
  typedef enum logic [1:0] {
    IDLE,
    CHECKING,
    ANSWERED
  } state_t;
  typedef enum logic [1:0] {
    NONE,
    ANSWER_HEADER,
    ANSWER_FOOTER
  } answer_state_t;

  state_t state;
  answer_state_t answer_state;
  // Headers that wait for their check.
  logic [$clog2(SLOTS):0] waiting;
  logic [5:0] cycles;

  wire begins = state == IDLE && waiting != '0;

  // The answer is on the bus one cycle later.
  assign verdict_ready = state == CHECKING && cycles == 6'(CHECK - 2) && answer_state == NONE && write_idle;
  assign write_start   = verdict_valid && verdict_ready && put;

  always_ff @(posedge clk) begin
    waiting <= waiting + $bits(waiting)'(header_taken) - $bits(waiting)'(begins);
    unique case (state)
      IDLE:
      if (begins) begin
        state  <= CHECKING;
        cycles <= 6'd1;
      end
      CHECKING: begin
        if (cycles != 6'(CHECK - 2)) cycles <= cycles + 1'b1;
        if (verdict_valid && verdict_ready) state <= ANSWERED;
      end
      default: state <= IDLE;
    endcase
    if (reset) begin
      state   <= IDLE;
      waiting <= '0;
    end
  end

  header_t header;
  logic [31:0] answer_number, answer_identity, crc;
  wire [95:0] footer = {answer_number, 32'd0, answer_identity};
  wire [31:0] header_crc = crc_word(CrcStart, word_t'(header));

  assign answer_valid = answer_state != NONE;
  assign answer_last  = answer_state == ANSWER_FOOTER;
  if (DATA_WIDTH == 128) begin : g_words
    assign answer_data = answer_last ? {footer, crc_footer(crc, footer)} : word_t'(header);
  end else begin : g_bus
    wire [255:0] answer = {word_t'(header), footer, crc_footer(header_crc, footer)};
    assign answer_data = DATA_WIDTH'(answer) << (DATA_WIDTH - 256);
    wire unused_ok = &{1'b0, crc};
  end

  always_ff @(posedge clk) begin
    unique case (answer_state)
      NONE:
      if (verdict_valid && verdict_ready) begin
        answer_state <= DATA_WIDTH == 128 ? ANSWER_HEADER : ANSWER_FOOTER;
        header <= '{node: source, kind: kind, source: node, default: '0};
        answer_number <= number;
        answer_identity <= identity;
      end
      ANSWER_HEADER: begin
        crc <= header_crc;
        if (answer_ready) answer_state <= ANSWER_FOOTER;
      end
      default: if (answer_ready) answer_state <= NONE;
    endcase
    if (reset) answer_state <= NONE;
  end
endmodule

`default_nettype wire

// The answers to blocks: a header and a footer, which name the channel, the block and the attempt.
//
//   HEADER ── header ──► FOOTER ── sound? ──► answer ─► agent
//     ▲                    │ another word: DROP up to the last
//     └────────────────────┘
//
// Over 512 bits it is one beat: FOOTER, or DROP up to the last.
//
// A damaged answer says nothing: the block will be sent again. So is what is no answer.

`default_nettype none

module segmentation_answers
  import exanet::*;
#(
    parameter int DATA_WIDTH   = 128,
    parameter int CHANNEL_BITS = 10
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic                  net_valid,
    output logic                       net_ready,
    input  wire logic [DATA_WIDTH-1:0] net_data,
    input  wire logic                  net_last,

    output logic                         answer_valid,
    input  wire logic                    answer_ready,
    output logic      [CHANNEL_BITS-1:0] answer_channel,
    output logic      [            31:0] answer_transaction,
    output logic      [             7:0] answer_attempt,
    // ACK; NACK: to be sent again, or never.
    output logic                         answer_accepted,
    output logic                         answer_again
);
  typedef enum logic [1:0] {
    HEADER,
    FOOTER,
    DROP
  } state_t;

  state_t state;
  header_t header;
  footer_t footer;
  logic check_is_right;

  wire cell_identity_t identity = cell_identity_t'(footer.identity);
  wire has_channel = identity.channel < 16'(1 << CHANNEL_BITS);
  wire is_answer = header.kind inside {BLOCK_ACKNOWLEDGEMENT, BLOCK_WITHOUT_CONTEXT, BLOCK_FAULTED, BLOCK_OF_DOMAIN};
  wire is_sound = check_is_right && header.size == '0;

  logic sound_valid, sound_ready, is_accepted, is_again;
  logic [CHANNEL_BITS-1:0] channel;
  logic [31:0] transaction;
  logic [7:0] attempt;

  assign net_ready = !sound_valid || sound_ready;

  localparam state_t First = DATA_WIDTH == 128 ? HEADER : FOOTER;

  if (DATA_WIDTH == 128) begin : g_words
    logic [31:0] crc;
    always_ff @(posedge clk)
      if (net_valid && net_ready && state == HEADER) begin
        header <= header_t'(net_data);
        crc <= crc_word(CrcStart, net_data);
      end
    assign footer = footer_t'(net_data);
    assign check_is_right = crc_footer(crc, net_data[127:32]) == footer.check;
  end else begin : g_bus
    assign header = header_t'(net_data[511-:128]);
    assign footer = footer_t'(net_data[383-:128]);
    assign check_is_right = crc_packet(net_data, 0) == footer.check;
  end

  always_ff @(posedge clk) begin
    if (sound_ready) sound_valid <= 1'b0;
    if (net_valid && net_ready) begin
      unique case (state)
        HEADER:  if (!net_last) state <= FOOTER;
        FOOTER: begin
          state <= net_last ? First : DROP;
          sound_valid <= net_last && is_sound && is_answer && has_channel;
          channel <= identity.channel[CHANNEL_BITS-1:0];
          transaction <= identity.transaction;
          attempt <= identity.attempt;
          is_accepted <= header.kind == BLOCK_ACKNOWLEDGEMENT;
          is_again <= header.kind != BLOCK_OF_DOMAIN;
        end
        default: if (net_last) state <= First;
      endcase
    end
    if (reset) begin
      state <= First;
      sound_valid <= 1'b0;
    end
  end

  fifo #(
      .WIDTH(CHANNEL_BITS + 42),
      .DEPTH(4)
  ) answers (
      .clk,
      .reset,
      .in_valid (sound_valid),
      .in_ready (sound_ready),
      .in_data  ({channel, transaction, attempt, is_accepted, is_again}),
      .out_valid(answer_valid),
      .out_ready(answer_ready),
      .out_data ({answer_channel, answer_transaction, answer_attempt, answer_accepted, answer_again})
  );

  wire unused_ok = &{1'b0, header, identity, footer, net_data};
endmodule

`default_nettype wire

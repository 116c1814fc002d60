// The answers to small messages: a header and a footer, which name the channel and the message.
//
//   HEADER ── header ──► FOOTER ── sound? ──► answer ─► channel
//     ▲                    │ another word: DROP up to the last
//     └────────────────────┘
//
// A damaged answer says nothing: the packet will be repeated. So is what is no answer.

`default_nettype none

module packetizer_answers
  import exanet::*;
#(
    parameter  int INTERFACES  = 64,
    parameter  int CHANNELS    = 4,
    localparam int ChannelBits = $clog2(INTERFACES * CHANNELS)
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic  net_valid,
    output logic       net_ready,
    input  wire word_t net_data,
    input  wire logic  net_last,

    output logic                        answer_valid,
    input  wire logic                   answer_ready,
    output logic      [ChannelBits-1:0] answer_channel,
    output logic      [           31:0] answer_number,
    output logic                        answer_accepted
);
  typedef enum logic [1:0] {
    HEADER,
    FOOTER,
    DROP
  } state_t;

  state_t state;
  header_t header;
  logic [31:0] crc;

  wire footer_t footer = footer_t'(net_data);
  wire small_identity_t identity = small_identity_t'(footer.identity);
  wire has_channel = identity.interface_number < 16'(INTERFACES) && identity.channel < 16'(CHANNELS);
  wire is_answer = header.kind inside {ACKNOWLEDGEMENT, REFUSED_DAMAGED, REFUSED_DOMAIN, REFUSED_INTERFACE,
                                             REFUSED_FULL};
  wire is_sound = crc_footer(crc, net_data[127:32]) == footer.check && header.size == '0;

  assign net_ready = !answer_valid || answer_ready;

  always_ff @(posedge clk) begin
    if (answer_ready) answer_valid <= 1'b0;
    if (net_valid && net_ready) begin
      unique case (state)
        HEADER: begin
          header <= header_t'(net_data);
          crc <= crc_word(CrcStart, net_data);
          if (!net_last) state <= FOOTER;
        end
        FOOTER: begin
          state <= net_last ? HEADER : DROP;
          answer_valid <= net_last && is_sound && is_answer && has_channel;
          answer_channel <= {identity.interface_number[$clog2(INTERFACES)-1:0], identity.channel[$clog2(CHANNELS)-1:0]};
          answer_number <= footer.number;
          answer_accepted <= header.kind == ACKNOWLEDGEMENT;
        end
        default: if (net_last) state <= HEADER;
      endcase
    end
    if (reset) begin
      state <= HEADER;
      answer_valid <= 1'b0;
    end
  end

  wire unused_ok = &{1'b0, header, identity.unused};
endmodule

`default_nettype wire

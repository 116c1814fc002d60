// The transmit path of the packetizer: header, payload and footer, a word a beat.
//
//   prepared ─► HEADER ─► PAYLOAD ─► FOOTER ─► HEADER …
//                  └─ no payload ──────▲

`default_nettype none

module packetizer_transmit
  import exanet::*;
#(
    parameter int CHANNEL_BITS = 8
) (
    input wire logic clk,
    input wire logic reset,

    // The next packet; it is another's turn when the header is taken.
    input  wire logic                       prepared,
    output logic                            taken,
    input  wire header_t                    header,
    input  wire logic    [CHANNEL_BITS-1:0] channel,
    input  wire logic    [            31:0] number,

    // A word of a channel: there one cycle later.
    output logic       [CHANNEL_BITS+1:0] payload_address,
    input  wire word_t                    payload,

    // The header has been taken: the time of the answer runs.
    output logic      sent_valid,
    input  wire logic sent_ready,

    output logic      net_valid,
    input  wire logic net_ready,
    output word_t     net_data,
    output logic      net_last
);
  typedef enum logic [1:0] {
    HEADER,
    PAYLOAD,
    FOOTER
  } state_t;

  state_t state;
  // Of the packet on the bus.
  logic [CHANNEL_BITS-1:0] sent_channel;
  logic [31:0] sent_number;
  logic [9:0] bytes_left;
  logic [1:0] word;
  logic [31:0] crc;
  word_t payload_word;
  wire [95:0] footer = {sent_number, 32'd0, 16'(sent_channel[CHANNEL_BITS-1:2]), 16'(sent_channel[1:0])};
  wire [1:0] next_word = state == PAYLOAD && net_ready ? word + 1'b1 : word;

  assign taken = state == HEADER && net_valid && net_ready;
  assign sent_valid = taken;
  assign payload_address = state == HEADER ? {channel, 2'd0} : {sent_channel, next_word};

  // Behind the last byte are zeros.
  always_comb begin
    payload_word = swap_bytes(payload);
    for (int i = 0; i < 16; i++) if (bytes_left <= 10'(i)) payload_word[8*(15-i)+:8] = '0;
  end

  assign net_valid = state != HEADER || (prepared && sent_ready);
  assign net_last  = state == FOOTER;
  always_comb begin
    unique case (state)
      HEADER:  net_data = word_t'(header);
      PAYLOAD: net_data = payload_word;
      default: net_data = {footer, crc_footer(crc, footer)};
    endcase
  end

  always_ff @(posedge clk) begin
    if (net_valid && net_ready) begin
      unique case (state)
        HEADER: begin
          state <= header.size == '0 ? FOOTER : PAYLOAD;
          sent_channel <= channel;
          sent_number <= number;
          bytes_left <= header.size;
          word <= '0;
          crc <= crc_word(CrcStart, word_t'(header));
        end
        PAYLOAD: begin
          bytes_left <= bytes_left - 10'd16;
          word <= next_word;
          crc <= crc_word(crc, payload_word);
          if (bytes_left <= 10'd16) state <= FOOTER;
        end
        default: state <= HEADER;
      endcase
    end
    if (reset) state <= HEADER;
  end
endmodule

`default_nettype wire

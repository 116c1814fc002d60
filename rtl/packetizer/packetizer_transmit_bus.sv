// The transmit path of the packetizer over 512 bits: a packet is one beat or two.
//
//   prepared ─► FIRST ── footer in it ──────────► FIRST …
//                  └─ 3 or 4 words of payload ─► SECOND ─► FIRST …
//
//   FIRST   [ header | payload | payload | payload ]      words behind the footer are zero
//   SECOND  [ payload | footer |   0     |    0    ]
//
// The check is in the first beat of a short packet: it is worked out of all words at once. Each word counts by how many
// follow it, so that words are lined up by that, and each place has one tree.

`default_nettype none

module packetizer_transmit_bus
  import exanet::*;
#(
    parameter int CHANNEL_BITS = 8
) (
    input wire logic clk,
    input wire logic reset,

    // The next packet; it is another's turn when the last beat is taken.
    input  wire logic                       prepared,
    output logic                            taken,
    output logic                            begun,
    input  wire header_t                    header,
    input  wire logic    [CHANNEL_BITS-1:0] channel,
    input  wire logic    [            31:0] number,

    // Its bytes and payload, as it is looked up.
    input wire logic         looked_up,
    input wire logic [  9:0] bytes,
    input wire logic [511:0] payload,

    // The header has been taken: the time of the answer runs.
    output logic      sent_valid,
    input  wire logic sent_ready,

    output logic              net_valid,
    input  wire logic         net_ready,
    output logic      [511:0] net_data,
    output logic              net_last
);
  // Header and payload.
  localparam int MostWords = SmallWords + 1;

  typedef enum logic {
    FIRST,
    SECOND
  } state_t;

  state_t state;
  word_t [SmallWords-1:0] payload_words;

  // Behind the last byte are zeros.
  always_ff @(posedge clk) begin
    for (int i = 0; i < SmallBytes; i++)
    if (looked_up) payload_words[i/16][8*(15-i%16)+:8] <= bytes <= 10'(i) ? '0 : payload[8*i+:8];
  end

  // --- Its check ---

  wire [ 2:0] words = 3'(words_of(header.size));
  wire [95:0] footer = {number, 32'd0, 16'(channel[CHANNEL_BITS-1:2]), 16'(channel[1:0])};

  word_t [MostWords-1:0] body, followed_by;
  assign body = {payload_words, word_t'(header) ^ {CrcStart, 96'd0}};

  logic [31:0] check;
  always_comb begin
    check = crc_footer('0, footer);
    for (int i = 0; i < MostWords; i++) begin
      followed_by[i] = 3'(i) > words ? '0 : body[words-3'(i)];
      check ^= crc_followed_by(followed_by[i], i);
    end
  end

  // --- The packet on the bus ---

  word_t [7:0] packet;
  always_comb begin
    packet = '0;
    packet[0] = word_t'(header);
    for (int i = 0; i < MostWords; i++) begin
      if (i < SmallWords && 3'(i) < words) packet[i+1] = payload_words[i];
      if (3'(i) == words) packet[i+1] = {footer, check};
    end
  end

  assign net_valid = prepared && (state == SECOND || sent_ready);
  assign net_last  = state == SECOND || words <= 3'd2;
  for (genvar i = 0; i < 4; i++) begin : g_lanes
    assign net_data[128*(3-i)+:128] = state == FIRST ? packet[i] : packet[i+4];
  end

  wire beat_taken = net_valid && net_ready;
  assign taken = beat_taken && net_last;
  assign begun = beat_taken || state == SECOND;
  assign sent_valid = beat_taken && state == FIRST;

  always_ff @(posedge clk) begin
    if (beat_taken) state <= net_last ? FIRST : SECOND;
    if (reset) state <= FIRST;
  end
endmodule

`default_nettype wire

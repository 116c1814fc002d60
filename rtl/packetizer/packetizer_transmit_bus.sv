// The way out of the packetizer by a bus of 512 bits: a packet is one or two of them.
//
//   made ─► WAIT ─► LOOK_UP ── still ongoing? ──► prepared ─► FIRST ── footer on it ──────────► FIRST …
//                       └─ answered meanwhile: no packet ◄─┘  └─ 3 or 4 words of payload ─► SECOND
//
//   FIRST   [ header | payload | payload | payload ]      words behind the footer are zero
//   SECOND  [ payload | footer |   0     |    0    ]
//
// The check is in the first bus of a short packet: it is worked out of all words at once. Each word counts by how many
// follow it, so that words are lined up by that, and each place has one tree.

`default_nettype none

module packetizer_transmit_bus
  import exanet::*;
#(
    parameter int CHANNEL_BITS = 8
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    input  wire logic                    made_valid,
    output logic                         made_ready,
    input  wire logic [CHANNEL_BITS-1:0] made_channel,
    input  wire logic [            31:0] made_number,

    // A channel that is answered or given up.
    input wire logic                    left_valid,
    input wire logic [CHANNEL_BITS-1:0] left_channel,

    // The channel, its descriptor, its PDID and its payload: there one cycle later.
    output logic         [CHANNEL_BITS-1:0] looked_up_channel,
    input  wire logic                       looked_up_ongoing,
    input  wire logic    [            31:0] looked_up_number,
    input  wire header_t                    descriptor,
    input  wire logic    [            15:0] pdid,
    input  wire logic    [           511:0] payload,

    // The header has been taken: the time of the answer runs.
    output logic                         sent_valid,
    input  wire logic                    sent_ready,
    output logic      [CHANNEL_BITS-1:0] sent_channel,
    output logic      [            31:0] sent_number,

    output logic              net_valid,
    input  wire logic         net_ready,
    output logic      [511:0] net_data,
    output logic              net_last
);
  // Header and payload.
  localparam int MostWords = SmallWords + 1;

  typedef enum logic {
    WAIT,
    LOOK_UP
  } prepare_state_t;
  typedef enum logic {
    FIRST,
    SECOND
  } state_t;

  prepare_state_t prepare_state;
  state_t state;
  logic prepared;
  // The channel has been left in the cycle of its look-up, which does not show that.
  logic has_left;
  header_t header;
  logic [CHANNEL_BITS-1:0] channel;
  logic [31:0] number;
  word_t [SmallWords-1:0] payload_words;

  wire taken = net_valid && net_ready;

  // --- The next packet ---

  assign made_ready = prepare_state == WAIT && (!prepared || taken && net_last);
  assign looked_up_channel = made_channel;
  wire is_left = left_valid && left_channel == channel;
  wire is_due = looked_up_ongoing && looked_up_number == number && !has_left && !is_left;

  always_ff @(posedge clk) begin
    if (taken ? net_last : state == FIRST && is_left) prepared <= 1'b0;
    unique case (prepare_state)
      WAIT:
      if (made_valid && made_ready) begin
        prepare_state <= LOOK_UP;
        channel <= made_channel;
        number <= made_number;
        has_left <= left_valid && left_channel == made_channel;
      end
      default: begin
        prepare_state <= WAIT;
        prepared <= is_due;
        header <= descriptor;
        header.pdid <= pdid;
        header.kind <= posted_kind(descriptor.kind);
        header.source <= node;
        // Behind the last byte are zeros.
        for (int i = 0; i < SmallBytes; i++)
        payload_words[i/16][8*(15-i%16)+:8] <= descriptor.size <= 10'(i) ? '0 : payload[8*i+:8];
      end
    endcase
    if (reset) begin
      prepare_state <= WAIT;
      prepared <= 1'b0;
    end
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

  assign sent_valid   = taken && state == FIRST;
  assign sent_channel = channel;
  assign sent_number  = number;

  always_ff @(posedge clk) begin
    if (taken) state <= net_last ? FIRST : SECOND;
    if (reset) state <= FIRST;
  end
endmodule

`default_nettype wire

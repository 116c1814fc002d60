// The transmit path of the packetizer: header, payload and footer, a word a beat.
//
//   made ─► WAIT ─► LOOK_UP ── still ongoing? ──► prepared ─► HEADER ─► PAYLOAD ─► FOOTER ─► HEADER …
//                       └─ answered meanwhile: no packet
//
// While one packet is on the bus the next is prepared: packets follow each other without a gap.

`default_nettype none

module packetizer_transmit
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

    // The channel, its descriptor and its PDID: there one cycle later.
    output logic         [CHANNEL_BITS-1:0] looked_up_channel,
    input  wire logic                       looked_up_ongoing,
    input  wire logic    [            31:0] looked_up_number,
    input  wire header_t                    descriptor,
    input  wire logic    [            15:0] pdid,
    output logic         [CHANNEL_BITS+1:0] payload_address,
    input  wire word_t                      payload,

    // The header has been taken: the time of the answer runs.
    output logic                         sent_valid,
    input  wire logic                    sent_ready,
    output logic      [CHANNEL_BITS-1:0] sent_channel,
    output logic      [            31:0] sent_number,

    output logic      net_valid,
    input  wire logic net_ready,
    output word_t     net_data,
    output logic      net_last
);
  typedef enum logic {
    WAIT,
    LOOK_UP
  } prepare_state_t;
  typedef enum logic [1:0] {
    HEADER,
    PAYLOAD,
    FOOTER
  } state_t;
  typedef struct packed {
    logic [CHANNEL_BITS-1:0] channel;
    logic [31:0] number;
  } packet_t;

  prepare_state_t prepare_state;
  state_t state;
  logic prepared;
  header_t header;
  packet_t looked_up, next, sending;

  wire header_taken = state == HEADER && net_valid && net_ready;

  // --- The next packet ---

  assign made_ready = prepare_state == WAIT && (!prepared || header_taken);
  assign looked_up_channel = made_channel;
  wire is_due = looked_up_ongoing && looked_up_number == looked_up.number;

  always_ff @(posedge clk) begin
    if (header_taken) prepared <= 1'b0;
    unique case (prepare_state)
      WAIT:
      if (made_valid && made_ready) begin
        prepare_state <= LOOK_UP;
        looked_up <= '{channel: made_channel, number: made_number};
      end
      default: begin
        prepare_state <= WAIT;
        prepared <= is_due;
        next <= looked_up;
        header <= descriptor;
        header.pdid <= pdid;
        header.kind <= posted_kind(descriptor.kind);
        header.source <= node;
      end
    endcase
    if (reset) begin
      prepare_state <= WAIT;
      prepared <= 1'b0;
    end
  end

  // --- The packet on the bus ---

  logic [9:0] bytes_left;
  logic [1:0] word;
  logic [31:0] crc;
  word_t payload_word;
  wire [95:0] footer = {sending.number, 32'd0, 16'(sending.channel[CHANNEL_BITS-1:2]), 16'(sending.channel[1:0])};
  wire [1:0] next_word = state == PAYLOAD && net_ready ? word + 1'b1 : word;

  assign payload_address = state == HEADER ? {next.channel, 2'd0} : {sending.channel, next_word};

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

  assign sent_valid   = header_taken;
  assign sent_channel = next.channel;
  assign sent_number  = next.number;

  always_ff @(posedge clk) begin
    if (net_valid && net_ready) begin
      unique case (state)
        HEADER: begin
          state <= header.size == '0 ? FOOTER : PAYLOAD;
          sending <= next;
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

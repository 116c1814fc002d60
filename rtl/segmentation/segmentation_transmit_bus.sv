// The transmit path of the send unit over 512 bits: header, payload and footer of each cell that is whole, four words a
// beat.
//
//   FIRST ── header, three words ──► NEXT ── footer ──► FIRST …
//      │ └── footer in the beat ─────────────────────────▲
//      └── memory has refused a word: the cell is dropped, the agent told
//
//   memory    [ 3 | 2 | 1 | 0 ] [ 7 | 6 | 5 | 4 ]        the first byte is the lowest
//   FIRST     [ header | 0 | 1 | 2 ]
//   NEXT      [ 3 | 4 | 5 | 6 ] [ 7 | footer | - | - ]   the first word is the highest; behind the footer are zeros
//
// The check adds up beat by beat. Each word counts by how many follow it in its beat, so that words are lined up by
// that, and each place has one tree. The sum of the beats before counts as the last bits of the first word would.
//
// Cells follow each other every words + 1 + OVERHEAD cycles, from header to header, where words have 512 bits.

`default_nettype none

module segmentation_transmit_bus
  import exanet::*;
#(
    parameter int  OVERHEAD  = 5,
    parameter int  SLOT_BITS = 4,
    parameter type cell_t    = logic
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    // The next cell in the order of the reads, and whether its payload is there.
    input  wire cell_t next_cell,
    output logic       cell_taken,
    input  wire logic  whole_valid,
    input  wire logic  whole_faulted,

    // A beat of payload: there one cycle later.
    output logic      [SLOT_BITS+1:0] buffer_address,
    input  wire logic [        511:0] buffer_data,

    // A header has been taken, or a cell dropped.
    output logic      sent,
    output logic      dropped,
    input  wire logic sent_ready,

    output logic              net_valid,
    input  wire logic         net_ready,
    output logic      [511:0] net_data,
    output logic              net_last
);
  localparam int BeatWords = 4;

  typedef enum logic {
    FIRST,
    NEXT
  } state_t;

  state_t state;
  cell_t  sending;
  logic [SLOT_BITS-1:0] slot, next_slot;
  logic [1:0] place, next_place;
  // What has not been sent of the cell: bytes of payload; words of header and payload.
  logic [9:0] bytes_left;
  logic [4:0] words_left;
  // The last word of the beat of memory before.
  word_t held;
  // The check of the beats before, as if the footer were next.
  logic [31:0] check_so_far;
  // Cycles until the engine can begin with another cell.
  logic [5:0] occupied;

  // --- The cell on the bus ---

  wire is_first = state == FIRST;
  wire cell_t of_beat = is_first ? next_cell : sending;
  header_t header;
  cell_identity_t identity;

  always_comb begin
    header = '{
        pdid: next_cell.pdid,
        node: next_cell.node,
        rank: next_cell.rank,
        address: next_cell.address,
        kind: CELL,
        page: next_cell.page,
        size: 10'(next_cell.bytes),
        source: node
    };
    identity = '{
        channel: 16'(of_beat.channel),
        last: of_beat.last,
        ends_transfer: of_beat.ends_transfer,
        index: of_beat.index,
        attempt: of_beat.attempt,
        transaction: of_beat.transaction
    };
  end

  wire [95:0] footer = {of_beat.first, identity};

  // --- Its beat: words, and behind the last of them the footer ---

  wire [ 9:0] bytes = is_first ? 10'(next_cell.bytes) : bytes_left;
  wire [ 4:0] words = is_first ? 5'(words_of(10'(next_cell.bytes))) + 1'b1 : words_left;
  wire [ 2:0] beat_words = words < 5'(BeatWords) ? 3'(words) : 3'(BeatWords);
  word_t [BeatWords-1:0] payload, beat;

  // Behind the last byte are zeros.
  always_comb begin
    for (int i = 0; i < 64; i++) payload[i/16][8*(15-i%16)+:8] = bytes <= 10'(i) ? '0 : buffer_data[8*i+:8];
  end
  assign beat = {payload[2:0], is_first ? word_t'(header) : held};

  // --- The check ---

  word_t [BeatWords-1:0] counted, followed_by;
  logic [31:0] check, check_of_beat;

  always_comb begin
    counted = beat;
    counted[0] ^= is_first ? {CrcStart, 96'd0} : {96'd0, swap_check(check_so_far)};
    check_of_beat = beat_words == '0 ? check_so_far : '0;
    for (int i = 0; i < BeatWords; i++) begin
      followed_by[i] = 3'(i) < beat_words ? counted[2'(beat_words-3'd1-3'(i))] : '0;
      check_of_beat ^= crc_followed_by(followed_by[i], i);
    end
    check = check_of_beat ^ crc_footer('0, footer);
  end

  // --- The bus ---

  wire is_next = is_first && whole_valid && sent_ready;
  wire beat_taken = net_valid && net_ready;

  assign dropped = is_next && whole_faulted;
  assign sent = is_first && beat_taken;
  assign cell_taken = dropped || sent;
  assign net_valid = !is_first || (is_next && !whole_faulted && occupied == '0);
  assign net_last = beat_words != 3'(BeatWords);
  for (genvar i = 0; i < BeatWords; i++) begin : g_lanes
    assign net_data[128*(3-i)+:128] = beat_words == 3'(i) ? {footer, check} : beat[i];
  end

  // The payload of the next cycle's beat: of the next cell, or of that which has been taken.
  wire is_first_next = beat_taken ? net_last : is_first;
  assign next_slot = slot + SLOT_BITS'(cell_taken);
  assign next_place = is_first ? 2'd1 : place + 2'(net_ready);
  assign buffer_address = is_first_next ? {next_slot, 2'd0} : {next_slot - 1'b1, next_place};

  always_ff @(posedge clk) begin
    if (occupied != '0) occupied <= occupied - 1'b1;
    slot  <= next_slot;
    place <= next_place;
    if (beat_taken) begin
      state <= net_last ? FIRST : NEXT;
      bytes_left <= bytes < 10'd64 ? '0 : bytes - 10'd64;
      words_left <= words - 5'(BeatWords);
      held <= payload[BeatWords-1];
      check_so_far <= check_of_beat;
    end
    if (sent) begin
      sending  <= next_cell;
      occupied <= 6'((10'(next_cell.bytes) + 10'd63) >> 6) + 6'(OVERHEAD);
    end
    if (reset) begin
      state <= FIRST;
      slot <= '0;
      occupied <= '0;
    end
  end

  wire unused_ok = &{1'b0, sending, of_beat};
endmodule

`default_nettype wire

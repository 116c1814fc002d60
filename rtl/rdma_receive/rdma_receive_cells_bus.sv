// The receive path over 512 bits: forwards the payload of a cell to memory as it comes, and decides at its footer what
// the cell was. A cell is one beat to five.
//
//   HEADER ── first of several ──► BODY ── last ──► FILL, if words are missing ──► HEADER
//      └─ first and last ─────────────────────────────▲
//
//   network   [ header  | payload 0 | payload 1 | payload 2 ]        memory
//             [ payload 3 | payload 4 | payload 5 | payload 6 ]      [ payload 0 … 3 ], with the second beat
//             [ payload 7 | footer  |   0     |    0    ]            [ payload 4 … 7 ], with the third
//
// Payload of three words is held until the fourth comes with the next beat; behind the last beat it goes by itself, as
// the next cell begins. Addresses are those of whole words of the bus: a word is shifted by one place, whatever the cell.
//
// The check is over a beat a cycle, with the check itself and the zeros behind it: what comes of that is known.
// Otherwise this is rdma_receive_cells; a packet of another length than its header says is damaged, too.

`default_nettype none

module rdma_receive_cells_bus
  import exanet::*;
#(
    parameter int  INTERFACES = 64,
    parameter type cell_t     = logic
) (
    input wire logic clk,
    input wire logic reset,
    input wire logic clearing,

    input  wire logic         net_valid,
    output logic              net_ready,
    input  wire logic [511:0] net_data,
    input  wire logic         net_last,

    output logic      [$clog2(INTERFACES)-1:0] asked_interface,
    input  wire logic [                  15:0] pdid,

    // There is room for another cell: its bursts, its words, and itself.
    input wire logic has_room,

    // A burst, or two of them: the second begins at 4 KB.
    output logic         burst_valid,
    output logic         burst_second,
    output logic [ 41:0] burst_address,
    output logic [  4:0] burst_words,
    output logic [  4:0] second_words,
    output logic         word_valid,
    output logic [511:0] word_data,
    output logic [ 63:0] word_strobe,
    output logic         word_last,

    output logic  cell_valid,
    output cell_t made_cell,

    // Between cells: a notification may be written.
    output logic idle
);
  // Bytes of payload in a beat with a header.
  localparam int Held = 48;

  typedef enum logic [1:0] {
    HEADER,
    BODY,
    FILL
  } state_t;

  // Words of memory that a cell is written with: one at least.
  function automatic logic [2:0] words_of_burst(logic [9:0] size);
    return size == '0 ? 3'd1 : 3'((size + 10'd63) >> 6);
  endfunction

  state_t state;
  header_t header;
  logic [31:0] crc;
  logic begins, is_foreign;
  // Beats to come, as the header has them; words of the burst that are not forwarded, and bytes of them.
  logic [2:0] beats_left, words_left;
  logic [9:0] bytes_left;
  // The words of the last beat behind its first; whether they have still to go, the packet being over.
  word_t [2:0] held;
  logic holds;

  // The first word is the highest.
  wire word_t [3:0] beat = net_data;
  wire header_t arriving = header_t'(beat[3]);
  wire [10:0] arriving_interface = interface_of(arriving.page, arriving.rank);
  wire arriving_is_foreign = arriving_interface >= 11'(INTERFACES) || pdid != arriving.pdid
      || arriving.address[5:0] != '0 || arriving.kind != CELL;
  assign asked_interface = arriving_interface[$clog2(INTERFACES)-1:0];

  // --- The packet on the bus: of one whose header is there, all has to be said at once ---

  wire taken = net_valid && net_ready;
  wire is_header = state == HEADER;
  wire is_last = taken && net_last;
  wire header_t current = is_header ? arriving : header;
  wire current_is_foreign = is_header ? arriving_is_foreign : is_foreign;
  wire current_is_too_long = current.size > 10'd256;
  wire current_is_written = !current_is_foreign && !current_is_too_long;
  wire current_crosses = 7'(words_of_burst(current.size)) > 7'd64 - 7'(current.address[11:6]);
  wire [10:0] interface_number = interface_of(current.page, current.rank);
  wire [6:0] size_words = words_of(current.size);
  wire [2:0] current_beats = is_header ? 3'((size_words + 7'd5) >> 2) : beats_left;

  // The place of the footer in the last beat, and as many words behind it.
  wire [1:0] place = 2'd2 - size_words[1:0];
  wire footer_t footer = footer_t'(beat[place]);
  wire cell_identity_t identity = cell_identity_t'(footer.identity);

  word_t [3:0] checked;
  always_comb begin
    checked = beat;
    if (net_last) checked[place][31:0] = swap_check(footer.check);
  end
  wire [31:0] next_crc = crc_beat(is_header ? CrcStart : crc, checked);
  wire is_sound = next_crc == CrcSound[place] && current_beats == 3'd1 && !current_is_too_long && current.kind == CELL;

  assign net_ready = is_header ? has_room && !clearing : state == BODY;
  assign cell_valid = is_last;
  assign made_cell = '{
          bursts: current_is_written ? (current_crosses ? 2'd2 : 2'd1) : 2'd0,
          damaged: !is_sound,
          foreign: current_is_foreign,
          interface_number: interface_number[$clog2(INTERFACES)-1:0],
          source: current.source,
          first: footer.number,
          identity: identity
      };

  // --- Its way to memory ---

  wire is_written = !is_foreign && header.size <= 10'd256;
  wire forwards = state == BODY ? taken : holds;
  // Words of its burst that are missing when this beat has gone.
  wire [2:0] rest = is_header ? words_of_burst(arriving.size) : words_left - 3'(word_valid);

  wire [2:0] burst_length = words_of_burst(header.size);
  wire [6:0] words_to_border = 7'd64 - 7'(header.address[11:6]);
  assign burst_valid = begins && is_written;
  assign burst_second = 7'(burst_length) > words_to_border;
  assign burst_address = {header.rank, header.address};
  assign burst_words = burst_second ? 5'(words_to_border) : 5'(burst_length);
  assign second_words = 5'(burst_length) - 5'(words_to_border);

  assign word_valid = forwards && is_written && words_left != '0;
  assign word_data = {swap_bytes(beat[3]), swap_bytes(held[0]), swap_bytes(held[1]), swap_bytes(held[2])};
  assign word_last = words_left == 3'd1 || burst_second && 5'(words_left) == second_words + 1'b1;
  always_comb for (int i = 0; i < 64; i++) word_strobe[i] = bytes_left > 10'(i) && (state == BODY || i < Held);

  assign idle = is_header && !holds && !begins && !is_last;

  always_ff @(posedge clk) begin
    begins <= taken && is_header;
    if (word_valid) begin
      words_left <= words_left - 1'b1;
      bytes_left <= state == BODY && bytes_left > 10'd64 ? bytes_left - 10'd64 : '0;
    end
    if (taken) begin
      if (is_header) begin
        header <= arriving;
        is_foreign <= arriving_is_foreign;
        words_left <= words_of_burst(arriving.size);
        bytes_left <= arriving.size;
      end
      beats_left <= current_beats == '0 ? '0 : current_beats - 1'b1;
      held <= beat[2:0];
      crc <= next_crc;
      state <= !net_last ? BODY : current_is_written && rest > 3'd1 ? FILL : HEADER;
    end else if (state == FILL && words_left == 3'd1) state <= HEADER;
    if (taken) holds <= is_last && current_is_written && rest != '0;
    else if (is_header || words_left == 3'd1) holds <= 1'b0;
    if (reset) begin
      state  <= HEADER;
      begins <= 1'b0;
      holds  <= 1'b0;
    end
  end

  wire unused_ok = &{1'b0, header, current, interface_number};
endmodule

`default_nettype wire

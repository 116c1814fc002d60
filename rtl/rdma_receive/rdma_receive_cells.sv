// The receive path: forwards the payload of a cell to memory as it comes, and decides at its footer what the cell was.
//
//   HEADER ── header ──► BODY ── words ──► FILL, if words are missing ──► HEADER
//     │                   │ └─ footer: sound? ─► cell, with what was found
//     │                   └─ payload ──► words of bursts
//     └─ PDID? ── its own ──► one burst, or two where the cell crosses 4 KB
//                 foreign ──► nothing is written
//
// A cell that turns out to be damaged, or to have come before, has been written by then: its block is sent again, or its
// words are the same. What a burst has announced it gets: words that are missing write nothing, nor does the one word of
// a cell without payload.

`default_nettype none

module rdma_receive_cells
  import exanet::*;
#(
    parameter int  INTERFACES = 64,
    parameter type cell_t     = logic
) (
    input wire logic clk,
    input wire logic reset,
    input wire logic clearing,

    input  wire logic  net_valid,
    output logic       net_ready,
    input  wire word_t net_data,
    input  wire logic  net_last,

    output logic      [$clog2(INTERFACES)-1:0] asked_interface,
    input  wire logic [                  15:0] pdid,

    // There is room for another cell: its bursts, its words, and itself.
    input wire logic has_room,

    // A burst, or two of them: the second begins at 4 KB.
    output logic         burst_valid,
    output logic         burst_second,
    output logic  [41:0] burst_address,
    output logic  [ 4:0] burst_words,
    output logic  [ 4:0] second_words,
    output logic         word_valid,
    output word_t        word_data,
    output logic  [15:0] word_strobe,
    output logic         word_last,

    output logic  cell_valid,
    output cell_t made_cell,

    // Between cells: a notification may be written.
    output logic idle
);
  typedef enum logic [1:0] {
    HEADER,
    BODY,
    FILL
  } state_t;

  state_t state;
  header_t header;
  logic [31:0] crc;
  // Words of payload so far; all bits stand for too many.
  logic [4:0] words;
  logic [9:0] bytes_left;
  // The header was taken in the cycle before.
  logic begins, is_foreign;

  wire header_t arriving = header_t'(net_data);
  wire footer_t footer = footer_t'(net_data);
  wire taken = net_valid && net_ready;
  wire [10:0] arriving_interface = interface_of(arriving.page, arriving.rank);
  wire [$clog2(INTERFACES)-1:0] interface_number = ($clog2(INTERFACES))'(interface_of(header.page, header.rank));
  wire [6:0] size_words = words_of(header.size);
  wire [8:0] words_to_border = 9'd256 - 9'(header.address[11:4]);
  wire crosses = 9'(size_words) > words_to_border;
  wire is_too_long = header.size > 10'd256;
  wire is_empty = header.size == '0;
  wire is_written = !is_foreign && !is_too_long;

  assign net_ready = state == HEADER ? has_room && !clearing : state == BODY;
  assign idle = state == HEADER;
  assign asked_interface = arriving_interface[$clog2(INTERFACES)-1:0];

  wire is_payload = state == BODY && taken && !net_last;
  wire is_footer = state == BODY && taken && net_last;
  wire is_in_burst = is_written && 7'(words) < size_words;

  assign burst_valid = begins && is_written;
  assign burst_second = crosses;
  assign burst_address = {header.rank, header.address};
  assign second_words = 5'(size_words) - words_to_border[4:0];
  assign burst_words = crosses ? words_to_border[4:0] : is_empty ? 5'd1 : 5'(size_words);

  assign word_valid = is_in_burst && (is_payload || state == FILL) || is_written && is_empty && is_footer;
  assign word_data = swap_bytes(net_data);
  assign word_last = is_empty || 7'(words) + 1'b1 == size_words || crosses && 9'(words) + 1'b1 == words_to_border;
  always_comb for (int i = 0; i < 16; i++) word_strobe[i] = bytes_left > 10'(i) && state == BODY;

  wire cell_identity_t identity = cell_identity_t'(footer.identity);
  wire is_sound = crc_footer(
      crc, net_data[127:32]
  ) == footer.check && 7'(words) == size_words && !is_too_long && header.kind == CELL;

  assign cell_valid = is_footer;
  assign made_cell = '{
          bursts: is_written ? (crosses ? 2'd2 : 2'd1) : 2'd0,
          damaged: !is_sound,
          foreign: is_foreign,
          interface_number: interface_number,
          source: header.source,
          first: footer.number,
          identity: identity
      };

  always_ff @(posedge clk) begin
    unique case (state)
      HEADER:
      if (taken && !net_last) begin
        state <= BODY;
        is_foreign <= arriving_interface >= 11'(INTERFACES) || pdid != arriving.pdid || arriving.address[3:0] != '0
            || arriving.kind != CELL;
        header <= arriving;
        crc <= crc_word(CrcStart, net_data);
        words <= '0;
        bytes_left <= arriving.size;
      end
      BODY:
      if (taken) begin
        if (!net_last) crc <= crc_word(crc, net_data);
        else state <= is_in_burst ? FILL : HEADER;
      end
      default: if (7'(words) + 1'b1 == size_words) state <= HEADER;
    endcase
    if (is_payload || state == FILL) begin
      if (words != '1) words <= words + 1'b1;
      bytes_left <= bytes_left > 10'd16 ? bytes_left - 10'd16 : '0;
    end
    begins <= state == HEADER && taken && !net_last;
    if (reset) begin
      state  <= HEADER;
      begins <= 1'b0;
    end
  end

  wire unused_ok = &{1'b0, header, footer};
endmodule

`default_nettype wire

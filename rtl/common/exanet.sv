// Packets of ExaNet: what a header and a footer have, which kinds there are, and the check.
//
//  header  127     112 111       90 89  87 86                 48 47    40 39    32 31    22 21         0
//         ┌───────────┬────────────┬──────┬─────────────────────┬────────┬────────┬────────┬────────────┐
//         │ PDID   16 │ node    22 │ rank │ virtual address  39 │ kind 8 │ page 8 │ size   │ source  22 │
//         └───────────┴────────────┴──────┴─────────────────────┴────────┴────────┴────────┴────────────┘
//  footer  127                    96 95                                        32 31                  0
//         ┌─────────────────────────┬────────────────────────────────────────────┬────────────────────┐
//         │ number               32 │ identity                                64 │ check           32 │
//         └─────────────────────────┴────────────────────────────────────────────┴────────────────────┘
//
// Bit 127 is the highest of the byte that travels first. The drawing is that of crates/weft-nic/src/exanet/wire.rs,
// which says what comes from TR-488 and what is ours; wire_vectors.txt beside it is read by the tests of both.

`default_nettype none

package exanet;

  typedef logic [127:0] word_t;

  typedef struct packed {
    logic [15:0] pdid;
    logic [21:0] node;
    logic [2:0]  rank;
    logic [38:0] address;
    logic [7:0]  kind;
    logic [7:0]  page;
    logic [9:0]  size;
    logic [21:0] source;
  } header_t;

  typedef struct packed {
    logic [31:0] number;
    logic [63:0] identity;
    logic [31:0] check;
  } footer_t;

  // Kinds of small messages, of requests of reads and of the answers to both, of cells and of the answers to their
  // blocks.
  typedef enum logic [7:0] {
    SMALL                 = 8'h01,
    CELL                  = 8'h07,
    READ_REQUEST          = 8'h12,
    ACKNOWLEDGEMENT       = 8'h82,
    REFUSED_DAMAGED       = 8'h83,
    REFUSED_DOMAIN        = 8'h84,
    REFUSED_INTERFACE     = 8'h85,
    REFUSED_FULL          = 8'h86,
    BLOCK_ACKNOWLEDGEMENT = 8'h88,
    BLOCK_WITHOUT_CONTEXT = 8'h89,
    BLOCK_FAULTED         = 8'h8a,
    BLOCK_OF_DOMAIN       = 8'h8b
  } kind_t;

  // Largest payload of a small message, in bytes and in words: TR-488 §5.1.
  localparam int SmallBytes = 64;
  localparam int SmallWords = 4;

  // A request of a read (§4.5.1) is a small packet whose payload is the first two words of a descriptor, as
  // segmentation_pages has them.
  localparam int RequestBytes = 32;

  // The kind of what a packetizer sends, by the kind in its descriptor: a request of a read, or else a small message.
  function automatic kind_t posted_kind(logic [7:0] kind);
    return kind == READ_REQUEST ? READ_REQUEST : SMALL;
  endfunction

  // The identity of a small message and of its answer: interface and channel that it was posted to.
  typedef struct packed {
    logic [31:0] unused;
    logic [15:0] interface_number;
    logic [15:0] channel;
  } small_identity_t;

  // The identity of a cell, and of the answer to its block.
  typedef struct packed {
    logic [15:0] channel;
    // The last cell of its block; of the last block of its transfer.
    logic        last;
    logic        ends_transfer;
    logic [5:0]  index;
    logic [7:0]  attempt;
    logic [31:0] transaction;
  } cell_identity_t;

  // The number of a virtual interface is its page and rank.
  function automatic logic [10:0] interface_of(logic [7:0] page, logic [2:0] rank);
    return {page, rank};
  endfunction

  // Words of 16 bytes that hold `size` bytes.
  function automatic logic [6:0] words_of(logic [9:0] size);
    return 7'((11'(size) + 11'd15) >> 4);
  endfunction

  // --- The check: CRC-32 (IEEE 802.3), of header, payload in whole words, and the 12 bytes of footer before it ---

  localparam logic [31:0] CrcStart = 32'hffff_ffff;

  // The state after `bits` bits, bytes from the highest down, each from its lowest bit on.
  function automatic logic [31:0] crc_slow(logic [31:0] state, word_t data, int bits);
    logic [31:0] crc;
    logic bit_in;
    crc = state;
    for (int i = 0; i < bits; i++) begin
      bit_in = data[bits-8-8*(i/8)+(i%8)] ^ crc[0];
      crc = {1'b0, crc[31:1]} ^ (bit_in ? 32'hedb8_8320 : 32'h0);
    end
    return crc;
  endfunction

  // The check is linear: bit i of the next state is the parity of some bits of the data and of the state. Row i
  // names them, so that logic has trees of exclusive ors and a simulator few steps.
  typedef logic [31:0][127:0] data_rows_t;
  typedef logic [31:0][31:0] state_rows_t;

  function automatic data_rows_t crc_data_rows(int bits);
    data_rows_t rows;
    logic [31:0] column;
    rows = '0;
    for (int j = 0; j < bits; j++) begin
      column = crc_slow('0, 128'd1 << j, bits);
      for (int i = 0; i < 32; i++) rows[i][j] = column[i];
    end
    return rows;
  endfunction

  function automatic state_rows_t crc_state_rows(int bits);
    state_rows_t rows;
    logic [31:0] column;
    rows = '0;
    for (int j = 0; j < 32; j++) begin
      column = crc_slow(32'd1 << j, '0, bits);
      for (int i = 0; i < 32; i++) rows[i][j] = column[i];
    end
    return rows;
  endfunction

  localparam data_rows_t CrcWordData = crc_data_rows(128);
  localparam state_rows_t CrcWordState = crc_state_rows(128);
  localparam data_rows_t CrcFooterData = crc_data_rows(96);
  localparam state_rows_t CrcFooterState = crc_state_rows(96);

  // The state of the check after a word.
  function automatic logic [31:0] crc_word(logic [31:0] state, word_t data);
    logic [31:0] next;
    for (int i = 0; i < 32; i++) next[i] = ^(data & CrcWordData[i]) ^ ^(state & CrcWordState[i]);
    return next;
  endfunction

  // The check of a packet: the state after its last word before the footer, and the footer without its check.
  function automatic logic [31:0] crc_footer(logic [31:0] state, logic [95:0] data);
    logic [31:0] next;
    for (int i = 0; i < 32; i++) next[i] = ~(^({32'd0, data} & CrcFooterData[i]) ^ ^(state & CrcFooterState[i]));
    return next;
  endfunction

  // The part of a word in the check of a packet in which so many words follow it before the footer: the check is the sum
  // of these parts, that of the header with CrcStart added to its first bits, and crc_footer of the state 0.
  function automatic data_rows_t crc_rows_followed_by(int words);
    data_rows_t rows;
    logic [31:0] column;
    rows = '0;
    for (int j = 0; j < 128; j++) begin
      column = crc_slow('0, 128'd1 << j, 128);
      for (int k = 0; k < words; k++) column = crc_slow(column, '0, 128);
      column = crc_slow(column, '0, 96);
      for (int i = 0; i < 32; i++) rows[i][j] = column[i];
    end
    return rows;
  endfunction

  localparam data_rows_t [SmallWords:0] CrcFollowedBy = {
    crc_rows_followed_by(4),
    crc_rows_followed_by(3),
    crc_rows_followed_by(2),
    crc_rows_followed_by(1),
    crc_rows_followed_by(0)
  };

  function automatic logic [31:0] crc_followed_by(word_t data, int words);
    logic [31:0] part;
    for (int i = 0; i < 32; i++) part[i] = ^(data & CrcFollowedBy[words][i]);
    return part;
  endfunction

  // The bytes of a check or of a state in the order in which their bits count.
  function automatic logic [31:0] swap_check(logic [31:0] check);
    return {check[7:0], check[15:8], check[23:16], check[31:24]};
  endfunction

  // The check of a packet of up to two words of payload, which is one beat of 512 bits.
  function automatic logic [31:0] crc_packet(logic [511:0] beat, int words);
    logic [31:0] check;
    check = crc_footer('0, beat[128*(2-words)+32+:96]);
    for (int i = 0; i <= words; i++)
    check ^= crc_followed_by(beat[128*(3-i)+:128] ^ (i == 0 ? {CrcStart, 96'd0} : '0), words - i);
    return check;
  endfunction

  // A word of host memory, whose first byte is the lowest, as a word of the network, and back.
  function automatic word_t swap_bytes(word_t data);
    word_t swapped;
    for (int i = 0; i < 16; i++) swapped[8*i+:8] = data[8*(15-i)+:8];
    return swapped;
  endfunction

  // --- The check over beats of 512 bits, whose first word is the highest ---

  typedef word_t [3:0] beat_t;

  // The part of a word in the state after a beat in which so many words follow it.
  function automatic data_rows_t crc_rows_before(int words);
    data_rows_t rows;
    logic [31:0] column;
    rows = '0;
    for (int j = 0; j < 128; j++) begin
      column = crc_slow('0, 128'd1 << j, 128);
      for (int k = 0; k < words; k++) column = crc_slow(column, '0, 128);
      for (int i = 0; i < 32; i++) rows[i][j] = column[i];
    end
    return rows;
  endfunction

  localparam data_rows_t [3:0] CrcBeat = {
    crc_rows_before(3), crc_rows_before(2), crc_rows_before(1), crc_rows_before(0)
  };

  // The state of the check after a beat: the state before it counts as its first bits do.
  function automatic logic [31:0] crc_beat(logic [31:0] state, beat_t beat);
    beat_t summed;
    logic [31:0] next;
    summed = beat ^ {swap_check(state), 480'd0};
    for (int i = 0; i < 32; i++) begin
      next[i] = 1'b0;
      for (int k = 0; k < 4; k++) next[i] ^= ^(summed[k] & CrcBeat[k][i]);
    end
    return next;
  endfunction

  // The state after a sound packet whose check was swapped, and so many words of zeros.
  function automatic logic [31:0] crc_sound(int words);
    logic [31:0] crc;
    crc = crc_slow(CrcStart, '0, 32);
    for (int k = 0; k < words; k++) crc = crc_slow(crc, '0, 128);
    return crc;
  endfunction

  localparam logic [3:0][31:0] CrcSound = {crc_sound(3), crc_sound(2), crc_sound(1), crc_sound(0)};

endpackage

`default_nettype wire

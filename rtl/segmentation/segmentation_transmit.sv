// The transmit path of the send unit: header, payload and footer of each cell that is whole.
//
//   HEADER ── header ──► PAYLOAD ── last word ──► FOOTER ──► HEADER …
//      │ └── no payload ─────────────────────────►┘
//      └── memory has refused a word: the cell is dropped, the agent told
//
// Cells follow each other every words + 2 + OVERHEAD cycles, from header to header.

`default_nettype none

module segmentation_transmit
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

    output logic       [SLOT_BITS+3:0] buffer_address,
    input  wire word_t                 buffer_data,

    // A header has been taken, or a cell dropped.
    output logic      sent,
    output logic      dropped,
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

  state_t  state;
  header_t header;
  cell_t   sending;
  logic [SLOT_BITS-1:0] slot, sent_slot;
  logic [9:0] bytes_left;
  logic [3:0] word;
  logic [31:0] crc;
  // Cycles until the engine can begin with another cell.
  logic [5:0] occupied;
  word_t payload_word;
  cell_identity_t identity;

  wire is_next = state == HEADER && whole_valid && sent_ready;
  wire [3:0] next_word = state == PAYLOAD && net_ready ? word + 1'b1 : word;

  assign dropped = is_next && whole_faulted;
  assign sent = state == HEADER && net_valid && net_ready;
  assign cell_taken = dropped || sent;
  assign buffer_address = state == HEADER ? {slot, 4'd0} : {sent_slot, next_word};

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
        channel: 16'(sending.channel),
        last: sending.last,
        ends_transfer: sending.ends_transfer,
        index: sending.index,
        attempt: sending.attempt,
        transaction: sending.transaction
    };
    // Behind the last byte are zeros.
    payload_word = swap_bytes(buffer_data);
    for (int i = 0; i < 16; i++) if (bytes_left <= 10'(i)) payload_word[8*(15-i)+:8] = '0;
  end

  wire [95:0] footer = {sending.first, identity};

  assign net_valid = state != HEADER || (is_next && !whole_faulted && occupied == '0);
  assign net_last  = state == FOOTER;
  always_comb begin
    unique case (state)
      HEADER:  net_data = word_t'(header);
      PAYLOAD: net_data = payload_word;
      default: net_data = {footer, crc_footer(crc, footer)};
    endcase
  end

  always_ff @(posedge clk) begin
    if (occupied != '0) occupied <= occupied - 1'b1;
    if (cell_taken) slot <= slot + 1'b1;
    if (net_valid && net_ready) begin
      unique case (state)
        HEADER: begin
          state <= next_cell.bytes == '0 ? FOOTER : PAYLOAD;
          sending <= next_cell;
          sent_slot <= slot;
          bytes_left <= 10'(next_cell.bytes);
          word <= '0;
          crc <= crc_word(CrcStart, word_t'(header));
          occupied <= 6'(words_of(10'(next_cell.bytes))) + 6'(1 + OVERHEAD);
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
    if (reset) begin
      state <= HEADER;
      slot <= '0;
      occupied <= '0;
    end
  end

  wire unused_ok = &{1'b0, sending};
endmodule

`default_nettype wire

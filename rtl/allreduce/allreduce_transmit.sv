// The transmit path of the accelerator: packets in the order in which they are due.
//
//   looked up, asked, answered ─► [ packets ] ─► HEADER ─► PAYLOAD ─► FOOTER ─► HEADER …
//
// A packet that is put in while none waits has its header on the bus in the next cycle.

`default_nettype none

module allreduce_transmit
  import exanet::*;
  import reduction::*;
(
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    input  wire logic      packet_valid,
    output logic           packet_ready,
    input  wire outgoing_t packet,

    output slot_t            slot,
    output version_t         version,
    output logic       [3:0] word,
    input  wire word_t       payload,

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
  logic there;
  outgoing_t first;
  header_t header;
  logic [3:0] place;
  logic [31:0] crc;
  word_t payload_word;

  fifo #(
      .WIDTH($bits(outgoing_t)),
      .DEPTH(32)
  ) packets (
      .clk,
      .reset,
      .in_valid (packet_valid),
      .in_ready (packet_ready),
      .in_data  (packet),
      .out_valid(there),
      .out_ready(state == FOOTER && net_ready),
      .out_data (first)
  );

  wire [ 4:0] words = 5'((first.bytes + 9'd15) >> 4);
  wire [95:0] footer = {first.id.group, first.id.number, first.id.block, first.step};

  assign slot = first.slot;
  assign version = first.version;
  assign word = state == PAYLOAD && net_ready ? place + 1'b1 : place;
  assign payload_word = swap_bytes(payload);
  assign header = '{node: first.to, kind: first.kind, size: 10'(first.bytes), source: node, default: '0};

  assign net_valid = there;
  assign net_last = state == FOOTER;
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
          state <= words == '0 ? FOOTER : PAYLOAD;
          place <= '0;
          crc   <= crc_word(CrcStart, word_t'(header));
        end
        PAYLOAD: begin
          place <= place + 1'b1;
          crc   <= crc_word(crc, payload_word);
          if ({1'b0, place} + 1'b1 == words) state <= FOOTER;
        end
        default: begin
          state <= HEADER;
          place <= '0;
        end
      endcase
    end
    if (reset) begin
      state <= HEADER;
      place <= '0;
    end
  end
endmodule

`default_nettype wire

// The answers to blocks: a header and a footer each, or both in one beat where the bus is wider.
//
//   answer ─► queue ─► HEADER ── header ──► FOOTER ──► HEADER …

`default_nettype none

module rdma_receive_answers
  import exanet::*;
#(
    parameter int  DATA_WIDTH = 128,
    parameter type answer_t   = logic
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic [21:0] node,

    input  wire logic    answer_valid,
    output logic         answer_ready,
    input  wire answer_t answer,

    output logic                       net_valid,
    input  wire logic                  net_ready,
    output logic      [DATA_WIDTH-1:0] net_data,
    output logic                       net_last
);
  header_t header;
  cell_identity_t identity;
  answer_t next;
  logic taken;
  wire [95:0] footer = {32'd0, identity};

  fifo #(
      .WIDTH($bits(answer_t)),
      .DEPTH(32)
  ) answers (
      .clk,
      .reset,
      .in_valid (answer_valid),
      .in_ready (answer_ready),
      .in_data  (answer),
      .out_valid(net_valid),
      .out_ready(taken),
      .out_data (next)
  );

  always_comb begin
    header = '{node: next.source, kind: next.kind, source: node, default: '0};
    identity = next.identity;
    identity.ends_transfer = 1'b0;
  end

  if (DATA_WIDTH == 128) begin : g_words
    typedef enum logic {
      HEADER,
      FOOTER
    } state_t;

    state_t state;
    logic [31:0] crc;

    assign taken = net_ready && state == FOOTER;
    assign net_last = state == FOOTER;
    assign net_data = net_last ? {footer, crc_footer(crc, footer)} : word_t'(header);

    always_ff @(posedge clk) begin
      if (net_valid && net_ready) state <= state == HEADER ? FOOTER : HEADER;
      crc <= crc_word(CrcStart, word_t'(header));
      if (reset) state <= HEADER;
    end
  end else begin : g_bus
    wire [511:0] packet = {word_t'(header), footer, 32'd0, 256'd0};

    assign taken = net_ready;
    assign net_last = 1'b1;
    assign net_data = packet | {224'd0, crc_packet(packet, 0), 256'd0};
  end
endmodule

`default_nettype wire

// The mailbox from registers and memories that hold anything: after its reset no output that counts is unknown,
// whatever comes. rtl/unknown.py simulates it with X.
//
//   random ─┬─► packets of all sizes, some damaged, of either PDID ──► dut ──► known: handshakes, and what they carry
//           ├─► gaps, and ports that are not ready
//           └─► registers: two queues are opened, heads move, all is read

`default_nettype none

module mailbox_unknown
  import exanet::*;
  import surroundings::*;
#(
    parameter int DATA_WIDTH = 128
) (
    input wire logic clk,
    input wire logic reset
);
  localparam logic [18:0] System = 19'h4_0000;

  logic [63:0] random;

  always_ff @(posedge clk) random <= reset ? Seed : xorshift(random);

  // --- Packets ---

  typedef enum logic [1:0] {
    HEADER,
    PAYLOAD,
    FOOTER
  } state_t;

  state_t state;
  header_t header;
  logic [6:0] left;
  logic [31:0] crc, number;
  logic net_valid, net_ready, net_last;
  word_t net_data;
  wire word_t payload = {random, ~random};
  wire [95:0] footer = {number, 32'd0, random[63:32]};
  wire comes = (!net_valid || net_ready) && random[1:0] != '0;

  always_comb begin
    header = '{kind: SMALL, source: random[60:39], default: '0};
    header.pdid = 16'(random[31]);
    header.rank = 3'(random[32]);
    header.size = 10'(random[38:33]) + 10'(random[38:33] != '0 && random[30]);
  end

  always_ff @(posedge clk) begin
    if (net_ready) net_valid <= 1'b0;
    if (comes) begin
      net_valid <= 1'b1;
      net_last  <= state == FOOTER;
      unique case (state)
        HEADER: begin
          state <= header.size == '0 ? FOOTER : PAYLOAD;
          net_data <= word_t'(header);
          left <= words_of(header.size);
          crc <= crc_word(CrcStart, word_t'(header));
        end
        PAYLOAD: begin
          net_data <= payload;
          left <= left - 1'b1;
          crc <= crc_word(crc, payload);
          if (left == 7'd1) state <= FOOTER;
        end
        default: begin
          state <= HEADER;
          net_data <= {footer, crc_footer(crc, footer) ^ 32'(random[5:2] == '0)};
          if (random[8:6] != '0) number <= number + 1'b1;
        end
      endcase
    end
    if (reset) begin
      state <= HEADER;
      net_valid <= 1'b0;
      number <= '0;
    end
  end

  // --- Registers: BASE and PDID of both queues, then heads ---

  logic [2:0] step;
  logic [1:0][15:0] heads, puts;
  logic awvalid, stored, rvalid, arready, register_bvalid;
  logic [1:0] register_bresp;
  logic [18:0] register_address;
  logic [63:0] register_data;
  // Nothing is stored yet: tables are being cleared, and are read at once.
  wire begins = step == '0;
  wire which = random[20];
  wire moves = random[24:21] == '0 && heads[which] != puts[which];

  always_comb begin
    awvalid = !step[2] || moves;
    register_address = {6'd0, which, 12'd0};
    register_data = 64'(heads[which] + 1'b1);
    if (!step[2]) begin
      register_address = System | {6'd0, step[1], 8'd0, !step[0], 3'd0};
      register_data = step[0] ? 64'(step[1]) : {51'd0, step[1], 12'd0};
    end
  end

  always_ff @(posedge clk) begin
    if (stored && !step[2]) step <= step + 1'b1;
    if (stored && step[2]) heads[which] <= heads[which] + 1'b1;
    if (reset) begin
      step  <= '0;
      heads <= '0;
    end
  end

  // --- Memory ---

  logic m_awvalid, m_wvalid, m_wlast;
  logic [48:0] m_awaddr;
  logic [DATA_WIDTH-1:0] m_wdata;
  logic [4:0] written;
  wire m_awready = random[41];
  wire m_wready = random[42];
  wire m_bvalid = written != '0 && random[43];

  always_ff @(posedge clk) begin
    written <= written + 5'(m_wvalid && m_wready && m_wlast) - 5'(m_bvalid);
    if (m_awvalid && m_awready) puts[m_awaddr[12]] <= puts[m_awaddr[12]] + 1'b1;
    if (reset) begin
      written <= '0;
      puts <= '0;
    end
  end

  // --- The block ---

  logic answer_valid, answer_last, verdict_valid, verdict_put, wready;
  logic [7:0] verdict_kind;
  logic [DATA_WIDTH-1:0] answer;
  logic [63:0] rdata;
  logic [1:0] rresp;

  mailbox #(
      .DATA_WIDTH(DATA_WIDTH),
      .INTERFACES(2),
      .ENTRIES(4),
      .SLOTS(4),
      .REMEMBERED(16)
  ) dut (
      .clk,
      .reset,
      .node(22'd5),
      .s_axis_net_tvalid(net_valid),
      .s_axis_net_tready(net_ready),
      .s_axis_net_tdata(net_data),
      .s_axis_net_tlast(net_last),
      .m_axis_net_tvalid(answer_valid),
      .m_axis_net_tready(random[44]),
      .m_axis_net_tdata(answer),
      .m_axis_net_tlast(answer_last),
      .m_axi_awid(),
      .m_axi_awaddr(m_awaddr),
      .m_axi_awlen(),
      .m_axi_awsize(),
      .m_axi_awburst(),
      .m_axi_awvalid(m_awvalid),
      .m_axi_awready(m_awready),
      .m_axi_wdata(m_wdata),
      .m_axi_wstrb(),
      .m_axi_wlast(m_wlast),
      .m_axi_wvalid(m_wvalid),
      .m_axi_wready(m_wready),
      .m_axi_bid('0),
      .m_axi_bresp({random[62:56] == '0, 1'b0}),
      .m_axi_bvalid(m_bvalid),
      .m_axi_bready(),
      .s_axil_awaddr(register_address),
      .s_axil_awvalid(awvalid),
      .s_axil_awready(stored),
      .s_axil_wdata(register_data),
      .s_axil_wstrb('1),
      .s_axil_wvalid(awvalid),
      .s_axil_wready(wready),
      .s_axil_bresp(register_bresp),
      .s_axil_bvalid(register_bvalid),
      .s_axil_bready(random[45]),
      .s_axil_araddr({random[50], 5'd0, random[49] || begins, 7'd0, random[48:46], 2'd0}),
      .s_axil_arvalid(random[51] || begins),
      .s_axil_arready(arready),
      .s_axil_rdata(rdata),
      .s_axil_rresp(rresp),
      .s_axil_rvalid(rvalid),
      .s_axil_rready(random[52]),
      .verdict_valid,
      .verdict_kind,
      .verdict_put
  );

  wire [9:0] handshakes = {
    net_ready, answer_valid, m_awvalid, m_wvalid, stored, wready, register_bvalid, arready, rvalid, verdict_valid
  };

  // A run in which nothing comes about says nothing.
  logic [15:0] cycle, answers, entries;

  always_ff @(posedge clk) begin
    cycle   <= cycle + 1'b1;
    answers <= answers + 16'(answer_valid && answer_last && random[44]);
    entries <= entries + 16'(m_wvalid && m_wready && m_wlast);
    if (reset) begin
      cycle   <= '0;
      answers <= '0;
      entries <= '0;
    end

    if (!reset) begin
      assert (cycle != 16'd800 || answers >= 16'd16 && entries >= 16'd8);
      assert (is_known(256'(handshakes)));
      assert (!answer_valid || is_known(256'({answer_last, answer})));
      assert (!m_awvalid || is_known(256'(m_awaddr)));
      assert (!m_wvalid || is_known(256'({m_wlast, m_wdata})));
      assert (!register_bvalid || is_known(256'(register_bresp)));
      assert (!rvalid || is_known(256'({rresp, rdata})));
      assert (!verdict_valid || is_known(256'({verdict_kind, verdict_put})));
    end
  end
endmodule

`default_nettype wire

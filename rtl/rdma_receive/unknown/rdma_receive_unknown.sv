// The receive unit from registers and memories that hold anything: after its reset no output that counts is unknown,
// whatever comes. rtl/unknown.py simulates it with X.
//
//   random ─┬─► blocks of cells, some of them lost, damaged, foreign or sent again ──► dut ──► known: handshakes,
//           ├─► gaps, ports that are not ready, bursts that memory refuses                     and what they carry
//           └─► registers: two interfaces get a PDID and a queue, all is read
//
// What a bus has without a handshake is unknown here too.

`default_nettype none

module rdma_receive_unknown
  import exanet::*;
  import surroundings::*;
(
    input wire logic clk,
    input wire logic reset
);
  logic [63:0] random;

  always_ff @(posedge clk) random <= reset ? Seed : xorshift(random);

  // --- Cells: transfers of two blocks, of more channels than the table has places ---

  typedef enum logic [1:0] {
    HEADER,
    PAYLOAD,
    FOOTER
  } state_t;

  state_t state;
  header_t header;
  cell_identity_t identity;
  logic [1:0] index, last;
  logic [1:0] channel;
  logic [6:0] left;
  logic [31:0] crc, block;
  logic net_valid, net_ready, net_last, is_last;
  word_t net_data;
  wire word_t payload = {random, ~random};
  wire [95:0] footer = {block & ~32'd1, identity};
  // Interfaces have their PDIDs.
  logic opened;
  wire comes = (!net_valid || net_ready) && random[1:0] != '0 && opened;
  wire begins_block = random[36:34] == '0 || is_last && random[37];

  always_comb begin
    header = '{kind: CELL, source: 22'd7, default: '0};
    header.rank = {2'd0, random[32]};
    header.pdid = 16'(header.rank) + 16'(random[43:41] == '0);
    // Those of the first block cross 4 KB, and some others.
    header.address = {27'd16, random[47:40] | {8{block == '0}}, 4'd0};
    header.size = 10'(random[53:48]) + 10'(random[55:54] == '0) + (block == '0 ? 10'd17 : '0);
    identity = '{
        channel: 16'(channel),
        last: is_last,
        ends_transfer: block[0],
        index: 6'(index),
        transaction: block,
        default: '0
    };
  end
  assign is_last = index == last;

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
          // The next cell, or the same once more; another block, or the same.
          if (is_last) index <= '0;
          else if (random[8:6] != '0) index <= index + 1'b1;
          if (begins_block) begin
            index <= '0;
            last  <= random[39:38];
            block <= block + 1'b1;
            if (block[0]) channel <= random[10:9];
          end
        end
      endcase
    end
    if (reset) begin
      state <= HEADER;
      {net_valid, index, last, channel, block} <= '0;
    end
  end

  // --- Registers: PDID and BASE of both interfaces; then all is read ---

  logic [1:0] step;
  logic awready, wready, bvalid, arready, rvalid;
  logic [1:0] bresp, rresp;
  logic [63:0] rdata;
  wire arvalid = random[11] && !reset;

  always_ff @(posedge clk) begin
    if (awready) {opened, step} <= {opened, step} + 1'b1;
    if (reset) {opened, step} <= '0;
  end

  // --- Memory: a burst is answered when its address and its words have come ---

  logic m_awvalid, m_wvalid, m_wlast, m_bvalid, m_bready;
  logic [ 41:0] m_awaddr;
  logic [  7:0] m_awlen;
  logic [127:0] m_wdata;
  logic [ 15:0] m_wstrb;
  logic [7:0] addressed, written;
  wire  m_awready = random[12];
  wire  m_wready = random[13];
  wire  answered = m_bvalid && m_bready;
  wire  m_answers = addressed != '0 && written != '0 && random[14];
  logic refuses;

  always_ff @(posedge clk) begin
    if (m_bready) m_bvalid <= 1'b0;
    if (!m_bvalid && m_answers) begin
      m_bvalid <= 1'b1;
      refuses  <= random[18:15] == '0;
    end
    addressed <= addressed + 8'(m_awvalid && m_awready) - 8'(answered);
    written   <= written + 8'(m_wvalid && m_wready && m_wlast) - 8'(answered);
    if (reset) {m_bvalid, addressed, written} <= '0;
  end

  // --- The block ---

  logic answer_valid, answer_last, change_valid;
  word_t answer;
  logic [2:0] change_what;
  wire answer_ready = random[19];

  rdma_receive #(
      .INTERFACES(2),
      .CONTEXTS(2),
      .CHANNELS(4),
      .WAYS(2),
      .WAITING(4),
      .CONTEXT_TIMEOUT(64),
      .NOTIFICATIONS(4)
  ) dut (
      .clk,
      .reset,
      .node(22'd5),
      .s_axis_net_tvalid(net_valid),
      .s_axis_net_tready(net_ready),
      .s_axis_net_tdata(net_valid ? net_data : 'x),
      .s_axis_net_tlast(net_valid ? net_last : 1'bx),
      .m_axis_net_tvalid(answer_valid),
      .m_axis_net_tready(answer_ready),
      .m_axis_net_tdata(answer),
      .m_axis_net_tlast(answer_last),
      .m_axi_awid(),
      .m_axi_awaddr(m_awaddr),
      .m_axi_awlen(m_awlen),
      .m_axi_awsize(),
      .m_axi_awburst(),
      .m_axi_awvalid(m_awvalid),
      .m_axi_awready(m_awready),
      .m_axi_wdata(m_wdata),
      .m_axi_wstrb(m_wstrb),
      .m_axi_wlast(m_wlast),
      .m_axi_wvalid(m_wvalid),
      .m_axi_wready(m_wready),
      .m_axi_bid('0),
      .m_axi_bresp(m_bvalid ? {refuses, 1'b0} : 'x),
      .m_axi_bvalid(m_bvalid),
      .m_axi_bready(m_bready),
      .s_axil_awaddr(opened ? 'x : {5'd0, step[1], 8'd0, step[0], 3'd0}),
      .s_axil_awvalid(!opened),
      .s_axil_awready(awready),
      .s_axil_wdata(opened ? 'x : step[0] ? {51'd0, step[1], 12'd0} : 64'(step[1])),
      .s_axil_wstrb(opened ? 'x : 8'hff),
      .s_axil_wvalid(!opened),
      .s_axil_wready(wready),
      .s_axil_bresp(bresp),
      .s_axil_bvalid(bvalid),
      .s_axil_bready(random[20]),
      .s_axil_araddr(arvalid ? {5'd0, random[21], 8'd0, random[22], 3'd0} : 'x),
      .s_axil_arvalid(arvalid),
      .s_axil_arready(arready),
      .s_axil_rdata(rdata),
      .s_axil_rresp(rresp),
      .s_axil_rvalid(rvalid),
      .s_axil_rready(random[23]),
      .change_valid,
      .change_what
  );

  wire [10:0] handshakes = {
    net_ready, answer_valid, m_awvalid, m_wvalid, m_bready, awready, wready, bvalid, arready, rvalid, change_valid
  };
  // Bytes that are not written count for nothing.
  word_t m_written;
  always_comb for (int i = 0; i < 16; i++) m_written[8*i+:8] = m_wstrb[i] ? m_wdata[8*i+:8] : '0;

  // A run in which nothing comes about says nothing: all that a cell may come to, all answers, notifications.
  logic [15:0] cycle, notifications;
  logic [7:0] changed;
  logic [3:0] answered_kinds;
  wire header_t answer_header = header_t'(answer);

  always_ff @(posedge clk) begin
    cycle <= cycle + 1'b1;
    notifications <= notifications + 16'(m_awvalid && m_awready && !m_awaddr[16]);
    if (change_valid) changed[change_what] <= 1'b1;
    if (answer_valid && answer_ready && !answer_last) answered_kinds[answer_header.kind[1:0]] <= 1'b1;
    if (reset) {cycle, notifications, changed, answered_kinds} <= '0;

    if (!reset) begin
      assert (cycle != 16'd800 || notifications >= 16'd4 && changed == '1 && answered_kinds == '1);
      assert (is_known(256'(handshakes)));
      assert (!answer_valid || is_known(256'({answer_last, answer})));
      assert (!m_awvalid || is_known(256'({m_awaddr, m_awlen})));
      assert (!m_wvalid || is_known(256'({m_wstrb, m_wlast})) && is_known(256'(m_written)));
      assert (!bvalid || is_known(256'(bresp)));
      assert (!rvalid || is_known(256'({rresp, rdata})));
      assert (!change_valid || is_known(256'(change_what)));
    end
  end
endmodule

`default_nettype wire

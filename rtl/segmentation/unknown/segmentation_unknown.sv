// The send unit from registers and memories that hold anything, but for the wheel of its timers: after its reset no
// output that counts is unknown, whatever comes. rtl/unknown.py simulates it with X.
//
//   random ─┬─► PDIDs, then descriptors of any channel, or that memory is mapped; loads ──► dut ──► known: handshakes,
//           ├─► requests of reads, some damaged, foreign or once more                       │  ▲    and what they carry
//           ├─► ports that are not ready, words that memory refuses                         │  │
//           └─► answers of all kinds, damaged or missing ◄───────────── cells ──────────────┘  │
//                  └───────────────────────────────────────────────────────────────────────────┘
//
// What a bus has without a handshake is unknown here too. Processes store whole descriptors.

`default_nettype none

module segmentation_unknown
  import exanet::*;
  import surroundings::*;
(
    input wire logic clk,
    input wire logic reset
);
  logic [63:0] random;

  always_ff @(posedge clk) random <= reset ? Seed : xorshift(random);

  function automatic word_t source_of(logic [63:0] random);
    // Up to four blocks; few addresses are not those of words.
    return 128'({32'(random[7:0]), 64'(random[11:8]) << 16 | 64'(random[16:9]) << 4 | 64'(random[20:17] == '0)});
  endfunction

  function automatic word_t destination_of(logic [63:0] random);
    header_t header = '{node: 22'(random[21]), rank: 3'(random[22]), address: 39'(random[30:23]) << 4, default: '0};
    return word_t'(header);
  endfunction

  // --- Stores: PDIDs of both pages, then descriptors, a burst each; where memory has refused a word, it gets mapped ---

  logic [1:0] opened, beat;
  logic [2:0] channel;
  logic store_valid, stored, awready, is_faulted, change_valid;
  logic [6:0] faulted_channel, change_channel;
  logic [2:0] change_what;
  logic [31:0] change_transaction;
  logic [16:0] address;
  word_t word;
  localparam logic [2:0] FaultMet = 3'd5;
  wire maps = opened[1] && beat == '0 && is_faulted;
  wire is_burst = opened[1] && !maps;
  wire last_beat = !is_burst || beat == '1;

  always_comb begin
    address = {4'd0, channel[2], 4'd0, channel[1:0], 6'd0};
    word = beat == 2'd0 ? source_of(random) : beat == 2'd1 ? destination_of(random) : '0;
    if (!opened[1]) begin
      address = {4'b1000, opened[0], 12'd0};
      word = 128'(opened[0]);
    end
    if (maps) begin
      address = {4'b1000, faulted_channel[6], 12'd16};
      word = 128'(faulted_channel[5:0]);
    end
  end

  // Words stay until they are taken.
  logic [16:0] awaddr;
  word_t wdata;
  logic begins, ends;

  always_ff @(posedge clk) begin
    if (stored) store_valid <= 1'b0;
    if ((!store_valid || stored) && random[0]) begin
      store_valid <= 1'b1;
      awaddr <= address;
      wdata <= word;
      begins <= beat == '0;
      ends <= last_beat;
      if (!opened[1]) opened <= opened + 1'b1;
      if (is_burst) beat <= beat + 1'b1;
      if (last_beat) channel <= random[3:1];
      if (maps) is_faulted <= 1'b0;
    end
    if (change_valid && change_what == FaultMet) begin
      is_faulted <= 1'b1;
      faulted_channel <= change_channel;
    end
    if (reset) {store_valid, opened, beat, channel, is_faulted} <= '0;
  end

  // --- Requests of reads ---

  logic request_valid, request_ready, request_last;
  word_t request;
  logic [1:0] request_word;
  logic [31:0] request_crc, number;
  header_t request_header;
  wire [95:0] request_footer = {number, 64'd0};

  always_comb begin
    request_header = '{kind: READ_REQUEST, size: 10'(RequestBytes), source: 22'd7, default: '0};
    // Few name a page that is not there, or another PDID than its own.
    request_header.rank = {1'b0, random[5:4] == '0, random[3]};
    request_header.pdid = 16'(request_header.rank) + 16'(random[9:8] == '0);
  end

  always_ff @(posedge clk) begin
    if (request_ready) request_valid <= 1'b0;
    if ((!request_valid || request_ready) && random[48:46] == '0) begin
      request_valid <= 1'b1;
      request_last  <= request_word == 2'd3;
      request_word  <= request_word + 1'b1;
      unique case (request_word)
        2'd0: begin
          request <= word_t'(request_header);
          request_crc <= crc_word(CrcStart, word_t'(request_header));
        end
        2'd1: begin
          request <= swap_bytes(source_of(random));
          request_crc <= crc_word(request_crc, swap_bytes(source_of(random)));
        end
        2'd2: begin
          request <= swap_bytes(destination_of(random));
          request_crc <= crc_word(request_crc, swap_bytes(destination_of(random)));
        end
        default: begin
          request <= {request_footer, crc_footer(request_crc, request_footer) ^ 32'(random[16:14] == '0)};
          if (random[18:17] != '0) number <= number + 1'b1;
        end
      endcase
    end
    if (reset) {request_valid, request_word, number} <= '0;
  end

  // --- Memory ---

  logic m_arvalid, m_rvalid, m_rlast, m_rready, m_refuses, burst_valid;
  logic [41:0] m_araddr;
  logic [7:0] m_arlen, burst_length, m_word;
  word_t m_rdata;
  wire   m_arready = random[19];
  wire   m_gives = burst_valid && (!m_rvalid || m_rready) && random[20];
  wire   m_ends = m_word == burst_length;

  fifo #(
      .WIDTH(8),
      .DEPTH(16)
  ) bursts (
      .clk,
      .reset,
      .in_valid (m_arvalid && m_arready),
      .in_ready (),
      .in_data  (m_arlen),
      .out_valid(burst_valid),
      .out_ready(m_gives && m_ends),
      .out_data (burst_length)
  );

  always_ff @(posedge clk) begin
    if (m_rready) m_rvalid <= 1'b0;
    if (m_gives) begin
      m_rvalid <= 1'b1;
      m_rdata <= {random, ~random};
      m_refuses <= random[25:21] == '0;
      m_rlast <= m_ends;
      m_word <= m_ends ? '0 : m_word + 1'b1;
    end
    if (reset) {m_rvalid, m_word} <= '0;
  end

  // --- Answers to the last cells of blocks ---

  logic net_valid, net_last, named_valid, answer_valid, answer_ready, answer_last;
  word_t net_data, answer;
  wire footer_t footer = footer_t'(net_data);
  cell_identity_t named;
  kind_t kind;
  header_t answer_header;
  wire net_ready = random[26];
  wire answer_comes = (!answer_valid || answer_ready) && named_valid && random[27];
  logic answer_begun;
  logic [31:0] answer_crc;
  wire [95:0] answer_footer = {32'd0, named};

  always_comb begin
    kind = BLOCK_ACKNOWLEDGEMENT;
    if (random[30:28] == '0) kind = BLOCK_WITHOUT_CONTEXT;
    if (random[30:28] == 3'd1) kind = BLOCK_FAULTED;
    if (random[31:28] == 4'd2) kind = BLOCK_OF_DOMAIN;
    answer_header = '{kind: kind, node: 22'd5, source: 22'd7, default: '0};
  end

  fifo #(
      .WIDTH($bits(cell_identity_t)),
      .DEPTH(64)
  ) answers (
      .clk,
      .reset,
      .in_valid (net_valid && net_ready && net_last && footer.identity[47] && random[33:32] != '0),
      .in_ready (),
      .in_data  (footer.identity),
      .out_valid(named_valid),
      .out_ready(answer_comes && answer_begun),
      .out_data (named)
  );

  always_ff @(posedge clk) begin
    if (answer_ready) answer_valid <= 1'b0;
    if (answer_comes) begin
      answer_valid <= 1'b1;
      answer_last <= answer_begun;
      answer_begun <= !answer_begun;
      answer <= word_t'(answer_header);
      if (answer_begun) answer <= {answer_footer, crc_footer(answer_crc, answer_footer) ^ 32'(random[37:35] == '0)};
      answer_crc <= crc_word(CrcStart, word_t'(answer_header));
    end
    if (reset) {answer_valid, answer_begun} <= '0;
  end

  // --- The block ---

  logic wready, bvalid, arready, rvalid, rlast, reply_valid, reply_last;
  logic [7:0] bid, rid;
  logic [1:0] bresp, rresp;
  word_t rdata, reply;
  wire arvalid = random[39];
  wire reply_ready = random[40];
  wire awvalid = store_valid && begins;
  assign stored = wready;

  segmentation #(
      .PAGES(2),
      .CELL_BUFFERS(4),
      .OUTSTANDING(4),
      .BLOCK(64),
      .CELL_BYTES(32),
      .OVERHEAD(1),
      .TIMEOUT(512),
      .LONGEST_TIMEOUT(512),
      .REPETITIONS(1)
  ) dut (
      .clk,
      .reset,
      .node(22'd5),
      .s_axi_awid(awvalid ? 8'd3 : 'x),
      .s_axi_awaddr(awvalid ? awaddr : 'x),
      .s_axi_awlen(8'(!ends) * 8'd3),
      .s_axi_awsize(3'd4),
      .s_axi_awburst(2'b01),
      .s_axi_awvalid(awvalid),
      .s_axi_awready(awready),
      .s_axi_wdata(store_valid ? wdata : 'x),
      .s_axi_wstrb(store_valid ? '1 : 'x),
      .s_axi_wlast(store_valid ? ends : 'x),
      .s_axi_wvalid(store_valid),
      .s_axi_wready(wready),
      .s_axi_bid(bid),
      .s_axi_bresp(bresp),
      .s_axi_bvalid(bvalid),
      .s_axi_bready(random[41]),
      .s_axi_arid(8'd4),
      .s_axi_araddr(arvalid ? {4'd0, random[42], 4'd0, random[44:43], 6'd0} : 'x),
      .s_axi_arlen('0),
      .s_axi_arsize(3'd4),
      .s_axi_arburst(2'b01),
      .s_axi_arvalid(arvalid),
      .s_axi_arready(arready),
      .s_axi_rid(rid),
      .s_axi_rdata(rdata),
      .s_axi_rresp(rresp),
      .s_axi_rlast(rlast),
      .s_axi_rvalid(rvalid),
      .s_axi_rready(random[45]),
      .m_axi_arid(),
      .m_axi_araddr(m_araddr),
      .m_axi_arlen(m_arlen),
      .m_axi_arsize(),
      .m_axi_arburst(),
      .m_axi_arvalid(m_arvalid),
      .m_axi_arready(m_arready),
      .m_axi_rid('0),
      .m_axi_rdata(m_rvalid ? m_rdata : 'x),
      .m_axi_rresp(m_rvalid ? {m_refuses, 1'b0} : 'x),
      .m_axi_rlast(m_rvalid ? m_rlast : 1'bx),
      .m_axi_rvalid(m_rvalid),
      .m_axi_rready(m_rready),
      .m_axis_net_tvalid(net_valid),
      .m_axis_net_tready(net_ready),
      .m_axis_net_tdata(net_data),
      .m_axis_net_tlast(net_last),
      .s_axis_net_tvalid(answer_valid),
      .s_axis_net_tready(answer_ready),
      .s_axis_net_tdata(answer_valid ? answer : 'x),
      .s_axis_net_tlast(answer_valid ? answer_last : 1'bx),
      .s_axis_request_tvalid(request_valid),
      .s_axis_request_tready(request_ready),
      .s_axis_request_tdata(request_valid ? request : 'x),
      .s_axis_request_tlast(request_valid ? request_last : 1'bx),
      .m_axis_answer_tvalid(reply_valid),
      .m_axis_answer_tready(reply_ready),
      .m_axis_answer_tdata(reply),
      .m_axis_answer_tlast(reply_last),
      .change_valid,
      .change_channel,
      .change_transaction,
      .change_what
  );

  wire [11:0] handshakes = {
    awready,
    wready,
    bvalid,
    arready,
    rvalid,
    m_arvalid,
    m_rready,
    net_valid,
    answer_ready,
    request_ready,
    reply_valid,
    change_valid
  };

  // A run in which nothing comes about says nothing: all that happens to blocks, cells, answers to requests.
  logic [15:0] cycle, cells;
  logic [6:0] changed;
  logic [4:0] replies;
  // A block was sent again because its time was up.
  logic timed_out;
  wire header_t reply_header = header_t'(reply);

  always_ff @(posedge clk) begin
    cycle <= cycle + 1'b1;
    cells <= cells + 16'(net_valid && net_ready && net_last);
    if (change_valid) changed[change_what] <= 1'b1;
    if (reply_valid && reply_ready && !reply_last) replies[3'(reply_header.kind-ACKNOWLEDGEMENT)] <= 1'b1;
    if (change_valid && dut.agent.changing.what == '0) timed_out <= 1'b1;
    if (reset) {cycle, cells, changed, replies, timed_out} <= '0;

    if (!reset) begin
      assert (cycle != 16'd800 || cells >= 16'd48 && changed == '1 && replies[3:0] == '1 && timed_out);
      assert (is_known(256'(handshakes)));
      assert (!bvalid || is_known(256'({bid, bresp})));
      assert (!rvalid || is_known(256'({rid, rdata, rresp, rlast})));
      assert (!m_arvalid || is_known(256'({m_araddr, m_arlen})));
      assert (!net_valid || is_known(256'({net_data, net_last})));
      assert (!reply_valid || is_known(256'({reply, reply_last})));
      assert (!change_valid || is_known(256'({change_channel, change_transaction, change_what})));
    end
  end
endmodule

`default_nettype wire

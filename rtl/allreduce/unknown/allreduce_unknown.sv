// The accelerator from registers and memories that hold anything: after its reset no output that counts is unknown,
// whatever comes. rtl/unknown.py simulates it with X: a server and a client, each by itself.
//
//   random ─┬─► registers: where to tell of it, then one operation after the other ──► dut ──► known: handshakes,
//           ├─► vectors of this operation and the next, questions, failures, in gaps         and what they carry
//           └─► ports that are not ready, vector and table of ranks from memory
//
// What a bus has without a handshake is unknown here too.

`default_nettype none

module allreduce_unknown (
    input wire logic clk,
    input wire logic reset
);
  allreduce_unknown_module #(
      .NODE(22'd4)
  ) server (
      .clk,
      .reset
  );

  allreduce_unknown_module #(
      .NODE(22'd5)
  ) client (
      .clk,
      .reset
  );
endmodule

// The module of a node of the lower of two boards, whose ranks are in the order of their nodes.
module allreduce_unknown_module
  import exanet::*;
  import reduction::*;
  import surroundings::*;
#(
    parameter logic [21:0] NODE = 22'd4
) (
    input wire logic clk,
    input wire logic reset
);
  localparam logic IsServer = NODE[1:0] == 2'd0;
  // Of IDLE, FETCHING, AWAITING, GATHERING, EXCHANGING, FINISHING, FAILING, and of the kinds from CONTRIBUTION to FAILED:
  // those that this module has, and sends.
  localparam logic [2:0] Idle = 3'd0, Failing = 3'd6;
  localparam logic [6:0] States = IsServer ? 7'b1111011 : 7'b1100111;
  localparam logic [5:0] Kinds = IsServer ? 6'b111110 : 6'b111001;

  logic [63:0] random;

  always_ff @(posedge clk) random <= reset ? Seed : xorshift(random);

  // --- Operations: where to tell of them; then of each its vector, table, name, block and start ---

  logic [2:0] state, last_state, step;
  logic [31:0] number, group;
  logic [1:0] operation, data_type;
  logic awready, wready, bvalid, has_failed;
  logic [63:0] wdata;

  // Up to two words.
  function automatic logic [8:0] bytes_of(logic [31:0] number);
    return 9'd8 + {4'd0, number[1:0], 3'd0};
  endfunction

  wire awvalid = random[0] && (state == Idle || step == 3'd1 && random[5:1] == '0);
  wire [12:0] awaddr = step == '0 ? 13'd4096 : 13'(step - 1'b1) << 3;
  wire starts = awvalid && awready && step == 3'd5;

  always_comb begin
    unique case (step)
      3'd0: wdata = 64'h50_0010;
      3'd1: wdata = 64'h30_0100;
      3'd2: wdata = 64'h40_0000;
      3'd3: wdata = {number, group};
      3'd4: wdata = '0;
      // Eight ranks.
      default: wdata = {10'd0, data_type, 2'd0, operation, 7'd0, bytes_of(number), 6'd0, 10'(NODE[1:0]), 16'd8};
    endcase
  end

  always_ff @(posedge clk) begin
    last_state <= state;
    if (awvalid && awready) step <= step == 3'd5 ? 3'd1 : step + 1'b1;
    if (starts) begin
      // Few are no operation.
      operation <= random[7:6];
      data_type <= data_type == DOUBLE ? INT : data_type + 1'b1;
    end
    if (state == Failing) has_failed <= 1'b1;
    if (state == Idle && last_state != Idle) begin
      number <= number + 1'b1;
      // A group whose operation has failed has no other.
      group <= group + 32'(has_failed);
      has_failed <= 1'b0;
    end
    if (reset) begin
      last_state <= Idle;
      {step, number, group, operation, data_type, has_failed} <= '0;
    end
  end

  // --- Packets: for a while none comes, so that modules ask ---

  typedef enum logic [1:0] {
    HEADER,
    PAYLOAD,
    FOOTER
  } packet_state_t;

  packet_state_t packet_state;
  header_t header;
  module_kind_t kind;
  logic net_valid, net_last;
  logic net_ready;
  logic [8:0] phase;
  logic [7:0] packet_step, of_step;
  logic [31:0] crc, of_number, of_group;
  logic [6:0] left;
  word_t net_data;
  wire word_t payload = {random, ~random};
  wire [95:0] footer = {of_group, of_number, 24'd0, of_step};
  wire may_fail = number[1:0] == 2'd1;
  // Some are early.
  wire [31:0] next_number = number + 32'(random[30:28] == '0);
  wire comes = (!net_valid || net_ready) && random[10:9] != '0 && phase[8:7] != '1;

  always_comb begin
    // A server gets vectors of its board and of the other one, a client results. Every fourth operation may fail.
    kind = IsServer ? (random[13] && random[24] ? EXCHANGE : CONTRIBUTION) : may_fail ? FAILED : RESULT;
    if (random[16:14] == '0) kind = ASK;
    if (random[17:14] == 4'd1) kind = may_fail ? FAILED : NOT_YET;
    packet_step = kind == CONTRIBUTION ? 8'(random[23:22]) : kind == EXCHANGE ? 8'd1 : '0;
    header = '{kind: kind, node: NODE, source: 22'd4 + 22'(random[27:25]), default: '0};
    if (kind == RESULT || kind == CONTRIBUTION || kind == EXCHANGE) header.size = 10'(bytes_of(next_number));
  end

  always_ff @(posedge clk) begin
    phase <= phase + 1'b1;
    if (net_ready) net_valid <= 1'b0;
    if (comes) begin
      net_valid <= 1'b1;
      net_last  <= packet_state == FOOTER;
      unique case (packet_state)
        HEADER: begin
          packet_state <= header.size == '0 ? FOOTER : PAYLOAD;
          net_data <= word_t'(header);
          left <= words_of(header.size);
          crc <= crc_word(CrcStart, word_t'(header));
          of_step <= packet_step;
          of_number <= next_number;
          // Who asks may be of the group before.
          of_group <= group - 32'(kind == ASK && random[45]);
        end
        PAYLOAD: begin
          net_data <= payload;
          left <= left - 1'b1;
          crc <= crc_word(crc, payload);
          if (left == 7'd1) packet_state <= FOOTER;
        end
        default: begin
          packet_state <= HEADER;
          net_data <= {footer, crc_footer(crc, footer) ^ 32'(random[33:31] == '0)};
        end
      endcase
    end
    if (reset) begin
      packet_state <= HEADER;
      {net_valid, phase} <= '0;
    end
  end

  // --- Memory: the vector, and pairs of node and rank ---

  logic m_arid, m_arvalid, m_rid, m_rvalid, m_rready, read_valid, read_id, read_board, read_word;
  logic [48:0] m_araddr;
  logic [7:0] m_arlen, read_length;
  word_t m_rdata;
  wire m_arready = random[34];
  wire m_gives = read_valid && (!m_rvalid || m_rready) && random[35];
  wire read_ends = 8'(read_word) == read_length;
  wire [31:0] rank = {29'd0, read_board, read_word, 1'b0};

  fifo #(
      .WIDTH(10),
      .DEPTH(16)
  ) reads (
      .clk,
      .reset,
      .in_valid (m_arvalid && m_arready),
      .in_ready (),
      .in_data  ({m_arid, m_araddr[5], m_arlen}),
      .out_valid(read_valid),
      .out_ready(m_gives && read_ends),
      .out_data ({read_id, read_board, read_length})
  );

  always_ff @(posedge clk) begin
    if (m_rready) m_rvalid <= 1'b0;
    if (m_gives) begin
      m_rvalid <= 1'b1;
      m_rid <= read_id;
      m_rdata <= read_id ? {rank + 32'd1, rank + 32'd5, rank, rank + 32'd4} : {random, ~random};
      read_word <= !read_ends;
    end
    if (reset) {m_rvalid, read_word} <= '0;
  end

  logic m_awid, m_awvalid, m_wvalid, m_wlast, m_bid, write_valid;
  logic [ 48:0] m_awaddr;
  logic [  7:0] m_awlen;
  logic [127:0] m_wdata;
  logic [15:0] m_wstrb, written;
  wire m_awready = random[36];
  wire m_wready = random[37];
  wire m_bvalid = write_valid && written != '0 && random[38];

  fifo #(
      .WIDTH(1),
      .DEPTH(16)
  ) writes (
      .clk,
      .reset,
      .in_valid (m_awvalid && m_awready),
      .in_ready (),
      .in_data  (m_awid),
      .out_valid(write_valid),
      .out_ready(m_bvalid),
      .out_data (m_bid)
  );

  always_ff @(posedge clk) begin
    written <= written + 16'(m_wvalid && m_wready && m_wlast) - 16'(m_bvalid);
    if (reset) written <= '0;
  end

  // --- The block ---

  logic sent_valid, sent_last, arready, rvalid;
  word_t sent;
  logic [1:0] bresp, rresp;
  logic [63:0] rdata;
  wire sent_ready = random[39];
  wire arvalid = random[40];

  allreduce #(
      .RANKS(8),
      .TIMEOUT(64),
      .LONGEST_TIMEOUT(64),
      .REPETITIONS(1)
  ) dut (
      .clk,
      .reset,
      .node(NODE),
      .s_axis_net_tvalid(net_valid),
      .s_axis_net_tready(net_ready),
      .s_axis_net_tdata(net_valid ? net_data : 'x),
      .s_axis_net_tlast(net_valid ? net_last : 1'bx),
      .m_axis_net_tvalid(sent_valid),
      .m_axis_net_tready(sent_ready),
      .m_axis_net_tdata(sent),
      .m_axis_net_tlast(sent_last),
      .m_axi_arid(m_arid),
      .m_axi_araddr(m_araddr),
      .m_axi_arlen(m_arlen),
      .m_axi_arsize(),
      .m_axi_arburst(),
      .m_axi_arvalid(m_arvalid),
      .m_axi_arready(m_arready),
      .m_axi_rid(m_rvalid ? m_rid : 1'bx),
      .m_axi_rdata(m_rvalid ? m_rdata : 'x),
      .m_axi_rresp('0),
      .m_axi_rlast(),
      .m_axi_rvalid(m_rvalid),
      .m_axi_rready(m_rready),
      .m_axi_awid(m_awid),
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
      .m_axi_bid(m_bvalid ? m_bid : 1'bx),
      .m_axi_bresp('0),
      .m_axi_bvalid(m_bvalid),
      .m_axi_bready(),
      .s_axil_awaddr(awvalid ? awaddr : 'x),
      .s_axil_awvalid(awvalid),
      .s_axil_awready(awready),
      .s_axil_wdata(awvalid ? wdata : 'x),
      .s_axil_wstrb(awvalid ? 8'hff : 'x),
      .s_axil_wvalid(awvalid),
      .s_axil_wready(wready),
      .s_axil_bresp(bresp),
      .s_axil_bvalid(bvalid),
      .s_axil_bready(random[41]),
      .s_axil_araddr(arvalid ? 13'({random[43:42] == '0, 5'd0}) : 'x),
      .s_axil_arvalid(arvalid),
      .s_axil_arready(arready),
      .s_axil_rdata(rdata),
      .s_axil_rresp(rresp),
      .s_axil_rvalid(rvalid),
      .s_axil_rready(random[44]),
      .state
  );

  wire [9:0] handshakes = {
    net_ready, sent_valid, m_arvalid, m_awvalid, m_wvalid, awready, wready, bvalid, arready, rvalid
  };

  // A run in which nothing comes about says nothing: states, packets, operations.
  logic [15:0] cycle;
  logic [6:0] states;
  logic [5:0] kinds;
  // Behind the header of a packet.
  logic sends;
  wire header_t sent_header = header_t'(sent);

  always_ff @(posedge clk) begin
    cycle <= cycle + 1'b1;
    states[state] <= 1'b1;
    if (sent_valid && sent_ready) begin
      sends <= !sent_last;
      if (!sends) kinds[3'(sent_header.kind-CONTRIBUTION)] <= 1'b1;
    end
    if (reset) {cycle, states, kinds, sends} <= '0;

    if (!reset) begin
      assert (cycle != 16'd800 || states == States && kinds == Kinds && number >= group + 32'd3);
      assert (is_known(256'({handshakes, state})));
      assert (!sent_valid || is_known(256'({sent, sent_last})));
      assert (!m_arvalid || is_known(256'({m_arid, m_araddr, m_arlen})));
      assert (!m_rvalid || is_known(256'(m_rready)));
      assert (!m_awvalid || is_known(256'({m_awid, m_awaddr, m_awlen})));
      assert (!m_wvalid || is_known(256'({m_wdata, m_wstrb, m_wlast})));
      assert (!bvalid || is_known(256'(bresp)));
      assert (!rvalid || is_known(256'({rresp, rdata})));
    end
  end
endmodule

`default_nettype wire

// The packetizer from registers and memories that hold anything, but for the wheel of its timers: after its reset no
// output that counts is unknown, whatever comes. rtl/unknown.py simulates it with X.
//
//   random ─┬─► PDIDs, then payload and descriptor of any channel, or its clearing; loads ──► dut ──► known: handshakes,
//           ├─► ports that are not ready                                                      │  ▲    and what they carry
//           └─► answers of all kinds, damaged, late or missing ◄───────── packets ────────────┘  │
//                  └─────────────────────────────────────────────────────────────────────────────┘

`default_nettype none

module packetizer_unknown
  import exanet::*;
  import surroundings::*;
(
    input wire logic clk,
    input wire logic reset
);
  localparam logic [18:0] System = 19'h4_0000;

  logic [63:0] random;

  always_ff @(posedge clk) random <= reset ? Seed : xorshift(random);

  // --- Stores: PDIDs of both pages, then four words of payload and the descriptor of a channel, or its clearing ---

  logic [1:0] opened;
  logic [2:0] step, channel;
  logic [  9:0] size;
  logic [127:0] data;
  logic [ 31:0] number;
  logic stored, wready, clears;
  header_t descriptor;
  logic [18:0] address;
  logic [127:0] word;

  wire [18:0] place = {6'd0, channel[2], 2'd0, channel[1:0], 8'd0};

  always_comb begin
    descriptor = '{node: 22'd7, kind: SMALL, size: size, default: '0};
    address = place | 19'({step, 4'd0});
    word = data;
    if (step == 3'd4) word = descriptor;
    if (clears) address = {6'd0, channel[2], 6'b100100, channel[1:0], 4'd0};
    if (!opened[1]) begin
      address = System | 19'({opened[0], 12'd0});
      word = 128'(opened[0]);
    end
  end

  always_ff @(posedge clk) begin
    if (stored) begin
      data <= {random, ~random};
      if (!opened[1]) opened <= opened + 1'b1;
      else if (clears || step == 3'd4) begin
        step <= '0;
        channel <= random[2:0];
        clears <= random[4:3] == '0;
        size <= 10'(random[10:5]) + 10'(random[10:5] != '0 && random[11]);
        number <= number + 1'b1;
      end else step <= step + 1'b1;
    end
    if (reset) begin
      {opened, step, channel, clears, size, number} <= '0;
      data <= {Seed, Seed};
    end
  end

  // --- Answers: to one packet at a time ---

  logic net_valid, net_last, answer_ready;
  word_t net_data;
  logic [1:0] left;
  logic [95:0] named;
  kind_t kind;
  logic damaged;
  logic [7:0] wait_left;
  header_t header;
  wire net_ready = random[20];
  wire answers = left != '0 && wait_left == '0;
  wire [31:0] crc = crc_footer(crc_word(CrcStart, word_t'(header)), named);

  always_comb header = '{kind: kind, source: 22'd7, node: 22'd5, default: '0};

  always_ff @(posedge clk) begin
    if (wait_left != '0) wait_left <= wait_left - 1'b1;
    if (answers && answer_ready) left <= left - 1'b1;
    if (net_valid && net_ready && net_last && left == '0 && random[23:21] != '0) begin
      left <= 2'd2;
      named <= net_data[127:32];
      kind <= random[25:24] == '0 ? REFUSED_FULL : ACKNOWLEDGEMENT;
      damaged <= random[28:26] == '0;
      wait_left <= random[31:29] == '0 ? 8'd60 : 8'(random[32:31]);
    end
    if (reset) {left, wait_left} <= '0;
  end

  // --- The block ---

  logic awready, bvalid, arready, rvalid, rlast, change_valid;
  logic [7:0] bid, rid;
  logic [1:0] bresp, rresp;
  logic [127:0] rdata;
  logic [2:0] change_channel, change_state;
  assign stored = awready;

  packetizer #(
      .INTERFACES(2),
      .TIMEOUT(40),
      .LONGEST_TIMEOUT(80),
      .REPETITIONS(1)
  ) dut (
      .clk,
      .reset,
      .node(22'd5),
      .number,
      .s_axi_awid(8'd3),
      .s_axi_awaddr(address),
      .s_axi_awlen('0),
      .s_axi_awsize(3'd4),
      .s_axi_awburst(2'b01),
      .s_axi_awvalid(1'b1),
      .s_axi_awready(awready),
      .s_axi_wdata(word),
      .s_axi_wstrb('1),
      .s_axi_wlast(1'b1),
      .s_axi_wvalid(1'b1),
      .s_axi_wready(wready),
      .s_axi_bid(bid),
      .s_axi_bresp(bresp),
      .s_axi_bvalid(bvalid),
      .s_axi_bready(random[39]),
      .s_axi_arid(8'd4),
      .s_axi_araddr({6'd0, random[41], random[42], 11'd0}),
      .s_axi_arlen('0),
      .s_axi_arsize(3'd4),
      .s_axi_arburst(2'b01),
      .s_axi_arvalid(1'b1),
      .s_axi_arready(arready),
      .s_axi_rid(rid),
      .s_axi_rdata(rdata),
      .s_axi_rresp(rresp),
      .s_axi_rlast(rlast),
      .s_axi_rvalid(rvalid),
      .s_axi_rready(random[43]),
      .m_axis_net_tvalid(net_valid),
      .m_axis_net_tready(net_ready),
      .m_axis_net_tdata(net_data),
      .m_axis_net_tlast(net_last),
      .s_axis_net_tvalid(answers),
      .s_axis_net_tready(answer_ready),
      .s_axis_net_tdata(left == 2'd2 ? word_t'(header) : {named, crc ^ 32'(damaged)}),
      .s_axis_net_tlast(left == 2'd1),
      .change_valid,
      .change_channel,
      .change_state
  );

  wire [7:0] handshakes = {awready, wready, bvalid, arready, rvalid, net_valid, answer_ready, change_valid};

  // A run in which nothing comes about says nothing: packets, and changes to each state.
  logic [15:0] cycle, packets;
  logic [4:0] changed;

  always_ff @(posedge clk) begin
    cycle   <= cycle + 1'b1;
    packets <= packets + 16'(net_valid && net_ready && net_last);
    if (change_valid) changed[change_state] <= 1'b1;
    if (reset) begin
      cycle   <= '0;
      packets <= '0;
      changed <= '0;
    end

    if (!reset) begin
      assert (cycle != 16'd800 || packets >= 16'd16 && changed == '1);
      assert (is_known(256'(handshakes)));
      assert (!bvalid || is_known(256'({bid, bresp})));
      assert (!rvalid || is_known(256'({rid, rdata, rresp, rlast})));
      assert (!net_valid || is_known(256'({net_data, net_last})));
      assert (!change_valid || is_known(256'({change_channel, change_state})));
    end
  end
endmodule

`default_nettype wire

// The packetizer: makes one packet of what a process stores into a page, and watches over it until the receiver has
// answered.
//
//   stores ─► packetizer_pages ─ descriptor ─────────────────────────┐  payload ──────────┐
//   (AXI4)      ▲ status   │ post                                    ▼                    ▼
//               │          ├─────► packetizer_engine ─ made ─► packetizer_prepare ─► packetizer_transmit ─► network
//               │          ▼              ▲ repeat                 ▲ ongoing?             │ sent
//             packetizer_channels ────────┴────────────────────────┘◄─────────────────────┘
//               ▲ answered   ▲ due ── timers             packetizer_transmit_bus where a bus has 512 bits
//        network (ACK, NACK)
//
//                     ┌─── ACK ────► acknowledged
//   idle ─ post ─► ongoing ── NACK ──► negatively acknowledged ┬ clear ─► idle
//     ▲             │  ▲ └─ give up ─► timed out ──────────────┘
//     │             └──┘ repeat
//     └─ a channel that is answered or timed out is posted to again without further ado
//
// From TR-488 §4.4: 64 interfaces of 4 channels, each in a page of its own; the states; the last store, of size and
// destination, starts the engine; the packet carries the PDID that system software has set; timers in hardware. §5.1:
// up to 64 bytes. Ours: the places in the page, the cycles of the engine, the times of the timers and their doubling,
// which NACKs end a packet (all: the library posts again what it wants to), the identity by which an answer finds its
// channel.
//
// Cycles: a descriptor that is on the bus in cycle n - 1, with the engine idle, has its header on the network's bus in
// cycle n + ENGINE. Packets follow each other every ENGINE cycles. A header that was taken in cycle n and is not
// answered is due in cycle n + timeout.

`default_nettype none

module packetizer
  import exanet::*;
#(
    // Bits of the buses to the network: 128 or 512.
    parameter int DATA_WIDTH = 128,
    parameter int INTERFACES = 64,
    parameter int CHANNELS = 4,
    // Cycles of the engine for a packet.
    parameter int ENGINE = 9,
    // Cycles until a packet is repeated; each further wait is twice as long, up to LONGEST_TIMEOUT.
    parameter int TIMEOUT = 7500,
    parameter int LONGEST_TIMEOUT = 150_000,
    parameter int REPETITIONS = 16
) (
    input wire logic clk,
    input wire logic reset,

    // The node of this interface: the source of packets.
    input wire logic [21:0] node,
    // The number of the next message: counted for all blocks of the interface, taken with a descriptor.
    input wire logic [31:0] number,

    // Pages: see packetizer_pages.
    input  wire logic [  7:0] s_axi_awid,
    input  wire logic [ 18:0] s_axi_awaddr,
    input  wire logic [  7:0] s_axi_awlen,
    input  wire logic [  2:0] s_axi_awsize,
    input  wire logic [  1:0] s_axi_awburst,
    input  wire logic         s_axi_awvalid,
    output logic              s_axi_awready,
    input  wire logic [127:0] s_axi_wdata,
    input  wire logic [ 15:0] s_axi_wstrb,
    input  wire logic         s_axi_wlast,
    input  wire logic         s_axi_wvalid,
    output logic              s_axi_wready,
    output logic      [  7:0] s_axi_bid,
    output logic      [  1:0] s_axi_bresp,
    output logic              s_axi_bvalid,
    input  wire logic         s_axi_bready,
    input  wire logic [  7:0] s_axi_arid,
    input  wire logic [ 18:0] s_axi_araddr,
    input  wire logic [  7:0] s_axi_arlen,
    input  wire logic [  2:0] s_axi_arsize,
    input  wire logic [  1:0] s_axi_arburst,
    input  wire logic         s_axi_arvalid,
    output logic              s_axi_arready,
    output logic      [  7:0] s_axi_rid,
    output logic      [127:0] s_axi_rdata,
    output logic      [  1:0] s_axi_rresp,
    output logic              s_axi_rlast,
    output logic              s_axi_rvalid,
    input  wire logic         s_axi_rready,

    // Small messages.
    output logic                       m_axis_net_tvalid,
    input  wire logic                  m_axis_net_tready,
    output logic      [DATA_WIDTH-1:0] m_axis_net_tdata,
    output logic                       m_axis_net_tlast,

    // Answers.
    input  wire logic                  s_axis_net_tvalid,
    output logic                       s_axis_net_tready,
    input  wire logic [DATA_WIDTH-1:0] s_axis_net_tdata,
    input  wire logic                  s_axis_net_tlast,

    // The number of the message whose header is on the bus, and a channel that goes to another state: for a
    // comparison with the model.
    output logic [                             31:0] offered_number,
    output logic                                     change_valid,
    output logic [$clog2(INTERFACES * CHANNELS)-1:0] change_channel,
    output logic [                              2:0] change_state
);
  localparam int ChannelBits = $clog2(INTERFACES * CHANNELS);
  // Time is counted in cycles, modulo more than any wait.
  localparam int TimeBits = 28;
  // A post by the number of its message, below the count of posts to its channel: a message that was refused is posted
  // again by its number, and packets of the post before may be in the queues.
  localparam int CountBits = 3;
  localparam int PostBits = CountBits + 32;

  if (DATA_WIDTH != 128 && DATA_WIDTH != 512) $fatal(1, "buses of %0d bits, not 128 or 512", DATA_WIDTH);
  if (CHANNELS != 4) $fatal(1, "a page has places for 4 channels, not %0d", CHANNELS);
  if (INTERFACES < 2 || INTERFACES > 64 || INTERFACES != 1 << $clog2(INTERFACES))
    $fatal(1, "%0d interfaces: 2, 4, … 64 have pages", INTERFACES);
  if (ENGINE < 7 || ENGINE > 63) $fatal(1, "an engine of %0d cycles: the logic takes 7 to 63", ENGINE);
  if (TIMEOUT < 2 * INTERFACES * CHANNELS || LONGEST_TIMEOUT < TIMEOUT || LONGEST_TIMEOUT >= 1 << (TimeBits - 1))
    $fatal(1, "time-outs of %0d to %0d cycles", TIMEOUT, LONGEST_TIMEOUT);
  if (REPETITIONS > 31) $fatal(1, "%0d repetitions are counted in 5 bits", REPETITIONS);

  logic clearing;
  logic [ChannelBits-1:0] clear_address;
  logic [TimeBits-1:0] now;

  logic post_valid, post_ready;
  logic [ChannelBits-1:0] post_channel;
  logic [  CountBits-1:0] post_count;
  logic clear_valid, clear_ready;
  logic [ChannelBits-1:0] clear_channel;
  logic load_valid, load_ready, loaded;
  logic [ChannelBits-1:0] load_channel;
  logic [2:0] loaded_state;

  logic answer_valid, answer_ready, answer_accepted;
  logic [ChannelBits-1:0] answer_channel;
  logic [31:0] answer_number;

  logic sent_valid, sent_ready;
  logic [ChannelBits-1:0] sent_channel;
  logic [PostBits-1:0] sent_post;
  wire [31:0] sent_number = sent_post[31:0];
  assign offered_number = sent_number;

  // A packet that waits for the network is withdrawn when its channel is answered.
  wire left_valid = change_valid && change_state > 3'd1;

  logic due_valid;
  logic [ChannelBits-1:0] due_channel;
  logic [TimeBits-1:0] due_time;
  logic [ChannelBits-1:0] scanned_channel;
  logic scanned_waits;
  logic [TimeBits-1:0] scanned_deadline;

  logic repeat_valid, start_ready;
  logic [ChannelBits-1:0] repeat_channel;
  logic [PostBits-1:0] repeat_post;
  logic channels_take_post;
  wire [PostBits-1:0] post = {post_count, number};

  logic made_valid, made_ready;
  logic [ChannelBits-1:0] made_channel;
  logic [PostBits-1:0] made_post;

  logic [ChannelBits-1:0] looked_up_channel;
  logic looked_up, looked_up_ongoing;
  logic [PostBits-1:0] looked_up_post;
  logic prepared, taken, begun;
  header_t descriptor, header;
  // All words of a channel lie side by side where the bus has as many.
  localparam int Lanes = DATA_WIDTH / 128;
  logic [$clog2(INTERFACES * CHANNELS * SmallWords / Lanes)-1:0] payload_address;
  logic [DATA_WIDTH-1:0] payload;

  logic word_valid, word_ready, word_last;
  word_t word;

  // A post goes to the engine and to the table in one cycle, behind a repeat of that cycle.
  assign post_ready = start_ready && channels_take_post && !repeat_valid;

  packetizer_pages #(
      .DATA_WIDTH(DATA_WIDTH),
      .INTERFACES(INTERFACES),
      .CHANNELS  (CHANNELS),
      .COUNT_BITS(CountBits)
  ) pages (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .awid(s_axi_awid),
      .awaddr(s_axi_awaddr),
      .awlen(s_axi_awlen),
      .awsize(s_axi_awsize),
      .awburst(s_axi_awburst),
      .awvalid(s_axi_awvalid),
      .awready(s_axi_awready),
      .wdata(s_axi_wdata),
      .wstrb(s_axi_wstrb),
      .wlast(s_axi_wlast),
      .wvalid(s_axi_wvalid),
      .wready(s_axi_wready),
      .bid(s_axi_bid),
      .bresp(s_axi_bresp),
      .bvalid(s_axi_bvalid),
      .bready(s_axi_bready),
      .arid(s_axi_arid),
      .araddr(s_axi_araddr),
      .arlen(s_axi_arlen),
      .arsize(s_axi_arsize),
      .arburst(s_axi_arburst),
      .arvalid(s_axi_arvalid),
      .arready(s_axi_arready),
      .rid(s_axi_rid),
      .rdata(s_axi_rdata),
      .rresp(s_axi_rresp),
      .rlast(s_axi_rlast),
      .rvalid(s_axi_rvalid),
      .rready(s_axi_rready),
      .post_valid,
      .post_ready,
      .post_channel,
      .post_count,
      .clear_valid,
      .clear_ready,
      .clear_channel,
      .load_valid,
      .load_ready,
      .load_channel,
      .loaded,
      .loaded_state,
      .looked_up_channel,
      .descriptor,
      .payload_address,
      .payload
  );

  packetizer_engine #(
      .CHANNEL_BITS(ChannelBits),
      .POST_BITS(PostBits),
      .ENGINE(ENGINE)
  ) engine (
      .clk,
      .reset,
      .start_valid  (repeat_valid || (post_valid && post_ready)),
      .start_ready,
      .start_channel(repeat_valid ? repeat_channel : post_channel),
      .start_post   (repeat_valid ? repeat_post : post),
      .made_valid,
      .made_ready,
      .made_channel,
      .made_post
  );

  packetizer_prepare #(
      .CHANNEL_BITS(ChannelBits),
      .POST_BITS(PostBits)
  ) prepare (
      .clk,
      .reset,
      .node,
      .made_valid,
      .made_ready,
      .made_channel,
      .made_post,
      .looked_up_channel,
      .looked_up,
      .looked_up_ongoing,
      .looked_up_post,
      .descriptor,
      .left_valid,
      .left_channel(change_channel),
      .begun,
      .prepared,
      .taken,
      .header,
      .channel(sent_channel),
      .post(sent_post)
  );

  if (DATA_WIDTH == 128) begin : g_words
    packetizer_transmit #(
        .CHANNEL_BITS(ChannelBits)
    ) transmit (
        .clk,
        .reset,
        .prepared,
        .taken,
        .header,
        .channel(sent_channel),
        .number(sent_number),
        .payload_address,
        .payload,
        .sent_valid,
        .sent_ready,
        .net_valid(m_axis_net_tvalid),
        .net_ready(m_axis_net_tready),
        .net_data(m_axis_net_tdata),
        .net_last(m_axis_net_tlast)
    );
    // The next packet is prepared when the header of the one before has been taken.
    assign begun = 1'b0;
    wire unused_ok = &{1'b0, looked_up};
  end else begin : g_bus
    assign payload_address = looked_up_channel;
    packetizer_transmit_bus #(
        .CHANNEL_BITS(ChannelBits)
    ) transmit (
        .clk,
        .reset,
        .prepared,
        .taken,
        .begun,
        .header,
        .channel(sent_channel),
        .number(sent_number),
        .looked_up,
        .bytes(descriptor.size),
        .payload,
        .sent_valid,
        .sent_ready,
        .net_valid(m_axis_net_tvalid),
        .net_ready(m_axis_net_tready),
        .net_data(m_axis_net_tdata),
        .net_last(m_axis_net_tlast)
    );
  end

  always_ff @(posedge clk) begin
    if (!reset)
      assert (!repeat_valid || start_ready)
      else $error("a repeat without a place");
  end

  stream_words #(
      .DATA_WIDTH(DATA_WIDTH)
  ) answer_words (
      .clk,
      .reset,
      .in_valid (s_axis_net_tvalid),
      .in_ready (s_axis_net_tready),
      .in_data  (s_axis_net_tdata),
      .in_last  (s_axis_net_tlast),
      .out_valid(word_valid),
      .out_ready(word_ready),
      .out_data (word),
      .out_last (word_last)
  );

  packetizer_answers #(
      .INTERFACES(INTERFACES),
      .CHANNELS  (CHANNELS)
  ) answers (
      .clk,
      .reset,
      .net_valid(word_valid),
      .net_ready(word_ready),
      .net_data (word),
      .net_last (word_last),
      .answer_valid,
      .answer_ready,
      .answer_channel,
      .answer_number,
      .answer_accepted
  );

  packetizer_channels #(
      .CHANNEL_BITS(ChannelBits),
      .POST_BITS(PostBits),
      .TIME_BITS(TimeBits),
      .TIMEOUT(TIMEOUT),
      .LONGEST_TIMEOUT(LONGEST_TIMEOUT),
      .REPETITIONS(REPETITIONS)
  ) channels (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .now,
      .due_valid,
      .due_channel,
      .due_time,
      .answer_valid,
      .answer_ready,
      .answer_channel,
      .answer_number,
      .answer_accepted,
      .sent_valid,
      .sent_ready,
      .sent_channel,
      .sent_post,
      .post_valid(post_valid && post_ready),
      .post_ready(channels_take_post),
      .post_channel,
      .post,
      .clear_valid,
      .clear_ready,
      .clear_channel,
      .load_valid,
      .load_ready,
      .load_channel,
      .loaded,
      .loaded_state,
      .repeat_valid,
      .repeat_channel,
      .repeat_post,
      .looked_up_channel,
      .looked_up_ongoing,
      .looked_up_post,
      .scanned_channel,
      .scanned_waits,
      .scanned_deadline,
      .change_valid,
      .change_channel,
      .change_state
  );

  timers #(
      .CHANNEL_BITS(ChannelBits),
      .TIME_BITS(TimeBits)
  ) channel_timers (
      .clk,
      .reset(reset || clearing),
      .now,
      .scanned_channel,
      .scanned_waits,
      .scanned_deadline,
      .due_valid,
      .due_ready(1'b1),
      .due_channel,
      .due_time
  );
endmodule

`default_nettype wire

// The pages of the packetizer: what processes store into them and load from them, over AXI4.
//
//   offset in the page of an interface        what
//   c·256 + 0 … 63    w    payload of channel c, first byte first
//   c·256 + 64        w    descriptor of channel c: a header whose PDID and source do not count. It starts the engine.
//                          The packet is a request of a read where its kind is, and else a small message. It has the
//                          PDID that the interface has now, however late it is made or repeated
//   0x800             r    the states of the channels, a byte each
//   0x900 + c·16      w    channel c, refused or timed out, is idle again
//   and of 2^18 + page, which is the system's
//   0                 w    PDID of the interface
//
// Bursts are of any length, incrementing, of whole words. What is stored elsewhere, and a descriptor of more than 64
// bytes, is answered with SLVERR and changes nothing. A descriptor for a channel that is ongoing changes nothing
// either: its process sees in the status that the channel is.
//
//   loads:  LISTEN ── address ──► LOAD ── states of the page's channels, one a turn ──► ANSWER ── last beat ──► LISTEN

`default_nettype none

module packetizer_pages
  import exanet::*;
#(
    parameter  int DATA_WIDTH    = 128,
    parameter  int INTERFACES    = 64,
    parameter  int CHANNELS      = 4,
    parameter  int COUNT_BITS    = 3,
    localparam int InterfaceBits = $clog2(INTERFACES),
    localparam int ChannelBits   = $clog2(INTERFACES * CHANNELS),
    localparam int Lanes         = DATA_WIDTH / 128,
    localparam int PayloadBits   = $clog2(INTERFACES * CHANNELS * SmallWords / Lanes)
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic                   clearing,
    input wire logic [ChannelBits-1:0] clear_address,

    input  wire logic [  7:0] awid,
    input  wire logic [ 18:0] awaddr,
    input  wire logic [  7:0] awlen,
    input  wire logic [  2:0] awsize,
    input  wire logic [  1:0] awburst,
    input  wire logic         awvalid,
    output logic              awready,
    input  wire logic [127:0] wdata,
    input  wire logic [ 15:0] wstrb,
    input  wire logic         wlast,
    input  wire logic         wvalid,
    output logic              wready,
    output logic      [  7:0] bid,
    output logic      [  1:0] bresp,
    output logic              bvalid,
    input  wire logic         bready,
    input  wire logic [  7:0] arid,
    input  wire logic [ 18:0] araddr,
    input  wire logic [  7:0] arlen,
    input  wire logic [  2:0] arsize,
    input  wire logic [  1:0] arburst,
    input  wire logic         arvalid,
    output logic              arready,
    output logic      [  7:0] rid,
    output logic      [127:0] rdata,
    output logic      [  1:0] rresp,
    output logic              rlast,
    output logic              rvalid,
    input  wire logic         rready,

    output logic                        post_valid,
    input  wire logic                   post_ready,
    output logic      [ChannelBits-1:0] post_channel,
    // Posts to the channel before, modulo.
    output logic      [ COUNT_BITS-1:0] post_count,
    output logic                        clear_valid,
    input  wire logic                   clear_ready,
    output logic      [ChannelBits-1:0] clear_channel,
    output logic                        load_valid,
    input  wire logic                   load_ready,
    output logic      [ChannelBits-1:0] load_channel,
    input  wire logic                   loaded,
    input  wire logic [            2:0] loaded_state,

    // What transmit looks up: there one cycle later.
    input  wire logic [ChannelBits-1:0] looked_up_channel,
    output header_t                     descriptor,
    input  wire logic [PayloadBits-1:0] payload_address,
    output logic      [ DATA_WIDTH-1:0] payload
);
  // --- Stores: a word is taken with its address, where it begins a burst ---

  logic in_burst, burst_failed;
  logic [18:0] next_address;
  logic [7:0] burst_id;

  wire [18:0] address = in_burst ? next_address : awaddr;
  wire word_there = wvalid && (in_burst || awvalid);
  wire has_page = {1'b0, address[17:12]} < 7'(INTERFACES);
  wire [InterfaceBits-1:0] page = address[12+:InterfaceBits];
  wire in_channel = has_page && !address[18] && !address[11] && address[10] == 1'b0;
  wire is_payload = in_channel && address[7:6] == 2'b00;
  wire header_t stored = header_t'(wdata);
  wire is_descriptor = in_channel && address[7:4] == 4'd4 && wstrb == '1 && stored.size <= 10'(SmallBytes);
  wire is_clear = has_page && !address[18] && address[11:6] == 6'b100100;
  wire is_pdid = has_page && address[18] && address[11:4] == '0 && wstrb[1:0] == 2'b11;
  wire is_known = is_payload || is_descriptor || is_clear || is_pdid;

  logic answers_ready;
  wire word_ready = answers_ready && !clearing && (!is_descriptor || post_ready) && (!is_clear || clear_ready);
  wire taken = word_there && word_ready;

  assign wready = word_ready && (in_burst || awvalid);
  assign awready = !in_burst && wvalid && word_ready;

  assign post_valid = word_there && answers_ready && !clearing && is_descriptor;
  assign post_channel = {page, address[9:8]};
  assign clear_valid = word_there && answers_ready && !clearing && is_clear;
  assign clear_channel = {page, address[5:4]};

  always_ff @(posedge clk) begin
    if (taken) begin
      in_burst <= !wlast;
      next_address <= address + 19'd16;
      burst_id <= in_burst ? burst_id : awid;
      burst_failed <= (in_burst && burst_failed || !is_known) && !wlast;
    end
    if (reset) begin
      in_burst <= 1'b0;
      burst_failed <= 1'b0;
    end
  end

  fifo #(
      .WIDTH(9),
      .DEPTH(16)
  ) store_answers (
      .clk,
      .reset,
      .in_valid (taken && wlast),
      .in_ready (answers_ready),
      .in_data  ({in_burst ? burst_id : awid, in_burst && burst_failed || !is_known}),
      .out_valid(bvalid),
      .out_ready(bready),
      .out_data ({bid, bresp[1]})
  );
  assign bresp[0] = 1'b0;

  wire [ChannelBits+1:0] payload_place = {page, address[9:8], address[5:4]};
  wire [16*Lanes-1:0] payload_strobe = (16 * Lanes)'(wstrb) << 16 * (payload_place % (ChannelBits + 2)'(Lanes));

  ram #(
      .WIDTH(DATA_WIDTH),
      .DEPTH(INTERFACES * CHANNELS * SmallWords / Lanes),
      .LANE (8)
  ) payloads (
      .clk,
      .write(taken && is_payload ? payload_strobe : '0),
      .write_address(PayloadBits'(payload_place / (ChannelBits + 2)'(Lanes))),
      .write_data({Lanes{wdata}}),
      .read_address(payload_address),
      .read_data(payload)
  );

  logic [15:0] pdids[INTERFACES];
  logic [COUNT_BITS-1:0] counts[INTERFACES*CHANNELS];
  header_t posted;
  assign post_count = counts[post_channel];

  always_comb begin
    posted = stored;
    posted.pdid = pdids[page];
  end

  always_ff @(posedge clk) begin
    if (clearing || taken && is_pdid)
      pdids[clearing?clear_address[ChannelBits-1-:InterfaceBits] : page] <= clearing ? '0 : wdata[15:0];
    if (clearing || taken && is_descriptor)
      counts[clearing?clear_address : post_channel] <= clearing ? '0 : post_count + 1'b1;
  end

  ram #(
      .WIDTH(128),
      .DEPTH(INTERFACES * CHANNELS)
  ) descriptors (
      .clk,
      .write(taken && is_descriptor),
      .write_address(post_channel),
      .write_data(posted),
      .read_address(looked_up_channel),
      .read_data(descriptor)
  );

  // --- Loads: the states of a page's channels, one after the other ---

  typedef enum logic [1:0] {
    LISTEN,
    LOAD,
    ANSWER
  } load_state_t;

  load_state_t load_state;
  logic [InterfaceBits-1:0] load_page;
  logic load_failed;
  logic [2:0] asked;
  logic [1:0] got;
  logic [7:0] words_left;

  assign arready = load_state == LISTEN;
  assign load_valid = load_state == LOAD && !asked[2];
  assign load_channel = {load_page, asked[1:0]};
  assign rvalid = load_state == ANSWER;
  assign rlast = words_left == '0;
  assign rresp = load_failed ? 2'b10 : 2'b00;

  always_ff @(posedge clk) begin
    unique case (load_state)
      LISTEN:
      if (arvalid) begin
        load_state <= LOAD;
        rid <= arid;
        rdata <= '0;
        load_page <= araddr[12+:InterfaceBits];
        load_failed <= araddr[18] || araddr[11:4] != 8'h80 || arlen != '0 || {1'b0, araddr[17:12]} >= 7'(INTERFACES);
        asked <= '0;
        got <= '0;
        words_left <= arlen;
      end
      LOAD: begin
        if (load_valid && load_ready) asked <= asked + 1'b1;
        if (loaded) begin
          rdata[8*got+:8] <= load_failed ? '0 : 8'(loaded_state);
          got <= got + 1'b1;
          if (got == 2'd3) load_state <= ANSWER;
        end
      end
      default:
      if (rready) begin
        words_left <= words_left - 1'b1;
        if (rlast) load_state <= LISTEN;
      end
    endcase
    if (reset) load_state <= LISTEN;
  end

  // Bursts increment and have whole words: nothing else reaches a page.
  wire unused_ok = &{1'b0, awlen, awsize, awburst, arsize, arburst, araddr[3:0], address[3:0], stored, clear_address};
endmodule

`default_nettype wire

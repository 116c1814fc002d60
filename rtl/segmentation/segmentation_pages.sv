// The pages of the send unit: descriptors that processes store into channels, and states that they load, over AXI4;
// and descriptors of requests for their read channels.
//
//   offset in a page       what
//   c·64                w  source of channel c: address in bits 38 … 0, bytes of the transfer in bits 95 … 64
//   c·64 + 16           w  destination: a header of which node, rank, address and page count
//   c·64 + 32           w  reserved
//   c·64 + 48           w  starts the transfer
//   c·64                r  the state of channel c: see segmentation_agent
//   and of 2^16 + page, which is the system's
//   0                   w  PDID of the page
//   16                  w  the number of a channel: the memory that it met a page fault in is mapped
//
// A page has 32 write channels and behind them 32 read channels. Bursts are of any length, incrementing, of whole
// words. What is stored elsewhere, or into a channel that is not available, is answered with SLVERR and changes nothing.
// So is what is stored into a read channel: those are segmentation_requests's, whose descriptor is stored as a whole in
// one cycle. In that cycle stores of processes wait: it comes once in ten cycles at most.
//
//   channel:  available ── descriptor, or request ──► posted … segmentation_agent … freed ──► available
//   loads:    LISTEN ── address ──► LOAD ── state of the channel ──► ANSWER ── last beat ──► LISTEN

`default_nettype none

module segmentation_pages
  import exanet::*;
#(
    parameter  int PAGES       = 16,
    localparam int PageBits    = $clog2(PAGES),
    localparam int ChannelBits = PageBits + 6
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic                   clearing,
    input wire logic [ChannelBits-1:0] clear_address,

    input  wire logic [  7:0] awid,
    input  wire logic [ 16:0] awaddr,
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
    input  wire logic [ 16:0] araddr,
    input  wire logic [  7:0] arlen,
    input  wire logic         arvalid,
    output logic              arready,
    output logic      [  7:0] rid,
    output logic      [127:0] rdata,
    output logic      [  1:0] rresp,
    output logic              rlast,
    output logic              rvalid,
    input  wire logic         rready,

    // Requests: the read channels of a page that are free, and its PDID, there one cycle later; a descriptor.
    input  wire logic  [   PageBits-1:0] asked_page,
    output logic       [           31:0] free_channels,
    output logic       [           15:0] asked_pdid,
    input  wire logic                    request_valid,
    output logic                         request_ready,
    input  wire logic  [ChannelBits-1:0] request_channel,
    input  wire word_t                   request_source,
    input  wire word_t                   request_destination,

    // A descriptor is whole; it is there two cycles after it was stored.
    output logic                        post_valid,
    input  wire logic                   post_ready,
    output logic      [ChannelBits-1:0] post_channel,
    output logic                        mapped_valid,
    input  wire logic                   mapped_ready,
    output logic      [ChannelBits-1:0] mapped_channel,
    output logic                        load_valid,
    input  wire logic                   load_ready,
    output logic      [ChannelBits-1:0] load_channel,
    input  wire logic                   loaded,
    input  wire logic [            7:0] loaded_state,
    // A channel is free again.
    input  wire logic                   freed,
    input  wire logic [ChannelBits-1:0] freed_channel,

    // The descriptor of a channel: there one cycle later.
    input  wire logic [ChannelBits-1:0] looked_up_channel,
    output logic      [           38:0] source,
    output logic      [           31:0] size,
    output header_t                     destination,
    output logic      [           15:0] pdid
);
  localparam int Channels = PAGES * 64;
  // Write and read channels of each page.
  localparam int Groups = PAGES * 2;

  // --- Stores: a word is taken with its address, where it begins a burst ---

  logic in_burst, burst_failed;
  logic [16:0] next_address;
  logic [7:0] burst_id;

  wire [16:0] address = in_burst ? next_address : awaddr;
  wire word_there = wvalid && (in_burst || awvalid);
  wire has_page = {1'b0, address[15:12]} < 5'(PAGES);
  wire [PageBits-1:0] page = address[12+:PageBits];
  // The descriptor of a request goes before a word of a process, which waits.
  wire [ChannelBits-1:0] channel = request_valid ? request_channel : {page, address[11:6]};

  // Free: posted as often as it was freed. A bit for each channel of a group.
  logic [31:0] posts[Groups];
  logic [31:0] frees[Groups];
  wire [ChannelBits-6:0] group = channel[ChannelBits-1:5];
  wire [ChannelBits-6:0] freed_group = freed_channel[ChannelBits-1:5];
  wire [31:0] taken_channels = posts[group] ^ frees[group];
  wire is_free = !taken_channels[channel[4:0]];
  wire may_be_stored = !address[11];

  wire in_channel = has_page && !address[16] && may_be_stored && is_free && wstrb == '1;
  wire is_source = in_channel && address[5:4] == 2'd0;
  wire is_destination = in_channel && address[5:4] == 2'd1;
  wire is_start = in_channel && address[5:4] == 2'd3;
  wire is_pdid = has_page && address[16] && address[11:4] == 8'd0 && wstrb[1:0] == 2'b11;
  wire is_mapped = has_page && address[16] && address[11:4] == 8'd1 && wstrb[0];
  wire is_known = in_channel || is_pdid || is_mapped;

  logic answers_ready, start_ready;
  wire may_be_taken = word_there && answers_ready && !clearing && !request_valid;
  wire word_ready = answers_ready && !clearing && !request_valid && (!is_start || start_ready)
      && (!is_mapped || mapped_ready);
  wire taken = word_there && word_ready;
  wire request_taken = request_valid && start_ready;
  wire starts = taken && is_start || request_taken;

  assign wready = word_ready && (in_burst || awvalid);
  assign awready = !in_burst && wvalid && word_ready;
  assign mapped_valid = may_be_taken && is_mapped;
  assign mapped_channel = {page, wdata[5:0]};

  always_ff @(posedge clk) begin
    if (taken) begin
      in_burst <= !wlast;
      next_address <= address + 17'd16;
      burst_id <= in_burst ? burst_id : awid;
      burst_failed <= (in_burst && burst_failed || !is_known) && !wlast;
    end
    if (reset) begin
      in_burst <= 1'b0;
      burst_failed <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (clearing || starts)
      posts[clearing?clear_address[ChannelBits-1:5] : group] <= clearing ? '0 : posts[group] ^ (32'd1 << channel[4:0]);
    if (clearing || freed)
      frees[clearing?clear_address[ChannelBits-1:5] : freed_group] <=
          clearing ? '0 : frees[freed_group] ^ (32'd1 << freed_channel[4:0]);
    free_channels <= ~(posts[{asked_page, 1'b1}] ^ frees[{asked_page, 1'b1}]);
    if (!reset)
      assert (!starts || is_free)
      else $error("a channel is posted twice");
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

  // The words lie in the memories a cycle later than they were taken, and so does a post.
  logic stored_start, posts_ready;
  logic [ChannelBits-1:0] stored_channel;
  assign start_ready   = !stored_start || posts_ready;
  assign request_ready = start_ready;

  always_ff @(posedge clk) begin
    if (posts_ready) stored_start <= 1'b0;
    if (starts) begin
      stored_start   <= 1'b1;
      stored_channel <= channel;
    end
    if (reset) stored_start <= 1'b0;
  end

  fifo #(
      .WIDTH(ChannelBits),
      .DEPTH(16)
  ) posted (
      .clk,
      .reset,
      .in_valid (stored_start),
      .in_ready (posts_ready),
      .in_data  (stored_channel),
      .out_valid(post_valid),
      .out_ready(post_ready),
      .out_data (post_channel)
  );

  wire word_t stored_source = request_valid ? request_source : wdata;

  ram #(
      .WIDTH(71),
      .DEPTH(Channels)
  ) sources (
      .clk,
      .write(taken && is_source || request_taken),
      .write_address(channel),
      .write_data({stored_source[95:64], stored_source[38:0]}),
      .read_address(looked_up_channel),
      .read_data({size, source})
  );

  wire header_t stored = header_t'(request_valid ? request_destination : wdata);
  logic [21:0] node;
  logic [2:0] rank;
  logic [38:0] place;
  logic [7:0] of_page;

  ram #(
      .WIDTH(72),
      .DEPTH(Channels)
  ) destinations (
      .clk,
      .write(taken && is_destination || request_taken),
      .write_address(channel),
      .write_data({stored.node, stored.rank, stored.address, stored.page}),
      .read_address(looked_up_channel),
      .read_data({node, rank, place, of_page})
  );
  assign destination = '{node: node, rank: rank, address: place, page: of_page, default: '0};

  logic [15:0] pdids[PAGES];

  always_ff @(posedge clk) begin
    if (clearing || taken && is_pdid)
      pdids[clearing?clear_address[ChannelBits-1-:PageBits] : page] <= clearing ? '0 : wdata[15:0];
    pdid <= pdids[looked_up_channel[ChannelBits-1-:PageBits]];
    asked_pdid <= pdids[asked_page];
  end

  // --- Loads ---

  typedef enum logic [1:0] {
    LISTEN,
    LOAD,
    ANSWER
  } load_state_t;

  load_state_t load_state;
  logic load_failed, asked;
  logic [7:0] words_left;

  assign arready = load_state == LISTEN;
  assign load_valid = load_state == LOAD && !asked;
  assign rvalid = load_state == ANSWER;
  assign rlast = words_left == '0;
  assign rresp = load_failed ? 2'b10 : 2'b00;

  always_ff @(posedge clk) begin
    unique case (load_state)
      LISTEN:
      if (arvalid) begin
        load_state <= LOAD;
        rid <= arid;
        load_channel <= {araddr[12+:PageBits], araddr[11:6]};
        load_failed <= araddr[16] || araddr[5:4] != 2'd0 || arlen != '0 || {1'b0, araddr[15:12]} >= 5'(PAGES);
        asked <= 1'b0;
        words_left <= arlen;
      end
      LOAD: begin
        if (load_ready) asked <= 1'b1;
        if (loaded) begin
          rdata <= load_failed ? '0 : 128'(loaded_state);
          load_state <= ANSWER;
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

  wire unused_ok = &{1'b0, clear_address, araddr[3:0], address[3:0], stored, stored_source};
endmodule

`default_nettype wire

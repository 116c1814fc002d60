// The send unit of the RDMA engine: reads what a process names in a descriptor, or another node in a request, and sends
// it in cells, block by block, until each block is acknowledged.
//
//   network ─► segmentation_requests ─► network (ACK, NACK per request)
//   (requests of reads)  │ descriptor
//                        ▼
//   descriptors ─► segmentation_pages ─ post ─► segmentation_agent ─ cell ─┬─► segmentation_read ◄─► memory (AXI4)
//   (AXI4)             ▲ state                   ▲       ▲   ▲             │           │ whole
//                      └──────── load ───────────┘       │   │ sent        ▼           ▼
//                                              answers ──┘   └─── cells ─► segmentation_transmit ─► network
//                                                 ▲    due ── timers
//                                     network (ACK, NACK per block)
//
// From TR-488 §4.5: 16 pages of 32 write and 32 read channels, descriptors of 64 bytes, blocks of 16 KB, cells that go
// when all their payload has come, blocks without acknowledgement sent again; §4.2: cells of 256 bytes, bursts of 16
// words, eight outstanding; §4.5.1: the mailbox for requests of reads; §4.5.2: the agent in hardware. Ours: the words
// of a descriptor, two blocks outstanding per channel, a buffer for each burst, OVERHEAD, the times of the timers, the
// turns. Addresses are those of whole words of memory's bus: a descriptor or a request with another is given up.
//
// Read channels are the unit's own: requests get them, and what a process stores into one is refused.
//
// Cycles: a descriptor whose last word is on the bus in cycle n - 1 has the read of its first cell on the bus in cycle
// n + 7, and that of the eighth in cycle n + 14. A cell whose last word comes from memory in cycle n - 1 has its header
// on the network's bus in cycle n, or n + 1 over 512 bits. Headers follow each other every words + 2 + OVERHEAD cycles,
// or words + 1 + OVERHEAD over 512 bits, where words are those of the bus. An answer whose footer
// is on the bus in cycle n - 1 has the read that it sets off on the bus in cycle n + 7. A block whose last header was
// taken in cycle n and that is not answered is due in cycle n + TIMEOUT.

`default_nettype none

module segmentation
  import exanet::*;
#(
    // Bits of the buses to network and memory: 128 or 512. Pages have 128.
    parameter int DATA_WIDTH = 128,
    parameter int PAGES = 16,
    // Cells that are read from memory or wait for the link.
    parameter int CELL_BUFFERS = 8,
    // Bursts of reads that may be outstanding.
    parameter int OUTSTANDING = 8,
    // Bytes of a block and of a cell.
    parameter int BLOCK = 16384,
    parameter int CELL_BYTES = 256,
    // From the footer of a cell to the header of the next.
    parameter int OVERHEAD = 5,
    // Cycles until a block is sent again; each further wait is twice as long, up to LONGEST_TIMEOUT.
    parameter int TIMEOUT = 600_000,
    parameter int LONGEST_TIMEOUT = 9_600_000,
    parameter int REPETITIONS = 16
) (
    input wire logic clk,
    input wire logic reset,

    // The node of this interface: the source of cells.
    input wire logic [21:0] node,

    // Pages: see segmentation_pages.
    input  wire logic [  7:0] s_axi_awid,
    input  wire logic [ 16:0] s_axi_awaddr,
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
    input  wire logic [ 16:0] s_axi_araddr,
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

    // Reads of memory, by way of the SMMU: rank and virtual address.
    output logic      [           0:0] m_axi_arid,
    output logic      [          41:0] m_axi_araddr,
    output logic      [           7:0] m_axi_arlen,
    output logic      [           2:0] m_axi_arsize,
    output logic      [           1:0] m_axi_arburst,
    output logic                       m_axi_arvalid,
    input  wire logic                  m_axi_arready,
    input  wire logic [           0:0] m_axi_rid,
    input  wire logic [DATA_WIDTH-1:0] m_axi_rdata,
    input  wire logic [           1:0] m_axi_rresp,
    input  wire logic                  m_axi_rlast,
    input  wire logic                  m_axi_rvalid,
    output logic                       m_axi_rready,

    // Cells.
    output logic                       m_axis_net_tvalid,
    input  wire logic                  m_axis_net_tready,
    output logic      [DATA_WIDTH-1:0] m_axis_net_tdata,
    output logic                       m_axis_net_tlast,

    // Answers to blocks.
    input  wire logic                  s_axis_net_tvalid,
    output logic                       s_axis_net_tready,
    input  wire logic [DATA_WIDTH-1:0] s_axis_net_tdata,
    input  wire logic                  s_axis_net_tlast,

    // Requests of reads.
    input  wire logic                  s_axis_request_tvalid,
    output logic                       s_axis_request_tready,
    input  wire logic [DATA_WIDTH-1:0] s_axis_request_tdata,
    input  wire logic                  s_axis_request_tlast,

    // Answers to them.
    output logic                       m_axis_answer_tvalid,
    input  wire logic                  m_axis_answer_tready,
    output logic      [DATA_WIDTH-1:0] m_axis_answer_tdata,
    output logic                       m_axis_answer_tlast,

    // What happens to a block or a channel: for tests.
    output logic                          change_valid,
    output logic [$clog2(PAGES * 64)-1:0] change_channel,
    output logic [                  31:0] change_transaction,
    output logic [                   2:0] change_what
);
  localparam int PageBits = $clog2(PAGES);
  localparam int ChannelBits = PageBits + 6;
  // Time is counted in cycles, modulo more than any wait.
  localparam int TimeBits = 28;
  // One for each cell that is read or waits, and one for that on the bus.
  localparam int SlotBits = $clog2(CELL_BUFFERS + 1);
  // Bytes of a word of the buses, and the place of one in a buffer of 256.
  localparam int WordBytes = DATA_WIDTH / 8;
  localparam int PlaceBits = $clog2(256 / WordBytes);

  if (DATA_WIDTH != 128 && DATA_WIDTH != 512) $fatal(1, "buses of %0d bits, not 128 or 512", DATA_WIDTH);
  if (PAGES < 2 || PAGES > 16 || PAGES != 1 << $clog2(PAGES)) $fatal(1, "%0d pages: 2, 4, 8 or 16", PAGES);
  if (CELL_BUFFERS < 1 || CELL_BUFFERS > 31) $fatal(1, "%0d buffers: 1 to 31", CELL_BUFFERS);
  if (OUTSTANDING < 1 || OUTSTANDING > 31) $fatal(1, "%0d bursts: 1 to 31", OUTSTANDING);
  if (CELL_BYTES < 16 || CELL_BYTES > 256 || CELL_BYTES != 1 << $clog2(CELL_BYTES))
    $fatal(1, "cells of %0d bytes: 16, 32, … 256", CELL_BYTES);
  if (BLOCK > 64 * CELL_BYTES || BLOCK < CELL_BYTES || BLOCK != 1 << $clog2(BLOCK))
    $fatal(1, "blocks of %0d bytes: a power of two, of up to 64 cells", BLOCK);
  if (OVERHEAD < 0 || OVERHEAD > 40) $fatal(1, "%0d cycles between cells: 0 to 40", OVERHEAD);
  if (TIMEOUT < 4 * PAGES * 64 || LONGEST_TIMEOUT < TIMEOUT || LONGEST_TIMEOUT >= 1 << (TimeBits - 1))
    $fatal(1, "time-outs of %0d to %0d cycles", TIMEOUT, LONGEST_TIMEOUT);
  if (REPETITIONS > 31) $fatal(1, "%0d repetitions are counted in 5 bits", REPETITIONS);

  // A cell that has been cut.
  typedef struct packed {
    logic [ChannelBits-1:0] channel;
    logic [31:0]            transaction;
    logic [31:0]            first;
    logic [5:0]             index;
    logic                   last;
    logic                   ends_transfer;
    logic [7:0]             attempt;
    logic [8:0]             bytes;
    logic [21:0]            node;
    logic [2:0]             rank;
    logic [38:0]            address;
    logic [7:0]             page;
    logic [15:0]            pdid;
  } cell_t;

  logic clearing;
  logic [ChannelBits-1:0] clear_address;
  logic [TimeBits-1:0] now;

  logic post_valid, post_ready, mapped_valid, mapped_ready, load_valid, load_ready, loaded, freed;
  logic [ChannelBits-1:0] post_channel, mapped_channel, load_channel, freed_channel, looked_up_channel;
  logic [7:0] loaded_state;
  logic [38:0] source;
  logic [31:0] size;
  header_t destination;
  logic [15:0] pdid;

  logic answer_valid, answer_ready, answer_accepted, answer_again;
  logic [ChannelBits-1:0] answer_channel;
  logic [31:0] answer_transaction;
  logic [7:0] answer_attempt;

  logic [ChannelBits:0] scanned_timer, due_timer;
  logic scanned_waits, due_valid, due_ready;
  logic [TimeBits-1:0] scanned_deadline, due_time;

  logic cell_valid, cell_taken, sent, dropped, sent_ready;
  cell_t made_cell, next_cell;
  logic [41:0] cell_source;
  logic [PlaceBits:0] cell_words;
  logic whole_valid, whole_faulted;
  logic [SlotBits+PlaceBits-1:0] buffer_address;
  logic [DATA_WIDTH-1:0] buffer_data;

  logic [PageBits-1:0] asked_page;
  logic has_free;
  logic [4:0] next_free;
  logic [15:0] asked_pdid;
  logic request_valid, request_ready;
  logic [ChannelBits-1:0] request_channel;
  word_t request_source, request_destination;

  // As many requests are remembered as there are channels, so that both are cleared together.
  segmentation_requests #(
      .DATA_WIDTH(DATA_WIDTH),
      .PAGES(PAGES),
      .REMEMBERED(PAGES * 64)
  ) requests (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .node,
      .net_valid(s_axis_request_tvalid),
      .net_ready(s_axis_request_tready),
      .net_data(s_axis_request_tdata),
      .net_last(s_axis_request_tlast),
      .asked_page,
      .has_free,
      .next_free,
      .pdid(asked_pdid),
      .post_valid(request_valid),
      .post_ready(request_ready),
      .post_channel(request_channel),
      .post_source(request_source),
      .post_destination(request_destination),
      .answer_valid(m_axis_answer_tvalid),
      .answer_ready(m_axis_answer_tready),
      .answer_data(m_axis_answer_tdata),
      .answer_last(m_axis_answer_tlast)
  );

  segmentation_pages #(
      .PAGES(PAGES)
  ) pages (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .awid(s_axi_awid),
      .awaddr(s_axi_awaddr),
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
      .arvalid(s_axi_arvalid),
      .arready(s_axi_arready),
      .rid(s_axi_rid),
      .rdata(s_axi_rdata),
      .rresp(s_axi_rresp),
      .rlast(s_axi_rlast),
      .rvalid(s_axi_rvalid),
      .rready(s_axi_rready),
      .asked_page,
      .has_free,
      .next_free,
      .asked_pdid,
      .request_valid,
      .request_ready,
      .request_channel,
      .request_source,
      .request_destination,
      .post_valid,
      .post_ready,
      .post_channel,
      .mapped_valid,
      .mapped_ready,
      .mapped_channel,
      .load_valid,
      .load_ready,
      .load_channel,
      .loaded,
      .loaded_state,
      .freed,
      .freed_channel,
      .looked_up_channel,
      .source,
      .size,
      .destination,
      .pdid
  );

  segmentation_agent #(
      .CHANNEL_BITS(ChannelBits),
      .TIME_BITS(TimeBits),
      .TIMEOUT(TIMEOUT),
      .LONGEST_TIMEOUT(LONGEST_TIMEOUT),
      .REPETITIONS(REPETITIONS),
      .BLOCK(BLOCK),
      .CELL_BYTES(CELL_BYTES),
      .CELL_BUFFERS(CELL_BUFFERS),
      .WORD_BYTES(WordBytes),
      .cell_t(cell_t)
  ) agent (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .now,
      .looked_up_channel,
      .source,
      .size,
      .destination,
      .pdid,
      .post_valid,
      .post_ready,
      .post_channel,
      .mapped_valid,
      .mapped_ready,
      .mapped_channel,
      .load_valid,
      .load_ready,
      .load_channel,
      .loaded,
      .loaded_state,
      .freed,
      .freed_channel,
      .answer_valid,
      .answer_ready,
      .answer_channel,
      .answer_transaction,
      .answer_attempt,
      .answer_accepted,
      .answer_again,
      .gone_cell(next_cell),
      .sent,
      .dropped,
      .sent_ready,
      .scanned_timer,
      .scanned_waits,
      .scanned_deadline,
      .due_valid,
      .due_ready,
      .due_timer,
      .due_time,
      .cell_valid,
      .made_cell,
      .cell_source,
      .cell_words,
      .change_valid,
      .change_channel,
      .change_transaction,
      .change_what
  );

  timers #(
      .CHANNEL_BITS(ChannelBits + 1),
      .TIME_BITS(TimeBits)
  ) block_timers (
      .clk,
      .reset(reset || clearing),
      .now,
      .scanned_channel(scanned_timer),
      .scanned_waits,
      .scanned_deadline,
      .due_valid,
      .due_ready,
      .due_channel(due_timer),
      .due_time
  );

  segmentation_answers #(
      .DATA_WIDTH  (DATA_WIDTH),
      .CHANNEL_BITS(ChannelBits)
  ) answers (
      .clk,
      .reset,
      .net_valid(s_axis_net_tvalid),
      .net_ready(s_axis_net_tready),
      .net_data (s_axis_net_tdata),
      .net_last (s_axis_net_tlast),
      .answer_valid,
      .answer_ready,
      .answer_channel,
      .answer_transaction,
      .answer_attempt,
      .answer_accepted,
      .answer_again
  );

  segmentation_read #(
      .DATA_WIDTH (DATA_WIDTH),
      .OUTSTANDING(OUTSTANDING),
      .SLOT_BITS  (SlotBits)
  ) read (
      .clk,
      .reset,
      .cell_valid,
      .cell_address(cell_source),
      .cell_words,
      .araddr(m_axi_araddr),
      .arlen(m_axi_arlen),
      .arvalid(m_axi_arvalid),
      .arready(m_axi_arready),
      .rdata(m_axi_rdata),
      .rresp(m_axi_rresp),
      .rlast(m_axi_rlast),
      .rvalid(m_axi_rvalid),
      .rready(m_axi_rready),
      .whole_valid,
      .whole_ready(cell_taken),
      .whole_faulted,
      .buffer_address,
      .buffer_data
  );
  assign m_axi_arid = '0;
  assign m_axi_arsize = 3'($clog2(WordBytes));
  assign m_axi_arburst = 2'b01;

  fifo #(
      .WIDTH($bits(cell_t)),
      .DEPTH(1 << SlotBits)
  ) cells (
      .clk,
      .reset,
      .in_valid (cell_valid),
      .in_ready (),
      .in_data  (made_cell),
      .out_valid(),
      .out_ready(cell_taken),
      .out_data (next_cell)
  );

  if (DATA_WIDTH == 128) begin : g_words
    segmentation_transmit #(
        .OVERHEAD(OVERHEAD),
        .SLOT_BITS(SlotBits),
        .cell_t(cell_t)
    ) transmit (
        .clk,
        .reset,
        .node,
        .next_cell,
        .cell_taken,
        .whole_valid,
        .whole_faulted,
        .buffer_address,
        .buffer_data,
        .sent,
        .dropped,
        .sent_ready,
        .net_valid(m_axis_net_tvalid),
        .net_ready(m_axis_net_tready),
        .net_data (m_axis_net_tdata),
        .net_last (m_axis_net_tlast)
    );
  end else begin : g_bus
    segmentation_transmit_bus #(
        .OVERHEAD(OVERHEAD),
        .SLOT_BITS(SlotBits),
        .cell_t(cell_t)
    ) transmit (
        .clk,
        .reset,
        .node,
        .next_cell,
        .cell_taken,
        .whole_valid,
        .whole_faulted,
        .buffer_address,
        .buffer_data,
        .sent,
        .dropped,
        .sent_ready,
        .net_valid(m_axis_net_tvalid),
        .net_ready(m_axis_net_tready),
        .net_data (m_axis_net_tdata),
        .net_last (m_axis_net_tlast)
    );
  end

  // Bursts of pages increment and have whole words, and reads of memory have one name: nothing else comes.
  wire unused_ok = &{1'b0, s_axi_awlen, s_axi_awsize, s_axi_awburst, s_axi_arsize, s_axi_arburst, m_axi_rid};
endmodule

`default_nettype wire

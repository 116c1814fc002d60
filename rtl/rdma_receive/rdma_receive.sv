// The receive unit of the RDMA engine: writes each cell where it belongs as it comes, answers for whole blocks, and tells
// the process of them.
//
//   network ─► rdma_receive_cells ─ bursts, words ─► rdma_receive_write ◄─► memory (AXI4)
//   (cells)        ▲ PDID   └─ cell, as its footer has it ─►│  ▲ notification
//                  │                                        ▼  │ of a block
//   registers ─► rdma_receive_registers         rdma_receive_contexts ─ answer ─► rdma_receive_answers ─► network
//   (AXI4-Lite)                                     cells in memory                           (ACK, NACK per block)
//
// Where the buses have 512 bits, rdma_receive_cells_bus is in the place of rdma_receive_cells.
//
// From TR-488 §4.5: the payload goes to its place as it arrives; contexts, and answers and notifications by block; §4.3:
// the PDID is checked here; §4.5.3: a block that met a page fault is sent again. Ours: PDIDs by virtual interface, what
// a notification has and where it goes, two contexts a channel, the time of a silent context. Addresses are those of
// whole words of the bus: cells with another are refused as foreign ones are.
//
//  notification  127          96 95           64 63      48 47 46          31 30   22 21        0
//               ┌───────────────┬───────────────┬──────────┬──┬──┬──────────┬──┬─────┬───────────┐
//               │ first      32 │ transaction 32│ channel  │ T│ W│        0 │ P│   0 │ source 22 │
//               └───────────────┴───────────────┴──────────┴──┴──┴──────────┴──┴─────┴───────────┘
// T: the block is the last of its transfer; W: the transfer is whole; P: 1 in the first round of the queue, then 0, ….
//
// Cycles: a word that is on the network's bus in cycle n can be on that of memory in cycle n + 1. Over 512 bits a word
// goes with the beat that has its end, and the last of a cell a cycle later, if that is no beat's first part. A block
// whose last answer from memory is on the bus in cycle n has its answer on the network's bus in cycle n + 2.

`default_nettype none

module rdma_receive
  import exanet::*;
#(
    // Bits of the buses to network and memory: 128 or 512.
    parameter int DATA_WIDTH = 128,
    parameter int INTERFACES = 64,
    // Blocks that may be coming in.
    parameter int CONTEXTS = 256,
    // Channels that are remembered, of all sources, in sets of so many ways.
    parameter int CHANNELS = 1024,
    parameter int WAYS = 16,
    // Blocks that may wait for a context.
    parameter int WAITING = 256,
    // Cycles without a cell after which a context may be given to another block.
    parameter int CONTEXT_TIMEOUT = 30_000_000,
    // Notifications of the queue of an interface.
    parameter int NOTIFICATIONS = 64
) (
    input wire logic clk,
    input wire logic reset,

    // The node of this interface: the source of answers.
    input wire logic [21:0] node,

    // Cells.
    input  wire logic                  s_axis_net_tvalid,
    output logic                       s_axis_net_tready,
    input  wire logic [DATA_WIDTH-1:0] s_axis_net_tdata,
    input  wire logic                  s_axis_net_tlast,

    // Answers to blocks.
    output logic                       m_axis_net_tvalid,
    input  wire logic                  m_axis_net_tready,
    output logic      [DATA_WIDTH-1:0] m_axis_net_tdata,
    output logic                       m_axis_net_tlast,

    // Writes to memory, by way of the SMMU: rank and virtual address.
    output logic      [             0:0] m_axi_awid,
    output logic      [            41:0] m_axi_awaddr,
    output logic      [             7:0] m_axi_awlen,
    output logic      [             2:0] m_axi_awsize,
    output logic      [             1:0] m_axi_awburst,
    output logic                         m_axi_awvalid,
    input  wire logic                    m_axi_awready,
    output logic      [  DATA_WIDTH-1:0] m_axi_wdata,
    output logic      [DATA_WIDTH/8-1:0] m_axi_wstrb,
    output logic                         m_axi_wlast,
    output logic                         m_axi_wvalid,
    input  wire logic                    m_axi_wready,
    input  wire logic [             0:0] m_axi_bid,
    input  wire logic [             1:0] m_axi_bresp,
    input  wire logic                    m_axi_bvalid,
    output logic                         m_axi_bready,

    // Registers: see rdma_receive_registers.
    input  wire logic [17:0] s_axil_awaddr,
    input  wire logic        s_axil_awvalid,
    output logic             s_axil_awready,
    input  wire logic [63:0] s_axil_wdata,
    input  wire logic [ 7:0] s_axil_wstrb,
    input  wire logic        s_axil_wvalid,
    output logic             s_axil_wready,
    output logic      [ 1:0] s_axil_bresp,
    output logic             s_axil_bvalid,
    input  wire logic        s_axil_bready,
    input  wire logic [17:0] s_axil_araddr,
    input  wire logic        s_axil_arvalid,
    output logic             s_axil_arready,
    output logic      [63:0] s_axil_rdata,
    output logic      [ 1:0] s_axil_rresp,
    output logic             s_axil_rvalid,
    input  wire logic        s_axil_rready,

    // What a cell has come to: for tests.
    output logic       change_valid,
    output logic [2:0] change_what
);
  localparam int ChannelBits = $clog2(CHANNELS);
  localparam int InterfaceBits = $clog2(INTERFACES);

  if (DATA_WIDTH != 128 && DATA_WIDTH != 512) $fatal(1, "buses of %0d bits, not 128 or 512", DATA_WIDTH);
  if (INTERFACES < 2 || INTERFACES > 64 || INTERFACES != 1 << InterfaceBits)
    $fatal(1, "%0d interfaces: 2, 4, … 64 have pages", INTERFACES);
  if (CHANNELS < INTERFACES || CHANNELS > 65536 || CHANNELS != 1 << ChannelBits)
    $fatal(1, "%0d channels: a power of two, and no fewer than interfaces", CHANNELS);
  if (WAYS < 2 || 2 * WAYS > CHANNELS || WAYS != 1 << $clog2(WAYS) || CHANNELS > 256 * WAYS)
    $fatal(1, "%0d ways: a power of two, and 2, 4, … 256 sets", WAYS);
  if (WAITING < 4 || WAITING != 1 << $clog2(WAITING)) $fatal(1, "%0d blocks that wait: a power of two", WAITING);
  if (CONTEXTS < 1 || CONTEXTS > 2 * CHANNELS) $fatal(1, "%0d contexts: two for each channel", CONTEXTS);
  if (CONTEXT_TIMEOUT < 64) $fatal(1, "a context of %0d cycles", CONTEXT_TIMEOUT);
  if (NOTIFICATIONS < 2 || NOTIFICATIONS != 1 << $clog2(NOTIFICATIONS))
    $fatal(1, "%0d notifications: a power of two", NOTIFICATIONS);

  // A cell that has come.
  typedef struct packed {
    // Of writes that it waits for.
    logic [1:0]               bursts;
    logic                     damaged;
    logic                     foreign;
    logic [InterfaceBits-1:0] interface_number;
    logic [21:0]              source;
    logic [31:0]              first;
    cell_identity_t           identity;
  } cell_t;

  typedef struct packed {
    kind_t          kind;
    logic [21:0]    source;
    cell_identity_t identity;
  } answer_t;

  logic clearing;
  logic [ChannelBits-1:0] clear_address;
  logic [InterfaceBits-1:0] asked_interface;
  logic [15:0] pdid;
  logic [41:0] notification_address;
  logic notification_phase;

  logic has_room, has_room_for_notification, burst_valid, burst_second, word_valid, word_last, cell_valid, cells_idle;
  logic [41:0] burst_address;
  logic [4:0] burst_words, second_words;
  logic [  DATA_WIDTH-1:0] word_data;
  logic [DATA_WIDTH/8-1:0] word_strobe;
  cell_t made_cell, whole_cell, block_cell, notified_cell;
  logic whole_valid, whole_ready, whole_faulted, contexts_ready;
  logic answer_valid, answer_ready, block_valid, block_ends, notified_ends;
  answer_t answer;
  logic notification_waits, notifies, notification_ready;

  rdma_receive_registers #(
      .INTERFACES(INTERFACES),
      .NOTIFICATIONS(NOTIFICATIONS),
      .CLEAR_BITS(ChannelBits)
  ) registers (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .asked_interface,
      .pdid,
      .notified(notifies),
      .notified_interface(notified_cell.interface_number),
      .notification_address,
      .notification_phase,
      .awaddr(s_axil_awaddr),
      .awvalid(s_axil_awvalid),
      .awready(s_axil_awready),
      .wdata(s_axil_wdata),
      .wstrb(s_axil_wstrb),
      .wvalid(s_axil_wvalid),
      .wready(s_axil_wready),
      .bresp(s_axil_bresp),
      .bvalid(s_axil_bvalid),
      .bready(s_axil_bready),
      .araddr(s_axil_araddr),
      .arvalid(s_axil_arvalid),
      .arready(s_axil_arready),
      .rdata(s_axil_rdata),
      .rresp(s_axil_rresp),
      .rvalid(s_axil_rvalid),
      .rready(s_axil_rready)
  );

  if (DATA_WIDTH == 128) begin : g_words
    rdma_receive_cells #(
        .INTERFACES(INTERFACES),
        .cell_t(cell_t)
    ) cells (
        .clk,
        .reset,
        .clearing,
        .net_valid(s_axis_net_tvalid),
        .net_ready(s_axis_net_tready),
        .net_data(s_axis_net_tdata),
        .net_last(s_axis_net_tlast),
        .asked_interface,
        .pdid,
        .has_room,
        .burst_valid,
        .burst_second,
        .burst_address,
        .burst_words,
        .second_words,
        .word_valid,
        .word_data,
        .word_strobe,
        .word_last,
        .cell_valid,
        .made_cell,
        .idle(cells_idle)
    );
  end else begin : g_bus
    rdma_receive_cells_bus #(
        .INTERFACES(INTERFACES),
        .cell_t(cell_t)
    ) cells (
        .clk,
        .reset,
        .clearing,
        .net_valid(s_axis_net_tvalid),
        .net_ready(s_axis_net_tready),
        .net_data(s_axis_net_tdata),
        .net_last(s_axis_net_tlast),
        .asked_interface,
        .pdid,
        .has_room,
        .burst_valid,
        .burst_second,
        .burst_address,
        .burst_words,
        .second_words,
        .word_valid,
        .word_data,
        .word_strobe,
        .word_last,
        .cell_valid,
        .made_cell,
        .idle(cells_idle)
    );
  end

  // A block is told of between two cells.
  assign notifies = notification_waits && cells_idle && has_room_for_notification;
  word_t notification;
  assign notification = {
    notified_cell.first,
    notified_cell.identity.transaction,
    notified_cell.identity.channel,
    notified_cell.identity.ends_transfer,
    notified_ends,
    14'd0,
    notification_phase,
    9'd0,
    notified_cell.source
  };
  // It goes to its place in a word of the bus.
  localparam int Lanes = DATA_WIDTH / 128;
  logic [DATA_WIDTH/8-1:0] notification_strobe;
  for (genvar i = 0; i < Lanes; i++) begin : g_lanes
    assign notification_strobe[16*i+:16] = {16{int'(notification_address[11:4]) % Lanes == i}};
  end

  rdma_receive_write #(
      .DATA_WIDTH(DATA_WIDTH),
      .cell_t(cell_t)
  ) write (
      .clk,
      .reset,
      .has_room,
      .has_room_for_notification,
      .burst_valid(burst_valid || notifies),
      .burst_second(burst_second && !notifies),
      .burst_address(notifies ? notification_address : burst_address),
      .burst_words(notifies ? 5'd1 : burst_words),
      .second_words,
      .word_valid(word_valid || notifies),
      .word_data(notifies ? {Lanes{notification}} : word_data),
      .word_strobe(notifies ? notification_strobe : word_strobe),
      .word_last(notifies || word_last),
      .cell_valid,
      .made_cell,
      .notifies,
      .whole_valid,
      .whole_ready,
      .whole_cell,
      .whole_faulted,
      .awaddr(m_axi_awaddr),
      .awlen(m_axi_awlen),
      .awvalid(m_axi_awvalid),
      .awready(m_axi_awready),
      .wdata(m_axi_wdata),
      .wstrb(m_axi_wstrb),
      .wlast(m_axi_wlast),
      .wvalid(m_axi_wvalid),
      .wready(m_axi_wready),
      .bresp(m_axi_bresp),
      .bvalid(m_axi_bvalid),
      .bready(m_axi_bready)
  );
  assign m_axi_awid = '0;
  assign m_axi_awsize = 3'($clog2(DATA_WIDTH / 8));
  assign m_axi_awburst = 2'b01;

  // A cell may need a place for its answer, and one for its notification.
  logic answers_have_room;
  assign whole_ready = contexts_ready && answers_have_room && notification_ready;

  rdma_receive_contexts #(
      .CONTEXTS(CONTEXTS),
      .CHANNELS(CHANNELS),
      .WAYS(WAYS),
      .WAITING(WAITING),
      .CONTEXT_TIMEOUT(CONTEXT_TIMEOUT),
      .cell_t(cell_t),
      .answer_t(answer_t)
  ) contexts (
      .clk,
      .reset,
      .clearing,
      .clear_address,
      .cell_valid(whole_valid && answers_have_room && notification_ready),
      .cell_ready(contexts_ready),
      .arrived(whole_cell),
      .cell_faulted(whole_faulted),
      .may_answer(answers_have_room),
      .answer_valid,
      .answer,
      .block_valid,
      .block_cell,
      .block_ends,
      .change_valid,
      .change_what
  );

  rdma_receive_answers #(
      .DATA_WIDTH(DATA_WIDTH),
      .answer_t  (answer_t)
  ) answers (
      .clk,
      .reset,
      .node,
      .answer_valid,
      .answer_ready,
      .answer,
      .net_valid(m_axis_net_tvalid),
      .net_ready(m_axis_net_tready),
      .net_data (m_axis_net_tdata),
      .net_last (m_axis_net_tlast)
  );

  logic [3:0] notifications_waiting;
  logic [5:0] answers_waiting;
  wire answer_taken = m_axis_net_tvalid && m_axis_net_tready && m_axis_net_tlast;
  assign notification_ready = notifications_waiting < 4'd7;
  assign answers_have_room  = answers_waiting < 6'd30;

  always_ff @(posedge clk) begin
    notifications_waiting <= notifications_waiting + 4'(block_valid) - 4'(notifies);
    answers_waiting <= answers_waiting + 6'(answer_valid) - 6'(answer_taken);
    if (!reset)
      assert (!answer_valid || answer_ready)
      else $error("an answer is lost");
    if (reset) begin
      notifications_waiting <= '0;
      answers_waiting <= '0;
    end
  end

  fifo #(
      .WIDTH($bits(cell_t) + 1),
      .DEPTH(8)
  ) notifications (
      .clk,
      .reset,
      .in_valid (block_valid),
      .in_ready (),
      .in_data  ({block_cell, block_ends}),
      .out_valid(notification_waits),
      .out_ready(notifies),
      .out_data ({notified_cell, notified_ends})
  );

  // Writes of memory have one name.
  wire unused_ok = &{1'b0, m_axi_bid, notified_cell};
endmodule

`default_nettype wire

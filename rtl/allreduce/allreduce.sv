// The allreduce accelerator: reduces the vectors of a group without its processors. One in every MPSoC: the server of its
// board in F1, a client in the others.
//
//   software ─► allreduce_registers ─ start ─► allreduce_module ◄── what has come ── allreduce_operations
//   (AXI4-Lite)                                 │   │   │   │                             ▲        │ buffers
//                               fetch, look up ─┘   │   │   └─ result ─► allreduce_write  │        │
//   memory (AXI4) ─► allreduce_read ◄───────────────┘   │ reduce            │             │        │
//                       │ own vector                    ▼                   │   network ─► allreduce_receive
//                       ├──────────────────────► allreduce_reduce ◄─────────┼────────────────── payload
//                       │ packets                       │ payload           ▼
//                       └─► allreduce_transmit ◄────────┘              memory (AXI4)
//                               │    ▲ allreduce_answers ◄── questions
//                               ▼
//                            network
//
// From TR-488 §4.7: client and server; fetching, level 0, exchanges, broadcast; sum, min, max of int, float, double; up to
// 1,024 ranks, 256 bytes, whole boards of four; two pointers. §4.2: 128 bits. Ours: registers, table of ranks, packets,
// cycles of a reduction, recovery of lost packets, and how many operations are known at once: four, of which one runs.
// The text counts log2(N) - 1 exchanges; its own Fig. 10 has log2(N/4), and so has this.
//
// Cycles, where edge n begins cycle n: a store of START in cycle n - 1 has the request for the vector on the bus in
// cycle n. Of a vector whose last word is on the bus in cycle n - 1, and of a reduction that ends with edge n, the request
// for the table is there in cycle n, and the header of the packet in the cycle behind the last pair. A reduction begins
// with the edge behind a footer, and takes words + LATENCY cycles; it ends with the request to write the result, if it is
// the last. A client asks to write two cycles behind the edge of the footer.

`default_nettype none

module allreduce
  import exanet::*;
  import reduction::*;
#(
    parameter int RANKS = 1024,
    // Cycles from the last word of a vector to the last of its reduction.
    parameter int LATENCY = 8,
    // Cycles until a vector that does not come is asked for; each further wait is twice as long, up to LONGEST_TIMEOUT.
    parameter int TIMEOUT = 7500,
    parameter int LONGEST_TIMEOUT = 150_000,
    parameter int REPETITIONS = 16
) (
    input wire logic clk,
    input wire logic reset,

    // The node of this interface.
    input wire logic [21:0] node,

    // Packets of other modules.
    input  wire logic         s_axis_net_tvalid,
    output logic              s_axis_net_tready,
    input  wire logic [127:0] s_axis_net_tdata,
    input  wire logic         s_axis_net_tlast,

    output logic              m_axis_net_tvalid,
    input  wire logic         m_axis_net_tready,
    output logic      [127:0] m_axis_net_tdata,
    output logic              m_axis_net_tlast,

    // Vector and table; result and the word that tells of it.
    output logic      [  0:0] m_axi_arid,
    output logic      [ 48:0] m_axi_araddr,
    output logic      [  7:0] m_axi_arlen,
    output logic      [  2:0] m_axi_arsize,
    output logic      [  1:0] m_axi_arburst,
    output logic              m_axi_arvalid,
    input  wire logic         m_axi_arready,
    input  wire logic [  0:0] m_axi_rid,
    input  wire logic [127:0] m_axi_rdata,
    input  wire logic [  1:0] m_axi_rresp,
    input  wire logic         m_axi_rlast,
    input  wire logic         m_axi_rvalid,
    output logic              m_axi_rready,
    output logic      [  0:0] m_axi_awid,
    output logic      [ 48:0] m_axi_awaddr,
    output logic      [  7:0] m_axi_awlen,
    output logic      [  2:0] m_axi_awsize,
    output logic      [  1:0] m_axi_awburst,
    output logic              m_axi_awvalid,
    input  wire logic         m_axi_awready,
    output logic      [127:0] m_axi_wdata,
    output logic      [ 15:0] m_axi_wstrb,
    output logic              m_axi_wlast,
    output logic              m_axi_wvalid,
    input  wire logic         m_axi_wready,
    input  wire logic [  0:0] m_axi_bid,
    input  wire logic [  1:0] m_axi_bresp,
    input  wire logic         m_axi_bvalid,
    output logic              m_axi_bready,

    // Registers: see allreduce_registers.
    input  wire logic [12:0] s_axil_awaddr,
    input  wire logic        s_axil_awvalid,
    output logic             s_axil_awready,
    input  wire logic [63:0] s_axil_wdata,
    input  wire logic [ 7:0] s_axil_wstrb,
    input  wire logic        s_axil_wvalid,
    output logic             s_axil_wready,
    output logic      [ 1:0] s_axil_bresp,
    output logic             s_axil_bvalid,
    input  wire logic        s_axil_bready,
    input  wire logic [12:0] s_axil_araddr,
    input  wire logic        s_axil_arvalid,
    output logic             s_axil_arready,
    output logic      [63:0] s_axil_rdata,
    output logic      [ 1:0] s_axil_rresp,
    output logic             s_axil_rvalid,
    input  wire logic        s_axil_rready,

    // The state of the module, for the tests.
    output logic [2:0] state
);
  if (RANKS < 4 || RANKS > 1024) $fatal(1, "%0d ranks: a module has 4 to 1024", RANKS);
  if (TIMEOUT < 64 || LONGEST_TIMEOUT < TIMEOUT) $fatal(1, "time-outs of %0d to %0d cycles", TIMEOUT, LONGEST_TIMEOUT);

  wire is_server = node[1:0] == 2'd0;

  logic start, busy, clearing;
  program_t programmed;
  logic [48:0] notify;

  logic buffer_write, free_valid, has_vector;
  buffer_t buffer, free_buffer, first_buffer, second_buffer;
  logic [3:0] buffer_word;
  word_t buffer_data;

  logic came_valid, came_hit, came_running, accepted, over_failed, renewed;
  module_kind_t came_kind;
  logic [7:0] came_step;
  operation_id_t came_id;
  logic [21:0] came_from;
  slot_t came_slot, running_slot, renewed_slot;
  logic [Steps-1:0] came;

  logic program_valid, granted, doomed, has_slot, finished, failed;
  step_t second_step;

  logic fetched, own_write, reduce, a_is_own, a_has_come, b_is_own, a_is_upper, reducing, reduced_one;
  logic [3:0] own_word;
  word_t own_data;
  version_t read_version, write_version;

  logic lookup_valid, ask_valid, ask_ready, sent_vector, looks_up;
  lookup_t lookup;
  logic [21:0] last_to, failed_node;

  logic write, tell_failed, written, told;
  logic [3:0] result_word;
  word_t result_data;

  logic read_packet_valid, answer_valid, answer_ready, packet_valid, packet_ready;
  outgoing_t read_packet, answer, packet;
  slot_t sent_slot;
  version_t sent_version;
  logic [3:0] sent_word;
  word_t sent_data;

  assign m_axi_arsize = 3'd4;
  assign m_axi_arburst = 2'b01;
  assign m_axi_awsize = 3'd4;
  assign m_axi_awburst = 2'b01;
  assign m_axi_bready = 1'b1;
  assign s_axis_net_tready = !clearing;

  allreduce_registers #(
      .RANKS(RANKS)
  ) registers (
      .clk,
      .reset,
      .clearing,
      .busy,
      .start,
      .programmed,
      .notify,
      .awaddr (s_axil_awaddr),
      .awvalid(s_axil_awvalid),
      .awready(s_axil_awready),
      .wdata  (s_axil_wdata),
      .wstrb  (s_axil_wstrb),
      .wvalid (s_axil_wvalid),
      .wready (s_axil_wready),
      .bresp  (s_axil_bresp),
      .bvalid (s_axil_bvalid),
      .bready (s_axil_bready),
      .araddr (s_axil_araddr),
      .arvalid(s_axil_arvalid),
      .arready(s_axil_arready),
      .rdata  (s_axil_rdata),
      .rresp  (s_axil_rresp),
      .rvalid (s_axil_rvalid),
      .rready (s_axil_rready)
  );

  allreduce_receive receive (
      .clk,
      .reset,
      .net_valid(s_axis_net_tvalid && s_axis_net_tready),
      .net_data (s_axis_net_tdata),
      .net_last (s_axis_net_tlast),
      .free_valid,
      .free_buffer,
      .buffer_write,
      .buffer,
      .buffer_word,
      .buffer_data,
      .came_valid,
      .came_kind,
      .came_step,
      .came_id,
      .came_from,
      .has_vector
  );

  allreduce_operations operations (
      .clk,
      .reset,
      .clearing,
      .came_valid,
      .has_vector,
      .came_kind,
      .came_step,
      .came_id,
      .came_buffer(buffer),
      .came_hit,
      .came_slot,
      .came_running,
      .accepted,
      .over_failed,
      .free_valid,
      .free_buffer,
      .program_valid,
      .program_id (programmed.id),
      .granted,
      .renewed,
      .renewed_slot,
      .doomed,
      .running_slot,
      .came,
      .finished,
      .failed,
      .first_buffer,
      .second_step,
      .second_buffer
  );

  allreduce_module #(
      .TIMEOUT(TIMEOUT),
      .LONGEST_TIMEOUT(LONGEST_TIMEOUT),
      .REPETITIONS(REPETITIONS)
  ) module_of_board (
      .clk,
      .reset,
      .is_server,
      .node,
      .start,
      .programmed,
      .busy,
      .program_valid,
      .granted,
      .doomed,
      .has_slot,
      .fetched,
      .came,
      .came_valid,
      .came_running,
      .came_kind,
      .came_from,
      .accepted,
      .finished,
      .failed,
      .second_step,
      .reduce,
      .a_is_own,
      .a_has_come,
      .b_is_own,
      .a_is_upper,
      .read_version,
      .write_version,
      .reducing,
      .reduced_one,
      .lookup_valid,
      .lookup,
      .ask_valid,
      .ask_ready,
      .write,
      .tell_failed,
      .failed_node,
      .written,
      .told,
      .looks_up,
      .last_to,
      .state_number(state)
  );

  allreduce_reduce #(
      .LATENCY(LATENCY)
  ) reduce_vectors (
      .clk,
      .reset,
      .operation(programmed.operation),
      .data_type(programmed.data_type),
      .words(5'((programmed.bytes + 9'd15) >> 4)),
      .start(reduce),
      .a_is_own,
      .a_has_come,
      .b_is_own,
      .a_is_upper,
      .slot(running_slot),
      .read_version,
      .write_version,
      .a_buffer(first_buffer),
      .b_buffer(second_buffer),
      .busy(reducing),
      .done(reduced_one),
      .buffer_write,
      .buffer,
      .buffer_word,
      .buffer_data,
      .own_write,
      .own_word,
      .own_data,
      .own_is_kept(!is_server),
      .own_slot(running_slot),
      .sent_slot,
      .sent_version,
      .sent_word,
      .sent_data,
      .result_word,
      .result_has_come(!is_server),
      .result_data
  );

  allreduce_read read (
      .clk,
      .reset,
      .programmed,
      .fetch(start),
      .has_slot,
      .own_write,
      .own_word,
      .own_data,
      .fetched,
      .lookup_valid,
      .lookup,
      .running_slot,
      .packet_valid(read_packet_valid),
      .packet(read_packet),
      .packet_ready,
      .sent_vector,
      .looks_up,
      .last_to,
      .arid(m_axi_arid),
      .araddr(m_axi_araddr),
      .arlen(m_axi_arlen),
      .arvalid(m_axi_arvalid),
      .arready(m_axi_arready),
      .rid(m_axi_rid),
      .rdata(m_axi_rdata),
      .rvalid(m_axi_rvalid),
      .rready(m_axi_rready)
  );

  allreduce_answers answers (
      .clk,
      .reset,
      .node,
      .is_server,
      .asked(came_valid && came_kind == ASK),
      .asked_from(came_from),
      .asked_id(came_id),
      .asked_hit(came_hit),
      .asked_slot(came_slot),
      .asked_failed(over_failed),
      .renewed,
      .renewed_slot,
      .sent(sent_vector),
      .sent_packet(read_packet),
      .packet_valid(answer_valid),
      .packet_ready(answer_ready),
      .packet(answer)
  );

  // --- Packets: what was looked up is due, questions and answers come between ---

  assign packet_valid = read_packet_valid || ask_valid || answer_valid;
  assign ask_ready = packet_ready && !read_packet_valid;
  assign answer_ready = packet_ready && !read_packet_valid && !ask_valid;
  always_comb begin
    packet = read_packet_valid ? read_packet : answer;
    if (!read_packet_valid && ask_valid) begin
      packet = '{
          kind: ASK,
          step: '0,
          to: last_to,
          id: programmed.id,
          bytes: '0,
          slot: running_slot,
          version: '0
      };
    end
  end

  allreduce_transmit transmit (
      .clk,
      .reset,
      .node,
      .packet_valid,
      .packet_ready,
      .packet,
      .slot(sent_slot),
      .version(sent_version),
      .word(sent_word),
      .payload(sent_data),
      .net_valid(m_axis_net_tvalid),
      .net_ready(m_axis_net_tready),
      .net_data(m_axis_net_tdata),
      .net_last(m_axis_net_tlast)
  );

  allreduce_write write_result (
      .clk,
      .reset,
      .programmed,
      .notify,
      .write,
      .tell_failed,
      .failed_node,
      .written,
      .told,
      .result_word,
      .result_data,
      .awid(m_axi_awid),
      .awaddr(m_axi_awaddr),
      .awlen(m_axi_awlen),
      .awvalid(m_axi_awvalid),
      .awready(m_axi_awready),
      .wdata(m_axi_wdata),
      .wstrb(m_axi_wstrb),
      .wlast(m_axi_wlast),
      .wvalid(m_axi_wvalid),
      .wready(m_axi_wready),
      .bid(m_axi_bid),
      .bvalid(m_axi_bvalid)
  );

  // A failed read or write is not repeated.
  wire unused_ok = &{1'b0, m_axi_rresp, m_axi_bresp, m_axi_rlast};
endmodule

`default_nettype wire

// What the accelerator writes to memory: the result, and then a word that says so.
//
//   IDLE ─ result ─► WRITING ─ all words, and memory has them ─► TELLING ─► IDLE
//     └─ failed ──────────────────────────────────────────────────┘
//
// The word: 31..0 the group, 63..32 the number of the operation, 87..64 the block, 95..88 1 where it is done and 2 where
// it has failed, 117..96 whose module has not answered, or has failed itself.

`default_nettype none

module allreduce_write
  import exanet::*;
  import reduction::*;
(
    input wire logic clk,
    input wire logic reset,

    input wire program_t        programmed,
    input wire logic     [48:0] notify,

    input  wire logic        write,
    input  wire logic        tell_failed,
    input  wire logic [21:0] failed_node,
    // Memory has the result; memory has taken the word.
    output logic             written,
    output logic             told,

    // The result, one cycle behind its address.
    output logic [3:0] result_word,
    input wire word_t result_data,

    output logic      [  0:0] awid,
    output logic      [ 48:0] awaddr,
    output logic      [  7:0] awlen,
    output logic              awvalid,
    input  wire logic         awready,
    output logic      [127:0] wdata,
    output logic      [ 15:0] wstrb,
    output logic              wlast,
    output logic              wvalid,
    input  wire logic         wready,
    input  wire logic [  0:0] bid,
    input  wire logic         bvalid
);
  typedef enum logic [1:0] {
    IDLE,
    WRITING,
    TELLING
  } state_t;

  state_t state;
  logic address_left, words_left, failed;
  logic [4:0] word;
  logic [21:0] node;

  wire [4:0] words = 5'((programmed.bytes + 9'd15) >> 4);
  wire [8:0] bytes_left = programmed.bytes - {word, 4'd0};
  wire operation_id_t id = programmed.id;

  assign awid = state == TELLING;
  assign awaddr = state == TELLING ? notify : programmed.data;
  assign awlen = state == TELLING ? '0 : 8'(words) - 8'd1;
  assign awvalid = state != IDLE && address_left;
  assign wvalid = state != IDLE && words_left;
  assign wlast = state == TELLING || word + 1'b1 == words;
  assign wdata = state == TELLING ? {10'd0, node, failed ? 8'd2 : 8'd1, id.block, id.number, id.group} : result_data;
  always_comb begin
    for (int i = 0; i < 16; i++) wstrb[i] = state == TELLING || 9'(i) < bytes_left;
  end

  wire is_word = state == WRITING && wvalid && wready;
  assign result_word = is_word ? word[3:0] + 1'b1 : word[3:0];
  assign written = state == WRITING && bvalid && bid == 1'b0;
  assign told = state == TELLING && (!address_left || awready) && (!words_left || wready);

  always_ff @(posedge clk) begin
    if (awready) address_left <= 1'b0;
    if (is_word) word <= word + 1'b1;
    if (wvalid && wready && wlast) words_left <= 1'b0;
    unique case (state)
      IDLE:
      if (write || tell_failed) begin
        state <= write ? WRITING : TELLING;
        {address_left, words_left} <= '1;
        failed <= !write;
        node <= write ? '0 : failed_node;
        word <= '0;
      end
      WRITING:
      if (written) begin
        state <= TELLING;
        {address_left, words_left} <= '1;
      end
      default:
      if (told) begin
        state <= IDLE;
        word  <= '0;
      end
    endcase
    if (reset) begin
      state <= IDLE;
      word  <= '0;
    end
  end

  wire unused_ok = &{1'b0, programmed};
endmodule

`default_nettype wire

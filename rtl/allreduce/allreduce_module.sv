// The module: takes an operation through its states. It is a server where the network address is a multiple of four (F1,
// the 'Network' FPGA of TR-488), and otherwise a client.
//
//   IDLE ─ started ─► FETCHING ─┬ client ─► AWAITING ─ result ─────────────────────────┬─► FINISHING ─► IDLE
//                               └ server ─► GATHERING ─ board ─► EXCHANGING ─ levels ──┘      ▲
//                                                │ any that waits: given up, or another's failure
//                                                └──────────────────────────► FAILING ────────┘
//
//   TR-488 §4.7: level 0 is FETCHING, AWAITING at a client that has sent its vector, GATHERING at a server that reduces
//   those of its board; levels 1 … are EXCHANGING; the last is FINISHING: broadcast, memory, notification.
//
//   level 0       F2 ─┐                  levels 1 … log2(N/4)             the last level
//                 F3 ─┼─► F1 reduces     F1 ◄──── exchange ────► F1       F1 ─► F2, F3, F4
//                 F4 ─┘   in rank order  of boards 1, 2, 4 … apart        and all to memory
//
// On a board ((r0 ∘ r1) ∘ r2) ∘ r3, whichever comes first; in an exchange the lower board's vector ∘ the upper one's.
// While it waits a timer runs: its end has those asked whose vectors are missing. Who answers that it is not so far is
// left alone for twice as long each time; who does not answer REPETITIONS questions is given up.

`default_nettype none

module allreduce_module
  import reduction::*;
#(
    parameter int TIMEOUT = 7500,
    parameter int LONGEST_TIMEOUT = 150_000,
    parameter int REPETITIONS = 16
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic        is_server,
    input wire logic [21:0] node,

    input  wire logic     start,
    input  wire program_t programmed,
    output logic          busy,

    output logic      program_valid,
    input  wire logic granted,
    input  wire logic doomed,
    output logic      has_slot,
    input  wire logic fetched,

    // What has come for the operation, and whether something comes in this cycle.
    input  wire logic         [Steps-1:0] came,
    input  wire logic                     came_valid,
    input  wire logic                     came_running,
    input  wire module_kind_t             came_kind,
    input  wire logic         [     21:0] came_from,
    input  wire logic                     accepted,
    output logic                          finished,
    output logic                          failed,

    // The buffers of two steps are looked up.
    output step_t second_step,

    output logic      reduce,
    output logic      a_is_own,
    output logic      a_has_come,
    output logic      b_is_own,
    output logic      a_is_upper,
    output version_t  read_version,
    output version_t  write_version,
    input  wire logic reducing,
    input  wire logic reduced_one,

    output logic      lookup_valid,
    output lookup_t   lookup,
    output logic      ask_valid,
    input  wire logic ask_ready,

    output logic             write,
    output logic             tell_failed,
    output logic      [21:0] failed_node,
    input  wire logic        written,
    input  wire logic        told,
    input  wire logic        looks_up,
    input  wire logic [21:0] last_to,

    output logic [2:0] state_number
);
  // An hour: whoever is not there by then is not waited for with a timer any more.
  localparam logic [39:0] LongestPatience = 40'd540_000_000_000;
  localparam int RepeatBits = $clog2(REPETITIONS + 1);

  typedef enum logic [2:0] {
    IDLE,
    FETCHING,
    AWAITING,
    GATHERING,
    EXCHANGING,
    FINISHING,
    FAILING
  } state_t;

  state_t state;
  // Vectors that are reduced, of the board and then of levels.
  logic [3:0] reduced;
  // In the cycle behind a step nothing begins: the edge of the step is that before.
  logic settling;
  logic fails, to_finish, has_told;

  wire [1:0] member = programmed.own[1:0];
  wire [7:0] board = programmed.own[9:2];
  wire is_waiting = state == AWAITING || state == GATHERING || state == EXCHANGING;
  wire rests = !reducing && !settling;

  assign state_number = state;
  assign busy = state != IDLE;

  // --- Reductions ---

  wire  [1:0] next_member = reduced == '0 ? 2'd1 : reduced[1:0];
  wire  [3:0] level = reduced + 1'b1;
  logic [3:0] has;
  always_comb begin
    for (int i = 0; i < 4; i++) has[i] = came[i] || member == 2'(i);
  end
  wire may_gather = state == GATHERING && has[next_member] && (reduced != '0 || has[0]);
  wire may_exchange = state == EXCHANGING && came[level+BehindMembers];

  assign reduce = (may_gather || may_exchange) && rests && !fails;
  assign a_is_own = state == GATHERING && reduced == '0 && member == 2'd0;
  assign a_has_come = state == GATHERING && reduced == '0 && member != 2'd0;
  assign b_is_own = state == GATHERING && member == next_member;
  assign a_is_upper = state == EXCHANGING && board[reduced[2:0]];
  assign read_version = state == EXCHANGING ? reduced : '0;
  assign write_version = state == EXCHANGING ? level : '0;
  assign second_step = !is_server ? ResultStep : state == EXCHANGING ? level + BehindMembers : 4'(next_member);

  wire gathered = state == GATHERING && reduced_one && next_member == 2'd3;
  wire exchanged = state == EXCHANGING && reduced_one;
  wire is_last = gathered ? programmed.levels == '0 : exchanged && level == programmed.levels;
  wire has_result = state == AWAITING && came[ResultStep] && rests && !fails;

  // --- Packets ---

  logic expired;
  logic [RepeatBits-1:0] repeated;
  wire gives_up = repeated == RepeatBits'(REPETITIONS);
  wire asks_board = expired && state == GATHERING && !gives_up;

  always_comb begin
    lookup = '{purpose: FOR_CONTRIBUTION, board: board, version: '0, missing: ~has};
    if (gathered || exchanged) begin
      lookup.version = exchanged ? level : '0;
      lookup.purpose = is_last ? FOR_RESULT : FOR_EXCHANGE;
      if (!is_last) lookup.board = board ^ 8'd1 << lookup.version;
    end else if (state == GATHERING) lookup.purpose = FOR_ASK;
  end
  assign lookup_valid = (state == FETCHING && fetched && !is_server && !fails) || gathered || exchanged || asks_board;

  // --- Waiting ---

  logic [39:0] left, span, patience;
  logic timed;
  wire [39:0] grown = span << 1 < 40'(LONGEST_TIMEOUT) ? span << 1 : 40'(LONGEST_TIMEOUT);
  wire [39:0] doubled = patience == '0 ? 40'(TIMEOUT) : patience << 1;
  wire [39:0] longer = doubled < LongestPatience ? doubled : LongestPatience;
  wire is_alive = came_running && came_kind == NOT_YET;
  assign expired = timed && left == '0 && is_waiting && rests && !fails && !reduce && !has_result && !came_valid;

  always_ff @(posedge clk) begin
    if (left != '0) left <= left - 1'b1;
    if (fetched || accepted && came_running) begin
      left <= 40'(TIMEOUT) - 40'(!fetched);
      span <= 40'(TIMEOUT);
      patience <= '0;
      repeated <= '0;
      timed <= 1'b1;
    end else if (is_alive && is_waiting) begin
      left <= longer - 1'b1;
      span <= 40'(TIMEOUT);
      patience <= longer;
      repeated <= '0;
      timed <= longer != LongestPatience;
    end else if (expired) begin
      left <= grown - 1'b1;
      span <= grown;
      repeated <= repeated + 1'b1;
    end
    if (ask_ready) ask_valid <= 1'b0;
    if (expired && state != GATHERING && !gives_up) ask_valid <= 1'b1;
    if (start || reset) begin
      timed <= 1'b0;
      ask_valid <= 1'b0;
    end
  end

  // --- States ---

  assign write = is_last || has_result;
  assign finished = to_finish && !came_valid;
  assign failed = state == FAILING && !came_valid;
  assign tell_failed = failed;

  always_ff @(posedge clk) begin
    settling <= fetched || reduced_one;
    if (granted) begin
      program_valid <= 1'b0;
      has_slot <= 1'b1;
    end
    if (finished) to_finish <= 1'b0;
    if (told) has_told <= 1'b1;
    if (state != IDLE && state != FINISHING && !fails) begin
      if (granted && doomed) {fails, failed_node} <= {1'b1, node};
      else if (came_running && came_kind == FAILED) {fails, failed_node} <= {1'b1, came_from};
      else if (expired && gives_up) {fails, failed_node} <= {1'b1, last_to};
    end
    unique case (state)
      IDLE:
      if (start) begin
        state <= FETCHING;
        program_valid <= 1'b1;
        has_slot <= 1'b0;
        {fails, to_finish, has_told} <= '0;
        reduced <= '0;
      end
      FETCHING: if (fetched) state <= is_server ? GATHERING : AWAITING;
      AWAITING: begin
        if (has_result) state <= FINISHING;
        else if (fails) state <= FAILING;
      end
      GATHERING: begin
        if (reduced_one) reduced <= next_member == 2'd3 ? '0 : 4'(next_member) + 1'b1;
        if (gathered) state <= is_last ? FINISHING : EXCHANGING;
        else if (fails && rests) state <= FAILING;
      end
      EXCHANGING: begin
        if (reduced_one) reduced <= level;
        if (is_last) state <= FINISHING;
        else if (fails && rests) state <= FAILING;
      end
      FAILING:  if (failed) state <= FINISHING;
      default: begin
        if (written) to_finish <= 1'b1;
        if (has_told && !to_finish && !looks_up) state <= IDLE;
      end
    endcase
    if (reset) begin
      state <= IDLE;
      program_valid <= 1'b0;
      has_slot <= 1'b0;
      fails <= 1'b0;
      to_finish <= 1'b0;
      settling <= 1'b0;
    end
  end

  wire unused_ok = &{1'b0, programmed};
endmodule

`default_nettype wire

// The operations that a module knows: which vectors of each have come, and where they are.
//
//   FREE ─ a vector comes early ─► EARLY ─ programmed ─► RUNNING ─ finished, failed ─► DONE ─► FREE
//     └──────────────────────── programmed ─────────────────┘        a later one of the group is finished
//
// A vector of an operation that is over, or that had come before, is dropped. An operation that is done is remembered,
// with the vectors that were sent in it, for those who ask again; if there is no free place one of them is forgotten,
// but not the last. The last operation of a group that is finished, and the first that has failed, are known by group.

`default_nettype none

module allreduce_operations
  import reduction::*;
(
    input  wire logic clk,
    input  wire logic reset,
    output logic      clearing,

    // Something has come.
    input  wire logic                came_valid,
    input  wire logic                has_vector,
    input  wire module_kind_t        came_kind,
    input  wire logic          [7:0] came_step,
    input  wire operation_id_t       came_id,
    input  wire buffer_t             came_buffer,
    output logic                     came_hit,
    output slot_t                    came_slot,
    // It is of the operation that runs; a vector was missing.
    output logic                     came_running,
    output logic                     accepted,
    output logic                     over_failed,
    // A slot has another operation from the next cycle on.
    output logic                     renewed,
    output slot_t                    renewed_slot,

    output logic    free_valid,
    output buffer_t free_buffer,

    // Software has programmed an operation: it has a slot when `granted`. It has failed already: `doomed`.
    input  wire logic                      program_valid,
    input  wire operation_id_t             program_id,
    output logic                           granted,
    output logic                           doomed,
    output slot_t                          running_slot,
    output logic               [Steps-1:0] came,

    // Not beside a packet that has come.
    input wire logic finished,
    input wire logic failed,

    // The buffers of the operation that runs: of the first member's vector, and of a step.
    output buffer_t    first_buffer,
    input  wire step_t second_step,
    output buffer_t    second_buffer
);
  localparam int Groups = 64;

  typedef enum logic [1:0] {
    FREE,
    EARLY,
    RUNNING,
    DONE
  } slot_state_t;

  typedef struct packed {
    logic valid;
    logic [25:0] group;
    logic [31:0] number;
    logic [23:0] block;
  } past_t;

  slot_state_t state[Slots];
  operation_id_t id[Slots];
  logic [Steps-1:0] has_come[Slots];
  logic [Buffers-1:0] held[Slots];
  slot_t last_done;
  logic [Buffers-1:0] used;
  buffer_t buffer_of[16*Slots];
  past_t past_finished[Groups], past_failed[Groups];
  logic [5:0] clear_address;

  // --- Which operation: that of the packet, or that which is programmed ---

  wire operation_id_t asked = came_valid ? came_id : program_id;
  wire past_t finished_one = past_finished[asked.group[5:0]];
  wire past_t failed_one = past_failed[asked.group[5:0]];
  wire is_finished = finished_one.valid && finished_one.group == asked.group[31:6]
    && {finished_one.number, finished_one.block} >= {asked.number, asked.block};
  wire has_failed = failed_one.valid && failed_one.group == asked.group[31:6]
    && {failed_one.number, failed_one.block} <= {asked.number, asked.block};

  logic hit, has_free, has_done;
  slot_t slot, free_slot, done_slot;
  always_comb begin
    {hit, slot} = '0;
    {has_free, free_slot} = '0;
    {has_done, done_slot} = '0;
    for (int i = 0; i < Slots; i++) begin
      if (state[i] != FREE && id[i] == asked) {hit, slot} = {1'b1, 2'(i)};
      if (state[i] == FREE) {has_free, free_slot} = {1'b1, 2'(i)};
      if (state[i] == DONE && last_done != 2'(i)) {has_done, done_slot} = {1'b1, 2'(i)};
    end
  end
  // Where software programs one there has to be a place: the last that is done, or one that is early.
  wire slot_t taken_slot = hit ? slot : has_free ? free_slot : has_done ? done_slot : last_done;

  step_t step;
  always_comb begin
    unique case (came_kind)
      CONTRIBUTION: step = {2'd0, came_step[1:0]};
      EXCHANGE: step = came_step[3:0] + BehindMembers;
      default: step = ResultStep;
    endcase
  end

  wire is_open = hit ? (state[slot] == EARLY || state[slot] == RUNNING) && !has_come[slot][step]
    : !is_finished && !has_failed && (has_free || has_done);

  assign came_hit = hit;
  assign came_slot = slot;
  assign came_running = came_valid && hit && state[slot] == RUNNING;
  assign accepted = came_valid && has_vector && is_open;
  assign over_failed = has_failed;
  assign granted = program_valid && !came_valid && !clearing;
  assign renewed = granted || (accepted && !hit);
  assign renewed_slot = taken_slot;
  assign doomed = has_failed;
  assign came = has_come[running_slot];

  // --- Buffers: the packet that has just come has its own until it is known whether it stays ---

  always_comb begin
    {free_valid, free_buffer} = '0;
    for (int i = 0; i < Buffers; i++)
    if (!used[i] && !(came_valid && came_buffer == 6'(i))) {free_valid, free_buffer} = {1'b1, 6'(i)};
  end

  assign first_buffer  = buffer_of[{running_slot, 4'd0}];
  assign second_buffer = buffer_of[{running_slot, second_step}];

  // --- Changes ---

  wire [Buffers-1:0] came_one = Buffers'(1) << came_buffer;
  wire operation_id_t ended = id[running_slot];
  past_t past;
  assign past = '{valid: !clearing, group: ended.group[31:6], number: ended.number, block: ended.block};
  // Only the first that has failed counts.
  wire past_t past_failed_one = past_failed[ended.group[5:0]];
  wire is_first_failed = !past_failed_one.valid || past_failed_one.group != ended.group[31:6];

  logic [Buffers-1:0] freed;
  logic [Slots-1:0] frees;
  always_comb begin
    frees = '0;
    for (int i = 0; i < Slots; i++) begin
      if ((finished || failed) && running_slot == 2'(i)) frees[i] = 1'b1;
      if (failed && state[i] == EARLY && id[i].group == ended.group) frees[i] = 1'b1;
      if (granted && !hit && taken_slot == 2'(i)) frees[i] = 1'b1;
    end
    freed = '0;
    for (int i = 0; i < Slots; i++) if (frees[i]) freed |= held[i];
  end

  always_ff @(posedge clk) begin
    used <= (used | (accepted ? came_one : '0)) & ~freed;
    for (int i = 0; i < Slots; i++) begin
      if (frees[i]) held[i] <= '0;
      if (failed && state[i] == EARLY && id[i].group == ended.group) state[i] <= FREE;
      if (finished && state[i] == DONE && id[i].group == ended.group) state[i] <= FREE;
      if ((finished || failed) && running_slot == 2'(i)) begin
        state[i]  <= DONE;
        last_done <= 2'(i);
      end
      if (accepted && taken_slot == 2'(i)) begin
        held[i] <= (hit ? held[i] : '0) | came_one;
        has_come[i] <= (hit ? has_come[i] : '0) | Steps'(1) << step;
        if (!hit) begin
          state[i] <= EARLY;
          id[i] <= came_id;
        end
      end
      if (granted && taken_slot == 2'(i)) begin
        state[i] <= RUNNING;
        running_slot <= 2'(i);
        if (!hit) begin
          id[i] <= program_id;
          has_come[i] <= '0;
        end
      end
      if (reset) begin
        state[i] <= FREE;
        held[i]  <= '0;
      end
    end
    if (accepted) buffer_of[{taken_slot, step}] <= came_buffer;
    if (finished || clearing) past_finished[clearing?clear_address : ended.group[5:0]] <= past;
    if ((failed && is_first_failed) || clearing) past_failed[clearing?clear_address : ended.group[5:0]] <= past;
    if (clearing) begin
      clear_address <= clear_address + 1'b1;
      if (clear_address == '1) clearing <= 1'b0;
    end
    if (reset) begin
      used <= '0;
      last_done <= '0;
      running_slot <= '0;
      clearing <= 1'b1;
      clear_address <= '0;
    end
  end

  wire unused_ok = &{1'b0, came_step, past_failed_one};
endmodule

`default_nettype wire

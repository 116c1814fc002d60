// The arithmetic of the accelerator, and its vectors.
//
//   came ─► buffers ─┬─► A ─┐
//                    ├─► B ─┼─► 4 integers, 4 floats or 2 doubles a cycle ─► versions ─┬─► transmit
//   own ─────────────┘      │                                                ▲        └─► A, memory
//   versions ───────────► A ┘                                          own ──┘
//
// A reduction that begins at an edge B is asked for in the cycle behind B, and `done` is the last cycle before edge
// B + words + LATENCY. A vector is read word by word, a word a cycle; its last word is written a cycle before.

`default_nettype none

module allreduce_reduce
  import exanet::*;
  import reduction::*;
#(
    // From the last word of a vector to the last of its reduction, in cycles.
    parameter int LATENCY = 8
) (
    input wire logic clk,
    input wire logic reset,

    input wire operation_t operation,
    input wire data_type_t data_type,
    input wire logic [4:0] words,

    // A reduction: A is the vector of the module so far, B another. Either may be the module's own.
    input  wire logic     start,
    input  wire logic     a_is_own,
    input  wire logic     a_has_come,
    input  wire logic     b_is_own,
    // A is that of the upper ranks.
    input  wire logic     a_is_upper,
    input  wire slot_t    slot,
    input  wire version_t read_version,
    input  wire version_t write_version,
    input  wire buffer_t  a_buffer,
    input  wire buffer_t  b_buffer,
    output logic          busy,
    output logic          done,

    // What has come.
    input wire logic          buffer_write,
    input wire buffer_t       buffer,
    input wire logic    [3:0] buffer_word,
    input wire word_t         buffer_data,

    // The module's own vector, from memory.
    input wire logic        own_write,
    input wire logic  [3:0] own_word,
    input wire word_t       own_data,
    // Kept to be sent, too: a client's.
    input wire logic        own_is_kept,
    input wire slot_t       own_slot,

    // A version for the network, one cycle later.
    input  wire slot_t          sent_slot,
    input  wire version_t       sent_version,
    input  wire logic     [3:0] sent_word,
    output word_t               sent_data,

    // The result for memory, one cycle later: a version or, of a client, what has come.
    input  wire logic [3:0] result_word,
    input  wire logic       result_has_come,
    output word_t           result_data
);
  localparam int Places = Slots * 16;

  if (LATENCY < Stages + 3) $fatal(1, "a latency of %0d cycles: the logic takes %0d", LATENCY, Stages + 3);

  // --- The word that is read ---

  logic [4:0] next_word;
  logic reading;
  wire is_read = start || (reading && next_word != words);
  wire [3:0] word = start ? 4'd0 : next_word[3:0];

  // Of the reduction that is under way.
  logic held_a_own, held_a_come, held_b_own, held_upper;
  slot_t held_slot;
  version_t held_read, held_write;
  buffer_t held_a, held_b;

  wire slot_t at_slot = start ? slot : held_slot;
  wire version_t at_version = start ? read_version : held_read;
  wire buffer_t at_a = start ? a_buffer : held_a;
  wire buffer_t at_b = start || result_has_come ? b_buffer : held_b;

  always_ff @(posedge clk) begin
    if (start) begin
      held_a_own <= a_is_own;
      held_a_come <= a_has_come;
      held_b_own <= b_is_own;
      held_upper <= a_is_upper;
      held_slot <= slot;
      held_read <= read_version;
      held_write <= write_version;
      held_a <= a_buffer;
      held_b <= b_buffer;
      next_word <= 5'd1;
    end else if (is_read) next_word <= next_word + 1'b1;
    reading <= start || (reading && next_word != words);
    if (reset) reading <= 1'b0;
  end

  // --- Memories: two read ports are two copies ---

  logic version_write;
  logic [5:0] version_place;
  logic [3:0] version_word;
  word_t version_data;
  word_t a_come, b_come, a_version, own;

  ram #(
      .DEPTH(Buffers * 16)
  ) buffers_a (
      .clk,
      .write(buffer_write),
      .write_address({buffer, buffer_word}),
      .write_data(buffer_data),
      .read_address({at_a, word}),
      .read_data(a_come)
  );

  ram #(
      .DEPTH(Buffers * 16)
  ) buffers_b (
      .clk,
      .write(buffer_write),
      .write_address({buffer, buffer_word}),
      .write_data(buffer_data),
      .read_address({at_b, is_read ? word : result_word}),
      .read_data(b_come)
  );

  ram #(
      .DEPTH(Places * 16)
  ) versions_a (
      .clk,
      .write(version_write),
      .write_address({version_place, version_word}),
      .write_data(version_data),
      .read_address({at_slot, is_read ? at_version : held_write, is_read ? word : result_word}),
      .read_data(a_version)
  );

  ram #(
      .DEPTH(Places * 16)
  ) versions_sent (
      .clk,
      .write(version_write),
      .write_address({version_place, version_word}),
      .write_data(version_data),
      .read_address({sent_slot, sent_version, sent_word}),
      .read_data(sent_data)
  );

  ram #(
      .DEPTH(16)
  ) own_vector (
      .clk,
      .write(own_write),
      .write_address(own_word),
      .write_data(own_data),
      .read_address(word),
      .read_data(own)
  );

  assign result_data = result_has_come ? b_come : a_version;

  // --- Arithmetic ---

  wire word_t a = held_a_own ? own : held_a_come ? a_come : a_version;
  wire word_t b = held_b_own ? own : b_come;
  wire word_t lower = held_upper ? b : a;
  wire word_t upper = held_upper ? a : b;

  word_t of_integers[Stages];
  word_t of_floats, of_doubles;

  always_ff @(posedge clk) begin
    for (int i = 0; i < 4; i++) begin
      unique case (operation)
        SUM: of_integers[0][32*i+:32] <= lower[32*i+:32] + upper[32*i+:32];
        MIN:
        of_integers[0][32*i+:32] <= $signed(
            upper[32*i+:32]
        ) < $signed(
            lower[32*i+:32]
        ) ? upper[32*i+:32] : lower[32*i+:32];
        default:
        of_integers[0][32*i+:32] <= $signed(
            upper[32*i+:32]
        ) > $signed(
            lower[32*i+:32]
        ) ? upper[32*i+:32] : lower[32*i+:32];
      endcase
    end
    for (int i = 1; i < Stages; i++) of_integers[i] <= of_integers[i-1];
  end

  for (genvar i = 0; i < 4; i++) begin : g_float
    float #(
        .EXP(8),
        .MAN(23)
    ) lane (
        .clk,
        .operation,
        .lower (lower[32*i+:32]),
        .upper (upper[32*i+:32]),
        .result(of_floats[32*i+:32])
    );
  end

  for (genvar i = 0; i < 2; i++) begin : g_double
    float #(
        .EXP(11),
        .MAN(52)
    ) lane (
        .clk,
        .operation,
        .lower (lower[64*i+:64]),
        .upper (upper[64*i+:64]),
        .result(of_doubles[64*i+:64])
    );
  end

  // --- Its result, Stages cycles later ---

  logic [Stages:0] in_flight;
  logic [3:0] words_in_flight[Stages+1];

  always_ff @(posedge clk) begin
    in_flight <= {in_flight[Stages-1:0], is_read};
    words_in_flight[0] <= word;
    for (int i = 1; i <= Stages; i++) words_in_flight[i] <= words_in_flight[i-1];
    if (reset) in_flight <= '0;
  end

  wire is_result = in_flight[Stages];
  assign version_write = is_result || (own_write && own_is_kept);
  assign version_place = is_result ? {held_slot, held_write} : {own_slot, 4'd0};
  assign version_word  = is_result ? words_in_flight[Stages] : own_word;
  always_comb begin
    if (!is_result) version_data = own_data;
    else begin
      unique case (data_type)
        INT: version_data = of_integers[Stages-1];
        FLOAT: version_data = of_floats;
        default: version_data = of_doubles;
      endcase
    end
  end

  // --- Its cycles ---

  logic [6:0] cycles;
  assign done = busy && cycles == 7'(words) + 7'(LATENCY - 2);

  always_ff @(posedge clk) begin
    cycles <= start ? 7'd1 : cycles + 1'b1;
    if (start) busy <= 1'b1;
    else if (done) busy <= 1'b0;
    if (reset) busy <= 1'b0;
  end
endmodule

`default_nettype wire

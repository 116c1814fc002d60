// The contexts: which cells have come of each block that is coming in, and which blocks of each channel that sends here.
//
//   a block that waits, with a context ─┐           ┌─ names of its set ─► its way, or a free one ─► place
//   cell, whose words memory has ───────┼─► cycle 1 ┘
//   silent contexts to close ───────────┘             read ─► change ─► write ──┬─► answer        cycle 2
//                                                                               └─► notification
//
//   context   free ─ first cell of a block ─► receiving ─ last cell missing ─► complete: free, ACK, notification
//              │                               ▲ ▲   └─ newer transfer, or silent for long ─► free
//              │                         fault └─┼─┘ memory has refused a word: NACK at the block's last cell
//              └─ last cell, all in use ─► waiting ─ one is free: NACK, so that the block is sent again
//
//   a cell is          damaged           ► dropped: its block will be sent again, with what it has written over
//                      foreign           ► NACK at its block's last cell
//                      of a block that has come ► ACK once more, at its last cell
//                      without context   ► its block waits from its last cell on; NACK there, where too many do
//                      of a channel without place ► NACK at its block's last cell
//                      there already     ► nothing
//                      the last missing  ► ACK
//                      the last, of a block that got its context in its midst ► NACK
//
// A channel of a source has a place in a set of the table, by its number and the source's. It has two contexts, as its
// source has two blocks outstanding (segmentation_agent). Channels whose transfers are whole or silent for long make
// way in turn, so that each set remembers those that came last. Where none does, a channel is refused.
//
// From TR-488 §4.5: dynamic contexts, answers and notifications by block; §4.2: contexts that are recycled fast. Ours:
// how blocks that come again are told, and which are refused.

`default_nettype none

module rdma_receive_contexts
  import exanet::*;
#(
    parameter int  CONTEXTS        = 256,
    parameter int  CHANNELS        = 1024,
    parameter int  WAYS            = 16,
    parameter int  WAITING         = 256,
    parameter int  CONTEXT_TIMEOUT = 30_000_000,
    parameter type cell_t          = logic,
    parameter type answer_t        = logic
) (
    input wire logic clk,
    input wire logic reset,

    input wire logic                        clearing,
    input wire logic [$clog2(CHANNELS)-1:0] clear_address,

    input  wire logic  cell_valid,
    output logic       cell_ready,
    input  wire cell_t arrived,
    // Memory has refused a word of it.
    input  wire logic  cell_faulted,

    input  wire logic may_answer,
    output logic      answer_valid,
    output answer_t   answer,

    // A block is in memory; whether it is the last of its transfer.
    output logic  block_valid,
    output cell_t block_cell,
    output logic  block_ends,

    output logic       change_valid,
    output logic [2:0] change_what
);
  localparam int SetBits = $clog2(CHANNELS / WAYS);
  localparam int WayBits = $clog2(WAYS);
  localparam int UseBits = $clog2(CONTEXTS + 1);
  localparam int WaitBits = $clog2(WAITING + 1);
  // Time of contexts, in cycles of 2^TickBits.
  localparam int TickBits = $clog2(CONTEXT_TIMEOUT) > 12 ? $clog2(CONTEXT_TIMEOUT) - 12 : 0;
  localparam logic [15:0] Silent = 16'((CONTEXT_TIMEOUT + (1 << TickBits) - 1) >> TickBits);

  typedef struct packed {
    // It is in use; or its block waits for one.
    logic        receiving;
    logic        waiting;
    logic [31:0] transaction;
    // A bit per cell; the last of the block, if it has come, and in which attempt it waits.
    logic [63:0] written;
    logic        last_known;
    logic [5:0]  last;
    logic [7:0]  attempt;
    // Its block will not be whole in this attempt: its first cells found no context, or memory has refused one.
    logic        gap;
    logic        faulted;
    logic [15:0] touched;
  } context_t;

  typedef struct packed {
    logic [21:0]    source;
    logic [15:0]    channel;
    // The transfer under way. Blocks before `base` have come, and such of which a bit is set from there on.
    logic [31:0]    first;
    logic [31:0]    base;
    logic [63:0]    done;
    logic [31:0]    blocks_done;
    logic           size_known;
    logic [31:0]    blocks;
    // When the last cell came.
    logic [15:0]    touched;
    context_t [1:0] contexts;
  } connection_t;

  typedef struct packed {
    logic        valid;
    logic [21:0] source;
    logic [15:0] channel;
  } name_t;

  typedef struct packed {
    logic [SetBits-1:0] set;
    logic [WayBits-1:0] way;
  } place_t;

  typedef enum logic [1:0] {
    CELL_CAME,
    KEEP,
    CLOSE
  } work_t;

  // What a cell has come to.
  typedef enum logic [2:0] {
    DROPPED,
    FOREIGN,
    DUPLICATE,
    NO_CONTEXT,
    AGAIN,
    WRITTEN,
    COMPLETE,
    FAULT
  } change_t;

  function automatic logic is_before(logic [31:0] a, logic [31:0] b);
    return $signed(a - b) < 0;
  endfunction

  logic [TickBits+15:0] now;
  wire [15:0] tick = now[TickBits+:16];
  always_ff @(posedge clk) now <= reset ? '0 : now + 1'b1;

  // Contexts in use, and of them those that are kept for blocks which wait.
  logic [UseBits-1:0] in_use, kept;
  wire has_context = in_use != UseBits'(CONTEXTS);
  // Blocks that wait and have none.
  logic [WaitBits-1:0] unserved;
  logic refused_lately, waits, has_room_to_wait;
  place_t waiting_place;
  logic [31:0] waiting_transaction;

  // --- Cycle 1: the place of a channel is found, or given to it, and read ---

  logic changing_valid, changing_named, changing_new, changing_faulted;
  place_t place, changing_place, closed_place;
  work_t work, changing_work;
  cell_t changing;

  wire [21:0] source = arrived.source;
  wire [15:0] channel = arrived.identity.channel;
  // Of channels, of their pages and of sources low numbers are the most in use: the bits of the last two are reversed.
  wire [SetBits-1:0] page_and_source = source[0+:SetBits] ^ source[SetBits+:SetBits] ^ channel[SetBits+:SetBits];
  logic [SetBits-1:0] reversed, set;
  always_comb for (int i = 0; i < SetBits; i++) reversed[i] = page_and_source[SetBits-1-i];
  assign set = channel[0+:SetBits] ^ reversed;

  logic [WAYS-1:0] is_named, is_open;
  logic [WayBits-1:0] named, free, turn, turns[1<<SetBits];
  logic has_free, writes_open, opens;
  wire [2*WAYS-1:0] in_turn = {2{~is_open}} >> turn;
  assign turn = turns[set];

  always_comb begin
    named = '0;
    {has_free, free} = '0;
    for (int i = 0; i < WAYS; i++) if (is_named[i]) named = WayBits'(i);
    for (int i = WAYS - 1; i >= 0; i--) if (in_turn[i]) {has_free, free} = {1'b1, turn + WayBits'(i)};
  end

  wire is_known = is_named != '0;
  wire is_new = !is_known && has_free && !arrived.damaged && !arrived.foreign;
  wire keeps = kept != '0 && may_answer;
  // While a block waits, it has the context that the cell before frees, and its answer, before the next cell is looked
  // at.
  wire settles = changing_valid && changing_work == CELL_CAME && unserved != '0;
  wire takes = cell_valid && !keeps && !settles;
  wire closes = !cell_valid && !keeps && (!has_context || refused_lately);
  wire chosen_valid = !clearing && (keeps || takes || closes);
  wire adds = !clearing && takes && is_new;
  assign cell_ready = !clearing && takes;
  assign work = keeps ? KEEP : closes ? CLOSE : CELL_CAME;
  assign place = keeps ? waiting_place : closes ? closed_place : '{set: set, way: is_known ? named : free};

  for (genvar i = 0; i < WAYS; i++) begin : gen_ways
    name_t names[1<<SetBits];
    logic  open [1<<SetBits];
    assign is_named[i] = names[set] == {1'b1, source, channel};
    // The cell before may have changed it.
    assign is_open[i]  = writes_open && changing_place == {set, WayBits'(i)} ? opens : open[set];

    always_ff @(posedge clk) begin
      if (clearing || adds && free == WayBits'(i))
        names[clearing?clear_address[SetBits-1:0] : set] <= clearing ? '0 : {1'b1, source, channel};
      if (clearing || writes_open && changing_place.way == WayBits'(i))
        open[clearing?clear_address[SetBits-1:0] : changing_place.set] <= !clearing && opens;
    end
  end

  always_ff @(posedge clk) begin
    if (clearing || adds) turns[clearing?clear_address[SetBits-1:0] : set] <= clearing ? '0 : free + 1'b1;
    changing_valid <= chosen_valid;
    changing_work <= work;
    changing_named <= is_known;
    changing_new <= adds;
    changing_faulted <= cell_faulted;
    changing_place <= place;
    changing <= arrived;
    if (keeps) changing.identity.transaction <= waiting_transaction;
    if (chosen_valid && closes) closed_place <= closed_place + 1'b1;
    if (reset) begin
      changing_valid <= 1'b0;
      closed_place   <= '0;
    end
  end

  // --- Cycle 2: it is changed ---

  connection_t of_place, connection, read, forwarded, current, changed;
  cell_identity_t identity;
  logic is_forwarded, is_fresh, has_come, is_there, is_waiting, is_taken, may_have, is_changed, which, answers;
  logic [1:0] is_silent, is_of_block, used, used_before, used_after;
  logic [31:0] place_of_block;
  logic [63:0] cells;
  context_t of_block;
  change_t what;
  kind_t kind;

  // What was changed in the cycle before was read too early.
  assign of_place   = is_forwarded ? forwarded : read;
  assign connection = changing_new ? '0 : of_place;

  always_comb begin
    identity = changing.identity;
    is_fresh = changing_work == CELL_CAME && (changing_new || is_before(connection.first, changing.first));
    for (int i = 0; i < 2; i++) begin
      is_silent[i] = connection.contexts[i].receiving && 16'(tick - connection.contexts[i].touched) > Silent;
      used[i] = connection.contexts[i].receiving;
    end

    current = connection;
    if (is_fresh)
      current = '{
          source: changing.source,
          channel: identity.channel,
          first: changing.first,
          base: changing.first,
          default: '0
      };
    else if (connection.done[0]) begin
      // The leading blocks that have come leave the window, one with each cell.
      current.base = connection.base + 1'b1;
      current.done = {1'b0, connection.done[63:1]};
    end
    current.touched = tick;

    place_of_block = identity.transaction - current.base;
    has_come = is_before(identity.transaction, current.base) ||
        place_of_block < 32'd64 && current.done[place_of_block[5:0]];
    for (int i = 0; i < 2; i++)
    is_of_block[i] = (current.contexts[i].receiving || current.contexts[i].waiting)
        && current.contexts[i].transaction == identity.transaction;
    is_there = is_of_block != '0;
    which = is_there ? is_of_block[1] : current.contexts[0].receiving || current.contexts[0].waiting;
    of_block = current.contexts[which];
    is_waiting = is_there && of_block.waiting;
    is_taken = !is_there && (of_block.receiving || of_block.waiting);
    if (!is_there)
      of_block = '{receiving: 1'b1, transaction: identity.transaction, gap: identity.index != '0, default: '0};
    of_block.touched = tick;
    cells = of_block.written;
    // A newer transfer ends the one before, and has its contexts.
    may_have = has_context || is_fresh && used != '0;

    changed = current;
    is_changed = 1'b0;
    answers = 1'b0;
    waits = 1'b0;
    kind = BLOCK_ACKNOWLEDGEMENT;
    what = DROPPED;
    if (changing_work == CLOSE) begin
      changed = connection;
      for (int i = 0; i < 2; i++) if (is_silent[i]) changed.contexts[i] = '0;
      is_changed = is_silent != '0;
    end else if (changing_work == KEEP) begin
      is_changed = is_waiting;
      answers = is_waiting;
      kind = BLOCK_WITHOUT_CONTEXT;
      identity = '{
          channel: connection.channel,
          last: 1'b1,
          index: of_block.last,
          attempt: of_block.attempt,
          transaction: identity.transaction,
          default: '0
      };
      of_block.receiving = 1'b1;
      of_block.waiting = 1'b0;
      changed.contexts[which] = of_block;
    end else if (changing.damaged) begin
      // It may have written over a cell that has come: that has to come again.
      is_changed = changing_named && !is_fresh && is_there && !is_waiting && changing.bursts != '0;
      cells[identity.index] = 1'b0;
      of_block.written = cells;
      changed.contexts[which] = of_block;
    end else if (changing.foreign) begin
      what = FOREIGN;
      answers = identity.last;
      kind = BLOCK_OF_DOMAIN;
    end else if (!changing_named && !changing_new) begin
      what = NO_CONTEXT;
      answers = identity.last;
      kind = BLOCK_WITHOUT_CONTEXT;
    end else if (has_come) begin
      what = DUPLICATE;
      is_changed = 1'b1;
      answers = identity.last;
    end else if (is_waiting || !is_there && (!may_have || is_taken || place_of_block >= 32'd64)) begin
      what = NO_CONTEXT;
      is_changed = 1'b1;
      waits = identity.last && !is_there && !may_have && !is_taken && has_room_to_wait;
      answers = identity.last && !waits && !is_waiting;
      kind = BLOCK_WITHOUT_CONTEXT;
      of_block.receiving = 1'b0;
      of_block.waiting = 1'b1;
      of_block.gap = 1'b0;
      if (identity.last) begin
        of_block.last_known = 1'b1;
        of_block.last = identity.index;
        of_block.attempt = identity.attempt;
      end
      if (waits || is_waiting) changed.contexts[which] = of_block;
    end else begin
      is_changed = 1'b1;
      what = cells[identity.index] ? AGAIN : changing_faulted ? FAULT : WRITTEN;
      if (changing_faulted) of_block.faulted = 1'b1;
      else cells[identity.index] = 1'b1;
      if (identity.last) begin
        of_block.last_known = 1'b1;
        of_block.last = identity.index;
      end
      of_block.written = cells;
      if (of_block.last_known && cells == {64{1'b1}} >> (6'd63 - of_block.last)) begin
        what = COMPLETE;
        answers = 1'b1;
        of_block = '0;
        changed.done[place_of_block[5:0]] = 1'b1;
        changed.blocks_done = current.blocks_done + 1'b1;
        if (identity.ends_transfer) begin
          changed.size_known = 1'b1;
          changed.blocks = identity.transaction - current.first + 1'b1;
        end
      end else if (identity.last && (of_block.gap || of_block.faulted)) begin
        answers = 1'b1;
        kind = of_block.faulted ? BLOCK_FAULTED : BLOCK_WITHOUT_CONTEXT;
        of_block.gap = 1'b0;
        of_block.faulted = 1'b0;
      end
      changed.contexts[which] = of_block;
    end
    // Blocks of it are coming in, or are still to come.
    opens = changing_work == CELL_CAME && (changed.contexts[0].receiving || changed.contexts[1].receiving
        || !changed.size_known || changed.blocks_done != changed.blocks);
  end

  assign writes_open = changing_valid && (changing_work == CELL_CAME ? is_changed
      : changing_work == CLOSE && 16'(tick - connection.touched) > Silent);
  assign answer_valid = changing_valid && answers;
  assign answer = '{
          kind: kind,
          source: changing_work == KEEP ? connection.source : changing.source,
          identity: identity
      };
  assign block_valid = changing_valid && what == COMPLETE;
  assign block_cell = changing;
  assign block_ends = changed.size_known && changed.blocks_done == changed.blocks;
  assign change_valid = changing_valid && changing_work == CELL_CAME;
  assign change_what = what;

  // --- Contexts that are used and free: one that becomes free is kept for a block that waits, if one does ---

  wire pushes = changing_valid && waits;
  assign used_before = 2'(used[0]) + 2'(used[1]);
  assign used_after  = 2'(changed.contexts[0].receiving) + 2'(changed.contexts[1].receiving);
  // Beside those that the place had there is the one that was kept for its block.
  wire [1:0] had = used_before + 2'(changing_work == KEEP);
  wire [1:0] has = is_changed ? used_after : used_before;
  wire [1:0] spare = changing_valid && had > has ? had - has : '0;
  wire [1:0] passed = unserved < WaitBits'(spare) ? unserved[1:0] : spare;

  fifo #(
      .WIDTH($bits(place_t) + 32),
      .DEPTH(WAITING)
  ) waiting (
      .clk,
      .reset,
      .in_valid (pushes),
      .in_ready (has_room_to_wait),
      .in_data  ({changing_place, identity.transaction}),
      .out_valid(),
      .out_ready(!clearing && keeps),
      .out_data ({waiting_place, waiting_transaction})
  );

  // Before the first reset its registers are unknown.
  logic was_reset;
  initial was_reset = 1'b0;

  always_ff @(posedge clk) begin
    in_use <= in_use + UseBits'(changing_valid && has > had) - UseBits'(spare - passed);
    kept <= kept + UseBits'(passed) - UseBits'(!clearing && keeps);
    unserved <= unserved + WaitBits'(pushes) - WaitBits'(passed);
    // Silent channels of a full set are looked for, once round the table.
    if (chosen_valid && closes && &closed_place) refused_lately <= 1'b0;
    if (change_valid && what == NO_CONTEXT && !changing_named && !changing_new) refused_lately <= 1'b1;
    was_reset <= was_reset || reset;
    if (was_reset && !reset) begin
      assert (in_use <= UseBits'(CONTEXTS))
      else $error("more blocks than contexts");
    end
    is_forwarded <= changing_valid && is_changed && changing_place == place;
    forwarded <= changed;
    if (reset) begin
      in_use <= '0;
      kept <= '0;
      unserved <= '0;
      refused_lately <= 1'b0;
    end
  end

  ram #(
      .WIDTH($bits(connection_t)),
      .DEPTH(CHANNELS)
  ) connections (
      .clk,
      .write(clearing || changing_valid && is_changed),
      .write_address(clearing ? clear_address : changing_place),
      .write_data(clearing ? '0 : changed),
      .read_address(place),
      .read_data(read)
  );
endmodule

`default_nettype wire

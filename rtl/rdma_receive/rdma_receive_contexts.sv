// The contexts: which cells have come of each block that is coming in, and which blocks of each channel that sends here.
//
//   cell, whose words memory has ─┐  one a cycle    read ─► change ─► write ──┬─► answer
//   silent contexts to close ─────┴─► cycle 1       cycle 1  cycle 2          └─► notification
//
//   context   free ─ first cell of a block ─► receiving ─ last cell missing ─► complete: free, ACK, notification
//                                              │    ▲ └─ newer transfer, or silent for long ─► free
//                                        fault └────┘ memory has refused a word: NACK at the block's last cell
//
//   a cell is          damaged           ► dropped: its block will be sent again, with what it has written over
//                      foreign           ► NACK at its block's last cell
//                      of a block that has come ► ACK once more, at its last cell
//                      without context   ► NACK at its block's last cell
//                      there already     ► nothing
//                      the last missing  ► ACK
//                      the last, of a block that got its context in its midst ► NACK
//
// The channel of a source has a place in a table by its number and the source's. It has two contexts, as its source has
// two blocks outstanding (segmentation_agent). Another channel's takes the place when its transfer is whole, or silent
// for long. Until then such a channel goes to one of a few places that are looked through all at once, and is refused
// where there is none:
//
//   source, channel ─┬─ place in the table ──► is it this one's? may it be? ─┬─► change, in cycle 2
//                    └─ one of `overflow`? ──► this one's ───────────────────┘
//
// From TR-488 §4.5: dynamic contexts, answers and notifications by block; §4.2: contexts that are recycled fast. Ours:
// how blocks that come again are told, and which are refused.

`default_nettype none

module rdma_receive_contexts
  import exanet::*;
#(
    parameter int  CONTEXTS        = 256,
    parameter int  CHANNELS        = 1024,
    parameter int  OVERFLOW        = 16,
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

    output logic    answer_valid,
    output answer_t answer,

    // A block is in memory; whether it is the last of its transfer.
    output logic  block_valid,
    output cell_t block_cell,
    output logic  block_ends,

    output logic       change_valid,
    output logic [2:0] change_what
);
  localparam int PlaceBits = $clog2(CHANNELS);
  localparam int OverflowBits = $clog2(OVERFLOW);
  // Time of contexts, in cycles of 2^TickBits.
  localparam int TickBits = $clog2(CONTEXT_TIMEOUT) > 12 ? $clog2(CONTEXT_TIMEOUT) - 12 : 0;
  localparam logic [15:0] Silent = 16'((CONTEXT_TIMEOUT + (1 << TickBits) - 1) >> TickBits);

  typedef struct packed {
    logic        receiving;
    logic [31:0] transaction;
    // A bit per cell; the last of the block, if it has come.
    logic [63:0] written;
    logic        last_known;
    logic [5:0]  last;
    // Its block will not be whole in this attempt: its first cells found no context, or memory has refused one.
    logic        gap;
    logic        faulted;
    logic [15:0] touched;
  } context_t;

  typedef struct packed {
    logic           valid;
    logic [21:0]    source;
    logic [15:0]    channel;
    // The transfer under way. Blocks before `base` have come, and such of which a bit is set from there on.
    logic [31:0]    first;
    logic [31:0]    base;
    logic [63:0]    done;
    logic [31:0]    blocks_done;
    logic           size_known;
    logic [31:0]    blocks;
    // Blocks of it are coming in, or are still to come; when the last cell came.
    logic           is_open;
    logic [15:0]    touched;
    context_t [1:0] contexts;
  } connection_t;

  typedef struct packed {
    logic [21:0] source;
    logic [15:0] channel;
  } name_t;

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

  // --- Cycle 1: the channel's place is read. While all contexts, or all places of the overflow, are in use, silent
  // ones are looked for ---

  logic chosen_valid, changing_valid, changing_closes, changing_faulted;
  logic [PlaceBits-1:0] place, changing_place;
  // Those of the overflow come behind the table's.
  logic [PlaceBits:0] closed_place;
  logic changing_closes_overflow, is_full;
  cell_t changing;
  logic [$clog2(CONTEXTS+1)-1:0] in_use;
  wire has_context = in_use != ($clog2(CONTEXTS + 1))'(CONTEXTS);
  wire closes = !cell_valid && (!has_context || is_full);

  // Of channels and of sources low numbers are the most in use: the bits of the latter are reversed.
  logic [PlaceBits-1:0] reversed_source;
  always_comb for (int i = 0; i < PlaceBits; i++) reversed_source[i] = arrived.source[PlaceBits-1-i];
  assign place = closes ? closed_place[PlaceBits-1:0] : arrived.identity.channel[PlaceBits-1:0] ^ reversed_source;
  // The table is written at the end of the second cycle: the same place waits for it.
  assign chosen_valid = !clearing && (cell_valid || closes) && !(changing_valid && changing_place == place);
  assign cell_ready = chosen_valid && !closes;

  always_ff @(posedge clk) begin
    changing_valid <= chosen_valid;
    changing_closes <= closes;
    changing_closes_overflow <= closes && closed_place[PlaceBits];
    changing_faulted <= cell_faulted;
    changing_place <= place;
    changing <= arrived;
    if (chosen_valid && closes) closed_place <= closed_place + 1'b1;
    if (reset) begin
      changing_valid <= 1'b0;
      closed_place   <= '0;
    end
  end

  // --- Cycle 2 ---

  connection_t of_place, connection, current, changed;
  cell_identity_t identity;
  logic is_same, is_fresh, is_others, is_taken, has_come, is_there, is_changed, which, answers;
  logic [1:0] is_silent, is_of_block;
  logic [31:0] place_of_block;
  logic [63:0] cells;
  context_t of_block;
  change_t what;
  kind_t kind;

  name_t names[OVERFLOW];
  logic [OVERFLOW-1:0] holds, holds_open;
  connection_t overflow[OVERFLOW];
  logic is_named, has_free, goes_over, is_over;
  logic [OverflowBits-1:0] named, free, over;
  assign is_full = &holds_open;

  always_comb begin
    {is_named, named} = '0;
    {has_free, free}  = '0;
    for (int i = 0; i < OVERFLOW; i++) begin
      if (holds[i] && names[i] == {changing.source, changing.identity.channel})
        {is_named, named} = {1'b1, OverflowBits'(i)};
      if (!holds_open[i]) {has_free, free} = {1'b1, OverflowBits'(i)};
    end
    is_others = !is_named && of_place.is_open && 16'(tick - of_place.touched) <= Silent
        && {of_place.source, of_place.channel} != {changing.source, changing.identity.channel};
    goes_over = !changing_closes && is_others && has_free;
    is_taken = is_others && !has_free;
    is_over = changing_closes ? changing_closes_overflow : is_named || goes_over;
    over = changing_closes ? changing_place[OverflowBits-1:0] : is_named ? named : free;
    connection = !is_over ? of_place : goes_over || !holds[over] ? '0 : overflow[over];
  end

  always_comb begin
    identity = changing.identity;
    is_same  = connection.valid && connection.source == changing.source && connection.channel == identity.channel;
    is_fresh = !is_same || is_before(connection.first, changing.first);
    for (int i = 0; i < 2; i++)
    is_silent[i] = connection.contexts[i].receiving && 16'(tick - connection.contexts[i].touched) > Silent;

    current = connection;
    if (is_fresh)
      current = '{
          valid: 1'b1,
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
    is_of_block[i] = current.contexts[i].receiving && current.contexts[i].transaction == identity.transaction;
    is_there = is_of_block != '0;
    which = is_there ? is_of_block[1] : current.contexts[0].receiving;
    of_block = current.contexts[which];
    if (!is_there)
      of_block = '{receiving: 1'b1, transaction: identity.transaction, gap: identity.index != '0, default: '0};
    of_block.touched = tick;
    cells = of_block.written;

    changed = current;
    is_changed = 1'b0;
    answers = 1'b0;
    kind = BLOCK_ACKNOWLEDGEMENT;
    what = DROPPED;
    if (changing_closes) begin
      changed = connection;
      for (int i = 0; i < 2; i++) if (is_silent[i]) changed.contexts[i] = '0;
      is_changed = is_silent != '0;
      // A channel that is silent leaves the overflow.
      if (changing_closes_overflow && connection.is_open && 16'(tick - connection.touched) > Silent) begin
        changed = '0;
        is_changed = 1'b1;
      end
    end else if (changing.damaged) begin
      // It may have written over a cell that has come: that has to come again.
      is_changed = is_same && !is_fresh && is_there && changing.bursts != '0;
      cells[identity.index] = 1'b0;
      of_block.written = cells;
      changed.contexts[which] = of_block;
    end else if (changing.foreign) begin
      what = FOREIGN;
      answers = identity.last;
      kind = BLOCK_OF_DOMAIN;
    end else if (is_taken) begin
      what = NO_CONTEXT;
      answers = identity.last;
      kind = BLOCK_WITHOUT_CONTEXT;
    end else if (has_come) begin
      what = DUPLICATE;
      is_changed = 1'b1;
      answers = identity.last;
    end else if (!is_there && (!has_context || current.contexts[which].receiving || place_of_block >= 32'd64)) begin
      what = NO_CONTEXT;
      is_changed = 1'b1;
      answers = identity.last;
      kind = BLOCK_WITHOUT_CONTEXT;
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
    changed.is_open = changed.valid && (changed.contexts[0].receiving || changed.contexts[1].receiving
        || !changed.size_known || changed.blocks_done != changed.blocks);
  end

  assign answer_valid = changing_valid && answers;
  assign answer = '{kind: kind, source: changing.source, identity: identity};
  assign block_valid = changing_valid && what == COMPLETE;
  assign block_cell = changing;
  assign block_ends = changed.size_known && changed.blocks_done == changed.blocks;
  assign change_valid = changing_valid && !changing_closes;
  assign change_what = what;

  // Before the first reset its registers are unknown.
  logic was_reset;
  initial was_reset = 1'b0;
  wire [1:0] used_before = 2'(connection.contexts[0].receiving) + 2'(connection.contexts[1].receiving);
  wire [1:0] used_after = 2'(changed.contexts[0].receiving) + 2'(changed.contexts[1].receiving);

  always_ff @(posedge clk) begin
    if (changing_valid && is_changed)
      in_use <= in_use + ($clog2(CONTEXTS + 1))'(used_after) - ($clog2(CONTEXTS + 1))'(used_before);
    was_reset <= was_reset || reset;
    if (was_reset && !reset)
      assert (in_use <= ($clog2(CONTEXTS + 1))'(CONTEXTS))
      else $error("more blocks than contexts");
    if (changing_valid && is_changed && is_over) begin
      overflow[over] <= changed;
      names[over] <= {changed.source, changed.channel};
      holds[over] <= changed.valid;
      holds_open[over] <= changed.is_open;
    end
    if (reset) begin
      in_use <= '0;
      holds <= '0;
      holds_open <= '0;
    end
  end

  ram #(
      .WIDTH($bits(connection_t)),
      .DEPTH(CHANNELS)
  ) connections (
      .clk,
      .write(clearing || changing_valid && is_changed && !is_over),
      .write_address(clearing ? clear_address : changing_place),
      .write_data(clearing ? '0 : changed),
      .read_address(place),
      .read_data(of_place)
  );
endmodule

`default_nettype wire

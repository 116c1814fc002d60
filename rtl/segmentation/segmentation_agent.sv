// The segmentation agent: what each channel is at, and what changes it. It cuts transfers into blocks and blocks into
// cells, and sees each block through to its acknowledgement.
//
//   answer ┐
//   post ──┤ one a
//   mapped ┤ cycle ─► inputs, as ─┐   cell to read ┐                          ┌─► cell to be read
//   due ───┘          they come   ├───────────────►┼─► read ─► change ─► write ┼─► turns: the channels with cells to be read
//   sent, fault ─────────────────►┘   load ────────┘  cycle 1   cycle 2       └─► state of the channel
//
// Inputs are dealt with in the order in which they come, so that the turns do not depend on how long each takes: all
// buffers that are free are filled behind one, before the next. Of those that come in one cycle, an answer goes before a
// post, that before a time-out, and all before a cell that leaves.
//
//   channel    available ─ descriptor ─► posted ─ post ─► running ─ last block acknowledged, or given up ─► available
//   block      sending ─ last cell sent ─► unacknowledged ─ ACK ─► done: the next block begins in its place
//                ▲  └─ page fault ─► faulted ─ mapped ─┐ │
//                └───── again: NACK, or time is up ────┴─┘
//
// An acknowledgement counts in every state, whichever attempt it answers; a NACK and the last cell only of the attempt
// under way. Channels take turns cell by cell; of a channel the older block goes first. Two blocks of a channel may be
// outstanding.
//
// From TR-488 §4.5: channels, blocks of 16 KB, acknowledgements, repetition; §4.5.2: in hardware, back to back: an
// operation a cycle. Ours: the order of operations, two blocks, the times of the timers and their doubling.

`default_nettype none

module segmentation_agent
  import exanet::*;
#(
    parameter int  CHANNEL_BITS    = 10,
    parameter int  TIME_BITS       = 28,
    parameter int  TIMEOUT         = 600_000,
    parameter int  LONGEST_TIMEOUT = 9_600_000,
    parameter int  REPETITIONS     = 16,
    parameter int  BLOCK           = 16384,
    parameter int  CELL_BYTES      = 256,
    parameter int  CELL_BUFFERS    = 8,
    // Bytes of a word of memory's bus.
    parameter int  WORD_BYTES      = 16,
    parameter type cell_t          = logic
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset all channels become available, one a cycle.
    output logic                         clearing,
    output logic      [CHANNEL_BITS-1:0] clear_address,
    input  wire logic [   TIME_BITS-1:0] now,

    // The descriptor of a channel: there one cycle later.
    output logic         [CHANNEL_BITS-1:0] looked_up_channel,
    input  wire logic    [            38:0] source,
    input  wire logic    [            31:0] size,
    input  wire header_t                    destination,
    input  wire logic    [            15:0] pdid,

    input  wire logic                    post_valid,
    output logic                         post_ready,
    input  wire logic [CHANNEL_BITS-1:0] post_channel,

    input  wire logic                    mapped_valid,
    output logic                         mapped_ready,
    input  wire logic [CHANNEL_BITS-1:0] mapped_channel,

    input  wire logic                    load_valid,
    output logic                         load_ready,
    input  wire logic [CHANNEL_BITS-1:0] load_channel,
    output logic                         loaded,
    output logic      [             7:0] loaded_state,

    output logic                    freed,
    output logic [CHANNEL_BITS-1:0] freed_channel,

    input  wire logic                    answer_valid,
    output logic                         answer_ready,
    input  wire logic [CHANNEL_BITS-1:0] answer_channel,
    input  wire logic [            31:0] answer_transaction,
    input  wire logic [             7:0] answer_attempt,
    input  wire logic                    answer_accepted,
    input  wire logic                    answer_again,

    // The header of a cell has been taken, or memory has refused its payload; either way a buffer is free.
    input  wire cell_t gone_cell,
    input  wire logic  sent,
    input  wire logic  dropped,
    output logic       sent_ready,

    // Of a channel two timers, one for each block that may be outstanding.
    input  wire logic [CHANNEL_BITS:0] scanned_timer,
    output logic                       scanned_waits,
    output logic      [ TIME_BITS-1:0] scanned_deadline,
    input  wire logic                  due_valid,
    output logic                       due_ready,
    input  wire logic [CHANNEL_BITS:0] due_timer,
    input  wire logic [ TIME_BITS-1:0] due_time,

    output logic                               cell_valid,
    output cell_t                              made_cell,
    output logic  [                      41:0] cell_source,
    output logic  [$clog2(256 / WORD_BYTES):0] cell_words,

    output logic                    change_valid,
    output logic [CHANNEL_BITS-1:0] change_channel,
    output logic [            31:0] change_transaction,
    output logic [             2:0] change_what
);
  localparam int Channels = 1 << CHANNEL_BITS;
  // Cycles by which a timer begins behind the header, so that it ends as an answer of that edge would come.
  localparam logic [TIME_BITS-1:0] DueIn = 2;
  // A timer that finds its place or the agent taken is up to so many cycles late.
  localparam int MostLate = 4096;
  localparam int BlockBits = $clog2(BLOCK);
  localparam int CellBits = $clog2(CELL_BYTES);
  localparam int ByteBits = $clog2(WORD_BYTES);
  localparam int WordsBits = $clog2(256 / WORD_BYTES) + 1;
  localparam int IndexBits = 32 - BlockBits + 1;
  // In place of the next cell of a block: all are read.
  localparam logic [6:0] AllRead = '1;

  typedef enum logic [1:0] {
    NONE,
    SENDING,
    UNACKNOWLEDGED,
    FAULTED
  } block_state_t;

  typedef struct packed {
    block_state_t         state;
    logic [IndexBits-1:0] index;
    logic [7:0]           attempt;
    logic [4:0]           timeouts;
    logic [6:0]           next;
    logic [TIME_BITS-1:0] deadline;
  } block_t;

  // How the last transfer of a channel has ended.
  typedef enum logic [2:0] {
    NOTHING,
    DONE,
    TIMED_OUT,
    PROTECTION,
    ADDRESS
  } outcome_t;

  typedef struct packed {
    logic                 running;
    outcome_t             outcome;
    // It is among the turns.
    logic                 queued;
    // The transaction of the first block, and of the next transfer's.
    logic [31:0]          first;
    logic [31:0]          transactions;
    logic [IndexBits-1:0] blocks;
    logic [IndexBits-1:0] next_block;
    // Which block is the older one.
    logic                 older;
    block_t [1:0]         outstanding;
  } channel_t;

  typedef enum logic [2:0] {
    DUE,
    ANSWER,
    SENT,
    FAULT,
    POST,
    MAPPED,
    LOAD,
    READ
  } what_t;

  // A cell that has gone, or was dropped.
  typedef struct packed {
    logic                    dropped;
    logic                    last;
    logic [CHANNEL_BITS-1:0] channel;
    logic [31:0]             transaction;
    logic [7:0]              attempt;
    logic [TIME_BITS-1:0]    at;
  } gone_t;

  typedef struct packed {
    what_t                   what;
    logic [CHANNEL_BITS-1:0] channel;
    logic [31:0]             transaction;
    logic [7:0]              attempt;
    // Of ANSWER; of SENT and FAULT whether they count.
    logic                    accepted;
    logic                    again;
    // Of DUE the block; of DUE and SENT the time.
    logic                    which;
    logic [TIME_BITS-1:0]    at;
  } input_t;

  // What has happened, for a comparison with the model.
  typedef enum logic [2:0] {
    STARTED,
    LAST_CELL,
    ACKNOWLEDGED,
    FINISHED,
    AGAIN,
    FAULT_MET,
    GIVEN_UP
  } change_t;

  // The wait after each time-out.
  function automatic logic [31:0][TIME_BITS-1:0] timeouts();
    logic [31:0][TIME_BITS-1:0] all;
    longint cycles;
    cycles = longint'(TIMEOUT);
    for (int i = 0; i < 32; i++) begin
      all[i] = TIME_BITS'(cycles);
      cycles = 2 * cycles > longint'(LONGEST_TIMEOUT) ? longint'(LONGEST_TIMEOUT) : 2 * cycles;
    end
    return all;
  endfunction
  localparam logic [31:0][TIME_BITS-1:0] Timeouts = timeouts();

  function automatic block_t block_of(logic [IndexBits-1:0] index);
    return '{state: SENDING, index: index, default: '0};
  endfunction

  // --- Inputs, in the order in which they come: of a cycle one of four, and a cell that has gone ---

  logic due_waits, due_taken, input_valid, inputs_ready, input_done;
  input_t waiting_due, offered, next_input;
  logic is_offered, has_input, has_gone, is_behind;
  gone_t gone, next_gone;

  fifo #(
      .WIDTH(CHANNEL_BITS + 1 + TIME_BITS),
      .DEPTH(128)
  ) dues (
      .clk,
      .reset,
      .in_valid (due_valid),
      .in_ready (due_ready),
      .in_data  ({due_timer, due_time}),
      .out_valid(due_waits),
      .out_ready(due_taken),
      .out_data ({waiting_due.channel, waiting_due.which, waiting_due.at})
  );
  assign waiting_due.what = DUE;
  assign {waiting_due.transaction, waiting_due.attempt, waiting_due.accepted, waiting_due.again} = '0;

  always_comb begin
    is_offered = 1'b1;
    if (answer_valid)
      offered = '{
          what: ANSWER,
          channel: answer_channel,
          transaction: answer_transaction,
          attempt: answer_attempt,
          accepted: answer_accepted,
          again: answer_again,
          default: '0
      };
    else if (post_valid) offered = '{what: POST, channel: post_channel, default: '0};
    else if (mapped_valid) offered = '{what: MAPPED, channel: mapped_channel, default: '0};
    else begin
      offered = waiting_due;
      is_offered = due_waits;
    end
  end

  wire takes_input = inputs_ready && !clearing;
  assign answer_ready = takes_input;
  assign post_ready = takes_input && !answer_valid;
  assign mapped_ready = takes_input && !answer_valid && !post_valid;
  assign due_taken = takes_input && !answer_valid && !post_valid && !mapped_valid;
  assign sent_ready = inputs_ready;
  assign gone = '{
          dropped: dropped,
          last: gone_cell.last,
          channel: gone_cell.channel,
          transaction: gone_cell.transaction,
          attempt: gone_cell.attempt,
          at: now + DueIn
      };

  fifo #(
      .WIDTH(2 + $bits(input_t) + $bits(gone_t)),
      .DEPTH(32)
  ) inputs (
      .clk,
      .reset,
      .in_valid (is_offered && !clearing || sent || dropped),
      .in_ready (inputs_ready),
      .in_data  ({is_offered && !clearing, offered, sent || dropped, gone}),
      .out_valid(input_valid),
      .out_ready(input_done),
      .out_data ({has_input, next_input, has_gone, next_gone})
  );

  logic chosen_valid, changing_valid, stays;
  input_t chosen, changing;

  // --- The round of channels with cells to be read ---

  logic turn_valid, turn_taken, turn_again;
  logic [CHANNEL_BITS-1:0] turn_channel;
  logic turn_ready;

  fifo #(
      .WIDTH(CHANNEL_BITS),
      .DEPTH(Channels)
  ) turns (
      .clk,
      .reset,
      .in_valid (turn_again),
      .in_ready (turn_ready),
      .in_data  (changing.channel),
      .out_valid(turn_valid),
      .out_ready(turn_taken),
      .out_data (turn_channel)
  );

  // Cells that are read from memory or wait for the link.
  logic [$clog2(CELL_BUFFERS+1)-1:0] fetched;
  wire has_buffer = fetched != ($clog2(CELL_BUFFERS + 1))'(CELL_BUFFERS);

  // --- Cycle 1: whose turn, and the channel is read ---

  // Of an input and a cell that has gone in its cycle, the cell is left.
  wire is_of_gone = !has_input || is_behind;
  // Of a cell that is not its block's last nobody wants to know more than that its buffer is free.
  wire gone_counts = next_gone.dropped || next_gone.last;
  // Buffers are filled behind the change before.
  wire may_fill = changing.what == READ || changing.what != LOAD && has_buffer;

  always_comb begin
    chosen_valid = !clearing && !stays;
    if (turn_valid && has_buffer) chosen = '{what: READ, channel: turn_channel, default: '0};
    else if (input_valid) begin
      chosen = next_input;
      if (is_of_gone)
        chosen = '{
            what: next_gone.dropped ? FAULT : SENT,
            channel: next_gone.channel,
            transaction: next_gone.transaction,
            attempt: next_gone.attempt,
            at: next_gone.at,
            accepted: gone_counts,
            default: '0
        };
      if (changing_valid && may_fill) chosen_valid = 1'b0;
    end else begin
      chosen = '{what: LOAD, channel: load_channel, default: '0};
      chosen_valid = load_valid && !clearing && !stays;
    end
    // The table is written at the end of the second cycle: the same channel waits for it.
    if (changing_valid && changing.channel == chosen.channel) chosen_valid = 1'b0;
  end

  wire is_input = chosen_valid && chosen.what != READ && chosen.what != LOAD;
  wire buffer_freed = is_input && is_of_gone;
  assign input_done = is_input && (is_of_gone || !has_gone);
  assign turn_taken = chosen_valid && chosen.what == READ;
  assign load_ready = chosen_valid && chosen.what == LOAD;

  always_ff @(posedge clk) begin
    if (is_input) is_behind <= !input_done;
    if (reset) is_behind <= 1'b0;
  end

  assign looked_up_channel = stays ? changing.channel : chosen.channel;

  channel_t read_channel, kept_channel, channel, changed, written;
  logic is_kept;

  always_ff @(posedge clk) begin
    changing_valid <= chosen_valid || stays;
    is_kept <= stays;
    kept_channel <= written;
    if (!stays) changing <= chosen;
    if (reset) begin
      changing_valid <= 1'b0;
      is_kept <= 1'b0;
    end
  end

  // --- Cycle 2: the change ---

  assign channel = is_kept ? kept_channel : read_channel;

  // The blocks that a transaction, an attempt or the turn names.
  logic [1:0] is_named, is_of_attempt, has_cells;
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      is_named[i] = channel.outstanding[i].state != NONE
          && changing.transaction == channel.first + 32'(channel.outstanding[i].index);
      is_of_attempt[i] = is_named[i] && channel.outstanding[i].attempt == changing.attempt;
      has_cells[i] = channel.outstanding[i].state == SENDING && channel.outstanding[i].next != AllRead;
    end
  end

  logic which, is_changed, is_freed, begins;
  change_t what_changes;
  block_t named;
  logic [IndexBits-1:0] size_blocks;
  logic [31:0] cell_offset, left;
  logic is_last;
  logic [8:0] bytes;

  assign size_blocks = size == '0 ? IndexBits'(1) : IndexBits'((33'(size) + 33'(BLOCK - 1)) >> BlockBits);

  always_comb begin
    unique case (changing.what)
      READ: which = has_cells[channel.older] ? channel.older : !channel.older;
      DUE: which = changing.which;
      default: which = is_named[1];
    endcase
    named = channel.outstanding[which];
    cell_offset = 32'({named.index, BlockBits'(0)}) + 32'({named.next[5:0], CellBits'(0)});
    left = size - cell_offset;
    bytes = left >= 32'(CELL_BYTES) ? 9'(CELL_BYTES) : 9'(left);
    is_last = left <= 32'(CELL_BYTES) || named.next[5:0] == 6'(BLOCK / CELL_BYTES - 1);
  end

  wire is_due = named.state == UNACKNOWLEDGED && TIME_BITS'(changing.at - named.deadline) < TIME_BITS'(MostLate);
  wire may_be_refused = is_of_attempt[which] && named.state inside {SENDING, UNACKNOWLEDGED};
  wire has_cell = channel.running && has_cells != '0;
  wire makes_cell = changing_valid && changing.what == READ && has_cell;

  always_comb begin
    changed = channel;
    is_changed = 1'b0;
    is_freed = 1'b0;
    begins = 1'b0;
    what_changes = STARTED;
    if (channel.running || changing.what == POST)
      unique case (changing.what)
        POST: begin
          is_changed = 1'b1;
          if (source[ByteBits-1:0] != '0 || destination.address[ByteBits-1:0] != '0) begin
            // Words of memory become words of cells.
            is_freed = 1'b1;
            changed.outcome = ADDRESS;
            what_changes = GIVEN_UP;
          end else begin
            begins = 1'b1;
            changed.running = 1'b1;
            changed.first = channel.transactions;
            changed.transactions = channel.transactions + 32'(size_blocks);
            changed.blocks = size_blocks;
            changed.next_block = size_blocks == IndexBits'(1) ? IndexBits'(1) : IndexBits'(2);
            changed.older = 1'b0;
            changed.outstanding[0] = block_of('0);
            changed.outstanding[1] = size_blocks == IndexBits'(1) ? '0 : block_of(IndexBits'(1));
          end
        end
        READ:
        if (has_cell) begin
          is_changed = 1'b1;
          changed.outstanding[which].next = is_last ? AllRead : named.next + 1'b1;
        end
        SENT:
        if (changing.accepted && is_of_attempt[which] && named.state == SENDING) begin
          is_changed = 1'b1;
          what_changes = LAST_CELL;
          changed.outstanding[which].state = UNACKNOWLEDGED;
          changed.outstanding[which].deadline = changing.at + Timeouts[named.timeouts];
        end
        FAULT:
        if (changing.accepted && is_of_attempt[which] && named.state == SENDING) begin
          is_changed = 1'b1;
          what_changes = FAULT_MET;
          changed.outstanding[which].state = FAULTED;
        end
        ANSWER:
        if (changing.accepted) begin
          if (is_named[which]) begin
            is_changed = 1'b1;
            what_changes = ACKNOWLEDGED;
            changed.older = !which;
            if (channel.next_block != channel.blocks) begin
              begins = 1'b1;
              changed.outstanding[which] = block_of(channel.next_block);
              changed.next_block = channel.next_block + 1'b1;
              // Alone, it is the older one.
              if (channel.outstanding[!which].state == NONE) changed.older = which;
            end else begin
              changed.outstanding[which] = '0;
              if (channel.outstanding[!which].state == NONE) begin
                is_freed = 1'b1;
                changed.outcome = DONE;
                what_changes = FINISHED;
              end
            end
          end
        end else if (may_be_refused) begin
          is_changed = 1'b1;
          if (changing.again) begin
            begins = 1'b1;
            what_changes = AGAIN;
            changed.outstanding[which].timeouts = '0;
          end else begin
            is_freed = 1'b1;
            changed.outcome = PROTECTION;
            what_changes = GIVEN_UP;
          end
        end
        DUE:
        if (is_due) begin
          is_changed = 1'b1;
          if (named.timeouts < 5'(REPETITIONS)) begin
            begins = 1'b1;
            what_changes = AGAIN;
            changed.outstanding[which].timeouts = named.timeouts + 1'b1;
          end else begin
            is_freed = 1'b1;
            changed.outcome = TIMED_OUT;
            what_changes = GIVEN_UP;
          end
        end
        MAPPED:
        for (int i = 0; i < 2; i++)
        if (channel.outstanding[i].state == FAULTED) begin
          is_changed = 1'b1;
          begins = 1'b1;
          what_changes = AGAIN;
          changed.outstanding[i].state = SENDING;
          changed.outstanding[i].attempt = channel.outstanding[i].attempt + 1'b1;
          changed.outstanding[i].next = '0;
        end
        default: ;
      endcase
    if (what_changes == AGAIN && changing.what != MAPPED) begin
      changed.outstanding[which].state = SENDING;
      changed.outstanding[which].attempt = named.attempt + 1'b1;
      changed.outstanding[which].next = '0;
    end
    if (is_freed) begin
      changed.running = 1'b0;
      changed.outstanding = '0;
    end
  end

  // The next cell of a channel that is alone follows at once; any other waits for its turn.
  wire has_more = changing.what == READ && has_cell && (!is_last || has_cells == 2'b11);
  assign stays = makes_cell && has_more && !is_last && !turn_valid && has_buffer;
  assign turn_again = changing_valid && (begins && !channel.queued || has_more && !stays);

  always_comb begin
    written = changed;
    if (changing.what == READ) written.queued = has_more;
    else if (begins) written.queued = 1'b1;
  end

  assign loaded = changing_valid && changing.what == LOAD;
  assign loaded_state = {3'd0, channel.outcome, channel.running, 1'b0};
  assign freed = changing_valid && is_freed;
  assign freed_channel = changing.channel;

  assign change_valid = changing_valid && is_changed && changing.what != READ;
  assign change_channel = changing.channel;
  assign change_transaction = changing.what == POST ? channel.transactions : channel.first + 32'(named.index);
  assign change_what = what_changes;

  // A buffer is taken with the turn, or as the channel stays, and given back where there was no cell.
  wire buffer_taken = turn_taken || stays;
  wire buffer_unused = changing_valid && changing.what == READ && !has_cell;

  always_ff @(posedge clk) begin
    fetched <= fetched + ($clog2(
        CELL_BUFFERS + 1
    ))'(buffer_taken) - ($clog2(
        CELL_BUFFERS + 1
    ))'(buffer_freed) - ($clog2(
        CELL_BUFFERS + 1
    ))'(buffer_unused);
    if (!reset) begin
      assert (!turn_again || turn_ready)
      else $error("a channel has two turns");
      assert (!(changing_valid && changing.what == POST && channel.running))
      else $error("a descriptor for a channel that is not available");
    end
    if (reset) fetched <= '0;
  end

  // --- The cell ---

  always_ff @(posedge clk) begin
    cell_valid <= makes_cell;
    cell_source <= {3'(changing.channel >> 6), source + 39'(cell_offset)};
    // A cell without payload has a word of memory read all the same: a burst has one at least.
    cell_words <= bytes == '0 ? WordsBits'(1) : WordsBits'((11'(bytes) + 11'(WORD_BYTES - 1)) >> ByteBits);
    made_cell <= '{
        channel: changing.channel,
        transaction: channel.first + 32'(named.index),
        first: channel.first,
        index: named.next[5:0],
        last: is_last,
        ends_transfer: named.index + 1'b1 == channel.blocks,
        attempt: named.attempt,
        bytes: bytes,
        node: destination.node,
        rank: destination.rank,
        address: destination.address + 39'(cell_offset),
        page: destination.page,
        pdid: pdid
    };
    if (reset) cell_valid <= 1'b0;
  end

  // --- The tables ---

  wire write = clearing || changing_valid && (is_changed || changing.what == READ);
  wire [CHANNEL_BITS-1:0] write_address = clearing ? clear_address : changing.channel;

  ram #(
      .WIDTH($bits(channel_t)),
      .DEPTH(Channels)
  ) channels (
      .clk,
      .write,
      .write_address,
      .write_data(clearing ? '0 : written),
      .read_address(chosen.channel),
      .read_data(read_channel)
  );

  // A timer whose block has been answered tells of it in vain.
  wire starts_timer = changing_valid && what_changes == LAST_CELL && is_changed;
  logic [CHANNEL_BITS-1:0] cleared_timer;
  assign cleared_timer = clear_address;

  for (genvar i = 0; i < 2; i++) begin : timers_of
    logic waits;
    logic [TIME_BITS-1:0] deadline;
    ram #(
        .WIDTH(1 + TIME_BITS),
        .DEPTH(Channels)
    ) deadlines (
        .clk,
        .write(clearing || starts_timer && which == i[0]),
        .write_address(clearing ? cleared_timer : changing.channel),
        .write_data(clearing ? '0 : {1'b1, changed.outstanding[i].deadline}),
        .read_address(scanned_timer[CHANNEL_BITS:1]),
        .read_data({waits, deadline})
    );
  end

  logic scanned_which;
  always_ff @(posedge clk) scanned_which <= scanned_timer[0];
  assign scanned_waits = scanned_which ? timers_of[1].waits : timers_of[0].waits;
  assign scanned_deadline = scanned_which ? timers_of[1].deadline : timers_of[0].deadline;

  always_ff @(posedge clk) begin
    if (clearing) begin
      clear_address <= clear_address + 1'b1;
      if (&clear_address) clearing <= 1'b0;
    end
    if (reset) begin
      clearing <= 1'b1;
      clear_address <= '0;
    end
  end

  wire unused_ok = &{1'b0, destination, gone_cell};
endmodule

`default_nettype wire

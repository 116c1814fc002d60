// The channels of the packetizer: the state of each, drawn at the head of packetizer.sv, and what changes it.
//
//   due ───┐
//   answer ┤   one a cycle     read ─► change ─► write       3 copies of the table: for this, for transmit, for
//   sent ──┼─► in this order ─► cycle 1   cycle 2            the timers
//   post ──┤
//   clear ─┤
//   load ──┘
//
//   what      in state                       to                            and
//   post      any but ongoing               ongoing
//   sent      ongoing, of this post          ongoing                       the timer runs
//   answer    ongoing, of this number        acknowledged, or negatively   the timer stands
//   due       ongoing, the timer has run off ongoing                       a repeat is started
//             … for the last time            timed out
//   clear     negatively ack., timed out     idle
//   All else changes nothing.

`default_nettype none

module packetizer_channels #(
    parameter int CHANNEL_BITS = 8,
    // A post: the number of its message, and above it the count of posts to its channel.
    parameter int POST_BITS = 35,
    parameter int TIME_BITS = 28,
    parameter int TIMEOUT = 7500,
    parameter int LONGEST_TIMEOUT = 150_000,
    parameter int REPETITIONS = 16
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset all channels become idle, one a cycle.
    output logic                         clearing,
    output logic      [CHANNEL_BITS-1:0] clear_address,
    input  wire logic [   TIME_BITS-1:0] now,

    // Taken at once.
    input wire logic                    due_valid,
    input wire logic [CHANNEL_BITS-1:0] due_channel,
    input wire logic [   TIME_BITS-1:0] due_time,

    input  wire logic                    answer_valid,
    output logic                         answer_ready,
    input  wire logic [CHANNEL_BITS-1:0] answer_channel,
    input  wire logic [            31:0] answer_number,
    input  wire logic                    answer_accepted,

    input  wire logic                    sent_valid,
    output logic                         sent_ready,
    input  wire logic [CHANNEL_BITS-1:0] sent_channel,
    input  wire logic [   POST_BITS-1:0] sent_post,

    input  wire logic                    post_valid,
    output logic                         post_ready,
    input  wire logic [CHANNEL_BITS-1:0] post_channel,
    input  wire logic [   POST_BITS-1:0] post,

    input  wire logic                    clear_valid,
    output logic                         clear_ready,
    input  wire logic [CHANNEL_BITS-1:0] clear_channel,

    input  wire logic                    load_valid,
    output logic                         load_ready,
    input  wire logic [CHANNEL_BITS-1:0] load_channel,
    output logic                         loaded,
    output logic      [             2:0] loaded_state,

    output logic                    repeat_valid,
    output logic [CHANNEL_BITS-1:0] repeat_channel,
    output logic [   POST_BITS-1:0] repeat_post,

    // What transmit and the timers look up: there one cycle later.
    input  wire logic [CHANNEL_BITS-1:0] looked_up_channel,
    output logic                         looked_up_ongoing,
    output logic      [   POST_BITS-1:0] looked_up_post,
    input  wire logic [CHANNEL_BITS-1:0] scanned_channel,
    output logic                         scanned_waits,
    output logic      [   TIME_BITS-1:0] scanned_deadline,

    output logic                    change_valid,
    output logic [CHANNEL_BITS-1:0] change_channel,
    output logic [             2:0] change_state
);
  localparam int Channels = 1 << CHANNEL_BITS;
  // A timer that finds its place taken is up to so many cycles late.
  localparam int MostLate = 8;

  // As a process reads them.
  typedef enum logic [2:0] {
    IDLE,
    ONGOING,
    ACKNOWLEDGED,
    NEGATIVELY_ACKNOWLEDGED,
    TIMED_OUT
  } channel_state_t;

  typedef struct packed {
    channel_state_t       state;
    // The timer runs.
    logic                 waits;
    logic [4:0]           repeats;
    logic [TIME_BITS-1:0] deadline;
    logic [POST_BITS-1:0] post;
  } channel_t;

  typedef enum logic [2:0] {
    DUE,
    ANSWER,
    SENT,
    POST,
    CLEAR,
    LOAD
  } what_t;

  typedef struct packed {
    what_t                   what;
    logic [CHANNEL_BITS-1:0] channel;
    // Of ANSWER the number of a message.
    logic [POST_BITS-1:0]    post;
    // Of DUE and SENT the time.
    logic [TIME_BITS-1:0]    at;
    logic                    accepted;
  } input_t;

  // The wait after each repetition.
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

  // --- Posts and sent packets wait here for their turn ---

  logic post_waits, post_waited, post_taken, sent_waits, sent_taken;
  input_t waiting_post, waiting_sent;

  fifo #(
      .WIDTH(CHANNEL_BITS + POST_BITS),
      .DEPTH(4)
  ) posts (
      .clk,
      .reset,
      .in_valid (post_valid),
      .in_ready (post_ready),
      .in_data  ({post_channel, post}),
      .out_valid(post_waits),
      .out_ready(post_taken),
      .out_data ({waiting_post.channel, waiting_post.post})
  );
  assign waiting_post.what = POST;
  assign {waiting_post.at, waiting_post.accepted} = '0;

  // A post that came before an answer for its channel is before it.
  wire post_first = post_waited && waiting_post.channel == answer_channel;
  always_ff @(posedge clk) post_waited <= post_waits && !post_taken && (post_first || answer_ready || !answer_valid);

  fifo #(
      .WIDTH(CHANNEL_BITS + POST_BITS + TIME_BITS),
      .DEPTH(4)
  ) sents (
      .clk,
      .reset,
      .in_valid (sent_valid),
      .in_ready (sent_ready),
      .in_data  ({sent_channel, sent_post, now}),
      .out_valid(sent_waits),
      .out_ready(sent_taken),
      .out_data ({waiting_sent.channel, waiting_sent.post, waiting_sent.at})
  );
  assign waiting_sent.what = SENT;
  assign waiting_sent.accepted = 1'b0;

  // --- Cycle 1: whose turn, and the channel is read ---

  logic chosen_valid, changing_valid, is_changed;
  input_t chosen, changing;

  always_comb begin
    chosen_valid = !clearing;
    if (due_valid) chosen = '{what: DUE, channel: due_channel, at: due_time, default: '0};
    else if (answer_valid && !post_first)
      chosen = '{
          what: ANSWER,
          channel: answer_channel,
          post: POST_BITS'(answer_number),
          at: '0,
          accepted: answer_accepted
      };
    else if (sent_waits) chosen = waiting_sent;
    else if (post_waits) chosen = waiting_post;
    else if (clear_valid) chosen = '{what: CLEAR, channel: clear_channel, default: '0};
    else begin
      chosen = '{what: LOAD, channel: load_channel, default: '0};
      chosen_valid = load_valid && !clearing;
    end
    // The table is written at the end of the second cycle: the same channel waits for it. Where that is written its
    // timer does not run any more, or anew.
    if (changing_valid && changing.channel == chosen.channel && (is_changed || !due_valid)) chosen_valid = 1'b0;
  end

  assign answer_ready = chosen_valid && chosen.what == ANSWER;
  assign sent_taken   = chosen_valid && chosen.what == SENT;
  assign post_taken   = chosen_valid && chosen.what == POST;
  assign clear_ready  = chosen_valid && chosen.what == CLEAR;
  assign load_ready   = chosen_valid && chosen.what == LOAD;

  always_ff @(posedge clk) begin
    changing_valid <= chosen_valid;
    changing <= chosen;
    if (reset) changing_valid <= 1'b0;
  end

  // --- Cycle 2: the change ---

  channel_t channel, changed;
  wire is_of_post = channel.state == ONGOING && channel.post == changing.post;
  wire is_of_number = channel.state == ONGOING && channel.post[31:0] == changing.post[31:0];
  wire is_due = channel.state == ONGOING && channel.waits
      && TIME_BITS'(changing.at - channel.deadline) < TIME_BITS'(MostLate);

  always_comb begin
    changed = channel;
    is_changed = 1'b0;
    repeat_valid = 1'b0;
    unique case (changing.what)
      POST:
      if (channel.state != ONGOING) begin
        is_changed = 1'b1;
        changed = '{state: ONGOING, post: changing.post, default: '0};
      end
      SENT:
      if (is_of_post) begin
        is_changed = 1'b1;
        changed.waits = 1'b1;
        changed.deadline = changing.at + Timeouts[channel.repeats];
      end
      ANSWER:
      if (is_of_number) begin
        is_changed = 1'b1;
        changed.waits = 1'b0;
        changed.state = changing.accepted ? ACKNOWLEDGED : NEGATIVELY_ACKNOWLEDGED;
      end
      DUE:
      if (is_due) begin
        is_changed = 1'b1;
        changed.waits = 1'b0;
        if (channel.repeats < 5'(REPETITIONS)) begin
          changed.repeats = channel.repeats + 1'b1;
          repeat_valid = changing_valid;
        end else changed.state = TIMED_OUT;
      end
      CLEAR:
      if (channel.state inside {NEGATIVELY_ACKNOWLEDGED, TIMED_OUT}) begin
        is_changed = 1'b1;
        changed.state = IDLE;
      end
      default: ;
    endcase
  end

  assign repeat_channel = changing.channel;
  assign repeat_post = channel.post;
  assign loaded = changing_valid && changing.what == LOAD;
  assign loaded_state = channel.state;
  assign change_valid = changing_valid && is_changed && changed.state != channel.state;
  assign change_channel = changing.channel;
  assign change_state = changed.state;

  // --- The table ---

  channel_t written;
  wire write = clearing || (changing_valid && is_changed);
  wire [CHANNEL_BITS-1:0] write_address = clearing ? clear_address : changing.channel;
  assign written = clearing ? '0 : changed;

  ram #(
      .WIDTH($bits(channel_t)),
      .DEPTH(Channels)
  ) channels (
      .clk,
      .write,
      .write_address,
      .write_data(written),
      .read_address(chosen.channel),
      .read_data(channel)
  );

  ram #(
      .WIDTH(1 + POST_BITS),
      .DEPTH(Channels)
  ) for_transmit (
      .clk,
      .write,
      .write_address,
      .write_data({written.state == ONGOING, written.post}),
      .read_address(looked_up_channel),
      .read_data({looked_up_ongoing, looked_up_post})
  );

  ram #(
      .WIDTH(1 + TIME_BITS),
      .DEPTH(Channels)
  ) for_timers (
      .clk,
      .write,
      .write_address,
      .write_data({written.waits, written.deadline}),
      .read_address(scanned_channel),
      .read_data({scanned_waits, scanned_deadline})
  );

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
endmodule

`default_nettype wire

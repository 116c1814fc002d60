// The write path to memory: bursts and their words in the order in which they come, and the answers to them.
//
//   bursts ──► AW             words ──► W             B ──► of the cell that is next: all written? ─► cell
//
// Cells wait, in their order, until memory has answered their bursts. Notifications are bursts of a word, of which no
// cell waits.

`default_nettype none

module rdma_receive_write #(
    parameter int  DATA_WIDTH = 128,
    parameter type cell_t     = logic
) (
    input wire logic clk,
    input wire logic reset,

    output logic has_room,
    output logic has_room_for_notification,

    input wire logic                    burst_valid,
    input wire logic                    burst_second,
    input wire logic [            41:0] burst_address,
    input wire logic [             4:0] burst_words,
    input wire logic [             4:0] second_words,
    input wire logic                    word_valid,
    input wire logic [  DATA_WIDTH-1:0] word_data,
    input wire logic [DATA_WIDTH/8-1:0] word_strobe,
    input wire logic                    word_last,

    input wire logic  cell_valid,
    input wire cell_t made_cell,
    input wire logic  notifies,

    output logic      whole_valid,
    input  wire logic whole_ready,
    output cell_t     whole_cell,
    output logic      whole_faulted,

    output logic      [            41:0] awaddr,
    output logic      [             7:0] awlen,
    output logic                         awvalid,
    input  wire logic                    awready,
    output logic      [  DATA_WIDTH-1:0] wdata,
    output logic      [DATA_WIDTH/8-1:0] wstrb,
    output logic                         wlast,
    output logic                         wvalid,
    input  wire logic                    wready,
    input  wire logic [             1:0] bresp,
    input  wire logic                    bvalid,
    output logic                         bready
);
  // Cells that wait: over a wider bus short ones come faster, and memory takes as long.
  localparam int CELLS = DATA_WIDTH == 128 ? 32 : 64;
  // Words of a cell, and of the queue: of a quarter of the cells. What it holds of a wider bus comes in the 150 ns in
  // which memory may look for a page (§4.2).
  localparam int CellWords = 256 * 8 / DATA_WIDTH;
  localparam int WORDS = CELLS / 4 * CellWords;

  logic asked_valid, asked_second;
  logic [41:0] asked_address;
  logic [4:0] asked_words, asked_second_words;
  logic second;

  fifo #(
      .WIDTH(53),
      .DEPTH(CELLS)
  ) asked (
      .clk,
      .reset,
      .in_valid (burst_valid),
      .in_ready (),
      .in_data  ({burst_second, burst_address, burst_words, second_words}),
      .out_valid(asked_valid),
      .out_ready(awready && (!asked_second || second)),
      .out_data ({asked_second, asked_address, asked_words, asked_second_words})
  );

  assign awvalid = asked_valid;
  assign awaddr  = second ? {asked_address[41:12] + 1'b1, 12'd0} : asked_address;
  assign awlen   = 8'(second ? asked_second_words : asked_words) - 8'd1;

  always_ff @(posedge clk) begin
    if (awvalid && awready) second <= asked_second && !second;
    if (reset) second <= 1'b0;
  end

  fifo #(
      .WIDTH(DATA_WIDTH + DATA_WIDTH / 8 + 1),
      .DEPTH(WORDS)
  ) word_queue (
      .clk,
      .reset,
      .in_valid (word_valid),
      .in_ready (),
      .in_data  ({word_data, word_strobe, word_last}),
      .out_valid(wvalid),
      .out_ready(wready),
      .out_data ({wdata, wstrb, wlast})
  );

  // --- Answers: each of its bursts, which a cell or a notification waits for ---

  logic waiting_valid, waiting_notifies, faulted, first_answered;
  cell_t waiting_cell;
  wire is_answered = waiting_notifies ? bvalid : waiting_cell.bursts == '0
      || bvalid && (waiting_cell.bursts == 2'd1 || first_answered);
  // The first of two answers is taken at once, the last with the cell.
  wire takes_first = waiting_valid && !waiting_notifies && waiting_cell.bursts == 2'd2 && !first_answered && bvalid;
  wire waiting_taken = waiting_valid && is_answered && (waiting_notifies || whole_ready);

  fifo #(
      .WIDTH($bits(cell_t) + 1),
      .DEPTH(CELLS)
  ) waiting (
      .clk,
      .reset,
      .in_valid (cell_valid || notifies),
      .in_ready (),
      .in_data  ({notifies, made_cell}),
      .out_valid(waiting_valid),
      .out_ready(waiting_taken),
      .out_data ({waiting_notifies, waiting_cell})
  );

  assign whole_valid = waiting_valid && !waiting_notifies && is_answered;
  assign whole_cell = waiting_cell;
  assign whole_faulted = waiting_cell.bursts != '0 && (bresp[1] || faulted);
  assign bready = takes_first || waiting_taken && (waiting_notifies || waiting_cell.bursts != '0);

  always_ff @(posedge clk) begin
    if (takes_first) begin
      first_answered <= 1'b1;
      faulted <= bresp[1];
    end
    if (waiting_taken) begin
      first_answered <= 1'b0;
      faulted <= 1'b0;
    end
    if (reset) begin
      first_answered <= 1'b0;
      faulted <= 1'b0;
    end
  end

  // --- Room: for the cells that wait, with one that is coming and a notification, and for their words ---

  // Before the first reset its registers are unknown.
  logic was_reset;
  initial was_reset = 1'b0;
  logic [$clog2(CELLS):0] cells_waiting;
  logic [$clog2(WORDS):0] words_waiting;
  assign has_room_for_notification = cells_waiting < ($clog2(
      CELLS
  ) + 1)'(CELLS - 1) && words_waiting < ($clog2(
      WORDS
  ) + 1)'(WORDS - 1);
  assign has_room = cells_waiting < ($clog2(
      CELLS
  ) + 1)'(CELLS - 3) && words_waiting < ($clog2(
      WORDS
  ) + 1)'(WORDS - 2 * CellWords - 2);

  always_ff @(posedge clk) begin
    cells_waiting <= cells_waiting + ($clog2(CELLS) + 1)'(cell_valid || notifies) - ($clog2(CELLS) + 1)'(waiting_taken);
    words_waiting <= words_waiting + ($clog2(WORDS) + 1)'(word_valid) - ($clog2(WORDS) + 1)'(wvalid && wready);
    was_reset <= was_reset || reset;
    if (was_reset && !reset) begin
      assert (cells_waiting < ($clog2(CELLS) + 1)'(CELLS))
      else $error("more cells than places");
      assert (words_waiting < ($clog2(WORDS) + 1)'(WORDS))
      else $error("more words than places");
    end
    if (reset) begin
      cells_waiting <= '0;
      words_waiting <= '0;
    end
  end

  wire unused_ok = &{1'b0, bresp[0]};
endmodule

`default_nettype wire

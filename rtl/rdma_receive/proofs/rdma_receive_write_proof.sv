// Each cell comes out once and in order, with as many answers of memory taken as it has bursts, and faulted if one of
// them was a refusal; the cells and the words that wait have places, whatever comes between a header and its words.
//
//   cells, notifications ──► dut ──► whole cells     answered: of the bursts of the first that waits
//                             ▲                      ahead: those in front of a cell that is followed
//   answers of memory ────────┘
//
// Parameters are those of the unit. Nothing is said of the queue of addresses.

`default_nettype none

module rdma_receive_write_proof (
    input wire logic       clk,
    input wire logic       reset,
    // A cell begins, with so many words and bursts; a word of it comes; its footer comes.
    input wire logic       wants,
    input wire logic [4:0] words,
    input wire logic [1:0] bursts,
    input wire logic [1:0] tag,
    input wire logic       gives,
    input wire logic       ends,
    input wire logic       wants_notification,
    input wire logic       awready,
    input wire logic       wready,
    input wire logic       bvalid,
    input wire logic       refused,
    input wire logic       whole_ready,
    // The cell that is followed: chosen at will as its footer comes.
    input wire logic       follow
);
  localparam logic [4:0] CellWords = 5'd16;

  typedef struct packed {
    logic [1:0] bursts;
    logic [1:0] tag;
  } cell_t;

  // --- A cell at a time: has_room is asked once, as its header comes; notifications come between cells ---

  logic has_room, has_room_for_notification, busy, ended, whole_valid, whole_faulted, bready;
  logic [4:0] left;
  cell_t made_cell, whole_cell;
  wire begins = !busy && wants && has_room;
  wire notifies = !busy && wants_notification && has_room_for_notification;
  wire word_valid = busy && gives && left != '0;
  wire cell_valid = busy && ends && !ended;
  assign made_cell = '{bursts: bursts == 2'd3 ? 2'd0 : bursts, tag: tag};

  always_ff @(posedge clk) begin
    if (begins) begin
      busy  <= 1'b1;
      ended <= 1'b0;
      left  <= words > CellWords ? CellWords : words;
    end
    if (word_valid) left <= left - 1'b1;
    if (cell_valid) ended <= 1'b1;
    if (busy && (ended || cell_valid) && left == 5'(word_valid)) busy <= 1'b0;
    if (reset) busy <= 1'b0;
  end

  rdma_receive_write #(
      .cell_t(cell_t)
  ) dut (
      .clk,
      .reset,
      .has_room,
      .has_room_for_notification,
      .burst_valid(begins || notifies),
      .burst_second(1'b0),
      .burst_address('0),
      .burst_words(5'd1),
      .second_words('0),
      .word_valid(word_valid || notifies),
      .word_data('0),
      .word_strobe('0),
      .word_last(1'b1),
      .cell_valid,
      .made_cell,
      .notifies,
      .whole_valid,
      .whole_ready,
      .whole_cell,
      .whole_faulted,
      .awaddr(),
      .awlen(),
      .awvalid(),
      .awready,
      .wdata(),
      .wstrb(),
      .wlast(),
      .wvalid(),
      .wready,
      .bresp({refused, 1'b0}),
      .bvalid,
      .bready
  );

  // --- The first that waits, and a cell that is followed ---

  logic [1:0] answered;
  logic any_refused, followed;
  logic [5:0] ahead;
  cell_t followed_cell;
  wire is_answer = bvalid && bready;
  wire is_out = whole_valid && whole_ready;
  wire [1:0] answered_now = answered + 2'(is_answer);
  wire refused_now = any_refused || is_answer && refused;

  always_ff @(posedge clk) begin
    answered <= dut.waiting_taken ? '0 : answered_now;
    any_refused <= !dut.waiting_taken && refused_now;
    if (!followed && cell_valid && follow) begin
      followed <= 1'b1;
      ahead <= dut.cells_waiting - 6'(dut.waiting_taken);
      followed_cell <= made_cell;
    end else if (followed && dut.waiting_taken) begin
      if (ahead == '0) followed <= 1'b0;
      ahead <= ahead - 1'b1;
    end
    if (reset) begin
      answered <= '0;
      any_refused <= 1'b0;
      followed <= 1'b0;
    end

    if (!reset) begin
      // What is put has a place.
      assert (!(cell_valid || notifies) || dut.waiting.in_ready);
      assert (!(word_valid || notifies) || dut.word_queue.in_ready);
      assert (dut.cells_waiting == dut.waiting.tail - dut.waiting.head);
      assert (dut.words_waiting == dut.word_queue.tail - dut.word_queue.head);
      assert (dut.cells_waiting <= 6'd31 - 6'(busy) - 6'(busy && !ended));
      assert (dut.words_waiting <= 8'd127);
      assert (!busy || left <= CellWords && dut.words_waiting + 8'(left) <= 8'd110);
      // What waits first takes its answers, and no others.
      assert (answered == 2'(dut.first_answered));
      assert (!dut.first_answered || dut.waiting_valid && !dut.waiting_notifies && dut.waiting_cell.bursts == 2'd2);
      assert (dut.faulted == any_refused && (!dut.faulted || dut.first_answered));
      assert (!is_answer || dut.waiting_valid);
      assert (!is_out || answered_now == whole_cell.bursts && whole_faulted == refused_now);
      assert (is_out == (dut.waiting_taken && !dut.waiting_notifies));
      // The followed cell lies where it was put, and comes out when none is ahead of it.
      assert (!followed || ahead < dut.cells_waiting);
      assert (!followed || dut.waiting.words[5'(dut.waiting.head+ahead)] == {1'b0, followed_cell});
      assert (!(followed && ahead == '0 && dut.waiting_taken) || is_out && whole_cell == followed_cell);
    end
  end
endmodule

`default_nettype wire

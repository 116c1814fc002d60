// The read path from memory: a burst for each cell, and a buffer that is whole when all its words have come.
//
//   cell ─► asked ─► AR, one burst, or two where the cell crosses 4 KB ─► memory
//                                                                           │ R, in the order of the bursts
//   whole ◄── all words of the cell ◄── buffer of the cell ◄────────────────┘
//
// TR-488 §4.2: bursts of 16 words, eight outstanding; the payload is stored and only then forwarded, so that a cell
// leaves without gaps. A word that memory refuses (a page fault, §4.5.3) marks its cell. Words are those of the bus.

`default_nettype none

module segmentation_read
  import exanet::*;
#(
    parameter  int DATA_WIDTH  = 128,
    // Bursts that may be outstanding.
    parameter  int OUTSTANDING = 8,
    parameter  int SLOT_BITS   = 4,
    // The place of a word in a cell of 256 bytes, and of a byte in a word.
    localparam int PlaceBits   = $clog2(2048 / DATA_WIDTH),
    localparam int ByteBits    = $clog2(DATA_WIDTH / 8)
) (
    input wire logic clk,
    input wire logic reset,

    // A cell to be read: its rank and address, and its words, one at least. There is room for all that may be under way.
    input wire logic               cell_valid,
    input wire logic [       41:0] cell_address,
    input wire logic [PlaceBits:0] cell_words,

    output logic      [          41:0] araddr,
    output logic      [           7:0] arlen,
    output logic                       arvalid,
    input  wire logic                  arready,
    input  wire logic [DATA_WIDTH-1:0] rdata,
    input  wire logic [           1:0] rresp,
    input  wire logic                  rlast,
    input  wire logic                  rvalid,
    output logic                       rready,

    // The next cell has come, whole, or not: memory has refused a word.
    output logic      whole_valid,
    input  wire logic whole_ready,
    output logic      whole_faulted,

    // Words of buffers: there one cycle later.
    input  wire logic [SLOT_BITS+PlaceBits-1:0] buffer_address,
    output logic      [         DATA_WIDTH-1:0] buffer_data
);
  // --- Requests ---

  logic asked_valid, asked_ready, coming_ready;
  logic [41:0] asked_address;
  logic [PlaceBits:0] asked_words;

  fifo #(
      .WIDTH(42 + PlaceBits + 1),
      .DEPTH(1 << SLOT_BITS)
  ) asked (
      .clk,
      .reset,
      .in_valid (cell_valid),
      .in_ready (),
      .in_data  ({cell_address, cell_words}),
      .out_valid(asked_valid),
      .out_ready(asked_ready),
      .out_data ({asked_address, asked_words})
  );

  // The second burst of a cell that crosses a border of 4 KB.
  logic second;
  logic [$clog2(OUTSTANDING+1)-1:0] outstanding;
  localparam int BorderBits = 12 - ByteBits;
  wire [BorderBits:0] words_to_border = {1'b1, BorderBits'(0)} - {1'b0, asked_address[11:ByteBits]};
  wire crosses = (BorderBits + 1)'(asked_words) > words_to_border;
  wire [PlaceBits:0] first_words = crosses ? words_to_border[PlaceBits:0] : asked_words;
  wire [PlaceBits:0] burst_words = second ? asked_words - first_words : first_words;
  wire burst_asked = arvalid && arready;
  wire burst_answered = rvalid && rready && rlast;

  assign arvalid = asked_valid && outstanding != ($clog2(OUTSTANDING + 1))'(OUTSTANDING);
  assign araddr = second ? {asked_address[41:12] + 1'b1, 12'd0} : asked_address;
  assign arlen = 8'(burst_words) - 8'd1;
  assign asked_ready = burst_asked && (!crosses || second);

  always_ff @(posedge clk) begin
    if (burst_asked) second <= crosses && !second;
    outstanding <= outstanding + ($clog2(OUTSTANDING + 1))'(burst_asked) - ($clog2(OUTSTANDING + 1))'(burst_answered);
    if (!reset)
      assert (!cell_valid || coming_ready)
      else $error("more cells than buffers");
    if (reset) begin
      second <= 1'b0;
      outstanding <= '0;
    end
  end

  // --- Words that come ---

  logic coming_valid;
  logic [PlaceBits:0] coming_words;
  logic [SLOT_BITS-1:0] slot;
  logic [PlaceBits-1:0] word;
  logic faulted;
  wire is_refused = faulted || rresp[1];
  wire is_whole = rvalid && (PlaceBits + 1)'(word) + 1'b1 == coming_words;

  fifo #(
      .WIDTH(PlaceBits + 1),
      .DEPTH(1 << SLOT_BITS)
  ) coming (
      .clk,
      .reset,
      .in_valid (cell_valid),
      .in_ready (coming_ready),
      .in_data  (cell_words),
      .out_valid(coming_valid),
      .out_ready(is_whole),
      .out_data (coming_words)
  );

  assign rready = 1'b1;

  always_ff @(posedge clk) begin
    if (rvalid) begin
      word <= is_whole ? '0 : word + 1'b1;
      faulted <= !is_whole && is_refused;
      if (is_whole) slot <= slot + 1'b1;
      if (!reset)
        assert (coming_valid)
        else $error("a word that was not asked for");
    end
    if (reset) begin
      word <= '0;
      faulted <= 1'b0;
      slot <= '0;
    end
  end

  // A word of a buffer can be read a cycle after it has come. The header is on the bus meanwhile, if it has a beat of
  // its own.
  logic ends, ends_refused;

  if (DATA_WIDTH == 128) begin : g_words
    assign ends = is_whole;
    assign ends_refused = is_refused;
  end else begin : g_bus
    always_ff @(posedge clk) begin
      ends <= is_whole && !reset;
      ends_refused <= is_refused;
    end
  end

  fifo #(
      .WIDTH(1),
      .DEPTH(1 << SLOT_BITS)
  ) whole (
      .clk,
      .reset,
      .in_valid (ends),
      .in_ready (),
      .in_data  (ends_refused),
      .out_valid(whole_valid),
      .out_ready(whole_ready),
      .out_data (whole_faulted)
  );

  ram #(
      .WIDTH(DATA_WIDTH),
      .DEPTH(1 << (SLOT_BITS + PlaceBits))
  ) buffers (
      .clk,
      .write(rvalid),
      .write_address({slot, word}),
      .write_data(rdata),
      .read_address(buffer_address),
      .read_data(buffer_data)
  );

  wire unused_ok = &{1'b0, rresp[0]};
endmodule

`default_nettype wire

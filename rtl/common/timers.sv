// The timers of the channels: finds, to the cycle, whose time is up.
//
//   table of channels ─► scan, a channel a cycle ── due within the next lap? ──► wheel: a place for each of the
//                                                                                │      next cycles
//   due ◄──────────────────────────────── the place of the cycle after the next ◄┘
//
// A lap of the scan visits each channel once, and puts it on the wheel if it is due between the end of this lap and
// that of the next. A place that is taken by another channel sends it to the next place. The table is asked once more
// when it is due: an answer that came meanwhile counts.

`default_nettype none

module timers #(
    parameter int CHANNEL_BITS = 8,
    parameter int TIME_BITS = 28
) (
    input wire logic clk,
    // As long as the table is being cleared.
    input wire logic reset,

    output logic [TIME_BITS-1:0] now,

    // What the table has of a channel: there one cycle later.
    output logic      [CHANNEL_BITS-1:0] scanned_channel,
    input  wire logic                    scanned_waits,
    input  wire logic [   TIME_BITS-1:0] scanned_deadline,

    output logic                         due_valid,
    input  wire logic                    due_ready,
    output logic      [CHANNEL_BITS-1:0] due_channel,
    output logic      [   TIME_BITS-1:0] due_time
);
  localparam int Lap = 1 << CHANNEL_BITS;
  // Two laps: a place is free again before it is needed.
  localparam int PlaceBits = CHANNEL_BITS + 1;
  // Cycles from the look at a channel to the first that the wheel can still tell of, with some for places taken.
  localparam int Least = 8;
  // A table's change takes two cycles.
  localparam int Ahead = 2;

  typedef struct packed {
    logic [TIME_BITS-1:PlaceBits] lap;
    logic [CHANNEL_BITS-1:0] channel;
  } place_t;

  always_ff @(posedge clk) begin
    // The wheel begins with zeros, which are the places of the first two laps.
    now <= reset ? TIME_BITS'(1 << PlaceBits) : now + 1'b1;
    scanned_channel <= reset ? '0 : scanned_channel + 1'b1;
  end

  // --- The scan ---

  logic [CHANNEL_BITS-1:0] seen_channel;
  wire [TIME_BITS-1:0] time_left = scanned_deadline - now;
  wire is_next_lap = scanned_waits && time_left >= TIME_BITS'(Least) && time_left < TIME_BITS'(Least + Lap);

  always_ff @(posedge clk) seen_channel <= scanned_channel;

  // --- Onto the wheel: those that are due at one time go to one place after the other ---

  logic found, found_valid, found_fits;
  logic [CHANNEL_BITS-1:0] found_channel;
  logic [TIME_BITS-1:0] found_time;
  place_t wheel[1 << PlaceBits];
  initial wheel = '{default: '0};

  logic waiting_valid;
  logic [CHANNEL_BITS-1:0] waiting_channel;
  logic [TIME_BITS-1:0] waiting_deadline;

  fifo #(
      .WIDTH(CHANNEL_BITS + TIME_BITS),
      .DEPTH(8)
  ) waiting (
      .clk,
      .reset,
      .in_valid (is_next_lap),
      .in_ready (found_fits),
      .in_data  ({seen_channel, scanned_deadline}),
      .out_valid(waiting_valid),
      .out_ready(!found_valid || found),
      .out_data ({waiting_channel, waiting_deadline})
  );

  // A place of this very time is taken. Places are never emptied: one whose lap comes again, after 2^TIME_BITS
  // cycles, has the table asked in vain.
  wire is_taken = wheel[found_time[PlaceBits-1:0]].lap == found_time[TIME_BITS-1:PlaceBits];
  assign found = found_valid && !is_taken;

  always_ff @(posedge clk) begin
    if (!found_valid || found) begin
      found_valid <= waiting_valid;
      found_channel <= waiting_channel;
      found_time <= waiting_deadline;
    end else found_time <= found_time + 1'b1;
    if (!reset)
      assert (!is_next_lap || found_fits)
      else $error("a channel that is due is lost");
    if (found) wheel[found_time[PlaceBits-1:0]] <= '{lap: found_time[TIME_BITS-1:PlaceBits], channel: found_channel};
    if (reset) found_valid <= 1'b0;
  end

  // --- Off the wheel ---

  wire [TIME_BITS-1:0] soon = now + TIME_BITS'(Ahead);
  wire place_t soon_place = wheel[soon[PlaceBits-1:0]];
  wire is_soon = soon_place.lap == soon[TIME_BITS-1:PlaceBits];

  logic late_valid;
  logic [CHANNEL_BITS-1:0] late_channel;
  logic [TIME_BITS-1:0] late_time;

  // One that is not taken at once comes in the next cycle, before another.
  assign due_valid = late_valid || is_soon;
  assign due_channel = late_valid ? late_channel : soon_place.channel;
  assign due_time = late_valid ? late_time : soon;

  always_ff @(posedge clk) begin
    if (!reset)
      assert (!(late_valid && is_soon && !due_ready))
      else $error("a channel that is due is lost");
    late_valid <= due_valid && !due_ready || late_valid && is_soon;
    if (is_soon) begin
      late_channel <= soon_place.channel;
      late_time <= soon;
    end
    if (reset) late_valid <= 1'b0;
  end
endmodule

`default_nettype wire

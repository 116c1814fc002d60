// An adder of floating-point numbers (IEEE 754): rounds to the nearest, ties to even, with subnormal numbers.
//
//   1 order     which has the larger magnitude, and by how many bits the other is to be shifted
//   2 align     the smaller one, shifted; what falls out sets its last bit
//   3 add       or subtract
//   4 place     leading zeros are counted and taken away, as far as the exponent lets them
//   5 round     and put together
//
// A significand in the stages:  carry │ hidden bit │ MAN bits │ 3 bits, the last of which stands for all behind it
//
// Three bits (guard, round, sticky) are enough: where one is shifted by two bits or more, one leading bit is lost at most.

`default_nettype none

module float_add #(
    parameter int EXP = 8,
    parameter int MAN = 23
) (
    input wire logic clk,

    input  wire logic [EXP+MAN : 0] lower,
    input  wire logic [EXP+MAN : 0] upper,
    output logic      [EXP+MAN : 0] sum
);
  localparam int Sign = EXP + MAN;
  localparam int Wide = MAN + 5;
  localparam int CountBits = $clog2(Wide + 1);
  localparam int ShiftBits = $clog2(MAN + 4);
  localparam logic [EXP-1:0] MaxExponent = '1;
  localparam logic [Sign:0] NoNumber = {1'b0, MaxExponent, 1'b1, {(MAN - 1) {1'b0}}};

  // What becomes of operands that are no numbers, or infinite, in step with the other stages.
  typedef struct packed {
    logic is_no_number;
    logic is_infinite;
    // Of the larger one; of a sum that is zero, whether both are negative.
    logic sign;
    logic zero_sign;
  } kind_t;

  // --- 1: order ---

  wire swaps = upper[Sign-1:0] > lower[Sign-1:0];
  wire [Sign:0] greater_one = swaps ? upper : lower;
  wire [Sign-1:0] smaller_one = swaps ? lower[Sign-1:0] : upper[Sign-1:0];
  wire [EXP-1:0] greater_exponent = greater_one[Sign-1:MAN];
  wire [EXP-1:0] smaller_exponent = smaller_one[Sign-1:MAN];
  // Subnormal numbers have the exponent 1, and no hidden bit.
  wire [EXP-1:0] greater_place = greater_exponent == '0 ? EXP'(1) : greater_exponent;
  wire [EXP-1:0] smaller_place = smaller_exponent == '0 ? EXP'(1) : smaller_exponent;
  wire [EXP-1:0] distance = greater_place - smaller_place;
  wire subtracts = lower[Sign] != upper[Sign];
  // The larger one is infinite or no number if one of them is.
  wire greater_is_special = greater_exponent == MaxExponent;
  wire both_infinite = smaller_exponent == MaxExponent;
  wire greater_is_no_number = greater_is_special && greater_one[MAN-1:0] != '0;

  logic [EXP-1:0] ordered_exponent;
  logic [MAN:0] ordered_greater, ordered_smaller;
  logic [ShiftBits-1:0] ordered_shift;
  logic ordered_subtracts;
  kind_t ordered_kind;

  always_ff @(posedge clk) begin
    ordered_exponent <= greater_place;
    ordered_greater <= {greater_exponent != '0, greater_one[MAN-1:0]};
    ordered_smaller <= {smaller_exponent != '0, smaller_one[MAN-1:0]};
    // Beyond MAN + 3 places nothing is left but the last bit.
    ordered_shift <= distance > EXP'(MAN + 3) ? ShiftBits'(MAN + 3) : ShiftBits'(distance);
    ordered_subtracts <= subtracts;
    ordered_kind.is_no_number <= greater_is_no_number || (both_infinite && subtracts);
    ordered_kind.is_infinite <= greater_is_special;
    ordered_kind.sign <= greater_one[Sign];
    ordered_kind.zero_sign <= lower[Sign] && upper[Sign];
  end

  // --- 2: align ---

  wire [2*MAN+6:0] shifted_out = {ordered_smaller, 3'd0, {(MAN + 3) {1'b0}}} >> ordered_shift;

  logic [EXP-1:0] aligned_exponent;
  logic [MAN:0] aligned_greater;
  logic [MAN+3:0] aligned_smaller;
  logic aligned_subtracts;
  kind_t aligned_kind;

  always_ff @(posedge clk) begin
    aligned_exponent <= ordered_exponent;
    aligned_greater <= ordered_greater;
    aligned_smaller <= shifted_out[2*MAN+6:MAN+3] | (MAN + 4)'(|shifted_out[MAN+2:0]);
    aligned_subtracts <= ordered_subtracts;
    aligned_kind <= ordered_kind;
  end

  // --- 3: add ---

  logic [EXP-1:0] added_exponent;
  logic [Wide-1:0] added;
  kind_t added_kind;

  always_ff @(posedge clk) begin
    added_exponent <= aligned_exponent;
    added_kind <= aligned_kind;
    if (aligned_subtracts) added <= {1'b0, aligned_greater, 3'd0} - {1'b0, aligned_smaller};
    else added <= {1'b0, aligned_greater, 3'd0} + {1'b0, aligned_smaller};
  end

  // --- 4: place ---

  // By halves: is the upper half empty, and which half is looked at then.
  function automatic logic [CountBits-1:0] leading_zeros(logic [Wide-1:0] of);
    logic [(1<<CountBits)-1:0] rest;
    logic [CountBits-1:0] count;
    rest = {of, {((1 << CountBits) - Wide) {1'b1}}};
    for (int i = CountBits - 1; i >= 0; i--) begin
      count[i] = 1'b1;
      for (int j = 0; j < 1 << i; j++) if (rest[(1<<CountBits)-1-j]) count[i] = 1'b0;
      if (count[i]) rest = rest << (1 << i);
    end
    return count;
  endfunction

  wire [CountBits-1:0] zeros = leading_zeros(added);
  wire is_empty = zeros == CountBits'(Wide);
  // With all of them gone the exponent would be below 1: the number is subnormal.
  wire is_subnormal = EXP'(zeros) > added_exponent;

  logic [EXP-1:0] placed_exponent;
  logic [Wide-1:0] placed;
  kind_t placed_kind;

  always_ff @(posedge clk) begin
    placed <= added << (is_subnormal ? CountBits'(added_exponent) : zeros);
    placed_kind <= added_kind;
    // One more than that of the hidden bit: the carry is the first bit.
    placed_exponent <= is_subnormal || is_empty ? '0 : added_exponent + 1'b1 - EXP'(zeros);
  end

  // --- 5: round ---

  wire [MAN-1:0] kept = placed[Wide-2:4];
  wire rounds_up = placed[3] && (placed[4] || placed[2:0] != '0);
  // A carry goes into the exponent: the next binade, or infinity.
  wire [Sign-1:0] rounded = {placed_exponent, kept} + Sign'(rounds_up);
  wire is_zero = placed == '0;

  always_ff @(posedge clk) begin
    if (placed_kind.is_no_number) sum <= NoNumber;
    else if (placed_kind.is_infinite || placed_exponent == MaxExponent)
      sum <= {placed_kind.sign, MaxExponent, {MAN{1'b0}}};
    else sum <= {is_zero ? placed_kind.zero_sign : placed_kind.sign, rounded};
  end
endmodule

`default_nettype wire

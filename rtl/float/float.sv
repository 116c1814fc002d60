// A floating-point unit of the accelerator: sum, minimum or maximum of two numbers, a pair a cycle.
//
//   lower ─┬─► float_add ────────────── sum ─► ┐
//   upper ─┼─► float_compare ─► less, greater  ├─► result, `Stages` cycles behind its operands
//          └─► the operand that stays ───────► ┘
//
// The lower operand is that of the lower ranks. A sum that is no number is the canonical one. A minimum or maximum is
// the upper operand where it compares less or greater, otherwise the lower one: of -0 and +0, and where one is no
// number, the lower one stays. crates/weft-nic/src/allreduce/vector.rs has the same.
//
// From TR-488 §4.7: sum, min, max; float and double. Ours: the stages, and which of two equal operands stays.

`default_nettype none

module float
  import reduction::*;
#(
    // binary32; binary64 has 11 and 52.
    parameter int EXP = 8,
    parameter int MAN = 23
) (
    input wire logic clk,

    input  wire operation_t               operation,
    input  wire logic       [EXP+MAN : 0] lower,
    input  wire logic       [EXP+MAN : 0] upper,
    output logic            [EXP+MAN : 0] result
);
  if (EXP < 2 || MAN < 2) $fatal(1, "a number of %0d and %0d bits", EXP, MAN);

  logic less, greater;
  logic [EXP+MAN : 0] sum;

  float_add #(
      .EXP(EXP),
      .MAN(MAN)
  ) add (
      .clk,
      .lower,
      .upper,
      .sum
  );

  float_compare #(
      .EXP(EXP),
      .MAN(MAN)
  ) compare (
      .lower,
      .upper,
      .less,
      .greater
  );

  // What stays of a minimum or maximum, in step with the sum's stages.
  logic [EXP+MAN : 0] stays[Stages];
  logic is_sum[Stages];
  wire takes_upper = operation == MIN ? less : greater;

  always_ff @(posedge clk) begin
    stays[0]  <= takes_upper ? upper : lower;
    is_sum[0] <= operation == SUM;
    for (int i = 1; i < Stages; i++) begin
      stays[i]  <= stays[i-1];
      is_sum[i] <= is_sum[i-1];
    end
  end

  assign result = is_sum[Stages-1] ? sum : stays[Stages-1];
endmodule

`default_nettype wire

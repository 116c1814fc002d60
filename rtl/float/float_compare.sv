// A comparator of floating-point numbers: whether the upper one is less or greater than the lower one.
//
//   both negative: the larger magnitude is less;  signs differ: the negative one is, but for -0 and +0
//
// Neither is true of equal ones, and where one is no number.

`default_nettype none

module float_compare #(
    parameter int EXP = 8,
    parameter int MAN = 23
) (
    input  wire logic [EXP+MAN : 0] lower,
    input  wire logic [EXP+MAN : 0] upper,
    output logic                    less,
    output logic                    greater
);
  localparam int Sign = EXP + MAN;
  localparam logic [Sign-1:0] Infinity = {{EXP{1'b1}}, {MAN{1'b0}}};

  wire [Sign-1:0] lower_size = lower[Sign-1:0];
  wire [Sign-1:0] upper_size = upper[Sign-1:0];
  wire is_ordered = lower_size <= Infinity && upper_size <= Infinity;
  wire both_zero = lower_size == '0 && upper_size == '0;

  always_comb begin
    unique case ({
      lower[Sign], upper[Sign]
    })
      2'b00: begin
        less = upper_size < lower_size;
        greater = upper_size > lower_size;
      end
      2'b11: begin
        less = upper_size > lower_size;
        greater = upper_size < lower_size;
      end
      2'b01:   {less, greater} = {!both_zero, 1'b0};
      default: {less, greater} = {1'b0, !both_zero};
    endcase
    if (!is_ordered) {less, greater} = 2'b00;
  end
endmodule

`default_nettype wire

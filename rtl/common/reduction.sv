// What the accelerator computes: operations and types of elements, TR-488 §4.7.

`default_nettype none

package reduction;

  typedef enum logic [1:0] {
    SUM = 2'd0,
    MIN = 2'd1,
    MAX = 2'd2
  } operation_t;

  // Signed integers of 32 bits, IEEE 754 binary32 and binary64.
  typedef enum logic [1:0] {
    INT = 2'd0,
    FLOAT = 2'd1,
    DOUBLE = 2'd2
  } data_type_t;

  // Cycles from the operands to the result, of each type.
  localparam int Stages = 6;

endpackage

`default_nettype wire

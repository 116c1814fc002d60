// What the accelerator computes, and what its modules send each other: operations and types of elements (TR-488 §4.7),
// kinds of packets and the name of an operation (crates/weft-nic/src/exanet/wire.rs).

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
  localparam int Stages = 5;

  typedef enum logic [7:0] {
    CONTRIBUTION = 8'h0c,
    EXCHANGE = 8'h0d,
    RESULT = 8'h0e,
    ASK = 8'h0f,
    NOT_YET = 8'h10,
    FAILED = 8'h11
  } module_kind_t;

  // An operation of a group on a block of the vector: the group is the number of a packet, the rest its identity, in
  // front of the step.
  typedef struct packed {
    logic [31:0] group;
    logic [31:0] number;
    logic [23:0] block;
  } operation_id_t;

  // Operations that a module remembers, buffers for vectors that have come, and the numbers of both. There are buffers
  // for all vectors of as many operations: those that are early never take the places of the one that runs.
  localparam int Slots = 4;
  localparam int Buffers = 64;
  typedef logic [1:0] slot_t;
  typedef logic [5:0] buffer_t;

  // Vectors of an operation that come: contributions of the members, exchanges of 8 levels, the result.
  localparam int Steps = 13;
  typedef logic [3:0] step_t;
  localparam step_t BehindMembers = 4'd3;
  localparam step_t ResultStep = 4'd12;

  // Vectors of an operation that go, and are kept: a client's own; a server's of its board, then of each level, the
  // last of which is the result.
  typedef logic [3:0] version_t;

  // A packet to be sent.
  typedef struct packed {
    module_kind_t kind;
    logic [7:0] step;
    logic [21:0] to;
    operation_id_t id;
    // Of the vector; 0: there is none.
    logic [8:0] bytes;
    slot_t slot;
    version_t version;
  } outgoing_t;

  // What a lookup in the table of ranks is for.
  typedef enum logic [1:0] {
    // A client's vector to the server of the board.
    FOR_CONTRIBUTION,
    // A server's vector to the server of another board.
    FOR_EXCHANGE,
    // The result to the clients of the board.
    FOR_RESULT,
    // The question to members whose vectors are missing.
    FOR_ASK
  } purpose_t;

  typedef struct packed {
    purpose_t   purpose;
    // Whose pairs are read.
    logic [7:0] board;
    version_t   version;
    // Members to be asked.
    logic [3:0] missing;
  } lookup_t;

  // What software programs a module with.
  typedef struct packed {
    operation_id_t id;
    logic [48:0] data;
    logic [48:0] pairs;
    logic [8:0] bytes;
    logic [9:0] own;
    // Exchanges: the logarithm of the number of boards.
    logic [3:0] levels;
    operation_t operation;
    data_type_t data_type;
  } program_t;

endpackage

`default_nettype wire

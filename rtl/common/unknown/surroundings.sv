// What surroundings in which blocks are simulated from an unknown state have in common.

`default_nettype none

package surroundings;

  localparam logic [63:0] Seed = 64'h9e37_79b9_7f4a_7c15;

  // The random bits behind these: Marsaglia's xorshift of 64 bits.
  function automatic logic [63:0] xorshift(logic [63:0] state);
    logic [63:0] next;
    next = state ^ state << 13;
    next = next ^ next >> 7;
    return next ^ next << 17;
  endfunction

  // A bit and its inverse differ, unless they are unknown.
  function automatic logic is_known(logic [255:0] bits);
    return &(bits ^ ~bits);
  endfunction

endpackage

`default_nettype wire

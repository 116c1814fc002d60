// The registers of the accelerator: software writes what an operation needs, the last store starts it.
//
//   offset  register  who     what
//   0       DATA      rw  49  the address of the vector, a multiple of 256: read, and then written with the result
//   8       PAIRS     rw  49  the address of the table of ranks, a multiple of 32: 8 bytes each, network address first
//   16      NAME      w   64  the number of the operation above, the group's below
//   24      BLOCK     w   24  the block of the vector
//   32      START     w   40  ranks 11 bits, own rank from bit 16, bytes from bit 32 (9), operation from bit 48 (2), type
//                             from bit 52 (2): starts it. Read: 1 while an operation runs
//   4096    NOTIFY    rw  49  system software: where the module writes that it is done, 16 bytes
//
// A store of START while an operation runs, or of what is no operation, is answered with an error and does nothing.
// Behind a reset stores wait until the module's tables are cleared.
// TR-488 §4.7 has what is programmed: type of operation, type of data, size, two pointers. Ours: the registers.

`default_nettype none

module allreduce_registers
  import reduction::*;
#(
    parameter int RANKS = 1024
) (
    input wire logic clk,
    input wire logic reset,

    input  wire logic        clearing,
    input  wire logic        busy,
    output logic             start,
    // That of the operation that runs; beside `start` the one that begins.
    output program_t         programmed,
    output logic      [48:0] notify,

    input  wire logic [12:0] awaddr,
    input  wire logic        awvalid,
    output logic             awready,
    input  wire logic [63:0] wdata,
    input  wire logic [ 7:0] wstrb,
    input  wire logic        wvalid,
    output logic             wready,
    output logic      [ 1:0] bresp,
    output logic             bvalid,
    input  wire logic        bready,
    input  wire logic [12:0] araddr,
    input  wire logic        arvalid,
    output logic             arready,
    output logic      [63:0] rdata,
    output logic      [ 1:0] rresp,
    output logic             rvalid,
    input  wire logic        rready
);
  localparam logic [9:0] Data = 10'd0, Pairs = 10'd1, Name = 10'd2, Block = 10'd3, Start = 10'd4, Notify = 10'd512;

  program_t held, started;
  wire [9:0] place = awaddr[12:3];
  wire is_written = awvalid && wvalid && (!bvalid || bready) && !clearing;

  // --- What START says ---

  wire [10:0] ranks = wdata[10:0];
  wire [9:0] own = wdata[25:16];
  wire [8:0] bytes = wdata[40:32];
  wire [1:0] operation = wdata[49:48];
  wire [1:0] data_type = wdata[53:52];
  // Boards of four, a power of two of them.
  wire [8:0] boards = ranks[10:2];
  wire is_whole = ranks[1:0] == '0 && boards != '0 && (boards & (boards - 1'b1)) == '0 && ranks <= 11'(RANKS);
  wire is_sound = is_whole && {1'b0, own} < ranks && bytes != '0 && bytes <= 9'd256
    && operation <= MAX && data_type <= DOUBLE && bytes[1:0] == '0 && (data_type != DOUBLE || !bytes[2]);

  always_comb begin
    started = held;
    started.bytes = bytes;
    started.own = own;
    started.operation = operation_t'(operation);
    started.data_type = data_type_t'(data_type);
    started.levels = '0;
    for (int i = 0; i < 9; i++) if (boards[i]) started.levels = 4'(i);
  end

  wire is_start = place == Start;
  wire is_known = wstrb == '1 && (place <= Block || place == Notify || (is_start && is_sound && !busy));

  assign awready = is_written;
  assign wready = is_written;
  assign start = is_written && is_known && is_start;
  assign programmed = start ? started : held;

  always_ff @(posedge clk) begin
    if (bready) bvalid <= 1'b0;
    if (is_written) begin
      bvalid <= 1'b1;
      bresp  <= is_known ? 2'b00 : 2'b10;
    end
    // What an operation has does not change while it runs.
    if (is_written && is_known && !busy) begin
      unique case (place)
        Data: held.data <= {wdata[48:8], 8'd0};
        Pairs: held.pairs <= {wdata[48:5], 5'd0};
        Name: {held.id.number, held.id.group} <= wdata;
        Block: held.id.block <= wdata[23:0];
        Start: held <= started;
        default: notify <= {wdata[48:4], 4'd0};
      endcase
    end
    if (reset) begin
      bvalid <= 1'b0;
      held   <= '0;
      notify <= '0;
    end
  end

  assign arready = !rvalid || rready;

  always_ff @(posedge clk) begin
    if (rready) rvalid <= 1'b0;
    if (arvalid && arready) begin
      rvalid <= 1'b1;
      rresp  <= 2'b00;
      unique case (araddr[12:3])
        Data:   rdata <= 64'(held.data);
        Pairs:  rdata <= 64'(held.pairs);
        Start:  rdata <= 64'(busy);
        Notify: rdata <= 64'(notify);
        default: begin
          rdata <= '0;
          rresp <= 2'b10;
        end
      endcase
    end
    if (reset) rvalid <= 1'b0;
  end

  wire unused_ok = &{1'b0, awaddr[2:0], araddr[2:0], wdata};
endmodule

`default_nettype wire

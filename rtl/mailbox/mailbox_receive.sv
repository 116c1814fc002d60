// The receive path of the mailbox: takes packets word by word, stores their payload, and decides on each at its footer.
//
//   HEADER ── header ──► BODY ─┬─ payload, written to the packet's slot ─┐
//     ▲                    ▲   │                                         │
//     │                    └───┼─────────────────────────────────────────┘
//     └──────── last ──────────┘ footer ─► sound? ─► look up ─► verdict: 3 cycles behind the footer
//
//   verdict: damaged? ── put before? ── open? ── PDID? ── room? ──► put, acknowledged
//               │            │ acknowledged, not put  │
//               └────────────┴─────── refused ◄───────┘
//
// A packet without a footer is dropped: nothing in it says to whom an answer would go for certain.

`default_nettype none

module mailbox_receive
  import exanet::*;
#(
    parameter int  INTERFACES = 64,
    parameter int  ENTRIES    = 64,
    parameter int  SLOTS      = 128,
    parameter int  REMEMBERED = 1024,
    parameter type verdict_t  = logic
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset the table of packets that were put is emptied.
    input wire logic                          clearing,
    input wire logic [$clog2(REMEMBERED)-1:0] clear_address,

    input  wire logic  net_valid,
    output logic       net_ready,
    input  wire word_t net_data,
    input  wire logic  net_last,

    // A packet has begun; a slot is free again.
    output logic      header_taken,
    input  wire logic slot_freed,

    output logic                      payload_write,
    output logic  [$clog2(SLOTS)+1:0] payload_address,
    output word_t                     payload_data,

    // The queue that a packet is for: what is known of it, one cycle later.
    output logic      [$clog2(INTERFACES)-1:0] asked_interface,
    input  wire logic                          queue_open,
    input  wire logic [                  15:0] queue_pdid,
    input  wire logic [                  15:0] queue_head,
    input  wire logic [                  15:0] queue_tail,
    output logic                               put,
    output logic      [$clog2(INTERFACES)-1:0] put_interface,
    output logic      [                  15:0] put_tail,

    output verdict_t verdict,
    output logic     verdict_valid
);
  localparam int InterfaceBits = $clog2(INTERFACES);
  localparam int SlotBits = $clog2(SLOTS);

  typedef enum logic {
    HEADER,
    BODY
  } state_t;

  state_t state;
  logic [SlotBits:0] slots_used;
  logic [SlotBits-1:0] slot;
  header_t header;
  // Words of payload so far; 5 stands for more than there may be.
  logic [2:0] words;
  logic [31:0] crc;

  wire taken = net_valid && net_ready;
  wire footer_t footer = footer_t'(net_data);
  wire has_slot = slots_used != (SlotBits + 1)'(SLOTS);
  wire payload_taken = taken && state == BODY && !net_last;
  wire footer_taken = taken && state == BODY && net_last;

  assign net_ready = !clearing && (state == BODY || has_slot);
  assign header_taken = taken && state == HEADER && !net_last;

  assign payload_write = payload_taken && words < 3'd4;
  assign payload_address = {slot, words[1:0]};
  assign payload_data = net_data;

  always_ff @(posedge clk) begin
    if (header_taken) begin
      state <= BODY;
      header <= header_t'(net_data);
      words <= '0;
      crc <= crc_word(CrcStart, net_data);
    end
    if (payload_taken) begin
      if (words != 3'd5) words <= words + 1'b1;
      crc <= crc_word(crc, net_data);
    end
    if (footer_taken) begin
      state <= HEADER;
      slot  <= slot + 1'b1;
    end
    slots_used <= slots_used + (SlotBits + 1)'(header_taken) - (SlotBits + 1)'(slot_freed);
    if (!reset)
      assert (slots_used <= (SlotBits + 1)'(SLOTS))
      else $error("more packets than slots");
    if (reset) begin
      state <= HEADER;
      slot <= '0;
      slots_used <= '0;
    end
  end

  // --- Three cycles behind the footer: sound, looked up, decided ---

  typedef struct packed {
    logic                     valid;
    logic                     damaged;
    logic                     no_interface;
    logic [InterfaceBits-1:0] interface_number;
    logic [15:0]              pdid;
    logic [2:0]               words;
    logic [21:0]              source;
    logic [31:0]              number;
    logic [31:0]              identity;
  } whole_t;

  whole_t sound, looked_up, decided;

  wire [10:0] interface_number = interface_of(header.page, header.rank);
  wire has_its_words = header.size <= 10'(SmallBytes) && words_of(header.size) == 7'(words);

  always_ff @(posedge clk) begin
    sound.valid <= footer_taken;
    sound.damaged <= crc_footer(crc, net_data[127:32]) != footer.check || !has_its_words || header.kind != SMALL;
    sound.no_interface <= interface_number >= 11'(INTERFACES);
    sound.interface_number <= interface_number[InterfaceBits-1:0];
    sound.pdid <= header.pdid;
    sound.words <= words;
    sound.source <= header.source;
    sound.number <= footer.number;
    sound.identity <= footer.identity[31:0];
    looked_up <= sound;
    decided <= looked_up;
    if (reset) begin
      sound.valid <= 1'b0;
      looked_up.valid <= 1'b0;
      decided.valid <= 1'b0;
    end
  end

  // Heads that are stored in the cycle of the answer's look-up or before it count.
  assign asked_interface = looked_up.interface_number;

  logic put_before;

  accepted_packets #(
      .PLACES(REMEMBERED)
  ) packets_put (
      .clk,
      .clearing,
      .clear_address,
      .asked_source(looked_up.source),
      .asked_number(looked_up.number),
      .source(decided.source),
      .number(decided.number),
      .was_accepted(put_before),
      .accept(put)
  );

  kind_t kind;
  always_comb begin
    kind = ACKNOWLEDGEMENT;
    if (decided.damaged) kind = REFUSED_DAMAGED;
    else if (put_before) kind = ACKNOWLEDGEMENT;
    else if (decided.no_interface || !queue_open) kind = REFUSED_INTERFACE;
    else if (decided.pdid != queue_pdid) kind = REFUSED_DOMAIN;
    else if (queue_tail - queue_head >= 16'(ENTRIES)) kind = REFUSED_FULL;
  end

  assign put = decided.valid && kind == ACKNOWLEDGEMENT && !put_before;
  assign put_interface = decided.interface_number;
  assign put_tail = queue_tail + 1'b1;

  assign verdict_valid = decided.valid;
  assign verdict = '{
          kind: kind,
          put: put,
          interface_number: decided.interface_number,
          index: queue_tail[$clog2(ENTRIES)-1:0],
          words: decided.words,
          source: decided.source,
          number: decided.number,
          identity: decided.identity
      };

  wire unused_ok = &{1'b0, header, footer};
endmodule

`default_nettype wire

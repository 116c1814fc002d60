// The mailbox of the send unit: takes requests of reads of this node's memory, gives each the read channel of
// its page that has been free for the longest, and answers it.
//
//   HEADER ── header ──► BODY ── footer ──► LOOK_UP ──► DECIDE ──► DECIDED ──► STORE ──► ANSWER_HEADER ──► ANSWER_FOOTER
//     ▲                                                                          └─ descriptor ─► segmentation_pages │
//     └─────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//
//   verdict: damaged? ── accepted before? ── page? ── PDID? ── a free channel? ──► posted, acknowledged
//               │            │ acknowledged, not posted              │
//               └────────────┴────────────── refused ◄───────────────┘
//
// From TR-488 §4.5.1: the request comes to a mailbox of the send unit, which allocates a read channel that is available
// in the page, protected by the PDID of the request, and completes the read with an RDMA write. Ours: a request is a
// small packet of a kind of its own; its rank and page name the page; its payload is the source and the destination of
// a descriptor, as segmentation_pages has them; the order of the verdict, which is that of the small mailbox; the
// channel that has been free for the longest; no queue beside the channels, so that a request without one is refused,
// and its packetizer sends it again; no packet without a footer is answered. Over 512 bits a request is one beat, which
// has its footer, and so is its answer.
//
// Cycles: one request at a time. A footer that is on the bus in cycle n - 1 has its channel posted to the agent and the
// header of its answer on the bus in cycle n + 4, and the read of its first cell in cycle n + 11; the next header is
// taken in cycle n + 6 at the earliest, or n + 5 over 512 bits. A channel counts as free that the agent has freed in
// cycle n - 1 or before. Where the agent does not take posts, and its queue is full, a request that is accepted waits in
// STORE, and its answer with it.

`default_nettype none

module segmentation_requests
  import exanet::*;
#(
    parameter  int DATA_WIDTH  = 128,
    parameter  int PAGES       = 16,
    // Accepted requests that are remembered, so that one that is repeated is not posted twice.
    parameter  int REMEMBERED  = 1024,
    localparam int PageBits    = $clog2(PAGES),
    localparam int ChannelBits = PageBits + 6
) (
    input wire logic clk,
    input wire logic reset,

    // After a reset the table of accepted requests is emptied.
    input wire logic                          clearing,
    input wire logic [$clog2(REMEMBERED)-1:0] clear_address,

    // The node of this interface: the source of answers.
    input wire logic [21:0] node,

    input  wire logic                  net_valid,
    output logic                       net_ready,
    input  wire logic [DATA_WIDTH-1:0] net_data,
    input  wire logic                  net_last,

    // A page: the read channel to be given next, if one is free, and the PDID, there one cycle later.
    output logic      [PageBits-1:0] asked_page,
    input  wire logic                has_free,
    input  wire logic [         4:0] next_free,
    input  wire logic [        15:0] pdid,

    // The descriptor of a channel, which starts its transfer.
    output logic                        post_valid,
    input  wire logic                   post_ready,
    output logic      [ChannelBits-1:0] post_channel,
    output word_t                       post_source,
    output word_t                       post_destination,

    output logic                       answer_valid,
    input  wire logic                  answer_ready,
    output logic      [DATA_WIDTH-1:0] answer_data,
    output logic                       answer_last
);
  typedef enum logic [2:0] {
    HEADER,
    BODY,
    LOOK_UP,
    DECIDE,
    DECIDED,
    STORE,
    ANSWER_HEADER,
    ANSWER_FOOTER
  } state_t;

  state_t state;
  header_t header;
  // Words of payload so far; 3 stands for more than there may be.
  logic [1:0] words;
  word_t [1:0] descriptor;
  logic [31:0] number, identity;
  // Of the request, and then of its answer.
  logic [31:0] crc;

  // --- Its words ---

  wire taken = net_valid && net_ready;
  wire header_t first = header_t'(net_data[DATA_WIDTH-1-:128]);
  footer_t footer;
  // With the footer: kind, length and check are those of a request.
  logic is_request;

  if (DATA_WIDTH == 128) begin : g_words
    wire has_its_words = header.size == 10'(RequestBytes) && words == 2'd2;
    assign footer = footer_t'(net_data);
    wire [31:0] check = crc_footer(crc, net_data[127:32]);
    assign is_request = check == footer.check && has_its_words && header.kind == READ_REQUEST;

    always_ff @(posedge clk) if (taken && state == BODY && !net_last && !words[1]) descriptor[words[0]] <= net_data;
  end else begin : g_bus
    // The footer is behind as many words as the header says.
    wire header_t its_header = state == HEADER ? first : header;
    wire [1:0] place = 2'(words_of(its_header.size) + 1'b1);
    assign footer = footer_t'(net_data[128*(3-int'(place))+:128]);
    wire has_its_words = state == HEADER && first.size == 10'(RequestBytes);
    wire [31:0] check = crc_packet(net_data, RequestBytes / 16);
    assign is_request = check == footer.check && has_its_words && first.kind == READ_REQUEST;

    always_ff @(posedge clk) if (taken && state == HEADER) descriptor <= {net_data[255:128], net_data[383:256]};
    wire unused_ok = &{1'b0, words, its_header};
  end

  // --- The verdict ---

  wire [10:0] interface_number = interface_of(header.page, header.rank);
  logic damaged, accepted_before, starts;
  kind_t verdict, kind;

  assign asked_page = interface_number[PageBits-1:0];

  accepted_packets #(
      .PLACES(REMEMBERED)
  ) accepted (
      .clk,
      .clearing,
      .clear_address,
      .asked_source(header.source),
      .asked_number(number),
      .source(header.source),
      .number,
      .was_accepted(accepted_before),
      .accept(post_valid && post_ready)
  );

  always_comb begin
    verdict = ACKNOWLEDGEMENT;
    if (damaged) verdict = REFUSED_DAMAGED;
    else if (accepted_before) verdict = ACKNOWLEDGEMENT;
    else if (interface_number >= 11'(PAGES)) verdict = REFUSED_INTERFACE;
    else if (header.pdid != pdid) verdict = REFUSED_DOMAIN;
    else if (!has_free) verdict = REFUSED_FULL;
  end

  assign post_valid = state == STORE && starts;
  // Words of the network, first byte first, become those that a process would store.
  assign post_source = swap_bytes(descriptor[0]);
  assign post_destination = swap_bytes(descriptor[1]);

  // --- The answer ---

  header_t answer;
  assign answer = '{node: header.source, kind: kind, source: node, default: '0};
  wire [95:0] behind = {number, 32'd0, identity};

  assign net_ready = !clearing && state inside {HEADER, BODY};
  assign answer_valid = state inside {ANSWER_HEADER, ANSWER_FOOTER};
  assign answer_last = state == ANSWER_FOOTER || DATA_WIDTH > 128;

  if (DATA_WIDTH == 128) begin : g_answer_words
    assign answer_data = answer_last ? {behind, crc_footer(crc, behind)} : word_t'(answer);
  end else begin : g_answer_bus
    assign answer_data = {word_t'(answer), behind, crc_footer(crc, behind), 256'd0};
  end

  always_ff @(posedge clk) begin
    if (taken && net_last) begin
      damaged  <= !is_request;
      number   <= footer.number;
      identity <= footer.identity[31:0];
    end
    unique case (state)
      HEADER:
      if (taken) begin
        header <= first;
        words <= '0;
        crc <= crc_word(CrcStart, word_t'(first));
        // A word that is header and last has no footer behind it.
        if (!net_last) state <= BODY;
        else if (DATA_WIDTH > 128) state <= LOOK_UP;
      end
      BODY:
      if (taken) begin
        if (words != 2'd3) words <= words + 1'b1;
        crc <= crc_word(crc, word_t'(first));
        if (net_last) state <= LOOK_UP;
      end
      LOOK_UP: state <= DECIDE;
      DECIDE: begin
        state <= DECIDED;
        kind <= verdict;
        starts <= verdict == ACKNOWLEDGEMENT && !accepted_before;
        post_channel <= {asked_page, 1'b1, next_free};
      end
      DECIDED: begin
        state <= STORE;
        crc   <= crc_word(CrcStart, word_t'(answer));
      end
      STORE: if (post_ready || !starts) state <= ANSWER_HEADER;
      ANSWER_HEADER: if (answer_ready) state <= answer_last ? HEADER : ANSWER_FOOTER;
      default: if (answer_ready) state <= HEADER;
    endcase
    if (reset) state <= HEADER;
  end

  wire unused_ok = &{1'b0, header, footer};
endmodule

`default_nettype wire

// The receive path of the accelerator: the payload of a packet goes into a free buffer, and the footer says what it is.
//
//   HEADER ─► PAYLOAD ─► footer: is the check right? ──► came, in the cycle behind the footer
//
// A packet that is damaged, of no kind that a module knows, or without a buffer is dropped: whoever misses it asks.

`default_nettype none

module allreduce_receive
  import exanet::*;
  import reduction::*;
(
    input wire logic clk,
    input wire logic reset,

    input wire logic  net_valid,
    input wire word_t net_data,
    input wire logic  net_last,

    input wire logic    free_valid,
    input wire buffer_t free_buffer,

    output logic          buffer_write,
    output buffer_t       buffer,
    output logic    [3:0] buffer_word,
    output word_t         buffer_data,

    // What has come; a vector is in `buffer` if it `has_vector`.
    output logic                 came_valid,
    output module_kind_t         came_kind,
    output logic          [ 7:0] came_step,
    output operation_id_t        came_id,
    output logic          [21:0] came_from,
    output logic                 has_vector
);
  header_t header;
  footer_t footer;
  logic is_inside, is_sound, has_buffer, ended;
  logic [31:0] crc;
  logic [5:0] words;

  wire header_t first = net_data;
  wire is_payload = net_valid && is_inside && !net_last;

  assign buffer_write = is_payload && has_buffer && words < 6'd16;
  assign buffer_word  = words[3:0];
  assign buffer_data  = swap_bytes(net_data);

  always_ff @(posedge clk) begin
    ended <= 1'b0;
    if (net_valid) begin
      is_inside <= !net_last;
      if (!is_inside) begin
        header <= first;
        has_buffer <= free_valid;
        buffer <= free_buffer;
        words <= '0;
        crc <= crc_word(CrcStart, net_data);
      end else if (net_last) begin
        footer <= footer_t'(net_data);
        ended <= 1'b1;
        is_sound <= crc_footer(crc, net_data[127:32]) == net_data[31:0] && 7'(words) == words_of(header.size);
      end else begin
        crc <= crc_word(crc, net_data);
        if (words != '1) words <= words + 1'b1;
      end
    end
    if (reset) begin
      is_inside <= 1'b0;
      ended <= 1'b0;
    end
  end

  wire is_vector = header.kind == CONTRIBUTION || header.kind == EXCHANGE || header.kind == RESULT;
  wire is_word = header.kind == ASK || header.kind == NOT_YET || header.kind == FAILED;
  wire is_step = header.kind == RESULT || (header.kind == CONTRIBUTION && came_step < 8'd4)
    || (header.kind == EXCHANGE && came_step >= 8'd1 && came_step <= 8'd8);

  assign came_valid = ended && is_sound && (is_word || (is_vector && is_step && has_buffer && header.size <= 10'd256));
  assign has_vector = is_vector;
  assign came_kind = module_kind_t'(header.kind);
  assign came_step = footer.identity[7:0];
  assign came_id = '{group: footer.number, number: footer.identity[63:32], block: footer.identity[31:8]};
  assign came_from = header.source;

  wire unused_ok = &{1'b0, header, footer};
endmodule

`default_nettype wire

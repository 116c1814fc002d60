//! The table `pieces`.

use crate::row::row;
use weft_units::{Bytes, EndpointId, Span, Time};

row! {
    /// One piece of the time of a message that was delivered, from when it was posted. The pieces of a
    /// message are in the order of time, and the next begins where one ends: their times add up to the
    /// message's `delivered_ps` - `posted_ps`. Written where `--breakdown` is given.
    MessagePieceRow version 2
        written by Option: "--breakdown (of weft replay or run; of weft traffic it splits the latency in \
                           run.json)"
        ordered by |row| (row.run, row.delivered_ps, row.source_endpoint.0.into(), row.sequence);
    /// Index of the run in `run.json`.
    run: u32,
    /// Time at which the message's last byte was delivered.
    delivered_ps: Time,
    /// The endpoint that sent the message.
    source_endpoint: EndpointId,
    /// Counts the messages of the source endpoint: with it, it names the message.
    sequence: u64,
    /// The message's bytes of the program, without headers.
    payload_bytes: Bytes,
    /// Time at which the piece begins.
    begin_ps: Time,
    /// Duration of the piece.
    time_ps: Span,
    /// The leg of the message's way: `host`, `injection`, `fabric` or `ejection`; `not recorded`.
    leg: String,
    /// The category, as in `weft explain`.
    category: String,
    /// The activity that the time is spent on.
    what: String,
    /// The place: a rank, an interface, a link or a switch.
    place: String,
}

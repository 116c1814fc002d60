//! The table `ranks`.

use crate::row::row;
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

row! {
    /// One rank of a replayed program.
    RankRow version 1
        written by Default: "--tables ranks (weft traffic has no ranks: take weft replay, osu or run)"
        ordered by |row| (row.run, Time::ZERO, row.rank.0.into(), 0);
    /// Index of the run in `run.json`.
    run: u32,
    /// The rank.
    rank: RankId,
    /// The endpoint of the host it sat on.
    endpoint: EndpointId,
    /// Time at which its last operation ended.
    end_ps: Time,
    /// Time in computation.
    computation_ps: Span,
    /// Time in the software of the messaging layer.
    communication_ps: Span,
    /// Time waiting for messages and requests.
    wait_ps: Span,
    /// `computation_ps` as a share of the time from its program's start to `end_ps`.
    computation_share: f64,
    /// `communication_ps` as a share of the same.
    communication_share: f64,
    /// `wait_ps` as a share of the same.
    wait_share: f64,
    /// Messages it sent, those of collectives included.
    messages_sent: u64,
    /// Messages it received, those of collectives included.
    messages_received: u64,
    /// Bytes it sent, without headers.
    sent_bytes: Bytes,
    /// Bytes it received, without headers.
    received_bytes: Bytes,
}

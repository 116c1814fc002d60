//! The table `messages`.

use crate::row::row;
use weft_units::{Bytes, EndpointId, RankId, Time};

row! {
    /// One message that was delivered, in the order of delivery.
    MessageRow version 2
        written by Name: "--tables messages,flows,links,ranks"
        ordered by |row| (row.run, row.delivered_ps, row.source_endpoint.0.into(), row.sequence);
    /// Index of the run in `run.json`.
    run: u32,
    /// Time at which its last byte was delivered.
    delivered_ps: Time,
    /// The endpoint that sent it.
    source_endpoint: EndpointId,
    /// The endpoint that received it.
    destination_endpoint: EndpointId,
    /// Counts the messages of the source endpoint: with it, it names the message.
    sequence: u64,
    /// The rank that sent it; null for traffic patterns.
    source_rank: Option<RankId>,
    /// The rank that received it; null for traffic patterns.
    destination_rank: Option<RankId>,
    /// The tag; null for traffic patterns and for messages of collectives.
    tag: Option<i32>,
    /// The kind of traffic: `pattern`, `flow` (of a scenario), `point-to-point`, `collective` or `one-sided`.
    class: String,
    /// The group of flows in the scenario's file; null elsewhere.
    group: Option<String>,
    /// Bytes of the program or pattern, without headers.
    payload_bytes: Bytes,
    /// When it was handed to the messaging layer or, for a pattern, generated.
    posted_ps: Time,
    /// Links that its last packet crossed, injection and ejection included.
    hops: u32,
}

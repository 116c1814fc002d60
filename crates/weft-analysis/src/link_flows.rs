//! The flows that cross links, by the tables of packets and of messages.
//!
//! ```text
//!   packets: link, source, message ──┬──► link, source, destination: packets, time on the line
//!   messages: source, destination ───┘
//! ```

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use weft_results::{LinkRow, MessageRow, PacketRow, ResultsError, StoredResult};
use weft_units::{EndpointId, PortId, SwitchId};

/// A flow at a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkFlow {
    /// The endpoint that sends.
    pub from: u32,
    /// The endpoint that it sends to; `None`: of messages that were not delivered.
    pub to: Option<u32>,
    /// Packets that crossed the link.
    pub packets: u64,
    /// The part of the time in which the link sent packets that were followed.
    pub share: f64,
}

/// A direction of a link in a run, by the end that it leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunLink {
    run: u32,
    endpoint: Option<EndpointId>,
    port: Option<(SwitchId, PortId)>,
}

impl RunLink {
    pub fn of_link(row: &LinkRow) -> RunLink {
        RunLink { run: row.run, endpoint: row.from_endpoint, port: row.from_switch.zip(row.from_port) }
    }

    fn of_packet(row: &PacketRow) -> RunLink {
        RunLink { run: row.run, endpoint: row.from_endpoint, port: row.from_switch.zip(row.from_port) }
    }
}

/// Packets of a flow on a link, and their time on the line in ps.
#[derive(Clone, Copy, Default)]
struct Crossing {
    packets: u64,
    time: u64,
}

impl std::ops::AddAssign for Crossing {
    fn add_assign(&mut self, other: Crossing) {
        self.packets += other.packets;
        self.time += other.time;
    }
}

/// The flows that cross each of these links, those with most time on the line first.
///
/// # Errors
/// Tables that cannot be read, or were not written.
pub(crate) fn link_flows(
    result: &StoredResult,
    links: &[RunLink],
) -> Result<Vec<Vec<LinkFlow>>, ResultsError> {
    let places: BTreeMap<RunLink, usize> = links.iter().copied().zip(0..).collect();
    // By run, source and message: a message takes few of the links.
    let mut crossed: BTreeMap<(u32, u32, u64), BTreeMap<usize, Crossing>> = BTreeMap::new();
    result.visit(|row: PacketRow| {
        let Some(place) = places.get(&RunLink::of_packet(&row)) else { return };
        let of = crossed.entry((row.run, row.source_endpoint.0, row.sequence)).or_default();
        let time = row.ended_ps.as_ps().saturating_sub(row.began_ps.as_ps());
        *of.entry(*place).or_default() += Crossing { packets: 1, time };
    })?;
    let mut flows: Vec<BTreeMap<(u32, Option<u32>), Crossing>> = vec![BTreeMap::new(); links.len()];
    let mut add = |from, to, of: BTreeMap<usize, Crossing>| {
        of.into_iter().for_each(|(place, crossed)| *flows[place].entry((from, to)).or_default() += crossed);
    };
    result.visit(|row: MessageRow| {
        if let Some(of) = crossed.remove(&(row.run, row.source_endpoint.0, row.sequence)) {
            add(row.source_endpoint.0, Some(row.destination_endpoint.0), of);
        }
    })?;
    crossed.into_iter().for_each(|((_, from, _), of)| add(from, None, of));
    let sorted = |flows: BTreeMap<(u32, Option<u32>), Crossing>| {
        let all: u64 = flows.values().map(|crossed| crossed.time).sum();
        let mut flows: Vec<_> = flows.into_iter().collect();
        flows.sort_by_key(|(_, crossed)| Reverse(crossed.time));
        let told = |((from, to), Crossing { packets, time })| LinkFlow {
            from,
            to,
            packets,
            share: time as f64 / all.max(1) as f64,
        };
        flows.into_iter().map(told).collect()
    };
    Ok(flows.into_iter().map(sorted).collect())
}

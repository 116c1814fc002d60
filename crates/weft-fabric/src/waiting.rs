//! Who waits for whom: the search for a circle of waiting buffers.

use crate::interface::Interface;
use crate::network::Network;
use crate::packet::Packet;
use crate::switch::Peer;
use std::collections::BTreeMap;
use weft_engine::{Ending, Simulation, SiteId};
use weft_topo::{Routing, Topology};

/// An input buffer: switch, port, virtual channel.
pub(crate) type Buffer = (u32, u16, u8);

/// A buffer for people.
pub(crate) fn name((switch, port, vc): Buffer) -> String {
    format!("switch {switch}, port {port}, virtual channel {vc}")
}

/// What a packet in a buffer waits for.
fn describe(at: Buffer, port: u16, vc: u8, packet: &Packet) -> String {
    format!(
        "{}: packet of message {} from endpoint {} to endpoint {} waits for port {port}, virtual channel {vc}",
        name(at),
        packet.message,
        packet.source,
        packet.destination
    )
}

/// How a run ends in which nothing is pending although packets are in buffers: with the circle of
/// buffers that wait for one another, or, if there is none, with all that waits (at most 20 lines).
pub fn stuck<T, N>(simulation: &Simulation<Network<T, N>>) -> Option<Ending>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let network = simulation.model();
    let mut waits_for: BTreeMap<Buffer, (Buffer, String)> = BTreeMap::new();
    let mut waiting = Vec::new();
    for (SiteId(site), state) in simulation.sites() {
        let ports = state.switch.ports();
        for (in_port, in_vc, port, vc, packet) in state.switch.waiting(network.rules.vc_shift) {
            let buffer = (site, in_port, in_vc);
            let line = describe(buffer, port, vc, &packet);
            if let Peer::Switch { site: next, port: next_port } = ports.port[usize::from(port)].peer {
                waits_for.insert(buffer, ((next, next_port, vc), line.clone()));
            }
            waiting.push(line);
        }
        for endpoint in state.endpoints.iter().filter(|e| e.staged.is_some()) {
            waiting.push(format!("endpoint {}: waits to inject", endpoint.id));
        }
    }
    if waiting.is_empty() {
        return None;
    }
    // Every buffer waits for one other: walk until one comes again.
    let mut seen: BTreeMap<Buffer, u32> = BTreeMap::new();
    for (walk, &start) in (1..).zip(waits_for.keys()) {
        let mut at = start;
        while let Some((next, _)) = waits_for.get(&at) {
            match seen.insert(at, walk) {
                Some(earlier) if earlier == walk => {
                    let mut cycle = Vec::new();
                    let first = at;
                    loop {
                        let (next, line) = &waits_for[&at];
                        cycle.push(line.clone());
                        at = *next;
                        if at == first {
                            return Some(Ending::Deadlock { cycle });
                        }
                    }
                }
                Some(_) => break,
                None => at = *next,
            }
        }
    }
    waiting.truncate(20);
    Some(Ending::NoProgress { waiting })
}

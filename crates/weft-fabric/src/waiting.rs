//! Who waits for whom: the search for a circle of waiting buffers, and the check that nothing is lost.

use crate::interface::Interface;
use crate::network::{Network, Site};
use crate::packet::{Credit, Packet, Wire};
use crate::switch::{Peer, UNLIMITED};
use std::collections::BTreeMap;
use weft_engine::{Ending, Simulation, SiteId};
use weft_topo::{Routing, Topology};

/// An input buffer: switch, port, virtual channel.
type Buffer = (u32, u16, u8);

fn name((switch, port, vc): Buffer) -> String {
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
        let ports = state.switch().ports();
        for (in_port, in_vc, port, vc, packet) in state.switch().waiting(network.vc_shift()) {
            let buffer = (site, in_port, in_vc);
            let line = describe(buffer, port, vc, &packet);
            if let Peer::Switch { site: next, port: next_port } = ports.port[usize::from(port)].peer {
                waits_for.insert(buffer, ((next, next_port, vc), line.clone()));
            }
            waiting.push(line);
        }
        for endpoint in state.endpoints().iter().filter(|e| e.staged.is_some()) {
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

/// A law of conservation that does not hold: a bug of the highest rank.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("credits are not conserved on the link into {buffer}: {accounted} of {capacity} are accounted for")]
pub struct NotConserved {
    buffer: String,
    accounted: u64,
    capacity: u64,
}

/// Checks that on every link between switches and from every endpoint the credits of the sender, those
/// on their way back, the packets on the wire and those in the buffer add up to the buffer.
///
/// # Errors
/// The first link on which they do not.
pub fn check_credits<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let network = simulation.model();
    let shift = network.vc_shift();
    let capacity = u64::from(network.credits());
    let mut accounted: BTreeMap<Buffer, u64> = BTreeMap::new();
    let mut sites: Vec<&Site<N>> = Vec::new();
    for (SiteId(site), state) in simulation.sites() {
        sites.push(state);
        let ports = state.switch().ports();
        for (port, output) in ports.port.iter().enumerate() {
            let Peer::Switch { site: next, port: next_port } = output.peer else { continue };
            for vc in 0..network.vcs() {
                let credits = ports.credits[port << shift | vc as usize];
                debug_assert!(credits != UNLIMITED);
                *accounted.entry((next, next_port, vc as u8)).or_default() += u64::from(credits);
            }
        }
        for (endpoint, port) in state.endpoints_with_ports() {
            *accounted.entry((site, port, 0)).or_default() += u64::from(endpoint.credits);
        }
        for (port, vc, room) in state.switch().occupancy(shift) {
            *accounted.entry((site, port, vc)).or_default() += u64::from(room);
        }
    }
    for event in simulation.pending() {
        let site = event.site.0;
        match event.payload {
            Wire::Packet(packet) if event.order.entity() == 0 => {
                let room = network.room(&packet);
                *accounted.entry((site, packet.port, packet.vc)).or_default() += u64::from(room);
            }
            Wire::Credit(amount) => {
                let port = sites[site as usize].endpoint_port(event.order.entity() as usize - 1);
                *accounted.entry((site, port, 0)).or_default() += u64::from(amount);
            }
            _ => {}
        }
    }
    let known = sites.iter().zip(0u32..).flat_map(|(state, site)| {
        state.switch().ports().expected.all().map(move |(_, credit)| (site, credit))
    });
    let on_their_way = simulation.pending_notes().map(|(SiteId(site), _, credit)| (site, *credit));
    for (site, Credit { port, vc, amount }) in known.chain(on_their_way) {
        let peer = sites[site as usize].switch().ports().port[usize::from(port)].peer;
        if let Peer::Switch { site, port } = peer {
            *accounted.entry((site, port, vc)).or_default() += u64::from(amount);
        }
    }
    match accounted.into_iter().find(|&(_, credits)| credits != capacity) {
        Some((buffer, accounted)) => Err(NotConserved { buffer: name(buffer), accounted, capacity }),
        None => Ok(()),
    }
}

//! Deadlock detection: the search for a cycle of buffers that wait for one another.
//!
//! ```text
//!   switch 0, port 1, vc 0 ──waits for──► switch 1, port 1, vc 0
//!            ▲                                      │
//!            └───────────── waits for ──────────────┘
//! ```
//! The packet at the head of an input buffer waits for space in one buffer of the next switch. A walk from
//! buffer to buffer that comes to one again has found a cycle.

use crate::channel::Channel;
use crate::interface::Interface;
use crate::multicast::MulticastGroup;
use crate::network::Network;
use crate::packet::Packet;
use crate::switch::{BlockedHead, Peer};
use std::collections::BTreeMap;
use std::fmt;
use weft_engine::{Simulation, SiteId};
use weft_topo::{Routing, Topology};
use weft_units::SwitchId;

/// Most lines that describe waiting packets where there is no cycle.
const MAX_WAITING_LINES: usize = 20;

/// Why nothing is pending although packets are in buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// Buffers wait for one another in a cycle.
    Deadlock {
        /// The buffers of the cycle, in order, a line each.
        cycle: Vec<String>,
    },
    /// Packets wait, but not in a cycle.
    Blocked {
        /// Which packet waits for what, a line each.
        waiting: Vec<String>,
    },
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, lines) = match self {
            Stuck::Deadlock { cycle } => ("deadlock: these buffers wait for one another", cycle),
            Stuck::Blocked { waiting } => ("no progress", waiting),
        };
        f.write_str(title)?;
        lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// An input buffer of a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct InputBuffer {
    pub(crate) switch: SwitchId,
    pub(crate) channel: Channel,
}

impl fmt::Display for InputBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch {}, {}", self.switch, self.channel)
    }
}

/// Of each buffer whose head waits for another buffer: that buffer, and the line that says so.
type WaitGraph = BTreeMap<InputBuffer, (InputBuffer, String)>;

/// The line that says what the packet at the head of a buffer waits for.
fn describe(buffer: InputBuffer, head: &BlockedHead) -> String {
    let Packet { message, source, destination, .. } = head.packet;
    let to = match MulticastGroup::of(destination) {
        Some(_) => "its group".to_owned(),
        None => format!("endpoint {destination}"),
    };
    format!("{buffer}: packet of message {message} from endpoint {source} to {to} waits for {}", head.wants)
}

/// Why a run does not go on in which nothing is pending; `None`: no packet is in a buffer.
pub fn stuck<T, N>(simulation: &Simulation<Network<T, N>>) -> Option<Stuck>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let network = simulation.model();
    let mut waits_for = WaitGraph::new();
    let mut waiting = Vec::new();
    for (SiteId(site), state) in simulation.sites() {
        let switch = state.switch.state();
        for head in state.switch.blocked_heads(network.constants.channels) {
            let buffer = InputBuffer { switch: SwitchId(site), channel: head.buffer };
            let mut line = describe(buffer, &head);
            let Channel { port, vc } = head.wants;
            match switch.ports[usize::from(port)].peer {
                Peer::Switch { site, port } => {
                    let next = InputBuffer { switch: SwitchId(site), channel: Channel { port, vc } };
                    waits_for.insert(buffer, (next, line.clone()));
                }
                Peer::Endpoint(index) if network.constants.receive_buffer.is_some() => {
                    let endpoint = state.endpoints[index as usize].id;
                    line += &format!(": the receiving buffer of endpoint {endpoint} is full");
                }
                Peer::Endpoint(_) | Peer::Nothing => {}
            }
            waiting.push(line);
        }
        for endpoint in state.endpoints.iter().filter(|e| e.waiting() > 0) {
            waiting.push(format!("endpoint {}: waits to inject", endpoint.id));
        }
    }
    if waiting.is_empty() {
        return None;
    }
    if let Some(cycle) = find_cycle(&waits_for) {
        return Some(Stuck::Deadlock { cycle });
    }
    waiting.truncate(MAX_WAITING_LINES);
    Some(Stuck::Blocked { waiting })
}

/// The lines of the buffers of a cycle, if there is one. Every buffer waits for at most one other.
fn find_cycle(waits_for: &WaitGraph) -> Option<Vec<String>> {
    let mut last_walk: BTreeMap<InputBuffer, u32> = BTreeMap::new();
    for (walk, &start) in (1..).zip(waits_for.keys()) {
        let mut at = start;
        while let Some((next, _)) = waits_for.get(&at) {
            match last_walk.insert(at, walk) {
                Some(earlier) if earlier == walk => return Some(cycle_from(at, waits_for)),
                Some(_) => break,
                None => at = *next,
            }
        }
    }
    None
}

/// The lines of the cycle that `first` is part of.
fn cycle_from(first: InputBuffer, waits_for: &WaitGraph) -> Vec<String> {
    let mut cycle = Vec::new();
    let mut at = first;
    loop {
        let (next, line) = &waits_for[&at];
        cycle.push(line.clone());
        at = *next;
        if at == first {
            return cycle;
        }
    }
}

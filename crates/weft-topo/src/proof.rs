//! The deadlock proof.
//!
//! A packet holds the channel (the buffer of one virtual channel of a link) it came by while it waits
//! for the next. If every channel has a rank, and every turn that the routing can take leads to a
//! channel of higher rank, the waits can never close in a circle:
//!
//! ```text
//!   rank 1            rank 4            rank 9
//!   [s0] --x vc0--> [s1] --x vc1--> [s2] --y vc0--> ... --> endpoint
//! ```
//!
//! Endpoints are sinks: they take every packet whatever it asks for, so that requests and the replies
//! or data they cause share the channels ([`prove_classes`](crate::prove_classes) asks whether they do); and
//! they are sources: no packet of the network waits for injection. Links to and from endpoints therefore lie
//! on no cycle.
//!
//! Where a turn does not raise the rank, the channel dependency graph is searched: either it has a
//! cycle, which is returned, or the search is the proof.
//!
//! # Source
//! Dally and Seitz 1987: a routing function is free of deadlock if its channel dependency graph has no
//! cycle. An adaptive routing here chooses only among channels that all obey the ranks, so that the
//! theorem covers it without an escape channel.

use crate::traits::{Attachment, Routing, Topology};
use serde::Serialize;
use std::fmt;
use weft_units::{PortId, SwitchId, VcId};

/// One virtual channel of the link that leaves a switch by a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Channel {
    /// The switch that sends.
    pub switch: SwitchId,
    /// The port it leaves by.
    pub port: PortId,
    /// The virtual channel.
    pub vc: VcId,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch {} port {} vc {}", self.switch, self.port, self.vc)
    }
}

/// A routing that the deadlock proof can examine. Only channels between switches are meant.
pub trait Ranked: Routing {
    /// The rank of a channel.
    fn rank(&self, channel: Channel) -> u64;

    /// Calls `visit` with every channel between switches that a packet in the buffer behind `channel`
    /// may ask for next. It may name turns that no packet takes, never leave out one that some packet
    /// takes.
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel));

    /// Channels such that any other is like one of them: the same turns, up to the names of switches
    /// and ports, and the same ranks up to a constant. None where only looking at all of them will do.
    fn representatives(&self) -> Option<Vec<Channel>>;
}

/// How freedom from deadlock was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Every turn of every channel raises the rank.
    Ranks,
    /// Every turn of one channel of each kind raises the rank; the others are like one of them.
    RanksBySymmetry,
    /// Some turns do not raise the rank, but the channel dependency graph has no cycle.
    Search,
}

/// The routing cannot deadlock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Proof {
    /// How it was shown.
    pub method: Method,
    /// Channels looked at.
    pub channels: u64,
    /// Turns between them looked at.
    pub turns: u64,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proof { channels, turns, .. } = self;
        match self.method {
            Method::Ranks => {
                write!(f, "all {turns} turns between {channels} channels raise the channel's rank")?
            }
            Method::RanksBySymmetry => {
                write!(
                    f,
                    "all {turns} turns of {channels} channels, one of each kind, raise the channel's rank"
                )?;
            }
            Method::Search => write!(f, "{turns} turns between {channels} channels close no cycle")?,
        }
        write!(f, "; endpoints take every packet, so requests and replies share the channels")
    }
}

/// The routing can deadlock: each channel of the cycle can wait for the next, the last for the first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
pub struct Cycle {
    /// The channels, in the order in which they wait.
    pub channels: Vec<Channel>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} channels can wait for each other in a circle:", self.channels.len())?;
        for channel in &self.channels {
            write!(f, "\n  {channel} waits for")?;
        }
        match self.channels.first() {
            Some(first) => write!(f, "\n  {first}"),
            None => Ok(()),
        }
    }
}

/// Above this many turns only one channel of each kind is looked at, where the routing names them.
const EXHAUSTIVE_TURNS: u64 = 1 << 26;

/// Shows that the routing cannot deadlock, or a way in which it can.
///
/// # Errors
/// The cycle, where there is one.
pub fn prove<L: Topology + Ranked>(layout: &L) -> Result<Proof, Cycle> {
    let ports = (0..layout.switches()).map(|s| u64::from(layout.ports(SwitchId(s))));
    let most = ports.clone().max().unwrap_or(0);
    let channels = ports.sum::<u64>() * u64::from(layout.virtual_channels());
    let few = if channels.saturating_mul(most) > EXHAUSTIVE_TURNS { layout.representatives() } else { None };
    let (method, checked) = match few {
        Some(few) => (Method::RanksBySymmetry, check_ranks(layout, few.into_iter())),
        None => (Method::Ranks, check_ranks(layout, all_channels(layout))),
    };
    match checked {
        Some((channels, turns)) => Ok(Proof { method, channels, turns }),
        None => search(layout),
    }
}

/// Every channel between switches.
fn all_channels<L: Topology + Routing>(layout: &L) -> impl Iterator<Item = Channel> {
    let channel = |switch, port, vc| Channel { switch: SwitchId(switch), port: PortId(port), vc: VcId(vc) };
    (0..layout.switches())
        .flat_map(move |switch| (0..layout.ports(SwitchId(switch))).map(move |port| (switch, port)))
        .filter(|&(switch, port)| {
            matches!(layout.peer(SwitchId(switch), PortId(port)), Attachment::Switch(..))
        })
        .flat_map(move |(switch, port)| {
            (0..layout.virtual_channels()).map(move |vc| channel(switch, port, vc))
        })
}

/// Channels and turns looked at, or none as soon as a turn does not raise the rank.
fn check_ranks<L: Ranked>(layout: &L, channels: impl Iterator<Item = Channel>) -> Option<(u64, u64)> {
    let mut turns = 0;
    let mut count = 0;
    for channel in channels {
        let rank = layout.rank(channel);
        let mut rises = true;
        layout.successors(channel, &mut |next| {
            turns += 1;
            rises &= layout.rank(next) > rank;
        });
        if !rises {
            return None;
        }
        count += 1;
    }
    Some((count, turns))
}

/// How far the search has come with a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Unseen,
    OnPath,
    Done,
}

/// Depth-first search for a cycle in the channel dependency graph.
fn search<L: Topology + Ranked>(layout: &L) -> Result<Proof, Cycle> {
    let channels: Vec<Channel> = all_channels(layout).collect();
    let index = |channel: Channel| channels.binary_search(&channel).expect("channels between switches only");
    let successors = |channel: Channel| {
        let mut next = Vec::new();
        layout.successors(channel, &mut |c| next.push(index(c)));
        next
    };
    let mut visits = vec![Visit::Unseen; channels.len()];
    let mut turns = 0;
    for start in 0..channels.len() {
        if visits[start] != Visit::Unseen {
            continue;
        }
        visits[start] = Visit::OnPath;
        let mut path = vec![(start, successors(channels[start]))];
        while let Some((at, untried)) = path.last_mut() {
            let Some(next) = untried.pop() else {
                visits[*at] = Visit::Done;
                path.pop();
                continue;
            };
            turns += 1;
            match visits[next] {
                Visit::Done => {}
                Visit::Unseen => {
                    visits[next] = Visit::OnPath;
                    path.push((next, successors(channels[next])));
                }
                Visit::OnPath => {
                    let cycle = path.iter().map(|&(at, _)| at).skip_while(|&at| at != next);
                    return Err(Cycle { channels: cycle.map(|at| channels[at]).collect() });
                }
            }
        }
    }
    Ok(Proof { method: Method::Search, channels: channels.len() as u64, turns })
}

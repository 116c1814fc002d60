//! Packets and cycles of a block that have been compared.

use crate::library::{Instance, RtlPort};

/// Packets and cycles of a block, all of whose outputs were those of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Cycles that it was stepped.
    pub cycles: u64,
    /// Packets that it has taken from the network, whole.
    pub taken: u64,
    /// Packets that the network has taken from it, whole.
    pub sent: u64,
}

impl Counts {
    /// Packets either way.
    pub fn packets(&self) -> u64 {
        self.taken + self.sent
    }

    /// Adds those of another endpoint or run.
    pub fn add(&mut self, other: Counts) {
        self.cycles += other.cycles;
        self.taken += other.taken;
        self.sent += other.sent;
    }
}

/// Streams of packets by their names, and whether the block takes them.
const STREAMS: [(&str, bool); 4] =
    [("s_axis_net", true), ("s_axis_request", true), ("m_axis_net", false), ("m_axis_answer", false)];

/// A stream of packets: a word goes over where it is valid and taken, and ends a packet where it is the last.
struct Stream {
    signals: [RtlPort; 3],
    taken: bool,
}

/// The counts of an instance.
pub(crate) struct Counter {
    streams: Vec<Stream>,
    pub counts: Counts,
}

impl Counter {
    /// Nothing so far, of those streams that a block has.
    pub fn new(rtl: &Instance) -> Counter {
        let stream = |&(name, taken): &(&str, bool)| {
            let port = |signal: &str| rtl.port(&format!("{name}_t{signal}"), 1).ok();
            Some(Stream { signals: [port("valid")?, port("ready")?, port("last")?], taken })
        };
        Counter { streams: STREAMS.iter().filter_map(stream).collect(), counts: Counts::default() }
    }

    /// Counts a cycle that is over.
    #[inline]
    pub fn step(&mut self, rtl: &Instance) {
        self.counts.cycles += 1;
        for stream in &self.streams {
            if stream.signals.iter().all(|signal| rtl.get(*signal) != 0) {
                let packets = if stream.taken { &mut self.counts.taken } else { &mut self.counts.sent };
                *packets += 1;
            }
        }
    }
}

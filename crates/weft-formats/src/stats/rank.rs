//! The operations of one rank.

use super::clock::RankClock;
use super::evolution::OpVolumes;
use super::pairs::{SentTo, Volume};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use weft_trace::Kind;
use weft_trace::op::Op;
use weft_units::Span;

/// The operations of one rank in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct RankStats {
    pub rank: u32,
    pub operations: u64,
    pub computation_us: f64,
    pub messages_sent: u64,
    pub bytes_sent: u64,
    /// Messages that other ranks send to it, and it to itself.
    pub messages_received: u64,
    /// Their payload.
    pub bytes_received: u64,
    /// Receives that it starts.
    pub receives: u64,
    /// Waits, for any number of requests; a test that was successful is one.
    pub waits: u64,
    /// Probes that found a message.
    pub probes: u64,
    pub collective_calls: u64,
    /// [`weft_trace::op::CollectiveSizes::send`], summed.
    pub collective_send_bytes: u64,
    /// [`weft_trace::op::CollectiveSizes::receive`], summed.
    pub collective_receive_bytes: u64,
    pub one_sided_operations: u64,
    pub one_sided_bytes: u64,
    /// Operations by name.
    pub operations_by_kind: KindCounts,
}

/// Operations by kind, in little memory: there may be a million ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KindCounts(Box<[(Kind, u64)]>);

impl KindCounts {
    /// Kinds that occur, with their number.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> {
        self.0.iter().copied()
    }
}

impl Serialize for KindCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(kind, count)| (kind.name(), count)))
    }
}

/// The operations of a rank so far.
#[derive(Debug)]
pub(super) struct RankCount {
    pub(super) clock: RankClock,
    kinds: BTreeMap<Kind, u64>,
    computation: u64,
    pub(super) sent: SentTo,
    collectives: Volume,
    collective_receive_bytes: u64,
    one_sided: Volume,
}

impl RankCount {
    /// Of a rank whose streams sit on these cores.
    pub(super) fn new(cores: &[u32]) -> RankCount {
        RankCount {
            clock: RankClock::new(cores),
            kinds: BTreeMap::new(),
            computation: 0,
            sent: SentTo::new(),
            collectives: Volume::default(),
            collective_receive_bytes: 0,
            one_sided: Volume::default(),
        }
    }

    /// Adds an operation; returns what it is over time.
    pub(super) fn add(&mut self, op: &Op) -> OpVolumes {
        let mut happened = OpVolumes { operations: 1, ..OpVolumes::default() };
        *self.kinds.entry(op.kind()).or_default() += 1;
        match op {
            Op::Compute { span } => self.computation = self.computation.saturating_add(span.as_ps()),
            Op::Isend { to, bytes, .. } => {
                happened.messages = Volume::one(*bytes);
                self.sent.entry(*to).or_default().add(happened.messages);
            }
            Op::Collective { sizes, .. } => {
                happened.collectives = Volume::one(sizes.send);
                self.collectives.add(happened.collectives);
                let received = &mut self.collective_receive_bytes;
                *received = received.saturating_add(sizes.receive.get());
            }
            Op::OneSided { bytes, .. } => self.one_sided.add(Volume::one(*bytes)),
            _ => {}
        }
        happened
    }

    /// The row of the rank, of which these messages were sent; who received is known when all ranks are read.
    pub(super) fn into_row(self, rank: u32, sent: Volume) -> RankStats {
        let of = |kind| self.kinds.get(&kind).copied().unwrap_or(0);
        RankStats {
            rank,
            operations: self.kinds.values().sum(),
            computation_us: Span::from_ps(self.computation).as_us_f64(),
            messages_sent: sent.count,
            bytes_sent: sent.bytes,
            messages_received: 0,
            bytes_received: 0,
            receives: of(Kind::Irecv),
            waits: of(Kind::Wait) + of(Kind::Waitall) + of(Kind::Waitany),
            probes: of(Kind::Probe) + of(Kind::Iprobe),
            collective_calls: self.collectives.count,
            collective_send_bytes: self.collectives.bytes,
            collective_receive_bytes: self.collective_receive_bytes,
            one_sided_operations: self.one_sided.count,
            one_sided_bytes: self.one_sided.bytes,
            operations_by_kind: KindCounts(self.kinds.into_iter().collect()),
        }
    }
}

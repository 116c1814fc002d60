//! Statistics of a trace: one pass over all operations, in memory for one rank at a time.
//!
//! ```text
//!   rank_order ── Op ──▶ RankCount ──▶ rows, pairs, matrix      by rank
//!                   └──▶ TraceCount ──▶ sizes, communicators    of all ranks
//!                   └──▶ RankClock ──▶ evolution                by time
//! ```

mod clock;
mod communicators;
mod evolution;
mod pairs;
mod rank;
mod sizes;

pub use communicators::{CommunicatorStats, CommunicatorTotals, MemberKind};
pub use evolution::{EvolutionInterval, TraceEvolution};
pub use pairs::{Pair, PairMatrix};
pub use rank::{KindCounts, RankStats};
pub use sizes::{CallSizeClass, SizeClass};

use crate::error::TraceError;
use crate::rank_order::{PlacedOp, RankOrder};
use crate::trace::Trace;
use communicators::CommunicatorCount;
use evolution::EvolutionCount;
use pairs::PairCount;
use rank::RankCount;
use serde::Serialize;
use sizes::{CallSizes, MessageSizes};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use weft_trace::Reduction;
use weft_trace::op::Op;
use weft_units::RankId;

/// Intervals of the evolution over time where nobody asks for another number.
const INTERVALS: NonZeroU32 = NonZeroU32::new(50).expect("more than 0");

/// The contents of a trace in numbers, as `weft trace stats --json` prints them. Sizes are those that the
/// program gave; calls of collectives are counted once per rank that takes part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceStats {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// Operations by name.
    pub operations_by_kind: BTreeMap<&'static str, u64>,
    /// Point-to-point messages.
    pub messages: u64,
    /// Their payload.
    pub message_bytes: u64,
    /// Messages by size, classes without messages left out.
    pub message_sizes: Vec<SizeClass>,
    /// Pairs of ranks that send messages, by direction.
    pub pairs: u64,
    /// The pairs that send most bytes.
    pub top_pairs: Vec<Pair>,
    /// Messages from each rank to each.
    pub matrix: PairMatrix,
    /// Receives from any source.
    pub any_source_receives: u64,
    /// Receives of any tag.
    pub any_tag_receives: u64,
    /// Collectives by name.
    pub collectives: BTreeMap<&'static str, CollectiveStats>,
    /// One-sided operations that move data.
    pub one_sided_operations: u64,
    /// Their payload.
    pub one_sided_bytes: u64,
    /// Communicators besides the world.
    pub communicators: u64,
    /// Each communicator by itself, the world first.
    pub communicator_rows: Vec<CommunicatorStats>,
    /// Of a trace with more than 10,000: the others together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_communicators: Option<CommunicatorTotals>,
    /// Computation of all ranks.
    pub computation_sum_us: f64,
    /// Least computation of a rank.
    pub computation_min_us: f64,
    /// Most computation of a rank.
    pub computation_max_us: f64,
    /// The trace over time.
    pub evolution: TraceEvolution,
    /// Each rank by itself.
    pub rows: Vec<RankStats>,
    /// Calls that were seen but not recorded, with their number.
    pub unrecorded: BTreeMap<String, u64>,
    /// Of a trace of another program: how its reader has helped itself, with the number of times.
    pub notes: BTreeMap<String, u64>,
    /// Whether the recording ended before the program did.
    pub interrupted: bool,
}

/// A kind of collective.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CollectiveStats {
    /// Calls, over all ranks.
    pub calls: u64,
    /// The non-blocking calls among them.
    pub non_blocking_calls: u64,
    /// [`weft_trace::op::CollectiveSizes::send`], summed.
    pub send_bytes: u64,
    /// [`weft_trace::op::CollectiveSizes::receive`], summed.
    pub receive_bytes: u64,
    /// Calls by size, classes without calls left out.
    pub sizes: Vec<CallSizeClass>,
    /// Of reductions: calls by operation and type of the elements, such as `sum of float64`, as far as the
    /// trace says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reductions: BTreeMap<String, u64>,
}

impl TraceStats {
    /// Reads a trace from its first operation to its last.
    ///
    /// # Errors
    /// A trace that cannot be read.
    pub fn of(trace: &Trace) -> Result<TraceStats, TraceError> {
        TraceStats::with_intervals(trace, INTERVALS)
    }

    /// The same, with at most so many intervals of time.
    ///
    /// # Errors
    /// A trace that cannot be read.
    pub fn with_intervals(trace: &Trace, intervals: NonZeroU32) -> Result<TraceStats, TraceError> {
        let mut count = TraceCount::new(trace.ranks(), intervals);
        let mut rows = Vec::new();
        for rank in (0..trace.ranks()).map(RankId) {
            rows.push(count.rank(trace, rank)?);
        }
        for (row, received) in rows.iter_mut().zip(&count.pairs.received) {
            (row.messages_received, row.bytes_received) = (received.count, received.bytes);
        }
        let mut operations_by_kind = BTreeMap::new();
        for (kind, count) in rows.iter().flat_map(|row| row.operations_by_kind.iter()) {
            *operations_by_kind.entry(kind.name()).or_default() += count;
        }
        let computations = || rows.iter().map(|row| row.computation_us);
        let sum = |of: fn(&RankStats) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let collective = |(kind, (stats, sizes)): (_, (CollectiveStats, CallSizes))| {
            (kind, CollectiveStats { sizes: sizes.into_classes(), ..stats })
        };
        let others = count.communicators.others;
        let header = &trace.metadata().header;
        Ok(TraceStats {
            ranks: trace.ranks(),
            operations: trace.operations(),
            operations_by_kind,
            messages: sum(|row| row.messages_sent),
            message_bytes: sum(|row| row.bytes_sent),
            message_sizes: count.sizes.into_classes(),
            pairs: count.pairs.pairs,
            top_pairs: std::mem::take(&mut count.pairs.top),
            matrix: count.pairs.into_matrix(),
            any_source_receives: count.any_source_receives,
            any_tag_receives: count.any_tag_receives,
            collectives: count.collectives.into_iter().map(collective).collect(),
            one_sided_operations: sum(|row| row.one_sided_operations),
            one_sided_bytes: sum(|row| row.one_sided_bytes),
            communicators: count.communicators.made(),
            communicator_rows: count.communicators.into_rows(),
            other_communicators: Some(others).filter(|others| *others != CommunicatorTotals::default()),
            computation_sum_us: computations().sum(),
            computation_min_us: computations().reduce(f64::min).unwrap_or(0.0),
            computation_max_us: computations().reduce(f64::max).unwrap_or(0.0),
            evolution: count.evolution.into_evolution(),
            rows,
            unrecorded: header.unrecorded.clone(),
            notes: header.notes.clone(),
            interrupted: header.interrupted,
        })
    }
}

/// The sums over the ranks so far.
struct TraceCount {
    sizes: MessageSizes,
    pairs: PairCount,
    any_source_receives: u64,
    any_tag_receives: u64,
    collectives: BTreeMap<&'static str, (CollectiveStats, CallSizes)>,
    communicators: CommunicatorCount,
    evolution: EvolutionCount,
}

impl TraceCount {
    fn new(ranks: u32, intervals: NonZeroU32) -> TraceCount {
        TraceCount {
            sizes: MessageSizes::default(),
            pairs: PairCount::new(ranks),
            any_source_receives: 0,
            any_tag_receives: 0,
            collectives: BTreeMap::new(),
            communicators: CommunicatorCount::new(ranks),
            evolution: EvolutionCount::new(intervals),
        }
    }

    fn rank(&mut self, trace: &Trace, rank: RankId) -> Result<RankStats, TraceError> {
        let mut own = RankCount::new(&trace.stream_cores(rank));
        let mut order = RankOrder::of(&**trace, rank)?;
        while let Some(PlacedOp { stream, op, .. }) = order.next()? {
            let happened = own.add(&op);
            self.evolution.add(own.clock.step(stream, &op), happened);
            self.add(&op);
        }
        self.evolution.reach(own.clock.end());
        let sent = self.pairs.add(rank, std::mem::take(&mut own.sent));
        Ok(own.into_row(rank.0, sent))
    }

    fn add(&mut self, op: &Op) {
        match op {
            Op::Isend { comm, bytes, .. } => {
                self.sizes.add(*bytes);
                self.communicators.totals(*comm).message(*bytes);
            }
            Op::Irecv { from, tag, .. } => {
                self.any_source_receives += u64::from(from.is_none());
                self.any_tag_receives += u64::from(tag.is_none());
            }
            Op::Collective { kind, comm, sizes, request, .. } => {
                let (collective, classes) = self.collectives.entry(op.kind().name()).or_default();
                collective.calls += 1;
                collective.non_blocking_calls += u64::from(request.is_some());
                collective.send_bytes = collective.send_bytes.saturating_add(sizes.send.get());
                collective.receive_bytes = collective.receive_bytes.saturating_add(sizes.receive.get());
                if kind.reduces() && sizes.reduction != Reduction::default() {
                    *collective.reductions.entry(sizes.reduction.to_string()).or_default() += 1;
                }
                classes.add(sizes);
                self.communicators.totals(*comm).collective(sizes);
            }
            Op::Communicator { comm, members } => self.communicators.make(*comm, members),
            Op::Compute { .. }
            | Op::Work { .. }
            | Op::Probe { .. }
            | Op::Wait { .. }
            | Op::Waitall { .. }
            | Op::Waitany { .. }
            | Op::Window { .. }
            | Op::OneSided { .. }
            | Op::Sync { .. }
            | Op::Signal { .. }
            | Op::Await { .. }
            | Op::Marker { .. } => {}
        }
    }
}

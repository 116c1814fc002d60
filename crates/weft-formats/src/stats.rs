//! Statistics of a trace: one pass over all operations, in memory for one rank at a time.

use crate::error::TraceError;
use crate::trace::Trace;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use weft_trace::op::Op;
use weft_trace::streams;
use weft_units::{Bytes, RankId, Span};

/// Number of pairs of ranks in [`TraceStats::top_pairs`].
const MAX_TOP_PAIRS: usize = 20;

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
    /// Computation of all ranks.
    pub computation_sum_us: f64,
    /// Least computation of a rank.
    pub computation_min_us: f64,
    /// Most computation of a rank.
    pub computation_max_us: f64,
    /// Each rank by itself.
    pub rows: Vec<RankStats>,
    /// Calls that were seen but not recorded, with their number.
    pub unrecorded: BTreeMap<String, u64>,
    /// Whether the recording ended before the program did.
    pub interrupted: bool,
}

/// Messages of `from_bytes` to `to_bytes`, both included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct SizeClass {
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub messages: u64,
    pub message_bytes: u64,
}

/// Messages from one rank to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Pair {
    pub from_rank: u32,
    pub to_rank: u32,
    pub messages: u64,
    pub message_bytes: u64,
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
}

/// The operations of one rank in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct RankStats {
    pub rank: u32,
    pub operations: u64,
    pub computation_us: f64,
    pub messages_sent: u64,
    pub bytes_sent: u64,
}

impl TraceStats {
    /// Reads a trace from its first operation to its last.
    pub fn of(trace: &Trace) -> Result<TraceStats, TraceError> {
        let mut count = Count::default();
        let mut rows = Vec::new();
        for rank in (0..trace.ranks()).map(RankId) {
            rows.push(count.rank(trace, rank)?);
        }
        let computations = || rows.iter().map(|row| row.computation_us);
        let header = &trace.metadata().header;
        Ok(TraceStats {
            ranks: trace.ranks(),
            operations: trace.operations(),
            operations_by_kind: count.operations,
            messages: rows.iter().map(|row| row.messages_sent).sum(),
            message_bytes: rows.iter().fold(0, |sum, row| row.bytes_sent.saturating_add(sum)),
            message_sizes: count.sizes.into_values().collect(),
            pairs: count.pairs,
            top_pairs: count.top_pairs,
            any_source_receives: count.any_source_receives,
            any_tag_receives: count.any_tag_receives,
            collectives: count.collectives,
            one_sided_operations: count.one_sided_operations,
            one_sided_bytes: count.one_sided_bytes,
            communicators: count.communicators.len() as u64,
            computation_sum_us: computations().sum(),
            computation_min_us: computations().reduce(f64::min).unwrap_or(0.0),
            computation_max_us: computations().reduce(f64::max).unwrap_or(0.0),
            rows,
            unrecorded: header.unrecorded.clone(),
            interrupted: header.interrupted,
        })
    }
}

/// The sums over the ranks so far.
#[derive(Default)]
struct Count {
    operations: BTreeMap<&'static str, u64>,
    /// By the number of bits of the size.
    sizes: BTreeMap<u32, SizeClass>,
    pairs: u64,
    top_pairs: Vec<Pair>,
    any_source_receives: u64,
    any_tag_receives: u64,
    collectives: BTreeMap<&'static str, CollectiveStats>,
    one_sided_operations: u64,
    one_sided_bytes: u64,
    communicators: BTreeSet<u64>,
}

impl Count {
    fn rank(&mut self, trace: &Trace, rank: RankId) -> Result<RankStats, TraceError> {
        let (mut operations, mut computation) = (0, 0u64);
        let mut sent: BTreeMap<RankId, (u64, u64)> = BTreeMap::new();
        let cursors = streams(&**trace, rank).map(|stream| trace.stream(rank, stream));
        let cursors = cursors.collect::<Result<Vec<_>, _>>()?;
        for op in cursors.into_iter().flatten() {
            let op = op?;
            operations += 1;
            *self.operations.entry(op.kind().name()).or_default() += 1;
            match &op {
                Op::Compute { span } => computation = computation.saturating_add(span.as_ps()),
                Op::Isend { to, bytes, .. } => {
                    let (messages, payload) = sent.entry(*to).or_default();
                    *messages += 1;
                    *payload = payload.saturating_add(bytes.get());
                    self.message(*bytes);
                }
                Op::Irecv { from, tag, .. } => {
                    self.any_source_receives += u64::from(from.is_none());
                    self.any_tag_receives += u64::from(tag.is_none());
                }
                Op::Collective { sizes, request, .. } => {
                    let collective = self.collectives.entry(op.kind().name()).or_default();
                    collective.calls += 1;
                    collective.non_blocking_calls += u64::from(request.is_some());
                    collective.send_bytes = collective.send_bytes.saturating_add(sizes.send.get());
                    collective.receive_bytes = collective.receive_bytes.saturating_add(sizes.receive.get());
                }
                Op::OneSided { bytes, .. } => {
                    self.one_sided_operations += 1;
                    self.one_sided_bytes = self.one_sided_bytes.saturating_add(bytes.get());
                }
                Op::Communicator { comm, .. } => {
                    self.communicators.insert(comm.0);
                }
                Op::Probe { .. }
                | Op::Wait { .. }
                | Op::Waitall { .. }
                | Op::Waitany { .. }
                | Op::Window { .. }
                | Op::Sync { .. }
                | Op::Signal { .. }
                | Op::Await { .. }
                | Op::Marker { .. } => {}
            }
        }
        let total = sent.values().fold((0, 0u64), |sum, to| (sum.0 + to.0, sum.1.saturating_add(to.1)));
        self.keep_top(rank, sent);
        Ok(RankStats {
            rank: rank.0,
            operations,
            computation_us: Span::from_ps(computation).as_us_f64(),
            messages_sent: total.0,
            bytes_sent: total.1,
        })
    }

    fn message(&mut self, bytes: Bytes) {
        let bits = u64::BITS - bytes.get().leading_zeros();
        let class = self.sizes.entry(bits).or_insert_with(|| SizeClass {
            from_bytes: if bits == 0 { 0 } else { 1 << (bits - 1) },
            to_bytes: if bits == 0 { 0 } else { u64::MAX >> (u64::BITS - bits) },
            messages: 0,
            message_bytes: 0,
        });
        class.messages += 1;
        class.message_bytes = class.message_bytes.saturating_add(bytes.get());
    }

    /// All pairs of a rank are known when it has been read: the best of them and of those before.
    fn keep_top(&mut self, rank: RankId, sent: BTreeMap<RankId, (u64, u64)>) {
        self.pairs += sent.len() as u64;
        self.top_pairs.extend(sent.into_iter().map(|(to, (messages, message_bytes))| Pair {
            from_rank: rank.0,
            to_rank: to.0,
            messages,
            message_bytes,
        }));
        self.top_pairs.sort_by_key(|pair| (Reverse(pair.message_bytes), pair.from_rank, pair.to_rank));
        self.top_pairs.truncate(MAX_TOP_PAIRS);
    }
}

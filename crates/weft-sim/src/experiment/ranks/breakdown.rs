//! `--breakdown` of recorded and real programs: where the time of each message went.
//!
//! ```text
//!  messages delivered ─┐
//!  record of the run ──┴─► pieces of each message ─┬─► rows of the table of pieces
//!                                                  └─► means by size
//! ```
//! The pieces of a message are in the order of time, without gap or overlap, from when it was posted to when
//! it was delivered: so they add up to its completion time, to the picosecond. They are those of the critical
//! path's record, walked back from the message's own end.

use crate::experiment::path::{LatencySplit, Names, PathRecorder, leg_times, pace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_machine::Machine;
use weft_results::{MessagePieceRow, ResultsError, ResultsWriter};
use weft_topo::{Layout, Topology};
use weft_units::{Bytes, Span, Time};
use weft_workload::path::{LegTimes, Location, PathTrace, Piece, PieceKind, Walk, message_time};
use weft_workload::replay::{MessageId, ReplayedMessage, Seating};

/// The mean time of the messages of a program whose sizes lie between the same powers of two.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SizeClass {
    /// The smallest message.
    pub smallest_bytes: u64,
    /// The largest.
    pub largest_bytes: u64,
    /// Messages.
    pub messages: u64,
    /// Mean of their completion times, from posted to delivered: the sum of the pieces.
    pub time_mean_ns: f64,
    /// The same by leg of the way.
    #[serde(default)]
    pub latency_split: LatencySplit,
    /// The pieces in the order in which they begin on average.
    pub pieces: Vec<MeanPiece>,
}

/// The mean time of one activity at one place, over the messages of a size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MeanPiece {
    /// Mean over all messages of the size.
    pub time_mean_ns: f64,
    /// As a share of the completion time.
    pub share: f64,
    /// The category, as in `weft explain`.
    pub category: String,
    /// The activity that the time is spent on.
    pub what: String,
    /// Where, as seen from the message: the sender, the source, a class of links.
    pub place: String,
}

/// Sums over the messages of a size. 128 bits hold any sum of times.
#[derive(Default)]
struct Sums {
    smallest: u64,
    largest: u64,
    messages: u64,
    time_ps: u128,
    legs: LegTimes,
    pieces: BTreeMap<(String, String), PieceSums>,
}

/// Sums over what is alike in the messages of a size.
struct PieceSums {
    what: PieceKind,
    time_ps: u128,
    /// Messages that have it, and the sum of how long after their posts it first begins.
    messages: u64,
    begins_ps: u128,
}

/// Breaks down the messages of a run.
pub(crate) struct Breakdown {
    /// The column `run` of the tables.
    run: u32,
    machine: Machine,
    layout: Layout,
    /// Messages that are to be broken down, in the order of delivery.
    delivered: Vec<ReplayedMessage>,
    /// By program and class of sizes.
    classes: BTreeMap<(u32, u32), Sums>,
}

/// 0 for no byte, else one more than the power of two that is not above the size.
fn class_of(bytes: Bytes) -> u32 {
    u64::BITS - bytes.get().leading_zeros()
}

impl Breakdown {
    /// Of a run on a machine.
    pub fn new(run: u32, machine: Machine, layout: Layout) -> Breakdown {
        Breakdown { run, machine, layout, delivered: Vec::new(), classes: BTreeMap::new() }
    }

    /// These messages were delivered, in order, after those before.
    pub fn deliver(&mut self, messages: impl Iterator<Item = ReplayedMessage>) {
        self.delivered.extend(messages);
    }

    /// Memory of what waits to be broken down.
    pub fn bytes(&self) -> usize {
        size_of::<ReplayedMessage>() * self.delivered.len()
    }

    /// Breaks down what was delivered, by what was recorded meanwhile. What a message did before the record
    /// began is not recorded.
    pub fn break_down(
        &mut self,
        path: PathRecorder,
        seating: &Seating,
        names: &[String],
        mut writer: Option<&mut ResultsWriter>,
    ) -> Result<PathTrace, ResultsError> {
        let trace = path.finish(pace(&self.machine));
        let names = Names::new(&self.machine, &self.layout, seating, names);
        for message in self.delivered.drain(..) {
            let id = MessageId { source: message.source, number: message.number };
            let times = (message.posted, message.delivered);
            let walk = message_time(&trace, id, message.source_rank, times);
            let class = (seating.program(message.source_rank).0, class_of(message.bytes));
            self.classes.entry(class).or_default().add(&message, &walk, &names);
            if let Some(writer) = &mut writer {
                for piece in &walk.pieces {
                    writer.push(row(self.run, &message, piece, &names))?;
                }
            }
        }
        Ok(trace)
    }

    /// The means of a program.
    pub fn classes(&self, program: u32) -> Vec<SizeClass> {
        self.classes.range((program, 0)..=(program, u32::MAX)).map(|(_, sums)| sums.means()).collect()
    }
}

fn row(run: u32, message: &ReplayedMessage, piece: &Piece, names: &Names<'_>) -> MessagePieceRow {
    MessagePieceRow {
        run,
        delivered_ps: message.delivered,
        source_endpoint: message.source,
        sequence: u64::from(message.number),
        payload_bytes: message.bytes,
        begin_ps: piece.begin,
        time_ps: piece.span(),
        leg: names.leg(piece).name().to_owned(),
        category: piece.kind.category().name().to_owned(),
        what: names.what(piece),
        place: names.place(piece),
    }
}

/// Where a piece is, as seen from its message.
fn seen_from(message: &ReplayedMessage, piece: &Piece, layout: &Layout) -> String {
    match piece.place {
        Location::Rank(rank) if rank == message.source_rank => "sender".to_owned(),
        Location::Rank(rank) if rank == message.destination_rank => "receiver".to_owned(),
        Location::Rank(_) => "another rank".to_owned(),
        Location::Block(endpoint, block) => {
            let side = match endpoint {
                _ if message.source == message.destination => "the host",
                side if side == message.source => "source",
                side if side == message.destination => "destination",
                _ => "another endpoint",
            };
            match piece.kind {
                PieceKind::Block(_) | PieceKind::WaitsFor(_) => side.to_owned(),
                _ => format!("{}, {side}", block.name()),
            }
        }
        Location::Link(_, class) => {
            let class = layout.link_classes().get(usize::from(class.0)).copied().unwrap_or("link");
            match piece.kind {
                // A packet in a switch is on its way to the link.
                PieceKind::Switch => format!("to {class}"),
                _ => class.to_owned(),
            }
        }
    }
}

impl Sums {
    fn add(&mut self, message: &ReplayedMessage, walk: &Walk, names: &Names<'_>) {
        let layout = names.layout();
        let bytes = message.bytes.get();
        self.smallest = if self.messages == 0 { bytes } else { self.smallest.min(bytes) };
        self.largest = self.largest.max(bytes);
        self.messages += 1;
        self.time_ps += ps(message.delivered - message.posted);
        self.legs += leg_times(walk, layout);
        let mut first: BTreeMap<(String, String), Time> = BTreeMap::new();
        for piece in &walk.pieces {
            let key = (names.what(piece), seen_from(message, piece, layout));
            let new = PieceSums { what: piece.kind, time_ps: 0, messages: 0, begins_ps: 0 };
            self.pieces.entry(key.clone()).or_insert(new).time_ps += ps(piece.span());
            first.entry(key).or_insert(piece.begin);
        }
        for (key, begin) in first {
            if let Some(sums) = self.pieces.get_mut(&key) {
                sums.messages += 1;
                sums.begins_ps += ps(begin - message.posted);
            }
        }
    }

    fn means(&self) -> SizeClass {
        let mean = |ps: u128| ps as f64 / self.messages.max(1) as f64 / 1e3;
        let mut pieces: Vec<_> = self.pieces.iter().collect();
        pieces.sort_by_key(|(_, sums)| sums.begins_ps / u128::from(sums.messages.max(1)));
        let piece = |((what, place), sums): (&(String, String), &PieceSums)| MeanPiece {
            time_mean_ns: mean(sums.time_ps),
            share: if self.time_ps == 0 { 0.0 } else { sums.time_ps as f64 / self.time_ps as f64 },
            category: sums.what.category().name().to_owned(),
            what: what.clone(),
            place: place.clone(),
        };
        SizeClass {
            smallest_bytes: self.smallest,
            largest_bytes: self.largest,
            messages: self.messages,
            time_mean_ns: mean(self.time_ps),
            latency_split: LatencySplit::mean(&self.legs, self.messages),
            pieces: pieces.into_iter().map(piece).collect(),
        }
    }
}

fn ps(span: Span) -> u128 {
    span.as_ps().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches classes that do not begin at powers of two.
    #[test]
    fn classes_of_sizes_begin_at_powers_of_two() {
        let class = |bytes| class_of(Bytes::new(bytes));
        assert_eq!([class(0), class(1), class(2), class(3), class(4)], [0, 1, 2, 2, 3]);
        assert_eq!(class(u64::MAX), 64);
    }
}

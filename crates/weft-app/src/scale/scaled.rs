//! A recording at another number of ranks, as a trace.

use super::error::ScaleError;
use super::exchange::{NeighbourShift, ShiftHeading};
use super::ghost_points::PlaceFactors;
use super::ghosts::{GhostBytes, GhostLaws};
use super::group::{PeerMessage, StepCost, WrittenGroup};
use super::law::Scales;
use super::learned::{LearnedProgram, LearnedRound, RoundKind};
use super::pairing::StepPairing;
use super::program::{ProgramStep, RoundGroup};
use super::redistribution::{Redistribution, RemapMessages, messages};
use crate::grid::RankGrid;
use crate::phase::RemapPhase;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weft_formats::{FormatReader, TraceError, TraceHeader, TraceMetadata};
use weft_trace::op::{Collective, CollectiveSizes, Op, RankRange, StreamId};
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId};

/// A recording at another number of ranks. Clones share it.
#[derive(Clone)]
pub struct ScaledTrace(Arc<ScaledBody>);

struct ScaledBody {
    learned: LearnedProgram,
    scales: Scales,
    steps: Vec<ScaledStep>,
    metadata: TraceMetadata,
    name: String,
}

/// A step with its factors.
struct ScaledStep {
    /// Of the computation before.
    lead: CostFactors,
    kind: ScaledKind,
}

enum ScaledKind {
    /// A factor of the bytes that ranks give in a collective.
    Together(f64),
    Exchange {
        /// Each direction with its bytes, in the order of sends.
        sends: Vec<(ShiftHeading, DirectionBytes)>,
        inner: [CostFactors; 2],
    },
    Redistribution {
        remap: Box<RemapPhase>,
        tag: i32,
        inner: [CostFactors; 2],
    },
    End,
}

/// Factors of computations.
struct CostFactors {
    /// Of each in order, where all ranks have as many; otherwise one for all.
    each: Vec<[f64; 3]>,
}

/// The bytes of messages in a direction.
enum DirectionBytes {
    /// Those of the rank's counterpart.
    Counterpart {
        factor: f64,
        /// For a rank whose counterpart sends none.
        mean: f64,
        /// All are multiples of it.
        unit: u64,
    },
    /// The product of what each dimension gives at the sender's place.
    Place(PlaceFactors),
}

impl DirectionBytes {
    /// The bytes of a rank at a place, of those that its counterpart sent.
    fn of(&self, place: [u32; 3], recorded: Option<u64>) -> u64 {
        match self {
            DirectionBytes::Counterpart { factor, mean, unit } => {
                let bytes = factor * recorded.map_or(*mean, |bytes| bytes as f64);
                (bytes / *unit as f64).round() as u64 * unit
            }
            DirectionBytes::Place(factors) => {
                factors.iter().zip(place).map(|(factors, place)| factors[place as usize]).product()
            }
        }
    }
}

impl CostFactors {
    /// The factors between lists of computations of each rank, and of those of a second recording.
    fn new(lists: &[&[StepCost]], second: Option<&[&[StepCost]]>, scales: &Scales) -> CostFactors {
        let length = |lists: &[&[StepCost]]| {
            let first = lists.first().map_or(0, |list| list.len());
            lists.iter().all(|list| list.len() == first).then_some(first)
        };
        let numbers = |cost: &StepCost| [cost.span, cost.flops, cost.bytes];
        let mean = |lists: &[&[StepCost]], index: Option<usize>, number: usize| {
            let chosen = lists.iter().flat_map(|list| match index {
                Some(index) => list[index..=index].iter(),
                None => list.iter(),
            });
            chosen.map(|cost| numbers(cost)[number] as f64).sum::<f64>() / lists.len().max(1) as f64
        };
        let second = second.filter(|second| !second.is_empty());
        let own = length(lists).filter(|own| second.is_none_or(|second| length(second) == Some(*own)));
        let factor = |index: Option<usize>| {
            [0, 1, 2].map(|number| {
                let other = second.map(|second| mean(second, index, number));
                scales.computation(mean(lists, index, number), other)
            })
        };
        let each = match own {
            Some(count) => (0..count).map(|index| factor(Some(index))).collect(),
            None => vec![factor(None)],
        };
        CostFactors { each }
    }

    fn scaled(&self, costs: &[StepCost]) -> Vec<StepCost> {
        let scaled = |(index, cost): (usize, &StepCost)| {
            let [span, flops, bytes] = self.each.get(index).or(self.each.last()).copied().unwrap_or([1.0; 3]);
            let by = |number: u64, factor: f64| (number as f64 * factor).round() as u64;
            StepCost { span: by(cost.span, span), flops: by(cost.flops, flops), bytes: by(cost.bytes, bytes) }
        };
        costs.iter().enumerate().map(scaled).collect()
    }
}

impl ScaledTrace {
    /// A program at another scale; the second recording, if there is one, tells its laws.
    ///
    /// # Errors
    /// A grid of points with fewer points than ranks along a dimension, and collectives that have no law.
    pub(super) fn new(
        learned: LearnedProgram,
        second: Option<&LearnedProgram>,
        scales: Scales,
        header: TraceHeader,
    ) -> Result<ScaledTrace, ScaleError> {
        let pairing = match second {
            Some(second) => StepPairing::of(&learned, second)?,
            None => StepPairing::none(learned.program.steps.len()),
        };
        let mut ghosts = GhostLaws::new(&learned, second, &pairing.partners, &scales);
        let mut steps = Vec::with_capacity(learned.program.steps.len());
        for (number, partner) in pairing.partners.iter().enumerate() {
            let step = PairedStep { learned: &learned, number, other: second.zip(*partner) };
            let bytes = ghosts.bytes.remove(&number);
            steps.push(scaled_step(step, bytes, &scales)?);
        }
        let mut header = header;
        header.notes.extend(untold(&learned, &scales));
        header.notes.extend(ghosts.notes());
        header.notes.extend(beyond_geometry(&learned, second, &pairing, &scales));
        let ranks = scales.ranks();
        let name = format!("{} at {ranks} ranks", learned.program.file);
        let metadata = TraceMetadata {
            format_version: 1,
            header: TraceHeader { ranks, ..header },
            operations: BTreeMap::new(),
            rank_operations: Vec::new(),
            rank_streams: Vec::new(),
        };
        let mut body = ScaledBody { learned, scales, steps, metadata, name };
        let mut operations: BTreeMap<String, u64> = BTreeMap::new();
        for rank in 0..ranks {
            let mut count = 0;
            for step in 0..body.steps.len() {
                body.write(rank, step, &mut |op| {
                    count += 1;
                    *operations.entry(op.kind().name().to_owned()).or_default() += 1;
                });
            }
            body.metadata.rank_operations.push(count);
        }
        body.metadata.operations = operations;
        Ok(ScaledTrace(Arc::new(body)))
    }
}

/// A step of a program, with its partner of a second recording.
struct PairedStep<'a> {
    learned: &'a LearnedProgram,
    number: usize,
    other: Option<(&'a LearnedProgram, usize)>,
}

fn scaled_step(
    PairedStep { learned, number, other }: PairedStep<'_>,
    ghosts: Option<GhostBytes>,
    scales: &Scales,
) -> Result<ScaledStep, ScaleError> {
    let leads = |learned: &LearnedProgram, number: usize| -> Vec<Vec<StepCost>> {
        match &learned.program.steps[number] {
            ProgramStep::Together(ops) => ops.iter().map(|(lead, _)| lead.clone()).collect(),
            ProgramStep::Round(round) => round
                .iter()
                .map(|group| group.as_ref().map_or(Vec::new(), |group| group.lead.clone()))
                .collect(),
            ProgramStep::End(leads) => leads.clone(),
        }
    };
    let factors = |own: Vec<Vec<StepCost>>, other: Option<Vec<Vec<StepCost>>>| {
        let own: Vec<&[StepCost]> = own.iter().map(Vec::as_slice).collect();
        let other: Option<Vec<&[StepCost]>> =
            other.as_ref().map(|other| other.iter().map(Vec::as_slice).collect());
        CostFactors::new(&own, other.as_deref(), scales)
    };
    let lead = factors(leads(learned, number), other.map(|(other, step)| leads(other, step)));
    let inner = |learned: &LearnedProgram, number: usize, part: usize| -> Vec<Vec<StepCost>> {
        match &learned.program.steps[number] {
            ProgramStep::Round(round) => round
                .iter()
                .map(|group| group.as_ref().map_or(Vec::new(), |group| group.messages.inner[part].clone()))
                .collect(),
            _ => Vec::new(),
        }
    };
    let inner = || {
        [0, 1].map(|part| {
            factors(inner(learned, number, part), other.map(|(other, step)| inner(other, step, part)))
        })
    };
    let kind = match (&learned.program.steps[number], &learned.rounds[number]) {
        (ProgramStep::Together(ops), _) => {
            let mean = |ops: &[(Vec<StepCost>, Op)]| {
                ops.iter().map(|(_, op)| given(op)).sum::<f64>() / ops.len() as f64
            };
            let second = other.and_then(|(other, step)| match &other.program.steps[step] {
                ProgramStep::Together(ops) => Some(mean(ops)),
                _ => None,
            });
            ScaledKind::Together(together_factor(&ops[0].1, mean(ops), second, scales))
        }
        (ProgramStep::End(_), _) | (_, None) => ScaledKind::End,
        (ProgramStep::Round(_), Some(LearnedRound { kind: RoundKind::Redistribution(found), .. })) => {
            let remap = redistribution(found, learned, scales)?;
            ScaledKind::Redistribution { remap: Box::new(remap), tag: found.tag, inner: inner() }
        }
        (ProgramStep::Round(_), Some(LearnedRound { kind: RoundKind::Exchange(exchange), bytes, .. })) => {
            let other = other.and_then(|(other, step)| other.rounds[step].as_ref());
            let direction = |(heading, bytes): (&ShiftHeading, &Vec<Option<u64>>)| {
                let found = match &ghosts {
                    Some(GhostBytes::Place(factors)) => DirectionBytes::Place(factors.clone()),
                    Some(GhostBytes::Factor(factor)) => counterpart_bytes(bytes, *factor),
                    None => counterpart_bytes(bytes, neighbour_factor(heading, bytes, other, scales)),
                };
                (*heading, found)
            };
            ScaledKind::Exchange {
                sends: exchange.sends.iter().zip(bytes).map(direction).collect(),
                inner: inner(),
            }
        }
    };
    Ok(ScaledStep { lead, kind })
}

/// Numbers of rounds of which the recording does not tell what they are on more ranks.
fn untold(learned: &LearnedProgram, scales: &Scales) -> impl Iterator<Item = (String, u64)> + use<> {
    let (mut shifts, mut redistributions) = (0, 0);
    for round in learned.rounds.iter().flatten() {
        match &round.kind {
            RoundKind::Exchange(exchange) => {
                let is_untold =
                    |dimension: usize| exchange.unknown[dimension] && scales.wanted[dimension] > 2;
                shifts += u64::from((0..3).any(is_untold));
            }
            RoundKind::Redistribution(found) => {
                redistributions +=
                    u64::from(!found.is_told_on(scales.wanted, scales.points(found.points, scales.wanted)));
            }
        }
    }
    let notes = [
        ("shifts along two ranks, whose directions are taken from their order; record on more ranks", shifts),
        (
            "redistributions that several layouts explain, the first is taken; record on more ranks",
            redistributions,
        ),
    ];
    notes.into_iter().filter(|(_, count)| *count > 0).map(|(note, count)| (note.to_owned(), count))
}

fn redistribution(
    found: &Redistribution,
    learned: &LearnedProgram,
    scales: &Scales,
) -> Result<RemapPhase, ScaleError> {
    let points = scales.points(found.points, scales.wanted);
    found.on(scales.wanted, points).map(RemapPhase::new).ok_or_else(|| ScaleError::Ranks {
        ranks: scales.wanted.iter().product(),
        reason: format!(
            "{} redistributes a grid of {} x {} x {} points, fewer along a dimension than ranks",
            learned.program.file, points[0], points[1], points[2]
        ),
        mend: "take fewer ranks, or record a larger problem".to_owned(),
    })
}

/// The mean of the messages in a direction.
fn mean_bytes(bytes: &[Option<u64>]) -> f64 {
    let sent = bytes.iter().flatten();
    let count = sent.clone().count().max(1);
    sent.map(|bytes| *bytes as f64).sum::<f64>() / count as f64
}

/// The mean of the messages in a direction in another recording.
fn mean_in_other(heading: &ShiftHeading, other: &LearnedRound) -> Option<f64> {
    let RoundKind::Exchange(exchange) = &other.kind else { return None };
    let alike = |found: &&ShiftHeading| found.offset.map(i32::abs) == heading.offset.map(i32::abs);
    let exact = exchange.sends.iter().position(|found| found.offset == heading.offset);
    let index = exact.or_else(|| exchange.sends.iter().position(|found| alike(&found)))?;
    Some(mean_bytes(&other.bytes[index]))
}

/// The factor of the bytes in a direction to a neighbour.
fn neighbour_factor(
    heading: &ShiftHeading,
    bytes: &[Option<u64>],
    other: Option<&LearnedRound>,
    scales: &Scales,
) -> f64 {
    let second = other.and_then(|other| mean_in_other(heading, other));
    // Numbers stay whole, and what ranks tell each other of sizes stays as it is.
    let is_a_number = bytes.iter().flatten().all(|bytes| *bytes <= 8);
    match (is_a_number, second) {
        (true, None) => 1.0,
        _ => scales.between_neighbours(heading.offset, mean_bytes(bytes), second),
    }
}

/// Messages in a direction as those of counterparts, times a factor.
fn counterpart_bytes(bytes: &[Option<u64>], factor: f64) -> DirectionBytes {
    let unit = bytes.iter().flatten().fold(8, |unit, bytes| gcd(unit, *bytes));
    DirectionBytes::Counterpart { factor, mean: mean_bytes(bytes), unit: unit.max(1) }
}

/// Number of messages whose bytes in two recordings no geometry of parts explains.
fn beyond_geometry(
    learned: &LearnedProgram,
    second: Option<&LearnedProgram>,
    pairing: &StepPairing,
    scales: &Scales,
) -> Option<(String, u64)> {
    let second = second?;
    let mut messages = 0;
    for (round, partner) in learned.rounds.iter().zip(&pairing.partners) {
        let (Some(round), Some(other)) = (round, partner.and_then(|step| second.rounds[step].as_ref()))
        else {
            continue;
        };
        let RoundKind::Exchange(exchange) = &round.kind else { continue };
        for (heading, bytes) in exchange.sends.iter().zip(&round.bytes) {
            if scales.is_beyond_geometry(mean_bytes(bytes), mean_in_other(heading, other)) {
                messages += bytes.iter().flatten().count() as u64;
            }
        }
    }
    let note = "recorded messages that shrink faster from one recording to the other than parts do; the mean \
                of both is taken";
    (messages > 0).then(|| (note.to_owned(), messages))
}

pub(super) fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Bytes that a rank gives in a collective.
fn given(op: &Op) -> f64 {
    match op {
        Op::Collective { sizes, .. } => sizes.send.get().max(sizes.receive.get()) as f64,
        _ => 0.0,
    }
}

/// The factor of the bytes of a rank's block, or of what it has for another.
fn together_factor(op: &Op, mean: f64, second: Option<f64>, scales: &Scales) -> f64 {
    let Op::Collective { kind, .. } = op else { return 1.0 };
    let total = |extents: [u32; 3]| extents.iter().map(|extent| f64::from(*extent)).product::<f64>();
    let (recorded, wanted) = (total(scales.recorded), total(scales.wanted));
    match kind {
        // All that a rank has for others is shared among more of them.
        Collective::Alltoallv => {
            let totals = second.zip(scales.second).map(|(second, extents)| second * total(extents));
            scales.blocks(mean * recorded, totals) * (recorded / wanted).powi(2)
        }
        Collective::Gatherv | Collective::Scatterv | Collective::Allgatherv | Collective::ReduceScatter => {
            let totals = second.zip(scales.second).map(|(second, extents)| second * total(extents));
            scales.blocks(mean * recorded, totals) * recorded / wanted
        }
        _ => match second.zip(scales.second) {
            Some((second, extents)) if second > 0.0 && mean > 0.0 => scales.power(mean, second, extents),
            _ => 1.0,
        },
    }
}

impl ScaledBody {
    /// Calls `each` with the operations of a rank in a step.
    fn write(&self, rank: u32, step: usize, each: &mut impl FnMut(Op)) {
        let counterpart = self.scales.counterpart(rank);
        let ScaledStep { lead, kind } = &self.steps[step];
        let recorded = &self.learned.program.steps[step];
        let costs: &[StepCost] = match recorded {
            ProgramStep::Together(ops) => &ops[counterpart as usize].0,
            ProgramStep::Round(round) => {
                round[counterpart as usize].as_ref().map_or(&[], |group| &group.lead)
            }
            ProgramStep::End(leads) => &leads[counterpart as usize],
        };
        lead.scaled(costs).into_iter().flat_map(StepCost::operations).for_each(&mut *each);
        match (kind, recorded, &self.learned.rounds[step]) {
            (ScaledKind::Together(factor), ProgramStep::Together(ops), _) => {
                each(self.together(rank, ops, *factor));
            }
            (ScaledKind::Redistribution { remap, tag, inner }, ProgramStep::Round(round), Some(law)) => {
                let RemapMessages { receives, sends } = messages(remap, rank, *tag);
                let inner = self.inner(inner, round[counterpart as usize].as_ref());
                let (style, mode) = (law.style, law.mode);
                WrittenGroup { receives: &receives, sends: &sends, style, mode, inner }.write(each);
            }
            (ScaledKind::Exchange { sends, inner }, ProgramStep::Round(round), Some(law)) => {
                let RoundKind::Exchange(exchange) = &law.kind else { return };
                let inner = self.inner(inner, round[counterpart as usize].as_ref());
                self.exchange(rank, ExchangeStep { exchange, sends, law, inner: inner.clone() }, each);
                // One round of both directions becomes two where they lead to different ranks.
                let unknown = exchange.unknown.iter().position(|unknown| *unknown);
                if law.is_of_both && unknown.is_some_and(|dimension| self.scales.wanted[dimension] > 2) {
                    let mut turned = exchange.clone();
                    turned.turn();
                    self.exchange(rank, ExchangeStep { exchange: &turned, sends, law, inner }, each);
                }
            }
            _ => {}
        }
    }

    fn inner(&self, factors: &[CostFactors; 2], group: Option<&RoundGroup>) -> [Vec<StepCost>; 2] {
        let part =
            |part: usize| group.map_or(Vec::new(), |group| factors[part].scaled(&group.messages.inner[part]));
        [part(0), part(1)]
    }

    fn exchange(&self, rank: u32, step: ExchangeStep<'_>, each: &mut impl FnMut(Op)) {
        let ExchangeStep { exchange, sends, law, inner } = step;
        let grid = RankGrid { extents: self.scales.wanted, periodic: exchange.periodic };
        let bytes = |sender: u32, heading: ShiftHeading| {
            // A round that is turned has the bytes of the direction that was recorded.
            let index = exchange.sends.iter().position(|other| *other == heading)?;
            Some(
                sends[index]
                    .1
                    .of(grid.place(sender), law.bytes[index][self.scales.counterpart(sender) as usize]),
            )
        };
        let message = |heading: &ShiftHeading, is_send: bool| {
            let peer = grid.shifted(rank, heading.offset)?;
            let bytes = if is_send { bytes(rank, *heading) } else { bytes(peer, heading.back()) }?;
            Some(PeerMessage { peer, tag: heading.tag, bytes })
        };
        let receives: Vec<_> =
            exchange.receives.iter().filter_map(|heading| message(heading, false)).collect();
        let sends: Vec<_> = exchange.sends.iter().filter_map(|heading| message(heading, true)).collect();
        let (style, mode) = (law.style, law.mode);
        WrittenGroup { receives: &receives, sends: &sends, style, mode, inner }.write(each);
    }

    /// The operation of a rank among all.
    fn together(&self, rank: u32, ops: &[(Vec<StepCost>, Op)], factor: f64) -> Op {
        let (ranks, recorded) = (self.metadata.header.ranks, self.learned.program.ranks);
        // Ranks as they are numbered, so that the root stays one.
        let number = |rank: u32| (u64::from(rank) * u64::from(recorded) / u64::from(ranks)) as u32;
        let by = |bytes: u64| (bytes as f64 * factor).round() as u64;
        let mut op = ops[number(rank) as usize].1.clone();
        match &mut op {
            Op::Communicator { members, .. } => {
                *members = vec![RankRange { first: 0, stride: 1, count: ranks }]
            }
            Op::Collective { kind, root, sizes, .. } => {
                if let Some(RankId(root)) = root {
                    *root = (u64::from(*root) * u64::from(ranks)).div_ceil(u64::from(recorded)) as u32;
                }
                let is_root = root.is_some_and(|root| root.0 == rank);
                let sizes_of = |rank: u32| match &ops[number(rank) as usize].1 {
                    Op::Collective { sizes, .. } => sizes.clone(),
                    _ => CollectiveSizes::default(),
                };
                let all = |of: &dyn Fn(u32) -> u64| (0..ranks).map(of).collect::<Vec<u64>>();
                match kind {
                    Collective::Alltoallv => {
                        let counts = |counts: &[u64]| {
                            all(&|other| by(counts.get(number(other) as usize).copied().unwrap_or(0)))
                        };
                        sizes.send_counts = counts(&sizes.send_counts);
                        sizes.receive_counts = counts(&sizes.receive_counts);
                        sizes.send = Bytes::new(sizes.send_counts.iter().sum());
                        sizes.receive = Bytes::new(sizes.receive_counts.iter().sum());
                    }
                    Collective::Allgatherv | Collective::Gatherv => {
                        let blocks = |other: u32| by(sizes_of(other).send.get());
                        sizes.send = Bytes::new(blocks(rank));
                        if *kind == Collective::Allgatherv || is_root {
                            sizes.receive_counts = all(&blocks);
                            sizes.receive = Bytes::new(sizes.receive_counts.iter().sum());
                        }
                    }
                    Collective::Scatterv | Collective::ReduceScatter => {
                        let blocks = |other: u32| by(sizes_of(other).receive.get());
                        sizes.receive = Bytes::new(blocks(rank));
                        let counts = all(&blocks);
                        let sum = Bytes::new(counts.iter().sum());
                        match kind {
                            Collective::ReduceScatter => (sizes.receive_counts, sizes.send) = (counts, sum),
                            _ if is_root => (sizes.send_counts, sizes.send) = (counts, sum),
                            _ => {}
                        }
                    }
                    _ => {
                        sizes.send = Bytes::new(by(sizes.send.get()));
                        sizes.receive = Bytes::new(by(sizes.receive.get()));
                    }
                }
            }
            _ => {}
        }
        op
    }
}

/// An exchange of a rank that is to be written.
struct ExchangeStep<'a> {
    exchange: &'a NeighbourShift,
    sends: &'a [(ShiftHeading, DirectionBytes)],
    law: &'a LearnedRound,
    inner: [Vec<StepCost>; 2],
}

impl TraceSource for ScaledTrace {
    fn file(&self) -> &str {
        &self.0.name
    }

    fn ranks(&self) -> u32 {
        self.0.metadata.header.ranks
    }

    fn operations(&self) -> u64 {
        self.0.metadata.rank_operations.iter().sum()
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        self.0.metadata.operations.get(kind.name()).copied().unwrap_or(0)
    }

    fn cursor_operations(&self) -> u64 {
        // Those of one step, of which no message has more than a few.
        8 * u64::from(self.ranks())
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn unrecorded(&self) -> BTreeMap<String, u64> {
        self.0.metadata.header.unrecorded.clone()
    }

    fn stream_at(&self, rank: RankId, _: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        let (file, ranks) = (self.0.name.clone(), self.ranks());
        if rank.0 >= ranks {
            return Err(TraceError::NoSuchRank { file, rank: rank.0, ranks }.into());
        }
        let mut cursor =
            ScaledCursor { trace: self.clone(), rank: rank.0, step: 0, ops: VecDeque::new(), position: 0 };
        while cursor.position < position && cursor.next().is_some() {}
        Ok(Box::new(cursor))
    }
}

impl FormatReader for ScaledTrace {
    fn format(&self) -> &'static str {
        "scaled"
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.0.metadata
    }

    fn file_bytes(&self) -> Bytes {
        Bytes::ZERO
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        Vec::new()
    }
}

/// The operations of a rank.
struct ScaledCursor {
    trace: ScaledTrace,
    rank: u32,
    /// The next step.
    step: usize,
    /// The operations that are left of those before.
    ops: VecDeque<Op>,
    position: u64,
}

impl Iterator for ScaledCursor {
    type Item = Result<Op, ReadError>;

    fn next(&mut self) -> Option<Result<Op, ReadError>> {
        let body = &self.trace.0;
        while self.ops.is_empty() {
            if self.step == body.steps.len() {
                return None;
            }
            body.write(self.rank, self.step, &mut |op| self.ops.push_back(op));
            self.step += 1;
        }
        self.position += 1;
        self.ops.pop_front().map(Ok)
    }
}

impl Cursor for ScaledCursor {
    fn next_position(&self) -> u64 {
        self.position
    }
}

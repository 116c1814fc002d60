//! The laws of a recorded program: its grid of ranks, and what each round is on it.

use super::error::ScaleError;
use super::exchange::{NeighbourShift, RoundPattern, ShiftHeading, explain, pattern};
use super::group::{GroupStyle, GroupStyles};
use super::program::{ProgramStep, RoundGroup, StepProgram};
use super::redistribution::Redistribution;
use crate::grid::{RankGrid, factorings};
use std::collections::BTreeMap;
use weft_trace::op::SendMode;

/// A program whose rounds have laws.
pub(super) struct LearnedProgram {
    pub(super) program: StepProgram,
    /// Ranks along each dimension.
    pub(super) extents: [u32; 3],
    /// The law of each step; `None`: no round.
    pub(super) rounds: Vec<Option<LearnedRound>>,
}

/// A round.
pub(super) struct LearnedRound {
    pub(super) kind: RoundKind,
    pub(super) style: GroupStyle,
    pub(super) mode: SendMode,
    /// Bytes of the messages sent in each of the directions of an exchange: by direction, then by rank.
    pub(super) bytes: Vec<Vec<Option<u64>>>,
    /// Whether it is one of both directions, of which only one was recorded, since they lead to one rank.
    pub(super) is_of_both: bool,
}

/// The law of a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RoundKind {
    Exchange(NeighbourShift),
    Redistribution(Redistribution),
}

/// The grids of points that rounds redistribute.
struct PointGrids<'a> {
    extents: [u32; 3],
    known: Vec<[u64; 3]>,
    /// The redistributions that rounds were found to be.
    found: BTreeMap<Vec<u64>, Option<Redistribution>>,
    /// A round of each kind, to tell among grids that explain one.
    examples: BTreeMap<Vec<u64>, &'a Vec<Option<RoundGroup>>>,
}

impl<'a> PointGrids<'a> {
    fn new(program: &'a StepProgram, extents: [u32; 3]) -> PointGrids<'a> {
        let examples = rounds(program).map(|round| (key(round), round)).collect();
        PointGrids { extents, known: Vec::new(), found: BTreeMap::new(), examples }
    }

    /// The redistribution that a round makes of a grid that is known.
    fn find(&mut self, round: &[Option<RoundGroup>]) -> Option<Redistribution> {
        let PointGrids { extents, known, found, .. } = self;
        let look = || known.iter().find_map(|points| Redistribution::of_grid(round, *extents, *points));
        found.entry(key(round)).or_insert_with(look).clone()
    }

    /// Finds the grid of points of a round that is no exchange. Of several that explain it, that which
    /// explains most other rounds.
    fn learn(&mut self, round: &[Option<RoundGroup>]) -> bool {
        if self.find(round).is_some() {
            return true;
        }
        let explained = |points: &[u64; 3]| {
            let rounds = self.examples.values();
            rounds.filter(|other| Redistribution::of_grid(other, self.extents, *points).is_some()).count()
        };
        // The first of the best, which is the most cubic.
        let grids = Redistribution::grids(round, self.extents).into_iter().rev();
        let best = grids.max_by_key(explained);
        self.known.extend(best);
        self.found.clear();
        self.find(round).is_some()
    }
}

impl LearnedProgram {
    /// Finds the laws.
    ///
    /// # Errors
    /// Messages that follow none.
    pub(super) fn new(program: StepProgram) -> Result<LearnedProgram, ScaleError> {
        let mut patterns: BTreeMap<RoundPattern, u64> = BTreeMap::new();
        for round in rounds(&program) {
            *patterns.entry(pattern(round)).or_default() += 1;
        }
        let extents = grid(&patterns, program.ranks);
        let exchanges: BTreeMap<&RoundPattern, Option<NeighbourShift>> =
            patterns.keys().map(|pattern| (pattern, explain(pattern, extents))).collect();
        let exchange_of = |round: &Vec<Option<RoundGroup>>| exchanges.get(&pattern(round)).cloned().flatten();
        let mut points = PointGrids::new(&program, extents);
        for (number, step) in program.steps.iter().enumerate() {
            if let ProgramStep::Round(round) = step
                && exchange_of(round).is_none()
                && !points.learn(round)
            {
                return Err(irregular(&program, number, round));
            }
        }
        let mut learned = Vec::new();
        for step in &program.steps {
            let ProgramStep::Round(round) = step else {
                learned.push(None);
                continue;
            };
            // Where there are no more than three ranks along a dimension, all are neighbours in a closed
            // grid, and a redistribution looks like an exchange.
            let exchange = exchange_of(round);
            let is_sure = exchange.as_ref().is_some_and(|exchange| {
                let is_used = |dimension: usize| exchange.sends.iter().any(|way| way.offset[dimension] != 0);
                !exchange.periodic || (0..3).any(|dimension| extents[dimension] > 3 && is_used(dimension))
            });
            let found = if is_sure { None } else { points.find(round) };
            learned.push(found.map(RoundKind::Redistribution).or(exchange.map(RoundKind::Exchange)));
        }
        let mut all = Vec::with_capacity(learned.len());
        for (step, kind) in program.steps.iter().zip(learned) {
            all.push(match (step, kind) {
                (ProgramStep::Round(round), Some(kind)) => {
                    Some(LearnedRound::new(round, kind, extents, &program.file)?)
                }
                _ => None,
            });
        }
        let mut learned = LearnedProgram { program, extents, rounds: all };
        learned.pair();
        Ok(learned)
    }

    /// Gives rounds directions where there are two ranks along a dimension.
    fn pair(&mut self) {
        let mut start = 0;
        while start < self.rounds.len() {
            let dimension = |round: Option<&LearnedRound>| match &round?.kind {
                RoundKind::Exchange(exchange) if exchange.sends.len() == 1 => {
                    exchange.unknown.iter().position(|unknown| *unknown)
                }
                _ => None,
            };
            let own = dimension(self.rounds[start].as_ref());
            let end = (start + 1..self.rounds.len())
                .find(|at| dimension(self.rounds[*at].as_ref()) != own)
                .unwrap_or(self.rounds.len());
            if own.is_some() {
                pair_run(self.rounds[start..end].iter_mut().flatten().collect());
            }
            start = end;
        }
    }
}

/// Gives directions to rounds along a dimension of two ranks, one after the other. Two of one style go down
/// and up, and so do two such as a number and what it counts. One that is alone is of both directions.
fn pair_run(mut run: Vec<&mut LearnedRound>) {
    let mut at = 0;
    while at < run.len() {
        let is_repeated = |length: usize| {
            let style = |at: usize| run.get(at).map(|round| round.style);
            (at..at + length).all(|at| style(at + length).is_some_and(|other| style(at) == Some(other)))
        };
        match [1, 2].into_iter().find(|length| is_repeated(*length)) {
            None => {
                run[at].is_of_both = true;
                at += 1;
            }
            Some(length) => {
                for round in &mut run[at + length..at + 2 * length] {
                    if let RoundKind::Exchange(exchange) = &mut round.kind {
                        exchange.turn();
                    }
                }
                at += 2 * length;
            }
        }
    }
}

impl NeighbourShift {
    /// Turns all directions.
    pub(super) fn turn(&mut self) {
        for heading in self.sends.iter_mut().chain(&mut self.receives) {
            *heading = heading.back();
        }
    }
}

/// All rounds.
fn rounds(program: &StepProgram) -> impl Iterator<Item = &Vec<Option<RoundGroup>>> {
    program.steps.iter().filter_map(|step| match step {
        ProgramStep::Round(round) => Some(round),
        _ => None,
    })
}

/// The messages of a round, by which redistributions are told apart.
fn key(round: &[Option<RoundGroup>]) -> Vec<u64> {
    let of = |(rank, group): (u64, &Option<RoundGroup>)| {
        let sends = group.iter().flat_map(|group| &group.messages.sends);
        sends
            .flat_map(|message| [u64::from(message.peer), message.bytes])
            .chain([u64::MAX - rank])
            .collect::<Vec<_>>()
    };
    (0..).zip(round).flat_map(of).collect()
}

/// The grid on which most rounds are exchanges; of several the most cubic.
fn grid(patterns: &BTreeMap<RoundPattern, u64>, ranks: u32) -> [u32; 3] {
    let explained = |extents: [u32; 3]| -> u64 {
        patterns
            .iter()
            .filter(|(pattern, _)| explain(pattern, extents).is_some())
            .map(|(_, count)| count)
            .sum()
    };
    let surface = |[x, y, z]: [u32; 3]| {
        let [x, y, z] = [x, y, z].map(u64::from);
        x * y + y * z + z * x
    };
    let best =
        factorings(ranks).max_by_key(|extents| (explained(*extents), std::cmp::Reverse(surface(*extents))));
    best.unwrap_or([ranks, 1, 1])
}

fn irregular(program: &StepProgram, step: usize, round: &[Option<RoundGroup>]) -> ScaleError {
    let first = (0u32..).zip(round).find_map(|(rank, group)| Some((rank, group.as_ref()?)));
    let text = first.map_or(String::new(), |(rank, group)| {
        let peers: Vec<String> =
            group.messages.sends.iter().take(6).map(|message| message.peer.to_string()).collect();
        format!("; rank {rank} sends to {}", peers.join(", "))
    });
    ScaleError::pattern(
        &program.file,
        format!(
            "in step {step} the ranks that have messages for one another are neighbours on no grid of {} \
             ranks, and redistribute no grid of points{text}",
            program.ranks
        ),
    )
}

impl LearnedRound {
    fn new(
        round: &[Option<RoundGroup>],
        kind: RoundKind,
        extents: [u32; 3],
        file: &str,
    ) -> Result<LearnedRound, ScaleError> {
        let groups = || round.iter().flatten().map(|group| &group.messages);
        let styles = groups().fold(GroupStyles::all(), |styles, group| styles.common(group.styles));
        let style = styles.first().ok_or_else(|| {
            ScaleError::pattern(file, "ranks post, send and wait in different orders in one round")
        })?;
        let mode = groups().flat_map(|group| &group.modes).next().copied().unwrap_or(SendMode::Standard);
        if groups().flat_map(|group| &group.modes).any(|other| *other != mode) {
            return Err(ScaleError::pattern(file, "a round has sends of several modes"));
        }
        let bytes = match &kind {
            RoundKind::Exchange(exchange) => {
                exchange.sends.iter().map(|heading| sent_bytes(round, exchange, heading, extents)).collect()
            }
            RoundKind::Redistribution(_) => Vec::new(),
        };
        Ok(LearnedRound { kind, style, mode, bytes, is_of_both: false })
    }
}

/// Bytes of each rank's message in a direction.
fn sent_bytes(
    round: &[Option<RoundGroup>],
    exchange: &NeighbourShift,
    heading: &ShiftHeading,
    extents: [u32; 3],
) -> Vec<Option<u64>> {
    let grid = RankGrid { extents, periodic: exchange.periodic };
    let of = |(rank, group): (u32, &Option<RoundGroup>)| {
        let sends = &group.as_ref()?.messages.sends;
        if sends.len() == exchange.sends.len() {
            // Messages to the same rank may have the same tag: they are in the order of their directions.
            let index = exchange.sends.iter().position(|other| other == heading)?;
            return Some(sends[index].bytes);
        }
        let peer = grid.shifted(rank, heading.offset)?;
        let sent = sends.iter().find(|message| message.peer == peer && message.tag == heading.tag);
        sent.map(|message| message.bytes)
    };
    (0..).zip(round).map(of).collect()
}

//! The steps of two recordings of one program that are the same step.

use super::error::ScaleError;
use super::group::GroupStyle;
use super::learned::{LearnedProgram, RoundKind};
use super::program::{ProgramStep, signature};
use std::collections::BTreeSet;

/// For each step of a program, that of another one.
pub(super) struct StepPairing {
    pub(super) partners: Vec<Option<usize>>,
}

/// Most comparisons of rounds between two operations of all ranks, where one recording has more than the
/// other.
const MAX_COMPARISONS: usize = 50_000_000;

impl StepPairing {
    /// No step has a partner.
    pub(super) fn none(steps: usize) -> StepPairing {
        StepPairing { partners: vec![None; steps] }
    }

    /// Pairs what all ranks do together in order, and the rounds between.
    ///
    /// # Errors
    /// The programs do not do the same together.
    pub(super) fn of(own: &LearnedProgram, other: &LearnedProgram) -> Result<StepPairing, ScaleError> {
        let mut pairing = StepPairing::none(own.program.steps.len());
        let (mut at, mut there) = (0, 0);
        loop {
            let end = |learned: &LearnedProgram, from: usize| {
                let is_round = |step: &ProgramStep| matches!(step, ProgramStep::Round(_));
                from + learned.program.steps[from..].iter().take_while(|step| is_round(step)).count()
            };
            let (own_end, other_end) = (end(own, at), end(other, there));
            pairing.rounds(own, at..own_end, other, there..other_end);
            let same = match (&own.program.steps[own_end], &other.program.steps[other_end]) {
                (ProgramStep::Together(one), ProgramStep::Together(two)) => {
                    signature(&one[0].1) == signature(&two[0].1)
                }
                (ProgramStep::End(_), ProgramStep::End(_)) => true,
                _ => false,
            };
            if !same {
                return Err(ScaleError::Different {
                    one: own.program.file.clone(),
                    other: other.program.file.clone(),
                    reason: format!(
                        "step {own_end} of the one is {}, step {other_end} of the other {}",
                        name(&own.program.steps[own_end]),
                        name(&other.program.steps[other_end])
                    ),
                });
            }
            pairing.partners[own_end] = Some(other_end);
            if matches!(own.program.steps[own_end], ProgramStep::End(_)) {
                return Ok(pairing);
            }
            (at, there) = (own_end + 1, other_end + 1);
        }
    }

    /// Rounds of equal number are paired in order, others as the longest sequence of both that is alike.
    fn rounds(
        &mut self,
        own: &LearnedProgram,
        range: std::ops::Range<usize>,
        other: &LearnedProgram,
        there: std::ops::Range<usize>,
    ) {
        if range.len() == there.len() {
            range.zip(there).for_each(|(at, there)| self.partners[at] = Some(there));
            return;
        }
        if range.len() * there.len() > MAX_COMPARISONS {
            return;
        }
        let keys = |learned: &LearnedProgram, range: std::ops::Range<usize>| -> Vec<_> {
            range.map(|step| RoundKey::of(learned, step)).collect()
        };
        let (one, two) = (keys(own, range.clone()), keys(other, there.clone()));
        // Lengths of the longest common sequence of what is behind each pair of places.
        let width = two.len() + 1;
        let mut lengths = vec![0u32; (one.len() + 1) * width];
        for at in (0..one.len()).rev() {
            for place in (0..two.len()).rev() {
                lengths[at * width + place] = match RoundKey::is_alike(&one[at], &two[place]) {
                    true => lengths[(at + 1) * width + place + 1] + 1,
                    false => lengths[(at + 1) * width + place].max(lengths[at * width + place + 1]),
                };
            }
        }
        let (mut at, mut place) = (0, 0);
        while at < one.len() && place < two.len() {
            if RoundKey::is_alike(&one[at], &two[place]) {
                self.partners[range.start + at] = Some(there.start + place);
                (at, place) = (at + 1, place + 1);
            } else if lengths[(at + 1) * width + place] >= lengths[at * width + place + 1] {
                at += 1;
            } else {
                place += 1;
            }
        }
    }
}

/// The features that rounds of two recordings have in common if they are the same.
struct RoundKey {
    dimensions: BTreeSet<[bool; 3]>,
    style: GroupStyle,
    /// Bytes of all messages by the number of ranks.
    bytes: f64,
}

/// Times that a rank's bytes in a round are at most those of the same round at another scale.
const MAX_GROWTH: f64 = 8.0;

impl RoundKey {
    fn of(learned: &LearnedProgram, step: usize) -> Option<RoundKey> {
        let round = learned.rounds[step].as_ref()?;
        let dimensions = match &round.kind {
            RoundKind::Exchange(exchange) => {
                exchange.sends.iter().map(|heading| heading.offset.map(|step| step != 0)).collect()
            }
            RoundKind::Redistribution(_) => BTreeSet::new(),
        };
        let sent: u64 = round.bytes.iter().flatten().flatten().sum();
        let bytes = sent as f64 / f64::from(learned.program.ranks);
        Some(RoundKey { dimensions, style: round.style, bytes })
    }

    fn is_alike(one: &Option<RoundKey>, other: &Option<RoundKey>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return false };
        // What ranks tell each other of sizes is nothing beside what they send.
        let is_near = one.bytes <= MAX_GROWTH * other.bytes && other.bytes <= MAX_GROWTH * one.bytes;
        one.dimensions == other.dimensions && one.style == other.style && is_near
    }
}

fn name(step: &ProgramStep) -> String {
    match step {
        ProgramStep::Together(ops) => signature(&ops[0].1),
        ProgramStep::Round(_) => "messages".to_owned(),
        ProgramStep::End(_) => "the end".to_owned(),
    }
}

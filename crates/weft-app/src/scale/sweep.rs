//! Rounds that go through the dimensions one after the other, down and up, as those of ghosts do: what comes
//! from the ranks along one dimension is handed on along the next.

use super::learned::{LearnedProgram, LearnedRound, RoundKind};

/// Six rounds: in each of three dimensions, one to the rank below and one to the rank above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GhostSweep {
    /// In order.
    pub(super) passes: [SweepPass; 3],
}

/// A sweep with the program whose steps it is of.
#[derive(Clone, Copy)]
pub(super) struct RecordedSweep<'a> {
    pub(super) learned: &'a LearnedProgram,
    pub(super) sweep: GhostSweep,
}

impl RecordedSweep<'_> {
    /// The bytes that each rank sends in a step.
    pub(super) fn sent(&self, step: usize) -> impl Iterator<Item = u64> {
        let bytes = self.learned.rounds[step].iter().flat_map(|round| round.bytes.iter().flatten());
        bytes.map(|bytes| bytes.unwrap_or(0))
    }
}

/// The rounds of a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SweepPass {
    pub(super) dimension: usize,
    /// The steps whose messages go down, and up.
    pub(super) steps: [usize; 2],
}

/// Which way ghosts go, and so what a message has besides the points or atoms of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SweepSense {
    /// From their owners: along later dimensions, ghosts of the earlier ones go along.
    FromOwners,
    /// To their owners: along earlier dimensions, ghosts of the later ones go along.
    ToOwners,
}

impl SweepSense {
    pub(super) const BOTH: [SweepSense; 2] = [SweepSense::FromOwners, SweepSense::ToOwners];
}

impl GhostSweep {
    /// All sweeps of a program.
    pub(super) fn all(learned: &LearnedProgram) -> Vec<GhostSweep> {
        let mut sweeps = Vec::new();
        let mut run: Vec<(usize, usize, bool)> = Vec::new();
        for (step, round) in learned.rounds.iter().enumerate() {
            match round.as_ref().map(LearnedRound::shift) {
                Some(Some((dimension, is_up))) => run.push((step, dimension, is_up)),
                // Numbers of what follows stand between.
                _ if round.as_ref().is_some_and(LearnedRound::is_of_numbers) => continue,
                _ => run.clear(),
            }
            if let Some(sweep) = run.last_chunk().and_then(GhostSweep::of) {
                sweeps.push(sweep);
                run.clear();
            }
        }
        sweeps
    }

    /// The sweep that these steps are, each with its dimension and whether its messages go up.
    fn of(shifts: &[(usize, usize, bool); 6]) -> Option<GhostSweep> {
        let pass = |at: usize| {
            let [(one, dimension, is_up), (other, second, other_up)] = [shifts[at], shifts[at + 1]];
            let steps = if is_up { [other, one] } else { [one, other] };
            (dimension == second && is_up != other_up).then_some(SweepPass { dimension, steps })
        };
        let passes = [pass(0)?, pass(2)?, pass(4)?];
        let sum: usize = passes.iter().map(|pass| 1 << pass.dimension).sum();
        (sum == 0b111).then_some(GhostSweep { passes })
    }

    /// The passes, from that whose messages have no ghosts of other dimensions.
    pub(super) fn bare_first(&self, sense: SweepSense) -> [SweepPass; 3] {
        let [first, second, third] = self.passes;
        match sense {
            SweepSense::FromOwners => [first, second, third],
            SweepSense::ToOwners => [third, second, first],
        }
    }

    /// The same sweep in another recording, of whose steps these are the partners.
    pub(super) fn in_other<'a>(
        &self,
        partners: &[Option<usize>],
        other: &'a LearnedProgram,
    ) -> Option<RecordedSweep<'a>> {
        let mut shifts = [(0, 0, false); 6];
        for (number, pass) in self.passes.iter().enumerate() {
            for (direction, step) in pass.steps.into_iter().enumerate() {
                let partner = partners[step]?;
                let (dimension, is_up) = other.rounds[partner].as_ref()?.shift()?;
                shifts[2 * number + direction] = (partner, dimension, is_up);
            }
        }
        let dimensions = |sweep: &GhostSweep| sweep.passes.map(|pass| pass.dimension);
        let sweep = GhostSweep::of(&shifts).filter(|sweep| dimensions(sweep) == dimensions(self))?;
        Some(RecordedSweep { learned: other, sweep })
    }
}

impl LearnedRound {
    /// The dimension of a round of all ranks in which each sends one message to the rank next to it, and
    /// whether that is the one above.
    fn shift(&self) -> Option<(usize, bool)> {
        let RoundKind::Exchange(exchange) = &self.kind else { return None };
        let [heading] = &exchange.sends[..] else { return None };
        let dimension = heading.offset.iter().position(|step| *step != 0)?;
        let is_straight = heading.offset.iter().filter(|step| **step != 0).count() == 1;
        let is_of_all = self.bytes[0].iter().all(Option::is_some);
        let is_shift = exchange.periodic && is_straight && is_of_all && !self.is_of_both;
        (is_shift && !self.is_of_numbers()).then_some((dimension, heading.offset[dimension] > 0))
    }

    /// Whether its messages are numbers, which ranks tell each other of sizes.
    pub(super) fn is_of_numbers(&self) -> bool {
        matches!(self.kind, RoundKind::Exchange(_))
            && self.bytes.iter().flatten().flatten().all(|bytes| *bytes <= 8)
    }
}

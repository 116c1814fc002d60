//! Ghost atoms: those of a shell of fixed thickness around the part of each rank, sent in a sweep.
//!
//! Along the first dimension a message is a slab of the part: `k·h₁·s₂·s₃`, with `s` the part's extents and
//! `h` the shell's thickness, both in extents of the box. Along the next it has the ghosts of the first as
//! well, `k·h₂·(s₁ + h₁)·s₃`, and along the third those of both. All sweeps of a program are of one shell,
//! whose thickness along each dimension is fitted to all their messages in two recordings; the factor `k`,
//! which is the bytes of all atoms, is each sweep's own.

use super::law::Scales;
use super::sweep::{GhostSweep, RecordedSweep, SweepSense};

/// A sweep in two recordings.
pub(super) struct ShellSweep {
    sweep: GhostSweep,
    /// Mean bytes of a message of each pass, of the first recording and of the second.
    faces: [[f64; 3]; 2],
    /// The same of the first recording, of the ranks that stand for wanted ones.
    counterparts: [f64; 3],
}

impl RecordedSweep<'_> {
    /// Mean bytes of a message of each pass, of these ranks.
    fn faces(&self, ranks: &[u32]) -> [f64; 3] {
        self.sweep.passes.map(|pass| {
            let of_step = |step| {
                let sent: Vec<u64> = self.sent(step).collect();
                ranks.iter().map(|rank| sent[*rank as usize] as f64).sum::<f64>()
            };
            pass.steps.map(of_step).iter().sum::<f64>() / (2 * ranks.len().max(1)) as f64
        })
    }

    fn all_ranks(&self) -> Vec<u32> {
        (0..self.learned.program.ranks).collect()
    }
}

/// How far a message may be from the law in either recording, in parts of one.
const MAX_DEVIATION: f64 = 0.1;
/// Steps of the search for a thickness, as logarithms.
const FIRST_STEP: f64 = 0.5;
const LAST_STEP: f64 = 1e-6;

impl ShellSweep {
    /// A sweep, and the same of the second recording.
    pub(super) fn new(own: RecordedSweep<'_>, other: RecordedSweep<'_>, scales: &Scales) -> ShellSweep {
        let counterparts: Vec<u32> = (0..scales.ranks()).map(|rank| scales.counterpart(rank)).collect();
        ShellSweep {
            sweep: own.sweep,
            faces: [own.faces(&own.all_ranks()), other.faces(&other.all_ranks())],
            counterparts: own.faces(&counterparts),
        }
    }

    /// Logarithms of the law's bytes of each pass, for `k` of one.
    fn law(&self, sense: SweepSense, thickness: [f64; 3], extents: [u32; 3]) -> [f64; 3] {
        let mut lengths = extents.map(|ranks| 1.0 / f64::from(ranks));
        let mut bytes = [0.0; 3];
        for pass in self.sweep.bare_first(sense) {
            let across: f64 =
                (0..3).filter(|other| *other != pass.dimension).map(|other| lengths[other]).product();
            let number = self.sweep.passes.iter().position(|other| *other == pass).unwrap_or(0);
            bytes[number] = (thickness[pass.dimension] * across).ln();
            lengths[pass.dimension] += thickness[pass.dimension];
        }
        bytes
    }

    /// The logarithm of `k` that fits best, and the differences from the law, as logarithms.
    fn fitted(&self, sense: SweepSense, thickness: [f64; 3], scales: [[u32; 3]; 2]) -> (f64, [f64; 6]) {
        let mut differences = [0.0; 6];
        for (recording, extents) in scales.into_iter().enumerate() {
            let law = self.law(sense, thickness, extents);
            for pass in 0..3 {
                differences[3 * recording + pass] = self.faces[recording][pass].ln() - law[pass];
            }
        }
        let factor = differences.iter().sum::<f64>() / 6.0;
        (factor, differences.map(|difference| difference - factor))
    }

    /// The sense in which the law fits better, with the sum of the squares of what remains.
    fn sense(&self, thickness: [f64; 3], scales: [[u32; 3]; 2]) -> (SweepSense, f64) {
        let [one, other] = SweepSense::BOTH.map(|sense| {
            let (_, differences) = self.fitted(sense, thickness, scales);
            (sense, differences.iter().map(|difference| difference * difference).sum::<f64>())
        });
        if other.1 < one.1 { other } else { one }
    }
}

/// The factors of the bytes of each step that is a sweep of ghost atoms.
pub(super) fn factors(sweeps: &[ShellSweep], scales: &Scales) -> Vec<(usize, f64)> {
    let has_all = |sweep: &&ShellSweep| sweep.faces.iter().flatten().all(|bytes| *bytes > 0.0);
    let sweeps: Vec<&ShellSweep> = sweeps.iter().filter(has_all).collect();
    let Some(second) = scales.second else { return Vec::new() };
    let recorded = [scales.recorded, second];
    let Some(thickness) = thickness(&sweeps, recorded) else { return Vec::new() };
    let mut factors = Vec::new();
    for sweep in sweeps {
        let (sense, _) = sweep.sense(thickness, recorded);
        let (factor, differences) = sweep.fitted(sense, thickness, recorded);
        if differences.iter().any(|difference| difference.abs() > MAX_DEVIATION) {
            continue;
        }
        let law = sweep.law(sense, thickness, scales.wanted);
        for (number, pass) in sweep.sweep.passes.iter().enumerate() {
            let bytes = (factor + law[number]).exp();
            factors.extend(pass.steps.map(|step| (step, bytes / sweep.counterparts[number])));
        }
    }
    factors
}

/// The thickness under which all sweeps fit best, each as its bytes: by steps along each dimension that
/// become smaller.
fn thickness(sweeps: &[&ShellSweep], recorded: [[u32; 3]; 2]) -> Option<[f64; 3]> {
    if sweeps.is_empty() {
        return None;
    }
    let error = |logarithms: [f64; 3]| -> f64 {
        let thickness = logarithms.map(f64::exp);
        let weight = |sweep: &ShellSweep| sweep.faces[0].iter().sum::<f64>();
        sweeps.iter().map(|sweep| weight(sweep) * sweep.sense(thickness, recorded).1).sum()
    };
    let mut best = [0.1f64.ln(); 3];
    let mut least = error(best);
    let mut step = FIRST_STEP;
    while step > LAST_STEP {
        let before = least;
        for dimension in 0..3 {
            for sign in [1.0, -1.0] {
                let mut other = best;
                other[dimension] += sign * step;
                let found = error(other);
                if found < least {
                    (best, least) = (other, found);
                }
            }
        }
        if least >= before {
            step /= 2.0;
        }
    }
    Some(best.map(f64::exp))
}

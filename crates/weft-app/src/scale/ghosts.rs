//! The laws of ghosts, for each step that sends them.

use super::ghost_points::{GhostPoints, PlaceFactors, PointBricks, bricks};
use super::ghost_shell::{self, ShellSweep};
use super::law::{ScaleMode, Scales};
use super::learned::LearnedProgram;
use super::sweep::{GhostSweep, RecordedSweep};
use std::collections::BTreeMap;

/// The bytes of the messages of a step.
pub(super) enum GhostBytes {
    /// Of points: what each dimension gives at the sender's place.
    Place(PlaceFactors),
    /// Of atoms: a factor of those recorded.
    Factor(f64),
}

/// The steps of a program that send ghosts.
pub(super) struct GhostLaws {
    pub(super) bytes: BTreeMap<usize, GhostBytes>,
    /// Number of sweeps of points whose planes the recordings do not tell.
    untold: u64,
}

impl GhostLaws {
    /// The laws of a program and of a second recording, whose steps are the partners of the first one's.
    pub(super) fn new(
        learned: &LearnedProgram,
        second: Option<&LearnedProgram>,
        partners: &[Option<usize>],
        scales: &Scales,
    ) -> GhostLaws {
        let mut laws = GhostLaws { bytes: BTreeMap::new(), untold: 0 };
        let grids = bricks(learned);
        let mut shells = Vec::new();
        for sweep in GhostSweep::all(learned) {
            let other = second.and_then(|second| sweep.in_other(partners, second));
            let own = RecordedSweep { learned, sweep };
            let points = grids.iter().find_map(|bricks| points(own, other, bricks, scales));
            match (points, other) {
                (Some((steps, is_told)), _) => {
                    laws.untold += u64::from(!is_told);
                    let steps = steps.into_iter().map(|(step, factors)| (step, GhostBytes::Place(factors)));
                    laws.bytes.extend(steps);
                }
                (None, Some(other)) if scales.mode == ScaleMode::Strong => {
                    shells.push(ShellSweep::new(own, other, scales));
                }
                _ => {}
            }
        }
        let factors = ghost_shell::factors(&shells, scales).into_iter();
        laws.bytes.extend(factors.map(|(step, factor)| (step, GhostBytes::Factor(factor))));
        laws
    }

    /// The planes that the recordings do not tell, for the trace's notes.
    pub(super) fn notes(&self) -> Option<(String, u64)> {
        let note =
            "sweeps of ghost points of which the recordings allow a plane more or less; record on more ranks";
        (self.untold > 0).then(|| (note.to_owned(), self.untold))
    }
}

/// A sweep of ghosts of a grid of points: the bytes of each step, and whether the recordings tell them.
fn points(
    own: RecordedSweep<'_>,
    other: Option<RecordedSweep<'_>>,
    bricks: &PointBricks,
    scales: &Scales,
) -> Option<(Vec<(usize, PlaceFactors)>, bool)> {
    let second = scales.second.unwrap_or(scales.recorded);
    let resolution = [0, 1, 2].map(|dimension: usize| {
        let ranks = [scales.recorded, second, scales.wanted].map(|extents| i64::from(extents[dimension]));
        ranks.into_iter().fold(1, least_multiple)
    });
    let at = |extents| PointBricks { points: scales.points(bricks.points, extents), extents, ..*bricks };
    let mut law = GhostPoints::learn(&own, bricks, resolution)?;
    if let Some(other) = other {
        law = law.and(&GhostPoints::learn(&other, &at(second), resolution)?)?;
    }
    law.on(&own.sweep, &at(scales.wanted))
}

fn least_multiple(one: i64, other: i64) -> i64 {
    let divides = |times: &i64| (one * times) % other == 0;
    one * (1..=other).find(divides).unwrap_or(other)
}

//! A recording at another number of ranks.
//!
//! ```text
//!   traces ─▶ ReadRecording ─▶ StepProgram ─▶ LearnedProgram ──▶ ScaledTrace ─▶ operations of any rank
//!             items of         steps of       grid of ranks;     laws from one
//!             each rank        all ranks      law of each round  scale to another
//! ```
//! All ranks go through the same steps: operations that all do together, and rounds of messages between. A
//! round is an exchange with neighbours on a grid of ranks, or redistributes a grid of points; any other is
//! refused. The largest recording gives the steps; a second one tells how sizes and computation change.
//! Rounds that go through the dimensions one after the other send ghosts, of a grid of points or of atoms.

mod error;
mod exchange;
mod ghost_points;
mod ghost_shell;
mod ghosts;
mod group;
mod law;
mod learned;
mod pairing;
mod program;
mod recording;
mod redistribution;
mod scaled;
mod sweep;
#[cfg(test)]
mod tests;

pub use error::ScaleError;
pub use law::ScaleMode;
pub use scaled::ScaledTrace;

use crate::grid::factorings;
use law::Scales;
use learned::LearnedProgram;
use program::StepProgram;
use recording::ReadRecording;
use weft_formats::Trace;

/// The larger of the numbers of times by which two dimensions grow, by the smaller, above which a grid is
/// another one.
const MAX_SKEW: f64 = 2.0;

/// The program of one or two recordings on another number of ranks.
///
/// # Errors
/// Recordings that cannot be read or have what no law says at another scale, two that are not of the same
/// program, and a number of ranks that forms no grid like the recorded one.
pub fn scaled(recordings: &[Trace], ranks: u32, mode: ScaleMode) -> Result<ScaledTrace, ScaleError> {
    let mut read = recordings.iter().map(ReadRecording::read).collect::<Result<Vec<_>, _>>()?;
    read.sort_by_key(|recording| std::cmp::Reverse(recording.ranks));
    let mut header = read[0].header.clone();
    let files: Vec<&str> = read.iter().map(|recording| &*recording.file).collect();
    header.recorder = format!("weft {} trace scale of {}", env!("CARGO_PKG_VERSION"), files.join(", "));
    if let [one, two, ..] = &read[..]
        && one.ranks == two.ranks
    {
        return Err(ScaleError::Different {
            one: one.file.clone(),
            other: two.file.clone(),
            reason: "they have the same number of ranks, which tells no law".to_owned(),
        });
    }
    let learn = |recording| LearnedProgram::new(StepProgram::new(recording)?);
    let mut learned = read.into_iter().map(learn).collect::<Result<Vec<_>, _>>()?.into_iter();
    let Some(largest) = learned.next() else { unreachable!("there is a recording") };
    let second = learned.next();
    let wanted = wanted_grid(ranks, &largest)?;
    let scales = Scales {
        mode,
        recorded: largest.extents,
        second: second.as_ref().map(|second| second.extents),
        wanted,
    };
    ScaledTrace::new(largest, second.as_ref(), scales, header)
}

/// The grid of so many ranks that is most like the recorded one.
fn wanted_grid(ranks: u32, learned: &LearnedProgram) -> Result<[u32; 3], ScaleError> {
    let recorded = learned.extents;
    let refuse = |reason: String, mend: String| Err(ScaleError::Ranks { ranks, reason, mend });
    if ranks < learned.program.ranks {
        let reason =
            format!("{} has {}, and a recording is scaled up", learned.program.file, learned.program.ranks);
        return refuse(reason, "take more".to_owned());
    }
    // Without messages between two ranks, there is no grid to keep.
    if learned.rounds.iter().all(Option::is_none) {
        return Ok([ranks, 1, 1]);
    }
    let skew = |extents: &[u32; 3]| {
        let growth = [0, 1, 2].map(|d: usize| f64::from(extents[d]) / f64::from(recorded[d]));
        let growing = (0..3).filter(|d| recorded[*d] > 1).map(|d| growth[d]);
        growing.clone().fold(0.0, f64::max) / growing.fold(f64::INFINITY, f64::min)
    };
    let like = |ranks: u32| {
        let flat = |extents: &[u32; 3]| (0..3).all(|d| recorded[d] > 1 || extents[d] == 1);
        let grids = factorings(ranks).filter(flat).map(|extents| (extents, skew(&extents)));
        grids.filter(|(_, skew)| *skew <= MAX_SKEW).min_by(|(_, one), (_, two)| one.total_cmp(two))
    };
    if let Some((extents, _)) = like(ranks) {
        return Ok(extents);
    }
    let below = (learned.program.ranks..ranks).rev().find(|ranks| like(*ranks).is_some());
    let above = (ranks..ranks.saturating_mul(2)).find(|ranks| like(*ranks).is_some());
    let nearest: Vec<String> = below.into_iter().chain(above).map(|ranks| ranks.to_string()).collect();
    let [x, y, z] = recorded;
    refuse(
        format!("they form no grid like the recorded one of {x} x {y} x {z}"),
        format!("the nearest that do are {}", nearest.join(" and ")),
    )
}

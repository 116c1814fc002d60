//! `--breakdown`: where every nanosecond of an iteration went.

use super::Benchmark;
use super::explain::Recorded;
use super::plan::Point;
use super::series::{Series, Typical};
use crate::experiment::ExperimentError;
use crate::experiment::path::{CategoryRow, LatencySplit, PieceRow, category_rows, leg_times, piece_rows};
use serde::{Deserialize, Serialize};
use weft_msg::EnvelopeKind;
use weft_units::{RankId, Time};
use weft_workload::path::Walk;

/// The last measured iteration of a run, piece by piece.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Breakdown {
    /// The rank whose iteration it is.
    pub rank: String,
    /// How long it took: the sum of its pieces. Of latency a round trip.
    pub time_ns: f64,
    /// Of a round trip: to the other rank, until that has received the message.
    pub there_ns: Option<f64>,
    /// Of a round trip: back, from when the other rank calls the send.
    pub back_ns: Option<f64>,
    /// By leg of the way.
    #[serde(default)]
    pub latency_split: LatencySplit,
    /// By category.
    pub categories: Vec<CategoryRow>,
    /// In the order of time.
    pub pieces: Vec<PieceRow>,
}

impl Series<'_> {
    /// Explains the typical iteration of a point that was run; `None`: interrupted.
    pub fn explained(
        &self,
        point: &Point,
        number: u32,
        typical: Typical,
    ) -> Result<Option<Breakdown>, ExperimentError> {
        let Some(recorded) = self.recorded(point, number, typical)? else { return Ok(None) };
        let path = Walk::to(&recorded.trace, &recorded.end, typical.window.from);
        let names = recorded.names(self.machine, self.layout);
        let ns = |from: Time, to: Time| (to - from).as_ps() as f64 / 1e3;
        let turn = (point.benchmark == Benchmark::Latency)
            .then(|| turn(&recorded, typical))
            .flatten()
            .filter(|turn| path.pieces.iter().any(|piece| piece.begin == *turn));
        Ok(Some(Breakdown {
            rank: names.rank(typical.rank),
            time_ns: ns(path.begin, path.end),
            there_ns: turn.map(|turn| ns(path.begin, turn)),
            back_ns: turn.map(|turn| ns(turn, path.end)),
            latency_split: LatencySplit::mean(&leg_times(&path, self.layout), 1),
            categories: category_rows(std::slice::from_ref(&path)),
            pieces: piece_rows(&path, &names),
        }))
    }
}

/// The time at which the other rank calls the send of its answer.
fn turn(recorded: &Recorded, typical: Typical) -> Option<Time> {
    let other = RankId(1 - typical.rank.0);
    let answer = recorded.trace.posts().iter().find(|post| {
        let begins = matches!(post.kind, EnvelopeKind::Eager | EnvelopeKind::RequestToSend);
        post.rank == other && begins && (typical.window.from..typical.window.to).contains(&post.at)
    })?;
    let steps = &recorded.trace.steps(other)[..=answer.after as usize];
    steps.iter().rev().find(|step| step.first).map(|step| step.begin)
}

//! The timeline of one or several runs of ranks.

use crate::experiment::ExperimentError;
use crate::timeline::{self, Arrow, TimelineWriter};
use std::collections::BTreeSet;
use std::path::Path;
use weft_topo::{Layout, Topology as _};
use weft_units::{RankId, Span, Time};
use weft_workload::replay::{Activity, Seating, TimelineEvent};

/// A timeline that is being drawn. Runs that follow each other are drawn one after the other.
pub(crate) struct Drawing {
    writer: TimelineWriter,
    arrows: u64,
    /// The time at which the present run begins.
    origin: Span,
    /// Ranks, whose tracks come before those of their MPI calls.
    ranks: u32,
    /// Those that have a track of MPI calls.
    calls: BTreeSet<RankId>,
}

impl Drawing {
    /// A timeline at `path`.
    pub fn create(path: &Path) -> Result<Drawing, ExperimentError> {
        Ok(Drawing {
            writer: TimelineWriter::create(path)?,
            arrows: 0,
            origin: Span::ZERO,
            ranks: 0,
            calls: BTreeSet::new(),
        })
    }

    /// Names the tracks of the ranks: `rank 3 (M1QAF1)`, after the program's name where there are several.
    pub fn name_tracks(
        &mut self,
        seating: &Seating,
        names: &[String],
        layout: &Layout,
    ) -> Result<(), ExperimentError> {
        self.ranks = seating.ranks();
        let several = names.len() > 1;
        for number in (0..seating.ranks()).map(RankId) {
            let (program, rank) = seating.program(number);
            let endpoint = layout.endpoint_name(seating.endpoint(number));
            let prefix = if several { format!("{} ", names[program as usize]) } else { String::new() };
            self.writer.track(number, &format!("{prefix}rank {rank} ({endpoint})"))?;
        }
        Ok(())
    }

    /// Draws what has happened.
    pub fn draw(&mut self, event: TimelineEvent) -> Result<(), ExperimentError> {
        let at = |time: Time| time.saturating_add(self.origin);
        match event {
            TimelineEvent::Slice { rank, activity, name, start, end } => {
                let activity = match activity {
                    Activity::Compute => timeline::Activity::Compute,
                    Activity::Communicate => timeline::Activity::Communicate,
                    Activity::Wait => timeline::Activity::Wait,
                };
                self.writer.slice(rank, (activity, name), at(start), at(end))?;
            }
            TimelineEvent::Call { rank, name, start, end } => {
                let track = RankId(self.ranks + rank.0);
                if self.calls.insert(rank) {
                    self.writer.track(track, &format!("rank {rank}: MPI"))?;
                }
                self.writer.slice(track, (timeline::Activity::Communicate, name), at(start), at(end))?;
            }
            TimelineEvent::Arrow { rank, from, sent, received, bytes } => {
                self.arrows += 1;
                let (sent, received) = (at(sent), at(received));
                self.writer.message(Arrow { id: self.arrows, from, sent, to: rank, received, bytes })?;
            }
            TimelineEvent::Marker { rank, time, text } => self.writer.marker(rank, at(time), &text)?,
        }
        Ok(())
    }

    /// The run at hand has ended at `end` of its own time: the next begins there.
    pub fn next_run(&mut self, end: Time) {
        self.origin = self.origin.saturating_add(end - Time::ZERO);
    }

    /// Makes the file whole.
    pub fn finish(self) -> Result<(), ExperimentError> {
        Ok(self.writer.finish()?)
    }
}

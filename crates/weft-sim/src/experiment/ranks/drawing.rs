//! The timeline of one or several runs of ranks.

use crate::experiment::ExperimentError;
use crate::timeline::{self, Arrow, TimelineWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use weft_topo::{Layout, Topology as _};
use weft_trace::{Region, RegionMark};
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
    /// The tracks of cores of ranks with several.
    cores: BTreeMap<(RankId, u32), RankId>,
    /// The regions that ranks are in, and since when.
    regions: BTreeMap<RankId, (Region, Time)>,
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
            cores: BTreeMap::new(),
            regions: BTreeMap::new(),
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
        let origin = self.origin;
        let at = |time: Time| time.saturating_add(origin);
        match event {
            TimelineEvent::Slice { rank, core, activity, name, start, end } => {
                let track = self.track_of_core(rank, core)?;
                let activity = match activity {
                    Activity::Compute => timeline::Activity::Compute,
                    Activity::Communicate => timeline::Activity::Communicate,
                    Activity::Wait => timeline::Activity::Wait,
                };
                self.writer.slice(track, (activity, name), at(start), at(end))?;
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
            TimelineEvent::Marker { rank, time, text } => {
                if let Some(mark) = RegionMark::of_text(&text) {
                    self.mark_region(rank, mark, at(time))?;
                }
                self.writer.marker(rank, at(time), &text)?;
            }
        }
        Ok(())
    }

    /// The track of a core of a rank: that of the rank for the first, behind all others for more.
    fn track_of_core(&mut self, rank: RankId, core: u32) -> Result<RankId, ExperimentError> {
        if core == 0 {
            return Ok(rank);
        }
        // Behind the tracks of ranks and of their MPI calls.
        let next = RankId(2 * self.ranks + self.cores.len() as u32);
        let track = *self.cores.entry((rank, core)).or_insert(next);
        if track == next {
            self.writer.track(track, &format!("rank {rank}: core {core}"))?;
        }
        Ok(track)
    }

    /// A rank opens or closes a region: one that is closed is a slice around all that the rank did in it.
    fn mark_region(&mut self, rank: RankId, mark: RegionMark, now: Time) -> Result<(), ExperimentError> {
        let opens = match mark {
            RegionMark::Opens(region) => Some(region),
            RegionMark::Closes => None,
        };
        let open = self.regions.remove(&rank);
        let begins = match open {
            Some((region, begin)) if opens == Some(region) => begin,
            Some((region, begin)) => {
                self.writer.region(rank, region, begin, now)?;
                now
            }
            None => now,
        };
        if let Some(region) = opens {
            self.regions.insert(rank, (region, begins));
        }
        Ok(())
    }

    /// The ranks, counted over all programs, have ended like this: regions that are open end with them.
    pub fn close_regions(&mut self, ends: &[Time]) -> Result<(), ExperimentError> {
        for (rank, (region, begin)) in std::mem::take(&mut self.regions) {
            let end = ends.get(rank.index()).map_or(begin, |end| end.saturating_add(self.origin));
            self.writer.region(rank, region, begin, end)?;
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

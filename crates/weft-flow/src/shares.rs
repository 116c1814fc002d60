//! Max-min fair shares: what each fluid gets of the lines that it crosses.
//!
//! ```text
//!   all rates rise together ──► the first line is full, or a fluid goes as fast as it can
//!                                 └──► its fluids keep that rate, which is taken off all their lines;
//!                                      the others rise on
//! ```
//! A line is **tight** where it has stopped a fluid. Fluids that meet at a tight line depend on each other;
//! at any other line each gets what it asks for. So a fluid that begins or ends changes only those that it
//! reaches over tight lines, and these alone are worked out again. If one of their new shares stops at a line
//! whose other fluids go faster, those join in.
//!
//! Rates are whole bits per second, rounded down: of a line of which `n` fluids share what is left, up to
//! `n - 1` bit/s stay unused. Where several lines are full at one rate, the one with the lowest number is
//! taken first.
//!
//! # Source
//! D. Bertsekas and R. Gallager, Data Networks, 2nd ed., §6.5.2 (progressive filling).

use serde::{Deserialize, Serialize};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_units::BitRate;

/// A line that fluids share: a direction of a link, or an engine of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineId(pub u32);

impl LineId {
    /// The line as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A fluid, from when it begins until it ends; the number is used again then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FluidId(pub u32);

impl FluidId {
    /// The fluid as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Lines, the fluids on them, and the share of each.
#[derive(Serialize, Deserialize)]
pub struct Shares {
    lines: Vec<SharedLine>,
    fluids: Slab<Fluid>,
    /// Fluids from which the next solution begins; some may have ended.
    touched: Vec<FluidId>,
    /// Counts solutions, to mark what takes part in one.
    round: u64,
}

#[derive(Serialize, Deserialize)]
struct SharedLine {
    capacity: u64,
    /// The sum of the shares of its fluids.
    taken: u64,
    is_tight: bool,
    fluids: Vec<FluidId>,
    /// The solution that it takes part in, with what is left of it there for so many fluids.
    round: u64,
    left: u64,
    rising: u32,
    /// The rate at which it stops fluids of this solution; 0: it does not.
    stops_at: u64,
}

#[derive(Serialize, Deserialize)]
struct Fluid {
    crosses: Vec<LineId>,
    /// The place in the list of each of these lines.
    places: Vec<u32>,
    /// The most that it can go.
    most: u64,
    share: u64,
    /// The solution that it takes part in, with its share there, once it has one.
    round: u64,
    settled: Option<u64>,
}

/// A fluid whose share has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewShare {
    /// The fluid.
    pub fluid: FluidId,
    /// The share that it has from now on.
    pub share: BitRate,
}

/// A thing that stops a fluid: a line, or how fast it can go. Lines come first at one rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FillStop {
    Line(LineId),
    Most(FluidId),
}

impl Shares {
    /// Lines of these rates, numbered in their order, without fluids.
    pub fn new(rates: impl IntoIterator<Item = BitRate>) -> Shares {
        let line = |rate: BitRate| SharedLine {
            capacity: rate.bits_per_second(),
            taken: 0,
            is_tight: false,
            fluids: Vec::new(),
            round: 0,
            left: 0,
            rising: 0,
            stops_at: 0,
        };
        let lines = rates.into_iter().map(line).collect();
        Shares { lines, fluids: Slab::new(), touched: Vec::new(), round: 0 }
    }

    /// A fluid begins on these lines, each of which is named once, no faster than `most`, which is not zero.
    /// Where all of them have so much left it goes as fast at once, and changes nobody's share. Elsewhere it
    /// has a share from the next [solution](Shares::solve) on.
    pub fn begin(&mut self, crosses: Vec<LineId>, most: BitRate) -> FluidId {
        let id = FluidId(self.fluids.vacant_key() as u32);
        let place_on = |line: &LineId| {
            let fluids = &mut self.lines[line.index()].fluids;
            fluids.push(id);
            fluids.len() as u32 - 1
        };
        let places = crosses.iter().map(place_on).collect();
        let most = most.bits_per_second();
        let has_room = |crossed: &LineId| {
            let line = &self.lines[crossed.index()];
            line.capacity - line.taken >= most
        };
        let share = if crosses.iter().all(has_room) { most } else { 0 };
        crosses.iter().for_each(|crossed| self.lines[crossed.index()].taken += share);
        self.fluids.insert(Fluid { crosses, places, most, share, round: 0, settled: None });
        if share == 0 {
            self.touched.push(id);
        }
        id
    }

    /// A fluid ends. Others get what it leaves in the next solution. Returns its lines.
    pub fn end(&mut self, id: FluidId) -> Vec<LineId> {
        let Fluid { crosses, places, share, .. } = self.fluids.remove(id.index());
        for (crossed, place) in crosses.iter().zip(places) {
            let line = &mut self.lines[crossed.index()];
            line.taken -= share;
            line.fluids.swap_remove(place as usize);
            if let Some(moved) = line.fluids.get(place as usize) {
                let Fluid { crosses, places, .. } = &mut self.fluids[moved.index()];
                let entry = crosses.iter().position(|other| other == crossed);
                places[entry.expect("a fluid crosses the lines that list it")] = place;
            }
            if line.is_tight {
                // Through one of them the solution finds all.
                self.touched.extend(line.fluids.first());
                line.is_tight = !line.fluids.is_empty();
            }
        }
        crosses
    }

    /// Whether a solution could change anything.
    pub fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The present share of a fluid.
    pub fn share(&self, fluid: FluidId) -> BitRate {
        BitRate::from_bits_per_second(self.fluids[fluid.index()].share)
    }

    /// Fluids on a line.
    pub fn fluids_on(&self, line: LineId) -> usize {
        self.lines[line.index()].fluids.len()
    }

    /// A line whose fluids have more of it together than its rate, or another sum than is counted; `None`:
    /// there is none.
    pub fn overfull(&self) -> Option<LineId> {
        let is_wrong = |line: &SharedLine| {
            let sum: u64 = line.fluids.iter().map(|fluid| self.fluids[fluid.index()].share).sum();
            sum != line.taken || sum > line.capacity
        };
        (0..).map(LineId).zip(&self.lines).find(|(_, line)| is_wrong(line)).map(|(id, _)| id)
    }

    /// Works out the shares anew where fluids have begun or ended, and gives those that have changed, by
    /// fluid.
    pub fn solve(&mut self) -> Vec<NewShare> {
        let mut together = std::mem::take(&mut self.touched);
        together.retain(|fluid| self.fluids.contains(fluid.index()));
        self.round += 1;
        let mut known = 0;
        loop {
            self.add_all_who_meet(&mut together, known);
            known = together.len();
            let lines = self.fill(&together);
            self.add_who_must_give_way(&mut together, &lines);
            if together.len() == known {
                return self.take(&together, &lines);
            }
        }
    }

    /// Adds all fluids that those from `known` on meet at tight lines, and whom these meet.
    fn add_all_who_meet(&mut self, together: &mut Vec<FluidId>, known: usize) {
        let round = self.round;
        let of_this_round = |fluid: &mut Fluid| std::mem::replace(&mut fluid.round, round) == round;
        let mut kept = known;
        for place in known..together.len() {
            let id = together[place];
            if place >= known && !of_this_round(&mut self.fluids[id.index()]) {
                together[kept] = id;
                kept += 1;
            }
        }
        together.truncate(kept);
        let mut next = known;
        while let Some(fluid) = together.get(next) {
            next += 1;
            for crossed in &self.fluids[fluid.index()].crosses.clone() {
                let line = &mut self.lines[crossed.index()];
                // Whoever comes to it first brings all of it.
                if !line.is_tight || std::mem::replace(&mut line.round, round) == round {
                    continue;
                }
                for met in &line.fluids {
                    if !of_this_round(&mut self.fluids[met.index()]) {
                        together.push(*met);
                    }
                }
            }
        }
    }

    /// Fills what others leave of the lines with these fluids. Returns their lines.
    fn fill(&mut self, together: &[FluidId]) -> Vec<LineId> {
        let mut stops = BinaryHeap::new();
        let mut lines = Vec::new();
        for id in together {
            let fluid = &mut self.fluids[id.index()];
            fluid.settled = None;
            stops.push(Reverse((fluid.most, FillStop::Most(*id))));
            lines.extend_from_slice(&fluid.crosses);
        }
        lines.sort_unstable();
        lines.dedup();
        for id in &lines {
            let line = &mut self.lines[id.index()];
            (line.left, line.rising, line.stops_at) = (line.capacity - line.taken, 0, 0);
        }
        for id in together {
            let Fluid { crosses, share, .. } = &self.fluids[id.index()];
            for crossed in crosses {
                let line = &mut self.lines[crossed.index()];
                line.left += share;
                line.rising += 1;
            }
        }
        for id in &lines {
            let line = &self.lines[id.index()];
            stops.push(Reverse((line.left / u64::from(line.rising), FillStop::Line(*id))));
        }
        while let Some(Reverse((rate, stop))) = stops.pop() {
            match stop {
                FillStop::Most(fluid) => self.settle(fluid, rate),
                FillStop::Line(id) => {
                    let line = &mut self.lines[id.index()];
                    if line.rising == 0 {
                        continue;
                    }
                    let now = line.left / u64::from(line.rising);
                    if now > rate {
                        // Some of its fluids have stopped below that elsewhere.
                        stops.push(Reverse((now, stop)));
                        continue;
                    }
                    line.stops_at = rate.max(1);
                    for fluid in line.fluids.clone() {
                        self.settle(fluid, rate);
                    }
                }
            }
        }
        lines
    }

    /// A fluid of this solution has its share, if it had none yet.
    fn settle(&mut self, id: FluidId, share: u64) {
        let fluid = &mut self.fluids[id.index()];
        if fluid.round != self.round || fluid.settled.is_some() {
            return;
        }
        fluid.settled = Some(share);
        for crossed in &fluid.crosses {
            let line = &mut self.lines[crossed.index()];
            line.left -= share;
            line.rising -= 1;
        }
    }

    /// Adds the fluids that have been left out and go faster than one of the lines lets others.
    fn add_who_must_give_way(&self, together: &mut Vec<FluidId>, lines: &[LineId]) {
        for id in lines {
            let line = &self.lines[id.index()];
            if line.stops_at == 0 {
                continue;
            }
            let gives_way = |id: &&FluidId| {
                let fluid = &self.fluids[id.index()];
                fluid.round != self.round && fluid.share > line.stops_at
            };
            together.extend(line.fluids.iter().filter(gives_way));
        }
    }

    /// The solution holds from now on: the fluids whose shares it changes.
    fn take(&mut self, together: &[FluidId], lines: &[LineId]) -> Vec<NewShare> {
        for id in lines {
            let line = &mut self.lines[id.index()];
            line.is_tight = line.stops_at > 0;
        }
        let mut changed = Vec::new();
        for id in together {
            let fluid = &mut self.fluids[id.index()];
            let share = fluid.settled.expect("progressive filling stops every fluid");
            let before = std::mem::replace(&mut fluid.share, share);
            if before == share {
                continue;
            }
            for crossed in &fluid.crosses {
                let taken = &mut self.lines[crossed.index()].taken;
                *taken = *taken - before + share;
            }
            changed.push(NewShare { fluid: *id, share: BitRate::from_bits_per_second(share) });
        }
        changed.sort_unstable_by_key(|new| new.fluid);
        changed
    }
}

#[cfg(test)]
mod tests;

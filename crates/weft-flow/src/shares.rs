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
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
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
    /// By line: what [`Shares::waiting_on`] says. Routings look at all ports of a switch: their answers lie
    /// side by side.
    waiting: Vec<u64>,
    fluids: Slab<Fluid>,
    /// Fluids from which the next solution begins; some may have ended.
    touched: Vec<FluidId>,
    /// Counts solutions, to mark what takes part in one.
    round: u32,
    /// Counts fillings: a solution has one, or more.
    filling: u32,
    /// Empty lists of fluids that have ended, for others.
    #[serde(skip)]
    spare: Vec<Vec<CrossedLine>>,
    /// Room for the lists of a solution.
    #[serde(skip)]
    room: SolutionRoom,
}

/// The lists of a solution.
#[derive(Default)]
struct SolutionRoom {
    /// The lines of its fluids, and those of them that could stop some.
    crossed: Vec<LineId>,
    could: Vec<LineId>,
    /// The fluids by the most that they can go, for each of their weight.
    fastest: Vec<(u64, FluidId)>,
    /// The lines by the rate at which they stop who is not settled, or a lower one.
    stops: Vec<Reverse<(u64, LineId)>>,
    changed: Vec<NewShare>,
}

#[derive(Serialize, Deserialize)]
struct SharedLine {
    capacity: u64,
    /// The sum of the shares of its fluids, and of what they could go.
    taken: u64,
    wanted: u64,
    /// The rest of it in a filling, and the most that fluids ask of that which have no share yet.
    left: u64,
    asked: u64,
    /// The weight of those fluids.
    rising: u64,
    /// The last solution and the last filling that it took part in.
    round: u32,
    filling: u32,
    is_tight: bool,
    /// Whether it stops fluids of this filling, and the rate.
    stops_at: Option<u64>,
    /// The weight of its fluids.
    weight: u64,
    fluids: Vec<FluidId>,
}

#[derive(Serialize, Deserialize)]
struct Fluid {
    crosses: Vec<CrossedLine>,
    /// The most that it can go, and for how many it counts.
    most: u64,
    weight: u64,
    share: u64,
    /// The share of this filling, once it has one, and the line that has stopped it there.
    settled: u64,
    stopped_by: Option<LineId>,
    is_settled: bool,
    /// The last solution that it took part in.
    round: u32,
}

/// The claim of a fluid to its lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The most that it can go, which is not zero.
    pub most: BitRate,
    /// It has as much as so many alike of a share each; not zero.
    pub weight: u32,
}

/// A line of a fluid.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct CrossedLine {
    line: LineId,
    /// The place of the fluid in the line's list.
    place: u32,
}

/// A fluid whose share has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewShare {
    /// The fluid.
    pub fluid: FluidId,
    /// The share that it has from now on.
    pub share: BitRate,
    /// The line that lets it have no more; `None`: it goes as fast as it can.
    pub stopped_by: Option<LineId>,
}

impl SharedLine {
    /// The weight of its fluids, each for so many as it is slower than it could be on this line alone.
    fn waiting(&self) -> u64 {
        let SharedLine { weight, capacity, taken, wanted, .. } = *self;
        let could = wanted.min(capacity);
        if taken == 0 || taken == could {
            return weight;
        }
        // Mostly 64 bits do.
        match weight.checked_mul(could) {
            Some(product) => product / taken,
            None => (u128::from(weight) * u128::from(could) / u128::from(taken)) as u64,
        }
    }
}

impl Shares {
    /// Lines of these rates, numbered in their order, without fluids.
    pub fn new(rates: impl IntoIterator<Item = BitRate>) -> Shares {
        let line = |rate: BitRate| SharedLine {
            capacity: rate.bits_per_second(),
            taken: 0,
            wanted: 0,
            left: 0,
            asked: 0,
            rising: 0,
            round: 0,
            filling: 0,
            is_tight: false,
            stops_at: None,
            weight: 0,
            fluids: Vec::new(),
        };
        let lines: Vec<SharedLine> = rates.into_iter().map(line).collect();
        Shares {
            waiting: vec![0; lines.len()],
            lines,
            fluids: Slab::new(),
            touched: Vec::new(),
            round: 0,
            filling: 0,
            spare: Vec::new(),
            room: SolutionRoom::default(),
        }
    }

    /// A fluid begins on these lines, each of which is named once. Where all of them have so much left it
    /// goes as fast as it can at once, and changes nobody's share. Elsewhere it has a share from the next
    /// [solution](Shares::solve) on.
    pub fn begin(&mut self, crosses: &[LineId], wish: Wish) -> FluidId {
        let id = FluidId(self.fluids.vacant_key() as u32);
        // A line lets none go faster.
        let slowest = crosses.iter().map(|line| self.lines[line.index()].capacity).min();
        let most = wish.most.bits_per_second().min(slowest.unwrap_or(u64::MAX));
        let weight = u64::from(wish.weight);
        let has_room = |crossed: &LineId| {
            let line = &self.lines[crossed.index()];
            line.capacity - line.taken >= most
        };
        let share = if crosses.iter().all(has_room) { most } else { 0 };
        let cross = |id_of: &LineId| {
            let line = &mut self.lines[id_of.index()];
            line.taken += share;
            line.wanted += most;
            line.weight += weight;
            line.fluids.push(id);
            self.waiting[id_of.index()] = line.waiting();
            CrossedLine { line: *id_of, place: line.fluids.len() as u32 - 1 }
        };
        let mut crossed = self.spare.pop().unwrap_or_default();
        crossed.reserve_exact(crosses.len());
        crossed.extend(crosses.iter().map(cross));
        self.fluids.insert(Fluid {
            crosses: crossed,
            most,
            weight,
            share,
            settled: 0,
            stopped_by: None,
            is_settled: false,
            round: 0,
        });
        if share == 0 {
            self.touched.push(id);
        }
        id
    }

    /// A fluid ends. Others get what it leaves in the next solution.
    pub fn end(&mut self, id: FluidId) {
        let Fluid { mut crosses, share, most, weight, .. } = self.fluids.remove(id.index());
        for CrossedLine { line: crossed, place } in &crosses {
            let line = &mut self.lines[crossed.index()];
            line.taken -= share;
            line.wanted -= most;
            line.weight -= weight;
            self.waiting[crossed.index()] = line.waiting();
            line.fluids.swap_remove(*place as usize);
            if let Some(moved) = line.fluids.get(*place as usize) {
                let mut crosses = self.fluids[moved.index()].crosses.iter_mut();
                let entry = crosses.find(|other| other.line == *crossed);
                entry.expect("a fluid crosses the lines that list it").place = *place;
            }
            if line.is_tight {
                // Through one of them the solution finds all.
                self.touched.extend(line.fluids.first());
                line.is_tight = !line.fluids.is_empty();
            }
        }
        crosses.clear();
        self.spare.push(crosses);
    }

    /// The number of fluids.
    pub fn fluids(&self) -> usize {
        self.fluids.len()
    }

    /// Whether a solution could change anything.
    pub fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The present share of a fluid.
    pub fn share(&self, fluid: FluidId) -> BitRate {
        BitRate::from_bits_per_second(self.fluids[fluid.index()].share)
    }

    /// The lines of a fluid.
    pub fn lines_of(&self, fluid: FluidId) -> impl Iterator<Item = LineId> {
        self.fluids[fluid.index()].crosses.iter().map(|crossing| crossing.line)
    }

    /// By line, of some that follow each other: its fluids, each for so many as it is slower than it could be
    /// on this line alone.
    pub fn waiting_on(&self, lines: Range<usize>) -> &[u64] {
        &self.waiting[lines]
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
    pub fn solve(&mut self) -> &[NewShare] {
        let mut together = std::mem::take(&mut self.touched);
        let mut room = std::mem::take(&mut self.room);
        together.retain(|fluid| self.fluids.contains(fluid.index()));
        self.round += 1;
        let mut known = 0;
        loop {
            self.add_all_who_meet(&mut together, known);
            known = together.len();
            self.fill(&together, &mut room);
            self.add_who_must_give_way(&mut together, &room.could);
            if together.len() == known {
                self.take(&together, &mut room);
                let SolutionRoom { crossed, .. } = &room;
                crossed.iter().for_each(|id| self.waiting[id.index()] = self.lines[id.index()].waiting());
                together.clear();
                (self.touched, self.room) = (together, room);
                return &self.room.changed;
            }
        }
    }

    /// Adds all fluids that those from `known` on meet at tight lines, and whom these meet.
    fn add_all_who_meet(&mut self, together: &mut Vec<FluidId>, known: usize) {
        let Shares { lines, fluids, round, .. } = self;
        let mut is_new = |id: FluidId| std::mem::replace(&mut fluids[id.index()].round, *round) != *round;
        let mut kept = known;
        for place in known..together.len() {
            let id = together[place];
            if is_new(id) {
                together[kept] = id;
                kept += 1;
            }
        }
        together.truncate(kept);
        let mut next = known;
        while let Some(id) = together.get(next) {
            next += 1;
            for place in 0..fluids[id.index()].crosses.len() {
                let crossed = fluids[together[next - 1].index()].crosses[place].line;
                let line = &mut lines[crossed.index()];
                // Whoever comes to it first brings all of it.
                if !line.is_tight || std::mem::replace(&mut line.round, *round) == *round {
                    continue;
                }
                for met in &line.fluids {
                    if std::mem::replace(&mut fluids[met.index()].round, *round) != *round {
                        together.push(*met);
                    }
                }
            }
        }
    }

    /// Fills what others leave of the lines with these fluids.
    fn fill(&mut self, together: &[FluidId], room: &mut SolutionRoom) {
        self.filling += 1;
        let Shares { lines, fluids, filling, .. } = self;
        let SolutionRoom { crossed, could, fastest, stops, .. } = room;
        crossed.clear();
        fastest.clear();
        for id in together {
            let fluid = &mut fluids[id.index()];
            fluid.is_settled = false;
            fastest.push((fluid.most / fluid.weight, *id));
            for CrossedLine { line: id, .. } in &fluid.crosses {
                let line = &mut lines[id.index()];
                if line.filling != *filling {
                    line.filling = *filling;
                    (line.left, line.asked, line.rising) = (line.capacity - line.taken, 0, 0);
                    crossed.push(*id);
                }
                line.left += fluid.share;
                line.asked += fluid.most;
                line.rising += fluid.weight;
            }
        }
        // Nobody is stopped by a line on which all can go as fast as they can.
        let could_stop = |id: &LineId| {
            let line = &mut lines[id.index()];
            line.stops_at = None;
            line.is_tight &= line.asked > line.left;
            line.asked > line.left
        };
        could.clear();
        could.extend(crossed.iter().copied().filter(could_stop));
        fastest.sort_unstable_by_key(|(most, _)| *most);
        let level = |line: &SharedLine| line.left / line.rising;
        stops.clear();
        stops.extend(could.iter().map(|id| Reverse((level(&lines[id.index()]), *id))));
        let mut levels = BinaryHeap::from(std::mem::take(stops));
        let mut fastest = fastest.drain(..).peekable();
        loop {
            // Of a line and a fluid at one rate the line comes first.
            let line = levels.peek().map(|Reverse((rate, _))| *rate);
            let next = fastest.next_if(|(most, _)| line.is_none_or(|rate| *most < rate));
            if let Some((_, id)) = next {
                self.settle(id, u64::MAX, None);
                continue;
            }
            let Some(mut first) = levels.peek_mut() else { break };
            let Reverse((rate, id)) = *first;
            let line = &mut self.lines[id.index()];
            if line.rising == 0 {
                PeekMut::pop(first);
                continue;
            }
            let now = level(line);
            if now > rate {
                // Some of its fluids have stopped below that elsewhere.
                first.0.0 = now;
                continue;
            }
            PeekMut::pop(first);
            line.stops_at = Some(rate);
            let on_it = std::mem::take(&mut line.fluids);
            on_it.iter().for_each(|fluid| self.settle(*fluid, rate, Some(id)));
            self.lines[id.index()].fluids = on_it;
        }
        *stops = levels.into_vec();
    }

    /// A fluid of this solution has its share at a rate for each of its weight, if it had none yet.
    fn settle(&mut self, id: FluidId, rate: u64, stopped_by: Option<LineId>) {
        let fluid = &mut self.fluids[id.index()];
        if fluid.round != self.round || fluid.is_settled {
            return;
        }
        let share = fluid.most.min(rate.saturating_mul(fluid.weight));
        (fluid.settled, fluid.stopped_by, fluid.is_settled) = (share, stopped_by, true);
        for CrossedLine { line, .. } in &fluid.crosses {
            let line = &mut self.lines[line.index()];
            line.left -= share;
            line.rising -= fluid.weight;
        }
    }

    /// Adds the fluids that have been left out and go faster than one of the lines lets others.
    fn add_who_must_give_way(&self, together: &mut Vec<FluidId>, lines: &[LineId]) {
        for id in lines {
            let line = &self.lines[id.index()];
            let Some(rate) = line.stops_at else { continue };
            let gives_way = |id: &&FluidId| {
                let fluid = &self.fluids[id.index()];
                fluid.round != self.round && fluid.share > rate.saturating_mul(fluid.weight)
            };
            together.extend(line.fluids.iter().filter(gives_way));
        }
    }

    /// The solution holds from now on. It says whose shares it changes.
    fn take(&mut self, together: &[FluidId], room: &mut SolutionRoom) {
        let SolutionRoom { could, changed, .. } = room;
        for id in could.iter() {
            let line = &mut self.lines[id.index()];
            line.is_tight = line.stops_at.is_some();
        }
        changed.clear();
        for id in together {
            let fluid = &mut self.fluids[id.index()];
            assert!(fluid.is_settled, "progressive filling stops every fluid");
            let (before, share) = (fluid.share, fluid.settled);
            if before == share {
                continue;
            }
            fluid.share = share;
            for CrossedLine { line, .. } in &fluid.crosses {
                let taken = &mut self.lines[line.index()].taken;
                *taken = *taken - before + share;
            }
            let (share, stopped_by) = (BitRate::from_bits_per_second(share), fluid.stopped_by);
            changed.push(NewShare { fluid: *id, share, stopped_by });
        }
        changed.sort_unstable_by_key(|new| new.fluid);
    }
}

#[cfg(test)]
mod tests;

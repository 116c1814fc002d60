//! The loop around every benchmark.
//!
//! ```text
//!  setup  barrier │ warm-up iterations │ [barrier] │ measured iterations              │ teardown
//!                 │ timed  [barrier]   │           │ ⏱ timed ⏱  [barrier]             │
//! ```
//! ⏱ is a marker, at which a rank reads its clock. Everything is a function of rank and position.

use super::Stopwatch;
use super::ops::barrier;
use super::stopwatch::Figures;
use crate::replay::Generated;
use weft_trace::op::Op;
use weft_units::RankId;

/// One iteration of a benchmark.
pub(super) trait Iteration: Send + Sync {
    /// Operations of `rank` between the two readings of the clock.
    fn steps(&self, rank: u32) -> u64;

    /// Operation `step` of them.
    fn timed(&self, rank: u32, step: u64) -> Op;

    /// Whether the times of `rank` count: others read no clock.
    fn is_timed(&self, rank: u32) -> bool;

    /// The figures that the ranks' times give.
    fn figures(&self, times: &[Stopwatch]) -> Figures;

    /// The barriers inside the loop. There is always one before it.
    fn barriers(&self) -> Barriers {
        Barriers::None
    }

    /// Operation `step` before the loop; `None` after the last.
    fn setup(&self, _rank: u32, _step: u64) -> Option<Op> {
        None
    }

    /// Operation `step` after the loop; `None` after the last.
    fn teardown(&self, _rank: u32, _step: u64) -> Option<Op> {
        None
    }
}

/// The places of barriers inside the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Barriers {
    /// Nowhere.
    None,
    /// Between warm-up and measured iterations.
    BeforeMeasured,
    /// After every iteration, outside of its time.
    AfterEach,
}

/// How often a benchmark repeats what it measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repetitions {
    /// Iterations that are not measured, before the others.
    pub warm_up: u32,
    /// Iterations that are measured; at least 1.
    pub iterations: u32,
    /// Whether ranks meet after every iteration of a collective, as in OSU.
    pub barrier: bool,
    /// Messages of an iteration that are under way at a time, of bandwidths.
    pub window: u32,
}

/// A benchmark with everything decided.
pub struct Loop {
    name: String,
    ranks: u32,
    repetitions: Repetitions,
    iteration: Box<dyn Iteration>,
    barriers: Barriers,
}

/// A place in the loop.
enum LoopPlace {
    Setup(u64),
    Barrier,
    /// A reading of the clock at the beginning of this measured iteration.
    Begin(u64),
    /// One at its end.
    End,
    Timed(u64),
    Teardown(u64),
}

impl Loop {
    pub(super) fn new(
        name: String,
        ranks: u32,
        repetitions: Repetitions,
        iteration: Box<dyn Iteration>,
    ) -> Loop {
        let barriers = match iteration.barriers() {
            Barriers::AfterEach if !repetitions.barrier => Barriers::None,
            barriers => barriers,
        };
        Loop { name, ranks, repetitions, iteration, barriers }
    }

    /// The repetitions.
    pub fn repetitions(&self) -> Repetitions {
        self.repetitions
    }

    /// The figures that the times of all ranks give, in the order of ranks.
    pub fn figures(&self, times: &[Stopwatch]) -> Figures {
        self.iteration.figures(times)
    }

    /// Operations before the loop, the barrier not counted: none or a few.
    fn setup(&self, rank: u32) -> u64 {
        (0..).take_while(|&step| self.iteration.setup(rank, step).is_some()).count() as u64
    }

    /// The place in the loop of operation `position` of `rank`.
    fn place(&self, rank: u32, position: u64) -> LoopPlace {
        let Some(mut at) = position.checked_sub(self.setup(rank)) else { return LoopPlace::Setup(position) };
        if at == 0 {
            return LoopPlace::Barrier;
        }
        at -= 1;
        let steps = self.iteration.steps(rank);
        let after = u64::from(self.barriers == Barriers::AfterEach);
        let warm_up = u64::from(self.repetitions.warm_up) * (steps + after);
        if at < warm_up {
            let step = at % (steps + after);
            return if step < steps { LoopPlace::Timed(step) } else { LoopPlace::Barrier };
        }
        at -= warm_up;
        if self.barriers == Barriers::BeforeMeasured {
            if at == 0 {
                return LoopPlace::Barrier;
            }
            at -= 1;
        }
        let readings = 2 * u64::from(self.iteration.is_timed(rank));
        let whole = steps + readings + after;
        let measured = u64::from(self.repetitions.iterations) * whole;
        if at >= measured {
            return LoopPlace::Teardown(at - measured);
        }
        let (number, mut step) = (at / whole, at % whole);
        if readings > 0 {
            match step {
                0 => return LoopPlace::Begin(number),
                _ if step == steps + 1 => return LoopPlace::End,
                _ => step -= 1,
            }
        }
        if step < steps { LoopPlace::Timed(step) } else { LoopPlace::Barrier }
    }
}

impl Generated for Loop {
    fn name(&self) -> &str {
        &self.name
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn operations(&self, rank: RankId) -> u64 {
        let (steps, Repetitions { warm_up, iterations, .. }) =
            (self.iteration.steps(rank.0), self.repetitions);
        let after = u64::from(self.barriers == Barriers::AfterEach);
        let readings = 2 * u64::from(self.iteration.is_timed(rank.0));
        let teardown = (0..).take_while(|&step| self.iteration.teardown(rank.0, step).is_some()).count();
        self.setup(rank.0)
            + 1
            + u64::from(warm_up) * (steps + after)
            + u64::from(self.barriers == Barriers::BeforeMeasured)
            + u64::from(iterations) * (steps + after + readings)
            + teardown as u64
    }

    fn operation(&self, rank: RankId, position: u64) -> Option<Op> {
        let rank = rank.0;
        match self.place(rank, position) {
            LoopPlace::Setup(step) => self.iteration.setup(rank, step),
            LoopPlace::Barrier => Some(barrier()),
            LoopPlace::Begin(number) => Some(Op::Marker { text: format!("iteration {number}") }),
            // Timelines show no marker without text; the clock is read all the same.
            LoopPlace::End => Some(Op::Marker { text: String::new() }),
            LoopPlace::Timed(step) => Some(self.iteration.timed(rank, step)),
            LoopPlace::Teardown(step) => self.iteration.teardown(rank, step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Benchmark, WINDOW};
    use super::*;
    use proptest::prelude::*;
    use weft_units::Bytes;

    /// A program in letters: b for a barrier, m for a reading of the clock, . for a timed operation.
    fn letters(program: &Loop, rank: u32) -> String {
        (0..)
            .map_while(|position| program.operation(RankId(rank), position))
            .map(|op| match op {
                Op::Marker { .. } => 'm',
                op if op == barrier() => 'b',
                _ => '.',
            })
            .collect()
    }

    #[test]
    fn loops_have_the_shape_of_osu() {
        let shape = |benchmark: Benchmark, ranks, rank, barrier| {
            let repetitions = Repetitions { warm_up: 1, iterations: 2, barrier, window: WINDOW };
            let program = benchmark.program(ranks, Bytes::new(8), repetitions);
            letters(&program, rank).replace(&".".repeat(66), "w")
        };
        assert_eq!(shape(Benchmark::Latency, 2, 0, true), "b....m....mm....m");
        assert_eq!(shape(Benchmark::Latency, 2, 1, true), "b............");
        assert_eq!(shape(Benchmark::Bcast, 4, 3, true), "b.bm.mbm.mb");
        assert_eq!(shape(Benchmark::Bcast, 4, 0, false), "b.m.mm.m");
        assert_eq!(shape(Benchmark::MbwMr, 4, 1, true), "bw.bmw.mmw.m");
        assert_eq!(shape(Benchmark::OneWay, 2, 1, true), "b..m..mm..m");
        assert_eq!(shape(Benchmark::PutLatency, 2, 0, true), "..b..m..mm..m.b.");
        assert_eq!(shape(Benchmark::PutLatency, 2, 1, true), ".bb.");
    }

    fn repetitions() -> impl Strategy<Value = Repetitions> {
        let all = (0u32..4, 1u32..4, any::<bool>(), 1u32..70);
        all.prop_map(|(warm_up, iterations, barrier, window)| Repetitions {
            warm_up,
            iterations,
            barrier,
            window,
        })
    }

    proptest! {
        /// Catches a count of operations that is not that of the operations, and an end that is none.
        #[test]
        fn a_program_is_as_long_as_it_says(
            benchmark in prop::sample::select(&Benchmark::ALL[..]),
            repetitions in repetitions(),
            half in 1u32..4,
        ) {
            let ranks = if benchmark.is_for_two() { 2 } else { 2 * half };
            let program = benchmark.program(ranks, Bytes::new(100), repetitions);
            for rank in (0..ranks).map(RankId) {
                let count = program.operations(rank);
                prop_assert!((0..count).all(|position| program.operation(rank, position).is_some()));
                prop_assert!((count..count + 70).all(|position| program.operation(rank, position).is_none()));
                let readings = (0..count).filter(|&at| {
                    matches!(program.operation(rank, at), Some(Op::Marker { .. }))
                });
                prop_assert!([0, 2 * repetitions.iterations as usize].contains(&readings.count()));
            }
        }
    }
}

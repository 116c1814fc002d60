//! The form of a kernel: phases one after the other, and repeated.

use weft_trace::Kind;
use weft_trace::op::Op;

/// A step of an application, whose number of operations is the same in each pass.
pub trait KernelPhase: Send + Sync {
    /// Number of operations of `rank`.
    fn length(&self, rank: u32) -> u64;

    /// Operation `step` of `rank`, below its [length](KernelPhase::length), in pass number `pass` of all
    /// passes through the phase.
    fn operation(&self, rank: u32, pass: u64, step: u64) -> Op;

    /// Calls `each` with kinds of operations of `rank` and their numbers in one pass. A phase that knows them
    /// need not make the operations.
    fn count(&self, rank: u32, each: &mut dyn FnMut(Kind, u64)) {
        (0..self.length(rank)).for_each(|step| each(self.operation(rank, 0, step).kind(), 1));
    }
}

/// A part of a kernel.
pub enum KernelPart {
    /// A phase.
    Phase(Box<dyn KernelPhase>),
    /// Parts that are gone through several times.
    Repeat {
        /// How often.
        times: u64,
        /// The parts.
        body: Vec<KernelPart>,
    },
}

impl KernelPart {
    /// Parts that are gone through `times` times.
    pub fn repeat(times: u64, body: Vec<KernelPart>) -> KernelPart {
        KernelPart::Repeat { times, body }
    }

    /// Number of operations of `rank`.
    pub fn length(&self, rank: u32) -> u64 {
        match self {
            KernelPart::Phase(phase) => phase.length(rank),
            KernelPart::Repeat { times, body } => times * length(body, rank),
        }
    }
}

impl<P: KernelPhase + 'static> From<P> for KernelPart {
    fn from(phase: P) -> KernelPart {
        KernelPart::Phase(Box::new(phase))
    }
}

/// Number of operations of `rank` in `parts`.
pub fn length(parts: &[KernelPart], rank: u32) -> u64 {
    parts.iter().map(|part| part.length(rank)).sum()
}

/// Operation `position` of `rank` in `parts`; `None`: behind the last.
pub fn operation(parts: &[KernelPart], rank: u32, position: u64) -> Option<Op> {
    PartWalk::new(rank, position).operation(parts, position)
}

/// A walk of a rank through the phases of a kernel. It knows the phase where it is, so that the next
/// operation is found without a look at all phases before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartWalk {
    rank: u32,
    /// The place at each depth, from the outermost on; empty: not yet sought.
    levels: Vec<PartLevel>,
    /// The operations of the phase.
    start: u64,
    end: u64,
    /// Passes through the phase before.
    pass: u64,
}

/// A place among parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PartLevel {
    /// Which part.
    part: usize,
    /// How often the parts were gone through before, in this pass of what they are in.
    iteration: u64,
}

impl PartWalk {
    /// A walk of `rank` that begins at `position`.
    pub fn new(rank: u32, position: u64) -> PartWalk {
        PartWalk { rank, levels: Vec::new(), start: position, end: position, pass: 0 }
    }

    /// Operation `position` of the rank in `parts`, at the walk's place or behind it; `None`: behind the
    /// last.
    pub fn operation(&mut self, parts: &[KernelPart], position: u64) -> Option<Op> {
        if self.levels.is_empty() {
            (self.start, self.pass) = (position, 0);
            self.seek(parts, position, 0)?;
        }
        while position >= self.end {
            self.advance(parts)?;
        }
        let phase = self.phase(parts)?;
        Some(phase.operation(self.rank, self.pass, position - self.start))
    }

    /// Goes to the phase that has an operation, from the first of `parts` on.
    fn seek(&mut self, parts: &[KernelPart], mut position: u64, iteration: u64) -> Option<()> {
        for (part, content) in parts.iter().enumerate() {
            let length = content.length(self.rank);
            if position >= length {
                position -= length;
                continue;
            }
            self.levels.push(PartLevel { part, iteration });
            return match content {
                KernelPart::Phase(_) => {
                    self.start -= position;
                    self.end = self.start + length;
                    Some(())
                }
                KernelPart::Repeat { times, body } => {
                    let once = length / times;
                    let iteration = position / once;
                    self.pass = self.pass * times + iteration;
                    self.seek(body, position % once, iteration)
                }
            };
        }
        None
    }

    /// Goes to the next phase, which may have no operations; `None`: there is none.
    fn advance(&mut self, parts: &[KernelPart]) -> Option<()> {
        let mut level = self.levels.pop()?;
        level.part += 1;
        let (mut body, times) = self.body(parts);
        if level.part == body.len() {
            level = PartLevel { part: 0, iteration: level.iteration + 1 };
            if level.iteration >= times {
                return self.advance(parts);
            }
        }
        self.levels.push(level);
        while let KernelPart::Repeat { times: 1.., body: inner } = &body[level.part] {
            // What has no parts is as a phase without operations.
            if inner.is_empty() {
                break;
            }
            body = inner;
            level = PartLevel { part: 0, iteration: 0 };
            self.levels.push(level);
        }
        self.pass = self.passes(parts);
        self.start = self.end;
        self.end += body[level.part].length(self.rank);
        Some(())
    }

    /// The parts among which the next deeper level is, and how often they are gone through.
    fn body<'a>(&self, parts: &'a [KernelPart]) -> (&'a [KernelPart], u64) {
        self.levels.iter().fold((parts, 1), |(parts, _), level| match &parts[level.part] {
            KernelPart::Repeat { times, body } => (body, *times),
            KernelPart::Phase(_) => (&[], 1),
        })
    }

    fn passes(&self, mut parts: &[KernelPart]) -> u64 {
        let (mut passes, mut times) = (0, 1);
        for level in &self.levels {
            passes = passes * times + level.iteration;
            if let KernelPart::Repeat { times: inner, body } = &parts[level.part] {
                (times, parts) = (*inner, body);
            }
        }
        passes
    }

    fn phase<'a>(&self, parts: &'a [KernelPart]) -> Option<&'a dyn KernelPhase> {
        let (last, before) = self.levels.split_last()?;
        let body = before.iter().fold(parts, |parts, level| match &parts[level.part] {
            KernelPart::Repeat { body, .. } => body,
            KernelPart::Phase(_) => parts,
        });
        match &body[last.part] {
            KernelPart::Phase(phase) => Some(&**phase),
            KernelPart::Repeat { .. } => None,
        }
    }
}

/// Calls `each` with every phase and the number of its passes.
pub fn for_each_phase(parts: &[KernelPart], passes: u64, each: &mut impl FnMut(&dyn KernelPhase, u64)) {
    for part in parts {
        match part {
            KernelPart::Phase(phase) => each(&**phase, passes),
            KernelPart::Repeat { times, body } => for_each_phase(body, passes * times, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `length` markers that say their pass and step.
    struct Letters(u64);

    impl KernelPhase for Letters {
        fn length(&self, _: u32) -> u64 {
            self.0
        }

        fn operation(&self, _: u32, pass: u64, step: u64) -> Op {
            Op::Marker { text: format!("{}{pass}{step}", self.0) }
        }
    }

    /// Catches a position that is off behind an empty phase, or a pass that forgets the loop around its own.
    #[test]
    fn positions_go_through_loops() {
        let inner = KernelPart::repeat(2, vec![Letters(1).into(), Letters(0).into(), Letters(2).into()]);
        let nothing = || KernelPart::repeat(0, vec![Letters(1).into()]);
        let parts =
            [Letters(1).into(), nothing(), KernelPart::repeat(2, vec![inner, nothing()]), Letters(3).into()];
        let all: Vec<String> = (0..)
            .map_while(|position| operation(&parts, 0, position))
            .map(|op| match op {
                Op::Marker { text } => text,
                _ => unreachable!("only markers"),
            })
            .collect();
        let expected = "100 100 200 201 110 210 211 120 220 221 130 230 231 300 301 302";
        assert_eq!(all.join(" "), expected);
        for from in 0..16 {
            let mut walk = PartWalk::new(0, from);
            let rest = (from..).map_while(|position| walk.operation(&parts, position)).count();
            assert_eq!(rest as u64, 16 - from);
            let mut walk = PartWalk::new(0, from);
            let on: Vec<_> = (from..16).map(|position| walk.operation(&parts, position)).collect();
            let sought: Vec<_> = (from..16).map(|position| operation(&parts, 0, position)).collect();
            assert_eq!(on, sought);
        }
        assert_eq!(length(&parts, 0), 16);
        let mut passes = Vec::new();
        for_each_phase(&parts, 1, &mut |phase, times| passes.push((phase.length(0), times)));
        assert_eq!(passes, [(1, 1), (1, 0), (1, 4), (0, 4), (2, 4), (1, 0), (3, 1)]);
    }
}

//! The form of a kernel: phases one after the other, and repeated.

use weft_trace::op::Op;

/// A step of an application, whose number of operations is the same in each pass.
pub trait KernelPhase: Send + Sync {
    /// Number of operations of `rank`.
    fn length(&self, rank: u32) -> u64;

    /// Operation `step` of `rank`, below its [length](KernelPhase::length), in pass number `pass` of all
    /// passes through the phase.
    fn operation(&self, rank: u32, pass: u64, step: u64) -> Op;
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
    find(parts, rank, position, 0)
}

/// As [`operation`], where `parts` were gone through `pass` times before.
fn find(parts: &[KernelPart], rank: u32, mut position: u64, pass: u64) -> Option<Op> {
    for part in parts {
        let length = part.length(rank);
        if position >= length {
            position -= length;
            continue;
        }
        return match part {
            KernelPart::Phase(phase) => Some(phase.operation(rank, pass, position)),
            KernelPart::Repeat { times, body } => {
                let once = length / times;
                find(body, rank, position % once, pass * times + position / once)
            }
        };
    }
    None
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
        let parts = [Letters(1).into(), KernelPart::repeat(2, vec![inner]), Letters(3).into()];
        let all: Vec<String> = (0..)
            .map_while(|position| operation(&parts, 0, position))
            .map(|op| match op {
                Op::Marker { text } => text,
                _ => unreachable!("only markers"),
            })
            .collect();
        let expected = "100 100 200 201 110 210 211 120 220 221 130 230 231 300 301 302";
        assert_eq!(all.join(" "), expected);
        assert_eq!(length(&parts, 0), 16);
        let mut passes = Vec::new();
        for_each_phase(&parts, 1, &mut |phase, times| passes.push((phase.length(0), times)));
        assert_eq!(passes, [(1, 1), (1, 4), (0, 4), (2, 4), (3, 1)]);
    }
}

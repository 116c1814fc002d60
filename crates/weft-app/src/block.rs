//! The form of a kernel: phases one after the other, and repeated.

use weft_trace::op::Op;

/// A step of an application, whose number of operations is the same in each pass.
pub trait Phase: Send + Sync {
    /// Number of operations of `rank`.
    fn length(&self, rank: u32) -> u64;

    /// Operation `step` of `rank`, below its [length](Phase::length), in pass number `pass` of all passes
    /// through the phase.
    fn operation(&self, rank: u32, pass: u64, step: u64) -> Op;
}

/// A part of a kernel.
pub enum Block {
    /// A phase.
    Phase(Box<dyn Phase>),
    /// Blocks that are gone through several times.
    Repeat {
        /// How often.
        times: u64,
        /// The blocks.
        body: Vec<Block>,
    },
}

impl Block {
    /// Blocks that are gone through `times` times.
    pub fn repeat(times: u64, body: Vec<Block>) -> Block {
        Block::Repeat { times, body }
    }

    /// Number of operations of `rank`.
    pub fn length(&self, rank: u32) -> u64 {
        match self {
            Block::Phase(phase) => phase.length(rank),
            Block::Repeat { times, body } => times * length(body, rank),
        }
    }
}

impl<P: Phase + 'static> From<P> for Block {
    fn from(phase: P) -> Block {
        Block::Phase(Box::new(phase))
    }
}

/// Number of operations of `rank` in `blocks`.
pub fn length(blocks: &[Block], rank: u32) -> u64 {
    blocks.iter().map(|block| block.length(rank)).sum()
}

/// Operation `position` of `rank` in `blocks`; `None`: behind the last.
pub fn operation(blocks: &[Block], rank: u32, position: u64) -> Option<Op> {
    find(blocks, rank, position, 0)
}

/// As [`operation`], where `blocks` were gone through `pass` times before.
fn find(blocks: &[Block], rank: u32, mut position: u64, pass: u64) -> Option<Op> {
    for block in blocks {
        let length = block.length(rank);
        if position >= length {
            position -= length;
            continue;
        }
        return match block {
            Block::Phase(phase) => Some(phase.operation(rank, pass, position)),
            Block::Repeat { times, body } => {
                let once = length / times;
                find(body, rank, position % once, pass * times + position / once)
            }
        };
    }
    None
}

/// Calls `each` with every phase and the number of its passes.
pub fn for_each_phase(blocks: &[Block], passes: u64, each: &mut impl FnMut(&dyn Phase, u64)) {
    for block in blocks {
        match block {
            Block::Phase(phase) => each(&**phase, passes),
            Block::Repeat { times, body } => for_each_phase(body, passes * times, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `length` markers that say their pass and step.
    struct Letters(u64);

    impl Phase for Letters {
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
        let inner = Block::repeat(2, vec![Letters(1).into(), Letters(0).into(), Letters(2).into()]);
        let blocks = [Letters(1).into(), Block::repeat(2, vec![inner]), Letters(3).into()];
        let all: Vec<String> = (0..)
            .map_while(|position| operation(&blocks, 0, position))
            .map(|op| match op {
                Op::Marker { text } => text,
                _ => unreachable!("only markers"),
            })
            .collect();
        let expected = "100 100 200 201 101 210 211 102 220 221 103 230 231 300 301 302";
        assert_eq!(all.join(" "), expected);
        assert_eq!(length(&blocks, 0), 16);
        let mut passes = Vec::new();
        for_each_phase(&blocks, 1, &mut |phase, times| passes.push((phase.length(0), times)));
        assert_eq!(passes, [(1, 1), (1, 4), (0, 4), (2, 4), (3, 1)]);
    }
}

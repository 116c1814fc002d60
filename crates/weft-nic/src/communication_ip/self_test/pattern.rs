//! The payload of the self-test: words that both ends make.
//!
//! ```text
//!   register test_pattern ─► generator ─► words ══ switches ══► consumer makes the same, and compares
//! ```
//! # Source
//! D2.8 §2: the consumer checks the payload of received packets. The patterns are ours: places of words show
//! words that are lost or exchanged, alternating bits the most edges on a line, and a random sequence what a
//! line has to carry; x³¹ + x²⁸ + 1 is PRBS31 of IEEE 802.3, §49.2.8.

use serde::{Deserialize, Serialize};

/// An odd number of as many ones as zeros.
const SPREAD: u32 = 0x9E37_79B1;

/// A payload, by its number in register `test_pattern`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum TestPattern {
    /// The packet's number and the word's place, and their complements.
    #[default]
    Counter = 0,
    /// Ones and zeros in turns, and the other way round in the next word.
    Alternating = 1,
    /// The bits of PRBS31 from a place that the packet's number says.
    Prbs = 2,
}

impl TestPattern {
    /// All of them, by number.
    pub const ALL: [TestPattern; 3] = [TestPattern::Counter, TestPattern::Alternating, TestPattern::Prbs];

    /// The pattern of a number; `None`: there is none.
    pub fn of(number: u32) -> Option<TestPattern> {
        TestPattern::ALL.get(number as usize).copied()
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            TestPattern::Counter => "counter",
            TestPattern::Alternating => "alternating",
            TestPattern::Prbs => "prbs",
        }
    }

    /// The words of packet `number`, without an end.
    pub fn words(self, number: u32) -> impl Iterator<Item = u128> {
        // Few ones in a row of the register make few for long: a multiplication spreads those of the number.
        let mut register = (number ^ 1 << 31).wrapping_mul(SPREAD) >> 1 | 1;
        (0u64..).map(move |place| match self {
            TestPattern::Counter => {
                let half = u64::from(number) << 32 | place & 0xFFFF_FFFF;
                u128::from(!half) << 64 | u128::from(half)
            }
            TestPattern::Alternating => {
                let ones_first = 0xAAAA_AAAA_AAAA_AAAA_AAAA_AAAA_AAAA_AAAA;
                if place % 2 == 0 { ones_first } else { ones_first >> 1 }
            }
            TestPattern::Prbs => (0..128).fold(0, |word, _| word << 1 | u128::from(next_bit(&mut register))),
        })
    }
}

/// The next bit of PRBS31.
fn next_bit(register: &mut u32) -> u32 {
    let bit = (*register >> 30 ^ *register >> 27) & 1;
    *register = (*register << 1 | bit) & 0x7FFF_FFFF;
    bit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a sequence of another polynomial, whose bits do not follow from those 31 and 28 before.
    #[test]
    fn the_random_sequence_is_prbs31() {
        let words: Vec<u128> = TestPattern::Prbs.words(5).take(4).collect();
        let bit = |at: usize| words[at / 128] >> (127 - at % 128) & 1;
        assert!((31..512).all(|at| bit(at) == bit(at - 31) ^ bit(at - 28)));
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!((200..312).contains(&ones), "{ones} of 512");
        assert_ne!(words[0], TestPattern::Prbs.words(6).next().unwrap());
    }

    /// Catches numbers and names that are not one to one, and bits that do not alternate.
    #[test]
    fn patterns_have_their_numbers() {
        for (number, pattern) in (0..).zip(TestPattern::ALL) {
            assert_eq!((pattern as u32, TestPattern::of(number)), (number, Some(pattern)));
        }
        assert_eq!(TestPattern::of(3), None);
        let words: Vec<u128> = TestPattern::Alternating.words(9).take(2).collect();
        assert_eq!((words[0] ^ words[1], words[0] & 3), (u128::MAX, 2));
    }
}

//! The footer of a packet: 128 bits behind the payload, in the FIFO of the headers.
//!
//! ```text
//!  127                   96 95                 64 63                                         0
//! ┌───────────────────────┬─────────────────────┬─────────────────────────────────────────────┐
//! │ mark: "APEf"          │ words of payload    │ check of header and payload                 │
//! └───────────────────────┴─────────────────────┴─────────────────────────────────────────────┘
//! ```
//! # Source
//! D2.8 §2: a packet has a header, a payload of variable size and a footer; a FIFO is for header and footer.
//! The figure with the footer's fields did not survive: this layout is ours.

/// The first four bytes of every footer.
const MARK: u32 = u32::from_be_bytes(*b"APEf");

/// The footer of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Footer {
    /// Words of payload.
    pub words: u32,
    /// The check of header and payload.
    pub check: u64,
}

impl Footer {
    /// The footer behind a header and these words of payload.
    pub fn of(header: u128, payload: impl IntoIterator<Item = u128>) -> Footer {
        let start = Footer { words: 0, check: stir(0, header) };
        payload
            .into_iter()
            .fold(start, |footer, word| Footer { words: footer.words + 1, check: stir(footer.check, word) })
    }

    /// The word of the FIFO.
    pub fn pack(&self) -> u128 {
        u128::from(MARK) << 96 | u128::from(self.words) << 64 | u128::from(self.check)
    }

    /// The footer in a word; `None`: the word is none.
    pub fn unpack(word: u128) -> Option<Footer> {
        ((word >> 96) as u32 == MARK).then_some(Footer { words: (word >> 64) as u32, check: word as u64 })
    }
}

/// The check after one more word: the order of words counts, and every bit of them. FNV-1a, by halves of a
/// word.
fn stir(check: u64, word: u128) -> u64 {
    [word as u64, (word >> 64) as u64].iter().fold(check ^ 0xCBF2_9CE4_8422_2325, |sum, half| {
        let mixed = (sum ^ half).wrapping_mul(0x0000_0100_0000_01B3);
        mixed ^ mixed >> 32
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a damaged bit, a lost word and words that have changed places, where the check is the
        /// same.
        #[test]
        fn damage_changes_the_check(
            header: u128,
            words in prop::collection::vec(any::<u128>(), 1..40),
            (place, bit) in (any::<prop::sample::Index>(), 0u32..128),
        ) {
            let footer = Footer::of(header, words.iter().copied());
            prop_assert_eq!(Footer::unpack(footer.pack()), Some(footer));
            let mut damaged = words.clone();
            damaged[place.index(words.len())] ^= 1 << bit;
            prop_assert_ne!(Footer::of(header, damaged), footer);
            prop_assert_ne!(Footer::of(header ^ 1 << bit, words.iter().copied()), footer);
            prop_assert_ne!(Footer::of(header, words[1..].iter().copied()), footer);
            let mut swapped = words.clone();
            swapped.swap(0, words.len() - 1);
            if swapped != words {
                prop_assert_ne!(Footer::of(header, swapped), footer);
            }
        }
    }

    /// Catches a word of payload that is taken for a footer.
    #[test]
    fn a_word_without_the_mark_is_no_footer() {
        assert_eq!(Footer::unpack(0), None);
        assert_eq!(Footer::unpack(Footer { words: 1, check: 2 }.pack() ^ 1 << 100), None);
    }
}

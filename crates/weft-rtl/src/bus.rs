//! Buses of more than one word: the words of a packet, or of a line of memory, side by side.
//!
//! ```text
//!   network, 512 bits   [ header | payload | payload | payload ]    the highest word travels first
//!                       [ payload | footer |   0     |    0    ]
//!   memory, 512 bits    [ word 3 | word 2 | word 1 | word 0 ]
//! ```

use crate::library::{Instance, RtlPort};

/// Words of the widest bus.
const MOST_LANES: usize = 4;

/// The words on a bus, in the order in which they travel or lie in memory; zeros behind the last that it has.
pub(crate) type BusWords = [u128; MOST_LANES];

/// The data of a bus.
pub(crate) struct Bus {
    /// The port of each word, in the order of [`BusWords`].
    lanes: Vec<RtlPort>,
}

impl Bus {
    /// A port of a stream to or from the network.
    pub fn of_network(port: RtlPort) -> Bus {
        let Bus { mut lanes } = Bus::of_memory(port);
        lanes.reverse();
        Bus { lanes }
    }

    /// Whether it has words side by side.
    pub fn is_wide(&self) -> bool {
        self.lanes.len() > 1
    }

    /// A port to memory.
    pub fn of_memory(port: RtlPort) -> Bus {
        Bus { lanes: port.lanes().collect() }
    }

    /// Words as they lie on the bus, one bus after the other, with zeros behind the last.
    pub fn side_by_side(&self, words: &[u128]) -> Vec<BusWords> {
        side_by_side(words, self.lanes.len())
    }

    /// The words that it has of `words`.
    pub fn on_bus<'a>(&self, words: &'a BusWords) -> &'a [u128] {
        &words[..self.lanes.len()]
    }

    /// Puts words onto the bus.
    #[inline]
    pub fn set(&self, rtl: &mut Instance, words: &BusWords) {
        self.lanes.iter().zip(words).for_each(|(lane, word)| rtl.set(*lane, *word));
    }

    /// The words on the bus.
    #[inline]
    pub fn get(&self, rtl: &Instance) -> BusWords {
        let mut words = [0; MOST_LANES];
        words.iter_mut().zip(&self.lanes).for_each(|(word, lane)| *word = rtl.get(*lane));
        words
    }
}

/// Words as they lie on a bus of so many, one bus after the other, with zeros behind the last.
pub(crate) fn side_by_side(words: &[u128], lanes: usize) -> Vec<BusWords> {
    let side_by_side = |words: &[u128]| {
        let mut of_bus = [0; MOST_LANES];
        of_bus[..words.len()].copy_from_slice(words);
        of_bus
    };
    words.chunks(lanes).map(side_by_side).collect()
}

//! The memory with a kernel's send and receive buffers: block RAM beside it, or the card's DDR.
//!
//! ```text
//!   BRAM ── a word per cycle ───────────────────► kernel ─► aggregator
//!   DDR  ── latency, then at the port's rate ───►
//! ```
//! # Source
//! D2.8 §5.2, appendix A: buffers are in BRAM or in DDR; a kernel reads a packet word by word into the FIFO,
//! and DDR limits the rate that is reached. No figure of either memory is in the text.
//!
//! # Not modelled
//! - Several kernels at one channel of DDR: each has its own, of which an Alveo U200 has four.
//! - Banks, rows and refresh of DDR.
//! - The copies between host and card before and after a test (`sync`, appendix A): host programs of
//!   `weft apeiron` pay them (`HostSync`), and kernels alone have none.

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Clock, Time};

weft_keys::keys! {
    /// A kernel's memory.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct KernelMemory {
        /// From a request to its first word, in whole cycles.
        latency: u32, cycles_of("nic.clock");
        /// Of reading, and of writing.
        rate: BitRate;
    }
}

/// The cycles of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// Before the first word.
    pub first: u32,
    /// From the first word to behind the last.
    pub words: u64,
}

impl KernelMemory {
    /// Reads `bytes` word by word: at most one per cycle.
    pub fn read(&self, (bytes, word): (Bytes, Bytes), clock: &Clock) -> Read {
        if bytes == Bytes::ZERO {
            return Read { first: 0, words: 0 };
        }
        Read { first: self.latency, words: self.cycles((bytes, word), clock) }
    }

    /// Cycles in which it takes or gives `bytes`, by words of a size.
    pub fn cycles(&self, (bytes, word): (Bytes, Bytes), clock: &Clock) -> u64 {
        let words = bytes.div_ceil(word);
        let at_rate = clock.edges_before(Time::ZERO + self.rate.span(word * words));
        words.max(at_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a memory that is faster than the FIFO, one that does not slow it down, and reads of nothing
    /// that cost something.
    #[test]
    fn the_slower_of_memory_and_fifo_counts() {
        let clock = Clock::from_hertz(100_000_000).unwrap();
        let memory = |gigabits| KernelMemory { latency: 30, rate: BitRate::from_gigabits(gigabits) };
        let read = |gigabits, bytes| memory(gigabits).read((Bytes::new(bytes), Bytes::new(16)), &clock);
        assert_eq!(read(100, 64), Read { first: 30, words: 4 });
        assert_eq!(read(100, 65), Read { first: 30, words: 5 });
        // 80 bytes at 6.4 Gb/s are 100 ns.
        assert_eq!(read(6, 64), Read { first: 30, words: 9 });
        assert_eq!(read(1, 0), Read { first: 0, words: 0 });
    }
}

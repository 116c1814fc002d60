//! The copies of buffers between host and card, before and after kernels run: `sync` of XRT.
//!
//! # Source
//! D2.8 §5.2.2, appendix A: with buffers in DDR, a test also takes the time to load the sent buffer and to
//! read the received one. No figure is in the text.
//!
//! # Not modelled
//! Copies that are under way at once: a host program waits for each.

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span};

weft_keys::keys! {
    /// A copy of a buffer between host and card.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct HostSync {
        /// Of each copy, beside its bytes: the call, the card's DMA, and the notice of its end.
        latency: Span;
        /// Of its bytes.
        rate: BitRate;
    }
}

impl HostSync {
    /// The time of a copy of so many bytes.
    pub fn time(&self, bytes: Bytes) -> Span {
        self.latency + self.rate.span(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches bytes that cost nothing, and copies that cost their bytes alone.
    #[test]
    fn a_copy_takes_its_bytes_and_its_call() {
        let sync = HostSync { latency: Span::from_us(8), rate: BitRate::from_gigabits(96) };
        assert_eq!(sync.time(Bytes::new(12_000)), Span::from_us(9));
        assert_eq!(sync.time(Bytes::ZERO), Span::from_us(8));
    }
}

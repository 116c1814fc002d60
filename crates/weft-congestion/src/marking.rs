//! ECN marking by the length of the queue, as random early detection (RED) does.

use serde::{Deserialize, Serialize};
use weft_units::Bytes;

/// Random early detection on the queue's present length.
///
/// ```text
///  probability
///    1 ┤            ┌──────
///  max ┤          ╱ ┊
///    0 ┼────────╱───┴──────► bytes before the link
///             low  high
/// ```
/// # Source
/// Floyd and Jacobson, "Random Early Detection Gateways", 1993; on the present length as in Zhu et al.,
/// "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RedParameters {
    /// Up to here no packet is marked.
    pub low: Bytes,
    /// From here on all are.
    pub high: Bytes,
    /// Probability just below `high`, in thousandths.
    pub most: u32,
}

impl RedParameters {
    /// Whether a packet that leaves `queue` behind may be marked.
    #[inline]
    pub(crate) fn may_mark(&self, queue: Bytes) -> bool {
        queue > self.low
    }

    /// Whether a packet is marked that leaves `queue` behind. `random`: uniform over 64 bits.
    pub(crate) fn marks(&self, queue: Bytes, random: &mut dyn FnMut() -> u64) -> bool {
        if !self.may_mark(queue) {
            return false;
        }
        if queue >= self.high {
            return true;
        }
        let over = u128::from((queue - self.low).get()) * u128::from(self.most);
        let range = u128::from((self.high - self.low).get()) * 1_000;
        // The probability is over / range; `random` is uniform below 2^64.
        u128::from(random()) * range < over << 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a probability that is not linear between the thresholds.
    #[test]
    fn the_probability_rises_between_the_thresholds() {
        let red = RedParameters { low: Bytes::new(1_000), high: Bytes::new(3_000), most: 200 };
        let mut stream = weft_engine::Stream::new(1, 2, 3);
        let mut marked =
            |queue| (0..100_000).filter(|_| red.marks(Bytes::new(queue), &mut || stream.next_u64())).count();
        assert_eq!((marked(1_000), marked(3_000)), (0, 100_000));
        let (quarter, half) = (marked(1_500), marked(2_000));
        assert!(quarter.abs_diff(5_000) < 300 && half.abs_diff(10_000) < 400, "{quarter} and {half}");
    }
}

//! An algorithm of one's own: additive increase, multiplicative decrease of a rate, by marks.
//!
//! The book's page on adding an algorithm walks through it.

use serde::{Deserialize, Serialize};
use weft_congestion::{Algorithm, Arrival, Crossing, Notice, Path, Stamp};
use weft_units::{BitRate, Bytes, Span, Time};

// ANCHOR: states
/// Constants, from the machine file.
#[derive(Clone, Copy)]
struct Parameters {
    /// A longer queue marks.
    threshold: Bytes,
    /// Step of the rate for each answer without a mark.
    step: BitRate,
}

/// A flow at its source.
#[derive(Serialize, Deserialize)]
struct Flow {
    line: u64,
    rate: u64,
    next: Time,
}
// ANCHOR_END: states

struct Aimd;

// ANCHOR: algorithm
impl Algorithm for Aimd {
    type Parameters = Parameters;
    type Link = ();
    type Flow = Flow;
    type Receiver = ();

    fn cross(
        (): &mut (),
        stamp: &mut Stamp,
        crossing: &Crossing,
        (_, parameters): (&mut dyn FnMut() -> u64, &Parameters),
    ) {
        stamp.ecn |= crossing.queue > parameters.threshold;
    }

    fn open(path: &Path, now: Time, _: &Parameters) -> Flow {
        let line = path.rate.bits_per_second();
        Flow { line, rate: line, next: now }
    }

    fn earliest(flow: &Flow, _: Bytes, now: Time, _: &Parameters) -> Time {
        flow.next.max(now)
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, _: &Parameters) -> u16 {
        flow.next = flow.next.max(now) + BitRate::from_bits_per_second(flow.rate).span(bytes);
        0
    }

    fn learn(flow: &mut Flow, notice: &Notice, _: Time, parameters: &Parameters) {
        flow.rate = match notice.word {
            0 => (flow.rate + parameters.step.bits_per_second()).min(flow.line),
            _ => (flow.rate / 2).max(1_000_000),
        };
    }

    fn is_as_new(flow: &Flow, now: Time, _: &Parameters) -> bool {
        flow.rate == flow.line && flow.next <= now
    }

    fn rate(flow: &Flow, _: Time, _: &Parameters) -> BitRate {
        BitRate::from_bits_per_second(flow.rate)
    }

    fn receive((): &mut (), arrival: &Arrival, _: &Parameters) -> Option<Notice> {
        Some(Notice::answer(u64::from(arrival.stamp.ecn), 0))
    }
}
// ANCHOR_END: algorithm

// ANCHOR: link
/// Two flows on one link, step by step: each packet crosses, arrives and is answered at once. Returns their
/// rates after so many packets each.
fn share(packets: u32, parameters: &Parameters) -> [u64; 2] {
    let path = Path::new(BitRate::from_gigabits(10), Span::from_us(1), Bytes::new(1_000));
    let mut flows = [0, 1].map(|_| Aimd::open(&path, Time::ZERO, parameters));
    let mut free = Time::ZERO;
    for _ in 0..2 * packets {
        // Whoever may send first does.
        let flow = flows.iter_mut().min_by_key(|flow| flow.next).expect("two flows");
        let now = Aimd::earliest(flow, path.packet, Time::ZERO, parameters);
        let value = Aimd::send(flow, path.packet, now, parameters);
        let waits = free.saturating_since(now);
        let queue = Bytes::new(waits.as_ps() / 800);
        free = free.max(now) + path.rate.span(path.packet);
        let mut stamp = Stamp { ecn: false, value };
        let Path { rate, carries, packet: bytes, .. } = path;
        let credit_words = Bytes::ZERO;
        let crossing = Crossing { now, bytes, queue, rate, carries, credit_words, hop: 1, starved: false };
        Aimd::cross(&mut (), &mut stamp, &crossing, (&mut || 0, parameters));
        let arrival = Arrival { now, stamp, bytes: path.packet, hops: 2 };
        if let Some(notice) = Aimd::receive(&mut (), &arrival, parameters) {
            Aimd::learn(flow, &notice, now, parameters);
        }
    }
    flows.map(|flow| Aimd::rate(&flow, free, parameters).bits_per_second())
}
// ANCHOR_END: link

fn main() {
    let parameters =
        Parameters { threshold: Bytes::new(5_000), step: BitRate::from_bits_per_second(10_000_000) };
    for packets in [10, 100, 1_000, 10_000] {
        println!("{packets} packets each: {:?} b/s", share(packets, &parameters));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches flows that keep sending more than the link carries, or next to nothing.
    #[test]
    fn two_flows_share_the_link() {
        let parameters =
            Parameters { threshold: Bytes::new(5_000), step: BitRate::from_bits_per_second(10_000_000) };
        let ends: Vec<u64> = (0..50).map(|more| share(5_000 + 10 * more, &parameters).iter().sum()).collect();
        let mean = ends.iter().sum::<u64>() / 50;
        assert!((6_000_000_000..14_000_000_000).contains(&mean), "{mean} b/s of 10 Gb/s");
    }
}

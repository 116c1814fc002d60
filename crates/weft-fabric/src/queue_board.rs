//! The board of queues: all that switches publish of them, for routings that look beyond their own switch.
//!
//! ```text
//!   pulse k            pulse k+1                   interval T: all switches publish at once
//!   ──┼────────────────────┼───────────────────────────►
//!     └─ signalling time ──┼───► pulse k is known      until k+1 is known, every switch sees what k was
//!                          └─ signalling time ──┼───►
//! ```
//! A switch publishes what its routing would see before each of its ports, just before the pulse: bytes that
//! wait for or occupy the buffer behind the port. Nobody sees the sum of several pulses, or half of one.
//!
//! # Not modelled
//! Packets that carry what is published. All switches know it at the same time, however far they are.
//!
//! # Source
//! J. Kim, W. J. Dally, S. Scott, D. Abts, ISCA 2008, section 4.3, has routers that know one another's queues
//! at once (UGAL-G). That the knowledge comes at intervals and late is ours.

use serde::{Deserialize, Serialize};
use weft_engine::Pulses;
use weft_units::{PortId, Span, SwitchId, Time};

weft_keys::keys! {
    /// The times at which switches publish their queues, and at which the others know.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Publishing {
        /// Between two virtual times at which all switches publish: at least what a packet takes from one
        /// switch to the next, without its length. The first comes one interval after the beginning.
        interval: Span, within(Span::from_ps(1), Span::MAX);
        /// From there until the other switches know.
        delay: Span;
    }
}

impl Publishing {
    /// Pulses whose contents are kept: the one that is known, and those whose signals are on their way.
    fn kept(self) -> u64 {
        self.delay.as_ps().div_ceil(self.interval.as_ps()) + 1
    }
}

/// The queues that switches have published.
pub(crate) struct QueueBoard {
    /// `None`: the network has no board.
    publishing: Option<Publishing>,
    /// By switch: its first port among all; at the end the number of all.
    first_port: Vec<usize>,
    /// Bytes by pulse, in turn, and port.
    queued: Vec<u32>,
}

impl QueueBoard {
    /// No board.
    pub(crate) const NONE: QueueBoard =
        QueueBoard { publishing: None, first_port: Vec::new(), queued: Vec::new() };

    /// An empty board for switches of so many ports.
    pub(crate) fn new(publishing: Publishing, ports: impl Iterator<Item = usize>) -> QueueBoard {
        let first_port: Vec<usize> = std::iter::once(0)
            .chain(ports.scan(0, |sum, ports| {
                *sum += ports;
                Some(*sum)
            }))
            .collect();
        let all = first_port.last().copied().unwrap_or(0);
        let queued = vec![0; all * publishing.kept() as usize];
        QueueBoard { publishing: Some(publishing), first_port, queued }
    }

    /// The pulses that it needs.
    pub(crate) fn pulses(&self) -> Option<Pulses> {
        let publishing = self.publishing?;
        Some(Pulses { interval: publishing.interval, remembered: publishing.kept() })
    }

    fn ports(&self) -> usize {
        self.first_port.last().copied().unwrap_or(0)
    }

    /// Writes down what a switch has before each of its ports at the pulse at `at`.
    pub(crate) fn publish(&mut self, switch: SwitchId, at: Time, queues: impl Iterator<Item = u64>) {
        let Some(publishing) = self.publishing else { return };
        let pulse = at.as_ps() / publishing.interval.as_ps() % publishing.kept();
        let first = pulse as usize * self.ports() + self.first_port[switch.index()];
        let end = first + self.first_port[switch.index() + 1] - self.first_port[switch.index()];
        for (place, queued) in self.queued[first..end].iter_mut().zip(queues) {
            *place = u32::try_from(queued).unwrap_or(u32::MAX);
        }
    }

    /// Bytes before a port of a switch, as all switches know it at `now`; 0 where nothing is known yet.
    #[inline(never)]
    pub(crate) fn queued(&self, switch: SwitchId, port: PortId, now: Time) -> u64 {
        let Some(Publishing { interval, delay }) = self.publishing else { return 0 };
        let Some(since) = now.as_ps().checked_sub(delay.as_ps()) else { return 0 };
        let pulse = since / interval.as_ps();
        if pulse == 0 {
            return 0;
        }
        let kept = delay.as_ps().div_ceil(interval.as_ps()) + 1;
        let place = (pulse % kept) as usize * self.ports() + self.first_port[switch.index()] + port.index();
        u64::from(self.queued[place])
    }

    /// All that has been published, for a snapshot.
    pub(crate) fn contents(&self) -> Vec<u8> {
        self.queued.iter().flat_map(|queued| queued.to_le_bytes()).collect()
    }

    /// Puts back [`QueueBoard::contents`]; `false`: they are not of this network.
    pub(crate) fn restore(&mut self, contents: &[u8]) -> bool {
        let (numbers, rest) = contents.as_chunks::<4>();
        let fits = numbers.len() == self.queued.len() && rest.is_empty();
        if fits {
            self.queued = numbers.iter().map(|number| u32::from_le_bytes(*number)).collect();
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a pulse that is known too early or too late, and one that is overwritten while it is known.
    #[test]
    fn every_pulse_is_known_from_its_signalling_time_on_until_the_next_is() {
        for delay in [0, 1, 9, 10, 11, 25, 30] {
            let publishing = Publishing { interval: Span::from_ps(10), delay: Span::from_ps(delay) };
            let mut board = QueueBoard::new(publishing, [2, 0, 3].into_iter());
            for now in 0..200 {
                if now > 0 && now % 10 == 0 {
                    // Each port says the pulse's number and its own.
                    let at = Time::from_ps(now);
                    board.publish(SwitchId(0), at, [now * 10, now * 10 + 1].into_iter());
                    board.publish(SwitchId(2), at, (0..3).map(|port| now * 10 + 20 + port));
                }
                let pulse = (now as i64 - delay as i64).max(0) as u64 / 10 * 10;
                let expected = |port: u64| if pulse == 0 { 0 } else { pulse * 10 + port };
                let seen = |switch, port| board.queued(SwitchId(switch), PortId(port), Time::from_ps(now));
                assert_eq!(seen(0, 1), expected(1), "delay {delay}, at {now}");
                assert_eq!(seen(2, 2), expected(22), "delay {delay}, at {now}");
            }
        }
    }

    /// Catches contents of another network that are taken.
    #[test]
    fn contents_of_another_size_are_refused() {
        let publishing = Publishing { interval: Span::from_ps(10), delay: Span::ZERO };
        let mut board = QueueBoard::new(publishing, [2, 3].into_iter());
        assert!(board.restore(&[7; 20]));
        assert!(!board.restore(&[7; 16]) && !board.restore(&[7; 21]));
        assert_eq!(board.contents(), [7; 20]);
        assert!(QueueBoard::NONE.contents().is_empty());
    }
}

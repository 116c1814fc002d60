//! The time of a rank as far as a trace has one: computation takes time, and nothing else does.
//!
//! No reader hands on when a call began, even where a tracer wrote it. So a message of a rank is at the sum
//! of what the rank has computed before it. Where a rank has several streams, those of one core take turns in
//! the order in which they are read, and a stream that awaits an event goes on no earlier than that.

use std::collections::BTreeMap;
use weft_trace::op::{EventId, Op, SignalAt, StreamId};

/// The time of one stream, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct StreamTime {
    core: u32,
    /// The begin of its last operation.
    began: u64,
    /// The end of it.
    now: u64,
}

/// The time of the streams of one rank.
#[derive(Debug)]
pub(super) struct RankClock {
    streams: Vec<StreamTime>,
    /// The time at which each core has ended the computation that it was given.
    cores: BTreeMap<u32, u64>,
    /// Events that have happened and are not awaited yet.
    events: BTreeMap<EventId, u64>,
}

impl RankClock {
    /// That of a rank whose streams sit on these cores.
    pub(super) fn new(cores: &[u32]) -> RankClock {
        let stream = |&core| StreamTime { core, ..StreamTime::default() };
        RankClock {
            streams: cores.iter().map(stream).collect(),
            cores: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }

    /// Does the next operation of a stream; returns the time at which it begins, in picoseconds.
    pub(super) fn step(&mut self, stream: StreamId, op: &Op) -> u64 {
        // One stream alone waits for none of its own events.
        let waits = self.streams.len() > 1;
        let time = &mut self.streams[stream.index()];
        match op {
            Op::Compute { span } => {
                let free = self.cores.entry(time.core).or_default();
                time.began = time.now.max(*free);
                time.now = time.began.saturating_add(span.as_ps());
                *free = time.now;
                time.began
            }
            Op::Signal { event, at } => {
                let happens = if *at == SignalAt::Start { time.began } else { time.now };
                if waits {
                    self.events.insert(*event, happens);
                }
                happens
            }
            Op::Await { events } => {
                let happened = events.iter().filter_map(|event| self.events.remove(event));
                time.now = happened.fold(time.now, u64::max);
                time.began = time.now;
                time.began
            }
            _ => {
                time.began = time.now;
                time.began
            }
        }
    }

    /// The time at which the last stream has ended.
    pub(super) fn end(&self) -> u64 {
        self.streams.iter().map(|stream| stream.now).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::Span;

    const COMPUTE: Op = Op::Compute { span: Span::from_ps(100) };

    /// Catches streams of one core that compute at once, and those of two that do not.
    #[test]
    fn streams_of_one_core_take_turns() {
        let mut clock = RankClock::new(&[0, 0, 1]);
        let begins = [0, 1, 2].map(|stream| clock.step(StreamId(stream), &COMPUTE));
        assert_eq!((begins, clock.end()), ([0, 100, 0], 200));
    }

    /// Catches a stream that goes on before the event that it awaits, and the start taken for the end.
    #[test]
    fn events_carry_their_time() {
        for (at, begin) in [(SignalAt::Start, 100), (SignalAt::End, 200)] {
            let mut clock = RankClock::new(&[0, 1]);
            let [first, second] = [StreamId(0), StreamId(1)];
            clock.step(first, &COMPUTE);
            clock.step(first, &COMPUTE);
            clock.step(first, &Op::Signal { event: EventId(0), at });
            clock.step(second, &Op::Await { events: vec![EventId(0)] });
            assert_eq!(clock.step(second, &COMPUTE), begin);
        }
    }
}

//! A clocked server: does one thing at a time, in the order in which things come, each for a number of
//! cycles.
//!
//! ```text
//!   came ── until the clock's edge and the server is free ──► began ══ cycles ══► ended
//! ```
//! Blocks of hardware whose throughput matters are servers: they are asked for their service ahead of
//! time, and answer with times.

use serde::{Deserialize, Serialize};
use weft_units::{Clock, Span, Time};

/// A piece of work of a server, past or to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Service {
    /// The time at which the work came.
    pub came: Time,
    /// When the server began on it, at an edge of its clock.
    pub began: Time,
    /// The time at which the work was done.
    pub ended: Time,
}

/// A server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Server {
    /// The edge of its clock at which it is free.
    free: Time,
    /// Time in which it has worked or was kept busy, work to come included.
    worked: Span,
}

impl Server {
    /// Serves what comes at `came` for so many cycles of `clock`, after all that it was given before.
    #[inline]
    pub fn serve(&mut self, came: Time, cycles: u64, clock: &Clock) -> Service {
        let began = self.free.max(clock.edge_at_or_after(came));
        let ended = clock.later_edge(began, cycles);
        self.free = ended;
        self.worked = self.worked.saturating_add(ended - began);
        Service { came, began, ended }
    }

    /// Serves what comes at `came` until `ended`, as another has found, after all that it was given before.
    pub fn serve_until(&mut self, came: Time, ended: Time, clock: &Clock) -> Service {
        let began = self.free.max(clock.edge_at_or_after(came));
        let ended = ended.max(began);
        self.free = ended;
        self.worked = self.worked.saturating_add(ended - began);
        Service { came, began, ended }
    }

    /// Keeps it busy until the first edge at or after `time`, and returns that or when it is free, whichever
    /// is later.
    #[inline]
    pub fn hold(&mut self, time: Time, clock: &Clock) -> Time {
        let before = self.free;
        self.free = before.max(clock.edge_at_or_after(time));
        self.worked = self.worked.saturating_add(self.free - before);
        self.free
    }

    /// The time in which it has worked or was kept busy, work to come included.
    pub fn worked(&self) -> Span {
        self.worked
    }

    /// The time at which the server is done with all its work.
    pub fn free(&self) -> Time {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches rounding that accumulates: a million services of one cycle end at the millionth edge.
    #[test]
    fn a_busy_server_keeps_to_its_clock() {
        let clock = Clock::from_hertz(150_000_000).unwrap();
        let mut server = Server::default();
        let last = (0..1_500_000).map(|_| server.serve(Time::ZERO, 100, &clock)).last().unwrap();
        assert_eq!(last.ended, Time::from_ps(1_000_000_000_000));
        assert_eq!(server.worked(), last.ended - Time::ZERO);
        assert_eq!(server.free(), last.ended);
    }

    #[test]
    fn service_begins_at_the_next_edge_when_idle_and_behind_others_when_not() {
        let clock = Clock::from_hertz(100_000_000).unwrap();
        let ns = |ns: u64| Time::from_ps(ns * 1000);
        let mut server = Server::default();
        let service = server.serve(ns(3), 2, &clock);
        assert_eq!((service.began, service.ended), (ns(10), ns(30)));
        let service = server.serve(ns(11), 0, &clock);
        assert_eq!((service.came, service.began, service.ended), (ns(11), ns(30), ns(30)));
        let service = server.serve(ns(50), 1, &clock);
        assert_eq!((service.began, service.ended), (ns(50), ns(60)));
        assert_eq!((server.hold(ns(55), &clock), server.hold(ns(71), &clock)), (ns(60), ns(80)));
        // Idle before 10 and from 30 to 50.
        assert_eq!(server.worked(), Span::from_ns(50));
    }
}

//! End-to-end reliability of one channel: what it has sent is repeated until it is acknowledged, or its
//! user is told.
//!
//! ```text
//!   sent ──► waits for an acknowledgement ──┬─ comes ────────────────────► settled
//!     ▲                                     └─ time is up ─┬─ repeat, with a longer time
//!     └────────────────────────────────────────────────────┤
//!                                                          └─ repeated often enough ──► given up
//! ```
//! The timer is lazy: a channel has one pending, which is neither moved nor taken back when an
//! acknowledgement comes. When it fires too early it is set again; when nothing is waited for it is gone.
//! Only after a repetition, whose time was longer, may the next one be due before it: then another is set,
//! and what fires at any other time than the channel remembers is ignored.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.4 (hardware timers of the packetizer), §5.1 (retransmission when a time-out has
//! passed), §4.5 (retransmission of blocks). The text has neither times nor limits.

use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{Span, Time};

weft_keys::keys! {
    /// Time-outs and repetitions in a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct ReliabilityParameters {
        /// From sending to the first repetition.
        timeout: Span;
        /// The factor by which the time-out grows with each repetition.
        backoff: u32;
        /// Longest time-out.
        longest: Span, key("longest_timeout");
        /// Repetitions after which what is not acknowledged is given up.
        repetitions: u32;
    }
}

/// Checks that the longest time, of this key, is no shorter than the first one.
pub(crate) fn not_shorter(longest: (&'static str, Span), first: (&str, Span)) -> Result<(), Misfit> {
    if longest.1 >= first.1 {
        return Ok(());
    }
    let why = format!("the longest {} is shorter than the first one, {}", first.0, first.1);
    Err(Problem::new(why, "", format!("write at least {}", first.1)).of(longest.0))
}

impl ReliabilityParameters {
    /// Checks that the time-outs fit together.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        if self.timeout == Span::ZERO {
            let why = "a time-out of no time sends everything again and again";
            let mend = "write more than a message and its answer take, such as 50us";
            return Err(Problem::new(why, "", mend).of("timeout"));
        }
        not_shorter(("longest_timeout", self.longest), ("timeout", self.timeout))
    }

    /// How long to wait after `repeated` repetitions.
    #[inline]
    pub fn timeout_after(&self, repeated: u32) -> Span {
        if repeated == 0 { self.timeout } else { self.grown_timeout(repeated) }
    }

    #[cold]
    fn grown_timeout(&self, repeated: u32) -> Span {
        let factor = u64::from(self.backoff).checked_pow(repeated);
        let grown = factor.and_then(|factor| self.timeout.checked_mul(factor));
        grown.unwrap_or(Span::MAX).min(self.longest.max(self.timeout))
    }
}

/// The consequence of a timer that has fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// Nothing: what it was set for has been acknowledged.
    Settled,
    /// It is too early: set it again for then.
    NotBefore(Time),
    /// Repeat what was sent, and call [`Retry::sent`] when that has gone.
    Repeat,
    /// It has been repeated often enough.
    GiveUp,
}

/// The bookkeeping of one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Retry {
    /// The end of the wait for an answer to the last packet; `None`: no answer is awaited.
    deadline: Option<Time>,
    /// Repetitions of what was sent last.
    repeated: u32,
    /// The time at which the timer fires; one that fires at another time is of the past.
    timer: Option<Time>,
}

impl Retry {
    /// The channel's packet has been put on the link. Returns the time to set a timer for, unless one is
    /// pending that fires in time.
    #[inline]
    pub fn sent(&mut self, now: Time, parameters: &ReliabilityParameters) -> Option<Time> {
        let deadline = now + parameters.timeout_after(self.repeated);
        self.deadline = Some(deadline);
        if self.timer.is_some_and(|timer| timer <= deadline) {
            return None;
        }
        self.timer = Some(deadline);
        self.timer
    }

    /// It has been acknowledged, or refused: nothing is waited for.
    #[inline]
    pub fn settled(&mut self) {
        self.deadline = None;
        self.repeated = 0;
    }

    /// The other side is alive and needs time until `until`. Returns when a timer is to be set, unless one is
    /// pending that fires in time.
    pub fn put_off(&mut self, until: Time) -> Option<Time> {
        (self.deadline, self.repeated) = (Some(until), 0);
        if self.timer.is_some_and(|timer| timer <= until) {
            return None;
        }
        self.timer = Some(until);
        self.timer
    }

    /// A timer of this channel has fired.
    pub fn expired(&mut self, now: Time, parameters: &ReliabilityParameters) -> Expiry {
        if self.timer != Some(now) {
            return Expiry::Settled;
        }
        self.timer = None;
        match self.deadline {
            None => Expiry::Settled,
            Some(deadline) if deadline > now => {
                self.timer = Some(deadline);
                Expiry::NotBefore(deadline)
            }
            Some(_) if self.repeated < parameters.repetitions => {
                self.repeated += 1;
                self.deadline = None;
                Expiry::Repeat
            }
            Some(_) => {
                self.settled();
                Expiry::GiveUp
            }
        }
    }

    /// How long was waited before the last repetition.
    pub fn waited(&self, parameters: &ReliabilityParameters) -> Span {
        parameters.timeout_after(self.repeated.saturating_sub(1))
    }

    /// How often what was sent last has been repeated.
    pub fn repeated(&self) -> u32 {
        self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters() -> ReliabilityParameters {
        ReliabilityParameters {
            timeout: Span::from_us(10),
            backoff: 2,
            longest: Span::from_us(60),
            repetitions: 4,
        }
    }

    #[test]
    fn the_time_doubles_up_to_its_limit() {
        let spans =
            [0, 1, 2, 3, 4, 200].map(|repeated| parameters().timeout_after(repeated).as_ps() / 1_000_000);
        assert_eq!(spans, [10, 20, 40, 60, 60, 60]);
    }

    /// Catches a repetition too many or too few, and a channel that never gives up.
    #[test]
    fn what_is_never_acknowledged_is_repeated_and_given_up() {
        let (mut retry, mut now, mut repeats) = (Retry::default(), Time::ZERO, 0);
        let given_up = loop {
            now = retry.sent(now, &parameters()).expect("no timer is pending");
            match retry.expired(now, &parameters()) {
                Expiry::Repeat => repeats += 1,
                other => break other,
            }
        };
        assert_eq!((given_up, repeats), (Expiry::GiveUp, 4));
        assert_eq!(now, Time::ZERO + Span::from_us(10 + 20 + 40 + 60 + 60));
        assert_eq!(retry.expired(now, &parameters()), Expiry::Settled);
    }

    proptest! {
        /// Catches a channel that waits without a timer, a repetition at another time than its own, and
        /// timers that pile up: the life of a channel that is used again and again, with
        /// acknowledgements at any time.
        #[test]
        fn a_channel_is_repeated_exactly_when_its_time_is_up(
            steps in prop::collection::vec((any::<bool>(), 1u64..30), 1..200),
        ) {
            let (mut retry, mut now) = (Retry::default(), Time::ZERO);
            let mut pending: Vec<Time> = Vec::new();
            let mut waits: Option<Time> = None;
            for (acknowledged, us) in steps {
                if waits.is_none() {
                    pending.extend(retry.sent(now, &parameters()));
                    waits = Some(now + parameters().timeout_after(retry.repeated()));
                }
                now += Span::from_us(us);
                pending.sort_unstable();
                prop_assert!(pending.len() <= 4, "{pending:?}");
                while pending.first().is_some_and(|at| *at <= now) {
                    let at = pending.remove(0);
                    match retry.expired(at, &parameters()) {
                        Expiry::Settled => {}
                        Expiry::NotBefore(later) => {
                            prop_assert!(later > at);
                            pending.push(later);
                            pending.sort_unstable();
                        }
                        Expiry::Repeat | Expiry::GiveUp => {
                            prop_assert_eq!(waits.take(), Some(at));
                        }
                    }
                }
                prop_assert!(waits.is_none_or(|at| at > now), "nobody repeated it");
                if acknowledged && waits.take().is_some() {
                    retry.settled();
                }
            }
        }
    }
}

//! Power states of one direction of a link: how long it is in each, and what waking costs.
//!
//! ```text
//!   line       ▇▇▇▇▇▇▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇
//!              │     │ idle_after │              │ wake│
//!   state      active ────────────► low ─► off ──► waking ► active
//!                    │ ─── off_after ─────►│     └ told of a packet
//! ```
//! A link that has been idle for longer than `idle_after` sleeps. Nothing happens then: the next packet that
//! comes to the line finds out how long it has been idle, so that sleeping needs no events. The packet begins
//! the wake-up latency after the link was told of it. It is told when the packet's head has come to the line,
//! or, where links wake on injection, when the packet's [signal](crate::wake_signal) has come. A link that
//! has been told does not sleep until the packet has passed.
//!
//! # Not modelled
//! Credits and answers of the reverse direction wake nothing. A link that a fault turns off takes power as if
//! it were on.
//!
//! # Source
//! States and transitions as in IEEE 802.3 clause 78 (Energy-Efficient Ethernet: active, low power idle,
//! wake), with a third, off, of ours. While it wakes a link takes as much power as when it is active.

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Energy, EnergyPerBit, Power, Span, Time};

/// Power of one direction of a link: transmitter and receiver together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkPower {
    /// While it is active, and while it wakes.
    pub active: Power,
    /// On top of that, for each bit on the line: packets and framing, before the line code.
    pub per_bit: EnergyPerBit,
    /// Sleep when it is idle; `None`: it is always on.
    pub sleep: Option<SleepParameters>,
}

/// The idle time after which a link sleeps, its power then, and its wake-up latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SleepParameters {
    /// Power while it sleeps.
    pub low: Power,
    /// Idle time after which it does.
    pub idle_after: Span,
    /// From being told of a packet to the packet's head on the line.
    pub wake: Span,
    /// The deeper state; `None`: it has none.
    pub off: Option<OffParameters>,
    /// Wake-up on injection: the time that the signal ahead of a packet takes through a switch. `None`: a
    /// link is told by the packet itself.
    #[serde(default)]
    pub signal: Option<Span>,
}

impl LinkPower {
    /// The report of a link that never sleeps, after `time` with `bytes` on the line.
    pub fn always_on(&self, time: Span, bytes: Bytes) -> PowerReport {
        let energy = (self.per_bit.of(bytes) + self.active.over(time)).rounded();
        PowerReport { active: time, energy, ..PowerReport::default() }
    }
}

impl SleepParameters {
    /// The longest wake-up, from the deepest state.
    pub(crate) fn longest_wake(&self) -> Span {
        self.off.map_or(self.wake, |off| off.wake.max(self.wake))
    }
}

/// The state below low power.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OffParameters {
    /// Power in it.
    pub power: Power,
    /// Idle time after which the link is off, longer than that after which it sleeps.
    pub off_after: Span,
    /// As `wake`, from this state.
    pub wake: Span,
}

weft_units::counters! {
    /// Time of a link in each state, and energy, since the counters were last reset.
    pub struct PowerReport {
        /// Time in which it was active: sending, or idle and not asleep.
        pub active: Span,
        /// Time in low power.
        pub low: Span,
        /// Time off.
        pub off: Span,
        /// Time in which it woke.
        pub waking: Span,
        /// Wake-ups that began.
        pub wake_ups: u64,
        /// Energy of all of it, bits included, rounded down to a picojoule.
        pub energy: Energy,
    }
}

impl PowerReport {
    /// Time in all states.
    pub fn time(&self) -> Span {
        self.active + self.low + self.off + self.waking
    }
}

/// The time from one wake-up to the next: waking, active, asleep.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct WakeCycle {
    /// Time at which it begins to wake.
    from: Time,
    /// Time at which it is awake.
    awake: Time,
    /// Time from which its line is idle.
    idle: Time,
    /// Time at which the next wake-up begins; [`Time::NEVER`]: none has yet.
    until: Time,
}

/// The power states of one direction.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PowerState {
    power: LinkPower,
    /// Time at which the counters were last reset.
    since: Time,
    /// Cycles that are over and settled; their energy is counted at the end.
    settled: PowerReport,
    /// Those that are not, in order. A packet is granted its output some time before its head comes to the
    /// line, so that a wake-up may lie in the future: more than one only where that time is long.
    cycles: Vec<WakeCycle>,
    /// Wake-ups since the counters were last reset.
    wake_ups: u64,
}

impl PowerState {
    pub(crate) fn new(power: LinkPower) -> PowerState {
        let first = WakeCycle { from: Time::ZERO, awake: Time::ZERO, idle: Time::ZERO, until: Time::NEVER };
        let settled = PowerReport::default();
        PowerState { power, since: Time::ZERO, settled, cycles: vec![first], wake_ups: 0 }
    }

    /// A packet whose head comes to the line at `head`, and its signal at `told`: the first instant at which
    /// the packet may begin.
    pub(crate) fn wake(&mut self, head: Time, told: Time) -> Time {
        let (Some(sleep), Some(last)) = (self.power.sleep, self.cycles.last_mut()) else { return head };
        let told = if sleep.signal.is_some() { told } else { head };
        let idle = told.saturating_since(last.idle);
        if idle <= sleep.idle_after {
            return head.max(last.awake);
        }
        let latency = match sleep.off {
            Some(off) if idle > off.off_after => off.wake,
            _ => sleep.wake,
        };
        last.until = told;
        let awake = told + latency;
        self.cycles.push(WakeCycle { from: told, awake, idle: awake, until: Time::NEVER });
        self.wake_ups += 1;
        head.max(awake)
    }

    /// The line will be idle from `idle` on. Nobody will ask for what was before `now`.
    pub(crate) fn sent(&mut self, idle: Time, now: Time) {
        if let Some(last) = self.cycles.last_mut() {
            last.idle = last.idle.max(idle);
        }
        if self.cycles.len() > 1 {
            self.settle(now);
        }
    }

    /// Adds up the cycles that have ended by `now`.
    fn settle(&mut self, now: Time) {
        let over = self.cycles.iter().take_while(|cycle| cycle.until <= now).count();
        for cycle in self.cycles.drain(..over) {
            cycle.add_to(&mut self.settled, &self.power, (self.since, now));
        }
    }

    /// Begins to count anew at `now`.
    pub(crate) fn reset(&mut self, now: Time) {
        self.settle(now);
        self.settled = PowerReport::default();
        self.since = now;
        self.wake_ups = 0;
    }

    /// The times until `now`, with the energy of `bytes` on the line.
    pub(crate) fn report(&self, now: Time, bytes: Bytes) -> PowerReport {
        let power = &self.power;
        let mut report = PowerReport { wake_ups: self.wake_ups, ..self.settled };
        for cycle in &self.cycles {
            cycle.add_to(&mut report, power, (self.since, now));
        }
        let mut energy = power.per_bit.of(bytes) + power.active.over(report.active + report.waking);
        if let Some(sleep) = power.sleep {
            energy = energy + sleep.low.over(report.low);
            energy = energy + sleep.off.map_or(Power::ZERO, |off| off.power).over(report.off);
        }
        report.energy = energy.rounded();
        report
    }
}

impl WakeCycle {
    /// Adds its times within a window.
    fn add_to(&self, report: &mut PowerReport, power: &LinkPower, (since, now): (Time, Time)) {
        let within = |from: Time, until: Time| {
            let (from, until) = (from.max(self.from).max(since), until.min(self.until).min(now));
            until.saturating_since(from)
        };
        report.waking += within(self.from, self.awake);
        let Some(sleep) = power.sleep else {
            report.active += within(self.awake, Time::NEVER);
            return;
        };
        let low = self.idle.saturating_add(sleep.idle_after);
        let off = sleep.off.map_or(Time::NEVER, |off| self.idle.saturating_add(off.off_after));
        report.active += within(self.awake, low);
        report.low += within(low, off);
        report.off += within(off, Time::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a time that is counted twice or not at all, a wake-up too many, and energy that is not
        /// power by time and bits by energy: against a table of every picosecond.
        #[test]
        fn times_add_up_and_energy_is_power_by_time(
            packets in prop::collection::vec((0u64..60, 1u64..20), 0..12),
            (idle_after, off_more, wake, wake_more) in (0u64..20, 1u64..20, 0u64..9, 0u64..9),
            (deep, reset, rest) in (any::<bool>(), 0usize..12, 0u64..80),
        ) {
            let ps = Span::from_ps;
            let off = OffParameters {
                power: Power::from_uw(3),
                off_after: ps(idle_after + off_more),
                wake: ps(wake + wake_more),
            };
            let sleep = SleepParameters {
                low: Power::from_uw(50_000),
                idle_after: ps(idle_after),
                wake: ps(wake),
                off: deep.then_some(off),
                signal: None,
            };
            let (active, per_bit) = (Power::from_uw(7_000_000), EnergyPerBit::from_fj(123));
            let power = LinkPower { active, per_bit, sleep: Some(sleep) };
            let mut state = PowerState::new(power);
            // 0: active, 1: low, 2: off, 3: waking.
            let mut table: Vec<usize> = Vec::new();
            let (mut wake_ups, mut since) = (0, 0);
            let state_after = |idle: u64| match idle {
                idle if deep && idle >= idle_after + off_more => 2,
                idle if idle >= idle_after => 1,
                _ => 0,
            };
            for (number, (gap, length)) in packets.into_iter().enumerate() {
                if number == reset {
                    since = table.len() as u64;
                    state.reset(Time::from_ps(since));
                    wake_ups = 0;
                }
                let idle_from = table.len() as u64;
                table.extend((0..gap).map(state_after));
                let told = Time::from_ps(table.len() as u64);
                if gap > idle_after {
                    let from_off = deep && gap > idle_after + off_more;
                    table.extend(vec![3; (if from_off { wake + wake_more } else { wake }) as usize]);
                    wake_ups += 1;
                }
                let begins = state.wake(told, Time::ZERO);
                prop_assert_eq!(begins.as_ps(), table.len() as u64);
                table.extend(vec![0; length as usize]);
                state.sent(Time::from_ps(table.len() as u64), Time::from_ps(idle_from));
            }
            table.extend((0..rest).map(state_after));
            let now = Time::from_ps(table.len() as u64);
            let report = state.report(now, Bytes::new(77));
            let count = |of| table[since as usize..].iter().filter(|&&state| state == of).count() as u64;
            prop_assert_eq!(report.time(), now - Time::from_ps(since));
            let found = [report.active, report.low, report.off, report.waking].map(Span::as_ps);
            prop_assert_eq!(found, [0, 1, 2, 3].map(count));
            prop_assert_eq!(report.wake_ups, wake_ups);
            let attojoules = u128::from(count(0) + count(3)) * 7_000_000
                + u128::from(count(1)) * 50_000
                + u128::from(count(2)) * 3
                + 77 * 8 * 123_000;
            prop_assert_eq!(u128::from(report.energy.as_pj()), attojoules / 1_000_000);
        }
    }
}

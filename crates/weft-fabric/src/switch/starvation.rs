//! Starvation avoidance: a request whose input is busy whenever its output is free gets its turn.
//!
//! ```text
//!   input 4  vc 0  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   one packet after the other to output 1, which nobody else wants
//!            vc 1  ·······················  wants output 3:
//!   output 3       ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇     from input 0; whenever it is free, input 4 is busy
//! ```
//! An input reads one packet at a time, and a free output takes any request that can go. So an output could
//! pass over a request for as long as others have packets: round robin is fair only to requests that can go.
//! An output counts how many packets it has granted to others while only a busy input kept the request from
//! going. From [`MAX_PASSED_OVER`] on the output reserves that input. A reserved input begins no packet to
//! another output, and the request is the next to be granted. Its credit is there, and output and input
//! become free within the time of one packet each: the reservation ends without waiting for anybody who waits
//! for it.
//!
//! Who is passed over depends on the arbiter. Round robin, random choice and age pass over any request (age:
//! the oldest of those whose inputs are busy). Strict priority passes over those of at least the priority of
//! the one that goes, and a grant of a higher one ends the reservation: a low priority never holds up a
//! higher. Weighted round robin passes over those of the same class alone, and its reservations outlast the
//! turns of other classes. iSLIP has no need of it: it matches inputs and outputs together.
//!
//! # Source
//! None: the documents name no rule. The number is an assumption.

use super::port::SwitchState;
use crate::channel::ChannelNumbers;
use serde::{Deserialize, Serialize};
use weft_units::Time;

/// Packets that an output grants to others before it reserves the input of a request that it passes over.
const MAX_PASSED_OVER: u8 = 16;

/// A request that an output has passed over because its input was busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct PassedOver {
    /// The request: it is at the head of its queue, and wants this output.
    pub(super) request: u16,
    /// Packets of other requests that the output has granted since.
    times: u8,
    /// Whether the request's input is reserved for it.
    reserves_input: bool,
}

/// A grant, as starvation avoidance sees it.
pub(super) struct Grant {
    pub(super) output: usize,
    /// The request that is granted.
    pub(super) request: usize,
    /// A request that could have gone but for its busy input.
    pub(super) passed_over: Option<usize>,
}

/// The passed-over requests of a switch, and the inputs that are reserved for them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Starvation {
    /// By output.
    passed_over: Box<[Option<PassedOver>]>,
    /// By input: the output that it is reserved for.
    reserved_for: Box<[Option<u16>]>,
    /// Inputs that are reserved.
    reserved: u16,
}

impl Starvation {
    /// Nobody has been passed over in a switch of `ports` ports.
    pub(super) fn new(ports: usize) -> Starvation {
        Starvation {
            passed_over: vec![None; ports].into(),
            reserved_for: vec![None; ports].into(),
            reserved: 0,
        }
    }

    /// The request that each output has passed over.
    pub(super) fn all_passed_over(&self) -> &[Option<PassedOver>] {
        &self.passed_over
    }

    /// The state of a snapshot. `None`: two outputs reserve the same input.
    pub(super) fn resume(
        passed_over: Vec<Option<PassedOver>>,
        channels: ChannelNumbers,
    ) -> Option<Starvation> {
        let mut starvation = Starvation::new(passed_over.len());
        for (output, entry) in passed_over.iter().enumerate() {
            if let Some(PassedOver { request, reserves_input: true, .. }) = entry {
                let reserved_for = starvation.reserved_for.get_mut(channels.port((*request).into()))?;
                if reserved_for.replace(output as u16).is_some() {
                    return None;
                }
                starvation.reserved += 1;
            }
        }
        starvation.passed_over = passed_over.into();
        Some(starvation)
    }

    /// The request that an output has passed over.
    #[inline]
    pub(super) fn passed_over(&self, output: usize) -> Option<usize> {
        self.passed_over[output].map(|entry| usize::from(entry.request))
    }

    /// The time at which an input that is reserved for another output may be able to send to `output`.
    /// `None`: the input is not reserved for another.
    #[inline(always)]
    pub(super) fn reserved_until(&self, input: usize, output: usize, state: &SwitchState) -> Option<Time> {
        if self.reserved == 0 {
            return None;
        }
        let holder = self.reserved_for[input].map(usize::from).filter(|holder| *holder != output)?;
        Some(state.look_at[holder]).filter(|look_at| *look_at != Time::NEVER)
    }

    /// Counts a grant. Returns the request that the output must grant next: it has been passed over too
    /// often, has credit, and its input is now reserved.
    pub(super) fn count(
        &mut self,
        grant: Grant,
        channels: ChannelNumbers,
        has_credit: impl FnOnce(usize) -> bool,
    ) -> Option<u16> {
        let Grant { output, request, passed_over } = grant;
        let entry = &mut self.passed_over[output];
        match entry {
            Some(served) if usize::from(served.request) == request => {
                let reserves_input = served.reserves_input;
                *entry = None;
                if reserves_input {
                    self.release_input(channels.port(request));
                }
                return None;
            }
            Some(entry) => entry.times = entry.times.saturating_add(u8::from(passed_over.is_some())),
            None => {
                *entry = passed_over.map(|request| PassedOver {
                    request: request as u16,
                    times: 1,
                    reserves_input: false,
                });
            }
        }
        let entry = entry.as_mut().filter(|entry| entry.times >= MAX_PASSED_OVER)?;
        let (request, input) = (entry.request, channels.port(entry.request.into()));
        if !has_credit(request.into()) {
            if std::mem::take(&mut entry.reserves_input) {
                self.release_input(input);
            }
            return None;
        }
        if self.reserved_for[input].is_none() {
            entry.reserves_input = true;
            self.reserve_input(input, output);
        }
        self.passed_over[output].filter(|entry| entry.reserves_input).map(|entry| entry.request)
    }

    /// An output gives up the input that it has reserved, if it has; it goes on counting.
    pub(super) fn give_up_input(&mut self, output: usize, channels: ChannelNumbers) {
        if let Some(entry) = &mut self.passed_over[output]
            && std::mem::take(&mut entry.reserves_input)
        {
            let input = channels.port(entry.request.into());
            self.release_input(input);
        }
    }

    /// A request of an output is there no more.
    pub(super) fn forget(&mut self, output: usize, request: usize, channels: ChannelNumbers) {
        if self.passed_over(output) == Some(request) {
            self.give_up_input(output, channels);
            self.passed_over[output] = None;
        }
    }

    fn reserve_input(&mut self, input: usize, output: usize) {
        self.reserved_for[input] = Some(output as u16);
        self.reserved += 1;
    }

    fn release_input(&mut self, input: usize) {
        self.reserved_for[input] = None;
        self.reserved -= 1;
    }
}

//! Processes: each has one call into the library at a time, and in blocking mode one message.

use super::descriptor::Descriptor;
use super::parameters::ApenetxParameters;
use super::part::CardPart;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Span, Time};

/// The side of a process that sends.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Process {
    /// The time at which its last call is over.
    free: Time,
    /// Whether a message of it is under way that it waits for.
    blocked: bool,
    /// Messages that wait for that.
    waiting: VecDeque<Descriptor>,
}

/// The processes of an endpoint, by virtual interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Processes {
    processes: Vec<Process>,
    waiting: usize,
    worked: Span,
}

/// A call into the library.
pub(super) struct Call {
    pub descriptor: Descriptor,
    /// The time at which it begins.
    pub began: Time,
    /// The time of the store to the card.
    pub stores: Time,
}

impl Processes {
    fn of(&mut self, interface: u16) -> &mut Process {
        let index = usize::from(interface);
        if index >= self.processes.len() {
            self.processes.resize_with(index + 1, Process::default);
        }
        &mut self.processes[index]
    }

    /// A process wants to send at `at`. `None`: it waits for the message before.
    #[inline]
    pub fn call(&mut self, descriptor: Descriptor, at: Time, parameters: &ApenetxParameters) -> Option<Call> {
        let card = &parameters.host_to_card;
        let process = self.of(descriptor.interface);
        if process.blocked {
            process.waiting.push_back(descriptor);
            self.waiting += 1;
            return None;
        }
        let began = at.max(process.free);
        let (_, before) = parameters.before_send(descriptor.source, descriptor.bytes);
        let steps = parameters.software.send_steps(card.fast);
        let stores = steps.iter().fold(began + before, |at, (_, takes)| at + *takes);
        process.free = stores + parameters.software.out_of_kernel(card.fast);
        process.blocked = card.blocking;
        let worked = process.free - began;
        self.worked = self.worked.saturating_add(worked);
        Some(Call { descriptor, began, stores })
    }

    /// A process sees at `seen` that its message has left. Returns the next message that has waited for that,
    /// which it sends then.
    pub fn left(&mut self, interface: u16, seen: Time, parameters: &ApenetxParameters) -> Option<Call> {
        let fast = parameters.host_to_card.fast;
        let process = self.of(interface);
        if !std::mem::take(&mut process.blocked) {
            return None;
        }
        process.free = process.free.max(seen + parameters.software.out_of_kernel(fast));
        let descriptor = process.waiting.pop_front()?;
        self.waiting -= 1;
        self.call(descriptor, seen, parameters)
    }

    /// Messages that wait for others to leave.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The time that calls have taken.
    pub fn worked(&self) -> Span {
        self.worked
    }
}

impl Call {
    /// The steps of the call, with their ends.
    pub fn steps(
        &self,
        parameters: &ApenetxParameters,
    ) -> impl Iterator<Item = (CardPart, Time, Time)> + use<> {
        let mut at = self.began;
        let before = parameters.before_send(self.descriptor.source, self.descriptor.bytes);
        let steps = parameters.software.send_steps(parameters.host_to_card.fast);
        [before].into_iter().chain(steps).filter(|(_, takes)| *takes > Span::ZERO).map(
            move |(part, takes)| {
                let began = at;
                at += takes;
                (part, began, at)
            },
        )
    }
}

//! Names for the costs of the [protocol](crate::Protocol), to account for the time that messaging takes.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use weft_units::{Bytes, Span};

/// A task of the processor, when messaging takes its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Work {
    /// Starting a send.
    SendCall,
    /// Posting a receive.
    ReceiveCall,
    /// A call that waits, the wait itself aside.
    WaitCall,
    /// Starting a collective.
    CollectiveCall,
    /// Taking an arrived message from the interface.
    ReceiveMessage,
    /// Posting a control message of the rendezvous.
    ControlSend,
    /// Taking an arrived control message.
    ControlReceive,
    /// Handing announced data to the interface.
    DataSend,
    /// Looking at posted receives or unexpected messages.
    Matching,
    /// Copying an eager message into the interface.
    SendCopy,
    /// Copying an eager message out of the interface.
    ReceiveCopy,
    /// Copying within memory.
    MemoryCopy,
    /// Copies and reductions between the rounds of a collective.
    CollectiveWork,
    /// Of a real rank: looking in vain for what the interface has.
    Poll,
    /// Of a real rank: a look at the clock.
    ClockRead,
    /// Of a real rank: in a barrier of the process manager.
    ProcessManager,
    /// A step of a collective that sends and receives in one call.
    SendrecvCall,
    /// Allocating a collective's temporary buffer.
    TemporaryBuffer,
    /// Handing a collective to the interface.
    AcceleratedCall,
}

impl Work {
    /// All, by number.
    const ALL: [Work; 19] = [
        Work::SendCall,
        Work::ReceiveCall,
        Work::WaitCall,
        Work::CollectiveCall,
        Work::ReceiveMessage,
        Work::ControlSend,
        Work::ControlReceive,
        Work::DataSend,
        Work::Matching,
        Work::SendCopy,
        Work::ReceiveCopy,
        Work::MemoryCopy,
        Work::CollectiveWork,
        Work::Poll,
        Work::ClockRead,
        Work::ProcessManager,
        Work::SendrecvCall,
        Work::TemporaryBuffer,
        Work::AcceleratedCall,
    ];

    /// The number of the task, for devices.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The work of that number.
    pub fn of(number: u32) -> Option<Work> {
        Work::ALL.get(number as usize).copied()
    }

    /// The name of the task in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Work::SendCall => "send call",
            Work::ReceiveCall => "receive call",
            Work::WaitCall => "wait call",
            Work::CollectiveCall => "collective call",
            Work::ReceiveMessage => "receive message",
            Work::ControlSend => "control send",
            Work::ControlReceive => "control receive",
            Work::DataSend => "data send",
            Work::Matching => "matching",
            Work::SendCopy => "copy in",
            Work::ReceiveCopy => "copy out",
            Work::MemoryCopy => "memory copy",
            Work::CollectiveWork => "copies and reductions",
            Work::Poll => "poll",
            Work::ClockRead => "clock read",
            Work::ProcessManager => "process manager",
            Work::SendrecvCall => "sendrecv call",
            Work::TemporaryBuffer => "temporary buffer",
            Work::AcceleratedCall => "accelerated call",
        }
    }
}

/// Memory that the processor works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InMemory {
    /// Read and written in all.
    pub moved: Bytes,
    /// How long that takes the processor by itself.
    pub alone: Span,
}

impl AddAssign for InMemory {
    fn add_assign(&mut self, more: InMemory) {
        self.moved = Bytes::new(self.moved.get().saturating_add(more.moved.get()));
        self.alone += more.alone;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a list in another order than the numbers.
    #[test]
    fn numbers_read_back_as_their_work() {
        for (number, work) in (0..).zip(Work::ALL) {
            assert_eq!((work.number(), Work::of(number)), (number, Some(work)));
        }
        assert_eq!(Work::of(Work::ALL.len() as u32), None);
    }
}

//! What messaging's time goes into: a name for each cost of the [protocol](crate::Protocol).

use serde::{Deserialize, Serialize};

/// What the processor does when messaging takes it.
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
}

impl Work {
    /// Its name in reports.
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
        }
    }
}

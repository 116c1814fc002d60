//! The parts of the interface, of its software and of its port that a message passes.

use serde::{Deserialize, Serialize};

/// A part that works on messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum CardPart {
    /// LibQCM packs a transmission request.
    Library,
    /// Into the kernel and back.
    SystemCall,
    /// The driver: a descriptor on the way out, a completion on the way in.
    Driver,
    /// Between the memory of the kernel and that of a process.
    Copy,
    /// The process waits until the message before has left, in blocking mode.
    Blocking,
    /// A store across PCIe: a doorbell, or the line of a fast send.
    Doorbell,
    /// The card reads descriptors.
    DescriptorFetch,
    /// The card reads the data.
    PayloadRead,
    /// The module from the host to the network.
    HostToCard,
    /// Packets take turns on the way into the network.
    Transmit,
    /// The module from the network to the host.
    CardToHost,
    /// The card writes the data.
    PayloadWrite,
    /// The card writes the completion.
    CompletionWrite,
    /// From the card's interrupt to the driver's handler.
    Interrupt,
    /// The scheduler wakes the process that sleeps in the driver.
    ContextSwitch,
    /// The process polls for its completion.
    Polling,
    /// The process finds the buffer of an entry of its queue, and frees the entry.
    QueueEntry,
    /// A copy between the memory of a GPU and that of its host.
    GpuCopy,
    /// The memory of a GPU is pinned and locked.
    GpuLock,
}

impl CardPart {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CardPart::Library => "LibQCM",
            CardPart::SystemCall => "system call",
            CardPart::Driver => "driver",
            CardPart::Copy => "kernel copy",
            CardPart::Blocking => "end of transmission",
            CardPart::Doorbell => "doorbell",
            CardPart::DescriptorFetch => "descriptor fetch",
            CardPart::PayloadRead => "payload read",
            CardPart::HostToCard => "host to card",
            CardPart::Transmit => "transmit",
            CardPart::CardToHost => "card to host",
            CardPart::PayloadWrite => "payload write",
            CardPart::CompletionWrite => "completion write",
            CardPart::Interrupt => "interrupt",
            CardPart::ContextSwitch => "context switch",
            CardPart::Polling => "completion polling",
            CardPart::QueueEntry => "queue entry",
            CardPart::GpuCopy => "gpu copy",
            CardPart::GpuLock => "gpu lock",
        }
    }

    /// Whether a processor does it.
    pub const fn is_software(self) -> bool {
        matches!(
            self,
            CardPart::Library
                | CardPart::SystemCall
                | CardPart::Driver
                | CardPart::Copy
                | CardPart::Interrupt
                | CardPart::ContextSwitch
                | CardPart::QueueEntry
                | CardPart::GpuCopy
                | CardPart::GpuLock
        )
    }
}

//! The parts of the interface, of its software and of its port that a message passes.

use crate::block::{Block, block};

/// A part that works on messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// The process searches the completions of all its buffers.
    Search,
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
    /// The part in reports.
    pub const fn block(self) -> Block {
        match self {
            CardPart::Library => block!(Software "LibQCM"),
            CardPart::SystemCall => block!(Software "system call"),
            CardPart::Driver => block!(Software "driver"),
            CardPart::Copy => block!(Software "kernel copy"),
            CardPart::Blocking => block!(Logic "end of transmission"),
            CardPart::Doorbell => block!(Logic "doorbell"),
            CardPart::DescriptorFetch => block!(Logic "descriptor fetch"),
            CardPart::PayloadRead => block!(Logic "payload read"),
            CardPart::HostToCard => block!(Logic "host to card"),
            CardPart::Transmit => block!(Logic "transmit"),
            CardPart::CardToHost => block!(Logic "card to host"),
            CardPart::PayloadWrite => block!(Logic "payload write"),
            CardPart::CompletionWrite => block!(Logic "completion write"),
            CardPart::Interrupt => block!(Software "interrupt"),
            CardPart::ContextSwitch => block!(Software "context switch"),
            CardPart::Search => block!(Software "completion search"),
            CardPart::Polling => block!(Logic "completion polling"),
            CardPart::QueueEntry => block!(Software "queue entry"),
            CardPart::GpuCopy => block!(Software "gpu copy"),
            CardPart::GpuLock => block!(Software "gpu lock"),
        }
    }
}

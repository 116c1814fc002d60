//! Capabilities: parts of an interface that a host may use beside messages, where the interface has them.
//!
//! ```text
//!   host ── capabilities() ──► Capabilities ── accelerator() ──► None, or a dyn AllreduceAccelerator
//! ```
//! Each is a small trait in a file of its own. An interface implements those that it has and hands itself out
//! in [`Capabilities`]; a host asks for the one it wants, and has another way where there is none.

mod accelerator;
mod host_memory;
mod mailboxes;
mod quiet_time;
mod registers;

pub use accelerator::AllreduceAccelerator;
pub use host_memory::HostMemory;
pub use mailboxes::Mailboxes;
pub use quiet_time::QuietTime;
pub use registers::{RegisterAccess, RegisterError};

/// The capabilities of an interface, while its host is called: none by default.
pub trait Capabilities {
    /// Whether the interface sends messages for a [group](weft_fabric::MulticastGroup).
    fn multicasts(&mut self) -> bool {
        false
    }

    /// The host's memory, where the channel that cores and interface share is modelled.
    fn memory(&mut self) -> Option<&mut dyn HostMemory> {
        None
    }

    /// The queues of virtual interfaces that messages wait in.
    fn mailboxes(&mut self) -> Option<&mut dyn Mailboxes> {
        None
    }

    /// The interface's knowledge of when the next message can come.
    fn quiet_time(&mut self) -> Option<&mut dyn QuietTime> {
        None
    }

    /// The unit that reduces vectors without the processors.
    fn accelerator(&mut self) -> Option<&mut dyn AllreduceAccelerator> {
        None
    }

    /// The registers that software reads and writes.
    fn registers(&mut self) -> Option<&mut dyn RegisterAccess> {
        None
    }
}

/// An interface without capabilities.
pub struct NoCapabilities;

impl Capabilities for NoCapabilities {}

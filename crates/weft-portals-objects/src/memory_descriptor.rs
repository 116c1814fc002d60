//! Memory descriptors: the initiator's side of an operation.

use crate::handle::{CountingHandle, QueueHandle};
use crate::memory::Region;
use serde::{Deserialize, Serialize};

/// Options of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DescriptorOptions {
    /// `PTL_MD_EVENT_SUCCESS_DISABLE`: full events only of what failed.
    pub no_success_events: bool,
    /// `PTL_MD_EVENT_SEND_DISABLE`: no full event of what has been sent.
    pub no_send_events: bool,
    /// `PTL_MD_EVENT_CT_SEND`.
    pub counts_sends: bool,
    /// `PTL_MD_EVENT_CT_REPLY`.
    pub counts_replies: bool,
    /// `PTL_MD_EVENT_CT_ACK`.
    pub counts_acknowledgements: bool,
    /// `PTL_MD_EVENT_CT_BYTES`: counts bytes, not operations.
    pub counts_bytes: bool,
}

/// A memory descriptor (`ptl_md_t`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryDescriptor {
    /// The memory.
    pub region: Region,
    /// Options.
    pub options: DescriptorOptions,
    /// The queue of full events.
    pub queue: Option<QueueHandle>,
    /// The counting event.
    pub counting: Option<CountingHandle>,
}

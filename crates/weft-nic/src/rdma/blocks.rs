//! The parts of the RDMA engine that reports name.

use crate::block::{Block, block};

/// The channels of a page of the send unit (TR-488 §4.5): one must be free.
pub const RDMA_CHANNEL: Block = block!(Logic "rdma channel", waits for "a channel");
/// The mailbox of the send unit, for requests of reads: TR-488 §4.5.1.
pub const RDMA_MAILBOX: Block = block!(Logic "rdma mailbox");
/// The descriptors of a process in on-chip memory (D1.4 §8): a context must be free for the first.
pub const DESCRIPTOR_CHANNEL: Block = block!(Logic "descriptor channel", waits for "a context");
/// The allocation of a context of the send unit, up to the first read of memory: D1.4 §8.2.
pub const SOURCE_CONTEXT: Block = block!(Logic "source context");
/// The blocks that a channel of the send unit may have outstanding: one must be acknowledged.
pub const OUTSTANDING_BLOCK: Block = block!(Logic "outstanding blocks", waits for "outstanding blocks");
/// The send unit of TR-488 §4.5.
pub const RDMA_SEND: Block = block!(Pace "rdma send");
/// The receive unit of TR-488 §4.5.
pub const RDMA_RECEIVE: Block = block!(Logic "rdma receive");

//! Messages between interfaces: a request, and its response.

use crate::atomic::{AtomicOperation, DataType};
use crate::error::Outcome;
use crate::match_list::ListKind;
use serde::{Deserialize, Serialize};

/// A process: node and process, or a rank and 0 where addressing is logical.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ProcessId {
    /// `nid`, or `rank`.
    pub nid: u32,
    /// `pid`.
    pub pid: u32,
}

impl ProcessId {
    /// Stands for any number, in either field of a pattern.
    pub const ANY: u32 = u32::MAX;

    /// Whether the process is one of those that `pattern` names.
    pub fn is_of(self, pattern: ProcessId) -> bool {
        let agrees = |field, wanted| wanted == ProcessId::ANY || wanted == field;
        agrees(self.nid, pattern.nid) && agrees(self.pid, pattern.pid)
    }
}

/// The one who began an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Initiator {
    /// The process.
    pub process: ProcessId,
    /// The user that the process is of.
    pub user: u32,
}

/// The action of a request at its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Writes the data.
    Put,
    /// Reads.
    Get,
    /// Updates element by element.
    Atomic(AtomicOperation, DataType),
    /// The same, and returns what was there before. Swaps are of this kind.
    FetchAtomic(AtomicOperation, DataType),
}

/// The acknowledgement that the initiator wants of a put or atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Acknowledgement {
    /// `PTL_NO_ACK_REQ`.
    #[default]
    None,
    /// `PTL_CT_ACK_REQ`: counted.
    Counted,
    /// `PTL_OC_ACK_REQ`: counted, without the bytes that were moved.
    Completed,
    /// `PTL_ACK_REQ`: a full event as well.
    Full,
}

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The initiator.
    pub initiator: Initiator,
    /// The action at the target.
    pub action: Action,
    /// The index of the portal table.
    pub portal: u32,
    /// Match bits.
    pub match_bits: u64,
    /// Offset at the target.
    pub remote_offset: u64,
    /// Bytes.
    pub length: u64,
    /// A word for the target's event.
    pub header_data: u64,
}

/// A request on its way to a target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The header.
    pub header: Header,
    /// The initiator's number for the operation, if it waits for a response.
    pub operation: Option<u32>,
    /// The bytes of a put or atomic; of a swap that compares, the operand after them.
    pub data: Vec<u8>,
    /// The operand of a swap that compares or masks.
    pub operand: Vec<u8>,
}

/// The response to a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Response {
    /// The initiator's number for the operation.
    pub operation: u32,
    /// The outcome.
    pub outcome: Outcome,
    /// Bytes that were moved.
    pub moved: u64,
    /// The offset in the entry of the first of them.
    pub remote_offset: u64,
    /// The list on which the message was matched.
    pub list: ListKind,
    /// Whether the entry disables acknowledgements: nobody is told of this one.
    pub silent: bool,
    /// The bytes of a get, or what was there before an atomic operation.
    pub data: Vec<u8>,
}

/// A message for another interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OutgoingRequest {
    /// A request to a target.
    Request(ProcessId, Request),
    /// A response to an initiator.
    Response(ProcessId, Response),
}

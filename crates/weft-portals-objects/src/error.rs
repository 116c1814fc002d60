//! Failures of calls, and of operations at their target.

use serde::{Deserialize, Serialize};

/// A call that is refused. The names are those of the standard's return codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortalsError {
    /// `PTL_ARG_INVALID`.
    #[error("an argument is not valid: a handle of nothing, or a place beyond its region")]
    ArgumentInvalid,
    /// `PTL_IN_USE`.
    #[error("the object is in use: an entry still has headers of messages that nobody has taken")]
    InUse,
    /// `PTL_NO_SPACE`.
    #[error("the interface has granted no more of these; ask for higher limits")]
    NoSpace,
    /// `PTL_LIST_TOO_LONG`.
    #[error("the list holds as many entries as the interface has granted; ask for a higher limit")]
    ListTooLong,
    /// `PTL_PT_FULL`.
    #[error("the portal table has no free entry")]
    TableFull,
    /// `PTL_PT_IN_USE`.
    #[error("the portal table entry still has list entries; unlink them first")]
    TableEntryInUse,
    /// `PTL_PT_EQ_NEEDED`.
    #[error("flow control reports to an event queue; give the portal table entry one")]
    QueueNeeded,
    /// `PTL_EQ_EMPTY`.
    #[error("the event queue is empty")]
    QueueEmpty,
}

/// The outcome of an operation at its target, as the initiator learns it: `ptl_ni_fail_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Outcome {
    /// `PTL_NI_OK`.
    #[default]
    Ok,
    /// `PTL_NI_DROPPED`: no entry of the list is for it, or nothing has room for its header.
    Dropped,
    /// `PTL_NI_PT_DISABLED`: the portal table entry takes nothing.
    TableEntryDisabled,
    /// `PTL_NI_PERM_VIOLATION`: the entry is for another user.
    PermissionViolation,
    /// `PTL_NI_OP_VIOLATION`: the entry does not take such operations.
    OperationViolation,
    /// `PTL_NI_SEGV`: the memory of the entry is not there.
    Fault,
    /// `PTL_NI_UNDELIVERABLE`: there is no such process.
    Undeliverable,
    /// `PTL_NI_NO_MATCH`: a search has found nothing.
    NoMatch,
}

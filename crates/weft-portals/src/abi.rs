//! The records and constants of `portals4.h`, as C has them.

use std::ffi::c_void;
use weft_portals_objects::atomic::{AtomicOperation, DataType};
use weft_portals_objects::error::{Outcome, PortalsError};
use weft_portals_objects::event_queue::{Event, EventKind};
use weft_portals_objects::match_list::ListKind;
use weft_portals_objects::request::{Acknowledgement, ProcessId};

pub const OK: i32 = 0;
pub const ARG_INVALID: i32 = 1;
pub const CT_NONE_REACHED: i32 = 2;
pub const EQ_DROPPED: i32 = 3;
pub const EQ_EMPTY: i32 = 4;
pub const FAIL: i32 = 5;
pub const IGNORED: i32 = 6;
pub const IN_USE: i32 = 7;
pub const LIST_TOO_LONG: i32 = 9;
pub const NO_INIT: i32 = 10;
pub const NO_SPACE: i32 = 11;
pub const PT_FULL: i32 = 13;
pub const PT_EQ_NEEDED: i32 = 14;
pub const PT_IN_USE: i32 = 15;

pub const ANY: u32 = u32::MAX;
pub const FOREVER: u64 = u64::MAX;

pub const NI_MATCHING: u32 = 1;
pub const NI_NO_MATCHING: u32 = 2;
pub const NI_LOGICAL: u32 = 4;
pub const NI_PHYSICAL: u32 = 8;

/// Options of a descriptor or an entry.
pub const IOVEC: u32 = 1 << 31;

/// Options of a portal table entry.
pub const PT_ONLY_USE_ONCE: u32 = 1;
pub const PT_FLOWCTRL: u32 = 2;
pub const PT_ONLY_TRUNCATE: u32 = 4;
pub const PT_MATCH_UNORDERED: u32 = 8;
pub const PT_ALLOC_DISABLED: u32 = 16;

/// Options of a memory descriptor. All are carried out in order, and read at once: `PTL_MD_UNORDERED` and
/// `PTL_MD_VOLATILE` change nothing.
pub const MD_EVENT_SUCCESS_DISABLE: u32 = 1;
pub const MD_EVENT_CT_SEND: u32 = 2;
pub const MD_EVENT_CT_REPLY: u32 = 4;
pub const MD_EVENT_CT_ACK: u32 = 8;
pub const MD_EVENT_CT_BYTES: u32 = 16;
pub const MD_EVENT_SEND_DISABLE: u32 = 128;

/// Options of a list entry. All memory is accessible, and no entry is moved: `PTL_ME_IS_ACCESSIBLE` and
/// `PTL_ME_MAY_ALIGN` change nothing.
pub const ME_OP_PUT: u32 = 1;
pub const ME_OP_GET: u32 = 2;
pub const ME_USE_ONCE: u32 = 4;
pub const ME_ACK_DISABLE: u32 = 8;
pub const ME_UNEXPECTED_HDR_DISABLE: u32 = 16;
pub const ME_EVENT_LINK_DISABLE: u32 = 64;
pub const ME_EVENT_COMM_DISABLE: u32 = 128;
pub const ME_EVENT_FLOWCTRL_DISABLE: u32 = 256;
pub const ME_EVENT_SUCCESS_DISABLE: u32 = 512;
pub const ME_EVENT_OVER_DISABLE: u32 = 1024;
pub const ME_EVENT_UNLINK_DISABLE: u32 = 2048;
pub const ME_EVENT_CT_COMM: u32 = 4096;
pub const ME_EVENT_CT_OVERFLOW: u32 = 8192;
pub const ME_EVENT_CT_BYTES: u32 = 16384;
pub const ME_MANAGE_LOCAL: u32 = 32768;
pub const ME_NO_TRUNCATE: u32 = 65536;

/// The fate of the headers that a search finds.
pub const SEARCH_ONLY: i32 = 0;
pub const SEARCH_DELETE: i32 = 1;

/// The process identifier that an interface without a wish gets.
pub const USUAL_PID: u32 = 1;

/// The return code of a refused call.
pub fn code(error: PortalsError) -> i32 {
    match error {
        PortalsError::InUse => IN_USE,
        PortalsError::NoSpace => NO_SPACE,
        PortalsError::ListTooLong => LIST_TOO_LONG,
        PortalsError::TableFull => PT_FULL,
        PortalsError::TableEntryInUse => PT_IN_USE,
        PortalsError::QueueNeeded => PT_EQ_NEEDED,
        PortalsError::QueueEmpty => EQ_EMPTY,
        _ => ARG_INVALID,
    }
}

/// `ptl_process_t`: with logical addresses the first field is the rank.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub nid: u32,
    pub pid: u32,
}

/// `ptl_md_t`.
#[repr(C)]
pub struct Md {
    pub start: *mut c_void,
    pub length: u64,
    pub options: u32,
    pub queue: u32,
    pub counting: u32,
}

/// `ptl_le_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Le {
    pub start: *mut c_void,
    pub length: u64,
    pub counting: u32,
    pub user: u32,
    pub options: u32,
}

/// `ptl_me_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Me {
    pub start: *mut c_void,
    pub length: u64,
    pub counting: u32,
    pub user: u32,
    pub options: u32,
    pub match_id: Process,
    pub match_bits: u64,
    pub ignore_bits: u64,
    pub least_free: u64,
}

/// `ptl_iovec_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Iovec {
    pub start: *mut c_void,
    pub length: u64,
}

/// `ptl_ni_limits_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NiLimits {
    pub counts: [i32; 9],
    pub message: u64,
    pub atomic: u64,
    pub fetch_atomic: u64,
    pub write_after_write: u64,
    pub write_after_read: u64,
    pub volatile: u64,
    pub features: u32,
}

/// `ptl_ct_event_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CtEvent {
    pub success: u64,
    pub failure: u64,
}

/// `ptl_event_t`.
#[repr(C)]
pub struct FullEvent {
    pub start: *mut c_void,
    pub user: *mut c_void,
    pub header_data: u64,
    pub match_bits: u64,
    pub requested: u64,
    pub moved: u64,
    pub remote_offset: u64,
    pub initiator: Process,
    pub uid: u32,
    pub portal: u32,
    pub kind: i32,
    pub list: i32,
    pub outcome: i32,
    pub operation: i32,
    pub data_type: i32,
}

impl FullEvent {
    /// An event as C has it; the initiator as the interface names it.
    pub fn of(event: &Event, initiator: Process) -> FullEvent {
        FullEvent {
            start: event.start as *mut c_void,
            user: event.user as *mut c_void,
            header_data: event.header_data,
            match_bits: event.match_bits,
            requested: event.requested,
            moved: event.moved,
            remote_offset: event.remote_offset,
            initiator,
            uid: event.initiator.user,
            portal: event.portal,
            kind: kind_number(event.kind),
            list: list_number(event.list),
            outcome: outcome_number(event.outcome),
            operation: event.atomic.map_or(0, |(operation, _)| place(&OPERATIONS, operation)),
            data_type: event.atomic.map_or(0, |(_, data_type)| place(&DATA_TYPES, data_type)),
        }
    }
}

fn place<T: PartialEq>(all: &[T], one: T) -> i32 {
    all.iter().position(|other| *other == one).map_or(0, |place| place as i32)
}

fn kind_number(kind: EventKind) -> i32 {
    use EventKind as E;
    let all = [
        E::Get,
        E::GetOverflow,
        E::Put,
        E::PutOverflow,
        E::Atomic,
        E::AtomicOverflow,
        E::FetchAtomic,
        E::FetchAtomicOverflow,
        E::Reply,
        E::Send,
        E::Ack,
        E::TableEntryDisabled,
        E::Link,
        E::AutoUnlink,
        E::AutoFree,
        E::Search,
    ];
    place(&all, kind)
}

fn list_number(list: ListKind) -> i32 {
    place(&[ListKind::Priority, ListKind::Overflow], list)
}

fn outcome_number(outcome: Outcome) -> i32 {
    use Outcome as O;
    let all = [
        O::Ok,
        O::Dropped,
        O::TableEntryDisabled,
        O::PermissionViolation,
        O::OperationViolation,
        O::Fault,
        O::Undeliverable,
        O::NoMatch,
    ];
    place(&all, outcome)
}

/// The list of this number.
pub fn list(number: i32) -> Option<ListKind> {
    [ListKind::Priority, ListKind::Overflow].get(usize::try_from(number).ok()?).copied()
}

/// The acknowledgement of this number.
pub fn acknowledgement(number: i32) -> Option<Acknowledgement> {
    use Acknowledgement as A;
    [A::None, A::Counted, A::Completed, A::Full].get(usize::try_from(number).ok()?).copied()
}

const OPERATIONS: [AtomicOperation; 18] = {
    use AtomicOperation as O;
    [
        O::Min,
        O::Max,
        O::Sum,
        O::Product,
        O::LogicalOr,
        O::LogicalAnd,
        O::BitOr,
        O::BitAnd,
        O::LogicalXor,
        O::BitXor,
        O::Swap,
        O::SwapIfEqual,
        O::SwapIfNotEqual,
        O::SwapIfLessOrEqual,
        O::SwapIfLess,
        O::SwapIfGreaterOrEqual,
        O::SwapIfGreater,
        O::MaskedSwap,
    ]
};

const DATA_TYPES: [DataType; 12] = {
    use DataType as D;
    [
        D::Int8,
        D::Uint8,
        D::Int16,
        D::Uint16,
        D::Int32,
        D::Uint32,
        D::Int64,
        D::Uint64,
        D::Float,
        D::FloatComplex,
        D::Double,
        D::DoubleComplex,
    ]
};

/// The operation and type of these numbers; `None`: there are none, or weft does not compute them.
pub fn atomic(operation: i32, data_type: i32) -> Option<(AtomicOperation, DataType)> {
    let operation = OPERATIONS.get(usize::try_from(operation).ok()?)?;
    Some((*operation, *DATA_TYPES.get(usize::try_from(data_type).ok()?)?))
}

/// The process of an identifier.
pub fn process_id(process: Process, is_logical: bool) -> ProcessId {
    // Of a rank the second field is not set.
    ProcessId { nid: process.nid, pid: if is_logical { 0 } else { process.pid } }
}

/// The processes that a pattern names.
pub fn pattern(process: Process, is_logical: bool) -> ProcessId {
    ProcessId { nid: process.nid, pid: if is_logical { ANY } else { process.pid } }
}

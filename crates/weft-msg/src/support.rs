//! Which operations messaging carries out.

use crate::algorithms::{Algorithm, collective_name};
use weft_trace::op::{OneSided, Op, WindowSync};

/// The name of an operation that messaging does not carry out; `None`: it does. A replay asks before it
/// starts, and says how many of each there are.
pub fn unsupported(op: &Op) -> Option<&'static str> {
    match op {
        Op::Collective { kind, .. } => {
            let able = Algorithm::ALL.iter().any(|algorithm| algorithm.performs(*kind));
            (!able).then(|| collective_name(*kind))
        }
        Op::Window { .. } => Some("window creation"),
        Op::OneSided { kind, .. } => Some(match kind {
            OneSided::Put => "put",
            OneSided::Get => "get",
            OneSided::Accumulate => "accumulate",
            OneSided::GetAccumulate => "get-accumulate",
            OneSided::FetchAndOp => "fetch-and-op",
            OneSided::CompareAndSwap => "compare-and-swap",
        }),
        Op::Sync { kind, .. } => Some(match kind {
            WindowSync::Fence => "window fence",
            WindowSync::Post => "window post",
            WindowSync::Start => "window start",
            WindowSync::Complete => "window complete",
            WindowSync::Wait => "window wait",
            WindowSync::Lock => "window lock",
            WindowSync::Unlock => "window unlock",
            WindowSync::LockAll => "window lock-all",
            WindowSync::UnlockAll => "window unlock-all",
            WindowSync::Flush => "window flush",
            WindowSync::FlushAll => "window flush-all",
            WindowSync::Free => "window free",
        }),
        Op::Compute { .. }
        | Op::Isend { .. }
        | Op::Irecv { .. }
        | Op::Wait { .. }
        | Op::Waitall { .. }
        | Op::Waitany { .. }
        | Op::Communicator { .. }
        | Op::Marker { .. } => None,
    }
}

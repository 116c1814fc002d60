//! Which operations messaging carries out.

use crate::algorithms::{Algorithm, collective_name};
use crate::one_sided::sync_name;
use weft_trace::op::{Op, WindowSync as Sync};

/// The name of an operation that messaging does not carry out; `None`: it does. A replay asks before it
/// starts, and says how many of each there are.
pub fn unsupported(op: &Op) -> Option<&'static str> {
    match op {
        Op::Collective { kind, .. } => {
            Algorithm::performing(*kind).next().is_none().then(|| collective_name(*kind))
        }
        // The trace does not say for which group they are.
        Op::Sync { kind: kind @ (Sync::Post | Sync::Start | Sync::Complete | Sync::Wait), .. } => {
            Some(sync_name(*kind))
        }
        Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. } => None,
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

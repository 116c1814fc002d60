//! The kind of an operation and its name in trace files and reports.

use crate::op::{Collective, OneSided, Op, SendMode, SignalAt, WindowSync};
use serde::{Deserialize, Serialize};

/// The kind of an operation, without its arguments.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // Each is documented at the [`Op`] or enum of the same name.
pub enum Kind {
    Compute,
    Work,
    Isend(SendMode),
    Irecv,
    Probe,
    Iprobe,
    Wait,
    Waitall,
    Waitany,
    Collective(Collective),
    Communicator,
    Window,
    OneSided(OneSided),
    Sync(WindowSync),
    Signal(SignalAt),
    Await,
    Marker,
}

macro_rules! kinds {
    ($($name:literal $variant:ident $(($argument:path))?,)*) => {
        impl Kind {
            /// Every kind, in the order in which reports list them.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant $(($argument))?),*];

            /// The name in the column `operation`: that of the MPI call where there is one.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant $(($argument))? => $name,)* }
            }

            /// The kind of that name.
            pub fn from_name(name: &[u8]) -> Option<Kind> {
                const NAMES: &[(&[u8], Kind)] =
                    &[$(($name.as_bytes(), Kind::$variant $(($argument))?)),*];
                NAMES.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind)
            }
        }
    };
}

kinds! {
    "compute" Compute,
    "work" Work,
    "isend" Isend(SendMode::Standard),
    "issend" Isend(SendMode::Synchronous),
    "ibsend" Isend(SendMode::Buffered),
    "irsend" Isend(SendMode::Ready),
    "irecv" Irecv,
    "probe" Probe,
    "iprobe" Iprobe,
    "wait" Wait,
    "waitall" Waitall,
    "waitany" Waitany,
    "barrier" Collective(Collective::Barrier),
    "broadcast" Collective(Collective::Broadcast),
    "reduce" Collective(Collective::Reduce),
    "allreduce" Collective(Collective::Allreduce),
    "gather" Collective(Collective::Gather),
    "gatherv" Collective(Collective::Gatherv),
    "scatter" Collective(Collective::Scatter),
    "scatterv" Collective(Collective::Scatterv),
    "allgather" Collective(Collective::Allgather),
    "allgatherv" Collective(Collective::Allgatherv),
    "alltoall" Collective(Collective::Alltoall),
    "alltoallv" Collective(Collective::Alltoallv),
    "reduce_scatter" Collective(Collective::ReduceScatter),
    "reduce_scatter_block" Collective(Collective::ReduceScatterBlock),
    "scan" Collective(Collective::Scan),
    "exscan" Collective(Collective::Exscan),
    "neighbor_allgather" Collective(Collective::NeighborAllgather),
    "neighbor_allgatherv" Collective(Collective::NeighborAllgatherv),
    "neighbor_alltoall" Collective(Collective::NeighborAlltoall),
    "neighbor_alltoallv" Collective(Collective::NeighborAlltoallv),
    "communicator" Communicator,
    "window" Window,
    "put" OneSided(OneSided::Put),
    "get" OneSided(OneSided::Get),
    "accumulate" OneSided(OneSided::Accumulate),
    "get_accumulate" OneSided(OneSided::GetAccumulate),
    "fetch_and_op" OneSided(OneSided::FetchAndOp),
    "compare_and_swap" OneSided(OneSided::CompareAndSwap),
    "win_fence" Sync(WindowSync::Fence),
    "win_post" Sync(WindowSync::Post),
    "win_start" Sync(WindowSync::Start),
    "win_complete" Sync(WindowSync::Complete),
    "win_wait" Sync(WindowSync::Wait),
    "win_lock" Sync(WindowSync::Lock),
    "win_unlock" Sync(WindowSync::Unlock),
    "win_lock_all" Sync(WindowSync::LockAll),
    "win_unlock_all" Sync(WindowSync::UnlockAll),
    "win_flush" Sync(WindowSync::Flush),
    "win_flush_all" Sync(WindowSync::FlushAll),
    "win_free" Sync(WindowSync::Free),
    "signal_start" Signal(SignalAt::Start),
    "signal_end" Signal(SignalAt::End),
    "await" Await,
    "marker" Marker,
}

impl Op {
    /// The operation's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Op::Compute { .. } => Kind::Compute,
            Op::Work { .. } => Kind::Work,
            Op::Isend { mode, .. } => Kind::Isend(*mode),
            Op::Irecv { .. } => Kind::Irecv,
            Op::Probe { tested: false, .. } => Kind::Probe,
            Op::Probe { tested: true, .. } => Kind::Iprobe,
            Op::Wait { .. } => Kind::Wait,
            Op::Waitall { .. } => Kind::Waitall,
            Op::Waitany { .. } => Kind::Waitany,
            Op::Collective { kind, .. } => Kind::Collective(*kind),
            Op::Communicator { .. } => Kind::Communicator,
            Op::Window { .. } => Kind::Window,
            Op::OneSided { kind, .. } => Kind::OneSided(*kind),
            Op::Sync { kind, .. } => Kind::Sync(*kind),
            Op::Signal { at, .. } => Kind::Signal(*at),
            Op::Await { .. } => Kind::Await,
            Op::Marker { .. } => Kind::Marker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two kinds under one name and a name that reads back as another kind.
    #[test]
    fn every_name_reads_back_as_its_kind() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name().as_bytes()), Some(kind));
        }
        assert_eq!(Kind::from_name(b"MPI_Send"), None);
    }
}

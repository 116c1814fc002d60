//! A collective of all ranks.

use super::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::part::KernelPhase;
use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, CommId, Op};
use weft_trace::{DataType, Reduction, ReductionOperation};
use weft_units::{Bytes, RankId};

/// A blocking collective of the world communicator; of the root, where it has one, rank 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllRanks {
    /// Which.
    pub kind: Collective,
    /// The vector of a reduction, the buffer of a broadcast, otherwise one rank's block.
    pub bytes: Bytes,
    /// Type of its elements.
    pub data_type: DataType,
    /// Size of one.
    pub element: u32,
    /// Operation of a reduction.
    pub reduction: ReductionOperation,
}

impl AllRanks {
    /// The sum of `elements` numbers of 64 bits over all ranks, known to all of them.
    pub fn sum(elements: u64) -> AllRanks {
        let (kind, bytes) = (Collective::Allreduce, Bytes::new(8 * elements));
        let (data_type, reduction) = (DataType::Float64, ReductionOperation::Sum);
        AllRanks { kind, bytes, data_type, element: 8, reduction }
    }

    /// The least of each of `elements` numbers of 64 bits, known to all ranks.
    pub fn least(elements: u64) -> AllRanks {
        AllRanks { reduction: ReductionOperation::Min, ..AllRanks::sum(elements) }
    }

    /// A collective that moves bytes and reduces nothing.
    pub fn moving(kind: Collective, bytes: Bytes) -> AllRanks {
        let (data_type, reduction) = (DataType::Uint8, ReductionOperation::Sum);
        AllRanks { kind, bytes, data_type, element: 1, reduction }
    }

    /// An integer of 32 bits, reduced over all ranks and known to all of them.
    pub fn integer(reduction: ReductionOperation) -> AllRanks {
        let (kind, bytes, data_type) = (Collective::Allreduce, Bytes::new(4), DataType::Int32);
        AllRanks { kind, bytes, data_type, element: 4, reduction }
    }
}

impl KernelPhase for AllRanks {
    fn length(&self, _: u32) -> u64 {
        1
    }

    fn operation(&self, _: u32, _: u64, _: u64) -> Op {
        let AllRanks { kind, bytes, data_type, element, reduction } = *self;
        let reduces = matches!(kind, Collective::Reduce | Collective::Allreduce);
        let operation = reduces.then_some(reduction);
        let reduction = Reduction { operation, data_type: Some(data_type) };
        let sizes =
            CollectiveSizes { send: bytes, receive: bytes, element, reduction, ..CollectiveSizes::default() };
        let is_broadcast = kind == Collective::Broadcast;
        let buffers =
            CollectiveBuffers { send: Some(SEND_BUFFER), receive: (!is_broadcast).then_some(RECEIVE_BUFFER) };
        let root = (is_broadcast || kind == Collective::Reduce).then_some(RankId(0));
        Op::Collective { kind, comm: CommId::WORLD, root, sizes, buffers, request: None }
    }
}

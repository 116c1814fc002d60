//! Records that are an operation each.

use super::source::{Source, Stop, unzigzag};
use std::io::BufRead;
use weft_trace::op::{
    Collective, CollectiveBuffers, CollectiveSizes, CommId, OneSided, Op, RankRange, RequestId, SendMode,
    WindowSync,
};
use weft_trace::{DataType, Reduction, ReductionOperation};
use weft_units::{Bytes, RankId};

/// A rank that has been checked against the size of the world.
pub(super) fn rank(value: u64) -> RankId {
    RankId(value as u32)
}

pub(super) fn send<R: BufRead>(source: &mut Source<R>, size: u64, request: RequestId) -> Result<Op, Stop> {
    let to = rank(source.below(size, "destination rank")?);
    let tag = tag_from(source.signed()?)?;
    let comm = CommId(source.id()?);
    let bytes = Bytes::new(source.number()?);
    let mode = MODES[source.below(MODES.len() as u64, "send mode")? as usize];
    let buffer = source.address()?;
    Ok(Op::Isend { to, tag, comm, bytes, mode, buffer, request })
}

pub(super) fn receive<R: BufRead>(source: &mut Source<R>, size: u64, request: RequestId) -> Result<Op, Stop> {
    let from = source.below(size + 1, "source rank")?.checked_sub(1).map(rank);
    let tag = match source.number()?.checked_sub(1) {
        Some(tag) => Some(tag_from(unzigzag(tag))?),
        None => None,
    };
    let comm = CommId(source.id()?);
    let bytes = Bytes::new(source.number()?);
    let buffer = source.address()?;
    let mut matched = None;
    if from.is_none() || tag.is_none() {
        let matched_source = source.fixed()?;
        let matched_tag = source.fixed()? as i32;
        if u64::from(matched_source) < size {
            matched = Some((RankId(matched_source), matched_tag));
        } else if matched_source != u32::MAX {
            return Err(Stop::Wrong(format!("matched source {matched_source}, expected less than {size}")));
        }
    }
    Ok(Op::Irecv { from, tag, comm, bytes, matched, buffer, request })
}

pub(super) fn requests<R: BufRead>(source: &mut Source<R>) -> Result<Vec<RequestId>, Stop> {
    // Grown as the entries come: the count may lie.
    let count = source.number()?;
    let mut requests = Vec::new();
    for _ in 0..count {
        requests.push(source.request()?);
    }
    Ok(requests)
}

/// Bytes per member: none, each, or those that are not 0.
pub(super) fn blocks<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Vec<u64>, Stop> {
    let form = source.below(3, "form of counts")?;
    if form == 0 {
        return Ok(Vec::new());
    }
    let members = source.below(size + 1, "number of members")?;
    let mut blocks = Vec::new();
    if form == 1 {
        for _ in 0..members {
            blocks.push(source.number()?);
        }
        return Ok(blocks);
    }
    let filled = source.below(members + 1, "number of counts")?;
    blocks.resize(members as usize, 0);
    for _ in 0..filled {
        let index = source.below(members, "member")? as usize;
        blocks[index] = source.number()?;
    }
    Ok(blocks)
}

/// One of a list, which has the number of its place and one more; 0 for none.
fn listed<T: Copy, R: BufRead>(all: &[T], source: &mut Source<R>, what: &str) -> Result<Option<T>, Stop> {
    let number = source.below(all.len() as u64 + 1, what)?;
    Ok(number.checked_sub(1).map(|place| all[place as usize]))
}

pub(super) fn collective<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Op, Stop> {
    let request = Some(source.request()?).filter(|request| request.0 != 0);
    let kind = COLLECTIVES[source.below(COLLECTIVES.len() as u64, "collective")? as usize];
    let comm = CommId(source.id()?);
    let root = source.below(size + 1, "root rank")?.checked_sub(1).map(rank);
    let send = Bytes::new(source.number()?);
    let receive = Bytes::new(source.number()?);
    let element = u32::try_from(source.number()?).unwrap_or(u32::MAX);
    let data_type = listed(DataType::ALL, source, "data type")?;
    let operation = listed(ReductionOperation::ALL, source, "operation of a reduction")?;
    let reduction = Reduction { operation, data_type };
    let send_counts = blocks(source, size)?;
    let receive_counts = blocks(source, size)?;
    let sizes = CollectiveSizes { send, receive, send_counts, receive_counts, element, reduction };
    let buffers = CollectiveBuffers { send: source.address()?, receive: source.address()? };
    Ok(Op::Collective { kind, comm, root, sizes, buffers, request })
}

pub(super) fn communicator<R: BufRead>(source: &mut Source<R>, size: u64) -> Result<Op, Stop> {
    let comm = CommId(source.id()?);
    let runs = source.below(size + 1, "number of runs of members")?;
    let mut members = Vec::new();
    let mut total = 0;
    for _ in 0..runs {
        let first = source.below(size, "member")?;
        let stride = source.signed()?;
        let count = source.below(size + 1, "members of a run")?;
        let last = i128::from(first) + i128::from(stride) * (i128::from(count) - 1);
        total += count;
        let stride =
            i32::try_from(stride).ok().filter(|_| count > 0 && (0..i128::from(size)).contains(&last));
        let Some(stride) = stride.filter(|_| total <= size) else {
            return Err(Stop::Wrong(format!("members outside the world of {size} ranks")));
        };
        members.push(RankRange { first: first as u32, stride, count: count as u32 });
    }
    Ok(Op::Communicator { comm, members })
}

// In the order of their numbers in a part.
pub(super) const MODES: [SendMode; 4] =
    [SendMode::Standard, SendMode::Synchronous, SendMode::Buffered, SendMode::Ready];
pub(super) const COLLECTIVES: [Collective; 20] = [
    Collective::Barrier,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Gather,
    Collective::Gatherv,
    Collective::Scatter,
    Collective::Scatterv,
    Collective::Allgather,
    Collective::Allgatherv,
    Collective::Alltoall,
    Collective::Alltoallv,
    Collective::ReduceScatter,
    Collective::ReduceScatterBlock,
    Collective::Scan,
    Collective::Exscan,
    Collective::NeighborAllgather,
    Collective::NeighborAllgatherv,
    Collective::NeighborAlltoall,
    Collective::NeighborAlltoallv,
];
pub(super) const ONE_SIDED: [OneSided; 6] = [
    OneSided::Put,
    OneSided::Get,
    OneSided::Accumulate,
    OneSided::GetAccumulate,
    OneSided::FetchAndOp,
    OneSided::CompareAndSwap,
];
pub(super) const SYNCS: [WindowSync; 12] = [
    WindowSync::Fence,
    WindowSync::Post,
    WindowSync::Start,
    WindowSync::Complete,
    WindowSync::Wait,
    WindowSync::Lock,
    WindowSync::Unlock,
    WindowSync::LockAll,
    WindowSync::UnlockAll,
    WindowSync::Flush,
    WindowSync::FlushAll,
    WindowSync::Free,
];

pub(super) fn tag_from(value: i64) -> Result<i32, Stop> {
    i32::try_from(value).map_err(|_| Stop::Wrong(format!("tag {value} is not of 32 bits")))
}

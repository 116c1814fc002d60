//! The meaning of the calls of a DUMPI file.

use super::datatype::Datatypes;
use super::stream::{Arguments, CallStream, FileHead};
use crate::calls::{
    Calls, CommRef, Completed, Creation, EMPTY_GROUP, GroupMaking, Manner, Matched, MessageEnd, MpiCall,
    NewComm, OtherSide, RequestKey, TimedCall,
};
use crate::error::TraceError;
use crate::input::Input;
use std::sync::Arc;
use weft_trace::op::{Collective, CollectiveSizes, SendMode};
use weft_trace::{Reduction, ReductionOperation};
use weft_units::Bytes;

/// Handles of communicators that MPI makes itself.
mod comm {
    pub const NULL: i64 = 1;
    pub const WORLD: i64 = 2;
    pub const OWN: i64 = 3;
}

/// Handle of the group without members.
const GROUP_EMPTY: i64 = 2;

/// Handle of a request that is none.
const REQUEST_NULL: u32 = 1;

/// The calls of a rank.
pub(super) struct DumpiCalls {
    stream: CallStream,
    arguments: Arguments,
    types: Datatypes,
    ranks: u32,
}

impl DumpiCalls {
    pub(super) fn new(input: &Arc<Input>, head: &FileHead, ranks: u32, chunk: usize) -> DumpiCalls {
        DumpiCalls {
            stream: CallStream::new(input, head, chunk),
            arguments: Arguments::default(),
            types: Datatypes::new(head.sizes.clone()),
            ranks,
        }
    }
}

impl Calls for DumpiCalls {
    fn next(&mut self) -> Result<Option<TimedCall>, TraceError> {
        let Some(interval) = self.stream.next(&mut self.arguments)? else { return Ok(None) };
        let call = Meaning { arguments: &self.arguments, types: &mut self.types, ranks: self.ranks }.call();
        match call {
            Ok(call) => Ok(Some(TimedCall { call, interval })),
            Err(reason) => Err(self.stream.error(format!("{}: {reason}", self.arguments.call))),
        }
    }

    fn error(&self, reason: String) -> TraceError {
        self.stream.error(format!("{}: {reason}", self.arguments.call))
    }
}

/// A call that is to be understood.
struct Meaning<'a> {
    arguments: &'a Arguments,
    types: &'a mut Datatypes,
    ranks: u32,
}

impl Meaning<'_> {
    fn call(&mut self) -> Result<MpiCall, String> {
        use Manner::{Blocking, Persistent, Request};
        let call = self.arguments.call;
        let number = |place| self.arguments.number(place);
        let request = |place| RequestKey::from(self.arguments.number(place) as u32);
        Ok(match call {
            "MPI_Send" => self.send(SendMode::Standard, Blocking)?,
            "MPI_Bsend" => self.send(SendMode::Buffered, Blocking)?,
            "MPI_Ssend" => self.send(SendMode::Synchronous, Blocking)?,
            "MPI_Rsend" => self.send(SendMode::Ready, Blocking)?,
            "MPI_Isend" => self.send(SendMode::Standard, Request(request(5)))?,
            "MPI_Ibsend" => self.send(SendMode::Buffered, Request(request(5)))?,
            "MPI_Issend" => self.send(SendMode::Synchronous, Request(request(5)))?,
            "MPI_Irsend" => self.send(SendMode::Ready, Request(request(5)))?,
            "MPI_Send_init" => self.send(SendMode::Standard, Persistent(request(5)))?,
            "MPI_Bsend_init" => self.send(SendMode::Buffered, Persistent(request(5)))?,
            "MPI_Ssend_init" => self.send(SendMode::Synchronous, Persistent(request(5)))?,
            "MPI_Rsend_init" => self.send(SendMode::Ready, Persistent(request(5)))?,
            "MPI_Recv" => self.receive(Blocking)?,
            "MPI_Irecv" => self.receive(Request(request(5)))?,
            "MPI_Recv_init" => self.receive(Persistent(request(5)))?,
            "MPI_Sendrecv" => self.exchange([4, 5, 6, 7], 8)?,
            "MPI_Sendrecv_replace" => self.exchange([0, 1, 4, 5], 6)?,
            "MPI_Start" => MpiCall::Start(vec![request(0)]),
            "MPI_Startall" => MpiCall::Start(self.requests()),
            "MPI_Wait" => self.wait_for(request(0)),
            "MPI_Test" | "MPI_Testall" if number(1) == 0 => MpiCall::Nothing,
            "MPI_Test" => self.wait_for(request(0)),
            "MPI_Waitall" | "MPI_Testall" => self.complete(Completed::All),
            "MPI_Testany" if number(2) == 0 => MpiCall::Nothing,
            "MPI_Waitany" | "MPI_Testany" if number(1) < 0 => MpiCall::Nothing,
            "MPI_Waitany" | "MPI_Testany" => self.complete(Completed::One(self.arguments.count(1)? as usize)),
            "MPI_Waitsome" | "MPI_Testsome" => {
                let places = self.arguments.list(1).iter().map(|&place| place as usize);
                self.complete(Completed::Some(places.collect()))
            }
            "MPI_Request_free" => MpiCall::Release(request(0)),
            "MPI_Cancel" => MpiCall::Cancel(request(0)),
            "MPI_Iprobe" if number(3) == 0 => MpiCall::Nothing,
            "MPI_Iprobe" | "MPI_Probe" => self.probe(call == "MPI_Iprobe")?,
            "MPI_Barrier" => self.collective(Collective::Barrier, 0, CollectiveSizes::default())?,
            "MPI_Bcast" => self.rooted(Collective::Broadcast, [2, 3], self.vector()?)?,
            "MPI_Reduce" => self.rooted(Collective::Reduce, [3, 4], self.reduced()?)?,
            "MPI_Allreduce" => self.collective(Collective::Allreduce, 3, self.reduced()?)?,
            "MPI_Scan" => self.collective(Collective::Scan, 3, self.reduced()?)?,
            "MPI_Exscan" => self.collective(Collective::Exscan, 3, self.reduced()?)?,
            "MPI_Gather" => self.rooted(Collective::Gather, [3, 4], self.one_block(1)?)?,
            "MPI_Scatter" => self.rooted(Collective::Scatter, [3, 4], self.one_block(1)?)?,
            "MPI_Gatherv" => self.rooted(Collective::Gatherv, [4, 5], self.gatherv()?)?,
            "MPI_Scatterv" => self.rooted(Collective::Scatterv, [5, 6], self.scatterv()?)?,
            "MPI_Allgather" => self.collective(Collective::Allgather, 4, self.two_blocks()?)?,
            "MPI_Alltoall" => self.collective(Collective::Alltoall, 4, self.two_blocks()?)?,
            "MPI_Allgatherv" => self.collective(Collective::Allgatherv, 4, self.allgatherv()?)?,
            "MPI_Alltoallv" => self.collective(Collective::Alltoallv, 3, self.alltoallv()?)?,
            "MPI_Alltoallw" => self.collective(Collective::Alltoallv, 1, self.alltoallw()?)?,
            "MPI_Reduce_scatter" => self.collective(Collective::ReduceScatter, 3, self.reduce_scatter()?)?,
            "MPI_Comm_dup" => self.create(0, Creation::Duplicate, 1)?,
            "MPI_Comm_split" => {
                let split = Creation::Split { color: number(1) as i32, key: number(2) as i32 };
                self.create(0, split, 3)?
            }
            "MPI_Comm_create" => {
                let (from, group) = (self.comm(0)?, self.group(1));
                MpiCall::CreateByGroup { from, group, new: self.new_comm(2) }
            }
            "MPI_Cart_create" => {
                let dimensions = self.arguments.list(0).to_vec();
                self.create(0, Creation::Cartesian { dimensions }, 3)?
            }
            "MPI_Cart_sub" => {
                let keep = self.arguments.list(0).iter().map(|&keep| keep != 0).collect();
                self.create(1, Creation::Slice { keep }, 2)?
            }
            "MPI_Graph_create" => self.create(1, Creation::Duplicate, 4)?,
            "MPI_Intercomm_create" => self.create(0, Creation::Unknown("MPI_Intercomm_create"), 5)?,
            "MPI_Intercomm_merge" => self.create(0, Creation::Unknown("MPI_Intercomm_merge"), 2)?,
            "MPI_Comm_group" => MpiCall::GroupOf { comm: self.comm(0)?, new: self.group(1) },
            "MPI_Group_union" => self.group_from(GroupMaking::Union(self.group(0), self.group(1)), 2),
            "MPI_Group_intersection" => {
                self.group_from(GroupMaking::Intersection(self.group(0), self.group(1)), 2)
            }
            "MPI_Group_difference" => {
                self.group_from(GroupMaking::Difference(self.group(0), self.group(1)), 2)
            }
            "MPI_Group_incl" => {
                self.group_from(GroupMaking::Include(self.group(0), self.arguments.list(0).to_vec()), 2)
            }
            "MPI_Group_excl" => {
                self.group_from(GroupMaking::Exclude(self.group(0), self.arguments.list(0).to_vec()), 2)
            }
            "MPI_Group_range_incl" => self.group_from(GroupMaking::Include(self.group(0), self.ranges()?), 2),
            "MPI_Group_range_excl" => self.group_from(GroupMaking::Exclude(self.group(0), self.ranges()?), 2),
            other => return self.datatype(other),
        })
    }

    /// Calls that make datatypes, and all that are left.
    fn datatype(&mut self, call: &'static str) -> Result<MpiCall, String> {
        let (arguments, types) = (self.arguments, &mut *self.types);
        let number = |place| arguments.number(place);
        let count = |place| arguments.count(place).map(u64::from);
        let sum = |list: usize| arguments.list(list).iter().map(|&entry| u64::from(entry)).sum::<u64>();
        match call {
            "MPI_Type_contiguous" => types.make(number(2), count(0)?, number(1))?,
            "MPI_Type_vector" | "MPI_Type_hvector" | "MPI_Type_create_hvector" => {
                types.make(number(4), count(0)?.saturating_mul(count(1)?), number(3))?;
            }
            "MPI_Type_indexed" | "MPI_Type_hindexed" | "MPI_Type_create_hindexed" => {
                types.make(number(2), sum(0), number(1))?;
            }
            "MPI_Type_create_indexed_block" => {
                types.make(number(3), count(0)?.saturating_mul(count(1)?), number(2))?;
            }
            "MPI_Type_struct" | "MPI_Type_create_struct" => {
                types.make_struct(number(1), arguments.list(0), arguments.list(2))?;
            }
            "MPI_Type_create_resized" => types.make(number(3), 1, number(0))?,
            "MPI_Type_dup" => types.make(number(1), 1, number(0))?,
            "MPI_Type_create_subarray" => {
                let elements = arguments.list(1).iter().fold(1u64, |all, &n| all.saturating_mul(n.into()));
                types.make(number(3), elements, number(2))?;
            }
            "MPI_Type_size" => types.keep(number(0), count(1)?),
            call if moves_data(call) => return Ok(MpiCall::Unread(call.to_owned())),
            _ => {}
        }
        Ok(MpiCall::Nothing)
    }

    fn comm(&self, place: usize) -> Result<CommRef, String> {
        Ok(match self.arguments.number(place) {
            0 | comm::NULL => {
                let why =
                    "MPI_COMM_NULL where a communicator is needed; copy the file again, or trace it again";
                return Err(why.to_owned());
            }
            comm::WORLD => CommRef::World,
            comm::OWN => CommRef::Own,
            handle => CommRef::Made(handle as u64),
        })
    }

    /// The communicator that a call has made; `None`: this rank is not a member.
    fn new_comm(&self, place: usize) -> Option<NewComm> {
        let handle = self.arguments.number(place);
        (handle != 0 && handle != comm::NULL).then_some(NewComm::Handle(handle as u64))
    }

    fn create(&self, from: usize, how: Creation, new: usize) -> Result<MpiCall, String> {
        Ok(MpiCall::Create { from: self.comm(from)?, how, new: self.new_comm(new) })
    }

    fn group(&self, place: usize) -> u64 {
        match self.arguments.number(place) {
            GROUP_EMPTY => EMPTY_GROUP,
            handle => handle as u64,
        }
    }

    fn group_from(&self, make: GroupMaking, new: usize) -> MpiCall {
        MpiCall::GroupFrom { make, new: self.group(new) }
    }

    /// The places of ranges of a group: first, last and stride of each.
    fn ranges(&self) -> Result<Vec<u32>, String> {
        let mut places = Vec::new();
        for range in self.arguments.list(0).chunks(3) {
            let &[first, last, stride] = range else { return Err(wrong_ranges()) };
            let (first, last, stride) = (i64::from(first), i64::from(last), i64::from(stride as i32));
            let steps =
                (last - first).checked_div(stride).filter(|&steps| steps >= 0).ok_or_else(wrong_ranges)?;
            for step in 0..=steps {
                if places.len() >= self.ranks as usize {
                    return Err(wrong_ranges());
                }
                places.push((first + step * stride) as u32);
            }
        }
        Ok(places)
    }

    /// A message: count, datatype, peer, tag and communicator, at these places.
    fn envelope(&self, [count, datatype, peer, tag, comm]: [usize; 5]) -> Result<MessageEnd, String> {
        let number = |place| self.arguments.number(place);
        let peer = u32::try_from(number(peer)).map_or(OtherSide::Nobody, OtherSide::Rank);
        let tag = i32::try_from(number(tag)).ok().filter(|&tag| tag >= 0);
        let bytes = self.types.bytes(number(count), number(datatype))?;
        Ok(MessageEnd { peer, tag, comm: self.comm(comm)?, bytes })
    }

    fn send(&self, mode: SendMode, manner: Manner) -> Result<MpiCall, String> {
        Ok(MpiCall::Send { envelope: self.envelope([0, 1, 2, 3, 4])?, mode, manner })
    }

    fn receive(&self, manner: Manner) -> Result<MpiCall, String> {
        let envelope = self.or_anybody(self.envelope([0, 1, 2, 3, 4])?, self.arguments.number(2));
        Ok(MpiCall::Receive { envelope, matched: self.matched(0), manner })
    }

    /// A receive whose source may be `MPI_ANY_SOURCE`. Where that stands for `MPI_PROC_NULL`, as in traces of
    /// MPICH, the status says so.
    fn or_anybody(&self, envelope: MessageEnd, source: i64) -> MessageEnd {
        let from_nobody = self.arguments.statuses().first().is_some_and(|status| (status.source as i32) < 0);
        match source {
            -1 if !from_nobody => MessageEnd { peer: OtherSide::Any, ..envelope },
            _ => envelope,
        }
    }

    /// A send, whose envelope is at the usual places, and a receive of the same call.
    fn exchange(&self, [count, datatype, source, tag]: [usize; 4], comm: usize) -> Result<MpiCall, String> {
        let send = self.envelope([0, 1, 2, 3, comm])?;
        let receive = self.envelope([count, datatype, source, tag, comm])?;
        let receive = self.or_anybody(receive, self.arguments.number(source));
        Ok(MpiCall::Exchange { send, receive, matched: self.matched(0) })
    }

    /// The message of a status.
    fn matched(&self, place: usize) -> Option<Matched> {
        self.arguments.statuses().get(place).copied().filter(|found| found.source < self.ranks)
    }

    fn probe(&self, tested: bool) -> Result<MpiCall, String> {
        let (source, tag) = (self.arguments.number(0), self.arguments.number(1));
        let named = u32::try_from(source).ok().zip(i32::try_from(tag).ok().filter(|&tag| tag >= 0));
        let named = named.map(|(source, tag)| Matched { source, tag });
        Ok(match named.or_else(|| self.matched(0)) {
            Some(found) => MpiCall::Probe { comm: self.comm(2)?, found, tested },
            None => MpiCall::Unread(format!("{} of any message, without its status", self.arguments.call)),
        })
    }

    fn requests(&self) -> Vec<RequestKey> {
        self.arguments.list(0).iter().map(|&request| request.into()).collect()
    }

    fn wait_for(&self, request: RequestKey) -> MpiCall {
        if request == RequestKey::from(REQUEST_NULL) {
            return MpiCall::Nothing;
        }
        MpiCall::Complete {
            requests: vec![request],
            completed: Completed::All,
            matched: vec![self.matched(0)],
        }
    }

    /// A wait for some of a list of requests. Those that are none are taken out of the list.
    fn complete(&self, completed: Completed) -> MpiCall {
        let list = self.arguments.list(0);
        let is_none = |place: &usize| list.get(*place) == Some(&REQUEST_NULL);
        let before =
            |place: usize| list.iter().take(place).filter(|&&request| request == REQUEST_NULL).count();
        // Statuses are those of the whole list, of the one, or of those that have completed.
        let statuses: Vec<(usize, usize)> = match &completed {
            Completed::All | Completed::Unknown => (0..list.len()).map(|place| (place, place)).collect(),
            Completed::One(place) => vec![(*place, 0)],
            Completed::Some(places) => places.iter().copied().zip(0..).collect(),
        };
        let requests: Vec<RequestKey> =
            self.requests().into_iter().filter(|&key| key != REQUEST_NULL.into()).collect();
        let mut matched = vec![None; requests.len()];
        for (place, status) in statuses.into_iter().filter(|(place, _)| !is_none(place)) {
            if let Some(matched) = matched.get_mut(place - before(place)) {
                *matched = self.matched(status);
            }
        }
        let completed = match completed {
            Completed::One(place) if is_none(&place) => return MpiCall::Nothing,
            Completed::One(place) => Completed::One(place - before(place)),
            Completed::Some(places) => {
                let places = places.into_iter().filter(|place| !is_none(place));
                Completed::Some(places.map(|place| place - before(place)).collect())
            }
            all => all,
        };
        MpiCall::Complete { requests, completed, matched }
    }

    fn collective(&self, kind: Collective, comm: usize, sizes: CollectiveSizes) -> Result<MpiCall, String> {
        Ok(MpiCall::Collective { kind, comm: self.comm(comm)?, root: None, sizes })
    }

    fn rooted(
        &self,
        kind: Collective,
        [root, comm]: [usize; 2],
        sizes: CollectiveSizes,
    ) -> Result<MpiCall, String> {
        let root = Some(self.arguments.count(root)?);
        Ok(MpiCall::Collective { kind, comm: self.comm(comm)?, root, sizes })
    }

    /// Count and datatype of one buffer.
    fn vector(&self) -> Result<CollectiveSizes, String> {
        let bytes = self.block(0)?;
        let element = self.element(self.arguments.number(1))?;
        Ok(CollectiveSizes { send: bytes, receive: bytes, element, ..CollectiveSizes::default() })
    }

    /// Count, datatype and operation of a reduction.
    fn reduced(&self) -> Result<CollectiveSizes, String> {
        Ok(CollectiveSizes { reduction: self.reduction(), ..self.vector()? })
    }

    /// Datatype and operation of a reduction, which stand behind its count or counts.
    fn reduction(&self) -> Reduction {
        Reduction {
            operation: operation(self.arguments.number(2)),
            data_type: self.types.data_type(self.arguments.number(1)),
        }
    }

    fn block(&self, count: usize) -> Result<Bytes, String> {
        self.types.bytes(self.arguments.number(count), self.arguments.number(count + 1))
    }

    fn element(&self, datatype: i64) -> Result<u32, String> {
        Ok(u32::try_from(self.types.size(datatype)?).unwrap_or(u32::MAX))
    }

    fn one_block(&self, count: usize) -> Result<CollectiveSizes, String> {
        let bytes = self.block(count)?;
        Ok(CollectiveSizes { send: bytes, receive: bytes, ..CollectiveSizes::default() })
    }

    fn two_blocks(&self) -> Result<CollectiveSizes, String> {
        Ok(CollectiveSizes { send: self.block(0)?, receive: self.block(2)?, ..CollectiveSizes::default() })
    }

    /// Bytes for each member, and their sum.
    fn blocks(&self, list: usize, datatype: i64) -> Result<(Vec<u64>, Bytes), String> {
        let mut blocks = Vec::new();
        for &count in self.arguments.list(list) {
            blocks.push(self.types.bytes(i64::from(count as i32), datatype)?.get());
        }
        let sum = blocks.iter().fold(0u64, |sum, &block| sum.saturating_add(block));
        Ok((blocks, Bytes::new(sum)))
    }

    fn gatherv(&self) -> Result<CollectiveSizes, String> {
        let (receive_counts, receive) = self.blocks(0, self.arguments.number(6))?;
        let send = self.block(2)?;
        Ok(CollectiveSizes { send, receive, receive_counts, ..CollectiveSizes::default() })
    }

    fn scatterv(&self) -> Result<CollectiveSizes, String> {
        let (send_counts, send) = self.blocks(0, self.arguments.number(2))?;
        let receive = self.block(3)?;
        Ok(CollectiveSizes { send, receive, send_counts, ..CollectiveSizes::default() })
    }

    fn allgatherv(&self) -> Result<CollectiveSizes, String> {
        let (receive_counts, receive) = self.blocks(0, self.arguments.number(3))?;
        let send = self.block(1)?;
        Ok(CollectiveSizes { send, receive, receive_counts, ..CollectiveSizes::default() })
    }

    fn alltoallv(&self) -> Result<CollectiveSizes, String> {
        let (send_counts, send) = self.blocks(0, self.arguments.number(1))?;
        let (receive_counts, receive) = self.blocks(2, self.arguments.number(2))?;
        Ok(CollectiveSizes { send, receive, send_counts, receive_counts, ..CollectiveSizes::default() })
    }

    /// Each block has a datatype of its own.
    fn alltoallw(&self) -> Result<CollectiveSizes, String> {
        let side = |counts: usize, datatypes: usize| -> Result<(Vec<u64>, Bytes), String> {
            let pairs = self.arguments.list(counts).iter().zip(self.arguments.list(datatypes));
            let blocks = pairs.map(|(&count, &datatype)| {
                self.types.bytes(i64::from(count as i32), datatype.into()).map(Bytes::get)
            });
            let blocks: Vec<u64> = blocks.collect::<Result<_, _>>()?;
            let sum = blocks.iter().fold(0u64, |sum, &block| sum.saturating_add(block));
            Ok((blocks, Bytes::new(sum)))
        };
        let (send_counts, send) = side(0, 2)?;
        let (receive_counts, receive) = side(3, 5)?;
        Ok(CollectiveSizes { send, receive, send_counts, receive_counts, ..CollectiveSizes::default() })
    }

    fn reduce_scatter(&self) -> Result<CollectiveSizes, String> {
        let datatype = self.arguments.number(1);
        let (receive_counts, send) = self.blocks(0, datatype)?;
        let element = self.element(datatype)?;
        let reduction = self.reduction();
        Ok(CollectiveSizes { send, receive_counts, element, reduction, ..CollectiveSizes::default() })
    }
}

/// The operation of a reduction by its handle: those of MPI-1 in DUMPI's order, `MPI_REPLACE`, none, and
/// those that the program has made.
fn operation(handle: i64) -> Option<ReductionOperation> {
    const STANDARD: [ReductionOperation; 12] = [
        ReductionOperation::Max,
        ReductionOperation::Min,
        ReductionOperation::Sum,
        ReductionOperation::Product,
        ReductionOperation::LogicalAnd,
        ReductionOperation::BitwiseAnd,
        ReductionOperation::LogicalOr,
        ReductionOperation::BitwiseOr,
        ReductionOperation::LogicalXor,
        ReductionOperation::BitwiseXor,
        ReductionOperation::MinLocation,
        ReductionOperation::MaxLocation,
    ];
    let place = usize::try_from(handle).ok()?.checked_sub(1)?;
    Some(STANDARD.get(place).copied().unwrap_or(ReductionOperation::Other))
}

fn wrong_ranges() -> String {
    "ranges of a group that are none; copy the file again, or trace the program again".to_owned()
}

/// Whether a call that is not read moves data between ranks, or to files.
fn moves_data(call: &str) -> bool {
    const PREFIXES: [&str; 2] = ["MPI_File_", "MPIO_"];
    const CALLS: [&str; 15] = [
        "MPI_Accumulate",
        "MPI_Get",
        "MPI_Put",
        "MPI_Win_complete",
        "MPI_Win_create",
        "MPI_Win_fence",
        "MPI_Win_free",
        "MPI_Win_lock",
        "MPI_Win_post",
        "MPI_Win_start",
        "MPI_Win_test",
        "MPI_Win_unlock",
        "MPI_Win_wait",
        "MPI_Comm_spawn",
        "MPI_Abort",
    ];
    CALLS.contains(&call) || PREFIXES.iter().any(|prefix| call.starts_with(prefix))
}

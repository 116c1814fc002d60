//! Messages between neighbours, in both directions.

use super::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::part::KernelPhase;
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// A rank with which another exchanges messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourMessages {
    /// The rank.
    pub rank: u32,
    /// Payload of the message to it.
    pub send: Bytes,
    /// Tag of that message.
    pub send_tag: i32,
    /// Payload of the message from it.
    pub receive: Bytes,
    /// Tag of that message.
    pub receive_tag: i32,
}

/// The neighbours of every rank.
pub trait NeighbourList: Send + Sync {
    /// Number of neighbours of `rank`.
    fn count(&self, rank: u32) -> u32;

    /// NeighbourMessages `index` of `rank`, below its count.
    fn neighbour(&self, rank: u32, index: u32) -> NeighbourMessages;
}

/// How a program sends to its neighbours, after it has posted a receive from each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendStyle {
    /// `MPI_Isend` to each, then one `MPI_Waitall` for everything.
    Nonblocking,
    /// `MPI_Send` to each, then `MPI_Wait` for each receive.
    Blocking,
}

/// One exchange of every rank with all its neighbours.
pub struct NeighbourExchange<N> {
    /// The neighbours.
    pub neighbours: N,
    /// How messages are sent.
    pub style: SendStyle,
}

impl<N: NeighbourList> NeighbourExchange<N> {
    fn receive(&self, rank: u32, index: u32) -> Op {
        let NeighbourMessages { rank: from, receive: bytes, receive_tag, .. } =
            self.neighbours.neighbour(rank, index);
        Op::Irecv {
            from: Some(RankId(from)),
            tag: Some(receive_tag),
            comm: CommId::WORLD,
            bytes,
            matched: None,
            buffer: Some(RECEIVE_BUFFER),
            request: RequestId(index),
        }
    }

    fn send(&self, rank: u32, index: u32, request: u32) -> Op {
        let NeighbourMessages { rank: to, send: bytes, send_tag: tag, .. } =
            self.neighbours.neighbour(rank, index);
        let (to, request, mode) = (RankId(to), RequestId(request), SendMode::Standard);
        Op::Isend { to, tag, comm: CommId::WORLD, bytes, mode, buffer: Some(SEND_BUFFER), request }
    }
}

impl<N: NeighbourList> KernelPhase for NeighbourExchange<N> {
    fn length(&self, rank: u32) -> u64 {
        let count = u64::from(self.neighbours.count(rank));
        match self.style {
            SendStyle::Nonblocking => 2 * count + u64::from(count > 0),
            SendStyle::Blocking => 4 * count,
        }
    }

    fn operation(&self, rank: u32, _: u64, step: u64) -> Op {
        // No phase is longer than four operations for each of the neighbours, which a u32 counts.
        let (count, step) = (self.neighbours.count(rank), step as u32);
        if step < count {
            return self.receive(rank, step);
        }
        let step = step - count;
        match self.style {
            SendStyle::Nonblocking if step < count => self.send(rank, step, count + step),
            SendStyle::Nonblocking => Op::Waitall { requests: (0..2 * count).map(RequestId).collect() },
            SendStyle::Blocking if step < 2 * count => match step % 2 {
                0 => self.send(rank, step / 2, count),
                _ => Op::Wait { request: RequestId(count) },
            },
            SendStyle::Blocking => Op::Wait { request: RequestId(step - 2 * count) },
        }
    }
}

//! Swaps: messages one after the other, each received from one rank while another is sent.

use super::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::part::KernelPhase;
use weft_trace::Kind;
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// A message to another rank, or from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapMessage {
    /// The rank.
    pub rank: u32,
    /// Payload.
    pub bytes: Bytes,
}

/// How a program makes a swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapStyle {
    /// `MPI_Irecv`, `MPI_Send`, `MPI_Wait`.
    Blocking,
    /// `MPI_Sendrecv`.
    Sendrecv,
}

/// One swap: a message sent, and one received. Either may be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swap {
    /// The message that is sent.
    pub send: Option<SwapMessage>,
    /// The message that is received.
    pub receive: Option<SwapMessage>,
    /// How.
    pub style: SwapStyle,
}

/// Which messages a swap has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapShape {
    /// Whether a message is sent.
    pub sends: bool,
    /// Whether one is received.
    pub receives: bool,
    /// How.
    pub style: SwapStyle,
}

impl SwapShape {
    /// A swap with both messages.
    pub const fn both(style: SwapStyle) -> SwapShape {
        SwapShape { sends: true, receives: true, style }
    }

    fn length(self) -> u64 {
        match self.style {
            SwapStyle::Blocking => 2 * (u64::from(self.sends) + u64::from(self.receives)),
            SwapStyle::Sendrecv => 3,
        }
    }
}

impl Swap {
    fn operation(&self, step: u64) -> Op {
        // The receive is posted first, if there is one, and waited for last.
        let step = step + u64::from(self.receive.is_none());
        match (self.style, step, self.send, self.receive) {
            (_, 0, _, Some(message)) => receive(message),
            (_, 1, Some(message), _) => send(message),
            (SwapStyle::Sendrecv, ..) => Op::Waitall { requests: vec![SENT, RECEIVED] },
            (SwapStyle::Blocking, 2, Some(_), _) => Op::Wait { request: SENT },
            (SwapStyle::Blocking, ..) => Op::Wait { request: RECEIVED },
        }
    }
}

/// The request of the message that is received.
const RECEIVED: RequestId = RequestId(0);
/// The request of the message that is sent.
const SENT: RequestId = RequestId(1);

fn receive(SwapMessage { rank, bytes }: SwapMessage) -> Op {
    let (from, buffer) = (Some(RankId(rank)), Some(RECEIVE_BUFFER));
    let (comm, request) = (CommId::WORLD, RECEIVED);
    Op::Irecv { from, tag: Some(0), comm, bytes, matched: None, buffer, request }
}

fn send(SwapMessage { rank, bytes }: SwapMessage) -> Op {
    let (to, mode, buffer) = (RankId(rank), SendMode::Standard, Some(SEND_BUFFER));
    Op::Isend { to, tag: 0, comm: CommId::WORLD, bytes, mode, buffer, request: SENT }
}

/// The swaps of every rank.
pub trait SwapList: Send + Sync {
    /// Number of swaps of `rank`.
    fn count(&self, rank: u32) -> u32;

    /// The messages of swap `index` of `rank`, below its count: the same in every pass.
    fn shape(&self, rank: u32, index: u32) -> SwapShape;

    /// That swap in pass number `pass`.
    fn swap(&self, rank: u32, pass: u64, index: u32) -> Swap;
}

/// All swaps of every rank, in order.
pub struct SwapSequence<L>(pub L);

impl<L: SwapList> KernelPhase for SwapSequence<L> {
    fn length(&self, rank: u32) -> u64 {
        (0..self.0.count(rank)).map(|index| self.0.shape(rank, index).length()).sum()
    }

    fn operation(&self, rank: u32, pass: u64, mut step: u64) -> Op {
        for index in 0..self.0.count(rank) {
            match step.checked_sub(self.0.shape(rank, index).length()) {
                None => return self.0.swap(rank, pass, index).operation(step),
                Some(rest) => step = rest,
            }
        }
        unreachable!("a step is below the length")
    }

    fn count(&self, rank: u32, each: &mut dyn FnMut(Kind, u64)) {
        for SwapShape { sends, receives, style } in
            (0..self.0.count(rank)).map(|index| self.0.shape(rank, index))
        {
            let (sends, receives) = (u64::from(sends), u64::from(receives));
            let waits = match style {
                SwapStyle::Blocking => (Kind::Wait, sends + receives),
                SwapStyle::Sendrecv => (Kind::Waitall, 1),
            };
            [(Kind::Irecv, receives), (Kind::Isend(SendMode::Standard), sends), waits]
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .for_each(|(kind, count)| each(kind, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A swap with both messages, one that sends alone, one that receives alone, and an `MPI_Sendrecv`.
    struct Kinds;

    impl SwapList for Kinds {
        fn count(&self, _: u32) -> u32 {
            4
        }

        fn shape(&self, _: u32, index: u32) -> SwapShape {
            let style = if index < 3 { SwapStyle::Blocking } else { SwapStyle::Sendrecv };
            SwapShape { sends: index != 2, receives: index != 1, style }
        }

        fn swap(&self, rank: u32, _: u64, index: u32) -> Swap {
            let SwapShape { sends, receives, style } = self.shape(rank, index);
            let message = |bytes| SwapMessage { rank: 1, bytes: Bytes::new(bytes) };
            Swap { send: sends.then(|| message(10)), receive: receives.then(|| message(20)), style }
        }
    }

    /// Catches a wait for a request that was not begun, an order that is not the program's, and kinds that
    /// are counted otherwise than they are made.
    #[test]
    fn each_swap_posts_sends_and_waits() {
        let phase = SwapSequence(Kinds);
        let short = |step| match phase.operation(0, 0, step) {
            Op::Irecv { bytes, request, .. } => format!("R{}#{}", bytes.get(), request.0),
            Op::Isend { bytes, request, .. } => format!("S{}#{}", bytes.get(), request.0),
            Op::Wait { request } => format!("w#{}", request.0),
            Op::Waitall { requests } => format!("W{}", requests.len()),
            other => panic!("{other:?}"),
        };
        let all: Vec<_> = (0..phase.length(0)).map(short).collect();
        assert_eq!(all.join(" "), "R20#0 S10#1 w#1 w#0 S10#1 w#1 R20#0 w#0 R20#0 S10#1 W2");
        let mut counts = BTreeMap::new();
        phase.count(0, &mut |kind, count| *counts.entry(kind).or_insert(0) += count);
        let mut operations = BTreeMap::new();
        for step in 0..phase.length(0) {
            *operations.entry(phase.operation(0, 0, step).kind()).or_insert(0) += 1;
        }
        assert_eq!(counts, operations);
    }
}

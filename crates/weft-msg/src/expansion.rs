//! The collectives of one rank as messages and computation, without a network: for traces in formats that
//! know none.
//!
//! ```text
//!   Expansion ── expand(call) ──▶ ExpandedCollective ── next() ──▶ ExpandedRound: steps, all complete, work
//! ```
//! The table of algorithms chooses as in a run, and rounds are those that a run carries out. An algorithm of
//! the hardware has no messages, and one that follows the topology needs places: the table's next rule holds.
//!
//! # Not modelled
//! Copies and reductions take as long as they take alone: who shares the memory meanwhile is known in a run.

use crate::algorithms::{Algorithm, CollectiveSize, collective_name};
use crate::collective::member_part::{MemberPart, MemberPlace};
use crate::collective::{RoundStep, RoundSteps, non_overlapping, registry::schedule};
use crate::collectives::CollectiveCall;
use crate::communicator::{Communicators, Group};
use crate::error::MsgError;
use crate::protocol::Protocol;
use crate::work::InMemory;
use weft_trace::op::{CommId, RankRange};
use weft_units::{Bytes, RankId, Span};

/// The communicators of one rank, whose collectives are expanded.
#[derive(Clone, Debug)]
pub struct Expansion {
    communicators: Communicators,
    rank: RankId,
    ranks: u32,
}

impl Expansion {
    /// Of a rank of a program of `ranks`, which knows the world.
    pub fn new(rank: RankId, ranks: u32) -> Expansion {
        Expansion { communicators: Communicators::default(), rank, ranks }
    }

    /// A communicator exists from here on.
    ///
    /// # Errors
    /// Its members cannot be, or do not include the rank.
    pub fn create(&mut self, comm: CommId, members: &[RankRange]) -> Result<(), MsgError> {
        self.communicators.create(comm, members, self.rank, self.ranks)
    }

    /// The next collective of the rank.
    ///
    /// # Errors
    /// A communicator that the rank is not in, and sizes that cannot be.
    pub fn expand<'a>(
        &'a mut self,
        protocol: &'a Protocol,
        call: &CollectiveCall<'_>,
    ) -> Result<ExpandedCollective<'a>, MsgError> {
        let comm = self.communicators.index(call.comm, self.rank, self.ranks)?;
        let (members, me) = (self.communicators.size(comm), self.communicators.me(comm));
        let root = call.root_of(&self.communicators, comm)?;
        let mut part = MemberPart::new(call.kind, MemberPlace { members, me, root }, call.sizes)?;
        let size = CollectiveSize { non_blocking: call.request.is_some(), ..part.size() };
        let table = &protocol.algorithms;
        let chosen = table.choose(call.kind, size);
        let algorithm = table.choose_stage(call.kind, size);
        let replaced = chosen.filter(|chosen| Some(*chosen) != algorithm);
        let unknown = || MsgError::Unsupported { operation: collective_name(call.kind).to_owned() };
        let algorithm = algorithm.ok_or_else(unknown)?;
        if algorithm == Algorithm::NonOverlapping {
            part.stages = non_overlapping::stages(&part, |kind, size| table.choose_stage(kind, size));
        }
        let number = self.communicators.begin_collective(comm) as u32;
        let needs_buffer = call.kind.reduces() && members > 1;
        let buffer = if needs_buffer { protocol.temporary_buffer } else { Span::ZERO };
        Ok(ExpandedCollective {
            algorithm,
            replaced,
            number,
            call: protocol.collective_call + buffer,
            protocol,
            sends_first: call.request.is_some() && table.sends_first(call.kind, algorithm),
            group: self.communicators.group(comm),
            part,
            round: 0,
        })
    }
}

/// A collective of a rank: its rounds that have something to do.
#[derive(Clone, Debug)]
pub struct ExpandedCollective<'a> {
    /// How it is carried out.
    pub algorithm: Algorithm,
    /// The algorithm of the hardware, or of a topology, that the table asks for: `algorithm` is in its place.
    pub replaced: Option<Algorithm>,
    /// Collectives of the communicator before it: the same on all members.
    pub number: u32,
    /// Time of the call before its first round.
    pub call: Span,
    protocol: &'a Protocol,
    sends_first: bool,
    group: Group<'a>,
    part: MemberPart,
    round: u32,
}

/// One thing that a rank does in a round. Partners are world ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExpandedStep {
    /// The library computes.
    Compute(Span),
    /// A receive is started.
    Receive {
        /// From whom.
        from: RankId,
        /// Payload.
        bytes: Bytes,
    },
    /// A send is started.
    Send {
        /// To whom.
        to: RankId,
        /// Payload.
        bytes: Bytes,
    },
}

/// Steps that are started together. The next round begins when their messages are complete and the work is
/// done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExpandedRound {
    /// The steps, in the order in which they are started.
    pub steps: Vec<ExpandedStep>,
    /// Copies and reductions after the messages.
    pub work: Span,
}

impl ExpandedCollective<'_> {
    fn add(&self, steps: &RoundSteps, expanded: &mut ExpandedRound) {
        let call = self.protocol.sendrecv_call;
        if steps.exchanges() && call > Span::ZERO {
            expanded.steps.push(ExpandedStep::Compute(call));
        }
        let mut work = InMemory::default();
        for step in steps.in_order(self.sends_first) {
            work += step.work(self.protocol);
            match *step {
                RoundStep::Receive { from, piece, .. } => {
                    let (from, bytes) = (self.group.rank(from), Bytes::new(piece.bytes));
                    expanded.steps.push(ExpandedStep::Receive { from, bytes });
                }
                RoundStep::Send { to, piece, .. } => {
                    let (to, bytes) = (self.group.rank(to), Bytes::new(piece.bytes));
                    expanded.steps.push(ExpandedStep::Send { to, bytes });
                }
                // Those of the hardware are not chosen.
                RoundStep::Copy { .. } | RoundStep::Accelerate { .. } | RoundStep::Multicast { .. } => {}
            }
        }
        expanded.work += work.alone;
    }
}

impl Iterator for ExpandedCollective<'_> {
    type Item = ExpandedRound;

    fn next(&mut self) -> Option<ExpandedRound> {
        let schedule = schedule(self.algorithm);
        let rounds = schedule.rounds(&self.part);
        let mut expanded = ExpandedRound::default();
        while self.round < rounds {
            let mut steps = RoundSteps::default();
            schedule.round(&self.part, self.round, &mut steps);
            self.add(&steps, &mut expanded);
            let overlaps = self.round + 1 < rounds && schedule.overlaps(&self.part, self.round);
            self.round += 1;
            if !overlaps && expanded != ExpandedRound::default() {
                return Some(expanded);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{AlgorithmTable, COLLECTIVE_NAMES, Rule};
    use std::collections::BTreeMap;
    use weft_trace::op::{Collective, CollectiveSizes};

    const MEMBERS: u32 = 7;

    fn sizes(kind: Collective, me: u32) -> CollectiveSizes {
        let (block, is_root) = (Bytes::new(80_000), me == 2);
        let counts = vec![80_000; MEMBERS as usize];
        let sum = Bytes::new(80_000 * u64::from(MEMBERS));
        let of = |send, receive| CollectiveSizes { send, receive, element: 8, ..Default::default() };
        match kind {
            Collective::Barrier => of(Bytes::ZERO, Bytes::ZERO),
            Collective::Gatherv if is_root => CollectiveSizes { receive_counts: counts, ..of(block, sum) },
            Collective::Scatterv if is_root => CollectiveSizes { send_counts: counts, ..of(sum, block) },
            Collective::Allgatherv => CollectiveSizes { receive_counts: counts, ..of(block, sum) },
            Collective::ReduceScatter => CollectiveSizes { receive_counts: counts, ..of(sum, block) },
            Collective::ReduceScatterBlock => of(sum, block),
            Collective::Alltoallv
            | Collective::NeighborAllgather
            | Collective::NeighborAllgatherv
            | Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv => {
                CollectiveSizes { send_counts: counts.clone(), receive_counts: counts, ..of(sum, sum) }
            }
            _ => of(block, block),
        }
    }

    /// The rounds of each member, by the algorithm that the table chooses.
    fn rounds(protocol: &Protocol, kind: Collective, non_blocking: bool) -> Vec<Vec<ExpandedRound>> {
        let of = |me| {
            // The members are every other rank of the world, backwards.
            let comm = CommId(12 << 32);
            let members = [RankRange { first: 12, stride: -2, count: MEMBERS }];
            let mut expansion = Expansion::new(RankId(12 - 2 * me), 13);
            expansion.create(comm, &members).unwrap();
            let sizes = sizes(kind, me);
            let request = non_blocking.then_some(weft_trace::op::RequestId(0));
            let (root, buffers) = (Some(RankId(12 - 2 * 2)), Default::default());
            let call = CollectiveCall { kind, comm, root, sizes: &sizes, buffers, request };
            expansion.expand(protocol, &call).unwrap().collect()
        };
        (0..MEMBERS).map(of).collect()
    }

    /// Catches messages that one side has and the other has not, or in another order, and rounds in which all
    /// wait for each other.
    #[test]
    fn every_message_has_its_receive_and_rounds_come_to_an_end() {
        for name in AlgorithmTable::NAMES {
            let algorithms = AlgorithmTable::named(name).unwrap();
            let protocol = Protocol { algorithms, ..Protocol::zero() };
            for ((kind, _), non_blocking) in COLLECTIVE_NAMES.iter().flat_map(|it| [(it, false), (it, true)])
            {
                let members = rounds(&protocol, *kind, non_blocking);
                // Sends that are started, and receives that have taken theirs, for each pair.
                let mut sent: BTreeMap<(u32, u32), Vec<Bytes>> = BTreeMap::new();
                let mut taken: BTreeMap<(u32, u32), usize> = BTreeMap::new();
                let mut next = [0; MEMBERS as usize];
                let mut started = [false; MEMBERS as usize];
                let mut moved = true;
                while std::mem::take(&mut moved) {
                    for (me, rounds) in members.iter().enumerate() {
                        let rank = 12 - 2 * me as u32;
                        let Some(round) = rounds.get(next[me]) else { continue };
                        if !std::mem::replace(&mut started[me], true) {
                            for step in &round.steps {
                                if let ExpandedStep::Send { to, bytes } = step {
                                    sent.entry((rank, to.0)).or_default().push(*bytes);
                                }
                            }
                            moved = true;
                        }
                        let mut after = taken.clone();
                        let is_whole = round.steps.iter().all(|step| match step {
                            ExpandedStep::Receive { from, bytes } => {
                                let count = after.entry((from.0, rank)).or_default();
                                *count += 1;
                                let message = sent.get(&(from.0, rank)).and_then(|all| all.get(*count - 1));
                                message.is_some_and(|message| message == bytes)
                            }
                            _ => true,
                        });
                        if is_whole {
                            (taken, moved) = (after, true);
                            next[me] += 1;
                            started[me] = false;
                        }
                    }
                }
                let ends: Vec<usize> = members.iter().map(Vec::len).collect();
                assert_eq!(next.to_vec(), ends, "{name} {kind:?} {non_blocking}");
                let all_sent: usize = sent.values().map(Vec::len).sum();
                assert_eq!(taken.values().sum::<usize>(), all_sent, "{name} {kind:?}");
                assert!(all_sent > 0, "{name} {kind:?}");
            }
        }
    }

    /// Catches work that is not counted, or is counted where the machine has none.
    #[test]
    fn the_library_computes_as_the_machine_says() {
        let gigabyte = weft_units::BitRate::from_bits_per_second(8_000_000_000);
        let algorithms = AlgorithmTable::mpich().forced(Collective::Allreduce, Algorithm::RecursiveDoubling);
        let free = Protocol { algorithms: algorithms.unwrap(), ..Protocol::zero() };
        let work = |protocol: &Protocol, me: usize| -> Span {
            rounds(protocol, Collective::Allreduce, false)[me].iter().map(|round| round.work).sum()
        };
        assert_eq!(work(&free, 1), Span::ZERO);
        let costly = Protocol { reduction_rate: Some(gigabyte), ..free };
        // Seven members fold to four, of which the second takes in its pair's vector and two more.
        assert_eq!(work(&costly, 1), Span::from_us(3 * 80));
        assert_eq!(work(&costly, 0), Span::ZERO);
    }

    /// Catches an algorithm of the hardware that is taken for one of messages.
    #[test]
    fn the_next_rule_holds_in_the_place_of_the_hardware() {
        let mut algorithms = AlgorithmTable::exanest();
        algorithms.prefer(Rule::always(Collective::Allreduce, Algorithm::Accelerator)).unwrap();
        let protocol = Protocol { algorithms, ..Protocol::zero() };
        let (kind, comm, root, request) = (Collective::Allreduce, CommId::WORLD, None, None);
        let sizes = CollectiveSizes { send: Bytes::new(8), receive: Bytes::new(8), ..Default::default() };
        let call = CollectiveCall { kind, comm, root, sizes: &sizes, buffers: Default::default(), request };
        let mut expansion = Expansion::new(RankId(0), 4);
        let expanded = expansion.expand(&protocol, &call).unwrap();
        assert_eq!(expanded.algorithm, Algorithm::RecursiveDoubling);
        assert_eq!(expanded.replaced, Some(Algorithm::Accelerator));
        assert_eq!(expanded.count(), 2 + 2 - 2);
    }
}

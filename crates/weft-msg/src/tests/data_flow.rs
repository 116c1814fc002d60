//! Follows every byte of a collective through the messages that the executor really sends.
//!
//! Each byte of each buffer is known by whose contributions it holds and which byte of theirs it is. A
//! message takes them along as they are when it is posted, and brings them when the receiving rank
//! passes on to the next round. A rank that sends too early, reduces twice or stores in the wrong place
//! is found out.

use super::network::Observer;
use crate::collective::member_part::MemberPart;
use crate::collective::registry::schedule;
use crate::collective::{
    RankBuffer, ReceiveAction, RoundStep, RoundSteps, blocks::Extent, butterfly, linear,
};
use crate::{Algorithm, Body, Envelope, EnvelopeKind, Match, ReceiveEntry, SendEntry};
use std::collections::{BTreeMap, VecDeque};
use weft_trace::op::{Collective, CommId};
use weft_units::RankId;

/// A byte: a bit per member whose contribution it holds, and which byte of theirs.
type Cell = Option<(u64, u64)>;

/// One member's buffers.
struct Member {
    part: MemberPart,
    data: Vec<Cell>,
    input: Vec<Cell>,
    running: Vec<Cell>,
    /// In Bruck's alltoall: the block that goes, or has come, so many members.
    transit: Vec<Vec<Cell>>,
    /// In the butterfly: the data with its blocks in the order of their reversed numbers.
    permuted: Vec<Cell>,
    rounds: Vec<Vec<RoundStep>>,
    round: usize,
    sends: usize,
}

/// A message on its way.
struct Message {
    cells: Vec<Cell>,
    kind: EnvelopeKind,
    /// The entry of an announced one. Its rank uses it again as soon as the data is on its way.
    send: Option<SendEntry>,
    /// The entry that the data of an announced one goes to. Free again when it has arrived.
    receive: Option<ReceiveEntry>,
    arrived: bool,
}

/// One collective.
pub struct DataFlow {
    members: Vec<Member>,
    ranks: Vec<RankId>,
    comm: CommId,
    number: i32,
    algorithm: Algorithm,
    /// By sender and receiver, in the order of sending.
    messages: BTreeMap<(u32, u32), VecDeque<Message>>,
}

/// Several collectives on one communicator, some at the same time.
pub struct DataFlows {
    flows: Vec<DataFlow>,
    /// The flow whose message was the last to be announced by a rank in an entry.
    announced: BTreeMap<(RankId, SendEntry), usize>,
}

impl Observer for DataFlows {
    fn posted(&mut self, from: RankId, to: RankId, envelope: &Envelope) {
        match envelope.body {
            Body::Eager { matching, .. } | Body::Multicast { matching } => {
                let flow = self.called(matching);
                self.flows[flow].posted(from, to, envelope);
            }
            Body::RequestToSend { matching, send, .. } => {
                let flow = self.called(matching);
                self.announced.insert((from, send), flow);
                self.flows[flow].posted(from, to, envelope);
            }
            // Data has no context: it is the flow's that has announced it.
            Body::Data { send, receive } => {
                let flow = self.announced[&(from, send)];
                self.flows[flow].data_posted(from, to, send, receive);
            }
            _ => {}
        }
    }

    fn delivered(&mut self, to: RankId, envelope: &Envelope) {
        let from = envelope.source;
        let message = match envelope.body {
            Body::Eager { matching, .. } | Body::Multicast { matching } => {
                let flow = self.called(matching);
                self.flows[flow].next_eager(from, to)
            }
            Body::Data { receive, .. } => {
                self.flows.iter_mut().find_map(|flow| flow.awaiting(from, to, receive))
            }
            _ => return,
        };
        message.expect("a message arrives that was sent").arrived = true;
    }
}

impl DataFlows {
    /// These collectives, before their first message.
    pub fn new(flows: Vec<DataFlow>) -> DataFlows {
        DataFlows { flows, announced: BTreeMap::new() }
    }

    /// Panics unless every member of every collective has exactly what it should.
    pub fn assert_complete(&mut self) {
        self.flows.iter_mut().for_each(DataFlow::assert_complete);
    }

    /// The collective that has messages with this match.
    fn called(&self, matching: Match) -> usize {
        let Match { comm, context } = matching;
        assert!(context.is_untagged());
        let flow = self.flows.iter().position(|flow| (flow.comm, flow.number) == (comm, context.number()));
        flow.expect("a message of a collective that was not called")
    }
}

impl DataFlow {
    /// The collective of these members, each with its rank and its part, in order.
    pub fn new(
        members: impl Iterator<Item = (RankId, MemberPart)>,
        comm: CommId,
        number: i32,
        algorithm: Algorithm,
    ) -> DataFlow {
        let (ranks, members) = members.map(|(rank, part)| (rank, Member::new(part, algorithm))).unzip();
        DataFlow { members, ranks, comm, number, algorithm, messages: BTreeMap::new() }
    }

    fn member(&self, rank: RankId) -> u32 {
        self.ranks.iter().position(|known| *known == rank).expect("only members take part") as u32
    }

    /// The messages from `from` to `to` that have not been taken, in the order of sending.
    fn messages(&mut self, from: RankId, to: RankId) -> impl DoubleEndedIterator<Item = &mut Message> {
        let member = |rank| self.ranks.iter().position(|known| *known == rank).map(|member| member as u32);
        let key = member(from).zip(member(to));
        key.and_then(|key| self.messages.get_mut(&key)).into_iter().flatten()
    }

    /// The first message without announcement that has not arrived.
    fn next_eager(&mut self, from: RankId, to: RankId) -> Option<&mut Message> {
        let mut messages = self.messages(from, to);
        messages.find(|message| {
            !message.arrived && matches!(message.kind, EnvelopeKind::Eager | EnvelopeKind::Multicast)
        })
    }

    /// The announced message whose data goes to this entry.
    fn awaiting(&mut self, from: RankId, to: RankId, receive: ReceiveEntry) -> Option<&mut Message> {
        let mut messages = self.messages(from, to);
        messages.find(|message| !message.arrived && message.receive == Some(receive))
    }

    /// The data of the last message that was announced in `send` goes on its way to `receive`.
    fn data_posted(&mut self, from: RankId, to: RankId, send: SendEntry, receive: ReceiveEntry) {
        let message = self.messages(from, to).rfind(|message| message.send == Some(send));
        let message = message.expect("data is sent of a message that was announced");
        assert_eq!(message.receive, None, "the data of a message is sent once");
        message.receive = Some(receive);
    }

    fn posted(&mut self, from: RankId, to: RankId, envelope: &Envelope) {
        let (from, to) = (self.member(from), self.member(to));
        let (expected, cells) = loop {
            if let Some(send) = self.members[from as usize].next_send() {
                break send;
            }
            self.finish_round(from);
        };
        assert_eq!(
            expected, to,
            "a send of {from} goes to another member than the schedule of {:?} {}",
            self.members[0].part, self.algorithm
        );
        assert_eq!(envelope.bytes.get(), cells.len() as u64);
        assert!(cells.iter().all(Option::is_some), "member {from} sends what it does not have");
        let message = Message {
            cells,
            kind: envelope.kind(),
            send: envelope.announces(),
            receive: None,
            arrived: false,
        };
        self.messages.entry((from, to)).or_default().push_back(message);
    }

    /// Takes in what a member's present round receives.
    fn finish_round(&mut self, me: u32) {
        let member = &mut self.members[me as usize];
        assert!(member.round < member.rounds.len(), "member {me} sends after its last round");
        for step in member.rounds[member.round].clone() {
            let RoundStep::Receive { from, buffer, piece, into } = step else { continue };
            let message = self.messages.get_mut(&(from, me)).and_then(VecDeque::pop_front);
            let message = message.unwrap_or_else(|| {
                panic!(
                    "{me} goes on without a message from {from}: {:?} {:?} round {}",
                    self.algorithm, member.part, member.round
                )
            });
            assert!(message.arrived, "{me} goes on before the message from {from} has arrived");
            member.take_in(buffer, piece, into, &message.cells);
        }
        let member = &mut self.members[me as usize];
        member.round += 1;
        member.sends = 0;
    }

    /// Panics unless every member has exactly what it should.
    fn assert_complete(&mut self) {
        for me in 0..self.members.len() as u32 {
            while self.members[me as usize].round < self.members[me as usize].rounds.len() {
                assert!(self.members[me as usize].next_send().is_none(), "member {me} has not sent all");
                self.finish_round(me);
            }
        }
        assert!(self.messages.values().all(VecDeque::is_empty), "messages are left");
        let algorithm = self.algorithm;
        for member in &self.members {
            let (part, all) = (&member.part, everybody(member.part.members));
            let own = part.layout();
            let expect = |piece: Extent, origin: u64, first: u64| {
                for place in 0..piece.bytes {
                    let cell = member.data[(piece.offset + place) as usize];
                    assert_eq!(
                        cell,
                        Some((origin, first + place)),
                        "{:?} by {algorithm}: member {} of {}, byte {}",
                        part.kind,
                        part.me,
                        part.members,
                        piece.offset + place
                    );
                }
            };
            match part.kind {
                Collective::Barrier => {}
                // The interfaces have the data.
                _ if algorithm == Algorithm::Accelerator => {}
                Collective::Broadcast => expect(own.whole(), 1 << part.root, 0),
                Collective::Allreduce => expect(own.whole(), all, 0),
                Collective::Reduce if part.me == part.root => expect(own.whole(), all, 0),
                Collective::Gather | Collective::Gatherv if part.me == part.root => {
                    (0..part.members).for_each(|i| expect(own.block(i), 1 << i, 0));
                }
                Collective::Reduce | Collective::Gather | Collective::Gatherv => {}
                Collective::Allgather | Collective::Allgatherv => {
                    (0..part.members).for_each(|i| expect(own.block(i), 1 << i, 0));
                }
                Collective::Scatter => {
                    let block = own.block(part.me);
                    expect(block, 1 << part.root, block.offset);
                }
                Collective::Scatterv => {
                    let given = self.members[part.root as usize].part.layout().block(part.me);
                    let taken = if part.me == part.root { given } else { own.whole() };
                    expect(taken, 1 << part.root, given.offset);
                }
                Collective::ReduceScatterBlock if !member.permuted.is_empty() => {
                    let bits = part.members.trailing_zeros();
                    let (own, place) = (own.block(part.me), own.block(butterfly::mirror(part.me, bits)));
                    let found = &member.permuted[place.offset as usize..][..place.bytes as usize];
                    let expected = (0..own.bytes).map(|byte| Some((all, own.offset + byte)));
                    assert_eq!(*found, expected.collect::<Vec<_>>(), "member {}", part.me);
                }
                Collective::ReduceScatter | Collective::ReduceScatterBlock => {
                    let block = own.block(part.me);
                    expect(block, all, block.offset);
                }
                Collective::Alltoall | Collective::Alltoallv if algorithm == Algorithm::Bruck => {
                    for (distance, block) in member.transit.iter().enumerate() {
                        let source = part.before(distance as u32);
                        let first = own.block(part.me).offset;
                        let expected =
                            (0..own.block(0).bytes).map(|place| Some((1 << source, first + place)));
                        assert_eq!(*block, expected.collect::<Vec<_>>(), "member {}", part.me);
                    }
                }
                kind if exchanges_blocks(kind) => (0..part.members).for_each(|i| {
                    let given = self.members[i as usize].part.input().block(part.me);
                    expect(own.block(i), 1 << i, given.offset);
                }),
                Collective::Scan => expect(own.whole(), everybody(part.me + 1), 0),
                Collective::Exscan if part.me > 0 => expect(own.whole(), everybody(part.me), 0),
                _ => {}
            }
        }
    }
}

/// Whether everybody has a block for everybody, or for its neighbours.
fn exchanges_blocks(kind: Collective) -> bool {
    matches!(kind, Collective::Alltoall | Collective::Alltoallv) || linear::is_neighbourhood(kind)
}

/// A step with a message of its own for each receiver.
fn one_by_one(step: &RoundStep, part: &MemberPart) -> Vec<RoundStep> {
    let RoundStep::Multicast { piece } = *step else { return vec![*step] };
    let others = (0..part.members).filter(|member| *member != part.me);
    others.map(|to| RoundStep::Send { to, from: RankBuffer::Data, piece }).collect()
}

impl Member {
    fn new(part: MemberPart, algorithm: Algorithm) -> Member {
        let (me, total) = (1u64 << part.me, part.layout().total());
        let own = |bytes: u64| (0..bytes).map(|place| Some((me, place))).collect::<Vec<Cell>>();
        let mut data = vec![None; total as usize];
        let mut running = vec![];
        let mut transit = vec![];
        let input = if exchanges_blocks(part.kind) { own(part.input().total()) } else { vec![] };
        let mut place = |piece: Extent, cells: &[Cell]| {
            data[piece.offset as usize..][..piece.bytes as usize].copy_from_slice(cells);
        };
        match part.kind {
            Collective::Broadcast | Collective::Scatter | Collective::Scatterv if part.me != part.root => {}
            Collective::Gather | Collective::Allgather | Collective::Allgatherv => {
                let block = part.layout().block(part.me);
                place(block, &own(block.bytes));
            }
            Collective::Gatherv => {
                let layout = part.layout();
                let block = if part.me == part.root { layout.block(part.me) } else { layout.whole() };
                place(block, &own(block.bytes));
            }
            kind if exchanges_blocks(kind) => {
                let (given, taken) = (part.input().block(part.me), part.layout().block(part.me));
                place(taken, &input[given.offset as usize..][..given.bytes as usize]);
                transit = (0..part.members)
                    .map(|distance| {
                        let block = part.input().block(part.after(distance));
                        input[block.offset as usize..][..block.bytes as usize].to_vec()
                    })
                    .collect();
            }
            Collective::Scan => {
                running = own(total);
                place(part.layout().whole(), &running);
            }
            Collective::Exscan => running = own(total),
            _ => place(part.layout().whole(), &own(total)),
        }
        let schedule = schedule(algorithm);
        let mut rounds: Vec<Vec<RoundStep>> = vec![];
        let mut overlaps = false;
        for round in 0..schedule.rounds(&part) {
            let mut steps = RoundSteps::default();
            schedule.round(&part, round, &mut steps);
            let steps = steps.iter().flat_map(|step| one_by_one(step, &part));
            match rounds.last_mut() {
                Some(before) if overlaps => before.extend(steps),
                _ => rounds.push(steps.collect()),
            }
            overlaps = schedule.overlaps(&part, round);
        }
        let permuted = if algorithm == Algorithm::Butterfly && butterfly::permutes(&part) {
            let bits = part.members.trailing_zeros();
            let blocks = (0..part.members).map(|block| part.layout().block(butterfly::mirror(block, bits)));
            blocks.flat_map(|b| data[b.offset as usize..][..b.bytes as usize].to_vec()).collect()
        } else {
            vec![]
        };
        Member { part, data, input, running, transit, permuted, rounds, round: 0, sends: 0 }
    }

    /// The next send of the present round: to whom, and what.
    fn next_send(&mut self) -> Option<(u32, Vec<Cell>)> {
        let round = self.rounds.get(self.round)?;
        let MemberPart { members, me, .. } = self.part;
        // A multicast is a message to each of the others.
        let mut sends = round.iter().flat_map(|step| match step {
            RoundStep::Send { to, from, piece } => vec![(*to, *from, *piece)],
            RoundStep::Multicast { piece } => {
                let others = (0..members).filter(|&other| other != me);
                others.map(|other| (other, RankBuffer::Data, *piece)).collect()
            }
            _ => Vec::new(),
        });
        let (to, from, piece) = sends.nth(self.sends)?;
        self.sends += 1;
        let cells = match from {
            RankBuffer::Transit => {
                let blocks = self.transit.iter().enumerate().filter(|(i, _)| i >> piece.offset & 1 == 1);
                blocks.flat_map(|(_, block)| block.iter().copied()).collect()
            }
            RankBuffer::Data => places(piece, self.data.len()).map(|i| self.data[i]).collect(),
            RankBuffer::Input => places(piece, self.input.len()).map(|i| self.input[i]).collect(),
            RankBuffer::Permuted => places(piece, self.permuted.len()).map(|i| self.permuted[i]).collect(),
            RankBuffer::Running => places(piece, self.running.len()).map(|i| self.running[i]).collect(),
        };
        Some((to, cells))
    }

    fn take_in(&mut self, buffer: RankBuffer, piece: Extent, into: ReceiveAction, cells: &[Cell]) {
        assert_eq!(piece.bytes, cells.len() as u64, "the two sides know the same size");
        if into == ReceiveAction::CombineBoth {
            take_in(&mut self.data, piece, ReceiveAction::Combine, cells);
        }
        match buffer {
            RankBuffer::Data => take_in(&mut self.data, piece, into, cells),
            RankBuffer::Input => panic!("nothing is received into what a member gives"),
            RankBuffer::Permuted => take_in(&mut self.permuted, piece, into, cells),
            RankBuffer::Running => take_in(&mut self.running, piece, into, cells),
            RankBuffer::Transit => {
                let mut cells = cells.iter();
                for (index, block) in self.transit.iter_mut().enumerate() {
                    if index >> piece.offset & 1 == 1 {
                        block.iter_mut().for_each(|cell| *cell = *cells.next().unwrap());
                    }
                }
                assert!(cells.next().is_none());
            }
        }
    }
}

fn take_in(buffer: &mut [Cell], piece: Extent, into: ReceiveAction, cells: &[Cell]) {
    for (index, new) in places(piece, buffer.len()).zip(cells) {
        let cell = &mut buffer[index];
        *cell = match (into, *cell, *new) {
            (ReceiveAction::Store, _, new) | (_, None, new) => new,
            (_, Some((old, place)), Some((new, other))) => {
                assert_eq!(old & new, 0, "a contribution enters a reduction twice");
                assert_eq!(place, other, "different bytes are reduced");
                Some((old | new, place))
            }
            (_, _, None) => panic!("nothing is reduced"),
        };
    }
}

/// The bytes of a piece, which goes on at the beginning of its buffer.
fn places(piece: Extent, length: usize) -> impl Iterator<Item = usize> {
    (0..piece.bytes).map(move |place| (piece.offset + place) as usize % length)
}

fn everybody(members: u32) -> u64 {
    (1 << members) - 1
}

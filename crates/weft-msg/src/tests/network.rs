//! A network for tests: any delay for any message, in order only where [`Transport`] asks for it.

use crate::{
    AcceleratorLimit, Allreduce, Blocked, CallStatus, Envelope, EnvelopeKind, Group, GroupPosting, Hierarchy,
    Leftovers, MsgError, MulticastLimit, OperationKind, Posting, Process, Protocol, SendToken, TopologyPlace,
    Transport, Work,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weft_trace::op::{CommId, Op};
use weft_units::{Bytes, RankId, Span};

/// How long messages take, in units of no meaning.
#[derive(Clone, Copy, Debug)]
pub enum Delays {
    /// All the same.
    Fixed(u64),
    /// Pseudo-random below 1000, from this seed.
    Random(u64),
}

/// Sees every message at both ends.
pub trait Observer {
    fn posted(&mut self, _from: RankId, _to: RankId, _envelope: &Envelope) {}
    fn delivered(&mut self, _to: RankId, _envelope: &Envelope) {}
}

/// Sees nothing.
struct Blind;
impl Observer for Blind {}

/// The end of a run: blocked ranks, leftovers, times and messages.
#[derive(Debug)]
pub struct Outcome {
    /// The ranks that block for ever.
    pub blocked: Vec<Blocked>,
    /// Per rank.
    pub leftovers: Vec<Leftovers>,
    /// When the last rank ended, in ps.
    pub end: u64,
    /// The processor time that each rank spent, in ps.
    pub spent: Vec<u64>,
    /// Messages with their bytes on the wire.
    pub messages: Vec<(RankId, RankId, Envelope, Bytes)>,
    /// The operations that messages for one rank were posted as part of.
    pub operations: BTreeSet<(EnvelopeKind, OperationKind)>,
}

impl Outcome {
    /// Panics unless all programs ran to their end and nothing is left.
    pub fn assert_clean(&self) {
        let blocked: Vec<String> = self.blocked.iter().map(ToString::to_string).collect();
        assert!(blocked.is_empty(), "{blocked:#?}");
        for (rank, left) in self.leftovers.iter().enumerate() {
            assert_eq!(*left, Leftovers::default(), "rank {rank}");
        }
    }
}

/// The largest number of ranks among which the interfaces of this network reduce.
pub const MAX_ACCELERATED_RANKS: u32 = 16;

/// The largest group to which this network carries a message.
pub const MAX_MULTICAST_RANKS: u32 = 1 << 10;

/// The place of a rank in this network: 1 to 4 groups by the seventh of ranks, neither in their order nor of
/// one size, with two switches each, and one or two ranks at an endpoint.
pub fn place(rank: RankId) -> TopologyPlace {
    let group = rank.0 / 7 * 5 % 4;
    let switch = 2 * group + splitmix(rank.0.into()) as u32 % 2;
    TopologyPlace { group, switch, endpoint: 100 * switch + rank.0 / 2 }
}

enum Event {
    Run,
    Delivered(Envelope),
    Sent(SendToken),
    Accelerated(SendToken),
}

/// An allreduce of the interfaces: when each rank has handed its vector over, and its token.
type Reduction = Vec<(u64, RankId, SendToken)>;

/// Messages that a rank posts: when, to whom, what, with how many bytes on the wire.
type Outbox = Vec<(u64, RankId, Envelope, Bytes, SendToken)>;

struct Rank {
    process: Process,
    program: std::vec::IntoIter<Op>,
    clock: u64,
    spent: u64,
    blocked: bool,
}

/// The transport of one rank during one call. It collects what the rank posts.
struct Port<'a> {
    clock: &'a mut u64,
    spent: &'a mut u64,
    outbox: Outbox,
    /// Allreduces of the interfaces that this rank takes part in: their names, and how many others do.
    reductions: Vec<((CommId, u32), u32, SendToken)>,
    operations: &'a mut BTreeSet<(EnvelopeKind, OperationKind)>,
}

impl Transport for Port<'_> {
    fn spend(&mut self, _: Work, span: Span) {
        *self.clock += span.as_ps();
        *self.spent += span.as_ps();
    }

    fn post(&mut self, Posting { to, envelope, operation, payload, token, .. }: Posting) {
        self.operations.insert((envelope.kind(), operation));
        self.outbox.push((*self.clock, to, envelope, payload, token));
    }

    fn accelerator_limit(&mut self, allreduce: &Allreduce<'_>) -> Option<AcceleratorLimit> {
        let ranks = allreduce.group.size();
        (ranks > MAX_ACCELERATED_RANKS)
            .then_some(AcceleratorLimit::TooManyRanks { ranks, limit: MAX_ACCELERATED_RANKS })
    }

    fn hierarchy(&self, group: Group<'_>) -> Option<Arc<Hierarchy>> {
        Some(Arc::new(Hierarchy::new(group.ranks().map(place))))
    }

    fn multicast_limit(&mut self, group: Group<'_>) -> Option<MulticastLimit> {
        let (ranks, all) = (group.size(), MAX_MULTICAST_RANKS);
        (ranks > all).then_some(MulticastLimit::NotAllRanks { ranks, all })
    }

    fn multicast(&mut self, group: Group<'_>, posting: GroupPosting) {
        let GroupPosting { envelope, payload, mut token, .. } = posting;
        for to in group.ranks().filter(|&to| to != envelope.source) {
            self.outbox.push((*self.clock, to, envelope, payload, token));
            // The data is taken once.
            token = SendToken::UNAWAITED;
        }
    }

    fn allreduce(&mut self, allreduce: &Allreduce<'_>, token: SendToken) {
        let name = (allreduce.group.comm(), allreduce.number);
        self.reductions.push((name, allreduce.group.size(), token));
    }
}

/// The network of one run.
#[derive(Clone, Copy)]
pub struct Network<'p> {
    protocol: &'p Protocol,
    delays: Delays,
    /// Whether every process is saved and loaded before every event.
    reloads: bool,
}

impl<'p> Network<'p> {
    /// A network on which messages take `delays`.
    pub fn new(protocol: &'p Protocol, delays: Delays) -> Network<'p> {
        Network { protocol, delays, reloads: false }
    }

    /// The same network, with every process saved and loaded before every event if `reloads`.
    pub fn reloading(self, reloads: bool) -> Network<'p> {
        Network { reloads, ..self }
    }

    /// Runs one program per rank.
    pub fn run(self, programs: Vec<Vec<Op>>) -> Result<Outcome, MsgError> {
        self.observe(programs, &mut Blind)
    }

    /// Runs one program per rank, where `observer` sees every message.
    pub fn observe(self, programs: Vec<Vec<Op>>, observer: &mut impl Observer) -> Result<Outcome, MsgError> {
        let Network { protocol, delays, reloads } = self;
        let count = programs.len() as u32;
        let mut ranks: Vec<Rank> = programs
            .into_iter()
            .enumerate()
            .map(|(rank, program)| Rank {
                process: Process::new(RankId::from(rank), count),
                program: program.into_iter(),
                clock: 0,
                spent: 0,
                blocked: false,
            })
            .collect();
        let mut events: BTreeMap<(u64, u64), (RankId, Event)> = BTreeMap::new();
        let mut sequence = 0;
        let mut schedule = |events: &mut BTreeMap<_, _>, time: u64, rank, event| {
            sequence += 1;
            events.insert((time, sequence), (rank, event));
        };
        for rank in 0..count {
            schedule(&mut events, 0, RankId(rank), Event::Run);
        }
        let mut last: BTreeMap<(RankId, RankId, bool), u64> = BTreeMap::new();
        let mut reductions: BTreeMap<(CommId, u32), Reduction> = BTreeMap::new();
        let (mut messages, mut random) = (vec![], 0u64);
        let mut operations = BTreeSet::new();
        let mut delay = || match delays {
            Delays::Fixed(delay) => delay,
            Delays::Random(seed) => {
                random += 1;
                splitmix(seed ^ random) % 1000
            }
        };
        while let Some(((time, _), (id, event))) = events.pop_first() {
            let rank = &mut ranks[id.index()];
            rank.clock = rank.clock.max(time);
            if reloads {
                let saved = postcard::to_stdvec(&rank.process).unwrap();
                rank.process = postcard::from_bytes(&saved).unwrap();
            }
            let (clock, spent) = (&mut rank.clock, &mut rank.spent);
            let operations = &mut operations;
            let mut port = Port { clock, spent, outbox: vec![], reductions: vec![], operations };
            let mut by_interface = None;
            match event {
                Event::Run => {}
                Event::Delivered(envelope) => {
                    observer.delivered(id, &envelope);
                    by_interface =
                        protocol.by_interface(id, &envelope).map(|answer| (envelope.source, answer));
                    if let Some((_, answer)) = &by_interface {
                        let operation = rank.process.operation(&answer.envelope);
                        port.operations.insert((answer.envelope.kind(), operation));
                    }
                    if by_interface.is_none() {
                        rank.process.on(protocol, &mut port).delivered(envelope);
                    }
                }
                Event::Accelerated(token) => rank.process.on(protocol, &mut port).accelerated(token),
                Event::Sent(token) => rank.process.on(protocol, &mut port).sent(token),
            }
            if rank.blocked {
                rank.blocked = rank.process.on(protocol, &mut port).resume() == CallStatus::Blocked;
            }
            while !rank.blocked {
                let Some(op) = rank.program.next() else { break };
                if let Op::Compute { span } = op {
                    *port.clock += span.as_ps();
                    *port.spent += span.as_ps();
                    continue;
                }
                rank.blocked = rank.process.on(protocol, &mut port).start(&op)? == CallStatus::Blocked;
            }
            rank.process.check()?;
            for (name, size, token) in std::mem::take(&mut port.reductions) {
                let parts = reductions.entry(name).or_default();
                parts.push((*port.clock, id, token));
                if parts.len() == size as usize {
                    let end = parts.iter().map(|part| part.0).max().unwrap() + delay();
                    for (_, rank, token) in reductions.remove(&name).unwrap() {
                        schedule(&mut events, end, rank, Event::Accelerated(token));
                    }
                }
            }
            // The interface does what it does at once, whatever the rank's clock.
            let by_interface =
                by_interface.map(|(to, answer)| (time, to, answer.envelope, answer.payload, answer.token));
            for (time, to, envelope, payload, token) in port.outbox.into_iter().chain(by_interface) {
                assert_ne!(to, id, "a rank posts nothing to itself");
                observer.posted(id, to, &envelope);
                messages.push((id, to, envelope, payload));
                if token.is_awaited() {
                    schedule(&mut events, time + delay(), id, Event::Sent(token));
                }
                let ordered = envelope.is_ordered();
                let last = last.entry((id, to, ordered)).or_default();
                *last = (*last).max(time + delay());
                schedule(&mut events, *last, to, Event::Delivered(envelope));
            }
        }
        let blocked = ranks.iter().filter_map(|rank| rank.process.waiting_for()).collect();
        Ok(Outcome {
            blocked,
            leftovers: ranks.iter().map(|rank| rank.process.leftovers()).collect(),
            end: ranks.iter().map(|rank| rank.clock).max().unwrap_or(0),
            spent: ranks.iter().map(|rank| rank.spent).collect(),
            messages,
            operations,
        })
    }
}

/// A good hash of a counter (Steele, Lea and Flood 2014).
pub fn splitmix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

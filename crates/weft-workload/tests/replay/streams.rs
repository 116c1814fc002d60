//! Ranks with several streams and events: by hand, and against a small scheduler of their own.

use super::support::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weft_formats::{Trace, TraceHeader, TraceWriter};
use weft_msg::Wildcards;
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::replay::ProgressRule;

/// The streams of a rank, each with its core.
pub type Streams = Vec<(u32, Vec<Op>)>;

pub fn signal(event: u32, at: SignalAt) -> Op {
    Op::Signal { event: EventId(event), at }
}

pub fn awaits(events: &[u32]) -> Op {
    Op::Await { events: events.iter().copied().map(EventId).collect() }
}

/// The trace of ranks with streams, in memory.
pub fn trace_of_streams(ranks: &[Streams]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("streams.weft");
    let header = TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(&path, header).unwrap();
    for (rank, streams) in ranks.iter().enumerate() {
        writer.begin_rank(RankId::from(rank)).unwrap();
        for (number, (core, ops)) in streams.iter().enumerate() {
            if number > 0 {
                writer.begin_stream(*core).unwrap();
            }
            ops.iter().for_each(|op| writer.push(op).unwrap());
        }
    }
    writer.finish().unwrap();
    let trace = Trace::from_bytes("streams.weft", std::fs::read(path).unwrap()).unwrap();
    weft_formats::validate(&trace).unwrap();
    trace
}

/// When each rank ends, in microseconds, where nothing costs anything.
fn ends(ranks: &[Streams], progress: ProgressRule) -> Vec<f64> {
    let outcome = Setup::zero(progress).run(&[trace_of_streams(ranks)], None);
    outcome.assert_finished();
    outcome.ranks.iter().map(|rank| (rank.end - Time::ZERO).as_us_f64()).collect()
}

/// Catches streams of one core that run at once, and streams of two that do not.
#[test]
fn a_core_does_one_thing_at_a_time() {
    for (core, end) in [(0, 30.0), (1, 20.0)] {
        let streams = vec![(0, vec![compute(10)]), (core, vec![compute(20)])];
        for progress in [ProgressRule::Call, ProgressRule::Background] {
            assert_eq!(ends(std::slice::from_ref(&streams), progress), [end]);
        }
    }
}

/// Catches a signal at the start of an operation that comes at its end, and the other way round.
#[test]
fn events_come_at_the_start_or_the_end() {
    for (at, end) in [(SignalAt::Start, 10.0), (SignalAt::End, 15.0)] {
        let streams = vec![(0, vec![compute(10), signal(0, at)]), (1, vec![awaits(&[0]), compute(5)])];
        assert_eq!(ends(&[streams], ProgressRule::Call), [end]);
    }
}

/// Catches a stream that waits for a message and keeps its core, and a message that is taken by a core that
/// is at work.
#[test]
fn a_call_that_waits_leaves_the_core_to_others() {
    let sender: Streams = vec![(0, vec![compute(10), send(1, 0, 8, 0), wait(0)])];
    let receiver =
        |core, us| vec![(0, vec![receive(0, 0, 8, 0), wait(0), compute(1)]), (core, vec![compute(us)])];
    for (core, us, end) in [(0, 7, 11.0), (0, 20, 21.0), (1, 20, 20.0), (1, 5, 11.0)] {
        let found = ends(&[sender.clone(), receiver(core, us)], ProgressRule::Call);
        assert_eq!(found, [10.0, end], "core {core}, {us} us");
    }
    // Somebody else takes the message at once; the processor goes on when it is free.
    assert_eq!(ends(&[sender, receiver(0, 20)], ProgressRule::Background), [10.0, 21.0]);
}

/// Catches a stream that cannot wait for what another has started.
#[test]
fn streams_share_requests() {
    let sender: Streams = vec![(0, vec![compute(10), send(1, 0, 8, 0), wait(0)])];
    let receiver: Streams = vec![
        (0, vec![receive(0, 0, 8, 7), signal(0, SignalAt::End), compute(3)]),
        (1, vec![awaits(&[0]), wait(7), compute(4)]),
    ];
    assert_eq!(ends(&[sender, receiver], ProgressRule::Call), [10.0, 14.0]);
}

/// Catches a rank that hangs without saying which event it lacks.
#[test]
fn a_missing_event_is_named() {
    let streams: Streams =
        vec![(0, vec![compute(1)]), (1, vec![awaits(&[3]), compute(1), signal(4, SignalAt::End)])];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.weft");
    let mut writer = TraceWriter::create(&path, TraceHeader { ranks: 1, ..TraceHeader::default() }).unwrap();
    writer.begin_rank(RankId(0)).unwrap();
    streams[0].1.iter().for_each(|op| writer.push(op).unwrap());
    writer.begin_stream(1).unwrap();
    streams[1].1.iter().for_each(|op| writer.push(op).unwrap());
    writer.finish().unwrap();
    let trace = Trace::from_bytes("bad.weft", std::fs::read(path).unwrap()).unwrap();
    let said = weft_formats::validate(&trace).unwrap_err().to_string();
    assert!(
        said.contains("event 3 is awaited, and nothing signals it") && said.contains("stream 1"),
        "{said}"
    );
    let outcome = Setup::zero(ProgressRule::Call).run(&[trace], None);
    assert!(!outcome.ranks[0].finished);
    assert_eq!(outcome.blocked, ["rank 0, stream 1, waits in await for event 3: nothing has signalled it"]);
}

/// Something that a random program does, in an order in which it can be done.
#[derive(Clone, Debug)]
pub enum Action {
    Compute {
        rank: usize,
        stream: usize,
        ps: u64,
    },
    Message {
        from: (usize, usize),
        to: (usize, usize),
        late: bool,
    },
    /// Two messages to one rank, received from anybody.
    Wildcards {
        from: [(usize, usize); 2],
        to: (usize, usize),
        ps: [u64; 2],
    },
    Event {
        rank: usize,
        from: usize,
        to: usize,
        at: SignalAt,
        ps: u64,
    },
}

const RANKS: usize = 3;
const STREAMS: usize = 3;

pub fn actions() -> impl Strategy<Value = Vec<Action>> {
    let place = || (0..RANKS, 0..STREAMS);
    // Times hardly ever fall together, so that no order between ranks is left open.
    let ps = || 1_000_000u64..1_000_000_000;
    let at = prop_oneof![Just(SignalAt::Start), Just(SignalAt::End)];
    let action = prop_oneof![
        (place(), ps()).prop_map(|((rank, stream), ps)| Action::Compute { rank, stream, ps }),
        (place(), place(), any::<bool>()).prop_map(|(from, to, late)| Action::Message { from, to, late }),
        (place(), place(), place(), ps(), ps()).prop_map(|(a, b, to, x, y)| Action::Wildcards {
            from: [a, b],
            to,
            ps: [x, y]
        }),
        (0..RANKS, 0..STREAMS, 0..STREAMS, at, ps()).prop_map(|(rank, from, to, at, ps)| Action::Event {
            rank,
            from,
            to,
            at,
            ps
        }),
    ];
    prop::collection::vec(action, 1..40)
}

/// The programs of actions: each stream begins with a time of its own.
pub fn programs(actions: &[Action], cores: &[u32; STREAMS]) -> Vec<Streams> {
    let own = |rank: usize, stream: usize| Span::from_ps(7_919 * (1 + rank * STREAMS + stream) as u64);
    let mut ranks: Vec<Streams> = (0..RANKS)
        .map(|rank| (0..STREAMS).map(|s| (cores[s], vec![Op::Compute { span: own(rank, s) }])).collect())
        .collect();
    let mut numbers = [[0u32; 2]; RANKS];
    let mut next = |rank: usize, of: usize| {
        numbers[rank][of] += 1;
        numbers[rank][of]
    };
    let isend = |to: usize, tag, request| send(to as u32, tag, 8, request);
    for (tag, action) in (0..).zip(actions) {
        match *action {
            Action::Compute { rank, stream, ps } => {
                ranks[rank][stream].1.push(Op::Compute { span: Span::from_ps(ps) });
            }
            // A message to itself does not cross the network.
            Action::Message { from, to, .. } if from.0 == to.0 => {}
            Action::Wildcards { from, to, .. } if from.iter().any(|from| from.0 == to.0) => {}
            Action::Message { from, to, late } => {
                let (sent, received) = (next(from.0, 0), next(to.0, 0));
                ranks[from.0][from.1].1.extend([isend(to.0, tag, sent), wait(sent)]);
                let receiver = &mut ranks[to.0][to.1].1;
                receiver.push(receive(from.0 as u32, tag, 8, received));
                if late {
                    receiver.push(Op::Compute { span: Span::from_ps(31_337 * u64::from(received)) });
                }
                receiver.push(wait(received));
            }
            Action::Wildcards { from, to, ps } => {
                for (from, ps) in from.into_iter().zip(ps) {
                    let sent = next(from.0, 0);
                    let sender = &mut ranks[from.0][from.1].1;
                    sender.extend([
                        Op::Compute { span: Span::from_ps(ps) },
                        isend(to.0, tag, sent),
                        wait(sent),
                    ]);
                }
                let requests = [next(to.0, 0), next(to.0, 0)];
                let receiver = &mut ranks[to.0][to.1].1;
                for request in requests {
                    let mut any = receive(0, tag, 8, request);
                    if let Op::Irecv { from, .. } = &mut any {
                        *from = None;
                    }
                    receiver.push(any);
                }
                receiver.extend(requests.map(wait));
            }
            Action::Event { rank, from, to, at, ps } => {
                let event = next(rank, 1);
                ranks[rank][from].1.extend([Op::Compute { span: Span::from_ps(ps) }, signal(event, at)]);
                if to != from {
                    ranks[rank][to].1.push(awaits(&[event]));
                } else {
                    ranks[rank][from].1.push(awaits(&[event]));
                }
            }
        }
    }
    ranks
}

/// Latency of the network of the random programs.
const LATENCY: Span = Span::from_ps(1_234_567);

/// A stream of the small scheduler.
#[derive(Clone, Default)]
struct Lane {
    ops: VecDeque<Op>,
    ready: u64,
    /// Requests or events that it waits for.
    requests: BTreeSet<u32>,
    events: BTreeSet<u32>,
    over: bool,
}

impl Lane {
    fn waits(&self) -> bool {
        !self.requests.is_empty() || !self.events.is_empty()
    }
}

/// The ends of ranks by a scheduler without a simulator: time goes from one thing that happens to the next.
/// All but computation and latency costs nothing, and messages are taken at once.
fn scheduled(ranks: &[Streams]) -> Vec<u64> {
    let mut lanes: Vec<Vec<Lane>> = ranks
        .iter()
        .map(|streams| {
            let lane =
                |(_, ops): &(u32, Vec<Op>)| Lane { ops: ops.iter().cloned().collect(), ..Lane::default() };
            streams.iter().map(lane).collect()
        })
        .collect();
    let mut cores: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); ranks.len()];
    // (arrival, order) of messages under way; what has come and was not received; receives posted.
    let mut under_way: BTreeMap<(u64, u64), (usize, usize, i32)> = BTreeMap::new();
    let mut unexpected: Vec<VecDeque<(usize, i32)>> = vec![VecDeque::new(); ranks.len()];
    let mut posted: Vec<VecDeque<(Option<usize>, i32, u32)>> = vec![VecDeque::new(); ranks.len()];
    let mut done: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); ranks.len()];
    let mut signalled: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); ranks.len()];
    let (mut order, mut arrived) = (0, 0);
    loop {
        let turns = (0..ranks.len()).flat_map(|rank| {
            let of_core = |core: u32| {
                let on = |s: &usize| ranks[rank][*s].0 == core;
                let free = cores[rank].get(&core).copied().unwrap_or(0);
                let able = (0..lanes[rank].len()).filter(on);
                let able = able.filter(|s| !lanes[rank][*s].waits() && !lanes[rank][*s].over);
                let (ready, stream) = able.map(|s| (lanes[rank][s].ready, s)).min()?;
                Some((free.max(ready), rank, stream))
            };
            (0..STREAMS as u32).filter_map(of_core).collect::<Vec<_>>()
        });
        let turn = turns.min();
        let arrival = under_way.keys().next().copied();
        let complete = |lanes: &mut Vec<Lane>, done: &mut BTreeSet<u32>, request: u32, now: u64| match lanes
            .iter_mut()
            .find(|lane| lane.requests.contains(&request))
        {
            None => drop(done.insert(request)),
            Some(lane) => {
                lane.requests.remove(&request);
                lane.ready = lane.ready.max(now);
            }
        };
        match (turn, arrival) {
            (None, None) => break,
            // What can be done at once after an arrival comes before the next one at that time.
            (turn, Some(key)) if turn.is_none_or(|(at, ..)| key.0 <= at && at > arrived) => {
                arrived = key.0;
                let (from, to, tag) = under_way.remove(&key).unwrap();
                let fits = |(source, wanted, _): &(Option<usize>, i32, u32)| {
                    *wanted == tag && source.is_none_or(|source| source == from)
                };
                match posted[to].iter().position(fits) {
                    Some(place) => {
                        let (.., request) = posted[to].remove(place).unwrap();
                        complete(&mut lanes[to], &mut done[to], request, key.0);
                    }
                    None => unexpected[to].push_back((from, tag)),
                }
            }
            (Some((now, rank, stream)), _) => {
                let core = ranks[rank][stream].0;
                let mut end = now;
                match lanes[rank][stream].ops.pop_front() {
                    None => lanes[rank][stream].over = true,
                    Some(Op::Compute { span }) => end = now + span.as_ps(),
                    Some(Op::Isend { to, tag, request, .. }) => {
                        order += 1;
                        under_way.insert((now + LATENCY.as_ps(), order), (rank, to.index(), tag));
                        complete(&mut lanes[rank], &mut done[rank], request.0, now);
                    }
                    Some(Op::Irecv { from, tag, request, .. }) => {
                        let (source, tag) = (from.map(RankId::index), tag.unwrap());
                        let fits = |(from, known): &(usize, i32)| {
                            *known == tag && source.is_none_or(|source| source == *from)
                        };
                        match unexpected[rank].iter().position(fits) {
                            Some(place) => {
                                unexpected[rank].remove(place);
                                complete(&mut lanes[rank], &mut done[rank], request.0, now);
                            }
                            None => posted[rank].push_back((source, tag, request.0)),
                        }
                    }
                    Some(Op::Wait { request }) => {
                        if !done[rank].remove(&request.0) {
                            lanes[rank][stream].requests.insert(request.0);
                        }
                    }
                    Some(Op::Signal { event, .. }) => {
                        happen(&mut lanes[rank], &mut signalled[rank], event.0, now)
                    }
                    Some(Op::Await { events }) => {
                        for event in events {
                            if signalled[rank].remove(&event.0).is_none() {
                                lanes[rank][stream].events.insert(event.0);
                            }
                        }
                    }
                    Some(other) => unreachable!("{other:?}"),
                }
                while let Some(Op::Signal { event, at: SignalAt::Start }) =
                    lanes[rank][stream].ops.front().cloned()
                {
                    lanes[rank][stream].ops.pop_front();
                    happen(&mut lanes[rank], &mut signalled[rank], event.0, now);
                }
                cores[rank].insert(core, end);
                lanes[rank][stream].ready = end;
            }
            (None, Some(_)) => unreachable!("the second case takes it"),
        }
    }
    assert!(lanes.iter().flatten().all(|lane| lane.over));
    cores.iter().map(|cores| cores.values().copied().max().unwrap_or(0)).collect()
}

fn happen(lanes: &mut [Lane], signalled: &mut BTreeMap<u32, u64>, event: u32, now: u64) {
    match lanes.iter_mut().find(|lane| lane.events.contains(&event)) {
        None => drop(signalled.insert(event, now)),
        Some(lane) => {
            lane.events.remove(&event);
            lane.ready = lane.ready.max(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Catches any order of turns, events and messages that is not that of the rules, and a run that goes on
    /// otherwise after it was saved.
    #[test]
    fn streams_end_as_the_small_scheduler_says(done in actions(), cores in 0..4usize) {
        let cores = [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 2]][cores];
        let ranks = programs(&done, &cores);
        let expected = scheduled(&ranks);
        let mut setup = Setup::zero(ProgressRule::Background);
        setup.ideal.latency = LATENCY;
        setup.protocol.wildcards = Wildcards::Free;
        setup.protocol.eager_limit = Bytes::new(1_000);
        let trace = trace_of_streams(&ranks);
        for reload in [None, Some(Span::from_us(300))] {
            let outcome = setup.run(std::slice::from_ref(&trace), reload);
            outcome.assert_finished();
            let found: Vec<u64> = outcome.ranks.iter().map(|rank| (rank.end - Time::ZERO).as_ps()).collect();
            prop_assert_eq!(&found, &expected);
        }
    }
}

//! Modules of several boards, joined by a wire of a fixed latency.

use super::*;
use crate::host_port::{HostPort, HostPortParameters};
use crate::iommu::{FaultModel, Iommu, IommuParameters};
use crate::memory::{MemoryChannel, MemoryParameters};
use crate::reliability::ReliabilityParameters;
use proptest::prelude::*;
use weft_units::{BitRate, Clock, Span};

fn parameters() -> AllreduceParameters {
    AllreduceParameters {
        limits: AcceleratorLimits { ranks: 1024, board: 4, vector: Bytes::new(256) },
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        latency_cycles: 4,
        lookup: Span::ZERO,
        start: Span::from_us(1),
        finish: Span::from_us(1),
        reliability: ReliabilityParameters {
            timeout: Span::from_us(20),
            backoff: 2,
            longest: Span::from_us(80),
            repetitions: 20,
        },
    }
}

#[derive(Default)]
struct Asked {
    wakes: Vec<(Time, OperationId)>,
    packets: Vec<ModulePacket>,
    finished: Vec<(Time, u32, Option<Vec<u8>>)>,
    timers: Vec<Time>,
    failed: Vec<(Time, u32)>,
}

impl ModuleCallbacks for Asked {
    fn wake(&mut self, at: Time, id: OperationId) {
        self.wakes.push((at, id));
    }
    fn send(&mut self, packet: ModulePacket) {
        self.packets.push(packet);
    }
    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>) {
        self.finished.push((at, token, values));
    }
    fn begins(&mut self, _: u32, _: Time) {}
    fn was(&mut self, _: u32, _: ModuleState, _: Time) {}
    fn arm(&mut self, at: Time) {
        self.timers.push(at);
    }
    fn failed(&mut self, at: Time, request: &AllreduceRequest, _: EndpointId) {
        self.failed.push((at, request.token));
    }
}

enum Happening {
    Request(AllreduceRequest, Option<Vec<u8>>),
    Woken(OperationId),
    Packet(PacketOfModule, Option<Vec<u8>>),
    Late,
}

/// A module with what is around it.
type Node = (Module, HostPort, MemoryChannel, Iommu);
type Done = (u32, Time, u32, Option<Vec<u8>>);
type Wanted = (u32, Time, AllreduceRequest, Option<Vec<u8>>);

/// Runs requests, (member, time, request, values), until nothing is left; what finished where, and when.
fn run(requests: Vec<Wanted>, wire: Span) -> Vec<Done> {
    let (done, failed) = run_with_losses(requests, wire, |_, _, _| false);
    assert_eq!(failed, []);
    done
}

/// The parameters of port, translation and memory.
fn way_to_memory() -> (HostPortParameters, IommuParameters, MemoryParameters) {
    let port_parameters = HostPortParameters {
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        round_trip: Span::from_ns(125),
        burst_words: 16,
        outstanding: 8,
        stores: None,
    };
    let (walk, fault) = (Span::ZERO, Span::ZERO);
    let iommu_parameters =
        IommuParameters { page: Bytes::new(4096), entries: 4, ways: 4, walk, faults: FaultModel::Off, fault };
    (port_parameters, iommu_parameters, MemoryParameters::new(BitRate::from_gigabits(130)).unwrap())
}

/// Something happens at a module; returns what that asks for.
fn happen((module, port, memory, iommu): &mut Node, now: Time, what: Happening) -> Asked {
    let (port_parameters, iommu_parameters, memory_parameters) = way_to_memory();
    let mut asked = Asked::default();
    let around = &mut MemoryPath {
        port,
        port_parameters: &port_parameters,
        memory,
        memory_parameters: &memory_parameters,
        iommu,
        iommu_parameters: &iommu_parameters,
    };
    let context = &mut ModuleContext { now, parameters: &parameters(), callbacks: &mut asked };
    match what {
        Happening::Request(request, values) => module.request(request, values, now, context).unwrap(),
        Happening::Woken(id) => module.woken(id, around, context),
        Happening::Packet(packet, values) => module.received(&packet, values, context),
        Happening::Late => module.expired(context),
    }
    asked
}

/// The same on wires of which `lost` says which packets, (from, to, when), do not come. The second list is of
/// those who are told that their request, by its token, has failed.
fn run_with_losses(
    requests: Vec<Wanted>,
    wire: Span,
    mut lost: impl FnMut(u32, u32, Time) -> bool,
) -> (Vec<Done>, Vec<(u32, u32)>) {
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    let mut agenda = BTreeMap::new();
    let mut sequence = 0u64;
    for (node, at, request, values) in requests {
        sequence += 1;
        agenda.insert((at, sequence), (node, Happening::Request(request, values)));
    }
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    while let Some(((now, _), (node, what))) = agenda.pop_first() {
        let asked = happen(nodes.entry(node).or_default(), now, what);
        for (at, id) in asked.wakes {
            sequence += 1;
            agenda.insert((at, sequence), (node, Happening::Woken(id)));
        }
        for ModulePacket { to, id, step, bytes, due, values } in asked.packets {
            assert!(due >= now);
            if lost(node, to.0, due) {
                continue;
            }
            sequence += 1;
            let packet = PacketOfModule { other: EndpointId(node), id, step, bytes };
            agenda.insert((due + wire, sequence), (to.0, Happening::Packet(packet, values)));
        }
        for at in asked.timers {
            sequence += 1;
            agenda.insert((at, sequence), (node, Happening::Late));
        }
        failed.extend(asked.failed.into_iter().map(|(_, token)| (node, token)));
        done.extend(asked.finished.into_iter().map(|(at, token, values)| (node, at, token, values)));
    }
    assert!(nodes.values().all(|(module, ..)| module.unfinished() == 0 && module.early.is_empty()));
    (done, failed)
}

fn request(members: &[u32], own: u32, bytes: u64, sequence: u32) -> AllreduceRequest {
    AllreduceRequest {
        group: 1,
        sequence,
        members: members.iter().copied().map(EndpointId).collect(),
        own,
        bytes: Bytes::new(bytes),
        operation: Operation::Sum,
        data_type: DataType::Double,
        token: 77,
        interface: 0,
        watch: false,
    }
}

/// Catches a transition that was forgotten, added or changed: the table once more, for either role.
#[test]
fn every_pair_of_state_and_event_is_as_documented() {
    use ModuleState::*;
    let events = [
        ModuleEvent::Programmed,
        ModuleEvent::Fetched,
        ModuleEvent::Gathered,
        ModuleEvent::Exchanged,
        ModuleEvent::Result,
    ];
    let client = [
        (Programming, [Some(Fetching), None, None, None, None]),
        (Fetching, [None, Some(Awaiting), None, None, None]),
        (Awaiting, [None, None, None, None, Some(Finishing)]),
        (Gathering, [None; 5]),
        (Exchanging, [None; 5]),
        (Finishing, [None; 5]),
    ];
    let server = [
        (Programming, [Some(Fetching), None, None, None, None]),
        (Fetching, [None, Some(Gathering), None, None, None]),
        (Awaiting, [None; 5]),
        (Gathering, [None, None, Some(Exchanging), None, None]),
        (Exchanging, [None, None, None, Some(Finishing), None]),
        (Finishing, [None; 5]),
    ];
    for (role, table) in [(Role::Client, client), (Role::Server, server)] {
        assert_eq!(table.map(|(state, _)| state), ModuleState::ALL);
        for (state, row) in table {
            assert_eq!(events.map(|event| state.next(event, role)), row, "{state:?} {role:?}");
        }
    }
}

/// The cost of 256 bytes on 16 ranks, step by step, from the figures of §4.2: Fig. 10 has a gathering of
/// three vectors, two exchanges and a broadcast, four times over a wire in all.
#[test]
fn sixteen_ranks_take_two_exchanges() {
    let wire = Span::from_ns(300);
    let members: Vec<u32> = (0..16).collect();
    let done =
        run((0..16).map(|own| (own, Time::ZERO, request(&members, own, 256, 0), None)).collect(), wire);
    let clock = parameters().clock;
    let fetched = clock.edge_at_or_after(Time::ZERO + Span::from_ns(1_125));
    let fetched = clock.later_edge(fetched, 16);
    let serve = |at: Time, times: u64| clock.later_edge(clock.edge_at_or_after(at), 20 * times);
    let gathered = serve(fetched + wire, 3);
    let first = serve(gathered + wire, 1);
    let second = serve(first + wire, 1);
    // Into memory: 16 words and half a round trip; then the software is told.
    let written = |at: Time| clock.later_edge(clock.edge_at_or_after(at), 16) + Span::from_ps(62_500);
    let server = written(second) + Span::from_us(1);
    let client = written(second + wire) + Span::from_us(1);
    for (node, at, token, _) in &done {
        assert_eq!(*token, 77);
        assert_eq!(*at, if node % 4 == 0 { server } else { client }, "F{}", node % 4 + 1);
    }
    assert_eq!(done.len(), 16);
}

/// Catches a vector that goes twice since it is asked for while its receiver is looked up, one that does not
/// go again in the cycle in which it is due, and one that goes again before it goes.
#[test]
fn a_vector_whose_receiver_is_looked_up_is_not_sent_again() {
    type Call<'a> = &'a mut dyn FnMut(&mut Module, &mut ModuleContext<'_, Asked>);
    let (port_parameters, iommu_parameters, memory_parameters) = way_to_memory();
    let around = &mut MemoryPath {
        port: &mut HostPort::default(),
        port_parameters: &port_parameters,
        memory: &mut MemoryChannel::default(),
        memory_parameters: &memory_parameters,
        iommu: &mut Iommu::default(),
        iommu_parameters: &iommu_parameters,
    };
    let parameters = AllreduceParameters { lookup: Span::from_ns(125), ..parameters() };
    let mut module = Module::default();
    let call = |module: &mut Module, now: Time, call: Call<'_>| {
        let mut asked = Asked::default();
        call(module, &mut ModuleContext { now, parameters: &parameters, callbacks: &mut asked });
        asked
    };
    let request = request(&[0, 1, 2, 3], 1, 256, 0);
    let mut asked = call(&mut module, Time::ZERO, &mut |module, context| {
        module.request(request.clone(), None, Time::ZERO, context).unwrap();
    });
    // Programmed, then fetched.
    for _ in 0..2 {
        let (at, id) = asked.wakes.pop().unwrap();
        asked = call(&mut module, at, &mut |module, context| module.woken(id, around, context));
    }
    let ModulePacket { to, id, due, step, .. } = asked.packets.pop().unwrap();
    assert_eq!((to, step), (EndpointId(0), ModulePacketKind::Contribution(1)));
    let answer = |at| {
        let ask = PacketOfModule { other: to, id, step: ModulePacketKind::Ask, bytes: Bytes::ZERO };
        let mut module = module.clone();
        let asked = call(&mut module, at, &mut |module, context| module.received(&ask, None, context));
        let answers = asked.packets.into_iter();
        answers.map(|packet| (packet.step, packet.due)).collect::<Vec<_>>()
    };
    let cycle = Span::from_ps(6_667);
    assert_eq!(answer(due - cycle), [(ModulePacketKind::NotYet, due - cycle)]);
    for came in [due - Span::from_ps(1), due] {
        assert_eq!(answer(came), [(step, due)]);
    }
}

/// Catches packets that overlap on the way in: one of 4 bytes takes three words of a cycle each, and is no
/// later than its tail where there is time for them.
#[test]
fn packets_come_a_word_per_cycle() {
    let (mut module, parameters) = (Module::default(), parameters());
    let mut there = |bytes, at| module.take_words(Bytes::new(bytes), at, &parameters);
    let edge = |number| parameters.clock.edge(number);
    let first = edge(10) - Span::from_ns(1);
    assert_eq!(there(4, first), first);
    assert_eq!(there(4, edge(12)), edge(13));
    assert_eq!(there(0, edge(13)), edge(15));
    assert_eq!(there(256, edge(33)), edge(33));
}

/// Catches blocks of a long vector that overlap: the software triggers the next when one is done.
#[test]
fn a_long_vector_takes_an_operation_per_block() {
    let members: Vec<u32> = (0..8).collect();
    let last = |bytes| {
        let requests = (0..8).map(|own| (own, Time::ZERO, request(&members, own, bytes, 0), None));
        run(requests.collect(), Span::from_ns(300)).iter().map(|done| done.1).max().unwrap()
    };
    let (one, four) = (last(256) - Time::ZERO, last(1024) - Time::ZERO);
    let edges = Span::from_ns(100);
    assert!(four > one * 3 && four <= one * 4 + edges, "{four} for four, {one} for one");
    assert!(last(0) < last(4) && last(4) < last(256));
}

/// Two operations of a group, one after the other, of random vectors.
#[derive(Clone, Debug)]
struct Calls {
    /// Exchanges between servers.
    levels: u32,
    /// The rotation of boards, and of members within a board.
    turn: u32,
    operation: Operation,
    data_type: DataType,
    elements: usize,
    /// The delay of each member's call in ns.
    delays: Vec<u64>,
    seed: u64,
}

/// Any calls, with delays below `latest` ns.
fn any_calls(latest: u64) -> impl Strategy<Value = Calls> {
    let of = (
        prop::sample::select(vec![Operation::Sum, Operation::Min, Operation::Max]),
        prop::sample::select(vec![DataType::Int, DataType::Float, DataType::Double]),
    );
    let delays = prop::collection::vec(0..latest, 64);
    let calls = (0u32..4, 0u32..64, of, 0usize..100, delays, any::<u64>());
    calls.prop_map(|(levels, turn, (operation, data_type), elements, delays, seed)| Calls {
        levels,
        turn,
        operation,
        data_type,
        elements,
        delays,
        seed,
    })
}

/// The number of ranks, their requests, and the results of the operations.
fn random_requests(calls: &Calls) -> (u32, Vec<Wanted>, Vec<Vec<u8>>) {
    let Calls { levels, turn, operation, data_type, elements, ref delays, seed } = *calls;
    let ranks = 4u32 << levels;
    // Boards in another order, and within a board rotated.
    let place = |rank| ((rank / 4) ^ (turn % (ranks / 4))) * 4 + (rank + turn) % 4;
    let members: Vec<u32> = (0..ranks).map(place).collect();
    let mut rng = seed;
    let mut byte = || {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (rng >> 56) as u8
    };
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for sequence in 0..2 {
        let vectors: Vec<Vec<u8>> =
            (0..ranks).map(|_| (0..elements * data_type.width()).map(|_| byte()).collect()).collect();
        expected.push(reference(&vectors, 4, operation, data_type));
        for (own, vector) in (0..ranks).zip(vectors) {
            let mut request = request(&members, own, vector.len() as u64, sequence);
            (request.operation, request.data_type, request.token) = (operation, data_type, sequence);
            let at = Time::ZERO + Span::from_ns(delays[own as usize] + u64::from(sequence));
            requests.push((members[own as usize], at, request, Some(vector)));
        }
    }
    (ranks, requests, expected)
}

/// Catches a member that waits for ever on one that is off the wire, and one that is late taken for dead: the
/// last one calls after 5 ms, long after others would have given up.
#[test]
fn the_dead_are_given_up_and_the_late_are_waited_for() {
    let members: Vec<u32> = (0..16).collect();
    let requests = |late: u32| -> Vec<Wanted> {
        let at = |own| if own == late { Span::from_us(5_000) } else { Span::ZERO };
        (0..16).map(|own| (own, Time::ZERO + at(own), request(&members, own, 256, 0), None)).collect()
    };
    for late in [0, 4, 7] {
        let done = run(requests(late), Span::from_ns(300));
        assert_eq!(done.len(), 16);
        assert!(done.iter().all(|(_, at, ..)| *at < Time::ZERO + Span::from_us(5_010)));
    }
    for dead in [0, 4, 7] {
        let (done, failed) =
            run_with_losses(requests(99), Span::from_ns(300), |from, to, _| from == dead || to == dead);
        let told = failed.iter().map(|(node, _)| *node);
        let all: std::collections::BTreeSet<u32> = done.iter().map(|(node, ..)| *node).chain(told).collect();
        assert_eq!((done.len(), failed.len(), all.len()), (0, 16, 16), "without {dead}");
    }
}

/// Catches time that is counted from between two edges, where the module's logic does not look: a result that
/// comes in the cycle in which time is up is not asked for, and one of the next cycle is.
#[test]
fn a_result_that_comes_as_time_is_up_is_not_asked_for() {
    let questions = |cycles_late: u64| {
        let (mut node, clock) = (Node::default(), parameters().clock);
        let request = request(&[0, 1, 2, 3], 1, 8, 0);
        let mut asked = happen(&mut node, Time::ZERO, Happening::Request(request, None));
        let id = asked.wakes[0].1;
        while let Some((at, id)) = asked.wakes.pop() {
            asked = happen(&mut node, at, Happening::Woken(id));
        }
        let mut timers = asked.timers;
        let server = |step| {
            let packet = PacketOfModule { other: EndpointId(0), id, step, bytes: Bytes::ZERO };
            Happening::Packet(packet, None)
        };
        // The server is alive, as is known at the next edge: it is left alone from there on.
        happen(&mut node, clock.edge(2000) + Span::from_ps(1), server(ModulePacketKind::NotYet));
        let end_of_cycle = clock.edge(2001 + cycles_late) + parameters().reliability.timeout;
        let result_at = Time::from_ps(end_of_cycle.as_ps() - 1);
        let mut questions = 0;
        while let Some(at) = timers.pop().filter(|at| *at < result_at) {
            let asked = happen(&mut node, at, Happening::Late);
            timers.extend(asked.timers);
            questions += asked.packets.len();
        }
        let asked = happen(&mut node, result_at, server(ModulePacketKind::Result));
        assert_eq!(asked.wakes.len(), 1, "the result is taken");
        questions
    };
    assert_eq!([0, 1].map(questions), [0, 1]);
}

/// Catches a vector that puts off the question for others as it comes again.
#[test]
fn a_copy_puts_no_question_off() {
    let (mut node, clock) = (Node::default(), parameters().clock);
    let request = request(&[0, 1, 2, 3], 0, 8, 0);
    let mut asked = happen(&mut node, Time::ZERO, Happening::Request(request, None));
    let id = asked.wakes[0].1;
    while let Some((at, id)) = asked.wakes.pop() {
        asked = happen(&mut node, at, Happening::Woken(id));
    }
    let (step, bytes) = (ModulePacketKind::Contribution(2), Bytes::new(8));
    for came in [2000, 2100] {
        let packet = PacketOfModule { other: EndpointId(2), id, step, bytes };
        let of_copy = happen(&mut node, clock.edge(came), Happening::Packet(packet, None));
        asked.timers.extend(of_copy.timers);
    }
    let mut asked_at = Time::ZERO;
    while let Some(at) = asked.timers.pop().filter(|_| asked.packets.is_empty()) {
        (asked, asked_at) = (happen(&mut node, at, Happening::Late), at);
    }
    let asked: Vec<u32> = asked.packets.iter().map(|packet| packet.to.0).collect();
    let time_is_up = clock.edge(2000) + parameters().reliability.timeout;
    assert_eq!((asked_at, asked), (time_is_up, vec![1, 3]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Lost packets, asking and answering ones among them, change the time and not a bit of the result; what
    /// comes twice is taken once.
    #[test]
    fn losses_change_no_result(calls in any_calls(200_000), per_mille in 1u64..300) {
        let (ranks, requests, expected) = random_requests(&calls);
        let (mut rng, mut losses) = (calls.seed, 0);
        let (done, failed) = run_with_losses(requests, Span::from_ns(300), |_, _, _| {
            rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lost = (rng >> 33) % 1000 < per_mille;
            losses += u32::from(lost);
            lost
        });
        prop_assert_eq!(failed, vec![], "after {} losses", losses);
        prop_assert_eq!(done.len() as u32, 2 * ranks);
        for (node, _, token, values) in done {
            prop_assert_eq!(values.as_ref(), Some(&expected[token as usize]), "at {}", node);
        }
    }

    /// Bit by bit what the documented order gives, whoever comes when, for every operation and type, in
    /// any order of boards and members, and for several operations one after the other.
    #[test]
    fn the_result_is_that_of_the_documented_order(calls in any_calls(20_000)) {
        let (ranks, requests, expected) = random_requests(&calls);
        let done = run(requests, Span::from_ns(300));
        prop_assert_eq!(done.len() as u32, 2 * ranks);
        for (node, _, token, values) in done {
            prop_assert_eq!(values.as_ref(), Some(&expected[token as usize]), "at {}", node);
        }
    }
}

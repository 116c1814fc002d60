//! Modules of several boards, joined by a wire of a fixed latency.

use super::*;
use crate::host_port::{HostPort, HostPortParameters};
use crate::iommu::{FaultModel, Iommu, IommuParameters};
use crate::memory::{MemoryChannel, MemoryParameters};
use proptest::prelude::*;
use weft_units::BitRate;

fn parameters() -> AllreduceParameters {
    AllreduceParameters {
        limits: AcceleratorLimits { ranks: 1024, board: 4, vector: Bytes::new(256) },
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        latency_cycles: 4,
        start: Span::from_us(1),
        finish: Span::from_us(1),
    }
}

#[derive(Default)]
struct Asked {
    wakes: Vec<(Time, OperationId)>,
    packets: Vec<ModulePacket>,
    finished: Vec<(Time, u32, Option<Vec<u8>>)>,
}

impl ModuleSurface for Asked {
    fn wake(&mut self, at: Time, id: OperationId) {
        self.wakes.push((at, id));
    }
    fn send(&mut self, packet: ModulePacket) {
        self.packets.push(packet);
    }
    fn finished(&mut self, at: Time, token: u32, values: Option<Vec<u8>>) {
        self.finished.push((at, token, values));
    }
}

enum Happening {
    Request(AllreduceRequest, Option<Vec<u8>>),
    Woken(OperationId),
    Packet(OperationId, Step, Option<Vec<u8>>),
}

type Done = (u32, Time, u32, Option<Vec<u8>>);

/// Runs requests, (member, time, request, values), until nothing is left; what finished where, and when.
fn run(requests: Vec<(u32, Time, AllreduceRequest, Option<Vec<u8>>)>, wire: Span) -> Vec<Done> {
    let port_parameters = HostPortParameters {
        clock: Clock::from_hertz(150_000_000).unwrap(),
        word: Bytes::new(16),
        round_trip: Span::from_ns(125),
        burst_words: 16,
        outstanding: 8,
    };
    let (walk, fault) = (Span::ZERO, Span::ZERO);
    let iommu_parameters =
        IommuParameters { page: Bytes::new(4096), entries: 4, ways: 4, walk, faults: FaultModel::Off, fault };
    let memory_parameters = MemoryParameters::new(BitRate::from_gigabits(130)).unwrap();
    let mut nodes: BTreeMap<u32, (Module, HostPort, MemoryChannel, Iommu)> = BTreeMap::new();
    let mut agenda = BTreeMap::new();
    let mut sequence = 0u64;
    for (node, at, request, values) in requests {
        sequence += 1;
        agenda.insert((at, sequence), (node, Happening::Request(request, values)));
    }
    let mut done = Vec::new();
    while let Some(((now, _), (node, what))) = agenda.pop_first() {
        let mut asked = Asked::default();
        let (module, port, memory, iommu) = nodes.entry(node).or_default();
        let around = &mut MemoryPath {
            port,
            port_parameters: &port_parameters,
            memory,
            memory_parameters: &memory_parameters,
            iommu,
            iommu_parameters: &iommu_parameters,
        };
        match what {
            Happening::Request(request, values) => {
                module.request(request, values, now, &parameters(), &mut asked).unwrap();
            }
            Happening::Woken(id) => module.woken(id, now, &parameters(), around, &mut asked),
            Happening::Packet(id, step, values) => {
                module.received(id, step, values, now, &parameters(), &mut asked);
            }
        }
        for (at, id) in asked.wakes {
            sequence += 1;
            agenda.insert((at, sequence), (node, Happening::Woken(id)));
        }
        for ModulePacket { to, id, step, due, values, .. } in asked.packets {
            assert!(due >= now);
            sequence += 1;
            agenda.insert((due + wire, sequence), (to.0, Happening::Packet(id, step, values)));
        }
        done.extend(asked.finished.into_iter().map(|(at, token, values)| (node, at, token, values)));
    }
    assert!(nodes.values().all(|(module, ..)| module.unfinished() == 0 && module.early.is_empty()));
    done
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
        watch: false,
    }
}

/// The documented order, without any machine: boards in rank order, then pairs of boards.
fn reference(vectors: &[Vec<u8>], operation: Operation, data_type: DataType) -> Vec<u8> {
    let fold = |group: &[Vec<u8>]| {
        let mut all = group.iter().cloned();
        let first = all.next().unwrap();
        all.fold(first, |mut low, high| {
            reduce(&mut low, &high, operation, data_type);
            low
        })
    };
    let mut boards: Vec<Vec<u8>> = vectors.chunks(4).map(fold).collect();
    while boards.len() > 1 {
        boards = boards.chunks(2).map(fold).collect();
    }
    boards.remove(0)
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Bit by bit what the documented order gives, whoever comes when, for every operation and type, in
    /// any order of boards and members, and for several operations one after the other.
    #[test]
    fn the_result_is_that_of_the_documented_order(
        levels in 0u32..4,
        turn in 0u32..64,
        operation in prop::sample::select(vec![Operation::Sum, Operation::Min, Operation::Max]),
        data_type in prop::sample::select(vec![DataType::Int, DataType::Float, DataType::Double]),
        elements in 0usize..100,
        delays in prop::collection::vec(0u64..20_000, 64),
        seed in any::<u64>(),
    ) {
        let ranks = 4u32 << levels;
        // Boards in another order, and within a board rotated.
        let members: Vec<u32> = (0..ranks).map(|rank| {
            let board = (rank / 4) ^ (turn % (ranks / 4));
            board * 4 + (rank + turn) % 4
        }).collect();
        let mut dice = seed;
        let mut byte = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 56) as u8
        };
        let mut requests = Vec::new();
        let mut expected = Vec::new();
        for sequence in 0..2 {
            let vectors: Vec<Vec<u8>> = (0..ranks)
                .map(|_| (0..elements * data_type.width()).map(|_| byte()).collect())
                .collect();
            expected.push(reference(&vectors, operation, data_type));
            for (own, vector) in (0..ranks).zip(vectors) {
                let mut request = request(&members, own, vector.len() as u64, sequence);
                (request.operation, request.data_type, request.token) = (operation, data_type, sequence);
                let at = Time::ZERO + Span::from_ns(delays[own as usize] + u64::from(sequence));
                requests.push((members[own as usize], at, request, Some(vector)));
            }
        }
        let done = run(requests, Span::from_ns(300));
        prop_assert_eq!(done.len() as u32, 2 * ranks);
        for (node, _, token, values) in done {
            prop_assert_eq!(values.as_ref(), Some(&expected[token as usize]), "at {}", node);
        }
    }
}

//! Critical paths against closed forms, and exact on random programs.

use super::chain::{programs, step};
use super::streams::{self, Streams, actions, awaits, signal, trace_of_streams};
use super::support::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::{Model, Progress, Simulation};
use weft_fabric::parameters::{
    ArbiterKind, CreditUnit, FasterLink, Forwarding, PacketFormat, SwitchKind, SwitchParameters,
};
use weft_fabric::{Ideal, LinkLayer, LinkParameters, Network, NetworkParameters};
use weft_formats::Trace;
use weft_msg::{Protocol, Work};
use weft_nic::{NicParameters, OverheadsNic};
use weft_topo::{Layout, Star, StarRouting};
use weft_trace::op::*;
use weft_units::{BitRate, Bytes, Clock, LineCode, RankId, Span, Time};
use weft_workload::mapping::Hosts;
use weft_workload::path::{Category, Pace, PathTrace, PieceKind, Walk, message_time, rank_time};
use weft_workload::replay::*;

/// Runs a simulation to its end and returns its record.
fn finished<M: Model<Output = ReplayOutput>>(mut simulation: Simulation<M>, pace: Pace) -> PathTrace {
    assert_eq!(simulation.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
    let (mut record, mut hops, mut stages) = (Record::default(), Vec::new(), Vec::new());
    for output in simulation.outputs_mut() {
        let output = std::mem::take(output);
        assert!(output.faults.is_empty(), "{:?}", output.faults);
        record.append(output.record);
        hops.extend(output.hops);
        stages.extend(output.stages);
    }
    PathTrace::new(record, hops, stages, pace)
}

/// A network and the part of a run on it that is recorded.
struct Recording<'s> {
    setup: &'s Setup,
    /// A star with this switch; `None`: the ideal network.
    star: Option<SwitchParameters>,
    threads: usize,
    from: Span,
}

/// The record of some programs on the ideal network, from the beginning.
fn recorded(setup: &Setup, ranks: &[Vec<Op>]) -> PathTrace {
    Recording::new(setup, None).run(ranks)
}

impl Recording<'_> {
    fn new(setup: &Setup, star: Option<SwitchParameters>) -> Recording<'_> {
        Recording { setup, star, threads: 1, from: Span::ZERO }
    }

    /// Runs programs and returns their record.
    fn run(&self, ranks: &[Vec<Op>]) -> PathTrace {
        self.run_trace(&trace_of(ranks))
    }

    fn run_trace(&self, trace: &Trace) -> PathTrace {
        let Recording { setup, star, threads, from } = *self;
        let endpoints = trace.ranks().div_ceil(setup.per_host);
        let hosts = Hosts { hosts: endpoints, cores: setup.per_host, endpoints_per_host: 1 };
        let places = hosts.linear(trace.ranks().into(), None).unwrap();
        let programs = vec![Program { operations: trace.source().into(), places }];
        let mut parameters = ReplayParameters::new(programs, setup.protocol.clone(), setup.progress);
        parameters.record_from = Some(Time::ZERO + from);
        let pace = Pace {
            packet_payload: setup.simple.payload,
            receive_packet: setup.simple.receive_packet,
            send_packet: Span::ZERO,
            switch_cycle: Span::from_ns(5),
            interface_cycle: Span::ZERO,
        };
        let mut nics = parameters.hosts(endpoints).into_iter().map(OverheadsNic::new);
        let shared = NicParameters { interface: setup.simple, host: parameters };
        let Some(switch) = star else {
            let initial = Ideal::build(setup.ideal, endpoints, shared, |_, _| nics.next().unwrap());
            return finished(Simulation::new(initial, threads), pace);
        };
        let layout = Layout::Star(StarRouting::new(Star::new(endpoints.into()).unwrap()));
        let link = LinkParameters {
            rate: BitRate::from_gigabits(16),
            code: LineCode::NONE,
            latency: Span::from_ns(20),
            framing: Bytes::ZERO,
            routing: Span::ZERO,
            layer: LinkLayer::PLAIN,
        };
        let format = PacketFormat { header: Bytes::ZERO, footer: Bytes::ZERO, payload: setup.simple.payload };
        let parameters_of_network =
            NetworkParameters { layout, format, links: vec![link; 2], switch, seed: 1 };
        let initial = Network::build(parameters_of_network, shared, |_, _| nics.next().unwrap()).unwrap();
        finished(Simulation::new(initial, threads), pace)
    }
}

/// 200 MHz, a pipeline of 2 cycles: a packet of 250 bytes takes 25 cycles on the line of the star.
fn switch(forwarding: Forwarding) -> SwitchParameters {
    SwitchParameters {
        kind: SwitchKind::VirtualOutputQueued,
        arbiter: ArbiterKind::RoundRobin,
        clock: Clock::from_hertz(200_000_000).unwrap(),
        pipeline_cycles: 2,
        forwarding,
        faster_link: FasterLink::Bubble,
        buffer: Bytes::new(4 * 256),
        credit: CreditUnit::Bytes,
        output_buffer: None,
        buffer_per: weft_fabric::parameters::BufferPer::Channel,
        flow_control: weft_fabric::parameters::FlowControl::Credits,
        channels: weft_fabric::parameters::ChannelParameters::default(),
    }
}

/// The sum of walks' pieces in each category that has any.
fn shares(walks: &[Walk]) -> BTreeMap<Category, Span> {
    let mut shares = BTreeMap::new();
    for piece in walks.iter().flat_map(|walk| &walk.pieces) {
        *shares.entry(piece.kind.category()).or_insert(Span::ZERO) += piece.span();
    }
    shares
}

fn ns(spans: &[(Category, u64)]) -> BTreeMap<Category, Span> {
    spans.iter().map(|&(category, ns)| (category, Span::from_ns(ns))).collect()
}

fn critical(trace: &PathTrace) -> Walk {
    let last = trace.finishes().iter().max_by_key(|finish| finish.at).unwrap();
    Walk::to(trace, last, Time::ZERO)
}

/// The categories of the critical path.
fn critical_shares(trace: &PathTrace) -> BTreeMap<Category, Span> {
    shares(&[critical(trace)])
}

/// The own time of a rank on one core.
fn time_of(trace: &PathTrace, finish: &Finish) -> Walk {
    let mut walks = rank_time(trace, finish, Time::ZERO);
    assert_eq!(walks.len(), 1);
    walks.remove(0)
}

fn one_message(bytes: u64) -> Vec<Vec<Op>> {
    vec![vec![compute(10), send(1, 7, bytes, 0), wait(0)], vec![receive(0, 7, bytes, 0), wait(0)]]
}

/// Catches a piece of a message's way that is left out, counted twice or in the wrong category.
#[test]
fn an_eager_message_is_split_into_its_parts() {
    use Category::*;
    let trace = recorded(&Setup::costly(ProgressRule::Call), &one_message(200));
    // Software: send call; receive message, one entry looked at. Interface: 31 + 13 before, 5 + 41 behind.
    // 224 bytes on the wire.
    let software = 113 + 97 + 3;
    let expected = [
        (Computation, 10_000),
        (Software, software),
        (Interface, 31 + 13 + 5 + 41),
        (Network, 1_003),
        (Serialization, 112),
    ];
    let walk = critical(&trace);
    assert_eq!(critical_shares(&trace), ns(&expected));
    assert_eq!((walk.begin, walk.end), (Time::ZERO, trace.finishes()[1].at));
}

/// Catches packets of the message itself that count as those of others, and legs that are left out.
#[test]
fn a_rendezvous_is_split_into_its_parts() {
    use Category::*;
    let trace = recorded(&Setup::costly(ProgressRule::Call), &one_message(3_000));
    let interface = 31 + 13 + 5 + 41;
    // Request to send, clear to send, data: 8 + 8 + 1500 ns on the line, in one, one and 12 packets.
    let expected = [
        (Computation, 10_000),
        (Software, 113 + 61 + (59 + 3 + 61) + (59 + 67) + 97),
        (Interface, 3 * interface),
        (Network, 3 * 1_003),
        (Serialization, 8 + 8 + 1_500),
    ];
    assert_eq!(critical_shares(&trace), ns(&expected));
}

/// Catches waiting for a partner that computes that is not told from waiting for the network.
#[test]
fn a_late_sender_is_late() {
    use Category::*;
    let trace = recorded(&Setup::costly(ProgressRule::Call), &one_message(200));
    let receiver = rank_time(&trace, &trace.finishes()[1], Time::ZERO);
    let before = 71 + 53;
    let expected = [
        (Software, before + 113 + 97 + 3),
        (Interface, 31 + 13 + 5 + 41),
        (Network, 1_003),
        (Serialization, 112),
        (LatePartner, 10_000 - before),
    ];
    assert_eq!(shares(&receiver), ns(&expected));
    // The sender waits for the interface to take its data.
    let sender = rank_time(&trace, &trace.finishes()[0], Time::ZERO);
    let expected = [(Computation, 10_000), (Software, 113 + 53), (Interface, 0)];
    let shares = shares(&sender);
    assert_eq!(shares[&Computation], ns(&expected)[&Computation]);
    assert_eq!(shares[&Software], ns(&expected)[&Software]);
    assert!(!shares.contains_key(&LatePartner), "{shares:?}");
}

/// Catches a rendezvous whose partner answers at once and is called late all the same.
#[test]
fn a_partner_that_answers_at_once_is_not_late() {
    let ranks = [vec![send(1, 7, 3_000, 0), wait(0)], vec![receive(0, 7, 3_000, 0), wait(0)]];
    let trace = recorded(&Setup::costly(ProgressRule::Call), &ranks);
    for finish in trace.finishes() {
        let shares = shares(&rank_time(&trace, finish, Time::ZERO));
        let late = shares.get(&Category::LatePartner).copied().unwrap_or_default();
        // The receiver's wait begins after 71 + 53 ns, the sender has posted after 113 + 61.
        assert_eq!(late, Span::ZERO, "{shares:?}");
    }
}

/// Catches a wait that another than the rank's processor ends and that counts for what the rank does next.
#[test]
fn a_wait_is_one_of_its_call_whoever_ends_it() {
    let ranks = [
        vec![compute(10), send(1, 7, 3_000, 0), wait(0), compute(10)],
        vec![receive(0, 7, 3_000, 0), wait(0), compute(10)],
    ];
    for progress in [ProgressRule::Call, ProgressRule::Background] {
        let trace = recorded(&Setup::costly(progress), &ranks);
        for finish in trace.finishes() {
            let time = time_of(&trace, finish);
            let calls: Vec<_> =
                time.pieces.iter().filter(|one| one.message.is_some()).map(|one| one.within).collect();
            assert!(!calls.is_empty() && calls.iter().all(|call| *call == Some("wait")), "{calls:?}");
        }
    }
}

/// Two endpoints send to a third at the same time. Catches contention that is lost among serialization:
/// whoever comes second waits for as long as the other takes.
#[test]
fn contention_is_what_the_other_takes() {
    let setup = Setup { simple: Setup::zero(ProgressRule::Call).simple, ..Setup::zero(ProgressRule::Call) };
    let setup = Setup { protocol: Protocol { wait_call: Span::from_ns(1), ..Protocol::zero() }, ..setup };
    let bytes = 250;
    let ranks = [
        vec![send(2, 7, bytes, 0), wait(0)],
        vec![send(2, 7, bytes, 0), wait(0)],
        vec![
            receive(0, 7, bytes, 0),
            receive(1, 7, bytes, 1),
            Op::Waitall { requests: vec![RequestId(0), RequestId(1)] },
        ],
    ];
    let trace = Recording::new(&setup, Some(switch(Forwarding::VirtualCutThrough))).run(&ranks);
    use Category::*;
    // Links of 20 ns, a pipeline of 10 ns, 125 ns for a packet.
    let expected = [(Network, 20 + 10 + 20), (Serialization, 125), (Contention, 125)];
    assert_eq!(critical_shares(&trace), ns(&expected));
}

/// Catches a message's own packets that count as others' where a switch stores packets or holds them up.
#[test]
fn a_message_alone_meets_no_contention() {
    for forwarding in [Forwarding::VirtualCutThrough, Forwarding::StoreAndForward] {
        for bytes in [0, 100, 256, 257, 5_000] {
            for progress in [ProgressRule::Call, ProgressRule::Background] {
                let setup = Setup::costly(progress);
                let trace = Recording::new(&setup, Some(switch(forwarding))).run(&one_message(bytes));
                let shares = critical_shares(&trace);
                assert!(!shares.contains_key(&Category::Contention), "{bytes} {forwarding:?}: {shares:?}");
            }
        }
    }
}

/// Catches a cost of the protocol that is reported under another's name.
#[test]
fn software_is_named_by_its_cost() {
    let trace = recorded(&Setup::costly(ProgressRule::Call), &one_message(200));
    let named: Vec<_> = critical(&trace)
        .pieces
        .iter()
        .filter_map(|piece| match piece.kind {
            PieceKind::Software(work, call) => {
                Some((work, call.map_or("", |call| call.name()), piece.span()))
            }
            _ => None,
        })
        .collect();
    let expected = [
        (Work::SendCall, "isend", Span::from_ns(113)),
        (Work::ReceiveMessage, "wait", Span::from_ns(97)),
        (Work::Matching, "wait", Span::from_ns(3)),
    ];
    assert_eq!(named, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every picosecond of the critical path and of each rank's time is in exactly one piece, nothing is
    /// left unexplained, and neither depends on threads. [`Walk`] itself asserts that pieces are in order
    /// and without gaps.
    #[test]
    fn every_picosecond_is_explained_once(
        steps in prop::collection::vec(step(true), 1..40),
        background in any::<bool>(),
        on_star in any::<bool>(),
        per_host in 1..3u32,
    ) {
        let progress = if background { ProgressRule::Background } else { ProgressRule::Call };
        let setup = Setup { per_host, ..Setup::costly(progress) };
        let star = on_star.then(|| switch(Forwarding::VirtualCutThrough));
        let ranks = programs(&steps);
        let trace = Recording::new(&setup, star).run(&ranks);
        let path = critical(&trace);
        prop_assert_eq!(path.begin, Time::ZERO);
        prop_assert_eq!(trace.finishes().len(), ranks.len());
        let again = Recording { threads: 2, ..Recording::new(&setup, star) }.run(&ranks);
        prop_assert_eq!(&critical(&again), &path);
        for finish in trace.finishes() {
            let time = time_of(&trace, finish);
            prop_assert_eq!((time.begin, time.end), (Time::ZERO, finish.at));
            prop_assert!(time_of(&again, finish) == time);
            prop_assert!(!shares(&[time]).contains_key(&Category::NotRecorded));
        }
    }

    /// A recording that begins late explains what it has, and the same as a whole one does.
    #[test]
    fn a_late_recording_agrees_with_a_whole_one(
        steps in prop::collection::vec(step(true), 1..40),
        from_ns in 0..20_000u64,
    ) {
        let setup = Setup::costly(ProgressRule::Call);
        let ranks = programs(&steps);
        let whole = critical(&recorded(&setup, &ranks));
        let late = Recording { from: Span::from_ns(from_ns), ..Recording::new(&setup, None) };
        let late = critical(&late.run(&ranks));
        prop_assert_eq!(late.end, whole.end);
        let common: Vec<_> = whole.pieces.iter().filter(|piece| piece.begin >= late.begin).collect();
        prop_assert_eq!(common, late.pieces.iter().collect::<Vec<_>>());
    }
}

/// Catches a core that waits for another of its rank, or has nothing to do, and counts as at work; the other
/// way round; and a path that does not go through both.
#[test]
fn a_core_that_waits_for_another_is_told_from_one_that_works() {
    use Category::*;
    let rank: Streams = vec![
        (0, vec![compute(10), signal(0, SignalAt::End), awaits(&[1]), compute(1)]),
        (1, vec![compute(4), awaits(&[0]), compute(20), signal(1, SignalAt::End)]),
    ];
    let setup = Setup::zero(ProgressRule::Call);
    let trace = Recording::new(&setup, None).run_trace(&trace_of_streams(&[rank]));
    let cores = rank_time(&trace, &trace.finishes()[0], Time::ZERO);
    let expected =
        [[(Computation, 11_000), (LatePartner, 20_000)], [(Computation, 24_000), (LatePartner, 7_000)]];
    assert_eq!(cores.len(), 2);
    for (core, expected) in cores.iter().zip(expected) {
        assert_eq!(shares(std::slice::from_ref(core)), ns(&expected));
    }
    let path: Vec<u64> =
        critical(&trace).pieces.iter().map(|piece| piece.span().as_ps() / 1_000_000).collect();
    assert_eq!(path, [10, 20, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Catches a picosecond of a core that is explained twice, or by nothing, a cause that does not end where
    /// its step begins, and computation that is not that of the trace.
    #[test]
    fn every_picosecond_of_every_core_is_explained_once(
        done in actions(),
        cores in 0..4usize,
        background in any::<bool>(),
    ) {
        let cores = [[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 2]][cores];
        let ranks = streams::programs(&done, &cores);
        let progress = if background { ProgressRule::Background } else { ProgressRule::Call };
        let setup = Setup::costly(progress);
        let trace = trace_of_streams(&ranks);
        let record = Recording::new(&setup, None).run_trace(&trace);
        let again = Recording { threads: 2, ..Recording::new(&setup, None) }.run_trace(&trace);
        let path = critical(&record);
        prop_assert_eq!(path.begin, Time::ZERO);
        prop_assert_eq!(&critical(&again), &path);
        for finish in record.finishes() {
            let walks = rank_time(&record, finish, Time::ZERO);
            prop_assert_eq!(walks.len() as u32, cores.iter().max().unwrap() + 1);
            for walk in &walks {
                prop_assert_eq!((walk.begin, walk.end), (Time::ZERO, finish.at));
            }
            let computes = ranks[finish.rank.index()].iter().flat_map(|(_, ops)| ops);
            let computes = computes.fold(Span::ZERO, |sum, op| match op {
                Op::Compute { span } => sum + *span,
                _ => sum,
            });
            let shares = shares(&walks);
            prop_assert_eq!(shares[&Category::Computation], computes);
            prop_assert!(!shares.contains_key(&Category::NotRecorded));
            prop_assert!(rank_time(&again, finish, Time::ZERO) == walks);
        }
    }
}

#[test]
fn ranks_are_named_in_the_trace() {
    let trace = recorded(&Setup::costly(ProgressRule::Call), &one_message(8));
    assert!(trace.steps(RankId(0)).iter().all(|step| step.rank == RankId(0)));
    assert!(trace.steps(RankId(9)).is_empty());
}

/// Catches a message whose pieces have a gap where its record begins after its post, and steps that are taken
/// for others once those before them have been let go.
#[test]
fn a_message_that_was_posted_before_its_record_is_whole() {
    let at = |ns: u64| Time::ZERO + Span::from_ns(ns);
    let rank = RankId(0);
    let message = MessageId { source: weft_units::EndpointId(0), number: 9 };
    let step = |number: u32, from, to| RankStep {
        rank,
        number,
        core: 0,
        begin: at(from),
        end: at(to),
        kind: StepKind::Software(Work::SendCall, None),
        cause: Cause::After(number - 1),
        first: true,
        within: None,
        background: false,
    };
    let (kind, payload) = (weft_msg::EnvelopeKind::Eager, Bytes::ZERO);
    let post = PostedMessage { message, rank, to: RankId(1), kind, payload, at: at(20), after: 6 };
    let steps = vec![step(5, 10, 14), step(6, 14, 20)];
    let record = Record { steps, posts: vec![post], finishes: Vec::new() };
    let pace = Pace {
        packet_payload: Bytes::new(256),
        receive_packet: Span::ZERO,
        send_packet: Span::ZERO,
        switch_cycle: Span::ZERO,
        interface_cycle: Span::ZERO,
    };
    let trace = PathTrace::new(record, Vec::new(), Vec::new(), pace);
    let walk = message_time(&trace, message, rank, (at(3), at(30)));
    let times: Vec<_> = walk.pieces.iter().map(|piece| (piece.end - at(0), piece.kind.category())).collect();
    let ns = Span::from_ns;
    use Category::{Interface, NotRecorded, Software};
    assert_eq!(times, [(ns(10), NotRecorded), (ns(14), Software), (ns(20), Software), (ns(30), Interface)]);
    // Of a message of which nothing is recorded.
    let other = MessageId { number: 8, ..message };
    assert_eq!(message_time(&trace, other, rank, (at(3), at(30))).pieces.len(), 1);
}

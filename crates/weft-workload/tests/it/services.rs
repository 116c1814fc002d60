//! Key-value stores and their clients on a switch, with what is beside them.

use crate::machine::{link, star, switch};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation};
use weft_fabric::parameters::{ArbiterKind, PacketFormat, SwitchKind};
use weft_fabric::{Network, NetworkParameters};
use weft_nic::{NicParameters, OverheadsNic, OverheadsParameters};
use weft_topo::{Layout, Topology};
use weft_units::{Bytes, EndpointId, Span, Time};
use weft_workload::host::{Beside, NoRanks, RankHost, SharedHost, SharedOutput, SharedParameters};
use weft_workload::replay::{ProgressRule, ReplayHost, ReplayParameters};
use weft_workload::scenario::{FlowPlan, Generators, Pace, ScenarioOutput, ScenarioParameters, Sizes};
use weft_workload::services::key_value::{
    ClientPlan, KeyValue, KeyValueOutput, KeyValueParameters, StorePlan,
};

/// Stores at the first endpoints of a star, a client at each, and a flow if there is one.
#[derive(Clone, Debug)]
struct Case {
    endpoints: u32,
    stores: u32,
    store: StorePlan,
    client: ClientPlan,
    flow: Option<FlowPlan>,
}

impl Case {
    fn new(endpoints: u32, stores: u32) -> Case {
        Case {
            endpoints,
            stores,
            store: StorePlan {
                service_time: Span::from_ns(1_700),
                threads: 1,
                key: Bytes::new(16),
                value: Some(Bytes::new(1_000)),
            },
            client: ClientPlan {
                store: 0,
                at: (0..stores).map(EndpointId).collect(),
                window: 1,
                gap: Span::ZERO,
                requests: Some(1),
                gets: 1_000_000,
                keys: 100,
                sizes: Sizes::Fixed(Bytes::new(700)),
                start: Time::ZERO,
                stop: Time::NEVER,
            },
            flow: None,
        }
    }

    /// The same with one transfer from an endpoint to another.
    fn transfer(&self, (from, to): (u32, u32), bytes: u64, start: Time) -> Case {
        let flow = FlowPlan {
            group: 0,
            source: EndpointId(from),
            to: vec![EndpointId(to)],
            sizes: Sizes::Fixed(Bytes::new(bytes)),
            pace: Pace::Gap(Span::ZERO),
            start,
            phase: Span::ZERO,
            stop: Time::NEVER,
            transfers: Some(1),
            class: None,
        };
        Case { flow: Some(flow), ..self.clone() }
    }

    fn beside(&self) -> Beside {
        Beside {
            interface: 0,
            flows: ScenarioParameters { flows: self.flow.iter().cloned().collect(), ..Default::default() },
            key_value: KeyValueParameters {
                stores: vec![self.store.clone()],
                clients: vec![self.client.clone()],
                counted_from: Time::ZERO,
                ..Default::default()
            },
        }
    }

    /// The host of an endpoint, where `clients` says who has one.
    fn host<R>(&self, ranks: R, endpoint: EndpointId, clients: &dyn Fn(u32) -> bool) -> SharedHost<R> {
        let mut key_value = KeyValue::default();
        if endpoint.0 < self.stores {
            key_value.add_store(0);
        }
        if clients(endpoint.0) {
            key_value.add_client(0, &self.client, KeyValue::client_rng(7, endpoint.0.into()));
        }
        let begins = self.flow.as_ref().is_some_and(|flow| flow.source == endpoint);
        let flows = Generators::new(if begins { &[0] } else { &[] }, 7);
        SharedHost { key_value, flows, ..SharedHost::alone(ranks) }
    }

    /// Runs until nothing is pending, as hosts with or without ranks beside them.
    fn run(&self, threads: usize, with_ranks: bool, clients: &dyn Fn(u32) -> bool) -> Ran {
        let beside = self.beside();
        if with_ranks {
            let ranks = ReplayParameters::new(vec![], weft_msg::Protocol::zero(), ProgressRule::Call);
            let parameters = SharedParameters { ranks, beside };
            return self.run_hosts(threads, parameters, |at| self.host(ReplayHost::default(), at, clients));
        }
        self.run_hosts(threads, SharedParameters { ranks: (), beside }, |at| self.host(NoRanks, at, clients))
    }

    fn run_hosts<R: RankHost>(
        &self,
        threads: usize,
        host: SharedParameters<R::Parameters>,
        make: impl Fn(EndpointId) -> SharedHost<R>,
    ) -> Ran {
        let ns = Span::from_ns;
        let interface = OverheadsParameters {
            send_message: ns(310),
            send_write: ns(310),
            message_gap: ns(13),
            send_packet: ns(7),
            receive_packet: ns(5),
            receive_message: ns(410),
            ..OverheadsParameters::free(Bytes::new(250))
        };
        let layout: Layout = star(self.endpoints.into());
        let links = vec![link(); layout.link_classes().len()];
        let format = PacketFormat { header: Bytes::ZERO, footer: Bytes::ZERO, payload: interface.payload };
        let switch = switch(SwitchKind::InputQueued, ArbiterKind::RoundRobin, 4);
        let parameters = NetworkParameters { layout, format, links, switch, seed: 7 };
        let shared = NicParameters { interface, host };
        let initial = Network::build(parameters, shared, |at, _: &_| OverheadsNic::new(make(at))).unwrap();
        let mut simulation = Simulation::new(initial, threads);
        assert_eq!(simulation.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
        let mut ran = Ran::default();
        for SharedOutput { flows, key_value, .. } in simulation.outputs_mut() {
            ran.flows.take(flows);
            ran.key_value.take(key_value);
        }
        ran
    }
}

#[derive(Default)]
struct Ran {
    flows: ScenarioOutput,
    key_value: KeyValueOutput,
}

impl Ran {
    /// The latency of the only request.
    fn request(&self) -> Span {
        let tally = &self.key_value.clients[&0];
        assert_eq!((tally.begun, tally.answered, tally.latency.count()), (1, 1, 1));
        tally.latency.max()
    }
}

/// Catches a request or an answer that does not take what a message of its size takes alone, a service time
/// that is not spent once, and hosts with ranks that notice at another time than those without.
#[test]
fn an_idle_store_answers_after_two_messages_and_the_service_time() {
    let case = Case::new(5, 1);
    // The switch has a clock: a message takes the same from the same time on.
    let alone = |ends, bytes, start| {
        let ran = case.transfer(ends, bytes, start).run(1, false, &|_| false);
        start + ran.flows.latency[&0].max()
    };
    // A client of another node, and one of the store's own.
    for client in [3, 0] {
        for (gets, request, answer) in [(1_000_000, 16, 1_000), (0, 716, 8)] {
            let mut case = case.clone();
            case.client.gets = gets;
            let served = alone((client, 0), request, Time::ZERO) + case.store.service_time;
            let expected = alone((0, client), answer, served) - Time::ZERO;
            for with_ranks in [false, true] {
                let ran = case.run(1, with_ranks, &|endpoint| endpoint == client);
                assert_eq!(ran.request(), expected, "client {client}, {gets}, {with_ranks}");
            }
        }
    }
}

/// Catches a store that serves more at a time than it has threads, or fewer, and an order that is not that in
/// which requests come.
#[test]
fn requests_wait_for_a_thread() {
    for (threads, rounds) in [(1, 6), (2, 3), (3, 2), (6, 1), (9, 1)] {
        let mut case = Case::new(2, 1);
        case.store.service_time = Span::from_us(100);
        case.store.threads = threads;
        case.client.window = 6;
        case.client.requests = Some(6);
        let ran = case.run(1, false, &|endpoint| endpoint == 1);
        let tally = &ran.key_value.clients[&0];
        let store = &ran.key_value.stores[&0];
        assert_eq!((tally.answered, store.served), (6, 6));
        let longest = tally.latency.max();
        let served = Span::from_us(100 * rounds);
        assert!(longest > served && longest < served + Span::from_us(20), "{threads}: {longest:?}");
        assert_eq!(store.longest_queue, 6 - u64::from(threads.min(6)));
    }
}

/// Catches a put that is not kept, a get that brings another value than the last that was put, and a miss
/// that is not counted.
#[test]
fn a_get_brings_what_was_put() {
    let mut case = Case::new(2, 1);
    case.store.value = None;
    case.client.keys = 1;
    case.client.gets = 500_000;
    case.client.requests = Some(200);
    let ran = case.run(1, false, &|endpoint| endpoint == 1);
    let store = &ran.key_value.stores[&0];
    let KeyValueOutput { messages, payload, .. } = ran.key_value;
    assert_eq!((messages, store.served), (400, 200));
    // Each put moves 16 + 700 + 8 bytes, each get 16 + 700, and one that misses 16 + 8.
    let (puts, gets) = (0..=200u64)
        .map(|puts| (puts, 200 - puts - store.misses))
        .find(|(puts, gets)| puts * 724 + gets * 716 + store.misses * 24 == payload.get())
        .expect("payload of puts, gets and misses");
    assert!(puts > 70 && gets > 70 && store.misses < 20, "{puts} puts, {gets} gets, {}", store.misses);
}

/// Stores with threads and service times, clients with windows, gaps and shares of gets, and maybe a flow.
fn any_case() -> impl Strategy<Value = Case> {
    let store = (1u32..4, 1u32..5, 0u64..3_000);
    let client = (1u8..20, 0u64..60, 0u32..1_000_001, 1u32..300, 0u64..2_000);
    (2u32..9, store, client, any::<bool>()).prop_map(|(endpoints, store, client, has_flow)| {
        let (stores, threads, service_ns) = store;
        let (window, requests, gets, keys, gap_ns) = client;
        let mut case = Case::new(endpoints, stores.min(endpoints));
        case.store.threads = threads;
        case.store.service_time = Span::from_ns(service_ns);
        let gap = Span::from_ns(gap_ns);
        case.client = ClientPlan { window, requests: Some(requests), gets, keys, gap, ..case.client };
        if has_flow { case.transfer((0, 1), 40_000, Time::ZERO) } else { case }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..Default::default() })]

    /// Catches a request that is lost or answered twice, and answers that depend on threads.
    #[test]
    fn every_request_has_one_answer(case in any_case(), with_ranks: bool) {
        let runs = [1, 2, 3].map(|threads| case.run(threads, with_ranks, &|_| true));
        let made = case.client.requests.unwrap() * u64::from(case.endpoints);
        for ran in &runs {
            let KeyValueOutput { clients, stores, messages, .. } = &ran.key_value;
            let tally = clients.get(&0).cloned().unwrap_or_default();
            prop_assert_eq!((tally.begun, tally.answered, tally.failed), (made, made, 0));
            prop_assert_eq!((tally.latency.count(), *messages), (made, 2 * made));
            let store = stores.get(&0).cloned().unwrap_or_default();
            prop_assert_eq!((store.served, store.waits.count(), store.failed), (made, made, 0));
            let transfers = ran.flows.flows.values().map(|flow| flow.delivered).sum::<u64>();
            prop_assert_eq!(transfers, case.flow.is_some().into());
            prop_assert_eq!(&ran.key_value, &runs[0].key_value);
        }
    }
}

//! Two cards on the ideal network, or a ring of them on a real one, with hosts that post what they are told.

use crate::common::{NoTimer, link, ring, switch};
use serde::{Deserialize, Serialize};
use weft_engine::{InitialState, Simulation};
use weft_fabric::parameters::{IdealParameters, PacketFormat};
use weft_fabric::{FaultParameters, Ideal, Network, NetworkParameters};
use weft_nic::apenetx::{
    CardParameters, CardToHostParameters, ChosenDelivery, CompletionPath, HostToCardParameters, KernelWait,
    SoftwareParameters,
};
use weft_nic::iommu::{FaultModel, IommuParameters};
use weft_nic::pcie::{Memory, PcieGeneration, PcieLanes, PcieParameters};
use weft_nic::{
    ApenetxNic, ApenetxParameters, Delivered, Failure, FailureReason, Host, HostContext, Incoming, Message,
    MessageOptions, Nic, NicParameters, Observer, Offer, Stage,
};
use weft_topo::{Layout, Topology as _};
use weft_units::{Address, BitRate, Bytes, Clock, EndpointId, Span, Time};

/// The options of a message with a path of completions.
fn chosen(path: CompletionPath) -> MessageOptions {
    ChosenDelivery { completion: Some(path), ..ChosenDelivery::default() }.options()
}

/// A message that a host posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Planned {
    pub at: Time,
    pub to: EndpointId,
    pub bytes: u64,
    pub interface: u16,
    pub completion: Option<CompletionPath>,
    pub watch: bool,
}

/// The fate of a message: of an endpoint, the place in its plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Report {
    Delivered { at: Time, from: EndpointId, to: EndpointId, plan: u32, bytes: Bytes },
    Sent { at: Time, from: EndpointId, plan: u32 },
    Failed { from: EndpointId, plan: u32, reason: FailureReason },
}

#[derive(Default)]
pub struct Log {
    pub reports: Vec<Report>,
    pub stages: Vec<Stage>,
}

impl Observer for Log {
    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }
}

/// Posts its plan at the start, each message for its time.
#[derive(Serialize, Deserialize)]
pub struct Script {
    plan: Vec<Planned>,
}

/// Buffers lie on pages of their own.
const BUFFERS: u64 = 1 << 20;

impl Host for Script {
    type Parameters = ();
    type Timer = NoTimer;
    type Header = u32;
    type Output = Log;

    fn is_active(&self) -> bool {
        true
    }

    fn start(&mut self, (): &(), context: &mut impl HostContext<Self>) {
        for (index, plan) in (0..).zip(&self.plan) {
            let message = Message {
                header: Some(index),
                token: Some(index),
                interface: plan.interface,
                to_interface: plan.interface,
                buffer: Address::new(BUFFERS),
                watch: plan.watch,
                of_program: true,
                options: plan.completion.map_or(MessageOptions::NONE, chosen),
                ..Message::new(plan.to, Bytes::new(plan.bytes), plan.at)
            };
            context.send(message, plan.at);
        }
    }

    fn destination(&mut self, _: Incoming<'_, u32>, (): &(), _: &mut impl HostContext<Self>) -> Address {
        Address::new(BUFFERS)
    }

    fn timer(&mut self, timer: NoTimer, (): &(), _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, plan: u32, (): &(), context: &mut impl HostContext<Self>) {
        let (at, from) = (context.now(), context.endpoint());
        context.output().reports.push(Report::Sent { at, from, plan });
    }

    fn delivered(&mut self, message: &Delivered<u32>, (): &(), context: &mut impl HostContext<Self>) {
        let (at, to) = (context.now(), context.endpoint());
        let (plan, from, bytes) = (message.header.unwrap(), message.from, message.bytes);
        context.output().reports.push(Report::Delivered { at, from, to, plan, bytes });
    }

    fn failed(&mut self, failure: &Failure, (): &(), context: &mut impl HostContext<Self>) {
        let (from, plan, reason) = (context.endpoint(), failure.token.unwrap(), failure.reason);
        context.output().reports.push(Report::Failed { from, plan, reason });
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, (): &(), _: Time) -> Offer<u32> {
        Offer::Nothing
    }
}

/// A card with round numbers, every cost another one.
pub fn parameters(completion: CompletionPath) -> ApenetxParameters {
    let ns = Span::from_ns;
    ApenetxParameters {
        clock: Clock::from_hertz(250_000_000).unwrap(),
        card: CardParameters { word: Bytes::new(64), queues: 8 },
        payload: Bytes::new(4096),
        pcie: PcieParameters {
            lanes: PcieLanes::new(PcieGeneration::Gen3, 16),
            request_header: 24,
            completion_header: 20,
            max_payload: 256,
            max_read_request: 512,
            completion_boundary: 64,
            tags: 64,
            posted_headers: 64,
            posted_data: 16 << 10,
            request_headers: 64,
            completion_headers: 256,
            completion_data: 32 << 10,
            link_packet: 8,
            acknowledged: 4,
            one_way: ns(150),
        },
        memory: Memory { read: ns(400), write: ns(100), rate: None },
        iommu: IommuParameters {
            page: Bytes::new(4096),
            entries: 64,
            ways: 4,
            walk: ns(120),
            faults: FaultModel::Off,
            fault: ns(1),
        },
        host_to_card: HostToCardParameters {
            descriptor: Bytes::new(64),
            prefetch: 4,
            packets: 8,
            cycles: 16,
            line: Bytes::new(64),
            line_data: Bytes::new(32),
            fast: false,
            blocking: false,
            status: Bytes::new(8),
        },
        card_to_host: CardToHostParameters {
            cycles: 12,
            entry: Bytes::new(64),
            entry_data: Bytes::new(32),
            completion,
            wait: KernelWait::Interrupt,
        },
        software: SoftwareParameters {
            library: ns(110),
            system_call: ns(300),
            send: ns(510),
            copy: ns(140),
            interrupt: ns(1500),
            receive: ns(450),
            context_switch: ns(2500),
            search: ns(70),
            poll: ns(50),
            queue_entry: ns(60),
        },
        gpu: None,
    }
}

/// Latency of the ideal network, and its rate: 4 bytes per ns.
pub const LATENCY: Span = Span::from_ns(500);
pub const RATE: BitRate = BitRate::from_gigabits(32);

fn make(plans: &[Vec<Planned>], endpoint: EndpointId) -> Script {
    Script { plan: plans.get(endpoint.index()).cloned().unwrap_or_default() }
}

/// A run of two cards over the ideal network.
pub fn ideal(plans: &[Vec<Planned>], interface: ApenetxParameters) -> Simulation<Ideal<ApenetxNic<Script>>> {
    let ideal = IdealParameters { latency: LATENCY, gap: Span::ZERO, rate: Some(RATE) };
    let shared = NicParameters { interface, host: () };
    let build = |endpoint, shared: &_| ApenetxNic::new(make(plans, endpoint), endpoint, shared);
    Simulation::new(Ideal::build(ideal, 2, shared, build), 1)
}

pub type Run = Simulation<Network<Layout, ApenetxNic<Script>>>;

/// Cards of the ring.
pub const RING: u32 = 6;

fn build(
    plans: &[Vec<Planned>],
    interface: ApenetxParameters,
) -> InitialState<Network<Layout, ApenetxNic<Script>>> {
    let layout = ring(RING);
    let links = layout.link_classes().into_iter().map(|class| match class {
        "endpoint" => link(RATE, Span::from_ns(8)),
        _ => link(BitRate::from_gigabits(40), Span::from_ns(200)),
    });
    let network = NetworkParameters {
        links: links.collect(),
        layout,
        format: PacketFormat { header: Bytes::new(16), footer: Bytes::new(16), payload: Bytes::new(4096) },
        switch: switch(250, 22, Bytes::new(16 << 10)),
        seed: 1,
    };
    let shared = NicParameters { interface, host: () };
    Network::build(network, shared, |endpoint, shared| {
        ApenetxNic::new(make(plans, endpoint), endpoint, shared)
    })
    .unwrap()
}

/// A run of a ring of cards.
pub fn begin(plans: &[Vec<Planned>], interface: ApenetxParameters, threads: usize) -> Run {
    Simulation::new(build(plans, interface), threads)
}

/// The same, on links that fail as said.
pub fn begin_with_faults(
    plans: &[Vec<Planned>],
    interface: ApenetxParameters,
    seed: u64,
    faults: &FaultParameters,
) -> Run {
    let mut initial = build(plans, interface);
    initial.model.inject_faults(&mut initial.sites, seed, |_, _, _| faults.clone());
    Simulation::new(initial, 1)
}

/// A run that goes on from a snapshot.
pub fn resume(plans: &[Vec<Planned>], interface: ApenetxParameters, bytes: &[u8], threads: usize) -> Run {
    Simulation::resume(build(plans, interface), bytes, threads).unwrap()
}

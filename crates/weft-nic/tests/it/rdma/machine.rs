//! A board or more of the ExaNeSt machine, with hosts that follow a script.

use crate::common::{NoTimer, link, switch};
use serde::{Deserialize, Serialize};
use weft_engine::{InitialState, Simulation};
use weft_fabric::parameters::PacketFormat;
use weft_fabric::{FaultParameters, LinkEnd, LinkParameters, Network, NetworkParameters};
use weft_nic::allreduce::{AcceleratorError, AcceleratorLimits, AllreduceParameters, AllreduceRequest};
use weft_nic::data::DataError;
use weft_nic::host_port::{HostPortParameters, StorePath};
use weft_nic::iommu::{FaultModel, IommuParameters};
use weft_nic::mailbox::MailboxParameters;
use weft_nic::memory::MemoryParameters;
use weft_nic::packetizer::PacketizerParameters;
use weft_nic::rdma::{RdmaParameters, ReceiveParameters, SendParameters, SourceContexts};
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_nic::{
    Delivered, ExanetNic, ExanetParameters, Failure, Host, HostContext, Message, Nic as _, NicParameters,
    Observer, Offer, Primitive, Stage, StateChange,
};
use weft_topo::{Exanest, ExanestOrder, Layout, Topology};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span, Time};

/// A message that a host is to send.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Planned {
    pub at: Time,
    pub to: EndpointId,
    pub bytes: u64,
    pub interface: u16,
    pub watch: bool,
}

/// A report of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Report {
    /// (at, source, its count, destination, bytes, what the source said)
    Delivered(Time, EndpointId, u32, EndpointId, Bytes, u64),
    /// (at, source, token)
    Sent(Time, EndpointId, u32),
    /// (at, source, token)
    Failed(Time, EndpointId, Option<u32>),
    /// (at, where, token)
    Reduced(Time, EndpointId, u32),
}

#[derive(Default)]
pub struct Output {
    pub reports: Vec<Report>,
    pub stages: Vec<Stage>,
    pub changes: Vec<StateChange>,
    pub refused: Vec<AcceleratorError>,
    /// Messages and reductions whose bytes agree, and those whose bytes do not.
    pub compared: usize,
    pub damaged: Vec<DataError>,
}

impl Observer for Output {
    const HEARS_STATES: bool = true;

    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }
    fn state(&mut self, change: &StateChange) {
        self.changes.push(*change);
    }
    fn compared(&mut self, _: Bytes) {
        self.compared += 1;
    }
    fn damaged(&mut self, error: &DataError) {
        self.damaged.push(*error);
    }
}

#[derive(Serialize, Deserialize)]
pub struct Script {
    plan: Vec<Planned>,
    /// The reduction that the host asks for at the start, if any.
    allreduce: Option<AllreduceRequest>,
}

impl Host for Script {
    type Parameters = Option<u64>;
    type Timer = NoTimer;
    type Header = u64;
    type Output = Output;

    fn is_active(&self) -> bool {
        !self.plan.is_empty() || self.allreduce.is_some()
    }

    fn start(&mut self, _: &Option<u64>, context: &mut impl HostContext<Self>) {
        for (token, planned) in (0..).zip(&self.plan) {
            let Planned { at, to, bytes, interface, watch } = *planned;
            let message = Message {
                header: Some(u64::from(token) << 32 | u64::from(interface)),
                token: Some(token),
                primitive: Primitive::Write,
                interface,
                to_interface: interface,
                watch,
                ..Message::new(to, Bytes::new(bytes), at)
            };
            context.send(message, at);
        }
        if let Some(request) = self.allreduce.take() {
            let now = context.now();
            let accelerator = context.capabilities().accelerator().unwrap();
            if let Err(error) = accelerator.allreduce(request, now) {
                context.output().refused.push(error);
            }
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &Option<u64>, _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, token: u32, _: &Option<u64>, context: &mut impl HostContext<Self>) {
        let report = Report::Sent(context.now(), context.endpoint(), token);
        context.output().reports.push(report);
    }

    fn accelerated(&mut self, token: u32, _: &Option<u64>, context: &mut impl HostContext<Self>) {
        let report = Report::Reduced(context.now(), context.endpoint(), token);
        context.output().reports.push(report);
    }

    fn delivered(&mut self, message: &Delivered<u64>, _: &Option<u64>, context: &mut impl HostContext<Self>) {
        let Delivered { from, number, bytes, header, .. } = *message;
        let header = header.expect("every message of a script has one");
        let report = Report::Delivered(context.now(), from, number, context.endpoint(), bytes, header);
        context.output().reports.push(report);
    }

    fn failed(&mut self, failure: &Failure, _: &Option<u64>, context: &mut impl HostContext<Self>) {
        let report = Report::Failed(context.now(), context.endpoint(), failure.token);
        context.output().reports.push(report);
    }

    fn data(seed: &Option<u64>) -> Option<u64> {
        *seed
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Option<u64>, _: Time) -> Offer<u64> {
        Offer::Nothing
    }
}

pub fn parameters() -> ExanetParameters {
    let clock = Clock::from_hertz(150_000_000).unwrap();
    let reliability = ReliabilityParameters {
        timeout: Span::from_us(500),
        backoff: 2,
        longest: Span::from_us(4000),
        repetitions: 5,
    };
    ExanetParameters {
        host_port: HostPortParameters {
            clock,
            word: Bytes::new(16),
            round_trip: Span::from_ns(125),
            burst_words: 16,
            outstanding: 8,
            stores: None,
        },
        packetizer: PacketizerParameters {
            clock,
            interfaces: 64,
            channels: 4,
            payload: Bytes::new(64),
            descriptor: Bytes::new(16),
            engine: 10,
            reliability,
            pause: Span::from_us(1),
            longest_pause: Span::from_us(8),
        },
        mailbox: MailboxParameters {
            clock,
            interfaces: 64,
            entries: 512,
            check: 4,
            entry: Bytes::new(64),
            poll: Span::from_ns(20),
            slots: Some(128),
            remembered: Some(1024),
        },
        rdma: RdmaParameters {
            send: SendParameters {
                pages: 16,
                write_channels: 32,
                read_channels: 32,
                descriptor: Bytes::new(64),
                cut: Cut::new(Bytes::new(16384), Bytes::new(256)).unwrap(),
                outstanding_blocks: 2,
                cell_buffers: 8,
                clock,
                word: Bytes::new(16),
                control_words: 2,
                cell_overhead_cycles: 5,
                contexts: None,
            },
            receive: ReceiveParameters {
                contexts: 256,
                context_timeout: Span::from_us(2000),
                cycles: 2,
                notification: Bytes::new(16),
                poll: Span::from_ns(20),
            },
            segmentation: SegmentationParameters::Firmware { invocation: Span::from_us(2) },
            reliability,
        },
        iommu: IommuParameters {
            page: Bytes::new(4096),
            entries: 64,
            ways: 4,
            walk: Span::from_ns(200),
            faults: FaultModel::Off,
            fault: Span::from_us(10),
        },
        memory: MemoryParameters::new(BitRate::from_gigabits(130)).unwrap(),
        check: Default::default(),
        allreduce: Some(AllreduceParameters {
            limits: AcceleratorLimits { ranks: 1024, board: 4, vector: Bytes::new(256) },
            clock,
            word: Bytes::new(16),
            latency_cycles: 8,
            lookup: Span::ZERO,
            start: Span::from_us(1),
            finish: Span::from_us(1),
            reliability,
        }),
    }
}

/// caRVnet's interface: the ratios of D1.4 §8.2.
pub fn carvnet() -> ExanetParameters {
    let (core, clock) = (Clock::from_hertz(100_000_000).unwrap(), Clock::from_hertz(200_000_000).unwrap());
    let mut parameters = parameters();
    let word = Bytes::new(64);
    parameters.host_port = HostPortParameters {
        clock,
        word,
        round_trip: Span::from_ns(50),
        burst_words: 4,
        outstanding: 16,
        stores: Some(StorePath { clock: core, word: Bytes::new(8), latency: core.cycles(7) }),
    };
    parameters.packetizer.clock = clock;
    parameters.mailbox.clock = clock;
    parameters.rdma.send = SendParameters {
        pages: 64,
        descriptor: Bytes::new(32),
        cell_buffers: 16,
        clock,
        word,
        control_words: 1,
        cell_overhead_cycles: 0,
        contexts: Some(SourceContexts { count: 64, allocation: 10 }),
        ..parameters.rdma.send
    };
    parameters.rdma.segmentation = SegmentationParameters::Hardware { clock, cycles: 1 };
    parameters
}

pub type Run = Simulation<Network<Layout, ExanetNic<Script>>>;

/// Messages carry real bytes, from this seed.
const DATA: Option<u64> = Some(7);

fn build(
    plans: &[Vec<Planned>],
    parameters: ExanetParameters,
) -> InitialState<Network<Layout, ExanetNic<Script>>> {
    build_hosts(parameters, DATA, |endpoint| {
        let plan = plans.get(endpoint.index()).cloned().unwrap_or_default();
        Script { plan, allreduce: None }
    })
}

fn build_hosts(
    parameters: ExanetParameters,
    data: Option<u64>,
    mut host: impl FnMut(EndpointId) -> Script,
) -> InitialState<Network<Layout, ExanetNic<Script>>> {
    let layout = Layout::Exanest(ExanestOrder::new(Exanest::new(1).unwrap(), true));
    let (rate, code) = (BitRate::from_gigabits, LineCode::B64_66);
    let links = layout.link_classes().into_iter().map(|class| match class {
        "endpoint" | "router" => link(BitRate::from_bits_per_second(19_200_000_000), Span::from_ns(7)),
        "qfdb" => LinkParameters { code, ..link(rate(16), Span::from_ns(100)) },
        _ => LinkParameters { code, framing: Bytes::new(99), ..link(rate(10), Span::from_ns(249)) },
    });
    let network = NetworkParameters {
        links: links.collect(),
        layout,
        format: PacketFormat { header: Bytes::new(16), footer: Bytes::new(16), payload: Bytes::new(256) },
        switch: switch(150, 2, Bytes::new(4096)),
        seed: 1,
    };
    let shared = NicParameters { interface: parameters, host: data };
    Network::build(network, shared, |endpoint, parameters| {
        ExanetNic::new(host(endpoint), endpoint, parameters)
    })
    .unwrap()
}

/// As [`begin`], on links of which every one, to and from endpoints included, fails as said.
pub fn begin_with_faults(
    plans: &[Vec<Planned>],
    parameters: ExanetParameters,
    seed: u64,
    mut faults: impl FnMut(LinkEnd) -> FaultParameters,
) -> Run {
    let mut initial = build(plans, parameters);
    initial.model.inject_faults(&mut initial.sites, seed, |from, _, _| faults(from));
    Simulation::new(initial, 1)
}

/// A run that is about to begin: what each endpoint sends.
pub fn begin(plans: &[Vec<Planned>], parameters: ExanetParameters, threads: usize) -> Run {
    Simulation::new(build(plans, parameters), threads)
}

/// As [`begin`], without bytes.
pub fn begin_without_data(plans: &[Vec<Planned>], parameters: ExanetParameters) -> Run {
    let initial = build_hosts(parameters, None, |endpoint| {
        let plan = plans.get(endpoint.index()).cloned().unwrap_or_default();
        Script { plan, allreduce: None }
    });
    Simulation::new(initial, 1)
}

/// The threads of a run, and the seed of its faults.
#[derive(Clone, Copy)]
pub struct Execution {
    pub threads: usize,
    pub seed: u64,
}

/// A run in which the endpoints of `requests` reduce, on links that fail as said.
pub fn begin_allreduce(
    requests: &[AllreduceRequest],
    parameters: ExanetParameters,
    Execution { threads, seed }: Execution,
    mut faults: impl FnMut(LinkEnd) -> FaultParameters,
) -> Run {
    let mut initial = build_hosts(parameters, DATA, |endpoint| {
        let of_endpoint = requests.iter().find(|it| it.members[it.own as usize] == endpoint);
        Script { plan: Vec::new(), allreduce: of_endpoint.cloned() }
    });
    initial.model.inject_faults(&mut initial.sites, seed, |from, _, _| faults(from));
    Simulation::new(initial, threads)
}

/// A run that goes on from a snapshot.
pub fn resume(plans: &[Vec<Planned>], parameters: ExanetParameters, bytes: &[u8], threads: usize) -> Run {
    Simulation::resume(build(plans, parameters), bytes, threads).unwrap()
}

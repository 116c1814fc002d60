//! A few endpoints around a switch, with the block-level interface and hosts that post what they are told.

use crate::common::{NoTimer, link, ring, switch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::{InitialState, Progress, Simulation};
use weft_fabric::parameters::PacketFormat;
use weft_fabric::{FaultParameters, LinkEnd, Network, NetworkParameters, OffTimes};
use weft_nic::gvas::Pdid;
use weft_nic::host_port::HostPortParameters;
use weft_nic::iommu::{FaultModel, IommuParameters};
use weft_nic::mailbox::MailboxParameters;
use weft_nic::memory::MemoryParameters;
use weft_nic::packetizer::{ChannelInput, PacketizerParameters};
use weft_nic::rdma::{RdmaParameters, ReceiveParameters, SendParameters};
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_nic::{
    BlockChange, Delivered, ExanetNic, ExanetParameters, Failure, FailureReason, Host, HostContext, Message,
    Nic, NicParameters, Observer, Offer, Primitive, Stage, StateChange,
};
use weft_topo::Layout;
use weft_units::{BitRate, Bytes, Clock, EndpointId, Span, Time};

/// Endpoints of the machine.
pub const ENDPOINTS: u32 = 6;

/// A message that a host posts.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub from: u32,
    pub to: u32,
    pub at: Time,
    pub bytes: Bytes,
    pub primitive: Primitive,
    pub interface: u16,
    pub to_interface: u16,
}

/// The plan that all hosts know.
#[derive(Clone)]
pub struct Script {
    pub plans: Vec<Plan>,
    /// The protection domain of interfaces that have another one than 0.
    pub domains: BTreeMap<(u32, u16), u16>,
    /// From a message's notice until its process takes it out of the mailbox.
    pub takes_after: Span,
}

/// Posts its plans at the start, each for its time.
#[derive(Serialize, Deserialize)]
pub struct Scripted {
    endpoint: u32,
}

/// The fate of the message with this place in the plans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Delivered {
        plan: u32,
        at: Time,
        bytes: Bytes,
        interface: u16,
    },
    Failed {
        plan: u32,
        reason: FailureReason,
    },
    /// A request of a read has come, which the host answers.
    Asked {
        plan: u32,
        at: Time,
    },
}

/// In the header of an answer to a read, beside the place of the request in the plans.
const ANSWER: u32 = 1 << 31;

impl Outcome {
    pub fn plan(&self) -> u32 {
        match self {
            Outcome::Delivered { plan, .. } | Outcome::Failed { plan, .. } | Outcome::Asked { plan, .. } => {
                *plan
            }
        }
    }
}

#[derive(Default)]
pub struct Log {
    pub outcomes: Vec<Outcome>,
    pub changes: Vec<StateChange>,
    pub stages: Vec<Stage>,
}

impl Log {
    /// How often a packet of the packetizer was refused.
    pub fn refusals(&self) -> usize {
        let refused = |change: &&StateChange| match change.change {
            BlockChange::Packetizer(change) => change.input == ChannelInput::Refuse,
            _ => false,
        };
        self.changes.iter().filter(refused).count()
    }
}

impl Observer for Log {
    const HEARS_STATES: bool = true;

    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }

    fn state(&mut self, change: &StateChange) {
        // Catches a reported change that the tables do not have.
        match change.change {
            BlockChange::Packetizer(change) => {
                assert_eq!(change.from.after(change.input), Ok(change.to), "{change:?}");
            }
            BlockChange::Mailbox(change) => assert!(
                (1..=64).any(|held| change.from.after(change.input, held, ENTRIES) == Ok(change.to))
                    || change.from.after(change.input, 0, ENTRIES) == Ok(change.to),
                "{change:?}"
            ),
            _ => {}
        }
        self.changes.push(*change);
    }
}

const ENTRIES: u32 = 2;

impl Host for Scripted {
    type Parameters = Script;
    type Timer = NoTimer;
    type Header = u32;
    type Output = Log;

    fn is_active(&self) -> bool {
        true
    }

    fn start(&mut self, script: &Script, context: &mut impl HostContext<Self>) {
        for (&(endpoint, interface), &domain) in &script.domains {
            if endpoint == self.endpoint {
                context.capabilities().open(interface, Pdid(domain));
            }
        }
        for (index, plan) in (0..).zip(&script.plans) {
            if plan.from == self.endpoint {
                let message = Message {
                    header: Some(index),
                    token: Some(index),
                    primitive: plan.primitive,
                    interface: plan.interface,
                    to_interface: plan.to_interface,
                    watch: index % 3 == 0,
                    ..Message::new(EndpointId(plan.to), plan.bytes, plan.at)
                };
                context.send(message, plan.at);
            }
        }
    }

    fn timer(&mut self, timer: NoTimer, _: &Script, _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, _: u32, _: &Script, _: &mut impl HostContext<Self>) {}

    fn delivered(&mut self, message: &Delivered<u32>, script: &Script, context: &mut impl HostContext<Self>) {
        let (at, bytes, interface) = (context.now(), message.bytes, message.interface);
        if message.in_mailbox {
            context.capabilities().take(interface, at + script.takes_after);
        }
        let header = message.header.expect("every message has a header");
        let Plan { primitive, bytes: wanted, interface: reader, .. } =
            script.plans[(header & !ANSWER) as usize];
        if primitive != Primitive::ReadRequest || header & ANSWER != 0 {
            let plan = header & !ANSWER;
            return context.output().outcomes.push(Outcome::Delivered { plan, at, bytes, interface });
        }
        context.output().outcomes.push(Outcome::Asked { plan: header, at });
        let answer = Message {
            header: Some(header | ANSWER),
            token: Some(header | ANSWER),
            primitive: Primitive::WriteBack,
            interface,
            to_interface: reader,
            ..Message::new(message.from, wanted, at)
        };
        context.send(answer, at);
    }

    fn failed(&mut self, failure: &Failure, _: &Script, context: &mut impl HostContext<Self>) {
        let (token, reason) = (failure.token.expect("every message has a token"), failure.reason);
        let plan = token & !ANSWER;
        context.output().outcomes.push(Outcome::Failed { plan, reason });
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Script, _: Time) -> Offer<u32> {
        Offer::Nothing
    }
}

/// A small interface: little of everything, so that all of it runs out.
pub fn parameters() -> ExanetParameters {
    let clock = Clock::from_hertz(150_000_000).unwrap();
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
            interfaces: 4,
            channels: 2,
            payload: Bytes::new(64),
            descriptor: Bytes::new(16),
            engine: 10,
            reliability: ReliabilityParameters {
                timeout: Span::from_us(5),
                backoff: 2,
                longest: Span::from_us(40),
                repetitions: 12,
            },
            pause: Span::from_ns(300),
            longest_pause: Span::from_us(4),
        },
        mailbox: MailboxParameters {
            clock,
            interfaces: 4,
            entries: ENTRIES,
            check: 10,
            entry: Bytes::new(64),
            poll: Span::from_ns(20),
            slots: Some(128),
            remembered: Some(1024),
        },
        rdma: RdmaParameters {
            send: SendParameters {
                pages: 4,
                write_channels: 2,
                read_channels: 2,
                descriptor: Bytes::new(64),
                cut: Cut::new(Bytes::new(2048), Bytes::new(256)).unwrap(),
                outstanding_blocks: 2,
                cell_buffers: 8,
                clock,
                word: Bytes::new(16),
                control_words: 2,
                cell_overhead_cycles: 5,
                contexts: None,
            },
            receive: ReceiveParameters {
                contexts: 3,
                context_timeout: Span::from_us(500),
                cycles: 2,
                notification: Bytes::new(16),
                poll: Span::from_ns(20),
            },
            segmentation: SegmentationParameters::Firmware { invocation: Span::from_us(2) },
            reliability: ReliabilityParameters {
                timeout: Span::from_us(50),
                backoff: 2,
                longest: Span::from_us(400),
                repetitions: 12,
            },
        },
        iommu: IommuParameters {
            page: Bytes::new(4096),
            entries: 4,
            ways: 2,
            walk: Span::from_ns(200),
            faults: FaultModel::Off,
            fault: Span::from_us(10),
        },
        memory: MemoryParameters::new(BitRate::from_gigabits(130)).unwrap(),
        allreduce: None,
        check: Default::default(),
    }
}

pub type Run = Simulation<Network<Layout, ExanetNic<Scripted>>>;

/// The ring, at the beginning of a run.
fn build(
    parameters: ExanetParameters,
    script: &Script,
    faults: FaultParameters,
) -> InitialState<Network<Layout, ExanetNic<Scripted>>> {
    let layout = ring(ENDPOINTS);
    let links = vec![
        link(BitRate::from_gigabits(16), Span::from_ns(100));
        weft_topo::Topology::link_classes(&layout).len()
    ];
    let switch = switch(150, 2, Bytes::new(4096));
    let (header, footer) = (Bytes::new(16), Bytes::new(16));
    let format = PacketFormat { header, footer, payload: parameters.rdma.send.cut.cell };
    let network = NetworkParameters { layout, format, links, switch, seed: 1 };
    let interface = NicParameters { interface: parameters, host: script.clone() };
    let mut initial = Network::build(network, interface, |e, shared| {
        <ExanetNic<Scripted> as Nic<Scripted>>::new(Scripted { endpoint: e.0 }, e, shared)
    })
    .unwrap();
    initial.model.inject_faults(&mut initial.sites, 5, |from, _, _| match from {
        // Only one link dies.
        LinkEnd::Endpoint(EndpointId(1)) => faults.clone(),
        _ => FaultParameters { off: OffTimes::NEVER, ..faults.clone() },
    });
    initial
}

/// A run, from its start.
pub fn begin(parameters: ExanetParameters, script: &Script, faults: FaultParameters, threads: usize) -> Run {
    Simulation::new(build(parameters, script, faults), threads)
}

/// A run, from where another was saved.
pub fn resume(parameters: ExanetParameters, script: &Script, saved: &[u8], threads: usize) -> Run {
    Simulation::resume(build(parameters, script, FaultParameters::default()), saved, threads).unwrap()
}

/// Runs until `until` at the latest, and returns what came of which message, in the order of plans.
pub fn outcomes(run: &mut Run, until: Time) -> (Progress, Vec<Outcome>) {
    let progress = run.run_until(until, &AtomicBool::new(false));
    let mut outcomes: Vec<Outcome> =
        run.outputs_mut().flat_map(|log| std::mem::take(&mut log.outcomes)).collect();
    outcomes.sort_by_key(|outcome| (outcome.plan(), *outcome));
    (progress, outcomes)
}

/// Messages that are not sent whole, and such that have not arrived whole, over all interfaces.
pub fn unfinished(run: &Run) -> (usize, usize) {
    let each = run.sites().flat_map(|(_, site)| site.interfaces().map(|(_, nic)| nic.unfinished()));
    each.fold((0, 0), |sum, (out, into)| (sum.0 + out, sum.1 + into))
}

//! A few endpoints around a ring of switches, with the Portals interface and hosts that post what they are
//! told.

use crate::common::{NoTimer, link, ring, switch};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_engine::{InitialState, Progress, Simulation};
use weft_fabric::parameters::{IdealParameters, PacketFormat};
use weft_fabric::{FaultParameters, Ideal, LinkEnd, Network, NetworkParameters, OffTimes, Purpose};
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::transport::TransportParameters;
use weft_nic::{
    Delivered, Failure, FailureReason, Host, HostContext, Message, Nic, NicParameters, Observer, Offer,
    OverheadsParameters, PortalsNic, PortalsParameters, Primitive,
};
use weft_topo::{Layout, Topology};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Endpoints of the machine.
pub const ENDPOINTS: u32 = 6;

/// Links without faults.
pub const NONE: FaultParameters =
    FaultParameters { drop: 0, corrupt: 0, duplicate: 0, reorder: 0, off: OffTimes::NEVER };

/// A message that a host posts.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub from: u32,
    pub to: u32,
    pub at: Time,
    pub bytes: Bytes,
    pub response: bool,
    /// Whether it is of a service.
    pub service: bool,
}

/// The plans that all hosts know.
#[derive(Clone)]
pub struct Script {
    pub plans: Vec<Plan>,
}

/// Posts its plans at the start, each for its time.
#[derive(Serialize, Deserialize)]
pub struct Scripted {
    endpoint: u32,
    /// The time at which each message came.
    times: Vec<(u32, Time)>,
}

/// The fate of the message with this place in the plans.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Delivered { plan: u32, bytes: Bytes },
    Sent { plan: u32 },
    Failed { plan: u32, reason: FailureReason },
}

#[derive(Default)]
pub struct Log(Vec<Outcome>);

impl Observer for Log {}

impl Host for Scripted {
    type Parameters = Script;
    type Timer = NoTimer;
    type Header = u32;
    type Output = Log;

    fn is_active(&self) -> bool {
        true
    }

    fn start(&mut self, script: &Script, context: &mut impl HostContext<Self>) {
        for (index, plan) in (0..).zip(&script.plans) {
            if plan.from == self.endpoint {
                let message = Message {
                    header: Some(index),
                    token: Some(index),
                    primitive: if plan.response { Primitive::WriteBack } else { Primitive::Automatic },
                    purpose: Purpose { is_service: plan.service, ..Purpose::PLAIN },
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

    fn sent(&mut self, plan: u32, _: &Script, context: &mut impl HostContext<Self>) {
        context.output().0.push(Outcome::Sent { plan });
    }

    fn delivered(&mut self, message: &Delivered<u32>, _: &Script, context: &mut impl HostContext<Self>) {
        let plan = message.header.expect("every message has a header");
        self.times.push((plan, context.now()));
        context.output().0.push(Outcome::Delivered { plan, bytes: message.bytes });
    }

    fn failed(&mut self, failure: &Failure, _: &Script, context: &mut impl HostContext<Self>) {
        let (plan, reason) = (failure.token.expect("every message has a token"), failure.reason);
        context.output().0.push(Outcome::Failed { plan, reason });
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Script, _: Time) -> Offer<u32> {
        Offer::Nothing
    }
}

/// A small interface: little of everything, so that all of it runs out.
pub fn parameters() -> PortalsParameters {
    PortalsParameters {
        costs: OverheadsParameters {
            send_message: Span::from_ns(400),
            send_write: Span::from_ns(300),
            send_packet: Span::from_ns(5),
            receive_packet: Span::from_ns(5),
            receive_message: Span::from_ns(250),
            channels: 2,
            ..OverheadsParameters::free(Bytes::new(1024))
        },
        ordered: true,
        transport: TransportParameters {
            reliability: ReliabilityParameters {
                timeout: Span::from_us(50),
                backoff: 2,
                longest: Span::from_us(200),
                repetitions: 20,
            },
            window: 4,
            flows: 12,
            idle: Span::from_us(1_000),
        },
    }
}

pub type Run = Simulation<Network<Layout, PortalsNic<Scripted>>>;

/// The ring, at the beginning of a run.
fn build(
    parameters: &PortalsParameters,
    script: &Script,
    faults: impl Fn(LinkEnd) -> FaultParameters,
) -> InitialState<Network<Layout, PortalsNic<Scripted>>> {
    let layout = ring(ENDPOINTS);
    let links = vec![link(BitRate::from_gigabits(16), Span::from_ns(100)); layout.link_classes().len()];
    let switch = switch(150, 2, Bytes::new(4096));
    let format =
        PacketFormat { header: Bytes::new(40), footer: Bytes::new(8), payload: parameters.costs.payload };
    let network = NetworkParameters { layout, format, links, switch, seed: 1 };
    let interface = NicParameters { interface: *parameters, host: script.clone() };
    let mut initial = Network::build(network, interface, host).unwrap();
    initial.model.inject_faults(&mut initial.sites, 5, |from, _, _| faults(from));
    initial
}

fn host(endpoint: EndpointId, shared: &NicParameters<PortalsParameters, Script>) -> PortalsNic<Scripted> {
    <PortalsNic<Scripted> as Nic<Scripted>>::new(
        Scripted { endpoint: endpoint.0, times: Vec::new() },
        endpoint,
        shared,
    )
}

/// A run, from its start.
pub fn begin(
    parameters: &PortalsParameters,
    script: &Script,
    faults: &FaultParameters,
    threads: usize,
) -> Run {
    Simulation::new(build(parameters, script, |_| faults.clone()), threads)
}

/// A run, where the link of one endpoint has faults.
pub fn faulty_link(endpoint: EndpointId, script: &Script, faults: &FaultParameters) -> Run {
    let of = |from| if from == LinkEnd::Endpoint(endpoint) { faults.clone() } else { NONE };
    Simulation::new(build(&parameters(), script, of), 1)
}

/// A run, from where another was saved.
pub fn resume(
    parameters: &PortalsParameters,
    script: &Script,
    faults: &FaultParameters,
    saved: &[u8],
) -> Run {
    Simulation::resume(build(parameters, script, |_| faults.clone()), saved, 1).unwrap()
}

/// Runs until `until` at the latest, and returns what came of which message, sorted.
pub fn outcomes(run: &mut Run, until: Time) -> (Progress, Vec<Outcome>) {
    let progress = run.run_until(until, &AtomicBool::new(false));
    let mut outcomes: Vec<Outcome> = run.outputs_mut().flat_map(|log| std::mem::take(&mut log.0)).collect();
    outcomes.sort_unstable();
    (progress, outcomes)
}

/// When each message came, by endpoint.
pub fn times(run: &Run) -> Vec<Vec<(u32, Time)>> {
    let hosts = run.sites().flat_map(|(_, site)| site.interfaces().collect::<Vec<_>>());
    hosts.map(|(_, nic)| nic.host.times.clone()).collect()
}

/// Messages that are not acknowledged whole, and such that have not arrived whole, over all interfaces.
pub fn unfinished(run: &Run) -> (usize, usize) {
    let each = run.sites().flat_map(|(_, site)| site.interfaces().map(|(_, nic)| nic.unfinished()));
    each.fold((0, 0), |sum, (out, into)| (sum.0 + out, sum.1 + into))
}

/// The time at which a message alone on a network of latency and no rate is noticed.
pub fn alone(bytes: Bytes, latency: Span) -> Time {
    let script = Script {
        plans: vec![Plan { from: 0, to: 1, at: Time::ZERO, bytes, response: false, service: false }],
    };
    let ideal = IdealParameters { latency, gap: Span::ZERO, rate: None };
    let interface = NicParameters { interface: parameters(), host: script };
    let mut run = Simulation::new(Ideal::build(ideal, 2, interface, host), 1);
    assert_eq!(run.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
    let times: Vec<_> = run
        .sites()
        .flat_map(|(_, site)| {
            site.interfaces().flat_map(|(_, nic)| nic.host.times.clone()).collect::<Vec<_>>()
        })
        .collect();
    let [(0, time)] = times[..] else { panic!("{times:?}") };
    time
}

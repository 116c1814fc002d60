//! An interface that follows a script, and a machine to put it on.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_engine::{InitialState, Payload, Progress, Simulation, SnapshotError};
use weft_fabric::parameters::{CreditUnit, PacketFormat, SwitchParameters};
use weft_fabric::{
    Addressing, Announced, BuildError, GroupMembers, HeaderBits, Injection, Interface, InterfaceContext,
    LinkCounts, LinkParameters, LinkReport, MessagePart, Network, NetworkParameters, Packet, Publishing,
    TrafficClass,
};
use weft_topo::{Attachment, ChannelPlan, Layout, Routing, Topology};
use weft_units::{Bytes, EndpointId, Span, Time};

/// A packet that an endpoint is to send, not before its time and in the order of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Planned {
    pub at: Time,
    pub to: EndpointId,
    pub bytes: u32,
}

/// The packets of every endpoint.
pub type Script = Vec<Vec<Planned>>;

/// A packet that has arrived. `offered` is when the fabric asked for it; `message` counts the packets of
/// its source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Arrived {
    pub at: Time,
    pub source: EndpointId,
    pub message: u32,
    pub destination: EndpointId,
    pub bytes: u32,
    pub offered: Time,
    pub hops: u8,
}

/// The interface of one endpoint.
#[derive(Serialize, Deserialize)]
pub struct Scripted {
    plan: Vec<Planned>,
    next: u32,
}

impl Scripted {
    pub fn new(plan: Vec<Planned>) -> Scripted {
        Scripted { plan, next: 0 }
    }
}

/// Catches sums over links that differ from the reports of the links.
pub fn assert_counts_are_sums<T: Topology + Routing + Sync>(run: &Simulation<Network<T, Scripted>>) {
    let mut sum = LinkCounts::default();
    for LinkReport { to, packets, counts, .. } in Network::links(run) {
        let delivered = if matches!(to, Attachment::Endpoint(_)) { packets - counts.lost() } else { 0 };
        sum += LinkCounts { packets, delivered, counts };
    }
    assert_eq!(Network::link_counts(run, run.now()), sum);
}

/// It sets no timers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum NoTimer {}

impl Payload for NoTimer {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

impl Interface for Scripted {
    type Parameters = ();
    type Timer = NoTimer;
    type Announcement = ();
    type Output = Vec<Arrived>;

    fn is_active(&self) -> bool {
        !self.plan.is_empty()
    }

    fn start(&mut self, _: &(), context: &mut InterfaceContext<'_, '_, Self>) {
        context.request_injection();
    }

    fn timer(&mut self, timer: NoTimer, _: &(), _: &mut InterfaceContext<'_, '_, Self>) {
        match timer {}
    }

    fn announced(&mut self, _: Announced<()>, _: &(), _: &mut InterfaceContext<'_, '_, Self>) {}

    fn received(&mut self, packet: &Packet, _: &(), context: &mut InterfaceContext<'_, '_, Self>) {
        let Packet { source, message, bytes, carried, hops, .. } = *packet;
        let offered = carried.time_offered();
        let (at, destination) = (context.now(), context.endpoint());
        assert_eq!(packet.destination, destination, "delivered to the wrong endpoint");
        context.output().push(Arrived { at, source, message, destination, bytes, offered, hops });
    }

    fn next_injection(&mut self, _: Time, (): &()) -> Time {
        self.plan.get(self.next as usize).map_or(Time::NEVER, |planned| planned.at)
    }

    fn inject(&mut self, _: &(), context: &mut InterfaceContext<'_, '_, Self>) -> Injection {
        let Some(&Planned { at, to, bytes }) = self.plan.get(self.next as usize) else {
            return Injection::Nothing;
        };
        if at > context.now() {
            return Injection::NotBefore(at);
        }
        let number = self.next;
        self.next += 1;
        let addressing = Addressing { source: context.endpoint(), destination: to, message: number };
        let packet = Packet::new(addressing, bytes, HeaderBits::offered(context.now()), MessagePart::Whole);
        Injection::Packet(packet.in_block(block_of(number)))
    }
}

/// The block of a packet that an endpoint sends, by its number.
pub fn block_of(number: u32) -> u32 {
    number / 8 + 1
}

/// Everything a packet network is built of.
#[derive(Clone, Debug)]
pub struct Machine<T = Layout> {
    pub layout: T,
    pub format: PacketFormat,
    pub links: Vec<LinkParameters>,
    pub switch: SwitchParameters,
    pub seed: u64,
}

pub type Run<T = Layout> = Simulation<Network<T, Scripted>>;

impl<T: Topology + Routing + Clone + Sync> Machine<T> {
    pub fn parameters(&self) -> NetworkParameters<T> {
        NetworkParameters {
            layout: self.layout.clone(),
            format: self.format,
            links: self.links.clone(),
            switch: self.switch,
            seed: self.seed,
        }
    }

    /// The largest head-room that a buffer of the machine needs under pause, in whole units of credit.
    pub fn largest_headroom(&self) -> Bytes {
        let parameters = self.parameters();
        let bytes = parameters.headroom().into_iter().map(|(_, headroom)| headroom.bytes).max().unwrap();
        match self.switch.credit {
            CreditUnit::Bytes => bytes,
            CreditUnit::Cells(cell) => Bytes::new(bytes.div_ceil(cell) * cell.get()),
        }
    }

    pub fn build(&self, script: &Script) -> Result<InitialState<Network<T, Scripted>>, BuildError> {
        let parameters = self.parameters();
        let publishes = self.layout.needs_published_queues();
        let mut initial =
            Network::build(parameters, (), |endpoint, _| Scripted::new(script[endpoint.index()].clone()))?;
        if publishes {
            // As often as can be, and never as the windows of the engine.
            let interval = initial.lookahead.span().min(Span::from_us(1)) + Span::from_ps(77_777);
            let delay = interval + Span::from_ps(123_456);
            initial.model.publish_queues(Publishing { interval, delay })?;
        }
        Ok(initial)
    }

    /// The virtual channels of its links.
    pub fn plan(&self) -> ChannelPlan {
        self.switch.channels.plan(self.layout.virtual_channels()).unwrap()
    }

    /// Traffic class of a packet of so many bytes.
    pub fn class_of(&self, bytes: u32) -> usize {
        let takes = |class: &TrafficClass| class.up_to.is_none_or(|most| u64::from(bytes) <= most.get());
        self.switch.channels.classes.all().iter().position(takes).unwrap()
    }

    /// A run of `script` that is about to begin.
    pub fn begin(&self, script: &Script, threads: usize) -> Run<T> {
        Simulation::new(self.build(script).unwrap(), threads)
    }

    /// The network with multicast groups of these members.
    pub fn with_groups(
        &self,
        script: &Script,
        groups: &[Vec<EndpointId>],
    ) -> InitialState<Network<T, Scripted>> {
        let group = |members: &Vec<EndpointId>| GroupMembers::new(members, &self.layout).unwrap();
        let groups = groups.iter().map(group).collect();
        Network::with_groups(self.build(script).unwrap(), groups).unwrap()
    }

    /// The same run with every packet queued in every switch.
    pub fn begin_queueing(&self, script: &Script) -> Run<T> {
        let initial = self.build(script).unwrap();
        Simulation::new(InitialState { model: initial.model.queueing_always(), ..initial }, 1)
    }

    /// A run that goes on from a snapshot.
    pub fn resume(&self, script: &Script, bytes: &[u8], threads: usize) -> Run<T> {
        self.try_resume(script, bytes, threads).unwrap()
    }

    /// The same, from bytes that may be none.
    pub fn try_resume(&self, script: &Script, bytes: &[u8], threads: usize) -> Result<Run<T>, SnapshotError> {
        Simulation::resume(self.build(script).unwrap(), bytes, threads)
    }

    /// Everything that arrives when `script` is run to its end, in the order of [`Arrived`].
    pub fn arrivals(&self, script: &Script) -> Vec<Arrived> {
        let mut run = self.begin(script, 1);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        take_arrivals(&mut run)
    }
}

/// Runs up to `time`.
pub fn until<T: Topology + Routing + Sync>(run: &mut Run<T>, time: Time) -> Progress {
    run.run_until(time, &AtomicBool::new(false))
}

/// Packets that have arrived since this was last called.
pub fn take_arrivals<T: Topology + Routing + Sync>(run: &mut Run<T>) -> Vec<Arrived> {
    let mut arrived: Vec<Arrived> = run.outputs_mut().flat_map(std::mem::take).collect();
    arrived.sort_unstable();
    arrived
}

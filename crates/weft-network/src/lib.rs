//! A simulated network, whichever model carries the packets: what experiments ask of it at virtual
//! epochs.
//!
//! ```text
//!  experiment ── run_until, outputs, links, save ──► SimulatedNetwork ──┬─► weft_fabric::Network
//!                                                                       └─► weft_fabric::Ideal
//! ```
//! A model is compiled once for each kind of host, which is most of what it costs to compile weft. So the
//! interfaces of all models are one type, [`AnyNic`]: a call to an interface asks which one it is. All other
//! events are dispatched statically, and the calls between epochs go through a table.

mod any_nic;
mod energy;
mod flows;
mod hosts;
mod rehearsal;

pub use any_nic::{AnyAnnouncement, AnyNic, AnyParameters, AnyTimer, OfModel};
pub use energy::{MachineEnergy, PartUse, PoweredPart};

use energy::EnergyCount;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use weft_assembly::{self as assembly, AssemblyError, FabricParameters};
use weft_engine::{InitialState, Model, Progress, Simulation, SnapshotError};
use weft_fabric::{
    FlowCount, FlowId, Ideal, Interface, LinkCounts, LinkEnd, Network, PowerReport, QueueReport, Stuck, Wire,
    check_credits, check_packets, stuck,
};
use weft_machine::{self as machine, CongestionRule, Machine, MachinePower};
use weft_nic::{BlockWork, Host, Nic, NicParameters, OverheadsParameters, Refused};
use weft_topo::{Attachment, Layout, Routing, Topology};
use weft_units::ledger::{MissingByCause, View as _};
use weft_units::{BitRate, Bytes, EndpointId, PacketCounts, Span, Time};

/// The use of one direction of one link since the counters were last reset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkUse {
    /// The end at which it begins.
    pub from: LinkEnd,
    /// The end at which it ends. A link of the ideal network joins an endpoint to all others: `Nothing`.
    pub to: Attachment,
    /// The class of link, as machine files name it.
    pub class: String,
    /// Bits per second on the line, coding included; 0 where a link of the ideal network takes no time.
    pub rate: BitRate,
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets: header, payload and footer.
    pub packet_bytes: Bytes,
    /// Their payload.
    pub payload: Bytes,
    /// Time in which it was sending.
    pub busy: Span,
    /// Time in which a packet stood ready while the buffer behind it was full.
    pub stalled: Span,
    /// Time in which the sender of a virtual channel was paused.
    pub paused: Span,
    /// Pause frames that its sender has obeyed.
    pub pause_frames: u64,
    /// The most that one virtual channel's buffer behind it has held; zero under credits.
    pub most_held: Bytes,
    /// The rate that it offers each flow, where congestion control knows one of links.
    pub fair_rate: Option<BitRate>,
    /// The packets to which it did something.
    pub counts: PacketCounts,
    /// Power states and energy; `None`: the machine says nothing of them.
    pub power: Option<PowerReport>,
}

impl LinkUse {
    /// A link of a class that nothing has used, without queues, faults and power.
    pub fn unused(from: LinkEnd, to: Attachment, class: String, rate: BitRate) -> LinkUse {
        LinkUse {
            from,
            to,
            class,
            rate,
            packets: 0,
            packet_bytes: Bytes::ZERO,
            payload: Bytes::ZERO,
            busy: Span::ZERO,
            stalled: Span::ZERO,
            paused: Span::ZERO,
            pause_frames: 0,
            most_held: Bytes::ZERO,
            fair_rate: None,
            counts: PacketCounts::default(),
            power: None,
        }
    }
}

weft_units::counters! {
    /// The packets that have crossed links.
    pub struct Crossed {
        /// Links crossed by packets, injection and ejection included, acknowledgements not. A packet of the
        /// ideal network crosses one.
        pub packet_hops: u64,
        /// Packets that left the network for an endpoint.
        pub packets: u64,
        /// The packets to which links and switches did something.
        pub counts: PacketCounts,
        /// Energy since the counters were last reset.
        pub energy: MachineEnergy,
    }
}

/// A law of conservation that does not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LostData(pub String);

/// A network with a host behind every endpoint, in virtual time.
pub trait SimulatedNetwork<H: Host> {
    /// Handles every event before `until`; stops early when nothing is pending or `interrupt` is raised.
    fn run_until(&mut self, until: Time, interrupt: &AtomicBool) -> Progress;

    /// Lets a timer of an endpoint's host fire at `at`, which must not lie in the past.
    fn wake(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer);

    /// The virtual time that has been reached.
    fn now(&self) -> Time;

    /// The run has ended at `end`: from now on links and energy are reported as they were then, or when the
    /// last packet had left its line, if that was later. Virtual time has passed beyond it, without an event,
    /// up to the end of an epoch.
    fn report_until(&mut self, _end: Time) {}

    /// A line on the packets that links have lost or corrupted, where none is on its way any more: who waits
    /// may wait for them. `None`: links lost nothing, or packets are under way.
    fn lost_packets(&self) -> Option<String> {
        let counts = self.crossed().counts;
        let any = counts.lost() + counts.corrupted > 0 && self.buffered() == 0;
        any.then(|| {
            let lost = MissingByCause::list(&counts);
            format!("{lost}; what the interface did not repair is missing, and ranks wait for it")
        })
    }

    /// Lets virtual time stand still, from now on, while nothing is pending, instead of passing to the time
    /// that it was to reach.
    fn stand_when_dry(&mut self);

    /// The windows in which the engine works, from the beginning of virtual time on: where a run is cut
    /// between their bounds, a window costs twice. `None`: cuts cost nothing. The same for any number of
    /// threads.
    fn window(&self) -> Option<Span>;

    /// Calls `visit` with what hosts have reported since it was last taken, in parts whose number and
    /// content depend on the threads; their sum does not. It is not part of a saved state.
    fn visit_outputs(&mut self, visit: &mut dyn FnMut(&mut H::Output));

    /// Calls `visit` with the host of every endpoint, in an order that does not depend on threads.
    fn visit_hosts(&self, visit: &mut dyn FnMut(EndpointId, &H));

    /// Calls `visit` with the header of every message with one that is on its way to a host, and how much of
    /// its payload has come, in no particular order.
    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes));

    /// Calls `visit` with the work of each block of every endpoint's interface since the run began, in an
    /// order that does not depend on threads or time.
    fn visit_work(&self, visit: &mut dyn FnMut(EndpointId, BlockWork));

    /// The messages that full queues of their receivers have refused, where interfaces send nothing else:
    /// they only repeat. `None`: there is no such message, or others are under way.
    fn only_repeats(&self) -> Option<Refused>;

    /// Calls `visit` with every direction of every link: those that leave endpoints first, by endpoint;
    /// then those that leave switches, by switch and port.
    fn visit_links(&self, visit: &mut dyn FnMut(LinkUse));

    /// Shows the energy of every switch and interface of which the machine says the power: interfaces by
    /// endpoint, then switches.
    fn visit_parts(&self, _visit: &mut dyn FnMut(PartUse)) {}

    /// Calls `visit` with every queue of a switch that holds packets, by switch, side, port and virtual
    /// channel; with meters also those that have held some since these were restarted. The ideal network has
    /// none.
    fn visit_queues(&self, visit: &mut dyn FnMut(QueueReport));

    /// Counts from now on how full queues become at most.
    fn meter_queues(&mut self) {}

    /// From now on the most of each queue counts anew.
    fn restart_queue_meters(&mut self) {}

    /// Counts what comes to endpoints by flow, from now on. Whether it can: the ideal network cannot.
    #[must_use]
    fn meter_flows(&mut self) -> bool;

    /// Calls `visit` with what has come of each flow since [`SimulatedNetwork::meter_flows`], in an order
    /// that does not depend on threads.
    fn visit_flows(&self, visit: &mut dyn FnMut(FlowId, FlowCount));

    /// Calls `visit` with the rate that congestion control allows each flow that it knows at its source.
    fn visit_allowed_rates(&self, visit: &mut dyn FnMut(FlowId, BitRate));

    /// The packets that have crossed links since the counters were last reset.
    fn crossed(&self) -> Crossed;

    /// Packets in buffers, those at endpoints that wait for space included.
    fn buffered(&self) -> usize;

    /// Sets the counters of links to zero, at the end of warm-up.
    fn reset_counters(&mut self);

    /// The whole state as bytes, the same for any number of threads.
    ///
    /// # Errors
    /// State that cannot be serialized.
    fn save(&mut self) -> Result<Vec<u8>, SnapshotError>;

    /// How the run ends if no packet in the network can ever move again: with the circle of buffers that
    /// wait for each other, or all that waits. `None`: packets move, or there are none.
    fn stuck(&self) -> Option<Stuck>;

    /// The buffer that has lost a packet although its sender was to pause, as a line. `None`: there is none.
    fn overrun(&self) -> Option<String>;

    /// Checks that no packet and no credit is lost.
    ///
    /// # Errors
    /// What is missing, and where.
    fn check(&self) -> Result<(), LostData>;

    /// Events handled so far by this process.
    fn events_handled(&self) -> u64;
}

/// Why a network could not be built or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The machine cannot be simulated.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// The saved state is not of this machine.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// A network that is to be built, with a host behind every endpoint.
pub struct NetworkSetup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The topology with its routing.
    pub layout: Layout,
    /// Of random choices of routing, arbiters and faults.
    pub seed: u64,
    /// Threads that simulate.
    pub threads: usize,
    /// The saved state of an earlier run, to go on from.
    pub saved: Option<&'a [u8]>,
    /// The members of multicast groups of the workload. They are numbered after those of the machine.
    pub groups: Vec<Vec<EndpointId>>,
    /// Whether hosts are told of each link that any packet crosses. The ideal network has none.
    pub follows_packets: bool,
}

impl<'a> NetworkSetup<'a> {
    /// A network at the beginning of virtual time, simulated by one thread.
    pub fn new(machine: &'a Machine, layout: Layout, seed: u64) -> NetworkSetup<'a> {
        NetworkSetup {
            machine,
            layout,
            seed,
            threads: 1,
            saved: None,
            groups: Vec::new(),
            follows_packets: false,
        }
    }

    /// Builds the network.
    ///
    /// # Errors
    /// A machine that cannot be simulated, or a state that is not its own.
    pub fn build<H: Host>(
        self,
        host_parameters: H::Parameters,
        make_host: impl FnMut(EndpointId) -> H,
    ) -> Result<Box<dyn SimulatedNetwork<H>>, NetworkError> {
        let host = host_parameters;
        if self.machine.flows {
            return self.build_flows(host, make_host);
        }
        let parameters = match &self.machine.nic {
            machine::Nic::Overheads(nic) => {
                let may_fail = assembly::links_may_fail(self.machine, &self.layout);
                let interface =
                    OverheadsParameters { reliability: nic.reliability.on_links(may_fail), ..*nic };
                AnyParameters::<H>::Overheads(NicParameters { interface, host })
            }
            machine::Nic::Portals(nic) => {
                let mut interface = *nic;
                let mixes_lanes = assembly::channel_plan(self.machine, &self.layout)?
                    .is_some_and(|plan| plan.mixes_lanes());
                interface.ordered &= self.layout.is_deterministic() && !mixes_lanes;
                AnyParameters::<H>::Portals(NicParameters { interface, host })
            }
            machine::Nic::Exanet(nic) => {
                AnyParameters::<H>::Exanet(NicParameters { interface: nic.parameters(self.seed), host })
            }
            machine::Nic::CommunicationIp(nic) => {
                let interface = nic.parameters(&self.machine.topology);
                AnyParameters::<H>::CommunicationIp(NicParameters { interface, host })
            }
            machine::Nic::Carvnet(nic) => {
                AnyParameters::<H>::Exanet(NicParameters { interface: nic.parameters(self.seed), host })
            }
            machine::Nic::Apenetx(nic) => {
                AnyParameters::<H>::Apenetx(NicParameters { interface: nic.parameters, host })
            }
        };
        self.build_over::<H, AnyNic<H>>(parameters, make_host)
    }

    /// Builds the network with interfaces of the model `N`. Who knows it spares the compiler all others.
    ///
    /// # Errors
    /// A machine that cannot be simulated, or a state that is not its own.
    pub fn build_over<H: Host, N: Nic<H>>(
        self,
        interface: N::Parameters,
        mut make_host: impl FnMut(EndpointId) -> H,
    ) -> Result<Box<dyn SimulatedNetwork<H>>, NetworkError> {
        let NetworkSetup { machine, layout, seed, threads, saved, groups, follows_packets } = self;
        let groups = assembly::groups(machine, &layout, &groups)?;
        let endpoints = layout.endpoints();
        let make_nic = |endpoint, shared: &_| N::new(make_host(endpoint), endpoint, shared);
        match assembly::fabric_parameters(machine, layout, seed)? {
            FabricParameters::Packet(parameters) => {
                let rates = parameters.links.iter().map(|link| link.rate).collect();
                let envelope = machine.packet.header + machine.packet.footer;
                let faults = assembly::faults(machine, &parameters.layout, seed)?;
                let failures = match machine.reroute_after {
                    Some(_) => assembly::failures(faults.as_ref(), &parameters.layout, machine),
                    None => None,
                };
                let reroutes = match (machine.reroute_after, failures) {
                    (Some(after), Some(failures)) => Some(failures.reroutes(&parameters.layout, after)?),
                    _ => None,
                };
                let mut initial =
                    Network::build(parameters, interface, make_nic).map_err(AssemblyError::network)?;
                if let Some(publishing) = machine.queue_board {
                    initial.model.publish_queues(publishing).map_err(AssemblyError::network)?;
                }
                if let Some(faults) = faults {
                    let InitialState { model, sites, .. } = &mut initial;
                    model.inject_faults(sites, seed, |from, to, class| faults.of(from, to, class));
                }
                if !groups.is_empty() {
                    initial = Network::with_groups(initial, groups).map_err(AssemblyError::Replication)?;
                }
                if let Some(rule) = machine.congestion {
                    initial = control_congestion(initial, rule, seed)?;
                }
                if let Some(reroutes) = reroutes {
                    initial.model.reroute(reroutes);
                }
                if let machine::Nic::CommunicationIp(ip) = &machine.nic
                    && machine.congestion.is_none()
                {
                    let InitialState { model, sites, .. } = &mut initial;
                    model.limit_receivers(sites, ip.receive_fifos());
                }
                if follows_packets {
                    let InitialState { model, sites, .. } = &mut initial;
                    model.follow_packets(sites);
                }
                let simulation = simulation(initial, threads, saved)?;
                Ok(Box::new(PacketNetwork::<H, N> {
                    simulation,
                    rates,
                    envelope,
                    power: machine.power,
                    reported_until: None,
                    host: PhantomData,
                }))
            }
            FabricParameters::Ideal(parameters) => {
                let mut initial = Ideal::build(parameters, endpoints, interface, make_nic);
                initial.model.set_groups(groups);
                let simulation = simulation(initial, threads, saved)?;
                Ok(Box::new(IdealNetwork::<H, N> { simulation, rate: parameters.rate, host: PhantomData }))
            }
        }
    }
}

/// The network with its congestion control.
fn control_congestion<T: Topology + Routing + Sync, N: Interface>(
    initial: InitialState<Network<T, N>>,
    rule: CongestionRule,
    seed: u64,
) -> Result<InitialState<Network<T, N>>, AssemblyError> {
    Ok(Network::with_congestion(initial, seed, |path, class| rule.algorithm(path, class))?)
}

/// The simulation, from its beginning or from a saved state.
fn simulation<M: Model>(
    initial: InitialState<M>,
    threads: usize,
    saved: Option<&[u8]>,
) -> Result<Simulation<M>, SnapshotError> {
    match saved {
        Some(bytes) => Simulation::resume(initial, bytes, threads),
        None => Ok(Simulation::new(initial, threads)),
    }
}

/// The methods that both models have in common.
macro_rules! by_the_engine {
    () => {
        fn run_until(&mut self, until: Time, interrupt: &AtomicBool) -> Progress {
            self.simulation.run_until(until, interrupt)
        }

        fn wake(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
            let model = self.simulation.model();
            let timer = N::host_timer(model.interface_parameters(), timer);
            let event = model.timer(endpoint, at, timer);
            self.simulation.insert(event);
        }

        fn now(&self) -> Time {
            self.simulation.now()
        }

        fn stand_when_dry(&mut self) {
            self.simulation.stand_when_dry();
        }

        fn window(&self) -> Option<Span> {
            self.simulation.window()
        }

        fn visit_outputs(&mut self, visit: &mut dyn FnMut(&mut H::Output)) {
            self.simulation.outputs_mut().for_each(visit);
        }

        fn visit_hosts(&self, visit: &mut dyn FnMut(EndpointId, &H)) {
            for (_, site) in self.simulation.sites() {
                site.interfaces().for_each(|(endpoint, interface)| visit(endpoint, interface.host()));
            }
        }

        fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
            for (_, site) in self.simulation.sites() {
                site.interfaces().for_each(|(_, interface)| interface.visit_arriving(visit));
            }
        }

        fn visit_work(&self, visit: &mut dyn FnMut(EndpointId, BlockWork)) {
            for (_, site) in self.simulation.sites() {
                let interfaces = site.interfaces();
                interfaces.for_each(|(endpoint, nic)| nic.visit_work(&mut |work| visit(endpoint, work)));
            }
        }

        fn only_repeats(&self) -> Option<Refused> {
            let (mut unfinished, mut refused) = (0, Refused::default());
            for (_, nic) in self.simulation.sites().flat_map(|(_, site)| site.interfaces()) {
                unfinished += nic.unfinished().0 as u64;
                refused += nic.refused();
            }
            (unfinished > 0 && refused.messages == unfinished).then_some(refused)
        }

        fn save(&mut self) -> Result<Vec<u8>, SnapshotError> {
            self.simulation.save()
        }

        fn events_handled(&self) -> u64 {
            self.simulation.events_handled()
        }
    };
}

/// Links and switches.
struct PacketNetwork<H: Host, N: Nic<H>> {
    simulation: Simulation<Network<Layout, N>>,
    /// By link class.
    rates: Vec<BitRate>,
    /// Header and footer of a packet.
    envelope: Bytes,
    power: MachinePower,
    /// The end of the run; `None`: it goes on.
    reported_until: Option<Time>,
    host: PhantomData<H>,
}

impl<H: Host, N: Nic<H>> PacketNetwork<H, N> {
    fn links(&self) -> impl Iterator<Item = weft_fabric::LinkReport> {
        Network::links_until(&self.simulation, self.reported_until())
    }

    /// Up to when links are reported.
    fn reported_until(&self) -> Time {
        self.reported_until.unwrap_or_else(|| self.simulation.now())
    }

    fn energy_count(&self) -> EnergyCount {
        let layout = self.simulation.model().layout();
        EnergyCount::new(self.power, layout.switches(), layout.endpoints())
    }

    /// Time of the reports of links and energy.
    fn counted_time(&self) -> Span {
        let from = self.simulation.sites().map(|(_, site)| site.counted_from()).next();
        self.reported_until().saturating_since(from.unwrap_or(Time::ZERO))
    }

    /// Whether anything that could free a buffer is on its way, or a packet waits for a time of its flow.
    fn moves(&self) -> bool {
        let decides = |site| <Network<Layout, N> as Model>::decision(site) < Time::NEVER;
        let frees = |payload: &Wire<_, _>| matches!(payload, Wire::Packet(_) | Wire::Pause(_));
        let (model, now) = (self.simulation.model(), self.simulation.now());
        let waits = |site| model.waits_for_time(site, now);
        // What is on its way is found soon, and what waits only after a look at every site.
        self.simulation.pending().any(|event| frees(&event.payload))
            || self.simulation.pending_notes().next().is_some()
            || self.simulation.sites().any(|(_, site)| decides(site) || site.expects_credits() || waits(site))
    }
}

impl<H: Host, N: Nic<H>> SimulatedNetwork<H> for PacketNetwork<H, N> {
    by_the_engine!();

    fn report_until(&mut self, end: Time) {
        let idle = self.simulation.sites().map(|(_, site)| self.simulation.model().lines_idle(site)).max();
        self.reported_until = idle.max(Some(end));
    }

    fn reset_counters(&mut self) {
        let now = self.simulation.now();
        self.simulation.sites_mut().for_each(|(_, site)| site.reset_counters(now));
    }

    fn visit_links(&self, visit: &mut dyn FnMut(LinkUse)) {
        let classes = self.simulation.model().layout().link_classes();
        let link_use = |link: weft_fabric::LinkReport| {
            let class = usize::from(link.class.0);
            LinkUse {
                from: link.from,
                to: link.to,
                class: classes[class].to_owned(),
                rate: self.rates[class],
                packets: link.packets,
                packet_bytes: link.payload + Bytes::new(link.packets * self.envelope.get()),
                payload: link.payload,
                busy: link.busy,
                stalled: link.stalled,
                paused: link.paused,
                pause_frames: link.pause_frames,
                most_held: link.most_held,
                fair_rate: link.fair_rate,
                counts: link.counts,
                power: link.power,
            }
        };
        let is_injection = |link: &weft_fabric::LinkReport| matches!(link.from, LinkEnd::Endpoint(_));
        // Endpoints are not numbered by switch on every topology. Where they are, a list would only take
        // memory.
        let endpoints = self.simulation.sites().flat_map(|(_, site)| site.interfaces().map(|(id, _)| id));
        if endpoints.is_sorted() {
            self.links().filter(is_injection).map(link_use).for_each(&mut *visit);
        } else {
            let mut injection: Vec<LinkUse> = self.links().filter(is_injection).map(link_use).collect();
            injection.sort_unstable_by_key(|link| link.from);
            injection.into_iter().for_each(&mut *visit);
        }
        self.links().filter(|link| !is_injection(link)).map(link_use).for_each(visit);
    }

    fn visit_parts(&self, visit: &mut dyn FnMut(PartUse)) {
        let mut energy = self.energy_count();
        self.links().for_each(|link| energy.add(&link, self.envelope));
        energy.parts(self.counted_time()).for_each(visit);
    }

    fn visit_queues(&self, visit: &mut dyn FnMut(QueueReport)) {
        Network::queues(&self.simulation).for_each(visit);
    }

    fn meter_queues(&mut self) {
        Network::meter_queues(&mut self.simulation);
    }

    fn restart_queue_meters(&mut self) {
        Network::restart_queue_meters(&mut self.simulation);
    }

    fn meter_flows(&mut self) -> bool {
        Network::meter_flows(&mut self.simulation);
        true
    }

    fn visit_flows(&self, visit: &mut dyn FnMut(FlowId, FlowCount)) {
        Network::flows(&self.simulation).for_each(|(flow, count)| visit(flow, count));
    }

    fn visit_allowed_rates(&self, visit: &mut dyn FnMut(FlowId, BitRate)) {
        let (model, now) = (self.simulation.model(), self.simulation.now());
        for (_, site) in self.simulation.sites() {
            model.flow_rates(site, now).for_each(|(flow, rate)| visit(flow, rate));
        }
    }

    fn crossed(&self) -> Crossed {
        let LinkCounts { packets: packet_hops, delivered: packets, counts } =
            Network::link_counts(&self.simulation, self.reported_until());
        let mut crossed = Crossed { packet_hops, packets, counts, ..Crossed::default() };
        if self.power != MachinePower::default() || self.simulation.model().links_have_power() {
            let mut energy = self.energy_count();
            self.links().for_each(|link| energy.add(&link, self.envelope));
            crossed.energy = energy.machine(self.counted_time());
        }
        for (_, site) in self.simulation.sites() {
            crossed.counts += site.failover();
        }
        let acknowledgements: u64 = self.simulation.sites().map(|(_, site)| site.acknowledgements()).sum();
        crossed.packet_hops -= acknowledgements;
        crossed
    }

    fn buffered(&self) -> usize {
        self.simulation.sites().map(|(_, site)| site.buffered()).sum()
    }

    fn stuck(&self) -> Option<Stuck> {
        if self.moves() { None } else { stuck(&self.simulation) }
    }

    fn overrun(&self) -> Option<String> {
        Network::overrun(&self.simulation).map(|overrun| overrun.to_string())
    }

    fn check(&self) -> Result<(), LostData> {
        let checked = check_credits(&self.simulation).and_then(|()| check_packets(&self.simulation));
        checked.map_err(|error| LostData(error.to_string()))
    }
}

/// Latency and gaps, no queues.
struct IdealNetwork<H: Host, N: Nic<H>> {
    simulation: Simulation<Ideal<N>>,
    rate: Option<BitRate>,
    host: PhantomData<H>,
}

impl<H: Host, N: Nic<H>> SimulatedNetwork<H> for IdealNetwork<H, N> {
    by_the_engine!();

    fn reset_counters(&mut self) {
        self.simulation.sites_mut().for_each(|(_, site)| site.reset_counters());
    }

    fn visit_links(&self, visit: &mut dyn FnMut(LinkUse)) {
        for (endpoint, packets, payload) in self.simulation.sites().flat_map(|(_, site)| site.sent()) {
            let rate = self.rate.unwrap_or(BitRate::from_bits_per_second(0));
            let (from, busy) = (LinkEnd::Endpoint(endpoint), self.rate.map(|rate| rate.span(payload)));
            visit(LinkUse {
                packets,
                packet_bytes: payload,
                payload,
                busy: busy.unwrap_or_default(),
                ..LinkUse::unused(from, Attachment::Nothing, "ideal".to_owned(), rate)
            });
        }
    }

    fn visit_queues(&self, _: &mut dyn FnMut(QueueReport)) {}

    fn meter_flows(&mut self) -> bool {
        false
    }

    fn visit_flows(&self, _: &mut dyn FnMut(FlowId, FlowCount)) {}

    fn visit_allowed_rates(&self, _: &mut dyn FnMut(FlowId, BitRate)) {}

    fn crossed(&self) -> Crossed {
        let sent = self.simulation.sites().flat_map(|(_, site)| site.sent());
        let packets: u64 = sent.map(|(_, packets, _)| packets).sum();
        let acknowledgements: u64 = self.simulation.sites().map(|(_, site)| site.acknowledgements()).sum();
        Crossed { packet_hops: packets - acknowledgements, packets, ..Crossed::default() }
    }

    fn buffered(&self) -> usize {
        0
    }

    fn stuck(&self) -> Option<Stuck> {
        None
    }

    fn overrun(&self) -> Option<String> {
        None
    }

    fn check(&self) -> Result<(), LostData> {
        Ok(())
    }
}

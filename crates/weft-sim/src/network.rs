//! A simulated network, whichever model carries the packets: what experiments ask of it at virtual
//! epochs.
//!
//! ```text
//!  experiment ── run_until, outputs, links, save ──► SimulatedNetwork ──┬─► weft_fabric::Network
//!                                                                       └─► weft_fabric::Ideal
//! ```
//! Events are dispatched statically inside the two models; only the calls between epochs go through a
//! table.

use crate::assembly::{self, AssemblyError};
use crate::machine::{self, Machine};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use weft_engine::{Ending, Model, Progress, Simulation, SnapshotError};
use weft_fabric::{FaultCounts, Ideal, LinkEnd, Network, Wire, check_credits, check_packets, stuck};
use weft_nic::{FullNic, Host, Nic, SimpleNic};
use weft_topo::{Attachment, Layout, Topology};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// What one direction of one link has done since the counters were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkUse {
    /// Where it begins.
    pub from: LinkEnd,
    /// Where it ends. A link of the ideal network joins an endpoint to all others, which is `Nothing`.
    pub to: Attachment,
    /// Its kind, as machine files name it.
    pub class: &'static str,
    /// Bits per second on the line, coding included; 0 where a link of the ideal network takes no time.
    pub rate: BitRate,
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets: header, payload and footer.
    pub packet_bytes: Bytes,
    /// Their payload.
    pub payload: Bytes,
    /// How long it was sending.
    pub busy: Span,
    /// How long a packet stood ready while the buffer behind it was full.
    pub stalled: Span,
    /// Which of the packets it lost or corrupted.
    pub faults: FaultCounts,
}

/// What has crossed links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Crossed {
    /// Links crossed by packets, injection and ejection included, acknowledgements not. A packet of the ideal
    /// network crosses one.
    pub packet_hops: u64,
    /// Packets that left the network for an endpoint.
    pub packets: u64,
    /// What links lost and corrupted.
    pub faults: FaultCounts,
}

impl std::ops::AddAssign for Crossed {
    fn add_assign(&mut self, other: Crossed) {
        self.packet_hops += other.packet_hops;
        self.packets += other.packets;
        self.faults += other.faults;
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

    /// What links have lost or corrupted, where nothing is on its way any more: whoever waits may wait for that. `None`: nothing, or
    /// packets are under way.
    fn lost_packets(&self) -> Option<String> {
        let faults = self.crossed().faults;
        let any = faults.lost() + faults.corrupted > 0 && self.buffered() == 0;
        any.then(|| {
            format!(
                "{} packets were lost by chance, {} on dead links, and {} were corrupted; what the interface did not repair is \
                 missing, and ranks wait for it",
                faults.dropped, faults.dead, faults.corrupted
            )
        })
    }

    /// From now on virtual time stands where nothing is pending, instead of passing until the time that it was to reach.
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

    /// Calls `visit` with every direction of every link: those that leave endpoints first, by endpoint;
    /// then those that leave switches, by switch and port.
    fn visit_links(&self, visit: &mut dyn FnMut(LinkUse));

    /// What has crossed links since the counters were last reset.
    fn crossed(&self) -> Crossed;

    /// Packets in buffers, those at endpoints that wait for room included.
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
    fn stuck(&self) -> Option<Ending>;

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

/// Builds the network of a machine with a host behind every endpoint; from `saved` on, where the state of
/// an earlier run is given. `seed` is that of random choices of routing and arbiters.
///
/// # Errors
/// A machine that cannot be simulated, or a state that is not its own.
pub fn build<H: Host>(
    machine: &Machine,
    layout: Layout,
    seed: u64,
    threads: usize,
    host_parameters: H::Parameters,
    make_host: impl FnMut(EndpointId) -> H,
    saved: Option<&[u8]>,
) -> Result<Box<dyn SimulatedNetwork<H>>, NetworkError> {
    let at = At { machine, layout, seed, threads, saved };
    match &machine.nic {
        machine::Nic::Simple(nic) => {
            let interface = (assembly::simple_parameters(machine, nic), host_parameters);
            at.build::<H, SimpleNic<H>>(interface, make_host)
        }
        machine::Nic::Full(nic) => {
            let interface = (assembly::full_parameters(nic, seed), host_parameters);
            at.build::<H, FullNic<H>>(interface, make_host)
        }
    }
}

/// Where a network is to be built: what does not depend on the model of its interfaces.
struct At<'a> {
    machine: &'a Machine,
    layout: Layout,
    seed: u64,
    threads: usize,
    saved: Option<&'a [u8]>,
}

impl At<'_> {
    fn build<H: Host, N: Nic<H>>(
        self,
        interface: N::Parameters,
        mut make_host: impl FnMut(EndpointId) -> H,
    ) -> Result<Box<dyn SimulatedNetwork<H>>, NetworkError> {
        let At { machine, layout, seed, threads, saved } = self;
        let endpoints = layout.endpoints();
        if let Some(parameters) = assembly::network_parameters(machine, layout, seed)? {
            let rates = parameters.links.iter().map(|link| link.rate).collect();
            let envelope = machine.packet.header + machine.packet.footer;
            let faults = assembly::faults(machine, &parameters.layout)?;
            let mut built =
                Network::build(parameters, interface, |e, shared| N::new(make_host(e), e, shared))
                    .map_err(AssemblyError::network)?;
            if let Some(faults) = faults {
                built.inject_faults(seed, |from, to, class| faults.of(from, to, class));
            }
            let simulation = match saved {
                None => Simulation::new(built.network, built.sites, built.events, built.lookahead, threads),
                Some(bytes) => {
                    let sites = built.sites.len();
                    drop((built.sites, built.events));
                    Simulation::resume(built.network, bytes, sites, built.lookahead, threads)?
                }
            };
            return Ok(Box::new(PacketNetwork::<H, N> { simulation, rates, envelope, host: PhantomData }));
        }
        let parameters = assembly::ideal_parameters(machine)?
            .expect("a machine has a packet fabric or an ideal one, and the first was asked for above");
        let (ideal, sites, events, lookahead) =
            Ideal::build(parameters, endpoints, interface, |e, shared| N::new(make_host(e), e, shared));
        let simulation = match saved {
            None => Simulation::new(ideal, sites, events, lookahead, threads),
            Some(bytes) => {
                let count = sites.len();
                drop((sites, events));
                Simulation::resume(ideal, bytes, count, lookahead, threads)?
            }
        };
        Ok(Box::new(IdealNetwork::<H, N> { simulation, rate: parameters.rate, host: PhantomData }))
    }
}

/// What both models answer alike.
macro_rules! by_the_engine {
    () => {
        fn run_until(&mut self, until: Time, interrupt: &AtomicBool) -> Progress {
            self.simulation.run_until(until, interrupt)
        }

        fn wake(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
            let event = self.simulation.model().timer(endpoint, at, N::host_timer(timer));
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
    host: PhantomData<H>,
}

impl<H: Host, N: Nic<H>> PacketNetwork<H, N> {
    fn links(&self) -> impl Iterator<Item = weft_fabric::LinkReport> {
        let now = self.simulation.now();
        self.simulation.sites().flat_map(move |(id, site)| self.simulation.model().links_of(id, site, now))
    }

    /// Whether anything that could free a buffer is on its way.
    fn moves(&self) -> bool {
        let decides = |site| <Network<Layout, N> as Model>::decision(site) < Time::MAX;
        let frees = |payload: &Wire<_, _>| matches!(payload, Wire::Packet(_));
        self.simulation.sites().any(|(_, site)| decides(site) || site.expects_credits())
            || self.simulation.pending_notes().next().is_some()
            || self.simulation.pending().any(|event| frees(&event.payload))
    }
}

impl<H: Host, N: Nic<H>> SimulatedNetwork<H> for PacketNetwork<H, N> {
    by_the_engine!();

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
                class: classes[class],
                rate: self.rates[class],
                packets: link.packets,
                packet_bytes: link.payload + Bytes::new(link.packets * self.envelope.get()),
                payload: link.payload,
                busy: link.busy,
                stalled: link.stalled,
                faults: link.faults,
            }
        };
        let is_injection = |link: &weft_fabric::LinkReport| matches!(link.from, LinkEnd::Endpoint(_));
        // Endpoints are not numbered by switch on every topology.
        let mut injection: Vec<LinkUse> = self.links().filter(is_injection).map(link_use).collect();
        injection.sort_by_key(|link| link.from);
        injection.into_iter().for_each(&mut *visit);
        self.links().filter(|link| !is_injection(link)).map(link_use).for_each(visit);
    }

    fn crossed(&self) -> Crossed {
        let mut crossed = Crossed::default();
        for link in self.links() {
            let faults = link.faults;
            let left = link.packets - faults.lost();
            let packets = if matches!(link.to, Attachment::Endpoint(_)) { left } else { 0 };
            crossed += Crossed { packet_hops: link.packets, packets, faults };
        }
        let acknowledgements: u64 = self.simulation.sites().map(|(_, site)| site.acknowledgements()).sum();
        crossed.packet_hops -= acknowledgements;
        crossed
    }

    fn buffered(&self) -> usize {
        self.simulation.sites().map(|(_, site)| site.buffered()).sum()
    }

    fn stuck(&self) -> Option<Ending> {
        if self.moves() { None } else { stuck(&self.simulation) }
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
            visit(LinkUse {
                from: LinkEnd::Endpoint(endpoint),
                to: Attachment::Nothing,
                class: "ideal",
                rate: self.rate.unwrap_or(BitRate::from_bits_per_second(0)),
                packets,
                packet_bytes: payload,
                payload,
                busy: self.rate.map_or(Span::ZERO, |rate| rate.span(payload)),
                stalled: Span::ZERO,
                faults: FaultCounts::default(),
            });
        }
    }

    fn crossed(&self) -> Crossed {
        let sent = self.simulation.sites().flat_map(|(_, site)| site.sent());
        let packets: u64 = sent.map(|(_, packets, _)| packets).sum();
        let acknowledgements: u64 = self.simulation.sites().map(|(_, site)| site.acknowledgements()).sum();
        Crossed { packet_hops: packets - acknowledgements, packets, faults: FaultCounts::default() }
    }

    fn buffered(&self) -> usize {
        0
    }

    fn stuck(&self) -> Option<Ending> {
        None
    }

    fn check(&self) -> Result<(), LostData> {
        Ok(())
    }
}

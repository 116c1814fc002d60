//! The network of fluids, as experiments see it.

use crate::energy::EnergyCount;
use crate::rehearsal::Rehearsals;
use crate::{Crossed, LinkUse, LostData, NetworkError, NetworkSetup, PartUse, SimulatedNetwork, simulation};
use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation, SnapshotError};
use weft_fabric::{FlowCount, FlowId, LinkPower, Passed, PowerReport, QueueReport, Stuck};
use weft_flow::{FlowNetwork, FlowSetup, LineUse};
use weft_machine::MachinePower;
use weft_nic::{BlockWork, Host, Refused};
use weft_topo::{Layout, LinkClass, Topology as _};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Messages as fluids.
pub(crate) struct FluidNetwork<H: Host> {
    simulation: Simulation<FlowNetwork<Layout, H>>,
    /// By link class: its rate on the line, and before the line's code.
    rates: Vec<(BitRate, BitRate)>,
    /// By link class: what the machine says of its power.
    link_power: Vec<Option<LinkPower>>,
    power: MachinePower,
    /// The end of the run; `None`: it goes on.
    reported_until: Option<Time>,
}

impl NetworkSetup<'_> {
    /// Builds the network as one of fluids.
    ///
    /// # Errors
    /// A machine that cannot be simulated, or a state that is not its own.
    pub(crate) fn build_flows<H: Host>(
        self,
        host: H::Parameters,
        make_host: impl FnMut(EndpointId) -> H,
    ) -> Result<Box<dyn SimulatedNetwork<H>>, NetworkError> {
        let NetworkSetup { machine, layout, seed, saved, .. } = self;
        let lone = Rehearsals::new(machine, &layout, seed)?;
        let links = weft_assembly::links(machine, &layout).unwrap_or_default();
        let line_rates: Vec<BitRate> =
            (0..links.len()).map(|class| lone.line_rate(LinkClass(class as u8))).collect();
        let rates = links.iter().map(|link| link.rate).zip(line_rates.iter().copied()).collect();
        let link_power = links.iter().map(|link| link.layer.power).collect();
        let setup = FlowSetup {
            layout,
            rates: line_rates,
            packet: machine.packet.payload,
            envelope: machine.packet.header + machine.packet.footer,
            lone: Box::new(lone),
            seed,
        };
        let simulation = simulation(FlowNetwork::build(setup, host, make_host), 1, saved)?;
        let power = machine.power;
        Ok(Box::new(FluidNetwork { simulation, rates, link_power, power, reported_until: None }))
    }
}

impl<H: Host> FluidNetwork<H> {
    fn lines(&self) -> impl Iterator<Item = LineUse> {
        let (layout, now) = (self.simulation.model().layout(), self.simulation.now());
        self.simulation.sites().flat_map(move |(_, site)| site.lines(layout, now))
    }

    /// The time of the reports of links and energy.
    fn counted_time(&self) -> Span {
        let from = self.simulation.sites().map(|(_, site)| site.counted_from()).next();
        let until = self.reported_until.unwrap_or_else(|| self.simulation.now());
        until.saturating_since(from.unwrap_or(Time::ZERO))
    }

    /// Packets that have crossed a line, as far as the power of parts depends on them.
    fn passed(line: &LineUse) -> Passed {
        Passed { packets: line.packets, bytes: line.packet_bytes }
    }

    /// The power of a line: of fluids links never sleep.
    fn power_of(&self, line: &LineUse, time: Span) -> Option<PowerReport> {
        let power = self.link_power[usize::from(line.class.0)]?;
        Some(power.always_on(time, Bytes::new(line.wire_bits() / 8)))
    }

    /// `None`: the machine says nothing of its power.
    fn energy_count(&self, time: Span) -> Option<EnergyCount> {
        if self.power == MachinePower::default() && self.link_power.iter().all(Option::is_none) {
            return None;
        }
        let layout = self.simulation.model().layout();
        let mut energy = EnergyCount::new(self.power, layout.switches(), layout.endpoints());
        for line in self.lines() {
            energy.add_passed((line.from, line.to), Self::passed(&line), self.power_of(&line, time));
        }
        Some(energy)
    }
}

impl<H: Host> SimulatedNetwork<H> for FluidNetwork<H> {
    fn run_until(&mut self, until: Time, interrupt: &AtomicBool) -> Progress {
        self.simulation.run_until(until, interrupt)
    }

    fn wake(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
        let event = self.simulation.model().timer(endpoint, at, timer);
        self.simulation.insert(event);
    }

    fn now(&self) -> Time {
        self.simulation.now()
    }

    fn report_until(&mut self, end: Time) {
        self.reported_until = Some(end);
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
        let hosts = self.simulation.sites().flat_map(|(_, site)| site.hosts());
        hosts.for_each(|(endpoint, host)| visit(endpoint, host));
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let now = self.simulation.now();
        let arriving = self.simulation.sites().flat_map(|(_, site)| site.arriving(now));
        arriving.for_each(|(header, come)| visit(header, come));
    }

    fn visit_work(&self, _: &mut dyn FnMut(EndpointId, BlockWork)) {}

    fn only_repeats(&self) -> Option<Refused> {
        None
    }

    fn visit_links(&self, visit: &mut dyn FnMut(LinkUse)) {
        let layout = self.simulation.model().layout();
        let classes = layout.link_classes();
        let time = self.counted_time();
        for line in self.lines() {
            let class = usize::from(line.class.0);
            let (rate, line_rate) = self.rates[class];
            visit(LinkUse {
                packets: line.packets,
                packet_bytes: line.packet_bytes,
                payload: line.payload,
                busy: line.busy(line_rate),
                power: self.power_of(&line, time),
                ..LinkUse::unused(line.from, line.to, classes[class].to_owned(), rate)
            });
        }
    }

    fn visit_parts(&self, visit: &mut dyn FnMut(PartUse)) {
        let time = self.counted_time();
        self.energy_count(time).iter().for_each(|energy| energy.parts(time).for_each(&mut *visit));
    }

    fn visit_queues(&self, _: &mut dyn FnMut(QueueReport)) {}

    fn meter_flows(&mut self) -> bool {
        false
    }

    fn visit_flows(&self, _: &mut dyn FnMut(FlowId, FlowCount)) {}

    fn visit_allowed_rates(&self, _: &mut dyn FnMut(FlowId, BitRate)) {}

    fn crossed(&self) -> Crossed {
        let mut crossed = Crossed::default();
        for line in self.lines() {
            crossed.packet_hops += line.packets;
            if matches!(line.to, weft_topo::Attachment::Endpoint(_)) {
                crossed.packets += line.packets;
            }
        }
        let time = self.counted_time();
        crossed.energy = self.energy_count(time).map(|energy| energy.machine(time)).unwrap_or_default();
        crossed
    }

    fn buffered(&self) -> usize {
        0
    }

    fn reset_counters(&mut self) {
        let now = self.simulation.now();
        self.simulation.sites_mut().for_each(|(_, site)| site.reset_counters(now));
    }

    fn save(&mut self) -> Result<Vec<u8>, SnapshotError> {
        self.simulation.save()
    }

    fn stuck(&self) -> Option<Stuck> {
        None
    }

    fn overrun(&self) -> Option<String> {
        None
    }

    fn check(&self) -> Result<(), LostData> {
        let full = self.simulation.sites().find_map(|(_, site)| site.overfull_line());
        full.map_or(Ok(()), |line| Err(LostData(format!("line {} carries more than its rate", line.0))))
    }

    fn events_handled(&self) -> u64 {
        self.simulation.events_handled()
    }
}

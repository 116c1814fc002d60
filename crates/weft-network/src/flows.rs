//! The network of fluids, as experiments see it.

use crate::rehearsal::Rehearsals;
use crate::{Crossed, LinkUse, LostData, NetworkError, NetworkSetup, SimulatedNetwork, simulation};
use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation, SnapshotError};
use weft_fabric::{FlowCount, FlowId, QueueReport, Stuck};
use weft_flow::{FlowNetwork, FlowSetup, LineUse};
use weft_nic::{BlockWork, Host, Refused};
use weft_topo::{Layout, LinkClass, Topology as _};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Messages as fluids.
pub(crate) struct FluidNetwork<H: Host> {
    simulation: Simulation<FlowNetwork<Layout, H>>,
    /// By link class: its rate on the line, and before the line's code.
    rates: Vec<(BitRate, BitRate)>,
    /// Header and footer of a packet.
    envelope: Bytes,
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
        let setup = FlowSetup {
            layout,
            rates: line_rates,
            packet: machine.packet.payload,
            lone: Box::new(lone),
            seed,
        };
        let simulation = simulation(FlowNetwork::build(setup, host, make_host), 1, saved)?;
        let envelope = machine.packet.header + machine.packet.footer;
        Ok(Box::new(FluidNetwork { simulation, rates, envelope }))
    }
}

impl<H: Host> FluidNetwork<H> {
    fn lines(&self) -> impl Iterator<Item = LineUse> {
        let layout = self.simulation.model().layout();
        self.simulation.sites().flat_map(|(_, site)| site.lines(layout))
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
        for line in self.lines() {
            let class = usize::from(line.class.0);
            let (rate, line_rate) = self.rates[class];
            let bits = u128::from(line.wire_bits) * 1_000_000_000_000;
            let busy = bits.checked_div(u128::from(line_rate.bits_per_second())).unwrap_or(0);
            visit(LinkUse {
                packets: line.packets,
                packet_bytes: line.payload + Bytes::new(line.packets * self.envelope.get()),
                payload: line.payload,
                busy: Span::from_ps(busy as u64),
                ..LinkUse::unused(line.from, line.to, classes[class].to_owned(), rate)
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
        let mut crossed = Crossed::default();
        for line in self.lines() {
            crossed.packet_hops += line.packets;
            if matches!(line.to, weft_topo::Attachment::Endpoint(_)) {
                crossed.packets += line.packets;
            }
        }
        crossed
    }

    fn buffered(&self) -> usize {
        0
    }

    fn reset_counters(&mut self) {
        self.simulation.sites_mut().for_each(|(_, site)| site.reset_counters());
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

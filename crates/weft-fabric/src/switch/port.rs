//! The ports of a switch: their lines and credits, when outputs are to be looked at, and routing.
//!
//! A grant is carried out by [`transmit`].

mod transmit;

pub(crate) use transmit::{BareOutputs, BufferedOutputs, Crossing, Outputs};

use super::buffer::Buffered;
use super::combined::CrossbarPort;
use super::occupancy::InputOccupancy;
use super::queues::{LinkStateView, Occupancy, QueueView};
use super::{QueueMeter, Replication, Sink, SwitchContext};
use crate::arbiter::ArbiterState;
use crate::channel::Channel;
use crate::congestion::LinkControl;
use crate::constants::Constants;
use crate::credit::{Credit, Credits, ReturningCredits, TailOut};
use crate::fault::Fault;
use crate::link::{CarriedCounts, CreditStall, Line, SenderState};
use crate::link_counts::LinkCounts;
use crate::link_layer::LayerState;
use crate::packet::Packet;
use crate::parameters::{FasterLink, Forwarding};
use crate::receive_buffer::is_endpoint;
use crate::reroute::{Arrival, RouteChoice};
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;
use weft_engine::{Stream, prefetch};
use weft_topo::{Address, AtSwitch, LinkClass, NextHop, Routing};
use weft_units::{CountLedger, PortId, SwitchId, Time, VcId};

/// Bytes by which the queue of a link that is off seems longer than it is: more than buffers hold, and so few
/// that routings can multiply them.
const QUEUE_OF_DEAD_LINK: u64 = 1 << 40;

/// The other end of a port's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Peer {
    /// A port of another switch, which is the site of that number.
    Switch {
        site: u32,
        port: u16,
    },
    /// An endpoint, by its place among those of the site.
    Endpoint(u32),
    Nothing,
}

/// A port: all that a hop asks of it, in one cache line.
#[derive(Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Port {
    pub(crate) line: Line,
    /// The first clock edge at which the output may be granted to another packet.
    pub(crate) output_ready: Time,
    /// The first clock edge at which another packet may leave the input's buffer.
    pub(crate) input_ready: Time,
    /// Bytes that wait in this switch with this output chosen.
    pub(crate) waiting: u32,
    pub(crate) peer: Peer,
    /// The request that has priority.
    pub(crate) pointer: u16,
    pub(crate) class: LinkClass,
    /// Whether the output could send but for credits.
    pub(crate) stalls: bool,
    /// Packets that the output has sent.
    carried: CarriedCounts,
}

impl Port {
    pub(crate) fn new(peer: Peer, class: LinkClass) -> Port {
        Port {
            line: Line::default(),
            output_ready: Time::ZERO,
            input_ready: Time::ZERO,
            waiting: 0,
            peer,
            pointer: 0,
            class,
            stalls: false,
            carried: CarriedCounts::default(),
        }
    }
}

/// Packets of one switch that tables of failures concerned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Failover {
    /// Packets that left the routing for tables here, and packets that it dropped.
    pub(crate) ledger: CountLedger,
    /// Changes of routes that it has carried out.
    pub(crate) changes: u32,
}

/// The state of one switch besides its queues. First lies what every hop asks for.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct SwitchState {
    /// The next edge at which to arbitrate.
    pub(crate) decision: Time,
    pub(crate) ports: Box<[Port]>,
    /// By number of the output's channel: space in the buffer behind the link. Credits that have returned are
    /// still missing here as long as nothing depended on them.
    pub(crate) credits: Box<[Credits]>,
    /// Credits that are known to return, or have returned and are not counted yet.
    pub(crate) returning: ReturningCredits,
    /// Time up to which all returned credits have been counted.
    collected: Time,
    /// Outputs that could send but for credits.
    pub(super) stalling: u32,
    pub(crate) switch: SwitchId,
    pub(crate) address: Address,
    /// Faults of the links of the outputs; empty where none fails.
    pub(crate) faults: Box<[Fault]>,
    /// Link layers of the outputs; empty where none adds to packets.
    pub(crate) layers: Box<[LayerState]>,
    /// Congestion control of the outputs; empty where there is none.
    pub(crate) link_controls: Box<[LinkControl]>,
    /// Packets that its tables of failures concerned.
    pub(crate) failover: Failover,
    /// The fill of the input buffers, where senders do not count credits.
    pub(crate) occupancy: Option<Box<InputOccupancy>>,
    /// The fullest that its queues have been; `None`: nobody asks.
    pub(crate) queue_meter: Option<Box<QueueMeter>>,
    /// Whether its packets are sent with care: a link may fail, credits take bandwidth, senders do not count
    /// any, or queues are metered.
    pub(crate) takes_care: bool,
    /// Per output: the first clock edge at which its requests may be granted. [`Time::NEVER`]: only after
    /// something has arrived. Until then none can go: each waits for an output, an input or credits, and that
    /// edge is the first at which one of them no longer does. Apart from the ports, because arbitration goes
    /// through all of these.
    pub(crate) look_at: Box<[Time]>,
    /// A bit for each output that has such an edge.
    pub(crate) awaited: Box<[u64]>,
    /// Per output: stalls for lack of credits.
    pub(super) stalls: Box<[CreditStall]>,
    /// Acknowledgements that the outputs have sent.
    acknowledgements: u64,
    /// Time at which the counters were last reset.
    pub(crate) counted_from: Time,
    pub(crate) rng: Stream,
    /// Copies of packets for groups; `None`: the network has no groups.
    pub(super) replication: Option<Box<Replication>>,
    /// By port, where outputs have buffers; else empty.
    crossbar: Box<[CrossbarPort]>,
    /// Turns that the routing has taken. They begin with the switch's number, so that not all switches begin
    /// with the same way.
    pub(super) routing_pointer: u32,
}

impl SwitchState {
    pub(crate) fn new(
        (switch, address): (SwitchId, Address),
        ports: Vec<Port>,
        credits: Vec<Credits>,
        rng: Stream,
    ) -> SwitchState {
        let outputs = ports.len();
        SwitchState {
            decision: Time::NEVER,
            ports: ports.into(),
            credits: credits.into(),
            returning: ReturningCredits::default(),
            collected: Time::ZERO,
            stalling: 0,
            switch,
            address,
            faults: Box::default(),
            layers: Box::default(),
            link_controls: Box::default(),
            failover: Failover::default(),
            occupancy: None,
            queue_meter: None,
            takes_care: false,
            look_at: vec![Time::NEVER; outputs].into(),
            awaited: vec![0; outputs.div_ceil(64)].into(),
            stalls: vec![CreditStall::default(); outputs].into(),
            acknowledgements: 0,
            counted_from: Time::ZERO,
            rng,
            crossbar: Box::default(),
            replication: None,
            routing_pointer: switch.0,
        }
    }

    /// The same ports with buffers at the outputs.
    pub(crate) fn with_output_buffers(self) -> SwitchState {
        let crossbar = self.ports.iter().map(|_| CrossbarPort::default()).collect();
        SwitchState { crossbar, ..self }
    }

    /// The memory of the arbiter of a switch with these ports, where a turn is not enough.
    pub(crate) fn arbiter_state(&self, constants: &Constants) -> Option<Box<ArbiterState>> {
        let links: Vec<LinkClass> = self.ports.iter().map(|port| port.class).collect();
        constants.arbiter_state(&links)
    }

    /// The link of an output, to be reported at `now`.
    pub(crate) fn sender_state<'a>(
        &'a self,
        output: usize,
        constants: &'a Constants,
        now: Time,
    ) -> SenderState<'a> {
        let port = &self.ports[output];
        let (paused, obeyed, frames) = self.pauses(output, now);
        SenderState {
            kind: constants.link(port.class),
            class: port.class,
            carried: port.carried,
            stalled: self.stalls[output].total(port.stalls, now),
            paused,
            obeyed,
            frames,
            counts: self.counts(output, now),
            layer: self.layers.get(output),
            control: self.link_controls.get(output),
            now,
        }
    }

    /// Packets of the link of an output, as they were at `until`.
    #[inline]
    pub(crate) fn counts(&self, output: usize, until: Time) -> LinkCounts {
        let mut link = LinkCounts::default();
        self.add_counts(output, &mut link, until);
        link
    }

    #[inline]
    pub(crate) fn add_counts(&self, output: usize, sum: &mut LinkCounts, until: Time) {
        sum.add(self.ports[output].carried, (self.faults.get(output), self.layers.get(output)), until);
    }

    /// Links that acknowledgements have crossed since the counters were last reset.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// Sets all counters to zero. A stall that is running then counts from `now`.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        (self.acknowledgements, self.counted_from) = (0, now);
        self.faults.iter_mut().for_each(|fault| fault.reset(now));
        self.layers.iter_mut().for_each(|layer| layer.reset(now));
        self.failover.ledger.reset();
        self.ports.iter_mut().for_each(|port| port.carried = CarriedCounts::default());
        self.stalls.iter_mut().for_each(|stall| stall.reset(now));
        self.occupancy.iter_mut().for_each(|occupancy| occupancy.reset_counters(now));
    }

    /// Time from which the line of an output carries nothing, as far as is decided.
    pub(crate) fn line_idle(&self, output: usize, constants: &Constants) -> Time {
        let Port { line, class, .. } = &self.ports[output];
        let layer = self.layers.get(output).zip(constants.link(*class).layer.as_deref());
        layer.map_or(line.busy_until(), |(state, kind)| state.idle_from(kind, line))
    }

    /// Asks for the memory that every hop touches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.ports);
        prefetch(&*self.credits);
        self.returning.prefetch();
    }

    /// Asks for the memory that arbitration touches.
    #[inline]
    pub(crate) fn prefetch_for_arbitration(&self) {
        prefetch(&*self.look_at);
        prefetch(&*self.awaited);
    }

    /// The place of a packet that came in by a channel, as its routing sees it.
    #[inline(always)]
    pub(crate) fn position(&self, from: Channel, constants: &Constants) -> AtSwitch {
        let came = u32::from(from.vc);
        let of_routing = if constants.plain_channels { came } else { constants.plan.of_routing(came) };
        AtSwitch {
            switch: self.switch,
            address: self.address,
            port: PortId(from.port.into()),
            vc: VcId(of_routing),
        }
    }

    /// Routes a packet that came in by the channel `from`: from now on the packet's channel is that of its
    /// output.
    #[inline(always)]
    pub(crate) fn route<T: Routing, S>(
        &mut self,
        buffered: &mut Buffered,
        from: Channel,
        context: &SwitchContext<'_, T, S>,
    ) {
        let SwitchContext { constants, topology, now, .. } = *context;
        let position = self.position(from, constants);
        let (came, of_routing) = (u32::from(from.vc), position.vc.0);
        let packet = &mut buffered.packet;
        let NextHop { port, vc } = if self.faults.is_empty() && constants.reroutes.is_none() {
            let mut view = QueueView { now, constants, state: self, has_counted: false };
            topology.route(position, packet.address, &mut packet.route, &mut view)
        } else {
            let is_failover = constants.is_failover(from.vc);
            let arrival = Arrival { now, at: position, is_failover };
            match self.route_around(&arrival, packet, topology, constants) {
                RouteChoice::Own(hop) => hop,
                RouteChoice::Detour(port) => return self.fail_over(buffered, from, port, constants),
            }
        };
        debug_assert!(self.ports[port.index()].peer != Peer::Nothing, "routed to a port joined to nothing");
        debug_assert!(vc.0 < constants.plan.routing, "routed to a channel that no link has");
        let mut vc = came - of_routing + vc.0;
        if constants.mixes_lanes {
            vc = self.lane_with_most_space(port, vc, now, constants);
        }
        if constants.receive_buffer.is_some() && is_endpoint(self.ports[port.index()].peer) {
            // All channels of the routing share the buffer.
            buffered.packet.route.0 = of_routing;
            vc -= constants.plan.of_routing(vc);
        }
        let packet = &mut buffered.packet;
        packet.set_channel(Channel { port: port.0 as u16, vc: vc as u8 });
        self.ports[port.index()].waiting += constants.packet_bytes(packet).get() as u32;
    }

    /// The next hop of a packet where links of the switch may be off, or tables route around others.
    #[cold]
    #[inline(never)]
    fn route_around<T: Routing>(
        &mut self,
        arrival: &Arrival,
        packet: &mut Packet,
        topology: &T,
        constants: &Constants,
    ) -> RouteChoice {
        let Arrival { now, at, .. } = *arrival;
        let mut view = LinkStateView(QueueView { now, constants, state: self, has_counted: false });
        match &constants.reroutes {
            Some(reroutes) => reroutes.next_hop(arrival, packet, topology, &mut view),
            None => RouteChoice::Own(topology.route(at, packet.address, &mut packet.route, &mut view)),
        }
    }

    /// Bytes before each output, as a routing would see them just before `at`.
    pub(crate) fn queues_before<'a>(
        &'a self,
        at: Time,
        constants: &'a Constants,
    ) -> impl Iterator<Item = u64> + 'a {
        let now = Time::from_ps(at.as_ps().saturating_sub(1));
        let own = Occupancy::new((&self.ports, &self.credits, &self.returning), constants);
        (0..self.ports.len()).map(move |output| self.longest_if_off(output, own.queued(output, now), now))
    }

    /// The queue of an output: longer than any where its link is off, so that adaptive routings look away.
    #[inline]
    pub(super) fn longest_if_off(&self, output: usize, queued: u64, now: Time) -> u64 {
        let is_off = self.faults.get(output).is_some_and(|fault| fault.is_off(now));
        if is_off { QUEUE_OF_DEAD_LINK + queued } else { queued }
    }

    /// The channel of the lane of the same class with most space behind an output, from that of `vc` on.
    #[inline(never)]
    fn lane_with_most_space(&self, port: PortId, vc: u32, now: Time, constants: &Constants) -> u32 {
        let (plan, output) = (&constants.plan, port.index());
        let space = |vc: u32| {
            let returned = self
                .returning
                .of(output)
                .filter(|(time, credit)| *time <= now && u32::from(credit.channel.vc) == vc);
            let credits = self.credits[constants.channels.at(output, vc as u8)].units();
            u64::from(credits) + returned.map(|(_, credit)| u64::from(credit.amount)).sum::<u64>()
        };
        let others = (1..plan.lanes).map(|step| plan.in_lane(vc, (plan.lane(vc) + step) % plan.lanes));
        others.fold(vc, |most, other| if space(other) > space(most) { other } else { most })
    }

    /// Tables have routed a packet that came in by `from`.
    #[cold]
    fn fail_over(&mut self, buffered: &mut Buffered, from: Channel, port: PortId, constants: &Constants) {
        let begins = !constants.is_failover(from.vc);
        self.failover.ledger.counts.rerouted += u64::from(begins);
        // Class and lane stay as they are.
        let came = u32::from(from.vc);
        let mut vc = came - constants.plan.of_routing(came);
        if constants.receive_buffer.is_none() || !is_endpoint(self.ports[port.index()].peer) {
            vc += constants.failover_channel();
        }
        let packet = &mut buffered.packet;
        packet.set_channel(Channel { port: port.0 as u16, vc: vc as u8 });
        self.ports[port.index()].waiting += constants.packet_bytes(packet).get() as u32;
    }

    /// Drops a packet whose head has come and which cannot go on. Its space is free when its tail has come.
    #[cold]
    pub(crate) fn discard<T, S: Sink>(&mut self, packet: &Packet, context: &mut SwitchContext<'_, T, S>) {
        let SwitchContext { now, constants, .. } = *context;
        if !constants.has_credits {
            return;
        }
        let credit = Credit { channel: packet.channel(), amount: constants.space(packet) };
        if let Some(meter) = &mut self.queue_meter {
            meter.enter_input(constants.channels.number(credit.channel), credit.amount);
        }
        let tail = TailOut { granted: now, left: now + packet.serialization() };
        self.give_back(credit, tail, constants, context.sink);
    }

    /// A packet with this space leaves the queue of an input that is metered.
    #[cold]
    #[inline(never)]
    fn leave_metered(&mut self, space: Credit, constants: &Constants) {
        if let Some(meter) = &mut self.queue_meter {
            meter.leave_input(constants.channels.number(space.channel), space.amount);
        }
    }

    /// Space in an input buffer becomes free: the credit, which names the input's channel, goes back to the
    /// sender.
    #[inline]
    pub(crate) fn give_back(
        &mut self,
        credit: Credit,
        tail: TailOut,
        constants: &Constants,
        sink: &mut impl Sink,
    ) {
        let Credit { channel: Channel { port, vc }, amount } = credit;
        if self.queue_meter.is_some() {
            self.leave_metered(credit, constants);
        }
        let input = &mut self.ports[usize::from(port)];
        let link = constants.link(input.class);
        let layer = self.layers.get_mut(usize::from(port)).zip(link.layer.as_deref());
        let gone = layer.map_or(tail.left, |(state, kind)| state.give_back(kind, &mut input.line, tail));
        sink.credit(input.peer, vc, amount, gone + link.latency);
    }

    /// A credit will return at `time`, which lies in the window that begins at `start`.
    #[inline(always)]
    pub(crate) fn learn_of_credit(&mut self, start: Time, time: Time, credit: Credit, constants: &Constants) {
        if start > self.collected {
            self.collect_all_credits(start, constants);
        }
        self.expect_credit(time, credit, constants);
    }

    /// A credit will return at `time`.
    #[inline(always)]
    pub(crate) fn expect_credit(&mut self, time: Time, credit: Credit, constants: &Constants) {
        let output = usize::from(credit.channel.port);
        self.returning.push(time, credit);
        // An output that waits for credits did not know of this one.
        if self.stalling > 0 && self.ports[output].stalls {
            self.look_no_later_than(output, constants.switch.clock.edge_at_or_after(time));
        }
    }

    /// The first clock edge from `now` on at which both an output and an input are free.
    #[inline(always)]
    pub(crate) fn both_free(&self, output: usize, input: usize, now: Time, constants: &Constants) -> Time {
        let both_free = self.ports[output].output_ready.max(self.ports[input].input_ready);
        select_unpredictable(both_free > now, both_free, constants.switch.clock.edge_at_or_after(now))
    }

    /// Makes sure that the requests of an output are looked at by `edge`.
    #[inline]
    pub(crate) fn look_no_later_than(&mut self, output: usize, edge: Time) {
        self.look_at[output] = self.look_at[output].min(edge);
        self.awaited[output / 64] |= 1 << (output % 64);
        self.decision = self.decision.min(edge);
    }

    /// The requests of an output have been looked at; there is no need to before `edge`.
    #[inline]
    pub(crate) fn look_only_at(&mut self, output: usize, edge: Time) {
        self.look_at[output] = edge;
        let awaited = &mut self.awaited[output / 64];
        *awaited = *awaited & !(1 << (output % 64)) | u64::from(edge != Time::NEVER) << (output % 64);
    }

    /// Counts the credits of an output that have returned by `now`. Must be called before anything finds that
    /// there are too few.
    #[inline]
    pub(crate) fn collect_credits(&mut self, output: usize, now: Time, constants: &Constants) {
        let of_output = &self.credits[constants.channels.of_port(output)];
        // Where the largest packet could go, nothing depends on more.
        if of_output.iter().any(|credits| !credits.cover(constants.largest_space)) {
            let (credits, channels) = (&mut self.credits, constants.channels);
            self.returning.take(output, now, |credit| {
                credits[channels.number(credit.channel)].give_back(credit.amount);
            });
        }
    }

    /// Counts all credits that have returned by `now`.
    #[inline]
    pub(crate) fn collect_all_credits(&mut self, now: Time, constants: &Constants) {
        self.collected = now;
        self.returning.count(now, &mut self.credits, constants.channels);
    }

    /// An output could send at `now` but for credits.
    #[inline]
    pub(crate) fn stall(&mut self, output: usize, now: Time) {
        let port = &mut self.ports[output];
        if !port.stalls {
            port.stalls = true;
            self.stalling += 1;
            self.stalls[output].begin(now);
        }
    }

    /// The edge at which the next credit of an output will have returned; [`Time::NEVER`]: none is known to
    /// return.
    pub(crate) fn next_credit(&self, output: usize, constants: &Constants) -> Time {
        match self.returning.first(output) {
            Time::NEVER => Time::NEVER,
            time => constants.switch.clock.edge_at_or_after(time),
        }
    }

    /// Puts the next arbitration of a crossbar off to the first edge at which an output, or a sender that
    /// pauses, is to be looked at.
    pub(crate) fn settle_decision(&mut self) {
        let senders = self.occupancy.as_ref().map_or(Time::NEVER, |occupancy| occupancy.look_at());
        self.decision = self.look_at.iter().copied().min().unwrap_or(Time::NEVER).min(senders);
    }

    /// Makes sure that arbitration happens at the first edge from `time` on.
    #[inline]
    pub(crate) fn arbitrate_at_or_after(&mut self, time: Time, constants: &Constants) {
        if time < self.decision {
            self.decision = self.decision.min(constants.switch.clock.edge_at_or_after(time));
        }
    }

    /// The earliest time at which the packet may be granted an output, for its own sake.
    ///
    /// Whether the output is faster is read off the packet: its tail follows its head later than it
    /// would on the output's line.
    #[inline]
    pub(crate) fn not_before(&self, buffered: &Buffered, constants: &Constants) -> Time {
        match (constants.switch.forwarding, constants.switch.faster_link) {
            (Forwarding::StoreAndForward, _) => buffered.tail(),
            (_, FasterLink::Bubble) => Time::ZERO,
            (_, mode) => {
                let packet = &buffered.packet;
                let link = constants.link(self.ports[usize::from(packet.channel().port)].class);
                let span = link.longest(constants.packet_bytes(packet));
                if span >= packet.serialization() {
                    Time::ZERO
                } else if mode == FasterLink::Store {
                    buffered.tail()
                } else {
                    Time::from_ps(buffered.tail().as_ps().saturating_sub(span.as_ps()))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a field that pushes a port over a cache line.
    #[test]
    fn a_port_is_a_cache_line() {
        assert_eq!(size_of::<Port>(), 64);
    }
}

//! The ports of a switch: lines, credits, and what leaves.

use super::expected::Expected;
use super::pool::Buffered;
use super::rules::Rules;
use crate::fault::{Fate, Fault};
use crate::hop::HopRecord;
use crate::network::LinkEnd;
use crate::packet::{Credit, Packet};
use crate::parameters::{CreditUnit, FasterLink, Forwarding};
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;
use weft_engine::{Stream, prefetch};
use weft_topo::{Address, LinkClass, Position, Routing, Step, View};
use weft_units::{Bytes, Line, PortId, Span, SwitchId, Time, VcId};

/// Credits of a link whose far end always consumes: never spent.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// What a port is joined to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Peer {
    Switch { site: u32, port: u16 },
    Endpoint { entity: u32 },
    Nothing,
}

/// Where packets and credits that leave a switch go.
pub(crate) trait Sink {
    /// A packet leaves by a port: its head is at the far end at `head`, its tail at `tail`.
    fn packet(&mut self, peer: Peer, packet: Packet, head: Time, tail: Time);
    /// Room in an input buffer has become free; whoever sends into that port learns of it at `at`.
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time);
    /// A watched packet has been put on a link.
    fn hop(&mut self, hop: HopRecord);
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
    pub(crate) turn: u16,
    pub(crate) class: LinkClass,
    /// Whether the output could send but for credits.
    pub(crate) stalls: bool,
    /// Packets that the output has sent, modulo 2^32: [`Counters`] has the rest.
    packets: u32,
    /// Their payload.
    payload: u64,
}

impl Port {
    pub(crate) fn new(peer: Peer, class: LinkClass) -> Port {
        Port {
            line: Line::default(),
            output_ready: Time::ZERO,
            input_ready: Time::ZERO,
            waiting: 0,
            peer,
            turn: 0,
            class,
            stalls: false,
            packets: 0,
            payload: 0,
        }
    }
}

/// What an output has done, but for what changes with every packet.
#[derive(Default, Serialize, Deserialize)]
struct Counters {
    /// Multiples of 2^32 packets.
    packets: u64,
    /// How long it could have sent but for credits.
    stalled: Span,
    /// Since when it could, while it does.
    stalled_since: Time,
}

/// The ports of one switch. First lies what every hop asks for.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Ports {
    /// The next edge at which to arbitrate.
    pub(crate) decision: Time,
    pub(crate) port: Box<[Port]>,
    /// Per output and virtual channel (`output << vc_shift | vc`): room in the buffer behind the link, but for what
    /// of the [expected](Self::expected) has come and was not needed.
    pub(crate) credits: Box<[u32]>,
    /// Credits that are known to come.
    pub(crate) expected: Expected,
    /// What had come by then has been taken account of.
    collected: Time,
    /// Outputs that could send but for credits.
    stalling: u32,
    pub(crate) switch: SwitchId,
    pub(crate) address: Address,
    /// How the links of its outputs fail; empty where none does.
    pub(crate) faults: Box<[Fault]>,
    /// Per output: the first clock edge at which it is worth looking at its requests; [`Time::MAX`]: when
    /// something comes. Until then the last look holds: all of them wait for an output, an input or
    /// credits, and it is known from when on none does. Apart from the ports, because arbitration goes
    /// through all of these.
    pub(crate) look_at: Box<[Time]>,
    /// A bit for each output that has such a time.
    pub(crate) awaited: Box<[u64]>,
    counters: Box<[Counters]>,
    /// How many of the packets that its outputs have sent were acknowledgements.
    acknowledgements: u64,
    pub(crate) dice: Stream,
}

/// A grant that is being carried out.
pub(crate) struct Hop {
    pub(crate) now: Time,
    pub(crate) output: usize,
    /// Input port and virtual channel whose buffer the packet leaves; `None`: it left it before.
    pub(crate) input: Option<(usize, u8)>,
}

/// What a routing sees of its switch.
struct Queues<'a> {
    now: Time,
    ports: &'a [Port],
    credits: &'a [u32],
    expected: &'a Expected,
    /// Room of an empty buffer.
    room: u32,
    vc_shift: u32,
    unit: CreditUnit,
    dice: &'a mut Stream,
}

impl View for Queues<'_> {
    #[inline]
    fn queued(&self, port: PortId) -> u64 {
        let output = port.index();
        let channels = &self.credits[output << self.vc_shift..][..1 << self.vc_shift];
        let taken = channels.iter().map(|&credit| self.room.saturating_sub(credit)).sum::<u32>();
        let come = self.expected.of(output).filter(|(time, _)| *time <= self.now);
        let freed = come.map(|(_, credit)| credit.amount).sum::<u32>();
        self.unit.bytes(taken - freed).get() + u64::from(self.ports[output].waiting)
    }

    #[inline]
    fn random(&mut self) -> u64 {
        self.dice.next_u64()
    }
}

impl Ports {
    pub(crate) fn new(
        switch: SwitchId,
        address: Address,
        port: Vec<Port>,
        credits: Vec<u32>,
        dice: Stream,
    ) -> Ports {
        let outputs = port.len();
        Ports {
            decision: Time::MAX,
            port: port.into(),
            credits: credits.into(),
            expected: Expected::default(),
            collected: Time::ZERO,
            stalling: 0,
            switch,
            address,
            faults: Box::default(),
            look_at: vec![Time::MAX; outputs].into(),
            awaited: vec![0; outputs.div_ceil(64)].into(),
            counters: std::iter::repeat_with(Counters::default).take(outputs).collect(),
            acknowledgements: 0,
            dice,
        }
    }

    /// What an output has sent since the counters were last reset: packets and their payload.
    pub(crate) fn sent(&self, output: usize) -> (u64, Bytes) {
        let port = &self.port[output];
        (self.counters[output].packets + u64::from(port.packets), Bytes::new(port.payload))
    }

    /// How long an output could have sent but for credits until `now`, since the counters were last reset.
    pub(crate) fn stalled(&self, output: usize, now: Time) -> Span {
        let counters = &self.counters[output];
        let since = counters.stalled_since;
        counters.stalled + if self.port[output].stalls { now.saturating_since(since) } else { Span::ZERO }
    }

    /// Links that acknowledgements have crossed since the counters were last reset.
    pub(crate) fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// Sets all counters to zero. What is stalled then counts from `now`.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        self.acknowledgements = 0;
        self.faults.iter_mut().for_each(Fault::reset);
        for (port, counters) in self.port.iter_mut().zip(&mut self.counters) {
            (port.packets, port.payload) = (0, 0);
            *counters = Counters { packets: 0, stalled: Span::ZERO, stalled_since: now };
        }
    }

    /// Asks for the memory that every hop touches.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.port);
        prefetch(&*self.credits);
        self.expected.prefetch();
    }

    /// Asks for the memory that arbitration touches.
    #[inline]
    pub(crate) fn prefetch_for_arbitration(&self) {
        prefetch(&*self.look_at);
        prefetch(&*self.awaited);
    }

    /// Chooses the way of a packet that came in by `port` and `vc`, and notes it in the packet.
    #[inline(always)]
    pub(crate) fn route<T: Routing>(
        &mut self,
        buffered: &mut Buffered,
        (port, vc): (usize, u8),
        now: Time,
        rules: &Rules<T>,
    ) {
        let position = Position {
            switch: self.switch,
            address: self.address,
            port: PortId(port as u32),
            vc: VcId(u32::from(vc)),
        };
        let mut view = Queues {
            now,
            ports: &self.port,
            credits: &self.credits,
            expected: &self.expected,
            room: rules.buffer,
            vc_shift: rules.vc_shift,
            unit: rules.switch.credit,
            dice: &mut self.dice,
        };
        let packet = &mut buffered.packet;
        let Step { port, vc } = rules.topology.route(position, packet.address, &mut packet.route, &mut view);
        debug_assert!(self.port[port.index()].peer != Peer::Nothing, "routed to a port joined to nothing");
        packet.port = port.0 as u16;
        packet.vc = vc.0 as u8;
        self.port[port.index()].waiting += rules.packet_bytes(packet).get() as u32;
    }

    /// Room will become free behind an output at `time`, as is learnt when a window begins at `start`.
    #[inline]
    pub(crate) fn learn_of_credit<T>(&mut self, start: Time, time: Time, credit: Credit, rules: &Rules<T>) {
        if start > self.collected {
            self.collect_all_credits(start, rules);
        }
        self.expect_credit(time, credit, rules);
    }

    /// Room will become free behind an output at `time`.
    #[inline]
    pub(crate) fn expect_credit<T>(&mut self, time: Time, credit: Credit, rules: &Rules<T>) {
        let output = usize::from(credit.port);
        self.expected.push(time, credit);
        // Whoever waits for it without knowing when it comes.
        if self.stalling > 0 && self.port[output].stalls {
            self.look_no_later_than(output, rules.switch.clock.edge_at_or_after(time));
        }
    }

    /// A packet at `input` now wants `output`.
    #[inline(always)]
    pub(crate) fn look_again<T>(&mut self, output: usize, input: usize, now: Time, rules: &Rules<T>) {
        let edge = self.both_free(output, input, now, rules);
        self.look_no_later_than(output, edge);
    }

    /// The first clock edge from `now` on at which both an output and an input are free.
    #[inline(always)]
    pub(crate) fn both_free<T>(&self, output: usize, input: usize, now: Time, rules: &Rules<T>) -> Time {
        let both_free = self.port[output].output_ready.max(self.port[input].input_ready);
        select_unpredictable(both_free > now, both_free, rules.switch.clock.edge_at_or_after(now))
    }

    /// Makes sure that the requests of an output are looked at by `edge`.
    #[inline]
    fn look_no_later_than(&mut self, output: usize, edge: Time) {
        self.look_at[output] = self.look_at[output].min(edge);
        self.awaited[output / 64] |= 1 << (output % 64);
        self.decision = self.decision.min(edge);
    }

    /// The requests of an output have been looked at; there is no need to before `edge`.
    #[inline]
    pub(crate) fn look_only_at(&mut self, output: usize, edge: Time) {
        self.look_at[output] = edge;
        let awaited = &mut self.awaited[output / 64];
        *awaited = *awaited & !(1 << (output % 64)) | u64::from(edge != Time::MAX) << (output % 64);
    }

    /// Takes account of the credits of an output that have come by `now`. Must be called before anything finds that
    /// there are too few.
    #[inline]
    pub(crate) fn collect_credits<T>(&mut self, output: usize, now: Time, rules: &Rules<T>) {
        let channels = &self.credits[output << rules.vc_shift..][..1 << rules.vc_shift];
        // Where any packet could go, nothing hangs on more.
        if channels.iter().any(|&credits| credits < rules.largest_room) {
            let credits = &mut self.credits;
            self.expected
                .take(output, now, |credit| credits[credit.channel(rules.vc_shift)] += credit.amount);
        }
    }

    /// Takes account of all credits that have come by `now`.
    #[inline]
    pub(crate) fn collect_all_credits<T>(&mut self, now: Time, rules: &Rules<T>) {
        self.collected = now;
        let credits = &mut self.credits;
        self.expected.take_all(now, |credit| credits[credit.channel(rules.vc_shift)] += credit.amount);
    }

    /// An output could send at `now` but for credits.
    #[inline]
    pub(crate) fn stall(&mut self, output: usize, now: Time) {
        let port = &mut self.port[output];
        if !port.stalls {
            port.stalls = true;
            self.stalling += 1;
            self.counters[output].stalled_since = now;
        }
    }

    /// The edge at which the next credit of an output will have come, if one is known to come.
    pub(crate) fn next_credit<T>(&self, output: usize, rules: &Rules<T>) -> Time {
        match self.expected.first(output) {
            Time::MAX => Time::MAX,
            time => rules.switch.clock.edge_at_or_after(time),
        }
    }

    /// Makes sure that arbitration happens at the first edge from `time` on.
    #[inline]
    pub(crate) fn arbitrate_at_or_after<T>(&mut self, time: Time, rules: &Rules<T>) {
        if time < self.decision {
            self.decision = self.decision.min(rules.switch.clock.edge_at_or_after(time));
        }
    }

    /// The earliest time at which the packet may be granted an output, for its own sake.
    ///
    /// Whether the output is faster is read off the packet: its tail follows its head later than it
    /// would on the output's line.
    #[inline]
    pub(crate) fn not_before<T>(&self, buffered: &Buffered, rules: &Rules<T>) -> Time {
        match (rules.switch.forwarding, rules.switch.faster_link) {
            (Forwarding::StoreAndForward, _) => buffered.tail(),
            (_, FasterLink::Bubble) => Time::ZERO,
            (_, mode) => {
                let link = &rules.links[usize::from(self.port[usize::from(buffered.packet.port)].class.0)];
                let span = link.rate.span(rules.packet_bytes(&buffered.packet) + link.framing);
                if span >= buffered.packet.stretch() {
                    Time::ZERO
                } else if mode == FasterLink::Store {
                    buffered.tail()
                } else {
                    Time::from_ps(buffered.tail().as_ps().saturating_sub(span.as_ps()))
                }
            }
        }
    }

    /// Sends a packet that has won: through the crossbar, onto the line, with its credit back.
    #[inline(always)]
    pub(crate) fn transmit<T>(
        &mut self,
        hop: &Hop,
        buffered: &Buffered,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        // Apart, so that what few runs ask for takes no registers from the others.
        if buffered.packet.watch || !self.faults.is_empty() {
            self.transmit_with_care(hop, buffered, rules, sink);
        } else {
            self.transmit_packet::<false, T>(hop, buffered, rules, sink);
        }
    }

    /// The same for a packet that is watched or may be lost.
    #[inline(never)]
    fn transmit_with_care<T>(
        &mut self,
        hop: &Hop,
        buffered: &Buffered,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        self.transmit_packet::<true, T>(hop, buffered, rules, sink);
    }

    #[inline(always)]
    fn transmit_packet<const CARE: bool, T>(
        &mut self,
        hop: &Hop,
        buffered: &Buffered,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        let ready = if CARE && buffered.packet.watch { self.not_before(buffered, rules) } else { Time::ZERO };
        // The packet stays where it is until all of it is copied at once.
        let Buffered { packet, room, .. } = buffered;
        let (vc, room) = (packet.vc, *room);
        let bytes = rules.packet_bytes(packet);
        let output = &mut self.port[hop.output];
        let link = &rules.links[usize::from(output.class.0)];
        let through = rules.through_pipeline(hop.now);
        let pipeline = through - hop.now;
        let begin = through.max(output.line.busy_until());
        output.line.send(&link.rate, begin, bytes + link.framing);
        // The tail cannot leave before it has come.
        output.line.hold(buffered.tail() + pipeline);
        let end = output.line.busy_until();
        // The next decision for this output may fall a pipeline's latency before the line is free, and
        // no two on one edge.
        let clock = &rules.switch.clock;
        let mut next = clock.edge_at_or_before(end - pipeline);
        if next <= hop.now {
            next = clock.later_edge(hop.now, 1);
        }
        output.output_ready = next;
        output.waiting -= bytes.get() as u32;
        output.payload += u64::from(packet.bytes);
        output.packets = output.packets.wrapping_add(1);
        if output.packets == 0 {
            self.counters[hop.output].packets += 1 << 32;
        }
        if packet.acknowledges() != 0 {
            self.acknowledgements += 1;
        }
        if output.stalls {
            let counters = &mut self.counters[hop.output];
            counters.stalled += hop.now - counters.stalled_since;
            output.stalls = false;
            self.stalling -= 1;
        }
        let credits = &mut self.credits[hop.output << rules.vc_shift | usize::from(vc)];
        if *credits != UNLIMITED {
            *credits -= room;
        }
        let latency = link.latency;
        let (peer, class) = (output.peer, output.class);
        if CARE && packet.watch {
            let Packet { source, message, label, .. } = *packet;
            let came = buffered.head;
            let ready = ready.max(came);
            sink.hop(HopRecord {
                source,
                message,
                label,
                from: LinkEnd::Port(self.switch, PortId(hop.output as u32)),
                to: match peer {
                    Peer::Switch { site, .. } => Some(SwitchId(site)),
                    Peer::Endpoint { .. } | Peer::Nothing => None,
                },
                class,
                came,
                ready,
                could: rules.through_pipeline(rules.switch.clock.edge_at_or_after(ready)),
                began: begin,
                ended: end,
                free: end,
                latency,
            });
        }
        if let Some((input_port, input_vc)) = hop.input {
            let input = &mut self.port[input_port];
            input.input_ready = next;
            let in_latency = rules.links[usize::from(input.class.0)].latency;
            // The buffer's room is free when the tail has left it for the crossbar.
            sink.credit(input.peer, input_vc, room, (end - pipeline) + in_latency);
        }
        let mut packet = *packet;
        packet.stretch = (end - begin).as_ps() as u32;
        packet.hops = packet.hops.saturating_add(1);
        if CARE
            && !self.faults.is_empty()
            && self.is_lost(hop.output, &mut packet, room, end + latency, rules)
        {
            return;
        }
        sink.packet(peer, packet, begin + latency, end + latency);
    }

    /// Whether the link of an output loses a packet whose tail would arrive at `tail`. Its credit then comes
    /// back a latency later.
    #[cold]
    fn is_lost<T>(
        &mut self,
        output: usize,
        packet: &mut Packet,
        room: u32,
        tail: Time,
        rules: &Rules<T>,
    ) -> bool {
        if self.faults[output].strike(packet, tail) == Fate::Arrives {
            return false;
        }
        if self.credits[output << rules.vc_shift | usize::from(packet.vc)] != UNLIMITED {
            let back = tail + rules.links[usize::from(self.port[output].class.0)].latency;
            let credit = Credit { port: output as u16, vc: packet.vc, amount: room };
            self.expect_credit(back, credit, rules);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Part;
    use crate::parameters::{ArbiterKind, PacketFormat, SwitchKind, SwitchParameters};
    use crate::switch::LinkKind;
    use weft_units::{Clock, EndpointId, LineRate};

    /// Catches a field that pushes a port over a cache line.
    #[test]
    fn a_port_is_a_cache_line() {
        assert_eq!(size_of::<Port>(), 64);
    }

    struct Nowhere;

    impl Sink for Nowhere {
        fn packet(&mut self, _: Peer, _: Packet, _: Time, _: Time) {}
        fn credit(&mut self, _: Peer, _: u8, _: u32, _: Time) {}
        fn hop(&mut self, _: HopRecord) {}
    }

    /// Catches packets that are lost count of where a port's 32 bits end, and a reset that leaves some.
    #[test]
    fn packets_are_counted_beyond_32_bits() {
        let link = LinkKind { rate: LineRate::INSTANT, latency: Span::ZERO, framing: Bytes::ZERO };
        let rules = Rules {
            topology: (),
            links: vec![link],
            format: PacketFormat { header: Bytes::ZERO, footer: Bytes::ZERO, payload: Bytes::new(64) },
            switch: SwitchParameters {
                kind: SwitchKind::OutputQueued,
                arbiter: ArbiterKind::RoundRobin,
                clock: Clock::from_hertz(1_000_000_000).unwrap(),
                pipeline_cycles: 0,
                forwarding: Forwarding::VirtualCutThrough,
                faster_link: FasterLink::Bubble,
                buffer: Bytes::new(64),
                credit: CreditUnit::Bytes,
                output_buffer: None,
            },
            vcs: 1,
            buffer: 64,
            largest_room: 64,
            cuts_through: true,
            passes: true,
            vc_shift: 0,
        };
        let dice = Stream::new(1, 2, 3);
        let port = Port::new(Peer::Endpoint { entity: 1 }, LinkClass(0));
        let mut ports = Ports::new(SwitchId(0), Address(0), vec![port], vec![UNLIMITED], dice);
        let packet = Packet::new(EndpointId(0), EndpointId(1), 0, 64, Time::ZERO, Part::Whole);
        let buffered = Buffered::new(&packet, Time::ZERO, 64);
        ports.port[0].packets = u32::MAX - 1;
        for sent in 0..3 {
            ports.port[0].waiting = 64;
            ports.transmit(&Hop { now: Time::ZERO, output: 0, input: None }, &buffered, &rules, &mut Nowhere);
            assert_eq!(ports.sent(0), (u64::from(u32::MAX) + sent, Bytes::new(64) * (sent + 1)));
        }
        ports.reset_counters(Time::ZERO);
        assert_eq!(ports.sent(0), (0, Bytes::ZERO));
    }
}

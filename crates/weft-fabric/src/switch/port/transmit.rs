//! A grant carried out: a packet crosses the switch and is sent over a link.
//!
//! ```text
//!   input                                              output
//!   input_ready ─ edge from which the buffer's         output_ready ─ edge from which another packet
//!                 read port is free                                   may be granted
//!
//!   edge      pipeline          line                     latency
//!    ├───────────────────┤▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇├──────────────────────► far end
//!  grant               began                    ended
//!                           ├───── pipeline ────┤
//!                      output_ready, input_ready: the next grant's packet reaches the line as it gets free
//! ```
//! [`SwitchState::transmit`] carries out a grant. It occupies input and output, sends the packet over the
//! link, and gives the credit for its space back to the previous sender. Where outputs have
//! [buffers](crate::switch::combined), the packet is through the crossbar sooner, and they are occupied no
//! longer than that.

use super::{Peer, Port, SwitchState};
use crate::channel::Channel;
use crate::congestion::crossing;
use crate::constants::{AgeBits, Constants};
use crate::credit::{Credit, TailOut};
use crate::fault::{Fate, Fault};
use crate::hop::{CrossedLink, HopRecord, Instants};
use crate::link::{EarliestSend, LinkEnd, LinkKind, LinkSender, SentPacket, Size};
use crate::link_layer::LayerState;
use crate::packet::Packet;
use crate::switch::buffer::Buffered;
use crate::switch::combined::{CrossbarPort, Passage};
use crate::switch::{Sink, SwitchContext, replication};
use weft_congestion::Crossing as LinkCrossing;
use weft_engine::prefetch;
use weft_units::{Bytes, PortId, Span, SwitchId, Time};

/// The outputs of a crossbar.
pub(crate) trait Outputs {
    /// Whether packets wait for their line behind the crossbar.
    const ARE_BUFFERED: bool;
}

/// Outputs without buffers: a packet crosses as its line sends it.
pub(crate) struct BareOutputs;

impl Outputs for BareOutputs {
    const ARE_BUFFERED: bool = false;
}

/// Outputs with buffers.
pub(crate) struct BufferedOutputs;

impl Outputs for BufferedOutputs {
    const ARE_BUFFERED: bool = true;
}

/// A packet's way through the crossbar: a grant that is carried out.
pub(crate) struct Crossing {
    /// The clock edge at which it was granted.
    pub(crate) edge: Time,
    pub(crate) output: usize,
    /// Channel whose buffer the packet leaves; `None`: it has left it before.
    pub(crate) input: Option<Channel>,
}

/// A packet that an output has sent, as the congestion control of its link sees it.
struct LinkDeparture<'a> {
    output: usize,
    /// Bytes of it on the line.
    bytes: Bytes,
    /// Time of what the line had left to send.
    behind: Span,
    /// Whether packets have waited for space behind the link.
    starved: bool,
    sent: &'a SentPacket,
}

impl SwitchState {
    /// Sends a packet that has won: through the crossbar and over the link, with its credit back.
    #[inline(always)]
    pub(crate) fn transmit<O: Outputs, T, S: Sink>(
        &mut self,
        crossing: &Crossing,
        buffered: &Buffered,
        context: &mut SwitchContext<'_, T, S>,
    ) {
        // Apart, so that what few runs ask for takes no registers from the others.
        let packet = &buffered.packet;
        let kind = context.constants.link(self.ports[crossing.output].class);
        let as_is = kind.takes_as_is(context.constants.packet_bytes(packet));
        let is_plain = as_is && !packet.is_watched() && !packet.is_multicast();
        if !is_plain || self.takes_care {
            self.transmit_with_care::<O>(crossing, (buffered, kind), context.constants, context.sink);
        } else {
            let (constants, sink) = (context.constants, &mut *context.sink);
            self.transmit_packet::<O, false>(crossing, (buffered, kind), constants, sink);
        }
    }

    /// The same for a packet that is watched or followed, that is a copy, that may be lost, that carries its
    /// age, or to which the link layer adds something.
    #[inline(never)]
    fn transmit_with_care<O: Outputs>(
        &mut self,
        crossing: &Crossing,
        buffered: (&Buffered, &LinkKind),
        constants: &Constants,
        sink: &mut impl Sink,
    ) {
        self.transmit_packet::<O, true>(crossing, buffered, constants, sink);
    }

    /// `CARE`: the packet may be watched or a copy, the link may fail, its layer may add something, and
    /// senders may not count credits.
    #[inline(always)]
    fn transmit_packet<O: Outputs, const CARE: bool>(
        &mut self,
        crossing: &Crossing,
        (buffered, kind): (&Buffered, &LinkKind),
        constants: &Constants,
        sink: &mut impl Sink,
    ) {
        if CARE && self.faults.get(crossing.output).is_some_and(Fault::may_copy) {
            // Whether there is space for a copy must not depend on when credits were last counted.
            self.collect_credits(crossing.output, crossing.edge, constants);
        }
        if CARE && constants.congestion.as_ref().is_some_and(|control| control.measures) {
            prefetch(&self.link_controls[crossing.output]);
        }
        // The packet stays where it is until all of it is copied at once.
        let packet = &buffered.packet;
        let size = Size { bytes: constants.packet_bytes(packet), space: buffered.space };
        let through = constants.through_pipeline(crossing.edge);
        let pipeline = through - crossing.edge;
        let passage = O::ARE_BUFFERED.then(|| {
            let whole = (size.bytes, buffered.tail());
            CrossbarPort::cross(&mut self.crossbar, crossing, whole, &constants.crossbar)
        });
        let head = passage
            .as_ref()
            .map_or(through, |passage| constants.crossbar.head(passage, crossing.edge, pipeline));
        let told = match &constants.age_bits {
            AgeBits::Lead(signal) if CARE => signal.told(packet, buffered.head, head),
            _ => head,
        };
        // The tail cannot leave before it has come.
        let earliest = EarliestSend { head, tail: buffered.tail() + pipeline, granted: crossing.edge, told };
        // One borrow of the port for all that concerns the output.
        let port = &mut self.ports[crossing.output];
        let behind = port.line.busy_until().saturating_since(through);
        let sender = LinkSender {
            kind,
            line: &mut port.line,
            credits: &mut self.credits[constants.channels.number(packet.channel())],
            carried: &mut port.carried,
            acknowledgements: &mut self.acknowledgements,
            fault: if CARE { self.faults.get_mut(crossing.output) } else { None },
            layer: if CARE { self.layers.get_mut(crossing.output) } else { None },
        };
        let sent = sender.send(packet, size, earliest);
        let mut copy = None;
        if CARE && sent.fate == Fate::Duplicated {
            let sender = LinkSender {
                kind,
                line: &mut port.line,
                credits: &mut self.credits[constants.channels.number(packet.channel())],
                carried: &mut port.carried,
                acknowledgements: &mut self.acknowledgements,
                fault: self.faults.get_mut(crossing.output),
                layer: self.layers.get_mut(crossing.output),
            };
            copy = sender.copy(packet, size, &sent);
        }
        let free = if CARE { copy.map_or(sent.free, |copy: SentPacket| copy.free) } else { sent.free };
        // The input is free when the tail has left it for the crossbar, and the space in its buffer too.
        let left = passage.map_or(sent.left - pipeline, |Passage { ended, .. }| ended);
        let input_ready = next_grant(crossing.edge, left, constants);
        let is_free_later = CARE && free > sent.left;
        port.output_ready = if O::ARE_BUFFERED {
            let output = &mut self.crossbar[crossing.output];
            let next = output.fill(size.bytes, free, pipeline, constants);
            next_grant(crossing.edge, next, constants)
        } else if is_free_later {
            next_grant(crossing.edge, free - pipeline, constants)
        } else {
            input_ready
        };
        port.waiting -= size.bytes.get() as u32;
        let starved = port.stalls;
        if port.stalls {
            port.stalls = false;
            self.stalls[crossing.output].end(crossing.edge);
            self.stalling -= 1;
        }
        let peer = port.peer;
        if CARE && (packet.is_watched() || constants.follows_packets) {
            sink.hop(self.record(crossing.output, buffered, &sent, constants));
        }
        if CARE && packet.is_multicast() {
            if crossing.input.is_some() {
                let tail = TailOut { granted: crossing.edge, left };
                self.release_copy(packet, tail, constants, sink);
            }
        } else if let Some(from) = crossing.input {
            let input = &mut self.ports[usize::from(from.port)];
            input.input_ready = input_ready;
            if CARE && !constants.has_credits {
                self.expect_departure(from, size.space, left, constants);
            } else if CARE {
                let credit = Credit { channel: from, amount: size.space };
                self.give_back(credit, TailOut { granted: crossing.edge, left }, constants, sink);
            } else {
                sink.credit(input.peer, from.vc, size.space, left + constants.link(input.class).latency);
            }
        }
        let mut controlled;
        let mut buffered = buffered;
        if CARE && !self.link_controls.is_empty() {
            controlled = *buffered;
            let departure =
                LinkDeparture { output: crossing.output, bytes: size.bytes, behind, starved, sent: &sent };
            if let Some((answer, at)) = self.control(&mut controlled.packet, &departure, constants) {
                sink.answer(answer, at);
            }
            buffered = &controlled;
        }
        let mut led;
        if CARE && let AgeBits::Lead(signal) = &constants.age_bits {
            led = *buffered;
            signal.stamp(&mut led.packet, told, &sent);
            buffered = &led;
        }
        if CARE && sent.fate != Fate::Arrives {
            return self.hand_over(crossing.output, buffered, (sent, copy), (constants, sink));
        }
        let mut packet = buffered.packet;
        if CARE && packet.is_multicast() {
            replication::depart(&mut packet);
        }
        sent.stamp::<CARE>(&mut packet);
        if CARE && constants.keeps_ages() {
            packet.age = packet.age.after(sent.head().saturating_since(buffered.head));
        }
        sink.packet(peer, packet, &sent);
    }

    /// Shows a packet that an output has sent to the congestion control of its link. Returns the answer that
    /// the switch gives to its source, if it does, and when that is there.
    #[inline(never)]
    fn control(
        &mut self,
        packet: &mut Packet,
        departure: &LinkDeparture<'_>,
        constants: &Constants,
    ) -> Option<(Packet, Time)> {
        let &LinkDeparture { output, bytes, behind, starved, sent } = departure;
        let control = constants.congestion.as_deref().filter(|control| control.acts_on(packet))?;
        let port = &self.ports[output];
        let kind = constants.link(port.class);
        // Those that have not been granted the output, and those that are before it in the output's buffer.
        let before = if behind == Span::ZERO { Bytes::ZERO } else { kind.rate.bytes_in(behind) };
        let at = crossing(kind, sent, bytes, Bytes::new(port.waiting.into()) + before);
        let credit_words = self.layers.get(output).map_or(Bytes::ZERO, LayerState::credit_words);
        let at = LinkCrossing { hop: packet.hops, starved, credit_words, ..at };
        // The link's state is far from the processor.
        let place = control.concerned(packet, &at, &constants.plan)?;
        self.link_controls[output].pass(packet, &at, (control, place))
    }

    /// Hands over a packet to which the link of an output has done something, and its copy.
    #[cold]
    fn hand_over(
        &mut self,
        output: usize,
        buffered: &Buffered,
        (sent, copy): (SentPacket, Option<SentPacket>),
        (constants, sink): (&Constants, &mut impl Sink),
    ) {
        for sent in std::iter::once(sent).chain(copy) {
            let Port { peer, class, .. } = self.ports[output];
            let mut packet = buffered.packet;
            if packet.is_multicast() {
                replication::depart(&mut packet);
            }
            sent.stamp::<true>(&mut packet);
            if constants.keeps_ages() {
                packet.age = packet.age.after(sent.head().saturating_since(buffered.head));
            }
            match sent.fate {
                Fate::Lost => self.lose(output, buffered, &sent, constants),
                Fate::Reordered => {
                    let largest = constants.largest_span(constants.link(class));
                    sink.packet(peer, packet, &sent.held_up(largest));
                }
                _ => sink.packet(peer, packet, &sent),
            }
        }
    }

    /// The record of a watched packet that an output has sent.
    #[cold]
    fn record(
        &self,
        output: usize,
        buffered: &Buffered,
        sent: &SentPacket,
        constants: &Constants,
    ) -> HopRecord {
        let port = &self.ports[output];
        let &LinkKind { latency, routing, .. } = constants.link(port.class);
        let link = CrossedLink {
            from: LinkEnd::Port(self.switch, PortId(output as u32)),
            to: match port.peer {
                Peer::Switch { site, .. } => Some(SwitchId(site)),
                Peer::Endpoint(_) | Peer::Nothing => None,
            },
            class: port.class,
            latency,
            routing,
        };
        let came = buffered.head;
        let ready = self.not_before(buffered, constants).max(came);
        let could = constants.through_pipeline(constants.switch.clock.edge_at_or_after(ready));
        let SentPacket { began, waking, ended, free, .. } = *sent;
        let crossed = if self.crossbar.is_empty() { began } else { sent.came };
        let instants = Instants { came, ready, could, crossed, began, waking, ended, free };
        HopRecord::new(&buffered.packet, link, instants)
    }

    /// The link of an output has lost a packet: its credit returns.
    #[cold]
    fn lose(&mut self, output: usize, buffered: &Buffered, sent: &SentPacket, constants: &Constants) {
        let channel = buffered.packet.channel();
        if constants.has_credits && !self.credits[constants.channels.at(output, channel.vc)].is_unlimited() {
            let credit = Credit { channel, amount: buffered.space };
            self.expect_credit(sent.credit_back(), credit, constants);
        }
    }
}

/// The edge at which input and output may be granted again, after a grant at `edge` of a packet whose tail
/// leaves the input at `read`: it may fall a pipeline's latency before the line is free, and no two grants
/// fall on one edge.
#[inline(always)]
fn next_grant(edge: Time, read: Time, constants: &Constants) -> Time {
    let clock = &constants.switch.clock;
    let next = clock.edge_at_or_before(read);
    if next <= edge { clock.later_edge(edge, 1) } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::RequestGroups;
    use crate::channel::ChannelNumbers;
    use crate::credit::Credits;
    use crate::link::LineRate;
    use crate::multicast::Trees;
    use crate::packet::{Addressing, HeaderBits, MessagePart};
    use crate::parameters::{ArbiterKind, CreditUnit, PacketFormat, SwitchKind, SwitchParameters};
    use crate::parameters::{FasterLink, Forwarding};
    use crate::queue_board::QueueBoard;
    use crate::switch::CrossbarPace;
    use weft_engine::Stream;
    use weft_topo::{Address, LinkClass};
    use weft_topo::{Attachment, ChannelPlan, LaneChoice};
    use weft_units::{Clock, EndpointId};

    struct Nowhere;

    impl Sink for Nowhere {
        fn packet(&mut self, _: Peer, _: Packet, _: &SentPacket) {}
        fn credit(&mut self, _: Peer, _: u8, _: u32, _: Time) {}
        fn pause(&mut self, _: Peer, _: (u8, bool), _: Time) {}
        fn answer(&mut self, _: Packet, _: Time) {}
        fn hop(&mut self, _: HopRecord) {}
    }

    /// Catches packets that are lost count of where 32 bits end, and a reset that leaves some.
    #[test]
    fn packets_are_counted_beyond_32_bits() {
        let link = LinkKind {
            rate: LineRate::INSTANT,
            bit_rate: LineRate::INSTANT.bit_rate(),
            carries: LineRate::INSTANT.bit_rate(),
            latency: Span::ZERO,
            framing: Bytes::ZERO,
            routing: Span::ZERO,
            framed: Bytes::ZERO,
            special: 0,
            layer: None,
        };
        let constants = Constants {
            links: vec![link],
            overhead: Bytes::ZERO,
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
                buffer_per: crate::parameters::BufferPer::Channel,
                flow_control: crate::parameters::FlowControl::Credits,
                channels: crate::parameters::ChannelParameters::default(),
            },
            plan: ChannelPlan::new(None, 1, 1, LaneChoice::Flow).unwrap(),
            plain_channels: true,
            mixes_lanes: false,
            groups: RequestGroups::new(1, Vec::new()),
            age_bits: AgeBits::Unused,
            vcs: 1,
            channels: ChannelNumbers::new(1),
            buffers: vec![64],
            receive_buffer: None,
            largest: Bytes::new(64),
            largest_space: 64,
            thresholds: Vec::new(),
            follows_packets: false,
            has_credits: true,
            cuts_through: true,
            passes: true,
            crossbar: CrossbarPace::INSTANT,
            trees: Trees::default(),
            block_mask: 0,
            board: QueueBoard::NONE,
            congestion: None,
            reroutes: None,
        };
        let rng = Stream::new(1, 2, 3);
        let port = Port::new(Peer::Endpoint(0), LinkClass(0));
        let credits = vec![Credits::UNLIMITED];
        let mut state = SwitchState::new((SwitchId(0), Address(0)), vec![port], credits, rng);
        let ends = Addressing { source: EndpointId(0), destination: EndpointId(1), message: 0 };
        let packet = Packet::new(ends, 64, HeaderBits::EMPTY, MessagePart::Whole);
        let buffered = Buffered::new(&packet, Time::ZERO, 64);
        state.ports[0].carried.packets = u64::from(u32::MAX) - 1;
        let counted = |state: &SwitchState| {
            let to = Attachment::Endpoint(EndpointId(1));
            let state = state.sender_state(0, &constants, Time::ZERO);
            let report = state.report(LinkEnd::Port(SwitchId(0), PortId(0)), to, Bytes::ZERO);
            (report.packets, report.payload)
        };
        for sent in 0..3 {
            state.ports[0].waiting = 64;
            let sink = &mut Nowhere;
            let mut context = SwitchContext { now: Time::ZERO, topology: &(), constants: &constants, sink };
            let crossing = Crossing { edge: Time::ZERO, output: 0, input: None };
            state.transmit::<BareOutputs, _, _>(&crossing, &buffered, &mut context);
            assert_eq!(counted(&state), (u64::from(u32::MAX) + sent, Bytes::new(64) * (sent + 1)));
        }
        state.reset_counters(Time::ZERO);
        assert_eq!(counted(&state), (0, Bytes::ZERO));
    }
}

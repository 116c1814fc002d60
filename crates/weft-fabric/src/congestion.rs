//! Congestion control in the network: congestion points in ports, reaction points in endpoints.
//!
//! ```text
//!            ┌─────────────────────── endpoint ──────────────────────┐
//!  interface │ may a packet to there go? ◄── reaction point          │
//!    ── packet ─► may go: stamped ───────────────────► place ─► line ──► congestion point of each port
//!            │  └► may not: held until it may  ───────┘              │
//!    ◄─ packet ─ notification point ──► notice ──────► place ─► line │
//!            └───────────────────────────────────────────────────────┘
//! ```
//! The endpoint does it, so that every interface obeys. One that asks before it hands over a packet
//! ([`InterfaceContext::admits_class_to`]) keeps flows apart. Of others the endpoint holds up to [`MAX_HELD`]
//! packets that may not go; then those behind them wait, whatever flow they are of.
//!
//! Where full buffers lose packets and the algorithm answers each, the endpoint sends lost ones again: see
//! [`retransmission`](crate::retransmission).
//!
//! Notices are packets of the network: they take time on lines, space in buffers, and the traffic class of
//! acknowledgements. Congestion control never holds them back, nor acknowledgements of interfaces and
//! packets for groups.
//!
//! [`InterfaceContext::admits_class_to`]: crate::InterfaceContext::admits_class_to

mod setup;

pub use setup::CongestionError;

use crate::channel::Channel;
use crate::constants::Constants;
use crate::flow_meter::FlowId;
use crate::interface::Interface;
use crate::link::{LinkKind, SentPacket};
use crate::network::{Network, Site};
use crate::packet::{Addressing, HeaderBits, MessagePart, Packet, PacketLabel};
use crate::retransmission::{Confirmation, Received, Unanswered};
use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use weft_congestion::{
    Answer, Arrival, Congestion, CongestionPoint, Crossing, Notice, NotificationPoint, Path, ReactionPoint,
    Repair, ShortCircuit, Stamp,
};
use weft_engine::Stream;
use weft_topo::{ChannelPlan, Routing, Topology};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Packets that an endpoint holds of an interface that does not ask before it hands them over.
pub(crate) const MAX_HELD: usize = 16;

/// Payload of a notice: its 96 bits and space for a header of the interface.
const NOTICE_PAYLOAD: u32 = 16;

/// An algorithm in a network.
#[derive(Clone, Copy, Debug)]
struct Rule {
    congestion: Congestion,
    /// The fate of packets that full buffers lose.
    repair: Repair,
    /// Time without an answer after which a packet is lost.
    timeout: Span,
    /// Framing that its flows count at least.
    framing: Bytes,
}

/// The congestion control of a network.
#[derive(Clone, Debug)]
pub(crate) struct CongestionControl {
    /// Each algorithm once.
    rules: Vec<Rule>,
    /// By traffic class: the place of its rule; `None`: its flows send as fast as they can.
    by_class: [Option<u8>; MAX_CLASSES],
    /// Whether all classes have the first rule.
    is_uniform: bool,
    round_trip: Span,
    /// Payload of a notice.
    notice: u32,
    /// Whether an algorithm's congestion points do anything to notices, and to every packet.
    relays: bool,
    pub(crate) measures: bool,
    /// A bit for each class of packets that only answer others.
    answers: u8,
}

impl CongestionControl {
    /// The rule of a traffic class; `None`: its flows send as fast as they can.
    #[inline]
    fn of(&self, class: u8) -> Option<&Rule> {
        self.rules.get(usize::from(self.by_class[usize::from(class)]?))
    }

    /// The place of the rule of a packet that is in the network.
    #[inline]
    fn place(&self, packet: &Packet, plan: &ChannelPlan) -> Option<usize> {
        if self.is_uniform {
            return Some(0);
        }
        let class = match packet.label == PacketLabel::NOTICE {
            true => packet.notice().class,
            false => plan.class(packet.channel().vc.into()) as u8,
        };
        self.by_class[usize::from(class)].map(usize::from)
    }

    /// Whether the congestion point of a port may do anything to a packet, wherever it crosses.
    #[inline]
    pub(crate) fn acts_on(&self, packet: &Packet) -> bool {
        match packet.label == PacketLabel::NOTICE {
            true => self.relays,
            false => is_controlled(packet),
        }
    }

    /// The place of the rule whose congestion point may do something to a packet that crosses so, where it
    /// [acts on](CongestionControl::acts_on) such packets at all.
    #[inline]
    pub(crate) fn concerned(&self, packet: &Packet, at: &Crossing, plan: &ChannelPlan) -> Option<usize> {
        let place = self.place(packet, plan)?;
        let is_notice = packet.label == PacketLabel::NOTICE;
        (is_notice || self.rules[place].congestion.concerns(at)).then_some(place)
    }

    /// Of the classes of these places those of which an interface may have packets.
    #[inline]
    pub(crate) fn of_interface(&self, interface: &impl Interface, places: u8) -> u8 {
        if interface.answers() { places } else { places & !self.answers }
    }

    /// The header to which a full buffer cuts a packet down. `None`: the packet is lost.
    pub(crate) fn trim(&self, packet: &Packet, constants: &Constants) -> Option<Packet> {
        let (classes, plan) = (&constants.switch.channels.classes, &constants.plan);
        let trims = self.place(packet, plan).is_some_and(|place| self.rules[place].repair == Repair::Trim);
        if !trims || !is_controlled(packet) || packet.is_corrupted() {
            return None;
        }
        let Channel { port, vc } = packet.channel();
        let mut header = packet.trimmed(plan.class(vc.into()) as u8);
        let class = classes.find(true, header.part() == MessagePart::Whole, header.bytes);
        let vc = plan.channel(class.into(), 0, plan.of_routing(vc.into()));
        header.set_channel(Channel { port, vc: vc as u8 });
        Some(header)
    }
}

/// The congestion points of one link, one for each algorithm, with their random numbers.
#[derive(Serialize, Deserialize)]
pub(crate) struct LinkControl {
    first: CongestionPoint,
    others: Box<[CongestionPoint]>,
    rng: Stream,
    /// Notices that the switch has answered since the run began.
    pub(crate) answered: u64,
}

impl LinkControl {
    fn new(control: &CongestionControl, rng: Stream) -> LinkControl {
        let mut points = control.rules.iter().map(|rule| rule.congestion.link());
        let first = points.next().unwrap_or_else(|| unreachable!("a controlled network has an algorithm"));
        LinkControl { first, others: points.collect(), rng, answered: 0 }
    }

    /// The rate that the link offers each flow, where its congestion points know one: the least of several.
    pub(crate) fn fair_rate(&self) -> Option<BitRate> {
        let others = self.others.iter().filter_map(CongestionPoint::fair_rate);
        self.first.fair_rate().into_iter().chain(others).min()
    }

    /// A packet has been sent over the link; what its congestion point writes goes into it. Returns an answer
    /// to its source, if the switch gives one, and when it is there. `place`: that of the rule that is
    /// [concerned](CongestionControl::concerned).
    #[inline]
    pub(crate) fn pass(
        &mut self,
        packet: &mut Packet,
        at: &Crossing,
        (control, place): (&CongestionControl, usize),
    ) -> Option<(Packet, Time)> {
        if packet.label == PacketLabel::NOTICE {
            return self.relay(packet, at, (control, place));
        }
        let LinkControl { first, others, rng, .. } = self;
        let point = if place == 0 { first } else { &mut others[place - 1] };
        let mut stamp = packet.stamp();
        point.cross(&mut stamp, at, (&mut || rng.next_u64(), &control.rules[place].congestion));
        packet.set_stamp(stamp);
        None
    }

    #[inline(never)]
    fn relay(
        &mut self,
        packet: &mut Packet,
        at: &Crossing,
        (control, place): (&CongestionControl, usize),
    ) -> Option<(Packet, Time)> {
        let point = if place == 0 { &mut self.first } else { &mut self.others[place - 1] };
        let mut notice = packet.notice();
        let short = point.relay(&mut notice, at, &control.rules[place].congestion);
        packet.set_notice(&notice);
        let ShortCircuit { notice, way } = short?;
        self.answered += 1;
        // In the name of the destination, which is how the source knows the flow.
        Some((self::packet(&notice, (packet.destination, packet.source), control), at.now + way))
    }
}

/// A link as a packet crosses it.
pub(crate) fn crossing(kind: &LinkKind, sent: &SentPacket, packet: Bytes, queue: Bytes) -> Crossing {
    let bytes = packet + kind.framing;
    let LinkKind { bit_rate: rate, carries, .. } = *kind;
    Crossing {
        now: sent.began,
        bytes,
        queue,
        rate,
        carries,
        credit_words: Bytes::ZERO,
        hop: 0,
        starved: false,
    }
}

/// Whether a packet belongs to a flow.
fn is_controlled(packet: &Packet) -> bool {
    !packet.label.is_acknowledgement() && !packet.is_multicast()
}

/// A flow of an endpoint: its destination and traffic class.
type FlowKey = (EndpointId, u8);

/// A flow at its source.
#[derive(Serialize, Deserialize)]
struct SourceFlow {
    point: ReactionPoint,
    /// Whether a packet has had to wait for it since the last one went.
    waited: Cell<bool>,
    /// Packets of the flow that the endpoint holds.
    held: u32,
    /// Packets without an answer, where lost ones are sent again.
    unanswered: Option<Unanswered>,
}

impl SourceFlow {
    fn new(rule: &Rule, path: &Path, now: Time) -> SourceFlow {
        let path = &Path { repair: rule.repair, ..*path };
        SourceFlow {
            point: rule.congestion.open(path, now),
            waited: Cell::new(false),
            held: 0,
            unanswered: (path.repair != Repair::None).then(Unanswered::new),
        }
    }

    /// When another packet may go, from `now` on.
    fn earliest(&self, bytes: Bytes, now: Time, rule: &Rule) -> Time {
        match self.unanswered.as_ref().is_some_and(Unanswered::is_full) {
            true => Time::NEVER,
            false => self.point.earliest(bytes, now, &rule.congestion),
        }
    }

    /// The interface had nothing more until then.
    fn rest(&mut self, until: Time) {
        if !self.waited.get() && self.held == 0 {
            self.point.rest(until);
        }
    }

    /// A packet goes, for the first time.
    fn send(&mut self, packet: &mut Packet, bytes: Bytes, (now, rule): (Time, &Rule)) {
        self.waited.set(false);
        let value = self.point.send(bytes, now, &rule.congestion);
        packet.set_stamp(Stamp { ecn: false, value });
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.keep(packet, now, rule.timeout);
        }
    }

    /// The time of its next own step.
    fn due(&self) -> Time {
        self.point.due().min(self.unanswered.as_ref().map_or(Time::NEVER, Unanswered::due))
    }

    /// Whether it need not be kept. One whose packets have numbers is, because its destination knows them.
    fn is_over(&self, now: Time, rule: &Rule) -> bool {
        self.held == 0 && self.unanswered.is_none() && self.point.is_as_new(now, &rule.congestion)
    }
}

/// A flow at its destination.
#[derive(Serialize, Deserialize)]
struct DestinationFlow {
    point: NotificationPoint,
    /// Packets that have come, where lost ones are sent again.
    received: Option<Received>,
}

impl DestinationFlow {
    /// A notice about it, with what concerns sending again.
    fn confirm(&self, notice: Notice, class: u8, is_header_alone: bool) -> Notice {
        let notice = Notice { class, ..notice };
        match &self.received {
            None => notice,
            Some(received) => received.confirmation(is_header_alone).on(notice),
        }
    }
}

/// The flows of an endpoint.
#[derive(Serialize, Deserialize)]
pub(crate) struct FlowTable {
    path: Path,
    /// Bytes of framing on the endpoint's link.
    framing: Bytes,
    flows: BTreeMap<FlowKey, SourceFlow>,
    receivers: BTreeMap<FlowKey, DestinationFlow>,
    notices: VecDeque<Packet>,
    /// Flows some of whose packets have come and wait for an answer, and when that is due. Those that have
    /// been answered meanwhile stay until then.
    to_answer: VecDeque<(Time, FlowKey)>,
    /// Packets that are lost and wait to be sent again: the flow, and the packet's stamp.
    again: VecDeque<(FlowKey, u16)>,
    /// Packets that were sent again since the counters were last reset.
    pub(crate) resent: u64,
    held: VecDeque<Packet>,
    pub(crate) link_control: LinkControl,
    /// The first own step of a flow.
    due: Time,
    /// Time at which the interface is to be asked again because a flow that it asked for may go.
    ask_again: Cell<Time>,
    /// Whether it asked for a flow that may not go.
    refused: Cell<bool>,
    /// A bit for each class with a place, of which the interface had no packet more when it was last asked.
    empty: u8,
    /// By class: the last time at which that was so.
    empty_until: [Time; MAX_CLASSES],
}

/// The surroundings of an endpoint's flow table.
pub(crate) struct ControlContext<'a> {
    pub(crate) control: &'a CongestionControl,
    pub(crate) constants: &'a Constants,
    pub(crate) now: Time,
}

impl FlowTable {
    /// Bytes of a packet as flows count them: those on the endpoint's line, or on that which adds most.
    fn on_line(&self, packet: &Packet, (rule, constants): (&Rule, &Constants)) -> Bytes {
        constants.packet_bytes(packet) + self.framing.max(rule.framing)
    }

    /// The interface is asked: of classes that were empty, this is known until now.
    pub(crate) fn ask(&mut self, now: Time) {
        let FlowTable { empty, empty_until, .. } = self;
        let of_class = empty_until.iter_mut().zip(0..).filter(|(_, class)| *empty >> class & 1 == 1);
        of_class.for_each(|(until, _)| *until = now);
        *empty = 0;
    }

    /// The interface has no more packets of the classes of these places.
    pub(crate) fn is_empty_of(&mut self, places: u8) {
        self.empty = places;
    }

    /// Packets that it holds.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether notices wait for a place.
    pub(crate) fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Whether something may go as soon as a notice comes.
    pub(crate) fn is_awaited(&self) -> bool {
        self.refused.get() || !self.held.is_empty() || !self.notices.is_empty() || !self.again.is_empty()
    }

    /// The interface is asked anew.
    pub(crate) fn forget_refusals(&self) {
        self.ask_again.set(Time::NEVER);
        self.refused.set(false);
    }

    /// Whether the interface may hand over a packet of a flow at `now`. If not, it is asked again later.
    pub(crate) fn admits(
        &self,
        key: FlowKey,
        bytes: Bytes,
        (control, now): (&CongestionControl, Time),
    ) -> bool {
        let Some((flow, rule)) = self.flows.get(&key).zip(control.of(key.1)) else { return true };
        let at = match flow.held {
            0 => flow.earliest(bytes + self.framing.max(rule.framing), now, rule),
            _ => Time::NEVER, // until what is held has gone
        };
        if at > now {
            flow.waited.set(true);
            self.refused.set(true);
            self.ask_again.set(self.ask_again.get().min(at));
        }
        at <= now
    }

    /// Takes a packet from the interface. Returns it, stamped, if it may go at once.
    pub(crate) fn take(&mut self, mut packet: Packet, context: &ControlContext<'_>) -> Option<Packet> {
        let &ControlContext { control, constants, now } = context;
        if !is_controlled(&packet) {
            return Some(packet);
        }
        let key = (packet.destination, constants.switch.channels.classes.of(&packet));
        let Some(rule) = control.of(key.1) else { return Some(packet) };
        let bytes = self.on_line(&packet, (rule, constants));
        let FlowTable { flows, path, due, empty_until, .. } = self;
        let flow = flows.entry(key).or_insert_with(|| {
            let flow = SourceFlow::new(rule, path, now);
            *due = (*due).min(flow.due());
            flow
        });
        if flow.held > 0 || flow.earliest(bytes, now, rule) > now {
            flow.waited.set(true);
            flow.held += 1;
            self.held.push_back(packet);
            return None;
        }
        flow.rest(empty_until[usize::from(key.1)]);
        flow.send(&mut packet, bytes, (now, rule));
        *due = (*due).min(flow.due());
        Some(packet)
    }

    /// Takes the first of the held packets that may go now and is of a class with a place, stamped.
    pub(crate) fn release(&mut self, places: u8, context: &ControlContext<'_>) -> Option<Packet> {
        let &ControlContext { control, constants, now } = context;
        if self.held.is_empty() {
            return None;
        }
        let classes = &constants.switch.channels.classes;
        let place = (0..self.held.len()).find(|&place| {
            let packet = &self.held[place];
            let class = classes.of(packet);
            let is_first = !self
                .held
                .iter()
                .take(place)
                .any(|other| other.destination == packet.destination && classes.of(other) == class);
            let flow = self.flows.get(&(packet.destination, class)).zip(control.of(class));
            let may_go = flow.is_none_or(|(flow, rule)| {
                flow.earliest(self.on_line(packet, (rule, constants)), now, rule) <= now
            });
            is_first && places >> class & 1 == 1 && may_go
        })?;
        let mut packet = self.held.remove(place)?;
        let class = classes.of(&packet);
        let Some(rule) = control.of(class) else { return Some(packet) };
        let bytes = self.on_line(&packet, (rule, constants));
        if let Some(flow) = self.flows.get_mut(&(packet.destination, class)) {
            flow.held -= 1;
            flow.send(&mut packet, bytes, (now, rule));
            self.due = self.due.min(flow.due());
        }
        Some(packet)
    }

    /// Takes the first of the lost packets that may go again now and is of a class with a place, stamped.
    pub(crate) fn send_again(&mut self, places: u8, context: &ControlContext<'_>) -> Option<Packet> {
        let &ControlContext { control, constants, now } = context;
        if self.again.is_empty() {
            return None;
        }
        self.forget_found();
        let place = (0..self.again.len()).find(|&place| {
            let ((_, class), _) = self.again[place];
            places >> class & 1 == 1 && self.again_at(place, context) <= now
        })?;
        let (key, stamp) = self.again.remove(place)?;
        let flow = self.flows.get_mut(&key)?;
        let unanswered = flow.unanswered.as_mut()?;
        let packet = *unanswered.waiting(stamp)?;
        debug_assert!(constants.switch.channels.classes.of(&packet) == key.1, "a flow has one class");
        unanswered.resend(stamp, now, control.of(key.1)?.timeout);
        flow.point.resend(stamp, now);
        self.due = self.due.min(flow.due());
        self.resent += 1;
        Some(packet)
    }

    /// Strikes out packets that have come after all.
    fn forget_found(&mut self) {
        let FlowTable { again, flows, .. } = self;
        let unanswered = |key: &FlowKey| flows.get(key).and_then(|flow| flow.unanswered.as_ref());
        again.retain(|(key, stamp)| unanswered(key).is_some_and(|kept| kept.waiting(*stamp).is_some()));
    }

    /// When the lost packet of that place may go again, from now on.
    fn again_at(&self, place: usize, context: &ControlContext<'_>) -> Time {
        let &ControlContext { control, constants, now } = context;
        let (key, stamp) = self.again[place];
        let Some((flow, rule)) = self.flows.get(&key).zip(control.of(key.1)) else { return Time::NEVER };
        let Some(packet) = flow.unanswered.as_ref().and_then(|kept| kept.waiting(stamp)) else {
            return Time::NEVER;
        };
        flow.point.earliest(self.on_line(packet, (rule, constants)), now, &rule.congestion)
    }

    /// Takes the first notice, if its class has a place.
    pub(crate) fn notice(&mut self, places: u8, constants: &Constants) -> Option<Packet> {
        let class = constants.switch.channels.classes.of(self.notices.front()?);
        if places >> class & 1 == 1 { self.notices.pop_front() } else { None }
    }

    /// Answers what has waited for its answer for long enough.
    fn answer_due(&mut self, id: EndpointId, context: &ControlContext<'_>) {
        let &ControlContext { control, now, .. } = context;
        let FlowTable { to_answer, receivers, notices, .. } = self;
        while let Some(&(at, key)) = to_answer.front() {
            let Some((receiver, rule)) = receivers.get_mut(&key).zip(control.of(key.1)) else { break };
            let is_answered = receiver.point.answers_by(&rule.congestion) != at;
            if !is_answered && at > now {
                break;
            }
            to_answer.pop_front();
            if !is_answered && let Some(notice) = receiver.point.answer(now, &rule.congestion) {
                let (source, class) = key;
                notices.push_back(packet(&receiver.confirm(notice, class, false), (id, source), control));
            }
        }
    }

    /// When the next of what waits for its answer gets it, unless that comes sooner.
    #[inline]
    pub(crate) fn answers_by(&self) -> Time {
        self.to_answer.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Carries out the steps of flows that are due, and forgets those that are over.
    #[inline]
    pub(crate) fn step(&mut self, id: EndpointId, context: &ControlContext<'_>) {
        if self.answers_by() <= context.now {
            self.answer_due(id, context);
        }
        if self.due <= context.now {
            self.step_flows(id, context);
        }
    }

    fn step_flows(&mut self, id: EndpointId, context: &ControlContext<'_>) {
        let &ControlContext { control, now, .. } = context;
        let FlowTable { flows, notices, again, due, empty_until, .. } = self;
        *due = Time::NEVER;
        flows.retain(|&(to, class), flow| {
            let Some(rule) = control.of(class) else { return false };
            if let Some(unanswered) = flow.unanswered.as_mut().filter(|kept| kept.due() <= now) {
                for stamp in unanswered.late(now) {
                    flow.point.lose(stamp, now, &rule.congestion);
                    again.push_back(((to, class), stamp));
                }
            }
            while flow.point.due() <= now {
                flow.rest(empty_until[usize::from(class)]);
                if let Some(notice) = flow.point.step(now, &rule.congestion) {
                    notices.push_back(packet(&Notice { class, ..notice }, (id, to), control));
                }
            }
            *due = (*due).min(flow.due());
            !flow.is_over(now, rule)
        });
    }

    /// A notice has come.
    pub(crate) fn on_notice(&mut self, came: &Packet, context: &ControlContext<'_>) {
        let &ControlContext { control, now, .. } = context;
        if came.is_corrupted() {
            return;
        }
        let notice = came.notice();
        let Some(rule) = control.of(notice.class) else { return };
        let congestion = &rule.congestion;
        if !notice.to_source {
            if let Some(answer) = congestion.reflect(&notice) {
                self.notices.push_back(packet(&answer, (came.destination, came.source), control));
            }
            return;
        }
        let key = (came.source, notice.class);
        if let Some(flow) = self.flows.get_mut(&key) {
            match &mut flow.unanswered {
                None => flow.point.learn(&notice, now, congestion),
                Some(unanswered) => {
                    let Confirmation { is_header_alone, before } = Confirmation::of(&notice);
                    let answer = Answer::of(&notice);
                    if !is_header_alone {
                        flow.point.learn(&notice, now, congestion);
                        answer.stamps().for_each(|stamp| unanswered.answer(stamp));
                    } else if unanswered.lose(answer.last) {
                        flow.point.lose(answer.last, now, congestion);
                        self.again.push_back((key, answer.last));
                    }
                    flow.point.confirm(before);
                    unanswered.confirm(before);
                }
            }
            if flow.is_over(now, rule) {
                self.flows.remove(&key);
            }
        }
    }

    /// A packet that is no notice has come. Says whether the interface is to get it.
    pub(crate) fn receive(&mut self, came: &Packet, context: &ControlContext<'_>) -> bool {
        let &ControlContext { control, constants, now } = context;
        let is_header_alone = came.label == PacketLabel::TRIMMED;
        if !is_header_alone && !is_controlled(came) {
            return true;
        }
        let class = match is_header_alone {
            true => came.class_before(),
            false => constants.plan.class(came.channel().vc.into()) as u8,
        };
        let Some(rule) = control.of(class) else { return true };
        if came.is_corrupted() {
            return rule.repair == Repair::None;
        }
        let receiver = self.receivers.entry((came.source, class)).or_insert_with(|| DestinationFlow {
            point: rule.congestion.receiver(),
            received: (rule.repair != Repair::None).then(Received::default),
        });
        let (stamp, bytes) = (came.stamp(), constants.packet_bytes(came));
        let is_new = match &mut receiver.received {
            None => true,
            Some(received) => !is_header_alone && received.take(stamp.value),
        };
        let arrival = Arrival { now, stamp, bytes, hops: came.hops };
        let notice = match is_header_alone {
            true => Some(Notice::answer(Answer::to(stamp.value, false, came.hops).word(), 0)),
            false => {
                let before = receiver.point.answers_by(&rule.congestion);
                let notice = receiver.point.receive(&arrival, &rule.congestion);
                let by = receiver.point.answers_by(&rule.congestion);
                if by != before && by != Time::NEVER {
                    self.to_answer.push_back((by, (came.source, class)));
                }
                notice
            }
        };
        if let Some(notice) = notice {
            let notice = receiver.confirm(notice, class, is_header_alone);
            self.notices.push_back(packet(&notice, (came.destination, came.source), control));
        }
        is_new
    }

    /// Until when its flow holds a packet, from now on.
    fn held_until(&self, packet: &Packet, context: &ControlContext<'_>) -> Option<Time> {
        let &ControlContext { control, constants, now } = context;
        let class = constants.switch.channels.classes.of(packet);
        let (flow, rule) = (self.flows.get(&(packet.destination, class))?, control.of(class)?);
        Some(flow.earliest(self.on_line(packet, (rule, constants)), now, rule))
    }

    /// When it next has something to do or to let go, after `now`.
    pub(crate) fn next(&self, context: &ControlContext<'_>) -> Time {
        let now = context.now;
        let of_held = self.held.iter().filter_map(|packet| self.held_until(packet, context));
        let of_again = (0..self.again.len()).map(|place| self.again_at(place, context));
        let held = of_held.chain(of_again).filter(|at| *at > now).min().unwrap_or(Time::NEVER);
        held.min(self.due).min(self.ask_again.get()).min(self.answers_by())
    }

    /// Whether a packet that waits will go after some time, though nothing comes: it is held by a rate, or
    /// counts as lost then.
    fn waits_for_time(&self, context: &ControlContext<'_>) -> bool {
        let now = context.now;
        let of_held = self.held.iter().filter_map(|packet| self.held_until(packet, context));
        let of_again = (0..self.again.len()).map(|place| self.again_at(place, context));
        let of_lost = self.flows.values().filter_map(|flow| Some(flow.unanswered.as_ref()?.due()));
        of_held.chain(of_again).chain(of_lost).any(|at| at > now && at < Time::NEVER)
    }

    /// The rate of each flow at `now`: destination, class, rate.
    pub(crate) fn rates<'a>(
        &'a self,
        control: &'a CongestionControl,
        now: Time,
    ) -> impl Iterator<Item = (EndpointId, u8, BitRate)> + 'a {
        self.flows.iter().filter_map(move |(&(to, class), flow)| {
            let congestion = &control.of(class)?.congestion;
            let is_held = flow.unanswered.is_none() || !flow.point.is_as_new(now, congestion);
            let is_held = is_held && !flow.point.is_quiet();
            Some((to, class, flow.point.rate(now, congestion).filter(|_| is_held)?))
        })
    }
}

/// The packet of a notice from one endpoint to another.
fn packet(
    notice: &Notice,
    (source, destination): (EndpointId, EndpointId),
    control: &CongestionControl,
) -> Packet {
    let addressing = Addressing { source, destination, message: notice.head() };
    let mut packet =
        Packet::new(addressing, control.notice, HeaderBits::from_bits(notice.word), MessagePart::Whole);
    packet.label = PacketLabel::NOTICE;
    packet
}

impl Packet {
    /// The notice that it carries.
    fn notice(&self) -> Notice {
        Notice::from_parts(self.message, self.carried.bits())
    }

    fn set_notice(&mut self, notice: &Notice) {
        (self.message, self.carried) = (notice.head(), HeaderBits::from_bits(notice.word));
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// The longest round trip that its congestion control reckons with; `None`: it has none.
    pub fn round_trip(&self) -> Option<Span> {
        self.constants.congestion.as_ref().map(|control| control.round_trip)
    }

    /// Whether packets of a site's endpoints will go although nothing is on its way there: they wait for a
    /// time of their flow.
    pub fn waits_for_time(&self, site: &Site<N>, now: Time) -> bool {
        let constants = &self.constants;
        let Some(control) = constants.congestion.as_deref() else { return false };
        let context = ControlContext { control, constants, now };
        let mut flow_tables = site.endpoints.iter().filter_map(|endpoint| endpoint.flow_table.as_deref());
        flow_tables.any(|flow_table| flow_table.waits_for_time(&context))
    }

    /// The rate that each flow of a site's endpoints is allowed at `now`. Empty where congestion is not
    /// controlled.
    pub fn flow_rates<'a>(
        &'a self,
        site: &'a Site<N>,
        now: Time,
    ) -> impl Iterator<Item = (FlowId, BitRate)> + 'a {
        let control = self.constants.congestion.as_deref();
        let endpoints = site.endpoints.iter();
        let of_endpoint =
            endpoints.filter_map(move |endpoint| Some((endpoint, endpoint.flow_table.as_deref()?)));
        of_endpoint.filter_map(move |(endpoint, flow_table)| Some((endpoint, flow_table, control?))).flat_map(
            move |(endpoint, flow_table, control)| {
                let source = endpoint.id;
                flow_table
                    .rates(control, now)
                    .map(move |(destination, class, rate)| (FlowId { source, destination, class }, rate))
            },
        )
    }
}

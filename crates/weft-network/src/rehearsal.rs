//! Rehearsals: what a message takes that is alone on its path, by the packet model of the machine itself.
//!
//! ```text
//!   kinds of links of a path ──► switches in a row, an endpoint at each end, packets ──► LoneMessage
//!      endpoint ══ switch ══ switch ══ switch ══ endpoint
//! ```
//! A network of fluids needs the times of a message on an idle machine: by size, path and primitive. They are
//! not written down a second time for fluids. The message is sent once over a row of switches with the links
//! of its path, with the interfaces and switches of the machine, and its times are kept.
//!
//! The fluid lasts as long as the message keeps the last link busy, or the slowest, if that is longer. What
//! comes before is start-up, what comes after is the end: so a lone message takes as long as in packets.
//!
//! Long messages are not rehearsed whole: beyond [`LONGEST`] times go on as between its half and it.

use crate::{NetworkError, NetworkSetup};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use weft_assembly as assembly;
use weft_engine::Payload;
use weft_fabric::parameters::FlowControl;
use weft_fabric::{ErrorRate, HopRecord, LinkEnd, LinkParameters};
use weft_flow::{DataTaken, LoneCase, LoneMessage, LoneMessages, SharedEngine};
use weft_machine::{Fabric, Machine, MachinePower};
use weft_nic::{
    Delivered, Failure, FailureReason, Host, HostContext, Message, MessageOptions, Observer, Offer,
    Primitive, TokenWhenAcknowledged,
};
use weft_topo::{
    Graph, GraphClass, GraphDescription, GraphEndpoint, GraphLayout, GraphLink, GraphRouting, GraphSwitch,
    Layout, LinkClass, Topology as _,
};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// The longest message that is rehearsed.
const LONGEST: Bytes = Bytes::new(256 << 10);
/// Longer messages than this follow each other no faster than their links and the engine let them.
const LONGEST_WITH_GAP: Bytes = Bytes::new(16 << 10);
/// Messages that are sent at once to see how they follow each other.
const IN_A_ROW: u32 = 8;
/// Messages that are sent at once to see how many follow each other for long: more than interfaces have
/// channels.
const FOR_LONG: u32 = 96;
/// The last of them, of which the pace is taken.
const LAST: usize = 32;
/// Messages at a time of an interface that sends several: as many as were heard.
const MANY_CHANNELS: u32 = IN_A_ROW;
/// The packets of one message are on the same virtual channel: any path can be rehearsed on one.
const ENDPOINT_CLASS: &str = "endpoint";

/// The lone messages of a machine, each rehearsed when it is first asked for.
pub(crate) struct Rehearsals {
    /// The machine as packets see it, without what goes wrong.
    machine: Machine,
    classes: Vec<String>,
    links: Vec<LinkParameters>,
    seed: u64,
    /// Of a switch, for a virtual channel.
    buffer: Bytes,
    engine: SharedEngine,
    known: Mutex<BTreeMap<LoneCase, Result<LoneMessage, FailureReason>>>,
    paces: Mutex<BTreeMap<LoneCase, Pace>>,
}

/// How messages follow each other for long.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// The time from one to the next of the last.
    gap: Span,
    /// The time by which the last came sooner than by such gaps.
    slack: Span,
}

/// Everything that was heard of the messages of a rehearsal.
#[derive(Default)]
pub(crate) struct Heard {
    hops: Vec<HopRecord>,
    noticed: Vec<Time>,
    taken: Vec<Time>,
    failed: Option<FailureReason>,
}

impl Observer for Heard {
    fn hop(&mut self, hop: &HopRecord) {
        self.hops.push(*hop);
    }
}

/// The messages of a rehearsal.
pub(crate) struct Script {
    messages: u32,
    bytes: Bytes,
    primitive: Primitive,
    of_program: bool,
    is_acknowledged: bool,
    ends: RehearsedEnds,
}

/// Who sends the messages of a rehearsal, and who gets them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RehearsedEnds {
    /// One endpoint, itself.
    Itself,
    /// One endpoint, another.
    Pair,
    /// One endpoint, each message another.
    OneToEach,
    /// Each message another endpoint, the same.
    EachToOne,
}

impl Script {
    /// The messages of an endpoint.
    fn messages_of(&self, endpoint: EndpointId) -> Range<u32> {
        match (self.ends, endpoint.0.checked_sub(1)) {
            (RehearsedEnds::EachToOne, Some(number)) if number < self.messages => number..number + 1,
            (RehearsedEnds::EachToOne, _) | (_, Some(_)) => 0..0,
            (_, None) => 0..self.messages,
        }
    }

    /// The message of this number.
    fn message(&self, number: u32, at: Time) -> Message<()> {
        let Script { primitive, of_program, bytes, .. } = *self;
        let to = match self.ends {
            RehearsedEnds::Itself | RehearsedEnds::EachToOne => EndpointId(0),
            RehearsedEnds::Pair => EndpointId(1),
            RehearsedEnds::OneToEach => EndpointId(1 + number),
        };
        let (header, token) = (Some(()), Some(0));
        let options = match self.is_acknowledged {
            true => MessageOptions::of(&TokenWhenAcknowledged),
            false => MessageOptions::NONE,
        };
        Message { header, token, primitive, of_program, options, ..Message::new(to, bytes, at) }
    }
}

/// The host of a rehearsal. The first messages are not listened to: they find caches and
/// tables of interfaces empty.
#[derive(Serialize, Deserialize)]
pub(crate) struct RehearsalHost {
    sends: Range<u32>,
}

/// The messages that count are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Listen;

impl Payload for Listen {
    fn tie(&self) -> u128 {
        0
    }
}

/// The time at which they are: the first message has come long before.
const LISTEN_AT: Time = Time::from_ps(1_000_000_000_000);

impl Host for RehearsalHost {
    type Parameters = Script;
    type Timer = Listen;
    type Header = ();
    type Output = Heard;

    fn is_active(&self) -> bool {
        !self.sends.is_empty()
    }

    fn start(&mut self, script: &Script, context: &mut impl HostContext<Self>) {
        for number in self.sends.clone() {
            context.send(script.message(number, Time::ZERO), Time::ZERO);
        }
        context.set_timer(LISTEN_AT, Listen);
    }

    fn timer(&mut self, Listen: Listen, script: &Script, context: &mut impl HostContext<Self>) {
        for number in self.sends.clone() {
            context.send(script.message(number, LISTEN_AT), LISTEN_AT);
        }
    }

    fn sent(&mut self, _: u32, _: &Script, context: &mut impl HostContext<Self>) {
        let now = context.now();
        context.output().taken.push(now);
    }

    fn delivered(&mut self, message: &Delivered<()>, _: &Script, context: &mut impl HostContext<Self>) {
        let now = context.now();
        context.output().noticed.push(now);
        if message.in_mailbox {
            context.capabilities().take(message.interface, now);
        }
    }

    fn failed(&mut self, failure: &Failure, _: &Script, context: &mut impl HostContext<Self>) {
        context.output().failed = Some(failure.reason);
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Script, _: Time) -> Offer<()> {
        Offer::Nothing
    }
}

/// The times of a message, from when it was posted.
#[derive(Clone, Copy)]
struct Times {
    noticed: Span,
    taken: Option<Span>,
    /// The time at which the last link was done with it.
    crossed: Span,
    /// For how long it kept the last link, or the slowest.
    held: Span,
    wire_bits: u64,
    packets: u64,
}

impl Rehearsals {
    /// The lone messages of a machine with this layout.
    ///
    /// # Errors
    /// A machine that cannot be simulated.
    pub(crate) fn new(machine: &Machine, layout: &Layout, seed: u64) -> Result<Rehearsals, NetworkError> {
        let mut machine = Machine {
            flows: false,
            congestion: None,
            faults: Vec::new(),
            multicast: Vec::new(),
            reroute_after: None,
            queue_board: None,
            power: MachinePower::default(),
            ..machine.clone()
        };
        if let Fabric::Packet { switch, links, .. } = &mut machine.fabric {
            // No buffer fills before a message that is alone.
            switch.flow_control = FlowControl::Credits;
            // Fluids have no bits that could be wrong.
            for layer in links.values_mut().map(|link| &mut link.layer) {
                (layer.bit_errors, layer.symbol_errors) = (ErrorRate::NONE, ErrorRate::NONE);
            }
        }
        let classes: Vec<String> = layout.link_classes().into_iter().map(str::to_owned).collect();
        let links = assembly::links(&machine, layout).unwrap_or_default();
        let engine = SharedEngine { rate: BitRate::from_bits_per_second(u64::MAX >> 8), channels: 1 };
        let (known, paces) = (Mutex::default(), Mutex::default());
        let buffer = match &machine.fabric {
            Fabric::Packet { switch, .. } => switch.buffer,
            Fabric::Ideal(_) => Bytes::ZERO,
        };
        let mut rehearsals = Rehearsals { machine, classes, links, seed, buffer, engine, known, paces };
        rehearsals.engine = rehearsals.hear_engine()?;
        Ok(rehearsals)
    }

    /// The rate at which the line of a kind of link carries bits before its code.
    pub(crate) fn line_rate(&self, class: LinkClass) -> BitRate {
        let LinkParameters { rate, code, .. } = self.links[usize::from(class.0)];
        let bits = u128::from(rate.bits_per_second()) * u128::from(code.payload) / u128::from(code.wire);
        BitRate::from_bits_per_second(bits as u64)
    }

    /// The engine of an interface: two endpoints of one switch, and several long messages at once.
    fn hear_engine(&self) -> Result<SharedEngine, NetworkError> {
        let endpoint = self.classes.iter().position(|class| class == ENDPOINT_CLASS).unwrap_or(0);
        let case = LoneCase {
            path: vec![LinkClass(endpoint as u8); 2],
            to_itself: false,
            bytes: LONGEST,
            primitive: Primitive::Automatic,
            of_program: true,
            is_acknowledged: false,
        };
        let Ok(lone) = self.times(&case)? else { return Ok(self.engine) };
        let Ok(row) = self.in_a_row(&case, IN_A_ROW, RehearsedEnds::OneToEach)? else {
            return Ok(self.engine);
        };
        let (first, last) = (row[0], row[row.len() - 1]);
        let later = |at: Span| at.saturating_sub(lone.noticed);
        // Whether the first of them comes about as early as if it were alone.
        let one_by_one = later(first).as_ps() < later(last).as_ps() / 2;
        let bits = u128::from(lone.wire_bits) * 1_000_000_000_000;
        let alone = bits / u128::from(lone.held.as_ps().max(1));
        let all = later(last) + lone.held;
        let together = match one_by_one {
            true => bits / u128::from(gap(&row).as_ps().max(1)),
            false => bits * u128::from(IN_A_ROW) / u128::from(all.as_ps().max(1)),
        };
        let rate = u64::try_from(together.max(alone)).unwrap_or(u64::MAX >> 8);
        let channels = if one_by_one { 1 } else { MANY_CHANNELS };
        Ok(SharedEngine { rate: BitRate::from_bits_per_second(rate), channels })
    }

    /// Listens to several messages of a case that are posted at once.
    fn hear(&self, case: &LoneCase, messages: u32, ends: RehearsedEnds) -> Result<Heard, NetworkError> {
        let layout = self.row_of_switches(&case.path, messages.max(IN_A_ROW));
        let LoneCase { bytes, primitive, of_program, is_acknowledged, to_itself, .. } = *case;
        let ends = if to_itself { RehearsedEnds::Itself } else { ends };
        let script = Script { messages, bytes, primitive, of_program, is_acknowledged, ends };
        let setup =
            NetworkSetup { follows_packets: true, ..NetworkSetup::new(&self.machine, layout, self.seed) };
        let sends: Vec<Range<u32>> =
            (0..=messages).map(|endpoint| script.messages_of(EndpointId(endpoint))).collect();
        let of = |endpoint: EndpointId| sends.get(endpoint.index()).cloned().unwrap_or(0..0);
        let mut network = setup.build(script, |endpoint| RehearsalHost { sends: of(endpoint) })?;
        network.run_until(Time::NEVER, &AtomicBool::new(false));
        let mut heard = Heard::default();
        network.visit_outputs(&mut |part: &mut Heard| {
            heard.hops.append(&mut part.hops);
            heard.noticed.append(&mut part.noticed);
            heard.taken.append(&mut part.taken);
            heard.failed = heard.failed.or(part.failed);
        });
        for times in [&mut heard.noticed, &mut heard.taken] {
            times.retain(|at| *at > LISTEN_AT);
            times.sort_unstable();
        }
        heard.hops.retain(|hop| hop.came >= LISTEN_AT);
        Ok(heard)
    }

    /// The times at which several messages are noticed that are posted at once.
    fn in_a_row(
        &self,
        case: &LoneCase,
        messages: u32,
        ends: RehearsedEnds,
    ) -> Result<Result<Vec<Span>, FailureReason>, NetworkError> {
        let heard = self.hear(case, messages, ends)?;
        let all = || heard.noticed.iter().map(|at| *at - LISTEN_AT).collect();
        Ok(heard.failed.map_or_else(|| Ok(all()), Err))
    }

    /// The times of a message that is alone.
    fn times(&self, case: &LoneCase) -> Result<Result<Times, FailureReason>, NetworkError> {
        let heard = self.hear(case, 1, RehearsedEnds::Pair)?;
        let (Some(noticed), None) = (heard.noticed.first(), heard.failed) else {
            return Ok(Err(heard.failed.unwrap_or(FailureReason::TimedOut)));
        };
        let from = EndpointId(0);
        let to = EndpointId(u32::from(!case.to_itself));
        let mut links: BTreeMap<LinkEnd, (LinkClass, Vec<&HopRecord>)> = BTreeMap::new();
        // What carries nothing answers, where the message itself carries something.
        let is_of_message = |hop: &&HopRecord| {
            hop.source == from
                && hop.destination == to
                && (hop.payload > Bytes::ZERO || case.bytes == Bytes::ZERO)
        };
        for hop in heard.hops.iter().filter(is_of_message) {
            links.entry(hop.from).or_insert_with(|| (hop.class, Vec::new())).1.push(hop);
        }
        let mut times = Times {
            noticed: *noticed - LISTEN_AT,
            taken: heard.taken.first().map(|at| *at - LISTEN_AT),
            crossed: *noticed - LISTEN_AT,
            held: Span::ZERO,
            wire_bits: 0,
            packets: 0,
        };
        let envelope = self.machine.packet.header + self.machine.packet.footer;
        for (class, hops) in links.values() {
            let link = &self.links[usize::from(class.0)];
            let bytes: Bytes = hops.iter().map(|hop| link.bytes_on_line(hop.payload + envelope)).sum();
            times.wire_bits = times.wire_bits.max(8 * bytes.get());
            times.packets = hops.len() as u64;
            if hops.iter().all(|hop| hop.to.is_none()) {
                let began = hops.iter().map(|hop| hop.began).min().unwrap_or(LISTEN_AT);
                let ended = hops.iter().map(|hop| hop.free).max().unwrap_or(LISTEN_AT);
                times.crossed = (ended - LISTEN_AT).min(times.noticed);
                times.held = ended - began;
            }
        }
        for (class, _) in links.values() {
            let rate = u128::from(self.line_rate(*class).bits_per_second()).max(1);
            let least = (u128::from(times.wire_bits) * 1_000_000_000_000).div_ceil(rate);
            times.held = times.held.max(Span::from_ps(least as u64));
        }
        times.held = times.held.min(times.crossed);
        Ok(Ok(times))
    }

    /// Switches in a row, joined by links of these kinds, with an endpoint at one end of the row and several
    /// at the other.
    fn row_of_switches(&self, path: &[LinkClass], receivers: u32) -> Layout {
        let between = &path[1..path.len() - 1];
        let count = between.len() as u32 + 1;
        let name = |number: u32| format!("switch {number}");
        let switches = (0..count).map(|number| GraphSwitch { name: name(number), ..GraphSwitch::default() });
        let first = GraphEndpoint { name: "first".to_owned(), switch: 0 };
        let last = |number| GraphEndpoint { name: format!("last {number}"), switch: count - 1 };
        let link = |(number, class): (u32, &LinkClass)| GraphLink {
            ends: [number, number + 1],
            count: 1,
            // The graph has the class of endpoints beside those of its list.
            class: class.0 - 1,
        };
        let class = |name: &String| GraphClass {
            name: name.clone(),
            section: name.clone(),
            rate: None,
            latency: None,
        };
        let description = GraphDescription {
            file: "a row of switches".to_owned(),
            switches: switches.collect(),
            endpoints: std::iter::once(first).chain((0..receivers).map(last)).collect(),
            links: (0..).zip(between).map(link).collect(),
            classes: self.classes.iter().skip(1).map(class).collect(),
            ..GraphDescription::default()
        };
        let graph = Graph::new(&description, 0).expect("no path has as many switches as a graph may have");
        let row = GraphLayout::new(graph, GraphRouting::ShortestPath);
        Layout::Graph(row.expect("a row joins its switches"))
    }

    /// How messages of a case follow each other for long, over one switch: this is a matter of their sender.
    fn pace(&self, case: &LoneCase) -> Result<Pace, NetworkError> {
        let (Some(first), Some(last)) = (case.path.first(), case.path.last()) else {
            return Ok(Pace::default());
        };
        let case = LoneCase { path: vec![*first, *last], ..case.clone() };
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pace) = paces.get(&case) {
            return Ok(*pace);
        }
        let row = self.in_a_row(&case, FOR_LONG, RehearsedEnds::OneToEach)?.unwrap_or_default();
        let pace = match (row.first(), row.len().checked_sub(LAST + 1).map(|from| row[from]), row.last()) {
            (Some(first), Some(from), Some(last)) => {
                let gap = Span::from_ps((*last - from).as_ps() / LAST as u64);
                Pace { gap, slack: (gap * (row.len() as u64 - 1)).saturating_sub(*last - *first) }
            }
            _ => Pace::default(),
        };
        paces.insert(case, pace);
        Ok(pace)
    }

    /// A message of a case that was not known.
    fn rehearse(&self, case: &LoneCase) -> Result<Result<LoneMessage, FailureReason>, NetworkError> {
        let times = match case.bytes <= LONGEST {
            true => self.times(case)?,
            false => {
                let of = |bytes| self.times(&LoneCase { bytes, ..case.clone() });
                let half = Bytes::new(LONGEST.get() / 2);
                match (of(half)?, of(LONGEST)?) {
                    (Ok(half), Ok(whole)) => Ok(half.go_on(&whole, case.bytes)),
                    (Err(reason), _) | (_, Err(reason)) => Err(reason),
                }
            }
        };
        let times = match times {
            Ok(times) => times,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut gaps = [Span::ZERO; 2];
        if case.bytes <= LONGEST_WITH_GAP {
            for (least, ends) in gaps.iter_mut().zip([RehearsedEnds::OneToEach, RehearsedEnds::EachToOne]) {
                if let Ok(row) = self.in_a_row(case, IN_A_ROW, ends)? {
                    *least = Some(gap(&row)).filter(|gap| *gap > times.held).unwrap_or_default();
                }
            }
        }
        let [send_gap, receive_gap] = gaps;
        let mut pace = Pace::default();
        if case.bytes <= LONGEST_WITH_GAP && !case.to_itself {
            pace = self.pace(case)?;
        }
        if pace.gap <= send_gap.max(times.held) {
            pace = Pace::default();
        }
        let Pace { gap: steady_gap, slack } = pace;
        let links = case.path.len() as u8;
        let holds_channel = times.wire_bits > 8 * self.buffer.get();
        // The interface goes on when the message is past it.
        let send_gap = if holds_channel { send_gap } else { send_gap.max(times.held) };
        let gaps = LoneMessage { send_gap, receive_gap, steady_gap, slack, ..times.lone() };
        Ok(Ok(LoneMessage { holds_channel, links, ..gaps }))
    }
}

/// The time from one message to the next, of several that were posted at once: of the later half. The first
/// find all channels free.
fn gap(noticed: &[Span]) -> Span {
    let later = &noticed[noticed.len() / 2..];
    let (Some(first), Some(last)) = (later.first(), later.last()) else { return Span::ZERO };
    Span::from_ps(last.saturating_sub(*first).as_ps() / (later.len() as u64 - 1).max(1))
}

impl Times {
    /// The times of a longer message, by those of a half and the whole of [`LONGEST`].
    fn go_on(&self, whole: &Times, bytes: Bytes) -> Times {
        let (half, more) = (u128::from(LONGEST.get() / 2), u128::from((bytes - LONGEST).get()));
        let on = |half_value: u64, whole_value: u64| {
            let each = u128::from(whole_value.saturating_sub(half_value));
            whole_value + u64::try_from(each * more / half).unwrap_or(u64::MAX / 4)
        };
        let span = |one: Span, other: Span| Span::from_ps(on(one.as_ps(), other.as_ps()));
        Times {
            noticed: span(self.noticed, whole.noticed),
            taken: self.taken.zip(whole.taken).map(|(one, other)| span(one, other)),
            crossed: span(self.crossed, whole.crossed),
            held: span(self.held, whole.held),
            wire_bits: on(self.wire_bits, whole.wire_bits),
            packets: on(self.packets, whole.packets),
        }
    }

    /// The fluid of the message.
    fn lone(&self) -> LoneMessage {
        let bits = u128::from(self.wire_bits) * 1_000_000_000_000;
        let most = (bits / u128::from(self.held.as_ps().max(1))).clamp(1, u128::from(u64::MAX >> 8));
        // As long as the fluid really lasts, so that start-up, fluid and end are the whole to the picosecond.
        let lasts = Span::from_ps(bits.div_ceil(most) as u64);
        let start_up = self.crossed.saturating_sub(lasts);
        let ends = start_up + lasts;
        let taken = match self.taken {
            Some(taken) if taken <= start_up => DataTaken::AfterPosting(taken),
            Some(taken) => DataTaken::AfterFluid(taken.saturating_sub(ends)),
            None => DataTaken::AfterPosting(Span::ZERO),
        };
        LoneMessage {
            start_up,
            wire_bits: self.wire_bits,
            most: BitRate::from_bits_per_second(most as u64),
            end: self.noticed.saturating_sub(ends),
            taken,
            packets: self.packets,
            ..LoneMessage::default()
        }
    }
}

impl LoneMessages for Rehearsals {
    fn of(&self, case: &LoneCase) -> Result<LoneMessage, FailureReason> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lone) = known.get(case) {
            return *lone;
        }
        let lone = self.rehearse(case).expect("the machine was simulated when the engine was heard");
        known.insert(case.clone(), lone);
        lone
    }

    fn engine(&self) -> SharedEngine {
        self.engine
    }
}

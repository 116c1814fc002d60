//! The network: hosts post messages, fluids share the links, hosts are told.
//!
//! ```text
//!   host ── send ──► posted ──► waits for a channel ──► start-up ──► fluid ──► end ──► delivered ──► host
//!                                                                     ▲ │
//!                                             shares of all fluids ───┘ └─► ends at left / share
//! ```
//! What begins and ends at one instant is solved together, after all of it: see [`Shares`]. All endpoints are
//! one site of the engine, so that a run is the same for any number of threads and no faster by them.
//!
//! A message takes one path: that which its routing takes on an idle network. A routing that draws random
//! numbers gets a hash of the run's seed, the sender and the message.
//!
//! # Not modelled
//! Queues, and what comes of them: head-of-line blocking, small buffers, pauses, losses. Two messages with the
//! same sender and receiver may overtake each other where the interface sends several at a time.

use crate::lone::{Engine, LoneCase, LoneMessage, LoneMessages, Taken};
use crate::shares::{FluidId, LineId, Shares};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use weft_engine::{Context, Event, InitialState, Lookahead, Model, Order, Payload, SiteId, Stream};
use weft_fabric::LinkEnd;
use weft_nic::{Capabilities, Delivered, Failure, Host, HostContext, Message, NoCapabilities, Offer};
use weft_topo::{AtSwitch, Attachment, LinkClass, LocalView, RouteState, Routing, Topology};
use weft_units::{BitRate, Bytes, EndpointId, PortId, Span, SwitchId, Time, VcId};

/// The purpose of the random numbers of routings, among those of a run.
const PURPOSE_ROUTE: u32 = 0x666c_6f77;
/// Parts of a bit in which what is left of a fluid is counted: rate × time in ps is a whole number of them.
const PARTS_OF_A_BIT: u128 = 1_000_000_000_000;

/// A network of fluids: all that its endpoints share.
pub struct FlowNetwork<L, H: Host> {
    layout: L,
    /// The first line of each switch.
    first_line: Vec<u32>,
    lone: Box<dyn LoneMessages>,
    engine: Engine,
    seed: u64,
    host: H::Parameters,
}

/// The endpoints, and what is between them.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct FlowSite<H: Host> {
    hosts: Vec<H>,
    between: Between<H::Header>,
}

/// The messages between hosts.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: Serialize + serde::de::DeserializeOwned")]
struct Between<T> {
    interfaces: Vec<FluidInterface>,
    messages: Slab<UnderWay<T>>,
    shares: Shares,
    /// By fluid: its message.
    message_of: Vec<u32>,
    /// When fluids end, with their messages.
    ends: BTreeSet<(Time, u32)>,
    /// The instant whose changes are to be solved; never: there are none.
    solve_at: Time,
    crossed: Vec<LineCount>,
}

/// What has crossed a line since the counters were last reset.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct LineCount {
    packets: u64,
    payload: u64,
    wire_bits: u64,
}

/// The interface of an endpoint.
#[derive(Clone, Default, Serialize, Deserialize)]
struct FluidInterface {
    /// Messages posted so far: the number of the next.
    posted: u32,
    /// Messages that are posted and wait for a channel.
    waiting: VecDeque<u32>,
    /// Messages that hold a channel.
    sending: u32,
    /// Before this no other fluid of it begins.
    next_begin: Time,
    /// Messages that are to be posted later.
    to_post: u32,
    /// When its host is to be asked for a message next.
    offer_at: Option<Time>,
}

/// A message under way.
#[derive(Serialize, Deserialize)]
struct UnderWay<T> {
    from: EndpointId,
    to: EndpointId,
    number: u32,
    bytes: Bytes,
    created_at: Time,
    header: Option<T>,
    token: Option<u32>,
    to_interface: u16,
    lone: LoneMessage,
    crosses: Vec<LineId>,
    posted_at: Time,
    fluid: Option<FluidId>,
    /// What is left of its fluid in parts of a bit, at a time, and its share since.
    left: u128,
    since: Time,
    share: BitRate,
    /// When the fluid ends if its share stays; `None`: it has none.
    ends_at: Option<Time>,
}

/// An event of the network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FlowEvent<T> {
    /// The host begins.
    Start,
    /// A timer of the host.
    Timer(T),
    /// The interface takes a message over.
    Post(MessageKey),
    /// Its fluid begins.
    Begin(MessageKey),
    /// The data of a message is taken: the host's token, and the message's number.
    Taken {
        /// The host's name for the message.
        token: u32,
        /// The message, counted by its sender.
        number: u32,
    },
    /// The receiver notices a message.
    Deliver(MessageKey),
    /// The interface refuses a message.
    Fail(Failure),
    /// The host may have a message.
    Ask,
}

/// A message: its place in the list of those under way, and its name, by which events are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageKey {
    place: u32,
    from: EndpointId,
    number: u32,
}

/// Kinds of events. **Their order decides results**: an endpoint handles those of one instant in this order.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Kind {
    Deliver,
    Taken,
    Fail,
    Timer,
    Start,
    Post,
    Begin,
    Ask,
}

impl<T: Payload> Payload for FlowEvent<T> {
    fn tie(&self) -> u128 {
        match self {
            FlowEvent::Start | FlowEvent::Ask => 0,
            FlowEvent::Timer(timer) => timer.tie(),
            FlowEvent::Post(key) | FlowEvent::Begin(key) | FlowEvent::Deliver(key) => {
                u128::from(key.from.0) << 32 | u128::from(key.number)
            }
            FlowEvent::Taken { number, .. } | FlowEvent::Fail(Failure { number, .. }) => u128::from(*number),
        }
    }
}

impl<T> FlowEvent<T> {
    fn kind(&self) -> Kind {
        match self {
            FlowEvent::Start => Kind::Start,
            FlowEvent::Timer(_) => Kind::Timer,
            FlowEvent::Post(_) => Kind::Post,
            FlowEvent::Begin(_) => Kind::Begin,
            FlowEvent::Taken { .. } => Kind::Taken,
            FlowEvent::Deliver(_) => Kind::Deliver,
            FlowEvent::Fail(_) => Kind::Fail,
            FlowEvent::Ask => Kind::Ask,
        }
    }

    /// The event of an endpoint at a time.
    fn at(self, endpoint: EndpointId, time: Time) -> Event<FlowEvent<T>> {
        Event { time, site: SiteId(0), order: Order::new(endpoint.0, self.kind() as u32), payload: self }
    }
}

/// The use of a line since the counters were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineUse {
    /// The end at which the link begins.
    pub from: LinkEnd,
    /// Its other end.
    pub to: Attachment,
    /// Its kind.
    pub class: LinkClass,
    /// Packets of messages whose fluids have ended.
    pub packets: u64,
    /// Their payload.
    pub payload: Bytes,
    /// What they have put on the line, before its code, in bits.
    pub wire_bits: u64,
}

/// A network that is to be built.
pub struct FlowSetup<L> {
    /// Topology and routing.
    pub layout: L,
    /// The rate of each kind of link, before its code.
    pub rates: Vec<BitRate>,
    /// Whoever knows lone messages.
    pub lone: Box<dyn LoneMessages>,
    /// Of random choices of routing.
    pub seed: u64,
}

impl<L: Topology + Routing + Sync, H: Host> FlowNetwork<L, H> {
    /// A network with a host behind every endpoint.
    pub fn build(
        setup: FlowSetup<L>,
        host: H::Parameters,
        mut make_host: impl FnMut(EndpointId) -> H,
    ) -> InitialState<FlowNetwork<L, H>> {
        let FlowSetup { layout, rates, lone, seed } = setup;
        let endpoints = layout.endpoints();
        let engine = lone.engine();
        let class_of_endpoint = |endpoint| {
            let (switch, port) = layout.attachment(EndpointId(endpoint));
            layout.link_class(switch, port)
        };
        let rate = |class: LinkClass| rates[usize::from(class.0)];
        // Engines, then injection, then the ports of switches.
        let mut lines = vec![engine.rate; endpoints as usize];
        lines.extend((0..endpoints).map(|endpoint| rate(class_of_endpoint(endpoint))));
        let mut first_line = Vec::new();
        for switch in (0..layout.switches()).map(SwitchId) {
            first_line.push(lines.len() as u32);
            lines.extend((0..layout.ports(switch)).map(|port| rate(layout.link_class(switch, PortId(port)))));
        }
        let hosts: Vec<H> = (0..endpoints).map(|endpoint| make_host(EndpointId(endpoint))).collect();
        let active = (0..endpoints).map(EndpointId).zip(&hosts).filter(|(_, host)| host.is_active());
        let events = active.map(|(endpoint, _)| FlowEvent::Start.at(endpoint, Time::ZERO)).collect();
        let between = Between {
            interfaces: vec![FluidInterface::default(); endpoints as usize],
            messages: Slab::new(),
            crossed: vec![LineCount::default(); lines.len()],
            shares: Shares::new(lines),
            message_of: Vec::new(),
            ends: BTreeSet::new(),
            solve_at: Time::NEVER,
        };
        let model = FlowNetwork { layout, first_line, lone, engine, seed, host };
        InitialState {
            model,
            sites: vec![FlowSite { hosts, between }],
            events,
            lookahead: Lookahead::UNLIMITED,
        }
    }

    /// Topology and routing.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The event by which a timer of a host fires at `at`, to be inserted between runs.
    pub fn timer(&self, endpoint: EndpointId, at: Time, timer: H::Timer) -> Event<FlowEvent<H::Timer>> {
        FlowEvent::Timer(timer).at(endpoint, at)
    }

    /// The lines that a message crosses, and their kinds.
    fn path(&self, from: EndpointId, to: EndpointId, number: u32) -> (Vec<LineId>, Vec<LinkClass>) {
        let endpoints = self.layout.endpoints();
        let (mut switch, mut port) = self.layout.attachment(from);
        let mut lines = vec![LineId(from.0), LineId(endpoints + from.0)];
        let mut classes = vec![self.layout.link_class(switch, port)];
        let entity = u64::from(from.0) << 32 | u64::from(number);
        let mut view = Draw(Stream::new(self.seed, entity, PURPOSE_ROUTE));
        let target = self.layout.endpoint_address(to);
        let mut state = RouteState(if self.layout.spreads_blocks() { view.random() as u32 } else { 0 });
        let mut vc = VcId(0);
        loop {
            let at = AtSwitch { switch, address: self.layout.switch_address(switch), port, vc };
            let next = self.layout.route(at, target, &mut state, &mut view);
            lines.push(LineId(self.first_line[switch.index()] + next.port.0));
            classes.push(self.layout.link_class(switch, next.port));
            match self.layout.peer(switch, next.port) {
                Attachment::Switch(peer, came_by) => (switch, port, vc) = (peer, came_by, next.vc),
                Attachment::Endpoint(_) | Attachment::Nothing => return (lines, classes),
            }
        }
    }
}

/// A view of an idle network, with random numbers of a message.
struct Draw(Stream);

impl LocalView for Draw {
    fn queued(&self, _: PortId) -> u64 {
        0
    }

    fn random(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl<H: Host> FlowSite<H> {
    /// The hosts, by endpoint.
    pub fn hosts(&self) -> impl Iterator<Item = (EndpointId, &H)> {
        (0..).map(EndpointId).zip(&self.hosts)
    }

    /// Sets the counters of lines to zero.
    pub fn reset_counters(&mut self) {
        self.between.crossed.fill(LineCount::default());
    }

    /// Messages that have not been delivered.
    pub fn under_way(&self) -> usize {
        self.between.messages.len()
    }

    /// The words and sizes of messages whose fluids have begun, in no particular order.
    pub fn arriving(&self) -> impl Iterator<Item = (&H::Header, Bytes)> {
        self.between.messages.iter().filter_map(|(_, message)| {
            let whole = u128::from(message.lone.wire_bits) * PARTS_OF_A_BIT;
            let come = u128::from(message.bytes.get()) * (whole - message.left) / whole.max(1);
            message.fluid?;
            Some((message.header.as_ref()?, Bytes::new(come as u64)))
        })
    }

    /// The use of every direction of every link: those that leave endpoints first, by endpoint; then those that
    /// leave switches, by switch and port.
    pub fn lines<L: Topology>(&self, layout: &L) -> impl Iterator<Item = LineUse> {
        let endpoints = layout.endpoints();
        let of_endpoint = move |endpoint| {
            let (switch, port) = layout.attachment(endpoint);
            let to = Attachment::Switch(switch, port);
            (LinkEnd::Endpoint(endpoint), to, layout.link_class(switch, port))
        };
        let of_switch = move |switch| {
            (0..layout.ports(switch)).map(PortId).map(move |port| {
                (LinkEnd::Port(switch, port), layout.peer(switch, port), layout.link_class(switch, port))
            })
        };
        let injection = (0..endpoints).map(EndpointId).map(of_endpoint);
        let all = injection.chain((0..layout.switches()).map(SwitchId).flat_map(of_switch));
        let line = |((from, to, class), count): ((_, _, _), &LineCount)| LineUse {
            from,
            to,
            class,
            packets: count.packets,
            payload: Bytes::new(count.payload),
            wire_bits: count.wire_bits,
        };
        all.zip(&self.between.crossed[endpoints as usize..]).map(line)
    }
}

/// A host's view of its interface, while it is called.
struct Called<'a, 'c, L, H: Host> {
    network: &'a FlowNetwork<L, H>,
    between: &'a mut Between<H::Header>,
    endpoint: EndpointId,
    output: &'a mut H::Output,
    engine: &'a mut Context<'c, FlowEvent<H::Timer>, ()>,
    without: NoCapabilities,
}

impl<L: Topology + Routing + Sync, H: Host> HostContext<H> for Called<'_, '_, L, H> {
    fn now(&self) -> Time {
        self.engine.now()
    }

    fn endpoint(&self) -> EndpointId {
        self.endpoint
    }

    fn output(&mut self) -> &mut H::Output {
        self.output
    }

    fn set_timer(&mut self, at: Time, timer: H::Timer) {
        self.engine.send(FlowEvent::Timer(timer).at(self.endpoint, at));
    }

    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
        self.engine.send(FlowEvent::Timer(timer).at(endpoint, at));
    }

    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let Message { to, bytes, created_at, header, token, primitive, .. } = message;
        let Message { interface, to_interface, of_program, .. } = message;
        let from = self.endpoint;
        let posted = &mut self.between.interfaces[from.index()].posted;
        let number = *posted;
        *posted = number.wrapping_add(1);
        let (crosses, path) = self.network.path(from, to, number);
        let case = LoneCase { path, to_itself: from == to, bytes, primitive, of_program };
        let lone = match self.network.lone.of(case) {
            Ok(lone) => lone,
            Err(reason) => {
                let failure = Failure { to, number, interface, token, reason };
                self.engine.send(FlowEvent::Fail(failure).at(from, at));
                return number;
            }
        };
        self.between.interfaces[from.index()].to_post += 1;
        let place = self.between.messages.insert(UnderWay {
            from,
            to,
            number,
            bytes,
            created_at,
            header,
            token,
            to_interface,
            lone,
            crosses,
            posted_at: at,
            fluid: None,
            left: u128::from(lone.wire_bits) * PARTS_OF_A_BIT,
            since: at,
            share: BitRate::from_bits_per_second(0),
            ends_at: None,
        });
        let key = MessageKey { place: place as u32, from, number };
        self.engine.send(FlowEvent::Post(key).at(from, at));
        number
    }

    fn request_offer(&mut self) {
        self.between.ask(self.endpoint, self.engine.now(), self.engine);
    }

    fn capabilities(&mut self) -> &mut dyn Capabilities {
        &mut self.without
    }
}

impl<T: Copy> Between<T> {
    /// The host of an endpoint is asked for a message at a time, or before.
    fn ask<P: Payload>(
        &mut self,
        endpoint: EndpointId,
        at: Time,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let offer_at = &mut self.interfaces[endpoint.index()].offer_at;
        if offer_at.is_none_or(|known| at < known) {
            *offer_at = Some(at);
            engine.send(FlowEvent::Ask.at(endpoint, at));
        }
    }

    /// The interface of an endpoint gives its free channels to messages that wait.
    fn fill_channels<P: Payload>(
        &mut self,
        endpoint: EndpointId,
        channels: u32,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let interface = &mut self.interfaces[endpoint.index()];
        while interface.sending < channels
            && let Some(place) = interface.waiting.pop_front()
        {
            let UnderWay { from, number, lone, posted_at, .. } = self.messages[place as usize];
            let begins = engine.now().max(posted_at + lone.start_up).max(interface.next_begin);
            interface.next_begin = begins + lone.gap;
            interface.sending += 1;
            engine.send(FlowEvent::Begin(MessageKey { place, from, number }).at(from, begins));
        }
    }

    /// The fluid of a message begins.
    fn begin(&mut self, place: u32, now: Time) {
        let message = &mut self.messages[place as usize];
        let fluid = self.shares.begin(message.crosses.clone(), message.lone.most);
        (message.fluid, message.since) = (Some(fluid), now);
        let known = self.message_of.len().max(fluid.0 as usize + 1);
        self.message_of.resize(known, 0);
        self.message_of[fluid.0 as usize] = place;
        self.solve_at = now;
    }

    /// Takes the fluids that end now from their lines. Returns their messages.
    fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(&(time, place)) = self.ends.first()
            && time <= now
        {
            self.ends.pop_first();
            let UnderWay { fluid, lone, crosses, bytes, .. } = &mut self.messages[place as usize];
            self.shares.end(fluid.take().expect("a fluid that ends has begun"));
            for line in crosses {
                let count = &mut self.crossed[line.index()];
                count.packets += lone.packets;
                count.payload += bytes.get();
                count.wire_bits += lone.wire_bits;
            }
            ended.push(place);
        }
        ended
    }

    /// Works out the shares, and when fluids whose shares have changed will end.
    fn solve(&mut self, now: Time) {
        self.solve_at = Time::NEVER;
        // Of a fluid that has just begun all is left.
        for new in self.shares.solve() {
            let place = self.message_of[new.fluid.0 as usize];
            let message = &mut self.messages[place as usize];
            if let Some(end) = message.ends_at {
                self.ends.remove(&(end, place));
                message.left -= parts(message.share, now - message.since).min(message.left);
            }
            (message.share, message.since) = (new.share, now);
            message.ends_at = end_of(message.left, message.share, now);
            self.ends.extend(message.ends_at.map(|end| (end, place)));
        }
    }
}

/// What goes over a line at a rate in a time, in parts of a bit.
fn parts(rate: BitRate, time: Span) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.as_ps())
}

/// When a fluid of which so much is left ends; `None`: it does not move.
fn end_of(left: u128, share: BitRate, now: Time) -> Option<Time> {
    let rate = u128::from(share.bits_per_second());
    let ps = left.checked_div(rate)? + u128::from(left % rate != 0);
    Some(now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
}

impl<L: Topology + Routing + Sync, H: Host> FlowNetwork<L, H> {
    /// Calls a host with the view of its interface.
    fn call(
        &self,
        (endpoint, site): (EndpointId, &mut FlowSite<H>),
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
        call: impl FnOnce(&mut H, &H::Parameters, &mut Called<'_, '_, L, H>),
    ) {
        let FlowSite { hosts, between } = site;
        let host = &mut hosts[endpoint.index()];
        let without = NoCapabilities;
        let mut called = Called { network: self, between, endpoint, output, engine, without };
        call(host, &self.host, &mut called);
        // It may have something to offer now.
        let next = host.next_offer();
        if next < Time::NEVER {
            let at = next.max(engine.now());
            site.between.ask(endpoint, at, engine);
        }
    }

    /// Asks the host of an idle interface for a message.
    fn ask(
        &self,
        (endpoint, site): (EndpointId, &mut FlowSite<H>),
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        let now = engine.now();
        let interface = &mut site.between.interfaces[endpoint.index()];
        if interface.offer_at == Some(now) {
            interface.offer_at = None;
        }
        // It is asked again when a channel is free.
        if interface.sending + interface.to_post >= self.engine.channels || !interface.waiting.is_empty() {
            return;
        }
        match site.hosts[endpoint.index()].offer(&self.host, now) {
            Offer::Message(message) => self.call((endpoint, site), output, engine, |_, _, called| {
                called.send(message, now);
            }),
            Offer::NotBefore(time) => site.between.ask(endpoint, time, engine),
            Offer::Nothing => {}
        }
    }
}

impl<L: Topology + Routing + Sync, H: Host> Model for FlowNetwork<L, H> {
    type Payload = FlowEvent<H::Timer>;
    type Note = ();
    type Site = FlowSite<H>;
    type Output = H::Output;

    fn handle(
        &self,
        site: &mut FlowSite<H>,
        event: &Event<Self::Payload>,
        output: &mut H::Output,
        engine: &mut Context<'_, Self::Payload, ()>,
    ) {
        let endpoint = EndpointId(event.order.entity());
        match event.payload {
            FlowEvent::Start => {
                self.call((endpoint, site), output, engine, |host, own, called| host.start(own, called));
            }
            FlowEvent::Timer(timer) => {
                self.call((endpoint, site), output, engine, |host, own, called| {
                    host.timer(timer, own, called)
                });
            }
            FlowEvent::Post(MessageKey { place, .. }) => {
                let interface = &mut site.between.interfaces[endpoint.index()];
                interface.to_post -= 1;
                interface.waiting.push_back(place);
                site.between.fill_channels(endpoint, self.engine.channels, engine);
                let UnderWay { lone, token, number, .. } = site.between.messages[place as usize];
                if let (Taken::AfterPosting(after), Some(token)) = (lone.taken, token) {
                    engine.send(FlowEvent::Taken { token, number }.at(endpoint, engine.now() + after));
                }
            }
            FlowEvent::Begin(MessageKey { place, .. }) => site.between.begin(place, engine.now()),
            FlowEvent::Taken { token, .. } => {
                self.call((endpoint, site), output, engine, |host, own, called| {
                    host.sent(token, own, called)
                });
            }
            FlowEvent::Deliver(MessageKey { place, .. }) => {
                let message = site.between.messages.remove(place as usize);
                let delivered = Delivered {
                    from: message.from,
                    number: message.number,
                    bytes: message.bytes,
                    created_at: message.created_at,
                    noticed: engine.now(),
                    // The engine is none.
                    hops: (message.crosses.len() - 1) as u8,
                    header: message.header,
                    interface: message.to_interface,
                    in_mailbox: false,
                };
                self.call((endpoint, site), output, engine, |host, own, called| {
                    host.delivered(&delivered, own, called);
                });
            }
            FlowEvent::Fail(failure) => {
                self.call((endpoint, site), output, engine, |host, own, called| {
                    host.failed(&failure, own, called);
                });
            }
            FlowEvent::Ask => self.ask((endpoint, site), output, engine),
        }
    }

    fn note(&self, _: &mut FlowSite<H>, _: Time, _: Time, (): ()) {}

    fn decision(site: &FlowSite<H>) -> Time {
        let Between { solve_at, ends, .. } = &site.between;
        ends.first().map_or(*solve_at, |(end, _)| *solve_at.min(end))
    }

    fn decide(&self, site: &mut FlowSite<H>, _: &mut H::Output, engine: &mut Context<'_, Self::Payload, ()>) {
        let now = engine.now();
        let between = &mut site.between;
        for place in between.take_ended(now) {
            let UnderWay { from, to, number, lone, token, .. } = between.messages[place as usize];
            let key = MessageKey { place, from, number };
            engine.send(FlowEvent::Deliver(key).at(to, now + lone.end));
            if let (Taken::AfterFluid(after), Some(token)) = (lone.taken, token) {
                engine.send(FlowEvent::Taken { token, number }.at(from, now + after));
            }
            between.interfaces[from.index()].sending -= 1;
            between.fill_channels(from, self.engine.channels, engine);
            if site.hosts[from.index()].next_offer() < Time::NEVER {
                between.ask(from, now, engine);
            }
        }
        between.solve(now);
    }
}

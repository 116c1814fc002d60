//! The network: hosts post messages, fluids share the links, hosts are told.
//!
//! ```text
//!   host ── send ──► posted ──► waits for a channel ──► start-up ──► fluid ──► end ──► delivered ──► host
//!                                                                     ▲ │
//!                                             shares of all fluids ───┘ └─► ends at left / share
//! ```
//! What begins and ends at one instant is solved together, after all of it: see [`Shares`]. In a crowd, what
//! begins and ends within a small part of a message's time is. All endpoints
//! are one site of the engine, so that a run is the same for any number of threads and no faster by them.
//!
//! # Not modelled
//! Queues, and what comes of them: head-of-line blocking, small buffers, pauses, losses. Two messages with
//! the same sender and receiver may overtake each other where the interface sends several at a time.

use crate::lone::{DataTaken, LoneCase, LoneMessage, LoneMessages, SharedEngine};
use crate::path::{FluidPath, LineNumbers, MessageEnds, PathFinder};
use crate::shares::{FluidId, LineId, NewShare, Shares};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeSet, VecDeque};
use weft_engine::{Context, Event, InitialState, Lookahead, Model, Order, Payload, SiteId};
use weft_fabric::LinkEnd;
use weft_nic::{
    Block, BlockDeclaration, BlockKind, Capabilities, Delivered, Failure, FailureReason, Host, HostContext,
    Message, NoCapabilities, Observer as _, Offer, Stage,
};
use weft_topo::{Attachment, LinkClass, Routing, Topology};
use weft_units::{BitRate, Bytes, EndpointId, PortId, Span, SwitchId, Time};

/// Parts of a bit in which what is left of a fluid is counted: rate × time in ps is a whole number of them.
const PARTS_OF_A_BIT: u128 = 1_000_000_000_000;

/// While fluids meet all the time, shares are worked out so many times within the time that a message takes
/// alone: what begins or ends in between waits for the next solution.
const SOLUTIONS_PER_MESSAGE: u64 = 32;

/// From when a message has a channel until its fluid begins.
const START_UP: Block = Block::of(&BlockDeclaration {
    name: "start-up",
    kind: BlockKind::Pace,
    waits_for: Some("waits for a channel"),
});
/// The fluid of a message, on all its links.
const FLUID: Block = Block::of(&BlockDeclaration { name: "fluid", kind: BlockKind::Logic, waits_for: None });
/// From the end of its fluid until it is noticed.
const END: Block = Block::of(&BlockDeclaration {
    name: "end",
    kind: BlockKind::Logic,
    waits_for: Some("waits for other messages"),
});

/// A network of fluids: all that its endpoints share.
pub struct FlowNetwork<L, H: Host> {
    layout: L,
    numbers: LineNumbers,
    packet: Bytes,
    lone: Box<dyn LoneMessages>,
    engine: SharedEngine,
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
#[serde(bound = "T: Serialize + DeserializeOwned")]
struct Between<T> {
    interfaces: Vec<FluidInterface>,
    messages: Slab<UnderWay<T>>,
    shares: Shares,
    /// By number; those that have ended are left as they were.
    fluids: Vec<Fluid>,
    /// The fluids that have shares, by when they end.
    ends: BTreeSet<(Time, FluidId)>,
    /// The time of the next solution; never: nothing has changed. That of the last one.
    solve_at: Time,
    solved_at: Time,
    /// By line: fluids that will cross it and have not begun.
    planned: Vec<u32>,
    crossed: Vec<LineCount>,
}

/// A fluid: a message, or a part of one.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Fluid {
    /// The place of the message.
    message: u32,
    wire_bits: u64,
    packets: u64,
    payload: u64,
    /// The parts of a bit that are left of it at a time, and its share since.
    left: u128,
    since: Time,
    share: BitRate,
    /// The time at which it ends if its share stays; `None`: it has none.
    ends_at: Option<Time>,
}

/// Counts of a line since the counters were last reset.
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
    /// Messages that are to be posted later.
    to_post: u32,
    /// Messages that are posted and wait for a channel.
    waiting: VecDeque<u32>,
    /// Messages that hold a channel.
    sending: u32,
    /// Before this no other fluid of it begins.
    next_begin: Time,
    /// Before this no other message for it is noticed.
    next_notice: Time,
    /// The time at which its host is to be asked for a message next.
    ask_at: Option<Time>,
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
    interface: u16,
    to_interface: u16,
    /// The message as far as its times depend on it, without its path.
    case: LoneCase,
    is_watched: bool,
    posted_at: Time,
    /// Once it is posted.
    lone: LoneMessage,
    paths: Vec<Vec<LineId>>,
    begins_at: Time,
    /// Fluids of it that have not ended.
    flowing: u32,
    ended_at: Time,
}

/// An event of the network.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum FlowEvent<T> {
    /// The host begins.
    Start,
    /// A timer of the host.
    Timer(T),
    /// The interface takes a message over.
    Post(MessageHandle),
    /// The fluids of a message begin.
    Begin(MessageHandle),
    /// The data of a message is taken: the host's token, and the message's number.
    Taken {
        /// The host's name for the message.
        token: u32,
        /// The message, counted by its sender.
        number: u32,
    },
    /// The receiver notices a message.
    Deliver(MessageHandle),
    /// The host may have a message.
    Ask,
}

/// A message: its place in the list of those under way, and its name, by which events are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageHandle {
    place: u32,
    from: EndpointId,
    number: u32,
}

/// Kinds of events. **Their order decides results**: an endpoint handles those of one instant in this order.
#[derive(Clone, Copy)]
#[repr(u32)]
enum FlowEventKind {
    Deliver,
    Taken,
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
            FlowEvent::Taken { number, .. } => u128::from(*number),
        }
    }
}

impl<T> FlowEvent<T> {
    fn kind(&self) -> FlowEventKind {
        match self {
            FlowEvent::Start => FlowEventKind::Start,
            FlowEvent::Timer(_) => FlowEventKind::Timer,
            FlowEvent::Post(_) => FlowEventKind::Post,
            FlowEvent::Begin(_) => FlowEventKind::Begin,
            FlowEvent::Taken { .. } => FlowEventKind::Taken,
            FlowEvent::Deliver(_) => FlowEventKind::Deliver,
            FlowEvent::Ask => FlowEventKind::Ask,
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
    /// The other end.
    pub to: Attachment,
    /// The kind of the link.
    pub class: LinkClass,
    /// Packets that the fluids would have been that have ended.
    pub packets: u64,
    /// Their payload.
    pub payload: Bytes,
    /// Bits that they have put on the line, before its code.
    pub wire_bits: u64,
}

/// A network that is to be built.
pub struct FlowSetup<L> {
    /// Topology and routing.
    pub layout: L,
    /// The rate of each kind of link, before its code.
    pub rates: Vec<BitRate>,
    /// Payload of a packet.
    pub packet: Bytes,
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
        let FlowSetup { layout, rates, packet, lone, seed } = setup;
        let endpoints = layout.endpoints();
        let engine = lone.engine();
        let rate = |switch, port| rates[usize::from(layout.link_class(switch, port).0)];
        let injection = (0..endpoints).map(|endpoint| {
            let (switch, port) = layout.attachment(EndpointId(endpoint));
            rate(switch, port)
        });
        // In the order of `LineNumbers`.
        let mut lines = vec![engine.rate; endpoints as usize];
        lines.extend(injection);
        for switch in (0..layout.switches()).map(SwitchId) {
            lines.extend((0..layout.ports(switch)).map(|port| rate(switch, PortId(port))));
        }
        let hosts: Vec<H> = (0..endpoints).map(|endpoint| make_host(EndpointId(endpoint))).collect();
        let active = (0..endpoints).map(EndpointId).zip(&hosts).filter(|(_, host)| host.is_active());
        let events = active.map(|(endpoint, _)| FlowEvent::Start.at(endpoint, Time::ZERO)).collect();
        let between = Between {
            interfaces: vec![FluidInterface::default(); endpoints as usize],
            messages: Slab::new(),
            planned: vec![0; lines.len()],
            crossed: vec![LineCount::default(); lines.len()],
            shares: Shares::new(lines),
            fluids: Vec::new(),
            ends: BTreeSet::new(),
            solve_at: Time::NEVER,
            solved_at: Time::ZERO,
        };
        let numbers = LineNumbers::new(&layout);
        let model = FlowNetwork { layout, numbers, packet, lone, engine, seed, host };
        let sites = vec![FlowSite { hosts, between }];
        InitialState { model, sites, events, lookahead: Lookahead::UNLIMITED }
    }

    /// Topology and routing.
    pub fn layout(&self) -> &L {
        &self.layout
    }

    /// The event by which a timer of a host fires at `at`, to be inserted between runs.
    pub fn timer(&self, endpoint: EndpointId, at: Time, timer: H::Timer) -> Event<FlowEvent<H::Timer>> {
        FlowEvent::Timer(timer).at(endpoint, at)
    }

    /// The paths of a message, with its times.
    fn paths(
        &self,
        message: &UnderWay<H::Header>,
        between: &Between<H::Header>,
    ) -> (Vec<FluidPath>, Result<LoneMessage, FailureReason>) {
        let FlowNetwork { layout, numbers, packet, seed, .. } = self;
        let Between { shares, planned, .. } = between;
        let paths = PathFinder { layout, numbers, shares, planned, packet: *packet, seed: *seed };
        let UnderWay { from, to, number, .. } = *message;
        let pair = MessageEnds { from, to, number };
        let packets = message.bytes.get().div_ceil(packet.get().max(1));
        let paths = paths.of(pair, packets);
        let longest = paths.iter().map(|path| &path.classes).max_by_key(|classes| classes.len());
        let path = longest.cloned().unwrap_or_default();
        (paths, self.lone.of(LoneCase { path, ..message.case.clone() }))
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

    /// The words of messages whose fluids flow, and how much of them has come, in no particular order.
    pub fn arriving(&self) -> impl Iterator<Item = (&H::Header, Bytes)> {
        let flowing = self.between.messages.iter().filter(|(_, message)| message.flowing > 0);
        flowing.filter_map(|(_, message)| Some((message.header.as_ref()?, Bytes::ZERO)))
    }

    /// The use of every direction of every link: those that leave endpoints first, by endpoint; then those
    /// that leave switches, by switch and port.
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
        let all = all.zip(&self.between.crossed[endpoints as usize..]).map(line);
        all.filter(|line| line.to != Attachment::Nothing)
    }
}

/// An endpoint, in the site of all.
struct FluidNode<'a, H: Host> {
    endpoint: EndpointId,
    site: &'a mut FlowSite<H>,
}

/// A host's view of its interface, while it is called.
struct HostView<'a, 'c, H: Host> {
    between: &'a mut Between<H::Header>,
    endpoint: EndpointId,
    output: &'a mut H::Output,
    engine: &'a mut Context<'c, FlowEvent<H::Timer>, ()>,
    without: NoCapabilities,
}

impl<H: Host> HostContext<H> for HostView<'_, '_, H> {
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
        let Message { to, bytes, created_at, header, token, interface, to_interface, .. } = message;
        let Message { primitive, of_program, watch, .. } = message;
        let from = self.endpoint;
        let own = &mut self.between.interfaces[from.index()];
        let number = own.posted;
        own.posted = number.wrapping_add(1);
        own.to_post += 1;
        let case = LoneCase { path: Vec::new(), to_itself: from == to, bytes, primitive, of_program };
        let place = self.between.messages.insert(UnderWay {
            from,
            to,
            number,
            bytes,
            created_at,
            header,
            token,
            interface,
            to_interface,
            case,
            is_watched: watch,
            posted_at: at,
            lone: LoneMessage::default(),
            paths: Vec::new(),
            begins_at: Time::NEVER,
            flowing: 0,
            ended_at: Time::NEVER,
        });
        let key = MessageHandle { place: place as u32, from, number };
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

impl<T> Between<T> {
    /// The host of an endpoint is asked for a message at a time, or before.
    fn ask<P: Payload>(
        &mut self,
        endpoint: EndpointId,
        at: Time,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let ask_at = &mut self.interfaces[endpoint.index()].ask_at;
        if ask_at.is_none_or(|known| at < known) {
            *ask_at = Some(at);
            engine.send(FlowEvent::Ask.at(endpoint, at));
        }
    }

    /// The interface of an endpoint gives its free channels to messages that wait.
    fn fill_channels<P: Payload>(
        &mut self,
        from: EndpointId,
        channels: u32,
        engine: &mut Context<'_, FlowEvent<P>, ()>,
    ) {
        let interface = &mut self.interfaces[from.index()];
        while interface.sending < channels
            && let Some(place) = interface.waiting.pop_front()
        {
            let message = &mut self.messages[place as usize];
            let earliest = message.posted_at + message.lone.start_up;
            let begins = engine.now().max(earliest).max(interface.next_begin);
            message.begins_at = begins;
            interface.next_begin = begins + message.lone.send_gap;
            interface.sending += 1;
            let key = MessageHandle { place, from, number: message.number };
            engine.send(FlowEvent::Begin(key).at(from, begins));
        }
    }

    /// The fluids of a message begin.
    fn begin(&mut self, place: u32, now: Time) {
        let message = &mut self.messages[place as usize];
        let parts = message.paths.len() as u64;
        message.flowing = parts as u32;
        let (lone, bytes) = (message.lone, message.bytes);
        // Of what cannot be divided evenly the first parts have one more.
        let part = |whole: u64, number: u64| whole / parts + u64::from(number < whole % parts);
        for (number, path) in (0..).zip(std::mem::take(&mut message.paths)) {
            path.iter().for_each(|line| self.planned[line.index()] -= 1);
            let wire_bits = part(lone.wire_bits, number);
            let most = BitRate::from_bits_per_second(part(lone.most.bits_per_second(), number).max(1));
            let fluid = Fluid {
                message: place,
                wire_bits,
                packets: part(lone.packets, number),
                payload: part(bytes.get(), number),
                left: u128::from(wire_bits) * PARTS_OF_A_BIT,
                since: now,
                share: BitRate::from_bits_per_second(0),
                ends_at: None,
            };
            let id = self.shares.begin(path, most);
            if self.fluids.len() <= id.index() {
                self.fluids.resize(id.index() + 1, fluid);
            }
            self.fluids[id.index()] = fluid;
            self.give(id, self.shares.share(id), now);
        }
        self.solve_within(lone, now);
    }

    /// Has shares worked out where fluids have begun or ended: at this instant, or a part of such a message's
    /// time after the last solution.
    fn solve_within(&mut self, lone: LoneMessage, now: Time) {
        if self.shares.is_touched() {
            let ps =
                u128::from(lone.wire_bits) * PARTS_OF_A_BIT / u128::from(lone.most.bits_per_second().max(1));
            let pause = Span::from_ps(ps as u64 / SOLUTIONS_PER_MESSAGE);
            self.solve_at = self.solve_at.min(now.max(self.solved_at.saturating_add(pause)));
        }
    }

    /// A fluid has another share from now on.
    fn give(&mut self, id: FluidId, share: BitRate, now: Time) {
        let fluid = &mut self.fluids[id.index()];
        if let Some(end) = fluid.ends_at {
            self.ends.remove(&(end, id));
        }
        fluid.left -= parts(fluid.share, now - fluid.since).min(fluid.left);
        (fluid.share, fluid.since) = (share, now);
        fluid.ends_at = end_of(fluid.left, share, now);
        self.ends.extend(fluid.ends_at.map(|end| (end, id)));
    }

    /// Takes the fluids that end now from their lines. Returns the messages of which all have ended.
    fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(&(time, id)) = self.ends.first()
            && time <= now
        {
            self.ends.pop_first();
            let fluid = self.fluids[id.index()];
            for line in self.shares.end(id) {
                let count = &mut self.crossed[line.index()];
                count.packets += fluid.packets;
                count.payload += fluid.payload;
                count.wire_bits += fluid.wire_bits;
            }
            let message = &mut self.messages[fluid.message as usize];
            let lone = message.lone;
            message.flowing -= 1;
            if message.flowing == 0 {
                message.ended_at = now;
                ended.push(fluid.message);
            }
            self.solve_within(lone, now);
        }
        ended
    }

    /// Works out the shares, and when fluids whose shares have changed will end.
    fn solve(&mut self, now: Time) {
        self.solve_at = Time::NEVER;
        self.solved_at = now;
        for NewShare { fluid, share } in self.shares.solve() {
            self.give(fluid, share, now);
        }
    }
}

/// Parts of a bit that go over a line at a rate in a time.
fn parts(rate: BitRate, time: Span) -> u128 {
    u128::from(rate.bits_per_second()) * u128::from(time.as_ps())
}

/// The time at which a fluid ends of which so much is left; `None`: it does not move.
fn end_of(left: u128, share: BitRate, now: Time) -> Option<Time> {
    let rate = u128::from(share.bits_per_second());
    let ps = left.checked_div(rate)? + u128::from(!left.is_multiple_of(rate));
    Some(now.saturating_add(Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))))
}

impl<L: Topology + Routing + Sync, H: Host> FlowNetwork<L, H> {
    /// Calls a host with the view of its interface.
    fn call(
        &self,
        FluidNode { endpoint, site }: FluidNode<'_, H>,
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
        call: impl FnOnce(&mut H, &H::Parameters, &mut HostView<'_, '_, H>),
    ) {
        let FlowSite { hosts, between } = site;
        let host = &mut hosts[endpoint.index()];
        let mut called = HostView { between, endpoint, output, engine, without: NoCapabilities };
        call(host, &self.host, &mut called);
        // It may have something to offer now.
        let next = host.next_offer();
        if next < Time::NEVER {
            let at = next.max(engine.now());
            site.between.ask(endpoint, at, engine);
        }
    }

    /// Asks a host for a message, if none of its messages waits.
    fn ask(
        &self,
        FluidNode { endpoint, site }: FluidNode<'_, H>,
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        let now = engine.now();
        let interface = &mut site.between.interfaces[endpoint.index()];
        if interface.ask_at == Some(now) {
            interface.ask_at = None;
        }
        // It is asked again when one has got a channel.
        if interface.to_post > 0 || !interface.waiting.is_empty() {
            return;
        }
        match site.hosts[endpoint.index()].offer(&self.host, now) {
            Offer::Message(message) => {
                self.call(FluidNode { endpoint, site }, output, engine, |_, _, called| {
                    called.send(message, now);
                })
            }
            Offer::NotBefore(time) if time < Time::NEVER => site.between.ask(endpoint, time, engine),
            Offer::NotBefore(_) | Offer::Nothing => {}
        }
    }

    /// The interface takes a message over: which way it goes, and how.
    fn post(
        &self,
        FluidNode { endpoint: from, site }: FluidNode<'_, H>,
        place: u32,
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        let between = &mut site.between;
        between.interfaces[from.index()].to_post -= 1;
        let (paths, lone) = self.paths(&between.messages[place as usize], between);
        let message = &mut between.messages[place as usize];
        let UnderWay { to, number, interface, token, .. } = *message;
        match lone {
            Ok(lone) => {
                (message.lone, message.paths) = (lone, paths.into_iter().map(|path| path.lines).collect());
                message.paths.iter().flatten().for_each(|line| between.planned[line.index()] += 1);
                if let (DataTaken::AfterPosting(after), Some(token)) = (lone.taken, token) {
                    engine.send(FlowEvent::Taken { token, number }.at(from, engine.now() + after));
                }
                between.interfaces[from.index()].waiting.push_back(place);
                between.fill_channels(from, self.engine.channels, engine);
            }
            Err(reason) => {
                between.messages.remove(place as usize);
                let failure = Failure { to, number, interface, token, reason };
                self.call(FluidNode { endpoint: from, site }, output, engine, |host, own, called| {
                    host.failed(&failure, own, called)
                });
            }
        }
        self.ask_anew(FluidNode { endpoint: from, site }, engine);
    }

    /// A message of an endpoint gives its channel back.
    fn free_channel(
        &self,
        FluidNode { endpoint: from, site }: FluidNode<'_, H>,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        site.between.interfaces[from.index()].sending -= 1;
        site.between.fill_channels(from, self.engine.channels, engine);
        self.ask_anew(FluidNode { endpoint: from, site }, engine);
    }

    /// A host whose message has got a channel is asked for the next.
    fn ask_anew(
        &self,
        FluidNode { endpoint, site }: FluidNode<'_, H>,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        let next = site.hosts[endpoint.index()].next_offer();
        if next < Time::NEVER && site.between.interfaces[endpoint.index()].waiting.is_empty() {
            site.between.ask(endpoint, next.max(engine.now()), engine);
        }
    }

    /// The receiver notices a message.
    fn deliver(
        &self,
        FluidNode { endpoint: to, site }: FluidNode<'_, H>,
        MessageHandle { place, from, .. }: MessageHandle,
        output: &mut H::Output,
        engine: &mut Context<'_, FlowEvent<H::Timer>, ()>,
    ) {
        let message = site.between.messages.remove(place as usize);
        let UnderWay { number, lone, begins_at, ended_at, .. } = message;
        if message.is_watched {
            let stage = |endpoint, block, (came, began, ended)| Stage {
                endpoint,
                source: from,
                message: number,
                block,
                came,
                began,
                ended,
            };
            let noticed = engine.now();
            let waited = (message.posted_at, begins_at - lone.start_up, begins_at);
            output.stage(&stage(from, START_UP, waited));
            output.stage(&stage(from, FLUID, (begins_at, begins_at, ended_at)));
            output.stage(&stage(to, END, (ended_at, noticed - lone.end, noticed)));
        }
        let delivered = Delivered {
            from,
            number,
            bytes: message.bytes,
            created_at: message.created_at,
            noticed: engine.now(),
            hops: lone.links,
            header: message.header,
            interface: message.to_interface,
            in_mailbox: false,
        };
        self.call(FluidNode { endpoint: to, site }, output, engine, |host, own, called| {
            host.delivered(&delivered, own, called)
        });
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
        let at = FluidNode { endpoint, site: &mut *site };
        match event.payload {
            FlowEvent::Start => self.call(at, output, engine, |host, own, called| host.start(own, called)),
            FlowEvent::Timer(timer) => {
                self.call(at, output, engine, |host, own, called| host.timer(timer, own, called));
            }
            FlowEvent::Post(MessageHandle { place, .. }) => self.post(at, place, output, engine),
            FlowEvent::Begin(MessageHandle { place, .. }) => {
                site.between.begin(place, engine.now());
                if !site.between.messages[place as usize].lone.holds_channel {
                    self.free_channel(FluidNode { endpoint, site }, engine);
                }
            }
            FlowEvent::Taken { token, .. } => {
                self.call(at, output, engine, |host, own, called| host.sent(token, own, called));
            }
            FlowEvent::Deliver(key) => self.deliver(at, key, output, engine),
            FlowEvent::Ask => self.ask(at, output, engine),
        }
    }

    fn note(&self, _: &mut FlowSite<H>, _: Time, _: Time, (): ()) {}

    fn decision(site: &FlowSite<H>) -> Time {
        let Between { solve_at, ends, .. } = &site.between;
        ends.first().map_or(*solve_at, |(end, _)| *solve_at.min(end))
    }

    /// Ends fluids, and solves all that has begun and ended at this instant.
    fn decide(&self, site: &mut FlowSite<H>, _: &mut H::Output, engine: &mut Context<'_, Self::Payload, ()>) {
        let now = engine.now();
        for place in site.between.take_ended(now) {
            let between = &mut site.between;
            let UnderWay { from, to, number, lone, token, .. } = between.messages[place as usize];
            let receiver = &mut between.interfaces[to.index()];
            let noticed = (now + lone.end).max(receiver.next_notice);
            receiver.next_notice = noticed + lone.receive_gap;
            engine.send(FlowEvent::Deliver(MessageHandle { place, from, number }).at(to, noticed));
            if let (DataTaken::AfterFluid(after), Some(token)) = (lone.taken, token) {
                engine.send(FlowEvent::Taken { token, number }.at(from, now + after));
            }
            if lone.holds_channel {
                self.free_channel(FluidNode { endpoint: from, site }, engine);
            }
        }
        if site.between.solve_at <= now {
            site.between.solve(now);
        }
    }
}

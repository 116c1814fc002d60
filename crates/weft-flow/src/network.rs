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

use crate::counts::LineCount;
use crate::event::{FlowEvent, MessageHandle};
use crate::lone::{DataTaken, LoneCase, LoneMessage, LoneMessages, SharedEngine};
use crate::messages::{Between, FluidInterface, PARTS_OF_A_BIT, SpareLists, UnderWay};
use crate::path::{FluidPaths, FoundPaths, LineNumbers, MessageEnds, PathFinder};
use crate::shares::{LineId, Shares};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_engine::{Context, Event, InitialState, Lookahead, Model};
use weft_fabric::{HopRecord, LinkEnd};
use weft_nic::{
    Block, BlockDeclaration, BlockKind, Capabilities, Delivered, Failure, FailureReason, Host, HostContext,
    Message, NoCapabilities, Observer as _, Offer, Stage, TokenWhenAcknowledged,
};
use weft_topo::{Attachment, LinkClass, Routing, Topology};
use weft_units::{BitRate, Bytes, EndpointId, PortId, Span, SwitchId, Time};

/// From when a message has a channel until its fluid begins.
const START_UP: Block = Block::of(&BlockDeclaration {
    name: "start-up",
    kind: BlockKind::Pace,
    waits_for: Some("waits for a channel"),
});
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

/// The use of a line since the counters were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineUse {
    /// The end at which the link begins.
    pub from: LinkEnd,
    /// The other end.
    pub to: Attachment,
    /// The kind of the link.
    pub class: LinkClass,
    /// Packets that its fluids would have been.
    pub packets: u64,
    /// Bytes of these packets: header, payload and footer.
    pub packet_bytes: Bytes,
    /// Their payload.
    pub payload: Bytes,
    /// Bits that they have put on the line, before its code, in parts: rates in bit/s times ps.
    pub carried: u128,
}

impl LineUse {
    /// Whole bits on the line, before its code.
    pub fn wire_bits(&self) -> u64 {
        (self.carried / PARTS_OF_A_BIT) as u64
    }

    /// For how long this keeps a line busy of a rate before its code, which is not zero.
    pub fn busy(&self, rate: BitRate) -> Span {
        Span::from_ps(self.carried.checked_div(u128::from(rate.bits_per_second())).unwrap_or(0) as u64)
    }
}

/// A network that is to be built.
pub struct FlowSetup<L> {
    /// Topology and routing.
    pub layout: L,
    /// The rate of each kind of link, before its code.
    pub rates: Vec<BitRate>,
    /// Payload of a packet.
    pub packet: Bytes,
    /// Header and footer of a packet.
    pub envelope: Bytes,
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
        let FlowSetup { layout, rates, packet, envelope, lone, seed } = setup;
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
            crossed_before: Vec::new(),
            counted_from: Time::ZERO,
            envelope,
            shares: Shares::new(lines),
            streams: Slab::new(),
            fluids: Vec::new(),
            ends: BinaryHeap::new(),
            solve_at: Time::NEVER,
            solved_at: Time::ZERO,
            lately: Span::ZERO,
            spare: SpareLists::default(),
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

    /// Looks for the paths of a message, whose fluids are planned from now on, and for its times.
    ///
    /// # Errors
    /// The reason for which the interface refuses it; nothing is planned.
    fn find(&self, place: u32, between: &mut Between<H::Header>) -> Result<(), FailureReason> {
        let FlowNetwork { layout, numbers, packet, seed, .. } = self;
        let Between { shares, planned, messages, spare, .. } = between;
        let SpareLists { paths, found, .. } = spare;
        let message = &mut messages[place as usize];
        let planned = Cell::from_mut(planned.as_mut_slice()).as_slice_of_cells();
        let finder = PathFinder { layout, numbers, shares, planned, packet: *packet, seed: *seed };
        let UnderWay { from, to, number, .. } = *message;
        let packets = message.bytes.get().div_ceil(packet.get().max(1));
        found.paths = paths.pop().unwrap_or_default();
        finder.find(MessageEnds { from, to, number }, packets, found);
        let FoundPaths { longest, shortest, looked, .. } = found;
        let is_detour = longest.len() > shortest.len();
        let mut lone_on = |path: &mut Vec<LinkClass>| {
            std::mem::swap(path, &mut message.case.path);
            let lone = self.lone.of(&message.case);
            std::mem::swap(path, &mut message.case.path);
            lone
        };
        let mut lone = lone_on(longest);
        // An acknowledgement comes back without detours.
        if let (true, Ok(LoneMessage { taken: DataTaken::AfterFluid(after), end, .. })) =
            (is_detour, &mut lone)
            && let Ok(short) = lone_on(shortest)
            && let DataTaken::AfterFluid(after_short) = short.taken
        {
            *after = (*after).min(*end + after_short.saturating_sub(short.end));
        }
        if lone.is_err() {
            for (parts, lines) in found.paths.iter() {
                lines.iter().map(|line| &planned[line.index()]).for_each(|line| line.set(line.get() - parts));
            }
        }
        (message.paths, message.adapts, message.lone) = (std::mem::take(&mut found.paths), *looked, lone?);
        Ok(())
    }
}

impl<H: Host> FlowSite<H> {
    /// The hosts, by endpoint.
    pub fn hosts(&self) -> impl Iterator<Item = (EndpointId, &H)> {
        (0..).map(EndpointId).zip(&self.hosts)
    }

    /// Sets the counters of lines to zero.
    pub fn reset_counters(&mut self, now: Time) {
        self.between.reset_counters(now);
    }

    /// The time at which the counters were last reset.
    pub fn counted_from(&self) -> Time {
        self.between.counted_from
    }

    /// The words of messages whose fluids have begun, and how much of their payload has come by `now`, in no
    /// particular order.
    pub fn arriving(&self, now: Time) -> impl Iterator<Item = (&H::Header, Bytes)> {
        self.between.messages.iter().filter_map(move |(_, message)| {
            let flowing = message.flowing.iter().map(|id| self.between.streams[*id as usize].came(now));
            let came = message.came + flowing.sum::<u64>();
            Some((message.header.as_ref()?, Bytes::new(came)))
        })
    }

    /// A line whose fluids have more of it than there is; `None`: there is none.
    pub fn overfull_line(&self) -> Option<LineId> {
        self.between.shares.overfull()
    }

    /// The use of every direction of every link by now: those that leave endpoints first, by endpoint; then
    /// those that leave switches, by switch and port.
    pub fn lines<L: Topology>(&self, layout: &L, now: Time) -> impl Iterator<Item = LineUse> {
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
        let line = |((from, to, class), count): ((_, _, _), LineCount)| LineUse {
            from,
            to,
            class,
            packets: count.packets,
            packet_bytes: Bytes::new(count.packet_bytes),
            payload: Bytes::new(count.payload),
            carried: count.parts,
        };
        // The engines of endpoints come first, and are no links.
        let counts = self.between.crossed_by(now).into_iter().skip(endpoints as usize);
        let all = all.zip(counts).map(line);
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
        let Message { primitive, of_program, watch, options, .. } = message;
        let from = self.endpoint;
        let own = &mut self.between.interfaces[from.index()];
        let number = own.posted;
        own.posted = number.wrapping_add(1);
        own.to_post += 1;
        let is_acknowledged = options.get::<TokenWhenAcknowledged>().is_some();
        let (path, to_itself) = (Vec::new(), from == to);
        let case = LoneCase { path, to_itself, bytes, primitive, of_program, is_acknowledged };
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
            paths: FluidPaths::default(),
            adapts: false,
            begins_at: Time::NEVER,
            flowing: Vec::new(),
            came: 0,
            ended_at: Time::NEVER,
            stops: BTreeMap::new(),
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
        if now < interface.next_send {
            let at = interface.next_send;
            return site.between.ask(endpoint, at, engine);
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
        let found = self.find(place, between);
        let UnderWay { to, number, interface, token, lone, .. } = between.messages[place as usize];
        match found {
            Ok(()) => {
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

    /// The crossing of a message's links as that of the link that has stopped it for longest, or of its
    /// first: it waits there for what its shares were too small, and goes then as fast as it would alone.
    /// Reports follow a message from the link on which it is injected.
    fn crossing(&self, message: &UnderWay<H::Header>) -> Vec<HopRecord> {
        let UnderWay { from, to, number, lone, begins_at, ended_at, .. } = *message;
        let (switch, port) = self.layout.attachment(from);
        // Of what no line has stopped all is its own.
        let waited = (ended_at - begins_at).saturating_sub(lone.lasts());
        let bottleneck = message.bottleneck();
        let began = begins_at + bottleneck.map_or(Span::ZERO, |_| waited);
        let injection = LinkEnd::Endpoint(from);
        let hop = |from_end, to_switch, class, (began, ended)| HopRecord {
            source: from,
            destination: to,
            message: number,
            payload: message.bytes,
            is_watched: true,
            from: from_end,
            to: to_switch,
            class,
            came: begins_at,
            ready: begins_at,
            could: begins_at,
            crossed: began,
            began,
            waking: Span::ZERO,
            ended,
            free: ended,
            latency: Span::ZERO,
            routing: Span::ZERO,
        };
        let first = self.layout.link_class(switch, port);
        match bottleneck.map(|line| self.numbers.beginning(line)) {
            Some(end @ LinkEnd::Port(switch, port)) => {
                let class = self.layout.link_class(switch, port);
                let before = hop(injection, Some(switch), first, (begins_at, begins_at));
                vec![before, hop(end, None, class, (began, ended_at))]
            }
            Some(LinkEnd::Endpoint(_)) | None => vec![hop(injection, None, first, (began, ended_at))],
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
            self.crossing(&message).iter().for_each(|hop| output.hop(hop));
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
            FlowEvent::Begin(MessageHandle { place, .. }) => site.between.begin(place, engine.now()),
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
        ends.peek().map_or(*solve_at, |Reverse((end, _))| *solve_at.min(end))
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

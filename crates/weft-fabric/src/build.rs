//! Building a packet network: parameters that fit together, sites, their first events, faults of their links.

use crate::arbiter::{Grouping, RequestGroups};
use crate::channel::ChannelNumbers;
use crate::constants::{AgeBits, Constants};
use crate::credit::Credits;
use crate::endpoint::Endpoint;
use crate::event::{EventKind, Wire};
use crate::fault::{Fault, FaultParameters};
use crate::interface::{Directory, EndpointPlace, Interface};
use crate::link::{LineRate, LinkEnd, LinkKind, LinkParameters};
use crate::link_layer::{LayerKind, LayerLoad, LayerState};
use crate::multicast::{GroupError, GroupMembers, Memberships, Trees};
use crate::network::{Network, Site};
use crate::parameters::{
    BufferPer, FasterLink, FlowControl, Forwarding, PacketFormat, Speedup, SwitchKind, SwitchParameters,
};
use crate::pause::{Headroom, HeadroomRule, PAUSE_FRAME};
use crate::queue_board::{Publishing, QueueBoard};
use crate::switch::{Crossbar, CrossbarPace, InputOccupancy, OutputQueued, Peer, Port, Switch, SwitchState};
use crate::traffic_class::{TrafficClass, WHOLE_SHARE};
use crate::wake_signal::WakeSignal;
use std::collections::BTreeSet;
use weft_engine::{Event, InitialState, Lookahead, SiteId, Stream, ZeroLatencyCut};
use weft_topo::{Attachment, ChannelPlan, LinkClass, Routing, Topology, UnevenChannels};
use weft_units::{BitRate, Bytes, EndpointId, PortId, Span, SwitchId, Time};

/// Most ports of a switch: what the packet header has bits for.
const MAX_PORTS: u32 = 4096;
/// Most virtual channels of a link: a set of them is a word.
pub const MAX_CHANNELS: u32 = 64;
/// Most virtual channels of a switch, over all its ports: they are numbered in 16 bits.
const MAX_CHANNELS_OF_SWITCH: u64 = 1 << 16;

/// Parameters of a packet network.
pub struct NetworkParameters<T> {
    /// Topology and routing.
    pub layout: T,
    /// Header, footer and largest payload of packets.
    pub format: PacketFormat,
    /// Links by [`LinkClass`].
    pub links: Vec<LinkParameters>,
    /// Switches.
    pub switch: SwitchParameters,
    /// Seed of the random choices of routings and arbiters.
    pub seed: u64,
}

/// A buffer of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchBuffer {
    /// At an input.
    Input,
    /// The part of a virtual channel of that.
    PartOfInput,
    /// At an output.
    Output,
}

impl std::fmt::Display for SwitchBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SwitchBuffer::Input => "switch's input buffer",
            SwitchBuffer::PartOfInput => "virtual channel's part of the switch's input buffer",
            SwitchBuffer::Output => "switch's output buffer",
        })
    }
}

/// A network that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// A link between switches without latency.
    #[error(transparent)]
    ZeroLatency(#[from] ZeroLatencyCut),
    /// A buffer too small for a packet.
    #[error(
        "the {buffer} holds {space} and a packet takes {packet}; virtual cut-through needs room for \
         a whole packet"
    )]
    BufferTooSmall {
        /// The buffer.
        buffer: SwitchBuffer,
        /// The size of the buffer.
        space: Bytes,
        /// Bytes of the largest packet; in an input buffer counted in cells, of its whole cells.
        packet: Bytes,
    },
    /// A buffer that does not hold the head-room of a pause and a packet.
    #[error(
        "an input buffer of {space} does not hold the head-room of {headroom} behind a `{class}` link and a \
         packet of {packet}; a larger buffer makes room, or a link with less latency or a lower rate"
    )]
    HeadroomTooLarge {
        /// The kind of link.
        class: String,
        /// The buffer of a virtual channel.
        space: Bytes,
        /// The head-room.
        headroom: Bytes,
        /// Bytes of the largest packet, as it counts in the buffer.
        packet: Bytes,
    },
    /// Minimum bandwidths of classes that a link does not have together.
    #[error(
        "the minimum bandwidths of the traffic classes are {}.{:02} % of a link of {rate} together; write \
         less",
        .hundredths / 100, .hundredths % 100
    )]
    MinimaTooLarge {
        /// The rate of the link.
        rate: BitRate,
        /// Their sum in hundredths of a percent of that.
        hundredths: u64,
    },
    /// Pauses where the head-room of a buffer has no bound that is known.
    #[error(
        "pause is not modelled on links with errors that repeat packets, which keep a pause frame waiting; \
         set fabric.flow_control=credits, or give the links no errors or no replay"
    )]
    PauseWithoutBound,
    /// Links that wake ahead of packets whose way is chosen on the way.
    #[error(
        "wake-on-injection wakes the links of a packet's way ahead of it, and this routing \
         chooses the way as the packet goes; choose a routing that sends each pair of endpoints one way, \
         such as d-mod-k, ecmp or dimension-order, or write idle-timeout"
    )]
    SignalWithoutWay,
    /// Ages and leads of signals in the same bits.
    #[error(
        "wake-on-injection keeps the lead of a packet's signal where switch.arbiter=age keeps \
         its age; choose another arbiter, or write idle-timeout"
    )]
    SignalBesideAge,
    /// Signals that take several times through one switch.
    #[error(
        "the signal that wakes links takes {one} through a switch for links of one class and {other} for \
         those of another; write power.signal_delay under links.default alone"
    )]
    SignalDelays {
        /// Of a class.
        one: Span,
        /// Of another.
        other: Span,
    },
    /// A packet takes longer on a link than the model can say.
    #[error(
        "a packet of {packet} takes more than 4 ms on a `{class}` link; use smaller packets or a faster link"
    )]
    LinkTooSlow {
        /// The kind of link.
        class: String,
        /// Bytes of the largest packet.
        packet: Bytes,
    },
    /// A link layer that would repeat a packet for ever.
    #[error(
        "a packet of {packet} is more often hit by bit errors than not on a `{class}` link; let \
         links.*.bit_errors be less, or packets smaller"
    )]
    TooManyBitErrors {
        /// The kind of link.
        class: String,
        /// Bytes of the largest packet.
        packet: Bytes,
    },
    /// A replay buffer too small for a packet.
    #[error(
        "the replay buffer of `{class}` links does not hold a packet, which takes {packet} on the line; \
         write replay_buffer = \"{packet}\" or more"
    )]
    ReplayBufferTooSmall {
        /// The kind of link.
        class: String,
        /// Bytes of the largest packet on the line.
        packet: Bytes,
    },
    /// A crossbar whose time per byte needs more than 64 bits.
    #[error(
        "a crossbar {speedup} times as fast as the fastest link is not exact in 64 bits; use round rates"
    )]
    CrossbarNotExact {
        /// The speed-up.
        speedup: Speedup,
    },
    /// Queues that are published more often than switches can tell one another.
    #[error(
        "queues are published every {interval}; links between switches take {least}, and no switch knows \
         of another's sooner"
    )]
    PublishedTooOften {
        /// Between two pulses.
        interval: Span,
        /// The lookahead of the engine.
        least: Span,
    },
    /// More ports or virtual channels than the packet header has bits for.
    #[error(
        "a switch has {ports} ports and {channels} virtual channels; at most {MAX_PORTS} and \
         {MAX_CHANNELS} are supported, and fewer than {MAX_CHANNELS_OF_SWITCH} of all ports together, where \
         those of a port count as the next power of two"
    )]
    SwitchTooLarge {
        /// Ports.
        ports: u32,
        /// Virtual channels.
        channels: u32,
    },
    /// A number of virtual channels that routing and traffic classes cannot share.
    #[error(transparent)]
    UnevenChannels(#[from] UnevenChannels),
}

impl BuildError {
    /// The key of machine files to change.
    pub fn key(&self) -> &'static str {
        match self {
            BuildError::ZeroLatency(_) => "links",
            BuildError::BufferTooSmall { buffer: SwitchBuffer::Output, .. } => "switch.output_buffer",
            BuildError::BufferTooSmall { .. } | BuildError::HeadroomTooLarge { .. } => "switch.buffer",
            BuildError::CrossbarNotExact { .. } => "switch.speedup",
            BuildError::LinkTooSlow { .. } => "packet.payload",
            BuildError::PauseWithoutBound => "fabric.flow_control",
            BuildError::TooManyBitErrors { .. } => "links.*.bit_errors",
            BuildError::ReplayBufferTooSmall { .. } => "links.*.replay_buffer",
            BuildError::SwitchTooLarge { .. } => "topology",
            BuildError::PublishedTooOften { .. } => "queue_board.interval",
            BuildError::UnevenChannels(_) => "switch.virtual_channels",
            BuildError::MinimaTooLarge { .. } => "switch.classes",
            BuildError::SignalWithoutWay | BuildError::SignalBesideAge => "links.*.power.policy",
            BuildError::SignalDelays { .. } => "links.*.power.signal_delay",
        }
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Builds the network and puts an interface behind every endpoint.
    ///
    /// # Errors
    /// Parameters that do not fit together; see [`BuildError`].
    pub fn build(
        parameters: NetworkParameters<T>,
        interface: N::Parameters,
        mut make_interface: impl FnMut(EndpointId, &N::Parameters) -> N,
    ) -> Result<InitialState<Network<T, N>>, BuildError> {
        let constants = parameters.constants()?;
        let NetworkParameters { layout: topology, seed, .. } = parameters;
        let mut builder = Builder::new(&topology, &constants, |id| make_interface(id, &interface));
        (0..topology.switches()).for_each(|switch| builder.add_switch(SwitchId(switch), seed));
        let Builder { sites, events, places, used_between_switches, .. } = builder;
        let lookahead = lookahead(&constants, &used_between_switches, &topology.link_classes())?
            .with_notice(notice(&constants));
        let directory =
            Directory::new(places, lookahead.span()).with_classes(constants.switch.channels.classes);
        let model = Network { topology, constants, directory, interface };
        Ok(InitialState { model, sites, events, lookahead })
    }
}

impl<T: Topology + Routing> NetworkParameters<T> {
    /// Checks that the parameters fit together, as [`Network::build`] and [`Network::publish_queues`] do.
    ///
    /// # Errors
    /// As of these.
    pub fn check(&self, publishing: Option<Publishing>) -> Result<(), BuildError> {
        let constants = self.constants()?;
        let names = self.layout.link_classes();
        let mut used = vec![false; names.len()];
        for switch in (0..self.layout.switches()).map(SwitchId) {
            for port in (0..self.layout.ports(switch)).map(PortId) {
                if let Attachment::Switch(..) = self.layout.peer(switch, port) {
                    used[usize::from(self.layout.link_class(switch, port).0)] = true;
                }
            }
        }
        let lookahead = lookahead(&constants, &used, &names)?.with_notice(notice(&constants));
        publishing.map_or(Ok(()), |publishing| publishing.check(lookahead.span()))
    }

    /// The head-room that input buffers behind each kind of links need so that pauses lose nothing, by class.
    /// Empty where nothing pauses, or a link is too slow for the model.
    pub fn headroom(&self) -> Vec<(&str, Headroom)> {
        let NetworkParameters { layout, format, switch, .. } = self;
        let FlowControl::Pause(pause) = &switch.flow_control else { return Vec::new() };
        let largest = format.overhead() + format.payload;
        let names = layout.link_classes();
        let kinds = self.links.iter().zip(&names).map(|(link, class)| link_kind(link, class, largest));
        let Ok(links) = kinds.collect::<Result<Vec<LinkKind>, _>>() else { return Vec::new() };
        let Ok(plan) = self.plan() else { return Vec::new() };
        let rule = HeadroomRule { switch, format, links: &links, vcs: plan.total() };
        names.into_iter().zip(links.iter().map(|link| rule.of(link, pause))).collect()
    }

    /// The virtual channels of its links.
    ///
    /// # Errors
    /// A number that the routing and the traffic classes cannot share.
    pub fn plan(&self) -> Result<ChannelPlan, UnevenChannels> {
        self.switch.channels.plan(self.layout.virtual_channels())
    }

    /// The constants of the network, if its parameters fit together.
    pub(crate) fn constants(&self) -> Result<Constants, BuildError> {
        let NetworkParameters { layout, format, switch, .. } = self;
        let largest = format.overhead() + format.payload;
        let largest_space = switch.credit.taken_by(largest);
        let plan = self.plan()?;
        let vcs = plan.total();
        let classes = switch.channels.classes;
        let by_class = classes.all().iter().map(|class| switch.buffer_of_channel(class, vcs));
        let by_class: Vec<Bytes> = by_class.collect();
        by_class.iter().try_for_each(|buffer| check_buffers(switch, *buffer, largest))?;
        let buffer = |vc: u32| by_class[plan.class(vc) as usize];
        let names = layout.link_classes();
        let links = self.links.iter().zip(&names);
        let mut links: Vec<LinkKind> =
            links.map(|(link, class)| link_kind(link, class, largest)).collect::<Result<_, _>>()?;
        let counted = links.iter().map(|kind| kind.average_on_line(largest)).max().unwrap_or(largest);
        links.iter_mut().for_each(|kind| kind.carries = kind.carries_of(counted, largest));
        let crossbar = match switch.kind {
            SwitchKind::CombinedInputOutput(speedup) => {
                CrossbarPace::new(&links, speedup, largest, switch.clock)
                    .ok_or(BuildError::CrossbarNotExact { speedup })?
            }
            _ => CrossbarPace::INSTANT,
        };
        let ports = (0..layout.switches()).map(|s| layout.ports(SwitchId(s))).max().unwrap_or(0);
        let numbers = u64::from(ports) * u64::from(vcs.next_power_of_two());
        if ports > MAX_PORTS || vcs > MAX_CHANNELS || numbers >= MAX_CHANNELS_OF_SWITCH {
            return Err(BuildError::SwitchTooLarge { ports, channels: vcs });
        }
        let cuts_through =
            switch.forwarding == Forwarding::VirtualCutThrough && switch.faster_link == FasterLink::Bubble;
        let mut buffers: Vec<u32> = (0..vcs).map(|vc| switch.credit.held_by(buffer(vc))).collect();
        let thresholds = match &switch.flow_control {
            FlowControl::Credits | FlowControl::Drop => Vec::new(),
            FlowControl::Pause(_) if links.iter().any(LinkKind::repeats) => {
                return Err(BuildError::PauseWithoutBound);
            }
            FlowControl::Pause(pause) => {
                let rule = HeadroomRule { switch, format, links: &links, vcs };
                let rule = &rule;
                let of_class = links.iter().zip(&names).flat_map(|(link, class)| {
                    (0..vcs).zip(&buffers).map(move |(vc, units)| {
                        rule.thresholds(link, pause, *units).ok_or_else(|| BuildError::HeadroomTooLarge {
                            class: (*class).to_owned(),
                            space: buffer(vc),
                            headroom: rule.kept(link, pause),
                            packet: switch.credit.bytes(largest_space),
                        })
                    })
                });
                of_class.collect::<Result<_, _>>()?
            }
        };
        buffers.resize(ChannelNumbers::new(vcs).of_ports(1), 0);
        let groups = request_groups(switch, &plan, &links, largest)?;
        Ok(Constants {
            links,
            format: *format,
            overhead: format.overhead(),
            switch: match switch.flow_control {
                FlowControl::Pause(_) => SwitchParameters {
                    output_buffer: switch.output_buffer_under_pause(largest).or(switch.output_buffer),
                    ..*switch
                },
                FlowControl::Credits | FlowControl::Drop => *switch,
            },
            vcs,
            plain_channels: plan.is_plain(),
            mixes_lanes: plan.mixes_lanes(),
            groups,
            age_bits: age_bits(layout, &self.links, switch)?,
            plan,
            channels: ChannelNumbers::new(vcs),
            buffers,
            largest,
            largest_space,
            receive_buffer: None,
            thresholds,
            follows_packets: false,
            has_credits: switch.flow_control == FlowControl::Credits,
            cuts_through,
            passes: cuts_through && switch.arbiter.properties().passes_alone,
            crossbar,
            trees: Trees::default(),
            block_mask: if layout.spreads_blocks() { u32::MAX } else { 0 },
            board: QueueBoard::NONE,
            congestion: None,
            reroutes: None,
        })
    }
}

/// The use of the bits of a packet's age.
fn age_bits(
    layout: &impl Routing,
    links: &[LinkParameters],
    switch: &SwitchParameters,
) -> Result<AgeBits, BuildError> {
    let keeps_ages = switch.arbiter.properties().keeps_ages;
    match WakeSignal::new(links)? {
        None => Ok(if keeps_ages { AgeBits::Age } else { AgeBits::Unused }),
        Some(_) if keeps_ages => Err(BuildError::SignalBesideAge),
        Some(_) if !layout.is_deterministic() => Err(BuildError::SignalWithoutWay),
        Some(signal) => Ok(AgeBits::Lead(signal)),
    }
}

/// The groups of requests that the arbiter of a switch tells apart: priorities from the highest down, or
/// traffic classes.
fn request_groups(
    switch: &SwitchParameters,
    plan: &ChannelPlan,
    links: &[LinkKind],
    largest: Bytes,
) -> Result<RequestGroups, BuildError> {
    let classes = switch.channels.classes;
    let channels = |class: u32| plan.of_class(class).fold(0u64, |bits, vc| bits | 1 << vc.min(63));
    let by_class: Vec<(u64, &TrafficClass)> = (0..).map(channels).zip(classes.all()).collect();
    let grouping = switch.arbiter.properties().grouping;
    let groups = match grouping {
        Grouping::None => Vec::new(),
        Grouping::Priorities => {
            let priorities: BTreeSet<u8> = classes.all().iter().map(|class| class.priority).collect();
            let of = |priority| by_class.iter().filter(move |(_, class)| class.priority == priority);
            let channels = |priority| of(priority).fold(0, |bits, (channels, _)| bits | channels);
            priorities.iter().rev().map(|&priority| (channels(priority), 1)).collect()
        }
        Grouping::Weights | Grouping::Shares => {
            by_class.iter().map(|(channels, class)| (*channels, class.weight.into())).collect()
        }
    };
    let groups = RequestGroups::new(plan.total(), groups);
    if grouping != Grouping::Shares {
        return Ok(groups);
    }
    let mut shares = Vec::new();
    for link in links {
        let rate = link.rate.bit_rate();
        let of_class = |class: &TrafficClass| class.minimum.share(rate);
        let sum = classes.all().iter().map(of_class).fold(0, u64::saturating_add);
        if sum > WHOLE_SHARE.into() {
            return Err(BuildError::MinimaTooLarge { rate, hundredths: sum });
        }
        let share = |class: usize| classes.all().get(class).map_or(0, |class| of_class(class) as u32);
        shares.push(std::array::from_fn(share));
    }
    let priorities = classes.all().iter().map(|class| class.priority).collect();
    Ok(groups.with_shares(priorities, shares, largest.get()))
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Gives the network, before the run begins, multicast groups of these members, numbered in their order.
    ///
    /// # Errors
    /// Switches that are too large to copy packets.
    pub fn with_groups(
        initial: InitialState<Network<T, N>>,
        groups: Vec<GroupMembers>,
    ) -> Result<InitialState<Network<T, N>>, GroupError> {
        let InitialState { mut model, sites, events, lookahead } = initial;
        let constants = &mut model.constants;
        let links = sites.iter().map(|site: &Site<N>| site.switch.state().links()).max().unwrap_or(0);
        // Requests are numbered in 16 bits, and each output's replication port adds as many as an input.
        if constants.channels.of_ports(2 * links) > usize::from(u16::MAX) {
            return Err(GroupError::SwitchTooLarge { ports: links as u32, channels: constants.vcs });
        }
        model.directory.set_groups(Memberships::new(groups.clone()));
        constants.trees = Trees::new(Memberships::new(groups));
        let with_replication = |site: Site<N>| {
            let Site { switch, endpoints, endpoint_ports } = site;
            Site { switch: switch.with_replication(&model.constants), endpoints, endpoint_ports }
        };
        let sites = sites.into_iter().map(with_replication).collect();
        Ok(InitialState { model, sites, events, lookahead })
    }
}

/// The lookahead between switches that are joined by links of the classes in `used`.
fn lookahead(constants: &Constants, used: &[bool], names: &[&str]) -> Result<Lookahead, BuildError> {
    let cuts = used.iter().enumerate().filter(|(_, used)| **used);
    Ok(Lookahead::across(cuts.map(|(class, _)| (constants.links[class].latency, names[class])))?)
}

impl Publishing {
    /// Checks that no switch is to know of another's queues sooner than it can: `least` is the lookahead,
    /// which is unlimited where there is no other switch.
    fn check(self, least: Span) -> Result<(), BuildError> {
        match self.interval {
            interval if interval < least && least < Span::MAX => {
                Err(BuildError::PublishedTooOften { interval, least })
            }
            _ => Ok(()),
        }
    }
}

impl<T: Topology + Routing, N: Interface> Network<T, N> {
    /// Lets all switches publish their queues, before the run begins.
    ///
    /// # Errors
    /// An interval shorter than the lookahead: nothing is known of another switch sooner.
    pub fn publish_queues(&mut self, publishing: Publishing) -> Result<(), BuildError> {
        publishing.check(self.directory.lookahead())?;
        let switches = (0..self.topology.switches()).map(SwitchId);
        let ports = switches.map(|switch| self.topology.ports(switch) as usize);
        self.constants.board = QueueBoard::new(publishing, ports);
        Ok(())
    }
}

/// Checks that the buffers of a switch hold the largest packet: its input buffer has `room` for a virtual
/// channel.
fn check_buffers(switch: &SwitchParameters, space: Bytes, largest: Bytes) -> Result<(), BuildError> {
    let in_credits = switch.credit.bytes(switch.credit.taken_by(largest));
    if space < in_credits {
        let buffer = match switch.buffer_per {
            BufferPer::Channel => SwitchBuffer::Input,
            BufferPer::Port => SwitchBuffer::PartOfInput,
        };
        return Err(BuildError::BufferTooSmall { buffer, space, packet: in_credits });
    }
    match switch.output_buffer {
        Some(space) if space < largest => {
            Err(BuildError::BufferTooSmall { buffer: SwitchBuffer::Output, space, packet: largest })
        }
        _ => Ok(()),
    }
}

/// A kind of link, made ready. The time of the largest packet must fit 31 bits of picoseconds.
fn link_kind(link: &LinkParameters, class: &str, largest: Bytes) -> Result<LinkKind, BuildError> {
    let LinkParameters { latency, routing, framing, layer, .. } = *link;
    let rate = LineRate::new(link.rate, link.code)
        .filter(|rate| rate.span(layer.most_on_line(largest, framing)).as_ps() < u64::from(u32::MAX) / 2)
        .ok_or(BuildError::LinkTooSlow { class: class.to_owned(), packet: largest })?;
    let load = LayerLoad { rate: (link.rate, rate), latency, framing, packet: largest };
    let framed = layer.framed;
    let layer = LayerKind::new(&layer, &load);
    if layer.as_ref().is_some_and(LayerKind::is_hopeless) {
        return Err(BuildError::TooManyBitErrors { class: class.to_owned(), packet: largest });
    }
    if let Some(packet) = layer.as_ref().and_then(LayerKind::lacks_space_for) {
        return Err(BuildError::ReplayBufferTooSmall { class: class.to_owned(), packet });
    }
    let special = layer.as_ref().map_or(0, LayerKind::special);
    let bit_rate = rate.bit_rate();
    let (carries, layer) = (bit_rate, layer.map(Box::new));
    Ok(LinkKind { rate, bit_rate, carries, latency, routing, framing, framed, special, layer })
}

/// The sites of a network, while they are built.
struct Builder<'a, T, N: Interface, F> {
    layout: &'a T,
    constants: &'a Constants,
    make_interface: F,
    sites: Vec<Site<N>>,
    events: Vec<Event<Wire<N::Timer, N::Announcement>>>,
    /// By endpoint.
    places: Vec<EndpointPlace>,
    /// By class of links: whether two switches are joined by one.
    used_between_switches: Vec<bool>,
}

impl<'a, T: Topology, N: Interface, F: FnMut(EndpointId) -> N> Builder<'a, T, N, F> {
    fn new(layout: &'a T, constants: &'a Constants, make_interface: F) -> Builder<'a, T, N, F> {
        let nowhere = EndpointPlace { site: SiteId(0), index: 0 };
        Builder {
            layout,
            constants,
            make_interface,
            sites: Vec::with_capacity(layout.switches() as usize),
            events: Vec::new(),
            places: vec![nowhere; layout.endpoints() as usize],
            used_between_switches: vec![false; constants.links.len()],
        }
    }

    /// Adds a switch with its endpoints.
    fn add_switch(&mut self, switch: SwitchId, seed: u64) {
        let channels = self.constants.channels;
        let count = self.layout.ports(switch) as usize;
        let mut ports = Vec::with_capacity(count);
        let mut credits = Vec::with_capacity(channels.of_ports(count));
        let (mut endpoints, mut endpoint_ports) = (Vec::new(), Vec::new());
        let mut layers = Vec::new();
        for port in (0..count as u32).map(PortId) {
            let class = self.layout.link_class(switch, port);
            let (peer, is_counted) = match self.layout.peer(switch, port) {
                Attachment::Switch(other, other_port) => {
                    self.used_between_switches[usize::from(class.0)] = true;
                    let peer = Peer::Switch { site: other.0, port: other_port.0 as u16 };
                    (peer, true)
                }
                Attachment::Endpoint(id) => {
                    let place = EndpointPlace { site: SiteId(switch.0), index: endpoints.len() as u32 };
                    let mut endpoint = self.endpoint(id, place, class);
                    let rng = Stream::new(seed, id.0.into(), PURPOSE_INJECTION_LAYER);
                    endpoint.layer = self.layer(class, rng).map(Box::new);
                    endpoints.push(endpoint);
                    endpoint_ports.push(port.0 as u16);
                    (Peer::Endpoint(place.index), false)
                }
                Attachment::Nothing => (Peer::Nothing, false),
            };
            ports.push(Port::new(peer, class));
            let link = u64::from(switch.0) << 32 | u64::from(port.0);
            layers.push(self.layer(class, Stream::new(seed, link, PURPOSE_LINK_LAYER)));
            // Numbers of channels beyond those that there are belong to none.
            let of_channel = |vc: usize| match is_counted && vc < self.constants.vcs as usize {
                true => self.constants.initial_credits(vc as u8),
                false => Credits::UNLIMITED,
            };
            credits.extend((0..channels.of_ports(1)).map(of_channel));
        }
        let rng = Stream::new(seed, switch.0.into(), PURPOSE_SWITCH);
        let mut state = SwitchState::new((switch, self.layout.switch_address(switch)), ports, credits, rng);
        if layers.iter().any(Option::is_some) {
            state.takes_care = layers.iter().flatten().any(LayerState::gives_credits);
            state.layers = layers.into_iter().map(Option::unwrap_or_default).collect();
        }
        if !self.constants.has_credits {
            state.occupancy = Some(Box::new(InputOccupancy::new(count, channels.of_ports(count))));
            state.takes_care = true;
        }
        state.takes_care |= self.constants.age_bits != AgeBits::Unused;
        let switch = self.switch(state);
        self.sites.push(Site { switch, endpoints: endpoints.into(), endpoint_ports: endpoint_ports.into() });
    }

    /// The link layer of a sender of a class of links; `None`: it adds nothing.
    fn layer(&self, class: LinkClass, rng: Stream) -> Option<LayerState> {
        let layer = self.constants.link(class).layer.as_ref();
        layer.map(|kind| LayerState::new(kind, rng))
    }

    /// An endpoint, which begins if its interface is active.
    fn endpoint(&mut self, id: EndpointId, place: EndpointPlace, link: LinkClass) -> Endpoint<N> {
        self.places[id.index()] = place;
        let endpoint = Endpoint::new(id, (self.make_interface)(id), (link, self.constants));
        if endpoint.interface.is_active() {
            self.events.push(place.event(EventKind::Start, Time::ZERO, Wire::Start));
        }
        endpoint
    }

    /// A switch of the machine's kind.
    fn switch(&self, state: SwitchState) -> Switch {
        let channels = self.constants.channels;
        let arbiter = state.arbiter_state(self.constants);
        match self.constants.switch.kind {
            SwitchKind::InputQueued => Switch::InputQueued(Crossbar::new(state, arbiter, channels)),
            SwitchKind::VirtualOutputQueued => {
                Switch::VirtualOutputQueued(Crossbar::new(state, arbiter, channels))
            }
            SwitchKind::OutputQueued => Switch::OutputQueued(OutputQueued::new(state, arbiter, channels)),
            SwitchKind::CombinedInputOutput(_) => {
                Switch::Combined(Crossbar::new(state.with_output_buffers(), arbiter, channels))
            }
        }
    }
}

/// Time between the grant that makes a packet or a credit leave a switch, and its leaving. The packet has the
/// pipeline before it, and its credit at least the shortest packet's time on the fastest line or through the
/// crossbar. A switch with output queues gives credits at once. A pause frame is known its own time before it
/// has left, and the response time before it counts.
fn notice(constants: &Constants) -> Span {
    let Constants { switch, format, links, crossbar, .. } = constants;
    let on_line = |link: &LinkKind| link.shortest(format.overhead());
    let leaving = match switch.kind {
        SwitchKind::InputQueued | SwitchKind::VirtualOutputQueued => {
            links.iter().map(on_line).min().unwrap_or(Span::ZERO)
        }
        SwitchKind::CombinedInputOutput(_) => crossbar.span(format.overhead()),
        SwitchKind::OutputQueued => return Span::ZERO,
    };
    let pipeline = switch.clock.cycles(u64::from(switch.pipeline_cycles));
    let leaving = match &switch.flow_control {
        FlowControl::Credits => leaving,
        FlowControl::Drop => Span::MAX,
        FlowControl::Pause(pause) => {
            let frame = |link: &LinkKind| link.rate.span(PAUSE_FRAME + link.framing);
            let frame = links.iter().map(frame).min().unwrap_or(Span::ZERO);
            frame + constants.pause_known_after(pause)
        }
    };
    // Both are rounded up, once per packet or clock edge.
    Span::from_ps(pipeline.min(leaving).as_ps().saturating_sub(1))
}

const PURPOSE_SWITCH: u32 = 1;
const PURPOSE_LINK_FAULTS: u32 = 2;
const PURPOSE_INJECTION_FAULTS: u32 = 3;
const PURPOSE_LINK_LAYER: u32 = 21;
const PURPOSE_INJECTION_LAYER: u32 = 22;

impl<T: Topology, N: Interface> Network<T, N> {
    /// Has each link reported that any packet crosses, before the run begins.
    pub fn follow_packets(&mut self, sites: &mut [Site<N>]) {
        self.constants.follows_packets = true;
        sites.iter_mut().for_each(|site| site.switch.state_mut().takes_care = true);
    }
}

impl<T: Topology, N: Interface> Network<T, N> {
    /// Makes links fail, before the run begins: `faults` says how for each direction of each link, by where
    /// it begins, where it ends and its kind. Each has random numbers of its own under `seed`.
    pub fn inject_faults(
        &self,
        sites: &mut [Site<N>],
        seed: u64,
        mut faults: impl FnMut(LinkEnd, Attachment, LinkClass) -> FaultParameters,
    ) {
        let layout = &self.topology;
        for (site, index) in sites.iter_mut().zip(0..) {
            let switch = SwitchId(index);
            for (endpoint, &port) in site.endpoints.iter_mut().zip(&site.endpoint_ports) {
                let port = PortId(port.into());
                let to = Attachment::Switch(switch, port);
                let parameters = faults(LinkEnd::Endpoint(endpoint.id), to, layout.link_class(switch, port));
                let rng = Stream::new(seed, endpoint.id.0.into(), PURPOSE_INJECTION_FAULTS);
                endpoint.fault = (!parameters.is_none()).then(|| Box::new(Fault::new(parameters, rng)));
            }
            let state = site.switch.state_mut();
            let of_port = (0..state.links() as u32).map(|port| {
                let to = layout.peer(switch, PortId(port));
                let class = layout.link_class(switch, PortId(port));
                let parameters = faults(LinkEnd::Port(switch, PortId(port)), to, class);
                let link = u64::from(index) << 32 | u64::from(port);
                Fault::new(parameters, Stream::new(seed, link, PURPOSE_LINK_FAULTS))
            });
            let of_port: Vec<Fault> = of_port.collect();
            state.takes_care |= of_port.iter().any(|fault| !fault.is_none());
            state.faults =
                if of_port.iter().any(|fault| !fault.is_none()) { of_port.into() } else { Box::default() };
        }
    }
}

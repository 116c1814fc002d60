//! Building a packet network: parameters that fit together, sites, their first events, faults of their links.

use crate::arbiter::{ArbiterState, RequestGroups};
use crate::channel::Channels;
use crate::constants::Constants;
use crate::credit::Credits;
use crate::endpoint::Endpoint;
use crate::event::{EventKind, Wire};
use crate::fault::{Fault, FaultParameters};
use crate::interface::{Directory, EndpointPlace, Interface};
use crate::link::{LineRate, LinkEnd, LinkKind, LinkParameters};
use crate::network::{Network, Site};
use crate::parameters::{
    ArbiterKind, BufferPer, ChannelParameters, FasterLink, FlowControl, Forwarding, PacketFormat, SwitchKind,
    SwitchParameters,
};
use crate::pause::{Headroom, HeadroomRule, PAUSE_FRAME};
use crate::switch::{Crossbar, Gauges, OutputQueued, Peer, Port, Ports, Switch};
use crate::traffic_class::TrafficClass;
use std::collections::BTreeSet;
use weft_engine::{Event, InitialState, Lookahead, SiteId, Stream, ZeroLatencyCut};
use weft_topo::{Attachment, ChannelPlan, LinkClass, Routing, Topology, UnevenChannels};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

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

/// A network that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// A link between switches without latency.
    #[error(transparent)]
    ZeroLatency(#[from] ZeroLatencyCut),
    /// A buffer too small for a packet.
    #[error(
        "the {buffer} holds {room} and a packet takes {packet}; virtual cut-through needs room for \
         a whole packet"
    )]
    BufferTooSmall {
        /// The buffer.
        buffer: &'static str,
        /// The size of the buffer.
        room: Bytes,
        /// Bytes of the largest packet; in an input buffer counted in cells, of its whole cells.
        packet: Bytes,
    },
    /// A buffer that does not hold the head-room of a pause and a packet.
    #[error(
        "an input buffer of {room} does not hold the head-room of {headroom} behind a `{class}` link and a \
         packet of {packet}"
    )]
    HeadroomTooLarge {
        /// The kind of link.
        class: String,
        /// The buffer of a virtual channel.
        room: Bytes,
        /// The head-room.
        headroom: Bytes,
        /// Bytes of the largest packet, as it counts in the buffer.
        packet: Bytes,
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
        let NetworkParameters { layout: topology, switch, seed, .. } = parameters;
        let mut builder = Builder::new(&topology, &constants, |id| make_interface(id, &interface));
        (0..topology.switches()).for_each(|switch| builder.add_switch(SwitchId(switch), seed));
        let Builder { sites, events, places, used_between_switches, .. } = builder;
        let lookahead = lookahead(&constants, &used_between_switches, &topology.link_classes())?
            .with_notice(notice(&switch, &constants));
        let directory = Directory::new(places, lookahead.span());
        let model = Network { topology, constants, directory, interface };
        Ok(InitialState { model, sites, events, lookahead })
    }
}

impl<T: Topology + Routing> NetworkParameters<T> {
    /// Checks that the parameters fit together, as [`Network::build`] does.
    ///
    /// # Errors
    /// As of [`Network::build`].
    pub fn check(&self) -> Result<(), BuildError> {
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
        lookahead(&constants, &used, &names).map(drop)
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
        let ChannelParameters { total, lane, classes } = self.switch.channels;
        ChannelPlan::new(total, self.layout.virtual_channels(), classes.count(), lane)
    }

    /// The constants of the network, if its parameters fit together.
    fn constants(&self) -> Result<Constants, BuildError> {
        let NetworkParameters { layout, format, switch, .. } = self;
        let largest = format.overhead() + format.payload;
        let largest_room = switch.credit.taken_by(largest);
        let plan = self.plan()?;
        let vcs = plan.total();
        let buffer = switch.buffer_of_channel(vcs);
        check_buffers(switch, buffer, largest)?;
        let names = layout.link_classes();
        let links = self.links.iter().zip(&names);
        let links: Vec<LinkKind> =
            links.map(|(link, class)| link_kind(link, class, largest)).collect::<Result<_, _>>()?;
        let ports = (0..layout.switches()).map(|s| layout.ports(SwitchId(s))).max().unwrap_or(0);
        let numbers = u64::from(ports) * u64::from(vcs.next_power_of_two());
        if ports > MAX_PORTS || vcs > MAX_CHANNELS || numbers >= MAX_CHANNELS_OF_SWITCH {
            return Err(BuildError::SwitchTooLarge { ports, channels: vcs });
        }
        let cuts_through =
            switch.forwarding == Forwarding::VirtualCutThrough && switch.faster_link == FasterLink::Bubble;
        let units = switch.credit.held_by(buffer);
        let thresholds = match &switch.flow_control {
            FlowControl::Credits | FlowControl::Drop => Vec::new(),
            FlowControl::Pause(pause) => {
                let rule = HeadroomRule { switch, format, links: &links, vcs };
                let of_class = links.iter().zip(&names).map(|(link, class)| {
                    rule.thresholds(link, pause, units).ok_or_else(|| BuildError::HeadroomTooLarge {
                        class: (*class).to_owned(),
                        room: buffer,
                        headroom: rule.kept(link, pause),
                        packet: switch.credit.bytes(largest_room),
                    })
                });
                of_class.collect::<Result<_, _>>()?
            }
        };
        Ok(Constants {
            links,
            format: *format,
            switch: *switch,
            vcs,
            plain_channels: plan.is_plain(),
            mixes_lanes: plan.mixes_lanes(),
            groups: request_groups(switch, &plan),
            keeps_ages: switch.arbiter == ArbiterKind::Age,
            plan,
            channels: Channels::new(vcs),
            buffer: units,
            largest_room,
            thresholds,
            has_credits: switch.flow_control == FlowControl::Credits,
            cuts_through,
            passes: cuts_through && matches!(switch.arbiter, ArbiterKind::RoundRobin | ArbiterKind::Age),
        })
    }
}

/// The groups of requests that the arbiter of a switch tells apart: priorities from the highest down, or
/// traffic classes.
fn request_groups(switch: &SwitchParameters, plan: &ChannelPlan) -> RequestGroups {
    let classes = switch.channels.classes;
    let channels = |class: u32| plan.of_class(class).fold(0u64, |bits, vc| bits | 1 << vc.min(63));
    let by_class: Vec<(u64, &TrafficClass)> = (0..).map(channels).zip(classes.all()).collect();
    let groups = match switch.arbiter {
        ArbiterKind::StrictPriority => {
            let priorities: BTreeSet<u8> = classes.all().iter().map(|class| class.priority).collect();
            let of = |priority| by_class.iter().filter(move |(_, class)| class.priority == priority);
            let channels = |priority| of(priority).fold(0, |bits, (channels, _)| bits | channels);
            priorities.iter().rev().map(|&priority| (channels(priority), 1)).collect()
        }
        ArbiterKind::WeightedRoundRobin => {
            by_class.iter().map(|(channels, class)| (*channels, class.weight.into())).collect()
        }
        _ => Vec::new(),
    };
    RequestGroups::new(plan.total(), groups)
}

/// The lookahead between switches that are joined by links of the classes in `used`.
fn lookahead(constants: &Constants, used: &[bool], names: &[&str]) -> Result<Lookahead, BuildError> {
    let cuts = used.iter().enumerate().filter(|(_, used)| **used);
    Ok(Lookahead::across(cuts.map(|(class, _)| (constants.links[class].latency, names[class])))?)
}

/// Checks that the buffers of a switch hold the largest packet: its input buffer has `room` for a virtual
/// channel.
fn check_buffers(switch: &SwitchParameters, room: Bytes, largest: Bytes) -> Result<(), BuildError> {
    let in_credits = switch.credit.bytes(switch.credit.taken_by(largest));
    if room < in_credits {
        let buffer = match switch.buffer_per {
            BufferPer::Channel => "switch's input buffer",
            BufferPer::Port => "virtual channel's part of the switch's input buffer",
        };
        return Err(BuildError::BufferTooSmall { buffer, room, packet: in_credits });
    }
    match switch.output_buffer {
        Some(room) if room < largest => {
            Err(BuildError::BufferTooSmall { buffer: "switch's output buffer", room, packet: largest })
        }
        _ => Ok(()),
    }
}

/// A kind of link, made ready. The time of the largest packet must fit 31 bits of picoseconds.
fn link_kind(link: &LinkParameters, class: &str, largest: Bytes) -> Result<LinkKind, BuildError> {
    let rate = LineRate::new(link.rate, link.code)
        .filter(|rate| rate.span(largest + link.framing).as_ps() < u64::from(u32::MAX) / 2)
        .ok_or(BuildError::LinkTooSlow { class: class.to_owned(), packet: largest })?;
    let LinkParameters { latency, routing, framing, .. } = *link;
    Ok(LinkKind { rate, latency, routing, framing })
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
        for port in (0..count as u32).map(PortId) {
            let class = self.layout.link_class(switch, port);
            let (peer, of_channel) = match self.layout.peer(switch, port) {
                Attachment::Switch(other, other_port) => {
                    self.used_between_switches[usize::from(class.0)] = true;
                    let peer = Peer::Switch { site: other.0, port: other_port.0 as u16 };
                    (peer, self.constants.initial_credits())
                }
                Attachment::Endpoint(id) => {
                    let place = EndpointPlace { site: SiteId(switch.0), index: endpoints.len() as u32 };
                    endpoints.push(self.endpoint(id, place));
                    endpoint_ports.push(port.0 as u16);
                    (Peer::Endpoint(place.index), Credits::UNLIMITED)
                }
                Attachment::Nothing => (Peer::Nothing, Credits::UNLIMITED),
            };
            ports.push(Port::new(peer, class));
            credits.extend(std::iter::repeat_n(of_channel, channels.of_ports(1)));
        }
        let dice = Stream::new(seed, switch.0.into(), PURPOSE_SWITCH);
        let mut ports = Ports::new((switch, self.layout.switch_address(switch)), ports, credits, dice);
        if !self.constants.has_credits {
            ports.gauges = Some(Box::new(Gauges::new(count, channels.of_ports(count))));
            ports.takes_care = true;
        }
        ports.takes_care |= self.constants.keeps_ages;
        let switch = self.switch(ports);
        self.sites.push(Site { switch, endpoints: endpoints.into(), endpoint_ports: endpoint_ports.into() });
    }

    /// An endpoint, which begins if its interface is active.
    fn endpoint(&mut self, id: EndpointId, place: EndpointPlace) -> Endpoint<N> {
        self.places[id.index()] = place;
        let endpoint = Endpoint::new(id, (self.make_interface)(id), self.constants);
        if endpoint.interface.is_active() {
            self.events.push(place.event(EventKind::Start, Time::ZERO, Wire::Start));
        }
        endpoint
    }

    /// A switch of the machine's kind.
    fn switch(&self, ports: Ports) -> Switch {
        let SwitchParameters { kind, arbiter, .. } = self.constants.switch;
        let channels = self.constants.channels;
        let state = ArbiterState::new(arbiter, ports.ports.len(), &self.constants.groups);
        match kind {
            SwitchKind::InputQueued => Switch::InputQueued(Crossbar::new(ports, state, channels)),
            SwitchKind::VirtualOutputQueued => {
                Switch::VirtualOutputQueued(Crossbar::new(ports, state, channels))
            }
            SwitchKind::OutputQueued => Switch::OutputQueued(OutputQueued::new(ports, state, channels)),
        }
    }
}

/// Time between the grant that makes a packet or a credit leave a switch, and its leaving. The packet has the
/// pipeline before it, and its credit at least the shortest packet's time on the fastest line. A switch with
/// output queues gives credits at once. A pause frame is known its own time before it has left, and the
/// response time before it counts.
fn notice(switch: &SwitchParameters, constants: &Constants) -> Span {
    let Constants { format, links, .. } = constants;
    if switch.kind == SwitchKind::OutputQueued {
        return Span::ZERO;
    }
    let shortest = |link: &LinkKind| link.rate.span(format.overhead() + link.framing);
    let on_line = links.iter().map(shortest).min().unwrap_or(Span::ZERO);
    let pipeline = switch.clock.cycles(u64::from(switch.pipeline_cycles));
    let on_line = match &switch.flow_control {
        FlowControl::Credits => on_line,
        FlowControl::Drop => Span::MAX,
        FlowControl::Pause(pause) => {
            let frame = |link: &LinkKind| link.rate.span(PAUSE_FRAME + link.framing);
            let frame = links.iter().map(frame).min().unwrap_or(Span::ZERO);
            frame + constants.pause_known_after(pause)
        }
    };
    // Both are rounded up, once per packet or clock edge.
    Span::from_ps(pipeline.min(on_line).as_ps().saturating_sub(1))
}

const PURPOSE_SWITCH: u32 = 1;
const PURPOSE_LINK_FAULTS: u32 = 2;
const PURPOSE_INJECTION_FAULTS: u32 = 3;

impl<T: Topology, N: Interface> Network<T, N> {
    /// Makes links fail, before the run begins: `faults` says how for each direction of each link, by where
    /// it begins, where it ends and its kind. Each has dice of its own under `seed`.
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
                let dice = Stream::new(seed, endpoint.id.0.into(), PURPOSE_INJECTION_FAULTS);
                endpoint.fault = (!parameters.is_none()).then(|| Box::new(Fault::new(parameters, dice)));
            }
            let ports = site.switch.ports_mut();
            let of_port = (0..ports.ports.len() as u32).map(|port| {
                let to = layout.peer(switch, PortId(port));
                let class = layout.link_class(switch, PortId(port));
                let parameters = faults(LinkEnd::Port(switch, PortId(port)), to, class);
                let link = u64::from(index) << 32 | u64::from(port);
                Fault::new(parameters, Stream::new(seed, link, PURPOSE_LINK_FAULTS))
            });
            let of_port: Vec<Fault> = of_port.collect();
            ports.takes_care |= of_port.iter().any(|fault| !fault.is_none());
            ports.faults =
                if of_port.iter().any(|fault| !fault.is_none()) { of_port.into() } else { Box::default() };
        }
    }
}

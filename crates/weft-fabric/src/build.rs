//! Building a packet network: parameters that fit together, sites, what begins it, faults of its links.

use crate::endpoint::Endpoint;
use crate::fault::{Fault, FaultParameters};
use crate::interface::{Directory, Interface};
use crate::network::{LinkEnd, Network, Site};
use crate::packet::{Wire, kind};
use crate::parameters::{
    ArbiterKind, FasterLink, Forwarding, LinkParameters, PacketFormat, SwitchKind, SwitchParameters,
};
use crate::switch::{Crossbar, LinkKind, OutputQueued, Peer, Port, Ports, Rules, Switch, UNLIMITED};
use weft_engine::{Event, Lookahead, Order, SiteId, Stream, ZeroLatencyCut};
use weft_topo::{Attachment, LinkClass, Routing, Topology};
use weft_units::{Bytes, EndpointId, LineRate, PortId, Span, SwitchId, Time};

/// Most ports of a switch: what the packet header has bits for.
const MOST_PORTS: u32 = 4096;
/// Most virtual channels of a link.
pub(crate) const MOST_CHANNELS: u32 = 16;

/// What a packet network is built of.
pub struct NetworkParameters<T> {
    /// Topology and routing.
    pub layout: T,
    /// What packets look like.
    pub format: PacketFormat,
    /// Links by [`LinkClass`].
    pub links: Vec<LinkParameters>,
    /// Switches.
    pub switch: SwitchParameters,
    /// For random choices of routings and arbiters.
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
        "the {buffer} holds {room} and a packet takes {packet}; virtual cut-through needs room for a whole packet"
    )]
    BufferTooSmall {
        /// Which buffer.
        buffer: &'static str,
        /// Its size.
        room: Bytes,
        /// Bytes of the largest packet; in an input buffer counted in cells, of its whole cells.
        packet: Bytes,
    },
    /// A packet takes longer on a link than the model can say.
    #[error(
        "a packet of {packet} takes more than 4 ms on a `{class}` link; use smaller packets or a faster link"
    )]
    LinkTooSlow {
        /// The kind of link.
        class: &'static str,
        /// Bytes of the largest packet.
        packet: Bytes,
    },
    /// More ports or virtual channels than the packet header has bits for.
    #[error(
        "a switch has {ports} ports and {channels} virtual channels; at most {MOST_PORTS} and {MOST_CHANNELS} are supported"
    )]
    SwitchTooLarge {
        /// Ports.
        ports: u32,
        /// Virtual channels.
        channels: u32,
    },
}

/// A network ready to run.
pub struct Built<T, N: Interface> {
    /// The model.
    pub network: Network<T, N>,
    /// Its sites.
    pub sites: Vec<Site<N>>,
    /// What begins it.
    pub events: Vec<Event<Wire<N::Timer, N::Announcement>>>,
    /// How far its sites see ahead.
    pub lookahead: Lookahead,
}

impl<T: Topology + Routing, N: Interface> Network<T, N> {
    /// Builds the network and puts an interface behind every endpoint.
    ///
    /// # Errors
    /// Parameters that do not fit together; see [`BuildError`].
    pub fn build(
        parameters: NetworkParameters<T>,
        interface: N::Parameters,
        mut make_interface: impl FnMut(EndpointId, &N::Parameters) -> N,
    ) -> Result<Built<T, N>, BuildError> {
        let layout = &parameters.layout;
        let names = layout.link_classes();
        let largest = parameters.format.header + parameters.format.payload + parameters.format.footer;
        let unit = parameters.switch.credit;
        let largest_room = unit.taken_by(largest);
        let in_credits = unit.bytes(largest_room);
        if parameters.switch.buffer < in_credits {
            let room = parameters.switch.buffer;
            return Err(BuildError::BufferTooSmall {
                buffer: "switch's input buffer",
                room,
                packet: in_credits,
            });
        }
        if let Some(room) = parameters.switch.output_buffer.filter(|&room| room < largest) {
            return Err(BuildError::BufferTooSmall {
                buffer: "switch's output buffer",
                room,
                packet: largest,
            });
        }
        let mut links = Vec::new();
        for (link, class) in parameters.links.iter().zip(names) {
            let rate = LineRate::new(link.rate, link.code);
            let rate =
                rate.filter(|rate| rate.span(largest + link.framing).as_ps() < u64::from(u32::MAX) / 2);
            let rate = rate.ok_or(BuildError::LinkTooSlow { class, packet: largest })?;
            links.push(LinkKind { rate, latency: link.latency, framing: link.framing });
        }
        let vcs = layout.virtual_channels();
        let switches = layout.switches();
        let most_ports = (0..switches).map(|s| layout.ports(SwitchId(s))).max().unwrap_or(0);
        if most_ports > MOST_PORTS || vcs > MOST_CHANNELS {
            return Err(BuildError::SwitchTooLarge { ports: most_ports, channels: vcs });
        }
        let vc_shift = vcs.next_power_of_two().ilog2();
        let credits = unit.held_by(parameters.switch.buffer);
        let mut places = vec![(SiteId(0), 0); layout.endpoints() as usize];
        let mut used_between_switches = vec![false; links.len()];
        let mut sites = Vec::with_capacity(switches as usize);
        let mut events = Vec::new();
        for index in 0..switches {
            let switch = SwitchId(index);
            let ports = layout.ports(switch);
            let mut outputs = Vec::with_capacity(ports as usize);
            let mut room = Vec::with_capacity((ports as usize) << vc_shift);
            let (mut endpoints, mut endpoint_ports) = (Vec::new(), Vec::new());
            for port in 0..ports {
                let class = layout.link_class(switch, PortId(port));
                let (peer, behind) = match layout.peer(switch, PortId(port)) {
                    Attachment::Switch(other, other_port) => {
                        used_between_switches[usize::from(class.0)] = true;
                        (Peer::Switch { site: other.0, port: other_port.0 as u16 }, credits)
                    }
                    Attachment::Endpoint(id) => {
                        let entity = 1 + endpoints.len() as u32;
                        places[id.index()] = (SiteId(index), entity);
                        let endpoint = Endpoint::new(id, make_interface(id, &interface), credits);
                        if endpoint.interface.is_active() {
                            let order = Order::new(entity, kind::START);
                            let payload = Wire::Start;
                            events.push(Event { time: Time::ZERO, site: SiteId(index), order, payload });
                        }
                        endpoints.push(endpoint);
                        endpoint_ports.push(port as u16);
                        (Peer::Endpoint { entity }, UNLIMITED)
                    }
                    Attachment::Nothing => (Peer::Nothing, UNLIMITED),
                };
                outputs.push(Port::new(peer, class));
                room.extend(std::iter::repeat_n(behind, 1 << vc_shift));
            }
            let dice = Stream::new(parameters.seed, u64::from(index), PURPOSE_SWITCH);
            let ports = Ports::new(switch, layout.switch_address(switch), outputs, room, dice);
            let arbiter = parameters.switch.arbiter;
            let switch = match parameters.switch.kind {
                SwitchKind::InputQueued => Switch::InputQueues(Crossbar::new(ports, arbiter, vc_shift)),
                SwitchKind::VirtualOutputQueued => {
                    Switch::VirtualOutputs(Crossbar::new(ports, arbiter, vc_shift))
                }
                SwitchKind::OutputQueued => Switch::Outputs(OutputQueued::new(ports, vc_shift)),
            };
            sites.push(Site { switch, endpoints: endpoints.into(), endpoint_ports: endpoint_ports.into() });
        }
        let cuts = used_between_switches.iter().enumerate().filter(|(_, used)| **used);
        let lookahead = Lookahead::across(cuts.map(|(class, _)| (links[class].latency, names[class])))?
            .with_notice(notice(&parameters.switch, &parameters.format, &links));
        let directory = Directory::new(places, lookahead.span());
        let cuts_through = parameters.switch.forwarding == Forwarding::VirtualCutThrough
            && parameters.switch.faster_link == FasterLink::Bubble;
        let rules = Rules {
            buffer: credits,
            largest_room,
            cuts_through,
            passes: cuts_through && parameters.switch.arbiter == ArbiterKind::RoundRobin,
            links,
            format: parameters.format,
            switch: parameters.switch,
            vcs,
            vc_shift,
            topology: parameters.layout,
        };
        let network = Network { rules, directory, interface };
        Ok(Built { network, sites, events, lookahead })
    }
}

/// How long before a packet or a credit sets out from a switch it is known that it will: from the grant of an
/// output, a packet has the pipeline before it, and its credit at least the shortest packet's time on the
/// fastest line. A switch with output queues gives credits at once.
fn notice(switch: &SwitchParameters, format: &PacketFormat, links: &[LinkKind]) -> Span {
    if switch.kind == SwitchKind::OutputQueued {
        return Span::ZERO;
    }
    let shortest = |link: &LinkKind| link.rate.span(format.header + format.footer + link.framing);
    let on_line = links.iter().map(shortest).min().unwrap_or(Span::ZERO);
    let pipeline = switch.clock.cycles(u64::from(switch.pipeline_cycles));
    // Both are rounded up, once per packet or clock edge.
    Span::from_ps(pipeline.min(on_line).as_ps().saturating_sub(1))
}

const PURPOSE_SWITCH: u32 = 1;
const PURPOSE_LINK_FAULTS: u32 = 2;
const PURPOSE_INJECTION_FAULTS: u32 = 3;

impl<T: Topology, N: Interface> Built<T, N> {
    /// Makes links fail: `faults` says how for each direction of each link, by where it begins, where it
    /// ends and its kind. Each has dice of its own under `seed`.
    pub fn inject_faults(
        &mut self,
        seed: u64,
        mut faults: impl FnMut(LinkEnd, Attachment, LinkClass) -> FaultParameters,
    ) {
        let layout = &self.network.rules.topology;
        for (site, index) in self.sites.iter_mut().zip(0..) {
            let switch = SwitchId(index);
            for (endpoint, &port) in site.endpoints.iter_mut().zip(&site.endpoint_ports) {
                let port = PortId(port.into());
                let to = Attachment::Switch(switch, port);
                let parameters = faults(LinkEnd::Endpoint(endpoint.id), to, layout.link_class(switch, port));
                let dice = Stream::new(seed, endpoint.id.0.into(), PURPOSE_INJECTION_FAULTS);
                endpoint.fault = (!parameters.is_none()).then(|| Box::new(Fault::new(parameters, dice)));
            }
            let ports = site.switch.ports_mut();
            let of_port = (0..ports.port.len() as u32).map(|port| {
                let to = layout.peer(switch, PortId(port));
                let class = layout.link_class(switch, PortId(port));
                let parameters = faults(LinkEnd::Port(switch, PortId(port)), to, class);
                let link = u64::from(index) << 32 | u64::from(port);
                Fault::new(parameters, Stream::new(seed, link, PURPOSE_LINK_FAULTS))
            });
            let of_port: Vec<Fault> = of_port.collect();
            ports.faults =
                if of_port.iter().any(|fault| !fault.is_none()) { of_port.into() } else { Box::default() };
        }
    }
}

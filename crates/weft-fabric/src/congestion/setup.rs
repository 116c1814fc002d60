//! Congestion control set up before a run: which algorithm controls which traffic class, what it needs of the
//! network, and the points of it in every endpoint and port.

use super::{CongestionControl, FlowTable, LinkControl, NOTICE_PAYLOAD, Rule};
use crate::build::{BuildError, NetworkParameters};
use crate::constants::{AgeBits, Constants};
use crate::endpoint::Endpoint;
use crate::injection::InjectionChannels;
use crate::interface::Interface;
use crate::network::{Network, Site};
use crate::parameters::{FlowControl, Forwarding};
use crate::traffic_class::{MAX_CLASSES, TrafficKind};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use weft_congestion::{Congestion, Path, Repair};
use weft_engine::{InitialState, Stream};
use weft_topo::{Attachment, Routing, Topology};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

const PURPOSE_MARKS: u32 = 31;
const PURPOSE_INJECTION_MARKS: u32 = 32;

/// A network whose congestion cannot be controlled as asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CongestionError {
    /// Packets that are lost in full buffers.
    #[error(
        "congestion.kind={0} needs a network that loses no packets in full buffers; set \
         fabric.flow_control=credits or pause"
    )]
    NeedsLossless(&'static str),
    /// Trimming by something that does not send again, or where no packet is lost.
    #[error(
        "congestion.trim is for algorithms that answer each packet, over a network that loses packets \
         in full buffers, and congestion.kind={0} over this one is not; write congestion.kind=dcqcn, \
         nscc or swift with fabric.flow_control=drop, or leave congestion.trim out"
    )]
    NothingToTrim(&'static str),
    /// Several ways between two endpoints.
    #[error(
        "congestion.kind={0} needs one way for each flow, which its notices take too; choose a routing \
         that sends each pair of endpoints one way, such as d-mod-k, ecmp or dimension-order"
    )]
    NeedsOneWay(&'static str),
    /// Ages and stamps in the same bits.
    #[error(
        "congestion.kind={0} stamps packets where switch.arbiter=age keeps their age; choose another arbiter"
    )]
    AgeArbiter(&'static str),
    /// Leads of signals and stamps in the same bits.
    #[error(
        "congestion.kind={0} stamps packets where links that wake on injection keep the lead of a packet's \
         signal; set power.policy=idle-timeout, or congestion.kind=none"
    )]
    WakeSignal(&'static str),
    /// A network that cannot be built with the channels that it takes.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The algorithms of all traffic classes in a network.
struct Rules {
    rules: Vec<Rule>,
    /// By class: its place among them; `None`: it is not controlled.
    by_class: [Option<u8>; MAX_CLASSES],
    path: Path,
}

impl Rules {
    /// The algorithms that `congestion` makes.
    fn of<T: Topology + Routing>(
        topology: &T,
        constants: &Constants,
        congestion: impl Fn(&Path, u8) -> Option<Congestion>,
    ) -> Result<Rules, CongestionError> {
        // Packets are lost in full buffers, and algorithms that can will send them again.
        let loses = constants.switch.flow_control == FlowControl::Drop;
        let repair = if loses { Repair::Resend } else { Repair::None };
        let path = Path { repair, ..Rules::longest_path(topology, constants) };
        let mut rules = Vec::<Rule>::new();
        let mut by_class = [None; MAX_CLASSES];
        for (class, place) in (0..constants.plan.classes as u8).zip(&mut by_class) {
            let Some(congestion) = congestion(&path, class) else { continue };
            let known = rules.iter().position(|rule| rule.congestion == congestion);
            if known.is_none() {
                rules.push(Rules::rule(topology, constants, congestion)?);
            }
            *place = Some(known.unwrap_or(rules.len() - 1) as u8);
        }
        Ok(Rules { rules, by_class, path })
    }

    /// An algorithm in this network.
    fn rule<T: Topology + Routing>(
        topology: &T,
        constants: &Constants,
        congestion: Congestion,
    ) -> Result<Rule, CongestionError> {
        let (name, need) = (congestion.name(), congestion.need());
        let loses = constants.switch.flow_control == FlowControl::Drop;
        if need.lossless && loses {
            return Err(CongestionError::NeedsLossless(name));
        }
        let timeout = congestion.timeout().filter(|_| loses);
        let repair = match (timeout, congestion.trims()) {
            (Some(_), true) => Repair::Trim,
            (Some(_), false) => Repair::Resend,
            (None, true) => return Err(CongestionError::NothingToTrim(name)),
            (None, false) => Repair::None,
        };
        let can_be_one = topology.is_deterministic() || topology.spreads_blocks();
        if need.one_way && (!can_be_one || constants.mixes_lanes && !constants.plan.is_plain()) {
            return Err(CongestionError::NeedsOneWay(name));
        }
        if constants.switch.arbiter.properties().keeps_ages {
            return Err(CongestionError::AgeArbiter(name));
        }
        if matches!(constants.age_bits, AgeBits::Lead(_)) {
            return Err(CongestionError::WakeSignal(name));
        }
        let of_links = constants.links.iter().map(|kind| kind.average_on_line(constants.largest));
        let most = of_links.max().filter(|_| congestion.tells_rates()).unwrap_or(constants.largest);
        let framing = most - constants.largest;
        Ok(Rule { congestion, repair, timeout: timeout.unwrap_or(Span::MAX), framing })
    }

    /// The longest path from the first endpoint, there and back, through an empty network.
    fn longest_path<T: Topology>(topology: &T, constants: &Constants) -> Path {
        let (first, port) = topology.attachment(EndpointId(0));
        let own = constants.link(topology.link_class(first, port));
        // Switches by distance from that of the endpoint.
        let mut distance = vec![u32::MAX; topology.switches() as usize];
        let mut queue = VecDeque::from([first]);
        distance[first.index()] = 0;
        let mut farthest = 0;
        while let Some(switch) = queue.pop_front() {
            let steps = distance[switch.index()];
            for port in (0..topology.ports(switch)).map(PortId) {
                match topology.peer(switch, port) {
                    Attachment::Switch(next, _) if distance[next.index()] == u32::MAX => {
                        distance[next.index()] = steps + 1;
                        queue.push_back(next);
                    }
                    Attachment::Endpoint(_) => farthest = farthest.max(steps),
                    _ => {}
                }
            }
        }
        let links = u64::from(farthest) + 2;
        let of_links = constants.links.iter();
        let latency = of_links.map(|kind| kind.latency + kind.routing).max().unwrap_or(Span::ZERO);
        let pipeline = constants.switch.clock.cycles(u64::from(constants.switch.pipeline_cycles) + 1);
        let one_way = latency * links + pipeline * (links - 1);
        let span = |bytes: Bytes| {
            let stores = constants.switch.forwarding == Forwarding::StoreAndForward;
            let slowest = constants.links.iter().map(|kind| kind.longest(bytes)).max().unwrap_or(Span::ZERO);
            slowest * if stores { links } else { 1 }
        };
        let notice = constants.format.overhead() + Bytes::new(NOTICE_PAYLOAD.into());
        let round_trip = one_way * 2 + span(constants.largest) + span(notice);
        Path { carries: own.carries, ..Path::new(own.bit_rate, round_trip, constants.largest + own.framing) }
    }
}

impl<T: Topology + Routing> NetworkParameters<T> {
    /// Checks that the network has what algorithms need, as [`Network::with_congestion`] does.
    ///
    /// # Errors
    /// As of that.
    pub fn check_congestion(
        &self,
        congestion: impl Fn(&Path, u8) -> Option<Congestion>,
    ) -> Result<(), CongestionError> {
        Rules::of(&self.layout, &self.constants()?, congestion).map(drop)
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Controls congestion, before the run begins. `congestion` makes the algorithm of a traffic class for
    /// the path of a flow: the longest through the network, at the rate of the first endpoint's link. `None`:
    /// that class is not controlled.
    ///
    /// # Errors
    /// A network that lacks something that an algorithm needs.
    pub fn with_congestion(
        initial: InitialState<Network<T, N>>,
        seed: u64,
        congestion: impl Fn(&Path, u8) -> Option<Congestion>,
    ) -> Result<InitialState<Network<T, N>>, CongestionError> {
        let InitialState { mut model, mut sites, events, lookahead } = initial;
        let Rules { rules, by_class, path } = Rules::of(&model.topology, &model.constants, congestion)?;
        if rules.is_empty() {
            return Ok(InitialState { model, sites, events, lookahead });
        }
        let constants = &mut model.constants;
        if rules.iter().any(|rule| rule.congestion.need().one_way) {
            // The blocks of a flow are chained: all take the way of the first.
            constants.block_mask = 0;
        }
        let largest = u32::try_from(constants.format.payload.get()).unwrap_or(u32::MAX);
        let notice = NOTICE_PAYLOAD.min(largest);
        let of_all = &by_class[..constants.plan.classes as usize];
        let is_uniform = of_all.iter().all(|place| *place == Some(0));
        let relays = rules.iter().any(|rule| rule.congestion.relays());
        let measures = rules.iter().any(|rule| rule.congestion.measures());
        let classes = constants.switch.channels.classes.all().iter().zip(0..);
        let answers = classes.filter(|(class, _)| class.kind == TrafficKind::Acknowledgements);
        let answers = answers.fold(0, |bits, (_, class)| bits | 1 << class);
        let round_trip = path.round_trip;
        let control =
            CongestionControl { rules, by_class, is_uniform, round_trip, notice, relays, measures, answers };
        for (site, switch) in sites.iter_mut().zip(0..) {
            model.control_site(site, SwitchId(switch), (&control, seed));
        }
        model.constants.congestion = Some(Box::new(control));
        Ok(InitialState { model, sites, events, lookahead })
    }

    fn control_site(&self, site: &mut Site<N>, switch: SwitchId, (control, seed): (&CongestionControl, u64)) {
        let Network { topology, constants, .. } = self;
        for (endpoint, &port) in site.endpoints.iter_mut().zip(&site.endpoint_ports) {
            let class = topology.link_class(switch, PortId(port.into()));
            let kind = constants.link(class);
            let Endpoint { channels, flow_table, has_receive_hook, id, .. } = endpoint;
            channels.get_or_insert_with(|| InjectionChannels::for_all(class, constants));
            let path = Path {
                rate: kind.bit_rate,
                carries: kind.carries,
                round_trip: control.round_trip,
                packet: constants.largest + kind.framing,
                repair: Repair::None,
            };
            let rng = Stream::new(seed, id.0.into(), PURPOSE_INJECTION_MARKS);
            *has_receive_hook = true;
            *flow_table = Some(Box::new(FlowTable {
                path,
                framing: kind.framing,
                flows: BTreeMap::new(),
                receivers: BTreeMap::new(),
                notices: VecDeque::new(),
                to_answer: VecDeque::new(),
                again: VecDeque::new(),
                resent: 0,
                held: VecDeque::new(),
                link_control: LinkControl::new(control, rng),
                due: Time::NEVER,
                ask_again: Cell::new(Time::NEVER),
                refused: Cell::new(false),
                empty: 0,
                empty_until: [Time::ZERO; MAX_CLASSES],
            }));
        }
        let state = site.switch.state_mut();
        let link_controls = (0..state.links() as u64).map(|port| {
            let link = u64::from(switch.0) << 32 | port;
            LinkControl::new(control, Stream::new(seed, link, PURPOSE_MARKS))
        });
        state.link_controls = link_controls.collect();
        state.takes_care = true;
    }
}

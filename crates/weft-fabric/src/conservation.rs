//! The check that nothing is lost or made: credits of every link, packets of the whole network.
//!
//! ```text
//!  supplied by interfaces + copies made  =  delivered to interfaces + dropped, with its cause
//!  (by switches and links)                  + in buffers + on links
//! ```
//! A switch that copies a packet for `n` branches makes `n` - 1 packets more. The copies share the space of
//! the one packet: credits are conserved as if it stood there until the last has left.

use crate::channel::Channel;
use crate::deadlock::InputBuffer;
use crate::event::{Entity, Wire};
use crate::interface::Interface;
use crate::network::Network;
use crate::receive_buffer::check_receivers;
use crate::switch::{Peer, SwitchState};
use std::collections::BTreeMap;
use std::fmt;
use weft_engine::{Simulation, SiteId};
use weft_topo::{Routing, Topology};
use weft_units::ledger::{LostByCause, View as _};
use weft_units::{PacketCounts, SwitchId};

/// The whereabouts of the packets of a run, counted from its beginning until a virtual epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Packets that interfaces have handed over.
    pub supplied: u64,
    /// Packets that switches have made: copies of such for groups, and answers to notices that went on.
    pub copied: u64,
    /// Packets that interfaces have received, corrupted ones included.
    pub delivered: u64,
    /// Packets that links have lost, by cause, and the copies that they have made.
    pub faults: PacketCounts,
    /// Packets in buffers of switches, and at endpoints that wait for space.
    pub buffered: u64,
    /// Packets on links.
    pub on_links: u64,
}

impl Census {
    /// Packets that there are: of interfaces, and copies that switches and links made.
    pub fn made(&self) -> u64 {
        self.supplied + self.copied + self.faults.duplicated
    }

    /// Packets whose whereabouts are known.
    pub fn accounted(&self) -> u64 {
        self.delivered + self.faults.lost() + self.buffered + self.on_links
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Census { supplied, copied, delivered, faults, buffered, on_links } = self;
        write!(f, "{supplied} were supplied")?;
        if *copied > 0 {
            write!(f, ", {copied} were copies")?;
        }
        if faults.duplicated > 0 {
            write!(f, ", {} copied by links", faults.duplicated)?;
        }
        write!(
            f,
            " and {} are accounted for: {delivered} delivered, {}, {buffered} in buffers, {on_links} on \
             links",
            self.accounted(),
            LostByCause::list(faults)
        )
    }
}

/// Counts the packets of a run.
pub fn census<T, N>(simulation: &Simulation<Network<T, N>>) -> Census
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let mut census = Census::default();
    for (_, site) in simulation.sites() {
        for endpoint in &site.endpoints {
            census.supplied += endpoint.supplied;
            census.delivered += endpoint.received;
        }
        census.copied += site.switch.state().packets_made();
        census.faults += site.faults();
        census.buffered += site.buffered() as u64;
    }
    let on_links = simulation.pending().filter(|event| matches!(event.payload, Wire::Packet(_)));
    census.on_links = on_links.count() as u64;
    census
}

/// Checks that every packet that was supplied, or copied, is delivered, dropped with a cause, in a buffer or
/// on a link.
///
/// # Errors
/// The census, where it does not add up.
pub fn check_packets<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let census = census(simulation);
    if census.made() == census.accounted() { Ok(()) } else { Err(NotConserved::Packets(Box::new(census))) }
}

/// A law of conservation that does not hold: a bug of the highest rank.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotConserved {
    /// Credits of a link.
    #[error(
        "credits are not conserved on the link into {buffer}: {accounted} of {capacity} are accounted for"
    )]
    Credits {
        /// The buffer that they stand for.
        buffer: String,
        /// Credits found.
        accounted: u64,
        /// Credits that there are.
        capacity: u64,
    },
    /// The fill of a buffer, as its switch counts it.
    #[error("the fill of a buffer is not conserved: {buffer} counts {counted}, and its packets take {found}")]
    Fill {
        /// The buffer.
        buffer: String,
        /// Units of credit that the switch counts.
        counted: u64,
        /// Units that the packets in it take, and those that are leaving it.
        found: u64,
    },
    /// Packets of the whole network.
    #[error("packets are not conserved: {0}")]
    Packets(Box<Census>),
}

/// Checks that on every link, but for those to endpoints that consume whatever arrives, the credits of the
/// sender, those on their way back, the packets on the wire and those in the buffer add up to the buffer.
/// Under pause and drop: that what a switch counts as held in a buffer is there, or is leaving it.
///
/// # Errors
/// The first link on which they do not.
pub fn check_credits<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let Network { constants, .. } = simulation.model();
    if !constants.has_credits {
        return check_fill(simulation);
    }
    check_receivers(simulation)?;
    let mut accounted = Accounted::default();
    let mut switches: Vec<&SwitchState> = Vec::new();
    for (SiteId(site), state) in simulation.sites() {
        let switch = state.switch.state();
        switches.push(switch);
        for (port, output) in switch.ports.iter().enumerate() {
            for vc in 0..constants.vcs as u8 {
                let credits = switch.credits[constants.channels.at(port, vc)];
                accounted.add_behind(output.peer, vc, credits.units());
            }
        }
        for (endpoint, port) in state.endpoints_with_ports() {
            for vc in constants.injection_channels() {
                accounted.add(SwitchId(site), Channel { port, vc }, endpoint.all_credits(vc));
            }
        }
        for (channel, space) in state.switch.occupancy(constants.channels) {
            accounted.add(SwitchId(site), channel, space.into());
        }
    }
    for event in simulation.pending() {
        if let Wire::Packet(packet) = event.payload
            && Entity::of(event.order) == Entity::Switch
        {
            let space = constants.space(&packet);
            accounted.add(SwitchId(event.site.0), packet.channel(), space.into());
        }
    }
    let learnt =
        switches.iter().flat_map(|switch| switch.returning.all().map(|(_, credit)| (switch.switch, credit)));
    let on_their_way = simulation.pending_notes().map(|(SiteId(site), _, credit)| (SwitchId(site), *credit));
    for (sender, credit) in learnt.chain(on_their_way) {
        let Channel { port, vc } = credit.channel;
        let peer = switches[sender.index()].ports[usize::from(port)].peer;
        accounted.add_behind(peer, vc, credit.amount);
    }
    let capacity = |buffer: &InputBuffer| u64::from(constants.buffer(buffer.channel.vc));
    match accounted.0.into_iter().find(|(buffer, credits)| *credits != capacity(buffer)) {
        Some((buffer, accounted)) => {
            let capacity = capacity(&buffer);
            Err(NotConserved::Credits { buffer: buffer.to_string(), accounted, capacity })
        }
        None => Ok(()),
    }
}

/// The check of [`check_credits`] where switches count what their buffers hold.
fn check_fill<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let channels = simulation.model().constants.channels;
    for (SiteId(site), state) in simulation.sites() {
        let held = state.switch.state().occupancy.iter().flat_map(|occupancy| occupancy.held());
        let mut fill: Vec<(u64, u64)> =
            held.map(|(counted, leaving)| (counted.into(), leaving.into())).collect();
        for (channel, space) in state.switch.occupancy(channels) {
            fill[channels.number(channel)].1 += u64::from(space);
        }
        let wrong = fill.into_iter().enumerate().find(|(_, (counted, found))| counted != found);
        if let Some((number, (counted, found))) = wrong {
            let buffer = InputBuffer { switch: SwitchId(site), channel: channels.channel(number) };
            return Err(NotConserved::Fill { buffer: buffer.to_string(), counted, found });
        }
    }
    Ok(())
}

/// Credits that are accounted for, by the input buffer that they stand for.
#[derive(Default)]
struct Accounted(BTreeMap<InputBuffer, u64>);

impl Accounted {
    fn add(&mut self, switch: SwitchId, channel: Channel, credits: u64) {
        *self.0.entry(InputBuffer { switch, channel }).or_default() += credits;
    }

    /// The same for the buffer behind the link to `peer`; endpoints have none.
    fn add_behind(&mut self, peer: Peer, vc: u8, credits: u32) {
        if let Peer::Switch { site, port } = peer {
            self.add(SwitchId(site), Channel { port, vc }, credits.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::NetworkParameters;
    use crate::interface::{Announced, Injection, InterfaceContext};
    use crate::link::LinkParameters;
    use crate::network::Site;
    use crate::packet::{Addressing, HeaderBits, MessagePart, Packet};
    use crate::parameters::{
        ArbiterKind, CreditUnit, FasterLink, FlowControl, Forwarding, PacketFormat, SwitchKind,
        SwitchParameters,
    };
    use serde::{Deserialize, Serialize};
    use std::sync::atomic::AtomicBool;
    use weft_engine::Payload;
    use weft_topo::{Layout, Star, StarRouting};
    use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span, Time};

    /// Sends so many packets to endpoint 0.
    #[derive(Serialize, Deserialize)]
    struct Burst(u32);

    #[derive(Clone, Copy, Serialize, Deserialize)]
    enum NoTimer {}

    impl Payload for NoTimer {
        fn tie(&self) -> u128 {
            match *self {}
        }
    }

    impl Interface for Burst {
        type Parameters = ();
        type Timer = NoTimer;
        type Announcement = ();
        type Output = ();

        fn is_active(&self) -> bool {
            self.0 > 0
        }
        fn start(&mut self, (): &(), context: &mut InterfaceContext<'_, '_, Self>) {
            context.request_injection();
        }
        fn timer(&mut self, timer: NoTimer, (): &(), _: &mut InterfaceContext<'_, '_, Self>) {
            match timer {}
        }
        fn announced(&mut self, _: Announced<()>, (): &(), _: &mut InterfaceContext<'_, '_, Self>) {}
        fn received(&mut self, _: &Packet, (): &(), _: &mut InterfaceContext<'_, '_, Self>) {}
        fn next_injection(&mut self, _: Time, (): &()) -> Time {
            if self.0 > 0 { Time::ZERO } else { Time::NEVER }
        }
        fn inject(&mut self, (): &(), context: &mut InterfaceContext<'_, '_, Self>) -> Injection {
            let Some(left) = self.0.checked_sub(1) else { return Injection::Nothing };
            self.0 = left;
            let (source, destination) = (context.endpoint(), EndpointId(0));
            let addressing = Addressing { source, destination, message: left };
            Injection::Packet(Packet::new(addressing, 256, HeaderBits::EMPTY, MessagePart::Whole))
        }
    }

    /// Four endpoints that send to endpoint 0 at once, cut off in the middle.
    fn incast(flow_control: FlowControl) -> Simulation<Network<Layout, Burst>> {
        let link = LinkParameters {
            rate: BitRate::from_gigabits(10),
            code: LineCode::NONE,
            latency: Span::from_ps(50_000),
            framing: Bytes::ZERO,
            routing: Span::ZERO,
            layer: crate::link_layer::LinkLayer::PLAIN,
        };
        let parameters = NetworkParameters {
            layout: Layout::Star(StarRouting::new(Star::new(5).unwrap())),
            format: PacketFormat { header: Bytes::ZERO, footer: Bytes::ZERO, payload: Bytes::new(256) },
            links: vec![link],
            switch: SwitchParameters {
                kind: SwitchKind::InputQueued,
                arbiter: ArbiterKind::RoundRobin,
                clock: Clock::from_hertz(150_000_000).unwrap(),
                pipeline_cycles: 2,
                forwarding: Forwarding::VirtualCutThrough,
                faster_link: FasterLink::Bubble,
                buffer: Bytes::new(1024),
                credit: CreditUnit::Bytes,
                output_buffer: None,
                buffer_per: crate::parameters::BufferPer::Channel,
                flow_control,
                channels: crate::parameters::ChannelParameters::default(),
            },
            seed: 1,
        };
        let built =
            Network::build(parameters, (), |endpoint, ()| Burst(if endpoint.0 == 0 { 0 } else { 20 }));
        let mut run = Simulation::new(built.unwrap(), 1);
        run.run_until(Time::from_ps(2_000_000), &AtomicBool::new(false));
        run
    }

    /// Each way in which a packet can get lost or made, done on purpose.
    #[test]
    fn a_miscount_is_found() {
        let run = incast(FlowControl::Credits);
        let whole = census(&run);
        assert!(whole.delivered > 0 && whole.buffered > 0 && whole.on_links > 0, "{whole}");
        assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
        type Damage = fn(&mut Site<Burst>);
        let damages: [Damage; 4] = [
            |site| site.endpoints[1].supplied += 1,
            |site| site.endpoints[0].received -= 1,
            |site| site.endpoints[2].staged = None,
            |site| site.lose_a_buffered_packet(),
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            let mut run = incast(FlowControl::Credits);
            run.sites_mut().for_each(|(_, site)| damage(site));
            let error = check_packets(&run).expect_err(&format!("damage {number} was not seen")).to_string();
            assert!(error.starts_with("packets are not conserved: "), "{error}");
        }
        let mut run = incast(FlowControl::Credits);
        run.sites_mut().for_each(|(_, site)| site.endpoints[1].forge_credit());
        assert!(matches!(check_credits(&run), Err(NotConserved::Credits { .. })));
        let mut run = incast(FlowControl::Drop);
        assert!(census(&run).faults.full > 0);
        assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
        let occupancy = |(_, site): (SiteId, &mut Site<Burst>)| {
            site.switch.state_mut().occupancy.iter_mut().for_each(|occupancy| occupancy.forge());
        };
        run.sites_mut().for_each(occupancy);
        assert!(matches!(check_credits(&run), Err(NotConserved::Fill { .. })));
    }
}

//! The check that nothing is lost or made: credits of every link, packets of the whole network.
//!
//! ```text
//!  supplied by interfaces  =  delivered to interfaces  +  dropped, with its cause
//!                             + in buffers  +  on links
//! ```

use crate::fault::FaultCounts;
use crate::interface::Interface;
use crate::network::{Network, Site};
use crate::packet::{Credit, Wire};
use crate::switch::{Peer, UNLIMITED};
use crate::waiting::{Buffer, name};
use std::collections::BTreeMap;
use std::fmt;
use weft_engine::{Simulation, SiteId};
use weft_topo::{Routing, Topology};

/// Where the packets of a run are. Counted at a virtual epoch, from when the run began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Packets that interfaces have supplied.
    pub supplied: u64,
    /// Packets that interfaces have received, corrupted ones included.
    pub delivered: u64,
    /// What links have lost, by cause.
    pub faults: FaultCounts,
    /// Packets in buffers of switches, and at endpoints that wait for room.
    pub buffered: u64,
    /// Packets on links.
    pub on_links: u64,
}

impl Census {
    /// Packets whose whereabouts are known.
    pub fn accounted(&self) -> u64 {
        self.delivered + self.faults.lost() + self.buffered + self.on_links
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Census { supplied, delivered, faults, buffered, on_links } = self;
        write!(
            f,
            "{supplied} were supplied and {} are accounted for: {delivered} delivered, {} lost by chance, \
             {} on dead links, {buffered} in buffers, {on_links} on links",
            self.accounted(),
            faults.dropped,
            faults.dead
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
        census.faults += site.faults();
        census.buffered += site.buffered() as u64;
    }
    let on_links = simulation.pending().filter(|event| matches!(event.payload, Wire::Packet(_)));
    census.on_links = on_links.count() as u64;
    census
}

/// Checks that every packet that was supplied is delivered, dropped with a cause, in a buffer or on a link.
///
/// # Errors
/// The census, where it does not add up.
pub fn check_packets<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let census = census(simulation);
    if census.supplied == census.accounted() { Ok(()) } else { Err(NotConserved::Packets(census)) }
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
    /// Packets of the whole network.
    #[error("packets are not conserved: {0}")]
    Packets(Census),
}

/// Checks that on every link between switches and from every endpoint the credits of the sender, those
/// on their way back, the packets on the wire and those in the buffer add up to the buffer.
///
/// # Errors
/// The first link on which they do not.
pub fn check_credits<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let network = simulation.model();
    let shift = network.rules.vc_shift;
    let capacity = u64::from(network.rules.buffer);
    let mut accounted: BTreeMap<Buffer, u64> = BTreeMap::new();
    let mut sites: Vec<&Site<N>> = Vec::new();
    for (SiteId(site), state) in simulation.sites() {
        sites.push(state);
        let ports = state.switch.ports();
        for (port, output) in ports.port.iter().enumerate() {
            let Peer::Switch { site: next, port: next_port } = output.peer else { continue };
            for vc in 0..network.rules.vcs {
                let credits = ports.credits[port << shift | vc as usize];
                debug_assert!(credits != UNLIMITED);
                *accounted.entry((next, next_port, vc as u8)).or_default() += u64::from(credits);
            }
        }
        for (endpoint, port) in state.endpoints_with_ports() {
            *accounted.entry((site, port, 0)).or_default() += endpoint.all_credits();
        }
        for (port, vc, room) in state.switch.occupancy(shift) {
            *accounted.entry((site, port, vc)).or_default() += u64::from(room);
        }
    }
    for event in simulation.pending() {
        let site = event.site.0;
        if let Wire::Packet(packet) = event.payload
            && event.order.entity() == 0
        {
            let room = network.rules.room(&packet);
            *accounted.entry((site, packet.port, packet.vc)).or_default() += u64::from(room);
        }
    }
    let known = sites
        .iter()
        .zip(0u32..)
        .flat_map(|(state, site)| state.switch.ports().expected.all().map(move |(_, credit)| (site, credit)));
    let on_their_way = simulation.pending_notes().map(|(SiteId(site), _, credit)| (site, *credit));
    for (site, Credit { port, vc, amount }) in known.chain(on_their_way) {
        let peer = sites[site as usize].switch.ports().port[usize::from(port)].peer;
        if let Peer::Switch { site, port } = peer {
            *accounted.entry((site, port, vc)).or_default() += u64::from(amount);
        }
    }
    match accounted.into_iter().find(|&(_, credits)| credits != capacity) {
        Some((buffer, accounted)) => Err(NotConserved::Credits { buffer: name(buffer), accounted, capacity }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Built, NetworkParameters};
    use crate::interface::{InterfaceContext, Supply};
    use crate::packet::{Packet, Part};
    use crate::parameters::{
        ArbiterKind, CreditUnit, FasterLink, Forwarding, LinkParameters, PacketFormat, SwitchKind,
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
            context.request_pump();
        }
        fn timer(&mut self, timer: NoTimer, (): &(), _: &mut InterfaceContext<'_, '_, Self>) {
            match timer {}
        }
        fn announced(
            &mut self,
            _: EndpointId,
            _: u32,
            (): (),
            (): &(),
            _: &mut InterfaceContext<'_, '_, Self>,
        ) {
        }
        fn received(&mut self, _: &Packet, (): &(), _: &mut InterfaceContext<'_, '_, Self>) {}
        fn next_supply(&mut self, _: Time, (): &()) -> Time {
            if self.0 > 0 { Time::ZERO } else { Time::MAX }
        }
        fn supply(&mut self, (): &(), context: &mut InterfaceContext<'_, '_, Self>) -> Supply {
            let Some(left) = self.0.checked_sub(1) else { return Supply::Nothing };
            self.0 = left;
            let (from, now) = (context.endpoint(), context.now());
            Supply::Packet(Packet::new(from, EndpointId(0), left, 256, now, Part::Whole))
        }
    }

    /// Four endpoints that send to endpoint 0 at once, cut off in the middle.
    fn incast() -> Simulation<Network<Layout, Burst>> {
        let link = LinkParameters {
            rate: BitRate::from_gigabits(10),
            code: LineCode::NONE,
            latency: Span::from_ps(50_000),
            framing: Bytes::ZERO,
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
            },
            seed: 1,
        };
        let built =
            Network::build(parameters, (), |endpoint, ()| Burst(if endpoint.0 == 0 { 0 } else { 20 }));
        let Built { network, sites, events, lookahead } = built.unwrap();
        let mut run = Simulation::new(network, sites, events, lookahead, 1);
        run.run_until(Time::from_ps(2_000_000), &AtomicBool::new(false));
        run
    }

    /// Each way in which a packet can get lost or made, done on purpose.
    #[test]
    fn a_miscount_is_found() {
        let run = incast();
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
            let mut run = incast();
            run.sites_mut().for_each(|(_, site)| damage(site));
            let error = check_packets(&run).expect_err(&format!("damage {number} was not seen")).to_string();
            assert!(error.starts_with("packets are not conserved: "), "{error}");
        }
        let mut run = incast();
        run.sites_mut().for_each(|(_, site)| site.endpoints[1].credits += 1);
        assert!(matches!(check_credits(&run), Err(NotConserved::Credits { .. })));
    }
}

//! Rerouting: detours by tables around links that are off, by virtual time.
//!
//! ```text
//!   links     ──── fail ─────────── come back ─────────────────►  virtual time
//!                   ├─ reaction ─┤   ├─ reaction ─┤
//!   routes    own routing        │ detours        │ own routing
//!
//!   channels of the routing  ══ own routing ══► ─┐ where its path is not whole
//!   channel of the tables                        └─► ══ tables ══════════════════════════► destination
//! ```
//! All switches change over at one instant, a reaction time after the links. The tables of every set of links
//! that are off together are computed before the run ([`weft_topo::UpDownTables`]). Where none are in force,
//! the machine's own routing routes.
//!
//! While tables are in force, the routing keeps each packet whose path is whole. Where the routing is
//! deterministic, a switch knows all of the path: the packet leaves it at the switch that finds a dead link
//! on what is left of it, which is the first switch unless the link has failed meanwhile. Other routings
//! choose from switch to switch: there the packet leaves the routing where that chooses a dead link, and
//! adaptive ones choose none while there is another.
//!
//! Tables have a virtual channel of their own in each lane. A packet that they have routed once stays with
//! them until it arrives, by the last tables where none are in force any more. So packets of the routing may
//! wait for packets of the tables, and never the other way round: where neither the turns of the routing nor
//! those of the tables close a circle, those of both do not. That holds wherever packets leave the routing,
//! and however many stay with it.
//!
//! Other tables may turn up and down the other way. When tables follow others, each switch drops what waits
//! in its input buffers of the tables' channel, as Autonet does with all packets, at its first clock edge.
//! What was on a link then goes on by the new tables if they could have brought it where it comes to, and is
//! dropped if not.
//!
//! A packet whose destination no link leads to any more is dropped by the switch that it is in, or by the
//! next that it comes to.
//!
//! # Not modelled
//! How switches learn of failures: messages of a subnet manager or of a protocol take no bandwidth, and all
//! of them have come after the reaction time.
//!
//! # Source
//! Schroeder et al., Autonet: a high-speed, self-configuring local area network using point-to-point links,
//! IEEE JSAC 9(8), 1991, section 5 (up*/down* routing) and section 6 (reconfiguration). A channel from which
//! no packet goes back to the others: J. Duato, A new theory of deadlock-free adaptive routing in wormhole
//! networks, IEEE TPDS 4(12), 1993.

use crate::channel::Channel;
use crate::constants::Constants;
use crate::fault::LossCause;
use crate::packet::Packet;
use crate::switch::{Sink, Switch, SwitchContext};
use weft_topo::{
    AtSwitch, LegalPorts, LocalView, NextHop, PacketAt, Routing, Topology, UpDownTables, Wiring,
};
use weft_units::{EndpointId, PortId, Time};

/// The tables that are in force from some time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InForce {
    /// The time.
    pub from: Time,
    /// The tables, by number; `None`: the machine's own routing.
    pub tables: Option<usize>,
}

/// Tables by which switches route while links are off.
pub struct Reroutes {
    /// The graph that the tables are about.
    pub wiring: Wiring,
    /// The tables of every set of links that are off together.
    pub tables: Vec<UpDownTables>,
    /// Which of them are in force when, in order.
    pub timeline: Vec<InForce>,
    /// Whether a packet takes the port with the shortest queue among those that its tables allow; if not, one
    /// that its destination and the switch choose.
    pub is_adaptive: bool,
}

/// A packet that has come to a switch.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    pub(crate) at: AtSwitch,
    /// Whether tables have routed it.
    pub(crate) is_failover: bool,
}

/// The next hop of a packet while links are off.
pub(crate) enum RouteChoice {
    /// As the routing of the machine has it.
    Own(NextHop),
    /// By tables, on their channel.
    Detour(PortId),
}

/// A packet that went no further since no link led towards its destination.
const UNREACHABLE: LossCause = |counts| counts.unreachable += 1;
/// A packet that went no further since tables gave way to others.
const RECONFIGURED: LossCause = |counts| counts.reconfigured += 1;

impl Reroutes {
    /// Changes of routes up to `now`.
    fn changes(&self, now: Time) -> usize {
        self.timeline.partition_point(|change| change.from <= now)
    }

    /// The time of the first change after so many; [`Time::NEVER`]: there is none.
    fn change_after(&self, changes: usize) -> Time {
        self.timeline.get(changes).map_or(Time::NEVER, |change| change.from)
    }

    /// The tables in force after so many changes.
    fn in_force(&self, changes: usize) -> Option<usize> {
        self.timeline[..changes].last()?.tables
    }

    /// The last tables that were in force by then.
    fn latest(&self, changes: usize) -> Option<usize> {
        self.timeline[..changes].iter().rev().find_map(|change| change.tables)
    }

    /// The ports that a packet may take by tables; `None`: there are none in force, and none has routed it.
    fn ports(&self, changes: usize, arrival: &Arrival, to: EndpointId) -> Option<LegalPorts<'_>> {
        let (Reroutes { wiring, tables, .. }, at) = (self, arrival.at);
        match arrival.is_failover {
            true => Some(tables[self.latest(changes)?].ports(wiring, at, to)),
            false => Some(tables[self.in_force(changes)?].first_ports(wiring, at.switch, to)),
        }
    }

    /// The next port of a packet by tables. It leaves by their channel.
    fn detour(&self, arrival: &Arrival, to: EndpointId, view: &mut impl LocalView) -> Option<PortId> {
        let mut ports = self.ports(self.changes(arrival.now), arrival, to)?;
        let port = if self.is_adaptive {
            view.take_stock();
            let turn = view.random();
            ports.shortest_queue(turn, |port| view.queued(port))
        } else {
            ports.of_destination(to)
        };
        Some(port.expect("what cannot go on is dropped when it comes, or when routes change"))
    }

    /// The next hop of a packet.
    #[cold]
    pub(crate) fn next_hop(
        &self,
        arrival: &Arrival,
        packet: &mut Packet,
        topology: &impl Routing,
        view: &mut impl LocalView,
    ) -> RouteChoice {
        let Arrival { now, at, is_failover } = *arrival;
        let tables = self.in_force(self.changes(now)).map(|number| &self.tables[number]);
        let is_deterministic = topology.is_deterministic();
        let (to, wiring) = (packet.address, &self.wiring);
        let is_whole = |tables: &UpDownTables| {
            tables.keep_whole(wiring, topology, &PacketAt { at, to, state: packet.route })
        };
        if !is_failover && tables.is_none_or(|tables| !is_deterministic || is_whole(tables)) {
            let hop = topology.route(at, to, &mut packet.route, view);
            if is_deterministic || tables.is_none_or(|tables| tables.is_whole(wiring, at.switch, hop.port)) {
                return RouteChoice::Own(hop);
            }
        }
        let detour = self.detour(arrival, packet.destination, view);
        RouteChoice::Detour(detour.expect("tables are in force, or have routed it"))
    }

    /// A packet's head comes to a switch.
    #[cold]
    #[inline(never)]
    pub(crate) fn arrive<T: Topology + Routing>(
        &self,
        switch: &mut Switch,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        self.change_over(switch, context);
        let SwitchContext { now, constants, .. } = *context;
        let changes = self.changes(now);
        if !packet.is_multicast() {
            let state = switch.state_mut();
            let from = packet.channel();
            let (at, is_failover) = (state.position(from, constants), constants.is_failover(from.vc));
            let legal = self.ports(changes, &Arrival { now, at, is_failover }, packet.destination);
            if legal.is_some_and(|legal| legal.is_empty()) {
                let cause = if is_failover { RECONFIGURED } else { UNREACHABLE };
                cause(&mut state.failover.ledger.counts);
                return state.discard(packet, context);
            }
        }
        // Until routes change, what passes and what queues goes the same way.
        let undisturbed_until = undisturbed_until.min(self.change_after(changes));
        switch.arrive_with_care(packet, undisturbed_until, context);
        self.await_change(switch, constants);
    }

    /// A switch arbitrates at a clock edge.
    #[cold]
    #[inline(never)]
    pub(crate) fn decide<T: Routing>(
        &self,
        switch: &mut Switch,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        self.change_over(switch, context);
        switch.decide(context);
        self.await_change(switch, context.constants);
    }

    /// Carries out the changes of routes that have come.
    fn change_over<T: Routing>(&self, switch: &mut Switch, context: &mut SwitchContext<'_, T, impl Sink>) {
        let SwitchContext { now, constants, .. } = *context;
        let changes = self.changes(now);
        let before = std::mem::replace(&mut switch.state_mut().failover.changes, changes as u32) as usize;
        if before == changes || switch.packets() == 0 {
            return;
        }
        let is_outdated = self.latest(before) != self.latest(changes);
        let in_force = self.in_force(changes).map(|number| &self.tables[number]);
        let at = switch.state().switch;
        let cause = |from: Channel, packet: &Packet| {
            if constants.is_failover(from.vc) {
                return is_outdated.then_some(RECONFIGURED);
            }
            let leads = in_force.is_none_or(|tables| tables.lead(&self.wiring, at, packet.destination));
            (!leads).then_some(UNREACHABLE)
        };
        switch.withdraw(cause, context);
    }

    /// Makes sure that a switch with packets carries out the next change at its first clock edge.
    fn await_change(&self, switch: &mut Switch, constants: &Constants) {
        if switch.packets() > 0 {
            let state = switch.state_mut();
            let next = self.change_after(state.failover.changes as usize);
            if next < Time::NEVER {
                state.arbitrate_at_or_after(next, constants);
            }
        }
    }
}

//! Rerouting: tables by which switches route while links are off, by virtual time.
//!
//! ```text
//!   links     ──── fail ─────────── come back ─────────────────►  virtual time
//!                   ├─ reaction ─┤   ├─ reaction ─┤
//!   routes    own routing        │ tables         │ own routing
//! ```
//! All switches change over at one instant, a reaction time after the links. The tables of every set of links
//! that are off together are computed before the run ([`weft_topo::UpDownTables`]). Where none are in force,
//! the machine's own routing routes; what it had written into a packet is erased where tables route, so that
//! it begins anew afterwards.
//!
//! A packet whose destination no link leads to any more is dropped by the next switch that it comes to.
//!
//! # Not modelled
//! How switches learn of failures: messages of a subnet manager or of a protocol take no bandwidth, and all
//! of them have come after the reaction time. Packets that are on their way when routes change may turn from
//! the way down to a way up, which the proof of freedom from deadlock does not cover.
//!
//! # Source
//! Schroeder et al., Autonet: a high-speed, self-configuring local area network using point-to-point links,
//! IEEE JSAC 9(8), 1991, section 5 (up*/down* routing) and section 6 (reconfiguration).

use crate::packet::Packet;
use weft_topo::{AtSwitch, LocalView, NextHop, RouteState, UpDownTables, Wiring};
use weft_units::{EndpointId, SwitchId, Time, VcId};

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

impl Reroutes {
    /// The tables in force at `now`.
    fn in_force(&self, now: Time) -> Option<&UpDownTables> {
        let since = self.timeline.partition_point(|change| change.from <= now);
        let current = self.timeline.get(since.checked_sub(1)?)?;
        current.tables.map(|number| &self.tables[number])
    }

    /// Whether tables are in force that lead from a switch nowhere near an endpoint.
    #[cold]
    pub(crate) fn cut_off(&self, now: Time, at: SwitchId, to: EndpointId) -> bool {
        self.in_force(now).is_some_and(|tables| !tables.lead(&self.wiring, at, to))
    }

    /// The next hop of a packet where tables are in force.
    #[cold]
    pub(crate) fn next_hop(
        &self,
        now: Time,
        at: AtSwitch,
        packet: &mut Packet,
        view: &mut impl LocalView,
    ) -> Option<NextHop> {
        let tables = self.in_force(now)?;
        packet.route = RouteState::default();
        let mut ports = tables.ports(&self.wiring, at, packet.destination);
        let port = if self.is_adaptive {
            let turn = view.random();
            ports.shortest_queue(turn, |port| view.queued(port))
        } else {
            ports.of_destination(packet.destination)
        };
        // Cut off while it waited here: whoever comes next drops it.
        // Tables need one virtual channel. The first: the machine's own routing, which takes over when they
        // are no longer in force, begins with it.
        Some(NextHop { port: port.unwrap_or_else(|| self.wiring.any_port(at.switch)), vc: VcId(0) })
    }
}

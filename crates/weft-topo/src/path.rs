//! The way of a single packet through an idle network.

use crate::traits::{AtSwitch, Attachment, LocalView, NextHop, RouteState, Routing, Topology};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// A view of a network without traffic, whose random numbers are all zero.
pub(crate) struct Idle;

impl LocalView for Idle {
    fn queued(&self, _port: PortId) -> u64 {
        0
    }

    fn random(&mut self) -> u64 {
        0
    }
}

/// Calls `visit` with every switch on the way of a packet and the port it leaves by, up to and with the
/// port of its destination. `to` must be reachable. An adaptive routing goes minimally here; one that
/// draws random numbers takes one of its ways.
pub fn idle_path<L: Topology + Routing>(
    layout: &L,
    from: EndpointId,
    to: EndpointId,
    visit: impl FnMut(SwitchId, PortId),
) {
    path(layout, (from, to), &mut Idle, visit);
}

/// A step of a way: a packet at a switch, and its next hop.
pub(crate) struct Hop {
    pub(crate) at: AtSwitch,
    pub(crate) next: NextHop,
}

/// The steps of [`idle_path`], channels included.
pub(crate) fn hops<L: Topology + Routing>(
    layout: &L,
    from: EndpointId,
    to: EndpointId,
) -> impl Iterator<Item = Hop> {
    let target = layout.endpoint_address(to);
    let (switch, port) = layout.attachment(from);
    let mut state = RouteState::default();
    let mut here = Some((switch, port, VcId(0)));
    std::iter::from_fn(move || {
        let (switch, port, vc) = here?;
        let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc };
        let next = layout.route(at, target, &mut state, &mut Idle);
        here = match layout.peer(switch, next.port) {
            Attachment::Switch(peer, came_by) => Some((peer, came_by, next.vc)),
            Attachment::Endpoint(_) | Attachment::Nothing => None,
        };
        Some(Hop { at, next })
    })
}

/// [`idle_path`] where the routing sees `view` at every switch.
pub(crate) fn path<L: Topology + Routing>(
    layout: &L,
    (from, to): (EndpointId, EndpointId),
    view: &mut impl LocalView,
    mut visit: impl FnMut(SwitchId, PortId),
) {
    let target = layout.endpoint_address(to);
    let (mut switch, mut port) = layout.attachment(from);
    let mut vc = VcId(0);
    // Any block: in an idle network none.
    let mut state = RouteState(if layout.spreads_blocks() { view.random() as u32 } else { 0 });
    loop {
        let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc };
        let step = layout.route(at, target, &mut state, view);
        visit(switch, step.port);
        match layout.peer(switch, step.port) {
            Attachment::Switch(next, came_by) => (switch, port, vc) = (next, came_by, step.vc),
            Attachment::Endpoint(_) | Attachment::Nothing => return,
        }
    }
}

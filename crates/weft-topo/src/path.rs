//! The way of a single packet through an idle network.

use crate::traits::{AtSwitch, Attachment, LocalView, RouteState, Routing, Topology};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// A view of a network without traffic, whose dice always show zero.
struct Idle;

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
/// throws dice takes one of its ways.
pub fn idle_path<L: Topology + Routing>(
    layout: &L,
    from: EndpointId,
    to: EndpointId,
    visit: impl FnMut(SwitchId, PortId),
) {
    path(layout, (from, to), &mut Idle, visit);
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

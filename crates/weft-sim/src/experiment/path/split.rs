//! Latency of messages by the legs of their way.

use serde::{Deserialize, Serialize};
use weft_fabric::LinkEnd;
use weft_topo::{Attachment, Layout, Topology};
use weft_workload::path::{Leg, LegTimes, Walk};

/// Latency by [`Leg`], a mean over messages: the legs add up to it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LatencySplit {
    /// Program, messaging library, memory. A traffic pattern has none.
    pub host_ns: f64,
    /// The interface that sends, and its waits for the first link.
    pub injection_ns: f64,
    /// Links and switches, the message's own bits included.
    pub fabric_ns: f64,
    /// Waits in the last switch for the link to the destination, and the interface that receives.
    pub ejection_ns: f64,
    /// Time that the recording does not reach.
    pub not_recorded_ns: f64,
}

impl LatencySplit {
    /// The mean over `messages` messages that took `times` together.
    pub fn mean(times: &LegTimes, messages: u64) -> LatencySplit {
        let mean = |leg| times.ps(leg) as f64 / messages.max(1) as f64 / 1e3;
        LatencySplit {
            host_ns: mean(Leg::Host),
            injection_ns: mean(Leg::Injection),
            fabric_ns: mean(Leg::Fabric),
            ejection_ns: mean(Leg::Ejection),
            not_recorded_ns: mean(Leg::NotRecorded),
        }
    }

    /// Legs by name, in the order of a message's way; without what is recorded of all.
    pub fn legs(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let LatencySplit { host_ns, injection_ns, fabric_ns, ejection_ns, not_recorded_ns } = *self;
        let times = [host_ns, injection_ns, fabric_ns, ejection_ns, not_recorded_ns];
        let legs = Leg::ALL.into_iter().zip(times);
        legs.filter(|(leg, time)| *leg != Leg::NotRecorded || *time > 0.0)
            .map(|(leg, time)| (leg.name(), time))
    }
}

/// Time of a walk by leg.
pub(crate) fn leg_times(walk: &Walk, layout: &Layout) -> LegTimes {
    let mut times = LegTimes::default();
    for piece in &walk.pieces {
        times.add(piece.leg(|from| ejects(layout, from)), piece.span());
    }
    times
}

/// Whether the link that begins there leads to an endpoint.
pub(super) fn ejects(layout: &Layout, from: LinkEnd) -> bool {
    match from {
        LinkEnd::Endpoint(_) => false,
        LinkEnd::Port(switch, port) => matches!(layout.peer(switch, port), Attachment::Endpoint(_)),
    }
}

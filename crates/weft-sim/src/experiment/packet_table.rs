//! The table `packets`: when each packet was where, as a run goes.
//!
//! ```text
//!   outputs ── hops of watched packets ──► those before now, in order ──► ResultsWriter
//!                                     └──► the others wait: a line may be taken ahead of the time
//! ```

use weft_fabric::{HopRecord, LinkEnd};
use weft_results::{PacketRow, ResultsError, ResultsWriter};
use weft_units::Time;

/// Hops that are not written yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketTable {
    hops: Vec<HopRecord>,
}

impl PacketTable {
    /// Takes what a part of the network has recorded.
    pub fn take(&mut self, hops: &[HopRecord]) {
        self.hops.extend_from_slice(hops);
    }

    /// Writes those that were on their line before `before`, after which no earlier ones come.
    pub fn write(&mut self, run: u32, before: Time, results: &mut ResultsWriter) -> Result<(), ResultsError> {
        let mut hops: Vec<HopRecord> = self.hops.extract_if(.., |hop| hop.began < before).collect();
        // Parts of the network are in no particular order.
        hops.sort_unstable_by_key(|hop| (hop.began, hop.source, hop.message, end(hop.from), hop.came));
        hops.iter().try_for_each(|hop| results.push(row(run, hop)))
    }
}

/// An end of a link: the endpoint, or the switch and its port.
fn end(end: LinkEnd) -> (Option<u32>, Option<u32>, Option<u32>) {
    match end {
        LinkEnd::Endpoint(endpoint) => (Some(endpoint.0), None, None),
        LinkEnd::Port(switch, port) => (None, Some(switch.0), Some(port.0)),
    }
}

fn row(run: u32, hop: &HopRecord) -> PacketRow {
    let (from_endpoint, from_switch, from_port) = match hop.from {
        LinkEnd::Endpoint(endpoint) => (Some(endpoint), None, None),
        LinkEnd::Port(switch, port) => (None, Some(switch), Some(port)),
    };
    PacketRow {
        run,
        source_endpoint: hop.source,
        sequence: hop.message.into(),
        from_endpoint,
        from_switch,
        from_port,
        to_switch: hop.to,
        virtual_channel: hop.virtual_channel.into(),
        hops: hop.hops.into(),
        came_ps: hop.came,
        ready_ps: hop.ready,
        could_ps: hop.could,
        crossed_ps: hop.crossed,
        began_ps: hop.began,
        ended_ps: hop.ended,
        arrived_ps: hop.began.saturating_add(hop.latency),
    }
}

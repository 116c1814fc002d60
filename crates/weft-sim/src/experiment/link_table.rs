//! The tables of links and of parts, from the links of a simulated network.

use weft_fabric::LinkEnd;
use weft_network::{PoweredPart, SimulatedNetwork};
use weft_nic::Host;
use weft_results::{LinkRow, PartRow, ResultsError, ResultsWriter, Table};
use weft_topo::Attachment;
use weft_units::Span;

/// Writes what the links have done in `time`, and the energy of the parts between them.
pub(crate) fn write_links<H: Host>(
    run: u32,
    network: &dyn SimulatedNetwork<H>,
    time: Span,
    results: &mut ResultsWriter,
) -> Result<(), ResultsError> {
    write_parts(run, network, results)?;
    if !results.wants(Table::Links) {
        return Ok(());
    }
    let mut outcome = Ok(());
    network.visit_links(&mut |link| {
        if outcome.is_err() {
            return;
        }
        let (from_endpoint, from_switch, from_port) = match link.from {
            LinkEnd::Endpoint(endpoint) => (Some(endpoint), None, None),
            LinkEnd::Port(switch, port) => (None, Some(switch), Some(port)),
        };
        let (to_endpoint, to_switch, to_port) = match link.to {
            Attachment::Endpoint(endpoint) => (Some(endpoint), None, None),
            Attachment::Switch(switch, port) => (None, Some(switch), Some(port)),
            Attachment::Nothing => (None, None, None),
        };
        outcome = results.push(LinkRow {
            run,
            from_endpoint,
            from_switch,
            from_port,
            to_endpoint,
            to_switch,
            to_port,
            class: link.class.to_owned(),
            rate_bits_per_second: link.rate,
            packets: link.packets,
            packet_bytes: link.packet_bytes,
            busy_ps: link.busy,
            utilization: link.busy.as_ps() as f64 / time.as_ps().max(1) as f64,
            stall_ps: link.stalled,
            paused_ps: link.paused,
            pause_frames: link.pause_frames,
            most_held_bytes: link.most_held,
            counts: link.counts,
            energy_pj: link.power.map(|power| power.energy),
            low_power_ps: link.power.map(|power| power.low),
            power_off_ps: link.power.map(|power| power.off),
            waking_ps: link.power.map(|power| power.waking),
            wake_ups: link.power.map(|power| power.wake_ups),
        });
    });
    outcome
}

fn write_parts<H: Host>(
    run: u32,
    network: &dyn SimulatedNetwork<H>,
    results: &mut ResultsWriter,
) -> Result<(), ResultsError> {
    if !results.wants(Table::Parts) {
        return Ok(());
    }
    let mut outcome = Ok(());
    // ANCHOR: push
    network.visit_parts(&mut |part| {
        if outcome.is_err() {
            return;
        }
        let (endpoint, switch) = match part.part {
            PoweredPart::Interface(endpoint) => (Some(endpoint), None),
            PoweredPart::Switch(switch) => (None, Some(switch)),
        };
        let (packets, packet_bytes) = (part.passed.packets, part.passed.bytes);
        outcome =
            results.push(PartRow { run, endpoint, switch, packets, packet_bytes, energy_pj: part.energy });
    });
    // ANCHOR_END: push
    outcome
}

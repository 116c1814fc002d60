//! The table `flow_rates`.

use crate::row::row;
use weft_units::{BitRate, Bytes, EndpointId, Time};

row! {
    /// One flow in one interval of telemetry: the packets that came. Intervals in which none came are left
    /// out. A flow is all that one endpoint sends another in one traffic class. Coarser levels have intervals
    /// ten times as long each. Written where `--telemetry` is given and `--tables` names it, and for
    /// scenarios.
    FlowRateRow version 1
        written by Name: "--telemetry 10us --tables flow_rates"
        ordered by |row| {
            let source = u64::from(row.level) << 40 | u64::from(row.source_endpoint.0);
            let destination = u64::from(row.destination_endpoint.0) << 8 | u64::from(row.traffic_class);
            (row.run, row.end_ps, source, destination)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends.
    end_ps: Time,
    /// The endpoint that sends.
    source_endpoint: EndpointId,
    /// The endpoint that receives.
    destination_endpoint: EndpointId,
    /// The traffic class, by its place in `[[switch.classes]]`; 0 where there is none.
    traffic_class: u32,
    /// Packets that came.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
    /// The rate that congestion control allows the flow at the end of the interval; null without control, and
    /// for a flow of which the source has forgotten the rate.
    allowed_bits_per_second: Option<BitRate>,
}

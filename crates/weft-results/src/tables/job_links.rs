//! The table `job_links`.

use crate::row::{entity, row};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

row! {
    /// One direction of one link as one job used it. Links that a job did not use are left out. Written where
    /// `--links-by-job` is given.
    JobLinkRow version 1
        written by Option: "--links-by-job (of weft replay)"
        ordered by |row| {
            let from = entity(row.from_endpoint, row.from_switch);
            let port = row.from_port.map_or(0, |port| u64::from(port.0));
            (row.run, Time::ZERO, from, port << 32 | row.job.map_or(0, |job| u64::from(job) + 1))
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint that the link leaves; null where it leaves a switch.
    from_endpoint: Option<EndpointId>,
    /// The switch that it leaves; null where it leaves an endpoint.
    from_switch: Option<SwitchId>,
    /// The port of that switch.
    from_port: Option<PortId>,
    /// The switch that it ends at; null where it ends at an endpoint.
    to_switch: Option<SwitchId>,
    /// The job, by its place in `rows` of `run.json`; null for packets between endpoints that several jobs
    /// share.
    job: Option<u32>,
    /// Packets of the job that it carried, acknowledgements included.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
    /// Time in which it was sending them.
    busy_ps: Span,
    /// `busy_ps` as a share of the job's run time; of the longest where the job is null.
    utilization: f64,
}

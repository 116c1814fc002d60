//! The table `job_rates`.

use crate::row::row;
use weft_units::{Bytes, Time};

row! {
    /// One job in one interval of telemetry: the packets that came to endpoints of its ranks. Intervals in
    /// which none came are left out. Coarser levels have intervals ten times as long each. Written where
    /// `--telemetry` is given and several traces are replayed; the network counts packets by the endpoints
    /// that send and receive them.
    JobRateRow version 1
        written by Option: "--telemetry, such as --telemetry 10us, of weft replay with several traces"
        ordered by |row| {
            let job = row.job.map_or(0, |job| u64::from(job) + 1);
            // Jobs that run alone do so one after another, after all have run together.
            let alone = if row.jobs == 1 { job as u32 } else { 0 };
            (row.run + alone, row.end_ps, row.level.into(), job)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// Jobs on the machine: 1 in the rows of a job that ran alone, for `--isolated`.
    jobs: u32,
    /// The job, by its place in `rows` of `run.json`; null for packets between endpoints that several jobs
    /// share.
    job: Option<u32>,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends.
    end_ps: Time,
    /// Packets that came.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
}

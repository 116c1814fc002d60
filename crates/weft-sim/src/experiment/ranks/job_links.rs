//! The table `job_links`: what each job sent over each link, from the hops of all packets.

use super::account::run_time_of;
use crate::experiment::busiest::share;
use crate::job_sites::JobSites;
use std::collections::BTreeMap;
use weft_fabric::{HopRecord, LinkEnd};
use weft_results::{JobLinkRow, ResultsError, ResultsWriter};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId};
use weft_workload::replay::RankReport;

/// The use of links by job.
pub(crate) struct JobLinks {
    sites: JobSites,
    links: BTreeMap<JobLink, Use>,
}

/// One direction of a link, and a job. In the order of the table: links from endpoints first.
type JobLink = (LinkStart, Option<u32>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkStart {
    Endpoint(EndpointId),
    Port(SwitchId, PortId),
}

struct Use {
    to: Option<SwitchId>,
    packets: u64,
    payload: Bytes,
    busy: Span,
}

impl JobLinks {
    /// None used so far.
    pub fn new(sites: JobSites) -> JobLinks {
        JobLinks { sites, links: BTreeMap::new() }
    }

    /// Counts hops.
    pub fn take(&mut self, hops: &[HopRecord]) {
        for hop in hops {
            let from = match hop.from {
                LinkEnd::Endpoint(endpoint) => LinkStart::Endpoint(endpoint),
                LinkEnd::Port(switch, port) => LinkStart::Port(switch, port),
            };
            let job = self.sites.job_of(hop.source, hop.destination);
            let unused = Use { to: hop.to, packets: 0, payload: Bytes::ZERO, busy: Span::ZERO };
            let used = self.links.entry((from, job)).or_insert(unused);
            used.packets += 1;
            used.payload += hop.payload;
            used.busy += hop.ended - hop.began;
        }
    }

    /// Writes them; shares are of each job's own run time, by its ranks.
    pub fn write(
        &self,
        run: u32,
        ranks: &[RankReport],
        results: &mut ResultsWriter,
    ) -> Result<(), ResultsError> {
        let run_time = |job: Option<u32>| {
            let own = ranks.iter().filter(|rank| job.is_none_or(|job| rank.program == job)).copied();
            run_time_of(&own.collect::<Vec<_>>())
        };
        let mut run_times: BTreeMap<Option<u32>, Span> = BTreeMap::new();
        for (&(from, job), used) in &self.links {
            let run_time = *run_times.entry(job).or_insert_with(|| run_time(job));
            let (from_endpoint, from_switch, from_port) = match from {
                LinkStart::Endpoint(endpoint) => (Some(endpoint), None, None),
                LinkStart::Port(switch, port) => (None, Some(switch), Some(port)),
            };
            results.push(JobLinkRow {
                run,
                from_endpoint,
                from_switch,
                from_port,
                to_switch: used.to,
                job,
                packets: used.packets,
                payload_bytes: used.payload,
                busy_ps: used.busy,
                utilization: share(used.busy, run_time),
            })?;
        }
        Ok(())
    }
}

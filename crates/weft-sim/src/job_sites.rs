//! Which job a packet is of, by the endpoints that send and receive it.
//!
//! ```text
//!   endpoint    0    1    2    3        packet 0 → 1: of job a
//!   ranks of    a    a b  b    b               1 → 2: of job b, the one that has ranks at both
//! ```
//! A packet itself says nothing of jobs, so that one job costs nothing. Between two endpoints at which
//! several jobs have ranks nobody knows.

use serde::{Deserialize, Serialize};
use weft_units::EndpointId;
use weft_workload::replay::{HostRails, Seating};

/// The jobs at each endpoint.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct JobSites {
    /// By endpoint, in ascending order.
    jobs: Vec<Vec<u32>>,
}

impl JobSites {
    /// Of ranks whose messages go by so many rails of their hosts.
    pub fn of(seating: &Seating, rails: u32) -> JobSites {
        let mut sites = JobSites::default();
        for number in (0..seating.ranks()).map(weft_units::RankId) {
            let (job, _) = seating.program(number);
            for rail in 0..rails {
                let at = HostRails { count: rails }.endpoint(seating.endpoint(number), rail).index();
                if sites.jobs.len() <= at {
                    sites.jobs.resize(at + 1, Vec::new());
                }
                // Ranks come job by job.
                if sites.jobs[at].last() != Some(&job) {
                    sites.jobs[at].push(job);
                }
            }
        }
        sites
    }

    /// The job of a packet; `None`: it may be of several.
    pub fn job_of(&self, source: EndpointId, destination: EndpointId) -> Option<u32> {
        let at = |endpoint: EndpointId| self.jobs.get(endpoint.index()).map_or(&[][..], Vec::as_slice);
        let (from, to) = (at(source), at(destination));
        // A multicast packet is for no endpoint of its own.
        let mut jobs = from.iter().filter(|job| to.is_empty() || to.contains(job));
        let first = jobs.next();
        first.filter(|_| jobs.next().is_none()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a packet that goes to the wrong job, and one of either job that goes to the first.
    #[test]
    fn a_packet_is_of_the_job_at_both_ends() {
        let at = |endpoints: &[u32]| endpoints.iter().copied().map(EndpointId).collect::<Vec<_>>();
        let sites = JobSites::of(&Seating::new([at(&[0, 1, 1, 4]), at(&[1, 2, 4])]), 1);
        let job_of = |from, to| sites.job_of(EndpointId(from), EndpointId(to));
        assert_eq!([job_of(0, 1), job_of(1, 0)], [Some(0); 2]);
        assert_eq!([job_of(1, 2), job_of(2, 4)], [Some(1); 2]);
        assert_eq!([job_of(1, 4), job_of(1, 1), job_of(1, 9)], [None; 3]);
        assert_eq!([job_of(0, 9), job_of(0, 2), job_of(3, 0)], [Some(0), None, None]);
    }
}

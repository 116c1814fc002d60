//! Several jobs on one machine: which hosts each of them has.
//!
//! ```text
//!   linear             switch                    node
//!   A A B B B · · ·    A A B B A A B B           A B A B A B A B
//!   one after the      switch 0 1 2 3: one       one host after
//!   other              after the other           the other
//! ```
//! Of J jobs, job j has groups of hosts number j, j + J, j + 2 J and so on: of whole switches, or of one host
//! each. It fills its hosts in order. One job alone has them all.
//!
//! # Source
//! RED-SEA D1.4, §12.3 and Fig. 51: linear, switch and node mapping.

use crate::mapping::{CorePlace, Hosts, MappingError};
use std::collections::BTreeMap;
use weft_units::SwitchId;

/// A job that is to be put on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// Number of ranks.
    pub ranks: u64,
}

/// Groups of hosts, which jobs get in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostGroups {
    /// The name of a group in messages.
    of: &'static str,
    groups: Vec<Vec<u32>>,
}

impl HostGroups {
    /// The hosts of each switch that has some, in the order of switches.
    pub fn switches(hosts: Hosts, switch_of: impl Fn(u32) -> SwitchId) -> HostGroups {
        let mut groups: BTreeMap<SwitchId, Vec<u32>> = BTreeMap::new();
        for host in 0..hosts.hosts {
            groups.entry(switch_of(host)).or_default().push(host);
        }
        HostGroups { of: "switch", groups: groups.into_values().collect() }
    }

    /// Each host by itself.
    pub fn nodes(hosts: Hosts) -> HostGroups {
        HostGroups { of: "host", groups: (0..hosts.hosts).map(|host| vec![host]).collect() }
    }

    /// The hosts of job number `job` of `jobs`, in order.
    pub fn of_job(&self, job: usize, jobs: usize) -> Vec<u32> {
        self.groups.iter().skip(job).step_by(jobs).flatten().copied().collect()
    }
}

impl Hosts {
    /// The ranks of all jobs, after a check that they find room one job after another, `per_host` on each
    /// host; `None`: one per core.
    ///
    /// # Errors
    /// The first job that has fewer places than ranks.
    pub fn room_for(&self, jobs: &[Job<'_>], per_host: Option<u32>) -> Result<u64, MappingError> {
        let per_host = self.ranks_per_host(per_host)?;
        let places = u64::from(self.hosts) * u64::from(per_host);
        let mut taken = 0;
        for job in jobs {
            // One alone is refused with the size of the machine.
            if job.ranks > places - taken && jobs.len() > 1 {
                return Err(MappingError::JobTooLarge {
                    job: job.name.to_owned(),
                    ranks: job.ranks,
                    places: places - taken,
                    share: format!("which the jobs before it leave of {places}"),
                    hosts: self.hosts,
                    per_host,
                    more: self.more_ranks_per_host(per_host).to_owned(),
                });
            }
            taken += job.ranks;
        }
        Ok(taken)
    }

    /// The places of each job's ranks, `per_host` on each of its hosts; `None`: one per core.
    ///
    /// # Errors
    /// The first job that has more ranks than its hosts have places.
    pub fn dealt(
        &self,
        jobs: &[Job<'_>],
        per_host: Option<u32>,
        groups: &HostGroups,
    ) -> Result<Vec<CorePlace>, MappingError> {
        let per_host = self.ranks_per_host(per_host)?;
        let mut places = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            let hosts = groups.of_job(number, jobs.len());
            let own = hosts.iter().flat_map(|&host| (0..per_host).map(move |core| self.place(host, core)));
            let room = hosts.len() as u64 * u64::from(per_host);
            if job.ranks > room {
                let share = match jobs.len() {
                    1 => "which the machine has".to_owned(),
                    of => format!("its own of one {} in {of}", groups.of),
                };
                let linear = if jobs.len() > 1 { ", or leave --map out" } else { "" };
                return Err(MappingError::JobTooLarge {
                    job: job.name.to_owned(),
                    ranks: job.ranks,
                    places: room,
                    share,
                    hosts: hosts.len() as u32,
                    per_host,
                    more: self.more_ranks_per_host(per_host).to_owned() + linear,
                });
            }
            places.extend(own.take(job.ranks as usize));
        }
        Ok(places)
    }

    fn more_ranks_per_host(&self, per_host: u32) -> &'static str {
        if per_host < self.cores { ", more ranks per host with --ppn" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five hosts of two cores, two to a switch; the last switch has one.
    const HOSTS: Hosts = Hosts { hosts: 5, cores: 2, endpoints_per_host: 1 };

    fn by_switch() -> HostGroups {
        HostGroups::switches(HOSTS, |host| SwitchId(10 + host / 2))
    }

    fn job(name: &str, ranks: u64) -> Job<'_> {
        Job { name, ranks }
    }

    fn pairs(places: Vec<CorePlace>) -> Vec<(u32, u32)> {
        places.iter().map(|place| (place.endpoint.0, place.core)).collect()
    }

    /// Catches a job on another's switch or host, hosts that are not filled in order, and a last switch with
    /// fewer hosts that is left out.
    #[test]
    fn jobs_have_every_other_switch_or_host() {
        let jobs = [job("a", 5), job("b", 3)];
        let places = HOSTS.dealt(&jobs, None, &by_switch()).unwrap();
        assert_eq!(pairs(places), [(0, 0), (0, 1), (1, 0), (1, 1), (4, 0), (2, 0), (2, 1), (3, 0)]);
        let places = HOSTS.dealt(&jobs, None, &HostGroups::nodes(HOSTS)).unwrap();
        assert_eq!(pairs(places), [(0, 0), (0, 1), (2, 0), (2, 1), (4, 0), (1, 0), (1, 1), (3, 0)]);
        let one = HOSTS.dealt(&[job("a", 5)], Some(1), &by_switch()).unwrap();
        assert_eq!(one, HOSTS.linear(5, Some(1)).unwrap());
    }

    /// Catches a refusal that does not say which job, its ranks, its places and the mend.
    #[test]
    fn a_job_that_does_not_fit_is_refused_with_the_sizes() {
        let said = HOSTS.dealt(&[job("a", 3), job("b", 3)], Some(1), &by_switch()).unwrap_err().to_string();
        let expected = "b: 3 ranks do not fit on 2 cores, its own of one switch in 2 (2 hosts with 1 rank \
                        each); take a larger machine with --set, more ranks per host with --ppn, or leave \
                        --map out";
        assert_eq!(said, expected);
        let said = HOSTS.room_for(&[job("a", 8), job("b", 3)], None).unwrap_err().to_string();
        let expected = "b: 3 ranks do not fit on 2 cores, which the jobs before it leave of 10 (5 hosts with \
                        2 ranks each); take a larger machine with --set";
        assert_eq!(said, expected);
        assert_eq!(HOSTS.room_for(&[job("a", 8), job("b", 2)], None).unwrap(), 10);
        // More jobs than switches: the last has none.
        let four = ["a", "b", "c", "d"].map(|name| job(name, 1));
        assert!(HOSTS.dealt(&four, None, &by_switch()).unwrap_err().to_string().starts_with("d: 1 ranks"));
    }
}

//! Which rank sits where.
//!
//! ```text
//!   linear, 2 per host        random                   from a file
//!   host 0: ranks 0 1         any place of the machine  line n: place of rank n
//!   host 1: ranks 2 3         by the seed               M1QAF1 2
//! ```
//! A host has cores, each for one rank, and one or more endpoints, which its cores use in turn.

use crate::below;
use std::collections::{BTreeMap, BTreeSet};
use weft_engine::Stream;
use weft_units::EndpointId;

/// The hosts of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// Number of hosts.
    pub hosts: u32,
    /// Cores of each.
    pub cores: u32,
    /// Endpoints of each; host h has those from h × this on.
    pub endpoints_per_host: u32,
}

/// A core of a host, with the endpoint that its rank uses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CorePlace {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The core, counted within the host.
    pub core: u32,
}

/// The ending of a noun behind a count.
fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Ranks that cannot be placed as asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MappingError {
    /// More ranks than places.
    #[error(
        "{ranks} ranks do not fit on {places} cores ({hosts} host{} with {per_host} rank{} each); the \
         nearest that do are {places}; take as many, or a larger machine with --set{more}",
        plural(u64::from(*.hosts)), plural(u64::from(*.per_host))
    )]
    TooManyRanks {
        /// Ranks to be placed.
        ranks: u64,
        /// Cores that may be used.
        places: u64,
        /// Hosts of the machine.
        hosts: u32,
        /// Ranks per host.
        per_host: u32,
        /// Another mend, where there is one.
        more: &'static str,
    },
    /// A job among several that has more ranks than places.
    #[error(
        "{job}: {ranks} ranks do not fit on {places} cores, {share} ({hosts} host{} with {per_host} rank{} \
         each); take a larger machine with --set{more}",
        plural(u64::from(*.hosts)), plural(u64::from(*.per_host))
    )]
    JobTooLarge {
        /// The job.
        job: String,
        /// Ranks of the job.
        ranks: u64,
        /// Cores that it may use.
        places: u64,
        /// Whose cores these are.
        share: String,
        /// The hosts that `share` speaks of.
        hosts: u32,
        /// Ranks per host.
        per_host: u32,
        /// Other mends.
        more: String,
    },
    /// More ranks at one endpoint than its host has cores.
    #[error("the host of endpoint {endpoint} has {cores} cores, each for one rank; name another endpoint")]
    HostFull {
        /// The endpoint.
        endpoint: EndpointId,
        /// Cores of its host.
        cores: u32,
    },
    /// More ranks per host than it has cores.
    #[error("--ppn {per_host}: a host has {cores} cores, each for one rank; write at most {cores}")]
    TooManyPerHost {
        /// Ranks per host.
        per_host: u32,
        /// Cores of a host.
        cores: u32,
    },
    /// A line of a mapping file is wrong.
    #[error("mapping file, line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The fault in the line, and the mend.
        reason: String,
    },
    /// A mapping file has another number of lines than there are ranks.
    #[error("the mapping file places {lines} ranks and there are {ranks}; write one line for each rank")]
    Lines {
        /// Ranks that it places.
        lines: usize,
        /// Ranks to be placed.
        ranks: u64,
    },
}

impl Hosts {
    /// The place of core `core` of host `host`.
    pub(crate) fn place(&self, host: u32, core: u32) -> CorePlace {
        let endpoint = host * self.endpoints_per_host + core % self.endpoints_per_host;
        CorePlace { endpoint: EndpointId(endpoint), core }
    }

    /// Places number `0..count` when hosts are filled in order with `per_host` ranks each.
    fn place_number(&self, number: u64, per_host: u32) -> CorePlace {
        let (host, core) = (number / u64::from(per_host), number % u64::from(per_host));
        self.place(host as u32, core as u32)
    }

    /// The ranks on each full host; `None`: one per core.
    pub(crate) fn ranks_per_host(&self, per_host: Option<u32>) -> Result<u32, MappingError> {
        let cores = self.cores;
        match per_host {
            Some(per_host) if per_host > cores => Err(MappingError::TooManyPerHost { per_host, cores }),
            Some(per_host) => Ok(per_host.max(1)),
            None => Ok(cores),
        }
    }

    /// The ranks per host, after a check that all ranks find room.
    fn per_host(&self, ranks: u64, per_host: Option<u32>) -> Result<u32, MappingError> {
        let hosts = self.hosts;
        let per_host = self.ranks_per_host(per_host)?;
        let places = u64::from(hosts) * u64::from(per_host);
        if ranks > places {
            let more = if per_host < self.cores { ", or more ranks per host with --ppn" } else { "" };
            return Err(MappingError::TooManyRanks { ranks, places, hosts, per_host, more });
        }
        Ok(per_host)
    }

    /// Checks that there is room for `ranks`, with `per_host` on each host; `None`: one per core.
    ///
    /// # Errors
    /// More ranks than places.
    pub fn check_room(&self, ranks: u64, per_host: Option<u32>) -> Result<(), MappingError> {
        self.per_host(ranks, per_host).map(drop)
    }

    /// Fills hosts in order with `per_host` ranks each; `None`: one per core.
    ///
    /// # Errors
    /// More ranks than places.
    pub fn linear(&self, ranks: u64, per_host: Option<u32>) -> Result<Vec<CorePlace>, MappingError> {
        let per_host = self.per_host(ranks, per_host)?;
        Ok((0..ranks).map(|rank| self.place_number(rank, per_host)).collect())
    }

    /// Puts each rank on a place of its own, drawn from all of them: the first `per_host` cores of every
    /// host. The first steps of a Fisher-Yates shuffle (Knuth, TAOCP 3.4.2, algorithm P).
    ///
    /// # Errors
    /// More ranks than places.
    pub fn random(
        &self,
        ranks: u64,
        per_host: Option<u32>,
        seed: u64,
    ) -> Result<Vec<CorePlace>, MappingError> {
        let per_host = self.per_host(ranks, per_host)?;
        // The check above keeps the number of places, and so their numbers, below 2^64; a machine that
        // fits in memory has fewer than 2^32.
        let count = u32::try_from(u64::from(self.hosts) * u64::from(per_host)).unwrap_or(u32::MAX);
        let mut numbers: Vec<u32> = (0..count).collect();
        let mut rng = Stream::new(seed, 0, PURPOSE_MAPPING);
        for own in 0..ranks as usize {
            let other = own + below(count - own as u32, &mut || rng.next_u64()) as usize;
            numbers.swap(own, other);
        }
        let places = numbers.iter().take(ranks as usize);
        Ok(places.map(|&number| self.place_number(number.into(), per_host)).collect())
    }

    /// Puts each rank on the first free core of the host of its endpoint.
    ///
    /// # Errors
    /// More ranks of one host than it has cores.
    pub fn at(&self, endpoints: &[EndpointId]) -> Result<Vec<CorePlace>, MappingError> {
        let mut taken = BTreeMap::new();
        let place = |&endpoint: &EndpointId| {
            let core = taken.entry(endpoint.0 / self.endpoints_per_host).or_insert(0);
            if *core == self.cores {
                return Err(MappingError::HostFull { endpoint, cores: self.cores });
            }
            *core += 1;
            Ok(CorePlace { endpoint, core: *core - 1 })
        };
        endpoints.iter().map(place).collect()
    }

    /// Reads a mapping: line n has the place of rank n, an endpoint by name or number and, where that
    /// matters, its core. Without a core the rank gets the first free one of the endpoint's host. Empty
    /// lines and what follows a `#` are passed over. `endpoint` finds an endpoint by its name.
    ///
    /// # Errors
    /// The first line that is wrong; another number of lines than ranks.
    pub fn from_file(
        &self,
        text: &str,
        ranks: u64,
        endpoint: impl Fn(&str) -> Result<EndpointId, String>,
    ) -> Result<Vec<CorePlace>, MappingError> {
        let mut places = Vec::new();
        let mut taken = BTreeSet::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |reason: String| MappingError::Line { line: index + 1, reason };
            let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
            let (name, core) = match words[..] {
                [] => continue,
                [name] => (name, None),
                [name, core] => (name, Some(core)),
                _ => {
                    let reason = "expected an endpoint and at most a core, such as `17` or `M1QAF1 2`";
                    return Err(wrong(reason.to_owned()));
                }
            };
            let endpoint = endpoint(name).map_err(wrong)?;
            let host = endpoint.0 / self.endpoints_per_host;
            let core = match core {
                Some(core) => core.parse().ok().filter(|&core: &u32| core < self.cores).ok_or_else(|| {
                    wrong(format!("`{core}` is no core; write a number from 0 to {}", self.cores - 1))
                })?,
                None => (0..self.cores).find(|&core| !taken.contains(&(host, core))).ok_or_else(|| {
                    wrong(format!("all {} cores of the host of `{name}` are taken; name another", self.cores))
                })?,
            };
            if !taken.insert((host, core)) {
                return Err(wrong(format!(
                    "core {core} of the host of `{name}` is taken; each is for one rank"
                )));
            }
            places.push(CorePlace { endpoint, core });
        }
        match places.len() as u64 == ranks {
            true => Ok(places),
            false => Err(MappingError::Lines { lines: places.len(), ranks }),
        }
    }
}

const PURPOSE_MAPPING: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOSTS: Hosts = Hosts { hosts: 3, cores: 4, endpoints_per_host: 2 };

    fn number(name: &str) -> Result<EndpointId, String> {
        name.parse().ok().filter(|&n| n < 6).map(EndpointId).ok_or_else(|| format!("no endpoint `{name}`"))
    }

    #[test]
    fn linear_fills_hosts_in_order() {
        let places = HOSTS.linear(7, Some(3)).unwrap();
        let pairs: Vec<_> = places.iter().map(|place| (place.endpoint.0, place.core)).collect();
        assert_eq!(pairs, [(0, 0), (1, 1), (0, 2), (2, 0), (3, 1), (2, 2), (4, 0)]);
    }

    #[test]
    fn too_many_ranks_are_refused_with_both_numbers() {
        let error = HOSTS.linear(13, None).unwrap_err().to_string();
        assert!(
            error.contains("13 ranks") && error.contains("12 cores") && error.contains("--set"),
            "{error}"
        );
        let error = HOSTS.random(7, Some(2), 1).unwrap_err().to_string();
        assert!(error.contains("6 cores") && error.contains("--ppn"), "{error}");
        let error = HOSTS.linear(1, Some(5)).unwrap_err().to_string();
        assert!(error.contains("--ppn 5") && error.contains("at most 4"), "{error}");
    }

    /// Catches two ranks of one endpoint, or of two endpoints of one host, on one core.
    #[test]
    fn ranks_at_endpoints_get_cores_of_their_own() {
        let places = HOSTS.at(&[5, 0, 0, 1].map(EndpointId)).unwrap();
        let pairs: Vec<_> = places.iter().map(|place| (place.endpoint.0, place.core)).collect();
        assert_eq!(pairs, [(5, 0), (0, 0), (0, 1), (1, 2)]);
        let error = HOSTS.at(&[EndpointId(2); 5]).unwrap_err().to_string();
        assert!(error.contains("4 cores") && error.contains("name another"), "{error}");
    }

    #[test]
    fn a_file_names_places() {
        let text = "5 3 # the last\n\n# none\n0\n0\n1\n";
        let places = HOSTS.from_file(text, 4, number).unwrap();
        let pairs: Vec<_> = places.iter().map(|place| (place.endpoint.0, place.core)).collect();
        // Endpoints 0 and 1 are of one host: its cores go one after the other.
        assert_eq!(pairs, [(5, 3), (0, 0), (0, 1), (1, 2)]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, expected) in [
            ("0\nx\n", "line 2: no endpoint `x`"),
            ("0 4\n", "line 1: `4` is no core; write a number from 0 to 3"),
            ("0 1\n1 1\n", "line 2: core 1 of the host of `1` is taken"),
            ("0\n0\n0\n1\n\n0\n", "line 6: all 4 cores"),
            ("0 1 2\n", "line 1: expected an endpoint"),
            ("0\n", "places 1 ranks and there are 2"),
        ] {
            let error = HOSTS.from_file(text, 2, number).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        /// Catches two ranks on one core, a core that does not exist, and a mapping that ignores the seed.
        #[test]
        fn random_places_are_distinct(
            hosts in 1u32..40, cores in 1u32..5, share in 0.0f64..=1.0, seed: u64,
        ) {
            let hosts = Hosts { hosts, cores, endpoints_per_host: 1 };
            let ranks = (f64::from(hosts.hosts * cores) * share) as u64;
            let places = hosts.random(ranks, None, seed).unwrap();
            let distinct: BTreeSet<_> = places.iter().collect();
            prop_assert_eq!(distinct.len() as u64, ranks);
            prop_assert!(places.iter().all(|place| place.endpoint.0 < hosts.hosts && place.core < cores));
            prop_assert_eq!(&places, &hosts.random(ranks, None, seed).unwrap());
            if ranks > 30 {
                prop_assert_ne!(places, hosts.random(ranks, None, seed ^ 1).unwrap());
            }
        }
    }
}

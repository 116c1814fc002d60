//! Traffic patterns: where the messages of an endpoint go. One file each.
//!
//! ```
//! use weft_topo::{Layout, Star, StarRouting};
//! use weft_units::EndpointId;
//! use weft_workload::pattern::{Pattern, PatternKind, Settings};
//!
//! let machine = Layout::Star(StarRouting::new(Star::new(64)?));
//! let kind: PatternKind = "bit-complement".parse()?;
//! let mut random = || unreachable!("this pattern draws no random numbers");
//! let pattern = Pattern::new(kind, &machine, &Settings::default(), &mut random)?;
//! assert_eq!(pattern.destination(EndpointId(5), 0, &mut random), EndpointId(58));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Transpose, tornado and bit complement are defined in `weft-topo`, which also bounds their channel
//! load. To add a pattern, write its file and give it one line in the table of this one.

mod adversarial;
mod all_to_all;
mod hotspot;
mod incast;
mod multicast;
mod nearest_neighbour;
mod permutation;
mod uniform;

pub use adversarial::Adversarial;
pub use all_to_all::AllToAll;
pub use hotspot::Hotspot;
pub use incast::Incast;
pub use multicast::{Multicast, TrafficGroup};
pub use nearest_neighbour::NearestNeighbour;
pub use permutation::Permutation;
pub use uniform::Uniform;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_topo::{Layout, Permutation as FixedPermutation, Topology, Undefined};
use weft_units::EndpointId;

/// Settings of some patterns beside the endpoints; each pattern reads its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Uniform: whether an endpoint is among its own destinations. No by default.
    pub include_self: bool,
    /// Hotspot: the hot endpoints. Endpoint 0 by default.
    pub hot: Vec<EndpointId>,
    /// Hotspot: the share of messages that go to them, in parts per million. 10 % by default.
    pub hot_share_ppm: u32,
    /// Incast: the endpoint that all send to. Endpoint 0 by default.
    pub target: EndpointId,
    /// Incast: how many send to it. All others by default.
    pub senders: Option<u32>,
    /// Multicast: the groups of the machine. None by default.
    pub groups: Vec<TrafficGroup>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            include_self: false,
            hot: vec![EndpointId(0)],
            hot_share_ppm: 100_000,
            target: EndpointId(0),
            senders: None,
            groups: Vec::new(),
        }
    }
}

/// Why a pattern cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// No pattern has this name.
    #[error("unknown pattern `{name}`: {}", suggestion(nearest))]
    UnknownPattern {
        /// The unknown name as it was written.
        name: String,
        /// The name it resembles.
        nearest: Option<&'static str>,
    },
    /// The machine, or its longest dimension, is too small.
    #[error("pattern {pattern} needs at least {needed} endpoints in a line, the machine has {endpoints}")]
    TooFewEndpoints {
        /// The pattern.
        pattern: &'static str,
        /// Endpoints of the machine.
        endpoints: u32,
        /// The least number of endpoints.
        needed: u32,
    },
    /// The machine's size or its links do not allow a pattern that `weft-topo` defines.
    #[error("pattern {0}")]
    Undefined(#[from] Undefined),
    /// Every endpoint would send to itself.
    #[error(
        "pattern {0} is silent on this machine: every endpoint would send to itself; take a larger machine"
    )]
    Silent(&'static str),
    /// A named endpoint does not exist.
    #[error("pattern {pattern}: there is no endpoint {endpoint}; the machine has 0 to {}", endpoints - 1)]
    UnknownEndpoint {
        /// The pattern.
        pattern: &'static str,
        /// The endpoint that was named.
        endpoint: EndpointId,
        /// Endpoints of the machine.
        endpoints: u32,
    },
    /// Adversarial: no group has another to send to.
    #[error("pattern adversarial needs two groups or more; all {endpoints} endpoints are in one")]
    OneGroup {
        /// Endpoints of the machine.
        endpoints: u32,
    },
    /// Multicast: the machine has no groups.
    #[error(
        "pattern multicast: this machine has no groups; write [[multicast]] into its file, or \
         --set 'multicast=[{{name=\"all\", members=[\"all\"]}}]'"
    )]
    NoGroups,
    /// Hotspot: the list of hot endpoints is empty.
    #[error("pattern hotspot needs at least one hot endpoint")]
    NoHotEndpoint,
    /// Hotspot: a share of more than everything.
    #[error(
        "pattern hotspot: a share of {share_ppm} parts per million is more than all; give at most 1000000"
    )]
    ShareAboveOne {
        /// Parts per million.
        share_ppm: u32,
    },
    /// Incast: no senders, or more than there are other endpoints.
    #[error("pattern incast: {senders} senders are impossible; give 1 to {others}")]
    Senders {
        /// The number of senders asked for.
        senders: u32,
        /// The endpoints beside the target.
        others: u32,
    },
}

impl PatternError {
    /// Fails where there are fewer endpoints than `pattern` needs.
    fn require(pattern: &'static str, endpoints: u32, needed: u32) -> Result<(), PatternError> {
        match endpoints < needed {
            true => Err(PatternError::TooFewEndpoints { pattern, endpoints, needed }),
            false => Ok(()),
        }
    }
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the patterns are {}", PatternKind::ALL.map(PatternKind::name).join(", ")),
    }
}

/// Declares [`PatternKind`] and [`Pattern`] from one table: how a pattern is written, and its type.
macro_rules! patterns {
    ($($(#[$doc:meta])* $kind:ident($type:ty) = $name:literal),* $(,)?) => {
        /// The patterns by name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum PatternKind {
            $($(#[$doc])* $kind),*
        }

        impl PatternKind {
            /// All patterns.
            pub const ALL: [PatternKind; [$($name),*].len()] = [$(PatternKind::$kind),*];

            /// How the pattern is written.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PatternKind::$kind => $name),*
                }
            }
        }

        /// A traffic pattern on a machine of a certain size.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Pattern {
            $($(#[$doc])* $kind($type)),*
        }

        impl Pattern {
            /// Which pattern it is.
            pub const fn kind(&self) -> PatternKind {
                match self {
                    $(Pattern::$kind(_) => PatternKind::$kind),*
                }
            }
        }
    };
}

patterns! {
    /// Every destination equally likely.
    Uniform(Uniform) = "uniform",
    /// One fixed random partner each.
    Permutation(Permutation) = "permutation",
    /// Rows become columns.
    Transpose(FixedPermutation) = "transpose",
    /// Just under half-way around every ring.
    Tornado(FixedPermutation) = "tornado",
    /// To the mirror image.
    BitComplement(FixedPermutation) = "bit-complement",
    /// Each group to the next.
    Adversarial(Adversarial) = "adversarial",
    /// A share of the messages to a few hot endpoints.
    Hotspot(Hotspot) = "hotspot",
    /// Many to one.
    Incast(Incast) = "incast",
    /// Members to their multicast groups.
    Multicast(Multicast) = "multicast",
    /// Each to all others in shifted order.
    AllToAll(AllToAll) = "all-to-all",
    /// To the neighbours in turn.
    NearestNeighbour(NearestNeighbour) = "nearest-neighbour",
}

impl Pattern {
    /// The pattern `kind` on a machine. `random` draws a permutation; no other pattern calls it here.
    ///
    /// # Errors
    /// Where the machine or the settings do not fit the pattern.
    pub fn new(
        kind: PatternKind,
        machine: &Layout,
        settings: &Settings,
        random: &mut impl FnMut() -> u64,
    ) -> Result<Pattern, PatternError> {
        let endpoints = machine.endpoints();
        let fixed = |pattern| FixedPermutation::new(pattern, machine);
        let pattern = match kind {
            PatternKind::Uniform => Pattern::Uniform(Uniform::new(endpoints, settings.include_self)?),
            PatternKind::Permutation => Pattern::Permutation(Permutation::new(endpoints, random)?),
            PatternKind::Transpose => Pattern::Transpose(fixed(weft_topo::Pattern::Transpose)?),
            PatternKind::Tornado => Pattern::Tornado(fixed(weft_topo::Pattern::Tornado)?),
            PatternKind::BitComplement => Pattern::BitComplement(fixed(weft_topo::Pattern::BitComplement)?),
            PatternKind::Adversarial => Pattern::Adversarial(Adversarial::new(machine)?),
            PatternKind::Hotspot => {
                Pattern::Hotspot(Hotspot::new(endpoints, &settings.hot, settings.hot_share_ppm)?)
            }
            PatternKind::Incast => {
                Pattern::Incast(Incast::new(endpoints, settings.target, settings.senders)?)
            }
            PatternKind::Multicast => Pattern::Multicast(Multicast::new(&settings.groups)?),
            PatternKind::AllToAll => Pattern::AllToAll(AllToAll::new(endpoints)?),
            PatternKind::NearestNeighbour => {
                Pattern::NearestNeighbour(NearestNeighbour::new(&machine.shape())?)
            }
        };
        if let Pattern::Adversarial(groups) = &pattern {
            let mut reached =
                (0..endpoints).map(|from| (EndpointId(from), groups.next_group(EndpointId(from)).0));
            if let Some((from, to)) = reached.find(|&(from, to)| !machine.reachable(from, to)) {
                return Err(Undefined::Unreachable { from, to }.into());
            }
        }
        if pattern.goes_everywhere() {
            let from = EndpointId(0);
            if let Some(to) = (0..endpoints).map(EndpointId).find(|&to| !machine.reachable(from, to)) {
                return Err(Undefined::Unreachable { from, to }.into());
            }
        }
        match (0..endpoints).any(|source| pattern.sends(EndpointId(source))) {
            true => Ok(pattern),
            false => Err(PatternError::Silent(kind.name())),
        }
    }

    /// Whether any endpoint may be sent to from anywhere, so that all must be joined. The others have
    /// looked at their own pairs or stay on the rings of the machine.
    fn goes_everywhere(&self) -> bool {
        match self {
            Pattern::Uniform(_)
            | Pattern::Permutation(_)
            | Pattern::Hotspot(_)
            | Pattern::Incast(_)
            | Pattern::AllToAll(_) => true,
            Pattern::Transpose(_)
            | Pattern::Tornado(_)
            | Pattern::BitComplement(_)
            | Pattern::Adversarial(_)
            | Pattern::Multicast(_)
            | Pattern::NearestNeighbour(_) => false,
        }
    }

    /// Whether `source` sends at all. The target of an incast and the diagonal of a transpose do not.
    pub fn sends(&self, source: EndpointId) -> bool {
        match self {
            Pattern::Transpose(p) | Pattern::Tornado(p) | Pattern::BitComplement(p) => {
                p.destination(source) != source
            }
            Pattern::Incast(p) => p.sends(source),
            Pattern::Multicast(p) => p.sends(source),
            _ => true,
        }
    }

    /// Where message number `message`, counted from 0, of `source` goes. `source` must be an endpoint
    /// of the machine that [sends](Pattern::sends). Of multicast it is a group.
    #[inline]
    pub fn destination(
        &self,
        source: EndpointId,
        message: u64,
        random: &mut impl FnMut() -> u64,
    ) -> EndpointId {
        match self {
            Pattern::Uniform(p) => p.destination(source, random),
            Pattern::Permutation(p) => p.destination(source),
            Pattern::Transpose(p) | Pattern::Tornado(p) | Pattern::BitComplement(p) => p.destination(source),
            Pattern::Adversarial(p) => p.destination(source, random),
            Pattern::Hotspot(p) => p.destination(source, random),
            Pattern::Incast(p) => p.destination(),
            Pattern::Multicast(p) => p.destination(source, message),
            Pattern::AllToAll(p) => p.destination(source, message),
            Pattern::NearestNeighbour(p) => p.destination(source, message),
        }
    }
}

impl fmt::Display for PatternKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PatternKind {
    type Err = PatternError;

    /// Reads a name; underscores count as hyphens.
    fn from_str(text: &str) -> Result<PatternKind, PatternError> {
        let name = text.trim().to_ascii_lowercase().replace('_', "-");
        PatternKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let near = PatternKind::ALL.map(|kind| (strsim::jaro_winkler(kind.name(), &name), kind.name()));
            let best = near.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
            PatternError::UnknownPattern {
                name: text.to_owned(),
                nearest: best.filter(|(similarity, _)| *similarity > 0.8).map(|(_, name)| name),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::rng;
    use proptest::prelude::*;
    use weft_topo::{Dimension, DimensionOrder, Exanest, ExanestOrder, Torus};

    fn torus(sizes: &[u64], concentration: u64) -> Layout {
        let dimensions: Vec<_> = sizes.iter().map(|&size| Dimension { size, wrap: true }).collect();
        Layout::Torus(DimensionOrder::new(Torus::new(&dimensions, concentration).unwrap(), true))
    }

    proptest! {
        /// Catches, for every pattern on machines of all shapes, a destination outside the machine, a
        /// message to oneself from an endpoint that sends, and state that serde loses.
        #[test]
        fn destinations_are_other_endpoints(
            (sizes, concentration) in (prop::collection::vec(1u64..9, 1..4), 1u64..4),
            seed: u64,
            (source, message) in any::<(u32, u64)>(),
        ) {
            let machine = torus(&sizes, concentration);
            let source = EndpointId(source % machine.endpoints());
            for kind in PatternKind::ALL {
                let mut random = rng(seed);
                let pattern = match Pattern::new(kind, &machine, &Settings::default(), &mut random) {
                    Ok(pattern) => pattern,
                    Err(error) => {
                        let demanding = matches!(
                            kind,
                            PatternKind::Transpose | PatternKind::Tornado | PatternKind::Multicast
                        );
                        prop_assert!(demanding || sizes.iter().all(|&size| size == 1), "{}", error);
                        continue;
                    }
                };
                prop_assert_eq!(pattern.kind(), kind);
                let saved = postcard::to_stdvec(&pattern).unwrap();
                prop_assert_eq!(&postcard::from_bytes::<Pattern>(&saved).unwrap(), &pattern);
                if pattern.sends(source) {
                    let to = pattern.destination(source, message, &mut random);
                    prop_assert!(to.0 < machine.endpoints() && to != source, "{kind}: {source} to {to}");
                }
            }
        }
    }

    /// Catches a pattern that runs and measures nothing.
    #[test]
    fn a_machine_that_does_not_fit_is_told() {
        let error = |name: &str, machine: &Layout| {
            let kind = name.parse().unwrap();
            Pattern::new(kind, machine, &Settings::default(), &mut rng(1)).unwrap_err().to_string()
        };
        assert!(error("tornado", &torus(&[2, 2], 1)).contains("every endpoint would send to itself"));
        assert!(error("transpose", &torus(&[7, 5], 1)).contains("such as 36; the machine has 35"));
        assert!(error("uniform", &torus(&[1], 1)).contains("at least 2 endpoints"));
    }

    /// Catches traffic between the two sub-systems of the ExaNeSt rack, which no link joins.
    #[test]
    fn parts_that_no_link_joins_exchange_nothing() {
        let rack = Layout::Exanest(ExanestOrder::new(Exanest::new(12).unwrap(), true));
        // The members of a group are joined: that is asked when the group is made.
        for kind in PatternKind::ALL.into_iter().filter(|kind| *kind != PatternKind::Multicast) {
            match Pattern::new(kind, &rack, &Settings::default(), &mut rng(1)) {
                Ok(pattern) => {
                    for source in (0..rack.endpoints()).map(EndpointId) {
                        for message in 0..8 {
                            let to = pattern.destination(source, message, &mut rng(2));
                            assert!(rack.reachable(source, to), "{kind}: {source} to {to}");
                        }
                    }
                }
                // A machine without groups has no multicast.
                Err(error) => {
                    let is_multicast = kind == PatternKind::Multicast;
                    assert!(matches!(error, PatternError::Undefined(_)) || is_multicast, "{error}");
                }
            }
        }
    }

    #[test]
    fn names_are_read_and_near_ones_suggested() {
        for kind in PatternKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("Bit_Complement".parse(), Ok(PatternKind::BitComplement));
        let error = |text: &str| text.parse::<PatternKind>().unwrap_err().to_string();
        assert_eq!(error("unifrom"), "unknown pattern `unifrom`: did you mean `uniform`?");
        assert_eq!(
            error("nearest-neighbor"),
            "unknown pattern `nearest-neighbor`: did you mean `nearest-neighbour`?"
        );
        assert!(error("xyz").contains("uniform, permutation, transpose"));
    }
}

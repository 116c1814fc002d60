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
//! To add a pattern, write its file and give it a line in `patterns!`.

mod adversarial;
mod all_to_all;
mod fixed;
mod hotspot;
mod incast;
mod multicast;
mod nearest_neighbour;
mod permutation;
mod uniform;

pub use multicast::TrafficGroup;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_topo::{Layout, Topology, Undefined};
use weft_units::EndpointId;

/// A rule that says where the messages of an endpoint go.
pub trait TrafficPattern: Sized {
    /// Whether it draws a new destination for every message, so that a flow is all that a source sends.
    const DRAWS: bool = false;

    /// Whether any endpoint may be sent to from anywhere, so that all must be joined. One that does not has
    /// looked at its own pairs, or stays on the rings of the machine.
    const GOES_EVERYWHERE: bool = false;

    /// The pattern of which `weft-topo` knows the bound of the channel load; `None`: of none like it.
    const BOUND: Option<weft_topo::Pattern> = None;

    /// The pattern on a machine. `random` returns 64 uniform bits.
    ///
    /// # Errors
    /// Where the machine or the settings do not fit it.
    fn on(input: &PatternInput<'_>, random: &mut impl FnMut() -> u64) -> Result<Self, PatternError>;

    /// Whether `source` sends at all.
    fn sends(&self, _source: EndpointId) -> bool {
        true
    }

    /// The destination of message number `message`, counted from 0, of `source`, which
    /// [sends](TrafficPattern::sends).
    fn destination(&self, source: EndpointId, message: u64, random: &mut impl FnMut() -> u64) -> EndpointId;

    /// Messages that are delivered for one of each sender, where switches copy them; `None`: as many.
    fn deliveries(&self) -> Option<u64> {
        None
    }
}

/// The surroundings in which a pattern is made.
pub struct PatternInput<'a> {
    /// The machine.
    pub machine: &'a Layout,
    /// Settings of the user.
    pub settings: &'a Settings,
}

impl PatternInput<'_> {
    /// Endpoints of the machine.
    pub fn endpoints(&self) -> u32 {
        self.machine.endpoints()
    }
}

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
    /// Checks that there are as many endpoints as `pattern` needs.
    ///
    /// # Errors
    /// [`PatternError::TooFewEndpoints`].
    pub fn require(pattern: &'static str, endpoints: u32, needed: u32) -> Result<(), PatternError> {
        match endpoints < needed {
            true => Err(PatternError::TooFewEndpoints { pattern, endpoints, needed }),
            false => Ok(()),
        }
    }
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the patterns are {}", PatternKind::NAMES.join(", ")),
    }
}

/// Declares [`PatternKind`] and [`Pattern`] from one table: the type of a pattern, its name, its file.
macro_rules! patterns {
    ($($(#[$doc:meta])* $kind:ident = $name:literal in $module:ident,)*) => {
        $(pub use $module::$kind;)*

        /// The patterns by name.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum PatternKind {
            $($(#[$doc])* $kind),*
        }

        impl PatternKind {
            /// All patterns.
            pub const ALL: [PatternKind; [$($name),*].len()] = [$(PatternKind::$kind),*];

            /// Their names.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// The name of the pattern.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PatternKind::$kind => $name),*
                }
            }

            /// See [`TrafficPattern::BOUND`].
            pub const fn bound(self) -> Option<weft_topo::Pattern> {
                match self {
                    $(PatternKind::$kind => $kind::BOUND),*
                }
            }
        }

        /// A traffic pattern on a machine of a certain size.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Pattern {
            $($(#[$doc])* $kind($kind)),*
        }

        impl Pattern {
            /// The pattern as it is on a machine, whoever it reaches.
            fn on(
                kind: PatternKind,
                input: &PatternInput<'_>,
                random: &mut impl FnMut() -> u64,
            ) -> Result<Pattern, PatternError> {
                match kind {
                    $(PatternKind::$kind => $kind::on(input, random).map(Pattern::$kind)),*
                }
            }

            /// The kind of pattern.
            pub const fn kind(&self) -> PatternKind {
                match self {
                    $(Pattern::$kind(_) => PatternKind::$kind),*
                }
            }

            /// See [`TrafficPattern::DRAWS`].
            pub const fn draws_destinations(&self) -> bool {
                match self {
                    $(Pattern::$kind(_) => $kind::DRAWS),*
                }
            }

            /// See [`TrafficPattern::GOES_EVERYWHERE`].
            const fn goes_everywhere(&self) -> bool {
                match self {
                    $(Pattern::$kind(_) => $kind::GOES_EVERYWHERE),*
                }
            }

            /// Whether `source` sends at all. The target of an incast and the diagonal of a transpose do not.
            pub fn sends(&self, source: EndpointId) -> bool {
                match self {
                    $(Pattern::$kind(pattern) => pattern.sends(source)),*
                }
            }

            /// The destination of message number `message`, counted from 0, of `source`, which must be an
            /// endpoint of the machine that [sends](Pattern::sends). Of multicast it is a group.
            #[inline]
            pub fn destination(
                &self,
                source: EndpointId,
                message: u64,
                random: &mut impl FnMut() -> u64,
            ) -> EndpointId {
                match self {
                    $(Pattern::$kind(pattern) => pattern.destination(source, message, random)),*
                }
            }

            /// See [`TrafficPattern::deliveries`].
            pub fn deliveries(&self) -> Option<u64> {
                match self {
                    $(Pattern::$kind(pattern) => pattern.deliveries()),*
                }
            }
        }
    };
}

patterns! {
    /// Every destination equally likely.
    Uniform = "uniform" in uniform,
    /// One fixed random partner each.
    Permutation = "permutation" in permutation,
    /// Rows become columns.
    Transpose = "transpose" in fixed,
    /// Just under half-way input every ring.
    Tornado = "tornado" in fixed,
    /// To the mirror image.
    BitComplement = "bit-complement" in fixed,
    /// Each group to the next.
    Adversarial = "adversarial" in adversarial,
    /// A share of the messages to a few hot endpoints.
    Hotspot = "hotspot" in hotspot,
    /// Many to one.
    Incast = "incast" in incast,
    /// Members to their multicast groups.
    Multicast = "multicast" in multicast,
    /// Each to all others in shifted order.
    AllToAll = "all-to-all" in all_to_all,
    /// To the neighbours in turn.
    NearestNeighbour = "nearest-neighbour" in nearest_neighbour,
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
        let pattern = Pattern::on(kind, &PatternInput { machine, settings }, random)?;
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
            let nearest = weft_keys::nearest(&name, PatternKind::NAMES);
            PatternError::UnknownPattern { name: text.to_owned(), nearest }
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

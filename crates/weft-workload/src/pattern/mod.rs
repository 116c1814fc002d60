//! Traffic patterns: where the messages of an endpoint go. One file each.
//!
//! ```
//! use weft_units::EndpointId;
//! use weft_workload::pattern::{Grid, Pattern, PatternKind, Settings};
//!
//! let kind: PatternKind = "tornado".parse()?;
//! let mut random = || unreachable!("a tornado throws no dice");
//! let pattern = Pattern::new(kind, &Grid::torus(&[8, 8])?, &Settings::default(), &mut random)?;
//! assert_eq!(pattern.destination(EndpointId(0), 0, &mut random), EndpointId(3 + 3 * 8));
//! # Ok::<(), weft_workload::pattern::PatternError>(())
//! ```
//!
//! To add a pattern, write its file and give it one line in the table at the end of this one.

mod all_to_all;
mod bit_complement;
mod grid;
mod hotspot;
mod incast;
mod nearest_neighbour;
mod permutation;
mod tornado;
mod transpose;
mod uniform;

pub use all_to_all::AllToAll;
pub use bit_complement::BitComplement;
pub use grid::Grid;
pub use hotspot::Hotspot;
pub use incast::Incast;
pub use nearest_neighbour::NearestNeighbour;
pub use permutation::Permutation;
pub use tornado::Tornado;
pub use transpose::Transpose;
pub use uniform::Uniform;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_units::EndpointId;

/// What some patterns need to know beside the endpoints; each looks at its own.
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
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            include_self: false,
            hot: vec![EndpointId(0)],
            hot_share_ppm: 100_000,
            target: EndpointId(0),
            senders: None,
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
        /// What was written.
        name: String,
        /// The name it resembles.
        nearest: Option<&'static str>,
    },
    /// The machine, or its longest dimension, is too small.
    #[error("pattern {pattern} needs at least {needed} endpoints in line, the machine has {endpoints}")]
    TooFewEndpoints {
        /// The pattern.
        pattern: &'static str,
        /// How many there are.
        endpoints: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Transpose: the endpoints form no square matrix.
    #[error(
        "pattern transpose needs a square number of endpoints, the machine has {endpoints}; \
         {below} is the next below: change the machine's size or take bit-complement"
    )]
    NotSquare {
        /// How many there are.
        endpoints: u32,
        /// The next square below.
        below: u32,
    },
    /// A named endpoint does not exist.
    #[error("pattern {pattern}: there is no endpoint {endpoint}; the machine has 0 to {}", endpoints - 1)]
    UnknownEndpoint {
        /// The pattern.
        pattern: &'static str,
        /// The endpoint that was named.
        endpoint: EndpointId,
        /// How many there are.
        endpoints: u32,
    },
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
        /// How many were asked for.
        senders: u32,
        /// How many endpoints there are beside the target.
        others: u32,
    },
    /// The dimensions multiply to more than 2³² endpoints.
    #[error("a grid of {dims:?} has more endpoints than 32 bits can number")]
    GridTooLarge {
        /// The sizes of the dimensions.
        dims: Vec<u32>,
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
    ($($(#[$doc:meta])* $kind:ident = $name:literal),* $(,)?) => {
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
            $($(#[$doc])* $kind($kind)),*
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
    Uniform = "uniform",
    /// One fixed random partner each.
    Permutation = "permutation",
    /// Rows become columns.
    Transpose = "transpose",
    /// Just under half-way around every ring.
    Tornado = "tornado",
    /// To the mirror image.
    BitComplement = "bit-complement",
    /// A share of the messages to a few hot endpoints.
    Hotspot = "hotspot",
    /// Many to one.
    Incast = "incast",
    /// Each to all others in shifted order.
    AllToAll = "all-to-all",
    /// To the neighbours in turn.
    NearestNeighbour = "nearest-neighbour",
}

impl Pattern {
    /// The pattern `kind` among the endpoints of `grid`. `random` draws a permutation; no other
    /// pattern calls it here.
    ///
    /// # Errors
    /// Where the machine's size or the settings do not fit the pattern.
    pub fn new(
        kind: PatternKind,
        grid: &Grid,
        settings: &Settings,
        random: &mut impl FnMut() -> u64,
    ) -> Result<Pattern, PatternError> {
        let endpoints = grid.endpoints();
        Ok(match kind {
            PatternKind::Uniform => Pattern::Uniform(Uniform::new(endpoints, settings.include_self)?),
            PatternKind::Permutation => Pattern::Permutation(Permutation::new(endpoints, random)?),
            PatternKind::Transpose => Pattern::Transpose(Transpose::new(endpoints)?),
            PatternKind::Tornado => Pattern::Tornado(Tornado::new(grid)?),
            PatternKind::BitComplement => Pattern::BitComplement(BitComplement::new(endpoints)?),
            PatternKind::Hotspot => {
                Pattern::Hotspot(Hotspot::new(endpoints, &settings.hot, settings.hot_share_ppm)?)
            }
            PatternKind::Incast => {
                Pattern::Incast(Incast::new(endpoints, settings.target, settings.senders)?)
            }
            PatternKind::AllToAll => Pattern::AllToAll(AllToAll::new(endpoints)?),
            PatternKind::NearestNeighbour => Pattern::NearestNeighbour(NearestNeighbour::new(grid)?),
        })
    }

    /// Whether `source` sends at all. The target of an incast and the diagonal of a transpose do not.
    pub fn sends(&self, source: EndpointId) -> bool {
        match self {
            Pattern::Transpose(p) => p.destination(source) != source,
            Pattern::BitComplement(p) => p.destination(source) != source,
            Pattern::Incast(p) => p.sends(source),
            _ => true,
        }
    }

    /// Where message number `message`, counted from 0, of `source` goes. `source` must be an endpoint
    /// of the machine that [sends](Pattern::sends).
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
            Pattern::Transpose(p) => p.destination(source),
            Pattern::Tornado(p) => p.destination(source),
            Pattern::BitComplement(p) => p.destination(source),
            Pattern::Hotspot(p) => p.destination(source, random),
            Pattern::Incast(p) => p.destination(),
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
    use crate::dice::dice;
    use proptest::prelude::*;

    proptest! {
        /// Catches, for every pattern on grids of all shapes, a destination outside the machine, a
        /// message to oneself from an endpoint that sends, and state that serde loses.
        #[test]
        fn destinations_are_other_endpoints(
            dims in prop::collection::vec(1u32..9, 1..4), seed: u64, source: u32, message: u64,
        ) {
            let grid = Grid::torus(&dims).unwrap();
            let source = EndpointId(source % grid.endpoints());
            for kind in PatternKind::ALL {
                let mut random = dice(seed);
                let Ok(pattern) = Pattern::new(kind, &grid, &Settings::default(), &mut random) else {
                    prop_assert!(grid.endpoints() < 4 || matches!(kind, PatternKind::Transpose | PatternKind::Tornado));
                    continue;
                };
                prop_assert_eq!(pattern.kind(), kind);
                let saved = postcard::to_stdvec(&pattern).unwrap();
                prop_assert_eq!(&postcard::from_bytes::<Pattern>(&saved).unwrap(), &pattern);
                if pattern.sends(source) {
                    let to = pattern.destination(source, message, &mut random);
                    prop_assert!(to.0 < grid.endpoints() && to != source, "{kind}: {source} to {to}");
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

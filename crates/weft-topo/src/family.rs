//! Families of topologies: from the keys of a machine file to a layout.
//!
//! ```text
//!   keys of a machine file ──read──▶ parameters ──build──▶ layout
//!   kind = "kary-tree"               KaryTreeParameters    UpDown: a tree
//!   k = 4, n = 3                     { k: 4, n: 3, .. }    and its routing
//! ```
//! A family declares its keys with [`parameters!`](crate::parameters) and the words of its routings with
//! [`routings!`](crate::routings). Who reads machine files makes the parser, the schema and the page of the
//! book from these tables. No text is read here.

use crate::drawing::Places;
use crate::figures::ClosedForms;
use crate::graph::{GraphClass, GraphDescription};
use crate::proof::Ranked;
use crate::size::{SizeError, check_counts};
use crate::traits::RoutedTopology;
use weft_keys::{Key, Keys, Misfit, Word};

/// The size of a machine in closed form, before anything is built. Counts saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Endpoints.
    pub endpoints: u128,
    /// Switches.
    pub switches: u128,
    /// Ports of all switches together, those joined to nothing included: at least as many as there are, at
    /// most twice as many.
    pub ports: u128,
    /// Virtual channels of the routing: at least as many as it needs, at most twice as many.
    pub virtual_channels: u32,
}

impl Counts {
    /// Checks the counts against the limits.
    ///
    /// # Errors
    /// What there is too much of.
    pub fn check(&self) -> Result<(), SizeError> {
        check_counts(self.endpoints, self.switches, self.ports)
    }
}

/// A family of topologies with its routings. A value of the type describes one machine of the family.
pub trait Family: Keys {
    /// The value of `kind` in machine files.
    const NAME: &'static str;
    /// The family in words, as a sentence begins.
    const TITLE: &'static str;
    /// The routings that machines of the family may have, the usual one first.
    const ROUTINGS: &'static [Word] = match Self::KEYS {
        [.., routing] => routing.words,
        [] => &[],
    };
    /// The topology with its routing.
    type Layout: RoutedTopology + Ranked + ClosedForms;

    /// Checks what the keys' types do not say, such as that parameters fit together.
    ///
    /// # Errors
    /// The key to change, and how.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }

    /// The size of the machine.
    fn counts(&self) -> Counts;

    /// The machine.
    ///
    /// # Errors
    /// A size that no machine has.
    fn build(&self) -> Result<Self::Layout, SizeError>;

    /// Kinds of links between switches of which the topology itself knows more than their names.
    fn links(&self) -> &[GraphClass] {
        &[]
    }

    /// The description of a graph that the machine names a file of, to be filled with what the file says.
    fn graph_file(&mut self) -> Option<&mut GraphDescription> {
        None
    }

    /// Where the switches of the machine lie in a drawing: on a circle, where the family gives no better.
    fn places(&self, layout: &Self::Layout) -> Places {
        Places::on_circle(layout)
    }

    /// Small machines of the family, with every routing. The properties that every topology and routing
    /// must have are tested on them.
    fn examples() -> Vec<Self>;
}

/// A family's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FamilyKeys {
    /// [`Family::NAME`].
    pub name: &'static str,
    /// [`Family::TITLE`].
    pub title: &'static str,
    /// [`Keys::KEYS`], but for that of the routing.
    pub keys: &'static [Key],
    /// [`Family::ROUTINGS`].
    pub routings: &'static [Word],
}

impl FamilyKeys {
    /// The tables of a family.
    pub const fn of<F: Family>() -> FamilyKeys {
        let keys = match F::KEYS {
            [keys @ .., _routing] => keys,
            [] => &[],
        };
        FamilyKeys { name: F::NAME, title: F::TITLE, keys, routings: F::ROUTINGS }
    }
}

/// Declares the parameters of a family: a type whose fields are the keys of machine files, in their order, as
/// [`weft_keys::keys!`] has them, and the choice among its routings.
///
/// ```
/// weft_topo::routings! {
///     /// Routings of a ring.
///     pub enum RingRouting {
///         /// The shorter way round.
///         Shorter = "shorter",
///     }
/// }
///
/// weft_topo::parameters! {
///     /// A ring.
///     pub struct RingParameters routed by RingRouting {
///         /// Switches of the ring.
///         switches: u32;
///         /// Endpoints at every switch; 1 where not given.
///         endpoints_per_switch: u32 = 1;
///     }
/// }
/// ```
#[macro_export]
macro_rules! parameters {
    ($(#[$doc:meta])* $vis:vis struct $name:ident routed by $routing:ident { $($keys:tt)* }) => {
        $crate::weft_keys::keys! {
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
            $vis struct $name {
                $($keys)*
                /// Which way packets go; the first that the kind of topology has where not given.
                routing: $routing, usual();
            }
        }
    };
}

/// A question to a routing before the machine is built. Made by [`routings!`](crate::routings).
pub trait RoutingWord {
    /// Whether it looks at queues that other switches publish.
    fn needs_published_queues(&self) -> bool;
}

/// Declares the routings of a family: an enum whose variants carry the words of machine files, the usual one
/// first, as [`weft_keys::choices!`] has them. The fields of a variant are keys that only this routing has.
/// `looks_at_published_queues: …;` behind the braces names those for which switches publish their queues.
///
/// ```
/// weft_topo::routings! {
///     /// Routings of a ring.
///     pub enum RingRouting {
///         /// The shorter way round.
///         Shorter = "shorter",
///         /// The shorter way round, unless its queue is too long.
///         Adaptive = "adaptive" {
///             /// Bytes that a queue may hold; 0 where not given.
///             threshold: weft_units::Bytes = weft_units::Bytes::ZERO;
///         },
///     }
/// }
/// ```
#[macro_export]
macro_rules! routings {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($words:tt)* }
        $(looks_at_published_queues: $($published:ident),+;)?) => {
        $crate::weft_keys::choices! {
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
            $vis enum $name: "Routing", "a routing" { $($words)* }
        }

        impl $crate::RoutingWord for $name {
            fn needs_published_queues(&self) -> bool {
                false $($(|| matches!(self, $name::$published { .. }))+)?
            }
        }
    };
}

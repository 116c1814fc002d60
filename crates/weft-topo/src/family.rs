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
use std::fmt;
use weft_units::Bytes;

/// How the value of a key is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// A whole number, at least 1.
    Count,
    /// A list of whole numbers, each at least 1.
    Counts,
    /// A size in bytes.
    Size,
    /// True or false.
    Flag,
    /// The path of a file that describes a graph.
    Graph,
    /// One of some words.
    Word {
        /// The kind of thing that they name, with its article.
        what: &'static str,
        /// The words.
        words: &'static [&'static str],
    },
}

/// The value of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyValue {
    /// Of [`KeyKind::Count`].
    Count(u32),
    /// Of [`KeyKind::Counts`].
    Counts(Vec<u32>),
    /// Of [`KeyKind::Size`].
    Size(Bytes),
    /// Of [`KeyKind::Flag`].
    Flag(bool),
    /// Of [`KeyKind::Graph`]: the graph that the file describes.
    Graph(Box<GraphDescription>),
    /// Of [`KeyKind::Word`].
    Word(&'static str),
}

impl fmt::Display for KeyValue {
    /// As machine files write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Count(count) => write!(f, "{count}"),
            KeyValue::Counts(counts) => write!(f, "{counts:?}"),
            KeyValue::Size(bytes) => write!(f, "{bytes}"),
            KeyValue::Flag(truth) => write!(f, "{truth}"),
            KeyValue::Graph(graph) => f.write_str(&graph.file),
            KeyValue::Word(word) => f.write_str(word),
        }
    }
}

/// A type that a key may have.
pub trait KeyType: Sized {
    /// How it is written.
    const KIND: KeyKind;
    /// The value as this type; `None`: it is of another kind.
    fn from_value(value: KeyValue) -> Option<Self>;
    /// This as a value.
    fn into_value(self) -> KeyValue;
}

macro_rules! key_type {
    ($type:ty, $kind:ident) => {
        impl KeyType for $type {
            const KIND: KeyKind = KeyKind::$kind;

            fn from_value(value: KeyValue) -> Option<$type> {
                if let KeyValue::$kind(value) = value { Some(value) } else { None }
            }

            fn into_value(self) -> KeyValue {
                KeyValue::$kind(self)
            }
        }
    };
}

key_type!(u32, Count);
key_type!(Vec<u32>, Counts);
key_type!(Bytes, Size);
key_type!(bool, Flag);

/// A key of machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// How its value is written.
    pub kind: KeyKind,
    /// Whether a machine must give it.
    pub is_needed: bool,
    /// The meaning with its unit, a sentence; and the value where a machine does not give one.
    pub meaning: &'static str,
}

/// A routing that a family has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoutingWord {
    /// The value of `routing` in machine files.
    pub name: &'static str,
    /// The way that it sends packets.
    pub meaning: &'static str,
    /// The keys that only this routing has.
    pub keys: &'static [Key],
}

/// The keys that a machine gives, and who hears of those that it does not give.
pub trait GivenKeys {
    /// The value of a key; `None`: the machine does not give it.
    fn value(&self, key: &'static str) -> Option<KeyValue>;
    /// The machine must give this key and does not.
    fn report_missing(&mut self, key: &'static str);
    /// The value of a key that the machine does not give follows from others, for this reason.
    fn derive(&mut self, key: &'static str, value: KeyValue, how: &'static str);
}

/// The choice among a family's routings, with its parameters. Made by [`routings!`](crate::routings).
pub trait RoutingChoice: Sized {
    /// The routings by name; the first is the usual one.
    const WORDS: &'static [RoutingWord];
    /// The routing that the key `routing` names, else the usual one. `None`: the family has none of this
    /// name.
    fn read(given: &mut impl GivenKeys) -> Option<Self>;
    /// The word of this routing.
    fn word(&self) -> &'static str;
}

/// The keys of a family as a type. Made by [`parameters!`](crate::parameters).
pub trait Parameters: Sized {
    /// The keys, the one that mainly gives the size first.
    const KEYS: &'static [Key];
    /// The routings that machine files may choose from.
    type Routing: RoutingChoice;
    /// The parameters that a machine gives. `None`: something is missing, and was reported.
    fn read(given: &mut impl GivenKeys) -> Option<Self>;
    /// The routing that the machine chose.
    fn routing(&self) -> &Self::Routing;
}

/// Parameters that no machine of the family has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The key to change.
    pub key: &'static str,
    /// The mistake, as the first line of the report.
    pub title: String,
    /// Why, in a few words. May be empty.
    pub label: String,
    /// The mend.
    pub help: String,
}

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
pub trait Family: Parameters {
    /// The value of `kind` in machine files.
    const NAME: &'static str;
    /// The family in words, as a sentence begins.
    const TITLE: &'static str;
    /// The routings that machines of the family may have, the usual one first.
    const ROUTINGS: &'static [RoutingWord] = <Self::Routing as RoutingChoice>::WORDS;
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
    /// [`Parameters::KEYS`].
    pub keys: &'static [Key],
    /// [`Family::ROUTINGS`].
    pub routings: &'static [RoutingWord],
}

impl FamilyKeys {
    /// The tables of a family.
    pub const fn of<F: Family>() -> FamilyKeys {
        FamilyKeys { name: F::NAME, title: F::TITLE, keys: F::KEYS, routings: F::ROUTINGS }
    }
}

/// Declares the parameters of a family: a type whose fields are the keys of machine files, in their order.
///
/// The comment of a field is its meaning in the schema and on the page of the format. A field with `= value`
/// need not be given; where its value follows from others, `, as "reason"` names the reason, which
/// `weft machine show` prints. Values see the fields before them.
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
    ($(#[$doc:meta])* $vis:vis struct $name:ident routed by $routing:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ty $(= $value:expr $(, as $how:literal)?)?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        $vis struct $name {
            $($(#[doc = $meaning])+ pub $field: $type,)*
            /// Which way packets go.
            pub routing: $routing,
        }

        impl $crate::Parameters for $name {
            const KEYS: &'static [$crate::Key] = &[$($crate::Key {
                name: stringify!($field),
                kind: <$type as $crate::KeyType>::KIND,
                is_needed: $crate::parameter!(is needed $($value)?),
                meaning: concat!($($meaning),+).trim_ascii_start(),
            }),*];
            type Routing = $routing;

            fn read(given: &mut impl $crate::GivenKeys) -> Option<$name> {
                $(let $field: Option<$type> =
                    given.value(stringify!($field)).and_then($crate::KeyType::from_value);)*
                $($crate::parameter!(report given $field $($value)?);)*
                $(let $field: $type = match $field {
                    Some(value) => value,
                    None => $crate::parameter!(absent given $field $($value $(=> $how)?)?),
                };)*
                let routing = $crate::RoutingChoice::read(given)?;
                Some($name { $($field,)* routing })
            }

            fn routing(&self) -> &$routing {
                &self.routing
            }
        }
    };
}

/// Parts of [`parameters!`](crate::parameters).
#[doc(hidden)]
#[macro_export]
macro_rules! parameter {
    (is needed) => {
        true
    };
    (is needed $value:expr) => {
        false
    };
    (report $given:ident $field:ident) => {
        if $field.is_none() {
            $given.report_missing(stringify!($field));
        }
    };
    (report $given:ident $field:ident $value:expr) => {};
    (absent $given:ident $field:ident) => {
        return None
    };
    (absent $given:ident $field:ident $value:expr) => {
        $value
    };
    (absent $given:ident $field:ident $value:expr => $how:literal) => {{
        let value = $value;
        $given.derive(stringify!($field), $crate::KeyType::into_value(Clone::clone(&value)), $how);
        value
    }};
}

/// Declares the routings of a family: an enum whose variants carry the words of machine files, the usual one
/// first. The fields of a variant are keys that only this routing has.
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
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal $({
            $($(#[doc = $key_meaning:literal])+ $field:ident: $type:ty = $value:expr;)*
        })?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[doc = $meaning])+ $variant $({
                $($(#[doc = $key_meaning])+ $field: $type,)*
            })?,)*
        }

        impl $crate::RoutingChoice for $name {
            const WORDS: &'static [$crate::RoutingWord] = &[$($crate::RoutingWord {
                name: $word,
                meaning: concat!($($meaning),+).trim_ascii_start(),
                keys: &[$($($crate::Key {
                    name: stringify!($field),
                    kind: <$type as $crate::KeyType>::KIND,
                    is_needed: false,
                    meaning: concat!($($key_meaning),+).trim_ascii_start(),
                }),*)?],
            }),*];

            fn read(given: &mut impl $crate::GivenKeys) -> Option<$name> {
                let word = match given.value("routing") {
                    Some($crate::KeyValue::Word(word)) => word,
                    _ => Self::WORDS[0].name,
                };
                match word {
                    $($word => Some($name::$variant $({
                        $($field: given
                            .value(stringify!($field))
                            .and_then($crate::KeyType::from_value)
                            .unwrap_or_else(|| $value),)*
                    })?),)*
                    _ => None,
                }
            }

            fn word(&self) -> &'static str {
                match self {
                    $($name::$variant { .. } => $word,)*
                }
            }
        }
    };
}

/// Declares an enum whose variants are words of machine files, as a type of keys.
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident: $what:literal {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl $crate::KeyType for $name {
            const KIND: $crate::KeyKind = $crate::KeyKind::Word { what: $what, words: &[$($word),*] };

            fn from_value(value: $crate::KeyValue) -> Option<$name> {
                match value {
                    $($crate::KeyValue::Word($word) => Some($name::$variant),)*
                    _ => None,
                }
            }

            fn into_value(self) -> $crate::KeyValue {
                $crate::KeyValue::Word(match self {
                    $($name::$variant => $word,)*
                })
            }
        }
    };
}
pub(crate) use words;

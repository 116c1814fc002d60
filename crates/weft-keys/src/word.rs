//! Words as values: enums whose variants are words, and words that carry keys of their own.

use crate::key::Key;
use crate::problem::Problem;
use crate::written::Written;

/// A word that a key may have as its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// The meaning, a sentence.
    pub meaning: &'static str,
    /// The keys that mean something with this word only, in the same table.
    pub keys: &'static [Key],
}

/// A name that has changed.
struct Renamed {
    /// The kind of thing that it names, with its article.
    what: &'static str,
    /// The old name.
    old: &'static str,
    /// The new name.
    new: &'static str,
}

/// Names that machine files had once: an error for one of them says the new name.
const RENAMED: [Renamed; 2] = [
    Renamed { what: "a model of the interface", old: "simple", new: "overheads" },
    Renamed { what: "a model of the interface", old: "full", new: "exanet" },
];

/// Reads one of some words; `what` says of what kind they are, with its article.
///
/// # Errors
/// Another word, with the nearest of these.
pub fn one_of(
    what: &str,
    written: &Written,
    words: &'static [&'static str],
) -> Result<&'static str, Problem> {
    let found = match written {
        Written::Text(text) => words.iter().find(|word| *word == text).copied(),
        _ => None,
    };
    found.ok_or_else(|| not_one_of(what, written, words))
}

/// "… is not one of": for words, with the nearest.
pub fn not_one_of(what: &str, found: &Written, words: &[&str]) -> Problem {
    let all = words.join(", ");
    let Written::Text(text) = found else {
        return Problem::new(
            format!("this is not {what}"),
            format!("this is {}", found.describe()),
            format!("write one of {all}"),
        );
    };
    let title = format!("`{text}` is not {what}");
    let renamed = RENAMED.iter().find(|renamed| renamed.what == what && renamed.old == text);
    match (renamed, nearest(text, words.iter().copied())) {
        (Some(Renamed { new, .. }), _) => {
            Problem::new(title, "an old name", format!("`{text}` is called `{new}` now"))
        }
        (None, Some(near)) => {
            Problem::new(title, "unknown name", format!("did you mean `{near}`? There are {all}"))
        }
        (None, None) => Problem::new(title, "unknown name", format!("write one of {all}")),
    }
}

/// The name most like `text`, if any is alike.
pub fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Far longer than any name: nothing is like it, and comparing would take long.
    if text.len() > 100 {
        return None;
    }
    let scored = names.into_iter().map(|name| (strsim::jaro_winkler(text, name), name));
    scored.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// The name that is reached from `text` by the fewest edits, the first of several; `None`: there are no
/// names. For codes such as `M1QAF1`, which are all alike, and where one must be meant in any case.
pub fn fewest_edits<N: AsRef<str>>(text: &str, names: impl IntoIterator<Item = N>) -> Option<N> {
    names.into_iter().min_by_key(|name| strsim::osa_distance(text, name.as_ref()))
}

/// Declares an enum whose variants are words of machine files. The first name is that of the schema; the
/// second says what the words name, with its article.
///
/// ```
/// weft_keys::words! {
///     /// The moment from which a packet may leave.
///     #[derive(Clone, Copy, PartialEq, Eq, Debug)]
///     pub enum Forwarding: "Forwarding", "a way of forwarding" {
///         /// Its head has come.
///         VirtualCutThrough = "virtual-cut-through",
///         /// All of it has come.
///         StoreAndForward = "store-and-forward",
///     }
/// }
/// use weft_keys::{KeyType, Written};
/// let written = Written::Text("store-and-forward".to_owned());
/// assert_eq!(Forwarding::read(&written), Ok(Forwarding::StoreAndForward));
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* $vis:vis enum $name:ident: $schema:literal, $what:literal {
        $($(#[$of_variant:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$attribute])*
        $vis enum $name {
            $($(#[$of_variant])* $variant,)*
        }

        #[allow(dead_code, reason = "not every enum of words is asked for all of them")]
        impl $name {
            /// All variants.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The word.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl $crate::KeyType for $name {
            const NAME: &'static str = $schema;
            const WRITING: $crate::Writing = $crate::Writing::Words(&[$($word),*]);

            fn read(written: &$crate::Written) -> Result<$name, $crate::Problem> {
                match $crate::word::one_of($what, written, &[$($word),*])? {
                    $($word => Ok($name::$variant),)*
                    other => unreachable!("`{other}` is none of the words above"),
                }
            }

            fn show(&self) -> String {
                (*self).name().to_owned()
            }
        }
    };
}

/// Declares an enum whose variants are words of machine files, some of which carry keys of their own: the
/// fields of the variant, which may have names (`{ … }`) or none (`( … )`). The keys stand in the same table,
/// and are written as in [`keys!`](crate::keys!).
///
/// ```
/// weft_keys::choices! {
///     /// The rule by which an output chooses among requests.
///     #[derive(Clone, Copy, PartialEq, Eq, Debug)]
///     pub enum ArbiterKind: "Arbiter", "an arbiter" {
///         /// Round robin at each output over its requesting inputs.
///         RoundRobin = "round-robin",
///         /// iSLIP.
///         Islip = "islip" (
///             /// Iterations; 1 where not given.
///             islip_iterations: u32 = 1;
///         ),
///     }
/// }
/// use weft_keys::keys::Field;
/// assert_eq!(ArbiterKind::WORDS[1].keys[0].name, "islip_iterations");
/// assert_ne!(ArbiterKind::Islip(2), ArbiterKind::RoundRobin);
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[$attribute:meta])* $vis:vis enum $name:ident: $schema:literal, $what:literal {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal $({
            $($(#[doc = $key_meaning:literal])+
                $field:ident: $type:ty $(= $default:expr)? $(, $option:ident($($argument:tt)*))*;)*
        })? $((
            $($(#[doc = $only_meaning:literal])+
                $only:ident: $only_type:ty $(= $only_default:expr)?
                    $(, $only_option:ident($($only_argument:tt)*))*;)*
        ))?,)*
    }) => {
        $(#[$attribute])*
        $vis enum $name {
            $($(#[doc = $meaning])+ $variant $({
                $($(#[doc = $key_meaning])+ $field: $type,)*
            })? $(($($(#[doc = $only_meaning])+ $only_type),*))?,)*
        }

        #[allow(dead_code, reason = "not every choice is asked for its word")]
        impl $name {
            /// The word.
            pub const fn word(&self) -> &'static str {
                match self {
                    $($name::$variant { .. } => $word,)*
                }
            }
        }

        impl $crate::keys::Field for $name {
            const NAME: &'static str = $schema;
            const WRITING: $crate::Writing = $crate::Writing::Words(&[$($word),*]);
            const WORDS: &'static [$crate::Word] = &[$($crate::Word {
                name: $word,
                meaning: concat!($($meaning),+).trim_ascii_start(),
                keys: $crate::all_keys!(
                    $($($($key_meaning)+ => $field: $type [$($default)?] $($option($($argument)*))*;)*)?
                    $($($($only_meaning)+ =>
                        $only: $only_type [$($only_default)?] $($only_option($($only_argument)*))*;)*)?
                ),
            }),*];

            fn read(
                given: &mut impl $crate::GivenKeys,
                key: &'static $crate::Key,
            ) -> $crate::Given<$name> {
                let reading = $crate::given::Reading {
                    read: |written| $crate::word::one_of($what, written, &[$($word),*]),
                    show: |word| (*word).to_owned(),
                    magnitude: |_| None,
                };
                let word = match given.value(key.name, reading) {
                    $crate::Given::Value(word) => word,
                    $crate::Given::Absent if key.is_usual => Self::WORDS[0].name,
                    $crate::Given::Absent => return $crate::Given::Absent,
                    $crate::Given::Wrong => return $crate::Given::Wrong,
                };
                let is_clean = $crate::keys::refuse_keys_of_other_words(given, key, word);
                let mut read = || -> Option<$name> {
                    match word {
                        $($word => {
                            $($crate::read_fields!(
                                given, $crate::keys::of_word(Self::WORDS, $word) =>
                                $($field: $type [$($default)?] $($option($($argument)*))*;)*
                            );)?
                            $($crate::read_fields!(
                                given, $crate::keys::of_word(Self::WORDS, $word) =>
                                $($only: $only_type [$($only_default)?]
                                    $($only_option($($only_argument)*))*;)*
                            );)?
                            Some($name::$variant $({ $($field),* })? $(($($only),*))?)
                        })*
                        _ => None,
                    }
                };
                match read() {
                    Some(read) if is_clean => $crate::Given::Value(read),
                    _ => $crate::Given::Wrong,
                }
            }
        }
    };
}

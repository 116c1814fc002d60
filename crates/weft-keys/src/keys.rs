//! The keys of a table: their declaration, and how they are read.

use crate::given::{Given, GivenKeys, Reading};
use crate::key::{Condition, Key};
use crate::value::{KeyType, Writing};
use crate::word::Word;

/// The keys of a table as a type. Made by [`keys!`](crate::keys!).
pub trait Keys: Sized {
    /// The name of the type.
    const TYPE_NAME: &'static str;

    /// The keys, in the order in which they are shown.
    const KEYS: &'static [Key];

    /// The values that a table gives. `None`: something is missing or wrong, and was reported.
    fn read(given: &mut impl GivenKeys) -> Option<Self>;
}

/// A type that a field of [`keys!`](crate::keys!) may have: a [`KeyType`], an `Option` of one, or
/// [`choices!`](crate::choices!).
pub trait Field: Sized {
    /// The type's name in the schema.
    const NAME: &'static str;
    /// How the value is written.
    const WRITING: Writing;
    /// The words with their keys, where it is a choice.
    const WORDS: &'static [Word] = &[];
    /// Whether a table must give it.
    const IS_NEEDED: bool = true;

    /// Reads the value of a key.
    fn read(given: &mut impl GivenKeys, key: &'static Key) -> Given<Self>;

    /// The value where a table gives none; `None`: it must give one.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: KeyType> Field for T {
    const NAME: &'static str = <T as KeyType>::NAME;
    const WRITING: Writing = <T as KeyType>::WRITING;

    fn read(given: &mut impl GivenKeys, key: &'static Key) -> Given<T> {
        given.value(key.name, Reading::OF_TYPE)
    }
}

impl<T: KeyType> Field for Option<T> {
    const NAME: &'static str = <T as KeyType>::NAME;
    const WRITING: Writing = <T as KeyType>::WRITING;
    const IS_NEEDED: bool = false;

    fn read(given: &mut impl GivenKeys, key: &'static Key) -> Given<Option<T>> {
        given.value(key.name, Reading::<T>::OF_TYPE).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

/// Reads the field of a key, where its condition holds.
#[doc(hidden)]
pub fn field<F: Field>(given: &mut impl GivenKeys, key: &'static Key) -> Given<F> {
    if let Some(condition) = key.condition.filter(|condition| !given.holds(condition)) {
        return if given.refuse(key.name, &condition) { Given::Absent } else { Given::Wrong };
    }
    let read = F::read(given, key);
    if matches!(read, Given::Absent) && key.is_needed {
        given.report_missing(key);
        return Given::Wrong;
    }
    read
}

/// The key of this name.
#[doc(hidden)]
pub fn of_name(keys: &'static [Key], name: &str) -> &'static Key {
    keys.iter().find(|key| key.name == name).expect("the macro that asks for it has made a key of each field")
}

/// The keys that a word carries.
#[doc(hidden)]
pub fn of_word(words: &'static [Word], name: &str) -> &'static [Key] {
    words.iter().find(|word| word.name == name).map_or(&[], |word| word.keys)
}

/// Refuses the keys that other words than the chosen one carry. Returns whether nothing was reported.
#[doc(hidden)]
pub fn refuse_keys_of_other_words(given: &mut impl GivenKeys, key: &'static Key, chosen: &str) -> bool {
    let own = of_word(key.words, chosen);
    let mut seen: Vec<&str> = Vec::new();
    let mut is_clean = true;
    for other in key.words.iter().flat_map(|word| word.keys) {
        if own.iter().any(|own| own.name == other.name) || seen.contains(&other.name) {
            continue;
        }
        seen.push(other.name);
        let carries = |word: &&Word| word.keys.iter().any(|key| key.name == other.name);
        let words: Vec<&str> = key.words.iter().filter(carries).map(|word| word.name).collect();
        is_clean &= given.refuse(other.name, &Condition { key: key.name, words: &words, in_rows: None });
    }
    is_clean
}

/// Declares the keys of a table: a type whose fields are the keys of machine files, in their order.
///
/// The comment of a field is its meaning in the schema and on the page of keys. A field of type
/// `Option` need not be given, nor one with `= value`; values see the fields before them. What else is known
/// of a key stands behind:
///
/// | written | means |
/// |---|---|
/// | `within(low, high)` | bounds, both included |
/// | `only_with("key", ["word", …])` | the key means something where another has one of these words |
/// | `only_with("key", [])` | … where another is given at all |
/// | `only_where(CONDITION)` | … where a [`Condition`] holds that several keys share |
/// | `not_zero("20us")` | zero makes no sense; the error has this example |
/// | `read_as(Type)` | the key's value is of this type, of which the field's is made (`Into`) |
/// | `usual()` | of a choice: its first word holds where none is given |
/// | `key("name")` | the key's name, where it is not that of the field |
/// | `how("reason")` | the value where none is given follows from others; `weft machine show` prints why |
/// | `cycles_of("nic.clock")` | of a `u32` or a `Span`: a cost, in whole cycles of the clock at this path |
/// | `time_of("nic.clock")` | of a `Span`: a cost, a time or cycles of the clock at this path |
/// | `or_of("nic.mailbox.poll")` | where not given, the value of the key at this path |
///
/// A field with one of these has no key of its own:
///
/// | written | means |
/// |---|---|
/// | `of("nic.clock")` | the value of the key at this path |
/// | `group()` | its type's keys stand in the same table; those of an `Option` do if the first of them does |
///
/// A key at another path must be one that whoever needs the table needs as well: where it is missing or
/// wrong, that is reported there. Fields in `beside` are no keys: whoever reads the table sets them.
///
/// ```
/// weft_keys::keys! {
///     /// A ring.
///     #[derive(Clone, PartialEq, Eq, Debug)]
///     pub struct RingParameters {
///         /// Switches of the ring.
///         switches: u32, within(3, 1000);
///         /// Endpoints at every switch; 1 where not given.
///         endpoints_per_switch: u32 = 1;
///         /// Clock of the switches; that of the endpoints where not given.
///         clock: Option<weft_units::Clock>;
///     }
/// }
/// use weft_keys::Keys;
/// let names: Vec<&str> = RingParameters::KEYS.iter().map(|key| key.name).collect();
/// assert_eq!(names, ["switches", "endpoints_per_switch", "clock"]);
/// ```
#[macro_export]
macro_rules! keys {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $meaning:literal])+
            $field:ident: $type:ty $(= $default:expr)? $(, $option:ident($($argument:tt)*))*;)*
        $(beside {
            $($(#[doc = $beside_meaning:literal])+ $beside:ident: $beside_type:ty = $beside_value:expr;)*
        })?
    }) => {
        $(#[$attribute])*
        $vis struct $name {
            $($(#[doc = $meaning])+ pub $field: $type,)*
            $($($(#[doc = $beside_meaning])+ pub $beside: $beside_type,)*)?
        }

        impl $crate::Keys for $name {
            const TYPE_NAME: &'static str = stringify!($name);
            const KEYS: &'static [$crate::Key] = $crate::all_keys!(
                $($($meaning)+ => $field: $type [$($default)?] $($option($($argument)*))*;)*
            );

            fn read(given: &mut impl $crate::GivenKeys) -> Option<$name> {
                $crate::read_fields!(
                    given, Self::KEYS =>
                    $($field: $type [$($default)?] $($option($($argument)*))*;)*
                );
                Some($name { $($field,)* $($($beside: $beside_value,)*)? })
            }
        }
    };
}

/// The keys of some fields.
#[doc(hidden)]
#[macro_export]
macro_rules! all_keys {
    ($($($meaning:literal)+ =>
        $field:ident: $type:ty [$($default:expr)?] $($option:ident($($argument:tt)*))*;)*) => {
        {
            const PARTS: &[$crate::group::Part] = &[$($crate::key_part!(
                keys $($meaning)+ => $field: $type [$($default)?] [$($option($($argument)*))*]
                $($option($($argument)*))*
            )),*];
            &$crate::group::joined::<{ $crate::group::count(PARTS) }>(PARTS)
        }
    };
}

/// A [`Key`] of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! key {
    ($($meaning:literal)+ =>
        $field:ident: $type:ty [$($default:expr)?] $($option:ident($($argument:tt)*))*) => {
        {
            type Read = $crate::key_part!(read_as $type, $($option($($argument)*))*);
            $crate::Key {
                name: $crate::key_part!(name $field $($option($($argument)*))*),
                type_name: <Read as $crate::keys::Field>::NAME,
                writing: <Read as $crate::keys::Field>::WRITING,
                words: <Read as $crate::keys::Field>::WORDS,
                is_needed: <Read as $crate::keys::Field>::IS_NEEDED
                    && !$crate::key_part!(has_default [$($default)?] $($option($($argument)*))*)
                    && !$crate::key_part!(is_usual $($option($($argument)*))*),
                is_usual: $crate::key_part!(is_usual $($option($($argument)*))*),
                condition: $crate::key_part!(condition $($option($($argument)*))*),
                meaning: concat!($($meaning),+).trim_ascii_start(),
            }
        }
    };
}

/// Reads fields from a table: after it, each is a variable. Returns `None` where something is wrong.
#[doc(hidden)]
#[macro_export]
macro_rules! read_fields {
    ($given:ident, $keys:expr =>
        $($field:ident: $type:ty [$($default:expr)?] $($option:ident($($argument:tt)*))*;)*) => {
        // All are read before the first that is wrong ends it, so that one run reports all.
        $(let $field: $crate::Given<$type> = $crate::key_part!(
            read $given $keys, $field: $type [$($option($($argument)*))*] $($option($($argument)*))*
        );)*
        $(let $field: $type = match $field {
            $crate::Given::Value(value) => value,
            $crate::Given::Absent => $crate::key_part!(
                absent $given $crate::key_part!(name $field $($option($($argument)*))*),
                $type [$($default)?] $($option($($argument)*))*
            ),
            $crate::Given::Wrong => return None,
        };)*
    };
}

/// Parts of [`key!`] and [`read_fields!`].
#[doc(hidden)]
#[macro_export]
macro_rules! key_part {
    (keys $($meaning:literal)+ => $field:ident: $type:ty [$($default:expr)?] [$($options:tt)*]) => {
        $crate::group::Part {
            keys: &[$crate::key!($($meaning)+ => $field: $type [$($default)?] $($options)*)],
            is_needed: true,
        }
    };
    (keys $($meaning:literal)+ => $field:ident: $type:ty [] [$($options:tt)*] of($path:literal)) => {
        $crate::group::Part { keys: &[], is_needed: false }
    };
    (keys $($meaning:literal)+ => $field:ident: $type:ty [] [$($options:tt)*] group()) => {
        $crate::group::Part {
            keys: <$type as $crate::group::Group>::GROUP,
            is_needed: <$type as $crate::group::Group>::IS_NEEDED,
        }
    };
    (keys $($meaning:literal)+ => $field:ident: $type:ty [$($default:expr)?] [$($options:tt)*]
        $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(
            keys $($meaning)+ => $field: $type [$($default)?] [$($options)*] $($rest)*
        )
    };

    (read $given:ident $keys:expr, $field:ident: $type:ty [$($options:tt)*]) => {{
        let key = $crate::keys::of_name($keys, $crate::key_part!(name $field $($options)*));
        let read = $crate::keys::field::<$crate::key_part!(read_as $type, $($options)*)>($given, key);
        let read = $crate::key_part!(within $given key read $($options)*);
        $crate::key_part!(into $given key read $($options)*)
    }};
    (read $given:ident $keys:expr, $field:ident: $type:ty [$($options:tt)*] of($path:literal)) => {
        $crate::GivenKeys::other::<$type>($given, $path)
    };
    (read $given:ident $keys:expr, $field:ident: $type:ty [$($options:tt)*] group()) => {
        $crate::group::group::<$type>($given)
    };
    (read $given:ident $keys:expr, $field:ident: $type:ty [$($options:tt)*]
        $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(read $given $keys, $field: $type [$($options)*] $($rest)*)
    };

    (has_default []) => { false };
    (has_default [] or_of($path:literal) $($rest:tt)*) => { true };
    (has_default [] $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(has_default [] $($rest)*)
    };
    (has_default [$default:expr] $($rest:tt)*) => { true };

    (read_as $type:ty,) => { $type };
    (read_as $type:ty, read_as($read:ty) $($rest:tt)*) => { $read };
    (read_as $type:ty, cycles_of($path:literal) $($rest:tt)*) => { $crate::Cost };
    (read_as $type:ty, time_of($path:literal) $($rest:tt)*) => { $crate::Cost };
    (read_as $type:ty, $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(read_as $type, $($rest)*)
    };

    (into $given:ident $key:ident $read:ident) => { $read };
    (into $given:ident $key:ident $read:ident read_as($type:ty) $($rest:tt)*) => { $read.map(Into::into) };
    (into $given:ident $key:ident $read:ident cycles_of($path:literal) $($rest:tt)*) => {
        $crate::cost::cycles_of($given, $read, $path)
    };
    (into $given:ident $key:ident $read:ident time_of($path:literal) $($rest:tt)*) => {
        $crate::cost::time_of($given, $key, $read, $path)
    };
    (into $given:ident $key:ident $read:ident $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(into $given $key $read $($rest)*)
    };

    (is_usual) => { false };
    (is_usual usual() $($rest:tt)*) => { true };
    (is_usual $option:ident($($argument:tt)*) $($rest:tt)*) => { $crate::key_part!(is_usual $($rest)*) };

    (name $field:ident) => { stringify!($field) };
    (name $field:ident key($name:literal) $($rest:tt)*) => { $name };
    (name $field:ident $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(name $field $($rest)*)
    };

    (condition) => { None };
    (condition only_with($key:literal, [$($word:literal),*]) $($rest:tt)*) => {
        Some($crate::Condition { key: $key, words: &[$($word),*], in_rows: None })
    };
    (condition only_where($condition:expr) $($rest:tt)*) => { Some($condition) };
    (condition $option:ident($($argument:tt)*) $($rest:tt)*) => { $crate::key_part!(condition $($rest)*) };

    (within $given:ident $key:ident $read:ident) => { $read };
    (within $given:ident $key:ident $read:ident within($least:expr, $most:expr) $($rest:tt)*) => {
        $crate::bounds::within($given, $key, $read, &($least..=$most))
    };
    (within $given:ident $key:ident $read:ident not_zero($example:literal) $($rest:tt)*) => {
        $crate::bounds::not_zero($given, $key, $read, $example)
    };
    (within $given:ident $key:ident $read:ident $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(within $given $key $read $($rest)*)
    };

    (absent $given:ident $name:expr, $type:ty []) => { <$type as $crate::keys::Field>::absent()? };
    (absent $given:ident $name:expr, $type:ty [] group()) => { return None };
    (absent $given:ident $name:expr, $type:ty [] read_as($read:ty) $($rest:tt)*) => {
        <$read as $crate::keys::Field>::absent().map(Into::into)?
    };
    (absent $given:ident $name:expr, $type:ty [] or_of($path:literal) $($rest:tt)*) => {
        match $crate::GivenKeys::other::<$type>($given, $path) {
            $crate::Given::Value(value) => value,
            _ => return None,
        }
    };
    (absent $given:ident $name:expr, $type:ty [] $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(absent $given $name, $type [] $($rest)*)
    };
    (absent $given:ident $name:expr, $type:ty [$default:expr]) => { $default };
    (absent $given:ident $name:expr, $type:ty [$default:expr] how($how:literal) $($rest:tt)*) => {{
        let value: $type = $default;
        $given.derive($name, $crate::KeyType::show(&value), $how);
        value
    }};
    (absent $given:ident $name:expr, $type:ty [$default:expr]
        $option:ident($($argument:tt)*) $($rest:tt)*) => {
        $crate::key_part!(absent $given $name, $type [$default] $($rest)*)
    };
}

#[cfg(test)]
mod tests;

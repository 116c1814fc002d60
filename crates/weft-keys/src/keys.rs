//! The keys of a table: their declaration, and how they are read.

use crate::problem::Problem;
use crate::quantity::Cost;
use crate::value::{KeyType, Magnitude, Writing};
use crate::word::Word;
use crate::written::Written;
use std::ops::RangeInclusive;
use weft_units::{Clock, Span};

/// A key of machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The name of its type in the schema.
    pub type_name: &'static str,
    /// How its value is written.
    pub writing: Writing,
    /// The words that it may have as its value, with keys of their own; empty for values that are none.
    pub words: &'static [Word],
    /// Whether a machine must give it.
    pub is_needed: bool,
    /// Whether the first of its words holds where a machine gives none.
    pub is_usual: bool,
    /// On what it depends whether it means something; `None`: it always does.
    pub condition: Option<Condition<'static>>,
    /// The meaning with its unit, a sentence; and the value where a machine does not give one.
    pub meaning: &'static str,
}

impl Key {
    /// A place for a key.
    const NONE: Key = Key {
        name: "",
        type_name: "",
        writing: Writing::Flag,
        words: &[],
        is_needed: false,
        is_usual: false,
        condition: None,
        meaning: "",
    };
}

/// Another key with the values that a key goes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition<'c> {
    /// The other key of the table, or with its section, as in `fabric.flow_control`.
    pub key: &'c str,
    /// The words of it; none: any value.
    pub words: &'c [&'c str],
    /// The key of rows that may have one of the words instead, as in `switch.classes.congestion`.
    pub in_rows: Option<&'c str>,
}

impl Condition<'_> {
    /// The condition as a file writes it.
    pub fn text(&self) -> String {
        match self.words {
            [] => format!("{} = …", self.key),
            words => format!("{} = \"{}\"", self.key, words.join("\" or \"")),
        }
    }
}

/// A value that a table may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given<T> {
    /// It has it.
    Value(T),
    /// It has not.
    Absent,
    /// No value can be made of what it has, which was reported.
    Wrong,
}

impl<T> Given<T> {
    /// The value as another.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Given<U> {
        match self {
            Given::Value(value) => Given::Value(of(value)),
            Given::Absent => Given::Absent,
            Given::Wrong => Given::Wrong,
        }
    }
}

/// The way in which values of one kind are read and shown: a [`KeyType`], or words that were found elsewhere.
#[derive(Clone, Copy)]
pub struct Reading<T> {
    /// As [`KeyType::read`].
    pub read: fn(&Written) -> Result<T, Problem>,
    /// As [`KeyType::show`].
    pub show: fn(&T) -> String,
    /// As [`KeyType::magnitude`].
    pub magnitude: fn(&T) -> Option<Magnitude>,
}

impl<T: KeyType> Reading<T> {
    /// That of the type.
    pub const OF_TYPE: Reading<T> = Reading { read: T::read, show: T::show, magnitude: T::magnitude };
}

/// A table of a file, for whoever reads keys from it.
pub trait GivenKeys {
    /// The value of a key. One that cannot be read is reported.
    fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T>;

    /// The value of a key of any table, such as `nic.clock`. One that cannot be read is reported where that
    /// table is read.
    fn other<T: KeyType>(&self, path: &'static str) -> Given<T>;

    /// Whether another key has a value that this condition names.
    fn holds(&self, condition: &Condition<'_>) -> bool;

    /// A key means nothing, as its condition does not hold. Where it is given, that is reported, or it is
    /// dropped if it was left behind by a choice that comes from the command line. Returns whether nothing
    /// was reported.
    #[must_use]
    fn refuse(&mut self, key: &'static str, condition: &Condition<'_>) -> bool;

    /// The table must have this key and does not.
    fn report_missing(&mut self, key: &'static Key);

    /// A value makes no sense. `{}` in the problem's title stands for the key with its section.
    fn report(&mut self, key: &'static str, problem: Problem);

    /// The value of a key that the table does not give follows from others, for this reason.
    fn derive(&mut self, key: &'static str, value: String, how: &'static str);
}

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

/// A value with bounds.
#[doc(hidden)]
pub trait Bounded {
    type Bound: KeyType + PartialOrd;
    fn bounded(&self) -> Option<&Self::Bound>;
}

impl<T: KeyType + PartialOrd> Bounded for T {
    type Bound = T;

    fn bounded(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T: KeyType + PartialOrd> Bounded for Option<T> {
    type Bound = T;

    fn bounded(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// The value, if it lies from `least` to `most`.
#[doc(hidden)]
pub fn within<B: Bounded>(
    given: &mut impl GivenKeys,
    key: &'static Key,
    value: Given<B>,
    bounds: &RangeInclusive<B::Bound>,
) -> Given<B> {
    let Given::Value(bounded) = &value else { return value };
    let Some(inner) = bounded.bounded().filter(|inner| !bounds.contains(inner)) else { return value };
    let (shown, least, most) = (inner.show(), bounds.start().show(), bounds.end().show());
    let is_zero = inner.magnitude().is_some_and(|magnitude| magnitude.amount == 0);
    let problem = if inner < bounds.start() && is_zero {
        Problem::new("`{}` is zero", "too small", format!("write {least} or more"))
    } else if inner < bounds.start() {
        let (label, help) = (format!("less than {least}"), format!("write {least} or more"));
        Problem::new(format!("`{{}}` of {shown} is too small"), label, help)
    } else {
        Problem::new(format!("`{{}}` of {shown} is impossible"), "too large", format!("write at most {most}"))
    };
    given.report(key.name, problem);
    Given::Wrong
}

/// The value, if it is not zero.
#[doc(hidden)]
pub fn not_zero<B: Bounded>(
    given: &mut impl GivenKeys,
    key: &'static Key,
    value: Given<B>,
    example: &str,
) -> Given<B> {
    let Given::Value(bounded) = &value else { return value };
    let magnitude = bounded.bounded().and_then(KeyType::magnitude);
    if magnitude.is_none_or(|magnitude| magnitude.amount > 0) {
        return value;
    }
    let help = format!("write more than zero, such as {example}");
    given.report(key.name, Problem::new("`{}` is zero", "too small", help));
    Given::Wrong
}

/// A type that whole cycles of a clock give.
#[doc(hidden)]
pub trait OfCycles {
    fn of_cycles(cycles: u32, clock: &Clock) -> Self;
}

impl OfCycles for u32 {
    fn of_cycles(cycles: u32, _: &Clock) -> u32 {
        cycles
    }
}

impl OfCycles for Span {
    fn of_cycles(cycles: u32, clock: &Clock) -> Span {
        clock.cycles(cycles.into())
    }
}

/// A cost in whole cycles of the clock at a path.
#[doc(hidden)]
pub fn cycles_of<T: OfCycles>(given: &impl GivenKeys, cost: Given<Cost>, path: &'static str) -> Given<T> {
    match (cost, given.other(path)) {
        (Given::Value(cost), Given::Value(clock)) => Given::Value(T::of_cycles(cost.cycles(&clock), &clock)),
        (Given::Absent, _) => Given::Absent,
        _ => Given::Wrong,
    }
}

/// A cost as a time, where cycles are those of the clock at a path.
#[doc(hidden)]
pub fn time_of(
    given: &mut impl GivenKeys,
    key: &'static Key,
    cost: Given<Cost>,
    path: &'static str,
) -> Given<Span> {
    match (cost, given.other(path)) {
        (Given::Value(Cost::Time(span)), _) => Given::Value(span),
        (Given::Value(cost), Given::Value(clock)) => Given::Value(cost.time(&clock)),
        (Given::Value(_), Given::Absent) => {
            let (section, clock) = path.rsplit_once('.').unwrap_or(("", path));
            let help = format!("add `{clock} = \"150MHz\"` to [{section}], or write a time");
            given.report(key.name, Problem::new("`{}` counts cycles of no clock", "which clock?", help));
            Given::Wrong
        }
        (Given::Absent, _) => Given::Absent,
        _ => Given::Wrong,
    }
}

/// Keys that a type of their own has, in the table of another type.
#[doc(hidden)]
pub trait Group: Sized {
    const GROUP: &'static [Key];
    const IS_NEEDED: bool;
    fn read_group(given: &mut impl GivenKeys) -> Option<Self>;
}

impl<T: Keys> Group for T {
    const GROUP: &'static [Key] = <T as Keys>::KEYS;
    const IS_NEEDED: bool = true;

    fn read_group(given: &mut impl GivenKeys) -> Option<T> {
        <T as Keys>::read(given)
    }
}

/// A group without which its table means something: its first key says whether it is there.
impl<T: Keys> Group for Option<T> {
    const GROUP: &'static [Key] = <T as Keys>::KEYS;
    const IS_NEEDED: bool = false;

    fn read_group(given: &mut impl GivenKeys) -> Option<Option<T>> {
        let (first, others) = <T as Keys>::KEYS.split_first()?;
        let condition = Condition { key: first.name, words: &[], in_rows: None };
        if given.holds(&condition) {
            return <T as Keys>::read(given).map(Some);
        }
        let mut is_clean = true;
        for key in others {
            is_clean &= given.refuse(key.name, &condition);
        }
        is_clean.then_some(None)
    }
}

/// Reads a group.
#[doc(hidden)]
pub fn group<G: Group>(given: &mut impl GivenKeys) -> Given<G> {
    G::read_group(given).map_or(Given::Wrong, Given::Value)
}

/// Some keys of a table: a field's, or a group's.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Part {
    /// The keys.
    pub keys: &'static [Key],
    /// Whether those of them that say so must be given.
    pub is_needed: bool,
}

/// The number of keys of all parts.
#[doc(hidden)]
pub const fn count(parts: &[Part]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < parts.len() {
        count += parts[at].keys.len();
        at += 1;
    }
    count
}

/// The keys of all parts, which are so many.
#[doc(hidden)]
pub const fn joined<const COUNT: usize>(parts: &[Part]) -> [Key; COUNT] {
    let mut joined = [Key::NONE; COUNT];
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].keys.len() {
            joined[count] = parts[part].keys[at];
            joined[count].is_needed &= parts[part].is_needed;
            count += 1;
            at += 1;
        }
        part += 1;
    }
    joined
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
            const PARTS: &[$crate::keys::Part] = &[$($crate::key_part!(
                keys $($meaning)+ => $field: $type [$($default)?] [$($option($($argument)*))*]
                $($option($($argument)*))*
            )),*];
            &$crate::keys::joined::<{ $crate::keys::count(PARTS) }>(PARTS)
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
        $crate::keys::Part {
            keys: &[$crate::key!($($meaning)+ => $field: $type [$($default)?] $($options)*)],
            is_needed: true,
        }
    };
    (keys $($meaning:literal)+ => $field:ident: $type:ty [] [$($options:tt)*] of($path:literal)) => {
        $crate::keys::Part { keys: &[], is_needed: false }
    };
    (keys $($meaning:literal)+ => $field:ident: $type:ty [] [$($options:tt)*] group()) => {
        $crate::keys::Part {
            keys: <$type as $crate::keys::Group>::GROUP,
            is_needed: <$type as $crate::keys::Group>::IS_NEEDED,
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
        $crate::keys::group::<$type>($given)
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
        $crate::keys::cycles_of($given, $read, $path)
    };
    (into $given:ident $key:ident $read:ident time_of($path:literal) $($rest:tt)*) => {
        $crate::keys::time_of($given, $key, $read, $path)
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
        $crate::keys::within($given, $key, $read, &($least..=$most))
    };
    (within $given:ident $key:ident $read:ident not_zero($example:literal) $($rest:tt)*) => {
        $crate::keys::not_zero($given, $key, $read, $example)
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
mod tests {
    use super::*;
    use crate::choices;
    use std::collections::BTreeMap;

    choices! {
        /// Organization of a switch.
        #[derive(Clone, PartialEq, Eq, Debug)]
        enum Organization: "Organization", "an organization" {
            /// Queues at the inputs.
            Inputs = "inputs",
            /// Queues at both.
            Both = "both" {
                /// Rate of the crossbar.
                speedup: u32, within(1, 8);
                /// The buffer of an output.
                output: Option<u32>;
            },
            /// Queues at the outputs.
            Outputs = "outputs" (
                /// The buffer of an output.
                output: Option<u32>;
            ),
        }
    }

    keys! {
        /// A switch.
        #[derive(Clone, PartialEq, Eq, Debug)]
        struct Switch {
            /// Organization.
            kind: Organization;
            /// Ports, at least 2.
            ports: u32, within(2, 64);
            /// Lanes; as many as ports where not given.
            count: u32 = ports, key("lanes"), how("one for each port");
            /// Lanes that are spare.
            kept: Option<u32>, key("spare"), only_with("lanes", []);
            beside {
                /// Of another table.
                classes: u32 = 3;
            }
        }
    }

    /// A table, and what is said of it.
    #[derive(Default)]
    struct Table {
        entries: BTreeMap<&'static str, Written>,
        said: Vec<String>,
    }

    impl GivenKeys for Table {
        fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T> {
            match self.entries.get(key).map(reading.read) {
                Some(Ok(value)) => Given::Value(value),
                Some(Err(problem)) => {
                    self.said.push(format!("{key}: {}", problem.title));
                    Given::Wrong
                }
                None => Given::Absent,
            }
        }

        fn other<T: KeyType>(&self, path: &'static str) -> Given<T> {
            match self.entries.get(path).map(T::read) {
                Some(Ok(value)) => Given::Value(value),
                Some(Err(_)) => Given::Wrong,
                None => Given::Absent,
            }
        }

        fn holds(&self, condition: &Condition<'_>) -> bool {
            self.entries.get(condition.key).is_some_and(|written| match written {
                Written::Text(text) => condition.words.is_empty() || condition.words.contains(&text.as_str()),
                _ => condition.words.is_empty(),
            })
        }

        fn refuse(&mut self, key: &'static str, condition: &Condition<'_>) -> bool {
            let is_given = self.entries.contains_key(key);
            if is_given {
                self.said.push(format!("{key}: only with {}", condition.text()));
            }
            !is_given
        }

        fn report_missing(&mut self, key: &'static Key) {
            self.said.push(format!("{}: missing", key.name));
        }

        fn report(&mut self, key: &'static str, problem: Problem) {
            self.said.push(problem.title.replace("{}", key));
        }

        fn derive(&mut self, key: &'static str, value: String, how: &'static str) {
            self.said.push(format!("{key}: {value}, {how}"));
        }
    }

    fn read(entries: &[(&'static str, Written)]) -> (Option<Switch>, Vec<String>) {
        let mut table = Table { entries: entries.iter().cloned().collect(), ..Table::default() };
        (Switch::read(&mut table), table.said)
    }

    fn text(text: &str) -> Written {
        Written::Text(text.to_owned())
    }

    /// Catches defaults that do not see other fields, and keys of a word that are not read.
    #[test]
    fn a_table_becomes_its_type() {
        let (switch, said) =
            read(&[("kind", text("both")), ("speedup", Written::Integer(2)), ("ports", Written::Integer(4))]);
        let kind = Organization::Both { speedup: 2, output: None };
        assert_eq!(switch, Some(Switch { kind, ports: 4, count: 4, kept: None, classes: 3 }));
        assert_eq!(said, ["lanes: 4, one for each port"]);
        let given = [
            ("kind", text("outputs")),
            ("output", Written::Integer(7)),
            ("ports", Written::Integer(2)),
            ("lanes", Written::Integer(3)),
            ("spare", Written::Integer(1)),
        ];
        let kind = Organization::Outputs(Some(7));
        assert_eq!(read(&given).0, Some(Switch { kind, ports: 2, count: 3, kept: Some(1), classes: 3 }));
        let names: Vec<_> = Switch::KEYS.iter().map(|key| (key.name, key.is_needed)).collect();
        assert_eq!(names, [("kind", true), ("ports", true), ("lanes", false), ("spare", false)]);
        assert_eq!(Switch::KEYS[1].meaning, "Ports, at least 2.");
        assert_eq!(Switch::KEYS[0].words[1].keys[0].name, "speedup");
    }

    /// Catches mistakes that hide others, and keys that mean nothing and are taken.
    #[test]
    fn all_mistakes_are_said() {
        let (switch, said) = read(&[
            ("kind", text("inputs")),
            ("speedup", Written::Integer(2)),
            ("output", Written::Integer(2)),
            ("ports", Written::Integer(1)),
            ("spare", Written::Integer(1)),
        ]);
        assert_eq!(switch, None);
        assert_eq!(
            said,
            [
                "speedup: only with kind = \"both\"",
                "output: only with kind = \"both\" or \"outputs\"",
                "`ports` of 1 is too small",
                "spare: only with lanes = …",
            ]
        );
        let (_, said) = read(&[("kind", text("booth")), ("ports", text("many"))]);
        assert_eq!(said, ["kind: `booth` is not an organization", "ports: this is not a whole number"]);
        let (_, said) = read(&[("kind", text("both")), ("ports", Written::Integer(65))]);
        assert_eq!(said, ["speedup: missing", "`ports` of 65 is impossible"]);
    }

    keys! {
        /// Times.
        #[derive(Clone, PartialEq, Eq, Debug)]
        struct Times {
            /// The first.
            first: Span, not_zero("20us");
            /// The last; the first where not given.
            last: Span = first;
        }
    }

    keys! {
        /// A block that counts cycles of another table's clock.
        #[derive(Clone, PartialEq, Eq, Debug)]
        struct Block {
            /// The clock.
            clock: Clock, of("nic.clock");
            /// In whole cycles.
            engine: u32, cycles_of("nic.clock");
            /// The same as a time.
            latency: Span, cycles_of("nic.clock");
            /// A time or cycles.
            start: Span, time_of("nic.clock");
            /// Of another table, where not given.
            poll: Span, or_of("nic.poll");
            /// In the same table.
            times: Option<Times>, group();
        }
    }

    fn block(entries: &[(&'static str, &str)]) -> (Option<Block>, Vec<String>) {
        let entries = entries.iter().map(|(key, written)| (*key, text(written))).collect();
        let mut table = Table { entries, ..Table::default() };
        (Block::read(&mut table), table.said)
    }

    const CYCLES: [(&str, &str); 5] = [
        ("nic.clock", "100MHz"),
        ("engine", "11ns"),
        ("latency", "2 cycles"),
        ("start", "11ns"),
        ("nic.poll", "7ns"),
    ];

    /// Catches costs that are converted by another clock or not rounded up, a value of another table that is
    /// not found or goes before the own, and a group that is needed or lost.
    #[test]
    fn values_of_other_tables_and_groups_are_read() {
        let clock = Clock::from_hertz(100_000_000).unwrap();
        let ns = Span::from_ns;
        let expected = Block { clock, engine: 2, latency: ns(20), start: ns(11), poll: ns(7), times: None };
        assert_eq!(block(&CYCLES), (Some(expected.clone()), Vec::new()));
        let own = [("start", "3 cycles"), ("poll", "5ns"), ("first", "1ns")];
        let times = Some(Times { first: ns(1), last: ns(1) });
        let expected = Block { start: ns(30), poll: ns(5), times, ..expected };
        assert_eq!(block(&[&CYCLES[..], &own].concat()), (Some(expected), Vec::new()));
        let names: Vec<_> = Block::KEYS.iter().map(|key| (key.name, key.is_needed)).collect();
        let needed = [("engine", true), ("latency", true), ("start", true)];
        assert_eq!(names[..3], needed);
        assert_eq!(names[3..], [("poll", false), ("first", false), ("last", false)]);
    }

    /// Catches a group without its first key, a zero, and cycles of no clock that pass.
    #[test]
    fn mistakes_in_groups_and_costs_are_said() {
        let with = |more: &[(&'static str, &'static str)]| block(&[&CYCLES[..], more].concat());
        assert_eq!(with(&[("last", "1ns")]), (None, vec!["last: only with first = …".to_owned()]));
        assert_eq!(with(&[("first", "0ns")]), (None, vec!["`first` is zero".to_owned()]));
        let (read, said) = block(&[("engine", "1ns"), ("latency", "1ns"), ("start", "3 cycles")]);
        assert_eq!((read, said), (None, vec!["`start` counts cycles of no clock".to_owned()]));
        // What is wrong with the clock is said where it stands.
        let wrong = [("nic.clock", "0Hz"), ("start", "3 cycles")];
        assert_eq!(with(&wrong), (None, Vec::new()));
    }
}

//! Groups of keys that types of their own have, in the table of another: the option `group` of
//! [`keys!`](crate::keys!).

use crate::given::{Given, GivenKeys};
use crate::key::{Condition, Key};
use crate::keys::Keys;

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

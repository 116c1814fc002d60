//! A table of a file, for whoever reads keys from it.

use crate::key::{Condition, Key};
use crate::problem::Problem;
use crate::value::{KeyType, Magnitude};
use crate::written::Written;

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

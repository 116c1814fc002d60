//! Options of an application, in its own words.

use crate::app::{App, AppError};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use weft_units::Bytes;

/// An option of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppOption {
    /// The name.
    pub name: &'static str,
    /// The value where none is given.
    pub default: &'static str,
    /// The meaning, with the unit.
    pub about: &'static str,
}

/// The options of one kernel: those that were given, and the defaults of the others.
pub struct Options<'a> {
    app: &'static App,
    ranks: u32,
    given: &'a BTreeMap<String, String>,
}

impl<'a> Options<'a> {
    /// The options of `app` on `ranks` ranks.
    ///
    /// # Errors
    /// Options that the application does not have.
    pub fn new(
        app: &'static App,
        ranks: u32,
        given: &'a BTreeMap<String, String>,
    ) -> Result<Options<'a>, AppError> {
        let names = || app.options.iter().map(|option| option.name);
        let unknown = given.keys().find(|key| names().all(|name| name != key.as_str()));
        match unknown {
            None => Ok(Options { app, ranks, given }),
            Some(option) => {
                let suggestion = match weft_keys::nearest(option, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
                };
                Err(AppError::UnknownOption { app: app.name, option: option.clone(), suggestion })
            }
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The option and its value as text. Whoever asks for an option that is not declared has a fault, which
    /// the tests of all applications find.
    fn value(&self, name: &str) -> (&'static AppOption, &str) {
        let option = self.app.options.iter().find(|option| option.name == name);
        let Some(option) = option else { panic!("{} declares no option {name}", self.app.name) };
        (option, self.given.get(name).map_or(option.default, String::as_str))
    }

    /// Whether `other` was given, in the place of `one`.
    ///
    /// # Errors
    /// Both were.
    pub fn is_replaced(&self, one: &'static str, other: &'static str) -> Result<bool, AppError> {
        match (self.given.contains_key(one), self.given.contains_key(other)) {
            (true, true) => Err(AppError::Both { app: self.app.name, one, other }),
            (_, replaced) => Ok(replaced),
        }
    }

    /// A number within limits.
    ///
    /// # Errors
    /// It is none.
    pub fn count(&self, name: &str, limits: RangeInclusive<u64>) -> Result<u64, AppError> {
        let (option, text) = self.value(name);
        let within = text.parse().ok().filter(|number| limits.contains(number));
        within.ok_or_else(|| {
            let expected = format!("a whole number from {} to {}", limits.start(), limits.end());
            self.refuse(option, expected)
        })
    }

    /// A size in bytes of at most `limit`.
    ///
    /// # Errors
    /// It is none.
    pub fn bytes(&self, name: &str, limit: Bytes) -> Result<Bytes, AppError> {
        let (option, text) = self.value(name);
        let within = text.parse().ok().filter(|bytes| *bytes <= limit);
        within.ok_or_else(|| self.refuse(option, format!("a size of at most {limit}, such as 4K")))
    }

    /// Three extents of a box, each within limits, such as `104x104x104`; one number is all three.
    ///
    /// # Errors
    /// They are none.
    pub fn extents(&self, name: &str, limits: RangeInclusive<u64>) -> Result<[u64; 3], AppError> {
        let (option, text) = self.value(name);
        let read = |text: &str| text.parse().ok().filter(|number| limits.contains(number));
        let numbers: Option<Vec<u64>> = text.split('x').map(read).collect();
        match numbers.as_deref() {
            Some([all]) => Ok([*all; 3]),
            Some(&[x, y, z]) => Ok([x, y, z]),
            _ => {
                let (start, end) = (limits.start(), limits.end());
                Err(self.refuse(option, format!("three extents from {start} to {end}, such as 64x64x32")))
            }
        }
    }

    /// The place of a word in a list of those that the option takes.
    ///
    /// # Errors
    /// It is none of them.
    pub fn word(&self, name: &str, words: &[&str]) -> Result<usize, AppError> {
        let (option, text) = self.value(name);
        let place = words.iter().position(|word| *word == text);
        place.ok_or_else(|| self.refuse(option, format!("one of {}", words.join(", "))))
    }

    /// The error of a value that the application cannot have.
    pub fn refuse_value(&self, name: &str, expected: String) -> AppError {
        self.refuse(self.value(name).0, expected)
    }

    /// The error of a number of ranks that the application cannot have.
    pub fn refuse_ranks(&self, reason: String, mend: String) -> AppError {
        AppError::Ranks { app: self.app.name, ranks: self.ranks, reason, mend }
    }

    fn refuse(&self, option: &'static AppOption, expected: String) -> AppError {
        let value = self.given.get(option.name).map_or(option.default, String::as_str).to_owned();
        let mend = format!("it is the {}, by default {}", option.about, option.default);
        AppError::Value { app: self.app.name, option: option.name, value, expected, mend }
    }
}

//! Values that shells complete: a parser with the names that it takes, among others.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use std::ffi::OsStr;

/// A parser that takes what `parser` does, and names for completions.
#[derive(Clone)]
pub struct Suggested<P> {
    parser: P,
    names: Vec<&'static str>,
}

/// `parser`, with names for completions.
pub fn suggested<P>(names: impl IntoIterator<Item = &'static str>, parser: P) -> Suggested<P> {
    Suggested { parser, names: names.into_iter().collect() }
}

impl<P: TypedValueParser> TypedValueParser for Suggested<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(|name| PossibleValue::new(*name))))
    }
}

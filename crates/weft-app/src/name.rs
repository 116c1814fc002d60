//! The name of a kernel: `NAME@RANKS,OPTION=VALUE,…`.

use crate::app::AppError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// An application on a number of ranks, with the options that were given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KernelName {
    /// The application.
    pub app: String,
    /// Number of ranks, at least 1.
    pub ranks: u32,
    /// Options by their names.
    pub options: BTreeMap<String, String>,
}

/// Most ranks of a kernel: what a world communicator of MPI counts in an `int`.
const MAX_RANKS: u32 = i32::MAX as u32;

impl KernelName {
    /// Adds an option, written `OPTION=VALUE`.
    ///
    /// # Errors
    /// The text is none, or the option was given before.
    pub fn add(&mut self, text: &str) -> Result<(), AppError> {
        let refuse = |reason: String| AppError::Option { text: text.to_owned(), reason };
        let Some((name, value)) = text.split_once('=') else {
            return Err(refuse("an option has a value".to_owned()));
        };
        match self.options.insert(name.trim().to_owned(), value.trim().to_owned()) {
            None => Ok(()),
            Some(before) => Err(refuse(format!("{name} was given before, as {before}"))),
        }
    }
}

impl FromStr for KernelName {
    type Err = AppError;

    fn from_str(text: &str) -> Result<KernelName, AppError> {
        let refuse = |reason: &str| AppError::Name { text: text.to_owned(), reason: reason.to_owned() };
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (app, ranks) = head.split_once('@').ok_or_else(|| refuse("it has no number of ranks"))?;
        let ranks = ranks.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
        let ranks = ranks.ok_or_else(|| refuse("the number of ranks is no number from 1 to 2147483647"))?;
        let mut name = KernelName { app: app.to_owned(), ranks, options: BTreeMap::new() };
        parts.try_for_each(|option| name.add(option))?;
        Ok(name)
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.app, self.ranks)?;
        self.options.iter().try_for_each(|(name, value)| write!(f, ",{name}={value}"))
    }
}

impl TryFrom<String> for KernelName {
    type Error = AppError;

    fn try_from(text: String) -> Result<KernelName, AppError> {
        text.parse()
    }
}

impl From<KernelName> for String {
    fn from(name: KernelName) -> String {
        name.to_string()
    }
}

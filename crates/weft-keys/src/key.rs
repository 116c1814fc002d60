//! A key, and on what it depends whether it means something.

use crate::value::Writing;
use crate::word::Word;

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
    pub(crate) const NONE: Key = Key {
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

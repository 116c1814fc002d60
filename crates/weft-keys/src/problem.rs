//! A mistake in a value, and its mend.

/// A mistake in a value. Who reads files adds its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The mistake.
    pub title: String,
    /// Beside the caret: what is wrong with the text there. May be empty.
    pub label: String,
    /// The mend. May be empty.
    pub help: String,
}

impl Problem {
    /// A mistake in these words.
    pub fn new(title: impl Into<String>, label: impl Into<String>, help: impl Into<String>) -> Problem {
        Problem { title: title.into(), label: label.into(), help: help.into() }
    }

    /// The same, but for the help.
    pub fn mended_by(self, help: impl Into<String>) -> Problem {
        Problem { help: help.into(), ..self }
    }

    /// The same, of parameters that do not fit together; `key` is the one to change.
    pub fn of(self, key: &'static str) -> Misfit {
        let Problem { title, label, help } = self;
        Misfit { key, title, label, help }
    }
}

/// Parameters that do not fit together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The key to change, within its table.
    pub key: &'static str,
    /// As of a [`Problem`].
    pub title: String,
    /// As of a [`Problem`].
    pub label: String,
    /// As of a [`Problem`].
    pub help: String,
}

impl From<Misfit> for Problem {
    fn from(misfit: Misfit) -> Problem {
        let Misfit { title, label, help, .. } = misfit;
        Problem { title, label, help }
    }
}

/// A text of the user's for an error, cut where it is absurdly long.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

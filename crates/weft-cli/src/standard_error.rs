//! Standard error: remarks and errors, for people. A line that nobody takes (`2>&1 | head`, a full disk) is
//! lost and ends nothing: results do not depend on it.

use std::fmt::Arguments;
use std::io::{Write, stderr};

/// Writes a line to standard error, with the words of `format!`.
macro_rules! say {
    ($($words:tt)*) => { $crate::standard_error::line(format_args!($($words)*)) };
}
pub(crate) use say;

/// Writes a line, in one piece: lines of several threads do not mix.
pub fn line(words: Arguments<'_>) {
    text(&format!("{words}\n"));
}

/// Writes text as it is.
pub fn text(text: &str) {
    // Standard error is where failures are told: nobody is left to tell of this one.
    let _ = stderr().lock().write_all(text.as_bytes());
}

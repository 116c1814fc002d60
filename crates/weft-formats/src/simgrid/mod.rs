//! SimGrid's time-independent traces: a text with a line for each action of a rank.
//!
//! ```text
//!   0 init                     one file with the lines of all ranks,
//!   0 compute 1e9              or a file that names one file for each rank
//!   0 isend 1 7 4096           rank isend destination tag count [datatype]
//!   0 wait 0 1 7               rank wait source destination tag
//! ```
//! Computation is in floating-point operations. Their speed is asked for, or stands in a comment before the
//! first line: `# speed: 1Gf`, which SimGrid passes over.

mod datatype;
mod files;
mod line;
mod writer;

use crate::calls::CallTrace;
use crate::format::{Format, WrittenAs};
use crate::input::Input;
use files::TimeIndependent;
use std::path::Path;
use std::sync::Arc;
use writer::ActionWriter;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "ti",
    knows: |path, head| begins_with_action(head) || files::named(path, head).is_some(),
    open: |path, options| {
        Ok(Arc::new(CallTrace::open(Arc::new(TimeIndependent::open(path, options.speed)?))?))
    },
    open_bytes: |name, bytes, options| {
        let input = Arc::new(Input::memory(name, bytes));
        Ok(Arc::new(CallTrace::open(Arc::new(TimeIndependent::of_one(input, options.speed)?))?))
    },
    writing: Some(WrittenAs {
        extension: "ti",
        create: |path, header, options| Ok(Box::new(ActionWriter::create(path, header, options.speed)?)),
    }),
};

/// Whether the first line of a text is an action: a rank and a name that is one.
fn begins_with_action(head: &[u8]) -> bool {
    let Some(line) = first_line(head) else { return false };
    let mut words = line.split_ascii_whitespace();
    let rank = words.next().is_some_and(|rank| rank.parse::<u32>().is_ok());
    rank && words.next().is_some_and(line::is_action)
}

/// The first line of a text that is no comment.
fn first_line(head: &[u8]) -> Option<&str> {
    let lines = head.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The file of a path, from the folder of another.
fn beside(path: &Path, name: &str) -> std::path::PathBuf {
    path.parent().unwrap_or(Path::new("")).join(name)
}

#[cfg(test)]
mod tests;

//! Standard output: one JSON document, or text and aligned tables. A reader that goes away (`| head`)
//! ends the command quietly.

use crate::exit::Failure;
use crate::{called, closed};
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Write};
use weft_analysis::sections::ReportTable;

/// Spaces before the rest of a line that is too long for the terminal, behind those that the line begins
/// with.
const HANGING: usize = 4;
/// The narrowest terminal for which lines are broken.
const NARROWEST: usize = 20;
/// Columns of what people read in a file or a pager.
const PAGE_WIDTH: usize = 120;

/// Writes text. On a terminal, lines that are too long for it are broken between words; elsewhere, and in
/// files, lines stay whole.
pub fn text(text: &str) -> Result<(), Failure> {
    write_broken(text, terminal_width())
}

/// Writes text that is sentences for the most part: its lines are broken everywhere, at the terminal's width
/// or at [`PAGE_WIDTH`].
pub fn page(text: &str) -> Result<(), Failure> {
    write_broken(text, Some(terminal_width().unwrap_or(PAGE_WIDTH)))
}

fn write_broken(text: &str, width: Option<usize>) -> Result<(), Failure> {
    if called::keep(text.as_bytes()) {
        return Ok(());
    }
    let broken = width.map(|width| broken(text, width));
    write(|out| out.write_all(broken.as_deref().unwrap_or(text).as_bytes()))
}

/// Columns of the terminal that standard output goes to; `None`: it goes elsewhere.
fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    let columns = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten()?.ws_col;
    Some(usize::from(columns)).filter(|columns| *columns >= NARROWEST)
}

/// Text with lines of at most `width` characters: longer ones are broken between words, where they can be.
fn broken(text: &str, width: usize) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let indent = line.chars().take_while(|sign| *sign == ' ').count();
        let hanging = " ".repeat((indent + HANGING).min(width / 2));
        let mut rest = line.trim_end_matches('\n').to_owned();
        while rest.chars().count() > width {
            let begins = rest.len() - rest.trim_start().len();
            let end = rest.char_indices().nth(width + 1).map_or(rest.len(), |(at, _)| at);
            // A word that is longer than the line stays whole.
            let space = rest[begins..end].rfind(' ').or_else(|| rest[begins..].find(' '));
            let Some(space) = space.map(|at| begins + at) else { break };
            all += rest[..space].trim_end();
            all.push('\n');
            rest = hanging.clone() + rest[space..].trim_start();
        }
        all += &rest;
        if line.ends_with('\n') {
            all.push('\n');
        }
    }
    all
}

/// Writes a JSON document. To standard output it goes as it comes: the matrix of a trace may have a million
/// rows.
pub fn document(document: &impl Serialize) -> Result<(), Failure> {
    let is_called = called::keep(&[]);
    if is_called {
        let json = serde_json::to_vec_pretty(document).map_err(|error| Failure::bug(error.to_string()))?;
        called::keep(&json);
        called::keep(b"\n");
        return Ok(());
    }
    write(|out| {
        let mut out = BufWriter::new(out);
        serde_json::to_writer_pretty(&mut out, document)?;
        out.write_all(b"\n")?;
        out.flush()
    })
}

fn write(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    if closed::standard_output() {
        return Err(Failure::not_kept("cannot write to standard output: it is closed"));
    }
    let mut out = io::stdout().lock();
    write(&mut out).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::unread(),
        _ => Failure::not_kept(format!("cannot write to standard output: {error}")),
    })
}

/// A table for people: a header, then rows; columns marked in `numbers` are aligned to the right.
pub fn table<const N: usize>(
    header: [&str; N],
    numbers: [bool; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    lines(&laid_out(&header, &numbers, rows))
}

/// Columns of a table whose cells are sentences.
const NARROW: usize = 100;

/// A table of words for people whose cells are broken where they are long.
pub fn narrow_table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let width = terminal_width().map_or(NARROW, |width| width.min(NARROW));
    let mut table = laid_out(&header, &[false; N], rows);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width as u16);
    lines(&table)
}

/// A table of a trace or a study, or nothing where it has no rows; with what it leaves off.
pub fn report_table(table: &ReportTable) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let header: Vec<&str> = table.columns.iter().map(|column| column.name.as_ref()).collect();
    let numbers: Vec<bool> = table.columns.iter().map(|column| column.is_number).collect();
    let lines = lines(&laid_out(&header, &numbers, table.rows.iter()));
    match table.left_off.as_str() {
        "" => lines,
        more => format!("{lines}and {more}; --json has all\n"),
    }
}

/// A header and rows in columns; those marked in `numbers` are aligned to the right.
fn laid_out<R: Into<Row>>(header: &[&str], numbers: &[bool], rows: impl Iterator<Item = R>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for (column, &number) in table.column_iter_mut().zip(numbers) {
        column.set_padding((0, 2));
        column.set_cell_alignment(if number { CellAlignment::Right } else { CellAlignment::Left });
    }
    for row in rows {
        table.add_row(row);
    }
    table
}

fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// [`table`], or nothing where there are no rows.
pub fn table_of_some<const N: usize>(
    header: [&str; N],
    numbers: [bool; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_some() { table(header, numbers, rows) } else { String::new() }
}

/// A number with three decimals, or a dash.
pub fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A large number with the unit of its thousands: `12.3 M`.
pub fn thousands(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", value / unit),
        None => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches words that the terminal breaks, words that are lost, and a loop without an end at one that is
    /// longer than the line.
    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(broken("aaaa bbbb cccc\nd\n", 9), "aaaa bbbb\n    cccc\nd\n");
        assert_eq!(broken("  aaaa   bbbb", 8), "  aaaa\n    bbbb");
        assert_eq!(broken("aaaaaaaaaaaaaaaa bb", 8), "aaaaaaaaaaaaaaaa\n    bb");
        assert_eq!(broken("switch → endpoint", 8), "switch →\n    endpoint");
        let text = "key   value   a source of many words that goes on and on, for longer than a line\n";
        for width in NARROWEST..90 {
            let broken = broken(text, width);
            assert!(broken.lines().all(|line| line.chars().count() <= width), "{width}: {broken}");
            assert!(broken.split_whitespace().eq(text.split_whitespace()), "{width}: {broken}");
        }
    }
}

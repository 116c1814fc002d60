//! Standard output: one JSON document, or text and aligned tables. A reader that goes away (`| head`)
//! ends the command quietly.

use crate::exit::Failure;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::io::{self, Write};

/// Writes text as it is.
pub fn text(text: &str) -> Result<(), Failure> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Writes a JSON document.
pub fn document(document: &impl Serialize) -> Result<(), Failure> {
    let mut json = serde_json::to_vec_pretty(document).map_err(|error| Failure::bug(error.to_string()))?;
    json.push(b'\n');
    write(|out| out.write_all(&json))
}

fn write(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
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
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for (column, number) in table.column_iter_mut().zip(numbers) {
        column.set_padding((0, 2));
        column.set_cell_alignment(if number { CellAlignment::Right } else { CellAlignment::Left });
    }
    for row in rows {
        table.add_row(row);
    }
    let lines: String = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    lines
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

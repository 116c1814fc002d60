//! A trace in one page: sections of texts, tables and pictures. Who reads traces fills it, and
//! `weft-plot` writes the page.

use crate::picture::Picture;
use serde::Serialize;

/// The contents of the page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceReport {
    /// The name of the trace.
    pub name: String,
    /// Facts about it: a name and a text each.
    pub facts: Vec<(String, String)>,
    /// Reasons to be careful: what it lacks, and where its reader had to help itself.
    pub warnings: Vec<String>,
    /// The parts, in order.
    pub sections: Vec<TraceSection>,
}

/// A part of the page. Empty ones are left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct TraceSection {
    /// The heading.
    pub title: String,
    /// A text that one must know to read it; may be empty.
    pub remark: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
    /// The tables.
    pub tables: Vec<TraceTable>,
}

/// A table, or its first rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TraceTable {
    /// The headings of the columns.
    pub columns: Vec<TraceColumn>,
    /// Cells by row.
    pub rows: Vec<Vec<String>>,
    /// The rows that are left off, such as `12 more ranks`; empty: none is.
    pub left_off: String,
}

/// A column of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TraceColumn {
    /// The heading.
    pub name: &'static str,
    /// Whether it has numbers.
    pub is_number: bool,
}

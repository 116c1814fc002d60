//! A trace or a study in one page: sections of texts, tables and pictures. Who reads traces or studies fills
//! it, and `weft-plot` writes the page.

use crate::picture::Picture;
use serde::Serialize;
use std::borrow::Cow;

/// The contents of the page.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SectionedReport {
    /// The name of the trace or study.
    pub name: String,
    /// Facts about it: a name and a text each.
    pub facts: Vec<(String, String)>,
    /// Reasons to be careful: what it lacks, and where its reader had to help itself.
    pub warnings: Vec<String>,
    /// The parts, in order.
    pub sections: Vec<ReportSection>,
}

/// A part of the page. Empty ones are left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ReportSection {
    /// The heading.
    pub title: String,
    /// A text that one must know to read it; may be empty.
    pub remark: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
    /// The tables.
    pub tables: Vec<ReportTable>,
}

/// A table, or its first rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReportTable {
    /// The headings of the columns.
    pub columns: Vec<ReportColumn>,
    /// Cells by row.
    pub rows: Vec<Vec<String>>,
    /// The rows that are left off, such as `12 more ranks`; empty: none is.
    pub left_off: String,
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReportColumn {
    /// The heading.
    pub name: Cow<'static, str>,
    /// Whether it has numbers.
    pub is_number: bool,
}

//! The page on results, and the list of columns, are made from the tables' own declarations.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;
use weft_results::{Table, TableDeclaration, WrittenBy};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/formats/results.md");
const COLUMNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/columns.md");
const GENERATED: &str = "<!-- From here on";
const COLUMNS_HEAD: &str = "\
# Columns of tables

Every column of every table of a result, as its declaration has it.
`WEFT_WRITE_DOCS=1 cargo test -p weft-results --test results_page` writes this page anew. All that tables have
in common, such as the column `run`, is on [the page of results](../src/formats/results.md#tables).
";

/// Most columns of a line of the book's prose.
const WIDTH: usize = 120;

/// A paragraph in lines of at most [`WIDTH`] columns.
fn wrapped(paragraph: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

/// The list of tables, with the options that write them.
fn list() -> String {
    let mut text = "\n| table | by default | options | has |\n|---|---|---|---|\n".to_owned();
    for table in Table::ALL {
        let TableDeclaration { written_by, options, doc, .. } = table.declaration();
        let default = if written_by == WrittenBy::Default { "yes" } else { "" };
        writeln!(text, "| `{table}` | {default} | {options} | {doc} |").unwrap();
    }
    text
}

fn section(table: Table) -> String {
    let TableDeclaration { version, doc, columns, .. } = table.declaration();
    let mut text = format!(
        "\n## {table} (version {version})\n\n{}\n\n| column | type | |\n|---|---|---|\n",
        wrapped(&doc)
    );
    // The head of the page explains `run`, which every table has.
    for column in columns.into_iter().filter(|column| column.name != "run") {
        let null = if column.nullable { ", may be null" } else { "" };
        writeln!(text, "| `{}` | {}{null} | {} |", column.name, column.data_type, column.doc).unwrap();
    }
    text
}

/// Compares a page with what it should be, or writes it anew.
fn check(path: &str, expected: &str) {
    if std::env::var_os("WEFT_WRITE_DOCS").is_some() {
        std::fs::write(path, expected).unwrap();
    } else {
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page == expected, "{path} is stale: run the command that it names");
    }
}

/// Catches a column that was added, renamed or given another meaning without the pages saying so.
#[test]
fn the_pages_say_what_the_files_hold() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let start = page.find(GENERATED).expect("the page has the mark");
    let head = &page[..start + page[start..].find('\n').unwrap() + 1];
    check(PAGE, &format!("{head}{}", list()));
    check(COLUMNS, &format!("{COLUMNS_HEAD}{}", Table::ALL.map(section).concat()));
}

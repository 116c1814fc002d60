//! `validation/RESULTS.md` is made from what `weft validate` gives.

use std::fmt::Write;
use weft_sim::experiment::validate::{self, Role, ValidateRequest, ValidationReport};
use weft_sim::experiment::{Control, Interrupt, Silent};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/RESULTS.md");
const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/validation.md");
const GENERATED: &str = "<!-- From here on";

/// Most columns of a line of prose.
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

fn report() -> ValidationReport {
    let control = Control { interrupt: &Interrupt::default(), progress: &Silent };
    validate::run(&ValidateRequest::default(), control).unwrap()
}

fn page(report: &ValidationReport) -> String {
    let mut text = String::new();
    for role in Role::ALL {
        let Some(summary) = report.summary(role) else { continue };
        let title = if role == Role::Limit { "Limits" } else { role.name() };
        let title = title[..1].to_uppercase() + &title[1..];
        let summary = summary[..1].to_uppercase() + &summary[1..];
        write!(
            text,
            "\n## {title}\n\n{summary}.\n\n\
             | row | what | source | published | simulated | error |\n\
             |---|---|---|--:|--:|--:|\n"
        )
        .unwrap();
        for row in report.of_role(role) {
            let figure = row.published.map(|_| format!("{} {}", row.published_text(), row.unit));
            let figure = figure.unwrap_or_default();
            writeln!(
                text,
                "| `{}` | {} | {} | {} | {} {} | {} |",
                row.id,
                row.quantity,
                row.source,
                figure,
                row.simulated_text(),
                row.unit,
                row.error_text()
            )
            .unwrap();
        }
        for row in report.of_role(role) {
            let command = row.command.as_ref().map(|command| format!("`{command}`."));
            let words: Vec<&str> = row.note.as_deref().into_iter().chain(command.as_deref()).collect();
            if !words.is_empty() {
                write!(text, "\n{}\n", wrapped(&format!("`{}`: {}", row.id, words.join(" ")))).unwrap();
            }
        }
    }
    if !report.left_out.is_empty() {
        text.truncate(text.trim_end().len());
        text += "\n\n## Not measured here\n\nThese need a trace that is not part of the tree.\n\n";
        text += "| row | what | mend |\n|---|---|---|\n";
        for row in &report.left_out {
            writeln!(text, "| `{}` | {} | {} |", row.id, row.quantity, row.why).unwrap();
        }
    }
    text
}

/// Catches a model that has become worse: the error of a predicted row, or what misses a limit, above the
/// bound that the row gives. A bound that has become loose would let that pass, too.
fn assert_errors_are_within_their_bounds(report: &ValidationReport) {
    for row in &report.rows {
        let Some(bound) = row.bound else { continue };
        let error = 100.0 * row.relative_error.unwrap().abs();
        assert!(error <= bound, "{}: {error:.2} % is above its bound of {bound} %", row.id);
        assert!(bound <= 1.1 * error + 0.5, "{}: {bound} % is far above {error:.2} %", row.id);
    }
    let missed = report.rows.iter().filter(|row| row.is_met() == Some(false) && row.bound.is_none());
    assert_eq!(missed.map(|row| row.id.as_str()).collect::<Vec<_>>(), [""; 0], "missed without a bound");
}

/// Catches a change that is made to one machine and refused by the other, and filters that name nothing.
#[test]
fn filters_and_changes_name_one_machine() {
    let refused = |request: &ValidateRequest| {
        let control = Control { interrupt: &Interrupt::default(), progress: &Silent };
        validate::run(request, control).unwrap_err().to_string()
    };
    let sets = vec!["links.qfdb.latency=110ns".to_owned()];
    let said = refused(&ValidateRequest { sets, ..ValidateRequest::default() });
    assert!(said.contains("add --machine exanest"), "{said}");
    let said = refused(&ValidateRequest { machine: Some("rack".into()), ..ValidateRequest::default() });
    assert!(said.contains("communication-ip, exanest"), "{said}");
    assert_eq!(said.matches("exanest").count(), 1, "it has two publications, and is one machine: {said}");
    let said = refused(&ValidateRequest { only: Some("rack".into()), ..ValidateRequest::default() });
    assert!(said.contains("raw-latency") && said.contains("fifo-to-fifo"), "{said}");
}

/// Catches a change of the model that moves a validated figure without the page or the book saying so, a row
/// that cannot be run any more, and a row that has become worse.
#[test]
fn the_page_says_what_the_command_gives() {
    let present = std::fs::read_to_string(PAGE).unwrap();
    let start = present.find(GENERATED).expect("the page has the mark");
    let head = &present[..start + present[start..].find('\n').unwrap() + 1];
    let report = report();
    assert_errors_are_within_their_bounds(&report);
    let expected = format!("{head}{}", page(&report));
    if std::env::var_os("WEFT_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    } else {
        assert!(present == expected, "validation/RESULTS.md is stale: run the command that it names");
    }
    let book = std::fs::read_to_string(BOOK).unwrap();
    for summary in Role::ALL.into_iter().filter_map(|role| report.summary(role)) {
        assert!(book.contains(&format!("\n- {summary}\n")), "docs/src/validation.md lacks: {summary}");
    }
}

//! Pages: one file each that a browser shows without any other. Text of results is escaped, and the page
//! forbids scripts and requests, so that a hostile name in a result does nothing.

use crate::axis::number;
use crate::image::{DrawError, svg};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use weft_results::report::{CriticalPath, HotLink, Report, SlowMessage};
use weft_results::{ComparedRow, ComparedValue, Comparison};

/// Pieces of a message that are listed.
const LONGEST_PIECES: usize = 6;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8885; --soft: #8882; --ink: #0072b2; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid var(--soft); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.facts th { font-weight: 600; white-space: nowrap; vertical-align: top; }
.warning { border-left: 4px solid #d55e00; padding: .2rem .8rem; background: var(--soft); margin: .4rem 0; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; background: #fff; }
.soft { color: #888; font-size: 13px; } .bar { background: var(--ink); height: .8em; display: block; }
";

/// Nothing may be loaded or run; styles are the page's own.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

fn page(title: &str, body: Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    markup.into_string()
}

/// The report of one result.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn report(report: &Report) -> Result<String, DrawError> {
    let figures = report.pictures.iter().map(svg).collect::<Result<Vec<String>, _>>()?;
    let body = html! {
        h1 { (report.name) }
        table.facts { @for (name, text) in &report.facts { tr { th { (name) } td { (text) } } } }
        @for warning in &report.warnings { p.warning { (warning) } }
        h2 { "Key figures" }
        (totals(&report.totals))
        @if !report.rows.1.is_empty() { (rows(&report.rows.0, &report.rows.1)) }
        h2 { "Pictures" }
        // Text in these is escaped where they are drawn.
        @for figure in &figures { figure { (PreEscaped(figure)) } }
        @if !report.not_drawn.is_empty() {
            p.soft { "Not drawn, as the result lacks what they show:" }
            ul.soft { @for line in &report.not_drawn { li { (line) } } }
        }
        h2 { "Slowest messages" }
        @match &report.slowest {
            Some(messages) => (slowest(messages)),
            None => p.soft { "The table of messages was not written; " code { "--tables messages,flows,links,ranks" }
                " writes it." },
        }
        h2 { "Hot links" }
        @match &report.hot_links {
            Some(links) => (hot_links(links)),
            None => p.soft { "The table of links was not written; " code { "--tables links" } " writes it." },
        }
        h2 { "Critical path" }
        @if report.critical_paths.is_empty() {
            p.soft { "A result of " code { "weft run" } " has its own. " code { "weft report --explain" }
                " runs a replay or a benchmark again to find it; traffic has none." }
        }
        @for path in &report.critical_paths { (critical_path(path)) }
        h2 { "Assumed constants" }
        table {
            tr { th { "key" } th { "value" } th { "why" } }
            @for constant in &report.assumed {
                tr { td { code { (constant.key) } } td { (constant.value) } td { (constant.source) } }
            }
        }
    };
    Ok(page(&format!("weft: {}", report.name), body))
}

fn totals(totals: &[(String, String)]) -> Markup {
    html! {
        table.facts { @for (name, value) in totals { tr { th { (name) } td.number { (value) } } } }
    }
}

fn rows(columns: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        table {
            tr { @for column in columns { th { (column.replace('_', " ")) } } }
            @for row in rows { tr { @for cell in row { td.number { (cell) } } } }
        }
    }
}

fn slowest(messages: &[SlowMessage]) -> Markup {
    let longest = |message: &SlowMessage| {
        let mut pieces = message.pieces.clone();
        pieces.sort_by(|a, b| b.0.total_cmp(&a.0));
        pieces.truncate(LONGEST_PIECES);
        pieces
    };
    html! {
        table {
            tr { th { "run" } th { "from" } th { "to" } th.number { "bytes" } th.number { "posted (µs)" }
                th.number { "time (µs)" } th { "longest pieces" } }
            @for message in messages {
                tr {
                    td { (message.run) } td { (message.from) } td { (message.to) }
                    td.number { (message.bytes) } td.number { (format!("{:.3}", message.posted_us)) }
                    td.number { (format!("{:.3}", message.time_us)) }
                    td {
                        @for (time, what, place) in longest(message) {
                            div { (format!("{time:.3} µs ")) (what) " at " (place) }
                        }
                        @if message.pieces.is_empty() { span.soft { "--breakdown of weft replay or run writes them" } }
                    }
                }
            }
        }
    }
}

fn hot_links(links: &[HotLink]) -> Markup {
    html! {
        table {
            tr { th { "run" } th { "link" } th { "class" } th.number { "busy" } th.number { "stalled (µs)" }
                th.number { "paused (µs)" } th.number { "lost" } }
            @for link in links {
                tr {
                    td { (link.run) } td { (link.link) } td { (link.class) }
                    td.number { (format!("{:.1} %", link.utilization * 100.0)) }
                    td.number { (format!("{:.3}", link.stall_us)) }
                    td.number { (format!("{:.3}", link.paused_us)) } td.number { (link.lost) }
                }
            }
        }
    }
}

fn critical_path(path: &CriticalPath) -> Markup {
    html! {
        p { (path.of) }
        table {
            tr { th { "category" } th.number { "time (µs)" } th.number { "share" } th { "" } }
            @for (category, time, share) in &path.categories {
                tr {
                    td { (category) } td.number { (format!("{time:.3}")) }
                    td.number { (format!("{:.1} %", share * 100.0)) }
                    td { span.bar style=(format!("width: {:.0}px", share * 300.0)) {} }
                }
            }
        }
    }
}

/// Results beside each other.
pub fn comparison(comparison: &Comparison) -> String {
    let body = html! {
        h1 { "Comparison" }
        p { "Changes are against " b { (comparison.results[0]) } ". An interval is one of 95 % over seeds; p is the "
            "probability of so large a difference between equal means (Welch’s t-test), where both have several "
            "seeds." }
        table {
            tr {
                th { "case" } th { "quantity" }
                @for (number, name) in comparison.results.iter().enumerate() {
                    th.number { (name) }
                    @if number > 0 { th.number { "change" } th.number { "p" } }
                }
            }
            @for row in &comparison.rows { (compared(row)) }
        }
        @if !comparison.unmatched.is_empty() {
            p.soft { "Cases that not all have: " (comparison.unmatched.join("; ")) }
        }
    };
    page("weft: comparison", body)
}

fn compared(row: &ComparedRow) -> Markup {
    html! {
        tr {
            td { (row.case) } td { (row.quantity) }
            @for (number, value) in row.values.iter().enumerate() {
                td.number { (value_text(value)) }
                @if number > 0 {
                    td.number { (change_text(value)) }
                    td.number { @if is_significant(value) { b { (p_text(value)) } } @else { (p_text(value)) } }
                }
            }
        }
    }
}

/// A value with its interval.
pub fn value_text(value: &ComparedValue) -> String {
    let step = value.value.abs() / 1e4;
    match value.half_width {
        Some(half) => format!("{} ± {}", number(value.value, step), number(half, half / 10.0)),
        None => number(value.value, step),
    }
}

/// A change in percent.
pub fn change_text(value: &ComparedValue) -> String {
    value.change.map_or_else(String::new, |change| format!("{:+.2} %", change * 100.0))
}

/// A probability.
pub fn p_text(value: &ComparedValue) -> String {
    match value.p {
        None => String::new(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

fn is_significant(value: &ComparedValue) -> bool {
    value.p.is_some_and(|p| p < 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_results::AssumedConstant;

    const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";

    /// Catches text of a result that becomes markup anywhere on the page.
    #[test]
    fn text_of_results_is_never_markup() {
        let text = || HOSTILE.to_owned();
        let report_of = Report {
            name: text(),
            facts: vec![(text(), text())],
            totals: vec![(text(), text())],
            warnings: vec![text()],
            rows: (vec![text()], vec![vec![text()]]),
            pictures: Vec::new(),
            not_drawn: vec![text()],
            slowest: Some(vec![SlowMessage {
                run: 0,
                from: text(),
                to: text(),
                bytes: 1,
                posted_us: 0.0,
                time_us: 1.0,
                pieces: vec![(1.0, text(), text())],
            }]),
            hot_links: Some(vec![HotLink {
                run: 0,
                link: text(),
                class: text(),
                utilization: 0.5,
                stall_us: 0.0,
                paused_us: 0.0,
                lost: 0,
            }]),
            critical_paths: vec![CriticalPath { of: text(), categories: vec![(text(), 1.0, 1.0)] }],
            assumed: vec![AssumedConstant { key: text(), value: text(), source: text() }],
        };
        let compared = Comparison {
            results: vec![text(), text()],
            rows: vec![ComparedRow { case: text(), quantity: text(), values: Vec::new() }],
            unmatched: vec![text()],
        };
        for page in [report(&report_of).unwrap(), comparison(&compared)] {
            assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
            assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
        }
    }
}

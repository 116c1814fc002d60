//! Pages: one file each that a browser shows without any other. Text of results is escaped, and the page
//! forbids scripts and requests, so that a hostile name in a result does nothing.

use crate::axis::number;
use crate::image::{DrawError, svg};
use html_escape::encode_safe;
use weft_analysis::congestion::{CongestionTree, TreeFlow};
use weft_analysis::picture::{FieldUnit, Picture, four_digits, time_unit};
use weft_analysis::report::{CriticalPath, HotLink, LatencyCase, ProgramCalls, Report, SlowMessage};
use weft_analysis::{ComparedRow, ComparedValue, Comparison, LinkFlow};

/// Pieces of a message that are listed.
const LONGEST_PIECES: usize = 6;

/// Branches of a tree, and flows of a tree or a link, that are listed.
const LISTED: usize = 8;

/// Between thousands: narrow, and no place to break a line.
const THIN_SPACE: char = '\u{202f}';

/// Headings of a report, in their order.
const PARTS: [&str; 8] = [
    "Key figures",
    "Pictures",
    "Where the latency goes",
    "Congestion trees",
    "Slowest messages",
    "Hot links",
    "Critical path",
    "Assumed constants",
];

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
.soft { color: #888; font-size: 13px; }
";

/// Nothing may be loaded or run; styles are the page's own.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// A page while it is written: markup is of this file, all else is escaped.
pub(crate) struct Page {
    html: String,
}

/// A column of a table: its heading, and whether it has numbers.
pub(crate) type Heading<'a> = (&'a str, bool);

impl Page {
    pub(crate) fn new(title: &str) -> Page {
        let mut page = Page { html: String::new() };
        page.markup("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">");
        page.markup("<meta http-equiv=\"Content-Security-Policy\" content=\"").markup(POLICY).markup("\">");
        page.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
        page.text(title).markup("</title><style>").markup(STYLE).markup("</style></head><body>\n");
        page
    }

    /// Markup: a constant, so that no text of a result can come here.
    pub(crate) fn markup(&mut self, markup: &'static str) -> &mut Page {
        self.html += markup;
        self
    }

    /// Text, escaped.
    pub(crate) fn text(&mut self, text: &str) -> &mut Page {
        self.html += &encode_safe(text);
        self
    }

    /// A heading to which contents lead.
    fn heading(&mut self, text: &str) -> &mut Page {
        self.markup("<h2 id=\"").text(&anchor(text)).markup("\">").text(text).markup("</h2>\n")
    }

    /// Links to headings.
    fn contents(&mut self, headings: &[&str]) -> &mut Page {
        self.markup("<nav><ul>");
        for heading in headings {
            self.markup("<li><a href=\"#").text(&anchor(heading)).markup("\">").text(heading);
            self.markup("</a></li>\n");
        }
        self.markup("</ul></nav>\n")
    }

    /// A remark in grey.
    pub(crate) fn remark(&mut self, text: &str) -> &mut Page {
        self.markup("<p class=\"soft\">").text(text).markup("</p>\n")
    }

    /// A reason to be careful.
    pub(crate) fn warning(&mut self, text: &str) -> &mut Page {
        self.markup("<p class=\"warning\">").text(text).markup("</p>\n")
    }

    /// A picture; text in it is escaped where it is drawn.
    pub(crate) fn figure(&mut self, svg: &str) -> &mut Page {
        self.markup("<figure>").html += svg;
        self.markup("</figure>\n")
    }

    /// Names with their texts.
    pub(crate) fn facts(&mut self, facts: &[(String, String)]) -> &mut Page {
        self.markup("<table class=\"facts\">");
        for (name, text) in facts {
            self.markup("<tr><th>").text(name).markup("</th><td>").text(text).markup("</td></tr>\n");
        }
        self.markup("</table>\n")
    }

    pub(crate) fn table(
        &mut self,
        headings: &[Heading<'_>],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> &mut Page {
        self.markup("<table><tr>");
        for (heading, numbers) in headings {
            self.markup(if *numbers { "<th class=\"number\">" } else { "<th>" })
                .text(heading)
                .markup("</th>");
        }
        self.markup("</tr>\n");
        for row in rows {
            self.markup("<tr>");
            for (cell, (_, numbers)) in row.iter().zip(headings) {
                let shown = if *numbers { separated(cell) } else { cell.clone() };
                self.markup(if *numbers { "<td class=\"number\">" } else { "<td>" })
                    .text(&shown)
                    .markup("</td>");
            }
            self.markup("</tr>\n");
        }
        self.markup("</table>\n")
    }

    pub(crate) fn end(mut self) -> String {
        self.markup("</body></html>\n");
        self.html
    }
}

/// The name of a heading in links.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// A number with its thousands apart; other texts as they are.
fn separated(text: &str) -> String {
    let whole = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    if whole < 5 || !text[whole..].chars().next().is_none_or(|sign| ". ".contains(sign)) {
        return text.to_owned();
    }
    let mut apart = String::new();
    for (place, digit) in text[..whole].chars().enumerate() {
        if place > 0 && (whole - place).is_multiple_of(3) {
            apart.push(THIN_SPACE);
        }
        apart.push(digit);
    }
    apart + &text[whole..]
}

/// Headings and cells of the measured rows in units that people say.
fn measured((columns, rows): &(Vec<String>, Vec<Vec<String>>)) -> (Vec<String>, Vec<Vec<String>>) {
    let number = |row: &Vec<String>, column: usize| row.get(column)?.parse::<f64>().ok();
    let quantity = |(column, name): (usize, &String)| {
        let is_case = weft_analysis::is_case(name);
        let values = || rows.iter().filter_map(|row| number(row, column));
        let all = rows.iter().filter(|row| !row.get(column).is_none_or(|cell| cell.is_empty())).count();
        let is_measured = !is_case && values().count() == all && values().any(|value| value.fract() != 0.0);
        is_measured.then(|| FieldUnit::of(name, values().map(f64::abs).fold(0.0, f64::max)))
    };
    let quantities: Vec<Option<FieldUnit>> = columns.iter().enumerate().map(quantity).collect();
    let headings = columns.iter().zip(&quantities).map(|(name, quantity)| match quantity {
        Some(quantity) => quantity.heading(),
        None => name.replace('_', " "),
    });
    let cell = |(text, quantity): (&String, &Option<FieldUnit>)| match (quantity, text.parse::<f64>()) {
        (Some(quantity), Ok(value)) => four_digits(value * quantity.factor),
        _ => text.clone(),
    };
    let cells = rows.iter().map(|row| row.iter().zip(&quantities).map(cell).collect());
    (headings.collect(), cells.collect())
}

/// The report of one result.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn report(report: &Report) -> Result<String, DrawError> {
    let mut page = Page::new(&format!("weft: {}", report.name));
    page.markup("<h1>").text(&report.name).markup("</h1>\n").facts(&report.facts);
    for warning in &report.warnings {
        page.warning(warning);
    }
    page.contents(&PARTS);
    let totals = report.totals.iter().map(|(name, text)| (name.clone(), separated(text))).collect::<Vec<_>>();
    page.heading("Key figures").facts(&totals);
    let (names, rows) = measured(&report.rows);
    if !rows.is_empty() {
        let headings: Vec<Heading<'_>> = names.iter().map(|name| (name.as_str(), true)).collect();
        page.table(&headings, rows.into_iter());
    }
    page.heading("Pictures");
    for picture in &report.pictures {
        page.figure(&svg(picture)?);
    }
    for line in &report.not_drawn {
        page.remark(&format!("Not drawn: {line}"));
    }
    page.heading("Where the latency goes");
    match report.latency.as_slice() {
        [] => page.remark("--breakdown splits it into host, injection, fabric and ejection."),
        cases => latency(&mut page, cases),
    };
    page.heading("Congestion trees");
    match report.congestion_trees.as_deref() {
        Some([]) => page.remark("No link that is busy all the time has others wait for it."),
        Some(trees) => congestion_trees(&mut page, trees),
        None => {
            page.remark("They are found from telemetry and the table of links; --telemetry 10us writes it.")
        }
    };
    page.heading("Slowest messages");
    match &report.slowest {
        Some(messages) => slowest(&mut page, messages),
        None => page
            .remark("The table of messages was not written; --tables messages,flows,links,ranks writes it."),
    };
    page.heading("Hot links");
    match &report.hot_links {
        Some(links) => hot_links(&mut page, links),
        None => page.remark("The table of links was not written; --tables links writes it."),
    };
    if !report.calls.is_empty() {
        page.heading("Calls");
        report.calls.iter().for_each(|calls| program_calls(&mut page, calls));
    }
    page.heading("Critical path");
    if report.critical_paths.is_empty() {
        page.remark(
            "A result of weft run has its own. weft report --explain runs a replay or a benchmark again to \
             find it; traffic has none.",
        );
    }
    report.critical_paths.iter().for_each(|path| critical_path(&mut page, path));
    page.heading("Assumed constants");
    let constants =
        report.assumed.iter().map(|one| vec![one.key.clone(), one.value.clone(), one.source.clone()]);
    page.table(&[("key", false), ("value", false), ("why", false)], constants);
    Ok(page.end())
}

fn us(time: f64) -> String {
    format!("{time:.3}")
}

fn slowest<'a>(page: &'a mut Page, messages: &[SlowMessage]) -> &'a mut Page {
    let pieces = |message: &SlowMessage| {
        let mut pieces = message.pieces.clone();
        pieces.sort_by(|a, b| b.0.total_cmp(&a.0));
        pieces.truncate(LONGEST_PIECES);
        let piece =
            |(time, what, place): &(f64, String, String)| format!("{} µs {what} at {place}", us(*time));
        match pieces.as_slice() {
            [] => "--breakdown of weft replay or run writes them".to_owned(),
            pieces => pieces.iter().map(piece).collect::<Vec<_>>().join("; "),
        }
    };
    let row = |one: &SlowMessage| {
        let (run, bytes) = (one.run.to_string(), one.bytes.to_string());
        vec![run, one.from.clone(), one.to.clone(), bytes, us(one.posted_us), us(one.time_us), pieces(one)]
    };
    let headings = [
        ("run", true),
        ("from", false),
        ("to", false),
        ("bytes", true),
        ("posted (µs)", true),
        ("time (µs)", true),
        ("longest pieces", false),
    ];
    page.table(&headings, messages.iter().map(row))
}

/// Mean times by leg of messages' way, each with its share.
fn latency<'a>(page: &'a mut Page, cases: &[LatencyCase]) -> &'a mut Page {
    let row = |case: &LatencyCase| {
        let all: f64 = case.legs.iter().map(|(_, time)| time).sum();
        let leg = |(_, time): &(String, f64)| {
            let (unit, factor) = time_unit(all);
            let share = if all > 0.0 { time / all * 100.0 } else { 0.0 };
            format!("{} {unit} ({share:.1} %)", four_digits(time * factor))
        };
        std::iter::once(case.of.clone()).chain(case.legs.iter().map(leg)).collect()
    };
    let headings = [("of", false), ("host", true), ("injection", true), ("fabric", true), ("ejection", true)];
    page.table(&headings, cases.iter().map(row))
}

/// A row for each tree, with the branches that waited longest.
fn congestion_trees<'a>(page: &'a mut Page, trees: &[CongestionTree]) -> &'a mut Page {
    let flows = |flows: &Option<Vec<TreeFlow>>| match flows {
        None => "not known: --tables flow_rates writes flows".to_owned(),
        Some(flows) if flows.is_empty() => "none".to_owned(),
        Some(flows) => {
            let flow = |flow: &TreeFlow| match flow.rate_gbps {
                Some(rate) => format!("{} to {} ({rate:.1} Gb/s)", flow.from, flow.to),
                None => format!("{} to {}", flow.from, flow.to),
            };
            shortened(flows.iter().map(flow).collect(), "; ")
        }
    };
    let row = |tree: &CongestionTree| {
        let branch = |branch: &weft_analysis::congestion::Branch| {
            format!("{} ({:.0} % of the time)", branch.link, branch.share * 100.0)
        };
        vec![
            tree.run.to_string(),
            tree.root.clone(),
            format!("{:.1} to {:.1}", tree.from_us, tree.to_us),
            format!("{:.1} %", tree.share * 100.0),
            tree.branches.len().to_string(),
            shortened(tree.branches.iter().map(branch).collect(), "; "),
            flows(&tree.contributors),
            flows(&tree.victims),
        ]
    };
    let headings = [
        ("run", true),
        ("root", false),
        ("time (µs)", true),
        ("of the run", true),
        ("branches", true),
        ("nearest", false),
        ("flows through the root", false),
        ("victims", false),
    ];
    page.table(&headings, trees.iter().map(row))
}

/// The first of a list, and how many more there are.
fn shortened(mut texts: Vec<String>, between: &str) -> String {
    let more = texts.len().saturating_sub(LISTED);
    texts.truncate(LISTED);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts.join(between)
}

fn hot_links<'a>(page: &'a mut Page, links: &[HotLink]) -> &'a mut Page {
    let row = |link: &HotLink| {
        let busy = format!("{:.1} %", link.utilization * 100.0);
        let (stalled, paused, lost) = (us(link.stall_us), us(link.paused_us), link.lost.to_string());
        let cells =
            [link.run.to_string(), link.link.clone(), link.class.clone(), busy, stalled, paused, lost];
        let flow = |flow: &LinkFlow| {
            let to = flow.to.map_or("?".to_owned(), |to| to.to_string());
            format!("{} to {to} ({:.1} %)", flow.from, flow.share * 100.0)
        };
        let flows = link.flows.iter().map(|flows| shortened(flows.iter().map(flow).collect(), ", "));
        cells.into_iter().chain(flows).collect::<Vec<_>>()
    };
    let mut headings = vec![
        ("run", true),
        ("link", false),
        ("class", false),
        ("busy", true),
        ("stalled (µs)", true),
        ("paused (µs)", true),
        ("lost", true),
    ];
    if links.iter().any(|link| link.flows.is_some()) {
        headings.push(("flows, by their time on it", false));
    }
    page.table(&headings, links.iter().map(row))
}

fn program_calls(page: &mut Page, calls: &ProgramCalls) {
    page.markup("<p>").text(&calls.of).markup(", all ranks together</p>\n");
    let all: f64 = calls.operations.iter().map(|(_, _, time)| time).sum();
    let row = |(operation, number, time): &(String, u64, f64)| {
        let share = if all > 0.0 { time / all * 100.0 } else { 0.0 };
        vec![operation.clone(), number.to_string(), us(*time), format!("{share:.1} %")]
    };
    let headings = [("operation", false), ("calls", true), ("time (µs)", true), ("share of calls", true)];
    page.table(&headings, calls.operations.iter().map(row));
}

fn critical_path(page: &mut Page, path: &CriticalPath) {
    page.markup("<p>").text(&path.of).markup("</p>\n");
    if let Some(verdict) = &path.verdict {
        page.markup("<p><b>").text(verdict).markup("</b></p>\n");
    }
    let row = |(category, time, share): &(String, f64, f64)| {
        vec![category.clone(), us(*time), format!("{:.1} %", share * 100.0)]
    };
    let headings = [("category", false), ("time (µs)", true), ("share", true)];
    page.table(&headings, path.categories.iter().map(row));
}

/// Results beside each other, with pictures of all of them.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn comparison(comparison: &Comparison, pictures: &[Picture]) -> Result<String, DrawError> {
    let mut page = Page::new("weft: comparison");
    page.markup("<h1>Comparison</h1>\n<p>Changes are against <b>").text(&comparison.results[0]).markup(
        "</b>. An interval is one of 95 % over seeds; p is the probability of so large a difference between \
         equal means (Welch’s t-test), where both have several seeds.</p>\n",
    );
    let mut headings: Vec<Heading<'_>> = vec![("case", false), ("quantity", false)];
    for (number, name) in comparison.results.iter().enumerate() {
        headings.push((name, true));
        if number > 0 {
            headings.extend([("change", true), ("p", true)]);
        }
    }
    let (differing, same) = comparison.differing();
    page.table(&headings, differing.into_iter().map(compared));
    if same > 0 {
        page.remark(&format!("The same in all: {same} quantities; weft compare --json has them."));
    }
    if !comparison.unmatched.is_empty() {
        page.remark(&format!("Cases that not all have: {}", comparison.unmatched.join("; ")));
    }
    for picture in pictures {
        page.figure(&svg(picture)?);
    }
    Ok(page.end())
}

fn compared(row: &ComparedRow) -> Vec<String> {
    let (quantity, values) = row.told();
    let mut cells = vec![row.case.clone(), quantity];
    for (number, value) in values.iter().enumerate() {
        cells.push(value_text(value));
        if number > 0 {
            cells.extend([change_text(value), p_text(value)]);
        }
    }
    cells
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
    value.change.map_or_else(String::new, |change| match format!("{:+.2} %", change * 100.0).as_str() {
        "+0.00 %" | "-0.00 %" => "0 %".to_owned(),
        text => text.to_owned(),
    })
}

/// A probability.
pub fn p_text(value: &ComparedValue) -> String {
    match value.p {
        None => String::new(),
        Some(p) if p < 0.001 => "< 0.001".to_owned(),
        Some(p) => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_results::AssumedConstant;

    const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";

    /// Catches thousands that nobody can read, and figures that are taken apart where they are no numbers.
    #[test]
    fn thousands_are_apart() {
        for (text, apart) in [
            ("1234567", "1\u{202f}234\u{202f}567"),
            ("12345.678", "12\u{202f}345.678"),
            ("20000 ± 3", "20\u{202f}000 ± 3"),
            ("9999", "9999"),
            ("123456abc", "123456abc"),
            ("rank 100000", "rank 100000"),
        ] {
            assert_eq!(separated(text), apart);
        }
    }

    /// Catches a table of a page in ns where people say µs, and sizes that become measured.
    #[test]
    fn rows_are_in_units_that_people_say() {
        let columns = ["size_bytes", "latency_mean_ns", "messages"].map(str::to_owned).to_vec();
        let rows = vec![["4096", "12500.5000", "7"].map(str::to_owned).to_vec()];
        let (headings, cells) = measured(&(columns, rows));
        assert_eq!(headings, ["size bytes", "latency mean (µs)", "messages"]);
        assert_eq!(cells[0], ["4096", "12.5", "7"]);
    }

    /// Catches `-0.00 %`.
    #[test]
    fn a_change_of_nothing_has_no_sign() {
        let change = |change| ComparedValue { value: 1.0, half_width: None, change: Some(change), p: None };
        let texts = [-1e-9, 1e-9, -0.5].map(|of| change_text(&change(of)));
        assert_eq!(texts, ["0 %", "0 %", "-50.00 %"]);
    }

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
            latency: vec![LatencyCase { of: text(), legs: vec![(text(), 1.0)] }],
            congestion_trees: None,
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
                flows: None,
            }]),
            calls: vec![ProgramCalls { of: text(), operations: vec![(text(), 2, 1.0)] }],
            critical_paths: vec![CriticalPath {
                of: text(),
                verdict: Some(text()),
                categories: vec![(text(), 1.0, 1.0)],
            }],
            assumed: vec![AssumedConstant { key: text(), value: text(), source: text() }],
        };
        let compared = Comparison {
            results: vec![text(), text()],
            rows: vec![ComparedRow { case: text(), quantity: text(), values: Vec::new() }],
            unmatched: vec![text()],
        };
        for page in [report(&report_of).unwrap(), comparison(&compared, &[]).unwrap()] {
            assert!(!page.contains("<img") && !page.contains("<script"), "{page}");
            assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
        }
    }
}

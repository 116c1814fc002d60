//! A result in one page: what ran, on what, what came of it, and where its time and its trouble are.

use crate::compare::{case_of, is_case};
use crate::congestion::{CongestionTree, Ways, congestion_trees};
use crate::link_flows::{LinkFlow, RunLink, link_flows};
use crate::picture::{Picture, PictureKind, ShownPart, four_digits, time_unit};
use serde::Serialize;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_results::{
    AssumedConstant, Ending, LinkRow, MessagePieceRow, MessageRow, RateRow, ResultsError, RunOf,
    StoredResult, Table,
};
use weft_units::{Energy, Time};

/// Messages and links that are listed.
const LISTED: usize = 15;
/// Congestion trees that are warned of; all are listed.
const WARNED_TREES: usize = 3;
/// The share of a run for which such a tree stands, at least.
const LASTING: f64 = 0.05;
/// Legs of a message's way, and their keys in rows.
const LEGS: [(&str, &str); 4] = [
    ("host", "host_ns"),
    ("injection", "injection_ns"),
    ("fabric", "fabric_ns"),
    ("ejection", "ejection_ns"),
];
const PS_PER_US: f64 = 1e6;
const PJ_PER_UJ: f64 = 1e6;

/// The contents of a report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The directory's name.
    pub name: String,
    /// Facts about the run: a name and a text each.
    pub facts: Vec<(String, String)>,
    /// The virtual totals that are not 0.
    pub totals: Vec<(String, String)>,
    /// Reasons to be careful.
    pub warnings: Vec<String>,
    /// The measured rows: names of columns, and cells.
    pub rows: (Vec<String>, Vec<Vec<String>>),
    /// The pictures that the result has the tables for.
    pub pictures: Vec<Picture>,
    /// Pictures that it lacks tables for, with what writes them.
    pub not_drawn: Vec<String>,
    /// The messages that took longest; `None`: the table was not written.
    pub slowest: Option<Vec<SlowMessage>>,
    /// Latency by leg of the way: the case, and the mean time of each leg in ns.
    pub latency: Vec<LatencyCase>,
    /// Congestion trees, the largest of each run first; `None`: there is no telemetry, or no table of links.
    pub congestion_trees: Option<Vec<CongestionTree>>,
    /// The links that were busiest; `None`: the table was not written.
    pub hot_links: Option<Vec<HotLink>>,
    /// Calls by operation, of each program that ran.
    pub calls: Vec<ProgramCalls>,
    /// Critical paths: of each the categories with their time.
    pub critical_paths: Vec<CriticalPath>,
    /// Constants that no source gives.
    pub assumed: Vec<AssumedConstant>,
}

/// The latency of the messages of a case, by leg.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LatencyCase {
    /// The case: a size, a load, a program.
    pub of: String,
    /// Time on each leg in ns, in the order of a message's way.
    pub legs: Vec<(String, f64)>,
}

/// A message and where its time went.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SlowMessage {
    /// The run.
    pub run: u32,
    /// The sender: a rank, or an endpoint.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The size.
    pub bytes: u64,
    /// The time at which it was posted.
    pub posted_us: f64,
    /// From post to delivery.
    pub time_us: f64,
    /// The pieces in the order of time: a time in µs, the activity, the place.
    pub pieces: Vec<(f64, String, String)>,
}

/// A link that was busy or stalled.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HotLink {
    /// The run.
    pub run: u32,
    /// From where to where.
    pub link: String,
    /// The kind of link.
    pub class: String,
    /// Share of the measured time in which it was sending.
    pub utilization: f64,
    /// Time for which a packet stood ready for it while the buffer behind it was full.
    pub stall_us: f64,
    /// Time for which it was paused.
    pub paused_us: f64,
    /// Packets that were lost on it, for any reason.
    pub lost: u64,
    /// The flows that crossed it, the largest first; `None`: packets or messages were not written.
    pub flows: Option<Vec<LinkFlow>>,
}

/// The calls of a program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramCalls {
    /// The program.
    pub of: String,
    /// The operation, how many calls of it all ranks made, and their time in µs.
    pub operations: Vec<(String, u64, f64)>,
}

/// A critical path by categories.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CriticalPath {
    /// The part of the program.
    pub of: String,
    /// The sentence that names the pattern which costs most; `None`: explained by a weft that knew of none.
    pub verdict: Option<String>,
    /// The category, its time in µs and its share.
    pub categories: Vec<(String, f64, f64)>,
}

impl Report {
    /// The report of a result; `explained` has what `weft explain` found, where `run.json` has not. `ways`
    /// knows ways of flows.
    ///
    /// # Errors
    /// Tables that cannot be read. Those that were not written are said to be missing.
    pub fn of(result: &StoredResult, explained: &[Value], ways: Ways<'_>) -> Result<Report, ResultsError> {
        let mut report = Report::without_pictures(result, explained, ways)?;
        let has_energy = result.manifest.totals.links_energy > Energy::ZERO;
        let has_jobs = result.manifest.rows.iter().any(|row| row["job"].is_u64());
        // Few machines say what their links take, and few results are of jobs.
        let kinds = PictureKind::ALL.into_iter().filter(|kind| match kind {
            PictureKind::LinkEnergy => has_energy,
            PictureKind::JobRates => has_jobs,
            _ => true,
        });
        for kind in kinds {
            match kind.of(std::slice::from_ref(result), ShownPart::default()) {
                Ok(picture) => report.pictures.push(picture),
                Err(ResultsError::NoTable { table, mend, .. }) => {
                    let told = format!("{kind}: there is no table {table}; it is written by {mend}");
                    report.not_drawn.push(told);
                }
                Err(ResultsError::NothingToDraw { why, .. }) => {
                    report.not_drawn.push(format!("{kind}: {why}"));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(report)
    }

    /// The same without pictures, for who draws them one by one.
    ///
    /// # Errors
    /// As of [`Report::of`].
    pub fn without_pictures(
        result: &StoredResult,
        explained: &[Value],
        ways: Ways<'_>,
    ) -> Result<Report, ResultsError> {
        let stored = &result.manifest.explained;
        let explained = if stored.is_empty() { explained } else { stored };
        let has_trees =
            [Table::Rates, Table::Queues, Table::Links].into_iter().all(|table| result.has(table));
        let trees = has_trees.then(|| congestion_trees(result, ways)).transpose()?;
        Ok(Report {
            name: result.name(),
            facts: facts(result),
            totals: if result.is_live() { totals_so_far(result)? } else { totals(result) },
            warnings: warnings(result, trees.as_deref().unwrap_or_default()),
            rows: rows(result),
            pictures: Vec::new(),
            not_drawn: Vec::new(),
            latency: latency(result),
            congestion_trees: trees,
            slowest: result.has(Table::Messages).then(|| slowest(result)).transpose()?,
            hot_links: result.has(Table::Links).then(|| hot_links(result)).transpose()?,
            calls: result.manifest.rows.iter().filter_map(program_calls).collect(),
            critical_paths: explained.iter().map(critical_path).collect(),
            assumed: result.manifest.assumed.clone(),
        })
    }
}

fn facts(result: &StoredResult) -> Vec<(String, String)> {
    let manifest = &result.manifest;
    let request = &manifest.request;
    let performance = result.performance();
    let mut facts = vec![("machine".to_owned(), result.machine().to_owned())];
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    let sets = result.changes();
    if !sets.is_empty() {
        fact("changed values", sets.join(", "));
    }
    if let Some(performance) = &performance {
        fact("command", performance.command.join(" "));
        fact("started", performance.started.clone());
        let hops = four_digits(performance.packet_hops_per_second / 1e3);
        fact("simulated in", format!("{:.1} s, {hops} k packet-hops/s", performance.wall_seconds));
    }
    let scenario = if result.command() == "scenario" { request } else { &request["scenario"] };
    if let Some(name) = scenario["name"].as_str() {
        fact("scenario", name.to_owned());
    }
    for key in ["pattern", "benchmark", "congestion", "layer", "time", "seeds", "ranks", "map", "program"] {
        match &request[key] {
            Value::Null => {}
            other => fact(key, words_of(key, other)),
        }
    }
    fact("ended", result.ended());
    fact("weft", manifest.weft_version.clone());
    facts
}

/// A value of a request as people write it: text without quotes, a program with its arguments, a list.
fn words_of(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let between = if key == "program" { " " } else { ", " };
            all.iter().map(|one| words_of(key, one)).collect::<Vec<_>>().join(between)
        }
        other => other.to_string(),
    }
}

/// Facts about a run that goes on: how far its telemetry is, what links have carried, and what is written.
fn totals_so_far(result: &StoredResult) -> Result<Vec<(String, String)>, ResultsError> {
    let mut lines = Vec::new();
    if result.has(Table::Rates) {
        let (mut end, mut bytes) = (Time::ZERO, 0);
        result.visit(|row: RateRow| {
            if row.level == 0 {
                end = end.max(row.end_ps);
                bytes += row.packet_bytes.get();
            }
        })?;
        lines.push(total("virtual_time_ps", &Value::from(end.as_ps())));
        lines.push(("bytes carried by links".to_owned(), bytes.to_string()));
    }
    let rows = result.manifest.tables.iter();
    lines.extend(rows.map(|(table, of)| (format!("rows of {}", table.name()), of.rows.to_string())));
    Ok(lines)
}

fn totals(result: &StoredResult) -> Vec<(String, String)> {
    let totals = serde_json::to_value(result.manifest.totals).unwrap_or_default();
    let fields = totals.as_object().cloned().unwrap_or_default();
    let used = fields.into_iter().filter(|(_, value)| value.as_u64() != Some(0));
    let mut lines: Vec<(String, String)> = used.map(|(name, value)| total(&name, &value)).collect();
    let (energy, bits) = (result.manifest.totals.energy, result.manifest.totals.payload.bits());
    if energy > Energy::ZERO && bits > 0 {
        let per_bit = energy.as_pj() as f64 / bits as f64;
        lines.push(("energy per delivered bit (pJ)".to_owned(), format!("{per_bit:.1}")));
    }
    lines
}

/// A total for people: a time in the unit that people say, all else in the unit of its name.
fn total(name: &str, value: &Value) -> (String, String) {
    let named = |name: &str, unit: &str| format!("{} ({unit})", name.replace('_', " "));
    match (name.strip_suffix("_ps"), name.strip_suffix("_pj"), value.as_f64()) {
        (Some(name), _, Some(ps)) => {
            let (unit, factor) = time_unit(ps / 1e3);
            (named(name, unit), format!("{:.3}", ps / 1e3 * factor))
        }
        (_, Some(name), Some(pj)) => (named(name, "µJ"), format!("{:.3}", pj / PJ_PER_UJ)),
        _ => (name.replace('_', " "), value.to_string()),
    }
}

/// The legs of the latencies in the rows.
fn latency(result: &StoredResult) -> Vec<LatencyCase> {
    let mut cases = Vec::new();
    for run in result.runs().iter().filter(|run| run.seed.1 == 0) {
        let of = describe(run);
        let breakdown = &run.row["breakdown"];
        // Of traffic a row has one, of a benchmark its breakdown, of a program each size of messages.
        let splits =
            [(String::new(), &run.row["latency_split"]), (String::new(), &breakdown["latency_split"])];
        let sizes = breakdown.as_array().into_iter().flatten().map(|class| {
            let bytes = |key: &str| class[key].as_u64().unwrap_or(0);
            let sizes = match (bytes("smallest_bytes"), bytes("largest_bytes")) {
                (smallest, largest) if smallest == largest => format!(", {smallest} B"),
                (smallest, largest) => format!(", {smallest} to {largest} B"),
            };
            (sizes, &class["latency_split"])
        });
        for (sizes, split) in splits.into_iter().chain(sizes) {
            let legs = LEGS.into_iter().filter_map(|(leg, key)| Some((leg.to_owned(), split[key].as_f64()?)));
            let legs: Vec<(String, f64)> = legs.collect();
            if !legs.is_empty() {
                cases.push(LatencyCase { of: format!("{of}{sizes}"), legs });
            }
        }
    }
    cases
}

fn warnings(result: &StoredResult, trees: &[CongestionTree]) -> Vec<String> {
    let manifest = &result.manifest;
    let mut warnings = Vec::new();
    if !result.is_live() && !matches!(manifest.ended, Ending::Finished | Ending::HorizonReached) {
        let detail = manifest.detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"));
        warnings.push(format!("The run ended with {}{detail}", manifest.ended));
    }
    for run in result.runs().iter().filter(|run| run.seed.1 == 0) {
        let label = || describe(run);
        if run.row["saturated"].as_bool() == Some(true) {
            let limit = run.row["limit"]["block"].as_str().unwrap_or("a block");
            warnings.push(format!("{}: saturated; {limit} takes no more", label()));
        }
        if run.row["messages"].as_u64() == Some(0) {
            warnings.push(format!("{}: no message was delivered in the measured time", label()));
        }
        if let Some(lost @ 1..) = run.row["packets_dropped"].as_u64() {
            warnings.push(format!("{}: links lost {lost} packets", label()));
        }
        if let Some(off) = run.row["links_off_in_warm_up_us"].as_f64().filter(|off| *off > 0.0) {
            let of = "of the time in which links were off lie in the warm-up, which is not measured";
            warnings.push(format!("{}: {off:.3} us {of}", label()));
        }
        if let Some(after @ 1..) = run.row["outages_after_end"].as_u64() {
            warnings.push(format!("{}: outages that begin after the end of the run: {after}", label()));
        }
    }
    for row in &manifest.rows {
        if let Some(why) = row["refused"].as_str() {
            warnings.push(format!("{}: not on this machine: {why}", case_of(row, None)));
        }
        if let Some(calls) = row["unrecorded"].as_object().filter(|calls| !calls.is_empty()) {
            let calls: Vec<String> = calls.iter().map(|(call, count)| format!("{count} × {call}")).collect();
            let calls = calls.join(", ");
            warnings.push(format!("{}: the trace lacks calls of its program: {calls}", case_of(row, None)));
        }
        if let Some(under_way @ 1..) = row["transfers_under_way"].as_u64() {
            let case = case_of(row, None);
            warnings.push(format!("{case}: transfers under way at the end: {under_way}"));
        }
        if let Some(failed @ 1..) = row["requests_failed"].as_u64() {
            warnings.push(format!("{}: requests that were given up: {failed}", case_of(row, None)));
        }
    }
    for tree in trees.iter().filter(|tree| tree.share >= LASTING).take(WARNED_TREES) {
        let run = result.runs().into_iter().find(|run| run.run == tree.run);
        let label = run.as_ref().filter(|_| result.runs().len() > 1).map(describe);
        let label = label.map_or_else(String::new, |label| format!("{label}: "));
        warnings.push(format!("{label}{}", tree.sentence()));
    }
    if let assumed @ 1.. = manifest.assumed.len() {
        warnings.push(format!("{assumed} constants are assumed, not measured: see the end of the report"));
    }
    warnings
}

fn describe(run: &RunOf<'_>) -> String {
    match run.label() {
        label if label.is_empty() => format!("run {}", run.run),
        label => label,
    }
}

/// The rows as a table: plain values only.
fn rows(result: &StoredResult) -> (Vec<String>, Vec<Vec<String>>) {
    let mut columns: Vec<String> = Vec::new();
    let plain = |value: &Value| matches!(value, Value::Number(_) | Value::String(_) | Value::Bool(_));
    for row in &result.manifest.rows {
        for (name, value) in row.as_object().into_iter().flatten() {
            // A column of zeros says nothing.
            let says = plain(value) && value.as_f64() != Some(0.0) && name != "refused";
            if says && !columns.contains(name) {
                columns.push(name.clone());
            }
        }
    }
    // The case stands before what was measured.
    columns.sort_by_key(|column| !is_case(column));
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => format!("{:.4}", float),
            _ => number.to_string(),
        },
        other => other.to_string(),
    };
    let cells = |row: &Value| columns.iter().map(|column| cell(&row[column])).collect();
    let rows = result.manifest.rows.iter().map(cells).collect();
    (columns, rows)
}

/// A message's identity, by how long it took.
type Slow = Reverse<(u64, u32, u32, u64)>;

fn slowest(result: &StoredResult) -> Result<Vec<SlowMessage>, ResultsError> {
    let mut heap: BinaryHeap<Slow> = BinaryHeap::new();
    let mut known: BTreeMap<(u32, u32, u64), SlowMessage> = BTreeMap::new();
    result.visit(|row: MessageRow| {
        let time = row.delivered_ps.as_ps().saturating_sub(row.posted_ps.as_ps());
        if heap.len() == LISTED && heap.peek().is_some_and(|Reverse((least, ..))| time <= *least) {
            return;
        }
        let (run, source, sequence) = (row.run, row.source_endpoint.0, row.sequence);
        heap.push(Reverse((time, run, source, sequence)));
        let name = |rank: Option<weft_units::RankId>, endpoint: u32| match rank {
            Some(rank) => format!("rank {}", rank.0),
            None => format!("endpoint {endpoint}"),
        };
        let us = |time: Time| time.as_ps() as f64 / PS_PER_US;
        let message = SlowMessage {
            run,
            from: name(row.source_rank, source),
            to: name(row.destination_rank, row.destination_endpoint.0),
            bytes: row.payload_bytes.get(),
            posted_us: us(row.posted_ps),
            time_us: time as f64 / PS_PER_US,
            pieces: Vec::new(),
        };
        known.insert((run, source, sequence), message);
        if heap.len() > LISTED
            && let Some(Reverse((_, run, source, sequence))) = heap.pop()
        {
            known.remove(&(run, source, sequence));
        }
    })?;
    if result.has(Table::Pieces) {
        result.visit(|row: MessagePieceRow| {
            if let Some(message) = known.get_mut(&(row.run, row.source_endpoint.0, row.sequence)) {
                message.pieces.push((row.time_ps.as_ps() as f64 / PS_PER_US, row.what, row.place));
            }
        })?;
    }
    let mut slowest: Vec<SlowMessage> = known.into_values().collect();
    slowest.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
    Ok(slowest)
}

fn hot_links(result: &StoredResult) -> Result<Vec<HotLink>, ResultsError> {
    let mut hot: Vec<(RunLink, HotLink)> = Vec::new();
    let heat = |(_, link): &(RunLink, HotLink)| link.utilization;
    result.visit(|row: LinkRow| {
        let (of, lost) = (RunLink::of_link(&row), row.counts.lost());
        let end = |endpoint: Option<u32>, switch: Option<u32>, port: Option<u32>| match endpoint {
            Some(endpoint) => format!("endpoint {endpoint}"),
            None => format!("switch {} port {}", switch.unwrap_or(0), port.unwrap_or(0)),
        };
        let from = end(
            row.from_endpoint.map(|id| id.0),
            row.from_switch.map(|id| id.0),
            row.from_port.map(|id| id.0),
        );
        let to =
            end(row.to_endpoint.map(|id| id.0), row.to_switch.map(|id| id.0), row.to_port.map(|id| id.0));
        let us = |span: weft_units::Span| span.as_ps() as f64 / PS_PER_US;
        let link = HotLink {
            run: row.run,
            link: format!("{from} → {to}"),
            class: row.class,
            utilization: row.utilization,
            stall_us: us(row.stall_ps),
            paused_us: us(row.paused_ps),
            lost,
            flows: None,
        };
        hot.push((of, link));
        // So that millions of links are not kept.
        if hot.len() >= 64 * LISTED {
            hot.sort_by(|a, b| heat(b).total_cmp(&heat(a)));
            hot.truncate(LISTED);
        }
    })?;
    hot.sort_by(|a, b| heat(b).total_cmp(&heat(a)));
    hot.truncate(LISTED);
    let (places, mut hot): (Vec<RunLink>, Vec<HotLink>) = hot.into_iter().unzip();
    if result.has(Table::Packets) && result.has(Table::Messages) {
        let flows = link_flows(result, &places)?;
        hot.iter_mut().zip(flows).for_each(|(link, flows)| link.flows = Some(flows));
    }
    Ok(hot)
}

/// The calls of a row that has some.
fn program_calls(row: &Value) -> Option<ProgramCalls> {
    let operation = |call: &Value| {
        Some((call["operation"].as_str()?.to_owned(), call["calls"].as_u64()?, call["time_us"].as_f64()?))
    };
    let operations = row["calls"].as_array()?.iter().filter_map(operation).collect();
    let of = row["trace"].as_str().or(row["program"].as_str()).unwrap_or("the program");
    Some(ProgramCalls { of: of.to_owned(), operations })
}

fn critical_path(explained: &Value) -> CriticalPath {
    let rows = explained["critical_path"].as_array();
    let row = |row: &Value| {
        let category = row["category"].as_str().unwrap_or("").to_owned();
        (category, row["time_us"].as_f64().unwrap_or(0.0), row["share"].as_f64().unwrap_or(0.0))
    };
    let categories = rows.into_iter().flatten().map(row).filter(|(_, time, _)| *time > 0.0).collect();
    let of = match (explained["of"].as_str().unwrap_or("the run"), explained["region"].as_u64()) {
        (of, None) => of.to_owned(),
        // A run that was asked for a region has the whole too, under the same name.
        (of, Some(region)) => format!("{of}, region {region}"),
    };
    let verdict = explained["diagnosis"]["sentence"].as_str().map(str::to_owned);
    CriticalPath { of, verdict, categories }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Catches JSON where people read a command, and a name that loses its quotes' content.
    #[test]
    fn requests_are_told_in_words() {
        for (key, value, words) in [
            ("program", json!(["./pp", "200"]), "./pp 200"),
            ("seeds", json!([1, 2]), "1, 2"),
            ("pattern", json!("uniform"), "uniform"),
            ("ranks", json!(8), "8"),
        ] {
            assert_eq!(words_of(key, &value), words);
        }
    }

    /// Catches times in thousands of a unit, a factor that goes the wrong way, and energy or counts with a
    /// unit of time.
    #[test]
    fn totals_have_fitting_units() {
        for (name, value, heading, shown) in [
            ("virtual_time_ps", 1_234_567_890_123u64, "virtual time (s)", "1.235"),
            ("virtual_time_ps", 12_345_678_900, "virtual time (ms)", "12.346"),
            ("end_ps", 6_000_000, "end (µs)", "6.000"),
            ("energy_pj", 2_500_000, "energy (µJ)", "2.500"),
            ("messages", 7, "messages", "7"),
        ] {
            assert_eq!(total(name, &json!(value)), (heading.to_owned(), shown.to_owned()));
        }
    }
}

//! The part of results that a picture shows: their runs, with names, and a window of time.

use super::panel::Panel;
use weft_results::{ResultsError, RunOf, StoredResult};
use weft_units::Time;

/// The results of a picture, and the run that was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) results: &'a [StoredResult],
    pub(super) part: ShownPart,
}

/// The part of results that a picture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownPart {
    /// The run of each, where a kind shows one; `None`: the first.
    pub run: Option<u32>,
    /// The window of time.
    pub window: ShownWindow,
}

/// A window of virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownWindow {
    /// From when on.
    pub from: Time,
    /// Until when; `None`: the end.
    pub to: Option<Time>,
}

impl ShownWindow {
    /// All of it.
    pub const ALL: ShownWindow = ShownWindow { from: Time::ZERO, to: None };
}

/// A run that is drawn.
pub(crate) struct ShownRun<'a> {
    pub(crate) result: &'a StoredResult,
    pub(crate) run: u32,
    /// The name in legends.
    pub(crate) label: String,
    /// The way to control congestion, where the runs of the result differ by it.
    pub(crate) way: Option<&'a str>,
    /// The window of time.
    pub(crate) window: ShownWindow,
}

/// A list of changed values that fits below a heading.
fn shortened(changes: &str) -> String {
    const MOST: usize = 80;
    match changes.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &changes[..end]),
        None => changes.to_owned(),
    }
}

impl<'a> Shown<'a> {
    /// The names of the results: those of their directories, or their whole paths where these are equal.
    pub(crate) fn names(self) -> Vec<String> {
        let names: Vec<String> = self.results.iter().map(StoredResult::name).collect();
        let is_unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
        let path = |result: &StoredResult| result.directory.display().to_string();
        let both = names.iter().zip(self.results);
        both.map(|(name, result)| if is_unique(name) { name.clone() } else { path(result) }).collect()
    }

    /// The runs, at most `most` of each result where none was asked for.
    pub(crate) fn runs(self, most: usize) -> Result<Vec<ShownRun<'a>>, ResultsError> {
        let mut shown = Vec::new();
        for (result, name) in self.results.iter().zip(self.names()) {
            let runs = result.runs();
            let label = |run: &RunOf<'_>| match (self.results.len(), run.label()) {
                (1, label) if !label.is_empty() => label,
                (_, label) if label.is_empty() || runs.len() == 1 => name.clone(),
                (_, label) => format!("{name}: {label}"),
            };
            let window = self.part.window;
            let of = |run: &RunOf<'a>| {
                let way = run.row["congestion"].as_str();
                ShownRun { result, run: run.run, label: label(run), way, window }
            };
            match self.part.run {
                Some(wanted) => {
                    let run = runs.iter().find(|run| run.run == wanted);
                    let run = run.ok_or_else(|| ResultsError::NothingToDraw {
                        directory: result.directory.clone(),
                        why: format!("it has no run {wanted}, but {}; see --run", runs.len()),
                    })?;
                    shown.push(of(run));
                }
                None if runs.is_empty() => {
                    shown.push(ShownRun { result, run: 0, label: name, way: None, window })
                }
                None => shown.extend(runs.iter().take(most).map(of)),
            }
        }
        Ok(shown)
    }

    /// A panel per result, of one run each.
    pub(super) fn each(
        self,
        of: fn(&ShownRun<'_>) -> Result<Panel, ResultsError>,
    ) -> Result<Vec<Panel>, ResultsError> {
        self.runs(1)?.iter().map(of).collect()
    }

    /// The machines with their changed values and, of a picture of one run where there are several, which.
    pub(super) fn subtitle(self, is_of_one_run: bool) -> String {
        let of = |result: &StoredResult| {
            let request = &result.manifest.request;
            let work = ["pattern", "benchmark"].iter().find_map(|key| request[*key].as_str());
            let work = work.map_or(String::new(), |work| format!(" {work}"));
            let command = match (result.command(), request["name"].as_str()) {
                ("scenario", Some(name)) => format!("traffic --scenario {name}"),
                (command, _) => command.to_owned(),
            };
            let changes = result.changes().join(", ");
            let changes = if changes.is_empty() { changes } else { format!(" with {}", shortened(&changes)) };
            format!("weft {command}{work} on {}{changes}", result.machine())
        };
        let mut parts: Vec<String> = self.results.iter().map(of).collect();
        parts.dedup();
        let [result] = self.results else { return parts.join("; ") };
        let runs = result.runs();
        if runs.len() > 1 && is_of_one_run {
            let run = runs.iter().find(|run| run.run == self.part.run.unwrap_or(0));
            parts.extend(run.map(|run| format!("run {} of {}: {}", run.run, runs.len(), run.label())));
        }
        parts.join(", ")
    }
}

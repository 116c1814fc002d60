//! A study as a table and as a page.

use crate::case::Mean;
use crate::directory::Failed;
use crate::error::StudyError;
use crate::presentation::Published;
use crate::stored::{StoredStudy, text};
use serde_json::{Value as Json, json};
use weft_analysis::picture::{FieldUnit, four_digits};
use weft_analysis::sections::{ReportColumn, ReportSection, ReportTable, SectionedReport};

/// Rows of cases, each with its name.
pub type NamedRows = Vec<(String, Json)>;

/// Fields of the table of cases beside the most telling ones.
const TABLE_FIELDS: usize = 4;
/// Cases and points on a page.
const LISTED: usize = 500;
/// Lines of a refused point's error that are shown.
const REASON_LINES: usize = 6;
/// Endings of a run that went to its end.
const GOOD_ENDS: [&str; 2] = ["finished", "horizon-reached"];

impl Failed {
    /// The parameters for people: `load=0.2 topology.k=4 seed=1`.
    pub fn label(&self) -> String {
        let parts = self.parameters.iter().map(|(name, value)| format!("{name}={}", value.set()));
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The error with its key and its mend: its first lines, without blank ones and those that only point.
    pub fn reason(&self) -> Vec<&str> {
        let lines = self.message.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with('|')).take(REASON_LINES).collect()
    }
}

impl StoredStudy {
    /// The cases: what varies, and the most telling fields with half of their intervals. At most `most` rows.
    pub fn table(&self, most: usize) -> ReportTable {
        let axes = self.axes_by_name();
        let fields = match self.presentation.table.as_slice() {
            [] => self.telling(),
            chosen => chosen.to_vec(),
        };
        let quantities: Vec<FieldUnit> = fields.iter().map(|field| self.quantity(field)).collect();
        let column = |name: String, is_number| ReportColumn { name: name.into(), is_number };
        let mut columns: Vec<ReportColumn> =
            axes.iter().map(|axis| column(axis.name.replace('_', " "), axis.is_numeric())).collect();
        columns.extend(quantities.iter().map(|quantity| column(quantity.heading(), true)));
        let cell = |mean: Option<Mean>, quantity: &FieldUnit| {
            let Some(Mean { mean, half_width }) = mean else { return "-".to_owned() };
            let half = half_width.map(|half| format!(" ± {}", four_digits(half * quantity.factor)));
            four_digits(mean * quantity.factor) + &half.unwrap_or_default()
        };
        let row = |case: &crate::Case| {
            let parameters = axes.iter().map(|axis| text(case.parameter(&axis.name).unwrap_or(&Json::Null)));
            let measured = fields.iter().zip(&quantities);
            let measured = measured.map(|(field, quantity)| cell(case.mean(field), quantity));
            parameters.chain(measured).collect()
        };
        let left_off = match self.cases.len().saturating_sub(most) {
            0 => String::new(),
            more => format!("{more} more cases"),
        };
        ReportTable { columns, rows: self.cases.iter().take(most).map(row).collect(), left_off }
    }

    /// The most telling fields, those that its file derives, and others of which some value is not zero.
    fn telling(&self) -> Vec<String> {
        let mut fields = self.principal();
        for derived in self.presentation.derived() {
            if fields.iter().all(|field| field != derived) {
                fields.push(derived.to_owned());
            }
        }
        // A column of zeros says nothing.
        let says = |field: &String| {
            self.cases.iter().filter_map(|case| case.mean(field)).any(|mean| mean.mean != 0.0)
        };
        let more = self.fields().into_iter().filter(|field| !fields.contains(field) && says(field));
        let more: Vec<String> = more.collect();
        fields.extend(more.into_iter().take(TABLE_FIELDS.saturating_sub(fields.len())));
        fields
    }

    /// The study in one page.
    ///
    /// # Errors
    /// None but a bug: a study without cases has no pictures.
    pub fn report(&self) -> Result<SectionedReport, StudyError> {
        let section = |title: &str, remark: &str| ReportSection {
            title: title.to_owned(),
            remark: remark.to_owned(),
            ..ReportSection::default()
        };
        let mut sections: Vec<ReportSection> = self.presentation.published.iter().map(published).collect();
        let remark = match self.presentation.pictures.is_empty() {
            true => "Over each parameter that varies; a line for each value of the others.",
            false => "As the study's file describes them.",
        };
        sections.push(ReportSection { pictures: self.pictures()?, ..section("Pictures", remark) });
        sections.push(ReportSection {
            tables: vec![self.table(LISTED)],
            ..section("Cases", "Means over seeds, with half of their 95 % intervals.")
        });
        let remark = "The command of each finished point. Run it with -o DIR in place of --json for tables \
                      and pictures of one point.";
        sections.push(ReportSection { tables: vec![self.point_table()], ..section("Points", remark) });
        let name = self.presentation.title.clone().unwrap_or_else(|| self.name());
        Ok(SectionedReport { name, facts: self.facts(), warnings: self.warnings(), sections })
    }

    fn point_table(&self) -> ReportTable {
        let column = |name: &'static str| ReportColumn { name: name.into(), is_number: false };
        let rows = self.done.iter().take(LISTED);
        let row = |(point, ended): &(crate::Point, String)| {
            vec![point.id.clone(), ended.clone(), format!("weft {}", point.words.join(" "))]
        };
        let left_off = match self.done.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!("{more} more points"),
        };
        let columns = vec![column("point"), column("ended"), column("command")];
        ReportTable { columns, rows: rows.map(row).collect(), left_off }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let (points, done) = (self.points.len(), self.done.len());
        let mut facts = vec![("points".to_owned(), format!("{done} of {points} done"))];
        let mut seeds: Vec<u64> = self.points.iter().map(|point| point.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        facts.extend(self.fixed().into_iter().map(|(name, value)| (name, text(&value))));
        facts.push(("seeds".to_owned(), seeds));
        facts
    }

    fn warnings(&self) -> Vec<String> {
        let refused = |failed: &Failed| format!("{}: {}", failed.label(), failed.reason().join(" "));
        let mut warnings: Vec<String> = self.failed.iter().map(refused).collect();
        let missing = self.points.len() - self.done.len().min(self.points.len());
        if let more @ 1.. = missing.saturating_sub(self.failed.len()) {
            warnings.push(format!("{more} points are not done yet; weft sweep continues the study"));
        }
        for (point, ended) in self.done.iter().filter(|(_, ended)| !GOOD_ENDS.contains(&ended.as_str())) {
            warnings.push(format!("{}: ended with {ended}", point.label()));
        }
        warnings.extend(self.unmeasured());
        warnings
    }

    /// The fields that its file asks for and no point has measured, in a sentence each.
    pub fn unmeasured(&self) -> Vec<String> {
        let fields = self.fields();
        let is_missing =
            |(_, field): &(&str, &str)| !self.cases.is_empty() && fields.iter().all(|known| known != field);
        let sentence = |(key, field): (&str, &str)| {
            format!("{key}: no point has measured {field}; choose from {}", fields.join(", "))
        };
        self.presentation.needed().filter(is_missing).map(sentence).collect()
    }

    /// The cases in the form of rows of `run.json`, for comparisons.
    pub fn rows(&self) -> NamedRows {
        let axes = self.axes();
        let of = |case: &crate::Case| {
            let named = axes.iter().map(|axis| {
                let value = text(case.parameter(&axis.name).unwrap_or(&Json::Null));
                format!("{} {value}", axis.name.replace('_', " "))
            });
            (named.collect::<Vec<_>>().join(", "), row(case))
        };
        self.cases.iter().map(of).collect()
    }

    /// The cases apart by the value of a parameter, as results to compare: the name of each, and its rows.
    ///
    /// # Errors
    /// A parameter that does not vary.
    pub fn apart(&self, by: Option<&str>) -> Result<Vec<(String, NamedRows)>, StudyError> {
        let axes = self.axes();
        let named = |name: &str| axes.iter().find(|axis| axis.name == name);
        let axis = match by {
            Some(name) => named(name),
            None => axes.iter().find(|axis| !axis.is_numeric()).or_else(|| axes.first()),
        };
        let axis = axis.ok_or_else(|| {
            let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let why = match (names.is_empty(), by) {
                (true, _) => "nothing varies in it; name a second study or result".to_owned(),
                (_, by) => {
                    let by = by.unwrap_or_default();
                    format!("--by: {by} does not vary; choose from {}", names.join(", "))
                }
            };
            StudyError::NothingToShow { path: self.directory.clone(), why }
        })?;
        let part = |value: &Json| {
            let has = |case: &&crate::Case| case.parameter(&axis.name).unwrap_or(&Json::Null) == value;
            let named = |case: &crate::Case| {
                let others = axes.iter().filter(|other| other.name != axis.name).map(|other| {
                    let value = text(case.parameter(&other.name).unwrap_or(&Json::Null));
                    format!("{} {value}", other.name.replace('_', " "))
                });
                (others.collect::<Vec<_>>().join(", "), row(case))
            };
            let rows = self.cases.iter().filter(has).map(named).collect();
            (format!("{}={}", axis.name, text(value)), rows)
        };
        Ok(axis.values.iter().map(part).collect())
    }
}

/// The published figure, with what agrees and what does not.
fn published(of: &Published) -> ReportSection {
    let column = |name: &'static str| ReportColumn { name: name.into(), is_number: false };
    let rows = |word: &'static str, texts: &[String]| {
        texts.iter().map(move |text| vec![word.to_owned(), text.clone()]).collect::<Vec<_>>()
    };
    let rows = [rows("agrees", &of.agrees), rows("differs", &of.differs)].concat();
    let table = ReportTable {
        columns: vec![column("as the study's file has it"), column("in what")],
        rows,
        ..Default::default()
    };
    let tables = if table.rows.is_empty() { Vec::new() } else { vec![table] };
    let (title, remark) = ("Published".to_owned(), format!("{}: {}", of.source, of.shows));
    ReportSection { title, remark, tables, ..ReportSection::default() }
}

/// A case as a row of `run.json`: means, and intervals beside them.
fn row(case: &crate::Case) -> Json {
    let mut row = serde_json::Map::new();
    row.insert("seeds".to_owned(), case.seeds.into());
    for (name, Mean { mean, half_width }) in &case.means {
        row.insert(name.clone(), json!(mean));
        if let Some(half) = half_width {
            let bounds = json!({ "low": mean - half, "high": mean + half });
            row.insert(weft_analysis::interval_of(name), bounds);
        }
    }
    Json::Object(row)
}

//! Study files.
//!
//! ```toml
//! command = "traffic"                 # traffic, osu, app, replay or run
//! seeds = 3                           # 1, 2 and 3; or a list of seeds
//!
//! [fixed]                             # the same in all points: options of the command, _ or - between words
//! machine = "bxi3-fattree"
//! time = "20us"
//! set.topology.k = 4                  # keys of the machine, as --set has them
//!
//! [vary]                              # every combination of these lists
//! load = [0.2, 0.5, 0.8]
//! set.topology.routing = ["ecmp", "adaptive"]
//!
//! [[cases]]                           # values that change together; combined with [vary]
//! case = "narrow"
//! set.topology.n = 2
//! ```
//! The fields that say how a study is shown are those of `presentation`.

use crate::error::StudyError;
use crate::point::{Causes, Key, Point};
use crate::presentation::{FIELDS, Presentation, StudyText};
use crate::value::{Given, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Most points of a study.
const MAX_POINTS: usize = 100_000;
/// The longest study file.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Commands that measure rows.
const COMMANDS: [&str; 5] = ["traffic", "osu", "app", "replay", "run"];
/// Options that the sweep itself gives or takes the place of.
const OWN: [&str; 8] = ["seed", "seeds", "set", "output", "force", "json", "quiet", "tables"];
/// The name of a case, which is no option.
pub(crate) const CASE: &str = "case";

/// The commands, as whoever reads words knows them.
pub trait Commands {
    /// The long options of a command, without the dashes, and the names of its positional arguments.
    fn options(&self, command: &str) -> Vec<String>;
    /// Whether the words make a command.
    ///
    /// # Errors
    /// The message of what is wrong.
    fn check(&self, words: &[String]) -> Result<(), String>;
}

/// A study: what it is called, its text and its points.
#[derive(Clone, Debug)]
pub struct Study {
    /// The file, as it was named.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The command of all points.
    pub command: String,
    /// How it is shown.
    pub(crate) presentation: Presentation,
    /// The points: cases, then the lists of `[vary]` in their order, seeds last.
    pub points: Vec<Point>,
}

impl Study {
    /// Reads the study at `path`. Files that it names lie where it lies.
    ///
    /// # Errors
    /// A file that cannot be read, or says something wrong: with line, field and mend.
    pub fn read(path: &Path, commands: &dyn Commands) -> Result<Study, StudyError> {
        let unread = |source| StudyError::Unread { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        // A device has no length: it is read no further than this.
        let file = std::fs::File::open(path).map_err(unread)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let why = format!("it is longer than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(unread(std::io::Error::other(why)));
        }
        let text = String::from_utf8(bytes).map_err(|_| unread(std::io::Error::other("it is not UTF-8")))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::path::absolute(folder.unwrap_or(Path::new("."))).map_err(unread)?;
        Study::parse(&path.display().to_string(), text, &folder, commands)
    }

    /// The study of this text; `folder`: where the files lie that it names.
    ///
    /// # Errors
    /// As [`Study::read`].
    pub fn parse(
        name: &str,
        text: String,
        folder: &Path,
        commands: &dyn Commands,
    ) -> Result<Study, StudyError> {
        let root = DeTable::parse(&text)
            .map_err(|source| StudyError::Toml { name: name.to_owned(), source })?
            .into_inner();
        let mut reader = Reader { name, text: &text, places: BTreeMap::new() };
        let plan = reader.plan(&root, commands)?;
        let study = StudyText { name, text: &text };
        let presentation = Presentation::parse(study)?;
        let mut points = plan.points(folder, presentation.kept().as_deref());
        presentation.check(study, &points)?;
        // Points of the same causes are one: counted twice they would look like seeds that agree.
        let mut seen = BTreeSet::new();
        points.retain(|point| seen.insert(point.id.clone()));
        let checked: Vec<Point> = match presentation.kept() {
            Some(tables) => points.iter().map(|point| point.clone().keeping(folder, &tables)).collect(),
            None => points.clone(),
        };
        reader.check(&plan, &checked, commands)?;
        let command = plan.command;
        Ok(Study { name: name.to_owned(), text, command, presentation, points })
    }
}

/// A list of values of each key: the axis of a study.
type Axis = (Key, Vec<Value>);

/// The contents of a file.
struct Plan {
    command: String,
    seeds: Vec<u64>,
    fixed: Vec<(Key, Value)>,
    cases: Vec<Vec<(Key, Value)>>,
    vary: Vec<Axis>,
}

impl Plan {
    fn points(&self, folder: &Path, kept: Option<&str>) -> Vec<Point> {
        let mut points = Vec::new();
        let no_case = [Vec::new()];
        let cases = if self.cases.is_empty() { &no_case[..] } else { &self.cases[..] };
        for case in cases {
            let combinations: usize = self.vary.iter().map(|(_, values)| values.len()).product();
            for number in 0..combinations {
                let mut given: Vec<(&Key, &Value)> = self.fixed.iter().map(|(k, v)| (k, v)).collect();
                given.extend(case.iter().map(|(key, value)| (key, value)));
                let mut rest = combinations;
                let mut left = number;
                for (key, values) in &self.vary {
                    rest /= values.len();
                    given.push((key, &values[left / rest]));
                    left %= rest;
                }
                let causes = Causes { command: &self.command, folder, kept };
                points.extend(self.seeds.iter().map(|seed| causes.point(&given, *seed)));
            }
        }
        points
    }
}

/// The reading of a file.
struct Reader<'t> {
    name: &'t str,
    text: &'t str,
    /// The last mention of each column: the field and the place.
    places: BTreeMap<String, (String, Range<usize>)>,
}

impl Reader<'_> {
    fn refuse(&self, at: &Range<usize>, field: &str, what: &str, mend: &str) -> StudyError {
        StudyError::Field {
            name: self.name.to_owned(),
            line: self.text[..at.start.min(self.text.len())].matches('\n').count() + 1,
            field: field.to_owned(),
            what: what.to_owned(),
            mend: mend.to_owned(),
        }
    }

    fn plan(&mut self, root: &DeTable<'_>, commands: &dyn Commands) -> Result<Plan, StudyError> {
        let known = [&["title", "command", "seeds", "fixed", "vary", "cases"][..], &FIELDS].concat();
        if let Some((key, _)) = root.iter().find(|(key, _)| !known.contains(&&**key.get_ref())) {
            let mend = format!("a study has {}; options go into [fixed] or [vary]", known.join(", "));
            return Err(self.refuse(&key.span(), key.get_ref(), "there is no such field", &mend));
        }
        let (command, at) = self.command(root)?;
        let options = commands.options(&command);
        let mut plan = Plan { command, seeds: self.seeds(root)?, fixed: vec![], cases: vec![], vary: vec![] };
        for (key, given) in self.entries(root, "fixed", &options)? {
            plan.fixed.push((key, given.value));
        }
        for (key, given) in self.entries(root, "vary", &options)? {
            let field = &self.places[&key.column()].0.clone();
            let mend = "write a list of one value or more, such as [0.2, 0.6]";
            match given.value {
                Value::List(values) if !values.is_empty() => plan.vary.push((key, values)),
                Value::List(_) => return Err(self.refuse(&given.at, field, "the list is empty", mend)),
                _ => return Err(self.refuse(&given.at, field, "this is no list", mend)),
            }
        }
        plan.cases = self.cases(root, &options)?;
        let machine = Key::Option("machine".to_owned());
        let is_machine = |key: &Key| *key == machine;
        let in_every_case = plan.cases.iter().all(|case| case.iter().any(|(key, _)| is_machine(key)));
        let everywhere = plan.fixed.iter().any(|(key, _)| is_machine(key))
            || plan.vary.iter().any(|(key, _)| is_machine(key))
            || (in_every_case && !plan.cases.is_empty());
        if !everywhere {
            let mend = "write machine = \"exanest\" into [fixed], or a list of machines into [vary]";
            return Err(self.refuse(&at, "fixed.machine", "no machine is named", mend));
        }
        let sizes = plan.vary.iter().map(|(_, values)| values.len());
        let count =
            sizes.chain([plan.cases.len().max(1), plan.seeds.len()]).try_fold(1usize, usize::checked_mul);
        if count.is_none_or(|count| count > MAX_POINTS) {
            let what =
                count.map_or("there are too many points".to_owned(), |n| format!("there are {n} points"));
            let mend = format!("shorten the lists: a study has at most {MAX_POINTS}");
            return Err(self.refuse(&at, "vary", &what, &mend));
        }
        Ok(plan)
    }

    fn command(&self, root: &DeTable<'_>) -> Result<(String, Range<usize>), StudyError> {
        let mend = format!("write command = \"traffic\", or another of {}", COMMANDS.join(", "));
        let Some(value) = root.get("command") else {
            return Err(self.refuse(&(0..0), "command", "it is missing", &mend));
        };
        match value.get_ref() {
            DeValue::String(text) if COMMANDS.contains(&&**text) => Ok((text.to_string(), value.span())),
            DeValue::String(text) => {
                let what = format!("\"{text}\" measures no rows");
                Err(self.refuse(&value.span(), "command", &what, &mend))
            }
            _ => Err(self.refuse(&value.span(), "command", "this is no text", &mend)),
        }
    }

    fn seeds(&self, root: &DeTable<'_>) -> Result<Vec<u64>, StudyError> {
        let Some(value) = root.get("seeds") else { return Ok(vec![1]) };
        let wrong = |what: &str| {
            let mend = "write a number of seeds from 1 on, or a list of different seeds such as [1, 2, 3]";
            self.refuse(&value.span(), "seeds", what, mend)
        };
        let seed = |value: &Value| match value {
            Value::Integer(seed) => u64::try_from(*seed).map_err(|_| wrong("a seed is negative")),
            _ => Err(wrong("this is no whole number")),
        };
        match Value::read(value.get_ref()).map_err(wrong)? {
            Value::Integer(count) if (1..=MAX_POINTS as i64).contains(&count) => {
                Ok((1..=count as u64).collect())
            }
            Value::Integer(_) => Err(wrong("there can be no such number of seeds")),
            Value::List(values) if !values.is_empty() => {
                let seeds: Vec<u64> = values.iter().map(seed).collect::<Result<_, _>>()?;
                let twice = seeds.iter().enumerate().any(|(n, seed)| seeds[..n].contains(seed));
                if twice { Err(wrong("a seed is there twice")) } else { Ok(seeds) }
            }
            _ => Err(wrong("this is neither a number nor a list of numbers")),
        }
    }

    fn cases(
        &mut self,
        root: &DeTable<'_>,
        options: &[String],
    ) -> Result<Vec<Vec<(Key, Value)>>, StudyError> {
        let Some(value) = root.get("cases") else { return Ok(Vec::new()) };
        let mend = "write [[cases]] above the values of each case";
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.refuse(&value.span(), "cases", "this is no list of tables", mend));
        };
        let outside = self.places.clone();
        let mut cases = Vec::new();
        for item in items {
            let DeValue::Table(table) = item.get_ref() else {
                return Err(self.refuse(&item.span(), "cases", "this is no table", mend));
            };
            // A key may be in every case, but not in [fixed] or [vary] as well.
            self.places.clone_from(&outside);
            let given = self.table(table, "cases", options)?;
            cases.push(given.into_iter().map(|(key, given)| (key, given.value)).collect());
        }
        Ok(cases)
    }

    /// The entries of a table of the root in the order of the text.
    fn entries(
        &mut self,
        root: &DeTable<'_>,
        name: &str,
        options: &[String],
    ) -> Result<Vec<(Key, Given)>, StudyError> {
        match root.get(name).map(|value| (value.get_ref(), value.span())) {
            None => Ok(Vec::new()),
            Some((DeValue::Table(table), _)) => self.table(table, name, options),
            Some((_, at)) => {
                let mend = format!("write [{name}] above its values");
                Err(self.refuse(&at, name, "this is no table", &mend))
            }
        }
    }

    fn table(
        &mut self,
        table: &DeTable<'_>,
        name: &str,
        options: &[String],
    ) -> Result<Vec<(Key, Given)>, StudyError> {
        let mut given = Vec::new();
        for (key, value) in table {
            let (option, field) = (key.get_ref().replace('-', "_"), format!("{name}.{}", key.get_ref()));
            if option == "set" {
                self.sets(value, (&field, String::new()), &mut given)?;
                continue;
            }
            if OWN.contains(&option.as_str()) {
                let mend = match option.as_str() {
                    "seed" | "seeds" => "write seeds = 3 or seeds = [1, 2, 3] above all tables",
                    _ => "leave it out: the sweep sees to it",
                };
                return Err(self.refuse(&key.span(), &field, "a study has no such option", mend));
            }
            let is_known = options.contains(&option) || option == CASE && name == "cases";
            if !is_known {
                let taken = options.iter().filter(|option| !OWN.contains(&option.as_str()));
                let taken = taken.map(String::as_str).collect::<Vec<_>>().join(", ");
                let mend = format!("write one of {taken}, or a key of the machine as set.KEY");
                return Err(self.refuse(&key.span(), &field, "the command has no such option", &mend));
            }
            let read = Value::read(value.get_ref());
            let read = read.map_err(|what| {
                self.refuse(
                    &value.span(),
                    &field,
                    &format!("this is {what}"),
                    "write a text, a number or a list",
                )
            })?;
            given.push((Key::Option(option), Given { value: read, at: value.span() }, field));
        }
        given.sort_by_key(|(_, given, _)| given.at.start);
        for (key, given, field) in &given {
            if let Some((other, _)) = self.places.get(&key.column()) {
                let what = format!("it is in `{other}` as well");
                return Err(self.refuse(&given.at, field, &what, "leave one of them out"));
            }
            self.places.insert(key.column(), (field.clone(), given.at.clone()));
        }
        Ok(given.into_iter().map(|(key, given, _)| (key, given)).collect())
    }

    /// Keys of the machine: tables within tables are their parts.
    fn sets(
        &self,
        value: &toml::Spanned<DeValue<'_>>,
        (field, above): (&str, String),
        given: &mut Vec<(Key, Given, String)>,
    ) -> Result<(), StudyError> {
        if let DeValue::Table(table) = value.get_ref() {
            for (key, value) in table {
                let name = key.get_ref();
                let path = if above.is_empty() { name.to_string() } else { format!("{above}.{name}") };
                self.sets(value, (&format!("{field}.{name}"), path), given)?;
            }
            return Ok(());
        }
        let wrong = |what: &str| {
            let mend = "write a key of the machine and its value, such as set.topology.k = 4";
            self.refuse(&value.span(), field, &format!("this is {what}"), mend)
        };
        if above.is_empty() {
            return Err(wrong("no table of keys"));
        }
        let read = Value::read(value.get_ref()).map_err(wrong)?;
        given.push((Key::Set(above), Given { value: read, at: value.span() }, field.to_owned()));
        Ok(())
    }

    /// Refuses values that the command does not take, before anything runs.
    fn check(&self, plan: &Plan, points: &[Point], commands: &dyn Commands) -> Result<(), StudyError> {
        for point in points.iter().filter(|point| point.seed == plan.seeds[0]) {
            let Err(message) = commands.check(&point.words) else { continue };
            let blamed = point.parameters.iter().find(|(column, _)| {
                let option = column.replace('_', "-");
                message.contains(&format!("'--{option} ")) || message.contains(&format!("'--{option}'"))
            });
            let (field, at) = match blamed.and_then(|(column, _)| self.places.get(column)) {
                Some((field, at)) => (field.as_str(), at.clone()),
                None => ("command", 0..0),
            };
            let first = message.trim().lines().take_while(|line| !line.trim().is_empty());
            let what = first.map(str::trim).collect::<Vec<_>>().join(" ");
            let mend = format!("`weft {} --help` says what is taken", plan.command);
            return Err(self.refuse(&at, field, &what, &mend));
        }
        Ok(())
    }
}

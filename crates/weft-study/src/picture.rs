//! Measured values over a parameter of a study: a line for each combination of the others, but for those that
//! follow from one that is shown. Or pictures of the tables that its points keep, beside each other.

use crate::case::Case;
use crate::directory::result_of;
use crate::error::StudyError;
use crate::point::Point;
use crate::presentation::NamedPicture;
use crate::stored::{StoredStudy, StudyAxis, label, text};
use crate::value::Value;
use serde_json::Value as Json;
use weft_analysis::picture::{
    Axis as PictureAxis, Content, FieldUnit, MAX_SERIES, Panel, Picture, PictureKind, Series, ShownPart,
};
use weft_results::StoredResult;

/// Fields that a picture shows where none is asked for, the most telling first.
const PRINCIPAL: [&str; 10] = [
    "latency_mean_ns",
    "latency_us",
    "accepted_load",
    "bandwidth_gbps",
    "messages_per_second",
    "time_us",
    "throughput_gbps",
    "goodput_gbps",
    "fairness",
    "run_time_us",
];
/// Fields in a picture where none is asked for.
const MOST_FIELDS: usize = 2;
/// Panels of a picture, at most.
const MOST_PANELS: usize = 8;
/// The ratio of the ends of an axis from which on it is logarithmic.
const LOGARITHMIC_FROM: f64 = 30.0;

/// The part of a study that a picture shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StudyPicture {
    /// The name of a picture that the study's file describes. `None`: its first where neither axis is asked
    /// for, else a picture of these axes.
    pub name: Option<String>,
    /// The parameter of the horizontal axis; `None`: the load or the size, or else the first of numbers.
    pub x: Option<String>,
    /// The measured field, such as `latency_mean_ns`; `None`: the most telling that there are.
    pub y: Option<String>,
}

impl StoredStudy {
    /// A picture of what was measured.
    ///
    /// # Errors
    /// A study without a finished point, or in which nothing varies; names that it does not have.
    pub fn picture(&self, asked: &StudyPicture) -> Result<Picture, StudyError> {
        self.check_measured()?;
        let own = &self.presentation.pictures;
        match &asked.name {
            Some(name) => {
                let picture = own.iter().find(|picture| picture.name.get_ref() == name);
                let picture = picture.ok_or_else(|| {
                    let names: Vec<&str> = own.iter().map(|own| own.name.get_ref().as_str()).collect();
                    let names = if own.is_empty() { "--x and --y".to_owned() } else { names.join(", ") };
                    self.nothing(format!("--what: its file describes no picture {name}; choose {names}"))
                })?;
                self.own_picture(picture)
            }
            None if asked.x.is_some() || asked.y.is_some() || own.is_empty() => {
                self.over((asked.x.as_deref(), asked.y.as_deref()), None)
            }
            None => self.own_picture(&own[0]),
        }
    }

    /// The pictures that its file describes, or else one over each parameter that varies.
    pub(crate) fn pictures(&self) -> Result<Vec<Picture>, StudyError> {
        match self.presentation.pictures.as_slice() {
            [] => self.axes().iter().map(|axis| self.over((Some(&axis.name), None), None)).collect(),
            own => {
                // Of a field that no point has measured there is a warning.
                let fields = self.fields();
                let is_measured =
                    |picture: &&NamedPicture| picture.y.as_ref().is_none_or(|y| fields.contains(y));
                own.iter().filter(is_measured).map(|picture| self.own_picture(picture)).collect()
            }
        }
    }

    fn own_picture(&self, picture: &NamedPicture) -> Result<Picture, StudyError> {
        let by = picture.by.as_deref();
        match picture.kind() {
            Some(kind) => self.of_tables(picture.name.get_ref(), kind, by),
            None => self.over((picture.x.as_deref(), picture.y.as_deref()), by),
        }
    }

    /// A picture of the tables that the points keep; with a panel for each value of the parameter `by`.
    fn of_tables(&self, name: &str, kind: PictureKind, by: Option<&str>) -> Result<Picture, StudyError> {
        let mut groups: Vec<(Option<&Value>, Vec<&Point>)> = Vec::new();
        for (point, _) in &self.done {
            let value = by.and_then(|by| point.parameter(by));
            match groups.iter_mut().find(|(known, _)| *known == value) {
                Some((_, points)) => points.push(point),
                None => groups.push((value, vec![point])),
            }
        }
        let axes = self.axes_by_name();
        let names = |point: &Point| {
            let apart = axes.iter().filter(|axis| Some(axis.name.as_str()) != by);
            let word = apart.filter_map(|axis| {
                Some(label(&axis.name, &serde_json::to_value(point.parameter(&axis.name)?).ok()?))
            });
            word.collect::<Vec<_>>().join(", ")
        };
        let mut panels = Vec::new();
        for (value, points) in groups {
            let open = |point: &&Point| StoredResult::open(&result_of(&self.directory, &point.id));
            let results: Vec<StoredResult> = points.iter().map(open).collect::<Result<_, _>>()?;
            // A result is called as its directory: by the point's digest.
            let named = |text: &str| {
                points.iter().fold(text.to_owned(), |text, point| text.replace(&point.id, &names(point)))
            };
            for mut panel in kind.of(&results, ShownPart::default())?.panels {
                let titles = value.map(Value::set).into_iter().chain([named(&panel.title)]);
                panel.title = titles.filter(|title| !title.is_empty()).collect::<Vec<_>>().join(", ");
                if let Content::Lines(lines) = &mut panel.content {
                    lines.iter_mut().for_each(|line| line.label = named(&line.label));
                }
                panels.push(panel);
            }
        }
        if panels.is_empty() {
            return Err(self.nothing("no point is done; continue the study with weft sweep".to_owned()));
        }
        let title = format!("{}: {}", self.name(), name.replace('-', " "));
        Ok(Picture { kind: "study", title, subtitle: kind.title().to_owned(), panels })
    }

    /// A field over a parameter; with a panel for each value of the parameter `by`.
    fn over(&self, (x, y): (Option<&str>, Option<&str>), by: Option<&str>) -> Result<Picture, StudyError> {
        let axes = self.axes();
        let x = self.horizontal(&axes, x)?;
        let fields = match y {
            Some(field) if self.fields().iter().any(|known| known == field) => vec![field.to_owned()],
            Some(field) => {
                let why = format!("--y: it has no field {field}; choose from {}", self.fields().join(", "));
                return Err(self.nothing(why));
            }
            None => self.principal(),
        };
        if fields.is_empty() {
            return Err(self.nothing("its points have measured nothing".to_owned()));
        }
        let mut panels = Vec::new();
        let mut apart: Vec<&StudyAxis> = Vec::new();
        apart.extend(axes.iter().filter(|axis| axis.name != x.name && Some(axis.name.as_str()) == by));
        // Names along the axis stand for all that goes with them, numbers for themselves.
        let named = [x].into_iter().filter(|x| !x.is_numeric());
        let shown: Vec<&StudyAxis> = named.chain(apart.iter().copied()).collect();
        let mut others: Vec<&StudyAxis> = Vec::new();
        for axis in axes.iter().filter(|axis| axis.name != x.name && Some(axis.name.as_str()) != by) {
            if !shown.iter().chain(&others).any(|known| self.decides(known, axis)) {
                others.push(axis);
            }
        }
        // As many lines as can be told apart; what is left has a panel for each of its values.
        while !others.is_empty()
            && others.iter().map(|axis| axis.values.len()).product::<usize>() > MAX_SERIES
        {
            let most = (0..others.len()).max_by_key(|place| others[*place].values.len()).unwrap_or_default();
            apart.push(others.remove(most));
        }
        let mut left_out = 0;
        for group in combinations(&apart) {
            for field in &fields {
                if panels.len() == MOST_PANELS {
                    left_out += 1;
                    continue;
                }
                panels.extend(self.panel((x, field), &group, &others));
            }
        }
        if panels.len() == 1 && apart.is_empty() {
            panels[0].title.clear();
        }
        let fixed = self.fixed();
        let of = |name: &str| fixed.iter().find(|(other, _)| other == name).map(|(_, value)| text(value));
        let command = of("command").unwrap_or_default();
        let machine = of("machine").map_or_else(String::new, |machine| format!(" on {machine}"));
        let more = if left_out > 0 { format!(", {left_out} panels left out") } else { String::new() };
        Ok(Picture {
            kind: "study",
            title: format!("{}: {} over {}", self.name(), labels(&fields), x.name.replace('_', " ")),
            subtitle: format!("weft {command}{machine}, {} cases{more}", self.cases.len()),
            panels,
        })
    }

    /// Whether a parameter has one value for each value of another, and so says nothing beside it.
    fn decides(&self, one: &StudyAxis, other: &StudyAxis) -> bool {
        one.values.iter().all(|value| {
            let has = |case: &&Case| case.parameter(&one.name).unwrap_or(&Json::Null) == value;
            let mut found = self.cases.iter().filter(has).map(|case| case.parameter(&other.name));
            found.next().is_none_or(|first| found.all(|next| next == first))
        })
    }

    /// The measured fields, in the order of the rows.
    pub fn fields(&self) -> Vec<String> {
        let mut fields: Vec<String> = Vec::new();
        for (name, _) in self.cases.iter().flat_map(|case| &case.means) {
            if !fields.contains(name) {
                fields.push(name.clone());
            }
        }
        fields
    }

    /// The most telling fields.
    pub(crate) fn principal(&self) -> Vec<String> {
        let fields = self.fields();
        let known = PRINCIPAL.into_iter().map(str::to_owned).filter(|name| fields.contains(name));
        let mut principal: Vec<String> = known.take(MOST_FIELDS).collect();
        if principal.is_empty() {
            principal.extend(fields.into_iter().take(MOST_FIELDS));
        }
        principal
    }

    /// The unit of a field in which all of its values are shown.
    pub(crate) fn quantity(&self, field: &str) -> FieldUnit {
        let values = self.cases.iter().filter_map(|case| case.mean(field));
        FieldUnit::of(field, values.map(|mean| mean.mean.abs()).fold(0.0, f64::max))
    }

    fn nothing(&self, why: String) -> StudyError {
        StudyError::NothingToShow { path: self.directory.clone(), why }
    }

    fn horizontal<'a>(
        &self,
        axes: &'a [StudyAxis],
        asked: Option<&str>,
    ) -> Result<&'a StudyAxis, StudyError> {
        let names = || axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = asked {
            let axis = axes.iter().find(|axis| axis.name == name);
            return axis
                .ok_or_else(|| self.nothing(format!("--x: {name} does not vary; choose from {}", names())));
        }
        let usual = |axis: &&StudyAxis| ["load", "offered_load", "size_bytes"].contains(&axis.name.as_str());
        let axis = axes.iter().find(usual).or_else(|| axes.iter().find(|axis| axis.is_numeric()));
        axis.or_else(|| axes.first()).ok_or_else(|| {
            let why = "nothing varies in it; give [vary] of the study a list of several values";
            self.nothing(why.to_owned())
        })
    }

    /// A field over `x` of the cases that have the values of `group`; `None`: there is none.
    fn panel(
        &self,
        (x, field): (&StudyAxis, &str),
        group: &[(&StudyAxis, &Json)],
        others: &[&StudyAxis],
    ) -> Option<Panel> {
        let quantity = self.quantity(field);
        let has = |case: &Case, values: &[(&StudyAxis, &Json)]| {
            values.iter().all(|(axis, value)| case.parameter(&axis.name).unwrap_or(&Json::Null) == *value)
        };
        let mut lines: Vec<Series> = Vec::new();
        for line in combinations(others) {
            let mut points: Vec<([f64; 2], Option<[f64; 2]>)> = Vec::new();
            for case in self.cases.iter().filter(|case| has(case, group) && has(case, &line)) {
                let value = case.parameter(&x.name).unwrap_or(&Json::Null);
                let place = x.values.iter().position(|known| known == value);
                let (Some(place), Some(of)) = (place, case.mean(field)) else { continue };
                // Names are in the middle of their unit.
                let at = if x.is_numeric() { value.as_f64()? } else { place as f64 + 0.5 };
                // No measured quantity is below zero, whatever so few seeds say.
                let low = |half: f64| if of.mean >= 0.0 { (of.mean - half).max(0.0) } else { of.mean - half };
                let bounds = |half: f64| [low(half), of.mean + half].map(|bound| bound * quantity.factor);
                points.push(([at, of.mean * quantity.factor], of.half_width.map(bounds)));
            }
            points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
            if points.is_empty() {
                continue;
            }
            let interval: Option<Vec<[f64; 2]>> = points.iter().map(|(_, bounds)| *bounds).collect();
            let label = line.iter().map(|(axis, value)| label(&axis.name, value)).collect::<Vec<_>>();
            lines.push(Series {
                label: if label.is_empty() { quantity.label.clone() } else { label.join(", ") },
                points: points.iter().map(|(point, _)| *point).collect(),
                interval: interval.unwrap_or_default(),
                colour: lines.len(),
                marks: true,
                ..Series::default()
            });
        }
        if lines.is_empty() {
            return None;
        }
        let of_group = group.iter().map(|(axis, value)| label(&axis.name, value));
        let title = of_group.chain([quantity.label.clone()]).collect::<Vec<_>>().join(", ");
        let values = lines.iter().flat_map(|line| &line.points).map(|point| point[1]);
        let mut y = PictureAxis::new(quantity.label.clone(), quantity.unit);
        if is_wide(values) {
            y = y.log();
            // An interval that goes below zero has no place on such an axis.
            lines
                .iter_mut()
                .flat_map(|line| &mut line.interval)
                .for_each(|[low, high]| *low = low.max(*high / 1e3));
        }
        Some(Panel { title, x: horizontal_axis(x), y, content: Content::Lines(lines) })
    }
}

/// All combinations of a value of each axis; one that is empty for none.
fn combinations<'a>(axes: &[&'a StudyAxis]) -> Vec<Vec<(&'a StudyAxis, &'a Json)>> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        let with = |known: &Vec<(&'a StudyAxis, &'a Json)>| {
            let known = known.clone();
            axis.values.iter().map(move |value| [known.clone(), vec![(*axis, value)]].concat())
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

fn horizontal_axis(axis: &StudyAxis) -> PictureAxis {
    let name = axis.name.replace('_', " ");
    if !axis.is_numeric() {
        return PictureAxis::names(name, axis.values.iter().map(text).collect());
    }
    let (label, unit) = match name.strip_suffix(" bytes") {
        Some(name) => (name.to_owned(), "B"),
        None => (name, ""),
    };
    let of = PictureAxis::new(label, unit);
    if is_wide(axis.values.iter().filter_map(Json::as_f64)) { of.log() } else { of }
}

/// Whether values are positive and so far apart that small ones could not be told apart.
fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    low > 0.0 && high / low >= LOGARITHMIC_FROM
}

fn labels(fields: &[String]) -> String {
    fields.iter().map(|field| FieldUnit::of(field, 0.0).label).collect::<Vec<_>>().join(" and ")
}

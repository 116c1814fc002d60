//! Cases of a study: the same parameters over all seeds, with means and intervals of what was measured.

use crate::point::Point;
use serde_json::Value as Json;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use weft_analysis::{is_case, is_measured};

/// Upper quantile of two-sided intervals of 95 %.
const UPPER_QUANTILE: f64 = 0.975;

/// Fields of a row that tell of the computer it was simulated on: the same study is the same data set.
pub(crate) const OF_THE_COMPUTER: [&str; 4] =
    ["build_time_s", "packet_hops_per_second", "peak_memory_bytes", "wall_seconds"];

/// A case: rows that differ by their seeds alone.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The command and the parameters by their columns, in the order of the file, without the seed.
    pub parameters: Vec<(String, Json)>,
    /// Fields of the rows that tell them apart within a point, such as the size of messages.
    pub measured_of: Vec<(String, Json)>,
    /// The measured values by field of `run.json`, in the order of the first row.
    pub means: Vec<(String, Mean)>,
    /// The number of seeds.
    pub seeds: u64,
}

/// A mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean, in the unit that the field's name ends with.
    pub mean: f64,
    /// Half the width of its 95 % interval, of Student's t distribution; `None`: there is one value only.
    pub half_width: Option<f64>,
}

impl Case {
    /// The value of a parameter, or of a field that tells rows apart.
    pub fn parameter(&self, name: &str) -> Option<&Json> {
        let all = self.parameters.iter().chain(&self.measured_of);
        all.into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The measured value of a field.
    pub fn mean(&self, field: &str) -> Option<Mean> {
        self.means.iter().find(|(other, _)| other == field).map(|(_, mean)| *mean)
    }
}

/// The parameters of a point, with those of one of its rows; `seed`: with it. A parameter may be a list for
/// each entry of which there is a row, as of ways to control congestion: then the row's own entry stands.
pub(crate) fn parameters(point: &Point, row: &Json, seed: bool) -> Vec<(String, Json)> {
    let mut cells = vec![("command".to_owned(), Json::from(point.words[0].clone()))];
    for (name, value) in point.parameters.iter().filter(|(name, _)| seed || name != "seed") {
        let own = Some(&row[name.as_str()]).filter(|own| is_case(name) && !own.is_null());
        let given = || serde_json::to_value(value).unwrap_or(Json::Null);
        cells.push((name.clone(), own.cloned().unwrap_or_else(given)));
    }
    cells
}

/// By outcome, its values over seeds.
type Outcomes = Vec<(String, Vec<f64>)>;

/// The cases of finished points, in their order.
pub(crate) fn cases(documents: &[(&Point, Json)]) -> Vec<Case> {
    let mut order: Vec<(Case, Outcomes)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (point, document) in documents {
        for json in document["rows"].as_array().into_iter().flatten() {
            let Some(row) = json.as_object() else { continue };
            let parameters = parameters(point, json, false);
            let asked: Vec<&str> = point.parameters.iter().map(|(name, _)| name.as_str()).collect();
            let measured_of: Vec<(String, Json)> = row
                .iter()
                .filter(|(name, value)| is_case(name) && !value.is_null() && !asked.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let number = *known.entry(format!("{parameters:?} {measured_of:?}")).or_insert_with(|| {
                order.push((Case { parameters, measured_of, ..Case::default() }, Vec::new()));
                order.len() - 1
            });
            let (case, values) = &mut order[number];
            case.seeds += 1;
            for (name, value) in row.iter().filter(|(name, _)| is_outcome(name)) {
                let Some(value) = value.as_f64() else { continue };
                match values.iter_mut().find(|(other, _)| other == name) {
                    Some((_, values)) => values.push(value),
                    None => values.push((name.clone(), vec![value])),
                }
            }
        }
    }
    let finished = |(mut case, values): (Case, Outcomes)| {
        case.means = values.into_iter().map(|(name, values)| (name, mean(&values))).collect();
        case
    };
    order.into_iter().map(finished).collect()
}

/// Whether a field of a row is a measured value of its case.
pub(crate) fn is_outcome(name: &str) -> bool {
    (is_measured(name) || name.ends_with("_share")) && !OF_THE_COMPUTER.contains(&name)
}

fn mean(values: &[f64]) -> Mean {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return Mean { mean, half_width: None };
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0).ok().map(|t| t.inverse_cdf(UPPER_QUANTILE));
    Mean { mean, half_width: quantile.map(|quantile| quantile * error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three values 1, 2, 3: mean 2, deviation 1; t of two degrees of freedom is 4.302653 in tables of it.
    #[test]
    fn intervals_are_those_of_the_tables() {
        let of = mean(&[1.0, 2.0, 3.0]);
        assert!((of.mean - 2.0).abs() < 1e-12);
        assert!((of.half_width.unwrap() - 4.302_653 / 3f64.sqrt()).abs() < 1e-5, "{of:?}");
        assert_eq!(mean(&[5.0]), Mean { mean: 5.0, half_width: None });
    }
}

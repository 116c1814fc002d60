//! Results beside each other: the rows of `run.json` that measured the same case, and whether they differ by
//! more than their seeds do.

use crate::picture::FieldUnit;
use serde::Serialize;
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use weft_results::{ResultsError, StoredResult};

/// Fields of a row that say which case was measured.
const CASE: [&str; 7] = ["congestion", "group", "job", "size_bytes", "offered_load", "ranks", "name"];
/// Ends of the names of fields that are measured.
const MEASURED: [&str; 9] =
    ["_ns", "_us", "_gbps", "_per_second", "_load", "_bytes_per_s", "fairness", "slowdown", "_max_bytes"];
/// Ends of the names of rates, of which more is better.
const RATES: [&str; 4] = ["_gbps", "_per_second", "_load", "_bytes_per_s"];
/// Fields with such ends that are no outcome.
const ASKED: [&str; 6] =
    ["offered_load", "start_us", "warm_up_us", "links_off_us", "links_off_in_warm_up_us", "measured_us"];
/// Two-sided confidence of the intervals in `run.json`.
const UPPER_QUANTILE: f64 = 0.975;

/// Results side by side. The first is what the others are compared with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The names of the results.
    pub results: Vec<String>,
    /// A quantity of a case each.
    pub rows: Vec<ComparedRow>,
    /// Cases that not all results have.
    pub unmatched: Vec<String>,
}

/// A quantity of a case in each result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedRow {
    /// The case, such as `256 B, load 0.5`; empty where there is one only.
    pub case: String,
    /// The field of `run.json`, with its unit at the end.
    pub quantity: String,
    /// A value per result.
    pub values: Vec<ComparedValue>,
}

impl ComparedRow {
    /// The heading and the values in a unit that people say.
    pub fn told(&self) -> (String, Vec<ComparedValue>) {
        let largest = self.values.iter().map(|value| value.value.abs()).fold(0.0, f64::max);
        let quantity = FieldUnit::of(&self.quantity, largest);
        let in_unit = |value: &ComparedValue| ComparedValue {
            value: value.value * quantity.factor,
            half_width: value.half_width.map(|half| half * quantity.factor),
            ..*value
        };
        (quantity.heading(), self.values.iter().map(in_unit).collect())
    }
}

/// A value, and how it compares with the first result's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ComparedValue {
    /// The value.
    pub value: f64,
    /// Half the width of its 95 % confidence interval over seeds; `None` with one seed.
    pub half_width: Option<f64>,
    /// The change against the first result, as a share of it; `None` for the first, and where it is 0.
    pub change: Option<f64>,
    /// The probability of so large a difference if both had the same mean: Welch's t-test over seeds, two
    /// sided; `None` where one of both has a single seed, or seeds do not differ.
    pub p: Option<f64>,
}

/// A mean with what its seeds say of it.
#[derive(Clone, Copy)]
struct Sample {
    mean: f64,
    /// Half width of the interval, and seeds; `None` with one seed.
    spread: Option<(f64, u32)>,
}

impl Comparison {
    /// Compares results.
    ///
    /// # Errors
    /// Results that have no case in common.
    pub fn of(results: &[StoredResult], names: Vec<String>) -> Result<Comparison, ResultsError> {
        let across = ways_across(results);
        let named = |result| rows(result).map(|row| (case_of(row, across.as_deref()), row.clone())).collect();
        let rows: Vec<Vec<(String, Value)>> = results.iter().map(named).collect();
        Comparison::of_rows(&rows, names).ok_or_else(|| {
            let why = "it has no row in common with the others: the same sizes and loads are compared, and \
                       the same groups under the same congestion control"
                .to_owned();
            ResultsError::NothingToDraw { directory: results[0].directory.clone(), why }
        })
    }

    /// The rows whose values are not all the same, and how many others there are.
    pub fn differing(&self) -> (Vec<&ComparedRow>, usize) {
        let differs = |row: &&ComparedRow| row.values.iter().any(|value| value.value != row.values[0].value);
        let differing: Vec<&ComparedRow> = self.rows.iter().filter(differs).collect();
        let same = self.rows.len() - differing.len();
        (differing, same)
    }

    /// The comparison of rates divided by the price of each result's machine for an endpoint, in the currency
    /// of the machine files. Other quantities are left out.
    pub fn per_cost(&self, costs: &[f64]) -> Comparison {
        let is_rate = |row: &&ComparedRow| RATES.iter().any(|end| row.quantity.ends_with(end));
        let row = |row: &ComparedRow| {
            let sample = |(value, cost): (&ComparedValue, &f64)| {
                (value.value / cost, value.half_width.map(|half| half / cost))
            };
            let each: Vec<(f64, Option<f64>)> = row.values.iter().zip(costs).map(sample).collect();
            let first = each.first().map_or(0.0, |(value, _)| *value);
            // The test of the rates holds where prices are equal.
            let has_one_price = costs.iter().all(|cost| *cost == costs[0]);
            let value = |(number, (value, half_width)): (usize, (f64, Option<f64>))| ComparedValue {
                value,
                half_width,
                change: (number > 0 && first != 0.0).then(|| value / first - 1.0),
                p: row.values[number].p.filter(|_| has_one_price),
            };
            let values = each.into_iter().enumerate().map(value).collect();
            ComparedRow { case: row.case.clone(), quantity: format!("{}_per_cost", row.quantity), values }
        };
        let rows = self.rows.iter().filter(is_rate).map(row).collect();
        Comparison { results: self.results.clone(), rows, unmatched: self.unmatched.clone() }
    }

    /// Compares rows of `run.json`, each with the name of its case; `None`: no case is in all.
    pub fn of_rows(rows: &[Vec<(String, Value)>], names: Vec<String>) -> Option<Comparison> {
        let mut order: Vec<String> = Vec::new();
        for (case, _) in rows.iter().flatten() {
            if !order.contains(case) {
                order.push(case.clone());
            }
        }
        let cases: Vec<BTreeMap<&str, &Value>> =
            rows.iter().map(|rows| rows.iter().map(|(case, row)| (case.as_str(), row)).collect()).collect();
        let in_all = |case: &String| cases.iter().all(|cases| cases.contains_key(case.as_str()));
        let (matched, unmatched): (Vec<String>, Vec<String>) = order.into_iter().partition(in_all);
        if matched.is_empty() {
            return None;
        }
        let mut rows = Vec::new();
        for case in matched {
            let same: Vec<&Value> = cases.iter().map(|cases| cases[case.as_str()]).collect();
            for quantity in measured(same[0]) {
                let samples: Vec<Sample> = same.iter().filter_map(|row| sample(row, &quantity)).collect();
                if samples.len() == names.len() {
                    let values =
                        samples.iter().enumerate().map(|(n, sample)| compared(n, sample, &samples[0]));
                    rows.push(ComparedRow { case: case.clone(), quantity, values: values.collect() });
                }
            }
        }
        Some(Comparison { results: names, rows, unmatched })
    }
}

/// The rows of a result in which something was measured.
fn rows(result: &StoredResult) -> impl Iterator<Item = &Value> {
    result.manifest.rows.iter().filter(|row| row["refused"].is_null())
}

/// The ways to control congestion, where each result has one and they are not the same: then they are what is
/// compared, and each case names them. Where a result has several, only rows of the same way are compared.
fn ways_across(results: &[StoredResult]) -> Option<String> {
    let only = |result| {
        let mut ways: Vec<&str> =
            rows(result).map(|row| row["congestion"].as_str()).collect::<Option<_>>()?;
        ways.sort_unstable();
        ways.dedup();
        if let [way] = ways[..] { Some(way) } else { None }
    };
    let ways: Vec<&str> = results.iter().map(only).collect::<Option<_>>()?;
    ways.iter().any(|way| *way != ways[0]).then(|| ways.join(" | "))
}

/// Whether a field of a row says which case was measured.
pub fn is_case(field: &str) -> bool {
    CASE.contains(&field)
}

/// Whether a field of a row is an outcome, with its unit at the end of its name.
pub fn is_measured(field: &str) -> bool {
    MEASURED.iter().any(|end| field.ends_with(end)) && !ASKED.contains(&field)
}

/// The case of a row; `across`: the ways to control congestion that are compared, in place of its own.
pub(crate) fn case_of(row: &Value, across: Option<&str>) -> String {
    let word = |field: &&str| match (*field, &row[*field]) {
        (_, Value::Null) => None,
        ("congestion", value) => {
            Some(format!("congestion {}", across.or(value.as_str()).unwrap_or_default()))
        }
        ("size_bytes", value) => Some(format!("{value} B")),
        ("offered_load", value) => Some(format!("load {value}")),
        ("job", value) => Some(format!("job {value}")),
        ("ranks", value) => Some(format!("{value} ranks")),
        (_, value) => Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    };
    CASE.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

/// The fields that were measured, in their order.
fn measured(row: &Value) -> Vec<String> {
    let fields = row.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| value.is_number() && is_measured(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The field of a row with the interval of another field.
pub fn interval_of(field: &str) -> String {
    match field.strip_suffix("_ns") {
        Some(name) => format!("{name}_interval_ns"),
        None => format!("{field}_interval"),
    }
}

fn sample(row: &Value, quantity: &str) -> Option<Sample> {
    let interval = interval_of(quantity);
    let seeds = row["seeds"].as_u64().unwrap_or(1) as u32;
    let half = || Some((row[&interval]["high"].as_f64()? - row[&interval]["low"].as_f64()?) / 2.0);
    let spread = half().filter(|_| seeds > 1).map(|half| (half, seeds));
    Some(Sample { mean: row[quantity].as_f64()?, spread })
}

fn compared(number: usize, sample: &Sample, first: &Sample) -> ComparedValue {
    let is_other = number > 0;
    ComparedValue {
        value: sample.mean,
        half_width: sample.spread.map(|(half, _)| half),
        change: (is_other && first.mean != 0.0).then(|| sample.mean / first.mean - 1.0),
        p: if is_other { welch(first, sample) } else { None },
    }
}

/// Welch's t-test of two means. B. L. Welch, "The generalization of Student's problem when several different
/// population variances are involved", Biometrika 34, 1947.
fn welch(one: &Sample, other: &Sample) -> Option<f64> {
    let error = |sample: &Sample| {
        let (half, seeds) = sample.spread?;
        let freedom = f64::from(seeds - 1);
        // The interval is the standard error times this quantile.
        let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(UPPER_QUANTILE);
        Some(((half / quantile).powi(2), freedom))
    };
    let ((a, a_freedom), (b, b_freedom)) = (error(one)?, error(other)?);
    let sum = a + b;
    if sum <= 0.0 {
        return None;
    }
    let freedom = sum.powi(2) / (a.powi(2) / a_freedom + b.powi(2) / b_freedom);
    let t = (one.mean - other.mean).abs() / sum.sqrt();
    Some(2.0 * (1.0 - StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two samples of five with standard deviations of 1 and 2 and means that differ by 3: t = 3, and
    /// Welch's formula gives 25/4.25 = 5.882 degrees of freedom. The t distribution has p = 0.05 at 2.457 and
    /// p = 0.02 at 3.165 there, so that p lies between.
    #[test]
    fn welch_is_that_of_the_textbook() {
        let half = |deviation: f64| 2.776_445 * deviation / 5f64.sqrt();
        let sample = |mean, deviation| Sample { mean, spread: Some((half(deviation), 5)) };
        let p = welch(&sample(10.0, 1.0), &sample(13.0, 2.0)).unwrap();
        assert!((0.02..0.03).contains(&p), "{p}");
        let same = welch(&sample(10.0, 1.0), &sample(10.0, 2.0)).unwrap();
        assert!((same - 1.0).abs() < 1e-9, "{same}");
        assert_eq!(welch(&sample(10.0, 1.0), &Sample { mean: 1.0, spread: None }), None);
    }

    /// Catches a latency that is divided by a price, a rate that is not, and a change without the prices:
    /// 0.6 for 300 is 0.002, 0.8 for 200 is 0.004, twice as much.
    #[test]
    fn rates_are_divided_by_prices() {
        let value = |value| ComparedValue { value, half_width: Some(0.06), change: Some(9.0), p: Some(0.5) };
        let row = |quantity: &str| ComparedRow {
            case: String::new(),
            quantity: quantity.to_owned(),
            values: vec![value(0.6), value(0.8)],
        };
        let results = vec!["a".to_owned(), "b".to_owned()];
        let rows = vec![row("accepted_load"), row("latency_mean_ns")];
        let of = Comparison { results, rows, unmatched: Vec::new() }.per_cost(&[300.0, 200.0]);
        let [row] = of.rows.as_slice() else { panic!("{of:?}") };
        assert_eq!(row.quantity, "accepted_load_per_cost");
        let [one, other] = row.values.as_slice() else { panic!("{row:?}") };
        assert!((one.value - 0.002).abs() < 1e-12 && (other.value - 0.004).abs() < 1e-12, "{row:?}");
        assert!((other.change.unwrap() - 1.0).abs() < 1e-9 && other.p.is_none(), "{row:?}");
        assert!((other.half_width.unwrap() - 0.0003).abs() < 1e-12, "{row:?}");
    }

    /// Catches an interval of one seed, whose batches are no seeds, and fields that were asked for.
    #[test]
    fn rows_are_matched_by_what_was_asked_for() {
        let row = serde_json::json!({
            "size_bytes": 256, "offered_load": 0.5, "seeds": 1, "latency_mean_ns": 10.0, "warm_up_us": 3.0,
            "latency_mean_interval_ns": { "low": 9.0, "high": 11.0 }, "messages": 7,
        });
        assert_eq!(case_of(&row, None), "256 B, load 0.5");
        assert_eq!(measured(&row), ["latency_mean_ns"]);
        assert!(sample(&row, "latency_mean_ns").unwrap().spread.is_none());
    }
}

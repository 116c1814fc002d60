//! An axis of numbers, linear or logarithmic, or of names.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;
use weft_analysis::picture::Axis;

/// The least ratio of the ends of a logarithmic axis.
const LEAST_RATIO: f64 = 2.0;
/// Numbers in each decade at which a logarithmic axis may begin and end.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// The coordinates of an axis.
#[derive(Clone)]
pub enum Scale {
    /// Numbers at equal distances.
    Linear(Range<f64>),
    /// Powers at equal distances.
    Log(Range<f64>),
    /// Names of 0, 1, 2 …, each in the middle of its unit.
    Names(Vec<String>),
}

impl Scale {
    /// The scale on which all `values` can be seen.
    pub fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        if !axis.names.is_empty() {
            return Scale::Names(axis.names.clone());
        }
        let usable = values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0));
        let (mut low, mut high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if axis.log { (1.0, LEAST_RATIO) } else { (0.0, 1.0) };
        }
        if axis.log {
            // Round numbers, so that the axis begins and ends with one.
            let low = round_numbers(low, low).rev().find(|round| *round <= low).unwrap_or(low);
            let high = high.max(low * LEAST_RATIO);
            let high = round_numbers(high, high).find(|round| *round >= high).unwrap_or(high);
            return Scale::Log(low..high);
        }
        if axis.from_zero {
            low = low.min(0.0);
        }
        let high = if high > low { high } else { low + 1.0 };
        Scale::Linear(low..high + (high - low) * 0.03)
    }

    /// The place of a value: names are in the middle of their unit, the first on top.
    pub fn middle(&self, value: f64) -> f64 {
        if matches!(self, Scale::Names(_)) { value + 0.5 } else { value }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = match self {
            Scale::Linear(range) => (value - range.start) / (range.end - range.start),
            Scale::Log(range) => (value.max(range.start) / range.start).ln() / (range.end / range.start).ln(),
            Scale::Names(names) => value / names.len() as f64,
        };
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Scale::Linear(range) => RangedCoordf64::from(range.clone()).key_points(hint.max_num_points()),
            Scale::Log(range) => {
                let decades = (range.end / range.start).log10();
                let all = round_numbers(range.start, range.end);
                let within = all.filter(|v| (range.start * 0.999..=range.end * 1.001).contains(v));
                if decades <= 3.0 {
                    return within.collect();
                }
                let every = (decades / 8.0) as i32 + 1;
                within.filter(|v| is_decade(*v) && v.log10().round() as i32 % every == 0).collect()
            }
            Scale::Names(names) => {
                let step = names.len().div_ceil(hint.max_num_points().max(1)).max(1);
                (0..names.len()).step_by(step).map(|number| number as f64 + 0.5).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Scale::Linear(range) | Scale::Log(range) => range.clone(),
            Scale::Names(names) => 0.0..names.len() as f64,
        }
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        match self {
            Scale::Names(names) => names.get(*value as usize).cloned().unwrap_or_default(),
            Scale::Linear(range) => number(*value, (range.end - range.start) / 10.0),
            Scale::Log(_) => number(*value, *value),
        }
    }
}

/// Round numbers from the decade of `low` to that of `high`, ascending.
fn round_numbers(low: f64, high: f64) -> impl DoubleEndedIterator<Item = f64> {
    let decades = low.log10().floor() as i32..=high.log10().floor() as i32 + 1;
    decades.flat_map(|decade| ROUND.map(|digit| digit * 10f64.powi(decade)))
}

fn is_decade(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-9
}

/// A number with the digits that tell it from one that lies `step` away.
pub fn number(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let (scaled, step, unit) = match value.abs().max(step.abs()) {
        1e9.. => (value / 1e9, step / 1e9, " G"),
        1e6.. => (value / 1e6, step / 1e6, " M"),
        1e4.. => (value / 1e3, step / 1e3, " k"),
        _ => (value, step, ""),
    };
    let digits = (-step.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let cases = [(0.0, 0.1), (0.30000000000000004, 0.1), (50.0, 10.0), (1500.0, 500.0), (20_000.0, 1e4)];
        let texts = cases.map(|(value, step)| number(value, step));
        assert_eq!(texts, ["0", "0.3", "50", "1500", "20 k"]);
        assert_eq!(number(2.5e9, 0.5e9), "2.5 G");
        assert_eq!(number(0.001, 0.001), "0.001");
    }

    /// Catches an axis that leaves out a value, and one without extent.
    #[test]
    fn scales_hold_their_values() {
        let axis = |log| Axis { label: String::new(), unit: "", log, from_zero: !log, names: Vec::new() };
        let log = Scale::of(&axis(true), [3.0, 450.0].into_iter());
        assert_eq!(log.range(), 2.0..500.0);
        assert_eq!(Scale::Log(1.0..1000.0).map(&10.0, (0, 300)), 100);
        assert_eq!(Scale::of(&axis(true), [20.0, 20.0].into_iter()).range(), 20.0..50.0);
        let flat = Scale::of(&axis(false), [0.0, 0.0].into_iter()).range();
        assert!(flat.end > flat.start);
        assert!(Scale::of(&axis(true), std::iter::empty()).range().start > 0.0);
    }
}

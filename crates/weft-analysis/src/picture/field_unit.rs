//! A measured field in the unit that people say: its name, its unit, and its factor.

/// Endings of fields that are times, and their nanoseconds.
const TIMES: [(&str, f64); 2] = [("_ns", 1.0), ("_us", 1e3)];
/// Units of time by their nanoseconds, the largest first.
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];
/// Other endings, the unit that is shown, and the factor of values in it.
const OTHERS: [(&str, &str, f64); 4] = [
    ("_gbps", "Gb/s", 1.0),
    ("_bytes_per_s", "GB/s", 1e-9),
    ("_per_second", "M/s", 1e-6),
    ("_bytes", "KiB", 1.0 / 1024.0),
];

/// A field of `run.json` as people read it.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldUnit {
    /// The name without the unit, such as `latency mean`.
    pub label: String,
    /// The unit; empty for counts and shares of one.
    pub unit: &'static str,
    /// A value in the unit is the field's value times this.
    pub factor: f64,
}

impl FieldUnit {
    /// The field `name`, in a unit in which `largest`, its largest value, is a number that people say.
    pub fn of(name: &str, largest: f64) -> FieldUnit {
        let words = |name: &str| name.replace('_', " ");
        for (end, ns) in TIMES {
            if let Some(name) = name.strip_suffix(end) {
                let (unit, factor) = time_unit(largest * ns);
                return FieldUnit { label: words(name), unit, factor: factor * ns };
            }
        }
        for (end, unit, factor) in OTHERS {
            if let Some(name) = name.strip_suffix(end) {
                return FieldUnit { label: words(name), unit, factor };
            }
        }
        FieldUnit { label: words(name), unit: "", factor: 1.0 }
    }

    /// The name with its unit.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// The unit in which people say a time of so many ns, and the factor of ns in it.
pub fn time_unit(largest_ns: f64) -> (&'static str, f64) {
    let unit = TIME_UNITS.into_iter().find(|(_, ns)| largest_ns >= *ns);
    unit.map_or(("ns", 1.0), |(unit, ns)| (unit, 1.0 / ns))
}

/// A number with four digits that count, and no more than its size needs.
pub fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let digits = (3.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // A value that rounds to nothing has no sign.
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches axes in thousands of a unit, and a factor that goes the wrong way.
    #[test]
    fn units_are_those_that_people_say() {
        for (name, largest, heading, shown) in [
            ("latency_mean_ns", 12_500.0, "latency mean (µs)", 12.5),
            ("latency_mean_ns", 800.0, "latency mean (ns)", 800.0),
            ("run_time_us", 2_500.0, "run time (ms)", 2.5),
            ("latency_us", 0.4, "latency (ns)", 400.0),
            ("rate_bytes_per_s", 2e9, "rate (GB/s)", 2.0),
            ("messages_per_second", 5e6, "messages (M/s)", 5.0),
            ("accepted_load", 0.3, "accepted load", 0.3),
        ] {
            let quantity = FieldUnit::of(name, largest);
            assert_eq!(quantity.heading(), heading);
            assert!((largest * quantity.factor - shown).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn numbers_have_four_digits() {
        let texts = [0.0, 0.012_345_6, 1234.5, 1_234_567.0, 2.5, -1e-12].map(four_digits);
        assert_eq!(texts, ["0", "0.01235", "1234", "1234567", "2.5", "0"]);
    }
}

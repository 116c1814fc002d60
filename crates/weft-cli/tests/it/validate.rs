//! `weft validate` as it is typed.

use crate::common::json;
use serde_json::Value;

/// The only row with this in its id.
fn row(id: &str) -> Value {
    let answer = json(&["validate", "--machine", "exanest", "--only", id, "--json"]);
    let rows = answer["rows"].as_array().unwrap();
    let found: Vec<&Value> = rows.iter().filter(|row| row["id"] == id).collect();
    assert_eq!(found.len(), 1, "{id}");
    found[0].clone()
}

/// Catches a blank of the document that has a figure, an error or a bound, and a command beside the row that
/// gives another value.
#[test]
fn a_blank_figure_is_predicted_without_an_error() {
    for (id, key) in [("latency-inter-mezz", "latency_us"), ("bcast-4-no-barrier", "latency_us")] {
        let row = row(id);
        assert_eq!(row["role"], "predicted", "{id}");
        assert_eq!((&row["published"], &row["relative_error"]), (&Value::Null, &Value::Null), "{id}");
        assert_eq!(row.get("bound"), None, "{id}");
        let command = row["command"].as_str().unwrap().to_owned() + " --json";
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        assert_eq!(json(&words)["rows"][0][key], row["simulated"], "{command}");
    }
}

/// Catches a quotient of two quotients that divides by the wrong one: its four measurements are rows of their
/// own, or quotients of two.
#[test]
fn a_row_may_be_a_quotient_of_quotients() {
    let time = |ranks: &str, more: &[&str]| {
        let words =
            ["osu", "allreduce", "-m", "exanest", "--ranks", ranks, "--ppn", "1", "--sizes", "256", "--json"];
        json(&[&words[..], more].concat())["rows"][0]["latency_us"].as_f64().unwrap()
    };
    let accelerator = ["--algorithm", "accelerator"];
    let grows = |more: &[&str]| time("128", more) / time("16", more);
    let expected = grows(&accelerator) / grows(&[]);
    let simulated = row("accelerator-scales-better")["simulated"].as_f64().unwrap();
    assert!((simulated - expected).abs() < 1e-9, "{simulated}, {expected}");
}

/// Catches a limit that is missed and does not say so.
#[test]
fn a_missed_limit_has_its_error_and_its_bound() {
    let row = row("accelerator-beyond-4k");
    let (error, bound) = (row["relative_error"].as_f64().unwrap(), row["bound"].as_f64().unwrap());
    assert!(error < 0.0 && -100.0 * error <= bound, "{row}");
}

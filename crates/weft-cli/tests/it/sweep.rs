//! `weft sweep`, through the whole program.

use crate::common::{json, refused, weft};
use std::fs;

const STUDY: &str = "command = \"traffic\"\nseeds = 2\n[fixed]\nmachine = \"bxi3-fattree\"\ntime = \"5us\"\n\
                     set.topology.k = 4\n[vary]\nload = [0.2, 0.4]\n";

/// Catches points that are run twice, a data set that depends on the number of processes, and a refused point
/// that ends with 0.
#[test]
fn a_study_continues_and_is_the_same_for_any_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (study, one, two) = (at("study.toml"), at("one"), at("two"));
    fs::write(&study, STUDY).unwrap();
    for (out, jobs) in [(&one, "1"), (&two, "3")] {
        let document = json(&["sweep", &study, "-o", out, "--jobs", jobs, "--quiet", "--json"]);
        assert_eq!(document["summary"]["done"], 4);
        assert_eq!(document["summary"]["intervals"], 2);
    }
    let read = |out: &str, name: &str| fs::read(format!("{out}/{name}")).unwrap();
    for name in ["study.parquet", "intervals.parquet"] {
        assert_eq!(read(&one, name), read(&two, name), "{name}");
    }
    let changed = |out: &str| {
        let points = fs::read_dir(format!("{out}/points")).unwrap();
        points.map(|point| point.unwrap().metadata().unwrap().modified().unwrap()).max().unwrap()
    };
    let before = changed(&one);
    fs::write(&study, STUDY.replace("[0.2, 0.4]", "[0.2, 0.4, 1.5]")).unwrap();
    let output = weft(&["sweep", &study, "-o", &one]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("4 of 6 points are done already") && said.contains("--load 1.5"), "{said}");
    assert_eq!(changed(&one), before);
    assert_eq!(read(&one, "study.parquet"), read(&two, "study.parquet"));
}

/// Catches an option that is told after an hour of other points.
#[test]
fn mistakes_are_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("study.toml");
    fs::write(&study, STUDY.replace("time = \"5us\"", "time = \"5 parsecs\"")).unwrap();
    let said =
        refused(&["sweep", study.to_str().unwrap(), "-o", folder.path().join("out").to_str().unwrap()]);
    assert!(
        said.contains("study.toml:5: `fixed.time`: invalid value '5 parsecs' for '--time <TIME>'"),
        "{said}"
    );
}

//! `weft sweep`, through the whole program.

use crate::common::{json, refused, weft};
use crate::outlets::SCENARIO;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
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

/// Catches ways to control congestion that a study takes for seeds of one another, as all of them are in one
/// option, and groups without rows.
#[test]
fn ways_and_groups_of_a_scenario_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("own.toml"), SCENARIO).unwrap();
    let study = "command = \"traffic\"\nseeds = 2\n[fixed]\nmachine = \"carvnet-spineleaf\"\n\
                 scenario = \"own.toml\"\n[vary]\ncongestion = [\"none,acc\", \"credits\"]\n";
    fs::write(at("study.toml"), study).unwrap();
    let document = json(&["sweep", &at("study.toml"), "-o", &at("out"), "--quiet", "--json"]);
    // Three ways, two groups, two seeds.
    assert_eq!((&document["summary"]["rows"], &document["summary"]["intervals"]), (&12.into(), &6.into()));
    let file = fs::File::open(at("out/intervals.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let text = |row: &Row, name: &str| {
        let (_, field) = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
        field.to_string().trim_matches('"').to_owned()
    };
    let cases: Vec<[String; 2]> =
        rows.map(|row| ["congestion", "group"].map(|column| text(&row, column))).collect();
    let ways = ["none", "acc", "credits"];
    let expected = ways.map(|way| ["incast", "small"].map(|group| [way.to_owned(), group.to_owned()]));
    assert_eq!(cases, expected.concat());
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

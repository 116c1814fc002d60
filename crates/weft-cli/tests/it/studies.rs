//! The studies that ship, and what a study's file says of its table, its pictures and its figure.

use crate::common::{json, refused, weft};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use weft_app::{Kernel, KernelName};

const STUDIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");

/// The studies that ship.
fn shipped() -> Vec<PathBuf> {
    let files = fs::read_dir(STUDIES).unwrap().map(|file| file.unwrap().path());
    let mut studies: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    studies.sort();
    studies
}

/// The words of the points that a study would run.
fn points(study: &Path, into: &Path) -> Vec<Vec<String>> {
    let (study, into) = (study.to_str().unwrap(), into.to_str().unwrap());
    let listed = json(&["sweep", study, "-o", into, "--list", "--json"]);
    let words = |point: &Value| serde_json::from_value(point["words"].clone()).unwrap();
    listed["points"].as_array().unwrap().iter().map(words).collect()
}

/// The value of an option, as often as it is there.
fn values<'w>(words: &'w [String], option: &str) -> Vec<&'w str> {
    let pairs = words.windows(2).filter(|pair| pair[0] == option);
    pairs.map(|pair| pair[1].as_str()).collect()
}

/// Catches a study that ships and is refused: a field, an option, a key of a machine, a kernel that its ranks
/// do not form.
#[test]
fn every_study_that_ships_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (mut machines, mut kernels) = (BTreeSet::new(), BTreeSet::new());
    let studies = shipped();
    assert!(studies.len() >= 12, "{studies:?}");
    for study in &studies {
        let points = points(study, &folder.path().join(study.file_stem().unwrap()));
        assert!(points.len() > 1, "{}", study.display());
        for words in points {
            let machine = values(&words, "--machine")[0].to_owned();
            let sets: Vec<String> = values(&words, "--set").into_iter().map(str::to_owned).collect();
            machines.insert((machine, sets));
            let named = match words[0].as_str() {
                "app" => {
                    let app = words
                        .iter()
                        .skip(1)
                        .zip(&words)
                        .find(|(word, before)| !word.starts_with('-') && !before.starts_with('-'));
                    let app = app.map(|(word, _)| word).unwrap();
                    let with = values(&words, "--with").into_iter().map(|with| format!(",{with}"));
                    vec![format!("{app}@{}{}", values(&words, "--ranks")[0], with.collect::<String>())]
                }
                _ => words.into_iter().filter(|word| word.contains('@')).collect(),
            };
            kernels.extend(named);
        }
    }
    for (machine, sets) in machines {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        json(&[&["machine", "show", &machine, "--json"], &sets[..]].concat());
    }
    for kernel in kernels {
        let name: KernelName = kernel.parse().unwrap();
        Kernel::new(&name).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    }
}

const SMALL: &str = r#"command = "app"
keep = ["messages"]
table = ["run_time_us", "efficiency", "communication_share"]

[fixed]
machine = "bxi3-fattree"
app = "som"
set.topology.k = 4

[[cases]]
case = "few"
with = "records=10000,batches=2"
compute_scale = 2

[[cases]]
case = "many"
with = "records=80000,batches=2"
compute_scale = 1

[vary]
ranks = [2, 4, 8]

[[derive]]
name = "efficiency"
of = "run_time_us"
as = "strong-efficiency"
within = ["case"]
over = "ranks"

[[pictures]]
name = "efficiency"
x = "ranks"
y = "efficiency"

[[pictures]]
name = "completion"
what = "fct-cdf"
by = "case"

[published]
source = "D0, Fig. 1"
shows = "A figure of <nothing>."
differs = ["in all"]
"#;

/// Catches an efficiency against another case than the first of its own, a table of other columns, a curve of
/// another point's messages, a number in the
/// place of a case's name, and a figure that the page does not describe.
#[test]
fn a_study_says_how_it_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("study.toml"), SMALL).unwrap();
    json(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet", "--json"]);
    let report = json(&["report", &at("st"), "-o", &at("st.html"), "--json"])["report"].clone();
    let titles =
        report["sections"].as_array().unwrap().iter().map(|section| section["title"].as_str().unwrap());
    assert_eq!(titles.collect::<Vec<_>>(), ["Published", "Pictures", "Cases", "Points"]);
    let table = &report["sections"][2]["tables"][0];
    let names = table["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["case", "ranks", "run time (ms)", "efficiency", "communication share"]);
    let rows: Vec<Vec<String>> = serde_json::from_value(table["rows"].clone()).unwrap();
    let number = |row: &[String], column: usize| row[column].parse::<f64>().unwrap();
    for row in &rows {
        let first = rows.iter().find(|first| first[0] == row[0]).unwrap();
        let expected = number(first, 2) * 2.0 / (number(row, 2) * number(row, 1));
        assert!((number(row, 3) - expected).abs() < 2e-3, "{row:?}, {expected}");
    }
    let page = fs::read_to_string(at("st.html")).unwrap();
    assert!(page.contains("A figure of &lt;nothing&gt;.") && page.contains("differs"), "{page}");
    let picture = |name: &str| {
        json(&["plot", &at("st"), "--what", name, "-o", &at("p.svg"), "--force", "--json"])["picture"].clone()
    };
    let panels = picture("completion")["panels"].as_array().unwrap().clone();
    assert_eq!(panels.iter().map(|panel| &panel["title"]).collect::<Vec<_>>(), ["few", "many"]);
    let lines = panels[1]["content"]["lines"].as_array().unwrap();
    let labels = lines.iter().map(|line| line["label"].as_str().unwrap());
    assert_eq!(labels.collect::<Vec<_>>(), ["ranks 2", "ranks 4", "ranks 8"]);
    // The last point of a distribution is the longest time, which the point's own row has.
    let output = weft(&[
        "app",
        "som",
        "-m",
        "bxi3-fattree",
        "--set",
        "topology.k=4",
        "--ranks",
        "8",
        "--with",
        "records=80000,batches=2",
        "--json",
    ]);
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    let longest = row["rows"][0]["completion_time_max_us"].as_f64().unwrap();
    let last = lines[2]["points"].as_array().unwrap().last().unwrap()[0].as_f64().unwrap();
    assert!((last - longest).abs() < 1e-6, "{last}, {longest}");
    let said = refused(&["plot", &at("st"), "--what", "no", "-o", &at("no.svg")]);
    assert!(said.contains("no picture no; choose efficiency, completion"), "{said}");
}

/// Catches a mistake in what a study says of itself that is told after its points have run, or without its
/// line and its mend.
#[test]
fn mistakes_of_how_it_is_shown_are_told_first() {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("study.toml");
    for (from, to, said) in [
        (
            "\"strong-efficiency\"",
            "\"strong\"",
            "study.toml:26: `derive.as`: \"strong\" is none; write as = ",
        ),
        (
            "over = \"ranks\"\n",
            "",
            "study.toml:24: `derive`: strong efficiency is by the number of processes; add",
        ),
        ("[\"messages\"]", "[\"mesages\"]", "study.toml:2: `keep`: no option writes a table mesages; write"),
        (
            "keep = [\"messages\"]",
            "keep = []",
            "study.toml:36: `pictures`: the points keep no tables; write keep",
        ),
        (
            "keep = [\"messages\"]",
            "keep = [\"links\"]",
            "study.toml:36: `pictures`: completion is drawn from a table that the points do not keep; add",
        ),
        ("\"fct-cdf\"", "\"cdf\"", "study.toml:36: `pictures`: no kind of picture is called so; weft plot"),
        (
            "y = \"efficiency\"\n",
            "",
            "study.toml:31: `pictures`: it has neither what nor y, or both; write y",
        ),
        ("shows = ", "show = ", "`published.show`: there is no such field; write one of source, shows"),
        (
            "keep = [\"messages\"]",
            "keep = \"messages\"",
            "study.toml:2: `keep`: this is not a list of tables",
        ),
        (
            "name = \"efficiency\"\nof",
            "name = \"ranks\"\nof",
            "study.toml:24: `derive.name`: there is a column ranks already; write",
        ),
        (
            "over = \"ranks\"",
            "over = \"machine\"",
            "study.toml:24: `derive.over`: machine is bxi3-fattree, which is no number above 0; write",
        ),
        (
            "ranks = [2, 4, 8]",
            "ranks = [2, 8.5]",
            "study.toml:21: `vary.ranks`: invalid value '8.5' for '--ranks <N>': `8.5` is not a whole number",
        ),
        (
            "over = \"ranks\"",
            "over = \"rank\"",
            "study.toml:24: `derive`: over: the points have no parameter rank; choose from",
        ),
        (
            "[\"case\"]",
            "[\"cases\"]",
            "study.toml:24: `derive`: within: the points have no parameter cases; choose from",
        ),
        (
            "x = \"ranks\"",
            "x = \"rank\"",
            "study.toml:31: `pictures`: x: the points have no parameter rank; choose from",
        ),
        (
            "name = \"completion\"",
            "name = \"efficiency\"",
            "study.toml:36: `pictures`: two are called efficiency; give each",
        ),
    ] {
        fs::write(&study, SMALL.replace(from, to)).unwrap();
        let out = folder.path().join("out");
        let error = refused(&["sweep", study.to_str().unwrap(), "-o", out.to_str().unwrap()]);
        assert!(error.contains(said), "{to}: {error}");
        assert!(!out.exists(), "{to}");
    }
}

/// Catches a field that no point measures, which leaves a column of dashes and no word, or costs the whole
/// report.
#[test]
fn fields_that_no_point_measures_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let study = SMALL.replace("of = \"run_time_us\"", "of = \"run_time\"").replace("[2, 4, 8]", "[2, 4]");
    fs::write(at("study.toml"), study).unwrap();
    let out = weft(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("derive: no point has measured run_time; choose from"), "{said}");
    let report = json(&["report", &at("st"), "-o", &at("st.html"), "--json"])["report"].clone();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("no point has measured run_time;"), "{warnings}");
}

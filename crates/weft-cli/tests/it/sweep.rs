//! `weft sweep`, through the whole program.

use crate::common::{json, refused, weft};
use crate::outlets::SCENARIO;
use crate::view::View;
use crate::waiting::{press_ctrl_c, wait_until};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

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

/// Catches a study's folder that one of the commands does not take, a table in ns, a picture of another axis
/// than was asked for, and a refused point without its key and its mend.
#[test]
fn a_study_is_shown_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let study = STUDY.replace("[0.2, 0.4]", "[0.2, 0.4]\npattern = [\"uniform\", \"permutation\"]");
    fs::write(at("study.toml"), study).unwrap();
    let output = weft(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let heading = said.lines().next().unwrap();
    assert!(heading.contains("latency mean (µs)") && heading.contains("accepted load"), "{said}");
    assert!(said.contains(" ± ") && said.contains("permutation"), "{said}");
    // A mean of the table is that of the seeds' rows, computed here from the points' own documents.
    let means =
        points(&at("st")).into_iter().filter(|(words, _)| words.contains("--load 0.2 --pattern uniform"));
    let means: Vec<f64> =
        means.map(|(_, document)| document["rows"][0]["latency_mean_ns"].as_f64().unwrap()).collect();
    assert_eq!(means.len(), 2);
    let mean = means.iter().sum::<f64>() / 2.0 / 1e3;
    let picture = |words: &[&str]| {
        let path = at("picture.svg");
        json(&[&["plot", &at("st"), "-o", &path, "--force", "--json"], words].concat())["picture"].clone()
    };
    let usual = picture(&[]);
    assert_eq!(usual["panels"][0]["x"]["label"], "load");
    assert_eq!(usual["panels"][0]["y"]["unit"], "µs");
    let line = &usual["panels"][0]["content"]["lines"][0];
    assert_eq!(line["label"], "uniform");
    assert!((line["points"][0][1].as_f64().unwrap() - mean).abs() < 1e-9, "{line} {mean}");
    let over = picture(&["--x", "pattern", "--y", "accepted_load"]);
    assert_eq!(over["panels"][0]["x"]["names"], serde_json::json!(["uniform", "permutation"]));
    let said = refused(&["plot", &at("st"), "--x", "size", "-o", &at("no.svg")]);
    assert!(said.contains("--x: size does not vary; choose from load, pattern"), "{said}");
    json(&["report", &at("st"), "-o", &at("st.html"), "--json"]);
    let page = fs::read_to_string(at("st.html")).unwrap();
    assert!(
        page.contains("<svg") && page.contains("weft traffic --machine") && page.contains("id=\"part-2\"")
    );
    let view = View::of(&[&at("st")]);
    let served = view.text("");
    assert!(served.contains("<svg") && served.contains("permutation"), "{served}");
    let compared = json(&["compare", &at("st"), "--json"])["comparison"].clone();
    assert_eq!(compared["results"], serde_json::json!(["pattern=uniform", "pattern=permutation"]));
    assert_eq!(compared["rows"][0]["case"], "load 0.2");
    let itself = json(&["compare", &at("st"), &at("st"), "--json"])["comparison"].clone();
    let is_same = |row: &Value| row["values"][0]["value"] == row["values"][1]["value"];
    assert!(itself["rows"].as_array().unwrap().iter().all(is_same));
    let said = refused(&["compare", &at("st"), &at("st"), "--by", "load"]);
    assert!(said.contains("--by: it is of one study"), "{said}");
}

/// Catches a panel for each value of what goes with the cases of the horizontal axis, with a point in each.
#[test]
fn named_cases_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let cases = r#"
command = "app"
[fixed]
machine = "exanest"
app = "halo3d"
[[cases]]
case = "one host"
ranks = 2
ppn = 2
[[cases]]
case = "two hosts"
ranks = 4
ppn = 2
[[cases]]
case = "four hosts"
ranks = 4
ppn = 1
[[pictures]]
name = "time"
x = "case"
y = "run_time_us"
"#;
    fs::write(at("study.toml"), cases).unwrap();
    assert!(weft(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet"]).status.success());
    let picture = json(&["plot", &at("st"), "-o", &at("picture.svg"), "--json"])["picture"].clone();
    let panels = picture["panels"].as_array().unwrap();
    let lines = panels[0]["content"]["lines"].as_array().unwrap();
    assert_eq!(
        (panels.len(), lines.len(), lines[0]["points"].as_array().unwrap().len()),
        (1, 1, 3),
        "{picture}"
    );
}

/// Catches a refused point that names neither key nor mend, and a damaged study with the mend of a point.
#[test]
fn what_is_refused_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let study =
        STUDY.replace("[0.2, 0.4]", "[0.2]\nset.topology.n = [2, 99999]").replace("seeds = 2", "seeds = 1");
    fs::write(at("study.toml"), study).unwrap();
    let output = weft(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("topology.n=99999 seed=1: the machine cannot be used"), "{said}");
    assert!(said.contains("1 | topology.k=4") && said.contains("= help: make it smaller"), "{said}");
    json(&["report", &at("st"), "-o", &at("st.html"), "--json"]);
    assert!(fs::read_to_string(at("st.html")).unwrap().contains("make it smaller"));
    fs::write(at("st/study.json"), "{").unwrap();
    let said = refused(&["sweep", &at("study.toml"), "-o", &at("st")]);
    assert!(
        said.contains("study.json is damaged") && said.contains("name another directory with -o"),
        "{said}"
    );
    // Who only looks at it is not told of options of weft sweep as if they were its own.
    for command in ["plot", "report", "view", "compare"] {
        let said = refused(&[command, &at("st")]);
        let mend = format!("run the study again: weft sweep STUDY.toml -o {} --force", at("st"));
        assert!(said.contains("study.json is damaged") && said.contains(&mend), "{command}: {said}");
    }
}

/// Catches a study that was stopped and is told to be mended.
#[test]
fn a_study_that_was_stopped_has_nothing_to_mend() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let study = format!("keep = [\"messages\"]\n{}", STUDY.replace("5us", "10s"));
    fs::write(at("study.toml"), study).unwrap();
    let sweep = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["sweep", &at("study.toml"), "-o", &at("st"), "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let kept = |folder: &str| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    wait_until("the first point", || kept(&at("st/results")));
    press_ctrl_c(&sweep);
    let output = sweep.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("0 of 4 points done, 0 refused"), "{said}");
    assert!(said.contains("stopped before its first point") && !said.contains("mend"), "{said}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("the same command continues the study"));
}

/// Catches a study that takes the place of another one in silence, and one that is kept from going on, or
/// from having more values, in its own folder.
#[test]
fn a_folder_keeps_its_study() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let first = STUDY.replace("[0.2, 0.4]", "[0.2]").replace("seeds = 2", "seeds = 1");
    let sweep = |study: &str, more: &[&str]| {
        fs::write(at("study.toml"), study).unwrap();
        weft(&[&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet", "--json"], more].concat())
    };
    assert!(sweep(&first, &[]).status.success());
    let kept = fs::read(at("st/study.json")).unwrap();
    for (from, to, change) in [
        ("[0.2]", "[0.3]", "`load` was 0.2, and is 0.3"),
        ("[vary]", "set.topology.n = 3\n[vary]", "`topology.n` is new, with 3"),
        ("seeds = 1", "seeds = [7]", "`seed` was 1, and is 7"),
    ] {
        let output = sweep(&first.replace(from, to), &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{change}: {said}");
        assert!(said.contains(change) && said.contains("-o, or begin anew with --force"), "{said}");
        assert_eq!(fs::read(at("st/study.json")).unwrap(), kept, "{change}");
    }
    // The same, with a remark and another value.
    let wider = format!("# wider\n{}", first.replace("[0.2]", "[0.3, 0.2]"));
    let summary = |output: std::process::Output| {
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (document["summary"]["points"].as_u64().unwrap(), document["summary"]["done"].as_u64().unwrap())
    };
    assert_eq!(summary(sweep(&wider, &[])), (2, 2));
    assert_eq!(summary(sweep(&first.replace("[0.2]", "[0.5]"), &["--force"])), (1, 1));
}

/// Catches a study of which all points were refused and that is said to have nothing that varies.
#[test]
fn a_study_of_refusals_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let study = STUDY.replace("[0.2, 0.4]", "[0.2, 0.4]\nset.topology.n = [99999]");
    fs::write(at("study.toml"), study.replace("seeds = 2", "seeds = 1")).unwrap();
    assert_eq!(weft(&["sweep", &at("study.toml"), "-o", &at("st"), "--quiet"]).status.code(), Some(2));
    for words in [&["plot", &at("st")][..], &["compare", &at("st")], &["compare", &at("st"), &at("st")]] {
        let said = refused(words);
        assert!(
            said.contains("all 2 points were refused, the first of them (machine=bxi3-fattree"),
            "{words:?}: {said}"
        );
        assert!(said.contains("= help: make it smaller"), "{words:?}: {said}");
    }
}

/// Catches a study's folder that commands of one result call unfinished, without a word of what it is.
#[test]
fn commands_of_one_result_say_what_a_study_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("st")).unwrap();
    fs::write(at("st/study.json"), "{}").unwrap();
    let study = at("st");
    for words in
        [&["explain", &study][..], &["rerun", &study], &["view", &study, &study], &["plot", &study, &study]]
    {
        let said = refused(words);
        assert!(
            said.contains("is a study") && said.contains("weft plot, report, view and compare"),
            "{said}"
        );
        assert!(said.contains("run its command"), "{said}");
    }
    let said = refused(&["explain", &at("nowhere")]);
    assert!(said.contains("nowhere is not there"), "{said}");
}

/// The words and the document of each finished point.
fn points(study: &str) -> Vec<(String, Value)> {
    let files = fs::read_dir(format!("{study}/points")).unwrap();
    let read = |path: std::path::PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let point = |kept: Value| {
        let words = kept["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        (words.collect::<Vec<_>>().join(" "), kept["document"].clone())
    };
    files.map(|file| point(read(file.unwrap().path()))).collect()
}

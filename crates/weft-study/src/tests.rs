//! Studies through files and directories.

use super::*;
use std::fs;
use std::path::Path;

/// A command of three options whose load ends at 1.
struct Grammar;

impl Commands for Grammar {
    fn options(&self, _: &str) -> Vec<String> {
        ["machine", "load", "time"].map(str::to_owned).to_vec()
    }

    fn check(&self, words: &[String]) -> Result<(), String> {
        match words.iter().any(|word| word == "7") {
            true => Err("invalid value '7' for '--load <LOAD>': it is above 1\n\nFor more".to_owned()),
            false => Ok(()),
        }
    }
}

const STUDY: &str = r#"command = "traffic"
seeds = 2

[fixed]
machine = "exanest"
set.topology.dims = [4, 4]

[vary]
load = [0.2, 0.6]
set.nic.model = ["exanet", "overheads"]
"#;

fn read(text: &str) -> Result<Study, StudyError> {
    Study::parse("s.toml", text.to_owned(), Path::new("."), &Grammar)
}

/// Catches an order that does not follow the file, lists that lose their brackets in --set, and points of one
/// name.
#[test]
fn points_are_every_combination() {
    let study = read(STUDY).unwrap();
    let labels: Vec<String> = study.points.iter().map(Point::label).collect();
    assert_eq!(labels.len(), 8);
    assert_eq!(
        labels[1], "machine=exanest topology.dims=[4,4] load=0.2 nic.model=exanet seed=2",
        "seeds change first"
    );
    assert!(labels[2].contains("load=0.2 nic.model=overheads seed=1"), "{}", labels[2]);
    assert_eq!(
        study.points[0].words.join(" "),
        "traffic --machine exanest --set topology.dims=[4,4] --load 0.2 --set nic.model=exanet --seed 1 \
         --quiet --json"
    );
    let mut ids: Vec<&str> = study.points.iter().map(|point| point.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8);
}

/// Catches cases that lose a value, or that are combined with each other.
#[test]
fn cases_change_together() {
    let cases = "[[cases]]\ncase = \"a\"\ntime = \"1us\"\n[[cases]]\ncase = \"b\"\nset.topology.n = 2\n";
    let study = read(&format!("{STUDY}{cases}").replace("seeds = 2", "seeds = [7]")).unwrap_err();
    assert!(study.to_string().contains("`vary.load`"), "{study}");
    let study = read(&format!("{STUDY}{cases}").replace("seeds = 2", "seeds = [8]")).unwrap();
    assert_eq!(study.points.len(), 8);
    assert!(study.points[0].words.join(" ").contains("--time 1us"));
    let last = study.points[7].words.join(" ");
    assert!(
        last.contains("--set topology.n=2") && !last.contains("--time") && !last.contains("--case"),
        "{last}"
    );
}

/// Catches a message without the line, the field or the mend.
#[test]
fn mistakes_are_told_with_line_field_and_mend() {
    for (from, to, said) in [
        ("command = \"traffic\"", "command = \"trafic\"", "s.toml:1: `command`: \"trafic\" measures no rows"),
        ("seeds = 2", "seeds = 0", "s.toml:2: `seeds`: there can be no such number of seeds; write"),
        ("seeds = 2", "seeds = [1, 1]", "s.toml:2: `seeds`: a seed is there twice"),
        ("seeds = 2", "sedes = 2", "s.toml:2: `sedes`: there is no such field; a study has title, command"),
        ("load = [0.2, 0.6]", "load = 0.2", "s.toml:9: `vary.load`: this is no list; write a list"),
        ("load = [0.2, 0.6]", "load = []", "s.toml:9: `vary.load`: the list is empty"),
        (
            "load = [0.2, 0.6]",
            "lode = [1]",
            "s.toml:9: `vary.lode`: the command has no such option; write one",
        ),
        ("load = [0.2, 0.6]", "load = [7]", "s.toml:9: `vary.load`: invalid value '7' for '--load <LOAD>'"),
        ("load = [0.2, 0.6]", "seed = [1]", "s.toml:9: `vary.seed`: a study has no such option; write seeds"),
        ("load = [0.2, 0.6]", "machine = [\"a\"]", "s.toml:9: `vary.machine`: it is in `fixed.machine`"),
        ("machine = \"exanest\"", "", "s.toml:1: `fixed.machine`: no machine is named; write machine"),
        ("machine = \"exanest\"", "machine = 1979-05-27", "s.toml:5: `fixed.machine`: this is a date"),
    ] {
        let error = read(&STUDY.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(said), "{to}: {error}");
    }
    assert!(read("command = ").unwrap_err().to_string().contains("line 1"));
    let many = format!("seeds = 99999\n{}", STUDY.replace("seeds = 2\n", ""));
    assert!(read(&many).unwrap_err().to_string().contains("there are 399996 points; shorten"));
}

/// Catches a mistake in what a study says of itself that names all fields, or a type of this program, and a
/// derived column in the place of another.
#[test]
fn mistakes_of_how_it_is_shown_name_the_field() {
    let derive = "[[derive]]\nname = \"efficiency\"\nof = \"latency_mean_ns\"\nas = \"strong-efficiency\"\n\
                  over = \"load\"\n";
    let shown = |head: &str, tail: &str| read(&format!("{head}{STUDY}{tail}"));
    shown("", derive).unwrap();
    let derived = |from: &str, to: &str| shown("", &derive.replace(from, to));
    let at_head = |head: &str| shown(head, "");
    let at_tail = |tail: &str| shown("", tail);
    for (study, said) in [
        (at_head("keep = \"messages\"\n"), "s.toml:1: `keep`: this is not a list of tables; write keep = ["),
        (at_head("table = [1]\n"), "s.toml:1: `table`: this is not a list of measured fields; write"),
        (at_head("published = 3\n"), "s.toml:1: `published`: this is not a table; write [published] above"),
        (
            at_head("derive = 3\n"),
            "s.toml:1: `derive`: this is not a list of columns; write [[derive]] above",
        ),
        (at_tail("[derive]\nname = \"a\"\n"), "s.toml:11: `derive`: this is not a list of columns; write"),
        (
            at_tail("[published]\nsource = \"D0\"\n"),
            "s.toml:11: `published.shows`: it is missing; write shows = \"",
        ),
        (
            at_tail("[published]\nsource = \"D0\"\nshow = \"x\"\n"),
            "s.toml:13: `published.show`: there is no such field; write one of source, shows, agrees",
        ),
        (
            derived("strong-efficiency", "strong-eficiency"),
            "s.toml:14: `derive.as`: \"strong-eficiency\" is none; write as = \"ratio\"",
        ),
        (derived("of = \"latency_mean_ns\"\n", ""), "s.toml:11: `derive.of`: it is missing; write of ="),
        (derived("\"load\"", "1"), "s.toml:15: `derive.over`: this is not a text; write over ="),
        (derived("\"efficiency\"", "\"load\""), "s.toml:12: `derive.name`: there is a column load already"),
        (derived("\"efficiency\"", "\"seed\""), "s.toml:12: `derive.name`: there is a column seed already"),
        (
            derived("\"efficiency\"", "\"run_time_us\""),
            "s.toml:12: `derive.name`: run_time_us is called as a measured field is; write",
        ),
        (
            derived("\"load\"", "\"machine\""),
            "s.toml:12: `derive.over`: machine is exanest, which is no number above 0; write",
        ),
    ] {
        let error = study.unwrap_err().to_string();
        assert!(error.starts_with(said), "{said}: {error}");
    }
}

/// A document of a command with a latency.
fn document(latency: f64) -> String {
    format!(r#"{{"ended": "finished", "rows": [{{"size_bytes": 8, "latency_mean_ns": {latency}}}]}}"#)
}

fn outcome<'a>(status: u8, output: &'a str, message: &'a str) -> Outcome<'a> {
    Outcome { status, output, message }
}

/// Catches a point that is done twice or never, a refused one that is taken for done, an interrupted one that
/// is taken for refused, and two that work at once.
#[test]
fn an_interrupted_study_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let study = read(STUDY).unwrap();
    let points = study.points.clone();
    let mut directory = StudyDirectory::open(study.clone(), &path, false).unwrap();
    assert!(matches!(StudyDirectory::open(study.clone(), &path, false), Err(StudyError::Busy(_))));
    assert!(directory.keep(&points[0].id, &outcome(0, &document(10.0), "")).unwrap().is_none());
    assert!(directory.keep(&points[1].id, &outcome(0, &document(14.0), "")).unwrap().is_none());
    let failed = directory.keep(&points[2].id, &outcome(2, "", "no such machine")).unwrap().unwrap();
    assert_eq!(failed.message, "no such machine");
    assert!(directory.keep(&points[3].id, &outcome(130, &document(1.0), "")).unwrap().is_none());
    // Half a document, as of a process that was killed.
    assert!(directory.keep(&points[4].id, &outcome(0, &document(1.0)[..30], "")).unwrap().is_some());
    let summary = directory.finish().unwrap();
    assert_eq!((summary.points, summary.done, summary.rows, summary.intervals), (8, 2, 2, 1));
    assert_eq!(summary.failed.len(), 2);
    drop(directory);
    let directory = StudyDirectory::open(study.clone(), &path, false).unwrap();
    assert_eq!(directory.done(), 2);
    let missing: Vec<String> = directory.missing().into_iter().map(|point| point.id).collect();
    let rest: Vec<String> = points[2..].iter().map(|point| point.id.clone()).collect();
    assert_eq!(missing, rest);
    drop(directory);
    // A study to which a value was added keeps what is done.
    let more = read(&STUDY.replace("load = [0.2, 0.6]", "load = [0.1, 0.2, 0.6]")).unwrap();
    let directory = StudyDirectory::open(more, &path, false).unwrap();
    assert_eq!((directory.done(), directory.missing().len()), (2, 10));
    drop(directory);
    assert_eq!(StudyDirectory::open(study, &path, true).unwrap().done(), 0);
}

/// Catches a directory of something else that is written into.
#[test]
fn other_directories_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.json"), "{}").unwrap();
    for anew in [false, true] {
        let refused = StudyDirectory::open(read(STUDY).unwrap(), folder.path(), anew);
        assert!(matches!(refused, Err(StudyError::NotAStudy(_))));
    }
    fs::write(
        folder.path().join("study.json"),
        r#"{"format_version": 9, "weft_version": "7.0", "study": ""}"#,
    )
    .unwrap();
    let refused = StudyDirectory::open(read(STUDY).unwrap(), folder.path(), false);
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("weft 7.0 in format version 9"), "{said}");
}

/// Catches a machine file whose change is not seen: its points would keep their old results.
#[test]
fn a_changed_file_is_another_point() {
    let folder = tempfile::tempdir().unwrap();
    let text = STUDY.replace("\"exanest\"", "\"own.toml\"");
    let id = |contents: &str| {
        fs::write(folder.path().join("own.toml"), contents).unwrap();
        let study = Study::parse("s.toml", text.clone(), folder.path(), &Grammar).unwrap();
        let own = folder.path().join("own.toml").display().to_string();
        assert!(study.points[0].words.contains(&own), "{:?}", study.points[0].words);
        study.points[0].id.clone()
    };
    assert_ne!(id("a"), id("b"));
    assert_eq!(id("a"), id("a"));
}

/// Catches a value that is there twice and counts as two seeds that agree.
#[test]
fn points_of_the_same_causes_are_one() {
    let twice = STUDY.replace("[0.2, 0.6]", "[0.2, 0.6, 0.2]");
    assert_eq!(read(&twice).unwrap().points, read(STUDY).unwrap().points);
}

//! Every experiment against every outlet: each pair works on a small run, or is refused for the reason that
//! the table names. A new experiment is a row, a new outlet a column.
//!
//! Python is not here, since it needs the wheel: tests/python/smoke.py has the same experiments.

use crate::common::weft;
use crate::skipped::leave_out;
use crate::support::{job, root, texts};
use crate::view::View;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// The outcome of an experiment at an outlet.
#[derive(Clone, Copy)]
enum Comes {
    /// It works.
    Works,
    /// It is refused, and that is said of it.
    Refused(&'static str),
}

use Comes::{Refused, Works};

/// An outlet: the name, and the question to it.
type Outlet = (&'static str, fn(&Run) -> Output);

/// The outlets, in the order of the columns.
const OUTLETS: [Outlet; 9] = [
    ("report", report),
    ("plot", plot),
    ("plot of messages", plot_of_messages),
    ("page", page),
    ("compare", compare),
    ("sweep", sweep),
    ("rerun", rerun),
    ("explain", explain),
    ("telemetry", telemetry),
];

const PROCESSES: Comes = Refused("these are results of real processes");
const NO_PROGRAM: Comes = Refused("nothing waits for anything else: explain is for programs");

/// The experiments: the command that makes a small run, and what comes of it at each outlet.
const TABLE: [(&str, &str, [Comes; OUTLETS.len()]); 6] = [
    (
        "traffic",
        "traffic -m bxi3-fattree --set topology.k=4 --load 0.3 --time 5us",
        [Works, Works, Works, Works, Works, Works, Works, NO_PROGRAM, Works],
    ),
    (
        "scenario",
        "traffic -m carvnet-spineleaf --scenario FOLDER/own.toml --congestion none,acc",
        [Works, Works, Works, Works, Works, Works, Works, NO_PROGRAM, Works],
    ),
    (
        "osu",
        "osu latency -m exanest --sizes 8:16 --iterations 10 --warm-up 2",
        [Works, Works, Works, Works, Works, Works, Works, Works, Works],
    ),
    (
        "replay",
        "replay -m carvnet-spineleaf FOLDER/own.weft",
        [Works, Works, Works, Works, Works, Works, Works, Works, Works],
    ),
    (
        "jobs",
        "replay -m carvnet-spineleaf FOLDER/own.weft FOLDER/other.weft --map switch --start 0,2us",
        [Works, Works, Works, Works, Works, Works, Works, Works, Works],
    ),
    (
        "run",
        "run -m exanest -n 2 --wall-limit 60s -- PROGRAM talk",
        [Works, Works, Works, Works, Works, Works, PROCESSES, Works, Works],
    ),
];

/// A small run, and where it lies.
struct Run {
    experiment: &'static str,
    words: Vec<String>,
    folder: PathBuf,
}

impl Run {
    fn at(&self, name: &str) -> String {
        self.folder.join(format!("{}-{name}", self.experiment)).to_str().unwrap().to_owned()
    }

    fn result(&self) -> String {
        self.at("result")
    }

    /// The command with more options, before the program where there is one.
    fn with(&self, more: &[&str]) -> Output {
        let end = self.words.iter().position(|word| word == "--").unwrap_or(self.words.len());
        let (head, tail) = self.words.split_at(end);
        let words: Vec<&str> = head.iter().map(String::as_str).collect();
        let tail: Vec<&str> = tail.iter().map(String::as_str).collect();
        weft(&[&words[..], &["--quiet"], more, &tail].concat())
    }
}

/// Every row of the result, with its case, is in the page.
fn report(run: &Run) -> Output {
    let output = weft(&["report", &run.result(), "-o", &run.at("report.html"), "--json"]);
    if output.status.success() {
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["report"]["rows"][1].as_array().unwrap();
        let manifest = fs::read_to_string(format!("{}/run.json", run.result())).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(rows.len(), manifest["rows"].as_array().unwrap().len());
        assert!(!rows.is_empty() && fs::read_to_string(run.at("report.html")).unwrap().contains("<svg"));
    }
    output
}

fn plot(run: &Run) -> Output {
    weft(&["plot", &run.result(), "--what", "link-utilization", "-o", &run.at("links.svg")])
}

fn plot_of_messages(run: &Run) -> Output {
    for kind in ["slow-down", "communication-matrix"] {
        let drawn = weft(&["plot", &run.result(), "--what", kind, "-o", &run.at(&format!("{kind}.svg"))]);
        if !drawn.status.success() {
            return drawn;
        }
    }
    weft(&["plot", &run.result(), "--what", "fct-cdf", "-o", &run.at("fct-cdf.svg")])
}

/// The overview of the page has the rows.
fn page(run: &Run) -> Output {
    let view = View::of(&[&run.result()]);
    let overview = view.json("api/report?result=0&run=0");
    assert!(!overview["rows"][1].as_array().unwrap().is_empty(), "{overview}");
    let runs = view.json("api/results")[0]["runs"].as_array().unwrap().clone();
    let numbers: BTreeSet<u64> = runs.iter().map(|run| run["run"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), runs.len(), "a run is listed twice: {runs:?}");
    weft(&["--version"])
}

/// Each case is compared with itself: nothing changes, and no two have one name.
fn compare(run: &Run) -> Output {
    let output = weft(&["compare", &run.result(), &run.result(), "--json"]);
    if output.status.success() {
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = document["comparison"]["rows"].as_array().unwrap();
        let names: BTreeSet<String> =
            rows.iter().map(|row| format!("{} {}", row["case"], row["quantity"])).collect();
        assert!(!rows.is_empty() && names.len() == rows.len(), "{document}");
        assert!(rows.iter().all(|row| row["values"][1]["change"].as_f64().unwrap_or(0.0) == 0.0));
    }
    output
}

/// A study of one point has a row for each of the run.
fn sweep(run: &Run) -> Output {
    let mut lines =
        vec![format!("command = \"{}\"", run.words[0]), "seeds = 1".to_owned(), "[fixed]".to_owned()];
    let (mut sets, mut traces, mut rest) = (Vec::new(), Vec::new(), run.words[1..].iter().peekable());
    while let Some(word) = rest.next() {
        let names = [("-m", "machine"), ("-n", "ranks")];
        match word.as_str() {
            "--" => {
                let program: Vec<String> = rest.by_ref().map(|word| format!("{word:?}")).collect();
                lines.push(format!("program = [{}]", program.join(", ")));
            }
            "--set" => {
                let (key, value) = rest.next().unwrap().split_once('=').unwrap();
                sets.push(format!("set.{key} = {value}"));
            }
            name if name.starts_with('-') => {
                let known = names.iter().find(|(short, _)| *short == name);
                let name = known.map_or(name.trim_start_matches('-'), |(_, long)| *long);
                lines.push(format!("{} = {:?}", name.replace('-', "_"), rest.next().unwrap()));
            }
            // What stands without an option.
            word if run.words[0] == "replay" => traces.push(format!("{word:?}")),
            word => lines.push(format!("benchmark = {word:?}")),
        }
    }
    lines.extend((!traces.is_empty()).then(|| format!("traces = [{}]", traces.join(", "))));
    lines.extend(sets);
    let (study, out) = (run.at("study.toml"), run.at("study"));
    fs::write(&study, lines.join("\n")).unwrap();
    let output = weft(&["sweep", &study, "-o", &out, "--jobs", "1", "--quiet", "--json"]);
    if output.status.success() {
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let manifest = fs::read_to_string(format!("{}/run.json", run.result())).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let rows = manifest["rows"].as_array().unwrap().len();
        assert_eq!(document["summary"]["rows"], rows, "{document}");
        assert_eq!(document["summary"]["intervals"], rows, "{document}");
    }
    output
}

fn rerun(run: &Run) -> Output {
    weft(&["rerun", &run.result(), "--quiet"])
}

fn explain(run: &Run) -> Output {
    weft(&["explain", &run.result(), "--quiet"])
}

fn telemetry(run: &Run) -> Output {
    let out = run.at("telemetry");
    let output = run.with(&["--telemetry", "1us", "--tables", "links,flow_rates", "-o", &out]);
    if output.status.success() {
        let drawn = weft(&["plot", &out, "--what", "flow-rates", "-o", &run.at("flow-rates.svg")]);
        assert!(drawn.status.success(), "{}", texts(&drawn).1);
        return weft(&["plot", &out, "--what", "rates", "-o", &run.at("rates.svg")]);
    }
    output
}

/// A trace of two ranks that send each other a message.
fn trace(path: &Path) {
    let header = TraceHeader { ranks: 2, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let (bytes, tag, comm, buffer, request) = (Bytes::new(4096), 1, CommId::WORLD, None, RequestId(0));
    for rank in 0..2 {
        let other = RankId(1 - rank);
        let send = Op::Isend { to: other, tag, comm, bytes, mode: SendMode::Standard, buffer, request };
        let receive =
            Op::Irecv { from: Some(other), tag: Some(tag), comm, bytes, matched: None, buffer, request };
        writer.begin_rank(RankId(rank)).unwrap();
        for op in if rank == 0 { [&send, &receive] } else { [&receive, &send] } {
            writer.push(op).unwrap();
            writer.push(&Op::Wait { request }).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// A scenario of two groups.
pub const SCENARIO: &str = "[scenario]\ntitle = \"two groups\"\ntime = \"20us\"\nwarm_up = \"4us\"\n\
    [[flows]]\nname = \"incast\"\nrole = \"aggressor\"\nfrom = \"0,4\"\nto = \"15\"\nsize = \"2K\"\n\
    [[flows]]\nname = \"small\"\nrole = \"victim\"\nfrom = \"6\"\nto = \"14\"\nsize = \"256\"\n\
    rate = \"1Gb/s\"\n";

#[test]
fn every_experiment_comes_to_every_outlet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("own.toml"), SCENARIO).unwrap();
    trace(&path.join("own.weft"));
    trace(&path.join("other.weft"));
    let program = root().join("build/venv/bin/mpicc").exists().then(job).flatten();
    let smoke = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/python/smoke.py"));
    let smoke = smoke.unwrap();
    for (experiment, command, comes) in TABLE {
        assert!(smoke.contains(&format!("\"{experiment}\": lambda")), "{experiment} is not in smoke.py");
        let program = match (&program, experiment) {
            (None, "run") => {
                leave_out("weft run", "no MPICH in build/venv; `make test` installs it");
                continue;
            }
            (program, _) => program.as_deref().unwrap_or(Path::new("")).display().to_string(),
        };
        let word = |word: &str| word.replace("FOLDER", path.to_str().unwrap()).replace("PROGRAM", &program);
        let words = command.split_whitespace().map(word).collect();
        let run = Run { experiment, words, folder: path.to_owned() };
        let made = run.with(&["--tables", "messages,flows,links,ranks", "-o", &run.result()]);
        assert!(made.status.success(), "{experiment}: {}", texts(&made).1);
        for ((outlet, of), comes) in OUTLETS.into_iter().zip(comes) {
            let output = of(&run);
            let (status, said) = (output.status.code(), texts(&output).1);
            match comes {
                Works => assert_eq!(status, Some(0), "{experiment}, {outlet}: {said}"),
                Refused(why) => {
                    assert_eq!(status, Some(2), "{experiment}, {outlet}: {said}");
                    assert!(said.contains(why), "{experiment}, {outlet}: {said}");
                }
            }
        }
    }
}

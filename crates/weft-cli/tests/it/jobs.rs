//! Several jobs at once, through the whole program: their places, times, tables, pictures and refusals.

use crate::common::{json, number, refused, weft};
use crate::replay::ring;
use serde_json::Value;
use std::fs;
use std::path::Path;
use weft_results::{JobLinkRow, JobRateRow, RankRow, StoredResult};

/// A fat tree of four leaves with four hosts each, and one rank on each host.
const TREE: &str = "replay -m bxi3-fattree --set topology.k=4 --ppn 1 --quiet";

/// A folder with rings of 6 and of 3 ranks in it.
struct Traces(tempfile::TempDir);

impl Traces {
    fn new() -> Traces {
        let folder = tempfile::tempdir().unwrap();
        ring(&folder.path().join("a.weft"), 6, 3);
        ring(&folder.path().join("b.weft"), 3, 6);
        Traces(folder)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Words in which what begins with `@` is a file of the folder.
    fn words(&self, command: &str) -> Vec<String> {
        let word = |word: &str| match word.strip_prefix('@') {
            Some(name) => self.at(name),
            None => word.to_owned(),
        };
        command.split_whitespace().map(word).collect()
    }

    fn json(&self, command: &str) -> Value {
        let words = self.words(command);
        json(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn refused(&self, command: &str) -> String {
        let words = self.words(command);
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn text(&self, command: &str) -> String {
        let words = self.words(command);
        let output = weft(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The endpoints of all ranks of a result, in order.
fn endpoints(directory: &Path) -> Vec<u32> {
    let mut endpoints = Vec::new();
    let result = StoredResult::open(directory).unwrap();
    result.visit(|row: RankRow| endpoints.push(row.endpoint.0)).unwrap();
    endpoints
}

/// Catches a job on another's switch or host; leaf n of the tree has hosts 4n to 4n + 3.
#[test]
fn maps_put_jobs_where_they_say() {
    let traces = Traces::new();
    for (number, (map, jobs, expected)) in [
        ("linear", "@a.weft @b.weft", &[0, 1, 2, 3, 4, 5, 6, 7, 8][..]),
        ("switch", "@a.weft @b.weft", &[0, 1, 2, 3, 8, 9, 4, 5, 6]),
        ("node", "@a.weft @b.weft", &[0, 2, 4, 6, 8, 10, 1, 3, 5]),
        ("switch", "@a.weft", &[0, 1, 2, 3, 4, 5]),
        // Three jobs on four leaves: the first has two of them.
        ("switch", "@a.weft @b.weft @b.weft", &[0, 1, 2, 3, 12, 13, 4, 5, 6, 8, 9, 10]),
        ("node", "@b.weft @b.weft @b.weft", &[0, 3, 6, 1, 4, 7, 2, 5, 8]),
        ("@places", "@b.weft @b.weft", &[15, 14, 13, 0, 1, 2]),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(traces.at("places"), "15\n14\n13\n0\n1\n2\n").unwrap();
        let out = format!("out-{number}");
        traces.text(&format!("{TREE} --map {map} {jobs} -o @{out}"));
        assert_eq!(endpoints(Path::new(&traces.at(&out))), expected, "{map}, {jobs}");
    }
    let drawn = ["1", "2"].map(|seed| {
        traces.text(&format!("{TREE} --map random --seed {seed} @a.weft @b.weft -o @random-{seed}"));
        let mut places = endpoints(Path::new(&traces.at(&format!("random-{seed}"))));
        let all = places.clone();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 9);
        all
    });
    assert_ne!(drawn[0], drawn[1]);
}

/// Catches refusals that do not say which job, its size, the size of its share and the mend.
#[test]
fn a_job_that_does_not_fit_is_refused_with_the_sizes() {
    let traces = Traces::new();
    ring(&traces.0.path().join("c.weft"), 9, 1);
    for (command, expected) in [
        (
            "--map switch @b.weft @c.weft",
            "c.weft: 9 ranks do not fit on 8 cores, its own of one switch in 2 (8 hosts with 1 rank each)",
        ),
        (
            "--map node @b.weft @c.weft @b.weft",
            "c.weft: 9 ranks do not fit on 5 cores, its own of one host in 3 (5 hosts with 1 rank each)",
        ),
        ("@c.weft @c.weft", "c.weft: 9 ranks do not fit on 7 cores, which the jobs before it leave of 16"),
        ("--start 5us @a.weft @b.weft", "--start has 1 time and there are 2 traces; write one for each"),
        ("--start 0,1us,2us @a.weft @b.weft", "--start has 3 times and there are 2 traces"),
        ("--start 0,-1us @a.weft @b.weft", "--start"),
        ("--start 0,5 @a.weft @b.weft", "--start"),
        ("--map spine @a.weft @b.weft", "write --map linear, switch, node or random, or a file"),
    ] {
        let said = traces.refused(&format!("{TREE} {command}"));
        assert!(said.contains(expected), "{command}: {said}");
    }
    let said = traces.refused(&format!("{TREE} @a.weft --links-by-job"));
    assert!(said.contains("--output"), "{said}");
    let said = traces.refused(&format!("{TREE} --set fabric.kind=ideal @a.weft --links-by-job -o @ideal"));
    assert!(said.contains("--links-by-job: the ideal network"), "{said}");
}

/// Catches rows, tables and pictures that say nothing of jobs, or something else than each other.
#[test]
fn jobs_come_to_every_outlet() {
    let traces = Traces::new();
    let run = format!("{TREE} @a.weft @b.weft --map node --isolated --start 0,5us --telemetry 2us");
    let answer = traces.json(&format!("{run} --links-by-job --json -o @node"));
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (job, row) in rows.iter().enumerate() {
        let (run_time, alone) = (number(row, "run_time_us"), number(row, "isolated_run_time_us"));
        assert_eq!(row["job"], job);
        assert_eq!(number(row, "slowdown"), run_time / alone);
        assert!((number(row, "end_us") - number(row, "start_us") - run_time).abs() < 1e-6, "{row}");
        let gbps = number(row, "bytes") * 8e-3 / run_time;
        assert!((number(row, "throughput_gbps") - gbps).abs() < 1e-9, "{row}");
    }
    assert_eq!((number(&rows[0], "start_us"), number(&rows[1], "start_us")), (0.0, 5.0));

    let text = traces.text(&format!("{run} -o @again"));
    assert!(text.contains("slow-down") && text.contains("throughput (Gb/s)"), "{text}");
    assert!(traces.text("rerun @node --quiet").contains("same digest"));
    assert!(traces.text("explain @node --quiet").contains("rank"));
    let drawn = traces.json("plot @node --what job-rates -o @rates.svg --json");
    let lines = drawn["picture"]["panels"][0]["content"]["lines"].as_array().unwrap();
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["0: a.weft, alone", "0: a.weft", "1: b.weft, alone", "1: b.weft"]);
    assert!(traces.refused("plot @again --what fct-cdf").contains("--tables messages"));

    let result = StoredResult::open(Path::new(&traces.at("node"))).unwrap();
    let (mut begins, mut used) = ([u64::MAX; 2], [0; 2]);
    let rate = |row: JobRateRow| {
        if row.level == 0 && row.jobs == 2 {
            let begin = &mut begins[row.job.unwrap() as usize];
            *begin = (*begin).min(row.begin_ps.as_ps());
        }
    };
    result.visit(rate).unwrap();
    // The second starts at 5 us and computes for 3 us first.
    assert!(begins[0] < 5_000_000 && begins[1] >= 8_000_000, "{begins:?}");
    result.visit(|row: JobLinkRow| used[row.job.unwrap() as usize] += 1).unwrap();
    assert!(used.iter().all(|links| *links > 6), "{used:?}");

    traces.text(&format!("{TREE} @a.weft @b.weft --map switch --isolated --start 0,5us -o @switch"));
    let compared = traces.json("compare @switch @node --json");
    let compared = compared["comparison"]["rows"].as_array().unwrap();
    let of = |case: &str, quantity: &str| {
        compared.iter().any(|row| row["case"].as_str().unwrap().contains(case) && row["quantity"] == quantity)
    };
    assert!(of("job 0", "slowdown") && of("job 1", "run_time_us"), "{compared:?}");
    let report = traces.json("report @node -o @report.html --json");
    let columns = report["report"]["rows"][0].to_string();
    assert!(columns.contains("slowdown") && columns.contains("isolated_run_time_us"), "{columns}");

    let study = "command = \"replay\"\n[fixed]\nmachine = \"bxi3-fattree\"\nset.topology.k = 4\n\
                 ppn = 1\n\
                 traces = [\"a.weft\", \"b.weft\"]\nisolated = true\nstart = \"0,5us\"\n\
                 [vary]\nmap = [\"linear\", \"switch\", \"node\"]\n";
    fs::write(traces.at("study.toml"), study).unwrap();
    let swept = traces.json("sweep @study.toml -o @study --quiet --json");
    let rows = (&swept["summary"]["rows"], &swept["summary"]["intervals"]);
    assert_eq!(rows, (&6.into(), &6.into()), "{swept}");
}

/// Catches applications of a scenario on other switches than theirs, one that begins at once although it is
/// to begin late, and what is wrong with them without its place.
#[test]
fn applications_of_a_scenario_have_maps_and_starts() {
    let traces = Traces::new();
    let application = |name: &str, more: &str| {
        format!(
            "[[applications]]\nname = \"{name}\"\nrole = \"victim\"\ntrace = \"b.weft\"\n\
             ranks_per_host = 1\n{more}\n"
        )
    };
    let run = |name: &str, applications: &str, more: &str| {
        let head = "[scenario]\ntitle = \"jobs\"\ntime = \"400us\"\n";
        fs::write(traces.at(name), format!("{head}{applications}")).unwrap();
        format!("traffic -m bxi3-fattree --set topology.k=4 --scenario @{name} --quiet {more}")
    };
    // A switch each: nobody is in anybody's way, whenever they begin.
    let apart =
        application("one", "map = \"switch\"") + &application("two", "map = \"switch\"\nstart = \"7us\"");
    let answer = traces.json(&run("apart.toml", &apart, "--json"));
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(number(&rows[0], "completion_max_us"), number(&rows[1], "completion_max_us"), "{answer}");
    for (more, expected) in [
        ("map = \"spine\"", "apart.toml:9: `applications.map`: \"spine\" is none"),
        ("map = \"node\"\non = \"0-3\"", "`applications.map`: there is an `on` as well"),
        ("start = \"soon\"", "`applications.start`: \"soon\" is none"),
        ("start = \"1ms\"", "`applications.start`: it is not before the scenario's `time`"),
    ] {
        let said = traces.refused(&run("apart.toml", &application("one", more), ""));
        assert!(said.contains(expected), "{said}");
    }
}

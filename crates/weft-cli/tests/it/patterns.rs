//! The pattern that `weft explain` names, on programs that are slow in one known way each; and none on the
//! good twin, which does the same work.

use crate::common::{json, weft};
use crate::skipped::skip;
use crate::support::{provider, root, run, texts};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

const RANKS: u32 = 8;

/// The operations of a rank.
#[derive(Default)]
struct Rank {
    ops: Vec<Op>,
    requests: u32,
}

impl Rank {
    fn compute(&mut self, us: u64) {
        self.ops.push(Op::Compute { span: Span::from_us(us) });
    }

    fn isend(&mut self, to: u32, bytes: u64) -> RequestId {
        let (comm, mode, request) = (CommId::WORLD, SendMode::Standard, self.request());
        let bytes = Bytes::new(bytes);
        self.ops.push(Op::Isend { to: RankId(to), tag: 1, comm, bytes, mode, request, buffer: None });
        request
    }

    fn irecv(&mut self, from: u32, bytes: u64) -> RequestId {
        let (comm, request, bytes) = (CommId::WORLD, self.request(), Bytes::new(bytes));
        let (from, tag) = (Some(RankId(from)), Some(1));
        self.ops.push(Op::Irecv { from, tag, comm, bytes, matched: None, request, buffer: None });
        request
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    fn waitall(&mut self, requests: Vec<RequestId>) {
        self.ops.push(Op::Waitall { requests });
    }

    fn send(&mut self, to: u32, bytes: u64) {
        let request = self.isend(to, bytes);
        self.waitall(vec![request]);
    }

    fn receive(&mut self, from: u32, bytes: u64) {
        let request = self.irecv(from, bytes);
        self.waitall(vec![request]);
    }

    /// With the neighbours of a ring: begins to send to the right and to receive from the left.
    fn begin_exchange(&mut self, rank: u32, bytes: u64) -> Vec<RequestId> {
        vec![self.irecv((rank + RANKS - 1) % RANKS, bytes), self.isend((rank + 1) % RANKS, bytes)]
    }

    fn exchange(&mut self, rank: u32, bytes: u64) {
        let requests = self.begin_exchange(rank, bytes);
        self.waitall(requests);
    }

    fn barrier(&mut self) {
        let (kind, comm, sizes) = (Collective::Barrier, CommId::WORLD, CollectiveSizes::default());
        let buffers = Default::default();
        self.ops.push(Op::Collective { kind, comm, root: None, sizes, request: None, buffers });
    }
}

/// Writes a rank's part of a program, of the fault or of the good twin.
type Part = fn(&mut Rank, u32, bool);

fn late_sender(me: &mut Rank, rank: u32, good: bool) {
    let is_sender = rank.is_multiple_of(2);
    match (is_sender, good) {
        (true, false) => {
            me.compute(100);
            me.send(rank + 1, 1000);
        }
        (true, true) => {
            me.send(rank + 1, 1000);
            me.compute(100);
        }
        (false, _) => {
            me.receive(rank - 1, 1000);
            me.compute(100);
        }
    }
}

fn late_receiver(me: &mut Rank, rank: u32, good: bool) {
    let is_sender = rank.is_multiple_of(2);
    match (is_sender, good) {
        (true, _) => {
            me.send(rank + 1, 10_000);
            me.compute(100);
        }
        (false, false) => {
            me.compute(100);
            me.receive(rank - 1, 10_000);
        }
        (false, true) => {
            me.receive(rank - 1, 10_000);
            me.compute(100);
        }
    }
}

fn serial_chain(me: &mut Rank, rank: u32, good: bool) {
    let (right, left, bytes) = ((rank + 1) % RANKS, (rank + RANKS - 1) % RANKS, 2_000_000);
    match (good, rank) {
        (true, _) => me.exchange(rank, bytes),
        (false, 0) => {
            me.send(right, bytes);
            me.receive(left, bytes);
        }
        (false, _) => {
            me.receive(left, bytes);
            me.send(right, bytes);
        }
    }
}

/// A token that is worked on by one rank after another: the chain is one of computation.
fn token(me: &mut Rank, rank: u32, good: bool) {
    if rank > 0 && !good {
        me.receive(rank - 1, 8);
    }
    me.compute(100);
    if rank + 1 < RANKS && !good {
        me.send(rank + 1, 8);
    }
    me.barrier();
}

fn imbalance(me: &mut Rank, rank: u32, good: bool) {
    me.compute(match (good, rank) {
        (true, _) => 1100 / u64::from(RANKS),
        (false, 0) => 400,
        (false, _) => 100,
    });
    me.barrier();
}

/// The same where neighbours wait for each other.
fn imbalance_of_neighbours(me: &mut Rank, rank: u32, good: bool) {
    for _ in 0..4 {
        me.compute(match (good, rank) {
            (true, _) => 1100 / u64::from(RANKS),
            (false, 3) => 400,
            (false, _) => 100,
        });
        let others = [(rank + 1) % RANKS, (rank + RANKS - 1) % RANKS];
        let mut requests = others.map(|other| me.irecv(other, 32)).to_vec();
        requests.extend(others.map(|other| me.isend(other, 32)));
        me.waitall(requests);
    }
}

fn wait_at_collective(me: &mut Rank, rank: u32, good: bool) {
    for round in 0..RANKS {
        if round == if good { 0 } else { rank } {
            me.compute(1000);
        }
        me.barrier();
    }
}

fn hot_link(me: &mut Rank, rank: u32, good: bool) {
    let bytes = 200_000;
    match (good, rank) {
        (true, _) => me.exchange(rank, bytes),
        (false, 0) => {
            let requests = (1..RANKS).map(|from| me.irecv(from, bytes)).collect();
            me.waitall(requests);
        }
        (false, _) => me.send(0, bytes),
    }
}

fn small_messages(me: &mut Rank, rank: u32, good: bool) {
    let (messages, bytes) = if good { (1, 8000) } else { (1000, 8) };
    for _ in 0..messages {
        match rank.is_multiple_of(2) {
            true => me.send(rank + 1, bytes),
            false => me.receive(rank - 1, bytes),
        }
    }
}

/// Ranks compute, and only then begin the exchange that they wait for; or begin it, and compute meanwhile.
fn no_overlap(me: &mut Rank, rank: u32, good: bool) {
    computed_with(me, rank, good, (20, 1_000_000));
}

/// The same where announcing the messages takes as long as moving them.
fn no_overlap_of_announcements(me: &mut Rank, rank: u32, good: bool) {
    computed_with(me, rank, good, (3, 100_000));
}

fn computed_with(me: &mut Rank, rank: u32, good: bool, (us, bytes): (u64, u64)) {
    for _ in 0..4 {
        if good {
            let requests = me.begin_exchange(rank, bytes);
            me.compute(us);
            me.waitall(requests);
        } else {
            me.compute(us);
            me.exchange(rank, bytes);
        }
    }
}

/// An exchange with the neighbours, which the mapping brings together or not.
fn ring(me: &mut Rank, rank: u32, _: bool) {
    for _ in 0..4 {
        me.exchange(rank, 200_000);
    }
}

fn written(path: &Path, part: Part, good: bool) {
    let mut writer =
        TraceWriter::create(path, TraceHeader { ranks: RANKS, ..TraceHeader::default() }).unwrap();
    for rank in 0..RANKS {
        let mut me = Rank::default();
        part(&mut me, rank, good);
        writer.begin_rank(RankId(rank)).unwrap();
        me.ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

/// The diagnosis of a program, and the text that it begins.
fn diagnosis(options: &[&str], part: Part, good: bool) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("t.weft"), folder.path().join("out"));
    written(&trace, part, good);
    let out = out.to_str().unwrap();
    let replay = ["replay", trace.to_str().unwrap(), "-o", out, "--quiet", "--json"];
    json(&[&replay, options].concat());
    let document = json(&["explain", out, "--quiet", "--json"]);
    let text = String::from_utf8(weft(&["explain", out, "--quiet"]).stdout).unwrap();
    (document["runs"][0]["diagnosis"].clone(), text)
}

const EXANEST: &[&str] = &["-m", "exanest", "--ppn", "1"];
const BXI: &[&str] = &["-m", "bxi3-fattree", "--ppn", "1"];

/// Catches a fault that is not named, one that is named otherwise, and one that is seen where there is none.
#[test]
fn each_fault_is_named_and_its_good_twin_is_not() {
    let cases: &[(&str, &[&str], Part, &str)] = &[
        ("late-sender", EXANEST, late_sender, "Late sender: "),
        ("late-receiver", EXANEST, late_receiver, "Late receiver: "),
        ("serial-chain", EXANEST, serial_chain, "Serial chain: "),
        ("serial-chain", EXANEST, token, "Serial chain: "),
        ("imbalance", EXANEST, imbalance, "Imbalance: rank 0 "),
        ("imbalance", EXANEST, imbalance_of_neighbours, "Imbalance: rank 3 "),
        ("wait-at-collective", EXANEST, wait_at_collective, "Wait at a collective: "),
        ("hot-link", EXANEST, hot_link, "Hot link: 4 flows share router of M1QB → router of M1QA "),
        ("small-messages", EXANEST, small_messages, "Small eager messages: "),
        ("wait-at-collective", BXI, wait_at_collective, "Wait at a collective: "),
        ("no-overlap", BXI, no_overlap, "No overlap: "),
        ("no-overlap", BXI, no_overlap_of_announcements, "No overlap: "),
    ];
    for (pattern, options, part, sentence) in cases {
        let (bad, text) = diagnosis(options, *part, false);
        assert_eq!(bad["pattern"], *pattern, "{bad:#}");
        assert!(text.starts_with(sentence) && text.starts_with(bad["sentence"].as_str().unwrap()), "{text}");
        assert!(bad["share"].as_f64().unwrap() >= 0.1 && bad["share"] == bad["shares"][*pattern], "{bad:#}");
        let (good, text) = diagnosis(options, *part, true);
        assert_eq!(good["pattern"], Value::Null, "{pattern}: {good:#}");
        assert!(text.starts_with("No known pattern "), "{text}");
    }
}

/// The text that `weft report` prints, the text of its page, and what it has of the critical path.
fn report(out: &str, options: &[&str]) -> (String, String, Value) {
    let page = format!("{out}.html");
    let words = [&["report", out, "-o", &page, "--force", "--quiet"], options].concat();
    let text = String::from_utf8(weft(&words).stdout).unwrap();
    let document = json(&[&words[..], &["--json"]].concat());
    let page = std::fs::read_to_string(&page).unwrap().replace("&#x27;", "'");
    (text, page, document["report"]["critical_paths"][0].clone())
}

/// Catches a report without the sentence that `weft explain` begins with.
#[test]
fn a_report_has_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("t.weft"), folder.path().join("out"));
    written(&trace, late_sender, false);
    let (trace, out) = (trace.to_str().unwrap(), out.to_str().unwrap());
    json(&[&["replay", trace, "-o", out, "--quiet", "--json"], EXANEST].concat());
    let explained = json(&["explain", out, "--quiet", "--json"]);
    let sentence = explained["runs"][0]["diagnosis"]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Late sender: "), "{sentence}");
    let (text, page, path) = report(out, &["--explain"]);
    assert!(text.contains(sentence) && page.contains(sentence), "{text}");
    assert_eq!(path["verdict"], sentence);
    // A replay is not run again unasked.
    let (text, page, path) = report(out, &[]);
    assert!(!text.contains("Late sender") && !page.contains("Late sender") && path.is_null(), "{text}");
}

/// Catches a mapping that is not blamed for its long ways, and one that is blamed although none is better.
#[test]
fn a_bad_mapping_is_told_from_a_good_one() {
    let random = [EXANEST, &["--map", "random"]].concat();
    let (bad, text) = diagnosis(&random, ring, true);
    assert_eq!(bad["pattern"], "bad-mapping", "{bad:#}");
    assert!(text.starts_with("Bad mapping: "), "{text}");
    let links = |name: &str| bad["evidence"][name].as_f64().unwrap();
    assert!(links("links_per_byte") > links("fewest_links_per_byte"), "{bad:#}");
    let (good, _) = diagnosis(EXANEST, ring, true);
    assert_eq!(good["pattern"], Value::Null, "{good:#}");
}

/// Catches a partner that is called late although it only takes a message and answers it.
#[test]
fn benchmarks_are_diagnosed_too() {
    for (words, expected) in [
        ("latency -m exanest --sizes 8", Value::Null),
        ("latency -m exanest --from M1QAF1 --to M1QBF1 --sizes 1M", Value::Null),
        ("bw -m ib-ndr-fattree --sizes 8", "small-messages".into()),
        ("bw -m ib-ndr-fattree --sizes 1M", Value::Null),
        ("allreduce -m ib-ndr-fattree --ranks 8 --ppn 1 --sizes 1K", Value::Null),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let words: Vec<&str> = words.split_whitespace().collect();
        json(&[&["osu"], &words[..], &["-o", out.to_str().unwrap(), "--quiet", "--json"]].concat());
        let found = json(&["explain", out.to_str().unwrap(), "--quiet", "--json"])["runs"][0].take();
        assert_eq!(found["diagnosis"]["pattern"], expected, "{words:?}: {:#}", found["diagnosis"]);
    }
}

/// Catches a queue whose place is blamed for a busier link further on, and a link without its flows.
#[test]
fn a_queue_names_the_link_that_holds_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("t.weft"), folder.path().join("out"));
    written(&trace, hot_link, false);
    let (trace, out) = (trace.to_str().unwrap(), out.to_str().unwrap());
    json(&["replay", "-m", "ib-ndr-fattree", "--ppn", "1", trace, "-o", out, "--quiet", "--json"]);
    let run = json(&["explain", out, "--quiet", "--json"])["runs"][0].take();
    let link = run["diagnosis"]["evidence"]["link"].as_str().unwrap();
    assert!(link.ends_with("→ endpoint 0 (endpoint)"), "{link}");
    // Whatever waits does so before this link, or is held up by it: one row.
    let flows = run["diagnosis"]["evidence"]["flows"].as_f64().unwrap();
    let waits = |table: &str| -> Vec<String> {
        let rows = run[table].as_array().unwrap().iter().filter(|row| row["what"] == "waiting");
        rows.map(|row| row["place"].as_str().unwrap().to_owned()).collect()
    };
    let places = waits("places");
    assert_eq!(places.len(), 1, "{places:?}");
    assert!(places[0].starts_with(&format!("{link}: {flows} flows, rank ")), "{places:?}");
    assert!(places[0].contains("→ rank 0"), "{places:?}");
    let longest = waits("longest");
    assert!(!longest.is_empty() && longest.iter().all(|place| place.ends_with(link)), "{longest:?}");
}

/// Catches shares that are not those of the program's own arithmetic.
#[test]
fn shares_are_those_that_follow_by_hand() {
    // Rank 0 computes for 400 us, seven for 100: they wait for 7 x 300 of 8 x 400 us, and a barrier is short.
    let (found, _) = diagnosis(EXANEST, imbalance, false);
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() / expected - 1.0).abs() < 0.1;
    assert!(near(&found["share"], 2100.0 / 3200.0), "{found:#}");
    assert!(near(&found["efficiency"], 1100.0 / 3200.0), "{found:#}");
    assert_eq!(found["evidence"]["computation_us"], 400.0);
    assert_eq!(found["evidence"]["mean_computation_us"], 137.5);
    // One of eight computes at a time: the others wait for seven eighths of the time, but for the barriers.
    let (found, _) = diagnosis(EXANEST, wait_at_collective, false);
    assert!(near(&found["share"], 7.0 / 8.0) && near(&found["efficiency"], 1.0 / 8.0), "{found:#}");
    // Four of eight wait for 100 of 200 us.
    let (found, _) = diagnosis(EXANEST, late_sender, false);
    assert!(near(&found["share"], 0.25), "{found:#}");
}

/// The example with the same programs as real processes; `None`: without MPICH the test is skipped.
fn slow(folder: &Path) -> Option<PathBuf> {
    let compiler = root().join("build/venv/bin/mpicc");
    if !compiler.exists() {
        skip("no MPICH in build/venv; `make test` installs it");
        return None;
    }
    let program = folder.join("slow");
    let flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
    let source = root().join("examples/slow.c");
    assert!(Command::new(compiler).args(flags).arg(&program).arg(source).status().unwrap().success());
    provider();
    Some(program)
}

/// Catches a pattern that is found in simulated ranks alone, and a run without computation whose head is
/// silent about it.
#[test]
fn real_programs_are_diagnosed_alike() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = slow(folder.path()) else { return };
    let (out, explain) = (
        folder.path().join("out"),
        ["explain", folder.path().join("out").to_str().unwrap()].map(String::from),
    );
    let explain: Vec<&str> = explain.iter().map(String::as_str).collect();
    for (name, machine) in [
        ("late-sender", "exanest"),
        ("late-receiver", "exanest"),
        ("serial-chain", "exanest"),
        ("imbalance", "exanest"),
        ("wait-at-collective", "exanest"),
        ("hot-link", "exanest"),
        ("small-messages", "exanest"),
        ("no-overlap", "bxi3-fattree"),
    ] {
        for good in [&[][..], &["good"]] {
            let options = ["-m", machine, "-n", "8", "--ppn", "1", "--force", "-o", out.to_str().unwrap()];
            let ran = run(&options, &program, &[&[name], good].concat());
            assert!(ran.status.success(), "{name}: {}", texts(&ran).1);
            let document = json(&[&explain[..], &["--json"]].concat());
            let found = &document["runs"][0]["diagnosis"];
            let expected = if good.is_empty() { Value::from(name) } else { Value::Null };
            assert_eq!(found["pattern"], expected, "{name} {good:?}: {found:#}");
            assert!(document["note"].as_str().unwrap().contains("--host none"), "{document}");
            let text = String::from_utf8(weft(&explain).stdout).unwrap();
            let head: Vec<&str> = text.lines().take(3).collect();
            assert_eq!(head[0], found["sentence"].as_str().unwrap());
            assert!(head[1].contains("--host none") && head[1].contains("--host cpu"), "{text}");
        }
    }
}

/// Catches a report that asks for a second run where `run.json` has the verdict.
#[test]
fn a_report_of_a_real_program_has_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = slow(folder.path()) else { return };
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let options = ["-m", "exanest", "-n", "8", "--ppn", "1", "-o", out];
    assert!(run(&options, &program, &["late-sender"]).status.success());
    let (text, page, path) = report(out, &[]);
    let sentence = path["verdict"].as_str().unwrap();
    assert!(sentence.starts_with("Late sender: "), "{sentence}");
    assert!(text.contains(sentence) && page.contains(sentence), "{text}");
}

/// Catches a note that computation counts no time where it is measured.
#[test]
fn measured_computation_needs_no_note() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = slow(folder.path()) else { return };
    let out = folder.path().join("out");
    let options = ["-m", "exanest", "-n", "8", "--host", "cpu", "-o", out.to_str().unwrap()];
    assert!(run(&options, &program, &["late-sender"]).status.success());
    let text = String::from_utf8(weft(&["explain", out.to_str().unwrap()]).stdout).unwrap();
    assert!(text.starts_with("Late sender: ") && !text.contains("--host none"), "{text}");
    assert!(text.lines().nth(1).unwrap().starts_with("Parallel efficiency "), "{text}");
}

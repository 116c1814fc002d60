//! Where weft meets what it does not control: files of the user, standard error, other processes, Ctrl-C.

use crate::common::{refused, weft};
use crate::waiting::{press_ctrl_c, wait_until, wait_until_used};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::Op;
use weft_units::{RankId, Span};

/// Traffic that is simulated at once.
const TRAFFIC: [&str; 8] = ["traffic", "-m", "bxi3-fattree", "--load", "0.3", "--time", "5us", "--quiet"];

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A trace of two ranks that compute.
fn trace(path: &Path) {
    let header = TraceHeader { ranks: 2, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    for rank in 0..2 {
        writer.begin_rank(RankId(rank)).unwrap();
        writer.push(&Op::Compute { span: Span::from_us(20) }).unwrap();
    }
    writer.finish().unwrap();
}

/// Catches a timeline that destroys a file of the user: results with `--force` only, inputs never.
#[test]
fn a_timeline_takes_the_place_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, map) = (folder.path().join("m.toml"), folder.path().join("map"));
    let (one, mine) = (folder.path().join("one.weft"), folder.path().join("mine.json"));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/exanest.toml");
    fs::copy(shipped, &machine).unwrap();
    fs::write(&map, "0\n1\n").unwrap();
    fs::write(&mine, "mine").unwrap();
    trace(&one);
    let before = [&machine, &map, &one].map(|path| fs::read(path).unwrap());

    let replay = ["replay", "-m", text(&machine), "--map", text(&map), text(&one), "--quiet", "--timeline"];
    for input in [&machine, &map, &one] {
        for force in [&[][..], &["--force"]] {
            let error = refused(&with(&with(&replay, &[text(input)]), force));
            assert!(error.contains("which this run reads"), "{error}");
        }
    }
    assert_eq!([&machine, &map, &one].map(|path| fs::read(path).unwrap()), before);

    let error = refused(&with(&TRAFFIC, &["--timeline", text(&mine)]));
    assert!(error.contains("mine.json exists") && error.contains("--force"), "{error}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    let out = folder.path().join("out");
    let within = out.join("links.parquet");
    let error = refused(&with(&TRAFFIC, &["-o", text(&out), "--timeline", text(&within), "--force"]));
    assert!(error.contains("lies in the directory of --output"), "{error}");
    assert!(!out.exists());

    let output = weft(&with(&TRAFFIC, &["--timeline", text(&mine), "--force"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    assert!(fs::read_to_string(&mine).unwrap().starts_with('{'));
}

/// Catches a message that ends weft, or changes how it ends, because nobody takes it.
#[test]
fn a_standard_error_that_takes_nothing_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let traffic = ["traffic", "-m", "bxi3-fattree", "--load", "0.3", "--time", "5us", "-o", text(&out)];
    for (words, status) in [
        (&traffic[..], 0),
        (&["rerun", text(&out)], 0),
        (&["machine", "check", "nope"], 2),
        (&["--bogus"], 2),
        (&["run", "-m", "exanest", "-n", "2", "--", "/no/such/program"], 2),
    ] {
        let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (reader, gone) = std::io::pipe().unwrap();
        drop(reader);
        for error in [Stdio::from(full()), Stdio::from(gone)] {
            if words == traffic && out.exists() {
                fs::remove_dir_all(&out).unwrap();
            }
            let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
            let output = command.args(words).stdout(Stdio::null()).stderr(error).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{words:?}");
        }
    }
}

/// Catches two runs of which one destroys the other's results.
#[test]
fn the_second_weft_in_a_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let long = ["traffic", "-m", "bxi3-fattree", "--load", "0.5", "--time", "100ms", "--quiet"];
    let mut first = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(with(&long, &["-o", text(&out)]))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("its request", || {
        assert!(first.try_wait().unwrap().is_none(), "it has ended");
        out.join(".weft/request.json").exists()
    });
    let error = refused(&with(&TRAFFIC, &["-o", text(&out), "--force"]));
    let expected = format!("another weft (process {}) writes into {}", first.id(), out.display());
    assert!(error.contains(&expected), "{error}");
    first.kill().unwrap();
    first.wait().unwrap();
    let output = weft(&with(&TRAFFIC, &["-o", text(&out), "--force"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
}

/// Catches a rerun that blames weft for files that somebody else has changed.
#[test]
fn a_rerun_looks_at_the_files_first() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    assert!(weft(&with(&TRAFFIC, &["-o", text(&out)])).status.success());
    let manifest = fs::read_to_string(out.join("run.json")).unwrap();
    let edited = manifest.replacen("\"ended\": \"finished\"", "\"ended\": \"finished\" ", 1);
    assert_ne!(edited, manifest);
    fs::write(out.join("run.json"), edited).unwrap();
    let error = refused(&["rerun", text(&out), "--quiet"]);
    assert!(error.contains("run.json is not the file that weft wrote"), "{error}");
    fs::write(out.join("run.json"), manifest).unwrap();
    fs::remove_file(out.join("links.parquet")).unwrap();
    let error = refused(&["rerun", text(&out), "--quiet"]);
    assert!(error.contains("links.parquet is missing"), "{error}");
}

/// Catches devices that are read until memory ends.
#[test]
fn what_has_no_end_is_refused() {
    for words in [
        &["trace", "info", "/dev/zero"] as &[&str],
        &["trace", "stats", "/dev/zero"],
        &["replay", "-m", "exanest", "/dev/zero"],
    ] {
        let error = refused(words);
        assert!(error.contains("/dev/zero") && error.contains("not a regular file"), "{error}");
    }
    let error = refused(&["osu", "latency", "-m", "exanest", "--sizes", "8", "--map", "/dev/zero"]);
    assert!(error.contains("longer than 64 MiB"), "{error}");
    let error = refused(&["traffic", "-m", "exanest", "--scenario", "/dev/zero"]);
    assert!(error.contains("longer than 16 MiB"), "{error}");
    let error = refused(&["sweep", "/dev/zero"]);
    assert!(error.contains("longer than 16 MiB"), "{error}");
}

/// Catches a program that is not found for want of a PATH, and is said to lack its interpreter.
#[test]
fn a_missing_path_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy("/bin/sh", folder.path().join("program")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["run", "-m", "exanest", "-n", "2", "--", "program"])
        .current_dir(folder.path())
        .env_remove("PATH")
        .output()
        .unwrap();
    let (_, error) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("program was not found: PATH, whose folders are searched, is not set"), "{error}");
}

/// Catches one flipped bit that gives another run time.
#[test]
fn a_damaged_trace_is_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.weft");
    trace(&path);
    let mut bytes = fs::read(&path).unwrap();
    let before_footer = bytes.len() / 8;
    bytes[before_footer] ^= 1;
    fs::write(&path, bytes).unwrap();
    for words in [&["replay", "-m", "exanest", text(&path)] as &[&str], &["trace", "stats", text(&path)]] {
        assert!(refused(words).contains("one.weft: damaged: the checksum of its rows"));
    }
}

/// Catches a launcher that is started once for each rank.
#[test]
fn launchers_are_left_out() {
    for launcher in ["mpiexec", "/usr/bin/mpirun", "srun", "orterun"] {
        let error = refused(&["run", "-m", "exanest", "-n", "2", "--", launcher, "-n", "2", "./a"]);
        assert!(error.contains("weft starts the ranks itself: leave "), "{error}");
    }
}

/// Catches an interruption that looks like bad input.
#[test]
fn ctrl_c_in_validate_ends_with_130() {
    for vary in [&[][..], &["--vary", "--threads", "2"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
            .args(with(&["validate"], vary))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It simulates: comparing every row takes many times as long. Once a run is interrupted, no later one
        // is begun.
        wait_until_used(&mut child, 0.5);
        press_ctrl_c(&child);
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{error}");
    }
}

/// Catches rows of scenarios, whose size is a file's name, that end the variation of constants.
#[test]
fn constants_are_varied_for_scenarios_too() {
    let words = ["validate", "--vary", "--threads", "2", "--quiet", "--only", "acc-new-shares-stop"];
    let (report, _) = said(&weft(&words));
    let varied =
        report.lines().any(|line| line.starts_with("links.") && line.contains("acc-new-shares-stop"));
    assert!(varied, "{report}");
}

/// Catches rows that look measured, and a report that hides what links have lost.
#[test]
fn traffic_says_what_its_numbers_are_of() {
    let run = |more: &[&str]| said(&weft(&with(&["traffic", "-m", "bxi3-fattree", "--quiet"], more))).0;
    let nothing = run(&["--load", "0.1", "--size", "16M", "--time", "20us"]);
    assert!(
        nothing.contains("16M at load 0.100: no message was delivered in 20us: --time 2ms\n"),
        "{nothing}"
    );
    let nothing = run(&["--load", "0.1", "--size", "100T"]);
    assert!(nothing.contains("no message was sent in 100us: a smaller --size"), "{nothing}");
    let lossy = ["--load", "0.3", "--time", "20us", "--set", "faults=[{drop=100000}]"];
    let lossy = run(&lossy);
    let line = lossy.lines().find(|line| line.contains("links lost")).expect(&lossy);
    assert!(line.starts_with("256 at load 0.300: links lost ") && line.ends_with(" %)"), "{line}");
    let all = run(&["--load", "0.3", "--time", "20us"]);
    assert!(!all.contains("lost") && !all.contains("no message"), "{all}");
}

/// Catches a machine that checks, and that no command runs.
#[test]
fn a_machine_that_cannot_run_does_not_check() {
    for set in ["links.default.rate=1b/s", "links.default.framing=1G"] {
        let error = refused(&["machine", "check", "communication-ip", "--set", set]);
        assert!(error.contains("packet.payload: a packet of "), "{set}: {error}");
    }
    // ACC wants one way for each flow, and the routing chooses among several.
    let controlled = refused(&["machine", "check", "bxi3-dragonfly", "--set", "congestion.kind=acc"]);
    assert!(controlled.contains("needs one way for each flow"), "{controlled}");
    let unknown = ["machine", "check", "exanest", "--set", "faults=[{of=\"nowhere\"}]"];
    assert!(!weft(&unknown).status.success());
}

/// Catches a command that waits for ever for somebody to write.
#[test]
fn a_pipe_without_a_writer_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(refused(&["trace", "info", text(&pipe)]).contains("not a regular file"));
}

/// Catches a limit of file sizes that kills weft without a word, that has the status of bad input, or that
/// leaves half of something behind.
#[test]
fn a_limit_of_file_sizes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let [timeline, drawing, pages] = ["t.json", "m.svg", "p"].map(|name| folder.path().join(name));
    let kept = ["-o", text(&out), "--tables", "messages,flows,links"];
    for (blocks, options) in [("1", &kept[..]), ("40", &kept), ("4", &["--timeline", text(&timeline)])] {
        let output = Command::new("sh")
            .args(["-c", "ulimit -f $0; exec \"$@\"", blocks, env!("CARGO_BIN_EXE_weft")])
            .args(with(&TRAFFIC, options))
            .output()
            .unwrap();
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{blocks}: {error}");
        assert!(error.contains("limit of file sizes") && error.contains("ulimit -f"), "{blocks}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{blocks}: something is left");
    }
    for (words, status) in
        [(&["machine", "draw", "bxi3-fattree", "-o", text(&drawing)][..], 1), (&["pages", text(&pages)], 2)]
    {
        let limited = ["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_weft")];
        let output = Command::new("sh").args(limited).args(words).output().unwrap();
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {error}");
        assert!(error.contains("cannot write ") && !drawing.exists(), "{words:?}: {error}");
    }
}

/// Catches a run under a limit of memory that ends by a signal, or whose message does not name the limit:
/// what is estimated is refused before the run, and what the estimate misses is told.
#[test]
fn a_limit_of_memory_is_told() {
    let limited = |kilobytes: &str, words: &[&str]| {
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {kilobytes}; exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_weft"))
            .args(words)
            .output()
            .unwrap();
        (output.status.code(), said(&output))
    };
    let torus =
        ["-m", "communication-ip", "--set", "nic.model=overheads", "--set", "topology.dims=[64,64,64]"];
    let traffic = with(&["traffic", "--load", "0.1", "--time", "1us"], &torus);
    let (status, (_, error)) = limited("400000", &traffic);
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("topology.dims") && error.contains("ulimit -v; raise it"), "{error}");

    // Nothing is estimated of what is only printed.
    let names = [
        "machine",
        "names",
        "communication-ip",
        "--set",
        "nic.model=overheads",
        "--json",
        "--set",
        "topology.dims=[100,100,100]",
    ];
    let (status, (document, error)) = limited("120000", &names);
    assert_eq!(status, Some(1), "{error}");
    assert!(error.contains("no memory") && error.contains("ulimit -v"), "{error}");
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["exit_status"], 1);
}

/// Catches a report that is lost with the status of bad input: results on a full disk have that of standard
/// output on one.
#[test]
fn a_report_that_cannot_be_written_is_no_bad_input() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(TRAFFIC).stdout(full).output().unwrap();
    let (_, said) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}

/// Catches a timeline that is not what its name says.
#[test]
fn timelines_are_plain_files() {
    for (name, mend) in [("-", "/dev/stdout"), ("t.json.gz", "run.json")] {
        let error = refused(&with(&TRAFFIC, &["--timeline", name]));
        assert!(error.contains(mend), "{error}");
        assert!(!Path::new(name).exists());
    }
}

/// Catches an error at a place to which no editor can jump.
#[test]
fn errors_of_a_machine_name_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("m.toml");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/exanest.toml");
    let changed = fs::read_to_string(shipped).unwrap().replacen("[machine]", "[machine]\nfoo = 3", 1);
    fs::write(&machine, changed).unwrap();
    for words in [&["machine", "check"][..], &["traffic", "--load", "0.1", "-m"]] {
        let error = refused(&with(words, &[text(&machine)]));
        assert!(error.contains(&format!("{}:", text(&machine))), "{error}");
    }
}

/// Catches a report that is lost with status 0, since Rust puts /dev/null in the place of a closed
/// descriptor.
#[test]
fn a_closed_standard_output_is_told() {
    let shell = |command: &str, words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_weft");
        Command::new("sh").args(["-c", command, program]).args(words).output().unwrap()
    };
    for words in [&TRAFFIC[..], &["machine", "list"], &["machine", "list", "--json"], &["--help"]] {
        let output = shell("\"$0\" \"$@\" >&-", words);
        let text = said(&output).1;
        assert_eq!(output.status.code(), Some(1), "{words:?}: {text}");
        assert!(text.contains("cannot write to standard output: it is closed"), "{words:?}: {text}");
        // One that is thrown away is not closed.
        let output = shell("\"$0\" \"$@\" 1<>/dev/null", words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", said(&output).1);
    }
}

/// Catches Ctrl-C that is heard only when a machine of a million endpoints has been built.
#[test]
fn ctrl_c_ends_the_building_of_a_machine() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["traffic", "-m", "communication-ip", "--set", "topology.dims=[100,100,100]"])
        .args(["--set", "nic.model=overheads"])
        .args(["--load", "0.1", "--time", "1us"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The estimate is told before the network is built.
    assert!(lines.any(|line| line.contains("of memory")));
    press_ctrl_c(&child);
    assert!(lines.any(|line| line.contains("interrupted before there was a result")));
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

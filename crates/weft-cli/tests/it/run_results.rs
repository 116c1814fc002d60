//! The files that `weft run` leaves: results, critical paths, timelines, traces; and how it agrees with
//! simulated ranks.
//!
//! The programs need MPICH in build/venv (`make test` installs it) and are skipped where it is not there.

use crate::common::{json, refused, weft};
use crate::support::{job, run, texts};
use crate::waiting::{press_ctrl_c, wait_for_line, wait_until};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The JSON document of a run that must end well.
fn document(options: &[&str], program: &Path, arguments: &[&str]) -> Value {
    let options = [options, &["-m", "exanest", "--json"]].concat();
    let output = run(&options, program, arguments);
    let (document, said) = texts(&output);
    assert!(output.status.success(), "{document}{said}");
    serde_json::from_str(&document).unwrap()
}

fn manifest(directory: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join("run.json")).unwrap()).unwrap()
}

/// Picoseconds of a number of microseconds that was printed of a whole number of them.
fn ps(us: &Value) -> u64 {
    (us.as_f64().unwrap() * 1e6).round() as u64
}

/// Catches results that are not those of a replay, and whatever in them differs from run to run.
#[test]
fn results_and_traces_are_the_same_twice_and_those_of_a_replay() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = |number: u32| {
        let (out, trace, timeline) =
            (at(&format!("out{number}")), at(&format!("{number}.weft")), at(&format!("{number}.json")));
        let options = ["-n", "4", "--ppn", "2", "--tables", "messages,flows,links,ranks"];
        let places = ["-o", text(&out), "--record", text(&trace), "--timeline", text(&timeline)];
        let document = document(&[&options[..], &places].concat(), &program, &["talk"]);
        let names = ["run.json", "messages.parquet", "flows.parquet", "links.parquet", "ranks.parquet"];
        let mut bytes: Vec<Vec<u8>> = names.iter().map(|name| fs::read(out.join(name)).unwrap()).collect();
        bytes.extend([fs::read(&trace).unwrap(), fs::read(&timeline).unwrap()]);
        (document, bytes)
    };
    let (document, bytes) = files(1);
    let (_, again) = files(2);
    for (index, (first, second)) in bytes.iter().zip(&again).enumerate() {
        assert!(first == second, "file {index}");
    }
    let live = manifest(&at("out1"));
    assert_eq!((&live["ended"], &live["request"]["command"]), (&"finished".into(), &"run".into()));
    assert_eq!(live["totals"]["end_ps"], ps(&document["virtual_time_us"]));
    let row = &document["rows"][0];
    assert_eq!((&row["ranks"], &row["program"]), (&4.into(), &live["explained"][0]["of"]));
    assert_eq!((&row["messages"], &row["bytes"]), (&document["messages"], &document["bytes"]));
    assert_eq!(live["tables"]["messages"]["rows"], row["messages"]);
    assert_eq!(live["tables"]["ranks"]["rows"], 4);
    assert!(live["totals"]["packet_hops"].as_u64() > live["totals"]["messages"].as_u64());

    let replayed = at("replayed");
    let trace = at("1.weft");
    let tables = ["--tables", "messages,flows,links,ranks"];
    json(
        &[
            &["replay", "-m", "exanest", "--ppn", "2", text(&trace), "-o", text(&replayed), "--json"][..],
            &tables,
        ]
        .concat(),
    );
    let replay = manifest(&replayed);
    for table in ["messages", "flows", "links", "ranks"] {
        assert_eq!(live["tables"][table]["version"], replay["tables"][table]["version"], "{table}");
    }
    assert_eq!(live["tables"]["links"], replay["tables"]["links"]);

    let timeline: Value = serde_json::from_slice(&bytes[6]).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
    assert_eq!(Some(count("f")), row["messages"].as_u64());
    assert!(count("X") > 100);
    // Slices of a rank neither overlap nor go beyond its end.
    for rank in 0..4 {
        let mut slices: Vec<(u64, u64)> = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["tid"] == rank)
            .map(|event| (ps(&event["ts"]), ps(&event["ts"]) + ps(&event["dur"])))
            .collect();
        slices.sort_unstable();
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "rank {rank}");
        assert!(slices.last().unwrap().1 <= live["totals"]["end_ps"].as_u64().unwrap());
    }
}

/// Catches a call of MPI_Pcontrol that a run does not see, and what lies outside of the region in its report,
/// breakdown or explanation; and a replay of it that says otherwise.
#[test]
fn a_run_reports_what_lies_in_a_region() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (out, trace, timeline) =
        (folder.path().join("out"), folder.path().join("run.weft"), folder.path().join("timeline.json"));
    let files = ["-o", text(&out), "--record", text(&trace), "--timeline", text(&timeline)];
    let options = [&["-n", "3", "--ppn", "1", "--region", "1", "--breakdown"][..], &files].concat();
    let arguments = ["regions", "4000", "5"];
    let run = document(&options, &program, &arguments);
    let whole = document(&["-n", "3", "--ppn", "1"], &program, &arguments);
    assert_eq!(run["virtual_time_us"], whole["virtual_time_us"]);
    let row = &run["rows"][0];
    let region = &row["region"];
    assert_eq!((&region["openings"], &row["messages"]), (&6.into(), &30.into()), "{row}");
    assert_eq!(region["program_run_time_us"], run["virtual_time_us"]);
    let classes = row["breakdown"].as_array().unwrap();
    assert_eq!(classes.iter().map(|class| class["messages"].as_u64().unwrap()).sum::<u64>(), 30);
    for rank in region["by_rank"].as_array().unwrap() {
        // It sleeps for 10 us in each opening.
        assert_eq!((ps(&rank["computation_us"]), &rank["closed"]), (20_000_000, &true.into()), "{rank}");
        assert!(rank["time_us"].as_f64().unwrap() < 400.0, "{rank}");
    }
    let explained = json(&["explain", text(&out), "--region", "1", "--json"]);
    let inside = &explained["runs"][0];
    let time: u64 = inside["critical_path"].as_array().unwrap().iter().map(|row| ps(&row["time_us"])).sum();
    assert_eq!((time, &inside["region"]), (ps(&row["run_time_us"]), &1.into()));
    assert_eq!(json(&["explain", text(&out), "--json"])["runs"][0]["to_us"], run["virtual_time_us"]);
    assert!(refused(&["explain", text(&out), "--region", "2"]).contains("weft run --region 2"));
    let timeline: Value = serde_json::from_str(&fs::read_to_string(timeline).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["name"] == "region 1").count(), 6);
    let replayed = json(&["replay", "-m", "exanest", text(&trace), "--ppn", "1", "--region", "1", "--json"]);
    let replay = &replayed["rows"][0];
    assert_eq!((&replay["region"]["openings"], &replay["bytes"]), (&6.into(), &row["bytes"]));
    let (run_time, live) = (replay["run_time_us"].as_f64().unwrap(), row["run_time_us"].as_f64().unwrap());
    assert!((run_time / live - 1.0).abs() < 0.1, "{run_time} {live}");
}

/// Catches a run that reached a limit and cannot be explained, and one that is not said to have no end.
#[test]
fn a_run_that_reached_a_limit_is_explained_as_far_as_it_came() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ["-m", "exanest", "-n", "2", "--time-limit", "300us", "-o", text(&out)];
    assert!(!run(&options, &program, &["ping-pong", "1000", "100000"]).status.success());
    let explained = json(&["explain", text(&out), "--json"]);
    assert_eq!(explained["ended"], "limit-reached");
    let whole = &explained["runs"][0];
    let sum = |rows: &Value| rows.as_array().unwrap().iter().map(|row| ps(&row["time_us"])).sum::<u64>();
    assert_eq!(sum(&whole["critical_path"]), ps(&whole["to_us"]), "{whole}");
    assert!((250e6..302e6).contains(&(ps(&whole["to_us"]) as f64)), "{whole}");
    assert_eq!(whole["ranks"].as_array().unwrap().len(), 2);
}

/// Catches time that is in no category or in two, computation where there is none, and the reverse.
#[test]
fn the_critical_path_adds_up_to_the_run() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (number, options, arguments, computes) in [
        (0, &["-n", "5", "--ppn", "2"][..], &["talk"][..], false),
        (1, &["-n", "2", "--set", "nic.model=overheads"], &["ping-pong", "100000", "10"], false),
        (2, &["-n", "3", "--host", "fixed:300ns"], &["allreduce", "700", "10"], true),
        (3, &["-n", "3"], &["sleeps"], true),
        (4, &["-n", "2", "--set", "fabric.kind=ideal"], &["ping-pong", "8", "10"], false),
    ] {
        let out = folder.path().join(number.to_string());
        let run = document(&[options, &["-o", text(&out)]].concat(), &program, arguments);
        let explained = json(&["explain", text(&out), "--json"]);
        let end = ps(&run["virtual_time_us"]);
        let sum = |rows: &Value, category: Option<&str>| -> u64 {
            let rows = rows.as_array().unwrap().iter();
            rows.filter(|row| category.is_none_or(|name| row["category"] == name))
                .map(|row| ps(&row["time_us"]))
                .sum()
        };
        let whole = &explained["runs"][0];
        assert_eq!((ps(&whole["from_us"]), ps(&whole["to_us"])), (0, end), "{arguments:?}");
        assert_eq!(sum(&whole["critical_path"], None), end, "{arguments:?}");
        assert_eq!(sum(&whole["own_time"], None), end, "{arguments:?}");
        assert_eq!(sum(&whole["critical_path"], Some("late partner")), 0);
        assert_eq!(sum(&whole["critical_path"], Some("computation")) > 0, computes, "{arguments:?}");
        for category in ["software", "interface"] {
            assert!(sum(&whole["critical_path"], Some(category)) > 0, "{arguments:?}: {category}");
        }
        if arguments == ["sleeps"] {
            // The last rank sleeps for 300 us, and the others wait for it.
            assert_eq!(sum(&whole["critical_path"], Some("computation")), 300_000_000);
            let first = &whole["ranks"][0];
            assert!(sum(&first["categories"], Some("late partner")) > 150_000_000, "{first}");
        }
        for rank in whole["ranks"].as_array().unwrap() {
            assert_eq!(sum(&rank["categories"], None), ps(&rank["time_us"]), "{rank}");
        }
    }
}

/// Catches a recording that takes virtual time, leaves computation out, or replays as another program.
#[test]
fn a_recorded_run_replays_in_the_same_time() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("r.weft");
    for (options, arguments) in [
        (&["-n", "2", "--ppn", "1"][..], &["ping-pong", "0", "300"][..]),
        (&["-n", "2", "--ppn", "1"], &["ping-pong", "64", "300"]),
        (&["-n", "2", "--ppn", "1"], &["ping-pong", "4096", "300"]),
        (&["-n", "2", "--ppn", "1"], &["ping-pong", "65536", "100"]),
        (&["-n", "4", "--ppn", "1"], &["ring", "64", "200"]),
        (&["-n", "4", "--ppn", "1"], &["ring", "4096", "100"]),
        (&["-n", "4", "--ppn", "1"], &["tests", "4096", "200"]),
        (&["-n", "4", "--ppn", "1"], &["tests", "20000", "100"]),
        (&["-n", "8", "--ppn", "1"], &["alltoall", "8", "200"]),
        (&["-n", "8", "--ppn", "4"], &["allreduce", "64", "50"]),
        (&["-n", "8", "--ppn", "4"], &["allreduce", "4096", "50"]),
    ] {
        let alone = document(options, &program, arguments);
        let recorded =
            document(&[options, &["--record", text(&trace), "--force"]].concat(), &program, arguments);
        assert_eq!(alone["virtual_time_us"], recorded["virtual_time_us"], "{arguments:?}");
        let ppn = options[3];
        let replay = json(&["replay", "-m", "exanest", "--ppn", ppn, text(&trace), "--json"]);
        let (live, again) = (
            recorded["virtual_time_us"].as_f64().unwrap(),
            replay["rows"][0]["run_time_us"].as_f64().unwrap(),
        );
        assert!((again / live - 1.0).abs() < 0.02, "{arguments:?}: {live} us, replayed {again} us");
    }
    // The machine's own library, if that is asked for.
    let own = ["--set", "messaging.profile=exanest", "--set", "messaging.reduction_rate=10Gb/s"];
    let words = ["replay", "-m", "exanest", "--ppn", "4", text(&trace), "--json"];
    let [as_it_ran, by_exanest] = [&[][..], &own].map(|own| json(&[&words[..], own].concat()));
    let time = |answer: &Value| answer["rows"][0]["run_time_us"].as_f64().unwrap();
    assert!((time(&by_exanest) / time(&as_it_ran) - 1.0).abs() > 0.02, "{by_exanest}");
    // What the host model charges is in the trace: 300 ns before each of at least two calls of each round and
    // rank.
    document(
        &["-n", "2", "--host", "fixed:300ns", "--record", text(&trace), "--force"],
        &program,
        &["ping-pong", "8", "100"],
    );
    let replay = json(&["replay", "-m", "exanest", text(&trace), "--json"]);
    let row = &replay["rows"][0];
    let computed = row["computation_share"].as_f64().unwrap() * row["run_time_us"].as_f64().unwrap();
    assert!((120.0..400.0).contains(&computed), "{row}");
    let existing = run(&["-m", "exanest", "-n", "2", "--record", text(&trace)], &program, &["talk"]);
    assert_eq!((existing.status.code(), texts(&existing).1.contains("--force")), (Some(2), true));
}

/// Catches puts and gets that are missing from sums, tables and breakdowns.
#[test]
fn one_sided_data_is_in_the_results() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ["-n", "2", "--ppn", "1", "--breakdown", "-o", text(&out), "--tables", "messages"];
    let document = document(&options, &program, &["one-sided", "100000", "3"]);
    // Three puts and three gets of each rank, and what fences say.
    let bytes = document["bytes"].as_u64().unwrap();
    assert!((1_200_000..1_210_000).contains(&bytes), "{bytes}");
    let classes = document["rows"][0]["breakdown"].to_string();
    assert!(classes.contains("100000") || classes.contains("131072"), "{classes}");
    let totals = &manifest(&out)["totals"];
    assert_eq!(totals["payload_bytes"].as_u64(), Some(bytes), "{totals}");
}

/// Catches results that are lost, or taken for whole, where a rank dies or the run is cut.
#[test]
fn what_was_simulated_before_a_bad_end_is_kept() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (what, options, ended, status) in [
        ("crash", &[][..], "rank-failed", 128 + 11),
        ("abort", &[], "rank-failed", 5),
        ("deadlock", &[], "deadlock", 1),
        ("talk", &["--time-limit", "30us"], "limit-reached", 1),
    ] {
        let (out, trace) = (folder.path().join(what), folder.path().join(format!("{what}.weft")));
        let options =
            [&["-m", "exanest", "-n", "2", "-o", text(&out), "--record", text(&trace)][..], options].concat();
        let output = run(&options, &program, &[what]);
        assert_eq!(output.status.code(), Some(status), "{}", texts(&output).1);
        let kept = manifest(&out);
        assert_eq!(kept["ended"], ended);
        assert_eq!(kept["tables"]["ranks"]["rows"], 2);
        assert!(kept["totals"]["messages"].as_u64().unwrap() > 0, "{kept}");
        assert!(!out.join(".weft").exists());
        let explained = json(&["explain", text(&out), "--json"]);
        assert_eq!((&explained["ended"], explained["runs"].as_array().unwrap().len()), (&ended.into(), 1));
        let info = weft(&["trace", "info", text(&trace)]);
        assert!(info.status.success());
        assert!(String::from_utf8_lossy(&info.stdout).contains("interrupted"), "{what}");
    }
    let said = refused(&["rerun", text(&folder.path().join("crash"))]);
    assert!(said.contains("give the command again"), "{said}");
}

/// A run of two ranks that never ends by itself.
fn spinning(program: &Path, options: [&str; 2]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["run", "-m", "exanest", "-n", "2"])
        .args(options)
        .arg("--")
        .arg(program)
        .arg("spin")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Catches a Ctrl-C that leaves nothing, or half of it.
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut weft = spinning(&program, ["-o", text(&out)]);
    wait_for_line(&mut weft, "rank 1 spins");
    press_ctrl_c(&weft);
    assert_eq!(weft.wait().unwrap().code(), Some(130));
    assert_eq!(manifest(&out)["ended"], "interrupted");
}

/// Catches a timeline that looks whole and is half written.
#[test]
fn a_timeline_has_its_name_when_it_is_whole() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("t.json"), folder.path().join("t.json.part"));
    let mut weft = spinning(&program, ["--timeline", text(&whole)]);
    wait_until("the part of a timeline", || part.exists());
    assert!(!whole.exists());
    weft.kill().unwrap();
    weft.wait().unwrap();
    assert!(!whole.exists());
    let output = run(&["-m", "exanest", "-n", "2", "--timeline", text(&whole)], &program, &["talk"]);
    assert!(output.status.success(), "{}", texts(&output).1);
    serde_json::from_str::<Value>(&fs::read_to_string(&whole).unwrap()).unwrap();
    assert!(!part.exists());
}

/// Catches a real rank that pays for seeing what it waits for, beside taking it: the latency of real ranks is
/// that of `weft osu latency`, within 0.2 % where empty polls and calls that wait cost nothing, within 1 % on
/// the machine as it is.
#[test]
fn real_and_simulated_ranks_have_the_same_latency() {
    let Some(program) = job() else { return };
    let cheap = ["--set", "host.poll=1ns", "--set", "messaging.wait_call=0ns"];
    let sizes = ["0", "32", "64", "4096", "65536"];
    for (bytes, sets, within) in
        sizes.into_iter().flat_map(|bytes| [(bytes, &cheap[..], 0.002), (bytes, &[], 0.01)])
    {
        let output = run(
            &[&["-m", "exanest", "-n", "2", "--ppn", "1"][..], sets].concat(),
            &program,
            &["ping-pong", bytes, "100"],
        );
        let (printed, said) = texts(&output);
        let real: f64 = printed.trim().parse().unwrap_or_else(|_| panic!("{printed}{said}"));
        let sizes = format!("{bytes}:{bytes}");
        let osu =
            json(&[&["osu", "latency", "-m", "exanest", "--sizes", &sizes, "--json"][..], sets].concat());
        let simulated = osu["rows"][0]["latency_us"].as_f64().unwrap();
        assert!(
            (real / simulated - 1.0).abs() < within,
            "{bytes} B, {sets:?}: {real} us, simulated {simulated} us"
        );
    }
}

/// On the ideal network a message takes what the machine file says, and nothing else:
///
/// | | ns |
/// |---|---|
/// | send call, copy into the interface | 350 + n |
/// | interface out, header of 24 B and n B at 1 ns each, latency, interface in | 140 + 24 + n + 409 + 140 |
/// | taking it, matching one receive, copy to the user | 453 + 20 + n |
///
/// The second look at the clock, 40 ns, is in the measured time.
#[test]
fn a_ping_pong_on_the_ideal_network_is_the_closed_form() {
    let Some(program) = job() else { return };
    let mut options = vec!["-m", "exanest", "-n", "2", "--ppn", "1"];
    for set in [
        "fabric.kind=ideal",
        "ideal.rate=8Gb/s",
        "nic.model=overheads",
        "host.poll=1ns",
        "messaging.send_copy_rate=8Gb/s",
        "messaging.receive_copy_rate=8Gb/s",
    ] {
        options.extend(["--set", set]);
    }
    for bytes in [0u32, 1, 8, 19, 32] {
        let rounds = 100;
        let output = run(&options, &program, &["ping-pong", &bytes.to_string(), &rounds.to_string()]);
        let (printed, said) = texts(&output);
        let ns = 350 + 140 + 24 + 409 + 140 + 453 + 20 + 3 * bytes;
        let us = f64::from(2 * rounds * ns + 40) / f64::from(2 * rounds) / 1e3;
        assert_eq!(printed.trim(), format!("{us:.6}"), "{bytes} B: {said}");
    }
}

/// Catches a poll that is put off and not made up for, or answered otherwise than at its time, and what is
/// answered in a rank's place otherwise than it would: the library's own functions are not
/// known to be blocking calls, so that each of their polls takes its turn.
#[test]
fn polls_that_are_put_off_take_the_time_of_those_that_are_not() {
    let Some(program) = job() else { return };
    for ranks in ["2", "5", "9"] {
        let times = |own: &str| {
            let output = run(&["-m", "exanest", "-n", ranks, "--ppn", "2"], &program, &["exchange", own]);
            let (printed, said) = texts(&output);
            assert!(output.status.success(), "{said}");
            let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let put_off = times("0");
        assert!(!put_off.is_empty());
        assert_eq!(put_off, times("1"), "{ranks} ranks");
    }
}

/// Catches a full disk that ends the program, a wrong cause, and a trace of which nobody says that it is cut.
#[test]
fn a_recording_without_room_ends_alone() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("r.weft");
    let run = |blocks: u32, rounds: &str| {
        // For the ranks only: weft's own memory files count as files.
        let limited = format!("ulimit -f {blocks}; exec \"$@\"");
        let options = ["-m", "exanest", "-n", "2", "--force", "--record", text(&trace)];
        let words = ["-c", &limited, "sh", text(&program), "ping-pong", "8", rounds];
        let output = crate::support::run(&options, Path::new("sh"), &words);
        let (printed, said) = texts(&output);
        assert_eq!((output.status.code(), printed.lines().count()), (Some(1), 1), "{printed}{said}");
        assert!(said.contains("weft: finished: "), "{said}");
        said.lines().last().unwrap().to_owned()
    };
    // Blocks of 512 bytes: none, and one megabyte of each rank.
    let last = run(64, "10");
    assert!(last.contains("there was no room for the first megabyte"), "{last}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let last = run(2100, "60000");
    assert!(last.contains("r.weft: 2 ranks, ") && last.contains("no room for their parts"), "{last}");
    let info = json(&["trace", "info", text(&trace), "--json"]);
    assert_eq!(info["interrupted"], true);
    assert!(info["operations"].as_u64().unwrap() > 10_000, "{info}");
}

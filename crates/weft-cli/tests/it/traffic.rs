//! `weft traffic` and what belongs to it: rerun, save and resume, Ctrl-C.

use crate::common::{json, number, refused, weft};
use crate::waiting::{press_ctrl_c, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weft_results::{Digest, Stopwatch, digest};

/// The row of a run of one load.
fn row(case: &str) -> Value {
    json(&words(&format!("traffic {case} --quiet --json")))["rows"][0].clone()
}

/// Catches a limit that is taken from the machine's name, or that is another block's: each case has one that
/// is scarce.
#[test]
fn a_row_says_which_block_is_the_limit() {
    for (case, part, block) in [
        ("-m exanest --load 0.02 --time 50us", "host", "offered load"),
        ("-m exanest --load 0.06", "interface", "co-processor"),
        ("-m exanest --load 0.3 --layer fabric --time 50us", "fabric", "switches"),
        ("-m exanest --load 0.2 --size 16K --time 2ms --set nic.memory.rate=1Gb/s", "host", "memory"),
        ("-m exanest --load 0.9 --layer fabric --pattern incast --time 50us", "fabric", "link endpoint"),
        (
            "-m communication-ip --load 1.0 --time 50us --set nic.intra_node.ports=1",
            "interface",
            "aggregator",
        ),
        (
            "-m communication-ip --load 1.0 --time 50us --set nic.model=overheads \
             --set nic.packet_receive=1us",
            "interface",
            "receiving",
        ),
        ("-m communication-ip --load 0.3 --time 50us", "host", "offered load"),
    ] {
        let row = row(case);
        let limit = &row["limit"];
        assert_eq!((&limit["part"], &limit["block"]), (&part.into(), &block.into()), "{case}: {row}");
        assert_eq!(row["saturated"], Value::from(block != "offered load"), "{case}: {row}");
        assert!(
            row["busiest"]["busy"].as_f64().is_some_and(|busy| busy > 0.0 && busy <= 1.0),
            "{case}: {row}"
        );
    }
}

/// Catches a switch of `bxi3-fattree` that loses what its crossbar should pass: it accepts all of uniform
/// traffic that is offered, where plain input queues block at the heads of their queues.
#[test]
fn combined_queues_accept_what_input_queues_block() {
    let accepted = |more: &str| {
        let case = "-m bxi3-fattree --set topology.k=8 --pattern uniform --layer fabric --load 0.9 --size 4K";
        let row = row(&format!("{case} --time 50us --check {more}"));
        row["accepted_load"].as_f64().unwrap()
    };
    let (combined, plain) = (accepted(""), accepted("--set switch.kind=input-queued"));
    assert!(combined > 0.87, "{combined}");
    assert!(plain < 0.7, "{plain}");
    assert_eq!(combined, accepted("--threads 3"));
}

/// Catches a layer that is not past the interface: on the same fabric an interface that costs nothing accepts
/// the same, also where the machine's own is the limit.
#[test]
fn the_fabric_layer_is_past_the_interface() {
    let free = "--set nic.model=overheads --set nic.message_send=0ns --set nic.write_start=0ns \
                --set nic.message_receive=0ns --set nic.concurrent_messages=1";
    let accepted = |more: &str| {
        let row = row(&format!("-m exanest --load 0.07 --time 50us {more}"));
        (row["accepted_load"].as_f64().unwrap(), row["latency_mean_ns"].as_f64().unwrap())
    };
    let fabric = accepted("--layer fabric");
    assert_eq!(fabric, accepted(free));
    assert!(fabric.0 > 1.5 * accepted("").0, "{fabric:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    run_into(&path, "-m exanest --load 0.07 --layer fabric", "10us", "");
    let manifest = std::fs::read_to_string(path.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["request"]["layer"], "fabric");
    let again = json(&["rerun", path.to_str().unwrap(), "--quiet", "--json"]);
    assert_eq!(again["same"], true);
}

/// Machines and what is put on them, with a time that takes few seconds.
const CASES: [(&str, &str); 6] = [
    ("-m communication-ip --set topology.dims=[8,8,8] --pattern uniform --load 0.6 --size 256", "4us"),
    (
        "-m exanest --set nic.model=overheads --pattern tornado --load 0.9 --load-of capacity --size 300",
        "8us",
    ),
    ("-m exanest --pattern uniform --load 0.02:0.1:0.08 --size 64", "20us"),
    ("-m bxi3-dragonfly --pattern hotspot --load 0.2:0.4:0.2 --size 5000", "4us"),
    (
        "-m bxi3-fattree --set topology.k=6 --set topology.n=3 --pattern permutation --load 0.5 --seeds 2",
        "4us",
    ),
    ("-m exanest --set nic.model=overheads --set fabric.kind=ideal --pattern all-to-all --load 0.3", "8us"),
];

const TABLES: &str = "--tables messages,flows,links,ranks --quiet";

/// Catches a run that ends before all messages have come or after, and one that depends on threads; with two
/// messages for everyone it takes about twice as long.
#[test]
fn a_run_of_so_many_messages_ends_when_all_have_come() {
    let case = "-m bxi3-fattree --pattern permutation --size 64K";
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    for messages in [1, 2] {
        let directory = |threads: u32| folder.path().join(format!("{messages}-{threads}"));
        let run = |threads: u32| {
            let out = directory(threads);
            let command =
                format!("traffic {case} --messages {messages} --threads {threads} --quiet --json -o");
            json(&[&words(&command)[..], &[out.to_str().unwrap()]].concat())
        };
        let row = run(1)["rows"][0].clone();
        assert_eq!(run(3)["rows"][0]["run_time_us"], row["run_time_us"]);
        assert_eq!(digest(&directory(1)).unwrap(), digest(&directory(3)).unwrap());
        assert_eq!(row["messages"], Value::from(256 * messages), "{row}");
        assert_eq!((&row["offered_load"], &row["saturated"]), (&Value::Null, &Value::from(false)));
        assert_ne!(row["limit"]["block"], "offered load", "{row}");
        let time = row["run_time_us"].as_f64().unwrap();
        // 64 KB in packets of 4 KB with an envelope of 68 B at 400 Gb/s; no message is later than the last.
        let line = f64::from(messages) * 16.0 * (4096.0 + 68.0) * 8.0 / 400e3;
        let slowest = row["latency_p99_ns"].as_f64().unwrap() / 1000.0;
        assert!(time > line && slowest <= 1.001 * time, "{row}");
        times.push(time);
    }
    assert!((1.5..2.5).contains(&(times[1] / times[0])), "{times:?}");
    for (wrong, mend) in [("--load 0.3", "--load"), ("--time 1us", "--time"), ("--warm-up 1us", "--warm-up")]
    {
        let command = format!("traffic {case} --messages 1 {wrong}");
        let said = refused(&words(&command));
        assert!(said.contains("cannot be used with") && said.contains(mend), "{said}");
    }
    let said = refused(&words("traffic -m bxi3-fattree --messages 4000000000 --size 4G"));
    assert!(said.contains("fewer or smaller"), "{said}");
}

/// The text of a machine whose topology is the graph of a file.
fn graph_machine(file: &str, more: &str) -> String {
    let assumed = |value: &str| format!("{{ value = {value}, kind = \"assumed\", how = \"a test\" }}");
    let shipped = json(&["machine", "show", "bxi3-fattree", "--json"]);
    let values = shipped["values"].as_array().unwrap().iter();
    let mut text = "[machine]\nname = \"mine\"\ntitle = \"a graph\"\n".to_owned();
    let mut section = String::new();
    text += &format!(
        "[topology]\nkind = {}\nfile = {}\n{more}\n",
        assumed("\"graph\""),
        assumed(&format!("{file:?}"))
    );
    for value in values {
        let (key, value) = (value["key"].as_str().unwrap(), value["value"].as_str().unwrap());
        let (table, key) = key.rsplit_once('.').unwrap();
        // The link layer brings these three by itself.
        let is_of_protocol = table == "links.default" && ["code", "framing", "fec"].contains(&key);
        if table == "topology" || table == "links.tree" || is_of_protocol {
            continue;
        }
        if table != section {
            section = table.to_owned();
            text += &format!("[{table}]\n");
        }
        let number = value.parse::<u64>().is_ok() || value == "true" || value == "false";
        text +=
            &format!("{key} = {}\n", assumed(&if number { value.to_owned() } else { format!("{value:?}") }));
    }
    text
}

/// Catches a graph that is found from one folder only, a result that needs the file of its machine, and a
/// graph that runs otherwise on more threads.
#[test]
fn a_graph_runs_from_any_folder_and_again_without_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, edges) = (folder.path().join("mine.toml"), folder.path().join("net.edges"));
    std::fs::write(&machine, graph_machine("net.edges", "")).unwrap();
    std::fs::write(&edges, "a b\nb c rate=200Gb/s\nc a links=2\na endpoints=3\nb endpoints=2\nc\n").unwrap();
    let machine = machine.to_str().unwrap();
    let run = |out: &str, threads: u32| {
        let out = folder.path().join(out);
        let command = format!("traffic -m {machine} --load 0.5 --size 4K --time 20us --threads {threads}");
        let row = json(&[&words(&command)[..], &["--quiet", "--json", "-o", out.to_str().unwrap()]].concat());
        (row["rows"][0]["messages"].as_u64().unwrap(), digest(&out).unwrap())
    };
    let alone = run("one", 1);
    assert!(alone.0 > 100);
    assert_eq!(run("three", 3), alone);
    assert!(json(&["machine", "check", machine, "--json"])["deadlock_free"].as_bool().unwrap());
    std::fs::remove_file(&edges).unwrap();
    let again = json(&["rerun", folder.path().join("one").to_str().unwrap(), "--quiet", "--json"]);
    assert_eq!(again["same"], Value::from(true), "{again}");
}

/// Catches a bad graph that runs, panics or is refused without file, line and mend.
#[test]
fn a_bad_graph_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, more, expected) in [
        ("net.edges", "a b\nc d\n", "", "no way leads from"),
        ("net.edges", "a b\nb b\n", "", "net.edges:2"),
        ("net.edges", "a b\na b\n", "", "net.edges:2"),
        ("net.edges", "a b rate=fast\n", "", "net.edges:1"),
        ("net.edges", "a b\nb c\nb d\n", "radix = { value = 3, kind = \"assumed\", how = \"x\" }", "radix"),
        (
            "net.edges",
            "a b\n",
            "routing = { value = \"d-mod-k\", kind = \"assumed\", how = \"x\" }",
            "shortest-path",
        ),
        ("net.json", "{\"nodes\": [], \"links\": 3}", "", "net.json"),
        ("net.graphml", "<!DOCTYPE x [<!ENTITY a \"aaaa\">]><graphml>&a;</graphml>", "", "net.graphml"),
    ] {
        let machine = folder.path().join("mine.toml");
        std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::write(&machine, graph_machine(name, more)).unwrap();
        let said = refused(&["machine", "check", machine.to_str().unwrap()]);
        assert!(said.contains(expected), "{name} {text:?} {more}: {said}");
        assert!(said.contains("mine.toml:6") || !more.is_empty(), "{said}");
    }
}

/// Catches a pattern that spares the links between groups: minimal routing carries no more than these links,
/// and adaptive routing more.
#[test]
fn adversarial_traffic_is_hard_for_minimal_routing() {
    let accepted = |routing: &str| {
        let case = "-m bxi3-megafly --pattern adversarial --layer fabric --load 0.5 --size 4K --time 20us";
        row(&format!("{case} --set topology.routing={routing}"))["accepted_load"].as_f64().unwrap()
    };
    let (minimal, adaptive) = (accepted("minimal"), accepted("par"));
    // Five or six links for 36 endpoints of a group.
    assert!(minimal < 6.0 / 36.0 * 1.05, "{minimal}");
    assert!(adaptive > 1.5 * minimal, "{adaptive} after {minimal}");
}

/// The words of a command.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Runs a case into `directory` and returns the digest of what is there then.
fn run_into(directory: &Path, case: &str, time: &str, more: &str) -> Digest {
    let command = format!("traffic {case} --time {time} {TABLES} {more}");
    let output = weft(&[&words(&command)[..], &["-o", directory.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    digest(directory).unwrap()
}

/// Catches an interface by its blocks that never asks the sources of a pattern for their messages, small or
/// large: what it accepts is what they offer.
#[test]
fn the_block_level_interface_accepts_what_is_offered() {
    for (load, size) in [(0.002, "32"), (0.05, "16K")] {
        let command = format!("traffic -m exanest --load {load} --size {size} --time 2ms --quiet --json");
        let row = &json(&words(&command))["rows"][0];
        let accepted = row["accepted_load"].as_f64().unwrap();
        assert!((accepted / load - 1.0).abs() < 0.1, "{command}: {row}");
        assert_eq!(row["saturated"], Value::from(false), "{command}: {row}");
    }
}

/// Catches results that depend on threads: everything but performance.json is the same to the byte. And
/// credits are conserved at every epoch.
#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (case, time)) in CASES.into_iter().enumerate() {
        let directory = |threads: u32| folder.path().join(format!("{number}-{threads}"));
        let alone = run_into(&directory(1), case, time, "--check");
        for threads in [2, 3, 8] {
            let many = run_into(&directory(threads), case, time, &format!("--threads {threads}"));
            assert_eq!(many, alone, "{case} on {threads} threads");
        }
        let rerun = json(&["rerun", directory(3).to_str().unwrap(), "--quiet", "--json"]);
        assert_eq!((&rerun["same"], &rerun["digest"]), (&Value::from(true), &Value::from(alone.to_string())));
    }
}

/// Starts a case that saves its state, and presses Ctrl-C as soon as it has. Returns whether it was still
/// running then.
fn interrupted(directory: &Path, case: &str, time: &str) -> bool {
    let command = format!("traffic {case} --time {time} {TABLES} --save-every 1us --threads 2");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(words(&command))
        .args(["-o", directory.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let snapshot = directory.join(".weft/snapshot");
    wait_until("a snapshot", || snapshot.exists() || child.try_wait().unwrap().is_some());
    if child.try_wait().unwrap().is_none() {
        press_ctrl_c(&child);
    }
    child.wait().unwrap().code() == Some(130)
}

/// Catches state that is missing in a snapshot, rows that are lost or written twice, and an end by Ctrl-C
/// that cannot be read or continued.
#[test]
fn an_interrupted_run_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (case, _)) in CASES.into_iter().enumerate() {
        let time = "15us";
        let whole = run_into(&folder.path().join(format!("{number}-whole")), case, time, "");
        let directory = folder.path().join(number.to_string());
        let path = directory.to_str().unwrap();
        // Where others keep the processors busy, it may end before it is told: then once more.
        let is_interrupted = (0..20).any(|_| {
            let _ = std::fs::remove_dir_all(&directory);
            interrupted(&directory, case, time)
        });
        assert!(is_interrupted, "{case} ended before it was interrupted");
        let manifest = std::fs::read_to_string(directory.join("run.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["ended"], "interrupted");
        assert!(directory.join("messages.parquet").is_file());
        assert!(refused(&["rerun", path]).contains("--resume"));
        let output = weft(&["rerun", path, "--resume", "--quiet"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(digest(&directory).unwrap(), whole, "{case}");
    }
}

/// Catches a curve whose numbers cannot be right: accepted as offered below saturation, latency at least
/// that of an idle network and growing, and what is beyond saturation named so.
#[test]
fn a_curve_saturates_where_channels_are_full() {
    let curve = json(&words(
        "traffic -m communication-ip --set topology.dims=[8,8] --pattern tornado --load-of capacity \
         --load 0.2:1.4:0.4 --size 256 --time 100us --quiet --json",
    ));
    let rows = curve["rows"].as_array().unwrap();
    let number = |row: usize, key: &str| rows[row][key].as_f64().unwrap();
    for (row, offered) in [(0, 0.2), (1, 0.6)] {
        assert!((number(row, "accepted_load") / offered - 1.0).abs() < 0.03, "{}", rows[row]);
        assert_eq!(rows[row]["saturated"], false);
    }
    assert_eq!(rows[3]["saturated"], true);
    let most = number(3, "accepted_load");
    assert!((0.3..=1.0).contains(&most), "no more than the bound: {most}");
    // Four links between switches on tornado's longest way: 200 ns each.
    assert!(number(0, "latency_mean_ns") > 1200.0);
    assert!(number(0, "latency_p99_ns") > number(0, "latency_mean_ns"));
    assert!(number(1, "latency_mean_ns") > number(0, "latency_mean_ns"));
    assert!(number(3, "latency_mean_ns") > 2.0 * number(1, "latency_mean_ns"));
    let interval = &rows[0]["latency_mean_interval_ns"];
    assert!(interval["low"].as_f64() < interval["high"].as_f64());
    assert!(interval["low"].as_f64() < rows[0]["latency_mean_ns"].as_f64());
    // Four links between switches, injection and ejection per packet: 3 + 3 + 2.
    let hops = number(0, "packet_hops") / number(0, "messages");
    let with_warm_up = 8.0 * (1.0 + number(0, "warm_up_us") / 100.0);
    assert!((8.0..with_warm_up).contains(&hops), "warm-up is counted in hops and not in messages: {hops}");
    assert!(curve["packet_hops_per_second"].as_f64().unwrap() > 0.0);
    assert!(curve["peak_memory_bytes"].as_u64().unwrap() > 1 << 20);
}

/// Catches seeds that do not matter, and intervals of one seed's batches reported as those over seeds.
#[test]
fn seeds_give_intervals() {
    let report = json(&words(
        "traffic -m exanest --set nic.model=overheads --load 0.1 --time 20us --warm-up 5us --seed 7 \
         --seeds 4 --quiet --json",
    ));
    let row = &report["rows"][0];
    assert_eq!((row["seed"].as_u64(), row["seeds"].as_u64()), (Some(7), Some(4)));
    assert_eq!(row["warm_up_us"], 5.0);
    assert_eq!(row["batch_correlation"], Value::Null);
    for key in ["accepted_load", "latency_mean_ns", "latency_p99_ns"] {
        let interval = match key {
            "accepted_load" => &row["accepted_load_interval"],
            "latency_mean_ns" => &row["latency_mean_interval_ns"],
            _ => &row["latency_p99_interval_ns"],
        };
        let (low, high) = (interval["low"].as_f64().unwrap(), interval["high"].as_f64().unwrap());
        let value = row[key].as_f64().unwrap();
        assert!(low < value && value < high, "{key}: {low} {value} {high}");
    }
}

/// Catches a run that waits for ever, or ends well, where packets wait for each other in a circle; the same
/// machine with datelines must not end so.
#[test]
fn a_deadlock_is_reported_with_its_cycle() {
    let command = "traffic -m communication-ip --set topology.dims=[5,5] --load 1.0 --size 4K \
                   --set links.default.lanes=1 --time 200us --quiet --json";
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let more = ["--set", "topology.datelines=false", "-o", out.to_str().unwrap()];
    let output = weft(&[&words(command)[..], &more].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ended"], "deadlock");
    let detail = report["detail"].as_str().unwrap();
    assert!(detail.matches("waits for port").count() >= 3, "{detail}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(detail));
    let manifest = std::fs::read_to_string(out.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["ended"], "deadlock");
    assert_eq!(manifest["detail"], detail);
    assert_eq!(json(&words(command))["ended"], "finished");
}

/// Catches a machine that cannot stand still, and an estimate of memory that is far off.
#[test]
fn an_idle_machine_is_measured() {
    let command =
        "traffic -m communication-ip --set topology.dims=[32,32,16] --load 0 --time 1us --quiet --json";
    let row = json(&words(command))["rows"][0].clone();
    assert_eq!((&row["messages"], &row["packet_hops"]), (&Value::from(0), &Value::from(0)));
    assert_eq!((&row["latency_mean_ns"], &row["saturated"]), (&Value::Null, &Value::from(false)));
    let machine = json(&words("machine show communication-ip --set topology.dims=[32,32,16] --json"));
    let (estimate, peak) =
        (machine["memory_estimate_bytes"].as_f64().unwrap(), row["peak_memory_bytes"].as_f64().unwrap());
    assert!((0.5..2.0).contains(&(estimate / peak)), "estimated {estimate}, measured {peak}");
}

/// Catches an estimate that forgets the packets under way: those of 2 us, by the count of a run, of 900 B
/// each where the interface keeps them until they are acknowledged.
#[test]
fn packets_under_way_are_in_the_estimate() {
    let case = "traffic -m bxi3-dragonfly --time 1us --warm-up 3us --load";
    let run = |load: &str| weft(&words(&format!("{case} {load}")));
    let megabytes = |output: &Output| -> f64 {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (_, size) = said.split_once("about ").unwrap_or_else(|| panic!("{said}"));
        let size = size.split_once(" MB of memory").unwrap_or_else(|| panic!("{said}")).0;
        size.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let under_way = megabytes(&run("0.2")) - megabytes(&run("0"));
    let messages = number(&json(&words(&format!("{case} 0.2 --quiet --json")))["rows"][0], "messages");
    let counted = 2.0 * messages * 900.0 / 1e6;
    assert!((under_way / counted - 1.0).abs() < 0.1, "estimated {under_way} MB, counted {counted}");
    // Of a long message a link has no more under way than of a longer one.
    let of_size = |size: &str| {
        let case = "traffic -m bxi3-fattree --set topology.k=4 --pattern permutation --messages 1 --size";
        megabytes(&weft(&words(&format!("{case} {size}"))))
    };
    assert_eq!(of_size("512K"), of_size("1M"));
}

/// Catches an estimate without the program itself, which is most of a small run, and one that claims to know
/// what interfaces keep for endpoints that are cut off.
#[test]
fn a_small_run_takes_about_what_is_estimated() {
    let case = "traffic -m carvnet-spineleaf --load 0.05 --time 2us --warm-up 1us";
    let run = |more: &str| {
        let output = weft(&words(&format!("{case} {more}")));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = run("");
    let (_, estimate) = said.split_once("about ").unwrap_or_else(|| panic!("{said}"));
    let estimate: f64 = estimate.split_once(" MB of memory").unwrap().0.parse().unwrap();
    let row = json(&words(&format!("{case} --quiet --json")))["rows"][0].clone();
    let peak = number(&row, "peak_memory_bytes") / 1e6;
    assert!((0.75..1.33).contains(&(estimate / peak)), "estimated {estimate} MB, measured {peak}");
    let cut = run("--set faults=[{off_at=\"1us\"}]");
    assert!(cut.contains("at least ") && cut.contains(" MB of memory"), "{cut}");
}

#[test]
fn run_json_says_what_was_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let timeline = folder.path().join("timeline.json");
    let command =
        "traffic -m exanest --set nic.model=overheads --set switch.buffer=8K --load 0.1 --time 5us --quiet";
    let more = ["-o", out.to_str().unwrap(), "--timeline", timeline.to_str().unwrap()];
    assert!(weft(&[&words(command)[..], &more].concat()).status.success());
    let read =
        |path: &Path| -> Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    let manifest = read(&out.join("run.json"));
    let values = manifest["machine"]["values"].as_array().unwrap();
    let value = |path: &str| values.iter().find(|value| value["path"] == path).unwrap();
    assert_eq!(value("switch.buffer")["value"], "8K");
    assert_eq!(value("switch.buffer")["kind"], "set");
    assert!(value("packet.payload")["source"].as_str().unwrap().contains("TR-488"));
    assert!(manifest["assumed"].as_array().unwrap().iter().any(|assumed| assumed["key"] == "switch.buffer"));
    let totals = &manifest["totals"];
    assert_eq!(totals["packet_hops"], manifest["rows"][0]["packet_hops"]);
    assert!(totals["messages"].as_u64() > manifest["rows"][0]["messages"].as_u64());
    assert_eq!(manifest["ended"], "finished");
    let events = read(&timeline)["traceEvents"].as_array().unwrap().len();
    assert!(events >= 100, "two counters at 50 epochs and more: {events}");
    let performance = read(&out.join("performance.json"));
    assert!(performance["command"].as_array().unwrap().iter().any(|word| word == "exanest"));
}

#[test]
fn what_cannot_be_run_is_refused_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let traffic = |more: &str| {
        let begun = Stopwatch::start();
        let command = format!("traffic --load 0.5 --time 1us {more}");
        let said = refused(&[&words(&command)[..], &["-o", out.to_str().unwrap()]].concat());
        assert!(!out.exists(), "{more}: a refused run leaves a directory");
        assert!(begun.seconds() < 10.0, "{more}: nothing is to be built");
        said
    };
    for (more, mend) in [
        ("-m exanest --set topology.mezanines=4", "did you mean `topology.mezzanines`"),
        ("-m exanes", "did you mean `exanest`"),
        ("-m exanest --pattern tornadoo", "did you mean `tornado`"),
        ("-m exanest --pattern transpose", "such as 121; the machine has 128"),
        ("-m exanest --set topology.mezzanines=12", "sub-system"),
        ("-m exanest --pattern incast --load-of capacity", "--load-of injection"),
        ("-m communication-ip --set topology.dims=[4000,4000,4000]", "endpoints"),
        ("-m exanest --set fabric.kind=ideal --set ideal.rate=unlimited --set ideal.gap=0ns", "ideal.rate"),
        ("-m exanest --warm-up 2000000s", "--warm-up"),
        ("-m exanest --set packet.payload=2G --set switch.buffer=5G", "at most 1G"),
    ] {
        let said = traffic(more);
        assert!(said.contains(mend), "{more}: {said}");
    }
    // 45 GB and more: a computer that has them may take its time.
    if weft_units::memory::available_memory().is_some_and(|available| available.bytes < 40 << 30) {
        let said = traffic("-m communication-ip --set nic.model=overheads --set topology.dims=[256,256,255]");
        assert!(said.contains("GB of memory") && said.contains("topology.dims"), "{said}");
    } else {
        crate::skipped::leave_out("a machine without room", "the computer has 40 GB of memory to spare");
    }
}

/// Catches ordered flows of `portals` where packets choose lanes: what overtakes would be dropped and
/// repeated.
#[test]
fn portals_keeps_no_order_beside_lanes_by_room() {
    let rows = |more: &[&str]| {
        let mut words = vec!["traffic", "-m", "bxi3-fattree", "--set", "topology.k=4", "--json", "--quiet"];
        words.extend(["--set", "switch.virtual_channels=2", "--set", "switch.lane=room"]);
        words.extend(["--load", "0.6", "--size", "64K", "--time", "20us", "--warm-up", "5us"]);
        words.extend(more);
        let row = json(&words)["rows"][0].clone();
        ["latency_mean_ns", "packet_hops", "accepted_load"].map(|key| row[key].to_string())
    };
    assert_eq!(rows(&[]), rows(&["--set", "nic.transport.ordered=false"]));
}

/// Catches a BXIv3 whose messages complete no sooner than those of BXIv2 where there is little contention:
/// D1.4 §11.2 has its completion times always significantly lower, on both shapes. The twentieth is ours.
#[test]
fn bxi3_completes_sooner_than_bxi2() {
    for shape in ["fattree", "megafly"] {
        for size in ["64", "4K", "64K"] {
            let [older, newer] = ["bxi2", "bxi3"].map(|generation| {
                let case = format!("-m {generation}-{shape} --pattern uniform --load 0.02 --time 20us");
                row(&format!("{case} --size {size}"))["latency_mean_ns"].as_f64().unwrap()
            });
            assert!(newer < 0.95 * older, "{shape}, {size} B: {older} ns, {newer} ns");
        }
    }
}

//! `[[services]]` and `[[clients]]` of scenarios.

use crate::common::{group, json, number, refused, rows, weft};
use serde_json::Value;
use std::fs;
use std::path::Path;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

const MACHINE: &str = "ethernet-100g-spineleaf";
/// Columns that say how fast this computer was.
const SPEEDS: [&str; 3] = ["packet_hops_per_second", "build_time_s", "peak_memory_bytes"];
const STORE: &str = "[scenario]\ntitle = \"a store\"\ntime = \"400us\"\n\
                     [[services]]\nname = \"store\"\non = \"3\"\nservice_time = \"2us\"\nvalue = \"1K\"\n";
const CLIENTS: &str = "[[clients]]\nname = \"clients\"\nrole = \"victim\"\nof = \"store\"\n";

fn scenario(folder: &Path, text: &str) -> String {
    let path = folder.join("own.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn run(file: &str, more: &[&str]) -> Value {
    json(&[&["traffic", "-m", MACHINE, "--scenario", file, "--json", "--check"], more].concat())
}

/// Catches a request that does not take two messages as `weft osu` measures them, where messaging costs
/// nothing, and the service time.
#[test]
fn a_request_takes_two_messages_of_osu_and_the_service_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{STORE}key = \"64\"\n{CLIENTS}from = \"9\"\nrequests = 1\n");
    let report = run(&scenario(folder.path(), &text), &[]);
    let clients = group(&report, "as the machine", "clients");
    assert_eq!((&clients["requests"], &clients["requests_under_way"]), (&1.into(), &0.into()));
    let free = [
        "eager_limit=64K",
        "eager_header=0",
        "eager_buffered=false",
        "send_call=0ns",
        "receive_call=0ns",
        "wait_call=0ns",
        "receive_message=0ns",
        "matching_entry=0ns",
        "send_copy_rate=10000Tb/s",
        "receive_copy_rate=10000Tb/s",
        "memory_copy_rate=10000Tb/s",
    ];
    let sets: Vec<String> = free.iter().map(|key| format!("messaging.{key}")).collect();
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let one_way = |bytes: &str| {
        let words = ["osu", "-m", MACHINE, "latency", "--from", "9", "--to", "3", "--sizes", bytes, "--json"];
        number(&json(&[&words[..], &sets].concat())["rows"][0], "latency_us")
    };
    let (latency, sum) = (number(clients, "latency_mean_us"), one_way("64") + 2.0 + one_way("1024"));
    // Figures of osu have three decimals, and switches have a clock.
    assert!((latency - sum).abs() < 0.005, "{latency}, and {sum}");
}

/// Catches clients beside a store, flows and ranks that are not told apart by their virtual interfaces, ranks
/// that a store does not slow down, and rows that depend on threads.
#[test]
fn a_store_runs_beside_ranks_and_flows() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = {
        let header = TraceHeader { ranks: 2, ..TraceHeader::default() };
        TraceWriter::create(folder.path().join("exchange.weft"), header).unwrap()
    };
    for rank in 0..2u32 {
        writer.begin_rank(RankId(rank)).unwrap();
        let (other, tag, comm, bytes) = (RankId(1 - rank), 1, CommId::WORLD, Bytes::new(40_000));
        for round in 0..20 {
            let (send, receive) = (RequestId(2 * round), RequestId(2 * round + 1));
            let (mode, buffer, matched) = (SendMode::Standard, None, None);
            let (from, any_tag) = (Some(other), Some(tag));
            let ops = [
                Op::Compute { span: Span::from_us(1) },
                Op::Isend { to: other, tag, comm, bytes, mode, request: send, buffer },
                Op::Irecv { from, tag: any_tag, comm, bytes, matched, request: receive, buffer },
                Op::Waitall { requests: vec![send, receive] },
            ];
            ops.iter().for_each(|op| writer.push(op).unwrap());
        }
    }
    writer.finish().unwrap();
    let application = "[[applications]]\nname = \"exchange\"\nrole = \"victim\"\ntrace = \"exchange.weft\"\n\
                       on = \"3,9\"\nranks_per_host = 1\n";
    let flows = "[[flows]]\nname = \"flow\"\nrole = \"background\"\nfrom = \"9\"\nto = \"3\"\nsize = \"4K\"\n\
                 gap = \"3us\"\n";
    let clients = format!("{CLIENTS}from = \"3,9,12-15\"\nwindow = 3\ngets = 0.5\nsize = \"8K\"\n");
    let time = |text: &str, more: &[&str]| {
        let report = run(&scenario(folder.path(), text), more);
        (number(group(&report, "as the machine", "exchange"), "completion_max_us"), report)
    };
    let head = STORE.split("[[services]]").next().unwrap();
    let (alone, _) = time(&format!("{head}{application}"), &[]);
    let all = format!("{STORE}threads = 2\n{application}{clients}{flows}");
    let (beside, report) = time(&all, &[]);
    assert!(beside > 1.05 * alone, "{beside} beside a store, {alone} alone");
    let clients = group(&report, "as the machine", "clients");
    let store = group(&report, "as the machine", "store");
    let under_way = number(clients, "requests_under_way");
    assert!(under_way > 0.0 && under_way <= 18.0, "{clients}");
    let served = number(store, "served");
    assert!(served >= number(clients, "requests") && served <= number(clients, "requests") + under_way);
    assert!(number(clients, "requests") > 20.0, "{clients}");
    assert!(number(group(&report, "as the machine", "flow"), "transfers") > 5.0);
    for threads in ["2", "3"] {
        assert_eq!(rows(&time(&all, &["--threads", threads]).1), rows(&report), "{threads} threads");
    }
}

/// Catches a run that ends before a rank that computes last, and figures of services and flows that depend on
/// whether hosts have ranks: those without are told of messages ahead of time.
#[test]
fn a_rank_that_computes_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let idle = "num_ranks 1\nrank 0 {\nl1: calc 400000\n}\n";
    fs::write(folder.path().join("idle.goal"), idle).unwrap();
    let flows = "[[flows]]\nname = \"flow\"\nrole = \"background\"\nfrom = \"9\"\nto = \"3\"\nsize = \"4K\"\n\
                 gap = \"3us\"\n";
    let clients = format!("{CLIENTS}from = \"4-8\"\nwindow = 3\ngets = 0.5\nsize = \"8K\"\n");
    let text = format!("{STORE}threads = 2\n{clients}{flows}");
    let application =
        "[[applications]]\nname = \"idle\"\nrole = \"background\"\ntrace = \"idle.goal\"\non = \"15\"\n";
    let alone = run(&scenario(folder.path(), &text), &[]);
    let beside = run(&scenario(folder.path(), &format!("{text}{application}")), &[]);
    assert!(number(group(&alone, "as the machine", "store"), "most_waiting") > 1.0, "{alone}");
    for name in ["clients", "store", "flow"] {
        let figures = |report: &Value| {
            let mut row = group(report, "as the machine", name).as_object().unwrap().clone();
            row.retain(|key, _| !SPEEDS.contains(&key.as_str()));
            row
        };
        assert_eq!(figures(&beside), figures(&alone), "{name}");
    }
}

/// Catches an interface that keeps a request or an answer, or does not send to its own endpoint.
#[test]
fn every_interface_brings_requests_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let clients = format!("{CLIENTS}from = \"0,1\"\nwindow = 3\nrequests = 40\ngets = 0.5\nsize = \"5K\"\n");
    let text = STORE.replace("on = \"3\"", "on = \"1\"").replace("400us", "20ms") + &clients;
    let file = scenario(folder.path(), &text);
    for machine in ["exanest", "carvnet-spineleaf", "bxi3-fattree", "communication-ip", "apenetx-u200"] {
        let report = json(&["traffic", "-m", machine, "--scenario", &file, "--json", "--check"]);
        let of = |name, key| number(group(&report, "as the machine", name), key);
        let requests = (of("clients", "requests"), of("clients", "requests_under_way"));
        assert_eq!((requests, of("store", "served")), ((80.0, 0.0), 80.0), "{machine}: {report}");
    }
}

/// Catches a run that is not the same when it was interrupted, or cannot be run again.
#[test]
fn a_run_with_a_store_goes_on_where_it_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let clients = format!("{CLIENTS}from = \"all\"\nwindow = 2\ngets = 0.5\ndistribution = \"key-value\"\n");
    let file = scenario(folder.path(), &format!("{STORE}threads = 3\n{clients}"));
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words =
        ["traffic", "-m", MACHINE, "--scenario", &file, "-o", out, "--save-every", "100us", "--quiet"];
    assert!(weft(&words).status.success());
    let again = weft(&["rerun", out]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let said =
        String::from_utf8(weft(&["traffic", "-m", MACHINE, "--scenario", &file, "--quiet"]).stdout).unwrap();
    assert!(said.contains("requests, ") && said.contains("% busy"), "{said}");
}

/// Catches mistakes that are reported without line, field or mend.
#[test]
fn a_service_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let good =
        format!("{STORE}threads = 2\n{CLIENTS}from = \"0-2\"\ngets = 0.5\nsize = \"1K\"\nwindow = 2\n");
    run(&scenario(folder.path(), &good), &[]);
    let second = "[[services]]\nname = \"second\"\non = \"2-3\"\nservice_time = \"1us\"\n[[clients]]";
    let cases = [
        ("of = \"store\"", "of = \"shop\"", "own.toml:13: `clients.of`", "one of [[services]]"),
        ("threads = 2", "threads = 0", "`services.threads`: 0", "from 1 to 4096"),
        ("\"2us\"", "\"soon\"", "own.toml:7: `services.service_time`", "2us"),
        ("value = \"1K\"", "value = \"0\"", "`services.value`", "1 or more"),
        ("on = \"3\"", "on = \"999999\"", "`services.on`", "numbers from 0 to"),
        ("on = \"3\"", "on = \"3,3\"", "two stores at endpoint 3", "another endpoint"),
        ("[[clients]]", second, "two stores at endpoint 3", "another endpoint"),
        ("\"clients\"", "\"store\"", "`clients.name`: two groups", "its own name"),
        ("\"victim\"", "\"guest\"", "`clients.role`", "\"aggressor\""),
        ("gets = 0.5", "gets = 1.5", "`clients.gets`", "from 0 to 1"),
        ("size = \"1K\"\n", "", "`clients.size`: values have no size", "size = "),
        ("size = \"1K\"", "size = \"2G\"", "`clients.size`: a value is too large", "1G"),
        ("window = 2", "window = 256", "`clients.window`", "from 1 to 255"),
        ("from = \"0-2\"", "from = \"1,1,1\"\nkeys = 70000", "`clients.keys`", "to 65536"),
        (
            "window = 2",
            "start = \"9us\"\nstop = \"8us\"",
            "`clients.start`: it is not before stop",
            "earlier",
        ),
        ("window = 2", "requests = 0", "`clients.requests`: it is zero", "1 or more"),
        ("window = 2", "speed = 2", "speed", "unknown field"),
    ];
    for (what, instead, place, mend) in cases {
        let text = good.replace(what, instead);
        assert_ne!(text, good, "{what}");
        let said = refused(&["traffic", "-m", MACHINE, "--scenario", &scenario(folder.path(), &text)]);
        assert!(said.contains(place) && said.contains(mend), "{text}\n{said}");
    }
    let text = good.replace("from = \"0-2\"", "from = \"1,1\"").replace("window = 2", "window = 200");
    let said = refused(&["traffic", "-m", MACHINE, "--scenario", &scenario(folder.path(), &text)]);
    assert!(said.contains("endpoint 1 have windows of 400") && said.contains("256 at most"), "{said}");
}

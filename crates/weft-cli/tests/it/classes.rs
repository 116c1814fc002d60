//! Traffic classes: which messages they take, on every interface, and what they get.

use crate::common::{json, number, refused, rows};
use std::fs;
use std::path::{Path, PathBuf};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId};

const CLASSES: &str = "switch.classes=[{name='urgent', by_name=true, priority=1}, {name='rest', priority=0}]";

/// Large transfers to endpoint 0, and small ones from one of their sources, with these keys more.
fn scenario(folder: &Path, bulk: &str, more: &str) -> PathBuf {
    let head = "[scenario]\ntitle = \"urgent beside bulk\"\ntime = \"200us\"\nwarm_up = \"20us\"\n";
    let flow = |name: &str, from: &str, rest: &str| {
        format!("[[flows]]\nname = \"{name}\"\nrole = \"victim\"\nfrom = \"{from}\"\nto = \"0\"\n{rest}\n")
    };
    let urgent = format!("size = \"32\"\ngap = \"5us\"\n{more}");
    let path = folder.join(format!("{}.toml", more.len()));
    let text = head.to_owned() + &flow("bulk", bulk, "size = \"16K\"") + &flow("urgent", "3", &urgent);
    fs::write(&path, text).unwrap();
    path
}

/// Catches an interface that does not put the packets of a message in the class that its sender names: small
/// messages of high priority wait much less beside large ones of their own source.
#[test]
fn a_class_that_is_named_goes_first_on_every_interface() {
    let folder = tempfile::tempdir().unwrap();
    let star = "--set topology.kind=star --set topology.endpoints=8";
    for (machine, bulk) in [
        ("carvnet-spineleaf".to_owned(), "1-3"),
        ("exanest".to_owned(), "1-3"),
        (format!("ethernet-100g-spineleaf --set fabric.flow_control=credits {star}"), "1-7"),
        (format!("bxi3-fattree --set switch.kind=virtual-output-queued {star}"), "1-7"),
        ("apenetx-u200 --set topology.dims=[4,1,1]".to_owned(), "1-3"),
        ("communication-ip --set topology.dims=[4,1]".to_owned(), "1-3"),
    ] {
        let latency = |more: &str| {
            let file = scenario(folder.path(), bulk, more);
            let mut words = vec!["traffic", "-m"];
            words.extend(machine.split(' '));
            words.extend(["--set", "switch.arbiter=strict-priority", "--set", CLASSES]);
            words.extend(["--scenario", file.to_str().unwrap(), "--json", "--quiet", "--check"]);
            let report = json(&words);
            report["rows"][1]["latency_mean_us"].as_f64().unwrap()
        };
        let (plain, named) = (latency(""), latency("class = \"urgent\""));
        assert!(named < 0.7 * plain, "{machine}: {named} us in the class, {plain} us without");
    }
}

/// Catches a class whose algorithm is not used, or is used by the other class too, and keys of an algorithm
/// that are refused although a class has it.
#[test]
fn a_class_has_a_way_of_its_own_to_control_congestion() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "1-3", "class = \"urgent\"");
    let key = ["--set", "congestion.kind=none", "--set", "congestion.margin=300"];
    let throughput = |classes: &str, more: &[&str]| {
        let words = ["traffic", "-m", "carvnet-spineleaf", "--set", "switch.arbiter=strict-priority"];
        let end = ["--set", classes, "--scenario", file.to_str().unwrap(), "--json", "--quiet", "--check"];
        let report = json(&[&words[..], more, &end[..]].concat());
        report["rows"][0]["throughput_gbps"].as_f64().unwrap()
    };
    let of = |class: &str| CLASSES.replace(class, &format!("{class}, congestion='acc'"));
    let free = throughput(CLASSES, &[]);
    let held = throughput(&of("name='rest'"), &key);
    assert!((0.6..0.8).contains(&(held / free)), "{held} Gb/s with a margin of 30 %, {free} Gb/s without");
    let of_other = throughput(&of("name='urgent'"), &key);
    assert!(
        (0.98..1.02).contains(&(of_other / free)),
        "{of_other} Gb/s with it in the other class, {free} Gb/s"
    );
    let words = ["traffic", "-m", "carvnet-spineleaf", "--load", "0.1", "--set", CLASSES];
    let said = refused(&[&words[..], &key].concat());
    assert!(said.contains("`congestion.margin` means nothing") && said.contains("acc"), "{said}");
}

/// A trace of ranks that do this, all alike.
fn trace(path: &Path, ranks: u32, program: impl Fn(u32) -> Vec<Op>) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks, ..TraceHeader::default() }).unwrap();
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        program(rank).iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

/// Large messages from every rank to the one half of the ranks further, all at once.
fn bulk(rank: u32) -> Vec<Op> {
    let (comm, tag, bytes, buffer) = (CommId::WORLD, 0, Bytes::new(2_000_000), None);
    let other = RankId((rank + 4) % 8);
    let (mode, request) = (SendMode::Standard, RequestId(0));
    let send = Op::Isend { to: other, tag, comm, bytes, mode, request, buffer };
    let (from, tag, matched, request) = (Some(other), Some(tag), None, RequestId(1));
    let receive = Op::Irecv { from, tag, comm, bytes, matched, request, buffer };
    vec![receive, send, Op::Waitall { requests: vec![RequestId(0), RequestId(1)] }]
}

/// An allreduce of 64 KB.
fn collectives(_: u32) -> Vec<Op> {
    let bytes = Bytes::new(65_536);
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 8, ..CollectiveSizes::default() };
    let (kind, comm, root, request) = (Collective::Allreduce, CommId::WORLD, None, None);
    let one = Op::Collective { kind, comm, root, sizes, request, buffers: Default::default() };
    vec![one]
}

/// Catches a job, an operation, a request or a reply that goes in another class than it should: of two
/// applications that share the links of spines, the one whose class has the priority ends earlier, and the
/// other later.
#[test]
fn jobs_and_operations_have_their_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second, places) = (path("bulk.weft"), path("collectives.weft"), path("places"));
    trace(Path::new(&first), 8, bulk);
    trace(Path::new(&second), 8, collectives);
    // Each application has four endpoints of each of two leaves.
    let place = |rank: u32| rank % 8 / 4 * 8 + rank / 8 * 4 + rank % 4;
    let lines: Vec<String> = (0..16).map(|rank| place(rank).to_string()).collect();
    fs::write(&places, lines.join("\n")).unwrap();
    let run = |class: &str| {
        let classes =
            format!("switch.classes=[{{name='own', {class}, priority=1}}, {{name='rest', priority=0}}]");
        let mut words = vec!["replay", "-m", "ethernet-100g-spineleaf", &first, &second, "--map", &places];
        for set in [
            "topology.leaves=2",
            "topology.spines=2",
            "topology.endpoints_per_leaf=8",
            "fabric.flow_control=credits",
            "switch.arbiter=strict-priority",
            &classes,
        ] {
            words.extend(["--set", set]);
        }
        words.extend(["--ppn", "1", "--json", "--quiet", "--check"]);
        let report = json(&words);
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| row["run_time_us"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    // Nobody goes first: no application has this number.
    let nobody = run("job=9");
    let [of_first, of_second] = ["job=0", "job=1"].map(run);
    assert!(of_second[1] < 0.6 * nobody[1], "{of_second:?}, without {nobody:?}");
    assert!(of_first[0] < nobody[0] && of_first[1] > 2.0 * nobody[1], "{of_first:?}, without {nobody:?}");
    // The second application has collectives alone, the first none.
    assert_eq!(run("operation='collective'"), of_second);
    let two_sided = run("operation='two-sided'");
    assert!(two_sided[0] < nobody[0] && two_sided[1] > 2.0 * nobody[1], "{two_sided:?}, without {nobody:?}");
    assert_eq!(run("operation='one-sided'"), nobody);
    // Its messages are small enough to go unasked; the large ones of the first are announced.
    assert_eq!(run("job=1, of='requests'"), of_second);
    assert_eq!(run("job=1, of='replies'"), nobody);
    let replies = run("job=0, of='replies'");
    assert!(replies[1] > 2.0 * nobody[1], "{replies:?}, without {nobody:?}");
}

/// Catches a minimum that a class does not get where switches of a tree share out what is left by priority,
/// and results that depend on threads.
#[test]
fn a_minimum_holds_for_any_number_of_threads() {
    let file = format!("{}/../../scenarios/two-classes.toml", env!("CARGO_MANIFEST_DIR"));
    let classes = "switch.classes=[{name='high', by_name=true, priority=1}, \
                   {name='low', priority=0, minimum='25%', buffer='64K'}]";
    let run = |threads: &str| {
        let mut words = vec!["traffic", "-m", "ethernet-100g-spineleaf", "--scenario", &file];
        for set in [
            "topology.leaves=4",
            "topology.spines=2",
            "topology.endpoints_per_leaf=2",
            "fabric.flow_control=credits",
            "switch.arbiter=minimum-bandwidth",
            classes,
        ] {
            words.extend(["--set", set]);
        }
        words.extend(["--threads", threads, "--json", "--quiet", "--check"]);
        rows(&json(&words))
    };
    let one = run("1");
    let rate = |group: usize| number(&one[group], "throughput_gbps");
    let share = rate(1) / (rate(0) + rate(1));
    assert!((0.24..0.26).contains(&share), "{one:?}");
    assert!(["2", "3", "8"].iter().all(|threads| run(threads) == one));
}

/// Catches requests and replies that share channels although their classes are apart.
#[test]
fn requests_and_replies_are_apart_in_the_proof() {
    let classes = "switch.classes=[{name='replies', of='replies'}, {name='requests', of='requests'}]";
    let report = json(&["machine", "check", "exanest", "--set", classes, "--json"]);
    let channels = |class: &str| {
        let lines = report["message_classes"].as_array().unwrap().iter();
        let line = lines.into_iter().find(|line| line["class"] == class).unwrap();
        line["virtual_channels"].as_array().unwrap().iter().map(|vc| vc.as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(report["deadlock_free"], true);
    assert_eq!((channels("RTS"), channels("CTS")), (vec![2, 3], vec![0, 1]));
    assert_eq!((channels("data"), channels("ACK")), (vec![0, 1, 2, 3], vec![0, 1]));
}

/// Catches a class of a flow that does not exist, or takes none of its messages, and is taken; and one that
/// is refused without the line and the names that there are.
#[test]
fn a_class_that_does_not_exist_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "1", "class = \"fast\"");
    let file = file.to_str().unwrap();
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", file, "--set"];
    let said = refused(&[&words[..], &[CLASSES]].concat());
    assert!(said.contains("14.toml:18: `flows.class`: the machine has no traffic class \"fast\""), "{said}");
    assert!(said.contains("write \"urgent\" or \"rest\""), "{said}");
    let said = refused(&words[..5]);
    assert!(said.contains("add [[switch.classes]] to the machine"), "{said}");
    let replies = "switch.classes=[{name='fast', of='replies'}, {name='rest'}]";
    let said = refused(&[&words[..], &[replies]].concat());
    assert!(said.contains("class \"fast\" takes no messages of flows; write \"rest\""), "{said}");
    let minima = "switch.classes=[{name='fast', by_name=true, priority=1, minimum='99Gb/s'}, \
                  {name='rest', priority=0, minimum='99Gb/s'}]";
    let arbiter = ["--set", "switch.arbiter=minimum-bandwidth"];
    let said = refused(&[&words[..], &[minima], &arbiter[..]].concat());
    assert!(said.contains("switch.classes") && said.contains("% of a link of"), "{said}");
}

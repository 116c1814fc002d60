//! `--breakdown` of traffic, of replays and of real programs.
//!
//! Real programs need MPICH in build/venv (`make test` installs it) and are skipped where it is not there.

use crate::common::{json, refused};
use crate::support::{job, run, texts};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

/// The rows of a table, each as JSON.
fn rows(directory: &Path, table: &str) -> Vec<Value> {
    let file = File::open(directory.join(format!("{table}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| object(&row.unwrap())).collect()
}

fn object(row: &Row) -> Value {
    let value = |field: &Field| match field {
        Field::ULong(number) => Value::from(*number),
        Field::UInt(number) => Value::from(*number),
        Field::Int(number) => Value::from(*number),
        Field::Str(text) => Value::from(text.clone()),
        other => Value::from(other.to_string()),
    };
    Value::Object(row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Every message of a result has its pieces, without a gap from its post to its delivery: returns how many
/// messages.
fn pieces_add_up(directory: &Path) -> usize {
    let key = |row: &Value| (row["source_endpoint"].as_u64().unwrap(), row["sequence"].as_u64().unwrap());
    let mut pieces: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for piece in rows(directory, "pieces") {
        assert_ne!(piece["category"], "not recorded", "{piece}");
        pieces.entry(key(&piece)).or_default().push(piece);
    }
    let messages = rows(directory, "messages");
    for message in &messages {
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
        let mut cursor = number(message, "posted_ps");
        for piece in &pieces[&key(message)] {
            assert_eq!(number(piece, "begin_ps"), cursor, "{message} {piece}");
            assert!(number(piece, "time_ps") > 0);
            assert_eq!(piece["payload_bytes"], message["payload_bytes"]);
            cursor += number(piece, "time_ps");
        }
        assert_eq!(cursor, number(message, "delivered_ps"), "{message}");
    }
    assert_eq!(pieces.len(), messages.len());
    messages.len()
}

/// Host, injection, fabric and ejection.
fn split(split: &Value) -> [f64; 4] {
    assert_eq!(split["not_recorded_ns"], 0.0, "{split}");
    ["host_ns", "injection_ns", "fabric_ns", "ejection_ns"].map(|leg| split[leg].as_f64().unwrap())
}

/// Catches a leg that is counted twice or not, a wait on another leg than where it is, results that change
/// because they are split, a split that depends on threads, and one of copies.
#[test]
fn the_latency_of_traffic_is_split() {
    let of = |case: &str, more: &str| {
        let case = format!("traffic -m {case} --time 10us --quiet --json {more}");
        let mut row = json(&case.split_whitespace().collect::<Vec<_>>())["rows"][0].take();
        let fields = row.as_object_mut().unwrap();
        fields.retain(|key, _| {
            !["packet_hops_per_second", "build_time_s", "peak_memory_bytes"].contains(&key.as_str())
        });
        let split_of = fields.remove("latency_split");
        (row, split_of)
    };
    const FABRIC: &str = "carvnet-spineleaf --set nic.model=overheads --size 4K";
    for case in ["exanest --load 0.05", "bxi3-fattree --set topology.k=4 --load 0.6 --size 16K", FABRIC] {
        let case = if case == FABRIC { format!("{case} --load 0.4 --layer fabric") } else { case.to_owned() };
        let (whole, none) = of(&case, "");
        let (row, legs) = of(&case, "--breakdown");
        assert_eq!((&row, none), (&whole, None), "{case}");
        assert_eq!((row.clone(), legs.clone()), of(&case, "--breakdown --threads 2"), "{case}");
        let sum: f64 = split(&legs.unwrap()).iter().sum();
        // The mean is rounded to a picosecond.
        let mean = row["latency_mean_ns"].as_f64().unwrap();
        assert!((sum - mean).abs() < 0.001, "{case}: {sum} of {mean} ns");
    }
    let legs = |case: &str| split(&of(case, "--breakdown").1.unwrap());
    let [host, injection, fabric, ejection] = legs(&format!("{FABRIC} --load 0.05 --layer fabric"));
    assert_eq!(host, 0.0, "a pattern has no program");
    assert!(injection + ejection < 0.1 * fabric, "an idle machine has no queues");
    let jam = legs(&format!("{FABRIC} --load 0.9 --pattern incast --layer fabric"));
    assert!(jam[3] > 5.0 * jam[2] && jam[3] > 5.0 * jam[1], "many send to one: {jam:?}");
    let slow = legs("exanest --load 0.3");
    assert!(slow[1] > 5.0 * slow[2], "the co-processor takes no more: {slow:?}");
    let folder = tempfile::tempdir().unwrap();
    let out = text(folder.path()).to_owned();
    let words = |more: &str| format!("traffic -m exanest --load 0.1 --breakdown {more} -o {out}/x");
    let refused = |more: &str| refused(&words(more).split_whitespace().collect::<Vec<_>>());
    assert!(refused("--save-every 1us").contains("--save-every"));
    let multicast = "--set nic.model=overheads --set multicast=[{name=\"all\",members=[\"all\"]}]";
    let said = refused(&format!("{multicast} --pattern multicast"));
    assert!(said.contains("copies are not recorded"), "{said}");
}

/// The means of each class of sizes add up to its time; returns the messages of all classes.
fn means_add_up(classes: &Value) -> u64 {
    let class = |class: &Value| {
        let pieces = class["pieces"].as_array().unwrap().iter();
        let sum: f64 = pieces.map(|piece| piece["time_mean_ns"].as_f64().unwrap()).sum();
        let time = class["time_mean_ns"].as_f64().unwrap();
        assert!((sum / time - 1.0).abs() < 1e-9, "{class}");
        let legs = split(&class["latency_split"]).iter().sum::<f64>();
        assert!((legs / time - 1.0).abs() < 1e-9, "{class}");
        class["messages"].as_u64().unwrap()
    };
    classes.as_array().unwrap().iter().map(class).sum()
}

/// Catches a nanosecond of a message that is in no piece or in two, a message without pieces, pieces that
/// depend on threads, and results that cannot be explained or run again any more.
#[test]
fn the_pieces_of_real_and_replayed_messages_add_up() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let trace = at("talk.weft");
    let wanted = ["--breakdown", "--tables", "messages,ranks", "--json"];
    for (number, sets) in [
        &["-n", "5", "--ppn", "2"][..],
        &["-n", "3", "--set", "nic.model=overheads"],
        &["-n", "4", "--set", "fabric.kind=ideal"],
    ]
    .into_iter()
    .enumerate()
    {
        let out = at(&format!("run{number}"));
        let places = ["-m", "exanest", "-o", text(&out), "--record", text(&trace), "--force"];
        let output = run(&[&places[..], sets, &wanted].concat(), &program, &["talk"]);
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{said}");
        let document: Value = serde_json::from_str(&document).unwrap();
        let messages = pieces_add_up(&out);
        assert!(messages > 20);
        assert_eq!(means_add_up(&document["rows"][0]["breakdown"]), messages as u64);
        json(&["explain", text(&out), "--json"]);
    }
    let replay = |name: &str, threads: &str| {
        let out = at(name);
        let words = [
            "replay",
            "-m",
            "exanest",
            text(&trace),
            "--ppn",
            "2",
            "-o",
            text(&out),
            "--threads",
            threads,
            "--quiet",
        ];
        let document = json(&[&words[..], &wanted].concat());
        assert_eq!(means_add_up(&document["rows"][0]["breakdown"]), pieces_add_up(&out) as u64);
        ["run.json", "pieces.parquet"].map(|file| fs::read(out.join(file)).unwrap())
    };
    assert!(replay("one", "1") == replay("two", "2"), "threads change the breakdown");
    json(&["explain", text(&at("one")), "--quiet", "--json"]);
    assert!(crate::common::weft(&["rerun", text(&at("one")), "--quiet"]).status.success());
    let said =
        refused(&["replay", "-m", "exanest", text(&trace), "--tables", "pieces", "-o", text(&at("x"))]);
    assert!(said.contains("--breakdown"), "{said}");
}

/// The time of the pieces that are no software, by what they are; in ns.
fn below_software<'a>(pieces: impl Iterator<Item = &'a Value>, time: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for piece in pieces.filter(|piece| piece["category"] != "software") {
        *sums.entry(piece["what"].as_str().unwrap().to_owned()).or_insert(0.0) +=
            piece[time].as_f64().unwrap();
    }
    sums
}

/// Catches a breakdown of real ranks in which the network is another than that of simulated ones: what lies
/// below software agrees, piece by piece, to the edges of the clocks that messages meet (150 MHz: 6.7 ns,
/// twice).
#[test]
fn below_software_real_and_simulated_messages_are_alike() {
    let Some(program) = job() else { return };
    let equal = ["--set", "host.poll=1ns", "--set", "messaging.wait_call=0ns"];
    for bytes in ["0", "32", "4096"] {
        let options =
            [&["-m", "exanest", "-n", "2", "--ppn", "1", "--breakdown", "--json"][..], &equal].concat();
        let output = run(&options, &program, &["ping-pong", bytes, "100"]);
        let document: Value = serde_json::from_str(&texts(&output).0).unwrap();
        let classes = document["rows"][0]["breakdown"].as_array().unwrap();
        let class =
            classes.iter().find(|class| class["smallest_bytes"] == bytes.parse::<u64>().unwrap()).unwrap();
        assert_eq!(class["messages"], 200);
        let real = below_software(class["pieces"].as_array().unwrap().iter(), "time_mean_ns");

        let sizes = format!("{bytes}:{bytes}");
        let words = ["osu", "latency", "-m", "exanest", "--sizes", &sizes, "--breakdown", "--json"];
        let osu = json(&[&words[..], &equal].concat());
        let breakdown = &osu["rows"][0]["breakdown"];
        let there = breakdown["there_ns"].as_f64().unwrap();
        let pieces = breakdown["pieces"].as_array().unwrap().iter();
        let simulated =
            below_software(pieces.filter(|piece| piece["to_ns"].as_f64().unwrap() <= there), "time_ns");
        // The first message alone fills the IOMMU's buffer: a mean shows it, the last iteration does not.
        for what in real.keys().chain(simulated.keys()) {
            let of = |sums: &BTreeMap<String, f64>| sums.get(what).copied().unwrap_or(0.0);
            let (time, other) = (of(&real), of(&simulated));
            assert!((time - other).abs() < 13.4, "{bytes} B, {what}: {time} ns, simulated {other} ns");
        }
    }
}

/// Catches a request of a read that passes by a process of its target, and a target whose mailbox of requests
/// takes another time than its four cycles behind the next edge: the parts of a get where the data is.
#[test]
fn the_interface_that_has_the_data_answers_a_read_by_itself() {
    let ends = ["--from", "M1QAF1", "--to", "M1QAF2", "--sizes", "64", "--breakdown", "--json"];
    let osu = json(&[&["osu", "get_latency", "-m", "exanest"][..], &ends].concat());
    let pieces = osu["rows"][0]["breakdown"]["pieces"].as_array().unwrap();
    let of_target: Vec<&Value> = pieces.iter().filter(|piece| piece["place"] == "M1QAF2").collect();
    let names: Vec<&str> = of_target.iter().map(|piece| piece["what"].as_str().unwrap()).collect();
    // The agent still deals with the read before.
    assert_eq!(names, ["rdma mailbox", "waits for the agent", "segmentation", "memory"]);
    let verdict = of_target[0]["time_ns"].as_f64().unwrap();
    assert!(
        (4.0 * 20.0 / 3.0..5.0 * 20.0 / 3.0 + 0.01).contains(&verdict),
        "{verdict} ns, of cycles of 20/3"
    );
}

/// The rows of `weft traffic` on a torus with these words, without what only a breakdown has and what the
/// computer decides.
fn traffic(words: &[&str]) -> Vec<Value> {
    let torus = ["traffic", "--set", "topology.dims=[4,4]", "--time", "60us", "--warm-up", "10us"];
    let mut report = json(&[&torus[..], &["--json", "--quiet"], words].concat());
    for row in report["rows"].as_array_mut().unwrap() {
        for key in ["latency_split", "packet_hops_per_second", "build_time_s", "peak_memory_bytes"] {
            row.as_object_mut().unwrap().remove(key);
        }
    }
    report["rows"].as_array().unwrap().clone()
}

/// Where nobody follows a message, the interfaces save events: steps within a card, ends of transfers. With a
/// breakdown each has its own. Catches one that is carried out in another order, or too late.
#[test]
fn nobody_sees_which_events_interfaces_save() {
    for machine in [
        &["-m", "apenetx-u200"][..],
        &["-m", "apenetx-u200", "--set", "nic.host_to_card.fast_send=true"],
        &["-m", "carvnet-riscv"],
    ] {
        for (size, loads) in [("64", "0.005,0.02,1"), ("4K", "0.1,0.5,1"), ("64K", "0.2,1")] {
            let words = [machine, &["--size", size, "--load", loads]].concat();
            let (plain, followed) = (traffic(&words), traffic(&[&words[..], &["--breakdown"]].concat()));
            assert!(plain.iter().all(|row| row["messages"].as_u64().unwrap() > 10), "{plain:?}");
            assert_eq!(plain, followed, "{words:?}");
        }
    }
}

/// Catches names of a machine's own documents that breakdowns lack or give to other parts, and a name where
/// the machine has none.
#[test]
fn parts_have_the_names_of_their_documents() {
    let words = |machine: &str, size: &str| {
        let report = json(&["osu", "latency", "-m", machine, "--sizes", size, "--breakdown", "--json"]);
        let pieces = report["rows"][0]["breakdown"]["pieces"].as_array().unwrap().clone();
        pieces.iter().map(|piece| piece["what"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let labelled = words("dqn-node", "64K");
    for word in [
        "tx fifo (Buffer)",
        "serialization (Producer)",
        "link (Channel)",
        "switch (Router)",
        "serialization (Channel)",
    ] {
        assert!(labelled.iter().any(|what| what == word), "{word}: {labelled:?}");
    }
    assert!(labelled.iter().all(|what| what.ends_with(')')), "{labelled:?}");
    assert!(words("communication-ip", "64K").iter().all(|what| !what.contains('(')));
    let sets = ["--set", "nic.intra_node.dispatcher=9 cycles"];
    let words =
        [&["osu", "latency", "-m", "dqn-node", "--sizes", "64", "--breakdown", "--json"][..], &sets].concat();
    assert!(json(&words).to_string().contains("dispatcher (Consumer)"));
}

//! `--telemetry`: links and queues over virtual time, through the whole program.

use crate::common::{json, refused, weft};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

const TRAFFIC: &str = "traffic -m bxi3-fattree --set topology.k=4 --set topology.n=2 \
                       --set nic.model=overheads --set switch.kind=input-queued --set switch.buffer=128K \
                       --pattern uniform --load 0.7 --size 4K --time 20us --quiet";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn run(text: &str, out: &Path) {
    let mut words = words(text);
    words.extend(["-o", out.to_str().unwrap()]);
    let output = weft(&words);
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
}

fn rows(directory: &Path, table: &str) -> Vec<Row> {
    let file = File::open(directory.join(format!("{table}.parquet"))).unwrap();
    SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

/// The number in a column; `None`: null.
fn number(row: &Row, name: &str) -> Option<u64> {
    let (_, field) = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
    match field {
        Field::UInt(value) => Some((*value).into()),
        Field::ULong(value) => Some(*value),
        Field::Null => None,
        other => panic!("{name}: {other}"),
    }
}

fn link(row: &Row) -> [Option<u64>; 3] {
    ["from_endpoint", "from_switch", "from_port"].map(|column| number(row, column))
}

/// Catches intervals that lose or count twice what a link carries, on any level, the last one that is cut
/// short among them; and links that have rows without traffic.
#[test]
fn rates_add_up_to_what_links_carried() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(&format!("{TRAFFIC} --warm-up 0us --telemetry 700ns"), &out);
    const COLUMNS: [&str; 4] = ["packets", "packet_bytes", "busy_ps", "stall_ps"];
    let of = |row: &Row| COLUMNS.map(|column| number(row, column).unwrap());
    let carried: BTreeMap<_, _> = rows(&out, "links").iter().map(|row| (link(row), of(row))).collect();
    let mut sums: BTreeMap<u64, BTreeMap<_, [u64; 4]>> = BTreeMap::new();
    let rates = rows(&out, "rates");
    for row in &rates {
        let (begin, end) = (number(row, "begin_ps").unwrap(), number(row, "end_ps").unwrap());
        let level = number(row, "level").unwrap();
        assert!(begin < end && end - begin <= 700_000 * 10u64.pow(level as u32), "{row}");
        let sum = sums.entry(level).or_default().entry(link(row)).or_default();
        sum.iter_mut().zip(of(row)).for_each(|(sum, value)| *sum += value);
        assert!(of(row) != [0; 4] || number(row, "paused_ps") != Some(0), "{row}");
    }
    assert_eq!(sums.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let used: BTreeMap<_, _> = carried.into_iter().filter(|(_, counters)| *counters != [0; 4]).collect();
    assert!(used.len() > 40);
    for (level, sums) in sums {
        assert_eq!(sums, used, "level {level}");
    }
}

/// Catches fluids that are counted when they end: more than a link carries in one interval, and nothing in
/// those before. Messages take many intervals, share links, and one routing spreads them over paths; the run
/// ends and its counters are reset while some are under way.
#[test]
fn fluids_are_counted_as_they_flow() {
    let fattree = "-m bxi3-fattree --set topology.k=4 --set topology.n=2";
    let dragonfly = "-m bxi3-dragonfly --set topology.p=2 --set topology.a=4 --set topology.h=2";
    for machine in [fattree, dragonfly] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let traffic = "--pattern uniform --load 0.9 --size 1M --time 400us --warm-up 35us --telemetry 5us";
        run(&format!("traffic {machine} --set fabric.kind=flow {traffic} --quiet"), &out);
        const COLUMNS: [&str; 2] = ["packet_bytes", "busy_ps"];
        let of = |row: &Row| COLUMNS.map(|column| number(row, column).unwrap());
        let carried: BTreeMap<_, _> = rows(&out, "links").iter().map(|row| (link(row), of(row))).collect();
        let mut sums: BTreeMap<_, [u64; 2]> = BTreeMap::new();
        let mut fullest = 0;
        for row in &rows(&out, "rates") {
            let [begin, end, level] = ["begin_ps", "end_ps", "level"].map(|name| number(row, name).unwrap());
            let counts = of(row);
            assert!(counts[1] <= end - begin, "a link that is busy for longer than there is time: {row}");
            fullest = fullest.max(counts[1] * 100 / (end - begin));
            if level == 0 && begin >= 35_000_000 {
                let sum = sums.entry(link(row)).or_default();
                (sum[0], sum[1]) = (sum[0] + counts[0], sum[1] + counts[1]);
            }
        }
        assert!(fullest > 90, "no link was full: {fullest} %");
        let used = carried.iter().filter(|(_, counts)| **counts != [0; 2]);
        assert_eq!(sums, used.map(|(link, counts)| (*link, *counts)).collect());
    }
}

/// Catches queues that are fuller than their buffer, empty queues with rows, and a coarse level that misses
/// the fullest moment.
#[test]
fn queues_fill_within_their_buffers() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(&format!("{TRAFFIC} --telemetry 100ns"), &out);
    let mut most: BTreeMap<_, BTreeMap<_, u64>> = BTreeMap::new();
    let queues = rows(&out, "queues");
    assert!(queues.len() > 1000, "{}", queues.len());
    for row in &queues {
        let held = number(row, "most_held_bytes").unwrap();
        assert!(number(row, "most_packets").unwrap() > 0 && held > 0, "{row}");
        assert!(number(row, "mean_held_bytes").unwrap() <= held, "{row}");
        let queue = ["switch", "port", "virtual_channel"].map(|column| number(row, column).unwrap());
        let level = most.entry(number(row, "level").unwrap()).or_default();
        let fullest = level.entry(queue).or_default();
        *fullest = (*fullest).max(held);
    }
    let finest = most[&0].clone();
    assert!(most.into_values().all(|level| level == finest));
    let buffer = 128 << 10;
    assert!(finest.values().all(|held| *held <= buffer), "{finest:?}");
}

/// Catches a queue that is looked at when an interval ends alone: the fullest that it has been in a run does
/// not depend on the interval, whatever the kind of switch. And one that is counted fuller than the buffer's
/// own count, where senders count no credits.
#[test]
fn the_fullest_moment_is_within_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    const KINDS: [&str; 6] = [
        "switch.kind=input-queued",
        "switch.kind=virtual-output-queued",
        "switch.kind=output-queued",
        "switch.kind=combined-input-output --set switch.output_buffer=16K",
        "switch.kind=input-queued --set fabric.flow_control=drop",
        "switch.kind=virtual-output-queued --set fabric.flow_control=pause --set switch.buffer=256K",
    ];
    for (number_of_kind, kind) in KINDS.into_iter().enumerate() {
        let traffic = TRAFFIC.replace("--set switch.kind=input-queued", &format!("--set {kind}"));
        let traffic = traffic.replace("20us", "10us");
        let peaks = |interval: &str| {
            let out = folder.path().join(format!("{number_of_kind}-{interval}"));
            run(&format!("{traffic} --warm-up 0us --tables links --telemetry {interval}"), &out);
            let mut peaks: BTreeMap<_, [u64; 2]> = BTreeMap::new();
            for row in rows(&out, "queues").iter().filter(|row| number(row, "level") == Some(0)) {
                let queue = ["switch", "port", "virtual_channel"].map(|column| number(row, column).unwrap());
                let side = row.get_column_iter().find(|(column, _)| *column == "side").unwrap().1.to_string();
                let peak = peaks.entry((queue, side)).or_default();
                for (most, column) in peak.iter_mut().zip(["most_packets", "most_held_bytes"]) {
                    *most = (*most).max(number(row, column).unwrap());
                }
            }
            (peaks, out)
        };
        let ((fine, out), (coarse, _)) = (peaks("37ns"), peaks("10us"));
        assert!(fine.len() > 10 && fine == coarse, "{kind}");
        if kind.contains("drop") {
            let links = rows(&out, "links");
            let counted = links.iter().map(|row| number(row, "most_held_bytes").unwrap()).max().unwrap();
            let metered = fine.values().map(|peak| peak[1]).max().unwrap();
            assert!(metered <= counted && 2 * metered > counted, "{metered} of {counted}");
        }
    }
}

/// Catches a rate of a link that is no flow's: the flows of an incast are allowed what their common link
/// offers.
#[test]
fn links_tell_the_rate_that_they_offer() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, out) = (folder.path().join("own.toml"), folder.path().join("out"));
    let flows = "[[flows]]\nname = \"a\"\nrole = \"victim\"\nfrom = \"0,4,8\"\nto = \"15\"\nsize = \"64K\"\n";
    fs::write(&scenario, format!("[scenario]\ntitle = \"incast\"\ntime = \"200us\"\n{flows}")).unwrap();
    let acc = "--set nic.model=overheads --set congestion.kind=acc";
    let command = format!("traffic -m carvnet-spineleaf {acc} --scenario {}", scenario.display());
    run(&format!("{command} --telemetry 10us --quiet"), &out);
    let last = |row: &&Row| number(row, "level") == Some(0) && number(row, "end_ps") == Some(200_000_000);
    let rates = rows(&out, "rates");
    let of_switches = rates.iter().filter(last).filter(|row| number(row, "from_switch").is_some());
    let offered = of_switches.filter_map(|row| number(row, "fair_bits_per_second")).min().unwrap();
    let flow_rates = rows(&out, "flow_rates");
    let allowed = flow_rates.iter().filter(last).map(|row| number(row, "allowed_bits_per_second").unwrap());
    let allowed: Vec<u64> = allowed.collect();
    assert_eq!(allowed.len(), 3);
    let near = |one: u64, other: u64| (one as f64 / other as f64 - 1.0).abs() < 0.02;
    assert!(allowed.iter().all(|rate| near(*rate, offered)), "{allowed:?}, offered {offered}");
    // A third of the link to the endpoint, but for the margin.
    assert!((29e9..34.2e9).contains(&(offered as f64)), "{offered}");
    // Nobody else knows rates of links.
    let plain = folder.path().join("plain");
    run(&format!("{TRAFFIC} --telemetry 10us"), &plain);
    let none = |row: &Row| number(row, "fair_bits_per_second").is_none();
    assert!(rows(&plain, "rates").iter().all(none));
}

/// Catches telemetry that changes a result, and rows that depend on threads.
#[test]
fn telemetry_changes_nothing_and_does_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let directory = |name: &str| folder.path().join(name);
    run(&format!("{TRAFFIC} --tables messages,links,flows"), &directory("without"));
    for threads in [1, 3] {
        let name = format!("with-{threads}");
        let telemetry = "--tables messages,links,flows --telemetry 1us";
        run(&format!("{TRAFFIC} {telemetry} --threads {threads}"), &directory(&name));
        for table in ["messages", "links", "flows"] {
            let file = format!("{table}.parquet");
            let read = |name: &str| fs::read(directory(name).join(&file)).unwrap();
            assert!(read("without") == read(&name), "{table}, {threads} threads");
        }
    }
    for table in ["rates.parquet", "queues.parquet"] {
        let read = |name: &str| fs::read(directory(name).join(table)).unwrap();
        assert!(read("with-1") == read("with-3"), "{table}");
    }
    // The request has the interval, so that a rerun writes the same tables.
    let same = json(&["rerun", directory("with-1").to_str().unwrap(), "--quiet", "--json"]);
    assert_eq!(same["same"], true);
}

/// Catches telemetry that only traffic has, and an interval that is no interval.
#[test]
fn benchmarks_have_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run("osu bw -m exanest --sizes 4K:8K --telemetry 10us --quiet", &out);
    let runs: Vec<u64> = rows(&out, "rates").iter().map(|row| number(row, "run").unwrap()).collect();
    assert!(runs.is_sorted() && runs.first() == Some(&0) && runs.last() == Some(&1));
    let path = out.to_str().unwrap();
    let zero = ["osu", "bw", "-m", "exanest", "--telemetry", "0us", "-o", path, "--force"];
    assert!(refused(&zero).contains("a time of 0 never passes"));
    let nowhere = refused(&["osu", "bw", "-m", "exanest", "--telemetry", "1us"]);
    assert!(nowhere.contains("--output"), "{nowhere}");
}

/// Catches flows over time that do not add up, on any level, to what `flows` says came; flows that are
/// written though nobody asked; and requests for what cannot be.
#[test]
fn flow_rates_add_up_to_what_flows_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let (out, plain) = (folder.path().join("out"), folder.path().join("plain"));
    // Messages that are whole packets, all of which come: then payload that came is payload delivered.
    let burst = "traffic -m bxi3-fattree --set topology.k=4 --set nic.model=overheads --pattern permutation \
                 --size 4K --messages 20 --quiet --telemetry 700ns";
    run(&format!("{burst} --tables flows,flow_rates"), &out);
    run(burst, &plain);
    assert!(!plain.join("flow_rates.parquet").exists());
    let flow = |row: &Row| ["source_endpoint", "destination_endpoint"].map(|column| number(row, column));
    let delivered: BTreeMap<_, _> =
        rows(&out, "flows").iter().map(|row| (flow(row), number(row, "payload_bytes"))).collect();
    assert!(delivered.len() > 10);
    let mut sums: BTreeMap<u64, BTreeMap<_, Option<u64>>> = BTreeMap::new();
    for row in rows(&out, "flow_rates") {
        let of_level = sums.entry(number(&row, "level").unwrap()).or_default();
        let sum = of_level.entry(flow(&row)).or_insert(Some(0));
        *sum = sum.zip(number(&row, "payload_bytes")).map(|(sum, more)| sum + more);
        assert_eq!(number(&row, "allowed_bits_per_second"), None, "nobody controls congestion");
    }
    assert_eq!(sums.len(), 5);
    for (level, sums) in sums {
        assert_eq!(sums, delivered, "level {level}");
    }
    let asked = |more: &str| {
        let out = folder.path().join("refused");
        let all = format!("traffic -m bxi3-fattree --load 0.3 {more} -o {}", out.display());
        refused(&words(&all))
    };
    assert!(asked("--tables flow_rates").contains("add --telemetry TIME"));
    assert!(
        asked("--tables flow_rates --telemetry 1us --set fabric.kind=ideal")
            .contains("only packets are counted by flow")
    );
    let said = asked("--time 100ms --telemetry 1ns");
    assert!(said.contains("GB: look every 100ns or less often"), "{said}");
    // Of a small machine that would fill no disk, and never end.
    let small = "--set topology.k=2 --set topology.n=1";
    let said = asked(&format!("{small} --time 100us --telemetry 1ps"));
    assert!(said.contains("100000000 times or more: look every 100ps or less often"), "{said}");
    let scenario = folder.path().join("own.toml");
    let flows = "[[flows]]\nname = \"a\"\nrole = \"victim\"\nfrom = \"0\"\nto = \"1\"\nsize = \"1K\"\n";
    fs::write(&scenario, format!("[scenario]\ntitle = \"one\"\ntime = \"100us\"\n{flows}")).unwrap();
    let words = format!("traffic -m carvnet-spineleaf --scenario {} --telemetry 1ps", scenario.display());
    let out = folder.path().join("refused");
    let said = refused(&[&self::words(&words)[..], &["-o", out.to_str().unwrap()]].concat());
    assert!(said.contains("look every 100ps or less often, or look all the same with --no-limit"), "{said}");
    // To replace what is there lifts no limit.
    let replacing = [&self::words(&words)[..], &["-o", out.to_str().unwrap(), "--force"]].concat();
    assert_eq!(refused(&replacing), said);
    // Of a program nobody knows how long it runs.
    let out = folder.path().join("osu");
    let osu = "osu latency -m exanest --sizes 1K:1K --telemetry 1ps";
    let said = refused(&[&self::words(osu)[..], &["-o", out.to_str().unwrap()]].concat());
    assert!(said.contains("at each microsecond of virtual time: look every"), "{said}");
}

/// Catches flows at a link that are not those that cross it: two senders of one destination share its link
/// by what they offer, and another pair is not on it.
#[test]
fn a_report_names_the_flows_at_links() {
    let folder = tempfile::tempdir().unwrap();
    let (out, scenario) = (folder.path().join("out"), folder.path().join("own.toml"));
    let flow = |name: &str, from: &str, to: &str, size: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nrole = \"victim\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             size = \"{size}\"\ntransfers = 1\n"
        )
    };
    let flows =
        [flow("a", "0", "15", "16K"), flow("b", "4", "15", "48K"), flow("c", "1", "2", "8K")].concat();
    fs::write(&scenario, format!("[scenario]\ntitle = \"x\"\ntime = \"200us\"\n{flows}")).unwrap();
    let traffic = format!("traffic -m carvnet-spineleaf --scenario {} --quiet", scenario.display());
    run(&format!("{traffic} --tables links,packets,messages"), &out);
    let page = folder.path().join("page.html");
    let (out, page) = (out.to_str().unwrap(), page.to_str().unwrap());
    let report = json(&["report", out, "-o", page, "--json"]);
    let links = report["report"]["hot_links"].as_array().unwrap();
    let into = links.iter().find(|link| link["link"].as_str().unwrap().ends_with("→ endpoint 15")).unwrap();
    let flows: Vec<_> = into["flows"].as_array().unwrap().iter().collect();
    let told: Vec<_> = flows.iter().map(|flow| (&flow["from"], &flow["to"])).collect();
    assert_eq!(told, [(&4.into(), &15.into()), (&0.into(), &15.into())]);
    // Cells of 256 B: 192 and 64 of them.
    assert_eq!(flows.iter().map(|flow| flow["packets"].as_u64().unwrap()).collect::<Vec<_>>(), [192, 64]);
    // By time, in which a cell may wait for its tail.
    assert!((flows[0]["share"].as_f64().unwrap() - 0.75).abs() < 0.01, "{into}");
    assert!(fs::read_to_string(page).unwrap().contains("4 to 15 (75."));
}

/// Catches a packet that is not followed, one that is followed twice, times that go backwards, rows that
/// depend on the number of threads, and results that change because packets are followed.
#[test]
fn each_packet_has_a_row_for_each_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let base = TRAFFIC.replace("--set nic.model=overheads ", "").replace("20us", "5us");
    run(&format!("{base} --warm-up 0us --tables packets,links"), &at("one"));
    run(&format!("{base} --warm-up 0us --tables packets,links --threads 2"), &at("two"));
    run(&format!("{base} --warm-up 0us --tables links"), &at("plain"));
    let read = |name: &str, table: &str| fs::read(at(name).join(format!("{table}.parquet"))).unwrap();
    assert!(read("one", "packets") == read("two", "packets"));
    assert!(read("one", "links") == read("plain", "links"));
    const TIMES: [&str; 6] = ["came_ps", "ready_ps", "could_ps", "crossed_ps", "began_ps", "ended_ps"];
    let check = |name: &str| {
        let mut followed: BTreeMap<_, u64> = BTreeMap::new();
        for row in rows(&at(name), "packets") {
            *followed.entry(link(&row)).or_default() += 1;
            let times = TIMES.map(|column| number(&row, column).unwrap());
            assert!(times.is_sorted(), "{times:?}");
        }
        let links = rows(&at(name), "links");
        let carried = links.iter().map(|row| (link(row), number(row, "packets").unwrap()));
        let carried: BTreeMap<_, u64> = carried.filter(|(_, packets)| *packets > 0).collect();
        assert!(!followed.is_empty());
        assert_eq!(followed, carried, "{name}");
    };
    check("one");
    let out = at("refused");
    for wrong in ["--set fabric.kind=ideal", "--save-every 1us"] {
        let text = format!("{base} --tables packets {wrong} -o {}", out.display());
        assert!(refused(&words(&text)).contains("--tables packets"), "{wrong}");
    }
    assert!(!out.exists());
    // Both transfers have ended: no packet is on a link.
    let scenario = at("own.toml");
    let flows = "[[flows]]\nname = \"a\"\nrole = \"victim\"\nfrom = \"0,4\"\nto = \"15\"\nsize = \"8K\"\n";
    let text = format!("[scenario]\ntitle = \"two\"\ntime = \"50us\"\n{flows}transfers = 1\n");
    fs::write(&scenario, text).unwrap();
    let tables = "--tables packets,links --quiet";
    let command = format!("traffic -m carvnet-spineleaf --scenario {} {tables}", scenario.display());
    run(&command, &at("scenario"));
    check("scenario");
}

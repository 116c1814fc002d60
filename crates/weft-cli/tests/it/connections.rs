//! Reliable connections of interfaces that are modelled by their overheads, and detours, by the command.

use crate::common::{json, number, refused, rows, weft};
use serde_json::Value;

/// A tree of 32 endpoints: leaves are switches 0 to 7, those above them 8 to 15, roots 16 to 23.
const TREE: &str = "-m ib-ndr-fattree --set topology.down=[4,4,4] --set topology.up=[4,4] \
                    --set topology.parallel=[1,2]";

/// The words of a line; what stands in quotes is one.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// The row of a run of `weft traffic`, without what depends on the computer.
fn row(line: &str) -> Value {
    let words = words(&format!("traffic {line} --check --quiet --json"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    rows(&json(&words)).remove(0)
}

fn reliable(kind: &str, timeout: &str, retries: u32) -> String {
    format!(
        "--set nic.reliability.kind={kind} --set nic.reliability.ack_timeout={timeout} \
         --set nic.reliability.retry_count={retries} --set nic.reliability.acks=always"
    )
}

/// Traffic for routings; what is lost stays lost.
const UNIFORM: &str = "--pattern uniform --load 0.3 --size 4K --time 8us --warm-up 1us \
                       --set nic.reliability.kind=none";

const KINDS: [&str; 2] = ["go-back-n", "selective-repeat"];

/// Catches a lost packet that is sent again at another time than its time-out: when all links are off as the
/// first packets cross them, everything happens a time-out later, to the picosecond.
#[test]
fn a_lost_packet_costs_a_time_out() {
    for kind in KINDS {
        let case =
            format!("{TREE} --pattern permutation --messages 1 --size 2K {}", reliable(kind, "50us", 7));
        let whole = row(&case);
        let late = row(&format!("{case} --set 'faults=[{{off_at=\"0ns\", on_at=\"40us\"}}]'"));
        assert_eq!(number(&late, "messages"), 32.0);
        let by = number(&late, "run_time_us") - number(&whole, "run_time_us");
        assert!((by - 50.0).abs() < 1e-9, "{kind}: {whole}\n{late}");
        let count = |key| number(&late, key);
        assert_eq!((count("packets_dropped_dead"), count("packets_resent")), (32.0, 32.0), "{late}");
        assert_eq!((count("connections_timeouts"), count("packets_duplicates")), (32.0, 0.0), "{late}");
        // One for each message, and none of those that were lost.
        assert_eq!(count("packets_acknowledgements"), 32.0, "{late}");
        assert_eq!(number(&whole, "packets_acknowledgements"), 32.0, "{whole}");
    }
}

/// Catches a run of ranks that does not say what was lost and sent again, or says so of one that lost
/// nothing. All links are off as the first packet of each rank crosses them: a time-out is added to the
/// picosecond.
#[test]
fn ranks_say_what_was_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = crate::beside::exchange(folder.path());
    let off = "--set 'faults=[{off_at=\"0ns\", on_at=\"40us\"}]'";
    let machine = format!("{TREE} {} --quiet", reliable("selective-repeat", "50us", 7));
    let osu = format!("osu latency --from 5 --to 9 --sizes 2K {machine}");
    let replay = format!("replay {trace} {machine}");
    for line in [osu, replay] {
        let run = |more: &str| {
            let words = words(&format!("{line} {more}"));
            let output = weft(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(output.status.success(), "{line} {more}");
            String::from_utf8(output.stdout).unwrap()
        };
        let row =
            |more: &str| rows(&serde_json::from_str(&run(&format!("{more} --json"))).unwrap()).remove(0);
        let (whole, late) = (row(""), row(off));
        let by = number(&late, "run_time_us") - number(&whole, "run_time_us");
        assert!((by - 50.0).abs() < 1e-6, "{whole}\n{late}");
        // One of each rank: of osu those of the first barrier, of the replay requests to send.
        for key in ["packets_dropped", "packets_resent", "connections_timeouts"] {
            assert_eq!((number(&whole, key), number(&late, key)), (0.0, 2.0), "{key}: {late}");
        }
        assert_eq!(number(&late, "packets_duplicates"), 0.0, "{late}");
        assert!(number(&late, "packets_acknowledgements") > 0.0, "{late}");
        let said = run(off);
        for line in ["links lost 2 packets", "sources sent 2 packets again", "2 time-outs of interfaces"] {
            assert!(said.contains(line), "{said}");
        }
        assert!(!run("").contains("lost") && !run("").contains("again"), "{}", run(""));
    }
}

/// Catches messages that are lost, delivered twice or held for ever where links lose and corrupt packets of
/// both directions, and a repair that depends on threads.
#[test]
fn what_links_lose_by_chance_is_sent_again() {
    for (kind, routing) in [("go-back-n", "d-mod-k"), ("selective-repeat", "adaptive")] {
        let case = format!(
            "{TREE} --set topology.routing={routing} --pattern permutation --messages 6 --size 24K {} \
             --set 'faults=[{{drop=10000, corrupt=10000}}]'",
            reliable(kind, "20us", 40)
        );
        let one = row(&case);
        assert_eq!((number(&one, "messages"), number(&one, "messages_failed")), (192.0, 0.0), "{one}");
        assert!(number(&one, "packets_dropped") > 20.0 && number(&one, "packets_resent") > 40.0, "{one}");
        assert_eq!(one, row(&format!("{case} --threads 3")), "{kind}");
    }
}

/// Catches acknowledgements on a machine that loses nothing and does not ask for them, and none on one whose
/// lines have bit errors: those damage packets, which are sent again.
#[test]
fn acknowledgements_are_where_links_may_fail() {
    let case = format!("{TREE} --pattern permutation --messages 6 --size 24K");
    let whole = row(&case);
    assert_eq!(number(&whole, "packets_acknowledgements"), 0.0, "{whole}");
    let asked = row(&format!("{case} --set nic.reliability.acks=always"));
    assert_eq!(number(&asked, "packets_acknowledgements"), 192.0, "{asked}");
    let errors = "--set links.default.bit_errors=1000000000 --set nic.reliability.ack_timeout=20us";
    let damaged = row(&format!("{case} {errors} --set nic.reliability.retry_count=40"));
    assert_eq!(
        (number(&damaged, "messages"), number(&damaged, "packets_dropped")),
        (192.0, 0.0),
        "{damaged}"
    );
    assert!(number(&damaged, "packets_resent") > 0.0, "{damaged}");
}

/// Catches an interface that takes a copy for a packet: those of reliable connections have numbers.
#[test]
fn copies_and_late_packets_change_nothing_that_arrives() {
    for kind in KINDS {
        let case = format!(
            "{TREE} --pattern permutation --messages 4 --size 16K {} \
             --set 'faults=[{{duplicate=50000, reorder=50000}}]'",
            reliable(kind, "50us", 7)
        );
        let row = row(&case);
        assert_eq!(number(&row, "messages"), 128.0, "{row}");
        assert!(number(&row, "packets_duplicates") > 0.0, "{row}");
    }
}

/// Catches a link that comes back too late for what was lost on it, and one that does not come back at all:
/// there the messages fail after their retries, and a job ends with the reason.
#[test]
fn a_dead_end_fails_after_the_retries() {
    let case = format!("{TREE} --pattern permutation --messages 2 --size 2K");
    let off = "--set 'faults=[{of=\"endpoint 5\", off_at=\"0ns\"}]'";
    let back = "--set 'faults=[{of=\"endpoint 5\", off_at=\"0ns\", on_at=\"25us\"}]'";
    for kind in KINDS {
        let repaired = row(&format!("{case} {back} {}", reliable(kind, "10us", 3)));
        assert_eq!(number(&repaired, "messages"), 64.0, "{repaired}");
        let failed = row(&format!("{case} {off} {}", reliable(kind, "10us", 3)));
        // The two that it sends and the two that it should get.
        assert_eq!(
            (number(&failed, "messages"), number(&failed, "messages_failed")),
            (60.0, 4.0),
            "{failed}"
        );
        // Both messages of a connection are given up together: four time-outs for each of the two.
        assert_eq!(number(&failed, "connections_timeouts"), 8.0, "{failed}");
    }
    let line = format!(
        "osu latency {TREE} --from 5 --to 9 --sizes 8 {} --json {off}",
        reliable("go-back-n", "10us", 3)
    );
    let words = words(&line);
    let output = weft(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("lost-data") && said.contains("repeated until the limit"), "{said}");
}

/// Catches adaptive routings that send to links which are off while others are on: with a root, or one of two
/// parallel links, off from the beginning nothing is lost.
#[test]
fn adaptive_routings_look_away_from_links_that_are_off() {
    let case = format!("{TREE} {UNIFORM}");
    for off in ["switch 17", "switch 8 port 4"] {
        let faults = format!("--set 'faults=[{{of=\"{off}\", off_at=\"0ns\"}}]'");
        let adaptive = row(&format!("{case} {faults} --set topology.routing=adaptive"));
        assert_eq!(number(&adaptive, "packets_dropped"), 0.0, "{off}: {adaptive}");
        let fixed = row(&format!("{case} {faults} --set topology.routing=d-mod-k"));
        assert!(number(&fixed, "packets_dropped_dead") > 0.0, "{off}: {fixed}");
    }
}

/// Catches detours that are taken by packets whose own path is whole, and such that lose some: one of the 32
/// links between leaves and the switches above them is off from the beginning.
#[test]
fn detours_are_for_packets_whose_path_is_broken() {
    let case = format!("{TREE} {UNIFORM}");
    let around = "--set fabric.reroute=up-down --set fabric.reroute_after=0ns";
    for routing in ["d-mod-k", "adaptive", "up-down"] {
        let case = format!("{case} --set topology.routing={routing}");
        let whole = row(&case);
        let faults = "--set 'faults=[{of=\"switch 3 port 5\", off_at=\"0ns\"}]'";
        let detoured = row(&format!("{case} {faults} {around}"));
        assert_eq!(number(&detoured, "packets_dropped"), 0.0, "{routing}: {detoured}");
        // A quarter of what the four endpoints of a leaf, of 32, send and get beyond it: 6 %. Adaptive
        // packets choose another way up, so that half of that is left: those that come down.
        let share = number(&detoured, "packets_rerouted") / number(&whole, "messages");
        let most = if routing == "adaptive" { 0.045 } else { 0.1 };
        assert!(share > 0.01 && share < most, "{routing}: {share}\n{detoured}");
        let longer = number(&detoured, "latency_mean_ns") / number(&whole, "latency_mean_ns");
        assert!(longer < 1.05, "{routing}: {longer}");
        assert_eq!(detoured, row(&format!("{case} {faults} {around} --threads 3")), "{routing}");
    }
}

/// Catches a dead switch that ends a job: a root, a switch of the middle with and without detours, and a
/// leaf, whose own endpoints alone are cut off.
#[test]
fn a_dead_switch_loses_no_message_between_others() {
    let case = format!(
        "{TREE} --pattern permutation --messages 8 --size 16K {}",
        reliable("selective-repeat", "20us", 30)
    );
    let around = "--set fabric.reroute=up-down --set fabric.reroute_after=1us";
    for (switch, more) in [(17, ""), (9, ""), (9, around)] {
        let faults = format!("--set 'faults=[{{of=\"switch {switch}\", off_at=\"1us\"}}]'");
        let row = row(&format!("{case} {faults} {more}"));
        assert_eq!((number(&row, "messages"), number(&row, "messages_failed")), (256.0, 0.0), "{row}");
        assert!(number(&row, "packets_resent") > 0.0, "{row}");
    }
    let leaf = row(&format!("{case} --set 'faults=[{{of=\"switch 0\", off_at=\"1us\"}}]'"));
    let (came, failed) = (number(&leaf, "messages"), number(&leaf, "messages_failed"));
    // What its four endpoints send and get, as far as it had not come by then.
    assert!(came + failed >= 256.0 && failed > 0.0 && failed <= 64.0, "{leaf}");
}

/// Catches a run that does not say that its routing upsets its connections, or says so of one that does not.
#[test]
fn what_a_routing_will_do_to_connections_is_said() {
    let said = |more: &str| {
        let words = words(&format!("traffic {TREE} --pattern permutation --messages 1 --size 4K {more}"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        String::from_utf8(weft(&words).stderr).unwrap()
    };
    let (order, routes) = ("takes packets in order", "goes on sending into links that are off");
    let [go_back, selective] = KINDS.map(|kind| reliable(kind, "50us", 7));
    assert!(said(&go_back).contains(order));
    assert!(!said(&selective).contains(order));
    let one_path = "--set topology.routing=d-mod-k";
    assert!(!said(&format!("{go_back} {one_path}")).contains(order));
    // Without faults these connections acknowledge nothing, and so send nothing again.
    assert!(!said("--set nic.reliability.kind=go-back-n").contains(order));
    let root_off = "--set 'faults=[{of=\"switch 16\", off_at=\"1us\", on_at=\"2us\"}]'";
    assert!(!said(root_off).contains(routes), "adaptive routings look away");
    assert!(said(&format!("{root_off} {one_path}")).contains(routes));
    assert!(!said(&format!("{root_off} {one_path} --set fabric.reroute=up-down")).contains(routes));
}

/// Catches a `--set` of another interface's key, which would change nothing and say nothing.
#[test]
fn connections_of_other_interfaces_are_refused() {
    let set = "nic.reliability.kind=go-back-n";
    let said = refused(&["traffic", "-m", "exanest", "--load", "0.1", "--set", set]);
    assert!(said.contains("`nic.reliability.kind` has no effect with nic.model = \"exanet\""), "{said}");
    assert!(said.contains("nic.model = \"overheads\""), "{said}");
}

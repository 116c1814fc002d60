//! Multicast from the command line: broadcasts, traffic, the proof of groups, and what is refused.

use crate::common::{json, refused, weft};

/// A Dragonfly of 72 endpoints.
const SMALL: [&str; 4] = ["-m", "bxi3-dragonfly", "--set", "topology.p=2"];

/// A broadcast on so many of its ranks, by an algorithm.
fn broadcast(algorithm: &str, more: &[&str]) -> Vec<String> {
    let words = ["osu", "bcast", "--ranks", "72", "--ppn", "1", "--json", "--algorithm", algorithm];
    [&words[..], &SMALL, more].concat().into_iter().map(str::to_owned).collect()
}

fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// Catches a broadcast by switches that is no broadcast, that takes its root's link more than once, and one
/// that depends on threads.
#[test]
fn switches_broadcast() {
    let by = |algorithm: &str| json(&words(&broadcast(algorithm, &["--sizes", "1M", "--check"])));
    let (multicast, binomial) = (by("multicast"), by("binomial"));
    let latency = |run: &serde_json::Value| run["rows"][0]["latency_us"].as_f64().unwrap();
    // 256 packets of 4096 + 68 B at 50 B/ns: less than once is impossible, and a tree of software takes its
    // root's link six times or more.
    let once = 256.0 * 4164.0 / 50.0 / 1000.0;
    assert!(latency(&multicast) > once, "{multicast}");
    assert!(latency(&multicast) < 2.0 * once, "{multicast}");
    assert!(latency(&binomial) > 3.0 * once, "{binomial}");
    for threads in ["2", "3", "8"] {
        let again = json(&words(&broadcast("multicast", &["--sizes", "1M", "--threads", threads])));
        for column in ["latency_us", "latency_min_us", "latency_max_us", "packet_hops", "run_time_us"] {
            assert_eq!(again["rows"][0][column], multicast["rows"][0][column], "{threads} threads: {column}");
        }
    }
}

/// Catches a limit that a user is not told of.
#[test]
fn what_cannot_multicast_says_why() {
    let words = ["osu", "bcast", "--algorithm", "multicast", "--sizes", "1K", "--ranks", "8"];
    let said = |more: &[&str]| {
        let output = weft(&[&words[..], more].concat());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said_of_exanest = said(&["-m", "exanest", "--ppn", "1"]);
    assert!(said_of_exanest.contains("sends to one endpoint at a time"), "{said_of_exanest}");
    let shared = said(&["-m", "bxi3-dragonfly", "--set", "host.cores=4", "--ppn", "4"]);
    assert!(shared.contains("are on one endpoint") && shared.contains("--ppn 1"), "{shared}");
}

/// Catches a packet that is lost without a word: the data is not sent again.
#[test]
fn a_lost_copy_is_lost_data() {
    let lossy = broadcast("multicast", &["--sizes", "1M", "--set", "faults=[{drop=20000}]", "--quiet"]);
    let output = weft(&words(&lossy));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("weft: lost-data: "), "{said}");
}

/// Catches members that do not get what their root sends, at low load all of it.
#[test]
fn groups_of_the_machine_carry_traffic() {
    let group = "multicast=[{name=\"all\", members=[\"all\"], root=\"5\"}]";
    let traffic = ["traffic", "--pattern", "multicast", "--load", "0.3", "--check", "--json"];
    let run = json(&[&traffic[..], &SMALL, &["--set", group]].concat());
    let accepted = run["rows"][0]["accepted_load"].as_f64().unwrap();
    assert!((accepted - 0.3).abs() < 0.03, "{run}");
    let two = "multicast=[{name=\"a\", members=[\"0:9\", \"20\"]}, {name=\"b\", members=[\"5\", \"6\"]}]";
    let run = json(&[&traffic[..], &SMALL, &["--set", two]].concat());
    assert_eq!(run["rows"].as_array().unwrap().len(), 1);
}

/// Catches groups that the deadlock proof leaves out.
#[test]
fn the_proof_covers_the_machines_groups() {
    let group = "multicast=[{name=\"few\", members=[\"0:9\", \"70\"]}]";
    let check = json(&[&["machine", "check", "--json"][..], &SMALL[1..], &["--set", group]].concat());
    assert_eq!(check["deadlock_free"], true);
    let proof = check["proof"].to_string();
    assert!(
        proof.contains("multicast group few: trees of 11 roots") && proof.contains("110 to members"),
        "{proof}"
    );
}

/// Bad groups name their key and the mend.
#[test]
fn bad_groups_are_refused() {
    let check = |group: &str| {
        let group = format!("multicast={group}");
        refused(&[&["machine", "check"][..], &SMALL[1..], &["--set", &group]].concat())
    };
    for (group, expected) in [
        (r#"[{name="a", members=["0", "72"]}]"#, "72"),
        (r#"[{name="a", members=["0:3", "2"]}]"#, "endpoint 2 is a member twice"),
        (r#"[{name="a", members=["7"]}]"#, "two members at least, and this one has 1"),
        (r#"[{name="a", members=["9:3"]}]"#, "write the lower endpoint first"),
        (r#"[{name="a", members=["0:3"], root="4"}]"#, "root 4 is no member of `a`"),
        (r#"[{name="a", members=["0:3"]}, {name="a", members=["0:3"]}]"#, "two groups are called `a`"),
        (r#"[{members=["0:3"]}]"#, "has no `name`"),
        (r#"[{name="a"}]"#, "has no `members`"),
        (r#"[{name="a", members="all"}]"#, "no list of endpoints"),
        (r#"[{name="a", members=["all"], roots="4"}]"#, "roots"),
    ] {
        let said = check(group);
        assert!(said.contains(expected) && said.contains("multicast"), "{group}: {said}");
    }
    let traffic = ["traffic", "--pattern", "multicast", "--load", "0.1"];
    let said = refused(&[&traffic[..], &SMALL].concat());
    assert!(said.contains("this machine has no groups") && said.contains("[[multicast]]"), "{said}");
    let said = refused(&[&traffic[..], &["-m", "exanest"]].concat());
    assert!(said.contains("TR-488 has no multicast"), "{said}");
}

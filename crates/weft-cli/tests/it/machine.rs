//! `weft machine`: what ships, figures, the proof, and files that are not machines.

use crate::common::{json, refused, weft};
use serde_json::Value;

#[test]
fn what_ships_is_listed_shown_and_checked() {
    let list = json(&["machine", "list", "--json"]);
    let rows = list["rows"].as_array().unwrap();
    let endpoints = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["endpoints"].clone();
    assert_eq!(endpoints("exanest"), 128);
    assert_eq!(endpoints("bxi3-dragonfly"), 342);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let shown = json(&["machine", "show", name, "--json"]);
        assert_eq!((&shown["machine"], &shown["endpoints"]), (&row["name"], &row["endpoints"]));
        assert!(shown["values"].as_array().unwrap().iter().all(|value| !value["kind"].is_null()));
        let check = json(&["machine", "check", name, "--json"]);
        assert_eq!(check["deadlock_free"], true);
        assert!(weft(&["machine", "show", name]).status.success());
    }
}

/// Catches names that another command does not know, and rows that are missing: the rack's last endpoint.
#[test]
fn endpoints_are_listed_by_name() {
    let names = json(&["machine", "names", "exanest", "--set", "topology.mezzanines=12", "--json"]);
    let rows = names["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[191]["name"]), (192, &"M12QDF4".into()));
    let words = ["osu", "latency", "-m", "exanest", "--sizes", "0", "--from", "M1QAF1", "--to", "M1QBF1"];
    assert_eq!(json(&[&words[..], &["--json"]].concat())["rows"][0]["path"], "Intra-mezz-sh");
}

/// Catches figures that take time with the square of the machine, and such that count otherwise than the
/// glossary: a Dragonfly has at most three links between switches on a minimal path, and two to endpoints.
#[test]
fn the_large_dragonfly_has_its_figures() {
    let sets = ["topology.p=13", "topology.a=26", "topology.h=13", "topology.groups=339"];
    let mut words = vec!["machine", "show", "bxi3-dragonfly", "--json"];
    words.extend(sets.iter().flat_map(|set| ["--set", set]));
    let shown = json(&words);
    assert_eq!((&shown["endpoints"], &shown["switches"]), (&Value::from(114_582), &Value::from(8_814)));
    assert_eq!(shown["diameter_hops"], 5);
    assert!((4.0..5.0).contains(&shown["mean_distance_hops"].as_f64().unwrap()));
    let bounds = shown["bounds"].as_array().unwrap();
    let bound = |pattern: &str| bounds.iter().find(|bound| bound["pattern"] == pattern).unwrap();
    assert!(bound("uniform")["max_load"].as_f64().unwrap() > 0.9);
    assert!(bound("transpose")["undefined"].as_str().unwrap().contains("square"));
}

/// Catches a machine that is refused where it is given as to commands that simulate, and none that is taken.
#[test]
fn the_machine_may_be_given_as_an_option() {
    for command in [&["show"][..], &["check"], &["names", "--links"], &["draw"]] {
        let plain = weft(&[&["machine"], command, &["bxi2-megafly"]].concat());
        assert!(plain.status.success());
        for option in ["-m", "--machine"] {
            let words = [&["machine"], command, &[option, "bxi2-megafly"]].concat();
            assert_eq!(weft(&words).stdout, plain.stdout, "{words:?}");
        }
        assert!(refused(&[&["machine"], command].concat()).contains("NAME|FILE"));
        let both = [&["machine"], command, &["exanest", "-m", "exanest"]].concat();
        assert!(refused(&both).contains("cannot be used with"));
    }
}

/// Catches sixty lines of assumed values that nobody has asked for, and a count that is not theirs.
#[test]
fn assumed_values_are_counted_and_listed_on_demand() {
    let check = json(&["machine", "check", "exanest", "--json"]);
    let assumed = check["assumed"].as_array().unwrap();
    let text = |more: &[&str]| {
        let words = [&["machine", "check", "exanest"], more].concat();
        String::from_utf8(weft(&words).stdout).unwrap()
    };
    let said = format!("{} values are not known of the hardware: --assumed lists them\n", assumed.len());
    assert!(text(&[]).ends_with(&said), "{}", text(&[]));
    let listed = text(&["--assumed"]);
    assert!(assumed.iter().all(|value| listed.contains(value["key"].as_str().unwrap())), "{listed}");
}

/// Catches lines that a pager or a mail breaks within words, and words that are lost where lines are broken.
#[test]
fn sentences_fit_a_page() {
    let check = ["machine", "check", "bxi3-dragonfly", "--assumed"];
    for words in [&["machine", "show", "exanest"][..], &check] {
        let printed = String::from_utf8(weft(words).stdout).unwrap();
        let longest = printed.lines().map(|line| line.chars().count()).max();
        assert!((100..=120).contains(&longest.unwrap()), "{words:?}: {longest:?}");
        assert!(!printed.lines().any(|line| line.trim().is_empty() && !line.is_empty()), "{words:?}");
    }
}

#[test]
fn a_machine_that_can_deadlock_ends_with_1_and_its_cycle() {
    let words = ["machine", "check", "communication-ip", "--set", "topology.dims=[5]"];
    assert_eq!(weft(&words).status.code(), Some(0));
    let output = weft(&[&words[..], &["--set", "topology.datelines=false", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let check: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(check["deadlock_free"], false);
    let endpoints = check["endpoint_proof"][0].as_str().unwrap();
    assert!(endpoints.starts_with("endpoints consume all 3 classes of messages"), "{endpoints}");
    assert!(check["endpoint_proof"][1].as_str().unwrap().contains("do not read"));
    let data = &check["message_classes"][2];
    // Its interface acknowledges nothing.
    assert_eq!((&data["class"], &data["causes"]), (&"data".into(), &Value::Array(vec![])));
    assert_eq!(check["message_classes"][0]["causes"][0], "CTS");
    assert_eq!((&data["virtual_channels"], &data["refused_until"]), (&[0].into(), &Value::Array(vec![])));
    let proof = check["proof"].as_array().unwrap();
    assert!(proof[0].as_str().unwrap().contains("5 channels can wait for each other in a circle"));
    assert_eq!(
        proof[1].as_str().unwrap().trim_end_matches(" waits for"),
        proof.last().unwrap().as_str().unwrap()
    );
}

/// Catches a self-test that is not the document's (D2.8 §2.1, §5.1), one that hides a failure, and an error
/// that does not say which machines have one.
#[test]
fn an_interface_tests_itself() {
    let words = ["machine", "selftest", "communication-ip", "--json"];
    let report = json(&words);
    assert_eq!(report["passed"], true);
    let row = &report["rows"][0];
    let numbers =
        ["packets", "size_bytes", "cycles", "status", "wrong"].map(|key| row[key].as_u64().unwrap());
    assert_eq!((row["test"].as_str().unwrap(), numbers), ("loop", [1, 16, 28, 0x31, 0]));
    assert_eq!(report["rows"].as_array().unwrap().len(), 4);
    let output = weft(&[&words[..], &["--set", "faults=[{of=\"0\", corrupt=100000}]"]].concat());
    assert_eq!(output.status.code(), Some(1));
    for words in [
        &["machine", "selftest", "exanest"][..],
        &["machine", "selftest", "communication-ip", "--set", "nic.model=overheads"],
    ] {
        let said = refused(words);
        assert!(said.contains("has no self-test") && said.contains("these have: communication-ip"), "{said}");
    }
}

/// Catches a crash or a hang on what is no machine file, and an error that does not say where and what to do.
#[test]
fn files_that_are_no_machines_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let exanest = include_str!("../../../../machines/exanest.toml");
    let huge = file("huge.toml", &vec![b'#'; 5 << 20]);
    let deep = file("deep.toml", format!("x = {}", "[".repeat(100_000)).as_bytes());
    for (path, mend) in [
        (file("empty.toml", b""), "[machine]"),
        (file("binary.toml", &[0x7f, b'E', b'L', b'F', 0xff, 0xfe]), "UTF-8"),
        (huge, "longer than 4 MiB"),
        (deep, "deep.toml"),
        (file("cut.toml", &exanest.as_bytes()[..exanest.len() / 2]), "cut.toml"),
        (file("nan.toml", exanest.replace("value = 8,", "value = nan,").as_bytes()), "nan.toml"),
        (file("many.toml", exanest.replace("value = 8,", "value = 1000000000000,").as_bytes()), "many.toml"),
        (folder.path().to_str().unwrap().to_owned(), "directory"),
        ("/dev/zero".to_owned(), "longer than 4 MiB"),
    ] {
        let said = refused(&["machine", "check", &path]);
        assert!(said.contains(mend), "{path}: {said}");
    }
    // A file that is no machine at all: a few errors, their number, and how to start.
    let users = file("users.toml", "root:x:0:0:root:/root:/bin/sh\n".repeat(40).as_bytes());
    let other = file("other.toml", include_bytes!("../../Cargo.toml"));
    for (path, count) in [(users, "37 more lines are no TOML"), (other, "the sections [machine], [topology]")]
    {
        let said = refused(&["machine", "check", &path]);
        assert!(said.contains(count) && said.contains("weft machine new --like"), "{said}");
        assert!(said.lines().count() < 70, "{said}");
    }
    let said = refused(&["machine", "show", "exanest", "--set", "links.qfbd.rate=1Gb/s"]);
    assert!(said.contains("did you mean `links.qfdb`"), "{said}");
    let said = refused(&["machine", "show", "exanest", "--set", "links.qfdb.rate=16GB/s"]);
    assert!(said.contains("Gb/s"), "{said}");
}

//! Links and switches that fail and come back, by the command.

use crate::common::{json, weft};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TREE: [&str; 9] =
    ["traffic", "-m", "ethernet-100g-spineleaf", "--pattern", "uniform", "--load", "0.3", "--time", "60us"];

/// Catches names of links that `[[faults]]` does not take.
#[test]
fn links_are_named_as_faults_take_them() {
    let document = json(&["machine", "names", "ethernet-100g-spineleaf", "--links", "--json"]);
    let rows = document["rows"].as_array().unwrap();
    let shown = json(&["machine", "show", "ethernet-100g-spineleaf", "--json"]);
    assert_eq!(rows.len() as u64, shown["links"].as_u64().unwrap());
    for row in [&rows[0], &rows[rows.len() - 1]] {
        let (from, to) = (row["from"].as_str().unwrap(), row["to"].as_str().unwrap());
        let set = format!("faults=[{{between=[\"{from}\",\"{to}\"],off_at=\"20us\",on_at=\"40us\"}}]");
        let check = weft(&["machine", "check", "ethernet-100g-spineleaf", "--set", &set]);
        assert!(check.status.success(), "{set}: {}", text(&check.stderr));
        assert!(text(&check.stdout).contains("one state of failed links"), "{}", text(&check.stdout));
    }
}

/// Catches a switch whose failure is not said before the run, not counted, or loses more than it must; tables
/// that are not used; and rows that depend on threads.
#[test]
fn a_switch_that_fails_and_comes_back_costs_what_it_must() {
    let outage = "faults=[{of=\"switch 40\", off_at=\"20us\", on_at=\"40us\"}]";
    let run = |more: &[&str]| {
        let output =
            weft(&[&TREE[..], &["--warm-up", "10us", "--check", "--json", "--set", outage], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut row = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["rows"][0].clone();
        // Real time and memory.
        for key in ["build_time_s", "packet_hops_per_second", "peak_memory_bytes"] {
            row.as_object_mut().unwrap().remove(key).unwrap();
        }
        row
    };
    let count = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let kept = run(&[]);
    assert!(count(&kept, "packets_dropped_dead") > 0.0 && count(&kept, "packets_rerouted") == 0.0, "{kept}");
    let reroute = ["--set", "fabric.reroute=up-down", "--set", "fabric.reroute_after=1us"];
    let around = run(&reroute);
    assert!(count(&around, "packets_rerouted") > 0.0, "{around}");
    assert!(count(&around, "packets_dropped") < count(&kept, "packets_dropped") / 4.0, "{around}\n{kept}");
    assert_eq!(count(&around, "links_off_us"), count(&kept, "links_off_us"));
    for threads in ["2", "3"] {
        let row = run(&[&reroute[..], &["--threads", threads]].concat());
        assert_eq!(row, around, "{threads} threads");
    }
}

/// Catches an outage that lies in the warm-up, so that nothing is measured of it, and about which nothing is
/// said: of 10 us all, or the first 4.
#[test]
fn an_outage_in_the_warm_up_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("own.toml");
    let flow = "[[flows]]\nname = \"a\"\nrole = \"victim\"\nfrom = \"1\"\nto = \"0\"\nsize = \"4K\"\n";
    let outage = ["--set", "faults=[{of=\"switch 40\", off_at=\"6us\", on_at=\"16us\"}]"];
    for (warm_up, share) in [("30us", 1.0), ("10us", 0.4), ("0us", 0.0)] {
        let head = format!("[scenario]\ntitle = \"one\"\ntime = \"40us\"\nwarm_up = \"{warm_up}\"\n");
        std::fs::write(&scenario, head + flow).unwrap();
        let pattern = [&TREE[..7], &["--time", "10us", "--warm-up", warm_up]].concat();
        let of_file = ["traffic", "-m", "ethernet-100g-spineleaf", "--scenario", scenario.to_str().unwrap()];
        for words in [pattern, of_file.to_vec()] {
            let row = json(&[&words[..], &outage, &["--quiet", "--json"]].concat())["rows"][0].clone();
            let [all, part] =
                ["links_off_us", "links_off_in_warm_up_us"].map(|key| row[key].as_f64().unwrap());
            assert!((part - share * all).abs() < 1e-6, "{warm_up}: {part} of {all}");
            let said = text(&weft(&[&words[..], &outage, &["--quiet"]].concat()).stdout);
            assert_eq!(said.contains("of it in the warm-up, which is not measured"), part > 0.0, "{said}");
        }
    }
}

/// Catches an outage that begins when the run has ended, and about which nothing is said.
#[test]
fn an_outage_after_the_end_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("own.toml");
    let flow = "[[flows]]\nname = \"a\"\nrole = \"victim\"\nfrom = \"1\"\nto = \"0\"\nsize = \"4K\"\n";
    std::fs::write(&scenario, format!("[scenario]\ntitle = \"one\"\ntime = \"40us\"\n{flow}")).unwrap();
    let pattern = [&TREE[..7], &["--time", "20us", "--warm-up", "20us"]].concat();
    let of_file = ["traffic", "-m", "ethernet-100g-spineleaf", "--scenario", scenario.to_str().unwrap()];
    for (off_at, after) in [("39us", 0), ("50us", 1)] {
        let outage = format!("faults=[{{of=\"switch 40\", off_at=\"{off_at}\"}}]");
        for words in [&pattern[..], &of_file] {
            let results = folder.path().join(format!("{off_at} {}", words.len())).display().to_string();
            let words = [words, &["--set", &outage, "--quiet"]].concat();
            let row = json(&[&words[..], &["--json"]].concat())["rows"][0].clone();
            assert_eq!(row["outages_after_end"], after, "{off_at}");
            let said = text(&weft(&words).stdout);
            assert_eq!(said.contains("1 outage begins after the end of the run"), after == 1, "{said}");
            assert!(weft(&[&words[..], &["-o", &results]].concat()).status.success());
            let page = format!("{results}.html");
            let report = json(&["report", &results, "-o", &page, "--json"]).to_string();
            assert_eq!(
                report.contains("outages that begin after the end of the run: 1"),
                after == 1,
                "{report}"
            );
        }
    }
}

/// Catches bad input that is taken, or refused without file, key or mend.
#[test]
fn bad_failures_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let schedule = folder.path().join("may.csv");
    let named = format!("faults=[{{schedule=\"{}\"}}]", schedule.display());
    let refused = |lines: &str, sets: &[&str]| {
        std::fs::write(&schedule, format!("from,to,off_at,on_at\n{lines}")).unwrap();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = weft(&[&["machine", "check", "ib-qdr-fattree"], &sets[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let error = refused("switch 0,,20us,40us\nswitch 9999,,20us,\n", &[&named]);
    assert!(error.contains("may.csv:3") && error.contains("switch 9999"), "{error}");
    let error = refused("switch 0,,20us,10us\n", &[&named]);
    assert!(error.contains("may.csv:2") && error.contains("before it fails"), "{error}");
    let error = refused("0,,20us,50us\n0,,40us,60us\n", &[&named]);
    assert!(error.contains("may.csv:3") && error.contains("while it is off"), "{error}");
    let reroute = ["fabric.reroute=up-down", "fabric.reroute_after=1us"];
    let for_good = "faults=[{of=\"switch 0\", off_at=\"20us\"}]";
    let error = refused("", &[for_good, reroute[0], reroute[1]]);
    assert!(error.contains("cut off from the others: 0, 1") && error.contains("on_at"), "{error}");
    let error = refused("", &["faults=[{duplicate=10}]", "nic.reliability.kind=none"]);
    assert!(error.contains("faults.0.duplicate") && error.contains("exanet"), "{error}");
    let cut = ["--set", for_good, "--time", "5us", "--json"];
    let output = weft(&[&TREE[..7], &cut].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("from 20us on, for good,"), "{}", text(&output.stderr));
}

/// Catches an interface that takes a copy for a message, or loses one that was overtaken.
#[test]
fn the_block_level_interface_stands_copies_and_late_packets() {
    let sizes = ["osu", "bw", "-m", "exanest", "--sizes", "4:64K", "--data", "--json"];
    let row = json(&[&sizes[..], &["--set", "faults=[{duplicate=50000, reorder=50000}]"]].concat());
    assert!(row["rows"].as_array().unwrap().len() > 5, "{row}");
}

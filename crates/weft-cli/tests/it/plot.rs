//! `weft plot`, `report`, `compare` and `doctor`, through the whole program.

use crate::common::{json, refused, weft};
use crate::outlets::SCENARIO;
use serde_json::Value;
use std::fs;
use std::path::Path;

const MACHINE: &str = "-m bxi3-fattree --set topology.k=4 --set topology.n=2 --set nic.model=overheads \
                       --set switch.kind=input-queued --quiet";

fn run(text: &str, out: &Path) -> String {
    let path = out.to_str().unwrap().to_owned();
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.extend(MACHINE.split_whitespace());
    words.extend(["-o", &path]);
    let output = weft(&words);
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    path
}

fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
}

/// Catches a kind that does not draw, axes without units, and a kind whose table is missing that does not say
/// what writes it.
#[test]
fn every_kind_is_drawn_or_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let traffic = "traffic --pattern uniform --size 1K:2K --load 0.2:0.6:0.4 --time 10us";
    let full =
        run(&format!("{traffic} --telemetry 1us --tables messages,flows,links,flow_rates"), &at("full"));
    let incast = "traffic --pattern incast --size 4K --load 0.5 --time 10us --telemetry 1us";
    let jam = run(incast, &at("jam"));
    let bare = run(&format!("{traffic} --tables flows"), &at("bare"));
    for (kind, label, needs) in [
        ("load-curve", "latency (µs)", None),
        ("fct-cdf", "completion time (µs)", Some("--tables messages")),
        ("slow-down", "size of the message (bytes)", Some("--tables messages")),
        ("queue", "bytes in queues (KiB)", Some("--telemetry 10us")),
        ("queue-heat-map", "most held (KiB)", Some("--telemetry 10us")),
        ("switch-queues", "deepest queue of each switch (packets)", Some("--telemetry 10us")),
        ("switch-queue-heat-map", "deepest queue (packets)", Some("--telemetry 10us")),
        ("rates", "rate (Gb/s)", Some("--telemetry 10us")),
        ("throughput", "payload that came (Gb/s)", Some("flow_rates")),
        ("congestion-trees", "waits, or full (%)", Some("--telemetry 10us")),
        ("link-utilization", "time in which the link was sending (%)", Some("--tables links")),
        ("timeline", "time", Some("--tables messages")),
        ("communication-matrix", "bytes (KiB)", Some("--tables messages")),
    ] {
        let (svg, png) = (at(&format!("{kind}.svg")), at(&format!("{kind}.png")));
        let (svg_path, png_path) = (svg.to_str().unwrap(), png.to_str().unwrap());
        // Uniform traffic makes no lasting tree.
        let full = if kind == "congestion-trees" { &jam } else { &full };
        let drawn = json(&["plot", full, "--what", kind, "-o", svg_path, "--json"]);
        assert_eq!(drawn["picture"]["kind"], kind);
        let found = texts(&fs::read_to_string(&svg).unwrap());
        let has = found.iter().any(|text| text.starts_with(label));
        assert!(has, "{kind}: {found:?}");
        // All are drawn by the same code; a bitmap takes seconds in a build for tests.
        if ["load-curve", "queue-heat-map"].contains(&kind) {
            assert!(weft(&["plot", full, "--what", kind, "-o", png_path]).status.success());
            assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
        }
        if let Some(needs) = needs {
            let other = at("other.svg");
            let said = refused(&["plot", &bare, "--what", kind, "-o", other.to_str().unwrap()]);
            assert!(said.contains(needs) && !other.exists(), "{said}");
        }
    }
}

/// Catches a default picture without data: flows fill no queues, so their table of them is empty. Catches a
/// result without the table of links, whose default picture was that of links.
#[test]
fn the_usual_picture_has_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let traffic = "traffic --pattern uniform --load 0.4 --time 5us";
    let flows = run(&format!("{traffic} --set fabric.kind=flow --telemetry 1us"), &at("flows"));
    let messages = run(&format!("{traffic} --tables messages"), &at("messages"));
    for (result, kind) in [(&flows, "rates"), (&messages, "fct-cdf")] {
        let path = at(&format!("{kind}.svg")).to_str().unwrap().to_owned();
        let picture = json(&["plot", result, "-o", &path, "--json"])["picture"].clone();
        assert_eq!(picture["kind"], kind);
        let lines = picture["panels"][0]["content"]["lines"].as_array().unwrap();
        let points = lines.iter().flat_map(|line| line["points"].as_array().unwrap());
        assert!(points.into_iter().any(|point| point[1].as_f64().unwrap() > 0.0), "{kind} is empty");
    }
    let no = at("no.svg").to_str().unwrap().to_owned();
    let said = refused(&["plot", &flows, "--what", "queue", "-o", &no]);
    assert!(said.contains("fill no queues") && said.contains("rates or link-utilization"), "{said}");
}

/// Catches a window that shows other intervals than its own, queues that are not the deepest of their switch,
/// and a window of a picture that has no time.
#[test]
fn a_window_of_time_is_a_part_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(
        "traffic --pattern incast --size 4K --load 0.5 --time 10us --telemetry 1us --tables links,flow_rates",
        &folder.path().join("out"),
    );
    let picture = |kind: &str, window: &[&str]| {
        let file = folder.path().join(format!("{kind}{}.svg", window.len()));
        let path = file.to_str().unwrap();
        let words = [&["plot", &out, "--what", kind, "-o", path, "--force", "--json"], window].concat();
        json(&words)["picture"]["panels"][0]["content"].clone()
    };
    let window = ["--from", "4us", "--to", "7500ns"];
    for (kind, form) in [("switch-queues", "stacked"), ("rates", "lines"), ("throughput", "lines")] {
        let (whole, part) = (picture(kind, &[]), picture(kind, &window));
        let points = |content: &Value| content[form][0]["points"].as_array().unwrap().clone();
        assert_eq!(points(&part), points(&whole)[4..8], "{kind}");
    }
    let cells = picture("switch-queue-heat-map", &window)["cells"].clone();
    assert_eq!(cells["edges"], serde_json::json!([4.0, 5.0, 6.0, 7.0, 8.0]));
    // The machine's switches hold 132 KB in each queue: 31 packets of 4,144 B and a rest.
    let stacked = picture("switch-queues", &[]);
    let depths = stacked["stacked"].as_array().unwrap().iter().flat_map(|one| {
        one["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect::<Vec<_>>()
    });
    let deepest = depths.fold(0.0, f64::max);
    assert!((20.0..=33.0).contains(&deepest), "{deepest}");
    for words in [["--what", "load-curve", "--from", "1us"], ["--what", "rates", "--from", "1s"]] {
        let said = refused(
            &[&["plot", &out, "-o", folder.path().join("no.svg").to_str().unwrap()], &words[..]].concat(),
        );
        assert!(said.contains("--from"), "{said}");
    }
}

/// Catches a picture that takes the place of another file or lies among results, wrong names and runs, and
/// a directory that is no result.
#[test]
fn pictures_take_the_place_of_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = run("traffic --pattern uniform --load 0.2:0.6:0.4 --time 5us", &folder.path().join("out"));
    let two = run("traffic --pattern uniform --load 0.2:0.6:0.4 --time 6us", &folder.path().join("two"));
    let picture = at("p.svg");
    assert!(weft(&["plot", &out, &two, "-o", &picture]).status.success());
    let legend = texts(&fs::read_to_string(&picture).unwrap());
    assert!(legend.iter().any(|text| text.starts_with("two, ")), "{legend:?}");
    assert!(refused(&["plot", &out, "-o", &picture]).contains("--force"));
    assert!(refused(&["plot", &out, "-o", &at("out/p.svg")]).contains("lies in the directory"));
    assert!(refused(&["plot", &out, "-o", &at("p.jpg")]).contains(".svg nor .png"));
    assert!(refused(&["plot", &out, "--what", "pie", "-o", &at("q.svg")]).contains("load-curve"));
    let wrong = refused(&["plot", &out, "--what", "link-utilization", "--run", "7", "-o", &at("q.svg")]);
    assert!(wrong.contains("no run 7, but 2"), "{wrong}");
    assert!(refused(&["plot", &at("nowhere"), "-o", &at("q.svg")]).contains("no run.json"));
    fs::create_dir_all(folder.path().join("open/.weft")).unwrap();
    assert!(refused(&["plot", &at("open"), "-o", &at("q.svg")]).contains("was killed before its end"));
}

/// Catches a page without its parts, and a machine's hostile name that becomes markup.
#[test]
fn a_report_has_everything_and_runs_no_script() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join("<img src=x onerror=alert(1)>");
    let traffic = "traffic --pattern incast --size 4K --load 0.5 --time 20us --telemetry 1us";
    let out = run(&format!("{traffic} --tables messages,flows,links"), &hostile);
    let page = folder.path().join("report.html");
    let path = page.to_str().unwrap();
    let document = json(&["report", &out, "-o", path, "--json"]);
    assert!(document["report"]["slowest"].as_array().unwrap().len() > 3);
    let tree = &document["report"]["congestion_trees"][0];
    assert_eq!(tree["root"].as_str().unwrap().rsplit_once(' ').unwrap().1, "0", "incast is to endpoint 0");
    assert!(
        tree["share"].as_f64().unwrap() > 0.5 && tree["branches"].as_array().unwrap().len() > 1,
        "{tree}"
    );
    assert_eq!(tree["victims"], serde_json::json!([]));
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("<img") && !html.contains("<script"));
    assert!(html.contains("&lt;img src=x onerror=alert(1)&gt;"));
    for part in [
        "Key figures",
        "Where the latency goes",
        "Congestion trees",
        "Slowest messages",
        "Hot links",
        "Critical path",
        "Assumed constants",
        "<svg",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(refused(&["report", &out, "-o", path]).contains("--force"));
}

/// Catches another root than the link that five senders want, a victim that is not named, and the flows of
/// the incast taken for victims.
#[test]
fn the_victim_of_an_incast_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/incast-victim.toml");
    let (out, page) = (at("out"), at("report.html"));
    let words =
        ["traffic", "-m", "carvnet-spineleaf", "--scenario", scenario, "--telemetry", "5us", "-o", &out];
    assert!(weft(&[&words[..], &["--quiet"]].concat()).status.success());
    let document = json(&["report", &out, "-o", &page, "--json"]);
    let tree = &document["report"]["congestion_trees"][0];
    assert_eq!(tree["root"], "switch 3 port 3 → endpoint 15");
    assert!(tree["share"].as_f64().unwrap() > 0.5, "{tree}");
    let into_its_switch = |branch: &Value| branch["link"].as_str().unwrap().contains("→ switch 3 port");
    assert!(tree["branches"].as_array().unwrap().iter().any(into_its_switch), "{tree}");
    let ends = |flow: &Value| (flow["from"].as_u64().unwrap(), flow["to"].as_u64().unwrap());
    let flows = |which: &str| -> Vec<_> { tree[which].as_array().unwrap().iter().map(ends).collect() };
    let mut contributors = flows("contributors");
    contributors.sort_unstable();
    assert_eq!(contributors, [0, 4, 5, 8, 9].map(|from| (from, 15)));
    assert_eq!(flows("victims"), [(6, 14)]);
    let warnings = document["report"]["warnings"].to_string();
    assert!(warnings.contains("victims: 6 to 14"), "{warnings}");
    assert!(fs::read_to_string(&page).unwrap().contains("6 to 14 ("));
}

/// Catches a difference that is not found, one that is found between equals, and cases that do not match.
#[test]
fn results_are_compared_over_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let traffic = "traffic --pattern uniform --time 10us --seeds 3 --load";
    let one = run(&format!("{traffic} 0.3"), &at("one"));
    let same = run(&format!("{traffic} 0.3"), &at("same"));
    let slower = run(&format!("{traffic} 0.3 --set links.endpoint.latency=900ns"), &at("slower"));
    let other = run(&format!("{traffic} 0.4"), &at("other"));
    let of = |words: &[&str], quantity: &str| {
        let document = json(words);
        let rows = document["comparison"]["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["quantity"] == quantity).unwrap()["values"].clone()
    };
    let equal = of(&["compare", &one, &same, "--json"], "latency_mean_ns");
    assert_eq!(equal[1]["change"], 0.0);
    assert!(equal[1]["p"].as_f64().unwrap() > 0.99, "{equal}");
    let changed = of(&["compare", &one, &slower, "--json"], "latency_mean_ns");
    assert!(changed[1]["change"].as_f64().unwrap() > 0.05, "{changed}");
    assert!(changed[1]["p"].as_f64().unwrap() < 0.05, "{changed}");
    let page = at("c.html");
    let output = weft(&["compare", &one, &slower, "--html", page.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("latency mean (µs)") && !text.contains("0.00 %"), "{text}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Welch") && html.contains("latency mean (µs)"));
    // Lines of both results in one picture, which names what was changed.
    assert!(html.contains("<svg") && html.contains("links.endpoint.latency=900ns"));
    // The messages are the same in both: a row of them says nothing.
    assert!(html.contains("The same in all"));
    let said = String::from_utf8(weft(&["compare", &one, &same]).stdout).unwrap();
    assert!(said.starts_with("no difference"), "{said}");
    assert!(refused(&["compare", &one, &other]).contains("no row in common"));
}

/// Catches prices that are not those of the machine's file, and a machine without them that is compared. The
/// tree of k = 4 and n = 2 has 16 endpoints, each with a link at 10 and two ports at 5, and 16 links between
/// switches at 30: 20 + 30 = 50 for an endpoint.
#[test]
fn results_are_compared_by_price() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let traffic = "traffic --pattern uniform --time 10us --load 0.3";
    let prices = "--set links.endpoint.cost=10 --set links.endpoint.port_cost=5 --set links.tree.cost=30";
    let twice = "--set links.endpoint.cost=40 --set links.tree.cost=60";
    let none = run(traffic, &at("none"));
    let one = run(&format!("{traffic} {prices}"), &at("one"));
    let two = run(&format!("{traffic} {twice}"), &at("two"));
    let of = |words: &[&str]| {
        let rows = json(words)["comparison"]["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["quantity"].as_str().unwrap().starts_with("accepted_load")).unwrap()
    };
    let load = of(&["compare", &one, &two, "--json"])["values"][0]["value"].as_f64().unwrap();
    let priced = of(&["compare", &one, &two, "--per", "cost", "--json"])["values"].clone();
    assert!((priced[0]["value"].as_f64().unwrap() - load / 50.0).abs() < 1e-9, "{priced}");
    assert!((priced[1]["change"].as_f64().unwrap() + 0.5).abs() < 1e-9, "{priced}");
    let said = refused(&["compare", &none, &one, "--per", "cost"]);
    assert!(said.contains("no price") && said.contains("links.endpoint.cost"), "{said}");
}

/// Catches groups of a scenario, or ways to control congestion, that are thrown together in pictures, left
/// out of the report, or compared with others unnamed.
#[test]
fn groups_and_ways_are_apart_in_pictures_reports_and_comparisons() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("own.toml"), SCENARIO).unwrap();
    for ways in ["none", "acc", "none,acc"] {
        let scenario = at("own.toml");
        let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &scenario, "--congestion", ways];
        let out = at(ways);
        let tables = ["--tables", "messages,flows", "--quiet", "-o", &out];
        assert!(weft(&[&words[..], &tables[..]].concat()).status.success());
    }
    let both = at("none,acc");
    // The mean and the 99th percentile are lines of slow-down, the whole distribution is one.
    for (kind, lines) in [("slow-down", 4), ("fct-cdf", 2)] {
        let drawn = json(&["plot", &both, "--what", kind, "-o", &at(&format!("{kind}.svg")), "--json"]);
        let panels = drawn["picture"]["panels"].as_array().unwrap();
        assert_eq!(panels.len(), 2, "{drawn}");
        for (panel, name) in panels.iter().zip(["incast", "small"]) {
            assert_eq!(panel["title"], name);
            let series = panel["content"]["lines"].as_array().unwrap();
            assert_eq!(series.len(), lines, "{panel}");
            let of = |way: &str| {
                series.iter().filter(|line| line["label"].as_str().unwrap().contains(way)).count()
            };
            assert_eq!((of("congestion none"), of("congestion acc")), (lines / 2, lines / 2), "{panel}");
        }
    }
    let report = json(&["report", &both, "-o", &at("report.html"), "--json"]);
    let (columns, rows) = (&report["report"]["rows"][0], report["report"]["rows"][1].as_array().unwrap());
    assert_eq!((&columns[0], &columns[1]), (&"congestion".into(), &"group".into()));
    assert!(columns.as_array().unwrap().contains(&"throughput_gbps".into()), "{columns}");
    let cases: Vec<[&str; 2]> =
        rows.iter().map(|row| [0, 1].map(|cell| row[cell].as_str().unwrap())).collect();
    assert_eq!(cases, [["none", "incast"], ["none", "small"], ["acc", "incast"], ["acc", "small"]]);
    let warnings = report["report"]["warnings"].to_string();
    assert!(warnings.contains("congestion none, incast: transfers under way at the end: "), "{warnings}");

    let compared = |one: &str, other: &str| {
        let document = json(&["compare", &at(one), &at(other), "--json"]);
        let rows = document["comparison"]["rows"].as_array().unwrap().clone();
        let rates = rows.into_iter().filter(|row| row["quantity"] == "throughput_gbps");
        let cases: Vec<(String, Vec<f64>)> = rates
            .map(|row| {
                let values = row["values"].as_array().unwrap();
                let values = values.iter().map(|value| value["value"].as_f64().unwrap()).collect();
                (row["case"].as_str().unwrap().to_owned(), values)
            })
            .collect();
        (cases, document["comparison"]["unmatched"].clone())
    };
    let (across, unmatched) = compared("none", "acc");
    assert_eq!(unmatched, serde_json::json!([]));
    assert_eq!(across[0].0, "congestion none | acc, incast");
    // Of several ways each is compared with itself alone.
    let (same, unmatched) = compared("none,acc", "acc");
    let cases: Vec<&str> = same.iter().map(|(case, _)| case.as_str()).collect();
    assert_eq!(cases, ["congestion acc, incast", "congestion acc, small"]);
    assert!(same.iter().all(|(_, values)| values[0] == values[1]), "{same:?}");
    assert_eq!(same[0].1[0], across[0].1[1]);
    assert_eq!(unmatched, serde_json::json!(["congestion none, incast", "congestion none, small"]));
}

/// Catches a check that does not name the mend.
#[test]
fn doctor_names_the_mend() {
    let output = weft(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    for command in ["all", "run", "record", "view"] {
        assert!(rows.iter().any(|row| row["for_command"] == command), "{command}");
    }
    for row in rows {
        assert!(row["found"] == true || row["mend"].as_str().unwrap().len() > 10, "{row}");
    }
    let missing = rows.iter().any(|row| row["found"] == false && row["optional"] == false);
    assert_eq!(output.status.code(), Some(i32::from(missing)));
    // A newcomer who types the name alone gets first steps and no error.
    let alone = weft(&[]);
    assert!(alone.status.success());
    assert!(String::from_utf8(alone.stdout).unwrap().contains("weft doctor"));
}

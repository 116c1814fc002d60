//! `weft machine draw`: the pictures hold what the machine has, once each, and lie on the sheet.

use crate::common::{json, refused, weft};
use roxmltree::{Document, Node};
use serde_json::Value;
use std::collections::BTreeSet;

/// The SVG of a machine.
fn drawn(words: &[&str]) -> String {
    let output = weft(&[&["machine", "draw"], words].concat());
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The elements of a class.
fn of_class<'d>(svg: &'d Document<'_>, class: &str) -> Vec<Node<'d, 'd>> {
    let is_of_class = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|classes| classes.split(' ').any(|one| one == class))
    };
    svg.descendants().filter(is_of_class).collect()
}

/// The text that is shown when the pointer rests on a shape.
fn tooltip<'d>(node: &Node<'d, 'd>) -> &'d str {
    node.children().find(|child| child.has_tag_name("title")).and_then(|title| title.text()).unwrap()
}

/// The number before a word, such as 8814 of `8,814 switches`.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_else(|| panic!("{text}"));
    let digits = before.trim_end().rsplit([' ', '×']).next().unwrap().replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("no number before `{word}` in `{text}`"))
}

/// Checks that all that is drawn lies on the sheet.
fn lies_on_the_sheet(svg: &Document<'_>, words: &[&str]) {
    let size = |name: &str| svg.root_element().attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size("width"), size("height"));
    let drawing = of_class(svg, "drawing")[0];
    let moved = drawing.attribute("transform").unwrap();
    let moved = moved.trim_start_matches("translate(").trim_end_matches(')');
    let moved: Vec<f64> = moved.split(' ').map(|part| part.parse().unwrap()).collect();
    for node in drawing.descendants() {
        let at = |name: &str| node.attribute(name).and_then(|text| text.parse::<f64>().ok());
        let is_turned = node
            .ancestors()
            .any(|one| one.attribute("transform").is_some_and(|text| text.contains("rotate")));
        let ((Some(x), Some(y)), false) = ((at("cx").or(at("x")), at("cy").or(at("y"))), is_turned) else {
            continue;
        };
        let (x, y) = (x + moved[0], y + moved[1]);
        assert!(
            (0.0..=width).contains(&x) && (0.0..=height).contains(&y),
            "{words:?}: {x}, {y} of {width}, {height}"
        );
    }
}

/// Draws a machine switch by switch and compares it with its figures.
fn every_switch_is_drawn(words: &[&str]) {
    let shown = json(&[&["machine", "show"], words, &["--json"]].concat());
    let text = drawn(words);
    let svg = Document::parse(&text).unwrap();
    let count = |key: &str| shown[key].as_u64().unwrap();
    let switches = of_class(&svg, "switch");
    assert_eq!(switches.len() as u64, count("switches"), "{words:?}");
    let names: BTreeSet<&str> =
        switches.iter().map(|node| tooltip(node).split(": ").next().unwrap()).collect();
    assert_eq!(names.len(), switches.len(), "{words:?}: switches share a name");
    // Dots, or a number where there are many.
    let numbers = of_class(&svg, "endpoints");
    let numbered: u64 =
        numbers.iter().map(|node| number_before(&format!("{} ", node.text().unwrap()), " ")).sum();
    assert_eq!(of_class(&svg, "endpoint").len() as u64 + numbered, count("endpoints"), "{words:?}");
    let told: u64 = switches.iter().map(|node| number_before(tooltip(node), " endpoint")).sum();
    assert_eq!(told, count("endpoints"), "{words:?}");
    let links = of_class(&svg, "link");
    for class in shown["links_by_class"].as_array().unwrap() {
        let (name, expected) = (class["class"].as_str().unwrap(), class["links"].as_u64().unwrap());
        let of_class = links.iter().map(tooltip).filter(|told| told.rsplit(", ").next() == Some(name));
        let drawn: u64 = of_class.map(|told| number_before(told, " link")).sum();
        assert_eq!(drawn, if name == "endpoint" { 0 } else { expected }, "{words:?}: {name}");
    }
    let told: BTreeSet<&str> = links.iter().map(|node| tooltip(node).split(": ").next().unwrap()).collect();
    assert!(told.iter().all(|ends| ends.split(" – ").all(|end| names.contains(end))), "{words:?}");
    let used = shown["links_by_class"].as_array().unwrap().iter().filter(|class| class["links"] != 0);
    assert_eq!(of_class(&svg, "legend").len(), used.count(), "{words:?}");
    let head: String = of_class(&svg, "head")[0].descendants().filter_map(|node| node.text()).collect();
    assert!(head.contains(shown["machine"].as_str().unwrap()), "{head}");
    let endpoints = count("endpoints");
    if endpoints < 1000 {
        assert!(head.contains(&format!("{endpoints} endpoint")), "{head}");
    }
    lies_on_the_sheet(&svg, words);
}

/// Catches switches, endpoints and links that are left out, drawn twice or under another's name.
#[test]
fn shipped_machines_are_drawn_switch_by_switch() {
    let list = json(&["machine", "list", "--json"]);
    for row in list["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        // A machine that ships with more switches is drawn by its parts.
        if json(&["machine", "show", name, "--json"])["switches"].as_u64().unwrap() <= 1000 {
            every_switch_is_drawn(&[name]);
        }
    }
}

/// The same of every family and of shapes with rings, rows, parallel links and one switch alone.
#[test]
fn every_family_is_drawn_switch_by_switch() {
    for sets in [
        &["topology.dims=[8,8,8]"] as &[&str],
        &["topology.dims=[7,5]", "topology.endpoints_per_switch=3"],
        &["topology.dims=[3,2,4,2]"],
        &["topology.dims=[1]"],
        &["topology.kind=mesh", "topology.dims=[4,3,2]"],
        &["topology.kind=hyperx", "topology.dims=[5,4]", "topology.endpoints_per_switch=40"],
        &["topology.kind=hypercube", "topology.dimensions=6"],
        &["topology.kind=fully-connected", "topology.switches=12"],
        &["topology.kind=slim-fly", "topology.q=5"],
        &["topology.kind=star", "topology.endpoints=9"],
        &["topology.kind=star", "topology.endpoints=5000"],
        &["topology.kind=tree", "topology.down=[4,4,8]", "topology.up=[2,4]", "topology.parallel=[2,2]"],
        &[
            "topology.kind=spine-leaf",
            "topology.leaves=6",
            "topology.spines=3",
            "topology.endpoints_per_leaf=4",
        ],
        &["topology.kind=kary-tree", "topology.k=3", "topology.n=3"],
        &["topology.kind=exanest", "topology.mezzanines=12"],
        &["topology.kind=megafly", "topology.endpoints_per_leaf=2", "topology.groups=4"],
        &["topology.kind=dragonfly", "topology.p=2", "topology.groups=2"],
    ] {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        every_switch_is_drawn(&[&["communication-ip", "--set", "nic.model=overheads"], &sets[..]].concat());
    }
}

/// Catches names that break the document: those of a graph are anybody's.
#[test]
fn graphs_are_drawn_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.json");
    let graph = serde_json::json!({
        "nodes": [{ "id": "a<b>&\"c\"" }, { "id": "d" }, { "id": "é" }],
        "edges": [
            { "source": "a<b>&\"c\"", "target": "d", "links": 3 },
            { "source": "d", "target": "é", "class": "far" },
        ],
    });
    std::fs::write(&file, graph.to_string()).unwrap();
    let set = format!("topology.file={}", file.to_str().unwrap());
    let words =
        ["communication-ip", "--set", "nic.model=overheads", "--set", "topology.kind=graph", "--set", &set];
    every_switch_is_drawn(&words);
    let text = drawn(&words);
    let svg = Document::parse(&text).unwrap();
    assert!(of_class(&svg, "switch").iter().any(|node| tooltip(node).contains("a<b>&\"c\"")));
    let numbers = of_class(&svg, "count").into_iter().flat_map(|node| node.descendants());
    let numbers: BTreeSet<&str> = numbers.filter_map(|node| node.text()).map(str::trim).collect();
    assert!(numbers.contains("×3"), "{numbers:?}");
}

/// Catches a picture in the book that is an old one.
#[test]
fn the_picture_of_the_book_is_current() {
    let file = "../../docs/src/commands/machine-draw.svg";
    let now = drawn(&["communication-ip", "--set", "topology.dims=[4,4]"]);
    if std::env::var_os("WEFT_BLESS").is_some() {
        std::fs::write(file, &now).unwrap();
    }
    assert!(std::fs::read_to_string(file).unwrap() == now, "write it anew with WEFT_BLESS=1");
}

/// Catches a large machine drawn as a grey block, and boxes that do not hold the whole machine.
#[test]
fn large_machines_are_drawn_by_their_parts() {
    for (machine, sets, boxes, first) in [
        (
            "bxi3-dragonfly",
            &["topology.p=13", "topology.a=26", "topology.h=13", "topology.groups=339"] as &[&str],
            339,
            "group 0",
        ),
        ("communication-ip", &["topology.dims=[16,16,16]"], 16, "z = 0"),
        ("bxi3-fattree", &["topology.k=32", "topology.n=3"], 33, "subtree 0"),
        ("communication-ip", &["nic.model=overheads", "topology.dims=[2000]"], 24, "switches 0 … 83"),
        (
            "communication-ip",
            &["nic.model=overheads", "topology.kind=fully-connected", "topology.switches=600"],
            24,
            "switches 0 … 24",
        ),
        ("exanest", &["topology.mezzanines=64"], 64, "mezzanine M1"),
        ("communication-ip", &["nic.model=overheads", "topology.dims=[2,2000]"], 334, "y = 0 … y = 5"),
    ] {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let words = [&[machine], &sets[..]].concat();
        let text = drawn(&words);
        assert!(text.len() < 2 << 20, "{words:?}: {} bytes", text.len());
        let svg = Document::parse(&text).unwrap();
        assert!(of_class(&svg, "switch").is_empty());
        let parts = of_class(&svg, "part");
        assert_eq!(parts.len(), boxes, "{words:?}");
        assert!(tooltip(&parts[0]).starts_with(&format!("{first}: ")), "{}", tooltip(&parts[0]));
        let shown = json(&[&["machine", "show"], &words[..], &["--json"]].concat());
        let sum = |word: &str| {
            Value::from(parts.iter().map(|part| number_before(tooltip(part), word)).sum::<u64>())
        };
        assert_eq!(
            (sum(" switch"), sum(" endpoint")),
            (shown["switches"].clone(), shown["endpoints"].clone())
        );
        let head: String = of_class(&svg, "head")[0].descendants().filter_map(|node| node.text()).collect();
        assert!(head.contains(&format!("Drawn by its parts: {boxes} boxes")), "{head}");
        lies_on_the_sheet(&svg, &words);
    }
}

/// Catches a file that is destroyed, and errors without the mend.
#[test]
fn files_are_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, machine) = (path("a.svg"), path("own.toml"));
    let output = weft(&["machine", "draw", "communication-ip", "-o", &file]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), drawn(&["communication-ip"]));
    let said = refused(&["machine", "draw", "exanest", "-o", &file]);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), drawn(&["communication-ip"]));
    assert!(weft(&["machine", "draw", "exanest", "-o", &file, "--force"]).status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), drawn(&["exanest"]));
    std::fs::copy("../../machines/exanest.toml", &machine).unwrap();
    let said = refused(&["machine", "draw", &machine, "-o", &machine, "--force"]);
    assert!(said.contains("which this run reads"), "{said}");
    assert!(refused(&["machine", "draw", "exanest", "-o", &path("no/such.svg")]).contains("cannot write"));
    assert!(refused(&["machine", "draw", "exanest", "-o", &path("")]).contains("cannot write"));
    assert!(refused(&["machine", "draw", "exanets"]).contains("did you mean `exanest`"));
    assert!(refused(&["machine", "draw", &path("none.toml")]).contains("cannot read"));
    assert!(refused(&["machine", "draw", "exanest", "--force"]).contains("--output"));
}

/// Catches a drawing under the name of something else.
#[test]
fn a_drawing_is_named_svg() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.exe");
    let said = refused(&["machine", "draw", "exanest", "-o", path.to_str().unwrap()]);
    assert!(said.contains("x.exe: a drawing is SVG"), "{said}");
    assert!(!path.exists());
}

/// Catches thousands of links between groups that become one filled disc, which nobody can read.
#[test]
fn many_links_shine_through() {
    let text = drawn(&["slingshot-dragonfly"]);
    let svg = Document::parse(&text).unwrap();
    let lines = of_class(&svg, "link");
    assert!(lines.len() > 2_000, "{}", lines.len());
    let sheet = lines[0].parent().unwrap();
    assert_eq!(sheet.attribute("opacity"), None);
    let opacity: f64 = sheet.attribute("stroke-opacity").unwrap().parse().unwrap();
    assert!((0.05..0.2).contains(&opacity), "{opacity}");
}

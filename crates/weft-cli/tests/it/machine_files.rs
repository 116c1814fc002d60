//! `weft machine new` and `weft machine diff`: a file to start from, and what sets it apart.

use crate::common::{json, refused, weft};
use serde_json::Value;
use std::fs;

/// The text of a new machine.
fn new(name: &str, like: &str) -> String {
    let output = weft(&["machine", "new", name, "--like", like]);
    assert!(output.status.success(), "{like}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The differences of two machines, after checking that the exit status agrees with them.
fn diff(words: &[&str]) -> Value {
    let output = weft(&[&["machine", "diff", "--json"], words].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let status = if found["same"] == true { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(status), "{words:?}: {found}");
    found
}

fn keys(found: &Value) -> Vec<&str> {
    found["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

/// Catches a value or a source that is lost on the way, and a file that no command takes.
#[test]
fn every_shipped_machine_can_be_started_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let file = path.to_str().unwrap();
    for row in json(&["machine", "list", "--json"])["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let text = new("mine", name);
        fs::write(&path, &text).unwrap();
        let check = json(&["machine", "check", file, "--json"]);
        assert_eq!((&check["machine"], &check["deadlock_free"]), (&"mine".into(), &true.into()));
        let found = diff(&[file, name, "--sources"]);
        assert_eq!(keys(&found), ["machine.name", "machine.title"], "{name}");
        assert_eq!((&found["rows"][0]["a"], &found["rows"][0]["b"]), (&"mine".into(), &name.into()));
        assert_eq!((&found["figures"], &found["sources"]), (&Value::Array(vec![]), &Value::Array(vec![])));
        assert_eq!(diff(&[name, name, "--sources"])["same"], true);
        // A file made of the file says the same once more.
        let again = new("again", file);
        fs::write(folder.path().join("again.toml"), again).unwrap();
        let found = diff(&[file, folder.path().join("again.toml").to_str().unwrap(), "--sources"]);
        assert_eq!(keys(&found), ["machine.name", "machine.title"], "{name}");
    }
}

/// Catches values without their comment, and a comment of another key.
#[test]
fn keys_are_explained() {
    let text = new("mine", "exanest");
    for lines in [
        "# Header bytes. As in 256, 4K or 1M. Must be given.\nheader = { value = 16, kind = \"datasheet\"",
        "1 to 4, or a multiple of 4. A whole number. Must be given.\nmezzanines = ",
        "of the MAC for Ethernet. As\n# in 16Gb/s or 100Gb/s.\nrate = ",
        "# The machine in a few words. Must be given.\ntitle = \"mine\"\n",
        "# Which way packets go; `dimension-order` where not given. ",
    ] {
        assert!(text.contains(lines), "{lines} is not in\n{text}");
    }
    let lines: Vec<&str> = text.lines().collect();
    let values = lines.windows(2).filter(|two| two[1].contains(" = { value = "));
    let bare = values.clone().find(|two| !two[0].starts_with("# "));
    assert_eq!((bare, values.count() > 100), (None, true));
}

/// Catches values without units, keys of one side that are left out, and figures that are wrong.
#[test]
fn differences_have_both_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let file = path.to_str().unwrap();
    let text = new("mine", "exanest");
    let text = text.replace("latency = { value = \"107ns\"", "latency = { value = \"110ns\"");
    let text = text.replace("mezzanines = { value = 8,", "mezzanines = { value = 4,");
    let text = text
        .replace("\n[switch]\n", "\n[switch]\nislip_iterations = 2\n")
        .replace("\"round-robin\"", "\"islip\"");
    fs::write(&path, &text).unwrap();
    let found = diff(&["exanest", file]);
    let row = |key: &str| {
        let rows = found["rows"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("{key}: {found}")).clone()
    };
    assert_eq!(
        (&row("links.qfdb.latency")["a"], &row("links.qfdb.latency")["b"]),
        (&"107ns".into(), &"110ns".into())
    );
    let only = row("switch.islip_iterations");
    assert_eq!((&only["a"], &only["b"]), (&Value::Null, &"2".into()));
    let expected = [
        "machine.name",
        "machine.title",
        "topology.mezzanines",
        "links.qfdb.latency",
        "switch.arbiter",
        "switch.islip_iterations",
    ];
    assert_eq!(keys(&found), expected);
    let figures: Vec<(&str, u64, u64)> = found["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (row["figure"].as_str().unwrap(), row["a"].as_u64().unwrap(), row["b"].as_u64().unwrap_or(0))
        })
        .collect();
    assert_eq!(figures[0], ("endpoints", 128, 64));
    assert_eq!(figures[1], ("switches", 160, 80));
    assert!(figures.contains(&("links of class qfdb", 192, 96)), "{figures:?}");
    assert!(figures.contains(&("links of class z", 16, 0)), "{figures:?}");
    let output = weft(&["machine", "diff", "exanest", file]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.lines().any(|line| line.split_whitespace().eq(["links.qfdb.latency", "107ns", "110ns"])),
        "{said}"
    );
    assert!(
        said.lines().any(|line| line.split_whitespace().eq(["switch.islip_iterations", "-", "2"])),
        "{said}"
    );
}

/// Catches sources that count where nobody asked for them.
#[test]
fn sources_are_compared_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bare.toml");
    let file = path.to_str().unwrap();
    let exanest = fs::read_to_string("../../machines/exanest.toml").unwrap();
    let header = "header = { value = 16, kind = \"datasheet\", source = \"TR-488 §4.2\" }";
    assert!(exanest.contains(header));
    fs::write(&path, exanest.replace(header, "header = \"16\"")).unwrap();
    assert_eq!(diff(&[file, "exanest"])["same"], true);
    assert!(weft(&["machine", "diff", file, "exanest"]).status.success());
    let found = diff(&[file, "exanest", "--sources"]);
    assert_eq!((keys(&found).len(), found["sources"].as_array().unwrap().len()), (0, 1));
    assert_eq!(found["sources"][0]["key"], "packet.header");
    assert_eq!(found["sources"][0]["b"], "datasheet: TR-488 §4.2");
}

/// Catches a graph that the new file looks for in another folder.
#[test]
fn the_file_of_a_graph_is_found_from_here() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = new("ring", "communication-ip");
    // Headers of its interface name no node of a graph.
    let text =
        text.replace("\"communication-ip\", kind = \"datasheet\"", "\"overheads\", kind = \"datasheet\"");
    let topology = "[topology]\nkind = \"graph\"\nfile = \"ring.edges\"\n\n";
    let (start, end) = (text.find("[topology]").unwrap(), text.find("[fabric]").unwrap());
    fs::write(at("ring.toml"), format!("{}{topology}{}", &text[..start], &text[end..])).unwrap();
    fs::write(at("ring.edges"), "a b\nb c\nc a\n").unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/mine.toml"), new("mine", &at("ring.toml"))).unwrap();
    assert_eq!(json(&["machine", "show", &at("other/mine.toml"), "--json"])["switches"], 3);
    // Two graphs of as many links each are not the same for that.
    let mine = fs::read_to_string(at("other/mine.toml")).unwrap();
    let (one, other) = (at("one.edges"), at("other.edges"));
    fs::write(&one, "a b\nb c\nc d\nd a\n").unwrap();
    fs::write(&other, "a b\nb c\nc a\nc d\n").unwrap();
    fs::write(at("one.toml"), mine.replace(&at("ring.edges"), &one)).unwrap();
    fs::write(at("other.toml"), mine.replace(&at("ring.edges"), &one)).unwrap();
    assert_eq!(diff(&[&at("one.toml"), &at("other.toml")])["same"], true);
    fs::write(at("other.toml"), mine.replace(&at("ring.edges"), &other)).unwrap();
    assert_eq!(keys(&diff(&[&at("one.toml"), &at("other.toml")])), ["topology.file"]);
}

/// Catches bad input that ends with 0 or 1, or is refused without the mend.
#[test]
fn what_is_no_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for name in ["", "a/b", "mine.toml", "my machine", "a\"b", "ümlaut", "a\nb"] {
        let said = refused(&["machine", "new", name, "--like", "exanest"]);
        assert!(said.contains("is not the name of a machine") && said.contains("such as my-torus"), "{said}");
    }
    let said = refused(&["machine", "new", "exanest", "--like", "bxi3-fattree"]);
    assert!(said.contains("`exanest` ships with weft"), "{said}");
    assert!(refused(&["machine", "new", "mine", "--like", "exanets"]).contains("did you mean `exanest`"));
    assert!(refused(&["machine", "new", "mine", "--like", "none/own.toml"]).contains("cannot read"));
    assert!(refused(&["machine", "new", "mine", "--like", folder]).contains("directory"));
    assert!(refused(&["machine", "new", "mine"]).contains("--like"));
    for words in [["exanets", "exanest"], ["exanest", "exanets"]] {
        assert!(refused(&[&["machine", "diff"], &words[..]].concat()).contains("did you mean `exanest`"));
    }
    assert!(refused(&["machine", "diff", "exanest", "none/own.toml"]).contains("cannot read"));
    assert!(refused(&["machine", "diff", "exanest", folder]).contains("directory"));
    assert!(refused(&["machine", "diff", "exanest"]).contains("<B>"));
}

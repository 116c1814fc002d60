//! Every shipped machine checks, every class of mistake has its text, and no text makes a panic.

use super::*;
use proptest::prelude::*;
use serde_json::Value as Json;
use weft_msg::Algorithm;
use weft_topo::{DragonflyRouting, TopologyParameters};

const NO_SETS: [&str; 0] = [];

/// The diagnostics for `exanest` after one replacement in its text.
fn broken(from: &str, to: &str) -> String {
    let text = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
    assert!(text.contains(from), "{from} is not in the file");
    check_text("own.toml", &text.replacen(from, to, 1), &NO_SETS).unwrap_err().to_string()
}

/// The diagnostics of a shipped machine after `--set`.
fn refused(name: &str, set: &str) -> String {
    load(name, &[set]).unwrap_err().to_string()
}

/// Diagnostics one below the other, as a snapshot that a reviewer can read.
fn together<const N: usize>(texts: [String; N]) -> String {
    texts.join("\n\n---\n")
}

#[test]
fn shipped_machines_check_and_have_their_sizes() {
    let listed: Vec<(String, u64, u64)> =
        list().into_iter().map(|line| (line.name, line.endpoints, line.cores)).collect();
    let expected = [
        ("apenetx-u200", 2, 32),
        ("apenetx-u280", 2, 20),
        ("bxi2-fattree", 256, 256),
        ("bxi2-megafly", 288, 288),
        ("bxi3-dragonfly", 342, 342),
        ("bxi3-fattree", 256, 256),
        ("bxi3-megafly", 288, 288),
        ("carvnet-riscv", 2, 2),
        ("carvnet-spineleaf", 16, 64),
        ("communication-ip", 2, 4),
        ("deep-msa", 20, 20),
        ("dqn-node", 8, 8),
        ("ethernet-100g-spineleaf", 512, 512),
        ("exanest", 128, 512),
        ("ib-ndr-fattree", 4096, 4096),
        ("ib-qdr-fattree", 16_384, 16_384),
        ("slingshot-dragonfly", 37_888, 37_888),
    ];
    assert_eq!(listed, expected.map(|(name, endpoints, cores)| (name.to_owned(), endpoints, cores)));
    for shipped in SHIPPED {
        assert_eq!(shipped.check(&NO_SETS).unwrap().name, shipped.name);
    }
}

/// Catches mistakes that follow from another, which was told: a key that is there and wrong is none that
/// lacks, and classes are not held against an arbiter that nobody knows.
#[test]
fn a_wrong_value_is_told_once() {
    let sets = [
        "links.default.power.active=many",
        "links.default.power.policy=idle-timeout",
        "switch.arbiter=stricter",
        "switch.classes=[{name=\"all\", priority=1}]",
        "links.default.framing=many",
    ];
    let told = load("bxi3-fattree", &sets).unwrap_err();
    let titles: Vec<&str> = told.0.iter().map(|diagnostic| diagnostic.title.as_str()).collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
}

/// Catches lines of a file from Windows that are no lines, as in texts of several lines.
#[test]
fn lines_may_end_as_on_windows() {
    for shipped in SHIPPED {
        let machine = shipped.check(&NO_SETS).unwrap();
        let windows = crate::check_text(shipped.name, &shipped.text.replace('\n', "\r\n"), &NO_SETS);
        assert_eq!(windows.unwrap_or_else(|why| panic!("{}: {why}", shipped.name)), machine);
    }
}

/// Catches a number without source or kind, in any of the sections of a shipped machine.
#[test]
fn every_value_of_a_shipped_machine_has_a_source() {
    for shipped in SHIPPED {
        for kind in ["packet", "ideal"] {
            let machine = shipped.check(&[format!("fabric.kind={kind}")]).unwrap();
            for constant in machine.constants.iter().filter(|constant| constant.path != "fabric.kind") {
                assert!(
                    !matches!(constant.kind, Kind::Unsourced | Kind::Set),
                    "{}: {} = {} has no source",
                    shipped.name,
                    constant.path,
                    constant.value
                );
            }
        }
    }
    let bare = broken_off_source();
    assert_eq!(bare.kind, Kind::Unsourced, "the test above would not see a bare value");
}

fn broken_off_source() -> Constant {
    let text = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
    let line = text.lines().find(|line| line.starts_with("header = ")).unwrap();
    let machine = check_text("own.toml", &text.replacen(line, "header = 16", 1), &NO_SETS).unwrap();
    machine.get("packet.header").unwrap().clone()
}

/// Catches a published figure that was blanked and is used all the same: sources quote none.
#[test]
fn nothing_held_out_is_quoted() {
    for shipped in SHIPPED {
        assert!(!shipped.text.contains("[held out]"), "{}", shipped.name);
    }
}

#[test]
fn machines_scale_by_set() {
    fn endpoints(name: &str, sets: &[impl AsRef<str>]) -> u64 {
        load(name, sets).unwrap().topology.endpoints()
    }
    assert_eq!(endpoints("bxi3-dragonfly", &["topology.p=13"]), 114_582);
    let by_all = ["topology.p=13", "topology.a=26", "topology.h=13", "topology.groups=339"];
    assert_eq!(endpoints("bxi3-dragonfly", &by_all), 114_582);
    let by_all = ["endpoints_per_leaf=32", "leaves=32", "spines=32", "global_per_spine=32", "groups=1025"];
    assert_eq!(endpoints("bxi3-megafly", &by_all.map(|set| format!("topology.{set}"))), 1_049_600);
    assert_eq!(endpoints("communication-ip", &["topology.dims=[8,8,8]"]), 512);
    assert_eq!(endpoints("exanest", &["topology.mezzanines=12"]), 192);
    assert_eq!(endpoints("bxi3-fattree", &["topology.k=8"]), 64);
    assert_eq!(endpoints("bxi2-fattree", &["topology.k=24"]), 576);
    assert_eq!(endpoints("bxi2-fattree", &["topology.k=24", "topology.n=3"]), 13_824);
    assert_eq!(endpoints("bxi2-megafly", &["topology.groups=37"]), 1332);
    assert_eq!(endpoints("ethernet-100g-spineleaf", &["topology.spines=8"]), 512);
    assert_eq!(endpoints("ib-ndr-fattree", &["topology.parallel=[1,8]"]), 8192);
    assert_eq!(endpoints("ib-ndr-fattree", &["topology.parallel=[1,1]"]), 65_536);
    assert_eq!(endpoints("ib-ndr-fattree", &["topology.up=[16,32]"]), 4096);
    let full = ["topology.down=[18,18,36]", "topology.up=[18,18]", "topology.parallel=[1,1]"];
    assert_eq!(endpoints("ib-qdr-fattree", &full), 11_664);
    let small = ["topology.groups=10", "topology.links_per_pair=32"];
    assert_eq!(endpoints("slingshot-dragonfly", &small), 5120);
    let star = ["topology.kind=star", "topology.endpoints=16"];
    for Shipped { name, .. } in SHIPPED {
        // Headers of the Communication IP have coordinates.
        let overheads = ["communication-ip", "dqn-node"].contains(name).then_some("nic.model=overheads");
        let sets: Vec<&str> = star.into_iter().chain(overheads).collect();
        let machine = load(name, &sets).unwrap();
        let TopologyParameters::Star(star) = &machine.topology else { panic!("a star") };
        assert_eq!(star.endpoints, 16);
        let sizes = ["dims", "mezzanines", "k", "p", "down", "leaves"].map(|key| format!("topology.{key}"));
        let unused = |path: &String| sizes.contains(path) || path == "links.qfdb.rate";
        let listed = machine.constants.iter().find(|constant| unused(&constant.path));
        assert_eq!(listed, None, "values out of use are not listed");
    }
}

/// Catches a value of the file that stands in the way of trying another block by `--set`.
#[test]
fn blocks_are_exchanged_by_set() {
    let routing = |set: &str| match load("bxi3-dragonfly", &[set]).unwrap().topology {
        TopologyParameters::Dragonfly(dragonfly) => dragonfly.routing,
        other => panic!("{other:?} is not a Dragonfly"),
    };
    assert_eq!(routing("topology.routing=minimal"), DragonflyRouting::Minimal);
    let ugal_threshold = weft_units::Bytes::new(4096);
    assert_eq!(routing("topology.ugal_threshold=4K"), DragonflyRouting::UgalL { ugal_threshold });
    let sets = [
        "switch.arbiter=islip",
        "switch.islip_iterations=2",
        "switch.kind=virtual-output-queued",
        "switch.credit_unit=cells",
        "switch.cell=64",
    ];
    let Fabric::Packet { switch, .. } = load("exanest", &sets).unwrap().fabric else { panic!("packets") };
    assert_eq!(switch.arbiter, weft_fabric::parameters::ArbiterKind::Islip(2));
    assert_eq!(switch.credit, weft_fabric::parameters::CreditUnit::Cells(weft_units::Bytes::new(64)));
    assert!(refused("exanest", "switch.cell=64").contains("`switch.cell` means nothing with"));
    let combined = ["switch.kind=combined-input-output", "switch.speedup=1.25", "switch.output_buffer=8K"];
    let Fabric::Packet { switch, .. } = load("exanest", &combined).unwrap().fabric else { panic!("packets") };
    let speedup = weft_fabric::parameters::Speedup::from_thousandths(1_250).unwrap();
    assert_eq!(switch.kind, weft_fabric::parameters::SwitchKind::CombinedInputOutput(speedup));
    assert_eq!(switch.output_buffer, Some(weft_units::Bytes::new(8192)));
    let plain = ["switch.kind=input-queued"];
    let machine = load("bxi3-fattree", &plain).unwrap();
    assert!(machine.constants.iter().all(|constant| !constant.path.starts_with("switch.speedup")));
}

/// Catches a speed-up that no crossbar has, or that its kind of switch has no use for.
#[test]
fn a_speedup_is_refused_where_it_means_nothing() {
    for (set, said) in [
        ("switch.speedup=0.99", "`0.99` is not a speed-up"),
        ("switch.speedup=0", "`0` is not a speed-up"),
        ("switch.speedup=5000", "up to 4096 times"),
        ("switch.speedup=1.0001", "more than three digits"),
        ("switch.speedup=fast", "not a decimal number"),
        ("switch.speedup=-2", "not a decimal number"),
        ("switch.speedup=true", "this is not a speed-up"),
    ] {
        let found = refused("bxi3-fattree", set);
        assert!(found.contains(said), "{set}: {found}");
    }
    for key in ["speedup=2", "output_buffer=64K"] {
        let found = refused("exanest", &format!("switch.{key}"));
        assert!(found.contains("means nothing") && found.contains("combined-input-output"), "{found}");
    }
    let found = refused("exanest", "switch.kind=combined-input-output");
    assert!(found.contains("speedup"), "{found}");
}

/// Catches virtual channels, lanes and classes that are read as others than the file says.
#[test]
fn virtual_channels_and_classes_are_read() {
    let classes = r#"switch.classes=[{name="answers",of="acknowledgements",priority=2,weight=100},
        {name="small",of="data",up_to="64",priority=1,weight=200},{name="rest",priority=0,weight=4096}]"#;
    let sets =
        ["switch.virtual_channels=12", "switch.lane=room", classes, "switch.arbiter=weighted-round-robin"];
    let Fabric::Packet { switch, .. } = load("communication-ip", &sets).unwrap().fabric else {
        panic!("packets are the default")
    };
    let channels = switch.channels;
    assert_eq!((channels.total, channels.lane), (Some(12), weft_topo::LaneChoice::Room));
    assert_eq!(switch.arbiter, weft_fabric::parameters::ArbiterKind::WeightedRoundRobin);
    let all: Vec<_> = channels.classes.all().iter().map(|class| (class.priority, class.weight)).collect();
    assert_eq!(all, [(2, 100), (1, 200), (0, 4096)]);
    assert_eq!(channels.classes.all()[1].up_to, Some(weft_units::Bytes::new(64)));
}

/// Catches a class that takes other messages, or gets another part of links and buffers, than the file says.
#[test]
fn what_a_class_takes_and_gets_is_read() {
    use weft_fabric::{Minimum, Operations, TrafficKind};
    use weft_units::{BitRate, Bytes};
    let classes = r#"switch.classes=[
        {name="reads",of="requests",operation="get",job=3,priority=2,minimum="12.5%"},
        {name="bulk",by_name=true,priority=0,minimum="4Gb/s",buffer="64K"},{name="rest",priority=1}]"#;
    let sets = [classes, "switch.arbiter=minimum-bandwidth"];
    let Fabric::Packet { switch, classes, .. } = load("communication-ip", &sets).unwrap().fabric else {
        panic!("packets are the default")
    };
    assert_eq!(classes, ["reads", "bulk", "rest"]);
    assert_eq!(switch.arbiter, weft_fabric::parameters::ArbiterKind::MinimumBandwidth);
    let &[reads, bulk, rest] = switch.channels.classes.all() else { panic!("three classes") };
    assert_eq!((reads.kind, reads.operations), (TrafficKind::Requests, Some(Operations::GET)));
    assert_eq!((reads.job, reads.minimum), (Some(3), Minimum::Share(1_250)));
    assert_eq!((bulk.by_name, bulk.buffer), (true, Some(Bytes::new(65_536))));
    assert_eq!(bulk.minimum, Minimum::Rate(BitRate::from_gigabits(4)));
    assert_eq!((rest.operations, rest.minimum, rest.buffer), (None, Minimum::default(), None));
}

/// Catches channels, classes and arbiters that do not fit together and are taken, or refused without the
/// mend.
#[test]
fn channels_and_classes_that_do_not_fit_are_refused() {
    let refused = |sets: &[&str]| load("communication-ip", sets).unwrap_err().to_string();
    let table = |classes: &str| format!("switch.classes=[{classes}]");
    for (sets, expected) in [
        (
            vec!["switch.virtual_channels=3".to_owned()],
            "write virtual_channels = 2, 4, 6, 8, or another multiple",
        ),
        (vec!["switch.virtual_channels=0".to_owned()], "0 is too small"),
        (vec!["switch.virtual_channels=66".to_owned()], "a link has at most 64"),
        (vec!["switch.lane=room".to_owned()], "`switch.lane` means nothing without `virtual_channels`"),
        (
            vec!["switch.arbiter=strict-priority".to_owned()],
            "tells traffic classes apart, and there is only one",
        ),
        (
            vec![table(r#"{name="a",up_to="8"},{name="b",priority=2}"#)],
            "class `b` has a priority beyond the 2 classes",
        ),
        (vec![table(r#"{name="a",up_to="8",weight=0},{name="b"}"#)], "0 is too small"),
        (vec![table(r#"{name="a",up_to="8"},{name="a"}"#)], "two classes are called `a`"),
        (
            vec![table(r#"{name="a",of="acknowledgements",job=1},{name="b"}"#)],
            "class `a` gets no packets: those that only answer say nothing of a message",
        ),
        (vec![table(r#"{name="a",of="requests"},{name="b",of="acknowledgements"}"#)], "takes all replies"),
        (vec![table(r#"{name="a",operation="send"},{name="b"}"#)], "two-sided"),
        (vec![table(r#"{name="a",job="hpl"},{name="b"}"#)], "write 0 for the first application"),
        (vec![table(r#"{name="a",by_name=true}"#)], "no traffic class takes all data"),
        (vec![table(r#"{name="a",up_to="8",minimum="half"},{name="b"}"#)], "such as \"25%\""),
        (vec![table(r#"{name="a",up_to="8",minimum="0.125%"},{name="b"}"#)], "at most two digits"),
        (vec![table(r#"{name="a",up_to="8",minimum="100.01%"},{name="b"}"#)], "a link has 100%"),
        (
            vec![
                table(
                    r#"{name="a",up_to="8",priority=1,minimum="60%"},{name="b",priority=0,minimum="40.5%"}"#,
                ),
                "switch.arbiter=minimum-bandwidth".to_owned(),
            ],
            "a minimum of 100.5% of each link together",
        ),
        (
            vec![
                table(r#"{name="a",up_to="8",priority=1},{name="b",priority=0}"#),
                "switch.arbiter=minimum-bandwidth".to_owned(),
            ],
            "no traffic class has a minimum bandwidth",
        ),
        (
            vec![table(r#"{name="a",up_to="8",buffer="16"},{name="b"}"#)],
            "the buffer of class `a`, 16, cannot hold a whole packet",
        ),
        (
            vec![
                table(r#"{name="a",up_to="8",buffer="1M"},{name="b"}"#),
                "switch.buffer_per=port".to_owned(),
                "switch.buffer=1M".to_owned(),
            ],
            "class `a` has a buffer of its own, and ports share theirs out evenly",
        ),
        (vec![table(r#"{name="a",of="data"}"#)], "no traffic class takes all acknowledgements"),
        (vec![table(r#"{name="a"},{name="b",of="data"}"#)], "class `b` gets no packets: `a` takes them all"),
        (
            vec![
                table(r#"{name="a",up_to="8"},{name="b"}"#),
                "switch.arbiter=weighted-round-robin".to_owned(),
            ],
            "class `a` has no `weight`",
        ),
        (
            vec!["switch.buffer_per=port".to_owned(), "switch.virtual_channels=64".to_owned()],
            "for each of 64 virtual channels",
        ),
    ] {
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let error = refused(&sets);
        assert!(error.contains(expected), "{sets:?}: {error}");
    }
}

/// Catches a size or a name of a link class on which machine files and topologies disagree.
#[test]
fn sizes_and_link_classes_are_those_of_the_topologies() {
    use weft_topo::Topology as Built;
    use weft_topo::{Dimension, Dragonfly, DragonflySize, Exanest, KaryTree, Star, Tier, Torus, Tree};
    fn agrees(sets: &[&str], built: Result<impl Built, weft_topo::SizeError>) {
        let (machine, built) = (load("exanest", sets).unwrap(), built.unwrap());
        assert_eq!(machine.topology.endpoints(), u64::from(built.endpoints()), "{sets:?}");
        let Fabric::Packet { links, .. } = &machine.fabric else { panic!("packets are the default") };
        let mut classes = built.link_classes().to_vec();
        classes.sort_unstable();
        assert!(links.keys().eq(classes), "{sets:?}");
    }
    let dims = [3, 4, 2, 2].map(|size| Dimension { size, wrap: true });
    agrees(&["topology.kind=torus", "topology.dims=[3,4,2,2]"], Torus::new(&dims, 1));
    for mezzanines in [1, 4, 8, 12, 16] {
        agrees(&[&format!("topology.mezzanines={mezzanines}")], Exanest::new(mezzanines));
    }
    agrees(&["topology.kind=kary-tree", "topology.k=4", "topology.n=3"], KaryTree::new(4, 3));
    let tier = |children, parents, parallel| Tier { children, parents, parallel };
    let tree = ["topology.kind=tree", "topology.down=[4,4,8]", "topology.up=[2,4]"];
    agrees(&tree, Tree::new(4, &[tier(4, 2, 1), tier(8, 4, 1)]));
    agrees(
        &[&tree[..], &["topology.parallel=[2,4]"]].concat(),
        Tree::new(4, &[tier(2, 1, 2), tier(2, 1, 4)]),
    );
    agrees(
        &[
            "topology.kind=spine-leaf",
            "topology.leaves=8",
            "topology.spines=3",
            "topology.endpoints_per_leaf=6",
        ],
        Tree::new(6, &[tier(8, 3, 1)]),
    );
    let palmtree = weft_topo::GlobalLinks::Palmtree;
    agrees(
        &["topology.kind=dragonfly", "topology.p=3"],
        Dragonfly::new(DragonflySize { p: 3, a: 6, h: 3, g: 19 }, palmtree),
    );
    agrees(&["topology.kind=star", "topology.endpoints=9"], Star::new(9));
}

/// Catches a recipe of the book that is no machine, and a taper that is not the lack of a line.
#[test]
fn the_recipe_of_a_tree_is_a_machine() {
    let page = include_str!("../../../docs/src/howto/add-a-machine.md");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [lines, section] = blocks[..] else { panic!("two pieces of a machine file, not {blocks:?}") };
    let shipped = SHIPPED.iter().find(|shipped| shipped.name == "bxi3-fattree").unwrap().text;
    let (before, rest) = shipped.split_once("[topology]\n").unwrap();
    let (_, after) = rest.split_once("[fabric]").unwrap();
    let text = |lines: &str| format!("{before}[topology]\n{lines}\n[fabric]{after}\n{section}");
    let machine = check_text("own.toml", &text(lines), &NO_SETS).unwrap();
    let counts = machine.topology.counts();
    assert_eq!((counts.endpoints, counts.switches), (128, 32 + 16 + 8));
    assert_eq!(machine.get("links.level2.rate").unwrap().value, "800Gb/s");
    assert_eq!(machine.get("links.level1.rate").unwrap().value, "400Gb/s");
    let without: String =
        lines.lines().filter(|line| !line.starts_with("up")).map(|line| format!("{line}\n")).collect();
    let machine = check_text("own.toml", &text(&without), &NO_SETS).unwrap();
    assert_eq!(machine.topology.counts().switches, 32 + 32 + 16);
    assert_eq!(machine.get("topology.up").unwrap().kind, Kind::Derived);
}

#[test]
fn set_values_say_so_and_links_fall_back() {
    let machine = load("exanest", &["links.x.rate=16Gb/s"]).unwrap();
    let rate = machine.get("links.x.rate").unwrap();
    assert_eq!((rate.kind, rate.value.as_str()), (Kind::Set, "16Gb/s"));
    assert_eq!(rate.source.as_deref(), Some("--set links.x.rate=16Gb/s"));
    assert_eq!(machine.get("links.y.rate").unwrap().value, "10Gb/s");
    assert_eq!(machine.get("links.nowhere.rate"), None);
    let Fabric::Packet { links, .. } = &machine.fabric else { panic!("packets are the default") };
    assert_eq!(links["x"].rate, weft_units::BitRate::from_gigabits(16));
    assert_eq!(links["x"].latency, links["y"].latency);
    let derived = load("bxi3-dragonfly", &NO_SETS).unwrap();
    assert_eq!(derived.get("topology.groups").unwrap().kind, Kind::Derived);
    assert!(derived.doubtful().all(|constant| constant.kind != Kind::Derived));
}

#[test]
fn a_machine_survives_serialization() {
    for shipped in SHIPPED {
        for kind in ["packet", "ideal"] {
            let machine = shipped.check(&[format!("fabric.kind={kind}")]).unwrap();
            let text = serde_json::to_string(&machine).unwrap();
            assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
        }
    }
}

#[test]
fn the_schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/machine.schema.json");
    if std::env::var_os("WEFT_BLESS").is_some() {
        std::fs::write(path, schema()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(committed == schema(), "run WEFT_BLESS=1 cargo test -p weft-machine the_schema_is_current");
}

/// Catches a page of keys that lacks one, or that differs from its declaration.
#[test]
fn the_page_of_keys_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/machine-keys.md");
    if std::env::var_os("WEFT_BLESS").is_some() {
        std::fs::write(path, key_page()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(committed == key_page(), "run WEFT_BLESS=1 cargo test -p weft-machine the_page_of_keys");
}

/// Catches a schema that refuses what the reader takes, or takes keys that the reader refuses.
#[test]
fn shipped_machines_validate_against_the_schema() {
    let schema: Json = serde_json::from_str(&schema()).unwrap();
    for shipped in SHIPPED {
        let source = Sources(vec![Source { name: shipped.name.into(), text: shipped.text.into() }]);
        let mut file = json_of(&document::read(&source).unwrap());
        validates(&schema, &schema, &file, "").unwrap();
        file["packet"]["headre"] = Json::from(16);
        assert!(validates(&schema, &schema, &file, "").is_err());
    }
}

fn json_of(item: &document::Item) -> Json {
    match &item.value {
        document::Value::Text(text) => Json::from(text.as_str()),
        document::Value::Float(text) => Json::from(text.parse::<f64>().unwrap()),
        document::Value::Datetime => Json::Null,
        document::Value::Integer(integer) => Json::from(*integer as i64),
        document::Value::Boolean(truth) => Json::from(*truth),
        document::Value::Array(items) => items.iter().map(json_of).collect(),
        document::Value::Table(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), json_of(&entry.item))).collect()
        }
    }
}

/// The keywords of JSON Schema that the generated one uses; any other fails the test.
fn validates(root: &Json, schema: &Json, value: &Json, at: &str) -> Result<(), String> {
    let refuse = |why: String| Err(format!("{at}: {why}"));
    for (keyword, rule) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            // Patterns of quantities are for editors; the reader's own parser is the judge.
            "$schema" | "$defs" | "title" | "description" | "pattern" => {}
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                validates(root, target, value, at)?;
            }
            "anyOf" => {
                let tried: Vec<_> =
                    rule.as_array().unwrap().iter().map(|s| validates(root, s, value, at)).collect();
                if tried.iter().all(Result::is_err) {
                    return refuse(format!("none of {tried:?}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => return refuse(format!("not in {rule}")),
            "const" if rule != value => return refuse(format!("not {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() => return refuse(format!("below {rule}")),
            "maximum" if value.as_f64() > rule.as_f64() => return refuse(format!("above {rule}")),
            "enum" | "const" | "minimum" | "maximum" => {}
            "type" => {
                let kinds: Vec<&str> = match rule {
                    Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
                    kind => kind.as_str().into_iter().collect(),
                };
                let kind = match value {
                    Json::Null => "null",
                    Json::Bool(_) => "boolean",
                    Json::Number(_) => "integer",
                    Json::String(_) => "string",
                    Json::Array(_) => "array",
                    Json::Object(_) => "object",
                };
                if !kinds.contains(&kind) {
                    return refuse(format!("{kind} is not {rule}"));
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    validates(root, rule, item, at)?;
                }
            }
            "required" => {
                for key in rule.as_array().unwrap().iter().filter_map(Json::as_str) {
                    if value.get(key).is_none() {
                        return refuse(format!("{key} is missing"));
                    }
                }
            }
            "properties" => {
                for (key, item) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = rule.get(key) {
                        validates(root, schema, item, &format!("{at}.{key}"))?;
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                for (key, item) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.get(key).is_some()) {
                        continue;
                    }
                    match rule {
                        Json::Bool(false) => return refuse(format!("unknown key {key}")),
                        rule => validates(root, rule, item, &format!("{at}.{key}"))?,
                    }
                }
            }
            other => panic!("the schema uses `{other}`, which this test does not judge"),
        }
    }
    Ok(())
}

#[test]
fn errors_in_values() {
    insta::assert_snapshot!(together([
        broken("value = \"19.2Gb/s\"", "value = \"19.2GB/s\""),
        broken("{ value = \"6667ps\"", "{ value = 6667"),
        broken("{ value = 8,", "{ value = -8,"),
        broken("{ value = 8,", "{ value = nan,"),
        broken("{ value = 8,", "{ value = 1_000_000_000_000,"),
        broken("{ value = \"64b66b\"", "{ value = \"66b64b\""),
        broken("{ value = \"round-robin\"", "{ value = \"round-robbin\""),
        broken("{ value = \"6667ps\"", "{ value = [1]"),
        broken("{ value = \"150MHz\"", "{ value = \"0Hz\""),
    ]));
}

#[test]
fn errors_in_keys() {
    insta::assert_snapshot!(together([
        broken("pipeline_cycles =", "pipline_cycles ="),
        broken("[links.qfdb]", "[links.qfbd]"),
        broken("[host]", "[hosts]"),
        broken("mezzanines = {", "dims = [2]\nmezzanines = {"),
        broken("footer = {", "header = {"),
        broken("footer = {", "[footer\nx = {"),
        broken("name = \"exanest\"", "name = 3"),
    ]));
}

#[test]
fn errors_in_sources() {
    let header = "header = { value = 16, kind = \"datasheet\", source = \"TR-488 §4.2\" }";
    insta::assert_snapshot!(together([
        broken(header, "header = { value = 16, kind = \"guessed\" }"),
        broken(header, "header = { value = 16, kind = \"assumed\" }"),
        broken(header, "header = { value = 16, kind = \"measured\" }"),
        broken(header, "header = { value = 16, source = \"§4\" }"),
        broken(header, "header = { kind = \"assumed\", how = \"so\" }"),
        broken(header, "header = { value = 16, kind = \"calibrated\", source = \"§4\" }"),
        broken("range = \"100ns..150ns\"", "range = \"141ns..150ns\""),
        broken(", range_source = \"ours: no more than receive_message\"", ""),
    ]));
}

/// Catches values of the interface that no hardware could have, and that would end a run in its midst.
#[test]
fn errors_in_the_interface() {
    let said = [
        "nic.packetizer.payload=0",
        "nic.packetizer.payload=512",
        "nic.mailbox.entry=32",
        "nic.packetizer.longest_timeout=1us",
        "nic.packetizer.longest_pause=1ns",
        "nic.rdma.longest_timeout=1us",
        "nic.packetizer.timeout=0ns",
        "faults=[{class=\"qfbd\",drop=1}]",
        "nic.rdma.block=0",
        "nic.iommu.page=3000",
        "nic.iommu.ways=5",
        "nic.allreduce.vector=12",
        "nic.allreduce.vector=512",
        "nic.allreduce.latency=8",
        "nic.mailbx.entries=3",
    ];
    insta::assert_snapshot!(together(said.map(|set| refused("exanest", set))));
}

/// Catches a name that has changed and whose error does not say the new one.
#[test]
fn old_names_are_refused_with_the_new_name() {
    for (old, new) in [("simple", "overheads"), ("full", "exanet")] {
        let error = refused("exanest", &format!("nic.model={old}"));
        assert!(error.contains(&format!("help: `{old}` is called `{new}` now")), "{error}");
        assert!(load("exanest", &[format!("nic.model={new}")]).is_ok());
    }
}

#[test]
fn errors_in_what_fits_together() {
    insta::assert_snapshot!(together([
        broken("buffer = { value = \"4K\"", "buffer = { value = \"256\""),
        broken("{ value = \"dimension-order\"", "{ value = \"ugal-l\""),
        broken("endpoints_per_host = { value = 1", "endpoints_per_host = { value = 3"),
        broken("{ value = \"140ns\", kind = \"calibrated\"", "{ value = \"21 cycles\", kind = \"assumed\""),
        refused("bxi3-dragonfly", "topology.groups=20"),
        refused("bxi3-megafly", "topology.groups=38"),
        refused("bxi3-megafly", "topology.spines=0"),
        refused("bxi3-dragonfly", "topology.p=1000"),
        refused("bxi3-fattree", "topology.n=4000000000"),
        refused("exanest", "topology.mezzanines=6"),
        refused("exanest", "topology={kind=\"tree\",down=[4,4,8],up=[2,4],parallel=[1,3]}"),
        refused("exanest", "topology={kind=\"tree\",down=[4,4,8],up=[4]}"),
        refused("exanest", "links.endpoint.routing=3 cycles"),
        refused("exanest", "switch.pause_headroom=1K"),
        refused("exanest", "fabric.flow_control=pfc"),
        refused("ethernet-100g-spineleaf", "switch.pause_headroom=125K"),
        refused("ethernet-100g-spineleaf", "congestion={kind=\"nscc\", trim=true}"),
        load("exanest", &["fabric.flow_control=drop", "congestion={kind=\"acc\"}"]).unwrap_err().to_string(),
    ]));
}

#[test]
fn errors_in_sets() {
    insta::assert_snapshot!(together([
        refused("communication-ip", "topolgy.dims=[8,8,8]"),
        refused("communication-ip", "dims=[8,8,8]"),
        refused("communication-ip", "topology.dims=[0]"),
        refused("communication-ip", "topology.dims=[]"),
        refused("communication-ip", "topology.dims=[8,8"),
        refused("communication-ip", "topology.dims.value=[8]"),
        refused("communication-ip", "links.default.rate=16GB/s"),
        refused("communication-ip", "links.q.rate=16Gb/s"),
        refused("communication-ip", "topology"),
        refused("communication-ip", "topology..dims=3"),
        refused("communication-ip", "messaging.algorithms=[{operation=\"allreduc\",algorithm=\"ring\"}]"),
        refused("communication-ip", "topology.kind=star"),
    ]));
}

#[test]
fn errors_in_files() {
    insta::assert_snapshot!(together([
        refused("exanets", "topology.mezzanines=4"),
        check_bytes("own.toml", b"[machine]\nname = \"\xff\"\n", &NO_SETS).unwrap_err().to_string(),
        check_text("own.toml", "", &NO_SETS).unwrap_err().to_string(),
        check_text("passwd.toml", &"root:x:0:0:root:/root:/bin/sh\n".repeat(40), &NO_SETS)
            .unwrap_err()
            .to_string(),
    ]));
    let missing = load("no/such/machine.toml", &NO_SETS).unwrap_err().to_string();
    assert!(missing.starts_with("error: cannot read no/such/machine.toml: "), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.toml");
    // A sparse gigabyte: refused without being read.
    std::fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let huge = load(path.to_str().unwrap(), &NO_SETS).unwrap_err().to_string();
    assert!(huge.contains("it is longer than 4 MiB"), "{huge}");
    let directory = load(&format!("{}/", folder.path().display()), &NO_SETS).unwrap_err().to_string();
    assert!(directory.starts_with("error: cannot read"), "{directory}");
}

#[test]
fn rules_are_read_and_attributed() {
    let text = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
    let rule = "[[messaging.algorithms]]\noperation = \"allreduce\"\nranks = \"2..\"\nbytes = \"0..2K\"\n\
                algorithm = \"ring\"\nkind = \"assumed\"\nhow = \"for the test\"\n";
    let text = format!("{text}\n{rule}");
    let machine = check_text("own.toml", &text, &NO_SETS).unwrap();
    let [rule] = machine.messaging.rules[..] else { panic!("one rule was written") };
    assert!(rule.bytes.contains(2047) && !rule.bytes.contains(2048));
    assert!(rule.ranks.contains(2) && !rule.ranks.contains(1));
    assert_eq!(machine.get("messaging.algorithms.0").unwrap().kind, Kind::Assumed);
    let set = check_text("own.toml", &text, &["messaging.algorithms.0.algorithm=rabenseifner"]).unwrap();
    assert_eq!(set.messaging.rules[0].algorithm, Algorithm::Rabenseifner);
    assert_eq!(set.get("messaging.algorithms.0").unwrap().kind, Kind::Set);
}

/// Catches a rule that is read as another, or that `--set` cannot write.
#[test]
fn faults_are_read_and_attributed() {
    let text = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
    let rule = "[[faults]]\nclass = \"x\"\ndrop = 100\ncorrupt = 7\noff_at = \"20us\"\n\
                kind = \"assumed\"\nhow = \"for the test\"\n";
    let text = format!("{text}\n{rule}");
    let machine = check_text("own.toml", &text, &NO_SETS).unwrap();
    let expected = FaultRule {
        links: FaultyLinks::Class("x".to_owned()),
        drop: 100,
        corrupt: 7,
        duplicate: 0,
        reorder: 0,
        outage: Outage::Once { off_at: weft_units::Span::from_us(20), on_at: None },
    };
    assert_eq!(machine.faults, [expected]);
    assert_eq!(machine.get("faults.0").unwrap().kind, Kind::Assumed);
    let set = check_text("own.toml", &text, &["faults.0.drop=3"]).unwrap();
    assert_eq!((set.faults[0].drop, set.get("faults.0").unwrap().kind), (3, Kind::Set));
    let new = load("exanest", &["faults=[{between=[\"M1QAF1\",\"switch 0\"],corrupt=2}]"]).unwrap();
    let between = FaultyLinks::Between("M1QAF1".to_owned(), "switch 0".to_owned());
    assert_eq!((&new.faults[0].links, new.faults[0].corrupt), (&between, 2));
    // The ideal network has no links that could fail.
    assert_eq!(check_text("own.toml", &text, &["fabric.kind=ideal"]).unwrap().faults, []);
    for (set, why) in [
        ("faults=[{class=\"w\"}]", "no links of class `w`"),
        ("faults=[{drop=1_000_001}]", "in a million"),
        ("faults=[{drop=0.5}]", "in a million"),
        ("faults=[{drop=600_000,corrupt=600_000}]", "more packets than there are"),
        ("faults=[{drop=600_000,reorder=300_000,duplicate=200_000}]", "more packets than there are"),
        ("faults=[{on_at=\"20us\"}]", "means nothing without `off_at`"),
        ("faults=[{off_at=\"20us\",on_at=\"20us\"}]", "links come back at 20us, before they fail at 20us"),
        ("faults=[{off_at=\"20us\",on_at=\"late\"}]", "late"),
        ("faults=[{off_at=\"20us\",until=\"1ms\"}]", "says twice when its links are off"),
        ("faults=[{mean_time_to_failure=\"1ms\"}]", "random failures need three times"),
        (
            "faults=[{mean_time_to_failure=\"1ms\",mean_time_to_repair=\"0us\",until=\"1ms\"}]",
            "mean_time_to_repair` is zero",
        ),
        ("faults=[{schedule=\"no-such-file.csv\"}]", "no-such-file.csv"),
        ("faults=[{of=\"M1QAF1\",schedule=\"no-such-file.csv\"}]", "a schedule names its links itself"),
        ("fabric.reroute=up-down", "fabric.reroute_after"),
        ("fabric.reroute_after=10us", "write reroute = \"up-down\""),
        ("fabric.reroute=detour", "up-down"),
        ("faults=[{class=\"x\",of=\"M1QAF1\"}]", "says twice"),
        ("faults=[{between=[\"M1QAF1\"]}]", "two ends"),
        ("faults=[{droop=1}]", "did you mean"),
        ("faults=3", "list"),
    ] {
        let error = refused("exanest", set);
        assert!(error.contains(why), "{set}: {error}");
    }
}

/// Deep nesting and long lines end in diagnostics, not in a full stack.
#[test]
fn hostile_texts_are_refused() {
    let deep = format!("x = {}", "[".repeat(200_000));
    let keys = format!("{} = 1", vec!["a"; 100_000].join("."));
    let long = format!("x = \"{}\"", "a".repeat(1_000_000));
    for text in [&deep, &keys, &long] {
        assert!(!check_text("own.toml", text, &NO_SETS).unwrap_err().to_string().is_empty());
    }
    let path = format!("{}=1", vec!["a"; 30_000].join("."));
    assert!(!refused("exanest", &path).is_empty());
}

proptest! {
    /// Catches a panic, or a refusal without a reason, on any damage to a shipped machine.
    #[test]
    fn mutations_never_panic(
        which in 0..SHIPPED.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[\\PC\n]{0,6}"), 1..6),
        set in "(topology|links|nic)?(\\.[a-z]{1,8}){0,3}=?[\\[{\"]?\\PC{0,12}",
    ) {
        let mut bytes = SHIPPED[which].text.as_bytes().to_vec();
        for (at, length, put) in cuts {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, put.bytes());
        }
        if let Err(diagnostics) = check_bytes("own.toml", &bytes, &[set]) {
            prop_assert!(!diagnostics.0.is_empty());
            prop_assert!(!diagnostics.to_string().is_empty());
        }
    }
}

/// Catches a layout that no switch has the ports for, and one that is refused although the switches have
/// them: a k-ary tree has switches of 2k ports but for the roots, and a Dragonfly of p + a - 1 + h.
#[test]
fn switches_have_no_more_ports_than_they_have() {
    for (name, set, ports) in [
        ("bxi3-fattree", "topology.k=4", 8),
        ("bxi3-dragonfly", "topology.groups=5", 3 + 5 + 3),
        ("ethernet-100g-spineleaf", "topology={kind=\"star\",endpoints=5}", 5),
    ] {
        let with = |ports: u32| load(name, &[set.to_owned(), format!("switch.ports={ports}")]);
        let joined = with(1).unwrap_err().to_string();
        let joined = joined.split_once("joins ").unwrap().1.split_once(' ').unwrap().0;
        assert_eq!(joined, ports.to_string(), "{name}");
        assert!(with(ports).is_ok(), "{name}");
        let error = with(ports - 1).unwrap_err().to_string();
        let mend = format!("write ports = {ports}");
        assert!(error.contains("--set:1:14") && error.contains(&mend), "{error}");
    }
    // The ideal network has no switches.
    let ideal = ["fabric.kind=ideal", "switch.ports=1", "nic.model=overheads"];
    assert!(load("ib-ndr-fattree", &ideal).is_ok());
    let none = load("bxi3-fattree", &["switch.ports=0"]).unwrap_err().to_string();
    assert!(none.contains("0 is too small"), "{none}");
}

/// Catches a text that a terminal obeys, and a name that fills a screen.
#[test]
fn names_are_lines_that_can_be_printed() {
    let text = SHIPPED.iter().find(|shipped| shipped.name == "exanest").unwrap().text;
    let line = text.lines().find(|line| line.starts_with("name = ")).unwrap();
    for (name, wrong) in [
        (r#""\u001b[31mRED""#.to_owned(), Some("control character")),
        (r#""""#.to_owned(), Some("1 to 100 characters")),
        (r#""a\nb""#.to_owned(), Some("1 to 100 characters")),
        (format!("{:?}", "x".repeat(101)), Some("1 to 100 characters")),
        (r#""Rack Süd""#.to_owned(), None),
    ] {
        let changed = text.replacen(line, &format!("name = {name}"), 1);
        let error = check_text("m.toml", &changed, &NO_SETS).err().map(|error| error.to_string());
        match (wrong, error) {
            (None, None) => {}
            (Some(wrong), Some(error)) => assert!(error.contains(wrong), "{error}"),
            (wrong, error) => panic!("{name}: {wrong:?}, {error:?}"),
        }
    }
}

/// Catches gateways between modules of which one is never chosen, and a pair that does not keep to its own.
#[test]
fn pairs_of_two_modules_share_the_gateways() {
    gateways_are_shared(&[]);
    gateways_are_shared(&["topology.routing=hierarchical"]);
}

fn gateways_are_shared(sets: &[&str]) {
    use weft_topo::{Topology as _, idle_path};
    let machine = load("deep-msa", sets).unwrap();
    let layout = machine.topology.build().unwrap();
    let gateways = ["switch gateway0", "switch gateway1"].map(|name| layout.switch(name).unwrap());
    let through = |from, to| {
        let mut passed = Vec::new();
        idle_path(&layout, from, to, |switch, _| {
            passed.extend(gateways.iter().position(|one| *one == switch))
        });
        passed
    };
    let mut pairs = [0, 0];
    let all = || (0..layout.endpoints()).map(weft_units::EndpointId);
    for (from, to) in all().flat_map(|from| all().map(move |to| (from, to))) {
        let apart = (from.0 < 16) != (to.0 < 16);
        let passed = through(from, to);
        assert_eq!((passed.len(), &passed), (usize::from(apart), &through(from, to)));
        passed.iter().for_each(|gateway| pairs[*gateway] += 1);
    }
    assert_eq!(pairs.iter().sum::<u32>(), 2 * 16 * 4);
    assert!(pairs.iter().all(|count| (48..=80).contains(count)), "{pairs:?}");
}

/// Catches a routing that looks at published queues and is not told when, with what and where, and a section
/// that others must have or keep.
#[test]
fn published_queues_need_their_section() {
    let ugal_g = "topology.routing=ugal-g";
    let board = load("bxi3-dragonfly", &[ugal_g]).unwrap().queue_board.unwrap();
    assert_eq!((board.interval, board.delay), (weft_units::Span::from_us(1), weft_units::Span::from_ns(500)));
    let machine = load("bxi3-dragonfly", &NO_SETS).unwrap();
    assert!(machine.queue_board.is_none() && machine.get("queue_board.delay").is_none());
    assert!(load("bxi3-dragonfly", &[ugal_g, "fabric.kind=ideal"]).unwrap().queue_board.is_none());
    let other = ["topology.kind=dragonfly", "topology.p=2", ugal_g];
    let error = load("bxi3-fattree", &other).unwrap_err().to_string();
    assert!(error.contains("add [queue_board] with `interval` and `delay`"), "{error}");
    let keys = ["queue_board.interval=2us", "queue_board.delay=0ns"];
    let all: Vec<&str> = other.into_iter().chain(keys).collect();
    assert_eq!(
        load("bxi3-fattree", &all).unwrap().queue_board.unwrap().interval,
        weft_units::Span::from_us(2)
    );
    let error = load("bxi3-dragonfly", &[ugal_g, "queue_board.interval=0ns"]).unwrap_err().to_string();
    assert!(error.contains("`queue_board.interval` is zero"), "{error}");
}

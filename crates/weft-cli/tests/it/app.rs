//! `weft app`, and kernels wherever a trace is read.

use crate::common::{group, json, number, refused, rows, weft};
use crate::waiting::wait_until;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

/// Boxes of 4 x 5 x 6 points on 2 x 2 x 2 ranks: each has three neighbours, and 74 points of 16 bytes there.
const HALO: &str = "local=4x5x6,variables=2,steps=3";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Catches messages and computations that are not those of the law, added up by hand.
#[test]
fn a_kernel_does_what_its_law_says() {
    let report = json(&words(&format!("app halo3d -m exanest --ranks 8 --with {HALO} --quiet --json")));
    let row = &report["rows"][0];
    assert_eq!(number(row, "ranks"), 8.0);
    assert_eq!(number(row, "messages"), 3.0 * 8.0 * 3.0);
    assert_eq!(number(row, "bytes"), 3.0 * 8.0 * (30.0 + 24.0 + 20.0) * 16.0);
    // Alone: 7 points of 2 operations for 240 numbers, at half an operation in a cycle of 1.3 GHz. The
    // traffic, of 3,840 bytes at 20 Gb/s, is over before.
    let alone = json(&words(&format!("app halo3d -m exanest --ranks 1 --with {HALO} --quiet --json")));
    let computed = 3.0 * 240.0 * 14.0 / 0.5 / 1300.0;
    let run_time = number(&alone["rows"][0], "run_time_us");
    assert!((run_time / computed - 1.0).abs() < 1e-6, "{run_time}, by hand {computed}");
}

/// Catches a kernel that is another one as a job, by other threads, run again, or when it is saved.
#[test]
fn a_kernel_is_the_same_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let first = json(&words("app hpcg -m exanest -n 8 --with local=8x8x8,iterations=3 --quiet --json"));
    let job = "hpcg@8,iterations=3,local=8x8x8 -m exanest --quiet --json";
    for more in ["", "--threads 2", "--threads 3", &format!("--save-every 300us -o {out}")] {
        let report = json(&words(&format!("replay {job} {more}")));
        assert_eq!(rows(&report), rows(&first), "{more}");
    }
    let again = weft(&["rerun", out]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let explained = weft(&["explain", out]);
    assert!(explained.status.success(), "{}", String::from_utf8_lossy(&explained.stderr));
    // All eight touch each other: 56 messages in each of a halo at the start and eleven in an iteration. The
    // library makes 24 messages of each of ten sums: each rank sends one at each of three doublings.
    let stats = json(&["trace", "stats", "hpcg@8,local=8x8x8,iterations=3", "--json"]);
    assert_eq!(number(&stats, "messages"), 56.0 * 34.0);
    assert_eq!(number(&first["rows"][0], "messages"), 56.0 * 34.0 + 10.0 * 24.0);
}

/// Catches a scenario or a study that takes no kernel.
#[test]
fn scenarios_and_studies_take_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scenario = |trace: &str| {
        let head = "[scenario]\ntitle = \"a kernel\"\ntime = \"20ms\"\n";
        let job = "[[applications]]\nname = \"halo\"\nrole = \"victim\"\non = \"0-7\"\nranks_per_host = 1\n";
        fs::write(at("scenario.toml"), format!("{head}{job}trace = \"{trace}\"\n")).unwrap();
        at("scenario.toml")
    };
    let run = ["traffic", "-m", "carvnet-spineleaf", "--quiet", "--json", "--scenario"];
    let report = json(&[&run[..], &[&scenario(&format!("halo3d@8,{HALO}"))]].concat());
    assert_eq!(number(group(&report, "as the machine", "halo"), "ranks"), 8.0);
    let said = refused(&[&run[..], &[&scenario("halo3d@8,points=4")]].concat());
    assert!(
        said.contains("scenario.toml:9: `applications.trace`") && said.contains("no option `points`"),
        "{said}"
    );
    // At once, though its operations would take minutes to count.
    let said = refused(&[&run[..], &[&scenario("hpcg@99999999")]].concat());
    assert!(said.contains("the trace has 99999999 ranks, and there are 8 places"), "{said}");
    // As weft app does, with the place.
    let scenario = fs::read_to_string(scenario("hpcg@16,local=320x320x320")).unwrap();
    let scenario = scenario.replace("ranks_per_host = 1", "ranks_per_host = 4").replace("0-7", "0-3");
    fs::write(at("memory.toml"), scenario).unwrap();
    let on = ["traffic", "-m", "exanest", "--quiet", "--scenario", &at("memory.toml")];
    let said = refused(&on);
    let place = "memory.toml:9: `applications.trace`: hpcg@16,local=320x320x320 needs 23.4 GB a rank";
    assert!(said.contains(place) && said.contains("local=176x176x176; or take fewer"), "{said}");
    let study = "command = \"app\"\n[fixed]\nmachine = \"exanest\"\napp = \"halo3d\"\nwith = \"steps=1\"\n\
                 [vary]\nranks = [2, 4]\n";
    fs::write(at("study.toml"), study).unwrap();
    let done = json(&["sweep", &at("study.toml"), "-o", &at("study"), "--quiet", "--json"]);
    assert_eq!(number(&done["summary"], "done"), 2.0, "{done}");
}

/// Catches a file that a kernel hides.
#[test]
fn a_file_of_that_name_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("halo3d@4"), "no trace").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.args(words("replay -m exanest halo3d@4")).current_dir(&folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("begins as no trace does"), "{said}");
    // A command that names an application runs it.
    let study = "command = \"app\"\n[fixed]\nmachine = \"exanest\"\napp = \"halo3d\"\nranks = 4\n[vary]\n\
                 with = [\"steps=1\"]\n";
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::write(folder.path().join("halo3d@4,steps=1"), "no trace").unwrap();
    for line in
        ["app halo3d -m exanest --ranks 4 --with steps=1 --quiet --json", "sweep study.toml --quiet --json"]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        let output = command.args(words(line)).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["command"], line.split(' ').next().unwrap());
    }
}

/// Catches mistakes that are taken, or reported without the mend.
#[test]
fn mistakes_in_kernels_are_named() {
    for (with, ranks, part) in [
        ("halo3d --with step=3", "8", "did you mean `steps`?"),
        ("halo3d --with steps", "8", "write OPTION=VALUE"),
        ("halo3d --with steps=1,steps=2", "8", "was given before"),
        ("halo3d --with stencil=9", "8", "one of 7, 27"),
        ("halo3d --with local=0x1x1", "8", "three extents from 1"),
        ("halod", "8", "did you mean `halo3d`?"),
        ("hpcg --with local=10x8x8", "8", "nearest to 10: 8 and 16"),
        ("hpcg --with global=25x8x8", "8", "nearest: global=32x16x16"),
        ("hpcg --with global=104x104x104", "7", "nearest: global=112x104x104, or 1 or 13 ranks"),
        ("hpcg --with global=100", "8", "nearest: global=96x96x96"),
        ("hpcg --with local=8x8x8,global=16x16x16", "8", "exclude each other"),
        ("minife --with global=1x1x1", "8", "rank 1 of 8 has none; nearest that work: global=2x2x2"),
        ("minife --with global=3x3x3", "100", "nearest that work: global=4x4x8 or 8 ranks"),
        ("halo3d --with local=20000", "8", "as 10321x10321x10321 has"),
        ("lammps --with atoms=320000000", "8", "the largest that fits is atoms="),
        ("som --with records=100000000000", "8", "the largest that fits is records="),
        ("halo3d@8", "8", "write weft app halo3d --ranks 8"),
        ("som --with records=5,batches=6", "8", "no more batches than records"),
        ("nest --with threads=64", "8", "from 1 to 32"),
        ("lammps --with total=31000", "8", "32000"),
        ("halo3d", "40000", "the nearest that do are 512"),
        // At once: counting the operations of so many ranks would take minutes.
        ("hpcg", "99999999", "do not fit on 512 cores"),
        ("hpcg --with local=320x320x320", "8", "the largest that fits is local=176x176x176"),
        ("hpcg --with local=320x320x320", "8", "needs 23.4 GB a rank"),
        ("lammps --with atoms=100000000", "8", "the largest that fits is atoms=2676000"),
        ("lammps --with problem=lj,atoms=100000000", "4", "the largest that fits is atoms=17040000"),
        ("lammps --with total=32000,atoms=32000", "8", "atoms and total exclude each other"),
        ("lammps --with problem=lj,grid=8x8x8", "8", "0 where problem is lj"),
        ("minife --with global=1x1x8", "8", "nearest that work: global=2x2x8 or"),
        ("halo3d", "abc", "`abc` is not a whole number from 1 to 2147483647"),
        ("halo3d", "-4", "`-4` is not a whole number from 1 to 2147483647"),
    ] {
        let said = refused(&words(&format!("app {with} -m exanest --ranks {ranks} --quiet")));
        assert!(said.contains(part), "{with}: {said}");
    }
    let speed = refused(&words("app halo3d -m exanest --ranks 8 --speed 1Gf --quiet"));
    assert!(speed.contains("--set host.core.clock"), "{speed}");
    assert!(refused(&words("replay -m exanest halo3d")).contains("it has no number of ranks"));
    assert!(refused(&words("replay -m exanest halo3d@0")).contains("there is no file `halo3d@0`"));
    assert!(refused(&words("app show halo")).contains("did you mean `halo3d`?"));
}

/// Catches a scaled recording that is not the program at that scale, and one that is made of anything.
#[test]
fn a_recording_is_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, edge) in [("halo3d@8", 54), ("halo3d@27", 36)] {
        let kernel = format!("{name},stencil=27,steps=2,local={edge}x{edge}x{edge}");
        json(&["trace", "convert", &kernel, "-o", &at(&format!("{name}.weft")), "--json"]);
    }
    let (small, large, scaled) = (at("halo3d@8.weft"), at("halo3d@27.weft"), at("scaled.weft"));
    let info = json(&["trace", "scale", &small, "--ranks", "27", "-o", &scaled, "--json"]);
    assert_eq!(number(&info, "ranks"), 27.0);
    assert!(info["recorder"].as_str().is_some_and(|text| text.contains("trace scale of")), "{info}");
    let stats = |trace: &str| {
        let stats = json(&["trace", "stats", trace, "--json"]);
        (stats["operations_by_kind"].clone(), stats["message_sizes"].clone(), stats["matrix"]["rows"].clone())
    };
    assert_eq!(stats(&scaled), stats(&large));
    let replay = |trace: &str| rows(&json(&["replay", "-m", "exanest", trace, "--quiet", "--json"])).to_vec();
    let time = |rows: Vec<serde_json::Value>| number(&rows[0], "run_time_us");
    assert_eq!(time(replay(&scaled)), time(replay(&large)));
    let again = refused(&["trace", "scale", &small, "--ranks", "27", "-o", &scaled]);
    assert!(again.contains("--force"), "{again}");
    let itself = refused(&["trace", "scale", &small, "--ranks", "27", "-o", &small, "--force"]);
    assert!(itself.contains("is of the trace that is read"), "{itself}");
    let prime = refused(&["trace", "scale", &small, "--ranks", "29", "-o", &at("prime.weft")]);
    assert!(prime.contains("form no grid like the recorded one of 2 x 2 x 2"), "{prime}");
    let other =
        refused(&["trace", "scale", "nest@2,time=1", &small, "--ranks", "64", "-o", &at("other.weft")]);
    assert!(other.contains("not of the same program"), "{other}");
    let other =
        ["trace", "scale", "nest@2,time=1", "som@4,batches=1", "--ranks", "64", "-o", &at("other.weft")];
    let other = refused(&other);
    assert!(other.contains("the one is allreduce (sum of float64), step 0 of the other barrier"), "{other}");
}

/// Catches words on a recording where there was none.
#[test]
fn nobody_has_recorded_a_kernel() {
    let output = weft(&["trace", "info", "halo3d@8"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ranks") && text.contains("kernel"), "{text}");
    assert!(["recorded by", "date", "library", "whole"].iter().all(|word| !text.contains(word)), "{text}");
}

/// Catches a hidden file that stays where a trace is not written to its end, and a large one without a word.
#[test]
fn an_interrupted_trace_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    json(&["trace", "convert", "halo3d@8,steps=1000", "-o", &at("small.weft"), "--json"]);
    let kernel = format!("trace convert halo3d@64,steps=1000000 -o {}", at("x.weft"));
    let scaled = format!("trace scale {} --ranks 8000 -o {}", at("small.weft"), at("x.weft"));
    for (line, signal) in [(kernel, "-TERM"), (scaled, "-INT")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weft"))
            .args(words(&line))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let files = || fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
        wait_until("the trace", || files().any(|name| name.to_string_lossy().starts_with(".weft-trace")));
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{line}: {said}");
        assert!(said.contains("B on the disk") && said.contains("x.weft is not written"), "{line}: {said}");
        assert_eq!(files().collect::<Vec<_>>(), ["small.weft"], "{line}");
    }
}

/// Catches a table that no terminal has room for.
#[test]
fn the_list_of_applications_is_narrow() {
    let list = String::from_utf8(weft(&["app", "list"]).stdout).unwrap();
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    assert!(list.contains("broadcast-storm") && list.contains("unchecked"), "{list}");
}

/// Catches an application that a list forgets, or that does not say what it was compared with.
#[test]
fn applications_are_listed_and_shown() {
    let list = json(&words("app list --json"));
    let names: Vec<&str> =
        list["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(["halo3d", "lammps", "hpcg", "minife", "nest", "som"].iter().all(|name| names.contains(name)));
    for name in names {
        let shown = json(&["app", "show", name, "--json"]);
        assert!(shown["laws"].as_str().is_some_and(|laws| laws.len() > 100), "{shown}");
        assert!(shown["checked_against"].as_str().is_some_and(|text| !text.is_empty()), "{shown}");
    }
}

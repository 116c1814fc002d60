//! The `weft` program itself: what is refused, how it is said, and with which exit status.

use std::io;
use std::process::{Command, Output};

fn weft(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(words).output().unwrap()
}

/// Runs words that must be refused as bad input; returns what was said.
fn refused(words: &[&str]) -> String {
    let output = weft(words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(output.stdout.is_empty(), "{words:?}: errors belong to standard error");
    said
}

#[test]
fn bad_options_are_refused_with_the_mend() {
    let traffic = |option: &str, value: &str| {
        let mut words = vec!["traffic", "-m", "communication-ip"];
        if option != "--load" {
            words.extend(["--load", "0.5"]);
        }
        words.extend([option, value]);
        refused(&words)
    };
    for (option, value, mend) in [
        ("--load", "60%", "such as 0.6"),
        ("--load", "0:1:0.1", "start above it"),
        ("--load", "0.9:0.1:0.1", "write 0.1:0.9:0.1"),
        ("--load", "1.5", "--load-of capacity"),
        ("--size", "4k", "write 4K"),
        ("--size", "0:4M", "write 1 or more"),
        ("--size", "4M:1", "write 1:4M"),
        ("--time", "20", "20us"),
        ("--time", "0us", "write 20us"),
        ("--threads", "0", "from 1 to 1024"),
        ("--seeds", "0", "from 1 to 1000"),
        ("--load", "-0.1", "such as 0.6"),
        ("--size", "-1", "256, 4K"),
        ("--size", "1,2,4", "such as 1:4M"),
        ("--seed", "abc", "a whole number from 0"),
        ("--seed", "-1", "a whole number from 0"),
        ("--set", "topology.dims", "KEY=VALUE"),
        ("--load-of", "capacty", "'capacity'"),
        ("--tables", "flows,queues", "messages, flows, links, ranks"),
        ("--save-every", "1us", "--output"),
        ("--sed", "3", "'--seed'"),
    ] {
        let said = traffic(option, value);
        assert!(said.starts_with("weft: ") && said.contains(mend), "{option} {value}: {said}");
    }
    assert!(refused(&["trafic"]).contains("'traffic'"));
    assert!(refused(&["traffic"]).contains("--machine"));
    assert!(refused(&["record", "-o", "x.weft"]).contains("COMMAND"));
    assert!(refused(&["rerun", ".", "--resume", "-o", "out"]).contains("--resume"));
}

#[test]
fn files_that_are_not_there_are_named() {
    let said = refused(&["machine", "show", "no/such.toml"]);
    assert!(said.contains("no/such.toml") && said.contains("weft machine list"), "{said}");
    let said = refused(&["replay", "-m", "exanest", "a.weft"]);
    assert!(said.contains("a.weft"), "{said}");
    let said = refused(&["osu", "allreduce", "-m", "exanest", "--map", "no-map"]);
    assert!(said.contains("no-map") && said.contains("--map linear"), "{said}");
    let said = refused(&["rerun", env!("CARGO_MANIFEST_DIR")]);
    assert!(said.contains("no run.json"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.json"), "{").unwrap();
    let said = refused(&["rerun", folder.path().to_str().unwrap()]);
    assert!(said.contains("run.json is damaged"), "{said}");
}

/// Catches results that are written over, and a refusal that comes only after the simulation.
#[test]
fn a_directory_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let directory = folder.path().to_str().unwrap();
    let said = refused(&["traffic", "-m", "communication-ip", "--load", "0.5", "-o", directory]);
    assert!(said.contains("not empty") && said.contains("--force"), "{said}");
    let file = folder.path().join("thesis.txt");
    let said = refused(&[
        "traffic",
        "-m",
        "communication-ip",
        "--load",
        "0.5",
        "-o",
        file.to_str().unwrap(),
        "--force",
    ]);
    assert!(said.contains("not a directory"), "{said}");
    let said = refused(&["record", "-o", file.to_str().unwrap(), "--", "true"]);
    assert!(said.contains("exists"), "{said}");
}

/// With `--json`, scripts read one document whatever happens.
#[test]
fn errors_are_json_where_json_is_asked_for() {
    for words in [
        &["traffic", "-m", "x", "--load", "60%", "--json"] as &[&str],
        &["machine", "show", "no/such.toml", "--json"],
    ] {
        let output = weft(words);
        assert_eq!(output.status.code(), Some(2));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["exit_status"], 2);
        let error = document["error"].as_str().unwrap();
        assert!(String::from_utf8(output.stderr).unwrap().contains(error));
    }
    // What follows `--` belongs to the program.
    assert!(weft(&["record", "-o", "/dev/null", "--", "prog", "--json"]).stdout.is_empty());
}

#[test]
fn help_and_version_end_with_0() {
    for (words, expected) in [
        (
            &["--help"] as &[&str],
            &["machine", "traffic", "record", "trace", "replay", "rerun", "130 interrupted"] as &[&str],
        ),
        (&["--version"], &["weft 0."]),
        (
            &["traffic", "--help"],
            &["--pattern", "--load-of", "--save-every", "--timeline", "--set", "--tables", "--quiet"],
        ),
        (&["replay", "--help"], &["--map", "--wildcards", "--ppn", "--seed", "--json", "--force"]),
        (&["rerun", "--help"], &["--resume"]),
    ] {
        let output = weft(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        for word in expected {
            assert!(said.contains(word), "{words:?} lacks {word}: {said}");
        }
    }
}

/// `weft … | head` must end quietly, not in a panic.
#[test]
fn a_reader_that_went_away_is_no_error() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.arg("--help").stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Catches a page or a completion that is missing, or one without the options of its command.
#[test]
fn pages_and_completions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    assert!(weft(&["pages", folder.path().to_str().unwrap()]).status.success());
    for (file, holds) in [
        ("man/man1/weft.1", "weft\\-traffic"),
        ("man/man1/weft-traffic.1", "\\-\\-load"),
        ("bash-completion/completions/weft", "--compute-scale"),
        ("zsh/site-functions/_weft", "--compute-scale"),
        ("fish/vendor_completions.d/weft.fish", "compute-scale"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains(holds), "{file}");
    }
    // Values of options and words, and files beside the names of machines.
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let scripts = ["bash-completion/completions/weft", "zsh/site-functions/_weft"];
    for script in scripts.map(read) {
        let names = ["exanest", "bit-complement", "mbw_mr", "flow_rates", "dcqcn", "load-curve", "random"];
        names.into_iter().for_each(|name| assert!(script.contains(name), "{name}"));
    }
    let (zsh, fish) = (read(scripts[1]), read("fish/vendor_completions.d/weft.fish"));
    assert!(zsh.contains("{compadd -- ") && zsh.contains("; _files}"), "{zsh}");
    let of_machine = fish.lines().find(|line| line.contains(" -s m -l machine ")).unwrap();
    assert!(of_machine.contains(" -r -F -a "), "{of_machine}");
    let pages = std::fs::read_dir(folder.path().join("man/man1")).unwrap();
    let of_help = |name: &std::ffi::OsStr| name.to_string_lossy().contains("-help");
    assert!(!pages.map(|page| page.unwrap().file_name()).any(|name| of_help(&name)), "pages of `help`");
}

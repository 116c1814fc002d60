//! The pages on commands name options that exist, and all options that a command has.

use std::collections::BTreeSet;
use std::process::Command;

fn options(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter(|word| word.len() > 3 && word.starts_with("--") && !word.starts_with("---"))
        .map(str::to_owned)
        .collect()
}

fn help(command: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_weft")).args(command).arg("--help").output().unwrap();
    assert!(output.status.success());
    let mut found = options(&String::from_utf8(output.stdout).unwrap());
    found.remove("--help");
    found
}

/// Catches an option that was renamed or added without its page saying so.
#[test]
fn pages_and_help_name_the_same_options() {
    for (page, commands) in [
        (
            "machine",
            &[
                &["machine", "show"] as &[&str],
                &["machine", "check"],
                &["machine", "draw"],
                &["machine", "diff"],
                &["machine", "new"],
                &["machine", "names"],
            ] as &[&[&str]],
        ),
        ("traffic", &[&["traffic"]]),
        ("replay", &[&["replay"]]),
        ("osu", &[&["osu"]]),
        ("rerun", &[&["rerun"]]),
        ("explain", &[&["explain"]]),
        ("plot", &[&["plot"]]),
        ("report", &[&["report"]]),
        ("view", &[&["view"]]),
        ("compare", &[&["compare"]]),
        ("doctor", &[&["doctor"]]),
        ("record", &[&["record"]]),
        ("run", &[&["run"]]),
        ("trace", &[&["trace", "info"], &["trace", "stats"], &["trace", "convert"], &["trace", "scale"]]),
    ] {
        let path = format!("{}/../../docs/src/commands/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let page_text = std::fs::read_to_string(path).unwrap();
        // What follows ` -- ` on a line is another program's. Comments are for who runs the page.
        let lines = page_text.lines().filter(|line| !line.starts_with("<!--"));
        let mut named: BTreeSet<String> =
            lines.flat_map(|line| options(line.split(" -- ").next().unwrap())).collect();
        let mut known: BTreeSet<String> = commands.iter().flat_map(|command| help(command)).collect();
        // Where a run is saved, `weft rerun --resume` is pointed to.
        if page != "rerun" {
            named.remove("--resume");
            known.remove("--resume");
        }
        // Their pages name the commands that make results, or show a trace, with options of those.
        if ["plot", "report", "view", "compare", "explain", "trace"].contains(&page) {
            let made: BTreeSet<String> =
                [["traffic"], ["replay"], ["run"], ["plot"]].iter().flat_map(|c| help(c)).collect();
            named.retain(|option| known.contains(option) || !made.contains(option));
        }
        assert_eq!(named, known, "{page}");
    }
}

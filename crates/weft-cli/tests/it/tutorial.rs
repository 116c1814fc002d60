//! The tutorial shows what its commands print.

use std::path::Path;
use std::process::Command;

/// The words of a command as it is typed: apart by spaces, or together between double quotes.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// The lines that a command of the page prints.
fn printed(command: &str, directory: &Path) -> Vec<String> {
    let words = words(command);
    assert_eq!(words[0], "weft");
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = weft.args(&words[1..]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Catches figures on the page that its commands do not print any more; `…` stands for lines that are left
/// out.
#[test]
fn the_tutorial_shows_what_its_commands_print() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/howto/change-the-interface.md");
    let text = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    let folder = tempfile::tempdir().unwrap();
    let (mut output, mut commands) = (Vec::new(), 0);
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                (output, commands) = (printed(command, folder.path()), commands + 1);
            } else if line != "…" {
                assert!(
                    output.iter().any(|printed| printed == line),
                    "{line:?} is not in\n{}",
                    output.join("\n")
                );
            }
        }
    }
    assert_eq!(commands, 6);
}

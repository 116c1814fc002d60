//! The words on a difference between RTL and model, its waves, and runs that compare nothing.

use crate::rtl::{changes_of_fst, changes_of_vcd, latency, library, text};
use std::collections::BTreeSet;
use std::path::Path;

/// The edge of the difference, and the first and the last edge of the waves, as the message has them.
fn edges(said: &str) -> [u64; 3] {
    let number = |behind: &str| {
        let from = said.split_once(behind).unwrap_or_else(|| panic!("{behind}: {said}")).1;
        from.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let last = said.split_once("has its waves from edge ").unwrap().1;
    let last = last.split_once(" to ").unwrap().1;
    [number("at edge "), number("from edge "), last.trim().parse().unwrap()]
}

/// The time of an edge of 150 MHz, in ps.
fn at(edge: u64) -> u64 {
    (edge * 20_000).div_ceil(3)
}

/// Changes of signals of waves.
type Changes = BTreeSet<(u64, String, String)>;

/// A run whose mailbox differs at M1QAF2, which is its second endpoint: what it says, and its waves.
fn difference(wrong: &Path, waves: &Path, more: &[&str]) -> (String, Changes) {
    let options = ["--sizes", "8", "--rtl", "mailbox", "--waves", waves.to_str().unwrap()];
    let output = latency(wrong, &[&options[..], more].concat());
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("mailbox of M1QAF2 differs"), "{said}");
    let is_vcd = waves.extension().is_some_and(|extension| extension == "vcd");
    let changes = if is_vcd { changes_of_vcd(waves) } else { changes_of_fst(waves) };
    assert!(changes.iter().all(|(_, signal, _)| signal.starts_with("M1QAF2.mailbox.")), "{said}");
    (said, changes)
}

/// Catches a difference whose waves are another endpoint's, or of another time: whichever endpoint comes
/// first, whatever the window, in both formats.
#[test]
fn a_difference_has_its_waves() {
    let Some(wrong) = library("wrong-mailbox") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (vcd, fst) = (folder.path().join("waves.vcd"), folder.path().join("waves.fst"));
    let (said, changes) = difference(&wrong, &vcd, &[]);
    let [edge, first, last] = edges(&said);
    assert!(first < edge && edge < last && said.contains("waves.vcd has its waves"), "{said}");
    // The wrong address is there in its cycle, and there is something behind it.
    let address = |(time, signal, value): &(u64, String, String)| {
        *time == at(edge) && signal.ends_with(".m_axi_awaddr") && value.ends_with("000100000")
    };
    assert!(changes.iter().any(address), "{said}");
    let times: BTreeSet<u64> = changes.iter().map(|change| change.0).collect();
    assert_eq!(times.first(), Some(&at(first)), "{said}");
    assert!(times.last().is_some_and(|time| (at(edge) + 1..=at(last)).contains(time)), "{said}");
    assert!(!folder.path().join("waves.vcd.part").exists());
    let elsewhere = [
        &["--waves-to", "100ns"][..],
        &["--waves-from", "1s"],
        // The first endpoint is that of the difference.
        &["--rtl-at", "M1QAF2", "--waves-from", "1s"],
        &["--rtl-drive"],
    ];
    for more in elsewhere {
        assert_eq!(difference(&wrong, &fst, &[more, &["--force"]].concat()).1, changes, "{more:?}");
    }
    // A window that has it is kept to.
    let window = ["--rtl-at", "M1QAF2", "--waves-from", "3100ns", "--force"];
    let (said, changes) = difference(&wrong, &vcd, &window);
    assert_eq!(edges(&said)[..2], [edge, edge.min(465)], "{said}");
    assert!(changes.iter().all(|(time, ..)| *time >= 3_100_000), "{said}");
}

/// Catches a run that compares nothing and says nothing of that, also with --quiet.
#[test]
fn a_comparison_of_nothing_is_told() {
    let Some(library) = library("") else { return };
    let all = "allreduce,mailbox,packetizer,rdma_receive,segmentation";
    let hardware = ["--set", "nic.segmentation.agent=hardware", "--sizes", "8", "--quiet"];
    let output = latency(&library, &[&["--rtl", all, "--rtl-at", "M1QAF1,M2QAF1"], &hardware[..]].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for block in ["allreduce", "rdma_receive", "segmentation"] {
        assert!(said.contains(&format!("nothing of {block} happened: nothing was compared")), "{said}");
    }
    assert!(said.contains("happened at M2QAF1: nothing was compared there"), "{said}");
    assert!(!said.contains("M1QAF1") && !said.contains("mailbox"), "{said}");
    let drive = ["--rtl", "mailbox", "--rtl-drive", "--rtl-at", "M2QAF1", "--sizes", "8"];
    let said = text(&latency(&library, &drive).stderr);
    assert!(said.contains("nothing of mailbox happened: nothing was compared"), "{said}");
}

/// Catches a pipe or a device in place of the file of waves, which takes its name when it is whole.
#[test]
fn waves_are_a_plain_file() {
    let Some(library) = library("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let waves = folder.path().join("waves.vcd");
    std::os::unix::fs::symlink("/dev/stdout", &waves).unwrap();
    let options = ["--sizes", "8", "--rtl", "mailbox", "--force", "--waves"];
    let refused = |waves: &str, says: &str| {
        let output = latency(&library, &[&options[..], &[waves]].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says), "{said}");
    };
    refused(waves.to_str().unwrap(), "no plain file");
    refused("/dev/stdout", "no plain file; name a new file .vcd or .fst");
    assert!(std::fs::symlink_metadata(&waves).unwrap().is_symlink());
}

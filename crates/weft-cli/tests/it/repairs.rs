//! Counts of packets that interfaces without reliable connections send again, by the command.

use crate::common::{json, number, rows, weft};
use crate::connections::words;
use serde_json::Value;

/// The row of a run, without what depends on the computer.
fn row(line: &str) -> Value {
    let words = words(&format!("{line} --check --quiet --json"));
    rows(&json(&words.iter().map(String::as_str).collect::<Vec<_>>())).remove(0)
}

/// Machines whose links may all be off for 40 us, messages of a size, and the packets of one.
const LOSSES: [(&str, &str, f64, f64); 4] = [
    // Small packets, blocks of 16 cells, and the transport of BXI, which has a time-out for each packet.
    ("-m exanest --set topology.mezzanines=1", "32", 1.0, 1.0),
    ("-m exanest --set topology.mezzanines=1", "4K", 16.0, 1.0),
    ("-m carvnet-spineleaf", "4K", 16.0, 1.0),
    ("-m bxi3-fattree --set topology.k=4", "2K", 1.0, 1.0),
];

/// Catches packets that are sent again and not counted, or counted though none was lost: all links are off as
/// the first packets cross them, so that each is lost once and sent again once.
#[test]
fn each_lost_packet_is_sent_again_once() {
    for (machine, size, packets, timeouts) in LOSSES {
        let case = format!("traffic {machine} --pattern permutation --messages 1 --size {size}");
        let whole = row(&case);
        let late = row(&format!("{case} --set 'faults=[{{off_at=\"0ns\", on_at=\"40us\"}}]'"));
        let messages = number(&whole, "messages");
        assert_eq!(number(&late, "messages"), messages, "{machine} {size}");
        let counts = |row: &Value| {
            ["packets_dropped_dead", "packets_resent", "connections_timeouts", "packets_duplicates"]
                .map(|key| number(row, key))
        };
        let lost = messages * packets;
        assert_eq!(counts(&late), [lost, lost, messages * timeouts, 0.0], "{machine} {size}: {late}");
        assert_eq!(counts(&whole), [0.0; 4], "{machine} {size}: {whole}");
    }
}

/// Catches cells of blocks that meet page faults, and small packets that a full mailbox refuses, that are
/// sent again and not counted: nothing is lost, so that each crosses the three links of its way once more.
#[test]
fn each_refused_packet_is_sent_again_over_its_links() {
    for (case, set) in [
        ("osu one_way --from M1QAF1 --to M1QAF2 --sizes 64K --iterations 3", "nic.iommu.faults=first-touch"),
        ("osu mbw_mr --ranks 2 --ppn 1 --sizes 8:8 --iterations 4 --warm-up 1", "nic.mailbox.entries=1"),
    ] {
        let case = format!("{case} -m exanest --set topology.mezzanines=1");
        let (whole, refused) = (row(&case), row(&format!("{case} --set {set}")));
        let hops = number(&refused, "packet_hops") - number(&whole, "packet_hops");
        let resent = number(&refused, "packets_resent");
        assert!(resent > 100.0 && hops == 3.0 * resent, "{set}: {resent} again, {hops} hops more");
        let others = ["packets_dropped", "connections_timeouts", "packets_duplicates"];
        assert!(others.iter().all(|key| number(&refused, key) == 0.0), "{refused}");
        assert_eq!(number(&whole, "packets_resent"), 0.0, "{whole}");
    }
}

/// Catches counts that depend on threads, or that no line of a report tells, where links lose and damage
/// packets by chance.
#[test]
fn repairs_after_losses_by_chance_are_told() {
    let faults = "--set 'faults=[{drop=10000, corrupt=10000}]'";
    for machine in ["-m exanest --set topology.mezzanines=1", "-m bxi3-fattree --set topology.k=4"] {
        let case = format!("traffic {machine} --pattern permutation --messages 20 --size 4K {faults}");
        let one = row(&case);
        assert!(number(&one, "packets_resent") >= number(&one, "packets_dropped"), "{one}");
        assert!(
            number(&one, "connections_timeouts") > 0.0 && number(&one, "packets_duplicates") > 0.0,
            "{one}"
        );
        assert_eq!(one, row(&format!("{case} --threads 3")), "{machine}");
        let resent = number(&one, "packets_resent");
        let words = words(&format!("{case} --quiet"));
        let output = weft(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("sources sent {resent} packets again")), "{said}");
        assert!(said.contains("time-outs of interfaces"), "{said}");
    }
}

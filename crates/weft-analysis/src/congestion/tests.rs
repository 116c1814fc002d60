//! Trees of a machine of three switches in a row, whose telemetry is written by hand.

use super::*;
use serde_json::{Value, json};
use std::path::Path;
use weft_results::{
    Ending, Existing, LinkRow, Performance, ResultsWriter, RunManifest, StoredRequest, Totals,
};
use weft_units::{Bytes, EndpointId, PortId, Span, SwitchId, Time};

const INTERVAL: u64 = 1_000;

/// A link of the machine, from one end to another.
#[derive(Clone, Copy)]
struct Wire(End, End);

/// Endpoints 0 and 1 at switch 0, endpoint 2 at switch 1, endpoints 3 and 4 at switch 2.
///
/// ```text
///  0 ─► switch 0 ─► switch 1 ─► switch 2 ─► 3
///  1 ─►             2 ─►                 ─► 4
/// ```
const WIRES: [Wire; 7] = [
    Wire(End::Endpoint(0), End::Port(0, 0)),
    Wire(End::Endpoint(1), End::Port(0, 1)),
    Wire(End::Endpoint(2), End::Port(1, 1)),
    Wire(End::Port(0, 2), End::Port(1, 0)),
    Wire(End::Port(1, 2), End::Port(2, 0)),
    Wire(End::Port(2, 1), End::Endpoint(3)),
    Wire(End::Port(2, 2), End::Endpoint(4)),
];

fn ends(end: End) -> (Option<EndpointId>, Option<SwitchId>, Option<PortId>) {
    match end {
        End::Endpoint(endpoint) => (Some(EndpointId(endpoint)), None, None),
        End::Port(switch, port) => (None, Some(SwitchId(switch)), Some(PortId(port))),
    }
}

fn link(Wire(from, to): Wire) -> LinkRow {
    let ((from_endpoint, from_switch, from_port), (to_endpoint, to_switch, to_port)) = (ends(from), ends(to));
    let (packets, packet_bytes) = (9, Bytes::new(900));
    let from = LinkRow { from_endpoint, from_switch, from_port, ..LinkRow::default() };
    LinkRow { to_endpoint, to_switch, to_port, packets, packet_bytes, ..from }
}

/// A link in an interval: its number in [`WIRES`], time busy and time stalled, in thousandths.
type Rate = (usize, u64, u64);

/// A result with these rates, and a full input queue of switch 2 from `full_from` on.
fn result(directory: &Path, rates: &[Vec<Rate>], full_from: u64, flows: &[Pair]) -> StoredResult {
    let request = json!({ "telemetry_ps": INTERVAL, "machine": { "name": "row" } });
    let stored = StoredRequest { request: request.clone(), trace_paths: Vec::new() };
    let tables = [Table::Links, Table::Rates, Table::Queues, Table::FlowRates];
    let mut results = ResultsWriter::create(directory, &tables, &stored, Existing::Refuse).unwrap();
    for wire in WIRES {
        results.push(link(wire)).unwrap();
    }
    let times = |number: usize| {
        let begin = number as u64 * INTERVAL;
        (Time::from_ps(begin), Time::from_ps(begin + INTERVAL))
    };
    for (number, links) in rates.iter().enumerate() {
        let (begin_ps, end_ps) = times(number);
        for (link, busy, stall) in links {
            let (from_endpoint, from_switch, from_port) = ends(WIRES[*link].0);
            let row = RateRow {
                run: 0,
                level: 0,
                begin_ps,
                end_ps,
                from_endpoint,
                from_switch,
                from_port,
                packets: 1,
                packet_bytes: Bytes::new(100),
                busy_ps: Span::from_ps(*busy),
                stall_ps: Span::from_ps(*stall),
                paused_ps: Span::ZERO,
                energy_pj: None,
                asleep_ps: None,
                fair_bits_per_second: None,
            };
            results.push(row).unwrap();
        }
        if begin_ps.as_ps() >= full_from {
            let row = QueueRow {
                run: 0,
                level: 0,
                begin_ps,
                end_ps,
                switch: SwitchId(2),
                port: PortId(0),
                virtual_channel: 0,
                side: "input".to_owned(),
                most_packets: 9,
                most_held_bytes: Bytes::new(900),
                mean_held_bytes: Bytes::new(800),
            };
            results.push(row).unwrap();
        }
        for (from, to) in flows {
            let row = FlowRateRow {
                run: 0,
                level: 0,
                begin_ps,
                end_ps,
                source_endpoint: EndpointId(*from),
                destination_endpoint: EndpointId(*to),
                traffic_class: 0,
                packets: 1,
                payload_bytes: Bytes::new(125),
                allowed_bits_per_second: None,
            };
            results.push(row).unwrap();
        }
    }
    let manifest: RunManifest<Value, Value> =
        RunManifest::new(request, json!({}), Ending::Finished, Totals::default());
    results.finish(manifest, Performance::default()).unwrap();
    StoredResult::open(directory).unwrap()
}

/// Catches a link that waits itself taken for the root, a branch that nobody waits at, a victim that crosses
/// the root or no branch, and time in which the tree did not stand.
#[test]
fn the_root_is_busy_and_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    // 0 and 2 send to 3 as fast as they can, 1 to 4: in the second interval all wait, in the third nobody.
    let calm =
        vec![(0, 300, 0), (1, 300, 0), (2, 300, 0), (3, 600, 0), (4, 900, 0), (5, 600, 0), (6, 300, 0)];
    let jam =
        vec![(0, 300, 600), (1, 300, 100), (2, 300, 0), (3, 950, 50), (4, 990, 0), (5, 990, 0), (6, 100, 0)];
    let rates = [calm.clone(), jam, calm];
    let flows = [(0, 3), (1, 4), (2, 3)];
    let stored = result(&folder.path().join("out"), &rates, 1_000, &flows);
    // The queue stays full in the third interval, in which the way out is not busy.
    let trees = congestion_trees(&stored, &|_, _| None).unwrap();
    assert_eq!(trees.len(), 1, "{trees:?}");
    let tree = &trees[0];
    assert_eq!(tree.root, "switch 2 port 1 → endpoint 3");
    assert_eq!((tree.from_us, tree.to_us), (0.001, 0.002));
    assert!((tree.share - 1.0 / 3.0).abs() < 1e-9);
    let branches: Vec<(&str, u32)> =
        tree.branches.iter().map(|branch| (branch.link.as_str(), branch.depth)).collect();
    assert_eq!(
        branches,
        [
            ("switch 1 port 2 → switch 2 port 0", 1),
            ("switch 0 port 2 → switch 1 port 0", 2),
            ("endpoint 0 → switch 0 port 0", 3),
        ],
        "the link of endpoint 1 waits too, but no flow from it crosses the root"
    );
    assert_eq!((tree.branches[0].most_held_bytes, tree.branches[2].stall_us), (900, 600e-6));
    let pairs = |flows: &Option<Vec<TreeFlow>>| -> Vec<Pair> {
        flows.iter().flatten().map(|flow| (flow.from, flow.to)).collect()
    };
    assert_eq!(pairs(&tree.contributors), [(0, 3), (2, 3)]);
    assert_eq!(pairs(&tree.victims), [(1, 4)]);
    // 125 B in the 1,000 ps for which it stood.
    assert_eq!(tree.victims.as_ref().unwrap()[0].rate_gbps, Some(1000.0));
    // The way of the victim is known, and leads elsewhere.
    let around = |from, to| {
        let way = vec![LinkFrom::Endpoint(EndpointId(from)), LinkFrom::Port(SwitchId(2), PortId(2))];
        (to == 4).then_some(way)
    };
    let known = congestion_trees(&stored, &around).unwrap();
    assert_eq!((&known[0].branches, &known[0].contributors), (&tree.branches, &tree.contributors));
    assert_eq!(pairs(&known[0].victims), []);
    assert!(
        tree.sentence().ends_with("3 directions of links wait for it; victims: 1 to 4"),
        "{}",
        tree.sentence()
    );
}

/// Catches a tree where a link is busy and nobody waits for it.
#[test]
fn a_busy_link_alone_is_no_tree() {
    let folder = tempfile::tempdir().unwrap();
    let busy = vec![(0, 990, 0), (3, 990, 0), (4, 990, 0), (5, 990, 0)];
    let stored = result(&folder.path().join("out"), &[busy], u64::MAX, &[(0, 3)]);
    assert_eq!(congestion_trees(&stored, &|_, _| None).unwrap(), []);
}

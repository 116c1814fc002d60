//! The block-level interface on the machine that has it.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_assembly as assembly;
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_machine::{Nic, load};
use weft_network::NetworkSetup;
use weft_nic::{Delivered, ExanetNic, Host, HostContext, Message, NicParameters, Observer, Offer, Stage};
use weft_topo::Topology as _;
use weft_units::{Bytes, EndpointId, Time};

/// Sends one raw message back and forth.
#[derive(Serialize, Deserialize)]
struct PingPong {
    begins: bool,
    peer: Option<EndpointId>,
    left: u32,
    arrived: Vec<Time>,
}

#[derive(Default)]
struct Log {
    stages: Vec<Stage>,
    hops: Vec<HopRecord>,
}

impl Observer for Log {
    fn hop(&mut self, hop: &HopRecord) {
        self.hops.push(*hop);
    }
    fn stage(&mut self, stage: &Stage) {
        self.stages.push(*stage);
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Never {}
impl Payload for Never {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

impl PingPong {
    fn throw(&mut self, bytes: Bytes, control: &mut impl HostContext<PingPong>) {
        let Some(to) = self.peer else { return };
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let at = control.now();
        let message = Message { header: Some(0), watch: true, ..Message::new(to, bytes, at) };
        control.send(message, at);
    }
}

impl Host for PingPong {
    type Parameters = Bytes;
    type Timer = Never;
    type Header = u32;
    type Output = Log;
    fn is_active(&self) -> bool {
        self.begins
    }
    fn start(&mut self, bytes: &Bytes, control: &mut impl HostContext<Self>) {
        self.throw(*bytes, control);
    }
    fn timer(&mut self, timer: Never, _: &Bytes, _: &mut impl HostContext<Self>) {
        match timer {}
    }
    fn sent(&mut self, _: u32, _: &Bytes, _: &mut impl HostContext<Self>) {}
    fn delivered(&mut self, message: &Delivered<u32>, bytes: &Bytes, control: &mut impl HostContext<Self>) {
        let now = control.now();
        if message.in_mailbox {
            control.capabilities().take(message.interface, now);
        }
        self.arrived.push(now);
        self.throw(*bytes, control);
    }
    fn next_offer(&self) -> Time {
        Time::NEVER
    }
    fn offer(&mut self, _: &Bytes, _: Time) -> Offer<u32> {
        Offer::Nothing
    }
}

/// Mean one-way latency in ns between two endpoints, and what was observed of the last message.
fn one_way(sets: &[&str], from: &str, to: &str, bytes: u64) -> (f64, Log) {
    let machine = load("exanest", sets).unwrap();
    let layout = assembly::layout(&machine).unwrap();
    let find = |name: &str| {
        (0..layout.endpoints()).map(EndpointId).find(|e| layout.endpoint_name(*e) == name).unwrap()
    };
    let (from, to) = (find(from), find(to));
    let host = |endpoint| {
        let begins = endpoint == from;
        let peer = if begins { Some(to) } else { (endpoint == to).then_some(from) };
        // One that talks to itself throws for both.
        let left = if from == to { 100 } else { 50 };
        PingPong { begins, peer, left, arrived: Vec::new() }
    };
    let Nic::Exanet(nic) = &machine.nic else { panic!("ExaNeSt's interface") };
    let interface = NicParameters { interface: nic.parameters(1), host: Bytes::new(bytes) };
    let setup = NetworkSetup::new(&machine, layout.clone(), 1);
    let mut network = setup.build_over::<PingPong, ExanetNic<PingPong>>(interface, host).unwrap();
    network.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut arrived = Vec::new();
    network.visit_hosts(&mut |_, host| arrived.extend(host.arrived.iter().copied()));
    arrived.sort();
    assert_eq!(arrived.len(), 100, "every message arrives");
    let mut log = Log::default();
    network.visit_outputs(&mut |output| {
        log.stages.append(&mut output.stages);
        log.hops.append(&mut output.hops);
    });
    ((arrived[99] - arrived[49]).as_ns_f64() / 50.0, log)
}

/// TR-488 §6.1.1: around 470 ns one way between user programs on adjacent MPSoCs, and §4.2's range of the
/// port. Catches a block that is left out or counted twice.
#[test]
fn raw_messages_take_what_was_measured() {
    let (ns, _) = one_way(&[], "M1QAF1", "M1QAF2", 0);
    assert!((ns - 470.0).abs() < 12.0, "470 ns in TR-488 §6.1.1, {ns} ns here");
    let (inside, _) = one_way(&[], "M1QAF1", "M1QAF1", 0);
    let link = ns - inside;
    assert!((110.0..=130.0).contains(&link), "about 120 ns (1.293 - 1.17 us), {link} ns here");
    let (full, _) = one_way(&[], "M1QAF1", "M1QAF2", 64);
    assert!(full > ns && full < ns + 80.0, "64 B take a few words more: {full} ns, not {ns} ns");
}

/// Catches a stage or a hop that is missing, or that overlaps another: from the post to the notice they are
/// a chain, so that a breakdown adds up exactly.
#[test]
fn stages_and_hops_of_a_message_are_a_chain() {
    // A message of one cell each: of longer ones two cells are watched, whose chains overlap; the walk of a
    // critical path takes them apart.
    let cases = [("M1QAF2", 0), ("M1QAF2", 64), ("M1QAF1", 8), ("M2QBF3", 40), ("M1QAF2", 256)];
    for (to, bytes) in cases {
        let log = one_way(&[], "M1QAF1", to, bytes).1;
        let last = log.stages.iter().map(|stage| (stage.source, stage.message)).max().unwrap();
        let mut links: Vec<(Time, Time)> = Vec::new();
        let stages = log.stages.iter().filter(|stage| (stage.source, stage.message) == last);
        for stage in stages {
            assert!(stage.came <= stage.began && stage.began <= stage.ended, "{stage:?}");
            links.push((stage.came, stage.ended));
        }
        let mut hops: Vec<&HopRecord> =
            log.hops.iter().filter(|hop| (hop.source, hop.message) == last).collect();
        hops.sort_by_key(|hop| hop.began);
        for (index, hop) in hops.iter().enumerate() {
            let head = if index + 1 == hops.len() { hop.ended } else { hop.began };
            links.push((hop.came, head + hop.latency + hop.routing));
        }
        links.sort();
        for pair in links.windows(2) {
            assert_eq!(pair[0].1, pair[1].0, "{to}: {links:?}");
        }
        assert!(links.len() >= 8, "host port, packetizer, transmit, hops, mailbox, host port, polling");
    }
}

/// Catches a machine without blocks that is run with them all the same.
#[test]
fn a_machine_without_blocks_says_what_is_missing() {
    let error = load("bxi3-fattree", &["nic.model=exanet"]).unwrap_err().to_string();
    for key in ["nic.host_port", "nic.packetizer", "nic.mailbox", "nic.rdma"] {
        assert!(error.contains(key), "{error}");
    }
}

/// Catches a limit that is passed in silence, and interfaces of flows that are told as ranks.
#[test]
fn more_ranks_than_interfaces_are_refused() {
    let ranks = |ranks| assembly::InterfaceUsers { ranks, beside: 0 };
    let machine = load("exanest", &["nic.mailbox.interfaces=3"]).unwrap();
    assert_eq!(assembly::check_interfaces(&machine, ranks(3)), Ok(()));
    let error = assembly::check_interfaces(&machine, ranks(4)).unwrap_err().to_string();
    assert!(error.contains("4 ranks") && error.contains("3 processes"), "{error}");
    assert!(error.contains("nic.mailbox.interfaces") && error.contains("nic.model=overheads"), "{error}");
    let beside = assembly::InterfaceUsers { ranks: 2, beside: 2 };
    let error = assembly::check_interfaces(&machine, beside).unwrap_err().to_string();
    assert!(error.contains("2 ranks and 2 virtual interfaces of flows and services"), "{error}");
    let machine = load("exanest", &["nic.model=overheads"]).unwrap();
    assert_eq!(assembly::check_interfaces(&machine, ranks(4000)), Ok(()));
}

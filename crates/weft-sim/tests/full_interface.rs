//! The block-level interface on the machine that has it.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_engine::Payload;
use weft_fabric::HopRecord;
use weft_nic::{Delivered, Host, HostContext, Message, Observer, Offer, Primitive, Stage};
use weft_sim::machine::load;
use weft_sim::{assembly, network};
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
    fn throw(&mut self, bytes: Bytes, context: &mut impl HostContext<PingPong>) {
        let Some(to) = self.peer else { return };
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let at = context.now();
        let message = Message {
            to,
            bytes,
            born: at,
            header: Some(0),
            token: None,
            primitive: Primitive::Automatic,
            interface: 0,
            to_interface: 0,
            watch: true,
        };
        context.send(message, at);
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
    fn start(&mut self, bytes: &Bytes, context: &mut impl HostContext<Self>) {
        self.throw(*bytes, context);
    }
    fn timer(&mut self, timer: Never, _: &Bytes, _: &mut impl HostContext<Self>) {
        match timer {}
    }
    fn sent(&mut self, _: u32, _: &Bytes, _: &mut impl HostContext<Self>) {}
    fn delivered(&mut self, message: &Delivered<u32>, bytes: &Bytes, context: &mut impl HostContext<Self>) {
        let now = context.now();
        if message.in_mailbox {
            context.taken(message.interface, now);
        }
        self.arrived.push(now);
        self.throw(*bytes, context);
    }
    fn next_offer(&self) -> Time {
        Time::MAX
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
        (0..layout.endpoints())
            .map(EndpointId)
            .find(|e| layout.endpoint_name(*e).to_string() == name)
            .unwrap()
    };
    let (from, to) = (find(from), find(to));
    let host = |endpoint| {
        let begins = endpoint == from;
        let peer = if begins { Some(to) } else { (endpoint == to).then_some(from) };
        PingPong { begins, peer, left: 50, arrived: Vec::new() }
    };
    let mut network =
        network::build::<PingPong>(&machine, layout.clone(), 1, 1, Bytes::new(bytes), host, None).unwrap();
    network.run_until(Time::MAX, &AtomicBool::new(false));
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

#[test]
fn raw_messages_take_what_was_measured() {
    let (ns, log) = one_way(&[], "M1QAF1", "M1QAF2", 0);
    for stage in log.stages.iter().rev().take(6).rev() {
        println!("{:?} came {} began {} ended {}", stage.block, stage.came, stage.began, stage.ended);
    }
    for hop in log.hops.iter().rev().take(3).rev() {
        println!("{hop:?}");
    }
    println!(
        "{ns} ns; 64 B {} ns; 256 B {} ns",
        one_way(&[], "M1QAF1", "M1QAF2", 64).0,
        one_way(&[], "M1QAF1", "M1QAF2", 256).0
    );
    assert!((ns - 470.0).abs() < 5.0, "TR-488 §6.1.1: around 470 ns, not {ns}");
}

//! The paths of the ExaNeSt machine that ships, on its idle network, against TR-488 §6.1.1.

use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_assembly::layout;
use weft_engine::Payload;
use weft_machine::{Nic, load};
use weft_network::NetworkSetup;
use weft_nic::{Delivered, ExanetNic, Host, HostContext, Message, NicParameters, Offer, Primitive};
use weft_topo::{Exanest, Layout, RoutedTopology as _, Topology as _};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Sends packets far apart to one endpoint, or listens.
#[derive(Serialize, Deserialize)]
struct Pinger {
    to: Option<EndpointId>,
}

/// It sets no timers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum NoTimer {}

impl Payload for NoTimer {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

/// Packets of one ping, and what lies between them: odd, so that they meet the clock in many phases.
const PINGS: u64 = 300;
const APART: Span = Span::from_ps(5_000_037);

/// Latencies, summed up.
#[derive(Default)]
struct Latencies {
    sum: Span,
    count: u64,
}

impl weft_nic::Observer for Latencies {}

impl Host for Pinger {
    type Parameters = ();
    type Timer = NoTimer;
    type Header = ();
    type Output = Latencies;

    fn is_active(&self) -> bool {
        self.to.is_some()
    }

    fn start(&mut self, (): &(), control: &mut impl HostContext<Self>) {
        let Some(to) = self.to else { return };
        for ping in 0..PINGS {
            let created_at = Time::ZERO + APART * ping;
            // An empty MPI message: the eager header alone.
            let (bytes, primitive) = (Bytes::new(24), Primitive::Automatic);
            let message = Message { primitive, ..Message::new(to, bytes, created_at) };
            control.send(message, created_at);
        }
    }

    fn timer(&mut self, timer: NoTimer, (): &(), _: &mut impl HostContext<Self>) {
        match timer {}
    }

    fn sent(&mut self, _: u32, (): &(), _: &mut impl HostContext<Self>) {}

    fn delivered(&mut self, message: &Delivered<()>, (): &(), control: &mut impl HostContext<Self>) {
        let now = control.now();
        let latency = now - message.created_at;
        if message.in_mailbox {
            control.capabilities().take(0, now);
        }
        let output = control.output();
        output.sum += latency;
        output.count += 1;
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, (): &(), _: Time) -> Offer<()> {
        Offer::Nothing
    }
}

/// Mean latency from M1QAF1, in ns.
fn latency_ns(to: &str) -> f64 {
    let machine = load("exanest", &[] as &[&str]).unwrap();
    let Layout::Exanest(routing) = layout(&machine).unwrap() else { panic!("the ExaNeSt machine") };
    let names: &Exanest = routing.topology();
    let (from, to) = (names.endpoint("M1QAF1").unwrap(), names.endpoint(to).unwrap());
    let pinger = |endpoint| Pinger { to: (endpoint == from).then_some(to) };
    let Nic::Exanet(nic) = &machine.nic else { panic!("ExaNeSt's interface") };
    let interface = NicParameters { interface: nic.parameters(1), host: () };
    let setup = NetworkSetup::new(&machine, layout(&machine).unwrap(), 1);
    let mut network = setup.build_over::<Pinger, ExanetNic<Pinger>>(interface, pinger).unwrap();
    network.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut latencies = Latencies::default();
    network.visit_outputs(&mut |output| {
        latencies.sum += output.sum;
        latencies.count += output.count;
    });
    assert_eq!(latencies.count, PINGS);
    latencies.sum.as_ps() as f64 / PINGS as f64 / 1000.0
}

/// Catches a path that passes a routing block too many or too few, and links that have left their
/// calibration: 409 ns for one hop between QFDBs over a message inside the FPGA (1.579 - 1.17 us), a link of
/// 120 ns and a routing block of 145 ns for each further one, about 120 ns for the link of a QFDB.
#[test]
fn hops_cost_what_the_report_measured() {
    let inside = latency_ns("M1QAF1");
    let [qfdb, one, two, three] = ["M1QAF2", "M1QBF1", "M1QCF1", "M2QCF1"].map(latency_ns);
    // The wire of 10 Gb/s hides the mailbox's check of a packet.
    assert!((one - inside - 409.0).abs() < 12.0, "one hop adds {} ns", one - inside);
    // A block takes whole cycles of 6.67 ns.
    assert!((two - one - 265.0).abs() < 3.4, "a second hop adds {} ns", two - one);
    assert!((three - two - 265.0).abs() < 3.4, "a third hop adds {} ns", three - two);
    assert!((qfdb - inside - 123.0).abs() < 10.0, "the link of a QFDB adds {} ns", qfdb - inside);
}

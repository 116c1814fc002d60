//! `weft machine selftest`: an interface's own test, on a machine without other traffic.
//!
//! ```text
//!   registers of one node ── packets, size, X, start ──► packet generator ══ switches ══► consumer
//!   registers of the other ◄── status, packets, cycles ───────────────────────────────────────┘
//! ```
//! # Source
//! D2.8 §2.1, §5.1: one packet of 16 B from IntraNode port 0 back to itself. The other tests are ours.

use super::super::{ExperimentError, MachineInput};
use super::checked;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use weft_assembly as assembly;
use weft_engine::Payload;
use weft_machine::{Machine, Nic, SHIPPED, load};
use weft_network::{NetworkError, NetworkSetup};
use weft_nic::communication_ip::header::{Coordinates, Header};
use weft_nic::communication_ip::registers::{
    Register, STATUS_CONSUMER_IDLE, STATUS_GENERATOR_IDLE, STATUS_OK,
};
use weft_nic::communication_ip::self_test::TestPattern;
use weft_nic::{
    CommunicationIpNic, CommunicationIpParameters, Delivered, Host, HostContext, NicParameters, Offer,
    RegisterError,
};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Packets of a test of bandwidth.
const MANY: u32 = 1000;

/// Bytes of the packet of a test of latency: D2.8 §5.1.
const SMALL: u32 = 16;

/// Looks at the status of a test before it counts as failed.
const MAX_POLLS: u32 = 1000;

/// A test and its outcome.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SelfTestRow {
    /// The way: a loop within the node, or to its neighbour along X.
    pub test: &'static str,
    /// The endpoint with the packet generator.
    pub from: u32,
    /// The endpoint with the consumer.
    pub to: u32,
    /// Packets.
    pub packets: u32,
    /// Payload of each, in bytes.
    pub size_bytes: u32,
    /// The name of the payload's pattern.
    pub pattern: &'static str,
    /// The performance counter: cycles from the first footer written to the last one read.
    pub cycles: u64,
    /// The same in ns.
    pub time_ns: f64,
    /// Payload per time from the first footer to the last; of several packets alone.
    pub bandwidth_gbps: Option<f64>,
    /// Packets that came.
    pub received: u32,
    /// Packets among them with a wrong payload.
    pub wrong: u32,
    /// The test status register at the consumer.
    pub status: u32,
    /// `virt_chan` of the header of the last packet that came: the virtual channel of its last link between
    /// nodes.
    pub virt_chan: u8,
    /// `num_of_hops` of it: links between nodes.
    pub num_of_hops: u16,
    /// `out_of_lattice` of it.
    pub out_of_lattice: bool,
    /// Whether generator and consumer are idle again and every payload was right.
    pub passed: bool,
}

/// The outcome of a self-test.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SelfTestReport {
    /// `machine selftest`.
    pub command: &'static str,
    /// The machine.
    pub machine: String,
    /// Whether all tests passed.
    pub passed: bool,
    /// The tests.
    pub rows: Vec<SelfTestRow>,
}

/// Why a machine is not tested.
#[derive(Debug, thiserror::Error)]
enum SelfTestError {
    #[error(
        "the interface of `{machine}` has no self-test (nic.model = \"communication-ip\" has one); of the \
         machines that ship these have: {able}"
    )]
    NoSelfTest { machine: String, able: String },
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("a register refused what the test writes: {0}")]
    Register(String),
    #[error(
        "--to {to}: the packet generator sends along X, to the first endpoint of a node of its row; write \
         one of {row}"
    )]
    NotInRow { to: EndpointId, row: String },
    #[error("--size {size}: a packet has at most {most}, as packet.payload says; write {most} or less")]
    Size { size: Bytes, most: Bytes },
}

/// A test that a user asks for, in place of the usual ones: what is written into the registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SelfTestWanted {
    /// Packets.
    pub packets: u32,
    /// Payload of each.
    pub size: Bytes,
    /// The endpoint with the consumer.
    pub to: EndpointId,
    /// The payload's pattern.
    pub pattern: TestPattern,
}

/// Runs the self-test of a machine's interface.
///
/// # Errors
/// A machine whose interface has none, and one that cannot be simulated.
pub fn self_test(input: &MachineInput) -> Result<SelfTestReport, ExperimentError> {
    let machine = checked(input)?;
    let parameters = parameters(&machine).map_err(ExperimentError::input)?;
    let here = EndpointId(0);
    let neighbour = parameters.lattice.endpoint(Coordinates { x: 1, y: 0, z: 0 });
    let ways = [("loop", Some((0, here))), ("neighbour along x", neighbour.map(|to| (1, to)))];
    let large = parameters.payload.get() as u32;
    let mut rows = Vec::new();
    for (test, way) in ways {
        let Some((x, consumer)) = way else { continue };
        for (packets, size) in [(1, SMALL.min(large)), (MANY, large)] {
            let (generator, pattern, poll) = (here, TestPattern::default(), poll(&parameters, packets, size));
            let plan = Plan { generator, consumer, x, packets, size, pattern, poll };
            let outcome = run(&machine, &parameters, plan).map_err(ExperimentError::input)?;
            rows.push(row(test, &plan, &outcome, &parameters));
        }
    }
    let passed = rows.iter().all(|row| row.passed);
    Ok(SelfTestReport { command: "machine selftest", machine: machine.name, passed, rows })
}

/// Runs one test, which a user asks for.
///
/// # Errors
/// As [`self_test`], and a destination or a size that the generator does not have.
pub fn self_test_of(input: &MachineInput, wanted: SelfTestWanted) -> Result<SelfTestReport, ExperimentError> {
    let machine = checked(input)?;
    let parameters = parameters(&machine).map_err(ExperimentError::input)?;
    let SelfTestWanted { packets, size, to, pattern } = wanted;
    let most = parameters.payload;
    if size > most {
        return Err(ExperimentError::input(SelfTestError::Size { size, most }));
    }
    let row_of = (0..parameters.lattice.sizes[0]).map_while(|x| {
        parameters.lattice.endpoint(Coordinates { x, y: 0, z: 0 }).map(|endpoint| (x, endpoint))
    });
    let row_of: Vec<(u32, EndpointId)> = row_of.collect();
    let Some((x, consumer)) = row_of.iter().copied().find(|(_, endpoint)| *endpoint == to) else {
        let row = row_of.iter().map(|(_, endpoint)| endpoint.to_string()).collect::<Vec<_>>().join(", ");
        return Err(ExperimentError::input(SelfTestError::NotInRow { to, row }));
    };
    let size = size.get() as u32;
    let poll = poll(&parameters, packets, size);
    let plan = Plan { generator: EndpointId(0), consumer, x, packets, size, pattern, poll };
    let outcome = run(&machine, &parameters, plan).map_err(ExperimentError::input)?;
    let row = row(if x == 0 { "loop" } else { "along x" }, &plan, &outcome, &parameters);
    Ok(SelfTestReport {
        command: "machine selftest",
        machine: machine.name,
        passed: row.passed,
        rows: vec![row],
    })
}

/// The interface of a machine, without kernels.
fn parameters(machine: &Machine) -> Result<CommunicationIpParameters, SelfTestError> {
    if let Nic::CommunicationIp(nic) = machine.nic {
        return Ok(nic.without_kernels().parameters(&machine.topology));
    }
    let able = SHIPPED.iter().filter(|shipped| {
        load(shipped.name, &[] as &[&str]).is_ok_and(|ships| matches!(ships.nic, Nic::CommunicationIp(_)))
    });
    let able = able.map(|shipped| shipped.name).collect::<Vec<_>>().join(", ");
    Err(SelfTestError::NoSelfTest { machine: machine.name.clone(), able })
}

/// The time between two looks at the status: many times fewer looks than packets, and the first after the
/// words of the test.
fn poll(parameters: &CommunicationIpParameters, packets: u32, size: u32) -> Span {
    let words = parameters.words(Bytes::new(u64::from(size))) + parameters.envelope_words();
    parameters.clock.cycles(u64::from(packets) * u64::from(words)).max(Span::from_us(1))
}

fn row(
    test: &'static str,
    plan: &Plan,
    outcome: &Outcome,
    parameters: &CommunicationIpParameters,
) -> SelfTestRow {
    let Outcome { status, generator_status, received, wrong, cycles, header } = *outcome;
    // Nothing has come where it is none.
    let Header { virtual_channel, hops, out_of_lattice, .. } = Header::unpack(header).unwrap_or_default();
    let time = parameters.clock.cycles(cycles);
    let bits = f64::from(plan.packets - 1) * f64::from(plan.size) * 8.0;
    SelfTestRow {
        test,
        from: plan.generator.0,
        to: plan.consumer.0,
        packets: plan.packets,
        size_bytes: plan.size,
        pattern: plan.pattern.name(),
        cycles,
        time_ns: time.as_ns_f64(),
        bandwidth_gbps: (plan.packets > 1 && cycles > 0).then(|| bits / time.as_ns_f64()),
        received,
        wrong,
        status,
        virt_chan: virtual_channel,
        num_of_hops: hops,
        out_of_lattice,
        passed: status == STATUS_OK && generator_status & STATUS_GENERATOR_IDLE != 0,
    }
}

/// A test.
#[derive(Clone, Copy)]
struct Plan {
    generator: EndpointId,
    consumer: EndpointId,
    /// The consumer's node along X.
    x: u32,
    packets: u32,
    size: u32,
    pattern: TestPattern,
    poll: Span,
}

/// The registers of the consumer's node, and the status of the generator's, behind a test.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Outcome {
    status: u32,
    generator_status: u32,
    received: u32,
    wrong: u32,
    cycles: u64,
    header: u128,
}

/// The host of a node: writes and reads registers.
#[derive(Default, Serialize, Deserialize)]
struct Driver {
    polls: u32,
    outcome: Outcome,
    refused: Option<String>,
}

/// The next look at the status.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Poll;

impl Payload for Poll {
    fn tie(&self) -> u128 {
        0
    }
}

impl Driver {
    /// Writes the registers of a test, and starts it.
    fn begin(plan: &Plan, context: &mut impl HostContext<Driver>) -> Result<(), RegisterError> {
        let registers = context.capabilities().registers().ok_or(RegisterError::NoRegisters)?;
        for (register, value) in [
            (Register::Reset, 1),
            (Register::TestPackets, plan.packets),
            (Register::TestSize, plan.size),
            (Register::TestDestX, plan.x),
            (Register::TestPattern, plan.pattern as u32),
            (Register::TestStart, 1),
        ] {
            registers.write_register(register.address(), value)?;
        }
        Ok(())
    }

    /// Reads what a test has left in the registers.
    fn look(&mut self, context: &mut impl HostContext<Driver>) -> Result<(), RegisterError> {
        let registers = context.capabilities().registers().ok_or(RegisterError::NoRegisters)?;
        let read = |register: Register| registers.read_register(register.address());
        let cycles = [read(Register::TestCyclesHigh)?, read(Register::TestCyclesLow)?].map(u64::from);
        use Register::{TestHeader0, TestHeader1, TestHeader2, TestHeader3};
        let header = [TestHeader3, TestHeader2, TestHeader1, TestHeader0];
        let header = header.into_iter().try_fold(0, |word, part| Ok(word << 32 | u128::from(read(part)?)))?;
        self.outcome = Outcome {
            status: read(Register::TestStatus)?,
            generator_status: 0,
            received: read(Register::TestReceived)?,
            wrong: read(Register::TestWrong)?,
            cycles: cycles[0] << 32 | cycles[1],
            header,
        };
        Ok(())
    }
}

impl Host for Driver {
    type Parameters = Plan;
    type Timer = Poll;
    type Header = ();
    type Output = ();

    fn is_active(&self) -> bool {
        true
    }

    fn start(&mut self, plan: &Plan, context: &mut impl HostContext<Self>) {
        let here = context.endpoint();
        if here == plan.generator
            && let Err(error) = Driver::begin(plan, context)
        {
            self.refused = Some(error.to_string());
        }
        if here == plan.generator || here == plan.consumer {
            let at = context.now() + plan.poll;
            context.set_timer(at, Poll);
        }
    }

    fn timer(&mut self, _: Poll, plan: &Plan, context: &mut impl HostContext<Self>) {
        self.polls += 1;
        if let Err(error) = self.look(context) {
            self.refused = Some(error.to_string());
            return;
        }
        let Outcome { status, received, .. } = self.outcome;
        let idle = STATUS_CONSUMER_IDLE | STATUS_GENERATOR_IDLE;
        let came = context.endpoint() != plan.consumer || received > 0;
        if (status & idle != idle || !came) && self.polls < MAX_POLLS {
            let at = context.now() + plan.poll;
            context.set_timer(at, Poll);
        }
    }

    fn sent(&mut self, _: u32, _: &Plan, _: &mut impl HostContext<Self>) {}

    fn delivered(&mut self, _: &Delivered<()>, _: &Plan, _: &mut impl HostContext<Self>) {}

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &Plan, _: Time) -> Offer<()> {
        Offer::Nothing
    }
}

/// Runs one test.
fn run(
    machine: &Machine,
    parameters: &CommunicationIpParameters,
    plan: Plan,
) -> Result<Outcome, SelfTestError> {
    let layout = assembly::layout(machine).map_err(NetworkError::from)?;
    let interface = NicParameters { interface: *parameters, host: plan };
    let setup = NetworkSetup::new(machine, layout, 1);
    let mut network =
        setup.build_over::<Driver, CommunicationIpNic<Driver>>(interface, |_| Driver::default())?;
    network.run_until(Time::NEVER, &AtomicBool::new(false));
    let (mut outcome, mut generator_status, mut refused) = (Outcome::default(), 0, None);
    network.visit_hosts(&mut |endpoint, driver: &Driver| {
        if endpoint == plan.consumer {
            outcome = driver.outcome;
        }
        if endpoint == plan.generator {
            generator_status = driver.outcome.status;
        }
        refused = refused.take().or_else(|| driver.refused.clone());
    });
    match refused {
        Some(error) => Err(SelfTestError::Register(error)),
        None => Ok(Outcome { generator_status, ..outcome }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::input;
    use super::*;

    fn tested(sets: &[&str]) -> SelfTestReport {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        self_test(&input("communication-ip", &sets).unwrap()).unwrap()
    }

    /// D2.8 §2.1: 28 cycles from TX FIFO to RX FIFO, 6 of them the FIFO's own. Catches a block on the way
    /// that is left out or counted twice, and kernels that take part.
    #[test]
    fn a_loop_takes_what_the_document_says() {
        for (sets, cycles) in [
            (&[][..], 28),
            (&["nic.intra_node.fifo_latency=0 cycles"], 22),
            (&["nic.intra_node.aggregator=50 cycles", "nic.buffers=ddr"], 28),
            (&["topology.dims=[4,4,4]"], 28),
        ] {
            let report = tested(sets);
            let row = &report.rows[0];
            assert_eq!((row.test, row.packets, row.cycles), ("loop", 1, cycles), "{sets:?}");
            assert_eq!((row.status, row.time_ns), (0x31, 10.0 * cycles as f64), "{sets:?}");
            assert!(report.passed);
        }
    }

    /// A packet to the neighbour: two switches and the link between them, which is not slower than a port's.
    /// Many packets: a word per cycle.
    #[test]
    fn other_tests_in_closed_form() {
        // The buffer that ships holds one packet of the largest size with its header.
        let rows = tested(&["switch.buffer=16K"]).rows;
        let cycles: Vec<u64> = rows.iter().map(|row| row.cycles).collect();
        // FIFO 6, port 1, switch 20, link 22, switch 20, port 1.
        assert_eq!(cycles[2], 70);
        let words = 256 + 2;
        assert_eq!(cycles[1], 28 + 999 * words);
        assert_eq!(cycles[3], 70 + 999 * words);
    }

    /// Catches registers that do not get what the user wants, and what they cannot hold.
    #[test]
    fn a_user_chooses_packets_size_and_destination() {
        let machine = input("communication-ip", &["topology.dims=[4,2]".to_owned()]).unwrap();
        let test = |packets, size, to| {
            let pattern = TestPattern::default();
            let wanted = SelfTestWanted { packets, size: Bytes::new(size), to: EndpointId(to), pattern };
            self_test_of(&machine, wanted)
        };
        let row = &test(10, 48, 2).unwrap().rows[0];
        // Two links and three switches, then five words for each packet.
        assert_eq!((row.test, row.received, row.cycles), ("along x", 10, 28 + 2 * 42 + 9 * 5));
        assert!(row.passed);
        let of = |row: &SelfTestRow| (row.num_of_hops, row.virt_chan, row.out_of_lattice);
        assert_eq!(of(row), (2, 0, false));
        // Down over the dateline, from which on packets are on the second channel.
        assert_eq!(of(&test(1, 16, 3).unwrap().rows[0]), (1, 1, false));
        let own = test(1, 16, 0).unwrap();
        assert_eq!((own.rows[0].cycles, of(&own.rows[0])), (28, (0, 0, false)));
        for pattern in TestPattern::ALL {
            let wanted = SelfTestWanted { packets: 20, size: Bytes::new(100), to: EndpointId(1), pattern };
            let row = self_test_of(&machine, wanted).unwrap().rows.swap_remove(0);
            assert_eq!((row.pattern, row.received, row.passed), (pattern.name(), 20, true));
        }
        for (size, to, told) in [(16, 4, "write one of 0, 1, 2, 3"), (4097, 1, "at most 4K")] {
            let error = test(1, size, to).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    /// Catches a fault that the test does not find: a damaged packet, and one that is lost.
    #[test]
    fn faults_are_found() {
        let faulty = |fault: &str| tested(&[&format!("faults=[{{{fault}}}]")]).rows;
        let corrupt = &faulty("of=\"0\", corrupt=100000")[1];
        assert!(corrupt.wrong > 0 && corrupt.received == MANY && !corrupt.passed);
        assert_eq!(corrupt.status, 0x30);
        let dropped = &faulty("of=\"0\", drop=100000")[1];
        assert!(dropped.received < MANY && dropped.wrong == 0 && !dropped.passed);
        assert_eq!(dropped.status, 0x10, "the consumer waits for the others");
    }

    /// Catches a test of an interface that has none, and an error that names no machine that has one.
    #[test]
    fn other_interfaces_have_none() {
        for (name, sets) in
            [("exanest", vec![]), ("communication-ip", vec!["nic.model=overheads".to_owned()])]
        {
            let error = self_test(&input(name, &sets).unwrap()).unwrap_err().to_string();
            assert!(
                error.contains("has no self-test") && error.contains("these have: communication-ip"),
                "{error}"
            );
        }
    }
}

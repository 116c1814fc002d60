//! From a checked machine to what the model is built of: the only place where the values of a machine
//! file meet the crates that simulate it.
//!
//! ```text
//!             ┌─ layout ──────────────► weft_topo::Layout
//!             ├─ fabric_parameters ───► weft_fabric::Network or weft_fabric::Ideal
//!  Machine ───┼─ faults ──────────────► weft_fabric::FaultParameters of each link
//!             ├─ nic.parameters ──────► weft_nic::OverheadsNic or weft_nic::ExanetNic
//!             ├─ protocol ────────────► weft_msg::Process
//!             └─ endpoint_of_core ────► where ranks sit
//! ```

mod failures;
mod faults;
mod groups;
mod rails;

pub use failures::{FailureState, Failures, failures};
pub use faults::{Faults, faults, links_may_fail};
pub use groups::{MachineGroup, groups, machine_groups};
pub use rails::{check_shared_memory, rails};

use std::fmt;
use weft_fabric::parameters::{CreditUnit, FlowControl, IdealParameters, SwitchKind};
use weft_fabric::{BuildError, CongestionError, GroupError, LinkParameters, NetworkParameters};
use weft_machine::{Fabric, Machine, Progress, RankLimit, Rule};
use weft_msg::{AlgorithmError, Protocol, WaitCosts, Wildcards};
use weft_topo::{ChannelPlan, Layout, Routing as _, SizeError, Topology as _, TopologyParameters};
use weft_units::memory::{MemoryLimit, available_memory};
use weft_units::{Bytes, EndpointId, Span};

/// A machine that is well formed and cannot be simulated. Every message names the key of the machine file
/// to change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// The topology is outside its limits.
    #[error("topology.{key}: {source}; change it in the machine file or with --set topology.{key}=…")]
    Size {
        /// The key of `[topology]` that gives the size.
        key: &'static str,
        /// The size that is too large or too small.
        source: SizeError,
    },
    /// Links and switches do not fit together.
    #[error("{key}: {source}")]
    Network {
        /// The key to change.
        key: &'static str,
        /// The misfit.
        source: BuildError,
    },
    /// Congestion that cannot be controlled as asked for.
    #[error("congestion.kind: {0}")]
    Congestion(#[from] CongestionError),
    /// A size beyond what a packet or a buffer of the model holds.
    #[error("{key}: {value} is more than the model can count; write at most {limit}")]
    TooLarge {
        /// The key to change.
        key: &'static str,
        /// The value.
        value: Bytes,
        /// The largest that works.
        limit: Bytes,
    },
    /// A rule of faults that names what the machine does not have.
    #[error(
        "faults.{number}: {why}; ends are endpoints such as M1QAF1 or 3, and switches such as `switch 7`"
    )]
    Fault {
        /// Which rule, counted from 0.
        number: usize,
        /// The wrong name.
        why: String,
    },
    /// Members of a multicast group of the machine that are none.
    #[error("multicast.{number}: {why}")]
    Group {
        /// Which group, counted from 0.
        number: usize,
        /// The mistake, and the mend.
        why: String,
    },
    /// Endpoints of a program that are no multicast group.
    #[error("the ranks of a program cannot be a multicast group: {0}")]
    ProgramGroup(GroupError),
    /// Switches that cannot copy packets for groups.
    #[error("topology: {0}")]
    Replication(GroupError),
    /// Copies of packets at an interface that would take one for another packet.
    #[error(
        "faults.{number}.duplicate: the interface `overheads` numbers no packets without reliable \
         connections, and would count a copy as the next packet of its message; set \
         nic.reliability.kind=selective-repeat or nic.model=exanet, or leave out duplicate"
    )]
    Duplicates {
        /// Which rule, counted from 0.
        number: usize,
    },
    /// More random failures than can be kept.
    #[error(
        "faults.{number}: about {expected} failures are to be drawn, at most {limit} can be; write \
         longer mean times, an earlier `until`, or fewer links"
    )]
    TooManyFailures {
        /// Which rule, counted from 0.
        number: usize,
        /// About how many.
        expected: u128,
        /// At most how many.
        limit: u128,
    },
    /// Endpoints that no route can reach for the rest of the run.
    #[error(
        "fabric.reroute: {cut}; let the links come back (on_at), or leave out fabric.reroute to see what \
         is lost"
    )]
    CutOff {
        /// When, and which.
        cut: String,
    },
    /// Tables that take too much memory.
    #[error("{}", AssemblyError::tables(*states, *needed, *limit))]
    Tables {
        /// Sets of links that are off together.
        states: usize,
        /// Memory that their tables take.
        needed: Bytes,
        /// Memory that they may take.
        limit: Bytes,
    },
    /// Interfaces of a host that cannot be rails.
    #[error("messaging.rails: {0}, or leave out messaging.rails")]
    Rails(String),
    /// Endpoints of a host that cannot share its memory.
    #[error("host.core: {0}; or, if no kernel runs, leave out [host.core]")]
    SharedMemory(String),
    /// A rule of the table of algorithms that cannot be carried out.
    #[error("messaging.algorithms: {0}")]
    Algorithm(#[from] AlgorithmError),
    /// More ranks at an endpoint than its interface serves.
    #[error(
        "an endpoint has {users}, and its interface {}; put fewer ranks on a host, raise {}, or set \
         nic.model=overheads, which has no limit",
        limit.reason,
        limit.keys
    )]
    Ranks {
        /// Who uses it.
        users: InterfaceUsers,
        /// The limit that they exceed.
        limit: RankLimit,
    },
    /// The machine does not fit in memory. Nothing has been allocated.
    #[error(
        "topology.{key}: simulating {endpoints} endpoints takes about {} of memory, and {} are available by \
         {limit}, or make the machine smaller",
        gigabytes(*.needed),
        gigabytes(*.available)
    )]
    Memory {
        /// The key of `[topology]` that gives the size.
        key: &'static str,
        /// Endpoints of the machine.
        endpoints: u64,
        /// Memory that it would take.
        needed: Bytes,
        /// Memory that is free.
        available: Bytes,
        /// The limit that leaves no more.
        limit: MemoryLimit,
    },
}

impl AssemblyError {
    /// The error of a network that cannot be built.
    pub fn network(source: BuildError) -> AssemblyError {
        let key = source.key();
        AssemblyError::Network { key, source }
    }
}

/// A size for people: `1.5 GB`.
pub fn gigabytes(size: Bytes) -> String {
    format!("{:.1} GB", size.get() as f64 / 1e9)
}

/// The key that mainly gives the machine's size.
fn size_key(topology: &TopologyParameters) -> &'static str {
    topology.family().keys[0].name
}

/// Topology and routing.
///
/// # Errors
/// A size outside the topology's limits, or one that the model cannot count.
pub fn layout(machine: &Machine) -> Result<Layout, AssemblyError> {
    check_counts(machine)?;
    let key = size_key(&machine.topology);
    machine.topology.build().map_err(|source| AssemblyError::Size { key, source })
}

/// The links of a machine by the classes of its layout; `None` on the ideal network, which has none.
pub fn links(machine: &Machine, layout: &Layout) -> Option<Vec<LinkParameters>> {
    let Fabric::Packet { links, .. } = &machine.fabric else { return None };
    let link = |class: &&str| links.get(*class).or_else(|| links.get("default")).copied();
    layout.link_classes().iter().map(link).collect()
}

/// The parameters of a machine's network, by the kind of its fabric.
#[expect(clippy::large_enum_variant, reason = "a network has one")]
pub enum FabricParameters {
    /// Links and switches.
    Packet(NetworkParameters<Layout>),
    /// The ideal network, which has no layout.
    Ideal(IdealParameters),
}

/// The parameters of a machine's network. `seed` is that of random choices of routing and arbiters.
///
/// # Errors
/// Sizes that the model cannot count.
pub fn fabric_parameters(
    machine: &Machine,
    layout: Layout,
    seed: u64,
) -> Result<FabricParameters, AssemblyError> {
    check_counts(machine)?;
    Ok(match &machine.fabric {
        Fabric::Packet { switch, .. } => {
            let links = links(machine, &layout);
            let links = links.expect("a checked machine has parameters for every class of links");
            let (format, switch) = (machine.packet, *switch);
            FabricParameters::Packet(NetworkParameters { layout, format, links, switch, seed })
        }
        Fabric::Ideal(parameters) => FabricParameters::Ideal(*parameters),
    })
}

/// Checks all that a run would refuse, except the memory that it takes, without building a network.
///
/// # Errors
/// Links, switches, faults or algorithms that do not fit the machine.
pub fn check(machine: &Machine, layout: &Layout) -> Result<(), AssemblyError> {
    if let FabricParameters::Packet(parameters) = fabric_parameters(machine, layout.clone(), 0)? {
        parameters.check(machine.queue_board).map_err(AssemblyError::network)?;
        if let Some(rule) = machine.congestion {
            parameters.check_congestion(|path, class| rule.algorithm(path, class))?;
        }
    }
    machine_groups(machine, layout)?;
    let faults = faults(machine, layout, 1)?;
    if let (Some(after), Some(failures)) = (machine.reroute_after, failures(faults.as_ref(), layout, machine))
    {
        failures.reroutes(layout, after)?;
    }
    protocol(machine, Wildcards::Recorded)?;
    Ok(())
}

/// Packets and buffers are counted in 32 bits.
fn check_counts(machine: &Machine) -> Result<(), AssemblyError> {
    let limit = Bytes::new(1 << 30);
    let mut sizes = vec![("packet.payload", machine.packet.payload)];
    if let Fabric::Packet { switch, .. } = &machine.fabric {
        sizes.push(("switch.buffer", switch.buffer));
        if let FlowControl::Pause(pause) = switch.flow_control {
            sizes.extend(pause.headroom.map(|headroom| ("switch.pause_headroom", headroom)));
        }
        sizes.extend(switch.output_buffer.map(|buffer| ("switch.output_buffer", buffer)));
        if let CreditUnit::Cells(cell) = switch.credit {
            sizes.push(("switch.cell", cell));
        }
    }
    match sizes.into_iter().find(|(_, value)| *value > limit) {
        Some((key, value)) => Err(AssemblyError::TooLarge { key, value, limit }),
        None => Ok(()),
    }
}

/// The virtual channels of a machine's links; `None` on the ideal network, which has none.
///
/// # Errors
/// A number of channels that routing and traffic classes cannot share.
pub fn channel_plan(machine: &Machine, layout: &Layout) -> Result<Option<ChannelPlan>, AssemblyError> {
    let Fabric::Packet { switch, .. } = &machine.fabric else { return Ok(None) };
    let plan = switch.channels.plan(layout.virtual_channels());
    plan.map(Some).map_err(|uneven| AssemblyError::network(uneven.into()))
}

/// The users of an endpoint's interface, each with a virtual interface of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceUsers {
    /// Ranks.
    pub ranks: u32,
    /// Virtual interfaces of flows and services.
    pub beside: u32,
}

impl fmt::Display for InterfaceUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InterfaceUsers { ranks, beside } = self;
        match (ranks, beside) {
            (_, 0) => write!(f, "{ranks} ranks"),
            (0, _) => write!(f, "{beside} virtual interfaces of flows and services"),
            _ => write!(f, "{ranks} ranks and {beside} virtual interfaces of flows and services"),
        }
    }
}

/// Checks that the interface of an endpoint serves so many.
///
/// # Errors
/// More than that.
pub fn check_interfaces(machine: &Machine, users: InterfaceUsers) -> Result<(), AssemblyError> {
    let all = users.ranks + users.beside;
    match machine.nic.model().rank_limits().into_iter().find(|limit| all > limit.most) {
        Some(limit) => Err(AssemblyError::Ranks { users, limit }),
        None => Ok(()),
    }
}

/// Processes that a busy host would have at each of its endpoints: one per core, as far as the interface
/// serves so many.
pub fn processes_per_endpoint(machine: &Machine) -> u16 {
    let cores = machine.host.cores.div_ceil(machine.host.endpoints_per_host);
    let limits = machine.nic.model().rank_limits();
    let served = limits.iter().fold(cores, |served, limit| served.min(limit.most));
    u16::try_from(served).unwrap_or(u16::MAX)
}

/// The cost of a call that waits, and how it is spent. Only a library that nobody else moves on polls.
fn wait(machine: &Machine) -> (WaitCosts, Span) {
    match (machine.messaging.progress, machine.messaging.protocol.wait_costs, machine.host.poll) {
        (Progress::Call, WaitCosts::Polls, Some(poll)) => (WaitCosts::Polls, poll),
        (Progress::Call, costs, _) => (costs, machine.messaging.protocol.wait_call),
        (Progress::Thread | Progress::Nic, ..) => (WaitCosts::Call, machine.messaging.protocol.wait_call),
    }
}

/// The costs of the messaging library, with its table of algorithms: the machine's rules first, then
/// those of its profile.
///
/// # Errors
/// A rule whose algorithm does not carry out its collective.
pub fn protocol(machine: &Machine, wildcards: Wildcards) -> Result<Protocol, AssemblyError> {
    let mut protocol = machine.messaging.protocol.clone();
    for rule in machine.messaging.rules.iter().rev() {
        protocol.algorithms.prefer(algorithm_rule(rule))?;
    }
    let (wait_costs, wait_call) = wait(machine);
    Ok(Protocol { wait_costs, wait_call, wildcards, ..protocol })
}

/// A rule of the machine file as messaging has it.
fn algorithm_rule(rule: &Rule) -> weft_msg::Rule {
    let ranks = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    weft_msg::Rule {
        min_ranks: ranks(rule.ranks.first),
        max_ranks: rule.ranks.last.map_or(u32::MAX, ranks),
        min_bytes: Bytes::new(rule.bytes.first),
        max_bytes: Bytes::new(rule.bytes.last.unwrap_or(u64::MAX)),
        ..weft_msg::Rule::always(rule.operation, rule.algorithm)
    }
}

/// A time as an exact fraction of picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExactTime {
    /// Picoseconds times the denominator.
    pub numerator: u128,
    /// Not zero.
    pub denominator: u128,
}

impl ExactTime {
    /// The nearest floating-point number of picoseconds, for reports.
    pub fn as_ps_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// In lowest terms.
    fn new(numerator: u128, denominator: u128) -> ExactTime {
        let (mut a, mut b) = (numerator, denominator);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.max(1);
        ExactTime { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// This time divided by a share, which is given in lowest or other terms; `None`: too long to count.
    pub fn divided_by(self, numerator: u64, denominator: u64) -> Option<ExactTime> {
        let above = self.numerator.checked_mul(u128::from(denominator))?;
        let below = self.denominator.checked_mul(u128::from(numerator))?;
        (below > 0).then(|| ExactTime::new(above, below))
    }
}

/// How long a link carries a message of `bytes`: all its packets with header, footer, framing and line
/// code.
pub fn message_time(machine: &Machine, link: &LinkParameters, bytes: Bytes) -> ExactTime {
    const PS_PER_SECOND: u128 = 1_000_000_000_000;
    let format = &machine.packet;
    let packets = u128::from(bytes.div_ceil(format.payload).max(1));
    let on_line = |payload: u64| {
        let packet = format.header + Bytes::new(payload) + format.footer;
        u128::from(link.bytes_on_line(packet).get())
    };
    let largest = format.payload.get();
    let last = bytes.get() - (packets as u64 - 1) * largest;
    let bits = ((packets - 1) * on_line(largest) + on_line(last)) * 8;
    let code = link.code;
    ExactTime::new(
        bits.saturating_mul(u128::from(code.wire)).saturating_mul(PS_PER_SECOND),
        u128::from(link.rate.bits_per_second()) * u128::from(code.payload),
    )
}

/// The endpoint that core `core` of host `host` uses, both counted from 0: the cores of a host take its
/// endpoints in turn.
pub fn endpoint_of_core(machine: &Machine, host: u32, core: u32) -> EndpointId {
    let per_host = machine.host.endpoints_per_host;
    EndpointId(host * per_host + core % per_host)
}

/// Bytes that a simulated endpoint with its interface takes, beside its host: measured on an idle machine
/// of 114,582 endpoints.
const BYTES_PER_ENDPOINT: u64 = 400;
/// Bytes of a port with its buffers, for each virtual channel and for all of them, as measured there.
const BYTES_PER_CHANNEL: u64 = 24;
const BYTES_PER_PORT: u64 = 96;
/// Bytes of a queue for an input, a virtual channel and an output.
const BYTES_PER_OUTPUT_QUEUE: u64 = 16;
/// Bytes of a port's two sides of a crossbar with speed-up.
const BYTES_PER_CROSSBAR_PORT: u64 = 80;
/// Bytes of a switch beside its ports.
const BYTES_PER_SWITCH: u64 = 512;
/// Bytes of a packet in a buffer or on a link, with the events that move it. A busy network holds about
/// one per port.
const BYTES_PER_PACKET: u64 = 96;
/// Bytes of a line that fluids share: a direction of a link, or an engine.
const BYTES_PER_LINE: u64 = 128;
/// Bytes of a message as fluids on eight paths, as measured on a Megafly of 33,792 endpoints.
const BYTES_PER_FLUID_MESSAGE: u64 = 2560;
/// The program itself, measured as `weft traffic -m carvnet-spineleaf --load 0.05`: 25.0 to 25.6 MB.
const BYTES_ALWAYS: u64 = 24 << 20;

/// About how much memory the machine takes when it is simulated under load, where each host needs
/// `bytes_per_host` of its own. In closed form: nothing is built.
pub fn memory_estimate(machine: &Machine, bytes_per_endpoint_host: u64) -> Bytes {
    let counts = machine.topology.counts();
    let narrow = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
    let endpoints = narrow(counts.endpoints);
    let product = |a: u64, b: u64| a.saturating_mul(b);
    let sum = |terms: &[u64]| terms.iter().fold(0u64, |sum, term| sum.saturating_add(*term));
    let hosts = product(endpoints, BYTES_PER_ENDPOINT.saturating_add(bytes_per_endpoint_host));
    let network = match &machine.fabric {
        Fabric::Ideal(_) => product(endpoints, BYTES_PER_PACKET),
        Fabric::Packet { .. } if machine.flows => {
            let lines = narrow(counts.ports).saturating_add(product(endpoints, 2));
            sum(&[product(lines, BYTES_PER_LINE), product(endpoints, BYTES_PER_FLUID_MESSAGE)])
        }
        Fabric::Packet { switch, .. } => {
            let needed = counts.virtual_channels.max(1).saturating_mul(switch.channels.classes.count());
            let virtual_channels = u64::from(switch.channels.total.unwrap_or(needed));
            let (ports, switches) = (narrow(counts.ports), narrow(counts.switches));
            let outputs = ports.div_ceil(switches.max(1));
            let queues = product(virtual_channels * BYTES_PER_OUTPUT_QUEUE, outputs);
            let of_kind = match switch.kind {
                SwitchKind::InputQueued | SwitchKind::OutputQueued => 0,
                SwitchKind::VirtualOutputQueued => queues,
                SwitchKind::CombinedInputOutput(_) => queues.saturating_add(BYTES_PER_CROSSBAR_PORT),
            };
            let port = BYTES_PER_PORT + BYTES_PER_PACKET + BYTES_PER_CHANNEL * virtual_channels;
            sum(&[product(ports, port.saturating_add(of_kind)), product(switches, BYTES_PER_SWITCH)])
        }
    };
    Bytes::new(sum(&[hosts, network, BYTES_ALWAYS]))
}

/// Refuses a machine that takes more memory than there is, before anything is allocated.
///
/// # Errors
/// The estimate.
pub fn check_memory(machine: &Machine, estimate: Bytes) -> Result<(), AssemblyError> {
    match available_memory() {
        Some(available) if estimate.get() > available.bytes => Err(AssemblyError::Memory {
            key: size_key(&machine.topology),
            endpoints: machine.topology.endpoints(),
            needed: estimate,
            available: Bytes::new(available.bytes),
            limit: available.limit,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_machine::{SHIPPED, load};
    use weft_trace::op::Collective;

    const SIZES: [(&str, &str); 26] = [
        ("communication-ip", "topology.dims=[4,3,2]"),
        ("communication-ip", "topology.datelines=false"),
        ("communication-ip", "topology.kind=mesh"),
        ("exanest", "topology.mezzanines=12"),
        ("exanest", "topology.mezzanines=1"),
        ("bxi3-fattree", "topology.n=3"),
        ("bxi3-fattree", "topology.routing=up-down"),
        ("bxi3-dragonfly", "topology.p=2"),
        ("bxi3-dragonfly", "topology.routing=minimal"),
        ("bxi3-dragonfly", "topology.global=absolute"),
        ("bxi3-dragonfly", "topology.groups=5"),
        ("bxi3-megafly", "topology.groups=5"),
        ("bxi3-megafly", "topology.routing=valiant"),
        ("bxi3-megafly", "topology.global_per_spine=12"),
        ("bxi2-fattree", "topology.k=24"),
        ("bxi2-megafly", "topology.groups=37"),
        ("carvnet-spineleaf", "topology.links_per_spine=2"),
        ("ethernet-100g-spineleaf", "topology.spines=8"),
        ("ib-ndr-fattree", "topology.parallel=[1,32]"),
        ("ib-ndr-fattree", "topology.up=[16,32]"),
        ("ib-ndr-fattree", "topology.routing=d-mod-k"),
        ("deep-msa", "topology.routing=adaptive"),
        ("ib-qdr-fattree", "topology.routing=ecmp"),
        ("ib-qdr-fattree", "links.level3.latency=200ns"),
        ("slingshot-dragonfly", "topology.groups=10"),
        ("slingshot-dragonfly", "topology.links_per_pair=1"),
    ];

    /// Catches classes of links that a machine and its layout do not share.
    #[test]
    fn a_machine_has_links_for_each_class_of_its_layout() {
        for (name, set) in SIZES {
            let machine = load(name, &[set]).unwrap();
            let layout = layout(&machine).unwrap();
            assert_eq!(machine.topology.endpoints(), u64::from(layout.endpoints()), "{name} {set}");
            assert_eq!(links(&machine, &layout).unwrap().len(), layout.link_classes().len());
        }
    }

    /// Catches links in another order than the layout's classes.
    #[test]
    fn links_come_in_the_order_of_classes() {
        let machine = load("exanest", &["links.z.latency=777ns"]).unwrap();
        let layout = layout(&machine).unwrap();
        let z = layout.link_classes().iter().position(|class| *class == "z").unwrap();
        let FabricParameters::Packet(parameters) = fabric_parameters(&machine, layout, 1).unwrap() else {
            panic!("the machine has links")
        };
        let links = parameters.links;
        let slow: Vec<usize> =
            (0..links.len()).filter(|&class| links[class].latency.as_ps() == 777_000).collect();
        assert_eq!(slow, [z]);
    }

    #[test]
    fn the_machines_rules_go_before_the_profile() {
        for shipped in SHIPPED {
            let machine = load(shipped.name, &[] as &[&str]).unwrap();
            protocol(&machine, Wildcards::Recorded).unwrap();
        }
        let rule = r#"messaging.algorithms=[{operation="allreduce",algorithm="ring"}]"#;
        let machine = load("exanest", &[rule]).unwrap();
        let table = protocol(&machine, Wildcards::Free).unwrap().algorithms;
        assert_eq!(table.rules()[0].collective, Collective::Allreduce);
        assert_eq!(table.rules()[0].algorithm, weft_msg::Algorithm::Ring);
        assert_eq!(table.rules()[1].algorithm, weft_msg::Algorithm::Binomial);
    }

    #[test]
    fn what_cannot_be_simulated_names_its_key() {
        let sets = ["topology.dims=[16777216]", "topology.endpoints_per_switch=16"];
        let error = load("communication-ip", &sets).unwrap_err().to_string();
        assert!(error.contains("topology.dims") && error.contains("16777216"), "{error}");
        let sets = ["packet.payload=2G", "switch.buffer=3G", "nic.model=overheads"];
        let machine = load("bxi3-fattree", &sets).unwrap();
        let error = layout(&machine).unwrap_err().to_string();
        assert_eq!(error, "packet.payload: 2G is more than the model can count; write at most 1G");
        let large = ["topology.dims=[4096,4096]", "nic.model=overheads"];
        let machine = load("communication-ip", &large).unwrap();
        let error = check_memory(&machine, Bytes::new(1 << 60)).unwrap_err().to_string();
        assert!(error.contains("16777216 endpoints") && error.contains("1152921504.6 GB"), "{error}");
        assert_eq!(check_memory(&machine, Bytes::new(1)), Ok(()));
    }
}

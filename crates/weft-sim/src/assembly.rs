//! From a checked machine to what the model is built of: the only place where the values of a machine
//! file meet the crates that simulate it.
//!
//! ```text
//!             ┌─ layout ──────────────► weft_topo::Layout
//!             ├─ network_parameters ──► weft_fabric::Network
//!             ├─ faults ──────────────► weft_fabric::FaultParameters of each link
//!  Machine ───┼─ ideal_parameters ────► weft_fabric::Ideal
//!             ├─ simple_parameters ───► weft_nic::SimpleNic
//!             ├─ full_parameters ─────► weft_nic::FullNic
//!             ├─ protocol ────────────► weft_msg::Process
//!             └─ endpoint_of_core ────► where ranks sit
//! ```

mod faults;

pub use faults::{Faults, faults};

use crate::machine::{self, Fabric, GlobalLinks, Machine, Profile, Progress, Routing, Rule, Topology};
use crate::results::available_memory;
use weft_fabric::parameters::{CreditUnit, IdealParameters, LinkParameters};
use weft_fabric::{BuildError, NetworkParameters};
use weft_msg::{AlgorithmError, AlgorithmTable, Protocol, WaitCosts, Wildcards};
use weft_nic::{CheckParameters, FullParameters, SimpleParameters};
use weft_topo::{
    Ascent, Dimension, DimensionOrder, Dragonfly, DragonflyMinimal, Exanest, ExanestOrder, KaryTree, Layout,
    SizeError, Star, StarRouting, Topology as _, Torus, Ugal, UpDown,
};
use weft_units::{Bytes, EndpointId, Span};

/// A machine that is well formed and cannot be simulated. Every message names the key of the machine file
/// to change.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// The topology is outside its limits.
    #[error("{key}: {source}; change it in the machine file or with --set {key}=…")]
    Size {
        /// The key that gives the size.
        key: &'static str,
        /// What is too large or too small.
        source: SizeError,
    },
    /// A routing that the topology does not have. Machine files are checked for this.
    #[error("topology.routing: this routing does not fit a {0}; leave the key out for the usual one")]
    Routing(&'static str),
    /// Links and switches do not fit together.
    #[error("{key}: {source}")]
    Network {
        /// The key to change.
        key: &'static str,
        /// What does not fit.
        source: BuildError,
    },
    /// A size beyond what a packet or a buffer of the model holds.
    #[error("{key}: {value} is more than the model can count; write at most {limit}")]
    TooLarge {
        /// The key to change.
        key: &'static str,
        /// Its value.
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
        /// What it names wrongly.
        why: String,
    },
    /// A rule of the table of algorithms that cannot be carried out.
    #[error("messaging.algorithms: {0}")]
    Algorithm(#[from] AlgorithmError),
    /// More ranks at an endpoint than its interface serves processes.
    #[error(
        "an endpoint has {ranks} ranks, and its interface is for {interfaces} processes; put fewer ranks on a host, \
         raise nic.packetizer.interfaces and nic.mailbox.interfaces, or set nic.model=simple, which has no limit"
    )]
    Interfaces {
        /// Ranks.
        ranks: u32,
        /// Virtual interfaces.
        interfaces: u32,
    },
    /// Ranks without a page of RDMA channels.
    #[error(
        "an endpoint has {ranks} ranks, and its interface has {pages} pages of RDMA channels, one for each; put fewer ranks on a \
         host, raise nic.rdma.pages, or set nic.model=simple, which has no limit"
    )]
    Pages {
        /// Ranks.
        ranks: u32,
        /// Pages.
        pages: u32,
    },
    /// The machine does not fit in memory. Nothing has been allocated.
    #[error(
        "{key}: simulating {endpoints} endpoints takes about {} of memory, and {} are available; make the machine \
         smaller",
        gigabytes(*.needed),
        gigabytes(*.available)
    )]
    Memory {
        /// The key that gives the size.
        key: &'static str,
        /// Endpoints of the machine.
        endpoints: u64,
        /// What it would take.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
}

impl AssemblyError {
    /// The error of a network that cannot be built.
    pub fn network(source: BuildError) -> AssemblyError {
        let key = match &source {
            BuildError::ZeroLatency(_) => "links",
            BuildError::BufferTooSmall { .. } => "switch.buffer",
            BuildError::LinkTooSlow { .. } => "packet.payload",
            BuildError::SwitchTooLarge { .. } => "topology",
        };
        AssemblyError::Network { key, source }
    }
}

/// A size for people: `1.5 GB`.
pub(crate) fn gigabytes(size: Bytes) -> String {
    format!("{:.1} GB", size.get() as f64 / 1e9)
}

/// The key that gives the machine's size.
fn size_key(topology: &Topology) -> &'static str {
    match topology {
        Topology::Torus { .. } | Topology::Mesh { .. } => "topology.dims",
        Topology::Exanest { .. } => "topology.mezzanines",
        Topology::KaryTree { .. } => "topology.k",
        Topology::Dragonfly { .. } => "topology.p",
        Topology::Star { .. } => "topology.endpoints",
    }
}

/// Topology and routing.
///
/// # Errors
/// A size outside the topology's limits, or one that the model cannot count.
pub fn layout(machine: &Machine) -> Result<Layout, AssemblyError> {
    check_counts(machine)?;
    let key = size_key(&machine.topology);
    let size = |source| AssemblyError::Size { key, source };
    let datelines = matches!(machine.routing, Routing::DimensionOrder { datelines: true });
    let grid = |dims: &[u32], wrap, per_switch: u32| {
        let dimensions: Vec<_> = dims.iter().map(|&size| Dimension { size: u64::from(size), wrap }).collect();
        let torus = Torus::new(&dimensions, u64::from(per_switch)).map_err(size)?;
        Ok(Layout::Torus(DimensionOrder::new(torus, datelines)))
    };
    match &machine.topology {
        Topology::Torus { dims, endpoints_per_switch } => grid(dims, true, *endpoints_per_switch),
        Topology::Mesh { dims, endpoints_per_switch } => grid(dims, false, *endpoints_per_switch),
        Topology::Exanest { mezzanines } => {
            let rack = Exanest::new(u64::from(*mezzanines)).map_err(size)?;
            Ok(Layout::Exanest(ExanestOrder::new(rack, datelines)))
        }
        Topology::KaryTree { k, n } => {
            let tree = KaryTree::new(u64::from(*k), u64::from(*n)).map_err(size)?;
            let ascent = match machine.routing {
                Routing::UpDown => Ascent::Random,
                _ => Ascent::DModK,
            };
            Ok(Layout::KaryTree(UpDown::new(tree, ascent)))
        }
        Topology::Dragonfly { p, a, h, groups, global } => {
            let global = match global {
                GlobalLinks::Palmtree => weft_topo::GlobalLinks::Palmtree,
                GlobalLinks::Absolute => weft_topo::GlobalLinks::Absolute,
            };
            let [p, a, h, groups] = [p, a, h, groups].map(|&count| u64::from(count));
            let dragonfly = Dragonfly::new(p, a, h, groups, global).map_err(size)?;
            match machine.routing {
                Routing::Minimal => Ok(Layout::DragonflyMinimal(DragonflyMinimal::new(dragonfly))),
                Routing::UgalL { threshold } => {
                    Ok(Layout::DragonflyUgal(Ugal::new(dragonfly, threshold.get())))
                }
                _ => Err(AssemblyError::Routing("Dragonfly")),
            }
        }
        Topology::Star { endpoints } => {
            Ok(Layout::Star(StarRouting::new(Star::new(u64::from(*endpoints)).map_err(size)?)))
        }
    }
}

/// The links of a machine by the classes of its layout; `None` on the ideal network, which has none.
pub fn links(machine: &Machine, layout: &Layout) -> Option<Vec<LinkParameters>> {
    let Fabric::Packet { links, .. } = &machine.fabric else { return None };
    let link = |class: &&str| links.get(*class).or_else(|| links.get("default")).copied();
    layout.link_classes().iter().map(link).collect()
}

/// What the packet network is built of; `None` where the fabric is ideal. `seed` is that of random
/// choices of routing and arbiters.
///
/// # Errors
/// Sizes that the model cannot count.
pub fn network_parameters(
    machine: &Machine,
    layout: Layout,
    seed: u64,
) -> Result<Option<NetworkParameters<Layout>>, AssemblyError> {
    check_counts(machine)?;
    let Fabric::Packet { switch, .. } = &machine.fabric else { return Ok(None) };
    let Some(links) = links(machine, &layout) else { return Ok(None) };
    Ok(Some(NetworkParameters { layout, format: machine.packet, links, switch: *switch, seed }))
}

/// What the ideal network is built of; `None` where the fabric is not ideal.
///
/// # Errors
/// Sizes that the model cannot count.
pub fn ideal_parameters(machine: &Machine) -> Result<Option<IdealParameters>, AssemblyError> {
    check_counts(machine)?;
    match machine.fabric {
        Fabric::Ideal(parameters) => Ok(Some(parameters)),
        Fabric::Packet { .. } => Ok(None),
    }
}

/// Packets and buffers are counted in 32 bits.
fn check_counts(machine: &Machine) -> Result<(), AssemblyError> {
    let limit = Bytes::new(1 << 30);
    let mut sizes = vec![("packet.payload", machine.packet.payload)];
    if let Fabric::Packet { switch, .. } = &machine.fabric {
        sizes.push(("switch.buffer", switch.buffer));
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

/// The simple network interface.
pub fn simple_parameters(machine: &Machine, nic: &machine::SimpleNic) -> SimpleParameters {
    SimpleParameters {
        send_message: nic.message_send,
        send_write: nic.write_start,
        message_gap: nic.message_gap,
        send_packet: nic.packet_send,
        receive_packet: nic.packet_receive,
        receive_message: nic.message_receive,
        payload: machine.packet.payload,
        channels: nic.concurrent_messages,
    }
}

/// The block-level network interface. `seed` is that of its random decisions.
pub fn full_parameters(nic: &machine::FullNic, seed: u64) -> FullParameters {
    let machine::FullNic { host_port, packetizer, mailbox, rdma, undetected } = *nic;
    let check = CheckParameters { undetected, seed };
    let machine::Rdma { engine: rdma, iommu, memory, allreduce } = rdma;
    FullParameters { host_port, packetizer, mailbox, rdma, iommu, memory, allreduce, check }
}

/// Checks that the interface of an endpoint with so many ranks has one of its virtual interfaces, and a page of RDMA channels,
/// for each.
///
/// # Errors
/// More ranks than that.
pub fn check_interfaces(machine: &Machine, ranks: u32) -> Result<(), AssemblyError> {
    match &machine.nic {
        machine::Nic::Full(nic) if ranks > nic.interfaces() => {
            Err(AssemblyError::Interfaces { ranks, interfaces: nic.interfaces() })
        }
        machine::Nic::Full(nic) if ranks > nic.rdma.engine.send.pages => {
            Err(AssemblyError::Pages { ranks, pages: nic.rdma.engine.send.pages })
        }
        _ => Ok(()),
    }
}

/// Processes that a busy host would have at each of its endpoints: one per core, as far as the interface
/// serves so many.
pub fn processes_per_endpoint(machine: &Machine) -> u16 {
    let cores = machine.host.cores.div_ceil(machine.host.endpoints_per_host);
    let most = match &machine.nic {
        machine::Nic::Full(nic) => nic.interfaces().min(nic.rdma.engine.send.pages),
        machine::Nic::Simple(_) => u32::from(u16::MAX),
    };
    u16::try_from(cores.min(most)).unwrap_or(u16::MAX)
}

/// When a call that waits costs what. Only a library that nobody else moves on polls.
fn wait(machine: &Machine) -> (WaitCosts, Span) {
    match (machine.messaging.progress, machine.messaging.wait_costs, machine.host.poll) {
        (Progress::Call, WaitCosts::Polls, Some(poll)) => (WaitCosts::Polls, poll),
        (Progress::Call, costs, _) => (costs, machine.messaging.wait_call),
        (Progress::Thread | Progress::Nic, ..) => (WaitCosts::Call, machine.messaging.wait_call),
    }
}

/// What the messaging library costs, with its table of algorithms: the machine's rules first, then those
/// of its profile.
///
/// # Errors
/// A rule whose algorithm does not carry out its collective.
pub fn protocol(machine: &Machine, wildcards: Wildcards) -> Result<Protocol, AssemblyError> {
    let messaging = &machine.messaging;
    let mut algorithms = match messaging.profile {
        Profile::Exanest => AlgorithmTable::exanest(),
        Profile::Mpich321 => AlgorithmTable::mpich(),
        Profile::Mpich5 => AlgorithmTable::mpich_5(),
        Profile::Openmpi41 => AlgorithmTable::openmpi(),
    };
    for rule in messaging.rules.iter().rev() {
        algorithms.prefer(algorithm_rule(rule))?;
    }
    let (wait_costs, wait_call) = wait(machine);
    Ok(Protocol {
        send_call: messaging.send_call,
        receive_call: messaging.receive_call,
        wait_call,
        wait_costs,
        collective_call: messaging.collective_call,
        receive_message: messaging.receive_message,
        control_send: messaging.control_send,
        control_receive: messaging.control_receive,
        data_send: messaging.data_send,
        matching_entry: messaging.matching_entry,
        send_copy_rate: messaging.send_copy_rate,
        receive_copy_rate: messaging.receive_copy_rate,
        memory_copy_rate: messaging.memory_copy_rate,
        reduction_rate: messaging.reduction_rate,
        eager_limit: messaging.eager_limit,
        buffered_limit: messaging.buffered_limit,
        eager_buffered: messaging.eager_buffered,
        rendezvous_ack: messaging.rendezvous_ack,
        eager_header: messaging.eager_header,
        control_bytes: messaging.control_bytes,
        data_header: messaging.data_header,
        synchronous_sends: messaging.synchronous_sends,
        rendezvous: messaging.rendezvous,
        clear_to_send: messaging.clear_to_send,
        one_sided: messaging.one_sided,
        atomics: messaging.atomics,
        active_messages: messaging.active_messages,
        wildcards,
        algorithms,
    })
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
    let each = u128::from((format.header + format.footer + link.framing).get());
    let bits = (u128::from(bytes.get()) + packets * each) * 8;
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
/// Bytes of a switch beside its ports.
const BYTES_PER_SWITCH: u64 = 512;
/// Bytes of a packet in a buffer or on a link, with the events that move it. A busy network holds about
/// one per port.
const BYTES_PER_PACKET: u64 = 96;
/// The program itself.
const BYTES_ALWAYS: u64 = 8 << 20;

/// About how much memory the machine takes when it is simulated under load, where each host needs
/// `bytes_per_host` of its own. In closed form: nothing is built.
pub fn memory_estimate(machine: &Machine, bytes_per_endpoint_host: u64) -> Bytes {
    let topology = &machine.topology;
    let endpoints = topology.endpoints();
    let product = |a: u64, b: u64| a.saturating_mul(b);
    let sum = |terms: &[u64]| terms.iter().fold(0u64, |sum, term| sum.saturating_add(*term));
    let hosts = product(endpoints, BYTES_PER_ENDPOINT.saturating_add(bytes_per_endpoint_host));
    let network = match &machine.fabric {
        Fabric::Ideal(_) => product(endpoints, BYTES_PER_PACKET),
        Fabric::Packet { .. } => {
            let ports = topology.ports();
            let port = BYTES_PER_PORT + BYTES_PER_PACKET + BYTES_PER_CHANNEL * machine.virtual_channels();
            sum(&[product(ports, port), product(topology.switches(), BYTES_PER_SWITCH)])
        }
    };
    Bytes::new(sum(&[hosts, network, BYTES_ALWAYS]))
}

/// Refuses a machine that takes more memory than there is, before anything is allocated.
///
/// # Errors
/// The estimate.
pub fn check_memory(machine: &Machine, estimate: Bytes) -> Result<(), AssemblyError> {
    match available_memory().map(Bytes::new) {
        Some(available) if estimate > available => Err(AssemblyError::Memory {
            key: size_key(&machine.topology),
            endpoints: machine.topology.endpoints(),
            needed: estimate,
            available,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{SHIPPED, load};
    use weft_topo::Routing as _;
    use weft_trace::op::Collective;
    use weft_units::SwitchId;

    const SIZES: [(&str, &str); 11] = [
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
    ];

    /// Catches closed forms that differ from the topology: the estimate of memory and the classes of links
    /// that a machine file may name are made of them.
    #[test]
    fn a_machine_and_its_layout_agree() {
        for (name, set) in SIZES {
            let machine = load(name, &[set]).unwrap();
            let layout = layout(&machine).unwrap();
            let topology = &machine.topology;
            assert_eq!(topology.endpoints(), u64::from(layout.endpoints()), "{name} {set}");
            assert_eq!(topology.switches(), u64::from(layout.switches()), "{name} {set}");
            let ports = (0..layout.switches()).map(|s| u64::from(layout.ports(SwitchId(s)))).sum::<u64>();
            assert!(topology.ports() >= ports && topology.ports() <= 2 * ports, "{name} {set}: {ports}");
            assert!(machine.virtual_channels() >= u64::from(layout.virtual_channels()), "{name} {set}");
            assert_eq!(topology.link_classes(), layout.link_classes(), "{name} {set}");
            assert_eq!(links(&machine, &layout).unwrap().len(), layout.link_classes().len());
        }
    }

    /// Catches links in another order than the layout's classes.
    #[test]
    fn links_come_in_the_order_of_classes() {
        let machine = load("exanest", &["links.z.latency=777ns"]).unwrap();
        let layout = layout(&machine).unwrap();
        let z = layout.link_classes().iter().position(|class| *class == "z").unwrap();
        let links = network_parameters(&machine, layout, 1).unwrap().unwrap().links;
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
        let size = |name, sets: &[&str]| layout(&load(name, sets).unwrap()).unwrap_err().to_string();
        let error =
            size("communication-ip", &["topology.dims=[16777216]", "topology.endpoints_per_switch=16"]);
        assert!(error.contains("topology.dims") && error.contains("16777216"), "{error}");
        let machine = load("bxi3-fattree", &["packet.payload=2G", "switch.buffer=3G"]).unwrap();
        let error = layout(&machine).unwrap_err().to_string();
        assert_eq!(error, "packet.payload: 2G is more than the model can count; write at most 1G");
        let machine = load("communication-ip", &["topology.dims=[4096,4096]"]).unwrap();
        let error = check_memory(&machine, Bytes::new(1 << 60)).unwrap_err().to_string();
        assert!(error.contains("16777216 endpoints") && error.contains("1152921504.6 GB"), "{error}");
        assert_eq!(check_memory(&machine, Bytes::new(1)), Ok(()));
    }
}

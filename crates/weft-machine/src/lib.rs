//! Machine files: one TOML file says everything that the model takes from a machine.
//!
//! ```text
//!   text, --set ──▶ document ──▶ raw sections ──▶ checked ──▶ Machine
//!                   keys and     shapes, units,    sizes, what
//!                   places       sources           fits together
//! ```
//! Every number carries a value, a source and how well it is known ([`Constant`]). What is wrong is
//! named with file, line, what was expected and the mend ([`Diagnostics`]); text of any kind gives
//! either a machine or diagnostics, never a panic.
//!
//! ```
//! let machine = weft_machine::load("exanest", &["topology.mezzanines=4"]).unwrap();
//! assert_eq!(machine.topology.endpoints(), 64);
//! assert_eq!(machine.get("links.qfdb.rate").unwrap().value, "16Gb/s");
//! ```

mod congestion;
mod constant;
mod datapath;
mod diagnostic;
mod document;
mod fabric;
mod faults;
mod fluids;
mod graph_file;
mod host_core;
mod interface;
mod key_page;
mod labels;
mod link_layer;
mod link_power;
mod messaging;
mod multicast;
mod part_power;
mod queue_board;
mod read;
mod row;
mod schema;
mod shipped;
mod source;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod topology;
mod traffic_classes;
mod value;

pub use congestion::CongestionRule;
pub use constant::{Constant, Kind};
pub use diagnostic::{Diagnostic, Diagnostics, Place};
pub use fabric::Fabric;
pub use faults::{FaultRule, FaultyLinks, Outage, ScheduledOutage};
pub use graph_file::Files;
pub use host_core::HostCore;
pub use interface::{
    CarvnetNic, ExanetNic, Host, InterfaceModel, InterfacePace, MessageBuffers, Nic, ProcessLimits,
    RankLimit, Rdma,
};
pub use key_page::key_page;
pub use labels::Labels;
pub use messaging::{Messaging, Profile, Progress, Rule};
pub use multicast::GroupRule;
pub use part_power::MachinePower;
pub use schema::schema;
pub use shipped::{Listed, SHIPPED, Shipped, list};
pub use template::{TemplateKeys, template};
pub use value::Bounds;
pub use weft_congestion::CongestionKind;

use diagnostic::Placed;
use read::{FromItem, Reader, section};
use serde::{Deserialize, Serialize};
use source::{Location, Source, Sources};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use weft_fabric::Publishing;
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Problem, nearest};
use weft_nic::OverheadsParameters;
use weft_topo::{Topology as _, TopologyParameters};
use weft_units::Span;

/// Longest machine file that is read, in bytes.
pub const MAX_FILE: u64 = 4 << 20;

/// Longest `--set` argument, in bytes.
const MAX_SET: usize = 64 << 10;

section! {
    /// A machine file of weft.
    struct RawMachine {
        /// The machine's name and description.
        machine: RawIdentity,
        /// Who is joined to whom, and which way packets go.
        topology: topology::RawTopology,
        /// The model that carries the packets.
        fabric: fabric::RawFabric,
        /// The parts of every packet.
        packet: fabric::RawPacket,
        /// Kinds of link by the topology's names for them, and `default`.
        links: Option<BTreeMap<String, fabric::RawLink>>,
        /// The switches.
        switch: Option<fabric::RawSwitch>,
        /// The ideal network.
        ideal: Option<fabric::RawIdeal>,
        /// The board on which switches publish their queues; for the routing `ugal-g` alone.
        queue_board: Option<queue_board::RawQueueBoard>,
        /// Congestion control; none where not given.
        congestion: Option<congestion::RawCongestion>,
        /// Links that lose, corrupt, duplicate or reorder packets, or are off; none where not given.
        faults: Option<Vec<row::Row<FaultRule>>>,
        /// Groups of endpoints to which switches copy packets; none where not given.
        multicast: Option<Vec<row::Row<GroupRule>>>,
        /// Names of its parts in its own documents; none where not given.
        labels: Option<table::Table<Labels>>,
        /// The network interface.
        nic: interface::RawNic,
        /// The hosts that endpoints are attached to.
        host: host_core::RawHost,
        /// The messaging library.
        messaging: messaging::RawMessaging,
    }
}

section! {
    /// The machine's name and description.
    struct RawIdentity {
        /// The name, as `-m` takes it.
        name: String,
        /// The machine in a few words.
        title: String,
        /// The machine at length: its parts, which of them are modelled, and which are not.
        description: Option<String>,
    }
}

/// A machine, checked: everything the model takes from it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The name.
    pub name: String,
    /// The machine in a few words.
    pub title: String,
    /// The machine at length: its parts, which of them are modelled, and which are not.
    pub description: String,
    /// Who is joined to whom, and which way packets go.
    pub topology: TopologyParameters,
    /// The parts of every packet.
    pub packet: PacketFormat,
    /// The model that carries the packets.
    pub fabric: Fabric,
    /// When switches publish their queues; `None`: the routing does not look, or the network is ideal.
    #[serde(default)]
    pub queue_board: Option<Publishing>,
    /// Congestion control; `None`: flows send as fast as they can.
    #[serde(default)]
    pub congestion: Option<CongestionRule>,
    /// Links that fail. The ideal network has none that could.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
    /// Groups of endpoints to which switches copy packets.
    #[serde(default)]
    pub multicast: Vec<GroupRule>,
    /// Names of its parts in its own documents.
    #[serde(default)]
    pub labels: Labels,
    /// From when a link fails or comes back to when switches route by tables over what is left; `None`:
    /// routes do not change.
    #[serde(default)]
    pub reroute_after: Option<Span>,
    /// Whether messages share its links as fluids: there are no packets, and none of the queues, faults and
    /// congestion that packets have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flows: bool,
    /// Power of switches and interfaces.
    #[serde(default)]
    pub power: MachinePower,
    /// The network interface.
    pub nic: Nic,
    /// The hosts that endpoints are attached to.
    pub host: Host,
    /// The speed of the hosts' cores; `None`: it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_core: Option<HostCore>,
    /// The messaging library.
    pub messaging: Messaging,
    /// Every value in use with its source, in the order of the format.
    pub constants: Vec<Constant>,
    /// The texts of the files that it names, so that a result can keep them.
    pub files: Files,
}

impl Machine {
    /// The same fabric behind an interface that costs nothing: the values of `[nic]` are not in use.
    pub fn without_interface(mut self) -> Machine {
        self.nic = Nic::Overheads(OverheadsParameters::free(self.packet.payload));
        self.power.interface = None;
        self.constants.retain(|constant| !constant.path.starts_with("nic."));
        self
    }

    /// The value of a key, such as `links.x.rate`, with its source. A link class that the file does
    /// not name has the value of `links.default`.
    pub fn get(&self, path: &str) -> Option<&Constant> {
        let find = |path: &str| self.constants.iter().find(|constant| constant.path == path);
        find(path).or_else(|| {
            let (class, key) = path.strip_prefix("links.")?.split_once('.')?;
            let layout = self.topology.build().ok()?;
            layout.link_classes().contains(&class).then(|| find(&format!("links.default.{key}"))).flatten()
        })
    }

    /// The values that are not known of the hardware: assumed, calibrated, unsourced or set.
    pub fn doubtful(&self) -> impl Iterator<Item = &Constant> {
        self.constants.iter().filter(|constant| constant.kind.is_doubtful())
    }

    /// Whether packets carry its messages, and not fluids or the ideal network.
    pub fn has_packets(&self) -> bool {
        !self.flows && matches!(self.fabric, Fabric::Packet { .. })
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u64 {
        self.topology.endpoints() / u64::from(self.host.endpoints_per_host)
    }

    /// Number of cores over all hosts.
    pub fn cores(&self) -> u64 {
        self.hosts() * u64::from(self.host.cores)
    }
}

/// The machine that `-m` names, a shipped one or a `.toml` file, after `--set` arguments of the form
/// `key.path=value`.
///
/// # Errors
/// A name that does not ship, a file that cannot be read, and everything that is wrong with the text.
pub fn load(name: &str, sets: &[impl AsRef<str>]) -> Result<Machine, Diagnostics> {
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) {
        return shipped.check(sets);
    }
    check_bytes(name, &bytes_of(name)?, sets)
}

/// The text of the machine that `-m` names, with the name that a result keeps of it: a shipped machine's,
/// or the file's without its folder.
///
/// # Errors
/// A name that does not ship, and a file that cannot be read or is no text.
pub fn text(name: &str) -> Result<(String, String), Diagnostics> {
    if let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) {
        return Ok((name.to_owned(), shipped.text.to_owned()));
    }
    let bytes = bytes_of(name)?;
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    String::from_utf8(bytes).map(|text| (file, text)).map_err(|error| not_text(name, error.as_bytes()))
}

/// The bytes of a machine file that does not ship.
fn bytes_of(name: &str) -> Result<Vec<u8>, Diagnostics> {
    if !name.ends_with(".toml") && !name.contains(std::path::is_separator) {
        let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        let near = nearest(name, names.iter().copied());
        let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let help = format!("{near}There are {}; the path of a .toml file works as well", names.join(", "));
        return Err(Problem::new(format!("no machine `{name}` ships"), "", help).nowhere().into());
    }
    read_file(Path::new(name))
}

/// Reads a file that is not too long.
fn read_file(path: &Path) -> Result<Vec<u8>, Diagnostics> {
    let refuse = |why: String, help: &str| {
        Diagnostics::from(Problem::new(format!("cannot read {}: {why}", path.display()), "", help).nowhere())
    };
    let unreadable = |error: std::io::Error| {
        refuse(
            error.to_string(),
            "name a machine file that can be read; `weft machine list` shows what ships",
        )
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        let why = format!("it is longer than {} MiB", MAX_FILE >> 20);
        return Err(refuse(why, "name a machine file: they are a few kilobytes long"));
    }
    Ok(bytes)
}

/// Checks the bytes of a file called `name`.
///
/// # Errors
/// As [`check_text`], and where the bytes are not UTF-8.
pub fn check_bytes(name: &str, bytes: &[u8], sets: &[impl AsRef<str>]) -> Result<Machine, Diagnostics> {
    match std::str::from_utf8(bytes) {
        Ok(text) => check_text(name, text, sets),
        Err(_) => Err(not_text(name, bytes)),
    }
}

/// Points at the first byte that is no UTF-8.
fn not_text(name: &str, bytes: &[u8]) -> Diagnostics {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let at = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
    // That byte has become U+FFFD, three bytes long.
    let location = Location::new(source::FILE, at..at + 3);
    let sources = Sources(vec![Source { name: name.to_owned(), text }]);
    let label = format!("byte 0x{:02x}", bytes.get(at).copied().unwrap_or(0));
    Problem::new("this is not UTF-8", label, "save the file as UTF-8").at(location, &sources).into()
}

/// Checks the text of a machine file called `name` after `--set` arguments.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check_text(name: &str, text: &str, sets: &[impl AsRef<str>]) -> Result<Machine, Diagnostics> {
    check_with_files(name, text, &Files::new(), sets)
}

/// As [`check_text`], with the texts of files that the machine names, as a result keeps them. A file that is
/// not among them is read.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check_with_files(
    name: &str,
    text: &str,
    files: &Files,
    sets: &[impl AsRef<str>],
) -> Result<Machine, Diagnostics> {
    if text.len() as u64 > MAX_FILE || sets.iter().any(|set| set.as_ref().len() > MAX_SET) {
        let problem = Problem::new(
            format!("{name} or a --set is too long"),
            "",
            format!("files are at most {} MiB, --set arguments {} KiB", MAX_FILE >> 20, MAX_SET >> 10),
        );
        return Err(problem.nowhere().into());
    }
    let file = Source { name: name.to_owned(), text: text.to_owned() };
    let sets = sets.iter().map(|set| Source { name: "--set".to_owned(), text: set.as_ref().to_owned() });
    let sources = Sources(std::iter::once(file).chain(sets).collect());
    let root = document::read(&sources).map_err(Diagnostics)?;
    let mut reader = Reader {
        sources: &sources,
        root: &root,
        diagnostics: Vec::new(),
        lacks: Vec::new(),
        constants: Vec::new(),
        files,
        read_files: Files::new(),
    };
    let machine = RawMachine::from_item(&root, "", &mut reader).and_then(|raw| check(raw, &mut reader));
    match machine {
        Some(machine) if reader.diagnostics.is_empty() => {
            Ok(Machine { constants: reader.constants, files: reader.read_files, ..machine })
        }
        _ => Err(Diagnostics(reader.diagnostics)),
    }
}

/// Most characters of a machine's name, and of its description in a few words: reports have them in a line.
const MAX_LINE: usize = 100;

/// Reports a name or title that fits no line of a report.
fn check_identity(raw: &RawMachine, reader: &mut Reader<'_>) {
    for (key, text) in [("name", &raw.machine.name), ("title", &raw.machine.title)] {
        if text.trim().is_empty() || text.contains('\n') || text.chars().count() > MAX_LINE {
            let problem = Problem::new(
                format!("`machine.{key}` is a line of 1 to {MAX_LINE} characters"),
                "",
                "what is longer belongs to `machine.description`",
            );
            reader.report(raw.machine.location, problem);
        }
    }
}

/// Checks that the sections fit together. The constants are still with the reader.
fn check(raw: RawMachine, reader: &mut Reader<'_>) -> Option<Machine> {
    check_identity(&raw, reader);
    let shape_is_set = raw.topology.is_set();
    let topology = topology::check(raw.topology, reader);
    let link_classes = topology.as_ref().map(|topology| topology.link_classes.clone());
    let endpoints = topology.as_ref().map(|topology| topology.parameters.endpoints());
    let of_fabric = raw.fabric.keys;
    let reroute_after = of_fabric.and_then(|keys| keys.reroute_after(reader));
    let classes = raw.switch.iter().flat_map(|switch| switch.classes.iter().flatten());
    let of_classes = classes.map(|class| class.value.congestion);
    let answers_buffer = raw.congestion.as_ref().and_then(congestion::RawCongestion::answers_buffer);
    let congestion = match of_fabric {
        Some(keys) => congestion::check(raw.congestion, of_classes, keys.controlled(), reader),
        None => None,
    };
    let of_switch = raw.switch.as_ref().and_then(|switch| switch.power.as_ref());
    let ports = raw.switch.as_ref().and_then(fabric::RawSwitch::ports);
    if let (Some((most, location)), Some(topology)) = (ports, &topology)
        && of_fabric.is_some_and(|keys| keys.kind == fabric::FabricKind::Packet)
        && let Err(problem) = topology::check_ports(&topology.layout, most)
    {
        reader.report(location, problem);
    }
    let power = (part_power::check(of_switch), part_power::check(raw.nic.power.as_ref()));
    let datapath_at = raw.switch.as_ref().map(|switch| switch.datapath_location());
    let sections = fabric::RawFabricSections {
        has_priority: congestion.flatten().is_some_and(|rule| rule.keys.priority.unwrap_or(true)),
        answers_buffer,
        fabric: of_fabric?,
        packet: raw.packet,
        links: raw.links,
        switch: raw.switch,
        ideal: raw.ideal,
        routing_channels: topology.as_ref().map(|topology| topology.parameters.counts().virtual_channels),
        location: raw.location,
    };
    let fabric = fabric::check(sections, link_classes.as_deref(), shape_is_set, reader);
    let mut nic = interface::check_nic(raw.nic, fabric.as_ref().map(|(packet, _)| packet), reader);
    if let (Some(nic), Some(topology)) = (&nic, &topology)
        && let Err(misfit) = nic.model().check_topology(&topology.parameters)
    {
        topology.locations.report(misfit, reader);
    }
    if let (Some(Nic::CommunicationIp(ip)), Some((_, Fabric::Packet { datapath: Some(word), .. }))) =
        (&mut nic, &fabric)
        && let Err(problem) = ip.take_datapath(*word)
    {
        reader.report(datapath_at.unwrap_or(raw.location), problem);
    }
    let groups = multicast::check(raw.multicast.unwrap_or_default(), reader);
    let labels = raw.labels.map_or(Some(Labels::default()), |labels| labels.keys);
    if of_fabric.is_some_and(|keys| keys.has_flows()) {
        faults::refuse_set(raw.faults.as_deref().unwrap_or_default(), reader);
    }
    let rules = faults::check(raw.faults.unwrap_or_default(), link_classes.as_deref(), reader);
    let hosts = host_core::check(raw.host, endpoints, reader);
    let messaging = raw.messaging.check();
    let (topology, (packet, fabric)) = (topology?, fabric?);
    let (host, host_core) = hosts?;
    let queue_board = queue_board::check((raw.queue_board, raw.location), &topology.parameters, reader)?;
    let flows = of_fabric.is_some_and(|keys| keys.has_flows());
    let has_links = !matches!(fabric, Fabric::Ideal(_));
    let has_packets = !flows && has_links;
    if !has_packets {
        reader.forget("faults");
        reader.forget("queue_board");
    }
    if !has_links {
        reader.forget("nic.power");
    }
    if flows {
        fluids::drop_what_is_idle(reader);
    }
    let (switch, interface) = (power.0?, power.1?);
    let power = if has_links { MachinePower { switch, interface } } else { MachinePower::default() };
    Some(Machine {
        power,
        multicast: groups?,
        labels: labels?,
        flows,
        queue_board: queue_board.filter(|_| has_packets),
        congestion: congestion?,
        faults: if has_packets { rules? } else { Vec::new() },
        reroute_after,
        name: raw.machine.name,
        title: raw.machine.title,
        description: raw.machine.description.unwrap_or_default(),
        topology: topology.parameters,
        packet,
        fabric,
        nic: nic?,
        host,
        host_core,
        messaging: messaging?,
        constants: Vec::new(),
        files: Files::new(),
    })
}

//! `[fabric]`, `[packet]`, `[links.…]`, `[switch]` and `[ideal]`: what carries the packets.

use super::congestion::ControlledNetwork;
use super::datapath::{Datapath, MAX_DATAPATH};
use super::link_layer::LayerSections;
use super::link_power::{PowerSections, RawLinkPower};
use super::part_power::RawPartPower;
use super::read::{Entry, Reader, join, section_of_keys};
use super::row::Row;
use super::source::Location;
use super::traffic_classes::{self, ClassKeys, ClassTable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_fabric::parameters::{
    ArbiterKind, ChannelParameters, FlowControl, IdealParameters, MAX_SIZE, PacketFormat, PauseParameters,
    SwitchParameters,
};
use weft_fabric::{LinkKeys, LinkParameters};
use weft_keys::{Cost, Problem, nearest};
use weft_topo::GraphClass;
use weft_units::{BitRate, Bytes, Clock, Span};

weft_keys::keys! {
    /// The model that carries the packets.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct FabricKeys {
        /// `packet`: links and switches; `flow`: the same, with messages that share links as fluids, without
        /// packets and queues; `ideal`: LogGP without queues.
        kind: FabricKind;
        /// The way in which input buffers are kept from overflowing; `credits` where not given.
        flow_control: FlowName = FlowName::Credits;
        /// The way that packets take while links are off: `none`, that of the routing, which is usual, or
        /// `up-down`, by tables over what is left.
        reroute: Reroute, usual();
    }
}

section_of_keys! {
    /// The model that carries the packets.
    struct RawFabric {
        keys {
            keys: FabricKeys,
        }
    }
}

weft_keys::choices! {
    /// Ways around failures.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum Reroute: "Reroute", "a way around failures" {
        /// That of the routing.
        None = "none",
        /// By tables over what is left.
        UpDown = "up-down" (
            /// From when a link fails or comes back to when all switches route otherwise, such as 10us: the
            /// time that they or their manager take to notice.
            reroute_after: Span;
        ),
    }
}

weft_keys::words! {
    /// The models by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum FabricKind: "Fabric", "a model of the fabric" {
        Packet = "packet",
        Flow = "flow",
        Ideal = "ideal",
    }
}

weft_keys::words! {
    /// The kinds of flow control by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum FlowName: "FlowControl", "a kind of flow control" {
        Credits = "credits",
        Pause = "pause",
        Drop = "drop",
    }
}

impl FabricKeys {
    /// From when a link fails or comes back to when switches route around it; `None`: they do not.
    pub(super) fn reroute_after(&self, reader: &mut Reader<'_>) -> Option<Span> {
        if self.kind != FabricKind::Packet {
            reader.forget("fabric.reroute");
            reader.forget("fabric.reroute_after");
            return None;
        }
        match self.reroute {
            Reroute::None => None,
            Reroute::UpDown(after) => Some(after),
        }
    }

    /// Whether messages are fluids.
    pub(super) fn has_flows(&self) -> bool {
        self.kind == FabricKind::Flow
    }

    /// The network as congestion control sees it.
    pub(super) fn controlled(&self) -> ControlledNetwork {
        match (self.kind, self.flow_control) {
            (FabricKind::Ideal, _) => ControlledNetwork::Ideal,
            (FabricKind::Flow, _) => ControlledNetwork::Flows,
            (FabricKind::Packet, FlowName::Drop) => ControlledNetwork::Lossy,
            (FabricKind::Packet, _) => ControlledNetwork::Lossless,
        }
    }
}

section_of_keys! {
    /// The parts of every packet.
    struct RawPacket {
        keys {
            format: PacketFormat,
        }
    }
}

section_of_keys! {
    /// One kind of link, per direction. Keys that are not given here are those of `[links.default]`.
    struct RawLink {
        keys {
            keys: LinkKeys,
        }
        /// Power, and when it sleeps; nothing is known of its power where not given.
        power: Option<RawLinkPower>,
    }
}

weft_keys::keys! {
    /// The ports of a switch.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct PortKeys {
        /// Ports that a switch has, such as 64: a layout that joins more links and endpoints to one is
        /// refused. Any number where not given.
        ports: Option<u32>, within(1, 65_535);
        /// Bytes that a port takes and gives in a cycle of `clock`, such as 16: faster links carry no more,
        /// and links without a protocol and a `rate` of their own carry that. Any number where not given.
        datapath: Option<Bytes>, within(Bytes::new(1), MAX_DATAPATH);
    }
}

section_of_keys! {
    /// The switches.
    struct RawSwitch {
        keys {
            parameters: SwitchParameters,
            pause: PauseParameters,
            channels: ChannelParameters,
            size: PortKeys,
        }
        /// Packets that have virtual channels of their own; all share them where not given.
        classes: Option<Vec<Row<ClassKeys>>>,
        /// Power of each switch; nothing is known of it where not given.
        power: Option<RawPartPower>,
    }
}

impl RawSwitch {
    /// The ports that a switch has, with their place in the file; `None`: any number.
    pub(super) fn ports(&self) -> Option<(u32, Location)> {
        Some((self.size?.ports?, self.locations.of("ports")))
    }

    /// The place of `datapath` in the file.
    pub(super) fn datapath_location(&self) -> Location {
        self.locations.of("datapath")
    }

    /// The width of its ports; `None`: any, or a problem was reported.
    fn datapath(&self, reader: &mut Reader<'_>) -> Option<Datapath> {
        let (word, clock) = (self.size?.datapath?, self.parameters?.clock);
        let datapath = Datapath::new(word, clock);
        if datapath.is_none() {
            let problem = Problem::new(
                "a datapath needs a clock of whole hertz",
                "its rate is not exact",
                "write a switch.clock such as 100MHz, or remove the datapath",
            );
            reader.report(self.locations.of("datapath"), problem);
        }
        datapath
    }
}

section_of_keys! {
    /// The ideal network.
    struct RawIdeal {
        keys {
            parameters: IdealParameters,
        }
    }
}

/// The model that carries the packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a machine has one")]
pub enum Fabric {
    /// Links and switches.
    Packet {
        /// Parameters by the topology's link class.
        links: BTreeMap<String, LinkParameters>,
        /// The switches.
        switch: SwitchParameters,
        /// The names of the traffic classes; none, where the file has none.
        classes: Vec<String>,
        /// Bytes that a port takes and gives in a cycle; `None`: any number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        datapath: Option<Bytes>,
    },
    /// The ideal network.
    Ideal(IdealParameters),
}

/// The sections of the fabric as read.
pub(super) struct RawFabricSections {
    pub fabric: FabricKeys,
    pub packet: RawPacket,
    pub links: Option<BTreeMap<String, RawLink>>,
    pub switch: Option<RawSwitch>,
    pub ideal: Option<RawIdeal>,
    /// Virtual channels that the routing needs; `None`: the topology is not known.
    pub routing_channels: Option<u32>,
    /// Whether congestion control wants a class of the highest priority for what answers.
    pub has_priority: bool,
    /// The buffer of that class, where it is given.
    pub answers_buffer: Option<Entry<Bytes>>,
    /// Of the file, for what is missing from it.
    pub location: Location,
}

/// Checks the sections. `classes_are_set`: the topology comes from a `--set`, so that link classes
/// which the file gives another one are dropped. Without a topology the classes go unchecked.
pub(super) fn check(
    raw: RawFabricSections,
    link_classes: Option<&[GraphClass]>,
    classes_are_set: bool,
    reader: &mut Reader<'_>,
) -> Option<(PacketFormat, Fabric)> {
    let RawFabricSections { fabric, packet, links, switch, ideal, routing_channels, location, .. } = raw;
    let format = packet.format;
    let is_packet = fabric.kind != FabricKind::Ideal;
    let datapath = switch.as_ref().and_then(|switch| switch.datapath(reader));
    let links = match links {
        Some(links) => {
            let clock = switch.as_ref().and_then(|switch| Some(switch.parameters?.clock));
            let of_fluids = fabric.has_flows();
            let are_needed = is_packet;
            let sections =
                LinkSections { links, are_needed, of_fluids, classes_are_set, clock, datapath, format };
            Some(sections.check(link_classes, reader))
        }
        None if is_packet => {
            reader.missing(location, "", "links.default");
            None
        }
        None => None,
    };
    let places = switch.as_ref().map(|switch| switch.locations.clone());
    let switch = switch.map(|switch| check_switch(switch, fabric.flow_control, reader));
    let failover = fabric.reroute != Reroute::None;
    let format = format?;
    if !is_packet {
        for unused in ["links", "switch"] {
            reader.forget(unused);
        }
        if ideal.is_none() {
            reader.missing(location, "", "ideal");
        }
        return Some((format, Fabric::Ideal(ideal?.parameters?)));
    }
    reader.forget("ideal");
    if switch.is_none() {
        reader.missing(location, "", "switch");
    }
    let (links, (mut switch, classes)) = (links??, switch??);
    switch.channels.failover = failover;
    let takes = switch.space_of(format.largest());
    if raw.has_priority && switch.arbiter == ArbiterKind::RoundRobin && switch.channels.total.is_none() {
        if let Some(entry) = raw.answers_buffer.as_ref().filter(|entry| entry.value < takes) {
            let problem = Problem::new(
                format!("a buffer of {} for answers cannot hold a whole packet", entry.value),
                format!("the largest packet takes {takes}"),
                format!("write \"{takes}\" or more"),
            );
            reader.report(entry.location, problem);
            return None;
        }
        let given = raw.answers_buffer.map(|entry| entry.value);
        traffic_classes::prioritize_answers(&mut switch, given, routing_channels, takes);
    }
    if let Err(misfit) = switch.check(format.largest(), routing_channels) {
        places?.report(misfit, reader);
        return None;
    }
    classes.check_buffers((takes, "a whole packet"), reader)?;
    if let FlowControl::Pause(PauseParameters { headroom: Some(headroom), .. }) = switch.flow_control {
        let least = switch.space_of(headroom) + takes;
        classes.check_buffers((least, "the head-room and a packet"), reader)?;
    }
    let datapath = datapath.map(|datapath| datapath.word);
    Some((format, Fabric::Packet { links, switch, classes: classes.names, datapath }))
}

fn at_most(entry: &Entry<Bytes>, path: &str, reader: &mut Reader<'_>) -> Option<Bytes> {
    if entry.value <= MAX_SIZE {
        return Some(entry.value);
    }
    let problem = Problem::new(
        format!("`{path}` of {} is impossible", entry.value),
        "too large",
        format!("write at most {MAX_SIZE}"),
    );
    reader.report(entry.location, problem);
    None
}

/// Checks what gives a credit back on a line whose shortest packet has `least` bytes: each packet of one
/// direction is answered in the other.
fn check_credit(entry: &Entry<Bytes>, class: &str, least: Bytes, reader: &mut Reader<'_>) -> Option<Bytes> {
    if entry.value <= least {
        return Some(entry.value);
    }
    let problem = Problem::new(
        format!("a credit of {} is longer than the shortest packet on a `{class}` link", entry.value),
        format!("credits would come faster than the line carries them; that packet takes {least}"),
        format!("write at most credit = {}", least.get()),
    );
    reader.report(entry.location, problem);
    None
}

/// The sections of `[links]` that some classes have, each once.
pub(super) fn sections(classes: &[GraphClass]) -> Vec<&str> {
    let mut sections: Vec<&str> = Vec::new();
    for class in classes {
        if !sections.contains(&class.section.as_str()) {
            sections.push(&class.section);
        }
    }
    sections
}

/// The class of the links between endpoints and switches, in every topology.
const ENDPOINT_CLASS: &str = "endpoint";

/// The `[links]` of a machine, a section for each class.
struct LinkSections {
    links: BTreeMap<String, RawLink>,
    /// Whether the machine's network has links.
    are_needed: bool,
    /// Whether messages are fluids on them.
    of_fluids: bool,
    /// Whether the topology comes from a `--set`: sections for classes of another one are dropped.
    classes_are_set: bool,
    /// The clock of the switches, if there are any.
    clock: Option<Clock>,
    /// The width of their ports; `None`: any.
    datapath: Option<Datapath>,
    /// The parts of packets; `None`: they are wrong.
    format: Option<PacketFormat>,
}

impl LinkSections {
    /// The parameters of every class of the topology. `None`: it is not known, or a problem was reported.
    fn check(
        mut self,
        classes: Option<&[GraphClass]>,
        reader: &mut Reader<'_>,
    ) -> Option<BTreeMap<String, LinkParameters>> {
        for (section, link) in &mut self.links {
            link.drop_what_is_left_behind(&join("links", section), reader);
        }
        // What a table lacks is not known where something of it is wrong, which was reported.
        if self.links.values().any(RawLink::is_wrong) {
            return None;
        }
        let default = self.links.remove("default");
        let LinkSections { of_fluids, clock, datapath, format, .. } = self;
        let classes = classes?;
        let mut whole = Some(BTreeMap::new());
        for (class, link) in &self.links {
            if classes.iter().any(|known| known.section == *class) {
                continue;
            }
            let path = join("links", class);
            if self.classes_are_set && !link.is_set() {
                reader.forget(&path);
                continue;
            }
            let problem = Problem::new(
                format!("this topology has no links of class `{class}`"),
                "unknown class",
                match nearest(class, classes.iter().map(|known| known.section.as_str())) {
                    Some(near) => format!("did you mean `links.{near}`?"),
                    None => format!("its classes are {}", sections(classes).join(", ")),
                },
            );
            reader.report(link.locations.section, problem);
            whole = None;
        }
        for GraphClass { name, section: class, rate, latency } in classes {
            let of_graph = (*rate, *latency);
            let own = self.links.get(class);
            let default = default.as_ref();
            let link = ClassLink { class, own, default, of_fluids, clock, datapath, format, of_graph };
            match (link.check(self.are_needed, reader), &mut whole) {
                (Some(link), Some(map)) => {
                    map.insert(name.clone(), link);
                }
                _ => whole = None,
            }
        }
        whole
    }
}

impl RawLink {
    /// Whether a `--set` made it.
    fn is_set(&self) -> bool {
        self.locations.section.is_set()
    }

    /// Whether something of it could not be read.
    fn is_wrong(&self) -> bool {
        self.keys.is_none() || self.power.as_ref().is_some_and(|power| power.keys.is_none())
    }

    /// The value of a key with its place; `None`: it is not given.
    pub(super) fn entry<T>(&self, key: &str, field: fn(&LinkKeys) -> Option<T>) -> Option<Entry<T>> {
        Some(Entry { value: field(self.keys.as_ref()?)?, location: self.locations.of(key) })
    }
}

/// The sections that say how the links of a class are: its own, and the default's for what that leaves out.
struct ClassLink<'l> {
    class: &'l str,
    own: Option<&'l RawLink>,
    default: Option<&'l RawLink>,
    /// Whether messages are fluids.
    of_fluids: bool,
    /// The clock of the switches, if there are any.
    clock: Option<Clock>,
    /// The width of their ports; `None`: any.
    datapath: Option<Datapath>,
    /// The parts of packets; `None`: they are wrong.
    format: Option<PacketFormat>,
    /// Rate and latency that the file of a graph gives the class.
    of_graph: (Option<BitRate>, Option<Span>),
}

impl<'l> ClassLink<'l> {
    fn pick<T>(&self, key: &str, field: fn(&LinkKeys) -> Option<T>) -> Option<Entry<T>> {
        let of = |link: Option<&RawLink>| link?.entry(key, field);
        of(self.own).or_else(|| of(self.default))
    }

    /// The time in the routing logic behind the links. Those of endpoints have none, not even the default's:
    /// in one direction they lead to an endpoint. `None`: they were given some, which was reported.
    fn routing(&self, reader: &mut Reader<'_>) -> Option<Span> {
        if self.class == ENDPOINT_CLASS {
            let Some(own) = self.own.and_then(|link| link.entry("routing", |keys| keys.routing)) else {
                return Some(Span::ZERO);
            };
            let problem = Problem::new(
                "links of endpoints have no `routing`",
                "an endpoint routes nothing",
                "remove it; the time in a switch is `switch.pipeline_cycles`",
            );
            reader.report(own.location, problem);
            return None;
        }
        Some(match self.pick("routing", |keys| keys.routing).map(|entry| entry.value) {
            None => Span::ZERO,
            Some(Cost::Time(span)) => span,
            // A network without switches has no use for it.
            Some(Cost::Cycles(cycles)) => self.clock.map_or(Span::ZERO, |clock| clock.cycles(cycles.into())),
        })
    }

    /// The parameters of the links. `None`: something is wrong, which was reported, or missing, which is
    /// reported only if the network has links.
    fn check(&self, are_needed: bool, reader: &mut Reader<'_>) -> Option<LinkParameters> {
        let class = self.class;
        let ClassLink { own, default, format, .. } = *self;
        let footer = format.map_or(Bytes::ZERO, |format| format.footer);
        let sections = LayerSections { class, own, default, footer };
        let has_protocol = sections.rules().is_some();
        let rate = match self.datapath.filter(|_| !has_protocol) {
            Some(datapath) => Some(self.rate_of(datapath, reader)),
            None => self.pick("rate", |keys| keys.rate),
        };
        let latency = self.pick("latency", |keys| keys.latency);
        let (code, framing) = (sections.code(), sections.framing());
        let routing = self.routing(reader)?;
        let location =
            self.own.or(self.default).map_or(Location::new(0, 0..0), |link| link.locations.section);
        if are_needed {
            let (has_code, has_framing) = (code.is_some(), framing.is_some());
            let present =
                [rate.is_some(), has_protocol || has_code, latency.is_some(), has_protocol || has_framing];
            for (key, _) in
                ["rate", "code", "latency", "framing"].iter().zip(present).filter(|(_, there)| !there)
            {
                let problem = Problem::new(
                    format!("links of class `{class}` have no `{key}`"),
                    "",
                    format!("add `{key}` to [links.{class}] or to [links.default]"),
                );
                reader.report(location, problem);
            }
        }
        let (rate, latency) = (rate?, latency?);
        let layer = sections.check(&rate, reader)?;
        let power = PowerSections { class, own, default, of_fluids: self.of_fluids }.check(reader)?;
        if weft_fabric::LineRate::new(rate.value, layer.code).is_none() {
            let problem = Problem::new(
                format!("{} is not exact in 64 bits", rate.value),
                "an odd rate",
                "write a rate in whole kb/s, Mb/s or Gb/s",
            );
            reader.report(rate.location, problem);
            return None;
        }
        if are_needed && latency.value == Span::ZERO {
            let problem = Problem::new(
                format!("links of class `{class}` have no latency"),
                "zero",
                "write at least one cycle of the switch's clock, such as 5ns",
            );
            reader.report(latency.location, problem);
            return None;
        }
        if let Some(framing) = framing {
            at_most(&framing, "framing", reader)?;
        }
        let (of_rate, of_latency) = self.of_graph;
        let (rate, latency) = (of_rate.unwrap_or(rate.value), of_latency.unwrap_or(latency.value));
        let mut links = layer.links(rate, latency, routing);
        if let (Some(credit), Some(format)) = (sections.credit(), format) {
            let least = links.layer.least_on_line(format.header + format.footer, links.framing);
            links.layer.credit = check_credit(&credit, class, least, reader)?;
        }
        links.layer.power = power;
        if let (Some(datapath), Some(format)) = (self.datapath, format) {
            datapath.limit(&mut links, &format);
        }
        Some(links)
    }

    /// The rate of links without a protocol: their own, or that of the ports, which is then a value in use.
    fn rate_of(&self, datapath: Datapath, reader: &mut Reader<'_>) -> Entry<BitRate> {
        if let Some(own) = self.own.and_then(|link| link.entry("rate", |keys| keys.rate)) {
            return own;
        }
        datapath.note(join("links", self.class) + ".rate", reader);
        let location =
            self.own.or(self.default).map_or(Location::new(0, 0..0), |link| link.locations.section);
        Entry { value: datapath.rate, location }
    }
}

/// The switches, with what other tables say of them. `None`: a problem was reported.
fn check_switch(
    raw: RawSwitch,
    flow: FlowName,
    reader: &mut Reader<'_>,
) -> Option<(SwitchParameters, ClassTable)> {
    let RawSwitch { locations, parameters, pause, channels, classes, .. } = raw;
    let (parameters, pause, channels) = (parameters?, pause?, channels?);
    let arbiter = (parameters.arbiter, locations.of("arbiter"));
    let classes = traffic_classes::check(classes.unwrap_or_default(), arbiter, reader)?;
    let flow_control = match flow {
        FlowName::Credits => FlowControl::Credits,
        FlowName::Pause => FlowControl::Pause(pause),
        FlowName::Drop => FlowControl::Drop,
    };
    let channels = ChannelParameters { classes: classes.classes, ..channels };
    let switch = SwitchParameters { flow_control, channels, ..parameters };
    classes.check_sharing(switch.buffer_per, reader)?;
    Some((switch, classes))
}

//! `[fabric]`, `[packet]`, `[links.…]`, `[switch]` and `[ideal]`: what carries the packets.

use super::diagnostic::Problem;
use super::read::{Entry, Reader, join, names, nearest, section};
use super::source::Location;
use super::topology::Topology;
use super::value::RateLimit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_fabric::parameters::{
    ArbiterKind, CreditUnit, FasterLink, Forwarding, IdealParameters, LinkParameters, PacketFormat,
    SwitchKind, SwitchParameters,
};
use weft_units::{BitRate, Bytes, Clock, LineCode, Span};

section! {
    /// Which model carries the packets.
    struct RawFabric {
        /// `packet`: links and switches; `ideal`: LogGP without queues.
        kind: Entry<FabricKind>,
    }
}

/// The models by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FabricKind {
    Packet,
    Ideal,
}

names!(FabricKind, "Fabric", "a model of the fabric", {
    FabricKind::Packet => FabricKind::Packet, "packet";
    FabricKind::Ideal => FabricKind::Ideal, "ideal";
});

section! {
    /// What every packet carries.
    struct RawPacket {
        /// Header bytes.
        header: Entry<Bytes>,
        /// Footer bytes.
        footer: Entry<Bytes>,
        /// Largest payload.
        payload: Entry<Bytes>,
    }
}

section! {
    /// One kind of link, per direction. What is not said here, `[links.default]` says.
    struct RawLink {
        /// Bits per second on the line, coding included.
        rate: Option<Entry<BitRate>>,
        /// Line code, bits in and bits on the line.
        code: Option<Entry<LineCode>>,
        /// From the last stage of the sender to the first of the receiver.
        latency: Option<Entry<Span>>,
        /// Bytes on the line for every packet beside header, payload and footer.
        framing: Option<Entry<Bytes>>,
    }
}

section! {
    /// How switches are built.
    struct RawSwitch {
        /// Where packets wait.
        kind: Entry<SwitchKind>,
        /// Who goes first.
        arbiter: Entry<ArbiterName>,
        /// Iterations of iSLIP; 1 where not said.
        islip_iterations: Option<Entry<u32>>,
        /// Arbitration happens at edges of this clock.
        clock: Entry<Clock>,
        /// Cycles from the decision to the head at the output.
        pipeline_cycles: Entry<u32>,
        /// When a packet may leave.
        forwarding: Entry<Forwarding>,
        /// What cut-through does onto a faster link.
        faster_link: Entry<FasterLink>,
        /// Input buffer per port and virtual channel.
        buffer: Entry<Bytes>,
        /// How room in buffers is counted.
        credit_unit: Entry<CreditName>,
        /// Size of a cell, where credits count cells.
        cell: Option<Entry<Bytes>>,
        /// Output buffer per port and virtual channel of an output-queued switch; unbounded where not said.
        output_buffer: Option<Entry<Bytes>>,
    }
}

section! {
    /// The ideal network.
    struct RawIdeal {
        /// L: from the last byte out to the message's arrival.
        latency: Entry<Span>,
        /// g: least time between the starts of two messages of one endpoint.
        gap: Entry<Span>,
        /// 1/G: the rate at which a message leaves, or `unlimited`.
        rate: Entry<RateLimit>,
    }
}

names!(SwitchKind, "SwitchKind", "a kind of switch", {
    SwitchKind::InputQueued => SwitchKind::InputQueued, "input-queued";
    SwitchKind::VirtualOutputQueued => SwitchKind::VirtualOutputQueued, "virtual-output-queued";
    SwitchKind::OutputQueued => SwitchKind::OutputQueued, "output-queued";
});

/// The arbiters by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArbiterName {
    RoundRobin,
    Random,
    Islip,
}

names!(ArbiterName, "Arbiter", "an arbiter", {
    ArbiterName::RoundRobin => ArbiterName::RoundRobin, "round-robin";
    ArbiterName::Random => ArbiterName::Random, "random";
    ArbiterName::Islip => ArbiterName::Islip, "islip";
});

names!(Forwarding, "Forwarding", "a way of forwarding", {
    Forwarding::VirtualCutThrough => Forwarding::VirtualCutThrough, "virtual-cut-through";
    Forwarding::StoreAndForward => Forwarding::StoreAndForward, "store-and-forward";
});

names!(FasterLink, "FasterLink", "a way onto a faster link", {
    FasterLink::Bubble => FasterLink::Bubble, "bubble";
    FasterLink::Delay => FasterLink::Delay, "delay";
    FasterLink::Store => FasterLink::Store, "store";
});

/// The units of credits by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CreditName {
    Bytes,
    Cells,
}

names!(CreditName, "CreditUnit", "a unit of credits", {
    CreditName::Bytes => CreditName::Bytes, "bytes";
    CreditName::Cells => CreditName::Cells, "cells";
});

/// What carries the packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fabric {
    /// Links and switches.
    Packet {
        /// Parameters by the topology's link class.
        links: BTreeMap<String, LinkParameters>,
        /// The switches.
        switch: SwitchParameters,
    },
    /// The ideal network.
    Ideal(IdealParameters),
}

/// The sections of the fabric as read.
pub(super) struct RawFabricSections {
    pub fabric: RawFabric,
    pub packet: RawPacket,
    pub links: Option<BTreeMap<String, RawLink>>,
    pub switch: Option<RawSwitch>,
    pub ideal: Option<RawIdeal>,
    /// Of the file, for what is missing from it.
    pub location: Location,
}

/// Checks the sections. `classes_are_set`: the topology comes from a `--set`, so that link classes
/// which the file gives another one are dropped. Without a topology the classes go unchecked.
pub(super) fn check(
    raw: RawFabricSections,
    topology: Option<&Topology>,
    classes_are_set: bool,
    reader: &mut Reader<'_>,
) -> Option<(PacketFormat, Fabric)> {
    let RawFabricSections { fabric, packet, links, switch, ideal, location } = raw;
    let format = check_packet(&packet, reader);
    let is_packet = fabric.kind.value == FabricKind::Packet;
    let links = match links {
        Some(links) => Some(check_links(links, topology, classes_are_set, is_packet, reader)),
        None if is_packet => {
            reader.missing(location, "", "links.default");
            None
        }
        None => None,
    };
    let buffer_of = switch.as_ref().map(|switch| switch.buffer.location);
    let switch = switch.map(|switch| check_switch(switch, reader));
    let ideal = ideal.map(|ideal| IdealParameters {
        latency: ideal.latency.value,
        gap: ideal.gap.value,
        rate: ideal.rate.value.0,
    });
    let format = format?;
    if !is_packet {
        for unused in ["links", "switch"] {
            reader.forget(unused);
        }
        if ideal.is_none() {
            reader.missing(location, "", "ideal");
        }
        return Some((format, Fabric::Ideal(ideal?)));
    }
    reader.forget("ideal");
    if switch.is_none() {
        reader.missing(location, "", "switch");
    }
    let (links, switch) = (links??, switch??);
    let whole = format.header + format.footer + format.payload;
    let takes = match switch.credit {
        CreditUnit::Bytes => whole,
        CreditUnit::Cells(cell) => Bytes::new(whole.div_ceil(cell).saturating_mul(cell.get())),
    };
    if takes > switch.buffer {
        let problem = Problem::new(
            format!("a buffer of {} cannot hold a whole packet", switch.buffer),
            format!("the largest packet takes {takes}"),
            format!("write buffer = \"{takes}\" or more, or make packet.payload smaller"),
        );
        reader.report(buffer_of.unwrap_or(location), problem);
        return None;
    }
    Some((format, Fabric::Packet { links, switch }))
}

/// Sizes above this are slips of the unit; sums of them stay far from 64 bits.
const MAX_BYTES: Bytes = Bytes::new(1 << 40);

fn at_most(entry: &Entry<Bytes>, path: &str, reader: &mut Reader<'_>) -> Option<Bytes> {
    if entry.value <= MAX_BYTES {
        return Some(entry.value);
    }
    let problem = Problem::new(
        format!("`{path}` of {} is impossible", entry.value),
        "too large",
        format!("write at most {MAX_BYTES}"),
    );
    reader.report(entry.location, problem);
    None
}

fn not_zero(entry: &Entry<Bytes>, path: &str, reader: &mut Reader<'_>) -> Option<Bytes> {
    if entry.value > Bytes::ZERO {
        return at_most(entry, path, reader);
    }
    let problem = Problem::new(format!("`{path}` is zero"), "nothing would ever fit", "write at least 1");
    reader.report(entry.location, problem);
    None
}

fn check_packet(raw: &RawPacket, reader: &mut Reader<'_>) -> Option<PacketFormat> {
    let header = at_most(&raw.header, "packet.header", reader);
    let footer = at_most(&raw.footer, "packet.footer", reader);
    let payload = not_zero(&raw.payload, "packet.payload", reader);
    Some(PacketFormat { header: header?, footer: footer?, payload: payload? })
}

/// The parameters of every class of the topology.
fn check_links(
    mut links: BTreeMap<String, RawLink>,
    topology: Option<&Topology>,
    classes_are_set: bool,
    needed: bool,
    reader: &mut Reader<'_>,
) -> Option<BTreeMap<String, LinkParameters>> {
    let default = links.remove("default");
    let classes = topology?.link_classes();
    let mut whole = Some(BTreeMap::new());
    for (class, link) in &links {
        if classes.contains(&class.as_str()) {
            continue;
        }
        let path = join("links", class);
        if classes_are_set && !link.is_set() {
            reader.forget(&path);
            continue;
        }
        let problem = Problem::new(
            format!("this topology has no links of class `{class}`"),
            "unknown class",
            match nearest(class, classes.iter().copied()) {
                Some(near) => format!("did you mean `links.{near}`?"),
                None => format!("its classes are {}", classes.join(", ")),
            },
        );
        reader.report(link.location, problem);
        whole = None;
    }
    for class in classes {
        let link = match_link(links.get(*class), default.as_ref(), class, needed, reader);
        match (link, &mut whole) {
            (Some(link), Some(map)) => {
                map.insert((*class).to_owned(), link);
            }
            _ => whole = None,
        }
    }
    whole
}

impl RawLink {
    /// Whether a `--set` made it.
    fn is_set(&self) -> bool {
        self.location.is_set()
    }
}

/// A class's own parameters, or the default's.
fn match_link(
    own: Option<&RawLink>,
    default: Option<&RawLink>,
    class: &str,
    needed: bool,
    reader: &mut Reader<'_>,
) -> Option<LinkParameters> {
    fn pick<'l, T>(
        own: Option<&'l RawLink>,
        default: Option<&'l RawLink>,
        field: fn(&RawLink) -> Option<&Entry<T>>,
    ) -> Option<&'l Entry<T>> {
        own.and_then(field).or_else(|| default.and_then(field))
    }
    let rate = pick(own, default, |link| link.rate.as_ref());
    let code = pick(own, default, |link| link.code.as_ref());
    let latency = pick(own, default, |link| link.latency.as_ref());
    let framing = pick(own, default, |link| link.framing.as_ref());
    let location = own.or(default).map_or(Location::new(0, 0..0), |link| link.location);
    if needed {
        let present = [rate.is_some(), code.is_some(), latency.is_some(), framing.is_some()];
        for (key, _) in ["rate", "code", "latency", "framing"].iter().zip(present).filter(|(_, there)| !there)
        {
            let problem = Problem::new(
                format!("links of class `{class}` have no `{key}`"),
                "",
                format!("add `{key}` to [links.{class}] or to [links.default]"),
            );
            reader.report(location, problem);
        }
    }
    let (rate, code, latency, framing) = (rate?, code?, latency?, framing?);
    if weft_units::LineRate::new(rate.value, code.value).is_none() {
        let problem = Problem::new(
            format!("{} is not exact in 64 bits", rate.value),
            "an odd rate",
            "write a rate in whole kb/s, Mb/s or Gb/s",
        );
        reader.report(rate.location, problem);
        return None;
    }
    if needed && latency.value == Span::ZERO {
        let problem = Problem::new(
            format!("links of class `{class}` have no latency"),
            "zero",
            "write at least one cycle of the switch's clock, such as 5ns",
        );
        reader.report(latency.location, problem);
        return None;
    }
    let framing = at_most(framing, "framing", reader)?;
    Some(LinkParameters { rate: rate.value, code: code.value, latency: latency.value, framing })
}

fn check_switch(raw: RawSwitch, reader: &mut Reader<'_>) -> Option<SwitchParameters> {
    let buffer = not_zero(&raw.buffer, "switch.buffer", reader);
    let is_islip = raw.arbiter.value == ArbiterName::Islip;
    // Left behind in the file while a `--set` tries another arbiter, unit or kind of switch.
    let iterations = used(
        is_islip,
        "islip_iterations",
        "arbiter = \"islip\"",
        raw.islip_iterations,
        raw.arbiter.location,
        reader,
    );
    let is_cells = raw.credit_unit.value == CreditName::Cells;
    let cell = used(is_cells, "cell", "credit_unit = \"cells\"", raw.cell, raw.credit_unit.location, reader);
    let is_output = raw.kind.value == SwitchKind::OutputQueued;
    let output = used(
        is_output,
        "output_buffer",
        "kind = \"output-queued\"",
        raw.output_buffer,
        raw.kind.location,
        reader,
    );
    let credit = match (is_cells, cell?) {
        (false, _) => Some(CreditUnit::Bytes),
        (true, Some(cell)) => not_zero(&cell, "switch.cell", reader).map(CreditUnit::Cells),
        (true, None) => {
            reader.missing(raw.location, "switch", "cell");
            None
        }
    };
    let output_buffer = match output? {
        Some(output) => Some(not_zero(&output, "switch.output_buffer", reader)?),
        None => None,
    };
    let iterations = iterations?.map_or(1, |entry| entry.value);
    Some(SwitchParameters {
        kind: raw.kind.value,
        arbiter: match raw.arbiter.value {
            ArbiterName::RoundRobin => ArbiterKind::RoundRobin,
            ArbiterName::Random => ArbiterKind::Random,
            ArbiterName::Islip => ArbiterKind::Islip(iterations),
        },
        clock: raw.clock.value,
        pipeline_cycles: raw.pipeline_cycles.value,
        forwarding: raw.forwarding.value,
        faster_link: raw.faster_link.value,
        buffer: buffer?,
        credit: credit?,
        output_buffer,
    })
}

/// A key that means something only together with another's value. `None`: a problem was reported.
fn used<T>(
    is_used: bool,
    key: &str,
    with: &str,
    entry: Option<Entry<T>>,
    other: Location,
    reader: &mut Reader<'_>,
) -> Option<Option<Entry<T>>> {
    match entry {
        Some(entry) if !is_used && (entry.location.is_set() || !other.is_set()) => {
            let problem = Problem::new(
                format!("`switch.{key}` means nothing here"),
                "not used",
                format!("remove it, or write {with}"),
            );
            reader.report(entry.location, problem);
            None
        }
        Some(_) if !is_used => {
            reader.forget(&format!("switch.{key}"));
            Some(None)
        }
        entry => Some(entry),
    }
}

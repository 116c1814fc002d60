//! The sections below `[nic]` for the block-level interface: one per block.

use super::rdma::{self, RawSections, Rdma};
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::{Entry, Reader, section};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Cost, Problem};
use weft_msg::{PostCost, PostCosts, Protocol, Stores};
use weft_nic::host_port::{HostPortParameters, StorePath};
use weft_nic::mailbox::MailboxParameters;
use weft_nic::packetizer::PacketizerParameters;
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::{CheckParameters, Class, ExanetParameters};
use weft_topo::{ClassUse, MessageClass, MessageClasses};
use weft_units::{Bytes, Clock, Span, Time};

section! {
    /// The port between processors and memory on one side and the interface on the other.
    struct RawHostPort {
        /// Bytes of a channel per cycle.
        word: Entry<Bytes>,
        /// From a request to the first word of its answer.
        round_trip: Entry<Span>,
        /// Words of a burst.
        burst_words: Entry<u32>,
        /// Bursts of reads that may be outstanding.
        outstanding_bursts: Entry<u32>,
        /// The processor's clock, where its stores have a way of their own: one store per cycle.
        store_clock: Option<Entry<Clock>>,
        /// Bytes of a store; needed with `store_clock`.
        store_word: Option<Entry<Bytes>>,
        /// From the end of a store's cycle to the interface, in cycles of `store_clock`; needed with it.
        store_latency: Option<Entry<Cost>>,
    }
}

section! {
    /// Small messages out.
    struct RawPacketizer {
        /// Virtual interfaces: processes of an endpoint.
        interfaces: Entry<u32>,
        /// Channels of a virtual interface.
        channels: Entry<u32>,
        /// Largest payload.
        payload: Entry<Bytes>,
        /// Bytes stored with the payload to start a packet.
        descriptor: Entry<Bytes>,
        /// The engine's time for a packet, in whole cycles; it makes one at a time.
        engine: Entry<Cost>,
        /// From sending to the first repetition.
        timeout: Entry<Span>,
        /// By what the time-out grows with each repetition.
        backoff: Entry<u32>,
        /// Longest time-out.
        longest_timeout: Entry<Span>,
        /// Repetitions after which a channel gives up.
        repetitions: Entry<u32>,
        /// From the refusal of a full mailbox to the library's next attempt; doubles each time.
        pause: Entry<Span>,
        /// Longest such pause.
        longest_pause: Entry<Span>,
    }
}

section! {
    /// Small messages in.
    struct RawMailbox {
        /// Virtual interfaces: processes of an endpoint.
        interfaces: Entry<u32>,
        /// Entries of a queue.
        entries: Entry<u32>,
        /// The time for a packet from its header on, in whole cycles: checks, tail, acknowledgement; one at a
        /// time.
        check: Entry<Cost>,
        /// Bytes of an entry in memory, which is written whole.
        entry: Entry<Bytes>,
        /// From an entry in the cache to its process, which polls.
        poll: Entry<Span>,
    }
}

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanetNic {
    /// The port between processors, memory and interface.
    pub host_port: HostPortParameters,
    /// Small messages out.
    pub packetizer: PacketizerParameters,
    /// Small messages in.
    pub mailbox: MailboxParameters,
    /// Large messages and reductions.
    pub rdma: Rdma,
    /// Of a million corrupted packets with data so many are taken for whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undetected: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ExanetNic {
    /// Processes that an endpoint has interfaces for.
    pub fn interfaces(&self) -> u32 {
        self.packetizer.interfaces.min(self.mailbox.interfaces)
    }

    /// The parameters of the simulated interface. `seed` is that of its random decisions.
    pub fn parameters(&self, seed: u64) -> ExanetParameters {
        let ExanetNic { host_port, packetizer, mailbox, rdma, undetected } = *self;
        let check = CheckParameters { undetected, seed };
        let Rdma { engine: rdma, iommu, memory, allreduce } = rdma;
        ExanetParameters { host_port, packetizer, mailbox, rdma, iommu, memory, allreduce, check }
    }
}

impl InterfaceModel for ExanetNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let (interfaces, pages) = (self.interfaces(), self.rdma.engine.send.pages);
        vec![
            RankLimit {
                most: interfaces,
                reason: format!("is for {interfaces} processes"),
                keys: "nic.packetizer.interfaces and nic.mailbox.interfaces",
            },
            RankLimit {
                most: pages,
                reason: format!("has {pages} pages of RDMA channels, one for each"),
                keys: "nic.rdma.pages",
            },
        ]
    }

    fn process_limits(&self) -> ProcessLimits {
        let (interfaces, pages) = (self.interfaces(), self.rdma.engine.send.pages);
        ProcessLimits { interfaces, pages: pages.min(interfaces), small: self.packetizer.payload }
    }

    /// A processor stores what it posts into the pages of the blocks. The request of a read is a small
    /// message.
    fn post_costs(&self, protocol: &Protocol) -> PostCosts {
        let StorePath { clock, word, .. } = self.host_port.store_path();
        let stored = |stored| PostCost { call: Span::ZERO, stored };
        let PacketizerParameters { descriptor, payload, .. } = self.packetizer;
        PostCosts {
            small: stored(descriptor),
            write: stored(self.rdma.engine.send.descriptor),
            read: stored(descriptor + protocol.control_bytes.min(payload)),
            stores: Some(Stores { clock, word }),
        }
    }

    /// The receive unit writes cells as they come: its stages say what else they wait for.
    fn pace(&self, payload: Bytes) -> InterfacePace {
        InterfacePace {
            send_packet: self.parameters(0).cell_pace(payload),
            receive_packet: Span::ZERO,
            cycle: self.host_port.clock.cycles(1),
        }
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        true
    }

    /// As the interface's own classes of packets say. It refuses by a NACK, for which its queue of answers
    /// has room: the queue is bounded by what senders have outstanding (`exanet` in `weft_nic`).
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        let of_class = |class: Class| {
            let refused_until: BTreeSet<MessageClass> =
                class.waits_for().iter().flat_map(|&other| messages(other)).copied().collect();
            messages(class).iter().map(move |&class| ClassUse {
                class,
                virtual_channels: (0..virtual_channels).collect(),
                refused_until: refused_until.clone(),
            })
        };
        let has_class = |class: &Class| *class != Class::Reduction || self.rdma.allreduce.is_some();
        MessageClasses(Class::ALL.into_iter().filter(has_class).flat_map(of_class).collect())
    }
}

/// The messages that travel in packets of a class.
fn messages(class: Class) -> &'static [MessageClass] {
    match class {
        Class::Request => &[MessageClass::Rts, MessageClass::Cts],
        Class::Data => &[MessageClass::Data],
        Class::Answer => &[MessageClass::Ack, MessageClass::Nack],
        Class::Reduction => &[MessageClass::Reduction],
    }
}

impl FromSection for ExanetNic {
    const KEYS: &'static [&'static str] = &[
        "undetected",
        "host_port",
        "packetizer",
        "mailbox",
        "rdma",
        "segmentation",
        "iommu",
        "memory",
        "allreduce",
    ];

    fn read(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<ExanetNic> {
        ExanetNic::read_blocks("exanet", raw, format, reader)
    }
}

impl ExanetNic {
    /// Checks the keys of the blocks, for the interface `model`.
    pub(super) fn read_blocks(
        model: &str,
        raw: RawNic,
        format: Option<&PacketFormat>,
        reader: &mut Reader<'_>,
    ) -> Option<ExanetNic> {
        let lacks = [
            raw.clock.is_none().then_some("clock"),
            raw.host_port.is_none().then_some("host_port"),
            raw.packetizer.is_none().then_some("packetizer"),
            raw.mailbox.is_none().then_some("mailbox"),
            raw.rdma.is_none().then_some("rdma"),
            raw.segmentation.is_none().then_some("segmentation"),
            raw.iommu.is_none().then_some("iommu"),
            raw.memory.is_none().then_some("memory"),
        ];
        let lacks: Vec<&str> = lacks.into_iter().flatten().collect();
        if !lacks.is_empty() {
            let keys: Vec<String> = lacks.iter().map(|key| format!("nic.{key}")).collect();
            let problem = Problem::new(
                format!("`nic.model = \"{model}\"` needs {}", keys.join(", ")),
                "this machine does not say what the blocks of its interface are",
                "add these sections, as machines/exanest.toml has them, or write model = \"overheads\"",
            );
            reader.report(raw.model.location, problem);
        }
        let clock: Clock = raw.clock?.value;
        let undetected = raw.undetected.map_or(0, |entry| entry.value.0);
        let (host_port, packetizer, mailbox) = (raw.host_port?, raw.packetizer?, raw.mailbox?);
        let sections = RawSections {
            rdma: raw.rdma?,
            segmentation: raw.segmentation?,
            iommu: raw.iommu?,
            memory: raw.memory?,
            allreduce: raw.allreduce,
        };
        let host_port = HostPortParameters {
            clock,
            word: positive(&host_port.word, reader)?,
            round_trip: host_port.round_trip.value,
            burst_words: host_port.burst_words.value,
            outstanding: host_port.outstanding_bursts.value,
            stores: store_path(&host_port, reader)?,
        };
        // Interfaces and channels are numbered in 16 bits.
        let limits = [&packetizer.interfaces, &packetizer.channels, &mailbox.interfaces];
        for count in limits.into_iter().filter(|count| count.value > 1 << 15) {
            let problem = Problem::new(
                format!("{} is more than the model can count", count.value),
                "",
                format!("write at most {}", 1 << 15),
            );
            reader.report(count.location, problem);
        }
        if let Some(PacketFormat { payload, .. }) = format
            && !(Bytes::new(1)..=*payload).contains(&packetizer.payload.value)
        {
            let why = format!("a small message of {} is no packet", packetizer.payload.value);
            let mend = format!("write a number from 1 to {payload}, the payload of a packet");
            reader.report(packetizer.payload.location, Problem::new(why, "", mend));
        }
        if mailbox.entry.value < packetizer.payload.value {
            let why = format!("an entry of {} does not hold a small message", mailbox.entry.value);
            let mend =
                format!("write at least {}, which is nic.packetizer.payload", packetizer.payload.value);
            reader.report(mailbox.entry.location, Problem::new(why, "", mend));
        }
        timeouts(&packetizer.longest_timeout, &packetizer.timeout, reader);
        not_shorter(&packetizer.longest_pause, &packetizer.pause, "pause", reader);
        let packetizer = PacketizerParameters {
            clock,
            interfaces: packetizer.interfaces.value,
            channels: packetizer.channels.value,
            payload: packetizer.payload.value,
            descriptor: packetizer.descriptor.value,
            engine: cycles(packetizer.engine.value, &clock),
            reliability: ReliabilityParameters {
                timeout: packetizer.timeout.value,
                backoff: packetizer.backoff.value,
                longest: packetizer.longest_timeout.value,
                repetitions: packetizer.repetitions.value,
            },
            pause: packetizer.pause.value,
            longest_pause: packetizer.longest_pause.value,
        };
        let mailbox = MailboxParameters {
            clock,
            interfaces: mailbox.interfaces.value,
            entries: mailbox.entries.value,
            check: cycles(mailbox.check.value, &clock),
            entry: mailbox.entry.value,
            poll: mailbox.poll.value,
        };
        let around = rdma::Surroundings {
            format: format?,
            port: &host_port,
            packetizer: packetizer.reliability,
            poll: mailbox.poll,
        };
        let rdma = rdma::check(sections, &around, reader)?;
        Some(ExanetNic { host_port, packetizer, mailbox, rdma, undetected })
    }
}

/// A cost in whole cycles: a time is rounded up to the next edge.
pub(super) fn cycles(cost: Cost, clock: &Clock) -> u32 {
    match cost {
        Cost::Cycles(cycles) => cycles,
        Cost::Time(span) => u32::try_from(clock.edges_before(Time::ZERO + span)).unwrap_or(u32::MAX),
    }
}

/// The time until what was not answered is sent again, at first and at most.
pub(super) fn timeouts(longest: &Entry<Span>, first: &Entry<Span>, reader: &mut Reader<'_>) {
    if first.value == Span::ZERO {
        let why = "a time-out of no time sends everything again and again";
        let problem = Problem::new(why, "", "write more than a message and its answer take, such as 50us");
        reader.report(first.location, problem);
    }
    not_shorter(longest, first, "timeout", reader);
}

/// A longest time that is no shorter than the first one.
fn not_shorter(longest: &Entry<Span>, first: &Entry<Span>, name: &str, reader: &mut Reader<'_>) {
    if longest.value < first.value {
        let why = format!("the longest {name} is shorter than the first one, {}", first.value);
        let mend = format!("write at least {}", first.value);
        reader.report(longest.location, Problem::new(why, "", mend));
    }
}

/// The way of processors' stores, where it is not the port's; `None`: its keys are no whole.
fn store_path(raw: &RawHostPort, reader: &mut Reader<'_>) -> Option<Option<StorePath>> {
    let RawHostPort { store_clock, store_word, store_latency, .. } = raw;
    let Some(clock) = store_clock else {
        let stray = [store_word.as_ref().map(|it| it.location), store_latency.as_ref().map(|it| it.location)];
        let stray = stray.into_iter().flatten().next();
        if let Some(location) = stray {
            reader.missing(location, "nic.host_port", "store_clock");
        }
        return stray.is_none().then_some(None);
    };
    let (Some(word), Some(latency)) = (store_word, store_latency) else {
        let key = if store_word.is_none() { "store_word" } else { "store_latency" };
        reader.missing(clock.location, "nic.host_port", key);
        return None;
    };
    let latency = clock.value.cycles(cycles(latency.value, &clock.value).into());
    Some(Some(StorePath { clock: clock.value, word: positive(word, reader)?, latency }))
}

/// A size that something is divided by.
fn positive(entry: &Entry<Bytes>, reader: &mut Reader<'_>) -> Option<Bytes> {
    if entry.value > Bytes::ZERO {
        return Some(entry.value);
    }
    let problem = Problem::new("a word of no bytes carries nothing", "", "write 16 for 128 bits");
    reader.report(entry.location, problem);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a deadlock proof that leaves out packets of the interface, or has some that it never sends.
    #[test]
    fn the_proof_has_the_classes_of_the_interface() {
        let classes = |name: &str| {
            let machine = crate::load(name, &[] as &[&str]).expect("it ships");
            machine.nic.model().message_classes(2).0
        };
        let names =
            |name: &str| classes(name).iter().map(|known| known.class.to_string()).collect::<Vec<_>>();
        assert_eq!(names("exanest"), ["RTS", "CTS", "data", "ACK", "NACK", "reduction"]);
        assert_eq!(names("carvnet-spineleaf"), ["RTS", "CTS", "data", "ACK", "NACK"]);
        for known in classes("exanest") {
            let waits = Class::ALL.iter().filter(|class| messages(**class).contains(&known.class));
            let waits: usize = waits.map(|class| class.waits_for().len()).sum();
            assert_eq!((known.virtual_channels.len(), known.refused_until.is_empty()), (2, waits == 0));
        }
    }
}

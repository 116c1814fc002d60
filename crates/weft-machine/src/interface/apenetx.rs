//! The sections below `[nic]` for the APEnetX card: one per block.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::{Entry, Reader, section};
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Cost, Problem};
use weft_msg::{PostCost, PostCosts, Protocol};
use weft_nic::ApenetxParameters;
use weft_nic::apenetx::{
    CardToHostParameters, GpuParameters, HostToCardParameters, KernelWait, MemoryKind, SoftwareParameters,
};
use weft_nic::pcie::{Memory, PcieGeneration, PcieLanes, PcieParameters};
use weft_topo::MessageClasses;
use weft_units::{BitRate, Bytes, Span};

section! {
    /// The PCIe port of the card, and the memory behind it.
    struct RawPcie {
        /// The generation: `gen3`, `gen4`, `gen5`.
        generation: Entry<PcieGeneration>,
        /// Lanes.
        lanes: Entry<u32>,
        /// Bytes on the line of a write or a request beside its data: framing, header, CRC.
        request_header: Entry<Bytes>,
        /// The same of a completion.
        completion_header: Entry<Bytes>,
        /// Largest payload of a transaction packet.
        max_payload: Entry<Bytes>,
        /// Largest read request.
        max_read_request: Entry<Bytes>,
        /// The boundary at which the root cuts the data of completions.
        completion_boundary: Entry<Bytes>,
        /// Reads that may be outstanding.
        tags: Entry<u32>,
        /// Credits for headers of posted packets, at either end.
        posted_headers: Entry<u32>,
        /// Credits for their data.
        posted_data: Entry<Bytes>,
        /// Credits of the root for headers of requests.
        request_headers: Entry<u32>,
        /// Room in the card for headers of completions.
        completion_headers: Entry<u32>,
        /// Room in the card for data of completions.
        completion_data: Entry<Bytes>,
        /// Bytes on the line of a packet of the data link layer.
        link_packet: Entry<Bytes>,
        /// Transaction packets for each acknowledgement, with which a packet with credits goes.
        acknowledged: Entry<u32>,
        /// From a packet's last byte at one end to its being handled at the other.
        one_way: Entry<Span>,
        /// From a read request at the root to the first data of its completion.
        memory_read: Entry<Span>,
        /// From a write at the root to its being seen in memory.
        memory_write: Entry<Span>,
    }
}

section! {
    /// The logic of the card, in both directions.
    struct RawCard {
        /// Bytes that the data path carries per cycle.
        word: Entry<Bytes>,
        /// Queues, each for one process.
        queues: Entry<u32>,
    }
}

section! {
    /// From the host to the network.
    struct RawHostToCard {
        /// Bytes of a tx descriptor.
        descriptor: Entry<Bytes>,
        /// Descriptors that may be on their way into the card.
        prefetch: Entry<u32>,
        /// Packets whose data is read ahead.
        packets: Entry<u32>,
        /// Each packet beside its words, in whole cycles: header, footer, coordinates.
        packet: Entry<Cost>,
        /// Bytes of the line of a fast send.
        line: Entry<Bytes>,
        /// Bytes of it that are data.
        line_data: Entry<Bytes>,
        /// Whether the library stores lines and does not ask the driver.
        fast_send: Entry<bool>,
        /// Whether a process waits for the end of each transmission before the next.
        blocking: Entry<bool>,
        /// Bytes of the status that the card writes at the end of a transmission.
        status: Entry<Bytes>,
    }
}

section! {
    /// From the network to the host.
    struct RawCardToHost {
        /// Each packet beside its words, in whole cycles: CRC, destination address.
        packet: Entry<Cost>,
        /// Bytes of a completion entry.
        entry: Entry<Bytes>,
        /// Most bytes of data that a completion entry carries; 0: none.
        entry_data: Entry<Bytes>,
        /// How a process waits on the kernel path: `interrupt` or `polling`.
        kernel_wait: Entry<KernelWait>,
    }
}

section! {
    /// Library and driver.
    struct RawSoftware {
        /// The library packs a request, or makes the line of a fast send.
        library: Entry<Span>,
        /// Into the kernel and back.
        system_call: Entry<Span>,
        /// The driver forges a descriptor.
        driver_send: Entry<Span>,
        /// A request or a completion is copied between kernel and process.
        copy: Entry<Span>,
        /// From an interrupt at the root to the driver's handler.
        interrupt: Entry<Span>,
        /// The driver reads a completion and finds its process.
        driver_receive: Entry<Span>,
        /// The scheduler wakes a process.
        context_switch: Entry<Span>,
        /// A poll that finds a completion.
        poll: Entry<Span>,
        /// An entry of the user's queue: its buffer found, the consumer's index written.
        queue_entry: Entry<Span>,
    }
}

section! {
    /// The GPU of a host, and the memory that programs' buffers lie in.
    struct RawGpu {
        /// The memory of sources: `host`, `gpu-direct`, `gpu-staged`; `host` where not given.
        source: Option<Entry<MemoryKind>>,
        /// The memory of targets; `host` where not given.
        target: Option<Entry<MemoryKind>>,
        /// From a read request at the root to the first data of the GPU's completion.
        read: Entry<Span>,
        /// Rate at which the card reads the GPU's memory.
        read_rate: Entry<BitRate>,
        /// From a write at the root to its being seen in the GPU's memory.
        write: Entry<Span>,
        /// Rate at which the card writes it.
        write_rate: Entry<BitRate>,
        /// Pinning and locking, for each message whose source the card reads.
        lock: Entry<Span>,
        /// From the call of a copy between GPU and host to its first byte, and from its last to the return.
        copy_start: Entry<Span>,
        /// Rate of such a copy.
        copy_rate: Entry<BitRate>,
    }
}

/// The APEnetX card, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApenetxNic {
    /// The parameters of the simulated interface.
    pub parameters: ApenetxParameters,
}

impl InterfaceModel for ApenetxNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let queues = self.parameters.queues;
        vec![RankLimit {
            most: queues,
            reason: format!("has {queues} queues, one for each process"),
            keys: "nic.card.queues",
        }]
    }

    fn process_limits(&self) -> ProcessLimits {
        let queues = self.parameters.queues;
        ProcessLimits { interfaces: queues, pages: queues, small: self.parameters.payload }
    }

    /// Whatever a process sends goes through the library, and without the fast send through the driver.
    fn post_costs(&self, _protocol: &Protocol) -> PostCosts {
        let ApenetxParameters { software, host_to_card, .. } = &self.parameters;
        let call = PostCost::of_call(software.send_call(host_to_card.fast));
        PostCosts { small: call, write: call, read: call, stores: None }
    }

    /// Packets are written into memory as they come.
    fn pace(&self, payload: Bytes) -> InterfacePace {
        InterfacePace {
            send_packet: self.parameters.packet_pace(payload),
            receive_packet: Span::ZERO,
            cycle: self.parameters.clock.cycles(1),
        }
    }

    fn carries_data(&self) -> bool {
        false
    }

    /// All that arrives goes to memory, and sets off no packet (`apenetx` in `weft_nic`).
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for ApenetxNic {
    const KEYS: &'static [&'static str] =
        &["completion", "pcie", "card", "host_to_card", "card_to_host", "software", "iommu", "gpu"];

    fn read(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<ApenetxNic> {
        let lacks = [
            raw.clock.is_none().then_some("clock"),
            raw.completion.is_none().then_some("completion"),
            raw.pcie.is_none().then_some("pcie"),
            raw.card.is_none().then_some("card"),
            raw.host_to_card.is_none().then_some("host_to_card"),
            raw.card_to_host.is_none().then_some("card_to_host"),
            raw.software.is_none().then_some("software"),
            raw.iommu.is_none().then_some("iommu"),
        ];
        let lacks: Vec<String> = lacks.into_iter().flatten().map(|key| format!("nic.{key}")).collect();
        if !lacks.is_empty() {
            let problem = Problem::new(
                format!("`nic.model = \"apenetx\"` needs {}", lacks.join(", ")),
                "this machine does not say what the blocks of its card are",
                "add these keys, as machines/apenetx-u200.toml has them, or write model = \"overheads\"",
            );
            reader.report(raw.model.location, problem);
        }
        let (clock, completion) = (raw.clock?.value, raw.completion?.value);
        let (pcie, card, send) = (raw.pcie?, raw.card?, raw.host_to_card?);
        let (receive, software, iommu) = (raw.card_to_host?, raw.software?, raw.iommu?);
        let is_sound = check_pcie(&pcie, reader) & check_card(&card, &send, &receive, reader);
        let iommu = iommu.check(|iommu| [iommu.check()], reader);
        let payload = format?.payload;
        if !is_sound {
            return None;
        }
        let host_to_card = HostToCardParameters {
            descriptor: send.descriptor.value,
            prefetch: send.prefetch.value,
            packets: send.packets.value,
            cycles: send.packet.value.cycles(&clock),
            line: send.line.value,
            line_data: send.line_data.value,
            fast: send.fast_send.value,
            blocking: send.blocking.value,
            status: send.status.value,
        };
        let card_to_host = CardToHostParameters {
            cycles: receive.packet.value.cycles(&clock),
            entry: receive.entry.value,
            entry_data: receive.entry_data.value,
            completion,
            wait: receive.kernel_wait.value,
        };
        let software = SoftwareParameters {
            library: software.library.value,
            system_call: software.system_call.value,
            send: software.driver_send.value,
            copy: software.copy.value,
            interrupt: software.interrupt.value,
            receive: software.driver_receive.value,
            context_switch: software.context_switch.value,
            poll: software.poll.value,
            queue_entry: software.queue_entry.value,
        };
        let gpu = match &raw.gpu {
            Some(raw) => Some(gpu(raw, reader)?),
            None => None,
        };
        let memory = Memory { read: pcie.memory_read.value, write: pcie.memory_write.value, rate: None };
        let parameters = ApenetxParameters {
            clock,
            word: card.word.value,
            queues: card.queues.value,
            payload,
            pcie: port(&pcie),
            memory,
            iommu: iommu?,
            host_to_card,
            card_to_host,
            software,
            gpu,
        };
        Some(ApenetxNic { parameters })
    }
}

/// Checks the section on the GPU: rates that are never done are none.
fn gpu(raw: &RawGpu, reader: &mut Reader<'_>) -> Option<GpuParameters> {
    let rates = [&raw.read_rate, &raw.write_rate, &raw.copy_rate];
    if let Some(rate) = rates.into_iter().find(|rate| rate.value.bits_per_second() == 0) {
        let problem = Problem::new("a copy of no rate is never done", "", "write a rate such as 80Gb/s");
        reader.report(rate.location, problem);
        return None;
    }
    let kind =
        |entry: &Option<Entry<MemoryKind>>| entry.as_ref().map_or(MemoryKind::Host, |entry| entry.value);
    let (read, write) = (raw.read.value, raw.write.value);
    Some(GpuParameters {
        source: kind(&raw.source),
        target: kind(&raw.target),
        reads: Memory { read, write, rate: Some(raw.read_rate.value) },
        writes: Memory { read, write, rate: Some(raw.write_rate.value) },
        lock: raw.lock.value,
        copy_start: raw.copy_start.value,
        copy_rate: raw.copy_rate.value,
    })
}

fn port(raw: &RawPcie) -> PcieParameters {
    PcieParameters {
        lanes: PcieLanes::new(raw.generation.value, raw.lanes.value),
        request_header: raw.request_header.value.get(),
        completion_header: raw.completion_header.value.get(),
        max_payload: raw.max_payload.value.get(),
        max_read_request: raw.max_read_request.value.get(),
        completion_boundary: raw.completion_boundary.value.get(),
        tags: raw.tags.value,
        posted_headers: raw.posted_headers.value,
        posted_data: raw.posted_data.value.get(),
        request_headers: raw.request_headers.value,
        completion_headers: raw.completion_headers.value,
        completion_data: raw.completion_data.value.get(),
        link_packet: raw.link_packet.value.get(),
        acknowledged: raw.acknowledged.value,
        one_way: raw.one_way.value,
    }
}

/// Sizes as the specification has them, and room for at least one transaction.
fn check_pcie(raw: &RawPcie, reader: &mut Reader<'_>) -> bool {
    let mut is_sound = true;
    let mut refuse = |entry: (crate::source::Location, String), mend: String| {
        reader.report(entry.0, Problem::new(entry.1, "", mend));
        is_sound = false;
    };
    if !raw.lanes.value.is_power_of_two() || raw.lanes.value > 16 {
        refuse(
            (raw.lanes.location, format!("a port has no {} lanes", raw.lanes.value)),
            "write 1, 2, 4, 8 or 16".into(),
        );
    }
    for (size, least, most) in [
        (&raw.max_payload, 128, 4096),
        (&raw.max_read_request, 128, 4096),
        (&raw.completion_boundary, 64, 128),
    ] {
        let value = size.value.get();
        if !value.is_power_of_two() || !(least..=most).contains(&value) {
            let why = format!("{} is no such size of PCI Express", size.value);
            refuse((size.location, why), format!("write a power of two from {least} to {most}"));
        }
    }
    let (payload, request) = (raw.max_payload.value, raw.max_read_request.value);
    for (room, least, of) in [
        (&raw.posted_data, payload, "nic.pcie.max_payload"),
        (&raw.completion_data, request, "nic.pcie.max_read_request"),
    ] {
        if room.value < least {
            let why = format!("there is no room for one transaction of {least}");
            refuse((room.location, why), format!("write at least {least}, which is {of}"));
        }
    }
    let completions = request.div_ceil(payload) as u32 + 1;
    if raw.completion_headers.value < completions {
        let why = "there is no room for the completions of one request".to_owned();
        refuse((raw.completion_headers.location, why), format!("write at least {completions}"));
    }
    for header in [&raw.request_header, &raw.completion_header] {
        if !(12..=64).contains(&header.value.get()) {
            let why = format!("{} is no header of a transaction", header.value);
            refuse((header.location, why), "write its framing, header and CRC, from 12 to 64".into());
        }
    }
    is_sound
}

/// Sizes of the card's words, lines and entries.
fn check_card(
    card: &RawCard,
    send: &RawHostToCard,
    receive: &RawCardToHost,
    reader: &mut Reader<'_>,
) -> bool {
    let mut is_sound = true;
    let mut refuse = |location, why: String, mend: String| {
        reader.report(location, Problem::new(why, "", mend));
        is_sound = false;
    };
    if card.word.value == Bytes::ZERO {
        refuse(
            card.word.location,
            "a word of no bytes carries nothing".into(),
            "write 64 for 512 bits".into(),
        );
    }
    // Processes are numbered in 16 bits.
    if card.queues.value > 1 << 11 {
        let why = format!("{} is more than the queues of the card", card.queues.value);
        refuse(card.queues.location, why, format!("write at most {}", 1 << 11));
    }
    for (data, all, of) in [
        (&send.line_data, &send.line, "nic.host_to_card.line"),
        (&receive.entry_data, &receive.entry, "nic.card_to_host.entry"),
    ] {
        if data.value > all.value {
            let why = format!("{} of data do not fit into {}", data.value, all.value);
            refuse(data.location, why, format!("write at most {}, which is {of}", all.value));
        }
    }
    for size in [&send.descriptor, &send.line, &send.status, &receive.entry] {
        if !(4..=4096).contains(&size.value.get()) {
            let why = format!("{} is out of range", size.value);
            refuse(size.location, why, "write from 4 to 4096".into());
        }
    }
    for count in [&send.prefetch, &send.packets] {
        if count.value > 1 << 10 {
            let why = format!("{} is out of range", count.value);
            refuse(count.location, why, format!("write a number from 1 to {}", 1 << 10));
        }
    }
    is_sound
}

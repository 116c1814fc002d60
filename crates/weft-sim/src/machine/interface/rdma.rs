//! The sections below `[nic]` for large messages and reductions: the RDMA engine and what it works with.

use super::full::timeouts;
use crate::machine::diagnostic::Problem;
use crate::machine::read::{Entry, Reader, names, section};
use crate::machine::value::Cost;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_nic::allreduce::{AcceleratorLimits, AllreduceParameters};
use weft_nic::host_port::HostPortParameters;
use weft_nic::iommu::{FaultModel, IommuParameters};
use weft_nic::memory::MemoryParameters;
use weft_nic::rdma::{RdmaParameters, ReceiveParameters, SendParameters};
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_units::{BitRate, Bytes, Span, Time};

section! {
    /// The send and receive units of RDMA.
    struct RawRdma {
        /// Pages of channels, each for one process.
        pages: Entry<u32>,
        /// Write channels of a page.
        write_channels: Entry<u32>,
        /// Read channels of a page.
        read_channels: Entry<u32>,
        /// What a process stores to start a transfer.
        descriptor: Entry<Bytes>,
        /// Bytes of a block: what is acknowledged and sent again as a whole.
        block: Entry<Bytes>,
        /// Blocks of a channel that may wait for acknowledgement.
        outstanding_blocks: Entry<u32>,
        /// Cells that are read from memory or wait for the link.
        cell_buffers: Entry<u32>,
        /// From the last word of a cell to the first of the next, in whole cycles.
        cell_overhead: Entry<Cost>,
        /// From a word's arrival to its write, in whole cycles.
        receive: Entry<Cost>,
        /// Blocks that may be coming in at a time.
        contexts: Entry<u32>,
        /// A context without a cell for this long may be given to another block.
        context_timeout: Entry<Span>,
        /// What is written beside the data to tell the receiver.
        notification: Entry<Bytes>,
        /// From sending a block to its first repetition.
        timeout: Entry<Span>,
        /// By what the time-out grows with each repetition.
        backoff: Entry<u32>,
        /// Longest time-out.
        longest_timeout: Entry<Span>,
        /// Repetitions after which a transfer is given up.
        repetitions: Entry<u32>,
    }
}

section! {
    /// The agent that splits transfers into blocks; one for all processes of an interface.
    struct RawSegmentation {
        /// What it is: `firmware` or `hardware`.
        agent: Entry<AgentName>,
        /// Each start, acknowledgement and repetition; of firmware a time, of hardware whole cycles.
        invocation: Entry<Cost>,
    }
}

section! {
    /// Address translation.
    struct RawIommu {
        /// Bytes of a page.
        page: Entry<Bytes>,
        /// Translations that the TLB holds.
        entries: Entry<u32>,
        /// Entries that a page may be in.
        ways: Entry<u32>,
        /// A page-table walk.
        walk: Entry<Span>,
        /// When pages are not mapped: `off` (never) or `first-touch`.
        faults: Entry<FaultModel>,
        /// From a page fault to the page's being mapped.
        fault: Entry<Span>,
    }
}

section! {
    /// The memory channel that cores and interfaces of a host share.
    struct RawMemory {
        /// Reads and writes together.
        rate: Entry<BitRate>,
        /// What a core reads and writes of so much in one go stays in its cache.
        cache: Option<Entry<Bytes>>,
    }
}

section! {
    /// The allreduce accelerator; a machine without the section has none.
    struct RawAllreduce {
        /// Ranks of an operation.
        ranks: Entry<u32>,
        /// Endpoints of a board, the first with the server module.
        board: Entry<u32>,
        /// Bytes of an operation; longer vectors take several.
        vector: Entry<Bytes>,
        /// From the last word of a vector to the last of its reduction, in whole cycles.
        latency: Entry<Cost>,
        /// From the call to the module's first step, per operation.
        start: Entry<Span>,
        /// From the vector's being in memory to the call's return, per operation.
        finish: Entry<Span>,
    }
}

/// The agents by their names in machine files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::machine) enum AgentName {
    Firmware,
    Hardware,
}

names!(AgentName, "AgentName", "a segmentation agent", {
    AgentName::Firmware => AgentName::Firmware, "firmware";
    AgentName::Hardware => AgentName::Hardware, "hardware";
});

names!(FaultModel, "FaultModel", "a model of page faults", {
    FaultModel::Off => FaultModel::Off, "off";
    FaultModel::FirstTouch => FaultModel::FirstTouch, "first-touch";
});

/// Large messages and reductions, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rdma {
    /// Send unit, receive unit and agent.
    pub engine: RdmaParameters,
    /// Address translation.
    pub iommu: IommuParameters,
    /// The memory channel.
    pub memory: MemoryParameters,
    /// Reductions without processors.
    pub allreduce: Option<AllreduceParameters>,
}

/// The raw sections.
pub(super) struct RawSections {
    pub rdma: RawRdma,
    pub segmentation: RawSegmentation,
    pub iommu: RawIommu,
    pub memory: RawMemory,
    pub allreduce: Option<RawAllreduce>,
}

/// Checks the sections.
pub(super) fn check(
    raw: RawSections,
    format: &PacketFormat,
    port: &HostPortParameters,
    packetizer: ReliabilityParameters,
    reader: &mut Reader<'_>,
) -> Option<Rdma> {
    let RawSections { rdma, segmentation, iommu, memory, allreduce } = raw;
    let clock = port.clock;
    let cut = match Cut::new(rdma.block.value, format.payload) {
        Ok(cut) => Some(cut),
        Err(_) if rdma.block.value == Bytes::ZERO => {
            let mend = format!("write a size up to {}", format.payload * Cut::CELLS);
            reader.report(rdma.block.location, Problem::new("a block of nothing", "", mend));
            None
        }
        Err(error) => {
            let problem =
                Problem::new(error.to_string(), "", format!("write at most {}", format.payload * Cut::CELLS));
            reader.report(rdma.block.location, problem);
            None
        }
    };
    let counts = [
        (&rdma.pages, 1 << 10),
        (&rdma.write_channels, 1 << 10),
        (&rdma.outstanding_blocks, 64),
        (&rdma.cell_buffers, 1 << 10),
        (&rdma.contexts, u32::MAX),
        (&iommu.ways, u32::MAX),
    ];
    let wrong = counts.into_iter().filter(|(count, most)| !(1..=*most).contains(&count.value));
    let mut sound = true;
    for (count, most) in wrong {
        let problem = Problem::new(
            format!("{} is out of range", count.value),
            "",
            format!("write a number from 1 to {most}"),
        );
        reader.report(count.location, problem);
        sound = false;
    }
    let channels = u64::from(rdma.write_channels.value) + u64::from(rdma.read_channels.value);
    if sound && channels * u64::from(rdma.pages.value) > 1 << 16 {
        let problem = Problem::new(
            format!("{} pages of {channels} channels are more than the model can count", rdma.pages.value),
            "",
            "write fewer: 65536 in all",
        );
        reader.report(rdma.pages.location, problem);
        sound = false;
    }
    if !iommu.page.value.get().is_power_of_two() {
        let why = format!("pages of {} cannot be found by bits of an address", iommu.page.value);
        reader.report(iommu.page.location, Problem::new(why, "", "write a power of two, such as 4K"));
        sound = false;
    }
    let (entries, ways) = (iommu.entries.value, iommu.ways.value);
    if sound && entries > 0 && !entries.is_multiple_of(ways) {
        let why = format!("{entries} entries are not whole sets of {ways}");
        reader.report(iommu.ways.location, Problem::new(why, "", "write a divisor of nic.iommu.entries"));
        sound = false;
    }
    timeouts(&rdma.longest_timeout, &rdma.timeout, reader);
    let cycles = |cost: Cost| match cost {
        Cost::Cycles(cycles) => cycles,
        Cost::Time(span) => u32::try_from(clock.edges_before(Time::ZERO + span)).unwrap_or(u32::MAX),
    };
    let segmentation = match (segmentation.agent.value, segmentation.invocation.value) {
        (AgentName::Firmware, Cost::Time(invocation)) => SegmentationParameters::Firmware { invocation },
        (AgentName::Firmware, Cost::Cycles(count)) => {
            SegmentationParameters::Firmware { invocation: clock.cycles(u64::from(count)) }
        }
        (AgentName::Hardware, cost) => SegmentationParameters::Hardware { clock, cycles: cycles(cost) },
    };
    let cache = memory.cache.as_ref().map_or(Bytes::ZERO, |cache| cache.value);
    let rate = MemoryParameters::new(memory.rate.value).map(|rate| rate.behind_cache(cache));
    if rate.is_none() {
        let problem =
            Problem::new("a memory channel of no rate is never done", "", "write rate = \"136Gb/s\"");
        reader.report(memory.rate.location, problem);
    }
    let allreduce = match allreduce {
        None => None,
        Some(raw) if raw.board.value == 0 => {
            let problem = Problem::new("a board of nothing", "", "write board = 4");
            reader.report(raw.board.location, problem);
            return None;
        }
        Some(raw) if raw.vector.value == Bytes::ZERO || !raw.vector.value.get().is_multiple_of(8) => {
            let why = format!("vectors of {} do not hold whole numbers of each type", raw.vector.value);
            reader.report(raw.vector.location, Problem::new(why, "", "write a multiple of 8, such as 256"));
            return None;
        }
        Some(raw) if raw.vector.value > format.payload => {
            let why = format!("a vector of {} does not fit a packet", raw.vector.value);
            let mend = format!("write at most {}, the payload of a packet", format.payload);
            reader.report(raw.vector.location, Problem::new(why, "", mend));
            return None;
        }
        Some(raw) => Some(AllreduceParameters {
            limits: AcceleratorLimits {
                ranks: raw.ranks.value,
                board: raw.board.value,
                vector: raw.vector.value,
            },
            clock,
            word: port.word,
            latency_cycles: cycles(raw.latency.value),
            start: raw.start.value,
            finish: raw.finish.value,
            // Its packets are like the packetizer's.
            reliability: packetizer,
        }),
    };
    let (cut, memory) = (cut?, rate?);
    sound.then_some(())?;
    let engine = RdmaParameters {
        send: SendParameters {
            pages: rdma.pages.value,
            write_channels: rdma.write_channels.value,
            read_channels: rdma.read_channels.value,
            descriptor: rdma.descriptor.value,
            cut,
            outstanding_blocks: rdma.outstanding_blocks.value,
            cell_buffers: rdma.cell_buffers.value,
            clock,
            word: port.word,
            control_words: (format.header + format.footer).div_ceil(port.word) as u32,
            cell_overhead_cycles: cycles(rdma.cell_overhead.value),
        },
        receive: ReceiveParameters {
            contexts: rdma.contexts.value,
            context_timeout: rdma.context_timeout.value,
            cycles: cycles(rdma.receive.value),
            notification: rdma.notification.value,
        },
        segmentation,
        reliability: ReliabilityParameters {
            timeout: rdma.timeout.value,
            backoff: rdma.backoff.value,
            longest: rdma.longest_timeout.value,
            repetitions: rdma.repetitions.value,
        },
    };
    let iommu = IommuParameters {
        page: iommu.page.value,
        entries: iommu.entries.value,
        ways: iommu.ways.value,
        walk: iommu.walk.value,
        faults: iommu.faults.value,
        fault: iommu.fault.value,
    };
    Some(Rdma { engine, iommu, memory, allreduce })
}

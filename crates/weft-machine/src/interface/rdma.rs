//! The sections below `[nic]` for large messages and reductions: the RDMA engine and what it works with.

use super::exanet::{cycles, timeouts};
use crate::read::{Entry, Reader, section};
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Cost, Problem};
use weft_nic::allreduce::{AcceleratorLimits, AllreduceParameters};
use weft_nic::host_port::HostPortParameters;
use weft_nic::iommu::{FaultModel, IommuParameters};
use weft_nic::memory::MemoryParameters;
use weft_nic::rdma::{RdmaParameters, ReceiveParameters, SendParameters};
use weft_nic::reliability::ReliabilityParameters;
use weft_nic::segmentation::{Cut, SegmentationParameters};
use weft_units::{BitRate, Bytes, Clock, Span};

section! {
    /// The send and receive units of RDMA.
    struct RawRdma {
        /// Pages of channels, each for one process.
        pages: Entry<u32>,
        /// Write channels of a page.
        write_channels: Entry<u32>,
        /// Read channels of a page.
        read_channels: Entry<u32>,
        /// Bytes that a process stores to start a transfer.
        descriptor: Entry<Bytes>,
        /// Bytes of a block, which is acknowledged and sent again as a whole.
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
        /// Bytes written with the data to notify the receiver.
        notification: Entry<Bytes>,
        /// From a notification in memory to its process, which polls; `nic.mailbox.poll` where not given.
        poll: Option<Entry<Span>>,
        /// From sending a block to its first repetition.
        timeout: Entry<Span>,
        /// The factor by which the time-out grows with each repetition.
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
        /// The kind of agent: `firmware` or `hardware`.
        agent: Entry<AgentName>,
        /// Each start, acknowledgement and repetition, of firmware.
        invocation: Entry<Cost>,
        /// The same of hardware, in whole cycles; needed where `agent` is `hardware`.
        hardware_invocation: Option<Entry<Cost>>,
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
        /// Pages that are not mapped: none (`off`), or each until its `first-touch`.
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
        /// Bytes up to which the data that a core reads or writes at once stays in its cache.
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
        /// Time to read a member's address in the table of ranks before something is sent to it; none where
        /// not given.
        lookup: Option<Entry<Span>>,
        /// From the call to the module's first step, per operation.
        start: Entry<Span>,
        /// From the vector's being in memory to the call's return, per operation.
        finish: Entry<Span>,
    }
}

weft_keys::words! {
    /// The agents by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum AgentName: "AgentName", "a segmentation agent" {
        Firmware = "firmware",
        Hardware = "hardware",
    }
}

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

/// The values of other sections that these depend on.
pub(super) struct Surroundings<'a> {
    pub format: &'a PacketFormat,
    pub port: &'a HostPortParameters,
    pub packetizer: ReliabilityParameters,
    /// From an entry of the mailbox to its process.
    pub poll: Span,
}

/// Checks the sections.
pub(super) fn check(raw: RawSections, around: &Surroundings<'_>, reader: &mut Reader<'_>) -> Option<Rdma> {
    let RawSections { rdma, segmentation, iommu, memory, allreduce } = raw;
    let Surroundings { format, port, .. } = *around;
    let clock = port.clock;
    let cut = check_block(&rdma.block, format, reader);
    let mut is_sound = check_counts(&rdma, &iommu, reader);
    is_sound = is_sound && check_channels(&rdma, reader);
    is_sound = check_pages(&iommu, reader) && is_sound;
    is_sound = is_sound && check_sets(&iommu, reader);
    timeouts(&rdma.longest_timeout, &rdma.timeout, reader);
    let memory = check_memory(&memory, reader);
    let segmentation = check_segmentation(&segmentation, &clock, reader);
    let allreduce = match allreduce {
        None => None,
        Some(raw) => Some(check_allreduce(&raw, around, reader)?),
    };
    let (cut, memory) = (cut?, memory?);
    if !is_sound {
        return None;
    }
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
            cell_overhead_cycles: cycles(rdma.cell_overhead.value, &clock),
            contexts: None,
        },
        receive: ReceiveParameters {
            contexts: rdma.contexts.value,
            context_timeout: rdma.context_timeout.value,
            cycles: cycles(rdma.receive.value, &clock),
            notification: rdma.notification.value,
            poll: rdma.poll.map_or(around.poll, |poll| poll.value),
        },
        segmentation: segmentation?,
        reliability: ReliabilityParameters {
            timeout: rdma.timeout.value,
            backoff: rdma.backoff.value,
            longest: rdma.longest_timeout.value,
            repetitions: rdma.repetitions.value,
        },
    };
    Some(Rdma { engine, iommu: translation(&iommu), memory, allreduce })
}

fn translation(iommu: &RawIommu) -> IommuParameters {
    IommuParameters {
        page: iommu.page.value,
        entries: iommu.entries.value,
        ways: iommu.ways.value,
        walk: iommu.walk.value,
        faults: iommu.faults.value,
        fault: iommu.fault.value,
    }
}

/// Checks the section on address translation, of an interface without these units.
pub(super) fn check_iommu(iommu: &RawIommu, reader: &mut Reader<'_>) -> Option<IommuParameters> {
    let is_sound = check_pages(iommu, reader) && check_sets(iommu, reader);
    is_sound.then(|| translation(iommu))
}

/// The cut of a transfer into blocks and cells.
fn check_block(block: &Entry<Bytes>, format: &PacketFormat, reader: &mut Reader<'_>) -> Option<Cut> {
    let most = format.payload * Cut::CELLS;
    let problem = match Cut::new(block.value, format.payload) {
        Ok(cut) => return Some(cut),
        Err(_) if block.value == Bytes::ZERO => {
            Problem::new("a block of nothing", "", format!("write a size up to {most}"))
        }
        Err(error) => Problem::new(error.to_string(), "", format!("write at most {most}")),
    };
    reader.report(block.location, problem);
    None
}

/// Counts that the model keeps in few bits, or divides by.
fn check_counts(rdma: &RawRdma, iommu: &RawIommu, reader: &mut Reader<'_>) -> bool {
    let counts = [
        (&rdma.pages, 1 << 10),
        (&rdma.write_channels, 1 << 10),
        (&rdma.outstanding_blocks, 64),
        (&rdma.cell_buffers, 1 << 10),
        (&rdma.contexts, u32::MAX),
        (&iommu.ways, u32::MAX),
    ];
    let mut are_sound = true;
    for (count, most) in counts.into_iter().filter(|(count, most)| !(1..=*most).contains(&count.value)) {
        let problem = Problem::new(
            format!("{} is out of range", count.value),
            "",
            format!("write a number from 1 to {most}"),
        );
        reader.report(count.location, problem);
        are_sound = false;
    }
    are_sound
}

/// The channels of all pages together, which are numbered in 16 bits.
fn check_channels(rdma: &RawRdma, reader: &mut Reader<'_>) -> bool {
    let channels = u64::from(rdma.write_channels.value) + u64::from(rdma.read_channels.value);
    if channels * u64::from(rdma.pages.value) <= 1 << 16 {
        return true;
    }
    let why = format!("{} pages of {channels} channels are more than the model can count", rdma.pages.value);
    reader.report(rdma.pages.location, Problem::new(why, "", "write fewer: 65536 in all"));
    false
}

/// The size of pages, which are found by bits of an address.
fn check_pages(iommu: &RawIommu, reader: &mut Reader<'_>) -> bool {
    if iommu.page.value.get().is_power_of_two() {
        return true;
    }
    let why = format!("pages of {} cannot be found by bits of an address", iommu.page.value);
    reader.report(iommu.page.location, Problem::new(why, "", "write a power of two, such as 4K"));
    false
}

/// The sets of the TLB, of which all must be whole.
fn check_sets(iommu: &RawIommu, reader: &mut Reader<'_>) -> bool {
    let (entries, ways) = (iommu.entries.value, iommu.ways.value);
    if entries == 0 || entries.is_multiple_of(ways) {
        return true;
    }
    let why = format!("{entries} entries are not whole sets of {ways}");
    reader.report(iommu.ways.location, Problem::new(why, "", "write a divisor of nic.iommu.entries"));
    false
}

fn check_segmentation(
    raw: &RawSegmentation,
    clock: &Clock,
    reader: &mut Reader<'_>,
) -> Option<SegmentationParameters> {
    match (raw.agent.value, &raw.hardware_invocation) {
        (AgentName::Firmware, _) => {
            let invocation = match raw.invocation.value {
                Cost::Time(invocation) => invocation,
                Cost::Cycles(count) => clock.cycles(u64::from(count)),
            };
            Some(SegmentationParameters::Firmware { invocation })
        }
        (AgentName::Hardware, Some(cost)) => {
            let (clock, cycles) = (*clock, cycles(cost.value, clock));
            Some(SegmentationParameters::Hardware { clock, cycles })
        }
        (AgentName::Hardware, None) => {
            reader.missing(raw.location, "nic.segmentation", "hardware_invocation");
            None
        }
    }
}

fn check_memory(raw: &RawMemory, reader: &mut Reader<'_>) -> Option<MemoryParameters> {
    let cache = raw.cache.as_ref().map_or(Bytes::ZERO, |cache| cache.value);
    let memory = MemoryParameters::new(raw.rate.value).map(|memory| memory.behind_cache(cache));
    if memory.is_none() {
        let why = "a memory channel of no rate is never done";
        reader.report(raw.rate.location, Problem::new(why, "", "write rate = \"136Gb/s\""));
    }
    memory
}

fn check_allreduce(
    raw: &RawAllreduce,
    around: &Surroundings<'_>,
    reader: &mut Reader<'_>,
) -> Option<AllreduceParameters> {
    let (vector, payload, port) = (raw.vector.value, around.format.payload, around.port);
    let refused = if raw.board.value == 0 {
        Some((raw.board.location, Problem::new("a board of nothing", "", "write board = 4")))
    } else if vector == Bytes::ZERO || !vector.get().is_multiple_of(8) {
        let why = format!("vectors of {vector} do not hold whole numbers of each type");
        Some((raw.vector.location, Problem::new(why, "", "write a multiple of 8, such as 256")))
    } else if vector > payload {
        let why = format!("a vector of {vector} does not fit a packet");
        let mend = format!("write at most {payload}, the payload of a packet");
        Some((raw.vector.location, Problem::new(why, "", mend)))
    } else {
        None
    };
    if let Some((location, problem)) = refused {
        reader.report(location, problem);
        return None;
    }
    Some(AllreduceParameters {
        limits: AcceleratorLimits { ranks: raw.ranks.value, board: raw.board.value, vector },
        clock: port.clock,
        word: port.word,
        latency_cycles: cycles(raw.latency.value, &port.clock),
        lookup: raw.lookup.as_ref().map_or(Span::ZERO, |entry| entry.value),
        start: raw.start.value,
        finish: raw.finish.value,
        // Its packets are like the packetizer's.
        reliability: around.packetizer,
    })
}

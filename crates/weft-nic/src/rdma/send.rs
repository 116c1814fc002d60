//! The RDMA send unit: channels that take descriptors, and the engine that makes cells of blocks.
//!
//! ```text
//!  descriptor ─► channel of the rank's page            (agent: which blocks may go)
//!                   │ round robin over channels with blocks, cell by cell
//!                   ▼
//!                translate ─► burst of reads ─► cell buffer ─ whole? ─► link
//!                             └────── as many as there are buffers ────┘
//! ```
//! A channel has at most `outstanding_blocks` blocks that are not acknowledged. A cell goes when all of
//! its payload has come from memory; the reads of the next cells are under way meanwhile. The engine is
//! occupied by a cell for its words, header, footer, and some cycles of turnaround.
//!
//! # Source
//! TR-488 §4.5: 16 pages of 32 write and 32 read channels, 64-byte descriptors, blocks of 16 KB, an engine
//! that waits for the entire payload of a cell; §4.2: bursts of 16 words of 128 bits, eight outstanding,
//! 150 MHz; §4.4: requests are serialized cell by cell.
//!
//! # Not modelled
//! The order in which answers of the memory overtake each other: cells leave in the order of their reads.

use super::channels::{ALL_READ, Channels};
use super::descriptors::SourceContexts;
use super::transfer::{CellId, ChannelId, ChannelKind, Descriptor, Location};
use crate::iommu::Translation;
use crate::memory_path::MemoryPath;
use crate::reliability::ReliabilityParameters;
use crate::segmentation::{BlockEvent, Cut};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::ClassTag;
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock, EndpointId, Span, Time};

/// Counts of the engine that are kept in few bits.
const MAX_COUNT: u32 = 1 << 10;

weft_keys::keys! {
    /// The send unit's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct SendParameters {
        /// Pages of channels, each for one process.
        pages: u32, within(1, MAX_COUNT);
        /// Write channels of a page.
        write_channels: u32, within(1, MAX_COUNT);
        /// Read channels of a page.
        read_channels: u32;
        /// Bytes that a process stores to start a transfer.
        descriptor: Bytes;
        /// Blocks and cells.
        cut: Cut, group();
        /// Blocks of a channel that may wait for acknowledgement.
        outstanding_blocks: u32, within(1, 64);
        /// Cells that are read from memory or wait for the link.
        cell_buffers: u32, within(1, MAX_COUNT);
        /// The engine's clock.
        clock: Clock, of("nic.clock");
        /// Bytes that its datapath carries per cycle.
        word: Bytes, of("nic.host_port.word");
        /// From the last word of a cell to the first of the next, in whole cycles.
        cell_overhead_cycles: u32, key("cell_overhead"), cycles_of("nic.clock");
        beside {
            /// Words of header and footer.
            control_words: u32 = 0;
            /// Contexts, where the unit has them; a page's channels are then places for its descriptors in
            /// SRAM. `None`: a descriptor stays in a channel of its page until its transfer has ended.
            contexts: Option<SourceContexts> = None;
        }
    }
}

impl SendParameters {
    /// Checks that blocks have no more cells, and pages no more channels, than can be counted.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        self.cut.check()?;
        let channels = u64::from(self.write_channels) + u64::from(self.read_channels);
        if channels * u64::from(self.pages) <= 1 << 16 {
            return Ok(());
        }
        let why = format!("{} pages of {channels} channels are more than the model can count", self.pages);
        Err(Problem::new(why, "", "write fewer: 65536 in all").of("pages"))
    }

    /// Cycles that a cell of `bytes` occupies the engine.
    #[inline]
    pub fn cell_cycles(&self, bytes: Bytes) -> u64 {
        bytes.div_ceil(self.word) + u64::from(self.control_words + self.cell_overhead_cycles)
    }

    /// Channels for writes and for answers to reads in the numbers of a page; contexts are numbered as the
    /// channels for writes of one page.
    #[inline]
    pub(super) fn channels_of_page(&self) -> (u32, u32) {
        self.contexts.map_or((self.write_channels, self.read_channels), |contexts| (contexts.count, 0))
    }

    /// The page of a channel, and its kind.
    pub fn place(&self, id: ChannelId) -> (u32, ChannelKind) {
        let per_page = self.write_channels + self.read_channels;
        let is_write = u32::from(id.0) % per_page < self.write_channels;
        (u32::from(id.0) / per_page, if is_write { ChannelKind::Write } else { ChannelKind::Read })
    }

    /// Transfers of one process that may be under way.
    pub fn transfers(&self) -> u32 {
        self.contexts.map_or(self.write_channels, |contexts| contexts.count)
    }

    pub(super) fn channels(&self, kind: ChannelKind) -> u32 {
        match kind {
            ChannelKind::Write => self.write_channels,
            ChannelKind::Read => self.read_channels,
        }
    }
}

/// A cell that is read from memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fetch {
    cell: Cell,
    /// The time at which all its data is there.
    ready: Time,
    /// Of a watched cell: its times on the way to there.
    times: Option<Box<FetchTimes>>,
}

/// The times of a cell on its way to the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FetchTimes {
    /// The agent had started its transfer.
    pub started: Time,
    /// The engine took it up.
    pub issued: Time,
    /// The address was translated.
    pub translated: Time,
    /// All its data had come.
    pub ready: Time,
}

/// A cell to be put on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The node that the cell is for.
    pub to: EndpointId,
    /// The number of the cell's transfer.
    pub message: u32,
    /// The payload of the cell.
    pub bytes: Bytes,
    /// The identity of the cell.
    pub id: CellId,
    /// The place of its payload in the transfer.
    pub offset: u64,
    /// Whether it is the last of its transfer and the observer is to be told of it.
    pub watch: bool,
    /// The traffic class of its transfer.
    pub class: ClassTag,
    /// Whether it has been sent in an earlier attempt of its block.
    pub repeated: bool,
}

/// The consequences of a cell that was put on the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The cell.
    pub cell: Cell,
    /// The times of the cell on its way, where the observer is to be told of it.
    pub times: Option<Box<FetchTimes>>,
    /// The time at which the timer of its channel is to fire; `None`: it need not be set.
    pub timer: Option<Time>,
}

/// A block of which a page was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceFault {
    /// The channel of the block.
    pub channel: ChannelId,
    /// The block.
    pub transaction: u32,
    /// The time at which the page will be mapped.
    pub until: Time,
    /// The message, if it is watched, and when it was started or last told of.
    pub watched: Option<(u32, Time)>,
}

/// The unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SendUnit {
    /// The channels, with the round in which the engine serves them.
    pub(super) channels: Channels,
    /// Cells in the buffers, in the order of their reads.
    fetched: VecDeque<Fetch>,
    /// The time at which the engine can begin with another cell: an edge of its clock.
    free: Time,
    /// Time in which cells have occupied the engine.
    pub(super) worked: Span,
}

impl SendUnit {
    /// Fills the cell buffers: issues reads for the channels whose turn it is. To be called whenever a
    /// buffer or a block may have become free. Returns a block that met a page fault; call again then.
    pub fn fetch(
        &mut self,
        now: Time,
        parameters: &SendParameters,
        path: &mut MemoryPath<'_>,
    ) -> Option<SourceFault> {
        while self.fetched.len() < parameters.cell_buffers as usize
            && let Some(&turn) = self.channels.turns.front()
        {
            let id = turn.channel;
            let Some(transfer) = turn.place.and_then(|place| self.channels.transfers.at(place)) else {
                self.channels.pass_turn(parameters);
                continue;
            };
            let Some(place) = transfer.sending() else {
                transfer.queued = false;
                self.channels.turns.pop_front();
                continue;
            };
            let Descriptor { source, to, bytes: whole, message, watch, class, .. } = transfer.descriptor;
            let block = &mut transfer.blocks[place];
            let transaction = transfer.first.wrapping_add(block.index);
            let block_bytes = parameters.cut.block_bytes(whole, block.index);
            let attempt = block.attempt as u8;
            let is_alone = self.channels.turns.len() == 1;
            loop {
                let index = block.next;
                let bytes = parameters.cut.cell_bytes(block_bytes, index);
                let offset = parameters.cut.offset(block.index, index).get();
                let location = Location { address: source.address.plus(offset), ..source };
                let translated = match path.translate(location, bytes, &mut transfer.page, now) {
                    Translation::At(translated) => translated,
                    Translation::Fault(until) => {
                        let watched = watch.then_some((message, transfer.started));
                        self.channels.turns.pop_front();
                        self.channels.faulted(id, transaction, parameters);
                        return Some(SourceFault { channel: id, transaction, until, watched });
                    }
                };
                let ready = path.read(bytes, whole, translated);
                let last = parameters.cut.ends_block(block_bytes, index);
                let cell = CellId { channel: id, transaction, index, last, attempt };
                let is_first = block.index == 0 && index == 0;
                let is_watched =
                    watch && (is_first || last && parameters.cut.ends_transfer(whole, block.index));
                let repeated = index < block.read_before;
                let cell = Cell { to, message, bytes, id: cell, offset, watch: is_watched, class, repeated };
                let started = transfer.started;
                let times =
                    is_watched.then(|| Box::new(FetchTimes { started, issued: now, translated, ready }));
                self.fetched.push_back(Fetch { cell, ready, times });
                block.next = if last { ALL_READ } else { index + 1 };
                // The next cell of a channel that is alone is of the same block.
                if last || !is_alone || self.fetched.len() >= parameters.cell_buffers as usize {
                    break;
                }
            }
            let has_more = block.next != ALL_READ || transfer.sending().is_some();
            transfer.queued = has_more;
            self.channels.next_turn(has_more);
        }
        None
    }

    /// Whether there is a buffer for another cell, and perhaps a cell for it.
    #[inline]
    pub(super) fn may_fetch(&self, parameters: &SendParameters) -> bool {
        !self.channels.turns.is_empty() && self.fetched.len() < parameters.cell_buffers as usize
    }

    /// Cells in the buffers.
    #[inline]
    pub(super) fn buffered(&self) -> usize {
        self.fetched.len()
    }

    /// The cells in the buffers behind the first so many, and when the payload of each is there.
    pub(super) fn reads_behind(&self, first: usize) -> impl Iterator<Item = (Cell, Time)> {
        self.fetched.iter().skip(first).map(|fetch| (fetch.cell, fetch.ready))
    }

    /// The time at which the next cell can go; [`Time::NEVER`]: there is none.
    #[inline]
    pub fn next_cell(&self) -> Time {
        match self.fetched.front() {
            Some(fetch) => fetch.ready.max(self.free),
            None => Time::NEVER,
        }
    }

    /// The traffic class of the next cell; that of none, if there is none.
    pub fn next_class(&self) -> ClassTag {
        self.fetched.front().map(|fetch| fetch.cell.class).unwrap_or_default()
    }

    /// Takes the next cell, which is ready and goes onto the link at `now`. Call [`SendUnit::fetch`]
    /// afterwards.
    #[inline]
    pub fn take(
        &mut self,
        now: Time,
        parameters: &SendParameters,
        reliability: &ReliabilityParameters,
    ) -> Option<Sent> {
        debug_assert!(self.next_cell() <= now);
        let Fetch { cell, times, .. } = self.fetched.pop_front()?;
        let begin = parameters.clock.edge_at_or_after(now);
        self.free = parameters.clock.later_edge(begin, parameters.cell_cycles(cell.bytes));
        self.worked = self.worked.saturating_add(self.free - begin);
        let mut timer = None;
        if cell.id.last {
            timer = self.sent(cell.id, now, parameters, reliability);
        }
        Some(Sent { cell, times, timer })
    }

    /// The last cell of a block has gone: from now on its answer is waited for.
    #[inline(never)]
    fn sent(
        &mut self,
        cell: CellId,
        now: Time,
        parameters: &SendParameters,
        reliability: &ReliabilityParameters,
    ) -> Option<Time> {
        let CellId { channel, transaction, attempt, .. } = cell;
        let mut busy = self.channels.busy(channel, parameters)?;
        // A cell of an attempt that was refused before its cells had gone says nothing of the present one.
        busy.transfer.block(transaction).filter(|block| block.attempt as u8 == attempt)?;
        let block = busy.block_event(transaction, BlockEvent::LastCell)?;
        block.deadline = now.saturating_add(reliability.timeout_after(block.timeouts));
        let deadline = block.deadline;
        if busy.transfer.descriptor.watch {
            busy.transfer.stalls(now, parameters);
        }
        busy.channel.arm(deadline)
    }
}

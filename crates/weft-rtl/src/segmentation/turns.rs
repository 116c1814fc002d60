//! The turns of cells: what the RTL reads and sends, beside what the model does.
//!
//! Each turn is the model's: when it asks for the payload of a cell, when that is whole, and when the network
//! takes the cell. The RTL has the same turns. As a rule their cells are the same. Where two channels begin
//! within a few cycles of each other, the RTL may serve them the other way round: then it has the cells of a
//! channel in their order, each to the bit, but in turns of another.
//!
//! A cell that crosses 4 KB is two bursts in the RTL, and one read in the model: such a read may be held up
//! by the bursts that are outstanding, and then its cell and those behind it are late by no more than that.

use super::WORD;
use crate::cells::CellMessage;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::ports::OfferedWord;
use crate::words::BusWord;
use std::collections::VecDeque;

/// Bytes that a burst does not cross.
const BORDER: u64 = 4096;
/// Cycles of the RTL from the model's read to its address on the bus, at most: those of the agent, and of the
/// reads of seven other cells.
const READ_LATE: u64 = 40;
/// The same, and cycles by which a cell may be late, where turns are not the model's, or a read is held up.
const MOST_LATE: u64 = 512;
/// Turns by which a cell may be early.
const MOST_EARLY: usize = 16;

/// A burst of reads: its address and its words.
type Burst = (u64, u64);

/// A cell that the model reads, and the RTL has not asked for.
struct PendingCell {
    channel: u16,
    bursts: [Burst; 2],
    /// The words of memory, and those of the cell on the bus.
    memory: Vec<u128>,
    words: VecDeque<u128>,
}

/// When the model asks for the payload of a cell, and when that is whole.
struct CellTurn {
    from: u64,
    ready: u64,
}

/// A cell that the RTL has asked for.
struct AskedCell {
    /// The cycle from which on it may be on the bus.
    ready: u64,
    words: VecDeque<u128>,
    begun: bool,
    /// Whether its read was held up.
    was_held: bool,
}

/// The cells of a send unit.
pub(super) struct CellTurns {
    /// Bursts that the RTL may have outstanding, and that it has.
    most: u64,
    outstanding: u64,
    pending: VecDeque<PendingCell>,
    turns: VecDeque<CellTurn>,
    /// The second burst of the cell that the RTL asks for.
    second: Option<Burst>,
    /// Words of memory that are to come, and those whose reads the RTL has asked for.
    data: VecDeque<BusWord>,
    asked: u64,
    cells: VecDeque<AskedCell>,
    /// The cycles from which on the network takes cells.
    sending: VecDeque<u64>,
    /// Whether the RTL's turns may not be the model's.
    is_relaxed: bool,
    /// Whether the next read is held up by those that are outstanding, and whether one of them has just
    /// ended.
    is_held: bool,
    has_ended: bool,
    /// Cycles by which the last cell was late.
    slip: u64,
}

/// The RTL's address of a read.
pub(super) struct AskedBurst {
    pub valid: u128,
    pub address: u128,
    pub words: u128,
}

impl CellTurns {
    /// None, of a unit that may have so many bursts outstanding.
    pub fn new(most: u64) -> CellTurns {
        CellTurns {
            most,
            outstanding: 0,
            pending: VecDeque::new(),
            turns: VecDeque::new(),
            second: None,
            data: VecDeque::new(),
            asked: 0,
            cells: VecDeque::new(),
            sending: VecDeque::new(),
            is_relaxed: false,
            is_held: false,
            has_ended: false,
            slip: 0,
        }
    }

    /// The model asks for the payload of a cell, at `address`, in a cycle, and has it in another.
    pub fn read(&mut self, cell: &CellMessage, address: u64, (from, ready): (u64, u64)) {
        // A cell without payload reads a word all the same.
        let words = cell.bytes.get().div_ceil(WORD).max(1);
        let first = words.min((BORDER - address % BORDER) / WORD);
        self.pending.push_back(PendingCell {
            channel: cell.id.channel.0,
            bursts: [(address, first), (address + first * WORD, words - first)],
            memory: cell.memory_words(),
            words: cell.words().into(),
        });
        self.turns.push_back(CellTurn { from, ready });
    }

    /// The network takes the model's next cell from a cycle on.
    pub fn sent(&mut self, from: u64) {
        self.sending.push_back(from);
    }

    /// The next cycle in which something is to happen.
    pub fn next_cycle(&self) -> Option<u64> {
        let turn = self.turns.front().map(|turn| turn.from);
        let data = self.data.front().map(|word| word.cycle);
        turn.into_iter().chain(data).chain(self.sending.front().copied()).min()
    }

    /// The word of memory that comes in a cycle: none that was not asked for.
    pub fn word(&self, cycle: u64) -> Option<BusWord> {
        self.data.front().copied().filter(|word| word.cycle <= cycle && self.asked > 0)
    }

    /// That word has come.
    pub fn take_word(&mut self) {
        if let Some(word) = self.data.pop_front() {
            self.asked -= 1;
            self.has_ended = word.last && self.outstanding == self.most;
            self.outstanding -= u64::from(word.last);
        }
    }

    /// Whether the network takes a word in a cycle.
    pub fn takes(&self, cycle: u64) -> bool {
        self.sending.front().is_some_and(|from| *from <= cycle)
    }

    /// Compares what memory is asked for with what the model reads.
    pub fn compare_read(
        &mut self,
        place: &BlockPlace,
        cycle: u64,
        asked: &AskedBurst,
    ) -> Result<(), Difference> {
        let is_full = std::mem::take(&mut self.has_ended) || self.outstanding == self.most;
        if asked.valid == 0 {
            self.is_held |= is_full && self.turns.front().is_some_and(|turn| turn.from <= cycle);
            if let Some(cell) = self.cells.back_mut().filter(|_| self.second.is_some()) {
                cell.was_held |= is_full;
            }
            let most = if self.is_relaxed || self.is_held { MOST_LATE } else { READ_LATE };
            let late = self.turns.front().is_some_and(|turn| turn.from + most <= cycle);
            return place.compare(cycle, "m_axi_arvalid", 0, late.into());
        }
        let burst = match self.second.take() {
            Some(second) => second,
            None => self.next_burst(place, cycle, asked)?,
        };
        place.compare(cycle, "m_axi_araddr", asked.address, burst.0.into())?;
        place.compare(cycle, "m_axi_arlen", asked.words, burst.1.into())?;
        self.asked += burst.1;
        self.outstanding += 1;
        Ok(())
    }

    /// The first burst of the cell that the RTL asks for, which has the next turn.
    fn next_burst(
        &mut self,
        place: &BlockPlace,
        cycle: u64,
        asked: &AskedBurst,
    ) -> Result<Burst, Difference> {
        let due = |turn: &&CellTurn| turn.from <= cycle || self.is_relaxed;
        let Some(&CellTurn { ready, .. }) = self.turns.front().filter(due) else {
            return Err(place.difference(cycle, "m_axi_arvalid", 1, 0));
        };
        let is_it = |cell: &PendingCell| u128::from(cell.bursts[0].0) == asked.address;
        let found = self.pending.iter().take(MOST_EARLY).position(is_it).unwrap_or(0);
        let channel = self.pending.get(found).map(|cell| cell.channel);
        // Cells of a channel are read in their order.
        let overtakes = |cell: &PendingCell| Some(cell.channel) == channel;
        let found = if self.pending.iter().take(found).any(overtakes) { 0 } else { found };
        self.is_relaxed |= found > 0;
        let Some(PendingCell { bursts: [first, second], memory, words, .. }) = self.pending.remove(found)
        else {
            return Err(place.difference(cycle, "m_axi_arvalid", 1, 0));
        };
        self.turns.pop_front();
        self.second = (second.1 > 0).then_some(second);
        let count = memory.len() as u64;
        for (word, data) in memory.into_iter().enumerate() {
            let word = word as u64;
            let last = word + 1 == first.1 || word + 1 == count;
            self.data.push_back(BusWord { cycle: (ready + word).saturating_sub(count), data, last });
        }
        let was_held = std::mem::take(&mut self.is_held);
        self.cells.push_back(AskedCell { ready, words, begun: false, was_held });
        Ok(first)
    }

    /// Compares what the network is offered with what the model sends.
    pub fn compare_cell(
        &mut self,
        place: &BlockPlace,
        cycle: u64,
        found: &OfferedWord,
    ) -> Result<(), Difference> {
        let Some(from) = self.sending.front().copied().filter(|from| *from <= cycle) else {
            let may_be_offered = self.cells.front().is_some_and(|cell| cell.ready <= cycle);
            let too_early = found.valid != 0 && !may_be_offered;
            return place.compare(cycle, "m_axis_net_tvalid", too_early.into(), 0);
        };
        let next = self.cells.front();
        let has_begun = next.is_some_and(|cell| cell.begun);
        let was_held = next.map_or(self.is_held, |cell| cell.was_held);
        let most = if self.is_relaxed || was_held { MOST_LATE } else { self.slip };
        if found.valid == 0 && !has_begun && cycle < from + most {
            return Ok(());
        }
        place.compare(cycle, "m_axis_net_tvalid", found.valid, 1)?;
        let Some(cell) = self.cells.front_mut() else { return Ok(()) };
        if !std::mem::replace(&mut cell.begun, true) {
            self.slip = cycle - from;
        }
        let expected = cell.words.pop_front().unwrap_or_default();
        let is_last = cell.words.is_empty();
        place.compare(cycle, "m_axis_net_tdata", found.data, expected)?;
        place.compare(cycle, "m_axis_net_tlast", found.last, is_last.into())?;
        if is_last {
            self.cells.pop_front();
            self.sending.pop_front();
            self.is_relaxed &= !(self.cells.is_empty() && self.pending.is_empty());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_nic::gvas::Pdid;
    use weft_nic::rdma::{CellId, ChannelId};
    use weft_units::{Bytes, Clock, EndpointId};

    fn place() -> BlockPlace {
        let clock = Clock::from_hertz(150_000_000).unwrap();
        BlockPlace { block: "segmentation", endpoint: EndpointId(0), clock }
    }

    fn address((channel, index): (u16, u8)) -> u64 {
        u64::from(channel) << 20 | u64::from(index) << 8
    }

    fn message((channel, index): (u16, u8)) -> CellMessage {
        let channel = ChannelId(channel);
        CellMessage {
            source: EndpointId(0),
            to: EndpointId(1),
            to_interface: 0,
            domain: Pdid(0),
            address: u64::from(index) << 8,
            message: channel.0.into(),
            offset: u64::from(index) << 8,
            bytes: Bytes::new(256),
            id: CellId { channel, transaction: 0, index, last: false, attempt: 0 },
            first: 0,
            ends_transfer: true,
        }
    }

    /// Turns of these cells, the first in cycle 100, every 23 cycles; each is whole after 30.
    fn turns(cells: &[(u16, u8)]) -> CellTurns {
        let mut turns = CellTurns::new(8);
        for (turn, cell) in cells.iter().enumerate() {
            let from = 100 + 23 * turn as u64;
            turns.read(&message(*cell), address(*cell), (from, from + 30));
        }
        turns
    }

    /// The signal that differs, if the RTL asks for a cell in a cycle.
    fn ask(turns: &mut CellTurns, cycle: u64, cell: (u16, u8)) -> Option<&'static str> {
        let asked = AskedBurst { valid: 1, address: address(cell).into(), words: 16 };
        turns.compare_read(&place(), cycle, &asked).err().map(|difference| difference.signal)
    }

    /// Catches turns of two channels that have to be the model's, and cells of one channel that need not be
    /// in their order.
    #[test]
    fn channels_may_change_turns_and_cells_of_a_channel_may_not() {
        let mut swapped = turns(&[(1, 0), (2, 0), (1, 1), (2, 1)]);
        for (cycle, cell) in [(104, (2, 0)), (127, (1, 0)), (150, (2, 1)), (173, (1, 1))] {
            assert_eq!(ask(&mut swapped, cycle, cell), None);
        }
        assert_eq!(ask(&mut turns(&[(1, 0), (1, 1)]), 104, (1, 1)), Some("m_axi_araddr"));
        assert_eq!(ask(&mut turns(&[(1, 0), (2, 0)]), 104, (3, 0)), Some("m_axi_araddr"));
        assert_eq!(ask(&mut turns(&[(1, 0)]), 99, (1, 0)), Some("m_axi_arvalid"));
    }

    /// Catches a cell that comes to the network a cycle late, where all turns are the model's.
    #[test]
    fn a_late_cell_is_told() {
        for (late, told) in [(0, None), (1, Some("m_axis_net_tvalid"))] {
            let mut turns = turns(&[(1, 0)]);
            assert_eq!(ask(&mut turns, 104, (1, 0)), None);
            turns.sent(130);
            let words = message((1, 0)).words();
            let found = OfferedWord { valid: u128::from(late == 0), data: words[0], last: 0 };
            let found = turns.compare_cell(&place(), 130, &found).err().map(|difference| difference.signal);
            assert_eq!(found, told);
        }
    }
}

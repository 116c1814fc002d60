//! The turns of cells: what the RTL reads and sends, beside what the model does.
//!
//! Each turn is the model's: when it asks for the payload of a cell, when that is whole, and when the network
//! takes the cell. The RTL asks for the same cells in the same order, some cycles later, and has each for the
//! network in the same cycle.
//!
//! A cell that crosses 4 KB is two bursts in the RTL, and one read in the model: such a read, or one behind
//! it, may be held up by the bursts that are outstanding, and then its cell is late by no more than that.

use super::WORD;
use crate::beats::{Beat, OfferedBeat};
use crate::bus::{BusWords, side_by_side};
use crate::cells::CellMessage;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use std::collections::VecDeque;

/// Bytes that a burst does not cross.
const BORDER: u64 = 4096;
/// Cycles of the RTL from the model's read to its address on the bus, at most: those of the agent, and of the
/// reads into all other buffers and of what has come before them.
const READ_LATE: u64 = 40;

/// A burst of reads: its address and its beats.
type Burst = (u64, u64);

/// A cell that the model reads, and the RTL has not asked for.
struct PendingCell {
    /// When the model asks for its payload, and when that is whole.
    from: u64,
    ready: u64,
    bursts: [Burst; 2],
    /// The words of memory, and those of the cell, beat by beat.
    memory: Vec<BusWords>,
    beats: VecDeque<BusWords>,
}

/// A cell that the RTL has asked for.
struct AskedCell {
    /// The cycle from which on it may be on the bus.
    ready: u64,
    beats: VecDeque<BusWords>,
    begun: bool,
    /// Cycles for which its reads were held up.
    held: u64,
}

/// The cells of a send unit.
pub(super) struct CellTurns {
    /// Words of the buses.
    lanes: usize,
    /// Bursts that the RTL may have outstanding, and that it has.
    most: u64,
    outstanding: u64,
    pending: VecDeque<PendingCell>,
    /// The second burst of the cell that the RTL asks for.
    second: Option<Burst>,
    /// The cycle in which it has asked last.
    asked_in: u64,
    /// Beats of memory that are to come, and those whose reads the RTL has asked for.
    data: VecDeque<Beat>,
    asked: u64,
    cells: VecDeque<AskedCell>,
    /// The cycles from which on the network takes cells.
    sending: VecDeque<u64>,
    /// Cycles for which the next read is held up by those that are outstanding, and whether one of them has
    /// just ended.
    held: u64,
    has_ended: bool,
    /// Cycles by which the last cell was late.
    slip: u64,
}

/// The RTL's address of a read.
pub(super) struct AskedBurst {
    pub valid: u128,
    pub address: u128,
    pub beats: u128,
}

impl CellTurns {
    /// None, of a unit that may have so many bursts outstanding, on buses of so many words.
    pub fn new(most: u64, lanes: usize) -> CellTurns {
        CellTurns {
            lanes,
            most,
            outstanding: 0,
            pending: VecDeque::new(),
            second: None,
            asked_in: 0,
            data: VecDeque::new(),
            asked: 0,
            cells: VecDeque::new(),
            sending: VecDeque::new(),
            held: 0,
            has_ended: false,
            slip: 0,
        }
    }

    /// The model asks for the payload of a cell, at `address`, in a cycle, and has it in another.
    pub fn read(&mut self, cell: &CellMessage, address: u64, (from, ready): (u64, u64)) {
        // A cell without payload reads a word all the same.
        let memory = side_by_side(&cell.memory_words(), self.lanes);
        let (beats, of_beat) = (memory.len() as u64, WORD * self.lanes as u64);
        let first = beats.min((BORDER - address % BORDER) / of_beat);
        let bursts = [(address, first), (address + first * of_beat, beats - first)];
        // A header that has a beat of its own is on the bus while the words behind it are looked up.
        let ready = if self.lanes > 1 { ready.saturating_sub(1) } else { ready };
        let beats = side_by_side(&cell.words(), self.lanes).into();
        self.pending.push_back(PendingCell { from, ready, bursts, memory, beats });
    }

    /// The network takes the model's next cell from a cycle on.
    pub fn sent(&mut self, from: u64) {
        self.sending.push_back(from);
    }

    /// The next cycle in which something is to happen.
    pub fn next_cycle(&self) -> Option<u64> {
        let turn = self.pending.front().map(|cell| cell.from);
        let data = self.data.front().map(|beat| beat.cycle);
        turn.into_iter().chain(data).chain(self.sending.front().copied()).min()
    }

    /// The beat of memory that comes in a cycle: none that was not asked for.
    pub fn beat(&self, cycle: u64) -> Option<Beat> {
        self.data.front().copied().filter(|beat| beat.cycle <= cycle && self.asked > 0)
    }

    /// That beat has come.
    pub fn take_beat(&mut self) {
        if let Some(beat) = self.data.pop_front() {
            self.asked -= 1;
            self.has_ended = beat.last && self.outstanding == self.most;
            self.outstanding -= u64::from(beat.last);
        }
    }

    /// Whether the network takes a beat in a cycle.
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
            if let Some(cell) = self.cells.back_mut().filter(|_| self.second.is_some()) {
                cell.held += u64::from(is_full);
            }
            let due = self.pending.front().filter(|cell| cell.from <= cycle);
            self.held += u64::from(is_full && due.is_some());
            let most = READ_LATE + self.held;
            let late = due.is_some_and(|cell| cell.from.max(self.asked_in) + most <= cycle);
            return place.compare(cycle, "m_axi_arvalid", 0, late.into());
        }
        let burst = match self.second.take() {
            Some(second) => second,
            None => self.next_burst(place, cycle)?,
        };
        place.compare(cycle, "m_axi_araddr", asked.address, burst.0.into())?;
        place.compare(cycle, "m_axi_arlen", asked.beats, burst.1.into())?;
        self.asked_in = cycle;
        self.asked += burst.1;
        self.outstanding += 1;
        Ok(())
    }

    /// The first burst of the cell whose turn it is.
    fn next_burst(&mut self, place: &BlockPlace, cycle: u64) -> Result<Burst, Difference> {
        let due = self.pending.pop_front().filter(|cell| cell.from <= cycle);
        let Some(PendingCell { ready, bursts: [first, second], memory, beats, .. }) = due else {
            return Err(place.difference(cycle, "m_axi_arvalid", 1, 0));
        };
        self.second = (second.1 > 0).then_some(second);
        let count = memory.len() as u64;
        for (place, words) in (0..).zip(memory) {
            let last = place + 1 == first.1 || place + 1 == count;
            self.data.push_back(Beat { cycle: (ready + place).saturating_sub(count), words, last });
        }
        let held = std::mem::take(&mut self.held);
        self.cells.push_back(AskedCell { ready, beats, begun: false, held });
        Ok(first)
    }

    /// Compares what the network is offered with what the model sends.
    pub fn compare_cell(
        &mut self,
        place: &BlockPlace,
        cycle: u64,
        found: &OfferedBeat,
    ) -> Result<(), Difference> {
        let Some(from) = self.sending.front().copied().filter(|from| *from <= cycle) else {
            let may_be_offered = self.cells.front().is_some_and(|cell| cell.ready <= cycle);
            let too_early = found.valid != 0 && !may_be_offered;
            return place.compare(cycle, "m_axis_net_tvalid", too_early.into(), 0);
        };
        let next = self.cells.front();
        let has_begun = next.is_some_and(|cell| cell.begun);
        let held = next.map_or(self.held, |cell| cell.held);
        if found.valid == 0 && !has_begun && cycle < from + self.slip + held {
            return Ok(());
        }
        place.compare(cycle, "m_axis_net_tvalid", found.valid, 1)?;
        let Some(cell) = self.cells.front_mut() else { return Ok(()) };
        if !std::mem::replace(&mut cell.begun, true) {
            self.slip = cycle - from;
        }
        let words = cell.beats.pop_front().unwrap_or_default();
        let expected = Beat { cycle, words, last: cell.beats.is_empty() };
        found.compare(place, ["m_axis_net_tdata", "m_axis_net_tlast"], &expected)?;
        if expected.last {
            self.cells.pop_front();
            self.sending.pop_front();
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
        let mut turns = CellTurns::new(8, 1);
        for (turn, cell) in cells.iter().enumerate() {
            let from = 100 + 23 * turn as u64;
            turns.read(&message(*cell), address(*cell), (from, from + 30));
        }
        turns
    }

    /// The signal that differs, if the RTL asks for a cell in a cycle.
    fn ask(turns: &mut CellTurns, cycle: u64, cell: (u16, u8)) -> Option<&'static str> {
        let asked = AskedBurst { valid: 1, address: address(cell).into(), beats: 16 };
        turns.compare_read(&place(), cycle, &asked).err().map(|difference| difference.signal)
    }

    /// Catches a cell that is asked for in the turn of another, or too early.
    #[test]
    fn turns_are_the_models() {
        let mut right = turns(&[(1, 0), (2, 0), (1, 1), (2, 1)]);
        for (cycle, cell) in [(104, (1, 0)), (127, (2, 0)), (150, (1, 1)), (173, (2, 1))] {
            assert_eq!(ask(&mut right, cycle, cell), None);
        }
        assert_eq!(ask(&mut turns(&[(1, 0), (1, 1)]), 104, (1, 1)), Some("m_axi_araddr"));
        assert_eq!(ask(&mut turns(&[(1, 0), (2, 0)]), 104, (2, 0)), Some("m_axi_araddr"));
        assert_eq!(ask(&mut turns(&[(1, 0)]), 99, (1, 0)), Some("m_axi_arvalid"));
    }

    /// Catches a cell that comes to the network a cycle late.
    #[test]
    fn a_late_cell_is_told() {
        for (late, told) in [(0, None), (1, Some("m_axis_net_tvalid"))] {
            let mut turns = turns(&[(1, 0)]);
            assert_eq!(ask(&mut turns, 104, (1, 0)), None);
            turns.sent(130);
            let words = message((1, 0)).words();
            let found = OfferedBeat { valid: u128::from(late == 0), words: [words[0], 0, 0, 0], last: 0 };
            let found = turns.compare_cell(&place(), 130, &found).err().map(|difference| difference.signal);
            assert_eq!(found, told);
        }
    }
}

//! Packets of modules: their words, and the order in which the network takes them.

use super::in_step::MOST_LATE;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::ports::OfferedWord;
use crate::words::packet_words;
use std::collections::VecDeque;
use weft_nic::Header;
use weft_nic::gvas::Pdid;
use weft_nic::ports::PacketOfModule;
use weft_nic::wire::{PacketFields, PacketTarget};
use weft_units::{Address, EndpointId, Time};

/// The words of a packet from one module to another, header to footer.
pub(super) fn words_of(
    packet: &PacketOfModule,
    (source, to): (EndpointId, EndpointId),
    vector: &[u8],
) -> Vec<u128> {
    let PacketOfModule { id, step, .. } = *packet;
    let (header, size, number) = (Header::Reduction(id, step), vector.len() as u32, id.group);
    let target = PacketTarget::new(Pdid(0), to, 0, Address::default());
    let control = target.and_then(|target| {
        PacketFields { target, header, size, source, number, ends_transfer: false }.encode(vector)
    });
    packet_words(&control.expect("nodes and blocks fit the header"), vector)
}

/// A packet that is due.
struct DuePacket {
    due: Time,
    /// The cycle from which on it is.
    cycle: u64,
    /// Whether the RTL may have it later.
    is_late: bool,
    words: Vec<u128>,
}

/// The way out. The model's packets go in the order in which they are due, questions and answers among them,
/// which the RTL may have behind packets that are due after them. The network takes packets as it does the
/// model's: so many, and not before.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Packets that the RTL has not sent, in the model's order.
    due: VecDeque<DuePacket>,
    /// The cycles from which on the network takes a packet.
    turns: VecDeque<u64>,
    /// The words of a packet that the RTL has sent so far.
    sent: Vec<u128>,
}

impl Outgoing {
    /// A packet will be due.
    pub fn made(&mut self, due: Time, cycle: u64, is_late: bool, words: Vec<u128>) {
        let place = self.due.partition_point(|other| other.due <= due);
        self.due.insert(place, DuePacket { due, cycle, is_late, words });
    }

    /// The network takes a packet from a cycle on.
    pub fn sent(&mut self, from: u64) {
        self.turns.push_back(from);
    }

    /// The cycle from which on the network takes the next packet, if that is known.
    pub fn next_cycle(&self) -> Option<u64> {
        self.turns.front().copied()
    }

    /// Whether the network takes a word in a cycle.
    pub fn is_ready(&self, cycle: u64) -> bool {
        self.turns.front().is_some_and(|from| *from <= cycle)
    }

    /// Compares the word that is offered with that which the model sends.
    ///
    /// # Errors
    /// It differs.
    pub fn compare(
        &mut self,
        place: &BlockPlace,
        cycle: u64,
        offered: &OfferedWord,
    ) -> Result<(), Difference> {
        let valid = |valid| place.compare(cycle, "m_axis_net_tvalid", offered.valid, u128::from(valid));
        let due = self.due.partition_point(|packet| packet.cycle <= cycle);
        let Some(turn) = self.turns.front().filter(|from| **from <= cycle) else {
            return valid(offered.valid != 0 && due > 0);
        };
        let late = self.due.iter().take(due).take_while(|packet| packet.is_late).count();
        if offered.valid == 0 {
            let may_wait = self.sent.is_empty() && late == due && cycle < turn + MOST_LATE;
            return valid(!may_wait);
        }
        valid(true)?;
        // It is the first that is not late, or one before that. Several may begin alike.
        let may_be = self.due.iter().take(due.min(late + 1));
        let next = |words: &[u128]| may_be.clone().position(|packet| packet.words.starts_with(words));
        let expected = next(&self.sent);
        self.sent.push(offered.data);
        let found = next(&self.sent).or(expected);
        let words = found.map_or(&[][..], |found| &self.due[found].words[..]);
        let word = words.get(self.sent.len() - 1).copied().unwrap_or_default();
        place.compare(cycle, "m_axis_net_tdata", offered.data, word)?;
        let is_last = words.len() == self.sent.len();
        place.compare(cycle, "m_axis_net_tlast", offered.last, is_last.into())?;
        if let Some(found) = found.filter(|_| is_last) {
            self.due.remove(found);
            self.turns.pop_front();
            self.sent.clear();
        }
        Ok(())
    }
}

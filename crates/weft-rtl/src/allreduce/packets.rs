//! Packets of modules: their words, and the order in which the network takes them.

use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::ports::OfferedWord;
use crate::words::packet_words;
use std::collections::VecDeque;
use weft_nic::Header;
use weft_nic::gvas::Pdid;
use weft_nic::ports::PacketOfModule;
use weft_nic::wire::{PacketFields, PacketTarget};
use weft_units::{Address, EndpointId};

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

/// A packet that is due from a cycle on.
struct DuePacket {
    packet: PacketOfModule,
    due: u64,
    /// Whether the RTL may have it later.
    is_late: bool,
    words: VecDeque<u128>,
}

/// The way out.
#[derive(Default)]
pub(super) struct Outgoing {
    made: VecDeque<DuePacket>,
    /// Packets that the network takes, from a cycle on.
    sending: VecDeque<(u64, DuePacket)>,
    /// Whether the first has begun.
    is_inside: bool,
}

impl Outgoing {
    /// A packet will be due.
    pub fn made(&mut self, packet: &PacketOfModule, due: u64, is_late: bool, words: Vec<u128>) {
        self.made.push_back(DuePacket { packet: *packet, due, is_late, words: words.into() });
    }

    /// The network takes a packet from a cycle on.
    pub fn sent(&mut self, packet: &PacketOfModule, from: u64) {
        let place = self.made.iter().position(|made| made.packet == *packet);
        if let Some(made) = place.and_then(|place| self.made.remove(place)) {
            self.sending.push_back((from, made));
        }
    }

    /// The cycle from which on the network takes the next packet, if that is known.
    pub fn next_cycle(&self) -> Option<u64> {
        self.sending.front().map(|(from, _)| *from)
    }

    /// Whether the network takes a word in a cycle.
    pub fn is_ready(&self, cycle: u64) -> bool {
        self.sending.front().is_some_and(|(from, _)| *from <= cycle)
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
        if !self.is_ready(cycle) {
            let is_due = |made: &DuePacket| made.due <= cycle;
            let may_be = self.made.iter().any(is_due) || self.sending.iter().any(|(_, made)| is_due(made));
            return place.compare(
                cycle,
                "m_axis_net_tvalid",
                offered.valid,
                u128::from(may_be) & offered.valid,
            );
        }
        self.bring_to_front(offered);
        let Some((from, made)) = self.sending.front_mut() else { return Ok(()) };
        if offered.valid == 0 && made.is_late && !self.is_inside && cycle < *from + super::in_step::MOST_LATE
        {
            return Ok(());
        }
        place.compare(cycle, "m_axis_net_tvalid", offered.valid, 1)?;
        let expected = made.words.pop_front().unwrap_or_default();
        place.compare(cycle, "m_axis_net_tdata", offered.data, expected)?;
        let is_last = made.words.is_empty();
        place.compare(cycle, "m_axis_net_tlast", offered.last, is_last.into())?;
        self.is_inside = !is_last;
        if is_last {
            self.sending.pop_front();
        }
        Ok(())
    }

    /// Questions and answers may be behind packets that were due after them.
    fn bring_to_front(&mut self, offered: &OfferedWord) {
        if self.is_inside || offered.valid == 0 {
            return;
        }
        let is_it = |(_, made): &(u64, DuePacket)| made.words.front() == Some(&offered.data);
        let others_are_late = |place| self.sending.iter().take(place).all(|(_, made)| made.is_late);
        if let Some(place) = self.sending.iter().position(is_it).filter(|place| others_are_late(*place))
            && let Some(found) = self.sending.remove(place)
        {
            self.sending.push_front(found);
        }
    }
}

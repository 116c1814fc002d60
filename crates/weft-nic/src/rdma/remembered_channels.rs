//! The channels that send to a receive unit: what it remembers of each beside the contexts of its blocks.
//!
//! ```text
//!   source, channel ─ hash ─► set   [ way ][ way ] … [ way ]   the channel's own; else the next in turn
//!                                                              whose transfer is whole, or one that is
//!                                                              silent; else the channel is refused
//! ```
//! The channels that came last are remembered, so that their blocks are not written again when they are
//! repeated. TR-488 has no such table: ours, as in `rtl/rdma_receive`. Sources, pages and channels whose
//! numbers are next to each other fill all sets alike.

use super::transfer::ChannelId;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, Time};

/// Bits of a set's number.
const SET_BITS: u32 = 6;
/// Channels that a set holds: ours.
pub const REMEMBERED_WAYS: usize = 16;
/// Channels that a receive unit remembers: ours.
pub const REMEMBERED_CHANNELS: usize = REMEMBERED_WAYS << SET_BITS;

/// The state of a channel that sends here.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RememberedChannel {
    source: EndpointId,
    channel: ChannelId,
    /// The transfer under way.
    pub first: u32,
    /// Blocks before this transaction have come, or their transfer has ended.
    base: u32,
    /// A bit per block from there on.
    done: u64,
    /// Blocks of the transfer that have not come.
    missing: u32,
    /// The time at which its last block began to come, or was whole.
    touched: Time,
}

impl RememberedChannel {
    /// Of a channel whose transfer of so many blocks begins to come.
    pub fn new(source: EndpointId, channel: ChannelId, first: u32, missing: u32) -> RememberedChannel {
        let (base, done, touched) = (first, 0, Time::ZERO);
        RememberedChannel { source, channel, first, base, done, missing, touched }
    }

    /// The channel, whose last block begins to come at `now`.
    pub fn touched(self, now: Time) -> RememberedChannel {
        RememberedChannel { touched: now, ..self }
    }

    /// Whether a block has come, or belongs to a transfer that has ended.
    pub fn has(&self, transaction: u32) -> bool {
        if is_before(transaction, self.base) {
            return true;
        }
        let place = transaction.wrapping_sub(self.base);
        place < 64 && self.done >> place & 1 == 1
    }

    /// Notes that a block has come at `now`; whether it was the last of its transfer.
    pub fn block_done(&mut self, transaction: u32, now: Time) -> bool {
        self.touched = now;
        let place = transaction.wrapping_sub(self.base);
        self.done |= 1u64.checked_shl(place).unwrap_or(0);
        let leading = self.done.trailing_ones();
        self.done = self.done.checked_shr(leading).unwrap_or(0);
        self.base = self.base.wrapping_add(leading);
        self.missing = self.missing.saturating_sub(1);
        self.missing == 0
    }

    fn is_of(&self, (source, channel): (EndpointId, ChannelId)) -> bool {
        (self.source, self.channel) == (source, channel)
    }
}

/// The channels of a set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Set {
    /// At most [`REMEMBERED_WAYS`].
    ways: Vec<RememberedChannel>,
    /// The way that is looked at first when another channel needs one.
    turn: u8,
}

/// All channels that are remembered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RememberedChannels {
    /// All of them, or none before the first channel: an idle unit is small.
    sets: Vec<Set>,
}

impl RememberedChannels {
    /// The state of a channel, if it is remembered.
    #[inline]
    pub fn get(&self, name: (EndpointId, ChannelId)) -> Option<&RememberedChannel> {
        self.sets.get(set_of(name))?.ways.iter().find(|way| way.is_of(name))
    }

    /// See [`get`](Self::get).
    #[inline]
    pub fn get_mut(&mut self, name: (EndpointId, ChannelId)) -> Option<&mut RememberedChannel> {
        self.sets.get_mut(set_of(name))?.ways.iter_mut().find(|way| way.is_of(name))
    }

    /// The way for a channel that is not remembered, where its set has one: the next in turn that is free,
    /// else that of a channel which is silent.
    pub fn way_for(
        &self,
        name: (EndpointId, ChannelId),
        is_silent: impl Fn(EndpointId, ChannelId, Time) -> bool,
    ) -> Option<usize> {
        let Some(Set { ways, turn }) = self.sets.get(set_of(name)) else { return Some(0) };
        let mut in_turn = (0..REMEMBERED_WAYS).map(|place| (usize::from(*turn) + place) % REMEMBERED_WAYS);
        let is_free = |place: &usize| ways.get(*place).is_none_or(|way| way.missing == 0);
        let silent = || ways.iter().position(|way| is_silent(way.source, way.channel, way.touched));
        in_turn.find(is_free).or_else(silent)
    }

    /// Remembers a channel in such a way. Returns the channel that is forgotten for it.
    pub fn put(&mut self, place: usize, channel: RememberedChannel) -> Option<(EndpointId, ChannelId)> {
        self.sets.resize_with(1 << SET_BITS, Set::default);
        let Set { ways, turn } = &mut self.sets[set_of((channel.source, channel.channel))];
        *turn = ((place + 1) % REMEMBERED_WAYS) as u8;
        if place == ways.len() {
            ways.push(channel);
            return None;
        }
        let forgotten = std::mem::replace(&mut ways[place], channel);
        Some((forgotten.source, forgotten.channel))
    }
}

/// The set of a channel. Of channels, of their pages, which have 64, and of sources low numbers are the most
/// in use: the bits of the last two are reversed.
fn set_of((source, channel): (EndpointId, ChannelId)) -> usize {
    let channel = u32::from(channel.0);
    let page_and_source = source.0 ^ source.0 >> SET_BITS ^ channel >> SET_BITS;
    let reversed = page_and_source.reverse_bits() >> (u32::BITS - SET_BITS);
    ((channel ^ reversed) % (1 << SET_BITS)) as usize
}

/// Whether transaction `a` comes before `b`, with numbers that wrap around.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_wrap_around() {
        assert!(is_before(u32::MAX, 0) && is_before(3, 4) && !is_before(4, 4) && !is_before(0, u32::MAX));
    }

    /// Catches channels that crowd in a few sets: as many as the table holds have all of it.
    #[test]
    fn neighbours_fill_all_sets_alike() {
        for (sources, pages, channels) in [(1024, 1, 1), (256, 4, 1), (128, 4, 2), (64, 1, 16), (16, 16, 4)] {
            let mut used: BTreeMap<usize, usize> = BTreeMap::new();
            for name in 0..sources * pages * channels {
                let (source, page, channel) =
                    (name / channels / pages, name / channels % pages, name % channels);
                let id = ChannelId((page * 64 + channel) as u16);
                *used.entry(set_of((EndpointId(source), id))).or_default() += 1;
            }
            assert!(
                used.len() == 64 && used.values().all(|count| *count == REMEMBERED_WAYS),
                "{sources} {used:?}"
            );
        }
    }

    /// Catches a channel that is forgotten before its transfer is whole, or sooner than others of its set.
    #[test]
    fn channels_that_are_whole_make_way_in_turn() {
        let name = |number: u32| (EndpointId(number << 12), ChannelId(3));
        let channel = |number| RememberedChannel::new(name(number).0, name(number).1, 7, 1);
        let mut remembered = RememberedChannels::default();
        let add = |remembered: &mut RememberedChannels, number| {
            let way = remembered.way_for(name(number), |_, _, _| false)?;
            Some(remembered.put(way, channel(number)))
        };
        for number in 0..REMEMBERED_WAYS as u32 {
            assert_eq!(add(&mut remembered, number), Some(None));
        }
        assert_eq!(add(&mut remembered, 90), None);
        // The first two to be whole make way, in the order of their ways.
        for number in [9, 4] {
            assert!(remembered.get_mut(name(number)).unwrap().block_done(7, Time::ZERO));
        }
        assert!(remembered.get(name(9)).unwrap().has(7) && !remembered.get(name(8)).unwrap().has(7));
        assert_eq!(add(&mut remembered, 90), Some(Some(name(4))));
        assert!(remembered.get(name(4)).is_none() && remembered.get(name(9)).is_some());
        assert_eq!(add(&mut remembered, 91), Some(Some(name(9))));
        assert_eq!(add(&mut remembered, 92), None);
        // One that is silent does so where none is whole.
        let way = remembered.way_for(name(92), |source, _, _| source == name(5).0).unwrap();
        assert_eq!(remembered.put(way, channel(92)), Some(name(5)));
    }
}

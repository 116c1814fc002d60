//! Streams of packets whose bus may have several words.

use crate::bus::{Bus, BusWords, side_by_side};
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlPort};

/// Words of a packet, or of memory, that are on a bus in one cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beat {
    /// The cycle.
    pub cycle: u64,
    /// The words.
    pub words: BusWords,
    /// Whether they are the last of their packet.
    pub last: bool,
}

/// A stream of packets: AXI4-Stream.
pub(crate) struct BeatPorts {
    valid: RtlPort,
    ready: RtlPort,
    data: Bus,
    last: RtlPort,
}

/// The beat that a block offers on a stream in a cycle, if it is valid.
pub(crate) struct OfferedBeat {
    pub valid: u128,
    pub words: BusWords,
    pub last: u128,
}

impl BeatPorts {
    /// The stream of this name, with a bus of so many bits.
    pub fn of(rtl: &Instance, name: &str, bits: u32) -> Result<BeatPorts, RtlError> {
        let port = |signal: &str, bits| rtl.port(&format!("{name}_t{signal}"), bits);
        let data = Bus::of_network(port("data", bits)?);
        Ok(BeatPorts { valid: port("valid", 1)?, ready: port("ready", 1)?, data, last: port("last", 1)? })
    }

    /// Offers the block a beat in the next cycle, or none.
    pub fn offer(&self, rtl: &mut Instance, beat: Option<&Beat>) {
        rtl.set(self.valid, beat.is_some().into());
        if let Some(beat) = beat {
            self.data.set(rtl, &beat.words);
            rtl.set(self.last, beat.last.into());
        }
    }

    /// Whether the block takes a beat in the cycle that is over.
    pub fn is_ready(&self, rtl: &Instance) -> bool {
        rtl.get(self.ready) != 0
    }

    /// Whether a beat of the block is taken in the next cycle.
    pub fn set_ready(&self, rtl: &mut Instance, ready: bool) {
        rtl.set(self.ready, ready.into());
    }

    /// The beat that the block offers in the cycle that is over.
    pub fn offered(&self, rtl: &Instance) -> OfferedBeat {
        OfferedBeat { valid: rtl.get(self.valid), words: self.data.get(rtl), last: rtl.get(self.last) }
    }
}

impl OfferedBeat {
    /// Compares it with the beat that is expected in this cycle, by signals of these names.
    ///
    /// # Errors
    /// The signal that differs.
    pub fn compare(
        &self,
        place: &BlockPlace,
        [data, last]: [&'static str; 2],
        expected: &Beat,
    ) -> Result<(), Difference> {
        let Beat { cycle, words, last: is_last } = *expected;
        let mut pairs = self.words.iter().zip(&words);
        pairs.try_for_each(|(found, word)| place.compare(cycle, data, *found, *word))?;
        place.compare(cycle, last, self.last, is_last.into())
    }
}

/// The beats of a packet on a bus of so many words: the first in the cycle `first`, unless it is the last as
/// well, the others such that `behind` is the first cycle without them.
pub(crate) fn beats(words: &[u128], lanes: usize, first: u64, behind: u64) -> Vec<Beat> {
    let buses = side_by_side(words, lanes);
    let count = buses.len() as u64;
    let beat = |(place, words): (u64, BusWords)| {
        let last = place + 1 == count;
        let cycle = if place == 0 && !last { first } else { (behind + place).saturating_sub(count) };
        Beat { cycle, words, last }
    };
    (0..).zip(buses).map(beat).collect()
}

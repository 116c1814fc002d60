//! Energy of a switch or an interface: a power of its own, and an energy for what passes it.
//!
//! ```text
//!   switch      idle × time  +  per_bit × bits, per_packet × packets that it has sent on
//!   interface   idle × time  +  the same for packets that it has sent and that have come to it
//! ```
//! Packets are those that links have carried already, so that nothing more is counted as they go. The energy
//! of the links themselves is in [`link_layer`](crate::LinkPower).
//!
//! # Not modelled
//! Parts that sleep. Bits of a packet are those of its header, payload and footer; a packet that a switch
//! drops takes nothing.
//!
//! # Source
//! Ours: the power of a part is given by what measurements of idle and busy hardware give, a constant and a
//! slope.

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Energy, EnergyPerBit, ExactEnergy, Power, Span};

/// Above this a power is a slip of the unit.
pub const MAX_POWER: Power = Power::from_uw(1_000_000_000_000);

/// Above this an energy of a packet is a slip of the unit.
const MAX_PACKET_ENERGY: Energy = Energy::from_pj(1_000_000_000_000);

weft_keys::keys! {
    /// Power of each switch, or of each interface.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PartPower {
        /// At any time, whatever passes it.
        idle: Power, within(Power::ZERO, MAX_POWER);
        /// Energy on top of that, for each bit of packets that pass; none where not given.
        per_bit: EnergyPerBit = EnergyPerBit::ZERO;
        /// Energy on top of that, for each packet; none where not given.
        per_packet: Energy = Energy::ZERO, within(Energy::ZERO, MAX_PACKET_ENERGY);
    }
}

weft_units::counters! {
    /// Packets that have passed some parts.
    pub struct Passed {
        /// Packets.
        pub packets: u64,
        /// Their header, payload and footer.
        pub bytes: Bytes,
    }
}

impl PartPower {
    /// The energy of one in `time`.
    pub fn energy(&self, time: Span, passed: Passed) -> Energy {
        let packets = ExactEnergy::from(self.per_packet) * passed.packets;
        (self.idle.over(time) + self.per_bit.of(passed.bytes) + packets).rounded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a term that is left out: 2 W for a microsecond, 1,000 B at 5 pJ/b and 10 packets at 20 nJ.
    #[test]
    fn energy_of_a_part_by_hand() {
        let power = PartPower {
            idle: Power::from_uw(2_000_000),
            per_bit: EnergyPerBit::from_fj(5_000),
            per_packet: Energy::from_pj(20_000),
        };
        let passed = Passed { packets: 10, bytes: Bytes::new(1_000) };
        let energy = power.energy(Span::from_us(1), passed);
        assert_eq!(energy, Energy::from_pj(2_000_000 + 40_000 + 200_000));
    }
}

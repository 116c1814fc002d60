//! `[switch.power]` and `[nic.power]`: what each switch and each interface takes.

use super::read::section_of_keys;
use serde::{Deserialize, Serialize};
use weft_fabric::PartPower;

section_of_keys! {
    /// Power of each part of a kind.
    struct RawPartPower {
        keys {
            power: PartPower,
        }
    }
}

/// Power of the parts of a machine that are no links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct MachinePower {
    /// Of each switch; `None`: nothing is known of it.
    pub switch: Option<PartPower>,
    /// Of each interface.
    pub interface: Option<PartPower>,
}

/// The power that a section gives. `None`: a problem was reported; of the inner: there is no section.
pub(super) fn check(raw: Option<&RawPartPower>) -> Option<Option<PartPower>> {
    raw.map_or(Some(None), |raw| raw.power.map(Some))
}

#[cfg(test)]
mod tests {
    use crate::load;
    use weft_fabric::PartPower;
    use weft_units::{Energy, EnergyPerBit, Power};

    const SWITCH: [&str; 3] =
        ["switch.power.idle=90W", "switch.power.per_bit=4pJ/b", "switch.power.per_packet=2nJ"];

    /// Catches a section that comes to the other part, and one that outlives what it belongs to.
    #[test]
    fn each_part_has_its_section() {
        let power = load("bxi3-fattree", &SWITCH).unwrap().power;
        let (idle, per_bit) = (Power::from_uw(90_000_000), EnergyPerBit::from_fj(4_000));
        let switch = PartPower { idle, per_bit, per_packet: Energy::from_pj(2_000) };
        assert_eq!((power.switch, power.interface), (Some(switch), None));
        let both = load("bxi3-fattree", &[&SWITCH[..], &["nic.power.idle=20W"]].concat()).unwrap();
        let (per_bit, per_packet) = (EnergyPerBit::ZERO, Energy::ZERO);
        let interface = PartPower { idle: Power::from_uw(20_000_000), per_bit, per_packet };
        assert_eq!((both.power.switch, both.power.interface), (Some(switch), Some(interface)));
        assert_eq!(both.without_interface().power.interface, None);
    }

    /// Catches slips of a unit that pass, and a section without its power.
    #[test]
    fn slips_are_refused() {
        for (set, title, help) in [
            ("switch.power.idle=9000kW", "`switch.power.idle` of 9000000W is impossible", "at most 1000000W"),
            ("nic.power.idle=20", "not a power", "1.5W"),
            ("nic.power.per_packet=9uW", "not an energy", "20nJ"),
            ("nic.power.per_packet=9000000uJ", "is impossible", "at most"),
            ("switch.power.per_bit=4pJ/b", "idle", "switch.power.idle"),
        ] {
            let sets = [&["nic.power.idle=2W"][..], &[set]].concat();
            let error = load("bxi3-fattree", &sets).unwrap_err().to_string();
            assert!(error.contains(title) && error.contains(help), "{set}: {error}");
        }
    }
}

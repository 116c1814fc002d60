//! Energy in rows and totals.

use serde::{Deserialize, Serialize};
use weft_fabric::PowerReport;
use weft_network::MachineEnergy;
use weft_results::Totals;
use weft_units::{Bytes, Energy};

/// Energy of a machine by its parts, those of which it says the power. Of links it has times in their states,
/// each direction by itself, added up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct EnergyFigures {
    /// Energy of all parts.
    pub total_uj: f64,
    /// Energy of all links; 0 where their power is not known.
    pub links_uj: f64,
    /// Energy of all switches.
    pub switches_uj: f64,
    /// Energy of all interfaces.
    pub interfaces_uj: f64,
    /// Energy of all parts for each bit of messages delivered; `None`: none was.
    pub per_bit_pj: Option<f64>,
    /// Time in which links were active.
    pub active_us: f64,
    /// Time in which they slept.
    pub low_us: f64,
    /// Time in which they were off.
    pub off_us: f64,
    /// Time in which they woke.
    pub waking_us: f64,
    /// Wake-ups.
    pub wake_ups: u64,
}

impl EnergyFigures {
    /// The figures of a run that has delivered so many bytes of messages; `None`: the machine says nothing of
    /// its power.
    pub(crate) fn of(energy: &MachineEnergy, delivered: Bytes) -> Option<EnergyFigures> {
        let total = energy.total()?;
        let PowerReport { active, low, off, waking, wake_ups, energy: of_links } =
            energy.links.unwrap_or_default();
        let bits = delivered.bits();
        Some(EnergyFigures {
            total_uj: total.as_uj_f64(),
            links_uj: of_links.as_uj_f64(),
            switches_uj: energy.switches.map_or(0.0, Energy::as_uj_f64),
            interfaces_uj: energy.interfaces.map_or(0.0, Energy::as_uj_f64),
            per_bit_pj: (bits > 0).then(|| total.as_pj() as f64 / bits as f64),
            active_us: active.as_us_f64(),
            low_us: low.as_us_f64(),
            off_us: off.as_us_f64(),
            waking_us: waking.as_us_f64(),
            wake_ups,
        })
    }
}

/// Adds the energy of a run to the totals.
pub(super) fn add(totals: &mut Totals, energy: &MachineEnergy) {
    let links = energy.links.unwrap_or_default();
    totals.energy += energy.total().unwrap_or_default();
    totals.links_energy += links.energy;
    totals.switches_energy += energy.switches.unwrap_or_default();
    totals.interfaces_energy += energy.interfaces.unwrap_or_default();
    totals.low_power += links.low;
    totals.power_off += links.off;
    totals.waking += links.waking;
    totals.wake_ups += links.wake_ups;
}

//! The energy of a machine in one line.

use weft_sim::experiment::EnergyFigures;

/// `energy 60.8 mJ (links 54.6, switches 6.2): 1,140 pJ per delivered bit; links woke 17 times`.
pub fn line(energy: &EnergyFigures) -> String {
    let EnergyFigures { total_uj, links_uj, switches_uj, interfaces_uj, per_bit_pj, wake_ups, .. } = *energy;
    let (unit, name) = if total_uj >= 1e6 { (1e6, "J") } else { (1e3, "mJ") };
    let parts = [("links", links_uj), ("switches", switches_uj), ("interfaces", interfaces_uj)];
    let known = parts.iter().filter(|(_, uj)| *uj > 0.0);
    let parts: Vec<String> = known.map(|(part, uj)| format!("{part} {:.3}", uj / unit)).collect();
    let mut text = format!("energy {:.3} {name} ({})", total_uj / unit, parts.join(", "));
    if let Some(pj) = per_bit_pj {
        text += &format!(": {pj:.0} pJ per delivered bit");
    }
    match wake_ups {
        0 => text,
        times => format!("{text}; links woke {times} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a unit that does not fit its number, and parts of which nothing is known.
    #[test]
    fn lines_by_hand() {
        let energy = EnergyFigures {
            total_uj: 60_000.0,
            links_uj: 54_500.0,
            switches_uj: 5_500.0,
            per_bit_pj: Some(1_139.6),
            wake_ups: 17,
            ..EnergyFigures::default()
        };
        let expected =
            "energy 60.000 mJ (links 54.500, switches 5.500): 1140 pJ per delivered bit; links woke 17 times";
        assert_eq!(line(&energy), expected);
        let idle = EnergyFigures { total_uj: 2e6, interfaces_uj: 2e6, ..EnergyFigures::default() };
        assert_eq!(line(&idle), "energy 2.000 J (interfaces 2.000)");
    }
}

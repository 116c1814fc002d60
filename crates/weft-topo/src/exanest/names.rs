//! Names of the rack: `M1QAF1` for the MPSoC F1 of QFDB A of mezzanine 1, `router of M1QA` for a router.

use super::{Exanest, MPSOCS, QFDBS, Role};
use crate::names::{self, UnknownEndpoint};
use crate::traits::Topology;
use weft_units::{EndpointId, SwitchId};

/// The name of an endpoint, such as `M1QAF1`: mezzanine, QFDB, MPSoC.
pub(super) fn endpoint_name(endpoint: EndpointId) -> String {
    let qfdb = endpoint.0 / MPSOCS;
    let letter = char::from(b'A' + (qfdb % QFDBS) as u8);
    format!("M{}Q{letter}F{}", qfdb / QFDBS + 1, endpoint.0 % MPSOCS + 1)
}

/// The endpoint of a name.
///
/// # Errors
/// Where no endpoint has this name; the error carries the nearest that exists.
pub(super) fn endpoint(rack: &Exanest, name: &str) -> Result<EndpointId, UnknownEndpoint> {
    let parse = || {
        let (mezzanine, rest) = name.strip_prefix('M')?.split_once('Q')?;
        let (qfdb, mpsoc) = rest.split_once('F')?;
        let mezzanine: u32 = mezzanine.parse().ok()?;
        let qfdb = ["A", "B", "C", "D"].iter().position(|letter| *letter == qfdb)? as u32;
        let mpsoc: u32 = mpsoc.parse().ok().filter(|mpsoc| (1..=MPSOCS).contains(mpsoc))?;
        let known = (1..=rack.mezzanines()).contains(&mezzanine);
        known.then(|| EndpointId(((mezzanine - 1) * QFDBS + qfdb) * MPSOCS + mpsoc - 1))
    };
    parse().filter(|&endpoint| endpoint_name(endpoint) == name).ok_or_else(|| UnknownEndpoint {
        name: name.to_owned(),
        first: endpoint_name(EndpointId(0)),
        last: endpoint_name(EndpointId(rack.endpoints() - 1)),
        near: nearest_name(rack, name),
    })
}

/// The name that is reached from `name` by the fewest edits, whatever its case, among those of the
/// mezzanine of its first number and the first and last mezzanine.
fn nearest_name(rack: &Exanest, name: &str) -> String {
    let written = name.trim().to_uppercase();
    let number = written.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    let number = number.map_or(1, |digits| digits.parse().unwrap_or(u32::MAX));
    let last = rack.mezzanines();
    let endpoints = [number.clamp(1, last), 1, last].into_iter().flat_map(|mezzanine| {
        let first = (mezzanine - 1) * QFDBS * MPSOCS;
        first..first + QFDBS * MPSOCS
    });
    let names = endpoints.map(|endpoint| endpoint_name(EndpointId(endpoint)));
    weft_keys::fewest_edits(&written, names).expect("three mezzanines have names")
}

/// The name of a switch: `router of M1QA`, or after its endpoint, such as `switch of M1QAF1`.
pub(super) fn switch_name(rack: &Exanest, switch: SwitchId) -> String {
    match Exanest::role(switch) {
        (qfdb, Role::Router) => {
            let f1 = endpoint_name(EndpointId(qfdb.0 * MPSOCS));
            format!("router of {}", f1.trim_end_matches("F1"))
        }
        (_, Role::Mpsoc(_)) => names::switch_name(rack, switch),
    }
}

/// The switch of a name, or of a number as in `switch 7`.
pub(super) fn switch(rack: &Exanest, name: &str) -> Option<SwitchId> {
    let Some(qfdb) = name.strip_prefix("router of ") else { return names::switch(rack, name) };
    let f1 = endpoint(rack, &format!("{qfdb}F1")).ok()?;
    Some(Exanest::router(SwitchId(f1.0 / MPSOCS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let machine = Exanest::new(12).unwrap();
        for endpoint in (0..machine.endpoints()).map(EndpointId) {
            assert_eq!(machine.endpoint(&machine.endpoint_name(endpoint)), Ok(endpoint));
        }
        let near = |name| machine.endpoint(name).unwrap_err().near;
        assert_eq!(near("m1qbf1"), "M1QBF1");
        assert_eq!(near("M1QBF"), "M1QBF1");
        assert_eq!(near("M12QF4"), "M12QAF4");
        assert_eq!(near("M13QBF2"), "M12QBF2");
        assert_eq!(
            machine.endpoint("M1QEF1").unwrap_err().to_string(),
            "no endpoint is called `M1QEF1`; they are M1QAF1 to M12QDF4, the nearest is M1QAF1"
        );
        for wrong in ["", "M0QAF1", "M13QAF1", "M1QEF1", "M1QAF5", "M01QAF1", "M+1QAF1", "MQF", "M1QAF1 "] {
            assert!(machine.endpoint(wrong).is_err(), "{wrong} was read");
        }
    }

    /// Catches names that lead to another switch than the one that has them.
    #[test]
    fn switches_are_found_by_their_names() {
        let rack = Exanest::new(2).unwrap();

        for switch in (0..rack.switches()).map(SwitchId) {
            assert_eq!(rack.switch(&rack.switch_name(switch)), Some(switch));
            assert_eq!(rack.switch(&format!("switch {switch}")), Some(switch));
        }
        assert_eq!(rack.switch_name(SwitchId(9)), "router of M1QB");
        assert_eq!(rack.switch_name(SwitchId(6)), "switch of M1QBF2");
        for wrong in ["router of M3QA", "router of M1QAF1", "switch of M1QAF5", "switch -1", "M1QAF1"] {
            assert_eq!(rack.switch(wrong), None, "{wrong}");
        }
    }
}

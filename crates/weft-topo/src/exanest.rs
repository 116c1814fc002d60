//! The ExaNeSt rack: MPSoCs in QFDBs, QFDBs in mezzanines, mezzanines in a three-dimensional torus.
//!
//! ```text
//!   QFDB: four MPSoCs, all-to-all        mezzanine: X ring of its four QFDBs
//!     F1 --- F2                            QA -- QB -- QC -- QD
//!      | \ / |                             '-----------------'
//!      | / \ |                           Y: the QFDBs of one letter in four mezzanines, a ring
//!     F3 --- F4                          Z: the QFDBs of one letter and Y place, a single link
//!     |                                     between two groups of four mezzanines
//!     '-- X, Y, Z links: only F1, the network MPSoC, has them
//! ```
//! Every MPSoC is an endpoint and a switch of the same number: 16·mezzanine + 4·QFDB + MPSoC, counted
//! from 0. Ports: 0 the endpoint, 1 to 3 the other MPSoCs of the QFDB in their order, and at F1 then
//! X up, X down, Y up, Y down, Z up, Z down.
//!
//! # Source
//! TR-488 §3, §4.1 and Table 1. Where the text is silent, ours: mezzanines 1 to 4 form one Y ring, 5 to 8
//! the other, and Mi and Mi+4 are Z partners; the rack of twelve is the sub-system of eight and a
//! separate one of four, which no link joins; up to four mezzanines form one Y ring; more than twelve
//! close Z into a ring of groups of four.

use crate::names::UnknownEndpoint;
use crate::size::SizeError;
use crate::torus::{Dimension, Torus};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_units::{EndpointId, PortId, SwitchId};

/// MPSoCs of a QFDB.
pub(crate) const MPSOCS: u32 = 4;
/// QFDBs of a mezzanine.
const QFDBS: u32 = 4;
/// Mezzanines of a Y ring.
const Y_RING: u64 = 4;
/// Mezzanines of the rack as built, in two sub-systems.
const RACK: u64 = 12;
/// Mezzanines of its sub-systems.
const RACK_SUBSYSTEMS: [u64; 2] = [8, 4];

/// The torus of the QFDBs of so many mezzanines.
fn torus(mezzanines: u64, z_wraps: bool) -> Result<Torus, SizeError> {
    let x = Dimension { size: u64::from(QFDBS), wrap: true };
    let y = Dimension { size: mezzanines.min(Y_RING), wrap: true };
    let z = Dimension { size: mezzanines.div_ceil(Y_RING), wrap: z_wraps };
    Torus::new(&[x, y, z], u64::from(MPSOCS))
}

/// An ExaNeSt machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exanest {
    /// Its QFDBs; the endpoints of this torus's switches stand for the MPSoCs.
    qfdbs: Torus,
    /// Endpoints of the first sub-system: all of them, or in the rack those of the first two places along
    /// Z, to which the third is not joined.
    first_subsystem: u32,
}

impl Exanest {
    /// A machine of so many mezzanines; 8 is the sub-system of the evaluation, 12 the whole rack.
    ///
    /// # Errors
    /// Where the number is zero, does not fill Y rings, or exceeds the limit on endpoints.
    pub fn new(mezzanines: u64) -> Result<Exanest, SizeError> {
        if mezzanines == 0 || mezzanines > Y_RING && !mezzanines.is_multiple_of(Y_RING) {
            return Err(SizeError::Mezzanines(mezzanines));
        }
        let rack = mezzanines == RACK;
        let qfdbs = torus(mezzanines, !rack)?;
        let first_subsystem = if rack { torus(RACK_SUBSYSTEMS[0], true)? } else { qfdbs.clone() }.endpoints();
        Ok(Exanest { qfdbs, first_subsystem })
    }

    /// Number of mezzanines.
    pub fn mezzanines(&self) -> u32 {
        self.qfdbs.switches() / QFDBS
    }

    /// The torus of QFDBs, four endpoints each. In the rack of twelve its third place along Z is a
    /// sub-system of its own.
    #[inline]
    pub(crate) fn qfdbs(&self) -> &Torus {
        &self.qfdbs
    }

    /// The torus of QFDBs of each sub-system, the largest first.
    pub(crate) fn subsystems(&self) -> Vec<Torus> {
        match self.first_subsystem == self.endpoints() {
            true => vec![self.qfdbs.clone()],
            false => RACK_SUBSYSTEMS
                .map(|mezzanines| torus(mezzanines, true).expect("parts of the rack are small enough"))
                .to_vec(),
        }
    }

    /// The port by which one MPSoC of a QFDB reaches another.
    #[inline]
    pub(crate) fn mpsoc_port(from: u32, to: u32) -> PortId {
        PortId(if to < from { to + 1 } else { to })
    }

    /// The MPSoC of a switch in its QFDB; 0 is F1.
    #[inline]
    pub(crate) fn mpsoc(switch: SwitchId) -> u32 {
        switch.0 % MPSOCS
    }

    /// The kinds of links on the way from one endpoint to another; none where there is no way.
    pub fn path(&self, from: EndpointId, to: EndpointId) -> Option<ExanestPath> {
        if !self.reachable(from, to) {
            return None;
        }
        let address = |endpoint| self.qfdbs.endpoint_address(endpoint);
        let hops: Vec<u32> = self
            .qfdbs
            .axes()
            .iter()
            .map(|axis| {
                let apart = axis.coordinate(address(from)).abs_diff(axis.coordinate(address(to)));
                if axis.wraps { apart.min(axis.size - apart) } else { apart }
            })
            .collect();
        let outside_f1 = |endpoint: EndpointId| u32::from(!endpoint.0.is_multiple_of(MPSOCS));
        let intra_qfdb = match from.0 / MPSOCS == to.0 / MPSOCS {
            true => u32::from(from != to),
            false => outside_f1(from) + outside_f1(to),
        };
        Some(ExanestPath { inter_mezzanine: hops[1] + hops[2], intra_mezzanine: hops[0], intra_qfdb })
    }

    /// The name of an endpoint, such as `M1QAF1`: mezzanine, QFDB, MPSoC.
    pub fn name(&self, endpoint: EndpointId) -> String {
        let qfdb = endpoint.0 / MPSOCS;
        let letter = char::from(b'A' + (qfdb % QFDBS) as u8);
        format!("M{}Q{letter}F{}", qfdb / QFDBS + 1, endpoint.0 % MPSOCS + 1)
    }

    /// The endpoint of a name.
    ///
    /// # Errors
    /// Where no endpoint has this name; the error carries the nearest that exists.
    pub fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        let parse = || {
            let (mezzanine, rest) = name.strip_prefix('M')?.split_once('Q')?;
            let (qfdb, mpsoc) = rest.split_once('F')?;
            let mezzanine: u32 = mezzanine.parse().ok()?;
            let qfdb = ["A", "B", "C", "D"].iter().position(|letter| *letter == qfdb)? as u32;
            let mpsoc: u32 = mpsoc.parse().ok().filter(|mpsoc| (1..=MPSOCS).contains(mpsoc))?;
            let known = (1..=self.mezzanines()).contains(&mezzanine);
            known.then(|| EndpointId(((mezzanine - 1) * QFDBS + qfdb) * MPSOCS + mpsoc - 1))
        };
        parse().filter(|&endpoint| self.name(endpoint) == name).ok_or_else(|| UnknownEndpoint {
            name: name.to_owned(),
            first: self.name(EndpointId(0)),
            last: self.name(EndpointId(self.endpoints() - 1)),
            near: self.nearest_name(name),
        })
    }

    /// The name that is reached from `name` by the fewest edits, whatever its case, among those of the
    /// mezzanine of its first number and the first and last mezzanine.
    fn nearest_name(&self, name: &str) -> String {
        let written = name.trim().to_uppercase();
        let number = written.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
        let number = number.map_or(1, |digits| digits.parse().unwrap_or(u32::MAX));
        let last = self.mezzanines();
        let endpoints = [number.clamp(1, last), 1, last].into_iter().flat_map(|mezzanine| {
            let first = (mezzanine - 1) * QFDBS * MPSOCS;
            first..first + QFDBS * MPSOCS
        });
        let names = endpoints.map(|endpoint| self.name(EndpointId(endpoint)));
        names.min_by_key(|near| strsim::osa_distance(&written, near)).expect("three mezzanines have names")
    }
}

/// The links of a path by kind: the rows of TR-488, Table 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanestPath {
    /// Links between mezzanines (10 Gb/s): Y and Z.
    pub inter_mezzanine: u32,
    /// Links between QFDBs of a mezzanine (10 Gb/s): X.
    pub intra_mezzanine: u32,
    /// Links inside QFDBs (16 Gb/s).
    pub intra_qfdb: u32,
}

impl ExanestPath {
    /// Table 1's number of hops: links between MPSoCs.
    pub fn hops(&self) -> u32 {
        self.inter_mezzanine + self.intra_mezzanine + self.intra_qfdb
    }
}

impl fmt::Display for ExanestPath {
    /// The type of path as in Table 1, and `Intra-FPGA` as in Table 2.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExanestPath { inter_mezzanine: i, intra_mezzanine: j, intra_qfdb: k } = self;
        match (i, j, self.hops()) {
            (0, 0, 0) => write!(f, "Intra-FPGA"),
            (0, 0, _) => write!(f, "Intra-QFDB-sh"),
            (0, _, 1) => write!(f, "Intra-mezz-sh"),
            (0, _, hops) => write!(f, "Intra-mezz-mh({hops})"),
            _ => write!(f, "Inter-mezz({i},{j},{k})"),
        }
    }
}

impl Topology for Exanest {
    fn endpoints(&self) -> u32 {
        self.qfdbs.endpoints()
    }

    fn switches(&self) -> u32 {
        self.qfdbs.endpoints()
    }

    fn ports(&self, switch: SwitchId) -> u32 {
        if Exanest::mpsoc(switch) == 0 { self.qfdbs.ports(switch) } else { MPSOCS }
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let (qfdb, here) = (switch.0 / MPSOCS, Exanest::mpsoc(switch));
        if port.0 == 0 {
            return Attachment::Endpoint(EndpointId(switch.0));
        }
        if port.0 < MPSOCS {
            let there = if port.0 <= here { port.0 - 1 } else { port.0 };
            return Attachment::Switch(SwitchId(qfdb * MPSOCS + there), Exanest::mpsoc_port(there, here));
        }
        match self.qfdbs.peer(SwitchId(qfdb), port) {
            Attachment::Switch(other, back) => {
                let f1 = EndpointId(other.0 * MPSOCS);
                match self.reachable(EndpointId(switch.0), f1) {
                    true => Attachment::Switch(SwitchId(f1.0), back),
                    false => Attachment::Nothing,
                }
            }
            other => other,
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(endpoint.0), PortId(0))
    }

    #[inline]
    fn link_class(&self, _switch: SwitchId, port: PortId) -> LinkClass {
        match port.0 {
            0 => LinkClass(0),
            1..MPSOCS => LinkClass(1),
            links => LinkClass(2 + ((links - MPSOCS) / 2) as u8),
        }
    }

    fn link_classes(&self) -> &'static [&'static str] {
        &["endpoint", "qfdb", "x", "y", "z"]
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        self.qfdbs.endpoint_address(EndpointId(switch.0))
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        self.qfdbs.endpoint_address(endpoint)
    }

    fn reachable(&self, from: EndpointId, to: EndpointId) -> bool {
        (from.0 < self.first_subsystem) == (to.0 < self.first_subsystem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_of_the_report() {
        // TR-488 §4.1: 8 blades of 4 QFDBs of 4 MPSoCs; §1: 12 blades aggregate 192.
        assert_eq!(Exanest::new(8).unwrap().endpoints(), 128);
        assert_eq!(Exanest::new(8).unwrap().qfdbs().sizes(), [4, 4, 2]);
        let rack = Exanest::new(12).unwrap();
        let qfdbs: Vec<_> = rack.subsystems().iter().map(Topology::switches).collect();
        assert_eq!((rack.endpoints(), qfdbs), (192, vec![32, 16]));
        let endpoint = |name| rack.endpoint(name).unwrap();
        assert!(rack.reachable(endpoint("M9QAF1"), endpoint("M12QDF4")));
        assert!(!rack.reachable(endpoint("M8QDF4"), endpoint("M9QAF1")));
        assert_eq!(rack.path(endpoint("M5QAF1"), endpoint("M9QAF1")), None);
    }

    #[test]
    fn z_joins_partners_by_one_link() {
        let machine = Exanest::new(8).unwrap();
        let (m1, m5) = (machine.endpoint("M1QCF1").unwrap(), machine.endpoint("M5QCF1").unwrap());
        let up = Attachment::Switch(SwitchId(m5.0), PortId(9));
        assert_eq!(machine.peer(SwitchId(m1.0), PortId(8)), up);
        assert_eq!(machine.peer(SwitchId(m1.0), PortId(9)), Attachment::Nothing);
    }

    #[test]
    fn the_path_classes_of_table_1() {
        let machine = Exanest::new(8).unwrap();
        let path =
            |from, to| machine.path(machine.endpoint(from).unwrap(), machine.endpoint(to).unwrap()).unwrap();
        let row = |from, to| (path(from, to).to_string(), path(from, to).hops());
        assert_eq!(row("M1QAF1", "M1QAF2"), ("Intra-QFDB-sh".to_owned(), 1));
        assert_eq!(row("M1QAF1", "M1QBF1"), ("Intra-mezz-sh".to_owned(), 1));
        assert_eq!(row("M1QAF1", "M1QBF2"), ("Intra-mezz-mh(2)".to_owned(), 2));
        assert_eq!(row("M1QAF2", "M1QBF3"), ("Intra-mezz-mh(3)".to_owned(), 3));
        assert_eq!(row("M1QAF1", "M2QAF1"), ("Inter-mezz(1,0,0)".to_owned(), 1));
        // The longest measured: Y half-way round and Z, one X link, and both ends beside F1.
        assert_eq!(row("M1QAF2", "M7QBF2"), ("Inter-mezz(3,1,2)".to_owned(), 6));
        assert_eq!(row("M1QAF1", "M1QAF1"), ("Intra-FPGA".to_owned(), 0));
    }

    #[test]
    fn names_are_read_and_written() {
        let machine = Exanest::new(12).unwrap();
        for endpoint in (0..machine.endpoints()).map(EndpointId) {
            assert_eq!(machine.endpoint(&machine.name(endpoint)), Ok(endpoint));
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

    #[test]
    fn impossible_sizes_are_refused() {
        let text = |mezzanines| Exanest::new(mezzanines).unwrap_err().to_string();
        assert_eq!(text(0), "0 mezzanines do not fill Y rings of four; take 1 to 4 or a multiple of 4");
        assert!(text(6).starts_with("6 mezzanines"));
        assert!(text(1_000_000_000_000).contains("the limit is"));
    }
}

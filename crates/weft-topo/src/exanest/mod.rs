//! The ExaNeSt rack: MPSoCs in QFDBs, QFDBs in mezzanines, mezzanines in a three-dimensional torus.
//!
//! ```text
//!   QFDB: four MPSoCs, all-to-all        mezzanine: X ring of its four QFDBs
//!     F1 --- F2                            QA -- QB -- QC -- QD
//!      | \ / |                             '-----------------'
//!      | / \ |                           Y: the QFDBs of one letter in four mezzanines, a ring
//!     F3 --- F4                          Z: the QFDBs of one letter and Y place, a single link
//!                                           between two groups of four mezzanines
//!   F1 alone, the network MPSoC, is joined to the Network Router of its QFDB; X, Y and Z links join
//!   routers. Both are in F1's FPGA:
//!
//!     network interface == F1's switch == Network Router == X up, X down, Y up, Y down, Z up, Z down
//!                            | | |
//!                        F2, F3, F4
//! ```
//! Every MPSoC is an endpoint, 16·mezzanine + 4·QFDB + MPSoC, counted from 0. Every QFDB has five
//! switches: those of its MPSoCs and its router, 5·(4·mezzanine + QFDB) + 0 to 4. Ports of an MPSoC's
//! switch: 0 the endpoint, 1 to 3 the other MPSoCs of the QFDB in their order, and at F1 then 4, the
//! router. Ports of a router: 0 F1's switch, then X up, X down, Y up, Y down, Z up, Z down.
//!
//! # Source
//! TR-488 §3, §4.1, §4.2 (a small input-queued switch in every FPGA; the network FPGA additionally has a
//! Network Router with the connections to remote QFDBs) and Table 1. Where the text is silent, ours:
//! mezzanines 1 to 4 form one Y ring, 5 to 8 the other, and Mi and Mi+4 are Z partners; the rack of twelve is
//! the sub-system of eight and a separate one of four, which no link joins; up to four mezzanines form one Y
//! ring; more than twelve close Z into a ring of groups of four.

mod figures;
mod names;
mod parameters;
mod routing;

pub use parameters::{ExanestParameters, ExanestRouting};
pub use routing::ExanestOrder;

use crate::names::UnknownEndpoint;
use crate::pattern::Shape;
use crate::size::{SizeError, check_counts};
use crate::torus::{Dimension, Torus};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_units::{EndpointId, PortId, SwitchId};

/// MPSoCs of a QFDB.
pub(crate) const MPSOCS: u32 = 4;
/// Switches of a QFDB: those of its MPSoCs, then its router.
pub(crate) const SWITCHES: u32 = MPSOCS + 1;
/// Which of them is the router.
const ROUTER: u32 = MPSOCS;
/// Ports of a QFDB: four at each MPSoC, one more at F1, and the router's seven.
const PORTS: u32 = MPSOCS * MPSOCS + 1 + 7;
/// Bits of an address that say which switch of the QFDB; those above are the QFDB's in the torus.
const PLACE_BITS: u32 = SWITCHES.next_power_of_two().ilog2();
/// QFDBs of a mezzanine.
const QFDBS: u32 = 4;
/// Mezzanines of a Y ring.
const Y_RING: u64 = 4;
/// Mezzanines of the rack as built, in two sub-systems.
const RACK: u64 = 12;
/// Mezzanines of its sub-systems.
const RACK_SUBSYSTEMS: [u64; 2] = [8, 4];

/// The torus of the QFDBs of so many mezzanines, with so many endpoints at each.
fn torus(mezzanines: u64, z_wraps: bool, concentration: u32) -> Result<Torus, SizeError> {
    let x = Dimension { size: u64::from(QFDBS), wrap: true };
    let y = Dimension { size: mezzanines.min(Y_RING), wrap: true };
    let z = Dimension { size: mezzanines.div_ceil(Y_RING), wrap: z_wraps };
    Torus::new(&[x, y, z], u64::from(concentration))
}

/// A switch of the machine by its role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The switch of an MPSoC; 0 is F1.
    Mpsoc(u32),
    /// The Network Router of the QFDB, which is a switch of the torus.
    Router,
}

/// An ExaNeSt machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Exanest {
    /// The routers, a torus; the one endpoint of each of its switches stands for F1's switch.
    routers: Torus,
    /// QFDBs of the first sub-system: all of them, or in the rack those of the first two places along Z,
    /// to which the third is not joined.
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
        // The limits are on all endpoints and switches, of which the torus of the routers has only some.
        check_counts(
            u128::from(mezzanines) * u128::from(QFDBS * MPSOCS),
            u128::from(mezzanines) * u128::from(QFDBS * SWITCHES),
            u128::from(mezzanines) * u128::from(QFDBS * PORTS),
        )?;
        let routers = torus(mezzanines, !rack, 1)?;
        let first = if rack { torus(RACK_SUBSYSTEMS[0], true, 1)? } else { routers.clone() };
        Ok(Exanest { first_subsystem: first.switches(), routers })
    }

    /// F1's port towards the router.
    pub(crate) const TO_ROUTER: PortId = PortId(MPSOCS);
    /// The router's port towards F1.
    pub(crate) const TO_F1: PortId = PortId(0);

    /// Number of mezzanines.
    pub fn mezzanines(&self) -> u32 {
        self.routers.switches() / QFDBS
    }

    /// The torus of the routers, one for each QFDB; the one endpoint of each is F1's switch. In the rack of
    /// twelve its third place along Z is a sub-system of its own.
    #[inline]
    pub(crate) fn routers(&self) -> &Torus {
        &self.routers
    }

    /// The QFDBs of each sub-system as a torus with four endpoints each, the largest first.
    pub(crate) fn subsystems(&self) -> Vec<Torus> {
        let whole = self.first_subsystem == self.routers.switches();
        let mezzanines = if whole { vec![u64::from(self.mezzanines())] } else { RACK_SUBSYSTEMS.to_vec() };
        let part = |mezzanines| torus(mezzanines, true, MPSOCS).expect("no larger than the machine");
        mezzanines.into_iter().map(part).collect()
    }

    /// The port by which one MPSoC of a QFDB reaches another.
    #[inline]
    pub(crate) fn mpsoc_port(from: u32, to: u32) -> PortId {
        PortId(if to < from { to + 1 } else { to })
    }

    /// The QFDB of a switch, and what the switch is in it.
    #[inline]
    pub(crate) fn role(switch: SwitchId) -> (SwitchId, Role) {
        let role = match switch.0 % SWITCHES {
            ROUTER => Role::Router,
            mpsoc => Role::Mpsoc(mpsoc),
        };
        (SwitchId(switch.0 / SWITCHES), role)
    }

    /// The switch of an MPSoC of a QFDB.
    #[inline]
    pub(crate) fn mpsoc(qfdb: SwitchId, mpsoc: u32) -> SwitchId {
        SwitchId(qfdb.0 * SWITCHES + mpsoc)
    }

    /// The Network Router of a QFDB.
    #[inline]
    pub(crate) fn router(qfdb: SwitchId) -> SwitchId {
        SwitchId(qfdb.0 * SWITCHES + ROUTER)
    }

    /// The place of an address in its QFDB: an MPSoC, or the router.
    #[inline]
    pub(crate) fn place(address: Address) -> Role {
        match (address.0 & ((1 << PLACE_BITS) - 1)) as u32 {
            ROUTER => Role::Router,
            mpsoc => Role::Mpsoc(mpsoc),
        }
    }

    /// The address of the QFDB in the torus.
    #[inline]
    pub(crate) fn in_torus(address: Address) -> Address {
        Address(address.0 >> PLACE_BITS)
    }

    /// Whether two QFDBs are of one sub-system.
    fn joined(&self, one: SwitchId, other: SwitchId) -> bool {
        (one.0 < self.first_subsystem) == (other.0 < self.first_subsystem)
    }

    /// The kinds of links on the way from one endpoint to another, as Table 1 counts them: serial (HSS)
    /// links, without those inside F1 to its router. None where there is no way.
    pub fn path(&self, from: EndpointId, to: EndpointId) -> Option<ExanestPath> {
        if !self.reachable(from, to) {
            return None;
        }
        let address = |endpoint| Exanest::in_torus(self.endpoint_address(endpoint));
        let hops: Vec<u32> = self
            .routers
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
    /// Table 1's number of hops: serial links between MPSoCs.
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
    /// Mezzanine and QFDB.
    fn parts_of(&self, EndpointId(endpoint): EndpointId) -> [u32; 2] {
        [endpoint / (QFDBS * MPSOCS), endpoint / MPSOCS]
    }

    fn endpoints(&self) -> u32 {
        self.routers.switches() * MPSOCS
    }

    fn switches(&self) -> u32 {
        self.routers.switches() * SWITCHES
    }

    fn ports(&self, switch: SwitchId) -> u32 {
        match Exanest::role(switch) {
            (qfdb, Role::Router) => self.routers.ports(qfdb),
            (_, Role::Mpsoc(0)) => MPSOCS + 1,
            (_, Role::Mpsoc(_)) => MPSOCS,
        }
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        match Exanest::role(switch) {
            (qfdb, Role::Router) => match self.routers.peer(qfdb, port) {
                Attachment::Endpoint(_) => Attachment::Switch(Exanest::mpsoc(qfdb, 0), Exanest::TO_ROUTER),
                Attachment::Switch(other, back) if self.joined(qfdb, other) => {
                    Attachment::Switch(Exanest::router(other), back)
                }
                Attachment::Switch(..) | Attachment::Nothing => Attachment::Nothing,
            },
            (qfdb, Role::Mpsoc(here)) => match port {
                PortId(0) => Attachment::Endpoint(EndpointId(qfdb.0 * MPSOCS + here)),
                Exanest::TO_ROUTER => Attachment::Switch(Exanest::router(qfdb), Exanest::TO_F1),
                PortId(port) => {
                    let there = if port <= here { port - 1 } else { port };
                    Attachment::Switch(Exanest::mpsoc(qfdb, there), Exanest::mpsoc_port(there, here))
                }
            },
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        let (qfdb, mpsoc) = (SwitchId(endpoint.0 / MPSOCS), endpoint.0 % MPSOCS);
        (Exanest::mpsoc(qfdb, mpsoc), PortId(0))
    }

    #[inline]
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        LinkClass(match (Exanest::role(switch).1, port) {
            (Role::Mpsoc(_), PortId(0)) => 0,
            (Role::Mpsoc(0), Exanest::TO_ROUTER) | (Role::Router, Exanest::TO_F1) => 2,
            (Role::Mpsoc(_), _) => 1,
            (Role::Router, PortId(link)) => 3 + ((link - 1) / 2) as u8,
        })
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "qfdb", "router", "x", "y", "z"]
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let (qfdb, place) = (SwitchId(switch.0 / SWITCHES), switch.0 % SWITCHES);
        Address(self.routers.switch_address(qfdb).0 << PLACE_BITS | u64::from(place))
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        self.switch_address(self.attachment(endpoint).0)
    }

    fn reachable(&self, from: EndpointId, to: EndpointId) -> bool {
        self.joined(SwitchId(from.0 / MPSOCS), SwitchId(to.0 / MPSOCS))
    }

    /// The dimensions of the larger sub-system.
    fn shape(&self) -> Shape {
        let subsystems = self.subsystems();
        let torus = &subsystems[0];
        // Z is left out where it joins sub-systems of different size; it has two places there,
        // and tornado does not move along a ring of two.
        let dimensions = if subsystems.len() > 1 { 2 } else { 3 };
        Shape { concentration: torus.concentration(), sizes: torus.sizes()[..dimensions].to_vec() }
    }

    fn endpoint_name(&self, endpoint: EndpointId) -> String {
        names::endpoint_name(endpoint)
    }

    /// As in TR-488, Table 1.
    fn path_kind(&self, from: EndpointId, to: EndpointId) -> Option<String> {
        self.path(from, to).map(|path| path.to_string())
    }

    fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        names::endpoint(self, name)
    }

    fn switch_name(&self, switch: SwitchId) -> String {
        names::switch_name(self, switch)
    }

    fn switch(&self, name: &str) -> Option<SwitchId> {
        names::switch(self, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::idle_path;

    #[test]
    fn the_machines_of_the_report() {
        // TR-488 §4.1: 8 blades of 4 QFDBs of 4 MPSoCs; §1: 12 blades aggregate 192.
        assert_eq!(Exanest::new(8).unwrap().endpoints(), 128);
        assert_eq!(Exanest::new(8).unwrap().routers().sizes(), [4, 4, 2]);
        let rack = Exanest::new(12).unwrap();
        let qfdbs: Vec<_> = rack.subsystems().iter().map(Topology::switches).collect();
        assert_eq!((rack.endpoints(), qfdbs), (192, vec![32, 16]));
        let endpoint = |name| rack.endpoint(name).unwrap();
        assert!(rack.reachable(endpoint("M9QAF1"), endpoint("M12QDF4")));
        assert!(!rack.reachable(endpoint("M8QDF4"), endpoint("M9QAF1")));
        assert_eq!(rack.path(endpoint("M5QAF1"), endpoint("M9QAF1")), None);
    }

    /// Catches links that hang on another switch than the router of their QFDB.
    #[test]
    fn routers_have_the_links_between_qfdbs() {
        let machine = Exanest::new(8).unwrap();
        let qfdb = |name| SwitchId(machine.endpoint(name).unwrap().0 / MPSOCS);
        let (m1, m5) = (qfdb("M1QCF1"), qfdb("M5QCF1"));
        // Z joins partners by one link.
        let up = Attachment::Switch(Exanest::router(m5), PortId(6));
        assert_eq!(machine.peer(Exanest::router(m1), PortId(5)), up);
        assert_eq!(machine.peer(Exanest::router(m1), PortId(6)), Attachment::Nothing);
        let f1 = Attachment::Switch(Exanest::mpsoc(m1, 0), PortId(4));
        assert_eq!(machine.peer(Exanest::router(m1), PortId(0)), f1);
        assert_eq!([0, 1, 2, 3].map(|mpsoc| machine.ports(Exanest::mpsoc(m1, mpsoc))), [5, 4, 4, 4]);
    }

    /// TR-488, §6.1.1: a path of N hops between QFDBs passes N + 1 routing blocks, its routers, and N links
    /// between them. Catches a QFDB in transit whose F1 is passed as well.
    #[test]
    fn a_qfdb_in_transit_is_one_routing_block() {
        let machine = Exanest::new(8).unwrap();
        let layout = ExanestOrder::new(machine.clone(), true);
        for (to, hops) in [("M1QBF1", 1), ("M1QCF1", 2), ("M2QCF1", 3), ("M7QCF1", 5)] {
            let (from, to) = (machine.endpoint("M1QAF1").unwrap(), machine.endpoint(to).unwrap());
            let mut passed = Vec::new();
            idle_path(&layout, from, to, |switch, _| passed.push(Exanest::role(switch).1));
            let mut expected = vec![Role::Router; hops + 1];
            expected.insert(0, Role::Mpsoc(0));
            expected.push(Role::Mpsoc(0));
            assert_eq!(passed, expected);
            let path = machine.path(from, to).unwrap();
            assert_eq!((path.hops() as usize, path.intra_qfdb), (hops, 0));
        }
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
    fn impossible_sizes_are_refused() {
        let text = |mezzanines| Exanest::new(mezzanines).unwrap_err().to_string();
        assert_eq!(text(0), "0 mezzanines do not fill Y rings of four; take 1 to 4 or a multiple of 4");
        assert!(text(6).starts_with("6 mezzanines"));
        assert!(text(1_000_000_000_000).contains("the limit is"));
    }
}

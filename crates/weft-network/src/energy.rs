//! Energy of a machine by its parts, from the counters of its links.

use serde::{Deserialize, Serialize};
use weft_fabric::{LinkEnd, LinkReport, PartPower, Passed, PowerReport};
use weft_machine::MachinePower;
use weft_topo::Attachment;
use weft_units::{Bytes, EndpointId, Energy, Span, SwitchId};

/// Energy since the counters were last reset. A part of which the machine says nothing has none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct MachineEnergy {
    /// Of all links, each direction by itself, with their times in power states.
    pub links: Option<PowerReport>,
    /// Of all switches.
    pub switches: Option<Energy>,
    /// Of all interfaces.
    pub interfaces: Option<Energy>,
}

impl MachineEnergy {
    /// Of all parts; `None`: nothing is known of any.
    pub fn total(&self) -> Option<Energy> {
        let parts = [self.links.map(|links| links.energy), self.switches, self.interfaces];
        parts.into_iter().flatten().reduce(|sum, part| sum + part)
    }
}

impl std::ops::AddAssign for MachineEnergy {
    fn add_assign(&mut self, other: MachineEnergy) {
        if let Some(links) = other.links {
            *self.links.get_or_insert_default() += links;
        }
        let add = |sum: &mut Option<Energy>, part: Option<Energy>| {
            *sum = sum.zip(part).map(|(sum, part)| sum + part).or(*sum).or(part);
        };
        add(&mut self.switches, other.switches);
        add(&mut self.interfaces, other.interfaces);
    }
}

/// A switch or an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoweredPart {
    /// The interface of an endpoint.
    Interface(EndpointId),
    /// A switch.
    Switch(SwitchId),
}

/// The energy of a part since the counters were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartUse {
    /// The part.
    pub part: PoweredPart,
    /// Packets that have passed it.
    pub passed: Passed,
    /// Energy, rounded down to a picojoule.
    pub energy: Energy,
}

/// Packets that links have carried, by who has sent and received them. Empty for parts of which nothing is
/// known.
pub(crate) struct EnergyCount {
    power: MachinePower,
    links: Option<PowerReport>,
    by_switch: Vec<Passed>,
    by_endpoint: Vec<Passed>,
}

impl EnergyCount {
    /// Nothing yet, for a machine with so many switches and endpoints.
    pub(crate) fn new(power: MachinePower, switches: u32, endpoints: u32) -> EnergyCount {
        let of =
            |power: Option<PartPower>, parts| vec![Passed::default(); power.map_or(0, |_| parts as usize)];
        let (by_switch, by_endpoint) = (of(power.switch, switches), of(power.interface, endpoints));
        EnergyCount { power, links: None, by_switch, by_endpoint }
    }

    /// Counts a link, whose packets have `envelope` bytes besides their payload.
    pub(crate) fn add(&mut self, link: &LinkReport, envelope: Bytes) {
        let passed = Passed { packets: link.packets, bytes: link.payload + envelope * link.packets };
        self.add_passed((link.from, link.to), passed, link.power);
    }

    /// Counts what has passed a link between two ends, and its power.
    pub(crate) fn add_passed(
        &mut self,
        (from, to): (LinkEnd, Attachment),
        passed: Passed,
        power: Option<PowerReport>,
    ) {
        if let Some(power) = power {
            *self.links.get_or_insert_default() += power;
        }
        let sender = match from {
            LinkEnd::Endpoint(endpoint) => self.by_endpoint.get_mut(endpoint.index()),
            LinkEnd::Port(switch, _) => self.by_switch.get_mut(switch.index()),
        };
        let receiver = match to {
            Attachment::Endpoint(endpoint) => Some(endpoint.index()),
            Attachment::Switch(..) | Attachment::Nothing => None,
        };
        sender.into_iter().for_each(|sum| *sum += passed);
        receiver.and_then(|at| self.by_endpoint.get_mut(at)).into_iter().for_each(|sum| *sum += passed);
    }

    /// The energy of every part in `time`.
    pub(crate) fn parts(&self, time: Span) -> impl Iterator<Item = PartUse> + '_ {
        let of = move |power: Option<PartPower>, part, passed| {
            Some(PartUse { part, passed, energy: power?.energy(time, passed) })
        };
        let interfaces = self.by_endpoint.iter().zip((0..).map(EndpointId));
        let switches = self.by_switch.iter().zip((0..).map(SwitchId));
        let (of_interface, of_switch) = (self.power.interface, self.power.switch);
        let interfaces =
            interfaces.filter_map(move |(passed, id)| of(of_interface, PoweredPart::Interface(id), *passed));
        interfaces
            .chain(switches.filter_map(move |(passed, id)| of(of_switch, PoweredPart::Switch(id), *passed)))
    }

    /// The energy of the machine in `time`.
    pub(crate) fn machine(&self, time: Span) -> MachineEnergy {
        let known = |power: Option<PartPower>| power.map(|_| Energy::ZERO);
        let (switches, interfaces) = (known(self.power.switch), known(self.power.interface));
        let mut energy = MachineEnergy { links: self.links, switches, interfaces };
        for PartUse { part, energy: of_part, .. } in self.parts(time) {
            let sum = match part {
                PoweredPart::Interface(_) => &mut energy.interfaces,
                PoweredPart::Switch(_) => &mut energy.switches,
            };
            sum.iter_mut().for_each(|sum| *sum += of_part);
        }
        energy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a sum that forgets a part, or makes one known that is not.
    #[test]
    fn sums_know_what_is_known() {
        let mut sum = MachineEnergy::default();
        assert_eq!(sum.total(), None);
        let pj = |pj| Some(Energy::from_pj(pj));
        for _ in 0..2 {
            sum += MachineEnergy { links: None, switches: pj(3), interfaces: None };
        }
        assert_eq!(
            (sum, sum.total()),
            (MachineEnergy { switches: pj(6), ..MachineEnergy::default() }, pj(6))
        );
        let links = PowerReport { energy: Energy::from_pj(10), ..PowerReport::default() };
        sum += MachineEnergy { links: Some(links), switches: None, interfaces: pj(5) };
        assert_eq!((sum.switches, sum.total()), (pj(6), pj(21)));
    }
}

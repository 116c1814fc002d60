//! Names: those of the ExaNeSt rack, and plain numbers elsewhere.

use crate::exanest::{Exanest, MPSOCS, Role};
use crate::layout::Layout;
use crate::traits::{Attachment, Topology};
use weft_units::{EndpointId, PortId, SwitchId};

/// A name that no endpoint has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no endpoint is called `{name}`; they are {first} to {last}, the nearest is {near}")]
pub struct UnknownEndpoint {
    /// What was written.
    pub name: String,
    /// The name of the first endpoint.
    pub first: String,
    /// The name of the last endpoint.
    pub last: String,
    /// The nearest name that exists.
    pub near: String,
}

impl Layout {
    /// The name of an endpoint: such as `M1QAF1` on an ExaNeSt machine, else its number.
    pub fn endpoint_name(&self, endpoint: EndpointId) -> String {
        match self {
            Layout::Exanest(routing) => routing.topology().name(endpoint),
            _ => endpoint.to_string(),
        }
    }

    /// The name of a switch: after its endpoint where it has one alone, such as `switch of M1QAF1`; after its
    /// QFDB where it is a Network Router, such as `router of M1QA`; else its number, such as `switch 7`.
    pub fn switch_name(&self, switch: SwitchId) -> String {
        if let Layout::Exanest(routing) = self
            && let (qfdb, Role::Router) = Exanest::role(switch)
        {
            let f1 = routing.topology().name(EndpointId(qfdb.0 * MPSOCS));
            return format!("router of {}", f1.trim_end_matches("F1"));
        }
        let ports = (0..self.ports(switch)).map(PortId);
        let mut endpoints = ports.filter_map(|port| match self.peer(switch, port) {
            Attachment::Endpoint(endpoint) => Some(endpoint),
            _ => None,
        });
        match (endpoints.next(), endpoints.next()) {
            (Some(endpoint), None) => format!("switch of {}", self.endpoint_name(endpoint)),
            _ => format!("switch {switch}"),
        }
    }

    /// The switch of a name, as [`Layout::switch_name`] writes it, or of its number; `None`: it is no
    /// switch's.
    pub fn switch(&self, name: &str) -> Option<SwitchId> {
        if let Some(qfdb) = name.strip_prefix("router of ") {
            let Layout::Exanest(routing) = self else { return None };
            let f1 = routing.topology().endpoint(&format!("{qfdb}F1")).ok()?;
            return Some(Exanest::router(SwitchId(f1.0 / MPSOCS)));
        }
        if let Some(endpoint) = name.strip_prefix("switch of ") {
            return Some(self.attachment(self.endpoint(endpoint).ok()?).0);
        }
        let number = name.strip_prefix("switch ")?.parse().ok()?;
        (number < self.switches()).then_some(SwitchId(number))
    }

    /// The endpoint of a name, as [`Layout::endpoint_name`] writes it.
    ///
    /// # Errors
    /// Where no endpoint has this name; the error carries the nearest that exists.
    pub fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        if let Layout::Exanest(routing) = self {
            return routing.topology().endpoint(name);
        }
        let last = self.endpoints() - 1;
        let number = name.parse::<u32>().ok();
        match number.filter(|&number| number <= last) {
            Some(number) => Ok(EndpointId(number)),
            None => Err(UnknownEndpoint {
                name: name.to_owned(),
                first: "0".to_owned(),
                last: last.to_string(),
                near: if number.is_some() { last } else { 0 }.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Star, StarRouting};

    #[test]
    fn numbers_are_names_where_there_are_no_others() {
        let layout = Layout::Star(StarRouting::new(Star::new(10).unwrap()));
        assert_eq!(layout.endpoint("9"), Ok(EndpointId(9)));
        assert_eq!(
            layout.endpoint("10").unwrap_err().to_string(),
            "no endpoint is called `10`; they are 0 to 9, the nearest is 9"
        );
        assert!(layout.endpoint("M1QAF1").is_err());
        assert_eq!(layout.switch_name(SwitchId(0)), "switch 0");
        assert_eq!([layout.switch("switch 0"), layout.switch("switch 1")], [Some(SwitchId(0)), None]);
        assert_eq!(layout.endpoint_name(EndpointId(7)), "7");
    }

    /// Catches names that lead to another switch than the one that has them.
    #[test]
    fn switches_are_found_by_their_names() {
        let rack = Exanest::new(2).unwrap();
        let layout = Layout::Exanest(crate::ExanestOrder::new(rack, true));
        for switch in (0..layout.switches()).map(SwitchId) {
            assert_eq!(layout.switch(&layout.switch_name(switch)), Some(switch));
            assert_eq!(layout.switch(&format!("switch {switch}")), Some(switch));
        }
        assert_eq!(layout.switch_name(SwitchId(9)), "router of M1QB");
        assert_eq!(layout.switch_name(SwitchId(6)), "switch of M1QBF2");
        for wrong in ["router of M3QA", "router of M1QAF1", "switch of M1QAF5", "switch -1", "M1QAF1"] {
            assert_eq!(layout.switch(wrong), None, "{wrong}");
        }
    }
}

//! Numbers of links, so that a value per link is an array.

use serde::Serialize;
use weft_units::{EndpointId, PortId, SwitchId};

/// Numbers of the directions of links: first those that leave endpoints, by endpoint; then those that leave
/// switches, by switch and port. Ports without a link have a number too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LinkNumbers {
    /// Endpoints of the machine.
    pub endpoints: u32,
    /// For every switch the number of the link that leaves by its port 0; then the end of all numbers.
    pub first: Vec<u32>,
    /// For every port of every switch the number of the other direction of its link; `None`: no link.
    pub reverse: Vec<Option<u32>>,
}

impl LinkNumbers {
    /// All numbers.
    pub fn count(&self) -> usize {
        self.first.last().map_or(self.endpoints, |end| *end) as usize
    }

    /// The link that leaves an endpoint, or a switch by a port; `None` where the machine has none.
    pub fn leaving(
        &self,
        endpoint: Option<EndpointId>,
        switch: Option<SwitchId>,
        port: Option<PortId>,
    ) -> Option<u32> {
        match (endpoint, switch, port) {
            (Some(endpoint), ..) => (endpoint.0 < self.endpoints).then_some(endpoint.0),
            (None, Some(switch), Some(port)) => self.ports(switch)?.nth(port.index()),
            _ => None,
        }
    }

    /// The link that arrives at a port of a switch.
    pub fn arriving(&self, switch: SwitchId, port: PortId) -> Option<u32> {
        let leaving = self.leaving(None, Some(switch), Some(port))?;
        *self.reverse.get((leaving - self.endpoints) as usize)?
    }

    /// The links that leave a switch, by port.
    pub fn ports(&self, switch: SwitchId) -> Option<std::ops::Range<u32>> {
        let begin = *self.first.get(switch.index())?;
        Some(begin..*self.first.get(switch.index() + 1)?)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two endpoints at one switch, whose port 1 is empty.
    pub(in crate::view) fn star() -> LinkNumbers {
        LinkNumbers { endpoints: 2, first: vec![2, 5], reverse: vec![Some(0), None, Some(1)] }
    }

    /// Catches a number of another link, and a panic at ports that no machine has.
    #[test]
    fn links_are_numbered_by_what_they_leave() {
        let numbers = star();
        assert_eq!(numbers.count(), 5);
        assert_eq!(numbers.leaving(Some(EndpointId(1)), None, None), Some(1));
        assert_eq!(numbers.leaving(Some(EndpointId(2)), None, None), None);
        assert_eq!(numbers.leaving(None, Some(SwitchId(0)), Some(PortId(2))), Some(4));
        assert_eq!(numbers.leaving(None, Some(SwitchId(0)), Some(PortId(3))), None);
        assert_eq!(numbers.leaving(None, Some(SwitchId(1)), Some(PortId(0))), None);
        assert_eq!(numbers.arriving(SwitchId(0), PortId(2)), Some(1));
        assert_eq!(numbers.arriving(SwitchId(0), PortId(1)), None);
    }
}

//! Names of endpoints and switches where a topology gives no others: their numbers.

use crate::traits::{Attachment, Topology};
use weft_units::{EndpointId, PortId, SwitchId};

/// A name that no endpoint has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no endpoint is called `{name}`; they are {first} to {last}, the nearest is {near}")]
pub struct UnknownEndpoint {
    /// The name that was written.
    pub name: String,
    /// The name of the first endpoint.
    pub first: String,
    /// The name of the last endpoint.
    pub last: String,
    /// The nearest name that exists.
    pub near: String,
}

/// The endpoint of a number, where endpoints have no other names.
pub(crate) fn numbered_endpoint(endpoints: u32, name: &str) -> Result<EndpointId, UnknownEndpoint> {
    let last = endpoints - 1;
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

/// [`Topology::switch_name`] where the topology gives no names of its own.
pub(crate) fn switch_name(topology: &(impl Topology + ?Sized), switch: SwitchId) -> String {
    let ports = (0..topology.ports(switch)).map(PortId);
    let mut endpoints = ports.filter_map(|port| match topology.peer(switch, port) {
        Attachment::Endpoint(endpoint) => Some(endpoint),
        _ => None,
    });
    match (endpoints.next(), endpoints.next()) {
        // An endpoint that has only its number gives the switch no name.
        (Some(endpoint), None) if topology.endpoint_name(endpoint) != endpoint.to_string() => {
            format!("switch of {}", topology.endpoint_name(endpoint))
        }
        _ => format!("switch {switch}"),
    }
}

/// [`Topology::switch`] where the topology gives no names of its own.
pub(crate) fn switch(topology: &(impl Topology + ?Sized), name: &str) -> Option<SwitchId> {
    if let Some(endpoint) = name.strip_prefix("switch of ") {
        return Some(topology.attachment(topology.endpoint(endpoint).ok()?).0);
    }
    let number = name.strip_prefix("switch ")?.parse().ok()?;
    (number < topology.switches()).then_some(SwitchId(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dimension, Star, Torus};

    #[test]
    fn numbers_are_names_where_there_are_no_others() {
        let star = Star::new(10).unwrap();
        assert_eq!(star.endpoint("9"), Ok(EndpointId(9)));
        assert_eq!(
            star.endpoint("10").unwrap_err().to_string(),
            "no endpoint is called `10`; they are 0 to 9, the nearest is 9"
        );
        assert!(star.endpoint("M1QAF1").is_err());
        assert_eq!(star.switch_name(SwitchId(0)), "switch 0");
        assert_eq!([star.switch("switch 0"), star.switch("switch 1")], [Some(SwitchId(0)), None]);
        assert_eq!(star.endpoint_name(EndpointId(7)), "7");
        // One endpoint at each switch, without a name: `switch of 1` reads as half a sentence.
        let torus = Torus::new(&[Dimension { size: 3, wrap: true }], 1).unwrap();
        assert_eq!(torus.switch_name(SwitchId(1)), "switch 1");
        assert_eq!(["switch 1", "switch of 1"].map(|name| torus.switch(name)), [Some(SwitchId(1)); 2]);
    }
}

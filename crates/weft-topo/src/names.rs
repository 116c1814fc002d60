//! Endpoint names: those of the ExaNeSt rack, and plain numbers elsewhere.

use crate::layout::Layout;
use crate::traits::Topology;
use weft_units::EndpointId;

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
        assert_eq!(layout.endpoint_name(EndpointId(7)), "7");
    }
}

//! Star: all endpoints at one switch.
//!
//! ```text
//!      0  1  2
//!       \ | /
//!   7 -- [ ] -- 3
//!       / | \
//!      6  5  4
//! ```

mod figures;
mod parameters;
mod routing;

pub use parameters::{StarParameters, StarRoutingWord};
pub use routing::StarRouting;

use crate::size::{MAX_ENDPOINTS, SizeError, check_counts, in_range};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// One switch with an endpoint at every port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Star {
    endpoints: u32,
}

impl Star {
    /// A star of so many endpoints.
    ///
    /// # Errors
    /// Where there are none, or more than [`MAX_ENDPOINTS`].
    pub fn new(endpoints: u64) -> Result<Star, SizeError> {
        check_counts(u128::from(endpoints), 1, u128::from(endpoints))?;
        Ok(Star { endpoints: in_range("the number of endpoints", endpoints, 1, MAX_ENDPOINTS)? })
    }
}

impl Topology for Star {
    fn endpoints(&self) -> u32 {
        self.endpoints
    }

    fn switches(&self) -> u32 {
        1
    }

    #[inline]
    fn ports(&self, _switch: SwitchId) -> u32 {
        self.endpoints
    }

    fn peer(&self, _switch: SwitchId, port: PortId) -> Attachment {
        Attachment::Endpoint(EndpointId(port.0))
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(0), PortId(endpoint.0))
    }

    #[inline]
    fn link_class(&self, _switch: SwitchId, _port: PortId) -> LinkClass {
        LinkClass(0)
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint"]
    }

    fn switch_address(&self, _switch: SwitchId) -> Address {
        Address(0)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        Address(u64::from(endpoint.0))
    }
}

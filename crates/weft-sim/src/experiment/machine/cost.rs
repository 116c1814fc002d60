//! The price of a machine: its links and the ports that they end at, in the currency of its file.

use super::assembled;
use crate::experiment::{ExperimentError, MachineInput};
use serde::Serialize;
use weft_machine::Machine;
use weft_topo::{ClassLinks, Layout, Topology as _, count_links};

/// Keys of a link class with a price.
const KEYS: [&str; 2] = ["cost", "port_cost"];

/// The price of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MachineCost {
    /// All links and their ports, in the currency of the file.
    pub total: u64,
    /// Endpoints that share it.
    pub endpoints: u64,
}

impl MachineCost {
    /// The price for each endpoint.
    pub fn per_endpoint(self) -> f64 {
        self.total as f64 / self.endpoints.max(1) as f64
    }
}

/// The price of a machine.
///
/// # Errors
/// A machine that does not check, and one with links of which the file says no price.
pub fn cost(input: &MachineInput) -> Result<MachineCost, ExperimentError> {
    let (machine, layout) = assembled(input)?;
    priced(&machine, &layout).map_err(|class| {
        ExperimentError::input(format!(
            "the machine {} says no price of its links of class `{class}`; add `cost` or `port_cost` to \
             [links.{class}], or --set links.{class}.cost=120 to the command that ran it",
            machine.name
        ))
    })
}

/// The same of a machine that is built; the error is a class of links without a price.
pub(super) fn priced(machine: &Machine, layout: &Layout) -> Result<MachineCost, String> {
    let mut total = 0;
    for ClassLinks { class, links } in count_links(layout).into_iter().filter(|count| count.links > 0) {
        let price = |key: &str| machine.get(&format!("links.{class}.{key}"))?.value.parse::<u64>().ok();
        let [cable, port] = KEYS.map(price);
        if cable.or(port).is_none() {
            return Err(class);
        }
        total += links * (cable.unwrap_or(0) + 2 * port.unwrap_or(0));
    }
    Ok(MachineCost { total, endpoints: layout.endpoints().into() })
}

//! Rows of one link, switch or endpoint, as the tables have them.

use serde::Serialize;
use std::cmp::Reverse;
use weft_results::{FlowRow, LinkRow, RankRow, ResultsError, StoredResult, Table};
use weft_units::{EndpointId, PortId, SwitchId};

/// Flows that are listed.
const LISTED: usize = 20;

/// One link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkDetails {
    /// The row of the table; `None`: the table has none of it.
    pub row: Option<LinkRow>,
}

/// One switch.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SwitchDetails {
    /// The links that leave it, by port.
    pub leaving: Vec<LinkRow>,
    /// The links that arrive at it, by port.
    pub arriving: Vec<LinkRow>,
}

/// One endpoint.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EndpointDetails {
    /// The link that leaves it.
    pub leaving: Option<LinkRow>,
    /// The link that arrives at it.
    pub arriving: Option<LinkRow>,
    /// Ranks on it.
    pub ranks: Vec<RankRow>,
    /// The largest flows, out and in.
    pub flows: Vec<FlowRow>,
    /// All its flows.
    pub flow_count: usize,
}

/// The row of the link that leaves an endpoint, or a switch by a port.
///
/// # Errors
/// A result without the table.
pub fn link(
    result: &StoredResult,
    run: u32,
    from: Result<EndpointId, (SwitchId, PortId)>,
) -> Result<LinkDetails, ResultsError> {
    let mut found = None;
    result.visit(|row: LinkRow| {
        let is_it = match from {
            Ok(endpoint) => row.from_endpoint == Some(endpoint),
            Err((switch, port)) => row.from_switch == Some(switch) && row.from_port == Some(port),
        };
        if row.run == run && is_it {
            found = Some(row);
        }
    })?;
    Ok(LinkDetails { row: found })
}

/// The rows of all links of a switch.
///
/// # Errors
/// A result without the table.
pub fn switch(result: &StoredResult, run: u32, of: SwitchId) -> Result<SwitchDetails, ResultsError> {
    let mut details = SwitchDetails { leaving: Vec::new(), arriving: Vec::new() };
    result.visit(|row: LinkRow| {
        if row.run != run {
            return;
        }
        if row.to_switch == Some(of) {
            details.arriving.push(row.clone());
        }
        if row.from_switch == Some(of) {
            details.leaving.push(row);
        }
    })?;
    details.arriving.sort_by_key(|row| row.to_port);
    Ok(details)
}

/// The rows of an endpoint in all tables that there are.
///
/// # Errors
/// Tables that cannot be read.
pub fn endpoint(result: &StoredResult, run: u32, of: EndpointId) -> Result<EndpointDetails, ResultsError> {
    let mut details =
        EndpointDetails { leaving: None, arriving: None, ranks: vec![], flows: vec![], flow_count: 0 };
    if result.has(Table::Links) {
        result.visit(|row: LinkRow| {
            if row.run == run && row.from_endpoint == Some(of) {
                details.leaving = Some(row);
            } else if row.run == run && row.to_endpoint == Some(of) {
                details.arriving = Some(row);
            }
        })?;
    }
    if result.has(Table::Ranks) {
        result.visit(|row: RankRow| {
            if row.run == run && row.endpoint == of {
                details.ranks.push(row);
            }
        })?;
    }
    if result.has(Table::Flows) {
        result.visit(|row: FlowRow| {
            if row.run == run && (row.source_endpoint == of || row.destination_endpoint == Some(of)) {
                details.flows.push(row);
            }
        })?;
        details.flow_count = details.flows.len();
        details.flows.sort_by_key(|row| Reverse(row.payload_bytes));
        details.flows.truncate(LISTED);
    }
    Ok(details)
}

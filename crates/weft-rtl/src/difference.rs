//! The first difference between a block's RTL and its model.

use std::fmt;
use weft_units::{EndpointId, Time};

/// An output that RTL and model do not have alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The block.
    pub block: &'static str,
    /// The endpoint whose block it is.
    pub endpoint: EndpointId,
    /// The edge of the interface's clock with which the cycle begins, counted from the run's begin.
    pub edge: u64,
    /// The time of that edge.
    pub at: Time,
    /// The signal.
    pub signal: &'static str,
    /// The value in the RTL.
    pub rtl: u128,
    /// The value in the model.
    pub model: u128,
}

impl Difference {
    /// The earliest is told, whichever block is looked at first.
    pub(crate) fn order(&self) -> (u64, EndpointId, &'static str) {
        (self.edge, self.endpoint, self.block)
    }

    /// The difference in words, with the endpoint's name.
    pub fn tell(&self, endpoint: &str) -> String {
        let Difference { block, edge, at, signal, rtl, model, .. } = self;
        format!(
            "the RTL of the {block} of {endpoint} differs from the model at edge {edge} ({at}): {signal} is \
             {rtl:#x} in the RTL and {model:#x} in the model"
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tell(&format!("endpoint {}", self.endpoint)))
    }
}

//! Incast: many endpoints send to one.

use super::{PatternError, PatternInput, TrafficPattern};
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// The `senders` endpoints that follow the target in endpoint order, around the end, send to it;
/// all others are silent.
///
/// # Source
/// A. Phanishayee et al., "Measurement and analysis of TCP throughput collapse in cluster-based
/// storage systems", FAST 2008: N servers answer one client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Incast {
    endpoints: u32,
    target: EndpointId,
    senders: u32,
}

impl Incast {
    /// `senders` endpoints send to `target`; `None` for all others.
    ///
    /// # Errors
    /// With fewer endpoints than senders and target, with a target that does not exist, or without
    /// a sender.
    pub fn new(endpoints: u32, target: EndpointId, senders: Option<u32>) -> Result<Incast, PatternError> {
        PatternError::require("incast", endpoints, 2)?;
        if target.0 >= endpoints {
            return Err(PatternError::UnknownEndpoint { pattern: "incast", endpoint: target, endpoints });
        }
        let senders = senders.unwrap_or(endpoints - 1);
        if senders == 0 || senders >= endpoints {
            return Err(PatternError::Senders { senders, others: endpoints - 1 });
        }
        Ok(Incast { endpoints, target, senders })
    }
}

impl TrafficPattern for Incast {
    const GOES_EVERYWHERE: bool = true;

    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Incast, PatternError> {
        Incast::new(input.endpoints(), input.settings.target, input.settings.senders)
    }

    #[inline]
    fn sends(&self, source: EndpointId) -> bool {
        let after_target = if source > self.target {
            source.0 - self.target.0
        } else {
            source.0 + (self.endpoints - self.target.0)
        };
        after_target <= self.senders
    }

    #[inline]
    fn destination(&self, _: EndpointId, _: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a target that sends to itself and a wrong number of senders near the wrap-input.
    #[test]
    fn n_endpoints_send_to_one() {
        for target in 0..6 {
            for senders in 1..6 {
                let pattern = Incast::new(6, EndpointId(target), Some(senders)).unwrap();
                let sending: Vec<_> = (0..6).filter(|&e| pattern.sends(EndpointId(e))).collect();
                assert_eq!(sending.len(), senders as usize, "target {target}: {sending:?}");
                assert!(!sending.contains(&target) && sending.contains(&((target + 1) % 6)));
            }
        }
    }
}

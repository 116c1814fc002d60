//! The check of packets that come: it finds what links have corrupted, but for a few.
//!
//! # Source
//! J. Stone and C. Partridge, "When the CRC and TCP checksum disagree", SIGCOMM 2000: corruption that checks do not find is rare, and real.
//!
//! # Not modelled
//! Undetected corruption of anything but the data of messages: headers, answers, vectors of the accelerator.

use super::{FullParameters, Hardware};
use crate::host::Host;
use serde::{Deserialize, Serialize};
use weft_engine::{Stream, below};
use weft_fabric::{MILLION, Packet};
use weft_units::EndpointId;

/// Distinguishes the dice of an endpoint's checks from its others.
const PURPOSE_CHECK: u32 = 4;

/// How well interfaces find corrupted packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CheckParameters {
    /// Of a million corrupted packets with data so many are taken for whole.
    pub undetected: u32,
    /// Of the decisions.
    pub seed: u64,
}

impl<H: Host> Hardware<H> {
    /// Whether a packet with data is found to be damaged.
    #[inline]
    pub(super) fn finds_damage(
        &mut self,
        packet: &Packet,
        parameters: &FullParameters,
        here: EndpointId,
    ) -> bool {
        packet.bad && (parameters.check.undetected == 0 || self.throws_found(parameters.check, here))
    }

    #[cold]
    fn throws_found(&mut self, check: CheckParameters, here: EndpointId) -> bool {
        let dice = Stream::new(check.seed, here.0.into(), PURPOSE_CHECK);
        let thrown = below(MILLION, &mut || {
            self.checks += 1;
            dice.at(self.checks)
        });
        thrown >= check.undetected
    }
}

//! The check of packets that come: it finds what links have corrupted, but for a few.
//!
//! # Source
//! J. Stone and C. Partridge, "When the CRC and TCP checksum disagree", SIGCOMM 2000: corruption that checks
//! do not find is rare, and real.
//!
//! # Not modelled
//! Undetected corruption of anything but the data of messages: headers, answers, vectors of the accelerator.

use serde::{Deserialize, Serialize};
use weft_engine::{Stream, below};
use weft_fabric::{MILLION, Packet};
use weft_keys::Millionths;
use weft_units::EndpointId;

/// Distinguishes the random numbers of an endpoint's checks from its others.
const PURPOSE_CHECK: u32 = 4;

weft_keys::keys! {
    /// How well interfaces find corrupted packets.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct CheckParameters {
        /// Exanet: corrupted packets with data, of a million, that are taken for whole; 0 where not given.
        undetected: u32 = 0, read_as(Millionths);
        beside {
            /// The seed of the random numbers.
            seed: u64 = 0;
        }
    }
}

/// The check of one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct DamageCheck {
    /// Random numbers drawn so far.
    throws: u64,
}

impl DamageCheck {
    /// Whether a packet with data is found to be damaged at `here`.
    #[inline]
    pub(super) fn finds(&mut self, packet: &Packet, here: EndpointId, parameters: CheckParameters) -> bool {
        packet.is_corrupted() && (parameters.undetected == 0 || self.throws_found(here, parameters))
    }

    #[cold]
    fn throws_found(&mut self, here: EndpointId, parameters: CheckParameters) -> bool {
        let rng = Stream::new(parameters.seed, here.0.into(), PURPOSE_CHECK);
        let thrown = below(MILLION, &mut || {
            self.throws += 1;
            rng.at(self.throws)
        });
        thrown >= parameters.undetected
    }
}

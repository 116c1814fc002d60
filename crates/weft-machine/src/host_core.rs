//! `[host.core]`: how fast the cores of a host compute, and the memory that they share.

use super::read::{Reader, section_of_keys};
use super::table::Table;
use crate::interface::Host;
use serde::{Deserialize, Serialize};
use weft_keys::Decimal;
use weft_units::{BitRate, Clock};

section_of_keys! {
    /// The hosts that endpoints are attached to.
    struct RawHost {
        keys { host: Host, }
        /// The speed of a host's cores and memory, for computations of flops and bytes; none where not given.
        core: Option<Table<HostCore>>,
    }
}

/// The least bandwidth: shares of it are not nothing.
const LEAST_BANDWIDTH: BitRate = BitRate::from_bits_per_second(1_000_000);
/// The greatest: sums of it stay in the model's integers.
const MOST_BANDWIDTH: BitRate = BitRate::from_gigabits(1_000_000);

weft_keys::keys! {
    /// The cores of a host, which are alike.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct HostCore {
        /// The clock of a core.
        clock: Clock;
        /// Floating-point operations that a core does in a cycle, in the mean.
        flops_per_cycle: Decimal, not_zero("0.5");
        /// Memory bandwidth that one core can draw, reads and writes together.
        bandwidth: BitRate, within(LEAST_BANDWIDTH, MOST_BANDWIDTH);
        /// Memory bandwidth of the host, which its cores share.
        memory_bandwidth: BitRate, within(LEAST_BANDWIDTH, MOST_BANDWIDTH);
        /// The part of each recorded computation that is traffic with memory; none where not given.
        recorded_share: Decimal = Decimal::ZERO, within(Decimal::ZERO, Decimal::ONE);
    }
}

/// Checks `[host]` and `[host.core]`. `None`: a problem was reported. `endpoints`: those of the machine,
/// where their number is known.
pub(super) fn check(
    raw: RawHost,
    endpoints: Option<u64>,
    reader: &mut Reader<'_>,
) -> Option<(Host, Option<HostCore>)> {
    let host = raw.host.filter(|host| match host.check(endpoints) {
        Ok(()) => true,
        Err(misfit) => {
            raw.locations.report(misfit, reader);
            false
        }
    });
    let core = match raw.core {
        None => Some(None),
        Some(core) => core.check(|_| [], reader).map(Some),
    };
    Some((host?, core?))
}

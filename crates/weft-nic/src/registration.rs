//! Registration of memory: what interfaces need that cannot take a page fault.
//!
//! ```text
//!  buffer ─► in the cache? ── yes ─► free of cost
//!                └─ no ─► room under the limit? ── no ─► evict what is idle, oldest use first
//!                                   └─ pin and enter its pages: a cost per call and per page
//! ```
//! ExaNet does without (TR-488 §4.5.3: no page pinning); APEnetX registers and deregisters buffers.
//!
//! # Source
//! TR-488 §4.5.3 for what it saves; SYSTEMS S17, LibQCM: buffers are registered with the driver.
//!
//! # Not modelled
//! Buffers that overlap: each is registered by itself.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_units::{Bytes, Span};

/// What a machine file says of registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RegistrationParameters {
    /// Bytes of a page.
    pub page: Bytes,
    /// Per registration.
    pub call: Span,
    /// And per page.
    pub per_page: Span,
    /// Per deregistration.
    pub release: Span,
    /// Memory that may be registered at a time.
    pub limit: Bytes,
    /// Whether buffers stay registered until room is needed.
    pub cache: bool,
}

/// A buffer of one process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Buffer {
    /// The process: its rank within the node.
    pub space: u32,
    /// Its first byte.
    pub address: u64,
    /// Its size.
    pub bytes: Bytes,
}

/// A buffer that cannot be registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegistrationError {
    /// Larger than all that may be registered.
    #[error("a buffer of {bytes} exceeds the {limit} that may be registered; send it in parts")]
    TooLarge {
        /// Its pages.
        bytes: Bytes,
        /// All that may be registered.
        limit: Bytes,
    },
    /// Buffers in use fill the limit.
    #[error("{in_use} of {limit} are registered and in use; wait for a transfer to end")]
    Full {
        /// What is in use.
        in_use: Bytes,
        /// All that may be registered.
        limit: Bytes,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Registered {
    /// Transfers that use it.
    users: u32,
    used: u64,
}

/// The registrations of one interface.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Registrations {
    buffers: BTreeMap<Buffer, Registered>,
    registered: Bytes,
    /// Counts calls: the clock of least recent use.
    calls: u64,
}

impl Registrations {
    /// Memory that is registered.
    pub fn registered(&self) -> Bytes {
        self.registered
    }

    /// Makes a buffer usable; returns what that costs the processor.
    ///
    /// # Errors
    /// Where it does not fit under the limit beside the buffers in use.
    pub fn register(
        &mut self,
        buffer: Buffer,
        parameters: &RegistrationParameters,
    ) -> Result<Span, RegistrationError> {
        self.calls += 1;
        let used = self.calls;
        if let Some(known) = self.buffers.get_mut(&buffer) {
            *known = Registered { users: known.users + 1, used };
            return Ok(Span::ZERO);
        }
        let RegistrationParameters { limit, .. } = *parameters;
        let (pages, bytes) = pinned(&buffer, parameters);
        if bytes > limit {
            return Err(RegistrationError::TooLarge { bytes, limit });
        }
        let idle = self.buffers.iter().filter(|(_, known)| known.users == 0);
        let idle: Bytes = idle.map(|(buffer, _)| pinned(buffer, parameters).1).sum();
        let in_use = self.registered - idle;
        if in_use + bytes > limit {
            return Err(RegistrationError::Full { in_use, limit });
        }
        let mut cost = parameters.call + parameters.per_page * pages;
        while self.registered + bytes > limit {
            let idle = self.buffers.iter().filter(|(_, known)| known.users == 0);
            let Some((&oldest, _)) = idle.min_by_key(|(_, known)| known.used) else { break };
            cost += self.forget(oldest, parameters);
        }
        self.registered += bytes;
        self.buffers.insert(buffer, Registered { users: 1, used });
        Ok(cost)
    }

    /// A transfer no longer uses a buffer; returns what that costs the processor.
    pub fn release(&mut self, buffer: Buffer, parameters: &RegistrationParameters) -> Span {
        let Some(known) = self.buffers.get_mut(&buffer) else { return Span::ZERO };
        known.users = known.users.saturating_sub(1);
        if known.users > 0 || parameters.cache { Span::ZERO } else { self.forget(buffer, parameters) }
    }

    fn forget(&mut self, buffer: Buffer, parameters: &RegistrationParameters) -> Span {
        self.buffers.remove(&buffer);
        self.registered -= pinned(&buffer, parameters).1;
        parameters.release
    }
}

/// The pages of a buffer and their bytes.
fn pinned(buffer: &Buffer, parameters: &RegistrationParameters) -> (u64, Bytes) {
    let page = parameters.page.get().max(1);
    let offset = buffer.address % page;
    let pages = (offset + buffer.bytes.get()).div_ceil(page);
    (pages, Bytes::new(pages * page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters(cache: bool) -> RegistrationParameters {
        RegistrationParameters {
            page: Bytes::new(4096),
            call: Span::from_us(1),
            per_page: Span::from_ns(100),
            release: Span::from_ns(500),
            limit: Bytes::new(4 * 4096),
            cache,
        }
    }

    fn buffer(address: u64, bytes: u64) -> Buffer {
        Buffer { space: 0, address, bytes: Bytes::new(bytes) }
    }

    /// Catches a page that is not counted where a buffer straddles it, and a cache that costs again.
    #[test]
    fn a_cached_buffer_costs_once() {
        let mut known = Registrations::default();
        let straddling = buffer(4000, 200);
        assert_eq!(known.register(straddling, &parameters(true)), Ok(Span::from_ns(1200)));
        assert_eq!(known.release(straddling, &parameters(true)), Span::ZERO);
        assert_eq!(known.register(straddling, &parameters(true)), Ok(Span::ZERO));
        let mut uncached = Registrations::default();
        assert!(uncached.register(straddling, &parameters(false)).is_ok());
        assert_eq!(uncached.release(straddling, &parameters(false)), Span::from_ns(500));
        assert_eq!(uncached.registered(), Bytes::ZERO);
    }

    /// Catches an eviction of a buffer in use, and an error that does not say what is full.
    #[test]
    fn buffers_in_use_stay() {
        let (parameters, mut known) = (parameters(true), Registrations::default());
        known.register(buffer(0, 3 * 4096), &parameters).unwrap();
        let error = known.register(buffer(1 << 20, 2 * 4096), &parameters).unwrap_err();
        assert!(matches!(error, RegistrationError::Full { .. }), "{error}");
        let error = known.register(buffer(0, 5 * 4096), &parameters).unwrap_err();
        assert!(matches!(error, RegistrationError::TooLarge { .. }), "{error}");
        known.release(buffer(0, 3 * 4096), &parameters);
        let cost = known.register(buffer(1 << 20, 2 * 4096), &parameters);
        assert_eq!(cost, Ok(Span::from_ns(1200 + 500)), "the idle one made room");
    }

    proptest! {
        /// Catches accounts of registered memory that drift from the buffers, or exceed the limit.
        #[test]
        fn the_limit_holds(calls in prop::collection::vec((any::<bool>(), 0u64..6, 1u64..9000), 1..100), cache: bool) {
            let (parameters, mut known) = (parameters(cache), Registrations::default());
            for (register, slot, bytes) in calls {
                let buffer = buffer(slot * 16384, bytes / 3000 * 3000 + 1);
                if register {
                    let _refused = known.register(buffer, &parameters);
                } else {
                    known.release(buffer, &parameters);
                }
                let sum: Bytes = known.buffers.keys().map(|buffer| pinned(buffer, &parameters).1).sum();
                prop_assert_eq!(sum, known.registered());
                prop_assert!(sum <= parameters.limit);
            }
        }
    }
}

//! Messages and calls by size: a class goes from one power of two to just below the next.

use serde::Serialize;
use std::collections::BTreeMap;
use weft_trace::op::CollectiveSizes;
use weft_units::Bytes;

/// Messages of `from_bytes` to `to_bytes`, both included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct SizeClass {
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub messages: u64,
    pub message_bytes: u64,
}

/// Calls of a collective of `from_bytes` to `to_bytes`, both included. The size of a call is the larger of
/// what its rank gives and takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct CallSizeClass {
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub calls: u64,
    pub send_bytes: u64,
    pub receive_bytes: u64,
}

/// A class, by the number of bits of its sizes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct PowerOfTwo(u32);

impl PowerOfTwo {
    fn of(bytes: Bytes) -> PowerOfTwo {
        PowerOfTwo(u64::BITS - bytes.get().leading_zeros())
    }

    fn least(self) -> u64 {
        if self.0 == 0 { 0 } else { 1 << (self.0 - 1) }
    }

    fn largest(self) -> u64 {
        if self.0 == 0 { 0 } else { u64::MAX >> (u64::BITS - self.0) }
    }
}

/// Messages by size.
#[derive(Debug, Default)]
pub(super) struct MessageSizes(BTreeMap<PowerOfTwo, SizeClass>);

impl MessageSizes {
    pub(super) fn add(&mut self, bytes: Bytes) {
        let size = PowerOfTwo::of(bytes);
        let (from_bytes, to_bytes) = (size.least(), size.largest());
        let new = SizeClass { from_bytes, to_bytes, messages: 0, message_bytes: 0 };
        let class = self.0.entry(size).or_insert(new);
        class.messages += 1;
        class.message_bytes = class.message_bytes.saturating_add(bytes.get());
    }

    /// Classes with messages, by size.
    pub(super) fn into_classes(self) -> Vec<SizeClass> {
        self.0.into_values().collect()
    }
}

/// Calls of a collective by size.
#[derive(Debug, Default)]
pub(super) struct CallSizes(BTreeMap<PowerOfTwo, CallSizeClass>);

impl CallSizes {
    pub(super) fn add(&mut self, sizes: &CollectiveSizes) {
        let size = PowerOfTwo::of(sizes.send.max(sizes.receive));
        let (from_bytes, to_bytes) = (size.least(), size.largest());
        let new = CallSizeClass { from_bytes, to_bytes, calls: 0, send_bytes: 0, receive_bytes: 0 };
        let class = self.0.entry(size).or_insert(new);
        class.calls += 1;
        class.send_bytes = class.send_bytes.saturating_add(sizes.send.get());
        class.receive_bytes = class.receive_bytes.saturating_add(sizes.receive.get());
    }

    /// Classes with calls, by size.
    pub(super) fn into_classes(self) -> Vec<CallSizeClass> {
        self.0.into_values().collect()
    }
}

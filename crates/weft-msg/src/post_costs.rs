//! The time that a post to the interface takes the process that makes it.
//!
//! ```text
//!   process   calls ─► stores of the descriptor, and of what goes with it ─┐ goes on
//!   interface          the same stores, as they come, ─► the message's own time
//! ```
//! The message's way begins with the post: stores and calls that lie on it are the interface's to count, and
//! a process that posts is busy with them meanwhile.
//!
//! # Not modelled
//! Stores that wait for the port, or for room in the interface.

use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock, Span};

/// Costs of the posts of a process to its virtual interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PostCosts {
    /// A small message, beside its own bytes.
    pub small: PostCost,
    /// The descriptor of an RDMA write.
    pub write: PostCost,
    /// The request of an RDMA read.
    pub read: PostCost,
    /// The stores; `None`: they are part of the calls.
    pub stores: Option<Stores>,
}

/// The cost of one kind of post.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PostCost {
    /// Calls of library and system software.
    pub call: Span,
    /// Bytes that are stored into the interface.
    pub stored: Bytes,
}

/// The stores of a processor into an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stores {
    /// One is made per cycle.
    pub clock: Clock,
    /// Bytes of one.
    pub word: Bytes,
}

impl PostCost {
    /// Calls alone.
    pub const fn of_call(call: Span) -> PostCost {
        PostCost { call, stored: Bytes::ZERO }
    }
}

impl PostCosts {
    /// Posts that take what the machine's messaging says that control messages and descriptors do: for an
    /// interface that says nothing of its own.
    pub fn of_messaging(protocol: &Protocol) -> PostCosts {
        let (control, descriptor) =
            (PostCost::of_call(protocol.control_send), PostCost::of_call(protocol.data_send));
        PostCosts { small: control, write: descriptor, read: control, stores: None }
    }

    /// A small message of so many bytes.
    pub fn small(&self, payload: Bytes) -> Span {
        self.time(self.small, payload)
    }

    /// An RDMA write.
    pub fn write(&self) -> Span {
        self.time(self.write, Bytes::ZERO)
    }

    /// An RDMA read.
    pub fn read(&self) -> Span {
        self.time(self.read, Bytes::ZERO)
    }

    fn time(&self, cost: PostCost, payload: Bytes) -> Span {
        let stores = |stores: Stores| stores.clock.cycles((cost.stored + payload).div_ceil(stores.word));
        cost.call + self.stores.map_or(Span::ZERO, stores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches words that are counted without the descriptor, or rounded one by one: a cycle of 150 MHz is
    /// 6,666.67 ps.
    #[test]
    fn stores_are_whole_words_with_the_descriptor() {
        let clock = Clock::from_hertz(150_000_000).unwrap();
        let stores = Some(Stores { clock, word: Bytes::new(16) });
        let of = |call, stored| PostCost { call: Span::from_ns(call), stored: Bytes::new(stored) };
        let costs = PostCosts { small: of(0, 16), write: of(100, 64), read: of(0, 32), stores };
        let small = [0, 1, 16, 17, 32, 64].map(|bytes| costs.small(Bytes::new(bytes)).as_ps());
        assert_eq!(small, [1, 2, 2, 3, 3, 5].map(|words: u64| (20_000 * words).div_ceil(3)));
        assert_eq!((costs.write().as_ps(), costs.read().as_ps()), (126_667, 13_334));
        let calls = PostCosts { stores: None, ..costs };
        assert_eq!((calls.small(Bytes::new(64)), calls.write()), (Span::ZERO, Span::from_ns(100)));
    }
}

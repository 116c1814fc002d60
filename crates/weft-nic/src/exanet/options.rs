//! Options of messages over packetizer and mailbox.

/// The token of a small message comes back when the receiver's interface has acknowledged the message, and
/// not as soon as this one has taken it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenWhenAcknowledged;

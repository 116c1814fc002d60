//! Several rails: the interfaces of a host by which the messages of a rank go out.
//!
//! ```text
//!   striping       message ─┬─ first part  ─► rail 0 ─┐
//!                           ├─ second part ─► rail 1 ─┼─► all parts are there: the message is
//!                           └─ …                      ┘
//!   multiplexing   message 0 ─► rail 0,  message 1 ─► rail 1,  …
//! ```
//! A rank sits at one interface of its host, its first rail; the others follow in the order of endpoints,
//! the last one before the first. A message goes from a rail of one host to the same rail of the other.
//! Messages that are to be matched are put in order at the receiver, as they are where routes differ.
//!
//! # Source
//! RED-SEA D1.4 §3: data striping and multiplexing over up to four interfaces per host, the fragments being
//! distributed by the library ("regular") or by the interfaces ("offloading"). From which size on a message
//! is cut, and how, is not in the text: equal parts are ours.
//!
//! # Not modelled
//! - The time in which an interface hands a part to another of its host: none.
//! - Rails of different networks or rates: machines with such are refused.

use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

weft_keys::words! {
    /// How the messages of a rank are spread over the interfaces of its host.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum Rails: "Rails", "rails" {
        /// Not at all: a rank uses the interface at which it sits.
        #[default]
        None = "none",
        /// A message is cut into as many parts as there are rails.
        Striping = "striping",
        /// The messages of a rank take the rails in turn.
        Multiplexing = "multiplexing",
    }
}

weft_keys::words! {
    /// Who gives the parts of a message to the rails.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum RailsBy: "RailsBy", "who spreads messages over rails" {
        /// The library: it hands each part after the first to its interface, for [`Protocol::data_send`].
        #[default]
        Software = "software",
        /// The first interface, which costs the processor nothing.
        Interface = "interface",
    }
}

/// The way of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RailChoice {
    /// By the interface at which its rank sits.
    First,
    /// By the rail whose turn it is.
    Next,
    /// In parts, by all of them.
    All,
}

/// A part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stripe {
    /// The rail that it goes by.
    pub rail: u32,
    /// The place of the part in the message.
    pub offset: Bytes,
    /// The payload of the part.
    pub bytes: Bytes,
}

impl Protocol {
    /// How a message of `payload` goes out at a host of so many rails.
    #[inline]
    pub fn rail_choice(&self, payload: Bytes, rails: u32) -> RailChoice {
        match self.rails {
            _ if rails <= 1 => RailChoice::First,
            Rails::None => RailChoice::First,
            Rails::Striping if is_cut(payload, self.stripe_above, rails) => RailChoice::All,
            Rails::Striping => RailChoice::First,
            Rails::Multiplexing => RailChoice::Next,
        }
    }

    /// The library's time for parts, at a host of so many rails.
    pub fn further_parts(&self, rails: u32) -> FurtherParts {
        let cuts = self.rails == Rails::Striping && self.rails_by == RailsBy::Software;
        FurtherParts { rails: if cuts { rails } else { 1 }, above: self.stripe_above, each: self.data_send }
    }
}

/// Whether striping cuts a message of `payload`: each part has a byte.
fn is_cut(payload: Bytes, above: Bytes, rails: u32) -> bool {
    payload > above && payload >= Bytes::new(rails.into())
}

/// The library's time for the parts of its messages after the first: [`Protocol::data_send`] for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FurtherParts {
    rails: u32,
    above: Bytes,
    each: Span,
}

impl FurtherParts {
    /// Of a message of `payload`: none where it goes whole, or the interface cuts it.
    pub fn time(self, payload: Bytes) -> Span {
        let parts = if self.rails > 1 && is_cut(payload, self.above, self.rails) { self.rails } else { 1 };
        self.each * u64::from(parts - 1)
    }
}

/// The parts of a message of `payload` on so many rails: equal ones, the first longer by a byte where need
/// be.
pub fn stripes(payload: Bytes, rails: u32) -> impl Iterator<Item = Stripe> {
    let (each, more) = (payload.get() / u64::from(rails), payload.get() % u64::from(rails));
    (0..rails).map(move |rail| {
        let before = u64::from(rail);
        let offset = Bytes::new(before * each + before.min(more));
        Stripe { rail, offset, bytes: Bytes::new(each + u64::from(before < more)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_rule_chooses_its_way() {
        let stripe_above = Bytes::new(1000);
        let choice = |rails, bytes, count| {
            Protocol { rails, stripe_above, ..Protocol::zero() }.rail_choice(Bytes::new(bytes), count)
        };
        assert_eq!(choice(Rails::None, 5000, 4), RailChoice::First);
        assert_eq!(choice(Rails::Striping, 1000, 4), RailChoice::First);
        assert_eq!(choice(Rails::Striping, 1001, 4), RailChoice::All);
        assert_eq!(choice(Rails::Striping, 5000, 1), RailChoice::First);
        assert_eq!(choice(Rails::Multiplexing, 0, 2), RailChoice::Next);
        assert_eq!(choice(Rails::Multiplexing, 5000, 1), RailChoice::First);
    }

    /// Catches a processor that pays for a message in one piece, or for parts that the interface makes.
    #[test]
    fn the_library_pays_for_the_parts_that_it_hands_over() {
        let (stripe_above, data_send) = (Bytes::new(1000), Span::from_ns(30));
        let time = |rails, rails_by, bytes, count| {
            let protocol = Protocol { rails, rails_by, stripe_above, data_send, ..Protocol::zero() };
            protocol.further_parts(count).time(Bytes::new(bytes))
        };
        use RailsBy::{Interface, Software};
        assert_eq!(time(Rails::Striping, Software, 1001, 4), Span::from_ns(90));
        assert_eq!(time(Rails::Striping, Software, 1000, 4), Span::ZERO);
        assert_eq!(time(Rails::Striping, Software, 1001, 1), Span::ZERO);
        assert_eq!(time(Rails::Striping, Interface, 1001, 4), Span::ZERO);
        assert_eq!(time(Rails::Multiplexing, Software, 1001, 4), Span::ZERO);
    }

    proptest! {
        /// Catches bytes that are in no part or in two, and parts that differ by more than a byte.
        #[test]
        fn parts_cover_a_message(bytes in 4u64..1 << 40, rails in 1u32..5) {
            let parts: Vec<Stripe> = stripes(Bytes::new(bytes), rails).collect();
            let mut next = 0;
            for (rail, part) in (0..).zip(&parts) {
                prop_assert_eq!((part.rail, part.offset.get()), (rail, next));
                prop_assert!(part.bytes.get().abs_diff(bytes / u64::from(rails)) <= 1);
                next += part.bytes.get();
            }
            prop_assert_eq!(next, bytes);
        }
    }
}

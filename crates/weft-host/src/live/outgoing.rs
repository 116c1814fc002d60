//! Messages of a host whose data the interface has not taken.
//!
//! A rank that writes with RDMA has tens of thousands of them, and at each of its turns one question is
//! asked: does it wait for one of them? The answer is a count for each seat, so that a turn costs the same
//! however many there are.

use super::posts::Taken;
use slab::Slab;
use weft_units::EndpointId;
use weft_workload::replay::MessageId;

/// A message on its way out.
pub(super) struct OutgoingMessage {
    pub seat: u32,
    /// The endpoint that sends it, and the interface's number for it there.
    pub message: MessageId,
    pub taken: Taken,
    /// Parts that have not been taken.
    parts: u32,
}

/// Messages whose data the interface has not taken, by the key that it gives back.
#[derive(Default)]
pub(super) struct OutgoingData {
    messages: Slab<OutgoingMessage>,
    /// For each seat the messages of which its rank wants to hear.
    awaited: Vec<u32>,
}

impl OutgoingData {
    /// Keeps a message of a seat. Returns its key.
    pub fn insert(&mut self, seat: usize, taken: Taken) -> u32 {
        if taken.token.is_some() {
            if self.awaited.len() <= seat {
                self.awaited.resize(seat + 1, 0);
            }
            self.awaited[seat] += 1;
        }
        let message = MessageId { source: EndpointId(0), number: 0 };
        self.messages.insert(OutgoingMessage { seat: seat as u32, message, taken, parts: 1 }) as u32
    }

    /// Notes who sends a message that is still there, and its number there.
    pub fn set_message(&mut self, key: u32, id: MessageId) {
        if let Some(message) = self.messages.get_mut(key as usize) {
            message.message = id;
        }
    }

    /// Notes the parts in which a message goes out.
    pub fn set_parts(&mut self, key: u32, parts: u32) {
        if let Some(message) = self.messages.get_mut(key as usize) {
            message.parts = parts;
        }
    }

    /// A part of a message has been taken: after the last one it is taken out.
    pub fn take_part(&mut self, key: u32) -> Option<OutgoingMessage> {
        let message = self.messages.get_mut(key as usize)?;
        message.parts -= 1;
        if message.parts == 0 { self.remove(key) } else { None }
    }

    /// Takes a message out, if it is there.
    pub fn remove(&mut self, key: u32) -> Option<OutgoingMessage> {
        let message = self.messages.try_remove(key as usize)?;
        if message.taken.token.is_some() {
            self.awaited[message.seat as usize] -= 1;
        }
        Some(message)
    }

    /// Whether the rank of a seat wants to hear of any.
    pub fn has_awaited(&self, seat: usize) -> bool {
        self.awaited.get(seat).is_some_and(|awaited| *awaited > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    type Step = (bool, usize, bool, prop::sample::Index);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec(any::<(bool, u8, bool, prop::sample::Index)>(), 1..200).prop_map(|steps| {
            steps
                .into_iter()
                .map(|(adds, seat, wants, index)| (adds, usize::from(seat % 4), wants, index))
                .collect()
        })
    }

    proptest! {
        /// The count against a look through all messages. Catches a rank that is taken to wait for nothing,
        /// whose turn then goes on past what it is to hear, and one that is taken to wait for ever.
        #[test]
        fn the_count_is_that_of_the_messages(steps in steps()) {
            let mut outgoing = OutgoingData::default();
            let mut keys = Vec::new();
            for (adds, seat, wants, index) in steps {
                if adds || keys.is_empty() {
                    let token = NonZeroU32::new(7).filter(|_| wants);
                    let taken = Taken { token, capture: None, ends: None };
                    keys.push((outgoing.insert(seat, taken), seat, wants));
                } else {
                    let (key, seat, wants) = keys.swap_remove(index.index(keys.len()));
                    let message = outgoing.remove(key).unwrap();
                    prop_assert_eq!((message.seat as usize, message.taken.token.is_some()), (seat, wants));
                    prop_assert!(outgoing.remove(key).is_none());
                }
                for seat in 0..5 {
                    let awaits = keys.iter().any(|(_, of, wants)| *of == seat && *wants);
                    prop_assert_eq!(outgoing.has_awaited(seat), awaits);
                }
            }
        }
    }
}

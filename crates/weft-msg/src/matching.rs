//! Matching of messages with receives: the posted and the unexpected queue.
//!
//! ```text
//!   arrival ──▶ search posted ──found──▶ receive gets the message
//!                   └─none──▶ unexpected queue
//!   receive ──▶ search unexpected ──found──▶ receive gets the message
//!                   └─none──▶ posted queue
//! ```
//! Both queues are searched from the oldest entry, so messages of one source, tag and communicator
//! are received in the order in which they were sent (MPI 4.1 §3.5), wildcards included. Every search
//! says how many entries it looked at: that is what matching costs the processor.
//!
//! # Source
//! MPI 4.1 §3.5 and §3.2.4; the two queues are those of MPICH and Open MPI.

use crate::nic::Envelope;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_trace::op::{CommId, RequestId};
use weft_units::{Bytes, RankId};

/// Who is told when a send or a receive has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// Nobody: a buffered send has long completed for the program.
    Nobody,
    /// A request of the program.
    Request(RequestId),
    /// The handler of [active messages](crate::active).
    Active,
    /// A collective in progress, by its entry in the table of collectives.
    Collective(u32),
    /// An operation of a real rank, by the number that it has given it.
    Live(u32),
}

/// A receive that waits for its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Posted {
    /// The communicator.
    pub comm: CommId,
    /// Whether it belongs to a collective.
    pub collective: bool,
    /// The source; `None`: any.
    pub source: Option<RankId>,
    /// The tag; `None`: any.
    pub tag: Option<i32>,
    /// Bits that need not be equal: of the communicator above, of the tag below.
    pub ignore: u64,
    /// Whether it goes on receiving after a match, until it is withdrawn.
    pub repeats: bool,
    /// Room in the buffer.
    pub bytes: Bytes,
    /// Who is told.
    pub owner: Owner,
}

impl Posted {
    pub(crate) fn accepts(&self, envelope: &Envelope) -> bool {
        (self.comm.0 ^ envelope.comm.0) & !(self.ignore >> 32) == 0
            && self.collective == envelope.collective
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.is_none_or(|tag| (tag ^ envelope.tag) as u32 & !(self.ignore as u32) == 0)
    }
}

/// What a search found, and how many entries it looked at.
pub(crate) struct Found<T> {
    pub entry: Option<T>,
    pub scanned: u64,
}

/// The two queues of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Matching {
    /// Receives without a message, oldest first.
    posted: VecDeque<Posted>,
    /// How many of them go on receiving.
    repeating: usize,
    /// Messages without a receive, oldest first.
    unexpected: VecDeque<Envelope>,
}

impl Matching {
    /// A message has arrived: finds the oldest receive that accepts it, or keeps the message.
    pub fn arrive(&mut self, envelope: Envelope) -> Found<Posted> {
        let found = match self.posted.iter().position(|posted| posted.accepts(&envelope)) {
            Some(index) if self.posted[index].repeats => {
                Found { entry: Some(self.posted[index]), scanned: 1 }
            }
            Some(index) => Found { scanned: self.looked_at(index + 1), entry: self.posted.remove(index) },
            None => Found { entry: None, scanned: self.looked_at(self.posted.len()) },
        };
        if found.entry.is_none() {
            self.unexpected.push_back(envelope);
        }
        found
    }

    /// What it costs to look through the oldest receives: those that go on receiving are a list of their own, in which only
    /// what they take is looked for.
    fn looked_at(&self, oldest: usize) -> u64 {
        let others = match self.repeating {
            0 => oldest,
            _ => self.posted.iter().take(oldest).filter(|posted| !posted.repeats).count(),
        };
        others as u64
    }

    /// A receive is posted: finds the oldest message that it accepts, or keeps the receive.
    pub fn post(&mut self, receive: Posted) -> Found<Envelope> {
        let found = take(&mut self.unexpected, |envelope| receive.accepts(envelope));
        if found.entry.is_none() {
            self.posted.push_back(receive);
        }
        found
    }

    /// The oldest message that a receive like this would get, which stays.
    pub fn peek(&self, receive: &Posted) -> Found<Envelope> {
        match self.unexpected.iter().position(|envelope| receive.accepts(envelope)) {
            Some(index) => Found { entry: Some(self.unexpected[index]), scanned: index as u64 + 1 },
            None => Found { entry: None, scanned: self.unexpected.len() as u64 },
        }
    }

    /// Takes the oldest message that a receive like this would get.
    pub fn claim(&mut self, receive: &Posted) -> Option<Envelope> {
        take(&mut self.unexpected, |envelope| receive.accepts(envelope)).entry
    }

    /// Withdraws a receive; says whether it was there.
    pub fn withdraw(&mut self, owner: Owner) -> bool {
        let withdrawn = take(&mut self.posted, |posted| posted.owner == owner).entry;
        self.repeating -= usize::from(withdrawn.is_some_and(|posted| posted.repeats));
        withdrawn.is_some()
    }

    /// Keeps a receive that goes on receiving.
    pub fn keep(&mut self, receive: Posted) {
        self.repeating += usize::from(receive.repeats);
        self.posted.push_back(receive);
    }

    /// The receives that wait for a message, oldest first.
    pub fn posted(&self) -> impl Iterator<Item = &Posted> {
        self.posted.iter()
    }

    /// The receives that wait for a message, to change whom they tell.
    pub fn posted_mut(&mut self) -> impl Iterator<Item = &mut Posted> {
        self.posted.iter_mut()
    }

    /// The messages that wait for a receive, oldest first.
    pub fn unexpected(&self) -> impl Iterator<Item = &Envelope> {
        self.unexpected.iter()
    }
}

/// Removes the oldest entry that fits. The removal moves no more entries than the search looked at.
fn take<T>(queue: &mut VecDeque<T>, fits: impl FnMut(&T) -> bool) -> Found<T> {
    match queue.iter().position(fits) {
        Some(index) => Found { entry: queue.remove(index), scanned: index as u64 + 1 },
        None => Found { entry: None, scanned: queue.len() as u64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::EnvelopeKind;
    use proptest::prelude::*;

    fn message(source: u32, tag: i32, bytes: u64) -> Envelope {
        Envelope {
            kind: EnvelopeKind::Eager,
            collective: false,
            source: RankId(source),
            tag,
            comm: CommId::WORLD,
            bytes: Bytes::new(bytes),
            send: 0,
            receive: 0,
        }
    }

    fn receive(source: Option<u32>, tag: Option<i32>, request: u32) -> Posted {
        Posted {
            comm: CommId::WORLD,
            collective: false,
            source: source.map(RankId),
            tag,
            ignore: 0,
            repeats: false,
            bytes: Bytes::new(u64::MAX),
            owner: Owner::Request(RequestId(request)),
        }
    }

    #[test]
    fn a_collective_or_another_communicator_never_matches_the_programs_message() {
        let mut matching = Matching::default();
        matching.post(Posted { collective: true, ..receive(None, None, 0) });
        matching.post(Posted { comm: CommId(7), ..receive(None, None, 1) });
        assert!(matching.arrive(message(0, 0, 0)).entry.is_none());
        assert_eq!(matching.posted().count(), 2);
    }

    #[test]
    fn the_cost_is_the_number_of_entries_looked_at() {
        let mut matching = Matching::default();
        for tag in 0..5 {
            assert_eq!(matching.post(receive(Some(0), Some(tag), 0)).scanned, 0);
        }
        assert_eq!(matching.arrive(message(0, 3, 0)).scanned, 4);
        assert_eq!(matching.arrive(message(0, 9, 0)).scanned, 4);
        assert_eq!(matching.post(receive(Some(0), Some(9), 0)).scanned, 1);
    }

    /// Catches a library's standing receives that every message of another kind pays for.
    #[test]
    fn receives_that_go_on_cost_others_nothing() {
        let mut matching = Matching::default();
        for number in 0..8 {
            matching.keep(Posted { collective: true, repeats: true, ..receive(None, None, number) });
        }
        assert_eq!(matching.post(receive(Some(0), Some(1), 9)).scanned, 0);
        assert_eq!(matching.arrive(message(0, 1, 0)).scanned, 1);
        assert_eq!(matching.arrive(Envelope { collective: true, ..message(0, 1, 0) }).scanned, 1);
        assert!(matching.withdraw(Owner::Request(RequestId(0))));
        assert_eq!(matching.arrive(message(0, 2, 0)).scanned, 0);
    }

    proptest! {
        /// Catches overtaking: against an oracle that keeps everything in one list, receives with and
        /// without wildcards must get the oldest message they accept, messages the oldest receive.
        #[test]
        fn the_oldest_wins(
            events in prop::collection::vec((any::<bool>(), 0u32..3, 0i32..3, any::<bool>(), any::<bool>()), 0..80),
        ) {
            let mut matching = Matching::default();
            let (mut receives, mut messages): (Vec<Posted>, Vec<Envelope>) = (vec![], vec![]);
            for (number, (arrives, source, tag, any_source, any_tag)) in events.into_iter().enumerate() {
                if arrives {
                    let envelope = message(source, tag, number as u64);
                    let expected = receives.iter().position(|r| r.accepts(&envelope)).map(|i| receives.remove(i));
                    if expected.is_none() {
                        messages.push(envelope);
                    }
                    prop_assert_eq!(matching.arrive(envelope).entry, expected);
                } else {
                    let (source, tag) = ((!any_source).then_some(source), (!any_tag).then_some(tag));
                    let posted = receive(source, tag, number as u32);
                    let expected = messages.iter().position(|m| posted.accepts(m)).map(|i| messages.remove(i));
                    if expected.is_none() {
                        receives.push(posted);
                    }
                    prop_assert_eq!(matching.post(posted).entry, expected);
                }
            }
        }
    }
}

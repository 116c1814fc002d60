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
//! A real rank with several endpoints has the two queues once for each: a search at one never meets what is
//! at another.
//!
//! # Source
//! MPI 4.1 §3.5 and §3.2.4; the two queues are those of MPICH and Open MPI.

use crate::envelope::{Envelope, Match, RankEndpoints};
use crate::posted::PostedReceives;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_trace::op::{CommId, RequestId};
use weft_units::{Address, Bytes, RankId};

/// Who is told when a send or a receive has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Owner {
    /// Nobody: a buffered send has long completed for the program.
    Nobody,
    /// A request of the program.
    Request(RequestId),
    /// A collective in progress, by its entry in the table of collectives.
    Collective(u32),
    /// An operation of a real rank, by the number that it has given it.
    Live(u32),
}

/// A receive that waits for its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PostedReceive {
    /// The communicator.
    pub comm: CommId,
    /// Whether it belongs to a collective.
    pub collective: bool,
    /// The source; `None`: any.
    pub source: Option<RankId>,
    /// The tag or the collective's number; `None`: any.
    pub number: Option<i32>,
    /// The rank's own endpoint; and, unless any source is accepted, that of the source.
    pub endpoints: RankEndpoints,
    /// Bits that need not be equal: of the communicator above, of the number below.
    pub ignore: u64,
    /// Whether it goes on receiving after a match, until it is withdrawn.
    pub repeats: bool,
    /// Room in the buffer.
    pub bytes: Bytes,
    /// Who is told.
    pub owner: Owner,
    /// The place of the buffer in the rank's memory; a real rank's is not known here.
    pub buffer: Address,
}

impl PostedReceive {
    /// Whether it receives a message of this envelope.
    #[inline]
    pub(crate) fn accepts(&self, envelope: &Envelope) -> bool {
        envelope.matching().is_some_and(|Match { comm, context }| {
            let endpoints = context.endpoints();
            (self.comm.0 ^ comm.0) & !(self.ignore >> 32) == 0
                && self.collective == context.is_untagged()
                && self.endpoints.to() == endpoints.to()
                && self.source.is_none_or(|source| {
                    source == envelope.source && self.endpoints.from() == endpoints.from()
                })
                && self
                    .number
                    .is_none_or(|number| (number ^ context.number()) as u32 & !(self.ignore as u32) == 0)
        })
    }
}

/// The entry that a search found, and the number of entries that it looked at.
pub(crate) struct SearchResult<T> {
    pub entry: Option<T>,
    pub scanned: u64,
}

/// Endpoints of a rank behind its first.
const OTHERS: usize = RankEndpoints::MOST as usize - 1;

/// The queues of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Matching {
    /// Those of its first endpoint: a simulated rank has no other.
    first: Queues,
    /// Those of the endpoints behind it, once one of them is used. A real rank is never saved.
    #[serde(skip)]
    others: Option<Box<[Queues; OTHERS]>>,
}

impl Matching {
    /// A message has arrived: finds the oldest receive that accepts it, or keeps the message.
    pub fn arrive(&mut self, envelope: Envelope) -> SearchResult<PostedReceive> {
        let endpoints =
            envelope.matching().map_or(RankEndpoints::FIRST, |matching| matching.context.endpoints());
        self.at(endpoints).arrive(envelope)
    }

    /// A receive is posted: finds the oldest message that it accepts, or keeps the receive.
    pub fn post(&mut self, receive: PostedReceive) -> SearchResult<Envelope> {
        self.at(receive.endpoints).post(receive)
    }

    /// The oldest message that a receive like this would get, which stays.
    pub fn peek(&self, receive: &PostedReceive) -> SearchResult<Envelope> {
        let queues = match usize::from(receive.endpoints.to()).checked_sub(1) {
            None => Some(&self.first),
            Some(other) => self.others.as_deref().map(|others| &others[other]),
        };
        queues.map_or(SearchResult { entry: None, scanned: 0 }, |queues| queues.peek(receive))
    }

    /// Takes the oldest message that a receive like this would get.
    pub fn claim(&mut self, receive: &PostedReceive) -> Option<Envelope> {
        let unexpected = &mut self.at(receive.endpoints).unexpected;
        take(unexpected, |envelope| receive.accepts(envelope)).entry
    }

    /// Withdraws a receive; says whether it was there.
    pub fn withdraw(&mut self, owner: Owner) -> bool {
        let others = self.others.iter_mut().flat_map(|others| others.iter_mut());
        std::iter::once(&mut self.first).chain(others).any(|queues| queues.withdraw(owner))
    }

    /// Keeps a receive that goes on receiving.
    pub fn keep(&mut self, receive: PostedReceive) {
        self.at(receive.endpoints).posted.push(receive);
    }

    /// The receives that wait for a message, oldest first of each endpoint.
    pub fn posted(&self) -> impl Iterator<Item = &PostedReceive> {
        self.all().flat_map(|queues| queues.posted.iter())
    }

    /// Whose receives wait for a message, to be changed. Of a simulated rank.
    pub fn owners_mut(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.first.posted.owners_mut()
    }

    /// The messages that wait for a receive, oldest first of each endpoint.
    pub fn unexpected(&self) -> impl Iterator<Item = &Envelope> {
        self.all().flat_map(|queues| &queues.unexpected)
    }

    fn all(&self) -> impl Iterator<Item = &Queues> {
        std::iter::once(&self.first).chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// The queues of the receiver's endpoint.
    #[inline]
    fn at(&mut self, endpoints: RankEndpoints) -> &mut Queues {
        match usize::from(endpoints.to()).checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others.get_or_insert_default()[other],
        }
    }
}

/// The two queues of one endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Queues {
    /// Receives without a message, oldest first.
    posted: PostedReceives,
    /// Messages without a receive, oldest first.
    unexpected: VecDeque<Envelope>,
}

impl Queues {
    fn arrive(&mut self, envelope: Envelope) -> SearchResult<PostedReceive> {
        let found = match self.posted.find(&envelope) {
            Some(index) if self.posted.at(index).repeats => {
                SearchResult { entry: Some(*self.posted.at(index)), scanned: 1 }
            }
            Some(index) => {
                SearchResult { scanned: self.looked_at(index + 1), entry: self.posted.remove(index) }
            }
            None => SearchResult { entry: None, scanned: self.looked_at(self.posted.len()) },
        };
        if found.entry.is_none() {
            self.unexpected.push_back(envelope);
        }
        found
    }

    /// The entries that a search through the `oldest` receives counts. Those of a real rank that go on
    /// receiving are a list of their own, in which only the messages that they take are looked for.
    fn looked_at(&self, oldest: usize) -> u64 {
        let others = match self.posted.iter().next() {
            Some(PostedReceive { owner: Owner::Live(_), .. }) => {
                self.posted.iter().take(oldest).filter(|posted| !posted.repeats).count()
            }
            _ => oldest,
        };
        others as u64
    }

    fn post(&mut self, receive: PostedReceive) -> SearchResult<Envelope> {
        let found = take(&mut self.unexpected, |envelope| receive.accepts(envelope));
        if found.entry.is_none() {
            self.posted.push(receive);
        }
        found
    }

    fn peek(&self, receive: &PostedReceive) -> SearchResult<Envelope> {
        match self.unexpected.iter().position(|envelope| receive.accepts(envelope)) {
            Some(index) => SearchResult { entry: Some(self.unexpected[index]), scanned: index as u64 + 1 },
            None => SearchResult { entry: None, scanned: self.unexpected.len() as u64 },
        }
    }

    fn withdraw(&mut self, owner: Owner) -> bool {
        self.posted.withdraw(owner)
    }
}

/// Removes the oldest entry that fits. The removal moves no more entries than the search looked at.
fn take<T>(queue: &mut VecDeque<T>, fits: impl FnMut(&T) -> bool) -> SearchResult<T> {
    match queue.iter().position(fits) {
        Some(index) => SearchResult { entry: queue.remove(index), scanned: index as u64 + 1 },
        None => SearchResult { entry: None, scanned: queue.len() as u64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Body, MatchContext};
    use proptest::prelude::*;

    fn message(source: u32, tag: i32, bytes: u64) -> Envelope {
        in_context(source, MatchContext::Program(tag), bytes)
    }

    fn in_context(source: u32, context: MatchContext, bytes: u64) -> Envelope {
        let body = Body::Eager { matching: Match { comm: CommId::WORLD, context }, receipt: None };
        Envelope::new(RankId(source), Bytes::new(bytes), body)
    }

    fn receive(source: Option<u32>, tag: Option<i32>, request: u32) -> PostedReceive {
        PostedReceive {
            comm: CommId::WORLD,
            collective: false,
            source: source.map(RankId),
            number: tag,
            endpoints: RankEndpoints::FIRST,
            ignore: 0,
            repeats: false,
            bytes: Bytes::new(u64::MAX),
            owner: Owner::Request(RequestId(request)),
            buffer: Address::default(),
        }
    }

    #[test]
    fn a_collective_or_another_communicator_never_matches_the_programs_message() {
        let mut matching = Matching::default();
        matching.post(PostedReceive { collective: true, ..receive(None, None, 0) });
        matching.post(PostedReceive { comm: CommId(7), ..receive(None, None, 1) });
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
            let owner = Owner::Live(number);
            let collective = true;
            matching.keep(PostedReceive { collective, repeats: true, owner, ..receive(None, None, number) });
        }
        assert_eq!(matching.post(receive(Some(0), Some(1), 9)).scanned, 0);
        assert_eq!(matching.arrive(message(0, 1, 0)).scanned, 1);
        assert_eq!(matching.arrive(in_context(0, MatchContext::Collective(1), 0)).scanned, 1);
        assert!(matching.withdraw(Owner::Live(0)));
        assert_eq!(matching.arrive(message(0, 2, 0)).scanned, 0);
    }

    fn live(source: u32, from: u8, to: u8, bytes: u64) -> Envelope {
        let endpoints = RankEndpoints::new(from, to).unwrap();
        in_context(source, MatchContext::Live { tagged: true, endpoints, number: 7 }, bytes)
    }

    /// Catches a receive that takes the message of another endpoint, of its own rank or of the sender's, and
    /// a search that pays for the entries of one.
    #[test]
    fn endpoints_share_nothing() {
        let mut matching = Matching::default();
        let at = |to, source: Option<(u32, u8)>| PostedReceive {
            endpoints: RankEndpoints::new(source.map_or(0, |(_, from)| from), to).unwrap(),
            ..receive(source.map(|(rank, _)| rank), Some(7), 0)
        };
        for to in [0, 0, 0, 2] {
            assert_eq!(matching.arrive(live(1, 5, to, u64::from(to))).scanned, 0);
        }
        assert_eq!(matching.peek(&at(1, None)).scanned, 0);
        let wrong_source = matching.post(at(2, Some((1, 0))));
        assert!(wrong_source.entry.is_none() && wrong_source.scanned == 1);
        let found = matching.post(at(2, None));
        assert_eq!((found.entry, found.scanned), (Some(live(1, 5, 2, 2)), 1));
        assert_eq!(matching.claim(&at(0, Some((1, 5)))), Some(live(1, 5, 0, 0)));
        assert_eq!((matching.posted().count(), matching.unexpected().count()), (1, 2));
        assert_eq!(matching.arrive(live(1, 0, 2, 9)).scanned, 1);
        matching.keep(PostedReceive { owner: Owner::Live(3), ..at(9, None) });
        assert!(matching.withdraw(Owner::Live(3)) && !matching.withdraw(Owner::Live(3)));
    }

    proptest! {
        /// Catches overtaking: against an oracle that keeps everything in one list, receives with and
        /// without wildcards must get the oldest message they accept, messages the oldest receive.
        #[test]
        fn the_oldest_wins(
            events in prop::collection::vec((any::<bool>(), 0u32..3, 0i32..3, any::<[bool; 2]>()), 0..80),
        ) {
            let mut matching = Matching::default();
            let (mut receives, mut messages): (Vec<PostedReceive>, Vec<Envelope>) = (vec![], vec![]);
            for (number, (arrives, source, tag, [any_source, any_tag])) in events.into_iter().enumerate() {
                if arrives {
                    let envelope = message(source, tag, number as u64);
                    let oldest = receives.iter().position(|receive| receive.accepts(&envelope));
                    let expected = oldest.map(|oldest| receives.remove(oldest));
                    if expected.is_none() {
                        messages.push(envelope);
                    }
                    prop_assert_eq!(matching.arrive(envelope).entry, expected);
                } else {
                    let (source, tag) = ((!any_source).then_some(source), (!any_tag).then_some(tag));
                    let posted = receive(source, tag, number as u32);
                    let oldest = messages.iter().position(|message| posted.accepts(message));
                    let expected = oldest.map(|oldest| messages.remove(oldest));
                    if expected.is_none() {
                        receives.push(posted);
                    }
                    prop_assert_eq!(matching.post(posted).entry, expected);
                }
            }
        }
    }
}

//! The receives of an endpoint that wait for a message, oldest first.
//!
//! A message is looked for among all of them, and in a redistribution over hundreds of ranks it mostly is the
//! last of hundreds. Their sources lie side by side, so that the search looks at few lines of memory.

use crate::envelope::Envelope;
use crate::matching::{Owner, PostedReceive};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The source of a receive that takes messages of any: no rank has this number.
const ANY_SOURCE: u32 = u32::MAX;

/// The receives, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PostedReceives {
    receives: VecDeque<PostedReceive>,
    /// The source of each.
    sources: VecDeque<u32>,
}

impl PostedReceives {
    pub fn len(&self) -> usize {
        self.receives.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &PostedReceive> {
        self.receives.iter()
    }

    /// Whose receives these are, to be changed.
    pub fn owners_mut(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.receives.iter_mut().map(|receive| &mut receive.owner)
    }

    /// A receive behind all others.
    pub fn push(&mut self, receive: PostedReceive) {
        self.sources.push_back(receive.source.map_or(ANY_SOURCE, |source| source.0));
        self.receives.push_back(receive);
    }

    /// The place of the oldest receive that accepts a message.
    pub fn find(&self, envelope: &Envelope) -> Option<usize> {
        let source = envelope.source.0;
        let (front, back) = self.sources.as_slices();
        let mut place = 0;
        // Loops, since quick builds call the steps of an iterator that is made of others.
        for part in [front, back] {
            for of in part {
                if (*of == source || *of == ANY_SOURCE) && self.receives[place].accepts(envelope) {
                    return Some(place);
                }
                place += 1;
            }
        }
        None
    }

    /// The receive at a place, which is there.
    pub fn at(&self, place: usize) -> &PostedReceive {
        &self.receives[place]
    }

    /// Takes the receive at a place away.
    pub fn remove(&mut self, place: usize) -> Option<PostedReceive> {
        self.sources.remove(place);
        self.receives.remove(place)
    }

    /// Takes the oldest receive of an owner away; says whether it was there.
    pub fn withdraw(&mut self, owner: Owner) -> bool {
        let found = self.receives.iter().position(|receive| receive.owner == owner);
        found.is_some_and(|place| self.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Body, Match, MatchContext, RankEndpoints};
    use weft_trace::op::{CommId, RequestId};
    use weft_units::{Address, Bytes, RankId};

    /// Catches a source that stays when its receive is withdrawn, and a receive of any source that is passed
    /// over.
    #[test]
    fn sources_go_with_their_receives() {
        let mut posted = PostedReceives::default();
        for (request, source) in [Some(4), Some(7), None, Some(4)].into_iter().enumerate() {
            posted.push(PostedReceive {
                comm: CommId::WORLD,
                collective: false,
                source: source.map(RankId),
                number: None,
                endpoints: RankEndpoints::FIRST,
                ignore: 0,
                repeats: false,
                bytes: Bytes::ZERO,
                owner: Owner::Request(RequestId(request as u32)),
                buffer: Address::default(),
            });
        }
        let matching = Match { comm: CommId::WORLD, context: MatchContext::Program(0) };
        let body = Body::Eager { matching, receipt: None };
        let place =
            |posted: &PostedReceives, source| posted.find(&Envelope::new(RankId(source), Bytes::ZERO, body));
        assert_eq!([4, 7, 9].map(|source| place(&posted, source)), [Some(0), Some(1), Some(2)]);
        assert!(posted.withdraw(Owner::Request(RequestId(1))));
        assert_eq!([4, 7, 9].map(|source| place(&posted, source)), [Some(0), Some(1), Some(1)]);
        assert!(posted.remove(1).is_some_and(|receive| receive.source.is_none()));
        assert_eq!([4, 7].map(|source| place(&posted, source)), [Some(0), None]);
        assert_eq!(posted.len(), 2);
    }
}

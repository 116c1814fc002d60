//! Answers in the places of ranks that wait: see [`crate::stand_in`].
//!
//! ```text
//!   notice ──► the rank waits, in a blocking call ──► stand-in ─┬─ posts, log, clock ──► as if in its turn
//!                                                              └─ it ends something ──► its turn, with
//!                                                                                       all notices
//! ```

use super::{Handler, LiveHost, LiveParameters, LiveRank, Resume};
use crate::stand_in::StandIn;
use weft_client::device::{Notice, State};
use weft_msg::Body;
use weft_nic::HostContext;
use weft_units::Time;

/// The largest number of notices that may be answered before the rank takes them: a small part of what its
/// inbox holds.
const MAX_ANSWERED_NOTICES: usize = 32;
/// The largest number of bytes that come with an answered notice.
const MAX_ANSWERED_BYTES: usize = 4 << 10;

/// Who answers in a rank's place while it waits.
#[derive(Default)]
pub(super) enum Answerer {
    /// Nobody has been looked for.
    #[default]
    Unknown,
    /// The rank itself.
    Own,
    /// Somebody.
    Taken(Box<StandIn>),
}

impl LiveRank {
    /// Whether it has notices that nobody has answered: they stand behind those that somebody has.
    pub(super) fn has_unanswered(&self) -> bool {
        self.notices.back().is_some_and(|(notice, ..)| !notice.is_answered())
    }

    /// The next of its notices that somebody else may answer.
    fn next_answer(&self) -> Option<usize> {
        let index = self.notices.iter().position(|(notice, ..)| !notice.is_answered())?;
        let (notice, bytes, _) = &self.notices[index];
        (index < MAX_ANSWERED_NOTICES && bytes.len() <= MAX_ANSWERED_BYTES && StandIn::may_answer(notice))
            .then_some(index)
    }

    /// Looks for somebody who answers in its place.
    fn find_stand_in(&mut self, parameters: &LiveParameters) {
        if let Answerer::Unknown = self.place {
            let stand_in = parameters.job.stand_in(self.rank);
            self.place = stand_in.map_or(Answerer::Own, |stand_in| Answerer::Taken(Box::new(stand_in)));
        }
    }
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// Answers in the place of a rank that waits what it has not taken; says whether that is all. If it is
    /// not, it is the rank's turn.
    pub(super) fn answer_in_place(&mut self, seat: usize) -> bool {
        let before = self.host.ranks[seat].clock;
        while self.host.ranks[seat].has_unanswered() {
            if self.parameters.job.is_stopping() || !self.answer_one(seat) {
                let rank = &self.host.ranks[seat];
                if rank.clock != before {
                    self.parameters.job.set_polled(rank.rank, rank.clock, State::Wait);
                }
                return false;
            }
        }
        let rank = &mut self.host.ranks[seat];
        if let Answerer::Taken(stand_in) = &rank.place {
            let polls = stand_in.polls(rank.clock);
            rank.ledger.enter(&polls, &mut self.parameters.told(self.context.output()));
            (rank.wants, rank.clock, rank.polls_left) = (State::Poll, polls.until, rank.polls);
            self.parameters.job.set_polled(rank.rank, rank.clock, State::Poll);
            let at = Time::from_ps(rank.clock).max(self.context.now());
            self.context.set_timer(at, Resume::Seat(seat as u32));
        }
        true
    }

    /// Answers the next of its notices, if that ends nothing.
    fn answer_one(&mut self, seat: usize) -> bool {
        let rank = &mut self.host.ranks[seat];
        let Some(index) = rank.next_answer() else { return false };
        // What is received ends something: most small messages are, for which nobody need be looked for.
        if let (Answerer::Unknown, Some(envelope)) = (&rank.place, rank.notices[index].0.envelope.envelope())
            && matches!(envelope.body, Body::Eager { .. })
            && self.parameters.job.may_receive(rank.rank, &envelope)
        {
            return false;
        }
        rank.find_stand_in(self.parameters);
        let Answerer::Taken(stand_in) = &mut rank.place else { return false };
        let (notice, bytes, cause) = &mut rank.notices[index];
        let answer = stand_in.answer(rank.clock, notice, bytes.len(), &self.parameters.protocol);
        let Some(answer) = answer else { return false };
        notice.flags |= Notice::ANSWERED;
        rank.clock = answer.clock;
        rank.ledger.gives(Time::from_ps(notice.at), *cause);
        rank.empty_mailbox(seat, self.context);
        let posts = answer.posts.into_iter().map(|post| (post, Vec::new())).collect();
        self.carry_all(seat, posts, &answer.log);
        true
    }
}

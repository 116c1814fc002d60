//! The way out: packets of all blocks take turns on the link to the network.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.4: the interface serializes the requests of different applications packet by
//! packet. The order among the blocks is not in the text: round robin.
//!
//! # Not modelled
//! Traffic of high priority, which §4.2 mentions: classes are told apart from the link on.

use crate::mailbox::Refusal;
use crate::packetizer::{ChannelId, EnginePacket};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{EndpointId, Time};

/// The answer of a mailbox to a small packet: a packet without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub to: EndpointId,
    /// The message that it answers, counted by the one who sent that.
    pub message: u32,
    /// The channel that it was posted to there.
    pub channel: ChannelId,
    /// Why the mailbox has refused the packet; `None`: it has the packet.
    pub refusal: Option<Refusal>,
}

/// Who has a packet for the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Answer(Answer),
    Packetizer(EnginePacket),
    Rdma,
    NotBefore(Time),
}

/// Who would send, as the network is asked whether it takes the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Candidate {
    Answer,
    Small(ChannelId),
    Rdma,
}

/// Answers, small packets, RDMA.
const SOURCES: u8 = 3;

/// The arbiter, with the queues of blocks that make their packets ahead of time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Transmit {
    answers: VecDeque<(Time, Answer)>,
    /// Small packets, in the order in which the engine makes them.
    pub small: VecDeque<EnginePacket>,
    /// Whose turn it is among those that have a packet.
    turn: u8,
}

impl Transmit {
    /// An answer that will be ready at `ready`. Each block's are so one after the other; those of two are put
    /// in order.
    #[inline]
    pub fn answer(&mut self, ready: Time, answer: Answer) {
        match self.answers.back() {
            Some((last, _)) if *last > ready => {
                let place = self.answers.partition_point(|(other, _)| *other <= ready);
                self.answers.insert(place, (ready, answer));
            }
            _ => self.answers.push_back((ready, answer)),
        }
    }

    /// When there will be a packet, where RDMA has one at `rdma`; [`Time::NEVER`]: none is known of.
    #[inline]
    pub fn ready(&self, rdma: Time) -> Time {
        let first = |entry: Option<Time>| entry.unwrap_or(Time::NEVER);
        let answers = first(self.answers.front().map(|entry| entry.0));
        answers.min(first(self.small.front().map(|packet| packet.made))).min(rdma)
    }

    /// Who sends at `now`; RDMA has a cell at `rdma`. `admits` says whether the network takes a packet of the
    /// candidate's traffic class now.
    #[inline]
    pub fn next(&mut self, now: Time, rdma: Time, admits: impl Fn(Candidate) -> bool) -> Turn {
        let later = |ready: Time| if ready > now { ready } else { Time::NEVER };
        if self.answers.is_empty() && self.small.is_empty() {
            // A long transfer has the link to itself, as a rule.
            if rdma > now || !admits(Candidate::Rdma) {
                return Turn::NotBefore(later(rdma));
            }
            self.turn = 0;
            return Turn::Rdma;
        }
        let answer = self.answers.front().map_or(Time::NEVER, |entry| entry.0);
        let small = self.small.front().map_or(Time::NEVER, |packet| packet.made);
        let ready = [answer, small, rdma];
        let is_ready = |source: u8| u8::from(ready[usize::from(source)] <= now) << source;
        let mut left = is_ready(0) | is_ready(1) | is_ready(2);
        while left != 0 {
            // The first from the one whose turn it is.
            let in_turn = left >> self.turn << self.turn;
            let source = if in_turn != 0 { in_turn } else { left }.trailing_zeros() as u8;
            left &= !(1 << source);
            let turn = match source {
                0 => self.take_answer(&admits),
                1 => self.take_small(&admits),
                _ => admits(Candidate::Rdma).then_some(Turn::Rdma),
            };
            if let Some(turn) = turn {
                self.turn = if source + 1 < SOURCES { source + 1 } else { 0 };
                return turn;
            }
        }
        // Whatever is ready waits for a place in the network, which asks again.
        Turn::NotBefore(later(answer).min(later(small)).min(later(rdma)))
    }

    /// Takes the first answer, if it is admitted.
    #[inline]
    fn take_answer(&mut self, admits: impl Fn(Candidate) -> bool) -> Option<Turn> {
        let answer = self.answers.front()?.1;
        if !admits(Candidate::Answer) {
            return None;
        }
        self.answers.pop_front();
        Some(Turn::Answer(answer))
    }

    /// Takes the first small packet, if it is admitted.
    #[inline]
    fn take_small(&mut self, admits: impl Fn(Candidate) -> bool) -> Option<Turn> {
        let packet = *self.small.front()?;
        if !admits(Candidate::Small(packet.channel)) {
            return None;
        }
        self.small.pop_front();
        Some(Turn::Packetizer(packet))
    }
}

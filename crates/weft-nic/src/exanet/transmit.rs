//! The way out: packets of all blocks take turns on the link to the network.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.4: the interface serializes the requests of different applications packet by
//! packet. The order among the blocks is not in the text: round robin.
//!
//! # Not modelled
//! Traffic of high priority, which §4.2 mentions: classes are told apart from the link on.

use crate::mailbox::Refusal;
use crate::packetizer::ChannelId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{EndpointId, Time};

/// The answer of the mailbox to a small packet: a packet without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub to: EndpointId,
    /// The message that it answers, counted by the one who sent that.
    pub message: u32,
    /// Why the mailbox has refused the packet; `None`: it has the packet.
    pub refusal: Option<Refusal>,
}

/// Who has a packet for the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Answer(Answer),
    Packetizer { ready: Time, channel: ChannelId, message: u32 },
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

/// The arbiter, with the queues of blocks that make their packets ahead of time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Transmit {
    answers: VecDeque<(Time, Answer)>,
    small: VecDeque<(Time, ChannelId, u32)>,
    /// Whose turn it is among those that have a packet.
    turn: u8,
}

const SOURCES: u8 = 3;

impl Transmit {
    /// An answer that will be ready at `ready`, no earlier than those before.
    #[inline]
    pub fn answer(&mut self, ready: Time, answer: Answer) {
        self.answers.push_back((ready, answer));
    }

    /// The packet of `message` in a channel will be ready at `ready`, no earlier than those before.
    #[inline]
    pub fn small(&mut self, ready: Time, channel: ChannelId, message: u32) {
        self.small.push_back((ready, channel, message));
    }

    /// When there will be a packet, where RDMA has one at `rdma`; [`Time::NEVER`]: none is known of.
    #[inline]
    pub fn ready(&self, rdma: Time) -> Time {
        let first = |entry: Option<Time>| entry.unwrap_or(Time::NEVER);
        let answers = first(self.answers.front().map(|entry| entry.0));
        answers.min(first(self.small.front().map(|entry| entry.0))).min(rdma)
    }

    /// Who sends at `now`; RDMA has a cell at `rdma`. `admits` says whether the network takes a packet of the
    /// candidate's traffic class now.
    #[inline]
    pub fn next(&mut self, now: Time, rdma: Time, admits: impl Fn(Candidate) -> bool) -> Turn {
        for step in 0..SOURCES {
            let source = (self.turn + step) % SOURCES;
            let turn = match source {
                0 => self.answers.front().filter(|(ready, _)| *ready <= now).map(|e| Turn::Answer(e.1)),
                1 => {
                    let first = self.small.front().filter(|(ready, ..)| *ready <= now);
                    first.map(|&(ready, channel, message)| Turn::Packetizer { ready, channel, message })
                }
                _ => (rdma <= now).then_some(Turn::Rdma),
            };
            let Some(turn) = turn else { continue };
            let candidate = match turn {
                Turn::Packetizer { channel, .. } => Candidate::Small(channel),
                Turn::Rdma => Candidate::Rdma,
                Turn::Answer(_) | Turn::NotBefore(_) => Candidate::Answer,
            };
            if !admits(candidate) {
                continue;
            }
            match source {
                0 => drop(self.answers.pop_front()),
                1 => drop(self.small.pop_front()),
                _ => {}
            }
            self.turn = (source + 1) % SOURCES;
            return turn;
        }
        // Whatever is ready waits for a place in the network, which asks again.
        let later = |ready: Option<Time>| ready.filter(|ready| *ready > now).unwrap_or(Time::NEVER);
        let answers = later(self.answers.front().map(|entry| entry.0));
        let small = later(self.small.front().map(|entry| entry.0));
        Turn::NotBefore(answers.min(small).min(later(Some(rdma))))
    }
}

//! What the packets of the block-level interface are.

use crate::mailbox::Refusal;
use crate::rdma::{Answer, Refusal as BlockRefusal};
use weft_fabric::Packet;

/// In the label of every answer.
const ANSWER: u8 = Packet::ACKNOWLEDGEMENT;

/// What a packet is, as its header says: [`weft_fabric::Packet::label`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Label {
    /// From a packetizer to a mailbox.
    Small = 1,
    /// The mailbox has it.
    Acknowledgement = 2 | ANSWER,
    /// It was damaged.
    RefusedDamaged = 3 | ANSWER,
    /// It is of another protection domain.
    RefusedDomain = 4 | ANSWER,
    /// There is no such virtual interface.
    RefusedInterface = 5 | ANSWER,
    /// The mailbox is full.
    RefusedFull = 6 | ANSWER,
    /// A cell of an RDMA write.
    Cell = 7,
    /// A block of cells is in memory.
    BlockAcknowledgement = 8 | ANSWER,
    /// There was no context for it.
    BlockWithoutContext = 9 | ANSWER,
    /// It met a page fault.
    BlockFaulted = 10 | ANSWER,
    /// It is of another protection domain.
    BlockOfDomain = 11 | ANSWER,
    /// The vector of a client module, for the server of its board.
    Contribution = 12,
    /// The vector of a server module, for another one.
    Exchange = 13,
    /// The reduced vector, for the clients.
    Result = 14,
    /// A module waits for the vector of another one.
    AskVector = 15,
    /// It does not have it yet.
    NoVectorYet = 16,
    /// It will not have it.
    VectorFailed = 17,
}

impl Label {
    const ALL: [Label; 17] = [
        Label::Small,
        Label::Acknowledgement,
        Label::RefusedDamaged,
        Label::RefusedDomain,
        Label::RefusedInterface,
        Label::RefusedFull,
        Label::Cell,
        Label::BlockAcknowledgement,
        Label::BlockWithoutContext,
        Label::BlockFaulted,
        Label::BlockOfDomain,
        Label::Contribution,
        Label::Exchange,
        Label::Result,
        Label::AskVector,
        Label::NoVectorYet,
        Label::VectorFailed,
    ];

    /// The label of a packet; `None`: no packet of this interface.
    #[inline]
    pub fn of(label: u8) -> Option<Label> {
        let number = usize::from(label & !ANSWER);
        Label::ALL.get(number.checked_sub(1)?).copied().filter(|found| *found as u8 == label)
    }

    /// The answer to a packet that a mailbox refuses.
    pub fn refusal(why: Refusal) -> Label {
        match why {
            Refusal::Damaged => Label::RefusedDamaged,
            Refusal::Domain => Label::RefusedDomain,
            Refusal::Interface => Label::RefusedInterface,
            Refusal::Full => Label::RefusedFull,
        }
    }

    /// The answer to a block of cells.
    pub fn block_answer(answer: Answer) -> Label {
        match answer {
            Answer::Ack => Label::BlockAcknowledgement,
            Answer::Nack(BlockRefusal::NoContext) => Label::BlockWithoutContext,
            Answer::Nack(BlockRefusal::PageFault) => Label::BlockFaulted,
            Answer::Nack(BlockRefusal::Protection) => Label::BlockOfDomain,
        }
    }

    /// What it says of a block; `None`: it does not answer one.
    pub fn as_block_answer(self) -> Option<Answer> {
        match self {
            Label::BlockAcknowledgement => Some(Answer::Ack),
            Label::BlockWithoutContext => Some(Answer::Nack(BlockRefusal::NoContext)),
            Label::BlockFaulted => Some(Answer::Nack(BlockRefusal::PageFault)),
            Label::BlockOfDomain => Some(Answer::Nack(BlockRefusal::Protection)),
            _ => None,
        }
    }

    /// Whether it is from one reduction module to another.
    pub fn is_of_reduction(self) -> bool {
        use Label::{AskVector, Contribution, Exchange, NoVectorYet, Result, VectorFailed};
        matches!(self, Contribution | Exchange | Result | AskVector | NoVectorYet | VectorFailed)
    }

    /// Whether it answers a packet, so that nothing is sent because of it.
    pub fn is_answer(self) -> bool {
        self as u8 & ANSWER != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_are_written() {
        for label in Label::ALL {
            assert_eq!(Label::of(label as u8), Some(label));
        }
        assert_eq!([0, 1 | ANSWER, 2, 200].map(Label::of), [None; 4]);
    }

    /// Catches an answer that counts as data, and data that counts as an answer.
    #[test]
    fn answers_are_what_nothing_is_sent_for() {
        let data = [Label::Small, Label::Cell];
        for label in Label::ALL {
            let asks = data.contains(&label) || label.is_of_reduction();
            assert_eq!(label.is_answer(), !asks, "{label:?}");
        }
    }
}

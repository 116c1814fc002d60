//! Pipelined ring: allgatherv.
//!
//! Blocks travel around the ring as in `ring`, but cut into pieces: a member passes the first piece of a
//! block on while the second arrives. It sends one piece and receives one at a time.
//!
//! ```text
//!   to the next        own │ own │ before │ before │ …          a block of no bytes takes a round
//!   from the one before    before │ before │ before 2 │ …       without a message
//! ```
//! Messages per member: a piece each of all blocks but one. Rounds: as many as the longer of the two rows
//! has.
//!
//! # Source
//! MPICH `allgatherv_intra_ring`, with pieces of `MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE` (32768).

use super::blocks::{Blocks, Extent};
use super::member_part::{MemberPart, around};
use super::{ReceiveAction, RoundSteps, Schedule};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct PipelinedRing;

/// Pieces have so many bytes, or fewer where elements do not fit.
const PIECE: u64 = 32_768;

impl Schedule for PipelinedRing {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allgatherv]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        let blocks = Row::new(part, 0).blocks;
        let pieces = |but| {
            let others = (0..part.members).filter(|member| *member != but);
            others.map(|member| pieces(blocks.block(member), part)).sum::<u64>()
        };
        pieces(part.after(1)).max(pieces(part.me)) as u32
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        if let Some(piece) = Row::new(part, 1).piece(round) {
            steps.receive(part.before(1), piece, ReceiveAction::Store);
        }
        if let Some(piece) = Row::new(part, 0).piece(round) {
            steps.send(part.after(1), piece);
        }
    }
}

/// The pieces that pass a member on one side.
struct Row<'a> {
    part: &'a MemberPart,
    blocks: Blocks<'a>,
    /// How far before its own the first block is.
    first: u32,
}

impl<'a> Row<'a> {
    fn new(part: &'a MemberPart, first: u32) -> Row<'a> {
        Row { part, blocks: part.layout(), first }
    }

    /// The piece of a round; `None`: all have passed.
    fn piece(&self, round: u32) -> Option<Extent> {
        let (members, mut round) = (self.part.members, u64::from(round));
        for back in self.first..self.first + members - 1 {
            let block = self.blocks.block(around(self.part.me, members - back % members, members));
            match pieces(block, self.part) {
                pieces if round < pieces => {
                    let offset = round * size(self.part);
                    let bytes = size(self.part).min(block.bytes - offset);
                    return Some(Extent { offset: block.offset + offset, bytes });
                }
                pieces => round -= pieces,
            }
        }
        None
    }
}

/// The size of a piece.
fn size(part: &MemberPart) -> u64 {
    let element = u64::from(part.element.max(1));
    (PIECE / element).max(1) * element
}

/// The number of pieces that a block is cut into; at least one.
fn pieces(block: Extent, part: &MemberPart) -> u64 {
    block.bytes.div_ceil(size(part)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::RoundStep;
    use crate::collective::member_part::MemberPlace;
    use proptest::prelude::*;
    use weft_trace::op::CollectiveSizes;
    use weft_units::Bytes;

    /// Pieces with their rounds.
    type Pieces = Vec<(u32, Extent)>;

    /// The pieces that a member receives, and those that it sends.
    fn pieces_of(part: &MemberPart) -> (Pieces, Pieces) {
        let (mut received, mut sent) = (vec![], vec![]);
        for round in 0..PipelinedRing.rounds(part) {
            let mut steps = RoundSteps::default();
            PipelinedRing.round(part, round, &mut steps);
            for step in steps.iter() {
                match step {
                    RoundStep::Receive { from, piece, .. } if *from == part.before(1) => {
                        received.push((round, *piece))
                    }
                    RoundStep::Send { to, piece, .. } if *to == part.after(1) => sent.push((round, *piece)),
                    step => panic!("{step:?}"),
                }
            }
        }
        (received, sent)
    }

    proptest! {
        /// Catches pieces that are lost, too long or cut within an element, that are sent before they are
        /// there, and neighbours that do not agree. (Whether data arrives is tested with all other
        /// algorithms, on shorter blocks.)
        #[test]
        fn long_blocks_go_around_in_pieces(
            sizes in prop::collection::vec(prop_oneof![Just(0), 0..5 * PIECE], 2..9),
            element in prop::sample::select(vec![1, 8, 24, 40_000]),
        ) {
            let whole_elements = |size: &u64| size - size % u64::from(element);
            let receive_counts: Vec<u64> = sizes.iter().map(whole_elements).collect();
            let total = receive_counts.iter().sum();
            let bytes = Bytes::new(total);
            let members = receive_counts.len() as u32;
            let (send, receive, send_counts) = (bytes, bytes, vec![]);
            let sizes = CollectiveSizes {
                send, receive, send_counts, receive_counts, element, ..CollectiveSizes::default()
            };
            let place = |me| MemberPlace { members, me, root: 0 };
            let parts: Vec<MemberPart> = (0..members)
                .map(|me| MemberPart::new(Collective::Allgatherv, place(me), &sizes).unwrap()).collect();
            for part in &parts {
                let (mut received, sent) = pieces_of(part);
                let (next_received, _) = pieces_of(&parts[part.after(1) as usize]);
                let alone = |pieces: &Pieces| pieces.iter().map(|(_, piece)| *piece).collect::<Vec<_>>();
                prop_assert_eq!(alone(&sent), alone(&next_received));
                let own = part.layout().block(part.me);
                for (round, piece) in &sent {
                    let is_own = (own.offset..own.offset + own.bytes).contains(&piece.offset);
                    let before = received.iter().any(|(earlier, there)| earlier < round && there == piece);
                    prop_assert!(is_own || before, "{piece:?} in round {round}");
                    let element = u64::from(element);
                    prop_assert!(piece.bytes <= PIECE.max(element) && piece.offset % element == 0);
                }
                received.push((0, own));
                received.sort_by_key(|(_, piece)| (piece.offset, piece.bytes));
                let mut ends = received.iter();
                let end = ends.try_fold(0, |end, (_, piece)| {
                    (piece.offset == end).then_some(end + piece.bytes)
                });
                prop_assert_eq!(end, Some(total));
            }
        }
    }
}

//! The steps of a recorded program: what all ranks did together, and rounds of messages between.
//!
//! ```text
//!   rank 0   G ── G ── allreduce ── G            each rank's groups of messages, in order
//!   rank 1   G ─────── allreduce ── G
//!            round     together     round        groups that exchange with one another are a round
//! ```
//! A rank that has no messages in a round waits for the next one: its next group names ranks that do not yet
//! name it.

use super::error::ScaleError;
use super::group::{MessageGroup, StepCost};
use super::recording::{ItemBody, ReadRecording, RecordedItem};
use weft_trace::op::Op;

/// A program as its steps.
pub(super) struct StepProgram {
    pub(super) file: String,
    pub(super) ranks: u32,
    pub(super) steps: Vec<ProgramStep>,
}

/// A step of all ranks.
pub(super) enum ProgramStep {
    /// An operation of each rank.
    Together(Vec<(Vec<StepCost>, Op)>),
    /// A group of each rank, or none.
    Round(Vec<Option<RoundGroup>>),
    /// Computation behind all.
    End(Vec<Vec<StepCost>>),
}

/// A group of a rank, with the computation before.
pub(super) struct RoundGroup {
    pub(super) lead: Vec<StepCost>,
    pub(super) messages: MessageGroup,
}

impl StepProgram {
    /// The steps of a recording.
    ///
    /// # Errors
    /// Ranks that do not go through the same steps.
    pub(super) fn new(recording: ReadRecording) -> Result<StepProgram, ScaleError> {
        let ReadRecording { file, ranks, items, .. } = recording;
        let mut steps = Vec::new();
        let mut queues: Vec<_> = items.into_iter().map(|items| items.into_iter().peekable()).collect();
        loop {
            let is_message = |item: Option<&RecordedItem>| {
                matches!(item, Some(RecordedItem { body: ItemBody::Messages(_), .. }))
            };
            if queues.iter_mut().any(|queue| is_message(queue.peek())) {
                let heads: Vec<Option<&MessageGroup>> = queues
                    .iter_mut()
                    .map(|queue| match queue.peek() {
                        Some(RecordedItem { body: ItemBody::Messages(group), .. }) => Some(&**group),
                        _ => None,
                    })
                    .collect();
                let taking = in_round(&heads);
                if !taking.contains(&true) {
                    let rank = heads.iter().position(Option::is_some).unwrap_or(0);
                    let reason = format!(
                        "behind step {} the messages of rank {rank} are not received in the round that sends \
                         them",
                        steps.len()
                    );
                    return Err(ScaleError::pattern(&file, reason));
                }
                let take =
                    |(queue, takes): (&mut std::iter::Peekable<std::vec::IntoIter<RecordedItem>>, bool)| {
                        match queue.next_if(|_| takes)? {
                            RecordedItem { lead, body: ItemBody::Messages(messages) } => {
                                Some(RoundGroup { lead, messages: *messages })
                            }
                            _ => None,
                        }
                    };
                steps.push(ProgramStep::Round(queues.iter_mut().zip(taking).map(take).collect()));
                continue;
            }
            let items: Vec<RecordedItem> = queues.iter_mut().filter_map(Iterator::next).collect();
            if items.iter().all(|item| matches!(item.body, ItemBody::End)) {
                steps.push(ProgramStep::End(items.into_iter().map(|item| item.lead).collect()));
                return Ok(StepProgram { file, ranks, steps });
            }
            let mut ops = Vec::with_capacity(items.len());
            for item in items {
                let ItemBody::Together(op) = item.body else {
                    let reason = "a rank ends while others go on".to_owned();
                    return Err(ScaleError::Pattern { file, reason });
                };
                ops.push((item.lead, *op));
            }
            let first = signature(&ops[0].1);
            if let Some(rank) = ops.iter().position(|(_, op)| signature(op) != first) {
                let reason =
                    format!("rank {rank} does {} where rank 0 does {first}", signature(&ops[rank].1));
                return Err(ScaleError::Pattern { file, reason });
            }
            steps.push(ProgramStep::Together(ops));
        }
    }
}

/// The operation without its sizes.
pub(super) fn signature(op: &Op) -> String {
    match op {
        Op::Collective { kind, root, sizes, .. } => {
            let reduced = if kind.reduces() { format!(" ({})", sizes.reduction) } else { String::new() };
            let root = root.map_or(String::new(), |root| format!(" from or to rank {}", root.0));
            format!("{}{reduced}{root}", op.kind().name())
        }
        Op::Marker { text } => format!("marker {text}"),
        other => other.kind().name().to_owned(),
    }
}

/// The ranks whose next groups exchange with one another and with no others.
fn in_round(heads: &[Option<&MessageGroup>]) -> Vec<bool> {
    let mut takes: Vec<bool> = heads.iter().map(Option::is_some).collect();
    loop {
        let mut is_settled = true;
        for rank in 0..heads.len() {
            let Some(group) = heads[rank].filter(|_| takes[rank]) else { continue };
            let me = rank as u32;
            let names = |peer: u32, is_receive: bool, tag: i32| {
                let there = heads.get(peer as usize).copied().flatten().filter(|_| takes[peer as usize]);
                let list = there.map(|there| if is_receive { &there.receives } else { &there.sends });
                list.map_or(0, |list| {
                    list.iter().filter(|message| message.peer == me && message.tag == tag).count()
                })
            };
            let count = |list: &[super::group::PeerMessage], peer: u32, tag: i32| {
                list.iter().filter(|message| message.peer == peer && message.tag == tag).count()
            };
            let is_sent = |message: &super::group::PeerMessage| {
                names(message.peer, true, message.tag) == count(&group.sends, message.peer, message.tag)
            };
            let is_received = |message: &super::group::PeerMessage| {
                names(message.peer, false, message.tag) == count(&group.receives, message.peer, message.tag)
            };
            if !(group.sends.iter().all(is_sent) && group.receives.iter().all(is_received)) {
                takes[rank] = false;
                is_settled = false;
            }
        }
        if is_settled {
            return takes;
        }
    }
}

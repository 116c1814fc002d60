//! A recording as what all ranks did together and the groups of messages between.

use super::error::ScaleError;
use super::group::{GroupStyles, MessageGroup, PeerMessage, RecordedStep, StepCost};
use std::collections::BTreeSet;
use weft_formats::{Trace, TraceHeader};
use weft_trace::op::{CommId, Op, RankRange, RequestId, StreamId};
use weft_trace::{Kind, has_streams};
use weft_units::RankId;

/// A recording.
pub(super) struct ReadRecording {
    pub(super) file: String,
    pub(super) ranks: u32,
    pub(super) header: TraceHeader,
    /// The items of each rank.
    pub(super) items: Vec<Vec<RecordedItem>>,
}

/// An operation of all ranks, or messages, with the computation before.
#[derive(Clone, Debug)]
pub(super) struct RecordedItem {
    pub(super) lead: Vec<StepCost>,
    pub(super) body: ItemBody,
}

#[derive(Clone, Debug)]
pub(super) enum ItemBody {
    /// A collective, a communicator or a marker.
    Together(Box<Op>),
    /// Messages.
    Messages(Box<MessageGroup>),
    /// Behind the last operation.
    End,
}

impl ReadRecording {
    /// Reads a trace.
    ///
    /// # Errors
    /// What cannot be read, and operations that cannot be scaled.
    pub(super) fn read(trace: &Trace) -> Result<ReadRecording, ScaleError> {
        let file = trace.file().to_owned();
        let ranks = trace.ranks();
        if trace.is_interrupted() {
            return Err(ScaleError::Recording {
                file,
                reason: "it ends where recording was interrupted".to_owned(),
            });
        }
        if has_streams(&**trace) {
            let reason = "its ranks have several streams, or events".to_owned();
            return Err(ScaleError::Recording { file, reason });
        }
        let read = |rank| RankReader::new(&file, rank, ranks).read(trace);
        let items = (0..ranks).map(read).collect::<Result<_, _>>()?;
        Ok(ReadRecording { ranks, header: trace.metadata().header.clone(), items, file })
    }
}

/// Reads the operations of one rank.
struct RankReader<'a> {
    file: &'a str,
    rank: u32,
    ranks: u32,
    position: u64,
    items: Vec<RecordedItem>,
    lead: Vec<StepCost>,
    group: MessageGroup,
    kinds: Vec<RecordedStep>,
    open: BTreeSet<RequestId>,
    /// Communicators of all ranks in order.
    like_world: BTreeSet<CommId>,
}

impl<'a> RankReader<'a> {
    fn new(file: &'a str, rank: u32, ranks: u32) -> RankReader<'a> {
        RankReader {
            file,
            rank,
            ranks,
            position: 0,
            items: Vec::new(),
            lead: Vec::new(),
            group: MessageGroup::default(),
            kinds: Vec::new(),
            open: BTreeSet::new(),
            like_world: BTreeSet::from([CommId::WORLD]),
        }
    }

    fn read(mut self, trace: &Trace) -> Result<Vec<RecordedItem>, ScaleError> {
        for op in trace.stream(RankId(self.rank), StreamId::FIRST).map_err(ScaleError::read)? {
            self.add(op.map_err(ScaleError::read)?)?;
            self.position += 1;
        }
        if !self.open.is_empty() {
            return Err(self.refuse("messages that are never waited for"));
        }
        let lead = std::mem::take(&mut self.lead);
        self.items.push(RecordedItem { lead, body: ItemBody::End });
        Ok(self.items)
    }

    fn refuse(&self, reason: impl Into<String>) -> ScaleError {
        let (file, rank, position) = (self.file.to_owned(), self.rank, self.position);
        ScaleError::Operation { file, rank, position, reason: reason.into() }
    }

    fn add(&mut self, op: Op) -> Result<(), ScaleError> {
        if let Some(cost) = StepCost::of(&op) {
            // The computation of a group is before its first send or behind it.
            let costs = match (self.kinds.is_empty(), self.group.sends.is_empty()) {
                (true, _) => &mut self.lead,
                (false, true) => &mut self.group.inner[0],
                (false, false) => &mut self.group.inner[1],
            };
            costs.push(cost);
            return Ok(());
        }
        match op {
            Op::Isend { to, tag, comm, bytes, mode, request, .. } => {
                self.check_communicator(comm)?;
                self.group.sends.push(PeerMessage { peer: to.0, tag, bytes: bytes.get() });
                self.group.modes.push(mode);
                self.kinds.push(RecordedStep::Send);
                self.open.insert(request);
            }
            Op::Irecv { from, tag, comm, bytes, matched, request, .. } => {
                self.check_communicator(comm)?;
                let peer = from.or(matched.map(|(from, _)| from));
                let tag = tag.or(matched.map(|(_, tag)| tag));
                let (Some(peer), Some(tag)) = (peer, tag) else {
                    return Err(self
                        .refuse("a receive from any rank or with any tag, which does not say what it got"));
                };
                self.group.receives.push(PeerMessage { peer: peer.0, tag, bytes: bytes.get() });
                self.kinds.push(RecordedStep::Receive);
                self.open.insert(request);
            }
            Op::Wait { request } => self.complete(RecordedStep::Wait, &[request])?,
            Op::Waitall { requests } => self.complete(RecordedStep::Waitall, &requests)?,
            Op::Waitany { requests, completed } => {
                let completed = requests.get(completed as usize).copied();
                self.complete(RecordedStep::Waitany, completed.as_slice())?;
            }
            Op::Collective { comm, request, .. } => {
                self.check_communicator(comm)?;
                if request.is_some() {
                    return Err(self.refuse("a non-blocking collective"));
                }
                self.together(op)?;
            }
            Op::Communicator { comm, ref members } => {
                let all = RankRange { first: 0, stride: 1, count: self.ranks };
                if self.ranks > 1 && members[..] != [all] {
                    return Err(self.refuse(
                        "a communicator of some ranks, whose members at another scale are not known",
                    ));
                }
                self.like_world.insert(comm);
                self.together(op)?;
            }
            Op::Marker { .. } => self.together(op)?,
            other => {
                return Err(self.refuse(format!("an operation that has no law: {}", other.kind().name())));
            }
        }
        Ok(())
    }

    fn check_communicator(&self, comm: CommId) -> Result<(), ScaleError> {
        match self.like_world.contains(&comm) {
            true => Ok(()),
            false => {
                Err(self.refuse("a communicator of some ranks, whose members at another scale are not known"))
            }
        }
    }

    fn together(&mut self, op: Op) -> Result<(), ScaleError> {
        if !self.open.is_empty() {
            return Err(self.refuse(format!("{} while messages are open", kind_name(&op))));
        }
        let lead = std::mem::take(&mut self.lead);
        self.items.push(RecordedItem { lead, body: ItemBody::Together(Box::new(op)) });
        Ok(())
    }

    fn complete(&mut self, kind: RecordedStep, requests: &[RequestId]) -> Result<(), ScaleError> {
        if self.open.is_empty() {
            // A wait for what has completed.
            return Ok(());
        }
        self.kinds.push(kind);
        for request in requests {
            self.open.remove(request);
        }
        if !self.open.is_empty() {
            return Ok(());
        }
        let kinds = std::mem::take(&mut self.kinds);
        let mut group = std::mem::take(&mut self.group);
        group.styles = GroupStyles::matching(group.receives.len(), group.sends.len(), &kinds);
        if group.styles.first().is_none() {
            return Err(self.refuse("messages that are posted, sent and waited for in no known order"));
        }
        let lead = std::mem::take(&mut self.lead);
        self.items.push(RecordedItem { lead, body: ItemBody::Messages(Box::new(group)) });
        Ok(())
    }
}

fn kind_name(op: &Op) -> &'static str {
    match op {
        Op::Collective { kind, .. } => Kind::Collective(*kind).name(),
        other => other.kind().name(),
    }
}

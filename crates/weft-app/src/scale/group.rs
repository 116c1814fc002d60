//! Messages that a rank starts and completes together, and the order in which it posts, sends and waits.

use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Address, Bytes, RankId, Span};

/// Computation between two operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StepCost {
    /// CPU time in ps.
    pub(super) span: u64,
    /// Floating-point operations.
    pub(super) flops: u64,
    /// Bytes between the core and its host's memory.
    pub(super) bytes: u64,
}

impl StepCost {
    /// The computation that an operation is, if it is one.
    pub(super) fn of(op: &Op) -> Option<StepCost> {
        match op {
            Op::Compute { span } => Some(StepCost { span: span.as_ps(), ..StepCost::default() }),
            Op::Work { flops, bytes } => Some(StepCost { span: 0, flops: *flops, bytes: bytes.get() }),
            _ => None,
        }
    }

    /// The operations that it stands for.
    pub(super) fn operations(self) -> impl Iterator<Item = Op> {
        let StepCost { span, flops, bytes } = self;
        let compute = (span > 0).then(|| Op::Compute { span: Span::from_ps(span) });
        let work = (flops > 0 || bytes > 0).then(|| Op::Work { flops, bytes: Bytes::new(bytes) });
        compute.into_iter().chain(work)
    }
}

/// A message to another rank, or from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PeerMessage {
    /// The other rank.
    pub(super) peer: u32,
    /// The tag.
    pub(super) tag: i32,
    /// Payload in bytes.
    pub(super) bytes: u64,
}

/// Messages that a rank has started before it has completed the first of them, to the last completion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct MessageGroup {
    /// Messages received, in the order of their receives.
    pub(super) receives: Vec<PeerMessage>,
    /// Messages sent, in order.
    pub(super) sends: Vec<PeerMessage>,
    /// The styles in which the group can have been written.
    pub(super) styles: GroupStyles,
    /// How the sends complete.
    pub(super) modes: Vec<SendMode>,
    /// Computation between the first operation and the first send, and behind that send.
    pub(super) inner: [Vec<StepCost>; 2],
}

/// The order of a group's operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct GroupStyle {
    /// Whether messages are sent before receives are posted.
    sends_first: bool,
    /// Whether each send is waited for at once.
    blocking: bool,
    /// How the rest is waited for.
    waits: WaitStyle,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum WaitStyle {
    /// One `MPI_Wait` for each.
    Each,
    /// One `MPI_Waitall`.
    All,
    /// `MPI_Waitany` while there are several, `MPI_Wait` for the last.
    Any,
}

/// A set of styles, a bit for each of [`GroupStyle::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct GroupStyles(u16);

/// A step of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GroupStep {
    Receive(usize),
    Send(usize),
    WaitForSend(usize),
    /// Number of requests that are waited for with the style's call, and which of them is the first.
    Wait(WaitCall),
}

/// A wait for the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitCall {
    One(usize),
    All,
    AnyFrom(usize),
}

impl GroupStyle {
    const ALL: [GroupStyle; 12] = {
        let mut all = [GroupStyle { sends_first: false, blocking: true, waits: WaitStyle::Each }; 12];
        let mut index = 0;
        while index < 12 {
            all[index].waits = [WaitStyle::Each, WaitStyle::All, WaitStyle::Any][index % 3];
            all[index].blocking = index / 3 % 2 == 0;
            all[index].sends_first = index / 6 == 1;
            index += 1;
        }
        all
    };

    /// The steps of a group of so many messages.
    fn steps(self, receives: usize, sends: usize) -> Vec<GroupStep> {
        let mut steps: Vec<GroupStep> = (0..receives).map(GroupStep::Receive).collect();
        let sending = (0..sends).flat_map(|index| {
            let wait = self.blocking.then_some(GroupStep::WaitForSend(index));
            [GroupStep::Send(index)].into_iter().chain(wait)
        });
        match self.sends_first {
            true => steps.splice(0..0, sending).for_each(drop),
            false => steps.extend(sending),
        }
        let open = receives + if self.blocking { 0 } else { sends };
        match self.waits {
            _ if open == 0 => {}
            WaitStyle::All => steps.push(GroupStep::Wait(WaitCall::All)),
            WaitStyle::Each => steps.extend((0..open).map(|index| GroupStep::Wait(WaitCall::One(index)))),
            WaitStyle::Any => {
                steps.extend((0..open - 1).map(|index| GroupStep::Wait(WaitCall::AnyFrom(index))));
                steps.push(GroupStep::Wait(WaitCall::One(open - 1)));
            }
        }
        steps
    }
}

impl GroupStyles {
    /// The styles whose steps are of these kinds.
    pub(super) fn matching(receives: usize, sends: usize, kinds: &[RecordedStep]) -> GroupStyles {
        let is_one = |style: &GroupStyle| {
            let steps = style.steps(receives, sends);
            steps.len() == kinds.len() && steps.iter().zip(kinds).all(|(step, kind)| kind.is_of(step))
        };
        let bits = (0u16..).zip(&GroupStyle::ALL).filter(|(_, style)| is_one(style));
        GroupStyles(bits.fold(0, |all, (bit, _)| all | 1 << bit))
    }

    /// The styles of both.
    pub(super) fn common(self, other: GroupStyles) -> GroupStyles {
        GroupStyles(self.0 & other.0)
    }

    /// All styles.
    pub(super) fn all() -> GroupStyles {
        GroupStyles((1 << GroupStyle::ALL.len()) - 1)
    }

    /// The first; `None`: there is none.
    pub(super) fn first(self) -> Option<GroupStyle> {
        (0u16..).zip(GroupStyle::ALL).find(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, style)| style)
    }
}

/// A step as it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordedStep {
    Receive,
    Send,
    Wait,
    Waitall,
    Waitany,
}

impl RecordedStep {
    fn is_of(self, step: &GroupStep) -> bool {
        match step {
            GroupStep::Receive(_) => self == RecordedStep::Receive,
            GroupStep::Send(_) => self == RecordedStep::Send,
            GroupStep::WaitForSend(_) | GroupStep::Wait(WaitCall::One(_)) => self == RecordedStep::Wait,
            GroupStep::Wait(WaitCall::All) => self == RecordedStep::Waitall,
            GroupStep::Wait(WaitCall::AnyFrom(_)) => self == RecordedStep::Waitany,
        }
    }
}

/// All that a rank sends lies here, and all that it receives there.
const BUFFERS: [Address; 2] = [Address::new(0x10_0000_0000), Address::new(0x20_0000_0000)];

/// The messages of a rank in a round, to be written as operations.
pub(super) struct WrittenGroup<'a> {
    pub(super) receives: &'a [PeerMessage],
    pub(super) sends: &'a [PeerMessage],
    pub(super) style: GroupStyle,
    pub(super) mode: SendMode,
    /// As [`MessageGroup::inner`].
    pub(super) inner: [Vec<StepCost>; 2],
}

impl WrittenGroup<'_> {
    /// Calls `each` with the operations.
    pub(super) fn write(&self, each: &mut impl FnMut(Op)) {
        let count = self.receives.len();
        // A rank has fewer messages at once than there are requests.
        let request = |index: usize| RequestId(index as u32);
        let last = count + if self.style.blocking { 0 } else { self.sends.len() };
        let mut inner = self.inner.iter();
        let mut compute = |each: &mut dyn FnMut(Op)| {
            let costs = inner.next().into_iter().flatten();
            costs.flat_map(|cost| cost.operations()).for_each(each);
        };
        for step in self.style.steps(count, self.sends.len()) {
            match step {
                GroupStep::Receive(index) => {
                    let PeerMessage { peer, tag, bytes } = self.receives[index];
                    each(Op::Irecv {
                        from: Some(RankId(peer)),
                        tag: Some(tag),
                        comm: CommId::WORLD,
                        bytes: Bytes::new(bytes),
                        matched: None,
                        buffer: Some(BUFFERS[1]),
                        request: request(index),
                    });
                }
                GroupStep::Send(index) => {
                    if index == 0 {
                        compute(each);
                    }
                    let PeerMessage { peer, tag, bytes } = self.sends[index];
                    each(Op::Isend {
                        to: RankId(peer),
                        tag,
                        comm: CommId::WORLD,
                        bytes: Bytes::new(bytes),
                        mode: self.mode,
                        buffer: Some(BUFFERS[0]),
                        request: request(count + if self.style.blocking { 0 } else { index }),
                    });
                    if index == 0 {
                        compute(each);
                    }
                }
                GroupStep::WaitForSend(_) => each(Op::Wait { request: request(count) }),
                GroupStep::Wait(WaitCall::One(index)) => each(Op::Wait { request: request(index) }),
                GroupStep::Wait(WaitCall::All) => {
                    each(Op::Waitall { requests: (0..last).map(request).collect() });
                }
                GroupStep::Wait(WaitCall::AnyFrom(index)) => {
                    each(Op::Waitany { requests: (index..last).map(request).collect(), completed: 0 })
                }
            }
        }
        // A group without sends.
        compute(each);
        compute(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a style that is taken for another, and steps that do not complete what they start.
    #[test]
    fn a_style_is_known_by_its_steps() {
        let kinds = |text: &str| -> Vec<RecordedStep> {
            let kind = |letter| match letter {
                'R' => RecordedStep::Receive,
                'S' => RecordedStep::Send,
                'w' => RecordedStep::Wait,
                'W' => RecordedStep::Waitall,
                _ => RecordedStep::Waitany,
            };
            text.chars().map(kind).collect()
        };
        let steps = |receives, sends, text| {
            let style = GroupStyles::matching(receives, sends, &kinds(text)).first()?;
            Some(style.steps(3, 2))
        };
        for (receives, sends, text, whole) in [
            (2, 2, "RRSwSwAw", "RRRSwSwAAw"),
            (2, 2, "RRSwSwww", "RRRSwSwwww"),
            (1, 1, "RSW", "RRRSSW"),
            (2, 1, "SRRAAw", "SSRRRAAAAw"),
            (1, 1, "SwRw", "SwSwRRRwww"),
        ] {
            let whole: Vec<RecordedStep> = kinds(whole);
            let found = steps(receives, sends, text).unwrap();
            assert!(
                found.len() == whole.len() && found.iter().zip(&whole).all(|(step, kind)| kind.is_of(step)),
                "{text}"
            );
        }
        assert!(steps(2, 2, "RSRSW").is_none());
    }
}

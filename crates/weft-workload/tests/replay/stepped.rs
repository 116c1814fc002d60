//! Programs that decide as they go: a manager hands out work to whoever asks first.

use super::support::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span, Time};
use weft_workload::replay::{Operations, ProgressRule, ReceivedMessage, Stepped};

const RANKS: u32 = 4;
/// Pieces of work that there are.
const WORK: u32 = 20;
// Tags of a request, of work, and of the word that there is none left.
const ASK: i32 = 7;
const GIVE: i32 = 1;
const OVER: i32 = 0;

/// The side of a rank.
#[derive(Default)]
struct Side {
    queue: VecDeque<Op>,
    /// Messages that came while it waited for something else.
    received: Vec<ReceivedMessage>,
    request: u32,
    /// The end of each of its decisions.
    clocks: Vec<Time>,
    /// Of a worker: pieces done. Of the manager: requests answered.
    done: u32,
}

impl Side {
    fn wait_for(&mut self, make: impl FnOnce(RequestId) -> Op) {
        let request = RequestId(self.request);
        self.request += 1;
        self.queue.extend([make(request), Op::Wait { request }]);
    }

    fn send(&mut self, to: RankId, tag: i32, bytes: u64) {
        let (comm, mode, buffer, bytes) = (CommId::WORLD, SendMode::Standard, None, Bytes::new(bytes));
        self.wait_for(|request| Op::Isend { to, tag, comm, bytes, mode, buffer, request });
    }

    fn receive(&mut self, from: Option<RankId>) {
        let (tag, comm, matched, buffer) = (None, CommId::WORLD, None, None);
        let bytes = Bytes::new(1 << 20);
        self.wait_for(|request| Op::Irecv { from, tag, comm, bytes, matched, buffer, request });
    }
}

/// The program, with what each rank has seen.
struct Farm(Vec<Mutex<Side>>);

impl Stepped for Farm {
    fn name(&self) -> &str {
        "farm"
    }

    fn ranks(&self) -> u32 {
        RANKS
    }

    fn next(&self, rank: RankId, at: Time, received: &[ReceivedMessage]) -> Result<Option<Op>, String> {
        let side = &mut *self.0[rank.index()].lock().unwrap();
        side.received.extend(received);
        if let Some(op) = side.queue.pop_front() {
            return Ok(Some(op));
        }
        side.clocks.push(at);
        let received = std::mem::take(&mut side.received);
        match (rank, received.as_slice()) {
            (RankId(0), []) if side.done == 0 => side.receive(None),
            (RankId(0), []) => return Ok(None),
            (RankId(0), [message]) => {
                assert_eq!((message.tag, message.bytes.get()), (Some(ASK), message.source.0.into()));
                let tag = if side.done < WORK { GIVE } else { OVER };
                side.done += 1;
                side.send(message.source, tag, 5000);
                if side.done < WORK + RANKS - 1 {
                    side.receive(None);
                }
            }
            (_, []) => {
                side.send(RankId(0), ASK, rank.0.into());
                side.receive(Some(RankId(0)));
            }
            (_, [ReceivedMessage { tag: Some(GIVE), .. }]) => {
                side.done += 1;
                side.queue.push_back(Op::Compute { span: Span::from_us(10 * u64::from(rank.0)) });
            }
            (_, [ReceivedMessage { tag: Some(OVER), source: RankId(0), .. }]) => return Ok(None),
            (_, others) => return Err(format!("rank {rank} has received {others:?}")),
        }
        Ok(side.queue.pop_front())
    }
}

/// Catches a program that is stepped before its operation is over, that is told of another's message, or of
/// one twice.
#[test]
fn a_program_sees_what_has_come_and_when() {
    for progress in [ProgressRule::Call, ProgressRule::Background] {
        let farm = Arc::new(Farm((0..RANKS).map(|_| Mutex::default()).collect()));
        let outcome = Setup::costly(progress).run_all(&[Operations::Stepped(farm.clone())], None);
        outcome.assert_finished();
        let sides: Vec<_> = farm.0.iter().map(|side| side.lock().unwrap()).collect();
        let done: Vec<u32> = sides.iter().map(|side| side.done).collect();
        assert_eq!((done[0], done[1..].iter().sum::<u32>()), (WORK + RANKS - 1, WORK));
        // Whoever works faster comes more often.
        assert!(done[1] > done[2] && done[2] > done[3], "{done:?}");
        for (rank, side) in sides.iter().enumerate() {
            assert!(side.clocks.is_sorted(), "{rank}: {:?}", side.clocks);
            let end = outcome.ranks.iter().find(|report| report.rank.index() == rank).unwrap().end;
            assert!(side.clocks.last() <= Some(&end));
        }
        // The work comes between two decisions.
        let span = sides[3].clocks[2] - sides[3].clocks[1];
        assert_eq!(span, Span::from_us(30));
    }
}

/// Catches an error of a program that is lost, or that has no place.
#[test]
fn a_wrong_program_ends_the_run() {
    struct Wrong;
    impl Stepped for Wrong {
        fn name(&self) -> &str {
            "wrong"
        }
        fn ranks(&self) -> u32 {
            2
        }
        fn next(&self, rank: RankId, at: Time, _: &[ReceivedMessage]) -> Result<Option<Op>, String> {
            match (rank, at) {
                (RankId(1), Time::ZERO) => Ok(Some(Op::Compute { span: Span::from_us(3) })),
                (RankId(1), _) => Err("it is wrong here".to_owned()),
                _ => Ok(None),
            }
        }
    }
    let outcome = Setup::zero(ProgressRule::Call).run_all(&[Operations::Stepped(Arc::new(Wrong))], None);
    let said = outcome.faults.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(
        said.len() == 1 && said[0].contains("wrong: rank 1") && said[0].contains("it is wrong here"),
        "{said:?}"
    );
}

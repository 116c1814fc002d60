//! Turns that overlap: whatever ranks do and see is as if each had ended where it began.

#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use weft_assembly as assembly;
use weft_client::device::{Notice, Post, PostKind, RawEnvelope, State};
use weft_host::LiveEnd;
use weft_host::stand_in::idle_until;
use weft_host_check::puppet::{self, Move, play};
use weft_machine as machine;
use weft_msg::{Protocol, Wildcards};
use weft_units::{EndpointId, Span, Time};

const RANKS: usize = 5;
/// Two nodes of two ranks, and one alone.
const ENDPOINTS: [EndpointId; RANKS] =
    [EndpointId(0), EndpointId(0), EndpointId(1), EndpointId(5), EndpointId(1)];

/// The actions of a rank in a turn.
#[derive(Clone, Debug)]
struct Step {
    /// Small messages: to whom.
    to: Vec<u32>,
    /// Computation afterwards, in ns.
    computes: u64,
    /// The state with which it gives the turn away.
    wants: State,
}

/// A turn as its rank saw it: its clock at the end, when nothing would come, and the messages that it was
/// given, with when they came.
type Seen = (u64, u64, Vec<(u64, u32, u64)>);

/// Runs the scripts. Returns the turns as each rank saw them, the end of the job, the messages sent, and the
/// last virtual time.
fn run(scripts: &[Vec<Step>], overlapping: bool) -> (Vec<Vec<Seen>>, LiveEnd, u64, Time) {
    let machine = machine::load("exanest", &[""; 0]).unwrap();
    let protocol = assembly::protocol(&machine, Wildcards::Free).unwrap();
    let mut run = puppet::job(&machine, &protocol, &ENDPOINTS, overlapping).unwrap();
    let job = run.job();
    let mut players = Vec::new();
    let mut seen = Vec::new();
    for (rank, script) in (0..).zip(scripts) {
        job.started(rank, std::process::id());
        let (mut steps, protocol) = (script.clone().into_iter(), protocol.clone());
        let turns = Arc::new(Mutex::new(Vec::new()));
        seen.push(Arc::clone(&turns));
        let player = play(&job, rank, move |device| {
            device.set_process(std::process::id());
            let taken: Vec<Notice> = device.take_notices().into_iter().map(|(notice, _)| notice).collect();
            let clock = after_taking(device.clock(), &taken, &protocol);
            let messages =
                taken.iter().map(|notice| (notice.at, notice.envelope.source, notice.envelope.tag));
            turns.lock().unwrap().push((clock, device.quiet_until(), messages.collect()));
            let Some(step) = steps.next() else { return Move::End };
            for to in step.to.iter().map(|to| to % RANKS as u32).filter(|to| *to != rank) {
                let tag = turns.lock().unwrap().len() as u64;
                let envelope = RawEnvelope { bytes: 8, source: rank, tag, ..RawEnvelope::default() };
                let kind = PostKind::Message as u32;
                let post = Post { kind, to, at: clock, begun: clock, envelope, length: 8, ..Post::default() };
                assert!(device.post(post, &[7; 8], &mut 0));
            }
            device.set_clock(clock + step.computes * 1000);
            Move::Hand(step.wants)
        });
        players.push(player.unwrap());
    }
    let end = run.simulate(Time::ZERO + Span::from_us(1000), &mut || {}).unwrap();
    job.stop();
    players.into_iter().for_each(|player| player.join().unwrap());
    let seen = seen.into_iter().map(|turns| turns.lock().unwrap().clone()).collect();
    (seen, end, run.sent().0, run.now())
}

/// The clock of a rank that has taken what it was given, one after another, as the library does.
fn after_taking(clock: u64, taken: &[Notice], protocol: &Protocol) -> u64 {
    taken.iter().fold(clock, |clock, notice| idle_until(clock, notice, protocol))
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let wants = prop::sample::select(vec![State::Ready, State::Wait, State::Poll]);
    let step = (prop::collection::vec(any::<u32>(), 0..3), 0u64..1_000, wants)
        .prop_map(|(to, computes, wants)| Step { to, computes, wants });
    prop::collection::vec(step, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Catches a turn that ends after its node has heard of something else, or so late that what it posts is
    /// late, and two turns at a time on one node.
    #[test]
    fn nobody_sees_that_turns_overlap(scripts in prop::collection::vec(script(), RANKS)) {
        prop_assert_eq!(run(&scripts, true), run(&scripts, false));
    }
}

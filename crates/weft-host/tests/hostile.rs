//! Ranks that write into their devices what no library does: they are found out, named, and nobody else is harmed.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use weft_client::device::{NoticeKind, OpenSend, Post, PostKind, RawEnvelope, State};
use weft_host::job::Job;
use weft_host::puppet::{self, Move, play};
use weft_host::run::{LiveEnd, LiveRun};
use weft_msg::{AnnouncedSend, Wildcards};
use weft_sim::{assembly, machine};
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// A job of two ranks on neighbours.
fn job(sets: &[&str], endpoints: &[EndpointId]) -> (LiveRun, Arc<Job>) {
    let machine = machine::load("exanest", sets).unwrap();
    let layout = assembly::layout(&machine).unwrap();
    let protocol = assembly::protocol(&machine, Wildcards::Free).unwrap();
    let run = puppet::job(&machine, layout, &protocol, endpoints, true).unwrap();
    let job = run.job();
    for rank in 0..2 {
        job.started(rank, std::process::id());
    }
    (run, job)
}

const NEIGHBOURS: [EndpointId; 2] = [EndpointId(0), EndpointId(1)];

/// How a job ends whose rank 0 posts this, while rank 1 waits for it.
fn end_of(post: Post, bytes: &[u8], says: Move) -> LiveEnd {
    let (mut run, job) = job(&[], &NEIGHBOURS);
    let bytes = bytes.to_vec();
    let hostile = play(&job, 0, move |device| {
        device.set_process(std::process::id());
        assert!(device.post(post, &bytes, &mut 0));
        says
    });
    let victim = play(&job, 1, |device| {
        // It looks at all that comes, as the library does.
        device.take_notices();
        Move::Hand(State::Wait)
    });
    let end = run.simulate(Time::ZERO + Span::from_us(100_000), &mut || {}).unwrap();
    job.stop();
    hostile.unwrap().join().unwrap();
    victim.unwrap().join().unwrap();
    end
}

fn message(kind: u32, to: u32) -> Post {
    let envelope = RawEnvelope { kind, bytes: 8, source: 0, send: 3, receive: 2, ..RawEnvelope::default() };
    Post { kind: PostKind::Message as u32, to, envelope, length: 8, ..Post::default() }
}

/// Catches a rank that is believed: a peer or the simulator that falls over it, a job that hangs, a report without a name.
#[test]
fn nonsense_ends_the_job_with_its_rank() {
    let (eager, announcement, clearance, data, acknowledgement) = (0, 1, 2, 3, 4);
    let ready = Move::Hand(State::Ready);
    let bytes = [1; 8];
    let far = Post { at: u64::MAX, ..message(eager, 1) };
    let write = Post { kind: PostKind::Write as u32, to: 1, local: 64, length: 1 << 40, ..Post::default() };
    let share = Post { kind: PostKind::Share as u32, interface: 1, length: 8, ..Post::default() };
    for (post, says, words) in [
        (Post { kind: 99, ..Post::default() }, ready, "a post of kind 99"),
        (Post::default(), ready, "a post of kind 0"),
        (message(9, 1), ready, "a message of no kind"),
        (message(eager, 7), ready, "a post for rank 7"),
        (message(announcement, 0), ready, "a message to itself"),
        (far, ready, "a clock of 18446744073709551615 ps"),
        (Post { length: 9, ..message(eager, 1) }, Move::Say(77), "a state that it cannot be in"),
        (message(clearance, 1), ready, "a clearance of send 3 of rank 1, which waits for none"),
        (
            message(data, 1),
            ready,
            "the data of its send 3 for receive 2 of rank 1, which has not been cleared",
        ),
        (message(acknowledgement, 1), ready, "an acknowledgement of send 3 of rank 1"),
        (write, ready, "1099511627776 bytes at address 0x40, where it has no such memory"),
        (share, ready, "virtual interface 1, which it has not opened"),
        (message(eager, 1), Move::Say(State::Real as u32), "a state that it cannot be in"),
        (message(eager, 1), Move::Say(State::Fence as u32), "a state that it cannot be in"),
        (message(eager, 1), Move::Say(State::Exit as u32), "a state that it cannot be in"),
    ] {
        let end = end_of(post, &bytes, says);
        let LiveEnd::Broken(0, nonsense) = &end else { panic!("{words}: {end:?}") };
        assert!(nonsense.to_string().contains(words), "{words}: {nonsense}");
    }
    let short = end_of(message(eager, 1), &bytes[..7], ready);
    assert!(matches!(short, LiveEnd::Broken(0, _)), "{short:?}");
}

/// Catches virtual time that stands still because a rank does nothing with its turns.
#[test]
fn turns_without_end_are_found_out() {
    let (mut run, job) = job(&[], &NEIGHBOURS);
    let players = [0, 1].map(|rank| play(&job, rank, |_| Move::Hand(State::Ready)).unwrap());
    let end = run.simulate(Time::MAX, &mut || {}).unwrap();
    players.into_iter().for_each(|player| player.join().unwrap());
    let LiveEnd::Broken(_, nonsense) = end else { panic!("{end:?}") };
    assert!(nonsense.to_string().contains("virtual time cannot go on"), "{nonsense}");
}

/// Catches the same where the rank posts all the while, and never takes what it is told.
#[test]
fn posts_without_end_are_found_out() {
    let (mut run, job) = job(&[], &NEIGHBOURS);
    let busy = play(&job, 0, |device| {
        let open = Post { kind: PostKind::Open as u32, ..Post::default() };
        assert!(device.post(open, &[], &mut 0));
        Move::Hand(State::Wait)
    });
    let other = play(&job, 1, |_| Move::Hand(State::Wait));
    let end = run.simulate(Time::MAX, &mut || {}).unwrap();
    busy.unwrap().join().unwrap();
    other.unwrap().join().unwrap();
    assert!(matches!(end, LiveEnd::Broken(0, _)), "{end:?}");
}

/// What the hostile rank does to the other's memory, and what it is told of it.
fn attack(sets: &[&str], private: bool, kind: PostKind) -> (i32, Vec<u8>) {
    static TARGET: Mutex<[u8; 64]> = Mutex::new([5; 64]);
    static LOOT: Mutex<[u8; 64]> = Mutex::new([0; 64]);
    let target = std::ptr::from_ref(&*TARGET.lock().unwrap()) as u64;
    let loot = std::ptr::from_ref(&*LOOT.lock().unwrap()) as u64;
    *TARGET.lock().unwrap() = [5; 64];
    *LOOT.lock().unwrap() = [0; 64];
    let (mut run, job) = job(sets, &NEIGHBOURS);
    let told = Arc::new(AtomicI32::new(-1));
    let (tells, mut turn, mut interface) = (Arc::clone(&told), 0, 0);
    let attacker = play(&job, 0, move |device| {
        device.set_process(std::process::id());
        turn += 1;
        for (notice, _) in device.take_notices() {
            if notice.kind == NoticeKind::Opened as u32 {
                interface = notice.interface;
            } else if notice.kind == NoticeKind::Ended as u32 {
                tells.store(notice.error, Ordering::Relaxed);
                return Move::End;
            }
        }
        let post = match turn {
            1 => {
                let flags = if private { Post::PRIVATE } else { 0 };
                Post { kind: PostKind::Open as u32, flags, ..Post::default() }
            }
            2 => Post {
                kind: kind as u32,
                to: 1,
                // The first that a process opens beside its messaging.
                to_interface: 1,
                interface,
                local: loot,
                length: 64,
                remote: target,
                at: 5_000_000,
                ..Post::default()
            },
            _ => return Move::Hand(State::Wait),
        };
        assert!(device.post(post, &[], &mut 0));
        Move::Hand(if turn == 1 { State::Ready } else { State::Wait })
    });
    let mut turn = 0;
    let victim = play(&job, 1, move |device| {
        device.set_process(std::process::id());
        device.take_notices();
        turn += 1;
        let flags = Post::MAY_READ | Post::MAY_WRITE;
        let share = Post { kind: PostKind::Share as u32, interface: 1, flags, ..Post::default() };
        let post = match turn {
            1 => Post { kind: PostKind::Open as u32, ..Post::default() },
            2 => Post { local: target, length: 64, ..share },
            3 => return Move::End,
            _ => unreachable!(),
        };
        assert!(device.post(post, &[], &mut 0));
        if turn == 2 {
            // Until the attack is over.
            device.set_clock(1_000_000_000);
        }
        Move::Hand(State::Ready)
    });
    let end = run.simulate(Time::MAX, &mut || {}).unwrap();
    attacker.unwrap().join().unwrap();
    victim.unwrap().join().unwrap();
    assert_eq!(end, LiveEnd::Finished);
    let memory = if kind == PostKind::Get { *LOOT.lock().unwrap() } else { *TARGET.lock().unwrap() };
    (told.load(Ordering::Relaxed), memory.to_vec())
}

/// Catches memory that an interface of another protection domain reaches, by whatever descriptor, and a refusal that its
/// sender does not see; and, so that this can fail, that one of the same domain does reach it.
/// Rank 1 announces 8 bytes, waits, and says that they lie at `address`; rank 0 clears them and waits for more. How the job ends, and
/// how many turns rank 1 has had.
fn answered_for(address: u64) -> (LiveEnd, i32) {
    let (mut run, job) = job(&[], &NEIGHBOURS);
    let turns = Arc::new(AtomicI32::new(0));
    let counted = Arc::clone(&turns);
    let sender = play(&job, 1, move |device| {
        device.set_process(std::process::id());
        device.take_notices();
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            assert!(device.post(message(1, 0), &[], &mut 0));
            let send = AnnouncedSend { number: 3, to: RankId(0), bytes: Bytes::new(8) };
            device.set_open(std::iter::empty(), std::iter::once(OpenSend::new(&send, (address, 8))));
            return Move::Hand(State::Wait);
        }
        Move::End
    });
    let receiver = play(&job, 0, |device| {
        device.set_process(std::process::id());
        for (notice, _) in device.take_notices() {
            match notice.envelope.kind {
                1 => assert!(device.post(message(2, 1), &[], &mut 0)),
                _ => return Move::End,
            }
        }
        Move::Hand(State::Wait)
    });
    let end = run.simulate(Time::MAX, &mut || {}).unwrap();
    job.stop();
    sender.unwrap().join().unwrap();
    receiver.unwrap().join().unwrap();
    (end, turns.load(Ordering::Relaxed))
}

/// Catches a clearance that costs a waiting rank a turn, and a lie about what it has open that is believed or blamed on another.
#[test]
fn a_rank_that_waits_is_answered_for_and_answers_for_it() {
    let data = [7u8; 8];
    // Its turns are the first and those that it gets, and wastes, once nothing can come any more.
    let (end, turns) = answered_for(data.as_ptr() as u64);
    assert!(matches!(end, LiveEnd::Finished) && turns == 2, "{end:?} after {turns} turns");
    let (end, turns) = answered_for(1);
    let LiveEnd::Broken(1, nonsense) = end else { panic!("{end:?}") };
    assert!(nonsense.to_string().contains("8 bytes at address 0x1") && turns == 1, "{nonsense}, {turns}");
}

#[test]
fn a_foreign_domain_reaches_no_memory() {
    for sets in [&[][..], &["nic.model=simple"]] {
        assert_eq!(attack(sets, true, PostKind::Put), (libc::EACCES, vec![5; 64]));
        assert_eq!(attack(sets, true, PostKind::Get), (libc::EACCES, vec![0; 64]));
        assert_eq!(attack(sets, false, PostKind::Put), (0, vec![0; 64]));
        assert_eq!(attack(sets, false, PostKind::Get), (0, vec![5; 64]));
    }
}

/// Catches a rank that posts from the interface, and so the protection domain, of another on its node.
#[test]
fn an_interface_is_its_ranks_alone() {
    let (mut run, job) = job(&[], &[EndpointId(0), EndpointId(0)]);
    let mut opened = false;
    let owner = play(&job, 1, move |device| {
        device.take_notices();
        let open = Post { kind: PostKind::Open as u32, flags: Post::PRIVATE, ..Post::default() };
        if !std::mem::replace(&mut opened, true) {
            assert!(device.post(open, &[], &mut 0));
        }
        Move::Hand(State::Wait)
    });
    let mut turn = 0;
    let thief = play(&job, 0, move |device| {
        turn += 1;
        device.set_clock(turn * 1_000_000);
        if turn == 5 {
            let small = Post { kind: PostKind::Small as u32, interface: 2, ..Post::default() };
            assert!(device.post(small, &[], &mut 0));
        }
        Move::Hand(State::Ready)
    });
    let end = run.simulate(Time::MAX, &mut || {}).unwrap();
    job.stop();
    owner.unwrap().join().unwrap();
    thief.unwrap().join().unwrap();
    let LiveEnd::Broken(0, nonsense) = end else { panic!("{end:?}") };
    assert!(nonsense.to_string().contains("virtual interface 2, which it has not opened"), "{nonsense}");
}

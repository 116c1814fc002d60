//! Ranks that write into their devices what no library does: they are found out, named, and nobody else is
//! harmed.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use weft_assembly as assembly;
use weft_client::device::{NoticeKind, OpenSend, Post, PostKind, RawEnvelope, State};
use weft_client::interface::WantedDomain;
use weft_host::LiveEnd;
use weft_host::job::Job;
use weft_host::run::LiveRun;
use weft_host_check::puppet::{self, Move, play};
use weft_machine as machine;
use weft_msg::{AnnouncedSend, Wildcards};
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// A job of two ranks on neighbours.
fn job(sets: &[&str], endpoints: &[EndpointId]) -> (LiveRun, Arc<Job>) {
    let machine = machine::load("exanest", sets).unwrap();
    let protocol = assembly::protocol(&machine, Wildcards::Free).unwrap();
    let run = puppet::job(&machine, &protocol, endpoints, true).unwrap();
    let job = run.job();
    for rank in 0..endpoints.len() as u32 {
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

/// Catches a rank that is believed: a peer or the simulator that falls over it, a job that hangs, a report
/// without a name.
#[test]
fn nonsense_ends_the_job_with_its_rank() {
    let (eager, announcement, clearance, data, acknowledgement) = (0, 1, 2, 3, 4);
    let ready = Move::Hand(State::Ready);
    let bytes = [1; 8];
    let far = Post { at: u64::MAX, ..message(eager, 1) };
    let write = Post { kind: PostKind::Write as u32, to: 1, local: 64, length: 1 << 40, ..Post::default() };
    let between =
        |endpoints, post: Post| Post { envelope: RawEnvelope { endpoints, ..post.envelope }, ..post };
    let read = Post { kind: PostKind::Read as u32, ..write };
    let put = Post { kind: PostKind::Put as u32, interface: 1, length: 8, ..Post::default() };
    let request = Post { kind: PostKind::ServicePut as u32, to: 0, key: 1 << 16, ..Post::default() };
    let large = Post { key: 1, length: (1 << 30) + 1, ..request };
    for (post, says, words) in [
        (request, ready, "a request for key 65536 with a value of 0 bytes"),
        (large, ready, "a request for key 1 with a value of 1073741825 bytes"),
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
        (between(16, message(eager, 1)), ready, "a post between endpoints 16 and 0; ranks have 16"),
        (between(0xff00, message(announcement, 1)), ready, "a post between endpoints 0 and 255"),
        (between(u32::MAX, write), ready, "a post between endpoints 255 and 16777215"),
        (between(1 << 16, read), ready, "a post between endpoints 0 and 256"),
        (put, ready, "virtual interface 1, which it has not opened"),
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
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
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
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
    busy.unwrap().join().unwrap();
    other.unwrap().join().unwrap();
    assert!(matches!(end, LiveEnd::Broken(0, _)), "{end:?}");
}

/// An operation of a hostile rank on the memory of the other.
#[derive(Clone, Copy)]
struct Attack {
    kind: PostKind,
    /// The domain in which the attacker opens its interface. That of the victim is the job's.
    domain: WantedDomain,
    /// An address that it takes instead of that of the victim's 64 bytes.
    remote: Option<fn() -> u64>,
}

impl Attack {
    /// Of the same domain, on the victim's 64 bytes.
    fn of(kind: PostKind) -> Attack {
        Attack { kind, domain: WantedDomain::Job, remote: None }
    }
}

/// Lets the hostile rank write to the other's memory, or read it, from an interface of its own. Returns the
/// error that it gets, and the memory that its operation would change. Nobody is told of that memory before.
fn attack(sets: &[&str], attack: Attack) -> (i32, Vec<u8>) {
    let Attack { kind, domain, remote } = attack;
    // The simulator writes by the address.
    let memory = |byte| -> &'static Mutex<[u8; 64]> { Box::leak(Box::new(Mutex::new([byte; 64]))) };
    let (victims, attackers) = (memory(5), memory(0));
    let address = |memory: &Mutex<[u8; 64]>| std::ptr::from_ref(&*memory.lock().unwrap()) as u64;
    let (target, loot) = (address(victims), address(attackers));
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
            1 => open_in(domain),
            2 => Post {
                kind: kind as u32,
                to: 1,
                // The first that a process opens beside its messaging.
                to_interface: 1,
                interface,
                local: loot,
                length: 64,
                remote: remote.map_or(target, |remote| remote()),
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
        match turn {
            1 => assert!(device.post(open_in(WantedDomain::Job), &[], &mut 0)),
            // Until the attack is over.
            2 => device.set_clock(1_000_000_000),
            _ => return Move::End,
        }
        Move::Hand(State::Ready)
    });
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
    attacker.unwrap().join().unwrap();
    victim.unwrap().join().unwrap();
    assert_eq!(end, LiveEnd::Finished);
    let memory = if kind == PostKind::Get { attackers } else { victims };
    (told.load(Ordering::Relaxed), memory.lock().unwrap().to_vec())
}

/// The post that opens an interface in a domain.
fn open_in(domain: WantedDomain) -> Post {
    Post { kind: PostKind::Open as u32, data: domain.into(), ..Post::default() }
}

/// Rank 1 announces 8 bytes, waits, and says that they lie at `address`. Rank 0 clears them and waits for
/// more. Returns the end of the job, and the number of turns that rank 1 has had.
fn answered_for(address: u64) -> (LiveEnd, i32) {
    let (mut run, job) = job(&[], &NEIGHBOURS);
    let turns = Arc::new(AtomicI32::new(0));
    let counted = Arc::clone(&turns);
    let sender = play(&job, 1, move |device| {
        device.set_process(std::process::id());
        device.take_notices();
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            assert!(device.post(message(1, 0), &[], &mut 0));
            let send =
                AnnouncedSend { send: weft_msg::SendEntry::new(3), to: RankId(0), bytes: Bytes::new(8) };
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
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
    job.stop();
    sender.unwrap().join().unwrap();
    receiver.unwrap().join().unwrap();
    (end, turns.load(Ordering::Relaxed))
}

/// Catches a clearance that costs a waiting rank a turn, and a lie about what it has open that is believed or
/// blamed on another.
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

/// Catches memory that an interface of another protection domain reaches, by whatever descriptor, and a
/// refusal that its sender does not see. So that this can fail, one of the same domain does reach it.
#[test]
fn a_foreign_domain_reaches_no_memory() {
    let [own, other] = puppet::DOMAINS.map(WantedDomain::Numbered);
    for sets in [&[][..], &["nic.model=overheads"]] {
        let of = |kind, domain| attack(sets, Attack { domain, ..Attack::of(kind) });
        for foreign in [WantedDomain::Private, other] {
            assert_eq!(of(PostKind::Put, foreign), (libc::EACCES, vec![5; 64]));
            assert_eq!(of(PostKind::Get, foreign), (libc::EACCES, vec![0; 64]));
        }
        for same in [WantedDomain::Job, own] {
            assert_eq!(of(PostKind::Put, same), (0, vec![0; 64]));
            assert_eq!(of(PostKind::Get, same), (0, vec![5; 64]));
        }
    }
}

/// The address of the first mapping of this process whose line has these words.
fn mapped(words: &str) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains(words)).unwrap();
    u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()
}

/// Catches an address that is not the victim's memory and yet is written or read, ends the job, or leaves the
/// attacker without an answer: none at all, one that may only be read, the device of a rank.
#[test]
fn what_is_not_memory_of_the_victim_is_a_page_fault() {
    let unmapped = || 8;
    let at_the_end_of_all = || u64::MAX - 7;
    let text = || mapped(" r-xp ");
    let device = || mapped("weft-rank-");
    for sets in [&[][..], &["nic.model=overheads"]] {
        let of = |kind, remote| attack(sets, Attack { remote: Some(remote), ..Attack::of(kind) });
        for nowhere in [unmapped, at_the_end_of_all, device] {
            assert_eq!(of(PostKind::Put, nowhere), (libc::EFAULT, vec![5; 64]));
            assert_eq!(of(PostKind::Get, nowhere), (libc::EFAULT, vec![0; 64]));
        }
        assert_eq!(of(PostKind::Put, text), (libc::EFAULT, vec![5; 64]));
        let (error, read) = of(PostKind::Get, text);
        assert!(error == 0 && read != vec![0; 64], "{error}: {read:?}");
    }
}

/// Catches an interface in a domain that its job has not been given, and one whose process no global address
/// can name: the ninth of its node, for which the rank of three bits has no number.
#[test]
fn interfaces_that_cannot_be_are_refused() {
    let answer = |seat: u32, data: u64| {
        let (mut run, job) = job(&[], &[EndpointId(0); 9]);
        let told = Arc::new(AtomicI32::new(-1));
        let tells = Arc::clone(&told);
        let mut asked = false;
        let asks = play(&job, seat, move |device| {
            for (notice, _) in device.take_notices() {
                tells.store(notice.error, Ordering::Relaxed);
            }
            if std::mem::replace(&mut asked, true) {
                return Move::End;
            }
            let open = Post { kind: PostKind::Open as u32, data, ..Post::default() };
            assert!(device.post(open, &[], &mut 0));
            Move::Hand(State::Ready)
        });
        let others: Vec<_> =
            (0..9).filter(|other| *other != seat).map(|other| play(&job, other, |_| Move::End)).collect();
        assert_eq!(run.simulate(Time::NEVER, &mut || {}).unwrap(), LiveEnd::Finished);
        others.into_iter().chain([asks]).for_each(|player| player.unwrap().join().unwrap());
        told.load(Ordering::Relaxed)
    };
    let job_domain = WantedDomain::Job.into();
    assert_eq!((answer(7, job_domain), answer(8, job_domain)), (0, libc::EOVERFLOW));
    assert_eq!((answer(0, 9), answer(0, 10), answer(0, 1 << 16)), (0, libc::EPERM, libc::EINVAL));
    assert_eq!(answer(0, u64::MAX), libc::EINVAL);
}

/// Catches a rank that posts from the interface, and so the protection domain, of another on its node.
#[test]
fn an_interface_is_its_ranks_alone() {
    let (mut run, job) = job(&[], &[EndpointId(0), EndpointId(0)]);
    let mut opened = false;
    let owner = play(&job, 1, move |device| {
        device.take_notices();
        if !std::mem::replace(&mut opened, true) {
            assert!(device.post(open_in(WantedDomain::Private), &[], &mut 0));
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
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
    job.stop();
    owner.unwrap().join().unwrap();
    thief.unwrap().join().unwrap();
    let LiveEnd::Broken(0, nonsense) = end else { panic!("{end:?}") };
    assert!(nonsense.to_string().contains("virtual interface 2, which it has not opened"), "{nonsense}");
}

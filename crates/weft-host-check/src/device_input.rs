//! The fuzz target `device`: any bytes, as what two ranks write into their devices. The job must end, one way
//! or another.
//!
//! ```text
//!   an input is a list of turns:   rank and how it ends │ posts │ clock │ post …
//!   a post:                        kind, peer, envelope, numbers, lengths, addresses: small numbers, many
//!                                  of which fit
//!   or raw:                        its bytes as they are
//! ```
//! The ranks' memory is that of a process that does nothing.

use crate::puppet::{self, Move, play};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use weft_assembly as assembly;
use weft_client::device::{Post, PostKind, RawEnvelope, State};
use weft_client::interface::WantedDomain;
use weft_host::LiveEnd;
use weft_machine as machine;
use weft_machine::Machine;
use weft_msg::{Protocol, Wildcards};
use weft_units::{EndpointId, Span, Time};

/// Virtual time after which a job is cut off.
const HORIZON: Span = Span::from_us(2000);
/// Turns that are read of an input at most.
const MAX_TURNS: usize = 64;
/// Bound of the posts of one turn: far below the [`weft_client::device::POSTS`] for which a device has room.
const POSTS_PER_TURN: u8 = 8;

/// The kinds of posts, by a number of the input. RDMA of virtual interfaces stands there twice: it reaches
/// all memory of a process.
const KINDS: [PostKind; 14] = {
    use PostKind::*;
    [Message, Register, Unregister, Write, Read, Forget, Open, Close, Small, Take, Put, Get, Put, Get]
};

/// Endpoints of a message's sender and receiver, as bits of an envelope: some that there are, and three that
/// there are not.
const ENDPOINTS: [u32; 8] = [0, 1, 0x100, 0x101, 0xf0f, 0x10, 0x1000, 0x1_0000];

/// A process that has memory and does nothing. It ends with this one: its input is closed then.
struct Idle {
    child: Child,
    /// Address of its heap.
    address: u64,
}

impl Idle {
    fn start() -> io::Result<Idle> {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        // It maps its memory while it starts, which is over when it gives back what it is given.
        if let (Some(input), Some(output)) = (&mut child.stdin, &mut child.stdout) {
            input.write_all(b"\n")?;
            output.read_exact(&mut [0])?;
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id()))?;
        let heap = maps.lines().find(|line| line.ends_with("[heap]"));
        let address = heap.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
        let address = address.ok_or_else(|| io::Error::other("it has no heap"))?;
        Ok(Idle { child, address })
    }

    fn get() -> Option<&'static Idle> {
        static IDLE: OnceLock<Option<Idle>> = OnceLock::new();
        IDLE.get_or_init(|| Idle::start().ok()).as_ref()
    }
}

/// A turn: posts, the clock, and how the turn ends.
struct Turn {
    posts: Vec<(Post, Vec<u8>)>,
    /// Added to the clock, or put in its place.
    clock: Result<u64, u64>,
    end: Move,
}

/// A reader of the input, which continues with zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `some`, or now and then any.
    fn below(&mut self, some: u8) -> u32 {
        match self.byte() {
            wild @ 248.. => u32::from(wild) << (wild & 7),
            byte => u32::from(byte % some),
        }
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn short(&mut self) -> u64 {
        u64::from(self.byte()) | u64::from(self.byte()) << 8
    }

    /// An address: none, one that is there, one beyond it, any.
    fn address(&mut self, there: u64) -> u64 {
        match self.byte() {
            0 => 0,
            wild @ 248.. => self.word() >> (wild & 7),
            near => there.wrapping_add(u64::from(near) * 64 - 64),
        }
    }

    fn turn(&mut self, there: u64) -> (usize, Turn) {
        let head = self.byte();
        let end = match head >> 1 & 7 {
            0..=3 => Move::Hand(State::Ready),
            4 => Move::Hand(State::Wait),
            5 => Move::Say(self.byte().into()),
            6 => Move::Hand(State::Poll),
            _ => Move::Hand(State::Until),
        };
        let count = self.byte() % POSTS_PER_TURN;
        let clock = match head >> 4 {
            15 => Err(self.word()),
            steps => Ok(u64::from(steps) * 50_000),
        };
        let posts =
            (0..count).map(|_| if head & 8 != 0 && head >> 4 == 7 { self.raw() } else { self.post(there) });
        (usize::from(head & 1), Turn { posts: posts.collect(), clock, end })
    }

    fn post(&mut self, there: u64) -> (Post, Vec<u8>) {
        let (kind, to, flags) = (self.kind(), self.below(2), self.byte());
        let (bytes, carried) = (self.short(), self.short());
        let (envelope_kind, send, receive) = (self.below(5), self.below(3), self.below(3));
        let (tag, source, untagged) = (3, to, u32::from(flags >> 7));
        let endpoints = if flags & 24 == 24 { ENDPOINTS[usize::from(flags & 7)] } else { 0 };
        let envelope =
            RawEnvelope { kind: envelope_kind, untagged, tag, bytes, source, send, receive, endpoints };
        let carried = if carried < 60_000 { bytes } else { carried & 4095 };
        let post = Post {
            kind,
            to,
            at: if flags & 96 == 96 { self.word() } else { 0 },
            envelope,
            token: self.byte().into(),
            flags: u32::from(flags & 31),
            local: self.address(there),
            length: if flags & 224 == 32 { self.word() } else { bytes },
            remote: self.address(there),
            key: self.byte().into(),
            data: self.data(kind, flags),
            interface: self.below(4),
            to_interface: self.below(4),
            notify: self.address(there),
            ..Post::default()
        };
        (post, vec![7; carried as usize])
    }

    /// The kind of a post, or now and then any.
    fn kind(&mut self) -> u32 {
        let number = self.below(KINDS.len() as u8);
        KINDS.get(number as usize).map_or(number, |kind| *kind as u32)
    }

    /// The word beside a post: to open an interface, mostly a domain that there is.
    fn data(&mut self, kind: u32, flags: u8) -> u64 {
        match self.byte() {
            0..200 if kind == PostKind::Open as u32 => match flags & 16 {
                0 => WantedDomain::Job.into(),
                _ => WantedDomain::Private.into(),
            },
            byte => byte.into(),
        }
    }

    fn raw(&mut self) -> (Post, Vec<u8>) {
        let post = Post::of_words(|| self.word());
        (post, vec![9; usize::from(self.byte())])
    }
}

fn turns(input: &[u8], there: u64) -> [VecDeque<Turn>; 2] {
    let mut bytes = Bytes(input);
    let mut turns = [VecDeque::new(), VecDeque::new()];
    for _ in 0..MAX_TURNS {
        if bytes.0.is_empty() {
            break;
        }
        let (rank, turn) = bytes.turn(there);
        turns[rank].push_back(turn);
    }
    turns
}

/// The machines on which inputs run, by their first byte: with the interface of TR-488, and with the
/// overheads one.
fn machines() -> &'static [(Machine, Protocol)] {
    static MACHINES: OnceLock<Vec<(Machine, Protocol)>> = OnceLock::new();
    MACHINES.get_or_init(|| {
        let of = |sets: &[&str]| {
            let machine = machine::load("exanest", sets).ok()?;
            let protocol = assembly::protocol(&machine, Wildcards::Free).ok()?;
            Some((machine, protocol))
        };
        [&["fabric.kind=ideal"][..], &["fabric.kind=ideal", "nic.model=overheads"]]
            .into_iter()
            .filter_map(of)
            .collect()
    })
}

/// Serves two ranks that write `input` until it ends, a rank is found out, or virtual time reaches a limit.
/// `None`: this computer cannot run the job.
pub fn serve(input: &[u8]) -> Option<LiveEnd> {
    let idle = Idle::get()?;
    let (first, input) = input.split_first()?;
    let (machine, protocol) = machines().get(usize::from(first & 1))?;
    // On one node, or on two.
    let endpoints = [EndpointId(0), EndpointId(u32::from(first >> 1 & 1))];
    let mut run = puppet::job(machine, protocol, &endpoints, true).ok()?;
    let job = run.job();
    let mut players = Vec::new();
    for (rank, mut turns) in (0..).zip(turns(input, idle.address)) {
        job.started(rank, idle.child.id());
        let process = idle.child.id();
        let player = play(&job, rank, move |device| {
            device.set_process(process);
            device.take_notices();
            let Some(turn) = turns.pop_front() else { return Move::End };
            let clock = match turn.clock {
                Ok(more) => device.clock().saturating_add(more),
                Err(other) => other,
            };
            device.set_clock(clock);
            let mut used = 0;
            for (post, bytes) in turn.posts {
                let post = Post { at: if post.at == 0 { clock } else { post.at }, ..post };
                // What does not fit is not posted.
                let _ = device.post(post, &bytes, &mut used);
            }
            turn.end
        });
        players.push(player.ok()?);
    }
    let end = run.simulate(Time::ZERO + HORIZON, &mut || {});
    job.stop();
    for player in players {
        // A panic there is a bug of this file.
        player.join().ok()?;
    }
    end.ok()
}

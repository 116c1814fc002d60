//! The output of ranks, passed on in the order of virtual time. It is the same in every run, whatever the
//! order in which the system lets ranks run.
//!
//! ```text
//!   rank ══ pipes ══► collected, so that no rank waits for room
//!                        └─► passed on, whole lines: when a turn of the rank ends, or while all wait
//!                            for this rank only
//! ```
//! Outside virtual time ranks run side by side: what they print there is passed on rank by rank.

use super::processes::Watch;
use crate::lock::lock;
use rustix::event::{Timespec, epoll};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are collected of a rank that nobody waits for, before it must wait; a longer line is passed on
/// in pieces.
const MAX_COLLECTED_BYTES: usize = 1 << 20;
/// In place of a rank: all wait for none of them, or for all.
const NOBODY: u32 = u32::MAX;
const EVERYBODY: u32 = u32::MAX - 1;

/// Standard output and standard error of a rank.
pub(super) type Pipes = [OwnedFd; 2];

/// The state of a collected pipe: whether it can still give something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// More, when it comes.
    More,
    /// More, when what was collected has been passed on.
    Full,
    /// Nothing: it may be closed.
    Nothing,
}

struct Pipe {
    from: std::fs::File,
    collected: Vec<u8>,
    /// The bytes at the beginning of `collected` that are whole lines.
    whole: usize,
    left: Left,
}

impl Pipe {
    /// Reads what is there, up to `most` bytes that have not been passed on.
    fn collect(&mut self, most: usize) {
        let mut buffer = [0; 16 << 10];
        while self.left != Left::Nothing {
            self.left = if self.collected.len() < most { Left::More } else { Left::Full };
            if self.left == Left::Full {
                // Else it would be full for ever.
                if self.whole == 0 {
                    self.whole = self.collected.len();
                }
                return;
            }
            match self.from.read(&mut buffer) {
                Ok(count @ 1..) => {
                    self.collected.extend_from_slice(&buffer[..count]);
                    if let Some(end) = buffer[..count].iter().rposition(|byte| *byte == b'\n') {
                        self.whole = self.collected.len() - count + end + 1;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.left = Left::Nothing;
                    self.whole = self.collected.len();
                }
            }
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let rest = self.collected.split_off(self.whole);
        self.whole = 0;
        std::mem::replace(&mut self.collected, rest)
    }
}

/// The output of all ranks of a job.
pub(crate) struct Output {
    ranks: Vec<Mutex<[Pipe; 2]>>,
    ears: Arc<Mutex<Box<dyn Watch>>>,
    /// Whether every line begins with its rank.
    label: bool,
    /// The rank that all wait for: what it prints comes next.
    next: AtomicU32,
    /// All pipes: one system call says whether any of them has something.
    all: OwnedFd,
}

impl Output {
    /// Of ranks with these pipes, for these ears.
    ///
    /// # Errors
    /// Those of the system, about descriptors.
    pub(super) fn new(
        pipes: Vec<Pipes>,
        ears: Arc<Mutex<Box<dyn Watch>>>,
        label: bool,
    ) -> io::Result<Output> {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let pipe = |from: OwnedFd| {
            // What the rank has started may hold it open after its end: looking must not wait.
            rustix::io::ioctl_fionbio(&from, true)?;
            epoll::add(&all, &from, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
            io::Result::Ok(Pipe { from: from.into(), collected: Vec::new(), whole: 0, left: Left::More })
        };
        let ranks = pipes.into_iter().map(|[output, error]| Ok(Mutex::new([pipe(output)?, pipe(error)?])));
        let ranks = ranks.collect::<io::Result<_>>()?;
        Ok(Output { ranks, ears, label, next: AtomicU32::new(NOBODY), all })
    }

    /// The descriptors of a rank's pipes.
    pub(super) fn descriptors(&self, rank: u32) -> [RawFd; 2] {
        lock(&self.ranks[rank as usize]).each_ref().map(|pipe| pipe.from.as_raw_fd())
    }

    /// Collects what a rank has printed, and passes it on if that is what all wait for.
    pub(super) fn collect(&self, rank: u32) -> [Left; 2] {
        let mut pipes = lock(&self.ranks[rank as usize]);
        self.read(&mut pipes, MAX_COLLECTED_BYTES);
        let next = self.next.load(Ordering::Acquire);
        if next == rank || next == EVERYBODY {
            self.say(rank, &mut pipes);
        }
        pipes.each_ref().map(|pipe| pipe.left)
    }

    /// Passes on what a rank has printed until now, before the output of others.
    pub(crate) fn pass_on(&self, rank: u32) {
        let mut pipes = lock(&self.ranks[rank as usize]);
        // What was collected, and then what its pipes hold, which is no more: what it has started may print
        // without end.
        for _ in 0..2 {
            self.read(&mut pipes, MAX_COLLECTED_BYTES);
            self.say(rank, &mut pipes);
            if pipes.iter().all(|pipe| pipe.left != Left::Full) {
                return;
            }
        }
    }

    /// Passes on the lines of a rank whose turn has ended.
    pub(crate) fn end_turn(&self, rank: u32) {
        self.wait_for_nobody();
        let has_collected = || lock(&self.ranks[rank as usize]).iter().any(|pipe| pipe.whole > 0);
        if self.has_any() || has_collected() {
            self.pass_on(rank);
        }
    }

    /// Whether there may be something in any of the pipes.
    fn has_any(&self) -> bool {
        let mut one =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        epoll::wait(&self.all, &mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(0)
    }

    /// All wait for this rank: its lines are passed on as they come, until [`Output::wait_for_nobody`].
    pub(crate) fn wait_for(&self, rank: u32) {
        if self.next.swap(rank, Ordering::AcqRel) != rank {
            self.pass_on(rank);
        }
    }

    /// Nobody waits for a rank any more.
    pub(crate) fn wait_for_nobody(&self) {
        if self.next.load(Ordering::Relaxed) != NOBODY {
            self.next.store(NOBODY, Ordering::Release);
        }
    }

    /// Passes on the lines of all ranks, and from now on each line as it comes: the simulation is over.
    pub(crate) fn flush(&self) {
        self.next.store(EVERYBODY, Ordering::Release);
        (0..self.ranks.len() as u32).for_each(|rank| self.pass_on(rank));
    }

    fn read(&self, pipes: &mut [Pipe; 2], most: usize) {
        for pipe in pipes.iter_mut().filter(|pipe| pipe.left != Left::Nothing) {
            pipe.collect(most);
            if pipe.left == Left::Nothing {
                // Its end would be something for ever. It is there: nobody else takes it out.
                let _ = epoll::delete(&self.all, &pipe.from);
            }
        }
    }

    fn say(&self, rank: u32, pipes: &mut [Pipe; 2]) {
        for (error, pipe) in [false, true].into_iter().zip(pipes) {
            if pipe.whole == 0 {
                continue;
            }
            let mut lines = pipe.take();
            if self.label {
                let label = format!("[{rank}] ");
                let labelled = lines.split_inclusive(|byte| *byte == b'\n');
                lines = labelled.flat_map(|line| [label.as_bytes(), line]).flatten().copied().collect();
            }
            lock(&self.ears).lines(rank, error, &lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live_end::Death;
    use std::io::Write;

    #[derive(Clone, Default)]
    struct Ears(Arc<Mutex<Vec<(u32, bool, String)>>>);

    impl Watch for Ears {
        fn lines(&mut self, rank: u32, error: bool, lines: &[u8]) {
            self.0.lock().unwrap().push((rank, error, String::from_utf8_lossy(lines).into_owned()));
        }
        fn ended(&mut self, _: u32, _: Death, _: bool) {}
        fn aborted(&mut self, _: u32, _: i32) {}
    }

    /// The output of so many ranks, where they write, and what is heard.
    fn output(ranks: usize, label: bool) -> (Output, Vec<[std::io::PipeWriter; 2]>, Ears) {
        let (mut pipes, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..ranks {
            let [(output, to_output), (error, to_error)] = std::array::from_fn(|_| std::io::pipe().unwrap());
            pipes.push([output.into(), error.into()]);
            ends.push([to_output, to_error]);
        }
        let ears = Ears::default();
        let output = Output::new(pipes, Arc::new(Mutex::new(Box::new(ears.clone()))), label).unwrap();
        (output, ends, ears)
    }

    /// Takes what has been heard since the last call: rank, whether as an error, lines.
    fn heard(ears: &Ears) -> Vec<(u32, bool, String)> {
        std::mem::take(&mut *ears.0.lock().unwrap())
    }

    fn said(rank: u32, error: bool, lines: &str) -> (u32, bool, String) {
        (rank, error, lines.to_owned())
    }

    /// Catches lines in the order in which they were written instead of that of turns, halves of lines, and
    /// lines that are lost because they were collected before.
    #[test]
    fn lines_come_in_the_order_of_turns() {
        let (output, mut ends, ears) = output(2, false);
        ends[1][0].write_all(b"second\nhalf").unwrap();
        output.collect(1);
        ends[0][0].write_all(b"first\n").unwrap();
        ends[0][1].write_all(b"wrong\n").unwrap();
        assert!(heard(&ears).is_empty());
        output.end_turn(0);
        output.end_turn(1);
        assert_eq!(
            heard(&ears),
            [said(0, false, "first\n"), said(0, true, "wrong\n"), said(1, false, "second\n")]
        );
        ends[1][0].write_all(b" and half\n").unwrap();
        output.end_turn(0);
        output.end_turn(1);
        assert_eq!(heard(&ears), [said(1, false, "half and half\n")]);
    }

    /// Catches output that is held back of a rank that all wait for, and that of another that is not.
    #[test]
    fn what_all_wait_for_comes_at_once() {
        let (output, mut ends, ears) = output(2, true);
        output.wait_for(1);
        ends[0][0].write_all(b"later\n").unwrap();
        ends[1][0].write_all(b"a\nb\n").unwrap();
        assert_eq!([0, 1].map(|rank| output.collect(rank)), [[Left::More; 2]; 2]);
        assert_eq!(heard(&ears), [said(1, false, "[1] a\n[1] b\n")]);
        output.wait_for_nobody();
        ends[1][0].write_all(b"c").unwrap();
        drop(ends);
        assert_eq!(output.collect(1), [Left::Nothing; 2]);
        output.flush();
        assert_eq!(heard(&ears), [said(0, false, "[0] later\n"), said(1, false, "[1] c")]);
    }

    /// Catches memory that grows with what a rank prints, and a line without end that nobody hears of.
    #[test]
    fn a_rank_that_prints_too_much_waits() {
        let (output, mut ends, ears) = output(1, false);
        let writer =
            std::thread::spawn(move || ends[0][0].write_all(&vec![b'x'; 3 * MAX_COLLECTED_BYTES]).unwrap());
        while output.collect(0)[0] != Left::Full {
            std::thread::yield_now();
        }
        assert!(!writer.is_finished() && heard(&ears).is_empty());
        let mut bytes = 0;
        while bytes < 3 * MAX_COLLECTED_BYTES {
            output.pass_on(0);
            bytes += heard(&ears).iter().map(|(_, _, lines)| lines.len()).sum::<usize>();
        }
        writer.join().unwrap();
    }
}

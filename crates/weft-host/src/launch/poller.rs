//! Waiting for many descriptors at a time: a wait takes time by what is ready, not by what is watched.

use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

/// Most descriptors that one wait reports; the next reports the others.
const EVENTS_PER_WAIT: usize = 1024;

/// Descriptors that can be read some day.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    /// One that watches nothing.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// Watches a descriptor under a key, until it is [removed](Poller::remove): a copy of it may outlive it.
    ///
    /// # Errors
    /// The system cannot watch it, or does so already.
    pub fn add(&self, descriptor: impl AsFd, key: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(key), epoll::EventFlags::IN)?)
    }

    /// Watches it no more.
    pub fn remove(&self, descriptor: impl AsFd) {
        // One that is not watched needs no removal.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// The keys of the descriptors that can be read, in order; waits until there is one, or for so long.
    pub fn wait(&mut self, at_most: Option<Timespec>) -> Vec<u64> {
        self.events.clear();
        // An interruption by a signal is a wait in vain.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), at_most.as_ref());
        let mut keys: Vec<u64> = self.events.iter().map(|event| event.data.u64()).collect();
        keys.sort_unstable();
        keys
    }
}

/// A descriptor of which only the number is known.
///
/// The caller has it open for as long as the result is used.
pub(super) fn open_descriptor<'a>(number: RawFd) -> BorrowedFd<'a> {
    #[expect(unsafe_code, reason = "the descriptors of pipes are known by their numbers")]
    // SAFETY: it is open, as the caller says.
    unsafe {
        BorrowedFd::borrow_raw(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// Catches keys that are lost or come twice, and a descriptor that is heard of after its removal.
    #[test]
    fn what_is_ready_is_told_by_its_key_until_it_is_removed() {
        let at_once = Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        let mut poller = Poller::new().unwrap();
        let mut streams: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
        for (key, (reads, _)) in (10..).zip(&streams) {
            poller.add(reads, key).unwrap();
        }
        assert_eq!(poller.wait(at_once), [0; 0]);
        for index in [3, 0, 4] {
            streams[index].1.write_all(b"x").unwrap();
        }
        assert_eq!(poller.wait(None), [10, 13, 14]);
        // A copy keeps it open, as the other side of a process manager's stream does.
        let copy = streams[3].0.try_clone().unwrap();
        poller.remove(&streams[3].0);
        drop(copy);
        assert_eq!(poller.wait(at_once), [10, 14]);
    }
}

//! Connections whose requests are still coming.
//!
//! ```text
//!  listener ─► open connections, at most 64 ── the whole head has come ──► to be answered
//!                 │ more than 16 KB, or not whole after 5 s ─────────────► to be refused
//!                 └ one too many: the oldest is closed
//! ```
//! Anybody on this computer may connect, before a token is asked for. So what a connection costs is bounded
//! here: a descriptor and 16 KB, no thread, and 5 seconds. One thread waits for all of them.

use crate::api::Refusal;
use crate::http::{Head, MAX_HEAD, too_large};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;
use weft_results::Stopwatch;

/// Real time between two checks whether the server is to end.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Connections whose requests have not come: a browser opens six, some of them before it has a request.
const MAX_OPEN: usize = 64;
/// Seconds in which the head of a request must have come: a browser sends it at once.
const HEAD_SECONDS: f64 = 5.0;
/// Seconds in which an answer must have been taken: hundreds of MB over the loopback device.
const ANSWER_SECONDS: f64 = 30.0;
/// Bytes of an answer that are written at a time, and at most read away behind it.
const CHUNK: usize = 64 << 10;

/// A request, and where its answer goes.
pub struct Asked {
    /// The request; or what is wrong with it.
    pub head: Result<Head, Refusal>,
    /// The connection.
    pub answer_to: AnswerTo,
}

/// The listener and the connections whose requests are still coming, the oldest first.
pub struct Connections<'l> {
    listener: &'l TcpListener,
    open: Vec<Open>,
}

/// A connection whose request is still coming.
struct Open {
    stream: TcpStream,
    head: Vec<u8>,
    age: Stopwatch,
}

/// The state of a request after a look.
enum Came {
    /// There is more to come.
    Part,
    /// A whole head, or one that is refused.
    Whole(Result<Head, Refusal>),
    /// The connection is of no more use.
    Nothing,
}

impl Connections<'_> {
    /// The connections to a listener, which does not block.
    pub fn to(listener: &TcpListener) -> Connections<'_> {
        Connections { listener, open: Vec::new() }
    }

    /// Waits a short time for requests, and returns those that have come.
    pub fn requests(&mut self) -> Vec<Asked> {
        let look = Timespec { tv_sec: 0, tv_nsec: END_CHECK_INTERVAL.subsec_nanos().into() };
        let mut waits = vec![PollFd::new(self.listener, PollFlags::IN)];
        waits.extend(self.open.iter().map(|open| PollFd::new(&open.stream, PollFlags::IN)));
        // Interrupted: the next look finds the same.
        if poll(&mut waits, Some(&look)).is_err() {
            return Vec::new();
        }
        drop(waits);
        let mut asked = Vec::new();
        for mut open in std::mem::take(&mut self.open) {
            match open.look() {
                Came::Part => self.open.push(open),
                Came::Whole(head) => asked.push(Asked { head, answer_to: AnswerTo(open.stream) }),
                Came::Nothing => {}
            }
        }
        self.accept();
        asked
    }

    /// Takes new connections, at most as many as may be open.
    fn accept(&mut self) {
        for _ in 0..MAX_OPEN {
            match self.listener.accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if self.open.len() == MAX_OPEN {
                        self.open.remove(0);
                    }
                    self.open.push(Open { stream, head: Vec::new(), age: Stopwatch::start() });
                }
                // A connection that broke.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The system has no more descriptors, perhaps: it must not be asked all the time.
                Err(_) => return std::thread::sleep(END_CHECK_INTERVAL),
            }
        }
    }
}

impl Open {
    /// Reads what has come.
    fn look(&mut self) -> Came {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Came::Nothing,
                Ok(count) => {
                    // The end may begin in what came before.
                    let from = self.head.len().saturating_sub(2);
                    self.head.extend_from_slice(&bytes[..count]);
                    let new = &self.head[from..];
                    let ends = |end: &[u8]| new.windows(end.len()).any(|window| window == end);
                    if ends(b"\n\r\n") || ends(b"\n\n") {
                        return Came::Whole(Head::parse(&self.head));
                    }
                    if self.head.len() > MAX_HEAD {
                        return Came::Whole(Err(too_large()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Came::Nothing,
            }
        }
        match self.age.seconds() < HEAD_SECONDS {
            true => Came::Part,
            // A browser keeps connections in store.
            false if self.head.is_empty() => Came::Nothing,
            false => {
                let why = format!("the request had not come after {HEAD_SECONDS} s");
                Came::Whole(Err(Refusal { status: 408, why }))
            }
        }
    }
}

/// A connection that takes its answer, within a time.
pub struct AnswerTo(TcpStream);

impl AnswerTo {
    /// Writes an answer, and closes the connection. Who asked may have gone: that is no error of ours.
    pub fn answer(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let AnswerTo(mut stream) = self;
        let limit = Duration::from_secs_f64(ANSWER_SECONDS);
        let is_ready = stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(Some(limit)));
        let mut timed = TimedWriter { stream: &stream, age: Stopwatch::start() };
        if is_ready.and_then(|()| write(&mut timed)).and_then(|()| stream.shutdown(Shutdown::Write)).is_err()
        {
            return;
        }
        // A connection that is closed over unread bytes is reset, and the answer may be lost with it. What
        // has come of a body is read away, but nobody waits for more.
        let mut rest = [0; CHUNK];
        if stream.set_nonblocking(true).is_ok() {
            let _ = stream.read(&mut rest);
        }
    }
}

/// A stream that takes an answer within a time, however slowly it is read.
struct TimedWriter<'s> {
    stream: &'s TcpStream,
    age: Stopwatch,
}

impl Write for TimedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.age.seconds() > ANSWER_SECONDS {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut stream = self.stream;
        stream.write(&bytes[..bytes.len().min(CHUNK)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! The door for ranks whose launchers have closed the descriptors that they inherited: a socket without a
//! file.
//!
//! ```text
//!   rank ─ connects ─► door ─ "weft rank=3 secret=…" ─► admitted: its stream of PMI from now on
//!                        └─ anything else ─► closed
//! ```
//! The socket lies in the abstract namespace and goes with weft. Any user may connect to it: the secret,
//! which stands in the environment of ranks alone, says who is a rank of this job. Nothing here waits for
//! anybody.

use super::poller::Poller;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// Those who have not said who they are yet; more are turned away.
const GUESTS: usize = 64;
/// Longest greeting.
const GREETING: usize = 128;

/// A door, and those who stand in it.
pub struct Door {
    listener: UnixListener,
    name: String,
    secret: String,
    guests: Vec<(UnixStream, Vec<u8>)>,
}

impl Door {
    /// A door with a name and a secret of its own.
    ///
    /// # Errors
    /// The system has no random numbers or no such sockets.
    pub fn open() -> io::Result<Door> {
        let (name, secret) = (format!("weft-{}", random()?), random()?);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Door { listener, name, secret, guests: Vec::new() })
    }

    /// The name and the secret that a rank must know to come in.
    pub fn place(&self) -> String {
        format!("{}:{}", self.name, self.secret)
    }

    /// Has knocks watched under this key.
    ///
    /// # Errors
    /// Those of [`Poller::add`].
    pub fn watch(&self, poller: &Poller, key: u64) -> io::Result<()> {
        poller.add(&self.listener, key)
    }

    /// Lets in who has come; returns those who have proved to be ranks. Guests are watched under the key of
    /// [`Door::watch`].
    pub fn look(&mut self, poller: &Poller, key: u64) -> Vec<(u32, UnixStream)> {
        for _ in 0..GUESTS {
            let Ok((guest, _)) = self.listener.accept() else { break };
            let is_heard = self.guests.len() < GUESTS
                && guest.set_nonblocking(true).is_ok()
                && poller.add(&guest, key).is_ok();
            if is_heard {
                self.guests.push((guest, Vec::new()));
            }
        }
        let mut admitted = Vec::new();
        for (mut guest, mut said) in std::mem::take(&mut self.guests) {
            let greeting = greeting(&mut guest, &mut said);
            if !matches!(greeting, Ok(false)) {
                poller.remove(&guest);
            }
            match greeting {
                Ok(true) => {
                    let rank = rank_of(&said, &self.secret).filter(|_| guest.set_nonblocking(false).is_ok());
                    admitted.extend(rank.map(|rank| (rank, guest)));
                }
                Ok(false) => self.guests.push((guest, said)),
                // Turned away.
                Err(_) => {}
            }
        }
        admitted
    }
}

/// Whether a guest has said all of its greeting. Read byte by byte: what comes behind it is not the door's.
fn greeting(guest: &mut UnixStream, said: &mut Vec<u8>) -> io::Result<bool> {
    let mut byte = [0];
    while said.len() < GREETING {
        match guest.read(&mut byte) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte[0] == b'\n' => return Ok(true),
            Ok(_) => said.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::InvalidData.into())
}

/// The rank that greets so; `None`: it does not know the secret.
fn rank_of(said: &[u8], secret: &str) -> Option<u32> {
    let said = std::str::from_utf8(said).ok()?;
    let (rank, given) = said.strip_prefix("weft rank=")?.split_once(" secret=")?;
    if given == secret { rank.parse().ok() } else { None }
}

/// 128 random bits.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Catches a stranger who is let in, a rank that is not, bytes behind a greeting that are lost, and a
    /// guest who says nothing and keeps others out.
    #[test]
    fn only_who_knows_the_secret_comes_in() {
        let mut door = Door::open().unwrap();
        let come = |said: &str| {
            let mut guest =
                UnixStream::connect_addr(&SocketAddr::from_abstract_name(&door.name).unwrap()).unwrap();
            guest.write_all(said.as_bytes()).unwrap();
            guest
        };
        let secret = door.secret.clone();
        let _silent = come("weft ra");
        let mut strangers = [
            come("weft rank=1 secret=0123\n"),
            come(&format!("weft rank=x secret={secret}\n")),
            come(&"a".repeat(GREETING + 1)),
        ];
        let _rank = come(&format!("weft rank=7 secret={secret}\ncmd=init"));
        let poller = Poller::new().unwrap();
        let mut admitted = door.look(&poller, 0);
        assert_eq!((admitted.len(), door.guests.len()), (1, 1));
        let (number, mut stream) = admitted.remove(0);
        let mut said = [0; 8];
        stream.read_exact(&mut said).unwrap();
        assert_eq!((number, &said), (7, b"cmd=init"));
        for stranger in &mut strangers {
            let closed = stranger.read(&mut [0]);
            assert!(closed.is_err() || closed.is_ok_and(|count| count == 0));
        }
        assert!(door.look(&poller, 0).is_empty());
    }
}

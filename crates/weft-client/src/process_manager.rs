//! The rank's way to its process manager where what started it has closed the descriptor that it would have
//! inherited.
//!
//! ```text
//!   weft run ─ PMI_FD=3 ─► wrapper ─ closes all but 0, 1, 2 ─► program ─ MPI_Init ─► here
//!
//!   here: is descriptor 3 still that socket? no: connect, PMI_FD = the new one
//! ```
//! The library that names MPI calls brings the process here at its first one, before MPI looks for its
//! process manager.

use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::Once;

/// Where the process manager is found: the name of its abstract socket, the job's secret, and what the
/// inherited descriptor is.
const PLACE: &str = "WEFT_PMI";
/// The environment variable with the descriptor that MPI uses.
const DESCRIPTOR: &str = "PMI_FD";

/// MPI is about to begin: makes sure that it finds its process manager.
pub(crate) fn find() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = connect() {
            // Where standard error takes nothing, MPI says that it has no process manager.
            let _ = writeln!(
                io::stderr(),
                "weft: the process manager cannot be reached: {error}; is weft still running?"
            );
        }
    });
}

fn connect() -> io::Result<()> {
    let (Ok(place), Ok(rank)) = (std::env::var(PLACE), std::env::var("PMI_RANK")) else { return Ok(()) };
    let mut parts = place.splitn(3, ':');
    let (Some(name), Some(secret), Some(inherited)) = (parts.next(), parts.next(), parts.next()) else {
        return Ok(());
    };
    let is_there = |descriptor: String| {
        let file = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
        file.is_ok_and(|file| file.as_os_str() == inherited)
    };
    if std::env::var(DESCRIPTOR).is_ok_and(is_there) {
        return Ok(());
    }
    let mut socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.write_all(format!("weft rank={rank} secret={secret}\n").as_bytes())?;
    let descriptor = socket.into_raw_fd().to_string();
    #[expect(unsafe_code, reason = "MPI reads it from the environment")]
    // SAFETY: the rank's thread is in MPI_Init, where no other may be in MPI, and MPI's library is what reads
    // this.
    unsafe {
        std::env::set_var(DESCRIPTOR, descriptor)
    };
    Ok(())
}

//! Ctrl-C, and what a batch system or `timeout` sends (SIGTERM, SIGHUP): the first asks the run to end at its
//! next virtual epoch, or ends the process where nothing has been simulated yet; the second ends the process.
//! Under `nohup` SIGHUP stays ignored.

use crate::called;
use crate::exit::Failure;
use crate::standard_error::say;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_sim::experiment::Interrupt;

/// The wish to end that Ctrl-C raises, once it is caught.
static HANDLED: OnceLock<Interrupt> = OnceLock::new();
/// Whether nothing is simulated any more, and a page stays until Ctrl-C.
static ONLY_SERVES: AtomicBool = AtomicBool::new(false);

/// The wish to end that Ctrl-C raises; `None`: it is not caught.
pub fn handled() -> Option<Interrupt> {
    HANDLED.get().cloned()
}

/// From here on Ctrl-C ends a page, and no run.
pub fn only_serve() {
    ONLY_SERVES.store(true, Ordering::Relaxed);
}

/// From here on Ctrl-C asks for an end through what is returned.
pub fn on_ctrl_c() -> Result<Interrupt, Failure> {
    if let Some(interrupt) = called::interrupt() {
        return Ok(interrupt);
    }
    let interrupt = Interrupt::default();
    let outlives_terminal = hangup_is_ignored();
    let asked = interrupt.clone();
    ctrlc::set_handler(move || {
        if asked.request() {
            std::process::exit(130);
        }
        if asked.is_preparing() {
            say!("weft: interrupted before there was a result");
            std::process::exit(130);
        }
        if !ONLY_SERVES.load(Ordering::Relaxed) {
            say!("weft: ending the run; press Ctrl-C again to stop at once");
        }
    })
    .map_err(|error| Failure::bug(format!("Ctrl-C cannot be caught: {error}")))?;
    HANDLED.get_or_init(|| interrupt.clone());
    if outlives_terminal {
        ignore_hangup();
    }
    Ok(interrupt)
}

/// Lets a write beyond the limit of file sizes (`ulimit -f`) fail, and be told, instead of killing weft.
#[expect(unsafe_code, reason = "no library here sets a handler that does nothing")]
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // A handler and not SIG_IGN, which ranks would inherit.
    let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler touches nothing.
    unsafe { libc::signal(libc::SIGXFSZ, handler) };
}

/// Whether the process was started to go on when its terminal is closed.
#[expect(unsafe_code, reason = "no library here asks how a signal is handled")]
fn hangup_is_ignored() -> bool {
    let mut handled = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: changes nothing, and writes one sigaction, of which noughts are one.
    unsafe {
        libc::sigaction(libc::SIGHUP, std::ptr::null(), handled.as_mut_ptr()) == 0
            && handled.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[expect(unsafe_code, reason = "no library here ignores a signal again")]
fn ignore_hangup() {
    // SAFETY: no handler of ours is to be called.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read as _};
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    /// The test runs itself: the child waits as a run between two epochs does, and is sent SIGTERM and
    /// SIGINT. Catches a SIGHUP that counts although it is ignored, and a first signal that ends.
    #[test]
    fn the_first_asks_and_the_second_ends() {
        const CHILD: &str = "WEFT_TEST_INTERRUPTED";
        if std::env::var_os(CHILD).is_some() {
            let interrupt = on_ctrl_c().unwrap();
            eprintln!("ready");
            while !interrupt.is_requested() {
                sleep(Duration::from_millis(5));
            }
            eprintln!("asked");
            // Nothing comes: it ends well where the second signal has not ended it.
            let _ = std::io::stdin().read(&mut [0]);
            return;
        }
        // As under nohup.
        let mut child = Command::new("sh")
            .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["interrupt::tests::the_first_asks_and_the_second_ends", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Held until it has ended: waiting for it would close it, which ends it well.
        let stdin = child.stdin.take();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let id = child.id().to_string();
        let kill = |signal: &str| Command::new("kill").args([signal, &id]).status().unwrap();
        for (word, signal) in [("ready", "-TERM"), ("asked", "-INT")] {
            assert!(said.any(|line| line == word));
            // It would count as the second. The system drops a signal that is ignored when it is sent:
            // nothing comes later.
            let state = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
            let ignored = state.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
            assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "{state}");
            assert!(kill("-HUP").success());
            assert!(kill(signal).success());
        }
        // Two minutes at most.
        let mut looks = 0..24_000;
        while child.try_wait().unwrap().is_none() && looks.next().is_some() {
            sleep(Duration::from_millis(5));
        }
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

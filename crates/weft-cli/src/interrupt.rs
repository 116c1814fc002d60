//! Ctrl-C, and what a batch system or `timeout` sends (SIGTERM, SIGHUP): the first asks the run to end at its next virtual epoch, the second ends the process.

use crate::exit::Failure;
use weft_sim::experiment::Interrupt;

/// From here on Ctrl-C asks for an end through what is returned.
pub fn on_ctrl_c() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let asked = interrupt.clone();
    ctrlc::set_handler(move || {
        if asked.request() {
            std::process::exit(130);
        }
        eprintln!("weft: ending the run; press Ctrl-C again to stop at once");
    })
    .map_err(|error| Failure::bug(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(interrupt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    /// The test runs itself: the child waits as a run between two epochs does, and is sent SIGINT twice.
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
            sleep(Duration::from_secs(20));
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["interrupt::tests::the_first_asks_and_the_second_ends", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        for word in ["ready", "asked"] {
            assert!(said.any(|line| line == word));
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        }
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

//! How the command ends: the one place that turns reports and errors into exit statuses.

use crate::output;
use crate::standard_error::say;
use clap::error::ErrorKind;
use std::io::IsTerminal;
use std::path::Path;
use weft_host::ExecuteError;
use weft_host::record::RecordError;
use weft_results::{Ending, ResultsError};
use weft_sim::experiment::ExperimentError;
use weft_study::is_study;

/// An exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// 0.
    Done,
    /// 1: deadlock, no progress, lost data, a limit, no memory, a rerun or a machine that differs.
    EndedBadly,
    /// 2.
    BadInput,
    /// 3.
    Bug,
    /// 130, as shells report SIGINT.
    Interrupted,
    /// That of a program that weft has run.
    Program(u8),
}

impl Status {
    pub const fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::EndedBadly => 1,
            Status::BadInput => 2,
            Status::Bug => 3,
            Status::Interrupted => 130,
            Status::Program(status) => status,
        }
    }
}

impl From<Ending> for Status {
    fn from(ending: Ending) -> Status {
        match ending {
            Ending::Finished | Ending::HorizonReached => Status::Done,
            Ending::Interrupted => Status::Interrupted,
            Ending::LimitReached
            | Ending::Deadlock
            | Ending::NoProgress
            | Ending::LostData
            | Ending::RankFailed
            | Ending::RtlDiffers => Status::EndedBadly,
        }
    }
}

/// Why a command has nothing to show.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    /// Something about the input is wrong; the message shows the mend.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure { status: Status::BadInput, message: message.into() }
    }

    /// The run was all right, and what it found cannot be written.
    pub fn not_kept(message: impl Into<String>) -> Failure {
        Failure { status: Status::EndedBadly, message: message.into() }
    }

    /// An error that can only be a bug of weft.
    pub fn bug(message: impl Into<String>) -> Failure {
        Failure { status: Status::Bug, message: message.into() }
    }

    /// The user ended it before there was anything to show.
    pub fn interrupted(message: impl Into<String>) -> Failure {
        Failure { status: Status::Interrupted, message: message.into() }
    }

    /// Options that clap refused.
    pub fn usage(error: &clap::Error) -> Failure {
        let text = error.render().to_string();
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Failure::input(format!("a command is missing\n\n{}", text.trim()));
        }
        Failure::input(text.trim().strip_prefix("error: ").unwrap_or(text.trim()))
    }

    /// The exit status as a number, and the message.
    pub fn told(&self) -> (u8, &str) {
        (self.status.code(), &self.message)
    }

    /// The exit status and the message.
    pub(crate) fn into_parts(self) -> (Status, String) {
        (self.status, self.message)
    }

    /// Nobody reads standard output any more.
    pub fn unread() -> Failure {
        Failure { status: Status::Done, message: String::new() }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Failure {
        let status = match &error {
            // The run was all right and its results could not be kept.
            ResultsError::DiskFull(_) | ResultsError::FileTooLarge(_) => Status::EndedBadly,
            _ => Status::BadInput,
        };
        let message = match &error {
            ResultsError::NotAResult(path) if is_study(path) => of_study(path),
            ResultsError::NotAResult(path) if !path.exists() => {
                format!("{} is not there; name a directory that weft wrote with -o", path.display())
            }
            other => other.to_string(),
        };
        Failure { status, message }
    }
}

/// The refusal of a study's directory where one result is wanted.
fn of_study(directory: &Path) -> String {
    let shown = directory.display();
    format!(
        "{shown} is a study, whose runs kept their rows alone, and here one result is wanted; weft plot, \
         report, view and compare take {shown} alone. For one of its points run its command, which weft \
         report lists, with -o DIR, and name that DIR"
    )
}

impl From<ExecuteError> for Failure {
    fn from(error: ExecuteError) -> Failure {
        match error {
            ExecuteError::Experiment(error) => error.into(),
            other => Failure::input(other.to_string()),
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        let status = match &error {
            // The program has run and its recording could not be kept.
            RecordError::Conversion { .. } | RecordError::Unwritten { .. } | RecordError::NoRoom(_) => {
                Status::EndedBadly
            }
            _ => Status::BadInput,
        };
        Failure { status, message: error.to_string() }
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        match error {
            ExperimentError::Input(error) => Failure::input(error.to_string()),
            ExperimentError::Results(error) => error.into(),
            ExperimentError::Interrupted(message) => Failure::interrupted(message),
            other => Failure::bug(other.to_string()),
        }
    }
}

/// Ends the command: a failure goes to standard error and, with `--json`, as a document to standard
/// output.
pub fn end(outcome: Result<Status, Failure>, json: bool) -> u8 {
    let status = match outcome {
        Ok(status) => status,
        Err(Failure { status: Status::Done, .. }) => Status::Done,
        Err(Failure { status, message }) => {
            say!("{} {message}", coloured_name());
            if json {
                // A failure to say it a second time changes nothing.
                let _ =
                    output::document(&serde_json::json!({ "error": message, "exit_status": status.code() }));
            }
            status
        }
    };
    status.code()
}

/// `weft:` before an error: in red on a terminal, unless NO_COLOR is set, as no-color.org has it.
fn coloured_name() -> &'static str {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    if std::io::stderr().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
        "\x1b[1;31mweft:\x1b[0m"
    } else {
        "weft:"
    }
}

/// A panic anywhere, in any thread, ends the process with status 3 and says whose fault it is.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload().downcast_ref::<&str>().copied();
        let message =
            text.or(panic.payload().downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        say!("weft: this is a bug in weft: {message}{place}");
        say!("Please report it with the command, the machine file and the version (weft --version).");
        std::process::exit(Status::Bug.code().into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The test runs itself: the child panics in a thread, as a bug would.
    #[test]
    fn a_panic_in_any_thread_ends_with_status_3() {
        const CHILD: &str = "WEFT_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            report_panics();
            let _ = std::thread::spawn(|| panic!("a credit was lost")).join();
            return;
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["exit::tests::a_panic_in_any_thread_ends_with_status_3", "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert_eq!(child.status.code(), Some(3), "{said}");
        assert!(said.contains("this is a bug in weft: a credit was lost at "), "{said}");
    }

    #[test]
    fn only_a_done_run_ends_with_0() {
        for (ending, code) in [
            (Ending::Finished, 0),
            (Ending::HorizonReached, 0),
            (Ending::Interrupted, 130),
            (Ending::LimitReached, 1),
            (Ending::Deadlock, 1),
            (Ending::NoProgress, 1),
            (Ending::LostData, 1),
            (Ending::RankFailed, 1),
            (Ending::RtlDiffers, 1),
        ] {
            assert_eq!(Status::from(ending).code(), code, "{ending}");
        }
    }
}

//! Studies as the command knows them: which options there are, and the directory as another language works on
//! it.

use crate::exit::Failure;
use clap::{CommandFactory as _, Parser as _};
use std::path::{Path, PathBuf};
use weft_study::{Commands, Failed, Outcome, Point, Study, StudyDirectory, StudyError, Summary};

/// The commands as clap has them.
struct Clap;

impl Commands for Clap {
    fn options(&self, command: &str) -> Vec<String> {
        let weft = crate::Weft::command();
        let Some(command) = weft.find_subcommand(command) else { return Vec::new() };
        let name = |argument: &clap::Arg| match argument.get_long() {
            Some(long) => long.replace('-', "_"),
            None if argument.is_last_set() => "program".to_owned(),
            None => argument.get_id().to_string(),
        };
        command.get_arguments().filter(|argument| argument.get_id() != "help").map(name).collect()
    }

    fn check(&self, words: &[String]) -> Result<(), String> {
        let words = std::iter::once("weft").chain(words.iter().map(String::as_str));
        let refused = |error: clap::Error| {
            let text = error.render().to_string();
            text.trim().strip_prefix("error: ").unwrap_or(text.trim()).to_owned()
        };
        crate::Weft::try_parse_from(words).map(drop).map_err(refused)
    }
}

/// The directory of a study that has no other: the name of its file, without its ending, where one is now.
pub fn usual_directory(study: &Path) -> PathBuf {
    PathBuf::from(study.file_stem().unwrap_or(study.as_os_str()))
}

/// A study and what is done of it: for `weft sweep`, and for other languages.
pub struct Sweep(StudyDirectory);

impl Sweep {
    /// The study of the file `study` in `directory`, or the usual one; `anew`: without what was done before.
    ///
    /// # Errors
    /// A study that says something wrong, or a directory that is not its own.
    pub fn open(study: &Path, directory: Option<&Path>, anew: bool) -> Result<Sweep, Failure> {
        let read = Study::read(study, &Clap)?;
        let usual = usual_directory(study);
        Ok(Sweep(StudyDirectory::open(read, directory.unwrap_or(&usual), anew)?))
    }

    /// All points of the study.
    pub fn points(&self) -> usize {
        self.0.study().points.len()
    }

    /// Points that are to be done: name, words, parameters.
    pub fn missing(&self) -> Vec<Point> {
        self.0.missing()
    }

    /// Keeps what a point's command has printed; returns why it was refused.
    ///
    /// # Errors
    /// A failure of the file system.
    pub fn keep(&mut self, id: &str, outcome: &Outcome<'_>) -> Result<Option<Failed>, Failure> {
        Ok(self.0.keep(id, outcome)?)
    }

    /// Collects the data set of what is done.
    ///
    /// # Errors
    /// A failure of the file system.
    pub fn finish(&self) -> Result<Summary, Failure> {
        Ok(self.0.finish()?)
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        if error.is_not_kept() {
            Failure::not_kept(error.to_string())
        } else {
            Failure::input(error.to_string())
        }
    }
}

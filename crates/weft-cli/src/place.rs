//! Where files lie: whether two names are of one file, and what an output must not take the place of.

use crate::exit::Failure;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use weft_sim::experiment::trace::{self, TraceOptions};

/// A file that a command is to write beside its results.
#[derive(Clone, Copy)]
pub struct OutputFile<'a> {
    /// The option that names it, such as `--timeline`.
    pub option: &'static str,
    /// The contents, such as "timeline".
    pub contents: &'static str,
    /// The file.
    pub path: &'a Path,
}

impl OutputFile<'_> {
    /// Refuses an existing file; devices and pipes are written to.
    pub fn refuse_existing(&self) -> Result<(), Failure> {
        if !self.path.is_file() {
            return Ok(());
        }
        let (option, path) = (self.option, self.path.display());
        Err(Failure::input(format!(
            "{option} {path} exists; name another file, or write over it with --force"
        )))
    }

    /// Refuses a file that the run reads. `--force` is for results, not for their causes.
    pub fn refuse_inputs(&self, inputs: &[&Path]) -> Result<(), Failure> {
        let mut partial = self.path.as_os_str().to_owned();
        partial.push(".part");
        let written = [self.path, Path::new(&partial)];
        match inputs.iter().find(|input| written.iter().any(|written| is_same_file(written, input))) {
            None => Ok(()),
            Some(input) => Err(Failure::input(format!(
                "{} {} would write over {}, which this run reads; name another file",
                self.option,
                self.path.display(),
                input.display()
            ))),
        }
    }

    /// Refuses a file of traces that are read.
    pub fn refuse_trace(&self, traces: &[&Path], options: &TraceOptions) -> Result<(), Failure> {
        self.refuse_inputs(traces)?;
        if !self.path.exists() {
            return Ok(());
        }
        // A new file is none of them, and others of a trace are found by reading it.
        let files = traces.iter().flat_map(|path| trace::files(path, options));
        let files: Vec<PathBuf> = files.collect();
        self.refuse_inputs(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>())
    }

    /// Refuses a file within a result directory.
    pub fn refuse_within(&self, directory: &Path) -> Result<(), Failure> {
        if !located(self.path).starts_with(located(directory)) {
            return Ok(());
        }
        let OutputFile { option, contents, path } = self;
        Err(Failure::input(format!(
            "{option} {} lies in the directory of --output, which holds nothing but results; write the \
             {contents} elsewhere",
            path.display()
        )))
    }
}

/// Writes a file so that nobody ever sees a part of it; into a device or a pipe as it comes.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = match (path.is_dir(), folder.is_dir()) {
        (true, _) => Some("it is a folder".to_owned()),
        (false, false) => Some(format!("{} is no folder", folder.display())),
        (false, true) => None,
    };
    if let Some(wrong) = wrong {
        let path = path.display();
        return Err(Failure::input(format!("cannot write {path}: {wrong}; name a file that can be written")));
    }
    let failed =
        |error: std::io::Error| Failure::not_kept(format!("cannot write {}: {error}", path.display()));
    if path.exists() && !path.is_file() {
        return std::fs::write(path, bytes).map_err(failed);
    }
    let mut file = tempfile::Builder::new().permissions(readable()).tempfile_in(folder).map_err(failed)?;
    // By the file itself, whose errors do not name the temporary one.
    file.as_file_mut().write_all(bytes).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// The permissions that a file has which is made without more ado; the user's mask takes from them.
fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// Whether both are there and are one file, by whatever names.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// The path from the root of the file system; as far as it is there, without links.
pub fn located(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |above: &Path| {
        let rest = absolute.strip_prefix(above).ok()?;
        let real = above.canonicalize().ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    };
    absolute.ancestors().find_map(real).unwrap_or_else(|| absolute.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Catches a file that is destroyed under another of its names.
    #[test]
    fn a_file_is_known_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, results) =
            (folder.path().join("a"), folder.path().join("link"), folder.path().join("out"));
        fs::write(&file, "trace").unwrap();
        fs::create_dir(&results).unwrap();
        symlink(&results, &link).unwrap();
        let output = |path| OutputFile { option: "--timeline", contents: "timeline", path };
        let dotted = results.join("../a");
        assert!(output(&dotted).refuse_inputs(&[&file]).is_err());
        assert!(output(&dotted).refuse_existing().is_err());
        assert!(output(Path::new("/dev/null")).refuse_existing().is_ok());
        let free = folder.path().join("outer");
        assert!(output(&free).refuse_inputs(&[&file, Path::new("exanest")]).is_ok());
        assert!(output(&free).refuse_within(&results).is_ok());
        let (within, linked) = (results.join("t.json"), link.join("new/t.json"));
        assert!(output(&linked).refuse_within(&results).is_err());
        assert!(output(&within).refuse_within(&link).is_err());
    }

    /// A timeline is written under another name first.
    #[test]
    fn the_name_until_it_is_whole_is_no_input_either() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("t.part");
        fs::write(&input, "trace").unwrap();
        let path = folder.path().join("t");
        let output = OutputFile { option: "--timeline", contents: "timeline", path: &path };
        assert!(output.refuse_inputs(&[&input]).is_err());
    }
}

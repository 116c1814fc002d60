//! `weft pages`: manual pages and shell completions, made of the commands themselves for `make install`.
//!
//! ```text
//!   FOLDER/man/man1/weft.1, weft-traffic.1, …
//!   FOLDER/bash-completion/completions/weft
//!   FOLDER/zsh/site-functions/_weft
//!   FOLDER/fish/vendor_completions.d/weft.fish
//! ```

use crate::exit::{Failure, Status};
use crate::options::MAPS;
use clap::Args;
use clap_complete::{Generator as _, Shell};
use std::fs;
use std::path::{Path, PathBuf};
use weft_sim::experiment::machine;

/// The folders of completions below `share`, where each shell looks.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

/// Options of `weft pages`.
#[derive(Args)]
pub struct PagesOptions {
    /// The folder below which they are written, such as /usr/local/share
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl PagesOptions {
    /// Writes the pages of `command`.
    pub fn run(&self, command: clap::Command) -> Result<Status, Failure> {
        let failed = |error| Failure::input(format!("cannot write below {}: {error}", self.folder.display()));
        self.write(command).map_err(failed)?;
        Ok(Status::Done)
    }

    fn write(&self, mut command: clap::Command) -> std::io::Result<()> {
        // Completions need `help`, and give it to the command.
        let with_pages = without_help(command.clone());
        for (shell, place) in COMPLETIONS {
            let name = command.get_name().to_owned();
            // Into memory: it takes a write that fails for a bug.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, &name, &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            let lists = [machine::shipped_names().collect::<Vec<_>>(), MAPS.to_vec()];
            let script = lists.iter().fold(script, |script, names| with_files(shell, script, names));
            // Bash finds a completion by the command's name alone.
            let file = if shell == Shell::Bash { name } else { shell.file_name(&name) };
            fs::write(self.made(Path::new(place))?.join(file), script)?;
        }
        clap_mangen::generate_to(with_pages, self.made(Path::new("man/man1"))?)
    }

    fn made(&self, place: &Path) -> std::io::Result<PathBuf> {
        let folder = self.folder.join(place);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// A script that completes paths of files where it completes `names`: they stand beside files. Bash does so
/// anyway, where no name fits.
fn with_files(shell: Shell, script: String, names: &[&str]) -> String {
    let list = names.join(" ");
    match shell {
        Shell::Zsh => script.replace(&format!(":({list})"), &format!(":{{compadd -- {list}; _files}}")),
        Shell::Fish => {
            let values = names.iter().map(|name| format!("{name}\\t''")).collect::<Vec<_>>().join("\n");
            let (names_only, with_files) =
                (format!("-r -f -a \"{values}\""), format!("-r -F -a \"{values}\""));
            script.replace(&names_only, &with_files)
        }
        _ => script,
    }
}

/// The command without `help`, at all levels: a page for the help of each command would say nothing.
fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

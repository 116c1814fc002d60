//! The launcher: finds libraries, starts the ranks, is their process manager.
//!
//! | module | what it is |
//! |---|---|
//! | [`door`] | where ranks find that whose launchers have closed what they inherited |
//! | `output` | what ranks print, in the order of virtual time |
//! | [`poller`] | waiting for what many ranks send |
//! | [`pmi`] | the text protocol by which ranks find each other |
//! | [`program`] | is it one that can be a rank? |
//! | [`processes`] | starting, watching, ending |

pub mod door;
pub(crate) mod output;
pub mod pmi;
pub mod poller;
pub mod processes;
pub mod program;

use std::path::{Path, PathBuf};

/// A recorder of MPI calls, preloaded into the ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorder {
    /// The library.
    pub library: PathBuf,
    /// The setting that it reads from the environment: a variable and its value.
    pub variable: (&'static str, PathBuf),
}

/// The libraries that ranks load.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// The client library, preloaded.
    pub client: PathBuf,
    /// The library that tells the client in which MPI call the rank is, preloaded; without it calls have no
    /// names.
    pub calls: Option<PathBuf>,
    /// The folder of the libfabric provider.
    pub provider_folder: PathBuf,
}

/// A library that is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what} was not found in {}; build it with `{mend}`, or name its folder in WEFT_LIBRARIES",
    places(.looked)
)]
pub struct Missing {
    what: &'static str,
    mend: &'static str,
    looked: Vec<PathBuf>,
}

fn places(looked: &[PathBuf]) -> String {
    looked.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// How pip builds the wheel again, in the clone.
const FROM_WHEEL: &str = "pip install --force-reinstall --no-deps .";
/// The same, with the headers that the provider needs.
const FROM_WHEEL_WITH_HEADERS: &str =
    "apt-get install libfabric-dev pkg-config && pip install --force-reinstall --no-deps .";

/// Whether this is the command of a Python wheel, of which pip builds what is missing: it says so itself.
pub fn is_wheel() -> bool {
    std::env::var_os("WEFT_WHEEL").is_some()
}

/// The library of ranks, which programs over `weft.h` are linked with.
///
/// # Errors
/// What is missing of the libraries of `weft run`, and where it was looked for.
pub fn client_library() -> Result<PathBuf, Missing> {
    Libraries::find().map(|libraries| libraries.client)
}

impl Libraries {
    /// Finds them: in the folder that WEFT_LIBRARIES names, beside the command, or in the project's build
    /// folder.
    ///
    /// # Errors
    /// What is missing, and where it was looked for.
    pub fn find() -> Result<Libraries, Missing> {
        let (of_ranks, of_provider) = match is_wheel() {
            false => ("make quick` or `make release", "make -C libfabric"),
            true => (FROM_WHEEL, FROM_WHEEL_WITH_HEADERS),
        };
        let mut folders: Vec<PathBuf> =
            std::env::var_os("WEFT_LIBRARIES").into_iter().map(PathBuf::from).collect();
        if let Some(own) = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned)) {
            // Where cargo keeps it up to date with the command.
            folders.push(own.join("deps"));
            folders.push(own.clone());
            folders.push(own.join("../lib/weft"));
            folders.push(own.join("../../build/libfabric"));
            folders.push(own.join("../../../build/libfabric"));
        }
        let find = |names: &[&str], what, mend| {
            let mut files = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
            files.find(|file| file.is_file()).ok_or_else(|| Missing { what, mend, looked: folders.clone() })
        };
        let client =
            find(&["libweft.so", "libweft_client.so"], "the library of ranks, libweft.so,", of_ranks)?;
        let provider = find(&["libweft-fi.so"], "the libfabric provider, libweft-fi.so,", of_provider)?;
        let provider_folder = provider.parent().map(Path::to_owned).unwrap_or_default();
        // Beside the client library, whatever other versions lie in the other folders.
        let calls = Some(client.with_file_name("libweft_calls.so")).filter(|file| file.is_file());
        Ok(Libraries { client, calls, provider_folder })
    }
}

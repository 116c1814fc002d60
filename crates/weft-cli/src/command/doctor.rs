//! `weft doctor`: what is installed and what is missing, with the mend.

use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use clap::Args;
use serde::Serialize;
use std::env;
use std::path::PathBuf;
use weft_host::launch::{Libraries, is_wheel};
use weft_host::record::{Mpi, recorder};
use weft_units::memory::available_memory;

/// Options of `weft doctor`.
#[derive(Args)]
pub struct DoctorOptions {
    #[command(flatten)]
    format: FormatOptions,
}

/// A thing that a command needs.
#[derive(Serialize)]
struct Finding {
    /// The command: `run`, `record`, `view`, or `all` for the simulator itself.
    for_command: &'static str,
    /// The thing.
    what: String,
    /// Whether it is there.
    found: bool,
    /// The place, or the answer of the search.
    detail: String,
    /// The command that mends it; empty where nothing is to be mended.
    mend: String,
    /// Whether the command works without it.
    optional: bool,
}

impl DoctorOptions {
    /// Looks.
    pub fn run(self) -> Result<Status, Failure> {
        let findings: Vec<Finding> =
            [simulator(), libraries(), recorders(), pages()].into_iter().flatten().collect();
        let missing = findings.iter().any(|finding| !finding.found && !finding.optional);
        if self.format.json {
            output::document(&serde_json::json!({ "command": "doctor", "rows": findings }))?;
        } else {
            output::text(&text(&findings))?;
        }
        Ok(if missing { Status::EndedBadly } else { Status::Done })
    }
}

fn found(for_command: &'static str, what: impl Into<String>, detail: impl Into<String>) -> Finding {
    let (what, detail) = (what.into(), detail.into());
    Finding { for_command, what, found: true, detail, mend: String::new(), optional: false }
}

fn missing(for_command: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Finding {
    let (what, mend) = (what.into(), mend.into());
    Finding { for_command, what, found: false, detail: String::new(), mend, optional: false }
}

/// The simulator needs nothing but memory and processors.
fn simulator() -> Vec<Finding> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let memory = available_memory().map_or("unknown".to_owned(), |memory| {
        format!("{}B of memory", output::thousands(memory.bytes as f64))
    });
    let detail = format!("version {}, {cores} processors, {memory}", env!("CARGO_PKG_VERSION"));
    vec![found("all", "simulator", detail)]
}

/// The libraries that ranks of `weft run` load, and an MPI to build programs with.
fn libraries() -> Vec<Finding> {
    let mut findings = Vec::new();
    match Libraries::find() {
        Ok(libraries) => {
            findings.push(found("run", "library of ranks", libraries.client.display().to_string()));
            let folder = libraries.provider_folder.display().to_string();
            findings.push(found("run", "libfabric provider", folder));
            let calls =
                libraries.calls.map(|calls| found("run", "names of MPI calls", calls.display().to_string()));
            let none = || Finding {
                optional: true,
                ..missing("run", "names of MPI calls", "cargo build --workspace")
            };
            findings.push(calls.unwrap_or_else(none));
        }
        // The message has the places that were searched, and the command that builds it.
        Err(error) => findings.push(missing("run", "libraries of ranks", error.to_string())),
    }
    findings.push(program("run", "mpicc", mpi_mend()));
    findings
}

/// How an MPI comes to where this command is.
fn mpi_mend() -> &'static str {
    match is_wheel() {
        true => "pip install mpich",
        false => "make recorder (installs MPICH into build/venv), then PATH=build/venv/bin:$PATH",
    }
}

/// A recorder per MPI: one suffices.
fn recorders() -> Vec<Finding> {
    let mut findings: Vec<Finding> = Mpi::ALL
        .into_iter()
        .map(|mpi| match recorder(mpi) {
            Ok(path) => found("record", format!("recorder for {mpi}"), path.display().to_string()),
            Err(error) => missing("record", format!("recorder for {mpi}"), error.to_string()),
        })
        .collect();
    let any = findings.iter().any(|finding| finding.found);
    findings.iter_mut().for_each(|finding| finding.optional = any);
    findings.push(program("record", "mpiexec", mpi_mend()));
    findings
}

/// The page is in the command, or is built by Node.
fn pages() -> Vec<Finding> {
    if weft_view::has_page() {
        return vec![found("view", "page in the browser", "in this command")];
    }
    let page = missing("view", "page in the browser", weft_view::PAGE_MEND);
    let node = program("view", "npm", "apt-get install nodejs npm, or https://nodejs.org; then make view");
    vec![Finding { optional: true, ..page }, node]
}

/// A program that is found in PATH. Others than those looked for may do as well.
fn program(for_command: &'static str, name: &str, mend: &str) -> Finding {
    let folders = env::var_os("PATH").unwrap_or_default();
    let place: Option<PathBuf> =
        env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    match place {
        Some(path) => found(for_command, name, path.display().to_string()),
        None => Finding { optional: true, ..missing(for_command, name, mend) },
    }
}

fn text(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        let state = match (finding.found, finding.optional) {
            (true, _) => "found",
            (false, true) => "not found (can do without)",
            (false, false) => "missing",
        };
        let detail = if finding.found { finding.detail.clone() } else { finding.mend.clone() };
        [finding.for_command.to_owned(), finding.what.clone(), state.to_owned(), detail]
    };
    output::table(["for", "what", "", "where, or the mend"], [false; 4], findings.iter().map(row))
}

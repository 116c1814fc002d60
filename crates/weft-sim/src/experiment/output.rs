//! Where the results of a run go, and what is read back from there.

use super::Request;
use super::explain::Explained;
use super::replay::TraceInput;
use std::path::{Path, PathBuf};
use weft_results::{Existing, ResultsError, ResultsWriter, RunManifest, StoredRequest, Table};

/// `run.json` of a request.
pub type Manifest = RunManifest<Request, Explained>;

/// How a result directory begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Empty.
    Fresh(Existing),
    /// From its last snapshot.
    Resume,
}

/// The destination of results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The result directory.
    pub directory: PathBuf,
    /// The tables to write. A resumed run writes those that it began with.
    pub tables: Vec<Table>,
    /// How it begins.
    pub start: Start,
}

impl Output {
    /// Opens the directory. For [`Start::Resume`] the state of the last snapshot comes with it.
    ///
    /// # Errors
    /// A directory that cannot be written or resumed.
    pub fn open(&self, request: &Request) -> Result<(ResultsWriter, Option<Vec<u8>>), ResultsError> {
        match self.start {
            Start::Fresh(existing) => {
                let stored =
                    StoredRequest { request: request.clone(), trace_paths: absolute_trace_paths(request)? };
                let writer = ResultsWriter::create(&self.directory, &self.tables, &stored, existing)?;
                Ok((writer, None))
            }
            Start::Resume => {
                ResultsWriter::resume(&self.directory).map(|(writer, state)| (writer, Some(state)))
            }
        }
    }
}

/// The paths of a request's traces from the root, so that a rerun finds them from any folder.
fn absolute_trace_paths(request: &Request) -> Result<Vec<PathBuf>, ResultsError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| ResultsError::file("read", path, e));
    let path = |trace: &TraceInput| match trace.is_file() {
        true => absolute(&trace.path),
        false => Ok(PathBuf::new()),
    };
    request.traces().iter().map(path).collect()
}

/// The request of the result in `directory`, finished or saved, with the paths of its traces.
///
/// # Errors
/// A directory without a result, and a result that another version of weft wrote or that is damaged.
pub fn read_request(directory: &Path) -> Result<Request, ResultsError> {
    let StoredRequest { mut request, trace_paths } = weft_results::read_request::<Request>(directory)?;
    for (trace, path) in request.traces_mut().iter_mut().zip(trace_paths) {
        trace.path = path;
    }
    Ok(request)
}

/// `run.json` of the result in `directory`.
///
/// # Errors
/// As of [`read_request`].
pub fn read_manifest(directory: &Path) -> Result<Manifest, ResultsError> {
    weft_results::read_manifest(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::MachineInput;
    use crate::experiment::replay::{Mapping, ReplayRequest, Wildcards};
    use weft_results::{Ending, Performance, Totals};

    /// Catches a run that cannot be repeated because nobody knows where its trace was, finished or not.
    #[test]
    fn a_replay_knows_where_its_trace_was() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.weft");
        std::fs::write(&trace, "trace").unwrap();
        let request = Request::Replay(ReplayRequest {
            machine: MachineInput {
                name: "two".to_owned(),
                text: String::new(),
                sets: vec![],
                files: Default::default(),
            },
            traces: vec![TraceInput::at(&trace).unwrap()],
            starts: Vec::new(),
            isolated: false,
            map: Mapping::Linear,
            ranks_per_host: None,
            wildcards: Wildcards::Recorded,
            seed: 1,
            data: false,
            breakdown: false,
            compute_scale: Default::default(),
            region: None,
            telemetry: None,
            scenario: None,
        });
        let directory = folder.path().join("out");
        let output = Output {
            directory: directory.clone(),
            tables: Table::defaults(),
            start: Start::Fresh(Existing::Refuse),
        };
        let (results, _) = output.open(&request).unwrap();
        assert_eq!(read_request(&directory).unwrap().traces()[0].path, trace);
        let manifest =
            Manifest::new(request.clone(), serde_json::json!({}), Ending::Finished, Totals::default());
        results.finish(manifest, Performance::default()).unwrap();
        assert_eq!(read_request(&directory).unwrap(), request);
        assert_eq!(read_manifest(&directory).unwrap().request.traces()[0].path, PathBuf::new());
        let run_json = std::fs::read_to_string(directory.join("run.json")).unwrap();
        assert!(!run_json.contains(folder.path().to_str().unwrap()), "a path of this computer in run.json");
    }
}

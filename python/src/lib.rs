//! The native part of `import weft`: the command, called in the process of Python.
//!
//! ```text
//!  weft.traffic(…) ──words──► call ──► weft_cli::call in its own thread, without Python's lock
//!                                 ◄── exit status, JSON, message
//! ```
//! Words are the interface, as for the shell. So Python takes the options of the command, and an
//! error has its text. Programs of Python go along (`program`): words name them `program:0` and so on.

mod program;

use program::{Placed, Watch};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weft_cli::{Caller, CommandFailure, Interrupt, Outcome, Stepped};
use weft_units::{Bytes, Span};

/// How often Python is asked whether Ctrl-C was pressed.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How long a program may go on without an operation after Ctrl-C, before it is raised in the program itself.
const GRACE: Duration = Duration::from_secs(1);

/// Does what `words` say; returns the exit status, what the command prints, and its error. `programs` are
/// names, numbers of ranks and functions that step a rank.
///
/// Ctrl-C ends the run at its next virtual epoch, and raises KeyboardInterrupt then. What a program raises is
/// raised here.
#[pyfunction]
#[pyo3(signature = (words, programs = Vec::new()))]
fn call(
    py: Python<'_>,
    words: Vec<String>,
    programs: Vec<(String, u32, Py<PyAny>)>,
) -> PyResult<(u8, String, String)> {
    let watch = Arc::new(Watch::default());
    let programs = programs.into_iter().enumerate();
    let programs = programs.map(|(index, program)| {
        let program: Arc<dyn Stepped> = Arc::new(Placed::new(index, program, Arc::clone(&watch)));
        program
    });
    let caller = Caller { interrupt: Interrupt::default(), programs: programs.collect() };
    let asked = caller.interrupt.clone();
    let (sender, receiver) = channel();
    // Code without the interpreter's lock may use only what threads can share.
    let receiver = Mutex::new(receiver);
    let worker = thread::spawn(move || {
        let words: Vec<String> = std::iter::once("weft".to_owned()).chain(words).collect();
        // Nobody waits for an answer where Python has gone away.
        let _ = sender.send(weft_cli::call(&words, caller));
    });
    let mut raised = None;
    let mut asked_at = Instant::now();
    let called = loop {
        let wait = || {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
            receiver.recv_timeout(SIGNAL_CHECK_INTERVAL)
        };
        match py.detach(wait) {
            Ok(called) => break Some(called),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = py.check_signals() {
                    asked.request();
                    (raised, asked_at) = (Some(error), Instant::now());
                }
                if raised.is_some() && asked_at.elapsed() > GRACE {
                    watch.interrupt(py);
                }
            }
        }
    };
    // The thread may have objects of Python to drop.
    py.detach(|| drop(worker.join()));
    match (raised.or_else(|| watch.take_raised()), called) {
        (Some(error), _) => Err(error),
        (None, Some(called)) => Ok((called.status, called.output, called.message)),
        (None, None) => Err(PyRuntimeError::new_err("this is a bug in weft: please report what you called")),
    }
}

/// The command itself, with its own output; returns the exit status.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<String>) -> u8 {
    py.detach(|| weft_cli::main(&words))
}

/// The bytes of a size such as `4K`.
#[pyfunction]
fn size(text: &str) -> PyResult<u64> {
    text.parse().map(Bytes::get).map_err(|error| PyValueError::new_err(format!("{error}")))
}

/// The picoseconds of a time such as `5us`.
#[pyfunction]
fn span(text: &str) -> PyResult<u64> {
    text.parse().map(Span::as_ps).map_err(|error| PyValueError::new_err(format!("{error}")))
}

/// A study and its directory. Python runs the points, through any executor; what they print is kept here.
#[pyclass]
struct Sweep(weft_cli::Sweep);

#[pymethods]
impl Sweep {
    /// The study of a file; raises what `refused` makes of an error.
    #[new]
    fn new(study: PathBuf, directory: Option<PathBuf>, anew: bool) -> PyResult<Sweep> {
        weft_cli::Sweep::open(&study, directory.as_deref(), anew).map(Sweep).map_err(|error| refused(&error))
    }

    /// Points of the study.
    fn points(&self) -> usize {
        self.0.points()
    }

    /// Points that are to be done: the name, and the words of the command.
    fn missing(&self) -> Vec<(String, Vec<String>)> {
        self.0.missing().into_iter().map(|point| (point.id, point.words)).collect()
    }

    /// Keeps what a point's command has printed; returns the error of one that was refused.
    fn keep(&mut self, id: &str, status: u8, output: &str, message: &str) -> PyResult<Option<String>> {
        let kept = self.0.keep(id, &Outcome { status, output, message });
        let failed = kept.map_err(|error| refused(&error))?;
        Ok(failed.map(|failed| failed.message))
    }

    /// Collects the data set of what is done; returns what is there, as JSON.
    fn finish(&self) -> PyResult<String> {
        let summary = self.0.finish().map_err(|error| refused(&error))?;
        serde_json::to_string(&summary).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// An error of the command for Python, which knows its kind by the exit status: `(text, status)`.
fn refused(error: &CommandFailure) -> PyErr {
    let (status, message) = error.told();
    Refused::new_err((message.to_owned(), status))
}

pyo3::create_exception!(_weft, Refused, pyo3::exceptions::PyException);

/// The native part of `import weft`.
#[pymodule]
fn _weft(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sweep>()?;
    module.add("Refused", module.py().get_type::<Refused>())?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(size, module)?)?;
    module.add_function(wrap_pyfunction!(span, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)
}

//! Values of messaging that traces of virtual time ask for, so that a replay is of the same software.
//!
//! ```text
//!   weft run --record ──► trace: MPICH 5, computation takes no time ──► replay: MPICH 5's algorithms, copies
//!   and reductions take none
//! ```
//! Real ranks move messages on themselves and write announced data, whatever the machine file says, and poll
//! before they wait.
//!
//! A trace of a real machine asks for nothing: what its program would take on another machine depends on that
//! machine's library.

use crate::experiment::ExperimentError;
use crate::experiment::trace::kernel_called;
use std::path::Path;
use weft_formats::{Trace, TraceHeader};

/// The name of weft's own format.
const OWN_FORMAT: &str = "weft";

/// Calls of a library within its collectives.
const LIBRARY_CALLS: [&str; 5] = [
    "messaging.collective_call",
    "messaging.temporary_buffer",
    "messaging.sendrecv_call",
    "messaging.copy_call",
    "messaging.reduce_call",
];

/// Keys of the machine, and their values, under which a replay of these traces is of the software that they
/// were recorded with. Those of the first trace that was recorded in virtual time: all ranks of a replay have
/// one library.
///
/// # Errors
/// Traces that cannot be read.
pub fn as_recorded(traces: &[impl AsRef<Path>]) -> Result<Vec<(&'static str, String)>, ExperimentError> {
    for path in traces {
        // Only weft records in virtual time.
        if kernel_called(path.as_ref()).is_some() {
            continue;
        }
        if Trace::format_of(path).is_some_and(|format| format != OWN_FORMAT) {
            continue;
        }
        let trace = Trace::open(path.as_ref()).map_err(ExperimentError::input)?;
        let settings = settings(&trace.metadata().header);
        if !settings.is_empty() {
            return Ok(settings);
        }
    }
    Ok(Vec::new())
}

/// The keys and values that one trace asks for.
pub(crate) fn settings(header: &TraceHeader) -> Vec<(&'static str, String)> {
    if header.virtual_time.is_none() {
        return Vec::new();
    }
    let profile = profile(&header.mpi_library).map(|profile| ("messaging.profile", profile.to_owned()));
    let mut settings: Vec<_> = profile.into_iter().collect();
    let own = [
        ("messaging.progress", "call"),
        ("messaging.rendezvous", "write"),
        ("messaging.clear_to_send", "sender"),
        ("messaging.eager_ack", "false"),
        ("messaging.wait_costs", "polls"),
        ("messaging.synchronous_sends", "receipt"),
        ("messaging.one_sided", "native"),
        ("messaging.atomics", "emulated"),
        ("messaging.active_messages", "mpich-5"),
    ];
    settings.extend(own.map(|(key, value)| (key, value.to_owned())));
    settings.extend(header.buffered_limit.map(|limit| ("messaging.buffered_limit", limit.to_string())));
    if header.virtual_time.as_deref().is_some_and(|host| !host.starts_with("cpu")) {
        let rates = ["messaging.memory_copy_rate", "messaging.reduction_rate"];
        settings.extend(rates.map(|key| (key, "unlimited".to_owned())));
        // The library computed for nothing while it was recorded.
        settings.extend(LIBRARY_CALLS.map(|key| (key, "0ns".to_owned())));
    }
    settings
}

/// The table of algorithms of a library that calls itself this; `None`: there is none.
fn profile(library: &str) -> Option<&'static str> {
    let version = library.strip_prefix("MPICH Version:")?.trim_start();
    Some(if version.starts_with("3.") { "mpich-3.2.1" } else { "mpich-5" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches traces of real machines that are replayed by another library than the machine's, and
    /// computation that is free because it was elsewhere.
    #[test]
    fn only_virtual_time_asks_for_its_software() {
        let header = |library: &str, virtual_time: Option<&str>| TraceHeader {
            mpi_library: library.to_owned(),
            virtual_time: virtual_time.map(str::to_owned),
            buffered_limit: virtual_time.map(|_| 4096),
            ..TraceHeader::default()
        };
        let keys = |header| settings(&header).into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        let mpich = "MPICH Version:      5.0.2\nMPICH Device: ch4";
        let own =
            ["call", "write", "sender", "false", "polls", "receipt", "native", "emulated", "mpich-5", "4096"];
        let expected = [&["mpich-5"][..], &own, &["unlimited"; 2], &["0ns"; 5]].concat();
        assert_eq!(keys(header(mpich, Some("none"))), expected);
        assert_eq!(
            keys(header("MPICH Version:\t3.4.3", Some("cpu:1"))),
            [&["mpich-3.2.1"][..], &own].concat()
        );
        assert_eq!(keys(header("Open MPI v4.1.4", Some("cpu:1"))), own);
        assert!(keys(header(mpich, None)).is_empty());
    }
}

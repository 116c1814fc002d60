//! Chakra execution traces, the format of MLCommons for machine learning: for each rank a graph of
//! computations, sends, receives and collectives.
//!
//! ```text
//!   PREFIX.0.et, PREFIX.1.et, …   length │ GlobalMetadata │ length │ Node │ length │ Node …   (protobuf)
//!        │                        messages.rs, et_def.rs
//!        ▼
//!   node.rs ──▶ rank.rs, implied.rs ──▶ RankGraph ──▶ streams (graph/)
//!                 ▲
//!   comm_group.json, metadata nodes ── groups.rs
//! ```
//! A rank is a device as ASTRA-sim has it: its computations take turns on one core, all that communicates is
//! on a second one beside them, and operations of the host (`is_cpu_op`) are on a third.
//!
//! # Source
//! `schema/protobuf/et_def.proto` and `src/feeder` of mlcommons/chakra, `astra-sim/workload/Workload.cc` and
//! `HardwareResource.cc` of astra-sim/astra-sim, `src/feeder_v3` of astra-sim/chakra. et_def.rs is generated
//! from et_def.proto, which says how.
//!
//! # Not modelled
//! ASTRA-sim lets one send or collective of a rank run at a time; here all run that may. What depends on a
//! send starts when it is posted, as it needs no receive there, and would need one here. Memory nodes have no
//! model of a memory.

#[rustfmt::skip]
#[allow(dead_code, clippy::all)] // Generated code has more than is read, and a style of its own.
mod et_def;
mod files;
mod groups;
mod implied;
mod messages;
mod node;
mod rank;

use crate::format::{Format, FormatReader, OpenTrace};
use crate::graph::spool;
use crate::input::Input;
use files::ChakraRun;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "chakra",
    knows: |path, head| {
        path.extension().is_some_and(|extension| extension == files::EXTENSION) || messages::knows(head)
    },
    open: |path, options| open(ChakraRun::open(path, options.speed)?),
    open_bytes: |name, bytes, options| open(ChakraRun::of_one(Input::memory(name, bytes), options.speed)),
    writing: None,
};

fn open(run: ChakraRun) -> OpenTrace {
    let reader: Arc<dyn FormatReader> = Arc::new(spool(run)?);
    Ok(reader)
}

/// Counts for the notes of the trace.
#[derive(Clone, Debug, Default)]
struct ChakraNotes {
    /// Ranks whose control dependencies are no order.
    unordered_ranks: u64,
    /// Loads and stores.
    memory: u64,
    /// Computations that say no time at all.
    timeless: u64,
    /// Sends, receives and collectives of the host.
    of_host: u64,
    /// Collectives with a root, which is not told.
    rootless: u64,
}

impl ChakraNotes {
    fn notes(&self) -> BTreeMap<String, u64> {
        let notes = [
            (
                self.unordered_ranks,
                "ranks whose ctrl_deps name no node, or a circle: only their data_deps are followed, as the \
                 feeder of mlcommons/chakra does",
            ),
            (self.memory, "memory nodes: their duration_micros on the core of communication, if any"),
            (self.timeless, "computations without duration_micros and num_ops: no time"),
            (
                self.of_host,
                "communication nodes of the host (is_cpu_op): computation of their duration_micros",
            ),
            (self.rootless, "collectives with a root, which is not told: the first member"),
        ];
        let counted = notes.into_iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, note)| (note.to_owned(), count)).collect()
    }
}

#[cfg(test)]
mod tests;

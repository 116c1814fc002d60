//! Memory of a GPU as source or target.
//!
//! ```text
//!               as a source                               as a target
//!  gpu-direct   lock ─► the card reads it over PCIe       the card writes it
//!  gpu-staged   copy to the host ─► as the host's         as the host's ─► copy to the GPU
//! ```
//! # Source
//! D1.4 §9.2.2: GPUDirect RDMA, a direct path between the GPU and the card over PCIe; pinning and locking
//! make what has its source in the memory of a GPU slower. No figure is printed.
//!
//! # Not modelled
//! Copies that overlap with the network: a message is staged whole. Traffic of the GPU itself, and copies of
//! several messages at a time on one copy engine. Translation of addresses of the GPU.

use crate::pcie::Memory;
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span};

weft_keys::words! {
    /// The memory that a buffer lies in.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
    pub enum MemoryKind: "MemoryKind", "a kind of memory" {
        /// That of the host.
        #[default]
        Host = "host",
        /// That of a GPU, which the card reads and writes.
        GpuDirect = "gpu-direct",
        /// That of a GPU, by way of a buffer in the host.
        GpuStaged = "gpu-staged",
    }
}

weft_keys::keys! {
    /// The GPU of a host.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct GpuParameters {
        /// The memory of sources: `host`, `gpu-direct`, `gpu-staged`; `host` where not given.
        source: MemoryKind = MemoryKind::Host;
        /// The memory of targets; `host` where not given.
        target: MemoryKind = MemoryKind::Host;
        /// From a read request at the root to the first data of the GPU's completion.
        read: Span;
        /// Rate at which the card reads the GPU's memory.
        read_rate: Option<BitRate>, read_as(BitRate), not_zero("80Gb/s");
        /// From a write at the root to its being seen in the GPU's memory.
        write: Span;
        /// Rate at which the card writes it.
        write_rate: Option<BitRate>, read_as(BitRate), not_zero("80Gb/s");
        /// Pinning and locking, for each message whose source the card reads.
        lock: Span;
        /// From the call of a copy between GPU and host to its first byte, and from its last to the return.
        copy_start: Span;
        /// Rate of such a copy.
        copy_rate: BitRate, not_zero("80Gb/s");
    }
}

impl GpuParameters {
    /// The GPU's memory as the card reads it.
    pub(super) fn reads(&self) -> Memory {
        Memory { read: self.read, write: self.write, rate: self.read_rate }
    }

    /// The GPU's memory as the card writes it.
    pub(super) fn writes(&self) -> Memory {
        Memory { rate: self.write_rate, ..self.reads() }
    }

    /// The time of a copy between GPU and host.
    pub(super) fn copy(&self, bytes: Bytes) -> Span {
        self.copy_start + self.copy_rate.span(bytes)
    }
}

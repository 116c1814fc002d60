//! The way between the interface and the memory of its host: translation, port, memory channel.
//!
//! ```text
//!   unit ─► translation ─► host port ─► memory channel
//! ```
//! A cell is through when both the port and the memory channel are done with it: words pass one while the
//! other works on the next.

use crate::host_port::{HostPort, HostPortParameters};
use crate::iommu::{Iommu, IommuParameters, Page as MemoryPage, Translation};
use crate::memory::{MemoryChannel, MemoryParameters};
use crate::rdma::Location;
use weft_units::{Bytes, Time};

/// A write into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryWrite {
    /// The time at which its first word was on the port.
    pub began: Time,
    /// The time at which its last word has left the interface.
    pub issued: Time,
    /// The time at which all of it is in memory.
    pub written: Time,
}

/// The way to memory, which all units of an interface share.
pub struct MemoryPath<'a> {
    /// To and from memory.
    pub port: &'a mut HostPort,
    /// Parameters of the port.
    pub port_parameters: &'a HostPortParameters,
    /// The memory channel.
    pub memory: &'a mut MemoryChannel,
    /// Parameters of the memory channel.
    pub memory_parameters: &'a MemoryParameters,
    /// Address translation.
    pub iommu: &'a mut Iommu,
    /// Parameters of the translation.
    pub iommu_parameters: &'a IommuParameters,
}

impl MemoryPath<'_> {
    /// Translates the pages of `bytes` at `location`, the one in `known` excepted, which then holds the last
    /// if its translation is there.
    #[inline]
    pub(crate) fn translate(
        &mut self,
        location: Location,
        bytes: Bytes,
        known: &mut Option<MemoryPage>,
        now: Time,
    ) -> Translation {
        let (space, parameters) = (location.space, self.iommu_parameters);
        let begin = location.address.get();
        let end = begin.saturating_add(bytes.get().saturating_sub(1));
        // Most cells lie in the page before's; which page another one lies in takes divisions.
        if known.is_some_and(|page| page.space == space && page.holds(begin, end, parameters)) {
            return Translation::At(now);
        }
        let first = Iommu::page(space, begin, parameters);
        let last = Iommu::page(space, end, parameters);
        let mut time = now;
        for number in first.number..=last.number {
            let page = MemoryPage { space, number };
            if *known != Some(page) {
                match self.iommu.translate(page, time, parameters) {
                    Translation::At(translated) => time = time.max(translated),
                    fault => return fault,
                }
                *known = (time == now).then_some(page);
            }
        }
        Translation::At(time)
    }

    /// Reads `bytes` of a transfer of `whole` from memory through the port, from `from` on; returns when the
    /// last word has come.
    #[inline(always)]
    pub(crate) fn read(&mut self, bytes: Bytes, whole: Bytes, from: Time) -> Time {
        let one_way = self.port_parameters.one_way();
        let latency = self.memory_parameters.read_latency(whole);
        let port = self.port.read(from, bytes, latency, self.port_parameters).ended;
        let memory = self.memory.access(bytes, from + one_way, self.memory_parameters) + latency + one_way;
        if memory > port { self.port_parameters.clock.edge_at_or_after(memory) } else { port }
    }

    /// Writes `bytes` into memory through the port, their words having come from `from` on; returns when
    /// the last one has left the interface, and when it is in memory.
    #[inline(always)]
    pub(crate) fn write(&mut self, bytes: Bytes, from: Time) -> (Time, Time) {
        let write = self.write_words(bytes, self.port_parameters.words(bytes), from);
        (write.issued, write.written)
    }

    /// The same where the number of words is known.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, bytes: Bytes, words: u64, from: Time) -> MemoryWrite {
        let port = self.port.write_words(from, words, self.port_parameters);
        let one_way = self.port_parameters.one_way();
        let memory = self.memory.access(bytes, port.began + one_way, self.memory_parameters);
        MemoryWrite { began: port.began, issued: port.issued, written: port.ended.max(memory) }
    }

    /// Writes a notification behind data that has left the interface at `issued`: it takes the same way.
    #[inline(never)]
    pub(crate) fn notify(&mut self, bytes: Bytes, issued: Time) -> Time {
        self.write(bytes, issued).1
    }
}

//! The section of a machine file on the ExaNet interface.

use super::check::CheckParameters;
use super::wire::RequestWords;
use crate::allreduce::AllreduceParameters;
use crate::host_port::HostPortParameters;
use crate::iommu::IommuParameters;
use crate::mailbox::MailboxParameters;
use crate::memory::MemoryParameters;
use crate::packetizer::PacketizerParameters;
use crate::rdma::RdmaParameters;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span};

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanetParameters {
    /// The port between processors, memory and interface.
    pub host_port: HostPortParameters,
    /// Small messages out.
    pub packetizer: PacketizerParameters,
    /// Small messages in.
    pub mailbox: MailboxParameters,
    /// Large messages.
    pub rdma: RdmaParameters,
    /// Address translation.
    pub iommu: IommuParameters,
    /// The memory channel.
    pub memory: MemoryParameters,
    /// Reductions without processors; `None`: there are none.
    pub allreduce: Option<AllreduceParameters>,
    /// Corrupted packets that come.
    pub check: CheckParameters,
}

impl ExanetParameters {
    /// Whether requests of reads go to the mailbox of the send unit: a packet of the packetizer holds their
    /// words. Else they are small messages.
    pub fn has_requests(&self) -> bool {
        self.packetizer.payload >= RequestWords::SIZE
    }

    /// Least time from a packet's arrival until the host notices the message that it brings: into memory by
    /// the host port, an entry of the mailbox or the notification behind a cell, and the poll that sees it.
    pub fn least_notice(&self) -> Span {
        let (port, receive) = (&self.host_port, &self.rdma.receive);
        let words = |bytes: Bytes| bytes.div_ceil(port.word).max(1);
        let entry = words(self.mailbox.entry);
        let notification = words(receive.notification) + u64::from(receive.cycles);
        // Edges of a clock are rounded to picoseconds.
        let rounding = Span::from_ps(2);
        let poll = self.mailbox.poll.min(receive.poll);
        (port.clock.cycles(entry.min(notification)) + port.one_way() + poll).saturating_sub(rounding)
    }

    /// Least time from cell to cell of `payload` of one transfer, as far as it is the interface's: engine,
    /// host port with the words and reads that it can have under way, and memory channel.
    pub fn cell_pace(&self, payload: Bytes) -> Span {
        let (send, port) = (&self.rdma.send, &self.host_port);
        let engine = send.clock.cycles(send.cell_cycles(payload));
        let words = port.clock.cycles(payload.div_ceil(port.word));
        let bursts = payload.div_ceil(port.word * u64::from(port.burst_words).max(1)).max(1);
        let under_way = (u64::from(port.outstanding) / bursts).min(send.cell_buffers.into()).max(1);
        let reads = Span::from_ps((port.round_trip + words).as_ps() / under_way);
        engine.max(words).max(reads).max(self.memory.rate.span(payload))
    }
}

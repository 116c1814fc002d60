//! What a machine file says of the block-level interface.

use super::check::CheckParameters;
use crate::allreduce::AllreduceParameters;
use crate::host_port::HostPortParameters;
use crate::iommu::IommuParameters;
use crate::mailbox::MailboxParameters;
use crate::memory::MemoryParameters;
use crate::packetizer::PacketizerParameters;
use crate::rdma::RdmaParameters;
use serde::{Deserialize, Serialize};

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FullParameters {
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

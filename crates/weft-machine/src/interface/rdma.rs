//! The tables below `[nic]` for large messages and reductions: the RDMA engine and what it works with.

use super::RawNic;
use crate::read::Reader;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_nic::allreduce::AllreduceParameters;
use weft_nic::iommu::IommuParameters;
use weft_nic::memory::MemoryParameters;
use weft_nic::rdma::RdmaParameters;
use weft_nic::segmentation::{SegmentationKeys, SegmentationParameters};

/// Large messages and reductions, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rdma {
    /// Send unit, receive unit and agent.
    pub engine: RdmaParameters,
    /// Address translation.
    pub iommu: IommuParameters,
    /// The memory channel.
    pub memory: MemoryParameters,
    /// Reductions without processors.
    pub allreduce: Option<AllreduceParameters>,
}

impl Rdma {
    /// Checks the tables, for packets of this format.
    pub(super) fn read(raw: RawNic, format: &PacketFormat, reader: &mut Reader<'_>) -> Option<Rdma> {
        let checks = |own: &RdmaParameters| [own.send.check(), own.reliability.check()];
        let engine = raw.rdma.and_then(|table| table.check(checks, reader));
        let segmentation = raw.segmentation.and_then(|table| segmentation(table, reader));
        let iommu = raw.iommu.and_then(|table| table.check(|own| [own.check()], reader));
        let allreduce = raw.allreduce.map(|table| table.check(|own| [own.check(format.payload)], reader));
        let allreduce = match allreduce {
            None => None,
            Some(own) => Some(own?),
        };
        let engine = RdmaParameters { segmentation: segmentation?, ..engine? };
        Some(Rdma { engine, iommu: iommu?, memory: raw.memory?.keys?, allreduce })
    }
}

/// The agent that is chosen, which needs its cost.
fn segmentation(table: Table<SegmentationKeys>, reader: &mut Reader<'_>) -> Option<SegmentationParameters> {
    let chosen = table.keys?.chosen();
    if chosen.is_none() {
        reader.missing(table.locations.section, "nic.segmentation", "hardware_invocation");
    }
    chosen
}

//! The interface of caRVnet: the blocks of ExaNet's, with a way of its own for the processor's stores,
//! descriptors in on-chip memory, contexts in place of the channels of pages, and an agent in hardware.

use super::exanet::{ExanetNic, cycles};
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::{Entry, Reader, section};
use crate::source::Location;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::{Cost, Problem};
use weft_msg::{PostCosts, Protocol};
use weft_nic::ExanetParameters;
use weft_nic::rdma::SourceContexts;
use weft_nic::segmentation::SegmentationParameters;
use weft_topo::MessageClasses;
use weft_units::Bytes;

section! {
    /// Contexts of the send unit, which hardware gives to descriptors and takes back.
    struct RawContexts {
        /// Contexts: transfers of all processes that may be under way.
        count: Entry<u32>,
        /// From a descriptor to the first read of memory, in whole cycles; one begins per cycle.
        allocation: Entry<Cost>,
    }
}

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CarvnetNic {
    /// The blocks that it has in common with ExaNet's; the send unit has contexts.
    pub blocks: ExanetNic,
}

impl CarvnetNic {
    /// The parameters of the simulated interface. `seed` is that of its random decisions.
    pub fn parameters(&self, seed: u64) -> ExanetParameters {
        self.blocks.parameters(seed)
    }
}

impl InterfaceModel for CarvnetNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let mut limits = self.blocks.rank_limits();
        if let Some(pages) = limits.last_mut() {
            pages.reason = format!("has {} descriptor channels, one for each", pages.most);
        }
        limits
    }

    fn process_limits(&self) -> ProcessLimits {
        self.blocks.process_limits()
    }

    fn post_costs(&self, protocol: &Protocol) -> PostCosts {
        self.blocks.post_costs(protocol)
    }

    fn pace(&self, payload: Bytes) -> InterfacePace {
        self.blocks.pace(payload)
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        self.blocks.carries_data()
    }

    /// As of ExaNet's interface: a transfer that waits for a context waits at its source, and what comes
    /// needs none of those.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        self.blocks.message_classes(virtual_channels)
    }
}

impl FromSection for CarvnetNic {
    const KEYS: &'static [&'static str] = &[
        "undetected",
        "host_port",
        "packetizer",
        "mailbox",
        "rdma",
        "segmentation",
        "iommu",
        "memory",
        "allreduce",
        "contexts",
    ];

    fn read(mut raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<CarvnetNic> {
        let location = raw.model.location;
        let contexts = raw.contexts.take();
        let mut blocks = ExanetNic::read_blocks("carvnet", raw, format, reader)?;
        let Some(contexts) = contexts else {
            reader.missing(location, "nic", "contexts");
            return None;
        };
        if blocks.host_port.stores.is_none() {
            reader.missing(location, "nic.host_port", "store_clock");
            return None;
        }
        if matches!(blocks.rdma.engine.segmentation, SegmentationParameters::Firmware { .. }) {
            report_firmware(location, reader);
            return None;
        }
        if !(1..=1 << 16).contains(&contexts.count.value) {
            let why = format!("{} contexts cannot be numbered", contexts.count.value);
            let problem = Problem::new(why, "", "write a number from 1 to 65536");
            reader.report(contexts.count.location, problem);
            return None;
        }
        let allocation = cycles(contexts.allocation.value, &blocks.host_port.clock);
        blocks.rdma.engine.send.contexts = Some(SourceContexts { count: contexts.count.value, allocation });
        Some(CarvnetNic { blocks })
    }
}

/// Segmentation by a co-processor, which this interface does not have.
fn report_firmware(location: Location, reader: &mut Reader<'_>) {
    let problem = Problem::new(
        "`nic.model = \"carvnet\"` has no co-processor: hardware cuts transfers and acknowledges them",
        "nic.segmentation.agent is firmware",
        "write nic.segmentation.agent = \"hardware\", or model = \"exanet\"",
    );
    reader.report(location, problem);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nic, load};

    fn refused(machine: &str, set: &str) -> String {
        load(machine, &[set]).unwrap_err().to_string()
    }

    /// Catches a machine that is taken for caRVnet's without its blocks, and one whose agent would take the
    /// microseconds of firmware.
    #[test]
    fn what_makes_the_interface_is_needed() {
        assert!(refused("exanest", "nic.model=carvnet").contains("nic.contexts"));
        let error = refused("carvnet-spineleaf", "nic.segmentation.agent=firmware");
        assert!(error.contains("no co-processor") && error.contains("hardware"), "{error}");
        assert!(refused("carvnet-riscv", "nic.contexts.count=65537").contains("from 1 to 65536"));
        assert!(refused("carvnet-riscv", "nic.host_port.store_word=0").contains("carries nothing"));
        assert!(refused("exanest", "nic.host_port.store_word=8").contains("store_clock"));
        assert!(refused("exanest", "nic.host_port.store_clock=1GHz").contains("store_word"));
    }

    /// Catches a way of stores or contexts that do not reach the simulated interface, and such that do where
    /// the model is another.
    #[test]
    fn its_blocks_are_those_of_the_file() {
        let parameters = |set: &str| match load("carvnet-riscv", &[set]).unwrap().nic {
            Nic::Carvnet(nic) => nic.parameters(0),
            Nic::Exanet(nic) => nic.parameters(0),
            other => panic!("{other:?}"),
        };
        let own = parameters("nic.contexts.count=7");
        assert_eq!(own.rdma.send.contexts, Some(SourceContexts { count: 7, allocation: 10 }));
        let path = own.host_port.store_path();
        assert_eq!((path.word, path.latency), (Bytes::new(8), path.clock.cycles(7)));
        assert_eq!(parameters("nic.model=exanet").rdma.send.contexts, None);
        load("carvnet-riscv", &["nic.model=overheads"]).unwrap();
        load("carvnet-spineleaf", &["nic.model=overheads"]).unwrap();
    }
}

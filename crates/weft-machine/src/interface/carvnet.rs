//! The interface of caRVnet: the blocks of ExaNet's, with a way of its own for the processor's stores,
//! descriptors in on-chip memory, contexts in place of the channels of pages, and an agent in hardware.

use super::exanet::ExanetNic;
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::Reader;
use crate::source::Location;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::Problem;
use weft_msg::{PostCosts, Protocol};
use weft_nic::ExanetParameters;
use weft_nic::segmentation::SegmentationParameters;
use weft_topo::MessageClasses;
use weft_units::Bytes;

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

    fn longest_message(&self) -> Bytes {
        self.blocks.longest_message()
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
    fn keys() -> Vec<&'static str> {
        [ExanetNic::keys(), vec!["contexts"]].concat()
    }

    fn read(mut raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<CarvnetNic> {
        let location = raw.locations.of("model");
        let contexts = raw.contexts.take();
        let mut blocks = ExanetNic::read(raw, format, reader)?;
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
        blocks.rdma.engine.send.contexts = Some(contexts.keys?);
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
    use weft_nic::rdma::SourceContexts;

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
        assert!(refused("carvnet-riscv", "nic.contexts.count=65537").contains("at most 65536"));
        assert!(refused("carvnet-riscv", "nic.host_port.store_word=0").contains("is zero"));
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

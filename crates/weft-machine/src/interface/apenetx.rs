//! The tables below `[nic]` for the APEnetX card: one per block.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::Reader;
use crate::table::names;
use serde::{Deserialize, Serialize};
use weft_fabric::parameters::PacketFormat;
use weft_keys::Keys;
use weft_msg::{PostCost, PostCosts, Protocol};
use weft_nic::ApenetxParameters;
use weft_nic::apenetx::{ChosenCompletion, PcieHostParameters};
use weft_topo::MessageClasses;
use weft_units::{Bytes, Span};

/// The APEnetX card, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApenetxNic {
    /// The parameters of the simulated interface.
    pub parameters: ApenetxParameters,
}

impl InterfaceModel for ApenetxNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let queues = self.parameters.card.queues;
        vec![RankLimit {
            most: queues,
            reason: format!("has {queues} queues, one for each process"),
            keys: "nic.card.queues",
        }]
    }

    fn process_limits(&self) -> ProcessLimits {
        let queues = self.parameters.card.queues;
        ProcessLimits { interfaces: queues, pages: queues, small: self.parameters.payload }
    }

    /// Whatever a process sends goes through the library, and without the fast send through the driver.
    fn post_costs(&self, _protocol: &Protocol) -> PostCosts {
        let ApenetxParameters { software, host_to_card, .. } = &self.parameters;
        let call = PostCost::of_call(software.send_call(host_to_card.fast));
        PostCosts { small: call, write: call, read: call, stores: None }
    }

    /// Packets are written into memory as they come.
    fn pace(&self, payload: Bytes) -> InterfacePace {
        InterfacePace {
            send_packet: self.parameters.packet_pace(payload),
            receive_packet: Span::ZERO,
            cycle: self.parameters.clock.cycles(1),
        }
    }

    fn carries_data(&self) -> bool {
        false
    }

    /// All that arrives goes to memory, and sets off no packet (`apenetx` in `weft_nic`).
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for ApenetxNic {
    fn keys() -> Vec<&'static str> {
        let tables = ["pcie", "card", "host_to_card", "card_to_host", "software", "iommu", "gpu"];
        names(ChosenCompletion::KEYS).into_iter().chain(tables).collect()
    }

    fn read(raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<ApenetxNic> {
        let ChosenCompletion { completion } = raw.completions?;
        let RawNic { card, host_to_card, card_to_host, software, .. } = &raw;
        raw.report_lacks(
            &[
                ("clock", raw.clock().is_some()),
                ("completion", completion.is_some()),
                ("pcie", raw.pcie.is_some()),
                ("card", card.is_some()),
                ("host_to_card", host_to_card.is_some()),
                ("card_to_host", card_to_host.is_some()),
                ("software", software.is_some()),
                ("iommu", raw.iommu.is_some()),
            ],
            ("what the blocks of its card are", "apenetx-u200"),
            reader,
        );
        let clock = raw.clock();
        let checks = |own: &PcieHostParameters| [own.pcie.check_sizes(), own.pcie.check_room()];
        let host = raw.pcie.and_then(|table| table.check(checks, reader));
        let host_to_card = raw.host_to_card.and_then(|table| table.check(|own| [own.check()], reader));
        let card_to_host = raw.card_to_host.and_then(|table| table.check(|own| [own.check()], reader));
        let iommu = raw.iommu.and_then(|table| table.check(|own| [own.check()], reader));
        let gpu = match raw.gpu {
            None => None,
            Some(table) => Some(table.keys?),
        };
        let PcieHostParameters { pcie, memory } = host?;
        let parameters = ApenetxParameters {
            clock: clock?,
            card: raw.card?.keys?,
            payload: format?.payload,
            pcie,
            memory,
            iommu: iommu?,
            host_to_card: host_to_card?,
            card_to_host: card_to_host?,
            software: raw.software?.keys?,
            gpu,
        };
        Some(ApenetxNic { parameters })
    }
}

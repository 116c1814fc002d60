//! The keys of `[nic]` for the Portals interface of BXI machines.
//!
//! The costs of commands, packets and events are those of the overheads interface, under the same keys: a
//! machine may name either model. `[nic.transport]` is its own.

use super::overheads::PROCESS_LIMITS;
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RawNic};
use crate::read::Reader;
use weft_fabric::parameters::PacketFormat;
use weft_nic::{OverheadsParameters, PortalsParameters};
use weft_topo::MessageClasses;
use weft_units::{Bytes, Span};

impl InterfaceModel for PortalsParameters {
    fn process_limits(&self) -> ProcessLimits {
        PROCESS_LIMITS
    }

    fn pace(&self, _payload: Bytes) -> InterfacePace {
        InterfacePace {
            send_packet: Span::ZERO,
            receive_packet: self.costs.receive_packet,
            cycle: Span::ZERO,
        }
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        false
    }

    fn multicasts(&self) -> bool {
        true
    }

    /// The interface takes or drops whatever comes. The acknowledgements that it owes have a place: as many
    /// as its table of flows and their windows allow.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for PortalsParameters {
    fn keys() -> Vec<&'static str> {
        let others = ["message_gap", "reliability"];
        let costs = OverheadsParameters::keys().into_iter().filter(|key| !others.contains(key));
        costs.chain(["transport"]).collect()
    }

    fn read(
        raw: RawNic,
        format: Option<&PacketFormat>,
        reader: &mut Reader<'_>,
    ) -> Option<PortalsParameters> {
        let needs = [("transport", raw.transport.is_some())];
        raw.report_lacks(&needs, ("how packets are repeated", "bxi3-fattree"), reader);
        if let Some(Err(problem)) = format.map(|format| PortalsParameters::check_packet(format.largest())) {
            reader.report(raw.locations.of("model"), problem);
        }
        let checks = |own: &PortalsParameters| [own.transport.reliability.check(), own.transport.check()];
        let transport = raw.transport?.check(checks, reader);
        Some(PortalsParameters { costs: raw.overheads?, ..transport? })
    }
}

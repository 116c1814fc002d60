//! The keys of `[nic]` for the overheads interface.

use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RawNic};
use crate::read::Reader;
use crate::table::{at, names};
use weft_fabric::parameters::PacketFormat;
use weft_keys::Keys;
use weft_nic::OverheadsParameters;
use weft_topo::MessageClasses;
use weft_units::{Bytes, Span};

/// The limits of real processes at an interface that has no blocks: those of TR-488 §5.1 and §4.4.
pub(super) const PROCESS_LIMITS: ProcessLimits =
    ProcessLimits { interfaces: 64, pages: 64, small: Bytes::new(64) };

impl InterfaceModel for OverheadsParameters {
    fn process_limits(&self) -> ProcessLimits {
        PROCESS_LIMITS
    }

    fn pace(&self, _payload: Bytes) -> InterfacePace {
        InterfacePace { send_packet: Span::ZERO, receive_packet: self.receive_packet, cycle: Span::ZERO }
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        false
    }

    fn wants_order(&self, links_may_fail: bool) -> bool {
        self.reliability.on_links(links_may_fail).takes_in_order()
    }

    fn multicasts(&self) -> bool {
        true
    }

    /// The interface has room for whatever comes, and for the messages that its host sends in answer. An
    /// acknowledgement is kept for each packet that has asked for one, and is owed to nobody else.
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        MessageClasses::consumed(virtual_channels)
    }
}

impl FromSection for OverheadsParameters {
    fn keys() -> Vec<&'static str> {
        let costs = names(OverheadsParameters::KEYS).into_iter();
        costs.chain(["reliability"]).collect()
    }

    fn read(raw: RawNic, _: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<OverheadsParameters> {
        if at(reader.root, "nic.message_gap").is_none() {
            reader.missing(raw.locations.section, "nic", "message_gap");
            return None;
        }
        let mut own = raw.overheads?;
        if let Some(table) = raw.reliability {
            own.reliability = table.keys?;
        }
        Some(own)
    }
}

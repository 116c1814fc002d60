//! The sections below `[nic]` for the block-level interface: one per block.

use super::rdma::Rdma;
use super::{FromSection, InterfaceModel, InterfacePace, ProcessLimits, RankLimit, RawNic};
use crate::read::Reader;
use crate::table::names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weft_fabric::parameters::PacketFormat;
use weft_keys::Keys;
use weft_msg::{PostCost, PostCosts, Protocol, Stores};
use weft_nic::gvas::Gvas;
use weft_nic::host_port::{HostPortParameters, StorePath};
use weft_nic::mailbox::MailboxParameters;
use weft_nic::packetizer::PacketizerParameters;
use weft_nic::wire::RequestWords;
use weft_nic::{CheckParameters, Class, ExanetParameters};
use weft_topo::{ClassUse, MessageClass, MessageClasses};
use weft_units::{Bytes, Span};

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanetNic {
    /// The port between processors, memory and interface.
    pub host_port: HostPortParameters,
    /// Small messages out.
    pub packetizer: PacketizerParameters,
    /// Small messages in.
    pub mailbox: MailboxParameters,
    /// Large messages and reductions.
    pub rdma: Rdma,
    /// Of a million corrupted packets with data so many are taken for whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undetected: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ExanetNic {
    /// Processes that an endpoint has interfaces for.
    pub fn interfaces(&self) -> u32 {
        self.packetizer.interfaces.min(self.mailbox.interfaces)
    }

    /// The parameters of the simulated interface. `seed` is that of its random decisions.
    pub fn parameters(&self, seed: u64) -> ExanetParameters {
        let ExanetNic { host_port, packetizer, mailbox, rdma, undetected } = *self;
        let check = CheckParameters { undetected, seed };
        let Rdma { engine: rdma, iommu, memory, allreduce } = rdma;
        ExanetParameters { host_port, packetizer, mailbox, rdma, iommu, memory, allreduce, check }
    }
}

impl InterfaceModel for ExanetNic {
    fn rank_limits(&self) -> Vec<RankLimit> {
        let (interfaces, pages) = (self.interfaces(), self.rdma.engine.send.pages);
        vec![
            RankLimit {
                most: interfaces,
                reason: format!("is for {interfaces} processes"),
                keys: "nic.packetizer.interfaces and nic.mailbox.interfaces",
            },
            RankLimit {
                most: pages,
                reason: format!("has {pages} pages of RDMA channels, one for each"),
                keys: "nic.rdma.pages",
            },
        ]
    }

    /// As far as a virtual address reaches.
    fn longest_message(&self) -> Bytes {
        Bytes::new(1 << Gvas::ADDRESS_BITS)
    }

    fn process_limits(&self) -> ProcessLimits {
        let (interfaces, pages) = (self.interfaces(), self.rdma.engine.send.pages);
        ProcessLimits { interfaces, pages: pages.min(interfaces), small: self.packetizer.payload }
    }

    /// A processor stores what it posts into the pages of the blocks. The request of a read goes by the
    /// packetizer.
    fn post_costs(&self, protocol: &Protocol) -> PostCosts {
        let StorePath { clock, word, .. } = self.host_port.store_path();
        let stored = |stored| PostCost { call: Span::ZERO, stored };
        let PacketizerParameters { descriptor, payload, .. } = self.packetizer;
        let has_requests = self.parameters(0).has_requests();
        let request = if has_requests { RequestWords::SIZE } else { protocol.control_bytes.min(payload) };
        PostCosts {
            small: stored(descriptor),
            write: stored(self.rdma.engine.send.descriptor),
            read: stored(descriptor + request),
            stores: Some(Stores { clock, word }),
        }
    }

    /// The receive unit writes cells as they come: its stages say what else they wait for.
    fn pace(&self, payload: Bytes) -> InterfacePace {
        InterfacePace {
            send_packet: self.parameters(0).cell_pace(payload),
            receive_packet: Span::ZERO,
            cycle: self.host_port.clock.cycles(1),
        }
    }

    fn is_rail(&self) -> bool {
        true
    }

    fn carries_data(&self) -> bool {
        true
    }

    /// As the interface's own classes of packets say. It refuses by a NACK, for which its queue of answers
    /// has room: the queue is bounded by what senders have outstanding (`exanet` in `weft_nic`).
    fn message_classes(&self, virtual_channels: u32) -> MessageClasses {
        let of_class = |class: Class| {
            let refused_until: BTreeSet<MessageClass> =
                class.waits_for().iter().flat_map(|&other| messages(other)).copied().collect();
            messages(class).iter().map(move |&class| ClassUse {
                class,
                virtual_channels: (0..virtual_channels).collect(),
                refused_until: refused_until.clone(),
            })
        };
        let has_class = |class: &Class| *class != Class::Reduction || self.rdma.allreduce.is_some();
        MessageClasses(Class::ALL.into_iter().filter(has_class).flat_map(of_class).collect())
    }
}

/// The messages that travel in packets of a class.
fn messages(class: Class) -> &'static [MessageClass] {
    match class {
        Class::Request => &[MessageClass::Rts, MessageClass::Cts],
        Class::Data => &[MessageClass::Data],
        Class::Answer => &[MessageClass::Ack, MessageClass::Nack],
        Class::Reduction => &[MessageClass::Reduction],
    }
}

impl FromSection for ExanetNic {
    fn keys() -> Vec<&'static str> {
        let tables =
            ["host_port", "packetizer", "mailbox", "rdma", "segmentation", "iommu", "memory", "allreduce"];
        names(CheckParameters::KEYS).into_iter().chain(tables).collect()
    }

    fn read(mut raw: RawNic, format: Option<&PacketFormat>, reader: &mut Reader<'_>) -> Option<ExanetNic> {
        let RawNic { host_port, packetizer, mailbox, .. } = &raw;
        raw.report_lacks(
            &[
                ("clock", raw.clock().is_some()),
                ("host_port", host_port.is_some()),
                ("packetizer", packetizer.is_some()),
                ("mailbox", mailbox.is_some()),
                ("rdma", raw.rdma.is_some()),
                ("segmentation", raw.segmentation.is_some()),
                ("iommu", raw.iommu.is_some()),
                ("memory", raw.memory.is_some()),
            ],
            ("what the blocks of its interface are", "exanest"),
            reader,
        );
        let format = format?;
        let (host_port, packetizer, mailbox) =
            (raw.host_port.take(), raw.packetizer.take(), raw.mailbox.take());
        let host_port = host_port.and_then(|table| table.keys);
        let packetizer = packetizer.and_then(|table| {
            let check = |own: &PacketizerParameters| {
                [own.check_payload(format.payload), own.reliability.check(), own.check_pauses()]
            };
            table.check(check, reader)
        });
        let small = packetizer.map_or(Bytes::ZERO, |packetizer| packetizer.payload);
        let mailbox = mailbox
            .and_then(|table| table.check(|own| [own.check_entry(small), own.check_remembered()], reader));
        let check = raw.check;
        let rdma = Rdma::read(raw, format, reader);
        let (host_port, packetizer, mailbox, mut rdma) = (host_port?, packetizer?, mailbox?, rdma?);
        rdma.engine.send.control_words = (format.header + format.footer).div_ceil(host_port.word) as u32;
        if let Some(allreduce) = &mut rdma.allreduce {
            // Its packets are like the packetizer's.
            allreduce.reliability = packetizer.reliability;
        }
        Some(ExanetNic { host_port, packetizer, mailbox, rdma, undetected: check?.undetected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a deadlock proof that leaves out packets of the interface, or has some that it never sends.
    #[test]
    fn the_proof_has_the_classes_of_the_interface() {
        let classes = |name: &str| {
            let machine = crate::load(name, &[] as &[&str]).expect("it ships");
            machine.nic.model().message_classes(2).0
        };
        let names =
            |name: &str| classes(name).iter().map(|known| known.class.to_string()).collect::<Vec<_>>();
        assert_eq!(names("exanest"), ["RTS", "CTS", "data", "ACK", "NACK", "reduction"]);
        assert_eq!(names("carvnet-spineleaf"), ["RTS", "CTS", "data", "ACK", "NACK"]);
        for known in classes("exanest") {
            let waits = Class::ALL.iter().filter(|class| messages(**class).contains(&known.class));
            let waits: usize = waits.map(|class| class.waits_for().len()).sum();
            assert_eq!((known.virtual_channels.len(), known.refused_until.is_empty()), (2, waits == 0));
        }
    }
}

//! The hardware of a node in its surroundings, while the fabric calls it.
//!
//! The shell lends it all for one call: [`NicNode`] has it with the fabric, [`Hosted`] with the host beside.
//! What concerns hardware and network is on the node: the way in from the host in `post`, the way in from the
//! network in `receive`, the engines in `rdma` and `reduction`. Here is what the host has to know.

use super::announcement::Expected;
use super::bytes::DataOfHost;
use super::check::DamageCheck;
use super::post::Posts;
use super::receive::Notice;
use super::reduction::Reductions;
use super::small::WaitingPackets;
use super::transmit::Transmit;
use super::{Announcement, ExanetNic, ExanetParameters, ExanetTimer};
use crate::edge_form::{EdgeBlocks, EdgeMailbox, EdgePacketizer};
use crate::failure::Failure;
use crate::host::{Delivered, Host, Incoming, Offer};
use crate::host_port::HostPort;
use crate::iommu::Iommu;
use crate::mailbox::Mailbox;
use crate::memory::MemoryChannel;
use crate::memory_path::MemoryPath;
use crate::message_table::MessageTable;
use crate::observer::{Observer as _, Stage};
use crate::packetizer::Packetizer;
use crate::ports::{Crossing, PortEvent};
use crate::rdma::Rdma;
use crate::shell::{Hosted, NicNode};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{Announced, InterfaceContext};
use weft_units::{Address, CountLedger, Time};

/// The blocks, and the queues between them.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct Hardware<H: Host> {
    pub(super) memory: MemoryBlocks,
    pub(super) packetizer: Packetizer,
    pub(super) mailbox: Mailbox,
    /// Small messages that wait for a slot of the mailbox; `None` before the first.
    pub(super) waiting: Option<Box<WaitingPackets>>,
    pub(super) rdma: Rdma,
    /// `None` before the first reduction: most nodes of most machines have none.
    pub(super) reductions: Option<Box<Reductions>>,
    pub(super) transmit: Transmit,
    /// The host's memory, in a run with real bytes.
    pub(super) data: Option<Box<DataOfHost<H::Header>>>,
    pub(super) posts: Posts,
    /// Messages that failed as they were posted, and when the host learns of it.
    pub(super) failures: Vec<(Time, Failure)>,
    /// Headers of messages for this interface whose packets have not come.
    pub(super) headers: MessageTable<Expected<H::Header>>,
    /// Messages that have come, in the order in which the host notices them.
    pub(super) deliveries: VecDeque<Delivered<H::Header>>,
    next_number: u32,
    pub(super) check: DamageCheck,
    /// Counts of what was sent again; `None`: nothing, as nearly everywhere.
    pub(super) repairs: Option<Box<CountLedger>>,
    /// Whether what crosses the ports of packetizer and mailbox is reported.
    pub(super) watched: bool,
    /// Blocks that take the place of the model's. A run that has some is not saved.
    #[serde(skip)]
    pub(super) in_place: Option<Box<EdgeBlocks>>,
}

/// The blocks on the way to the host's memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryBlocks {
    pub(super) port: HostPort,
    pub(super) channel: MemoryChannel,
    pub(super) iommu: Iommu,
}

impl MemoryBlocks {
    /// The way to memory for one call of a block.
    pub fn path<'a>(&'a mut self, parameters: &'a ExanetParameters) -> MemoryPath<'a> {
        MemoryPath {
            port: &mut self.port,
            port_parameters: &parameters.host_port,
            memory: &mut self.channel,
            memory_parameters: &parameters.memory,
            iommu: &mut self.iommu,
            iommu_parameters: &parameters.iommu,
        }
    }
}

impl<H: Host> Hardware<H> {
    /// The hardware of a node whose messages carry real bytes from this seed on, if from any.
    pub(super) fn with_data(data: Option<u64>) -> Hardware<H> {
        Hardware {
            data: data.map(|seed| Box::new(DataOfHost::new(seed))),
            memory: MemoryBlocks::default(),
            packetizer: Packetizer::default(),
            mailbox: Mailbox::default(),
            waiting: None,
            rdma: Rdma::default(),
            reductions: None,
            transmit: Transmit::default(),
            posts: Posts::default(),
            failures: Vec::new(),
            headers: MessageTable::default(),
            deliveries: VecDeque::new(),
            next_number: 0,
            check: DamageCheck::default(),
            repairs: None,
            watched: false,
            in_place: None,
        }
    }

    /// The mailbox that takes the place of the model's.
    #[inline]
    pub(super) fn mailbox_in_place(&mut self) -> Option<&mut dyn EdgeMailbox> {
        self.in_place.as_mut()?.mailbox.as_deref_mut().map(|mailbox| mailbox as &mut dyn EdgeMailbox)
    }

    /// The packetizer that takes the place of the model's.
    #[inline]
    pub(super) fn packetizer_in_place(&mut self) -> Option<&mut dyn EdgePacketizer> {
        let packetizer = self.in_place.as_mut()?.packetizer.as_deref_mut();
        packetizer.map(|packetizer| packetizer as &mut dyn EdgePacketizer)
    }

    /// A process takes the oldest entry of its queue at `at`.
    #[inline]
    pub(super) fn take_entry(&mut self, interface: u16, at: Time) {
        self.mailbox.take(interface, at);
        if let Some(mailbox) = self.mailbox_in_place() {
            mailbox.take(interface, at);
        }
    }

    /// The number of the next message or reduction.
    pub(super) fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    /// The counts of what is sent again.
    #[cold]
    pub(super) fn ledger(&mut self) -> &mut CountLedger {
        self.repairs.get_or_insert_default()
    }

    /// When the blocks that share a turn on the link, RDMA and reductions, have a packet.
    #[inline]
    pub(super) fn large_ready(&self) -> Time {
        let reductions = self.reductions.as_ref().map_or(Time::NEVER, |reductions| reductions.due());
        self.rdma.next_outgoing().min(reductions)
    }

    /// Whether the blocks would begin on another message of the host soon.
    fn takes_offers(&self, parameters: &ExanetParameters) -> bool {
        self.packetizer.waiting() == 0 && !self.rdma.is_full(&parameters.rdma.send)
    }
}

/// The hardware in its surroundings.
pub(super) type ExanetNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, Hardware<H>, H>;

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// Reports a stage of a watched message.
    pub(super) fn stage(&mut self, stage: &Stage) {
        self.fabric.output().stage(stage);
    }

    /// Reports what crosses a port of packetizer or mailbox, where that is wanted.
    #[inline]
    pub(super) fn port(&mut self, what: impl FnOnce() -> Crossing) {
        if self.hardware.watched {
            report_port(self.fabric, what());
        }
    }

    /// Has the host notice a failure at `at`.
    pub(super) fn fail_later(&mut self, at: Time, failure: Failure) {
        self.hardware.failures.push((at, failure));
        self.fabric.set_timer(at, ExanetTimer::Failed);
    }
}

/// Reports what crosses a port.
#[cold]
pub(super) fn report_port<H: Host>(fabric: &mut InterfaceContext<'_, '_, ExanetNic<H>>, what: Crossing) {
    let (endpoint, at) = (fabric.endpoint(), fabric.now());
    fabric.output().port(&PortEvent { endpoint, at, what });
}

/// The host and its node.
pub(super) type ExanetHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, Hardware<H>, H>;

impl<H: Host> ExanetHosted<'_, '_, '_, H> {
    /// A timer of the node or of the host has fired.
    pub(super) fn timer(&mut self, timer: ExanetTimer<H::Timer>) {
        match timer {
            ExanetTimer::Host(timer) => self.host_timer(timer),
            ExanetTimer::Sent(token) => self.sent(token),
            ExanetTimer::Accelerated(token) => self.accelerated(token),
            ExanetTimer::Post => self.node.carry_out_posts(),
            ExanetTimer::Failed => {
                let now = self.node.fabric.now();
                let failures = &mut self.node.hardware.failures;
                let place = failures.iter().position(|(at, _)| *at <= now);
                if let Some((_, failure)) = place.map(|place| failures.remove(place)) {
                    self.fail(&failure);
                }
            }
            ExanetTimer::Deliver => {
                if let Some(message) = self.node.hardware.deliveries.pop_front() {
                    self.hand_over(&message);
                }
            }
            ExanetTimer::Request => {
                if let Some(request) = self.node.decide_on_request() {
                    // The host stands in for the words of the request: it posts what they say.
                    self.hand_over(&request);
                }
            }
            ExanetTimer::Slot => {
                if let Some(message) = self.node.slot_taken() {
                    self.notify(Notice::Message(message));
                }
                self.report_damage();
            }
            ExanetTimer::Reduction(id) => {
                self.node.wake_reduction(id);
                self.report_damage();
            }
            ExanetTimer::ReductionLate => self.node.reduction_late(),
            ExanetTimer::Rdma(task) => {
                if let Some(failure) = self.node.wake_rdma(task) {
                    self.fail(&failure);
                }
            }
            ExanetTimer::Retransmission(channel) => {
                if let Some(failure) = self.node.channel_expired(channel) {
                    self.fail(&failure);
                }
            }
        }
    }

    /// Another interface has announced something of a message. The host says where the message goes to.
    pub(super) fn announced(&mut self, announced: Announced<Announcement<H::Header>>) {
        let mut address = Address::default();
        if let Announcement::Header(message) = &announced.content
            && let Some(header) = &message.header
        {
            let incoming = Incoming { header, bytes: message.bytes, interface: message.fields.interface };
            address = self.host.destination(incoming, self.parameters, &mut self.node);
        }
        self.node.announced(announced, address);
    }

    /// The host is to know of a message or a failure: now, or when it notices the message.
    #[inline(never)]
    pub(super) fn notify(&mut self, notice: Notice<H::Header>) {
        match notice {
            Notice::Failure(failure) => self.fail(&failure),
            Notice::Message(message) if H::PASSIVE || message.noticed <= self.node.fabric.now() => {
                self.hand_over(&message);
            }
            Notice::Message(message) => {
                let least = self.node.parameters.least_notice();
                debug_assert!(message.noticed >= self.node.fabric.now().saturating_add(least));
                let queue = &mut self.node.hardware.deliveries;
                let place = queue.partition_point(|other| other.noticed <= message.noticed);
                queue.insert(place, message);
                self.node.fabric.set_timer(message.noticed, ExanetTimer::Deliver);
            }
        }
    }

    #[inline]
    fn hand_over(&mut self, message: &Delivered<H::Header>) {
        if H::PASSIVE && message.in_mailbox {
            self.node.hardware.take_entry(message.interface, message.noticed);
        }
        self.deliver(message);
    }

    /// Reports to the host where its memory is wrong.
    #[inline]
    pub(super) fn report_damage(&mut self) {
        if self.node.hardware.data.is_some() {
            self.report_errors();
        }
    }

    #[cold]
    fn report_errors(&mut self) {
        let Some(data) = &mut self.node.hardware.data else { return };
        for (error, header) in data.take_errors() {
            self.damage(&error, header.as_ref());
        }
    }

    /// Draws messages from the host, as long as the blocks would begin on them.
    #[inline(never)]
    pub(super) fn take_offers(&mut self) {
        let now = self.node.fabric.now();
        self.node.retire_due();
        while self.host.next_offer() <= now {
            if !self.node.hardware.takes_offers(self.node.parameters) {
                return self.node.await_ends();
            }
            let Offer::Message(message) = self.host.offer(self.parameters, now) else { return };
            self.node.accept(message, now);
        }
    }
}

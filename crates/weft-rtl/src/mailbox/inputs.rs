//! The inputs of the RTL of the mailbox, cycle by cycle.

use super::{NAME, base};
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::words::{BusWord, SmallMessage, edge};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weft_nic::gvas::Pdid;
use weft_nic::ports::SmallPacket;
use weft_units::{Clock, EndpointId, Time};

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 18;
/// Cycles after which the block is at rest, where nothing comes.
const REST: u64 = 40;
/// Packets whose target is remembered, for those that come again.
const REMEMBERED: usize = 1 << 14;

/// The ports.
pub(super) struct MailboxPorts {
    reset: RtlPort,
    node: RtlPort,
    net_valid: RtlPort,
    net_ready: RtlPort,
    net_data: RtlPort,
    net_last: RtlPort,
    answer_valid: RtlPort,
    answer_ready: RtlPort,
    answer_data: RtlPort,
    answer_last: RtlPort,
    aw_valid: RtlPort,
    aw_ready: RtlPort,
    aw_address: RtlPort,
    w_valid: RtlPort,
    w_ready: RtlPort,
    w_data: RtlPort,
    w_last: RtlPort,
    b_valid: RtlPort,
    register_address: RtlPort,
    register_data: RtlPort,
    register_strobe: RtlPort,
    register_valid: [RtlPort; 2],
    register_ready: RtlPort,
    register_answer_ready: RtlPort,
}

/// A stream's signals in a cycle.
pub(super) struct OnBus {
    /// The names of what says that there is a word, of the word, and of what says that it is the last.
    pub signals: [&'static str; 3],
    pub valid: u128,
    pub data: u128,
    pub last: u128,
}

impl OnBus {
    /// Whether the last word of a packet is on the bus.
    pub fn ends(&self) -> bool {
        self.valid != 0 && self.last != 0
    }
}

/// The outputs of a cycle.
pub(super) struct MailboxOutputs {
    pub answer: OnBus,
    pub entry: OnBus,
    pub address_valid: u128,
    pub address: u128,
}

/// A register that is written in a cycle, or later.
#[derive(Clone, Copy)]
struct RegisterWrite {
    cycle: u64,
    address: u32,
    value: u64,
}

/// The inputs that are to come, and what the RTL has not answered.
#[derive(Clone, Default)]
pub(super) struct MailboxInputs {
    /// The next cycle.
    pub cycle: u64,
    /// The cycle from which on the block is at rest.
    rests_from: u64,
    words: VecDeque<BusWord>,
    registers: VecDeque<RegisterWrite>,
    /// Packets that the RTL has and has not answered.
    unanswered: u32,
    /// Writes that memory has to answer.
    to_answer: u32,
}

impl MailboxPorts {
    pub fn new(rtl: &Instance) -> Result<MailboxPorts, RtlError> {
        let port = |name: &str, bits| rtl.port(name, bits);
        Ok(MailboxPorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            net_valid: port("s_axis_net_tvalid", 1)?,
            net_ready: port("s_axis_net_tready", 1)?,
            net_data: port("s_axis_net_tdata", 128)?,
            net_last: port("s_axis_net_tlast", 1)?,
            answer_valid: port("m_axis_net_tvalid", 1)?,
            answer_ready: port("m_axis_net_tready", 1)?,
            answer_data: port("m_axis_net_tdata", 128)?,
            answer_last: port("m_axis_net_tlast", 1)?,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_ready: port("m_axi_awready", 1)?,
            aw_address: port("m_axi_awaddr", 49)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_ready: port("m_axi_wready", 1)?,
            w_data: port("m_axi_wdata", 128)?,
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
            register_address: port("s_axil_awaddr", 19)?,
            register_data: port("s_axil_wdata", 64)?,
            register_strobe: port("s_axil_wstrb", 8)?,
            register_valid: [port("s_axil_awvalid", 1)?, port("s_axil_wvalid", 1)?],
            register_ready: port("s_axil_awready", 1)?,
            register_answer_ready: port("s_axil_bready", 1)?,
        })
    }

    /// Resets the RTL of an endpoint, and places the queues, before the run's first cycle.
    pub fn reset(&self, rtl: &mut Instance, node: EndpointId, library: &RtlLibrary) -> Result<(), RtlError> {
        let entries = library.parameter(NAME, "ENTRIES")?;
        let clearing = library.parameter(NAME, "REMEMBERED")? + 2;
        rtl.set(self.node, node.0.into());
        rtl.set(self.register_strobe, 0xFF);
        rtl.set(self.register_answer_ready, 1);
        for port in [self.answer_ready, self.aw_ready, self.w_ready] {
            rtl.set(port, 1);
        }
        rtl.set(self.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(self.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
        for interface in 0..library.parameter(NAME, "INTERFACES")? {
            let address = SYSTEM | (interface as u32) << 12 | 8;
            self.write_register(rtl, Some((address, base(interface as u16, entries))));
            rtl.cycle();
        }
        self.write_register(rtl, None);
        Ok(())
    }

    #[inline]
    fn write_register(&self, rtl: &mut Instance, write: Option<(u32, u64)>) {
        if let Some((address, value)) = write {
            rtl.set(self.register_address, address.into());
            rtl.set(self.register_data, value.into());
        }
        for port in self.register_valid {
            rtl.set(port, write.is_some().into());
        }
    }
}

impl MailboxInputs {
    /// The words of a packet come: the header as it began to come, the others as they do before its tail.
    pub fn packet(&mut self, small: &SmallMessage, packet: &SmallPacket, tail: Time, clock: &Clock) {
        let mut words = small.words();
        if packet.damaged
            && let Some(footer) = words.last_mut()
        {
            *footer ^= 1;
        }
        let (first, behind) = (edge(clock, packet.head), edge(clock, tail));
        let count = words.len() as u64;
        for (place, data) in words.into_iter().enumerate() {
            let place = place as u64;
            let cycle = if place == 0 { first } else { (behind + place).saturating_sub(count) };
            self.words.push_back(BusWord { cycle, data, last: place + 1 == count });
        }
    }

    /// System software gives an interface to a domain.
    pub fn open(&mut self, interface: u16, domain: Pdid, cycle: u64) {
        let address = SYSTEM | u32::from(interface) << 12;
        self.write(RegisterWrite { cycle, address, value: domain.0.into() });
    }

    /// A process stores its head.
    pub fn head(&mut self, interface: u16, head: u16, cycle: u64) {
        self.write(RegisterWrite { cycle, address: u32::from(interface) << 12, value: head.into() });
    }

    /// Heads of a process grow with time, in whatever order it is known when they are stored.
    fn write(&mut self, write: RegisterWrite) {
        let place = self.registers.partition_point(|other| other.cycle <= write.cycle);
        self.registers.insert(place, write);
        let mut newest = write.value;
        let from_here = self.registers.range_mut(place..);
        for other in from_here.filter(|other| other.address == write.address).rev() {
            std::mem::swap(&mut newest, &mut other.value);
        }
    }

    /// The next cycle in which something comes or is awaited; `None`: the block is idle.
    pub fn next_cycle(&self) -> Option<u64> {
        if self.unanswered > 0 || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let word = self.words.front().map(|word| word.cycle);
        let register = self.registers.front().map(|write| write.cycle);
        Some(word.into_iter().chain(register).min()?.max(self.cycle))
    }

    /// A cycle of the RTL.
    pub fn step(&mut self, rtl: &mut Instance, ports: &MailboxPorts, cycle: u64) -> MailboxOutputs {
        let word = self.words.front().copied().filter(|word| word.cycle <= cycle);
        let register = self.registers.front().filter(|write| write.cycle <= cycle);
        let register = register.map(|write| (write.address, write.value));
        ports.write_register(rtl, register);
        rtl.set(ports.net_valid, word.is_some().into());
        if let Some(word) = word {
            rtl.set(ports.net_data, word.data);
            rtl.set(ports.net_last, word.last.into());
        }
        rtl.set(ports.b_valid, (self.to_answer > 0).into());
        self.to_answer = self.to_answer.saturating_sub(1);
        rtl.cycle();
        if word.is_some() || register.is_some() {
            self.rests_from = cycle + REST;
        }
        if let Some(word) = word
            && rtl.get(ports.net_ready) != 0
        {
            self.words.pop_front();
            self.unanswered += u32::from(word.last);
        }
        if register.is_some() && rtl.get(ports.register_ready) != 0 {
            self.registers.pop_front();
        }
        self.cycle = cycle + 1;
        let get = |port| rtl.get(port);
        let outputs = MailboxOutputs {
            answer: OnBus {
                signals: ["m_axis_net_tvalid", "m_axis_net_tdata", "m_axis_net_tlast"],
                valid: get(ports.answer_valid),
                data: get(ports.answer_data),
                last: get(ports.answer_last),
            },
            entry: OnBus {
                signals: ["m_axi_wvalid", "m_axi_wdata", "m_axi_wlast"],
                valid: get(ports.w_valid),
                data: get(ports.w_data),
                last: get(ports.w_last),
            },
            address_valid: get(ports.aw_valid),
            address: get(ports.aw_address),
        };
        if outputs.entry.ends() {
            self.to_answer += 1;
            self.rests_from = self.rests_from.max(cycle + 3);
        }
        if outputs.answer.ends() {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        outputs
    }
}

/// The targets of packets that have come: of those that come again the model has forgotten them.
#[derive(Default)]
pub(super) struct Targets {
    of: BTreeMap<(EndpointId, u32), (u16, Pdid)>,
    order: VecDeque<(EndpointId, u32)>,
}

impl Targets {
    /// The message of a packet for `to`, with the target that it has now or had before.
    pub fn message(&self, to: EndpointId, packet: &SmallPacket) -> SmallMessage {
        let SmallPacket { from: source, message: number, channel, bytes, payload, .. } = *packet;
        let known = packet.target.or_else(|| self.of.get(&(source, number)).copied());
        let (to_interface, domain) = known.unwrap_or_default();
        SmallMessage { source, number, channel, to, to_interface, domain, bytes, payload }
    }

    /// A packet has been put.
    pub fn remember(&mut self, packet: &SmallPacket) {
        let key = (packet.from, packet.message);
        let Some(target) = packet.target else { return };
        if self.of.insert(key, target).is_none() {
            self.order.push_back(key);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.of.remove(&oldest);
            }
        }
    }
}

/// The RTL of the mailbox of an endpoint, after its reset.
pub(super) fn begin(
    library: &Arc<RtlLibrary>,
    endpoint: EndpointId,
) -> Result<(Instance, MailboxPorts), RtlError> {
    let mut rtl = library.create(NAME)?;
    let ports = MailboxPorts::new(&rtl)?;
    ports.reset(&mut rtl, endpoint, library)?;
    Ok((rtl, ports))
}

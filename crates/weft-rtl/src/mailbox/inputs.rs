//! The inputs of the RTL of the mailbox, cycle by cycle.

use super::{ENTRY, NAME, base};
use crate::bus::{Bus, BusWords};
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::ports::{RegisterPorts, reset};
use crate::words::SmallMessage;
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::gvas::Pdid;
use weft_nic::ports::SmallPacket;
use weft_units::EndpointId;

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 18;
/// Cycles after which the block is at rest, where nothing comes.
const REST: u64 = 40;
/// Cycles of a store while nothing comes; one that is not taken in that time is found missing later.
const MOST_CYCLES_OF_STORE: u64 = 16;

/// The ports.
pub(super) struct MailboxPorts {
    registers: RegisterPorts,
    net_valid: RtlPort,
    net_ready: RtlPort,
    net_data: Bus,
    net_last: RtlPort,
    answer_valid: RtlPort,
    pub answer_data: Bus,
    answer_last: RtlPort,
    aw_valid: RtlPort,
    aw_address: RtlPort,
    /// Signals of one value beside each address: beats, bytes of a beat, and that they follow each other.
    pub burst: [(&'static str, RtlPort, u128); 3],
    /// The bytes of a beat that are written: all.
    pub strobes: (RtlPort, u128),
    w_valid: RtlPort,
    pub w_data: Bus,
    w_last: RtlPort,
    b_valid: RtlPort,
}

/// Words on a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Beat {
    /// The cycle.
    pub cycle: u64,
    pub words: BusWords,
    /// Whether they are the first, or the last, of their packet.
    pub first: bool,
    pub last: bool,
}

/// A stream's signals in a cycle.
pub(super) struct OnBus {
    /// The names of what says that there are words, of the words, and of what says that they are the last.
    pub signals: [&'static str; 3],
    pub valid: u128,
    pub words: BusWords,
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
    /// Whether a header that is offered is taken; `None`: none is offered.
    pub takes_header: Option<bool>,
    pub answer: OnBus,
    pub entry: OnBus,
    pub address_valid: u128,
    pub address: u128,
}

/// A register that is written in a cycle, or later.
#[derive(Clone, Copy)]
struct RegisterWrite {
    cycle: u64,
    /// Packets for which it does not count: those before it.
    behind: u64,
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
    words: VecDeque<Beat>,
    registers: VecDeque<RegisterWrite>,
    /// Packets that are known to be taken, those whose footer the RTL has taken, and the cycle of the last.
    packets: u64,
    footers: u64,
    last_footer: u64,
    /// Packets that the RTL has and has not answered.
    unanswered: u32,
    /// Writes that memory has to answer.
    to_answer: u32,
}

impl MailboxPorts {
    /// The ports, with those set that do not change.
    pub fn begin(rtl: &mut Instance, bus: u32) -> Result<MailboxPorts, RtlError> {
        let registers = RegisterPorts::begin(rtl, 19)?;
        for always in ["m_axis_net_tready", "m_axi_awready", "m_axi_wready"] {
            rtl.set(rtl.port(always, 1)?, 1);
        }
        let port = |name: &str, bits| rtl.port(name, bits);
        let bytes = bus / u8::BITS;
        let of_burst =
            |name: &'static str, bits, value: u64| Ok((name, port(name, bits)?, u128::from(value)));
        Ok(MailboxPorts {
            registers,
            burst: [
                of_burst("m_axi_awlen", 8, ENTRY / u64::from(bytes) - 1)?,
                of_burst("m_axi_awsize", 3, bytes.trailing_zeros().into())?,
                of_burst("m_axi_awburst", 2, 1)?,
            ],
            strobes: (port("m_axi_wstrb", bytes)?, (1 << bytes) - 1),
            net_valid: port("s_axis_net_tvalid", 1)?,
            net_ready: port("s_axis_net_tready", 1)?,
            net_data: Bus::of_network(port("s_axis_net_tdata", bus)?),
            net_last: port("s_axis_net_tlast", 1)?,
            answer_valid: port("m_axis_net_tvalid", 1)?,
            answer_data: Bus::of_network(port("m_axis_net_tdata", bus)?),
            answer_last: port("m_axis_net_tlast", 1)?,
            aw_valid: port("m_axi_awvalid", 1)?,
            aw_address: port("m_axi_awaddr", 49)?,
            w_valid: port("m_axi_wvalid", 1)?,
            w_data: Bus::of_memory(port("m_axi_wdata", bus)?),
            w_last: port("m_axi_wlast", 1)?,
            b_valid: port("m_axi_bvalid", 1)?,
        })
    }

    /// Resets the RTL of an endpoint, and places the queues, before the run's first cycle. They are open for
    /// domain 0, as the model's are. A queue is placed when nothing comes for it any more, soon here.
    pub fn reset(&self, rtl: &mut Instance, node: EndpointId, library: &RtlLibrary) -> Result<(), RtlError> {
        let entries = library.parameter(NAME, "ENTRIES")?;
        let clearing = library.parameter(NAME, "REMEMBERED")? + 2;
        reset(rtl, node, clearing)?;
        for interface in 0..library.parameter(NAME, "INTERFACES")? {
            let page = SYSTEM | (interface as u32) << 12;
            for register in [(page | 8, base(interface as u16, entries)), (page, 0)] {
                self.registers.store(rtl, Some(register));
                for _ in 0..MOST_CYCLES_OF_STORE {
                    rtl.cycle();
                    if self.registers.is_ready(rtl) {
                        break;
                    }
                }
            }
        }
        self.registers.store(rtl, None);
        Ok(())
    }

    /// The words of a packet on the bus that it comes by.
    pub fn buses(&self, small: &SmallMessage, packet: &SmallPacket) -> Vec<BusWords> {
        let mut words = small.words();
        if packet.damaged
            && let Some(footer) = words.last_mut()
        {
            *footer ^= 1;
        }
        self.net_data.side_by_side(&words)
    }
}

impl MailboxInputs {
    /// A packet comes: its header in the cycle `first`, the others such that `behind` is the first without
    /// them.
    pub fn packet(&mut self, buses: Vec<BusWords>, first: u64, behind: u64) {
        let count = buses.len() as u64;
        for (place, words) in buses.into_iter().enumerate() {
            let place = place as u64;
            let cycle = if place == 0 { first } else { (behind + place).saturating_sub(count) };
            self.words.push_back(Beat { cycle, words, first: place == 0, last: place + 1 == count });
        }
    }

    /// System software gives an interface to a domain.
    pub fn open(&mut self, interface: u16, domain: Pdid, cycle: u64) {
        self.write(cycle, SYSTEM | u32::from(interface) << 12, domain.0);
    }

    /// A packet is taken, its footer in the cycle that ends with the edge `tail`. Its queue has the head that
    /// is given, if that has moved.
    pub fn taken(&mut self, tail: u64, head: Option<(u16, u16)>) {
        if let Some((interface, head)) = head {
            self.write(tail.saturating_sub(1), u32::from(interface) << 12, head);
        }
        self.packets += 1;
    }

    fn write(&mut self, cycle: u64, address: u32, value: u16) {
        let place = self.registers.partition_point(|other| other.cycle <= cycle);
        let write = RegisterWrite { cycle, behind: self.packets, address, value: value.into() };
        self.registers.insert(place, write);
    }

    /// The register that is written in a cycle. The packets before it have looked at their queues, which they
    /// do in the second cycle behind the footer's.
    fn register(&self, cycle: u64) -> Option<(u32, u64)> {
        let RegisterWrite { cycle: from, behind, address, value } = *self.registers.front()?;
        let looked = self.footers > behind || self.footers == behind && cycle >= self.last_footer + 2;
        (from <= cycle && looked).then_some((address, value))
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
        let register = self.register(cycle);
        ports.registers.store(rtl, register);
        rtl.set(ports.net_valid, word.is_some().into());
        if let Some(word) = word {
            ports.net_data.set(rtl, &word.words);
            rtl.set(ports.net_last, word.last.into());
        }
        rtl.set(ports.b_valid, (self.to_answer > 0).into());
        self.to_answer = self.to_answer.saturating_sub(1);
        rtl.cycle();
        if word.is_some() || register.is_some() {
            self.rests_from = cycle + REST;
        }
        let ready = rtl.get(ports.net_ready) != 0;
        if let Some(word) = word.filter(|_| ready) {
            self.words.pop_front();
            if word.last {
                self.unanswered += 1;
                (self.footers, self.last_footer) = (self.footers + 1, cycle);
            }
        }
        if register.is_some() && ports.registers.is_ready(rtl) {
            self.registers.pop_front();
        }
        self.cycle = cycle + 1;
        let get = |port| rtl.get(port);
        let outputs = MailboxOutputs {
            takes_header: word.filter(|word| word.first).map(|_| ready),
            answer: OnBus {
                signals: ["m_axis_net_tvalid", "m_axis_net_tdata", "m_axis_net_tlast"],
                valid: get(ports.answer_valid),
                words: ports.answer_data.get(rtl),
                last: get(ports.answer_last),
            },
            entry: OnBus {
                signals: ["m_axi_wvalid", "m_axi_wdata", "m_axi_wlast"],
                valid: get(ports.w_valid),
                words: ports.w_data.get(rtl),
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

/// The message of a packet for `to`.
pub(super) fn message(to: EndpointId, packet: &SmallPacket) -> SmallMessage {
    let SmallPacket { from: source, message: number, channel, bytes, payload, .. } = *packet;
    let (to_interface, domain) = packet.target.unwrap_or_default();
    SmallMessage { source, number, channel, is_request: false, to, to_interface, domain, bytes, payload }
}

/// The RTL of the mailbox of an endpoint, after its reset.
pub(super) fn begin(
    library: &Arc<RtlLibrary>,
    endpoint: EndpointId,
) -> Result<(Instance, MailboxPorts), RtlError> {
    let mut rtl = library.create(NAME)?;
    let ports = MailboxPorts::begin(&mut rtl, library.parameter(NAME, "DATA_WIDTH")? as u32)?;
    ports.reset(&mut rtl, endpoint, library)?;
    Ok((rtl, ports))
}

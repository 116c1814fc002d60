//! The mailbox in step with its model.
//!
//! A packet's words are on the bus from the cycle of its header on, the footer in the cycle that ends with
//! the edge of its tail. The head of its queue is written in the cycle of the footer, as far as the process
//! has moved it by then.

use crate::block::BlockInStep;
use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::words::{AnswerWords, BusWord, SmallMessage, edge};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::{QueueChange, QueueInput};
use weft_nic::ports::{Arrival, Crossing, PortEvent};
use weft_units::EndpointId;

/// The name of the block.
const NAME: &str = "mailbox";

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 18;
/// Bytes of an entry.
const ENTRY: u64 = 64;
/// Cycles of the RTL from the edge of a tail to the answer, at least: look-up and verdict. The model answers
/// at the tail where that comes last, as it does over links that are slower than the interface.
const BEHIND_TAIL: u64 = 4;
/// Cycles after which the block is at rest, where nothing comes.
const REST: u64 = 40;
/// Packets whose target is remembered, for those that come again.
const REMEMBERED: usize = 1 << 14;

struct MailboxPorts {
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
struct OnBus {
    /// The names of what says that there is a word, of the word, and of what says that it is the last.
    signals: [&'static str; 3],
    valid: u128,
    data: u128,
    last: u128,
}

/// A register that is written in a cycle, or later.
struct RegisterWrite {
    cycle: u64,
    address: u32,
    value: u64,
}

/// The block.
pub(crate) struct MailboxInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: MailboxPorts,
    /// The next cycle.
    cycle: u64,
    /// The cycle from which on the block is at rest.
    rests_from: u64,
    words: VecDeque<BusWord>,
    registers: VecDeque<RegisterWrite>,
    answers: VecDeque<BusWord>,
    /// Addresses of entries, by the cycle in which they are on the bus.
    addresses: VecDeque<(u64, u64)>,
    entry_words: VecDeque<BusWord>,
    /// Packets that the RTL has and has not answered.
    unanswered: u32,
    /// Writes that memory has to answer.
    to_answer: u32,
    /// Entries taken and put, by interface.
    heads: Vec<u16>,
    tails: Vec<u16>,
    head_moved: bool,
    entries: u64,
    /// Cycles of a check, and the cycle in which the last one was done.
    check: u64,
    free: u64,
    targets: BTreeMap<(EndpointId, u32), (u16, Pdid)>,
    remembered: VecDeque<(EndpointId, u32)>,
}

impl MailboxInStep {
    /// Resets the RTL, and places the queues, before the run's first cycle.
    fn reset(&mut self, clearing: u64, interfaces: u64) {
        let MailboxInStep { rtl, ports, place, .. } = self;
        rtl.set(ports.node, place.endpoint.0.into());
        rtl.set(ports.register_strobe, 0xFF);
        rtl.set(ports.register_answer_ready, 1);
        rtl.set(ports.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(ports.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
        for interface in 0..interfaces {
            let address = SYSTEM | (interface as u32) << 12 | 8;
            self.write_register(Some((address, base(interface as u16, self.entries))));
            self.rtl.cycle();
        }
        self.write_register(None);
    }

    #[inline]
    fn write_register(&mut self, write: Option<(u32, u64)>) {
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        if let Some((address, value)) = write {
            rtl.set(ports.register_address, address.into());
            rtl.set(ports.register_data, value.into());
        }
        for port in ports.register_valid {
            rtl.set(port, write.is_some().into());
        }
    }

    /// A small message comes.
    fn arrived(&mut self, arrival: &Arrival, event: &PortEvent) {
        let BlockPlace { clock, endpoint, .. } = self.place;
        let Arrival { head, from, message, channel, bytes, damaged, checked, refusal, put, .. } = *arrival;
        let key = (from, message);
        let target = arrival.target.or_else(|| self.targets.get(&key).copied()).unwrap_or_default();
        if put && self.targets.insert(key, target).is_none() {
            self.remembered.push_back(key);
            if self.remembered.len() > REMEMBERED
                && let Some(oldest) = self.remembered.pop_front()
            {
                self.targets.remove(&oldest);
            }
        }
        let (to_interface, domain) = target;
        let small = SmallMessage {
            source: from,
            number: message,
            channel,
            to: endpoint,
            to_interface,
            domain,
            bytes,
        };
        let mut words = small.words();
        if damaged && let Some(footer) = words.last_mut() {
            *footer ^= 1;
        }
        let (first, behind) = (edge(&clock, head), edge(&clock, event.at));
        let count = words.len() as u64;
        for (place, data) in words.into_iter().enumerate() {
            let place = place as u64;
            let cycle = if place == 0 { first } else { (behind + place).saturating_sub(count) };
            self.words.push_back(BusWord { cycle, data, last: place + 1 == count });
        }
        if std::mem::take(&mut self.head_moved)
            && let Some(head) = self.heads.get(usize::from(to_interface))
        {
            let (address, value) = (u32::from(to_interface) << 12, u64::from(*head));
            self.registers.push_back(RegisterWrite { cycle: behind.saturating_sub(1), address, value });
        }
        let answer = AnswerWords { from: endpoint, to: from, number: message, channel, refusal };
        let behind_another = if self.free > first { self.free + self.check } else { 0 };
        let done = edge(&clock, checked).max(behind + BEHIND_TAIL).max(behind_another);
        self.free = done;
        for (place, data) in answer.words().into_iter().enumerate() {
            self.answers.push_back(BusWord { cycle: done + place as u64, data, last: place == 1 });
        }
        if put && let Some(tail) = self.tails.get_mut(usize::from(to_interface)) {
            let index = u64::from(*tail) % self.entries;
            *tail = tail.wrapping_add(1);
            self.addresses.push_back((done, base(to_interface, self.entries) + index * ENTRY));
            for (place, data) in small.entry().into_iter().enumerate() {
                self.entry_words.push_back(BusWord { cycle: done + place as u64, data, last: place == 3 });
            }
        }
    }

    /// Compares a stream of words with those that are to come, and takes those of this cycle.
    fn compare_words(
        place: &BlockPlace,
        cycle: u64,
        expected: &mut VecDeque<BusWord>,
        found: &OnBus,
    ) -> Result<(), Difference> {
        let word = expected.front().copied().filter(|word| word.cycle <= cycle);
        if word.is_some() {
            expected.pop_front();
        }
        let [is_valid, data, is_last] = found.signals;
        place.compare(cycle, is_valid, found.valid, word.is_some().into())?;
        match word {
            Some(word) => {
                place.compare(cycle, data, found.data, word.data)?;
                place.compare(cycle, is_last, found.last, word.last.into())
            }
            None => Ok(()),
        }
    }
}

/// The address of the queue of an interface.
fn base(interface: u16, entries: u64) -> u64 {
    0x10_0000_0000 + u64::from(interface) * entries * ENTRY
}

impl BlockInStep for MailboxInStep {
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
        let mailbox = &parameters.mailbox;
        let same = |key, machine: u64, parameter, unit: &str| {
            let rtl = library.parameter(NAME, parameter)?;
            let mend = format!("{rtl}{unit}");
            let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
            if machine == rtl { Ok(()) } else { Err(differs) }
        };
        same("nic.mailbox.interfaces", mailbox.interfaces.into(), "INTERFACES", "")?;
        same("nic.mailbox.entries", mailbox.entries.into(), "ENTRIES", "")?;
        same("nic.mailbox.check", mailbox.check.into(), "CHECK", " cycles")?;
        let unfit =
            |why: String, mend: &str| Err(RtlError::Unfit { block: NAME, why, mend: mend.to_owned() });
        if mailbox.entry.get() != ENTRY {
            let why = format!("an entry has {} and {ENTRY} bytes in the RTL", mailbox.entry);
            return unfit(why, "add --set nic.mailbox.entry=64");
        }
        Ok(())
    }

    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<MailboxInStep, RtlError> {
        let rtl = library.create(NAME)?;
        let port = |name: &str, bits| rtl.port(name, bits);
        let ports = MailboxPorts {
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
        };
        let interfaces = library.parameter(NAME, "INTERFACES")?;
        let entries = library.parameter(NAME, "ENTRIES")?;
        let clearing = library.parameter(NAME, "REMEMBERED")? + 2;
        let mut block = MailboxInStep {
            place,
            rtl,
            ports,
            cycle: 0,
            rests_from: 0,
            words: VecDeque::new(),
            registers: VecDeque::new(),
            answers: VecDeque::new(),
            addresses: VecDeque::new(),
            entry_words: VecDeque::new(),
            unanswered: 0,
            to_answer: 0,
            heads: vec![0; interfaces as usize],
            tails: vec![0; interfaces as usize],
            head_moved: false,
            entries,
            check: library.parameter(NAME, "CHECK")?,
            free: 0,
            targets: BTreeMap::new(),
            remembered: VecDeque::new(),
        };
        block.reset(clearing, interfaces);
        Ok(block)
    }

    fn take(&mut self, event: &PortEvent) {
        match &event.what {
            Crossing::Opened { interface, domain } => {
                let Some(tail) = self.tails.get_mut(usize::from(*interface)) else { return };
                (*tail, self.heads[usize::from(*interface)]) = (0, 0);
                let cycle = edge(&self.place.clock, event.at);
                let address = SYSTEM | u32::from(*interface) << 12;
                self.registers.push_back(RegisterWrite { cycle, address, value: domain.0.into() });
            }
            Crossing::Queue(QueueChange { interface, input: QueueInput::Take, .. }) => {
                if let Some(head) = self.heads.get_mut(usize::from(*interface)) {
                    *head = head.wrapping_add(1);
                    self.head_moved = true;
                }
            }
            Crossing::Arrived(arrival) => self.arrived(arrival, event),
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.unanswered > 0 || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let words = [&self.words, &self.answers, &self.entry_words];
        let words = words.into_iter().filter_map(|words| words.front().map(|word| word.cycle));
        let register = self.registers.front().map(|write| write.cycle);
        let next = words.chain(register).min()?;
        Some(next.max(self.cycle))
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let word = self.words.front().copied().filter(|word| word.cycle <= cycle);
        let register = self.registers.front().filter(|write| write.cycle <= cycle);
        let register = register.map(|write| (write.address, write.value));
        self.write_register(register);
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        rtl.set(ports.net_valid, word.is_some().into());
        if let Some(word) = word {
            rtl.set(ports.net_data, word.data);
            rtl.set(ports.net_last, word.last.into());
        }
        rtl.set(ports.answer_ready, 1);
        rtl.set(ports.aw_ready, 1);
        rtl.set(ports.w_ready, 1);
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
        let (w_valid, w_last) = (get(ports.w_valid), get(ports.w_last));
        if w_valid != 0 && w_last != 0 {
            self.to_answer += 1;
            self.rests_from = self.rests_from.max(cycle + 3);
        }
        let answer = OnBus {
            signals: ["m_axis_net_tvalid", "m_axis_net_tdata", "m_axis_net_tlast"],
            valid: get(ports.answer_valid),
            data: get(ports.answer_data),
            last: get(ports.answer_last),
        };
        if answer.valid != 0 && answer.last != 0 {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        let entry = OnBus {
            signals: ["m_axi_wvalid", "m_axi_wdata", "m_axi_wlast"],
            valid: w_valid,
            data: get(ports.w_data),
            last: w_last,
        };
        let (aw_valid, aw_address) = (get(ports.aw_valid), get(ports.aw_address));
        let place = &self.place;
        Self::compare_words(place, cycle, &mut self.answers, &answer)?;
        let expected = self.addresses.front().copied().filter(|(at, _)| *at <= cycle);
        if expected.is_some() {
            self.addresses.pop_front();
        }
        place.compare(cycle, "m_axi_awvalid", aw_valid, expected.is_some().into())?;
        if let Some((_, expected)) = expected {
            place.compare(cycle, "m_axi_awaddr", aw_address, expected.into())?;
        }
        Self::compare_words(place, cycle, &mut self.entry_words, &entry)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}

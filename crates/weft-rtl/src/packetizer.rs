//! The packetizer in step with its model.
//!
//! The last store of a parcel, its descriptor, is on the bus in the cycle that ends with the edge at which
//! the model has it in the block. The network takes a packet in the cycle in which the model's does, and not
//! before: the RTL has to offer it by then, and no earlier than the model's engine has made it. The library's
//! answer to a refused or given up packet, a store that clears the channel, comes a few cycles later.

use crate::difference::Difference;
use crate::endpoint::{BlockInStep, BlockPlace};
use crate::library::{Instance, RtlError, RtlLibrary, RtlPort};
use crate::words::{AnswerWords, BusWord, SmallMessage, cycles, edge};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::packetizer::{ChannelChange, ChannelId, ChannelInput, ChannelState};
use weft_nic::ports::{Crossing, PortEvent, SmallAnswer, StoredParcel};
use weft_units::{Bytes, Span, Time};

/// The name of the block.
pub(crate) const NAME: &str = "packetizer";

/// Registers of the system behind the pages of processes.
const SYSTEM: u32 = 1 << 18;
/// The places of a page: descriptor of a channel, and of the stores that clear one.
const DESCRIPTOR: u32 = 0x40;
const CLEAR: u32 = 0x900;
/// Cycles after which the block is at rest, where nothing comes and no answer is awaited.
const REST: u64 = 40;
/// Cycles from a change in the model to that in the RTL, at most: what comes takes turns at the table.
const MOST_LATE: u64 = 64;
/// Cycles from a failure to the store that clears the channel.
const CLEARED_AFTER: u64 = 6;

struct PacketizerPorts {
    reset: RtlPort,
    node: RtlPort,
    number: RtlPort,
    store_valid: [RtlPort; 2],
    store_ready: RtlPort,
    store_address: RtlPort,
    store_data: RtlPort,
    store_strobe: RtlPort,
    store_last: RtlPort,
    store_answer_ready: RtlPort,
    net_valid: RtlPort,
    net_ready: RtlPort,
    net_data: RtlPort,
    net_last: RtlPort,
    answer_valid: RtlPort,
    answer_ready: RtlPort,
    answer_data: RtlPort,
    answer_last: RtlPort,
    change_valid: RtlPort,
    change_channel: RtlPort,
    change_state: RtlPort,
}

/// A word that is stored in a cycle, or later.
#[derive(Clone, Copy)]
struct PageStore {
    cycle: u64,
    address: u32,
    data: u128,
    /// The number of the message, of a descriptor.
    number: u32,
}

/// A packet that the engine has made, and that the network has not taken.
struct MadePacket {
    cycle: u64,
    channel: ChannelId,
    message: u32,
    words: VecDeque<u128>,
}

/// A packet that the network takes from a cycle on.
struct Sending {
    /// The cycle in which the engine has made it.
    made: u64,
    from: u64,
    words: VecDeque<u128>,
    use_of_it: PacketUse,
}

/// The use of a packet whose turn has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PacketUse {
    /// The network takes it.
    Sent,
    /// The model has not sent it. The RTL has seen the answer too, or offers the packet already.
    Stale,
    /// The RTL offers it: it is taken and dropped.
    Dropped,
}

/// The block.
pub(crate) struct PacketizerInStep {
    place: BlockPlace,
    rtl: Instance,
    ports: PacketizerPorts,
    channels: u32,
    /// The next cycle.
    cycle: u64,
    rests_from: u64,
    stores: VecDeque<PageStore>,
    /// Stores that may come later than they are due: they give way to those above.
    patient_stores: VecDeque<PageStore>,
    answers: VecDeque<BusWord>,
    made: VecDeque<MadePacket>,
    sending: VecDeque<Sending>,
    /// By channel: the message in it, and the states to come, each with the cycle by which it has come.
    held: Vec<Option<SmallMessage>>,
    states: Vec<VecDeque<(u64, ChannelState)>>,
    /// States to come, over all channels.
    states_to_come: usize,
    /// Channels of the RTL that are ongoing.
    unanswered: u32,
}

/// Checks that the RTL was built for the packetizer of a machine.
pub(crate) fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError> {
    let packetizer = &parameters.packetizer;
    let clock = &packetizer.clock;
    let same = |key, machine: u64, parameter, unit: &str| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = format!("{rtl}{unit}");
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    let unfit = |why: String, mend: &str| RtlError::Unfit { block: NAME, why, mend: mend.to_owned() };
    let reliability = &packetizer.reliability;
    let whole = |key, span: Span| {
        let why = format!("{key} of {span} is no whole number of cycles of nic.clock");
        cycles(clock, span).ok_or_else(|| unfit(why, "take a time such as 50us"))
    };
    same("nic.packetizer.interfaces", packetizer.interfaces.into(), "INTERFACES", "")?;
    same("nic.packetizer.channels", packetizer.channels.into(), "CHANNELS", "")?;
    same("nic.packetizer.engine", packetizer.engine.into(), "ENGINE", " cycles")?;
    let timeout = whole("nic.packetizer.timeout", reliability.timeout)?;
    let longest = whole("nic.packetizer.longest_timeout", reliability.longest)?;
    let same_time = |key, machine: u64, parameter| {
        let rtl = library.parameter(NAME, parameter)?;
        let mend = clock.cycles(rtl).to_string();
        let differs = RtlError::Parameter { block: NAME, key, machine, rtl, mend, parameter };
        if machine == rtl { Ok(()) } else { Err(differs) }
    };
    same_time("nic.packetizer.timeout", timeout, "TIMEOUT")?;
    same_time("nic.packetizer.longest_timeout", longest, "LONGEST_TIMEOUT")?;
    same("nic.packetizer.repetitions", reliability.repetitions.into(), "REPETITIONS", "")?;
    if reliability.backoff != 2 {
        let why = format!("time-outs grow by {}, and are doubled in the RTL", reliability.backoff);
        return Err(unfit(why, "add --set nic.packetizer.backoff=2"));
    }
    if packetizer.payload > Bytes::new(64) {
        let why = format!("a small message has up to {}, and 64 B in the RTL", packetizer.payload);
        return Err(unfit(why, "add --set nic.packetizer.payload=64"));
    }
    if parameters.host_port.stores.is_some()
        || packetizer.descriptor.get() != 16
        || parameters.host_port.word.get() != 16
    {
        let why =
            "its pages are stored to by words of 16 bytes, the last of which is the descriptor".to_owned();
        return Err(unfit(why, "use a machine whose port is so, such as exanest"));
    }
    Ok(())
}

impl PacketizerInStep {
    /// The packetizer of an endpoint, after its reset.
    pub fn new(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<PacketizerInStep, RtlError> {
        let rtl = library.create(NAME)?;
        let channels = library.parameter(NAME, "CHANNELS")? as u32;
        let all = library.parameter(NAME, "INTERFACES")? as u32 * channels;
        let port = |name: &str, bits| rtl.port(name, bits);
        let ports = PacketizerPorts {
            reset: port("reset", 1)?,
            node: port("node", 22)?,
            number: port("number", 32)?,
            store_valid: [port("s_axi_awvalid", 1)?, port("s_axi_wvalid", 1)?],
            store_ready: port("s_axi_awready", 1)?,
            store_address: port("s_axi_awaddr", 19)?,
            store_data: port("s_axi_wdata", 128)?,
            store_strobe: port("s_axi_wstrb", 16)?,
            store_last: port("s_axi_wlast", 1)?,
            store_answer_ready: port("s_axi_bready", 1)?,
            net_valid: port("m_axis_net_tvalid", 1)?,
            net_ready: port("m_axis_net_tready", 1)?,
            net_data: port("m_axis_net_tdata", 128)?,
            net_last: port("m_axis_net_tlast", 1)?,
            answer_valid: port("s_axis_net_tvalid", 1)?,
            answer_ready: port("s_axis_net_tready", 1)?,
            answer_data: port("s_axis_net_tdata", 128)?,
            answer_last: port("s_axis_net_tlast", 1)?,
            change_valid: port("change_valid", 1)?,
            change_channel: port("change_channel", all.trailing_zeros())?,
            change_state: port("change_state", 3)?,
        };
        let mut block = PacketizerInStep {
            place,
            rtl,
            ports,
            channels,
            cycle: 0,
            rests_from: 0,
            stores: VecDeque::new(),
            patient_stores: VecDeque::new(),
            answers: VecDeque::new(),
            made: VecDeque::new(),
            sending: VecDeque::new(),
            held: vec![None; all as usize],
            states: vec![VecDeque::new(); all as usize],
            states_to_come: 0,
            unanswered: 0,
        };
        block.reset(u64::from(all) + 2);
        Ok(block)
    }

    /// Resets the RTL, before the run's first cycle.
    fn reset(&mut self, clearing: u64) {
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        rtl.set(ports.node, self.place.endpoint.0.into());
        rtl.set(ports.store_strobe, 0xFFFF);
        rtl.set(ports.store_last, 1);
        rtl.set(ports.store_answer_ready, 1);
        rtl.set(ports.reset, 1);
        rtl.cycle();
        rtl.cycle();
        rtl.set(ports.reset, 0);
        (0..clearing).for_each(|_| rtl.cycle());
    }

    fn index(&self, channel: ChannelId) -> usize {
        usize::from(channel.interface) * self.channels as usize + usize::from(channel.channel)
    }

    /// A channel is to have this state by a cycle.
    fn expect_state(&mut self, channel: ChannelId, by: u64, state: ChannelState) {
        let index = self.index(channel);
        self.states[index].push_back((by, state));
        self.states_to_come += 1;
    }

    /// A process stores a parcel: its payload, and then its descriptor in the cycle that ends when it `came`.
    fn stored(&mut self, stored: &StoredParcel) {
        let StoredParcel { channel, parcel, domain, came, made } = *stored;
        let BlockPlace { clock, endpoint, .. } = self.place;
        let small = SmallMessage {
            source: endpoint,
            number: parcel.message,
            channel,
            to: parcel.to,
            to_interface: parcel.to_interface,
            domain,
            bytes: parcel.bytes,
        };
        let behind = edge(&clock, came);
        let (payload, descriptor) = small.stored();
        let place = u32::from(channel.interface) << 12 | u32::from(channel.channel) << 8;
        let count = payload.len() as u64;
        for (word, data) in payload.into_iter().enumerate() {
            let cycle = (behind + word as u64).saturating_sub(1 + count);
            self.stores.push_back(PageStore { cycle, address: place + 16 * word as u32, data, number: 0 });
        }
        let (cycle, address) = (behind.saturating_sub(1), place + DESCRIPTOR);
        self.stores.push_back(PageStore { cycle, address, data: descriptor, number: parcel.message });
        self.expect_state(channel, behind + MOST_LATE, ChannelState::Ongoing);
        let index = self.index(channel);
        self.held[index] = Some(small);
        self.make(channel, parcel.message, made);
    }

    /// The engine has made a packet.
    fn make(&mut self, channel: ChannelId, message: u32, made: Time) {
        let held = self.held[self.index(channel)].filter(|held| held.number == message);
        if let Some(held) = held {
            let (cycle, words) = (edge(&self.place.clock, made), held.words().into());
            self.made.push_back(MadePacket { cycle, channel, message, words });
        }
    }

    /// The network takes a packet, or its turn has come and it is stale.
    fn sent(&mut self, channel: ChannelId, message: u32, at: Time, stale: bool) {
        let is_it = |made: &MadePacket| (made.channel, made.message) == (channel, message);
        let Some(place) = self.made.iter().position(is_it) else { return };
        if let Some(made) = self.made.remove(place) {
            let from = edge(&self.place.clock, at);
            let use_of_it = if stale { PacketUse::Stale } else { PacketUse::Sent };
            self.sending.push_back(Sending { made: made.cycle, from, words: made.words, use_of_it });
        }
    }

    fn answered(&mut self, answer: &SmallAnswer, at: Time) {
        let SmallAnswer { from, message: number, channel, refusal, damaged } = *answer;
        let answer = AnswerWords { from, to: self.place.endpoint, number, channel, refusal };
        let behind = edge(&self.place.clock, at);
        let [header, footer] = answer.words();
        let footer = footer ^ u128::from(damaged);
        self.answers.push_back(BusWord { cycle: behind.saturating_sub(2), data: header, last: false });
        self.answers.push_back(BusWord { cycle: behind.saturating_sub(1), data: footer, last: true });
    }

    fn changed(&mut self, change: &ChannelChange, at: Time) {
        let by = edge(&self.place.clock, at) + MOST_LATE;
        let channel = change.channel;
        match change.input {
            // Expected as it is stored; and no change.
            ChannelInput::Post | ChannelInput::Repeat => return,
            ChannelInput::Acknowledge | ChannelInput::Refuse | ChannelInput::GiveUp => {}
            ChannelInput::Clear => {
                let cycle = edge(&self.place.clock, at) + CLEARED_AFTER;
                let address = u32::from(channel.interface) << 12 | CLEAR | u32::from(channel.channel) << 4;
                self.patient_stores.push_back(PageStore { cycle, address, data: 0, number: 0 });
            }
        }
        self.expect_state(channel, by, change.to);
    }

    /// Compares what the network is offered with what the model sends.
    fn compare_packet(&mut self, cycle: u64, ready: bool) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        let (valid, data, last) =
            (rtl.get(ports.net_valid), rtl.get(ports.net_data), rtl.get(ports.net_last));
        if !ready {
            let may_be_offered = self.made.front().is_some_and(|made| made.cycle <= cycle)
                || self.sending.iter().any(|sending| sending.made <= cycle);
            let too_early = valid != 0 && !may_be_offered;
            place.compare(cycle, "m_axis_net_tvalid", too_early.into(), 0)?;
            let stale =
                |sending: &&mut Sending| sending.use_of_it == PacketUse::Stale && sending.from <= cycle + 1;
            if let Some(sending) = self.sending.front_mut().filter(stale) {
                if valid != 0 && sending.words.front() == Some(&data) {
                    sending.use_of_it = PacketUse::Dropped;
                } else {
                    self.sending.pop_front();
                }
            }
            return Ok(());
        }
        let Some(sending) = self.sending.front_mut() else { return Ok(()) };
        if sending.use_of_it == PacketUse::Sent {
            place.compare(cycle, "m_axis_net_tvalid", valid, 1)?;
            let expected = sending.words.front().copied().unwrap_or_default();
            place.compare(cycle, "m_axis_net_tdata", data, expected)?;
            place.compare(cycle, "m_axis_net_tlast", last, (sending.words.len() == 1).into())?;
        }
        sending.words.pop_front();
        if sending.words.is_empty() {
            self.sending.pop_front();
        }
        Ok(())
    }

    /// Compares a channel's change with that of the model.
    fn compare_state(&mut self, cycle: u64) -> Result<(), Difference> {
        let (rtl, ports, place) = (&self.rtl, &self.ports, &self.place);
        if rtl.get(ports.change_valid) == 0 {
            return Ok(());
        }
        let channel = rtl.get(ports.change_channel) as usize;
        let Some((_, state)) = self.states[channel].pop_front() else {
            return place.compare(cycle, "change_valid", 1, 0);
        };
        self.states_to_come -= 1;
        let answered =
            [ChannelState::Acknowledged, ChannelState::NegativelyAcknowledged, ChannelState::TimedOut];
        if answered.contains(&state) {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        place.compare(cycle, "change_state", rtl.get(ports.change_state), number(state))
    }

    /// Finds a change of the model that the RTL does not make.
    fn compare_late_states(&self, cycle: u64) -> Result<(), Difference> {
        if self.states_to_come > 0 && cycle.is_multiple_of(MOST_LATE) {
            let late =
                |states: &VecDeque<(u64, ChannelState)>| states.front().is_some_and(|(by, _)| *by < cycle);
            if self.states.iter().any(late) {
                return self.place.compare(cycle, "change_valid", 0, 1);
            }
        }
        Ok(())
    }
}

/// The number of a state, as a process reads it.
fn number(state: ChannelState) -> u128 {
    match state {
        ChannelState::Idle => 0,
        ChannelState::Ongoing => 1,
        ChannelState::Acknowledged => 2,
        ChannelState::NegativelyAcknowledged => 3,
        ChannelState::TimedOut => 4,
    }
}

impl BlockInStep for PacketizerInStep {
    fn take(&mut self, event: &PortEvent) {
        let at = event.at;
        match event.what {
            Crossing::Opened { interface, domain } => {
                let (cycle, address) = (edge(&self.place.clock, at), SYSTEM | u32::from(interface) << 12);
                self.patient_stores.push_back(PageStore { cycle, address, data: domain.0.into(), number: 0 });
            }
            Crossing::Stored(stored) => self.stored(&stored),
            Crossing::Repeated { channel, message, made } => self.make(channel, message, made),
            Crossing::Sent { channel, message } => self.sent(channel, message, at, false),
            Crossing::Stale { channel, message } => self.sent(channel, message, at, true),
            Crossing::Answered(answer) => self.answered(&answer, at),
            Crossing::Channel(change) => self.changed(&change, at),
            _ => {}
        }
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.unanswered > 0 || self.cycle < self.rests_from {
            return Some(self.cycle);
        }
        let stores = [&self.stores, &self.patient_stores];
        let stores = stores.into_iter().filter_map(|stores| stores.front().map(|store| store.cycle));
        let answer = self.answers.front().map(|word| word.cycle);
        let sending = self.sending.front().map(|sending| sending.from);
        match stores.chain(answer).chain(sending).min() {
            Some(next) => Some(next.max(self.cycle)),
            None => (self.states_to_come > 0).then_some(self.cycle),
        }
    }

    fn step(&mut self) -> Result<(), Difference> {
        let Some(cycle) = self.next_cycle() else { return Ok(()) };
        let due = |stores: &VecDeque<PageStore>| stores.front().copied().filter(|store| store.cycle <= cycle);
        let (urgent, patient) = (due(&self.stores), due(&self.patient_stores));
        let store = urgent.or(patient);
        let answer = self.answers.front().copied().filter(|word| word.cycle <= cycle);
        let takes = |sending: &Sending| sending.from <= cycle && sending.use_of_it != PacketUse::Stale;
        let ready = self.sending.front().is_some_and(takes);
        let (rtl, ports) = (&mut self.rtl, &self.ports);
        if let Some(store) = store {
            rtl.set(ports.store_address, store.address.into());
            rtl.set(ports.store_data, store.data);
            rtl.set(ports.number, store.number.into());
        }
        for port in ports.store_valid {
            rtl.set(port, store.is_some().into());
        }
        rtl.set(ports.answer_valid, answer.is_some().into());
        if let Some(word) = answer {
            rtl.set(ports.answer_data, word.data);
            rtl.set(ports.answer_last, word.last.into());
        }
        rtl.set(ports.net_ready, ready.into());
        rtl.cycle();
        self.cycle = cycle + 1;
        if store.is_some() || answer.is_some() || ready {
            self.rests_from = cycle + REST;
        }
        if let Some(store) = store
            && rtl.get(ports.store_ready) != 0
        {
            if urgent.is_some() {
                self.stores.pop_front()
            } else {
                self.patient_stores.pop_front()
            };
            self.unanswered += u32::from(store.address & (SYSTEM | 0xFF) == DESCRIPTOR && urgent.is_some());
        }
        if answer.is_some() && rtl.get(ports.answer_ready) != 0 {
            self.answers.pop_front();
        }
        self.compare_packet(cycle, ready)?;
        self.compare_state(cycle)?;
        self.compare_late_states(cycle)
    }

    fn rtl(&self) -> &Instance {
        &self.rtl
    }
}

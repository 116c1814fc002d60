//! Vectors of a module: those that the run carries, or made up where they come, and reduced as the model does
//! where they go.

use std::collections::VecDeque;
use weft_nic::allreduce::{ModulePacketKind, OperationId, reduce};
use weft_nic::ports::{PacketOfModule, ProgrammedModule};
use weft_units::{Bytes, EndpointId};

/// Vectors that were sent and are remembered, for those who ask for them again.
const REMEMBERED: usize = 64;

/// A board of a group.
pub(super) struct BoardOfGroup {
    pub number: u32,
    pub members: [EndpointId; 4],
}

/// The operation that runs.
struct RunningReduction {
    module: ProgrammedModule,
    /// The vector reduced so far, if any is.
    value: Option<Vec<u8>>,
    /// Exchanges that are in it.
    level: u8,
    /// The server with which it exchanges next.
    partner: Option<EndpointId>,
    /// Whether the result has been looked up for.
    has_result: bool,
}

/// The vectors.
pub(super) struct Vectors {
    here: EndpointId,
    running: Option<RunningReduction>,
    sent: VecDeque<(PacketOfModule, Vec<u8>)>,
}

impl Vectors {
    /// Those of the module at an endpoint.
    pub fn new(here: EndpointId) -> Vectors {
        Vectors { here, running: None, sent: VecDeque::new() }
    }

    /// An operation begins. Returns the module's own vector.
    pub fn program(&mut self, module: &ProgrammedModule, values: Option<&[u8]>) -> Vec<u8> {
        let step = ModulePacketKind::Contribution((module.own % 4) as u8);
        let running =
            RunningReduction { module: *module, value: None, level: 0, partner: None, has_result: false };
        self.running = Some(running);
        carried(values, module.bytes).unwrap_or_else(|| made_up(self.here, module.id, step, module.bytes))
    }

    /// The payload of a packet that has come.
    pub fn came(&self, packet: &PacketOfModule, values: Option<&[u8]>) -> Vec<u8> {
        let PacketOfModule { other, id, step, bytes } = *packet;
        carried(values, bytes).unwrap_or_else(|| made_up(other, id, step, bytes))
    }

    /// The board of the operation that runs whose server or member an endpoint is.
    pub fn board_of(&self, other: EndpointId) -> BoardOfGroup {
        let (own_number, own_members) = self.own();
        match &self.running {
            Some(running) if !own_members.contains(&other) => {
                // Another board's members, in any order.
                let number = own_number ^ 1 << running.level;
                let first = other.0 / 4 * 4;
                BoardOfGroup { number, members: [0, 1, 2, 3].map(|member| EndpointId(first + member)) }
            }
            _ => BoardOfGroup { number: own_number, members: own_members },
        }
    }

    /// The members of the module's own board.
    pub fn own_board(&self) -> [EndpointId; 4] {
        self.own().1
    }

    fn own(&self) -> (u32, [EndpointId; 4]) {
        let module = self.running.as_ref().map(|running| running.module);
        module.map_or((0, [EndpointId(0); 4]), |module| (module.own / 4, module.board))
    }

    /// Whether the server waits for vectors of its board.
    pub fn is_gathering(&self) -> bool {
        self.here.0.is_multiple_of(4) && self.running.as_ref().is_some_and(|running| running.value.is_none())
    }

    /// Whether the table is read for a packet: once for a result that goes to several.
    pub fn is_looked_up_for(&mut self, packet: &PacketOfModule) -> bool {
        let Some(running) = self.running.as_mut().filter(|running| running.module.id == packet.id) else {
            return true;
        };
        if let ModulePacketKind::Exchange(level) = packet.step {
            running.reduce_to(level - 1);
            running.partner = Some(packet.other);
        }
        packet.step != ModulePacketKind::Result || !std::mem::replace(&mut running.has_result, true)
    }

    /// The payload of a packet that will be sent.
    pub fn sent(&mut self, packet: &PacketOfModule, values: Option<&[u8]>) -> Vec<u8> {
        if let Some(values) = carried(values, packet.bytes) {
            return values;
        }
        if let Some((_, vector)) = self.sent.iter().find(|(sent, _)| sent == packet) {
            return vector.clone();
        }
        let running = self.running.as_mut().filter(|running| running.module.id == packet.id);
        let vector = match (packet.step, running) {
            (ModulePacketKind::Contribution(_), _) => {
                made_up(self.here, packet.id, packet.step, packet.bytes)
            }
            (ModulePacketKind::Exchange(level), Some(running)) => running.reduce_to(level - 1).to_vec(),
            (ModulePacketKind::Result, Some(running)) => running.reduce_to(running.levels()).to_vec(),
            _ => return Vec::new(),
        };
        self.sent.push_back((*packet, vector.clone()));
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        vector
    }

    /// The result of the operation that runs.
    pub fn result(&mut self, id: OperationId, values: Option<&[u8]>) -> Vec<u8> {
        let here = self.here;
        let Some(running) = self.running.as_mut().filter(|running| running.module.id == id) else {
            return Vec::new();
        };
        if let Some(values) = carried(values, running.module.bytes) {
            return values;
        }
        if here.0.is_multiple_of(4) {
            return running.reduce_to(running.levels()).to_vec();
        }
        let server = running.module.board.into_iter().find(|member| member.0.is_multiple_of(4));
        server
            .map(|server| made_up(server, id, ModulePacketKind::Result, running.module.bytes))
            .unwrap_or_default()
    }
}

impl RunningReduction {
    fn levels(&self) -> u8 {
        (self.module.ranks / 4).max(1).ilog2() as u8
    }

    /// The reduction of the board, and of exchanges up to a level.
    fn reduce_to(&mut self, level: u8) -> &[u8] {
        let ProgrammedModule { id, own, board, bytes, operation, data_type, .. } = self.module;
        let value = self.value.get_or_insert_with(|| {
            let contribution =
                |member: u8, from| made_up(from, id, ModulePacketKind::Contribution(member), bytes);
            let mut vectors = (0..).zip(board).map(|(member, from)| contribution(member, from));
            let first = vectors.next().unwrap_or_default();
            vectors.fold(first, |mut lower, upper| {
                reduce(&mut lower, &upper, operation, data_type);
                lower
            })
        });
        while self.level < level
            && let Some(partner) = self.partner.take()
        {
            let mut other = made_up(partner, id, ModulePacketKind::Exchange(self.level + 1), bytes);
            if ((own / 4) >> self.level) & 1 == 1 {
                reduce(&mut other, value, operation, data_type);
                *value = other;
            } else {
                reduce(value, &other, operation, data_type);
            }
            self.level += 1;
        }
        value
    }
}

/// The values that a run carries, where it does and all have come.
fn carried(values: Option<&[u8]>, bytes: Bytes) -> Option<Vec<u8>> {
    values.filter(|values| values.len() as u64 == bytes.get()).map(<[u8]>::to_vec)
}

/// Zeros that are negative, infinities, no number, and the least.
const SPECIAL: [u64; 4] = [0x8000_0000_8000_0000, 0x7F80_0000_FF80_0000, 0x7FF8_0000_0000_0000, 1];

/// A vector by its packet: elements of 32 and 64 bits are near each other, special, or any.
fn made_up(source: EndpointId, id: OperationId, step: ModulePacketKind, bytes: Bytes) -> Vec<u8> {
    let step = match step {
        ModulePacketKind::Contribution(member) => u64::from(member),
        ModulePacketKind::Exchange(level) => 4 + u64::from(level),
        ModulePacketKind::Result => 16,
        ModulePacketKind::Ask | ModulePacketKind::NotYet | ModulePacketKind::Failed => return Vec::new(),
    };
    let OperationId { group, sequence, block } = id;
    let name =
        [source.0, group, sequence, block].into_iter().fold(step, |name, part| mix(name ^ u64::from(part)));
    let eight = |place: u64| {
        let random = mix(name.wrapping_add(place));
        match random >> 60 {
            0..=1 => random,
            2 => SPECIAL[(random & 3) as usize],
            // Exponents near that of 1, in both widths.
            _ => random & 0x81FF_FFFF_81FF_FFFF | 0x3E00_0000_3E00_0000,
        }
    };
    let count = bytes.get();
    (0..count.div_ceil(8)).flat_map(|place| eight(place).to_le_bytes()).take(count as usize).collect()
}

/// Mixes bits (splitmix64).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

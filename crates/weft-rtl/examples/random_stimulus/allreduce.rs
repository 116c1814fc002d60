//! Allreduces of sixteen modules: random vectors, types and operations, members that call late, and packets
//! that are lost, damaged, late or come twice. RTL runs in step with one server and one client.

use crate::Bench;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weft_nic::allreduce::{
    AllreduceParameters, AllreduceRequest, DataType, Module, ModuleCallbacks, ModuleContext, ModulePacket,
    ModulePacketKind, ModuleState, Operation, OperationId,
};
use weft_nic::memory_path::MemoryPath;
use weft_nic::ports::{Crossing, ModuleCrossing, PacketOfModule};
use weft_nic::{ExanetParameters, MemoryBlocks};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Modules: four boards of four.
const MODULES: u32 = 16;
/// The modules beside which RTL runs: a server and a client.
const IN_STEP: [u32; 2] = [4, 5];
/// Groups, each with its own order of boards and members.
const GROUPS: u32 = 6;
/// The time for which a module is now and then off the wire: longer than others wait for it.
const DEAD: Span = Span::from_us(20_000);

/// Something that happens later, at a module.
enum Later {
    /// The rank calls.
    Call,
    /// The module is woken.
    Woken(OperationId),
    /// The module's timer fires.
    Late,
    /// The network takes a packet, if it can.
    Send,
    /// A packet comes, damaged or not.
    Packet { packet: PacketOfModule, damaged: bool, values: Option<Vec<u8>> },
}

/// A group, which has another number once an operation of it has failed.
struct GroupOfModules {
    id: u32,
    members: Vec<EndpointId>,
}

/// One operation of all modules.
#[derive(Clone, Copy)]
struct Call {
    group: u32,
    /// The place of the group.
    slot: usize,
    bytes: u64,
    operation: Operation,
    data_type: DataType,
    /// Whether vectors are carried. Else the RTL in step makes them up.
    carried: bool,
}

/// A module with what is around it.
#[derive(Default)]
struct Node {
    module: Module,
    memory: MemoryBlocks,
    /// The number of the operation that it is in.
    number: usize,
    /// Packets in the order in which they are due.
    packets: VecDeque<ModulePacket>,
    /// The times at which the ways out and in are free.
    out_free: Time,
    in_free: Time,
    /// It is off the wire until then.
    dead_until: Time,
}

/// The wishes of a module in one call.
struct Asked<'a> {
    parameters: &'a AllreduceParameters,
    crossed: Vec<ModuleCrossing>,
    packets: Vec<ModulePacket>,
    later: Vec<(Time, Later)>,
    /// The times at which operations are over, and whether they have failed.
    over: Vec<(Time, bool)>,
    asked_again: u64,
}

impl Asked<'_> {
    fn queue(&mut self, packet: ModulePacket, again: bool) {
        let ModulePacket { to: other, id, step, bytes, due, .. } = packet;
        let looked_up = match step {
            ModulePacketKind::Ask | ModulePacketKind::NotYet | ModulePacketKind::Failed => Span::ZERO,
            _ if again => Span::ZERO,
            _ => self.parameters.lookup,
        };
        let (made, values) = (PacketOfModule { other, id, step, bytes }, packet.values.clone());
        self.crossed.push(ModuleCrossing::Made { packet: made, from: due - looked_up, due, values });
        self.later.push((due, Later::Send));
        self.packets.push(packet);
    }
}

impl ModuleCallbacks for Asked<'_> {
    fn crossed(&mut self, what: impl FnOnce() -> ModuleCrossing) {
        self.crossed.push(what());
    }
    fn wake(&mut self, at: Time, id: OperationId) {
        self.later.push((at, Later::Woken(id)));
    }
    fn send(&mut self, packet: ModulePacket) {
        self.queue(packet, false);
    }
    fn send_again(&mut self, packet: ModulePacket) {
        self.asked_again += 1;
        self.queue(packet, true);
    }
    fn begins(&mut self, _: u32, _: Time) {}
    fn was(&mut self, _: u32, _: ModuleState, _: Time) {}
    fn finished(&mut self, at: Time, _: u32, _: Option<Vec<u8>>) {
        self.over.push((at, false));
    }
    fn arm(&mut self, at: Time) {
        self.later.push((at, Later::Late));
    }
    fn failed(&mut self, at: Time, _: &AllreduceRequest, _: EndpointId) {
        self.over.push((at, true));
    }
}

struct Stimulus<'a> {
    bench: &'a mut Bench,
    parameters: &'a ExanetParameters,
    allreduce: &'a AllreduceParameters,
    nodes: Vec<Node>,
    groups: Vec<GroupOfModules>,
    next_group: u32,
    calls: Vec<Call>,
    /// No operation begins behind this time, nor once none has.
    end: Time,
    ended: bool,
    /// By time; at one time packets before timers, as the network has them; then as they were planned.
    agenda: BinaryHeap<Reverse<(Time, bool, u64)>>,
    what: BTreeMap<u64, (u32, Later)>,
    order: u64,
    again: u64,
    failed: u32,
}

pub(crate) fn run(bench: &mut Bench, parameters: &ExanetParameters, end: Time) -> Result<String, String> {
    let allreduce = parameters.allreduce.as_ref().ok_or("exanest has no accelerator")?;
    let groups = (0..GROUPS).map(|id| {
        let (boards, turn) = (bench.below(4) as u32, bench.below(4) as u32);
        let member = |rank: u32| EndpointId(((rank / 4) ^ boards) * 4 + (rank + turn) % 4);
        GroupOfModules { id, members: (0..MODULES).map(member).collect() }
    });
    let groups = groups.collect();
    let mut stimulus = Stimulus {
        bench,
        parameters,
        allreduce,
        nodes: (0..MODULES).map(|_| Node::default()).collect(),
        groups,
        next_group: GROUPS,
        calls: Vec::new(),
        end,
        ended: false,
        agenda: BinaryHeap::new(),
        what: BTreeMap::new(),
        order: 0,
        again: 0,
        failed: 0,
    };
    stimulus.draw_call();
    let begin = stimulus.bench.clock.edge(400);
    (0..MODULES).for_each(|node| stimulus.at(begin, node, Later::Call));
    let mut now = begin;
    while let Some(Reverse((at, _, order))) = stimulus.agenda.pop() {
        now = at;
        let (node, later) = stimulus.what.remove(&order).ok_or("each entry has its event")?;
        stimulus.happen(now, node, later);
        stimulus.bench.advance(now)?;
    }
    let Stimulus { calls, again, failed, .. } = stimulus;
    bench.finish(now + Span::from_us(2))?;
    Ok(format!("{} operations, {again} vectors again, {failed} failed", calls.len()))
}

impl Stimulus<'_> {
    fn at(&mut self, at: Time, node: u32, later: Later) {
        self.order += 1;
        self.agenda.push(Reverse((at, matches!(later, Later::Late), self.order)));
        self.what.insert(self.order, (node, later));
    }

    /// Draws the next operation; now and then a module is off the wire from now on.
    fn draw_call(&mut self) {
        let bench = &mut *self.bench;
        let slot = bench.below(GROUPS.into()) as usize;
        let group = self.groups[slot].id;
        let operation = [Operation::Sum, Operation::Min, Operation::Max][bench.below(3) as usize];
        let data_type = [DataType::Int, DataType::Float, DataType::Double][bench.below(3) as usize];
        // Up to three blocks, few bytes most of the time.
        let most = if bench.in_thousand(100) { 96 } else { 32 };
        let elements = if bench.in_thousand(300) { 1 } else { 1 + bench.below(most) };
        let bytes = elements * data_type.width() as u64;
        let carried = bench.in_thousand(500);
        self.calls.push(Call { group, slot, bytes, operation, data_type, carried });
        if bench.below(1500) == 0 {
            let dead = bench.below(MODULES.into()) as usize;
            self.nodes[dead].dead_until = self.nodes[dead].out_free + DEAD;
        }
    }

    /// Calls a module in its surroundings.
    fn call(
        &mut self,
        now: Time,
        node: u32,
        call: impl FnOnce(&mut Module, &mut MemoryPath<'_>, &mut ModuleContext<'_, Asked<'_>>),
    ) {
        let (parameters, allreduce) = (self.parameters, self.allreduce);
        let Node { module, memory, .. } = &mut self.nodes[node as usize];
        let mut path = memory.path(parameters);
        let mut asked = Asked {
            parameters: allreduce,
            crossed: Vec::new(),
            packets: Vec::new(),
            later: Vec::new(),
            over: Vec::new(),
            asked_again: 0,
        };
        let mut context = ModuleContext { now, parameters: allreduce, callbacks: &mut asked };
        call(module, &mut path, &mut context);
        let Asked { crossed, packets, later, over, asked_again, .. } = asked;
        crossed.into_iter().for_each(|what| self.cross(now, node, what));
        let queue = &mut self.nodes[node as usize].packets;
        for packet in packets {
            let place = queue.partition_point(|other| other.due <= packet.due);
            queue.insert(place, packet);
        }
        later.into_iter().for_each(|(at, later)| self.at(at.max(now), node, later));
        self.again += asked_again;
        for (at, failed) in over {
            self.over(at.max(now), node, failed);
        }
    }

    fn cross(&mut self, now: Time, node: u32, what: ModuleCrossing) {
        if IN_STEP.contains(&node) {
            self.bench.cross_of(EndpointId(node), now, Crossing::Module(what));
        }
    }

    /// A member has its result, or none: it calls again some time later.
    fn over(&mut self, at: Time, node: u32, failed: bool) {
        let number = self.nodes[node as usize].number;
        self.nodes[node as usize].number += 1;
        self.failed += u32::from(failed);
        let Call { group, slot, .. } = self.calls[number];
        if failed && self.groups[slot].id == group {
            self.groups[slot].id = self.next_group;
            self.next_group += 1;
        }
        if self.calls.len() == number + 1 {
            self.ended |= at >= self.end;
            if self.ended {
                return;
            }
            self.draw_call();
        }
        let bench = &mut *self.bench;
        let most = if bench.in_thousand(20) { 400_000 } else { 2_000 };
        let later = at + Span::from_ns(bench.below(most));
        self.at(later, node, Later::Call);
    }

    /// A rank calls.
    fn begin(&mut self, now: Time, node: u32) {
        let Call { group, slot, bytes, operation, data_type, carried } =
            self.calls[self.nodes[node as usize].number];
        let members = self.groups[slot].members.clone();
        let own = members.iter().position(|member| member.0 == node).unwrap_or_default() as u32;
        let values = carried.then(|| (0..bytes).map(|_| self.bench.below(256) as u8).collect());
        let request = AllreduceRequest {
            group,
            sequence: self.nodes[node as usize].number as u32,
            members,
            own,
            bytes: Bytes::new(bytes),
            operation,
            data_type,
            token: 0,
            interface: 0,
            watch: false,
        };
        self.call(now, node, |module, _, context| {
            module.request(request, values, now, context).expect("whole boards and known types");
        });
    }

    /// The network takes the packet of a module that is due, if its way out is free.
    fn send(&mut self, now: Time, node: u32) {
        let sender = &mut self.nodes[node as usize];
        let Some(due) = sender.packets.front().map(|packet| packet.due) else { return };
        let when = due.max(sender.out_free);
        if when > now {
            return self.at(when, node, Later::Send);
        }
        let Some(packet) = sender.packets.pop_front() else { return };
        let ModulePacket { to, id, step, bytes, values, .. } = packet;
        // Links of 19.2 Gb/s, that do not fill up the last word.
        let on_wire = Span::from_ps((32 + bytes.get()) * 5000 / 12);
        sender.out_free = now + on_wire;
        let sender_dead = now < sender.dead_until;
        self.at(now + on_wire, node, Later::Send);
        self.cross(now, node, ModuleCrossing::Sent(PacketOfModule { other: to, id, step, bytes }));
        let receiver = &mut self.nodes[to.0 as usize];
        let wire = Span::from_ns(200 + self.bench.below(400));
        let tail = (now + on_wire + wire).max(receiver.in_free + on_wire);
        let is_lost = self.bench.in_thousand(3) || sender_dead || now < receiver.dead_until;
        if is_lost {
            return;
        }
        let other = EndpointId(node);
        let coming = |damaged| Later::Packet {
            packet: PacketOfModule { other, id, step, bytes },
            damaged,
            values: values.clone(),
        };
        let damaged = self.bench.in_thousand(3);
        if self.bench.in_thousand(3) {
            // Others overtake it.
            let late = Span::from_ns(self.bench.below(2_000));
            return self.at(tail + late, to.0, coming(damaged));
        }
        receiver.in_free = tail;
        self.at(tail, to.0, coming(damaged));
        if self.bench.in_thousand(3) {
            // A copy is right behind it.
            self.nodes[to.0 as usize].in_free = tail + on_wire;
            self.at(tail + on_wire, to.0, coming(damaged));
        }
    }

    fn happen(&mut self, now: Time, node: u32, later: Later) {
        match later {
            Later::Call => self.begin(now, node),
            Later::Woken(id) => self.call(now, node, |module, path, context| module.woken(id, path, context)),
            Later::Late => self.call(now, node, |module, _, context| module.expired(context)),
            Later::Send => self.send(now, node),
            Later::Packet { packet, damaged, values } => {
                let crossing = ModuleCrossing::Arrived { packet, damaged, values: values.clone() };
                self.cross(now, node, crossing);
                self.call(now, node, |module, _, context| {
                    if damaged {
                        module.take_words(packet.bytes, now, context.parameters);
                    } else {
                        module.received(&packet, values, context);
                    }
                });
            }
        }
    }
}

//! A key-value store at hosts, and the clients that ask it.
//!
//! ```text
//!   client: slots ── get: key, put: key and value ──► queue ──► threads ── service time ──► values
//!             ▲                                                    │
//!             └──── gap ◄──── get: value, put: 8 bytes ────────────┘
//! ```
//! Clients are closed loops: each slot of a client's window has one request under way, and asks again when it
//! has the answer. A key lives in one store: its number modulo their number. Threads of a store take requests
//! in the order in which they come. Ranks of an endpoint that are processes ask as well: each request of
//! theirs has a slot while it is under way.
//!
//! # Not modelled
//! Cores that a store takes from ranks of its host; a client that gives an answer up. A slot whose request
//! fails asks no more.

use crate::histogram::Histogram;
use crate::scenario::Sizes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weft_engine::{Payload, Stream};
use weft_fabric::Purpose;
use weft_nic::{Delivered, Failure, Host, HostContext, Message, Observer, Offer};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The payload of an answer that brings no value.
const BARE_ANSWER: Bytes = Bytes::new(8);
/// A million: shares are counted in its parts.
const MILLION: u32 = 1_000_000;

/// A store that is at several endpoints, alike at each.
#[derive(Clone, Debug)]
pub struct StorePlan {
    /// From when a thread takes a request until it answers.
    pub service_time: Span,
    /// Requests that are served at a time, at each endpoint.
    pub threads: u32,
    /// Bytes of a key in a request.
    pub key: Bytes,
    /// Bytes of the value that each key has before the first put; `None`: it has none.
    pub value: Option<Bytes>,
}

/// Clients that are at several endpoints, alike at each.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// The store that they ask.
    pub store: u32,
    /// The endpoints of that store.
    pub at: Vec<EndpointId>,
    /// Requests that a client has under way.
    pub window: u8,
    /// From an answer until the slot asks again.
    pub gap: Span,
    /// Requests that a client makes; `None`: as many as there is time for.
    pub requests: Option<u64>,
    /// The share of requests that are gets, in millionths.
    pub gets: u32,
    /// Keys that there are: each request is for one drawn among them.
    pub keys: u32,
    /// Sizes of the values that are put.
    pub sizes: Sizes,
    /// The time of the first requests.
    pub start: Time,
    /// From here on there is none.
    pub stop: Time,
}

/// The stores and clients of a run.
#[derive(Clone, Debug, Default)]
pub struct KeyValueParameters {
    /// The stores.
    pub stores: Vec<StorePlan>,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// The stores by their endpoints, for ranks that ask.
    pub at: BTreeMap<EndpointId, u32>,
    /// Requests that begin before this time are not among the latencies, nor those that are answered before
    /// it among the answers.
    pub counted_from: Time,
}

/// The words of a request or an answer. They fit in what the header of a flow takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum KeyValueHeader {
    /// Asks for the value of a key, for a slot of the client.
    Get {
        /// The slot.
        slot: u8,
        /// The key.
        key: u16,
    },
    /// Brings a value for a key.
    Put {
        /// The slot.
        slot: u8,
        /// The key.
        key: u16,
    },
    /// Answers either.
    Answer {
        /// The slot.
        slot: u8,
    },
}

/// A timer of a store or a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum KeyValueTimer {
    /// A slot asks.
    Ask(u8),
    /// A thread of the store has done its work.
    Served(u32),
}

impl Payload for KeyValueTimer {
    fn tie(&self) -> u128 {
        match self {
            KeyValueTimer::Ask(slot) => (*slot).into(),
            KeyValueTimer::Served(thread) => 1 << 32 | u128::from(*thread),
        }
    }
}

/// The requests of the clients of one plan.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClientTally {
    /// Requests that were made.
    pub begun: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Those of them that were answered after warm-up.
    pub counted: u64,
    /// The time of the last answer.
    pub last: Time,
    /// From request to answer, to a thousandth, of requests that begin after warm-up.
    pub latency: Histogram<10>,
    /// Requests that the interface has given up.
    pub failed: u64,
}

/// The work of a store, at all its endpoints.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StoreTally {
    /// Requests that were served.
    pub served: u64,
    /// Those of them that were served after warm-up.
    pub counted: u64,
    /// Gets among them that found no value.
    pub misses: u64,
    /// How long requests have waited for a thread, to a thousandth, of those that came after warm-up.
    pub waits: Histogram<10>,
    /// The most that waited at one endpoint when a thread took the next.
    pub longest_queue: u64,
    /// Answers that the interface has given up.
    pub failed: u64,
}

/// The output of the stores and clients of a partition: adds up in any order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct KeyValueOutput {
    /// By plan.
    pub clients: BTreeMap<u32, ClientTally>,
    /// By plan.
    pub stores: BTreeMap<u32, StoreTally>,
    /// Requests and answers that were delivered.
    pub messages: u64,
    /// Payload of these.
    pub payload: Bytes,
}

impl KeyValueOutput {
    /// Adds another's counts, and empties it.
    pub fn take(&mut self, other: &mut KeyValueOutput) {
        self.messages += std::mem::take(&mut other.messages);
        self.payload += std::mem::take(&mut other.payload);
        for (plan, other) in std::mem::take(&mut other.clients) {
            let own = self.clients.entry(plan).or_default();
            own.begun += other.begun;
            own.answered += other.answered;
            own.counted += other.counted;
            own.last = own.last.max(other.last);
            own.latency.merge(&other.latency);
            own.failed += other.failed;
        }
        for (plan, other) in std::mem::take(&mut other.stores) {
            let own = self.stores.entry(plan).or_default();
            own.served += other.served;
            own.counted += other.counted;
            own.misses += other.misses;
            own.waits.merge(&other.waits);
            own.longest_queue = own.longest_queue.max(other.longest_queue);
            own.failed += other.failed;
        }
    }
}

impl Observer for KeyValueOutput {}

/// A request at its store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PendingRequest {
    from: EndpointId,
    came: Time,
    slot: u8,
    key: u16,
    /// The value of a put; `None`: it is a get.
    value: Option<Bytes>,
}

/// A store at one endpoint.
#[derive(Debug, Serialize, Deserialize)]
struct Store {
    plan: u32,
    /// By thread that was ever needed, the request that it serves.
    threads: Vec<Option<PendingRequest>>,
    /// Those that wait.
    queue: VecDeque<PendingRequest>,
    /// Bytes of the values that were put.
    values: BTreeMap<u16, Bytes>,
}

/// A client at one endpoint.
#[derive(Debug, Serialize, Deserialize)]
struct Client {
    plan: u32,
    rng: Stream,
    begun: u64,
}

/// A request of a rank to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankRequest {
    /// The rank, among those of its endpoint.
    pub seat: u32,
    /// The rank's name for the request.
    pub token: u32,
    /// The endpoint of the store.
    pub store: EndpointId,
    /// The key.
    pub key: u16,
    /// Bytes of the value that is put; `None`: it is a get.
    pub put: Option<Bytes>,
    /// The time at which the rank makes it: now, or later.
    pub at: Time,
}

/// The end of a request of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankAnswer {
    /// The rank.
    pub seat: u32,
    /// The rank's name for the request.
    pub token: u32,
    /// Bytes of the answer: of a get those of the value.
    pub outcome: Result<Bytes, RequestError>,
}

/// Why a request of a rank has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// There is no store at that endpoint.
    NoStore,
    /// As many requests of the endpoint are under way as there are slots.
    TooMany,
    /// The interface has given it up.
    Lost,
}

/// An answer that has come.
#[derive(Clone, Copy)]
struct ComeAnswer {
    bytes: Bytes,
    /// Now, or later.
    noticed: Time,
}

/// The owner of a slot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum SlotOwner {
    /// A client, among those of the endpoint.
    Client(u8),
    /// A rank, by its seat, with its name for the request.
    Rank { seat: u32, token: u32 },
}

/// A place in a window, or of a request of a rank.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct WindowSlot {
    owner: SlotOwner,
    /// The time of the request under way; `None`: there is none.
    begun: Option<Time>,
}

/// The store and the clients of one endpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Programs {
    store: Option<Store>,
    clients: Vec<Client>,
    slots: Vec<WindowSlot>,
    /// Ends of requests of which ranks have not been told.
    #[serde(skip)]
    answers: VecDeque<RankAnswer>,
}

/// The part of one endpoint in key-value services: a store, clients, both, or nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct KeyValue {
    programs: Option<Box<Programs>>,
}

const PURPOSE_CLIENT: u32 = 44;

impl KeyValue {
    /// Slots of all clients of an endpoint, at most.
    pub const MOST_SLOTS: usize = 1 << 8;
    /// Keys that clients ask for, at most.
    pub const MOST_KEYS: u32 = 1 << 16;

    /// Adds the store of the plan of this number. An endpoint has one at most.
    pub fn add_store(&mut self, number: u32) {
        let store =
            Store { plan: number, threads: Vec::new(), queue: VecDeque::new(), values: BTreeMap::new() };
        self.programs.get_or_insert_default().store = Some(store);
    }

    /// The random numbers of a client, by its number over all plans and endpoints.
    pub fn client_rng(seed: u64, client: u64) -> Stream {
        Stream::new(seed, client, PURPOSE_CLIENT)
    }

    /// Adds a client of the plan of this number.
    pub fn add_client(&mut self, number: u32, plan: &ClientPlan, rng: Stream) {
        let Programs { clients, slots, .. } = &mut **self.programs.get_or_insert_default();
        let slot = WindowSlot { owner: SlotOwner::Client(clients.len() as u8), begun: None };
        slots.extend(std::iter::repeat_n(slot, plan.window.into()));
        clients.push(Client { plan: number, rng, begun: 0 });
    }

    /// Asks a store for a rank of this endpoint.
    pub(crate) fn ask_for_rank(
        &mut self,
        request: RankRequest,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<KeyValue>,
    ) {
        let RankRequest { seat, token, store, key, put, at } = request;
        let programs = &mut **self.programs.get_or_insert_default();
        let number = match (parameters.at.get(&store), programs.free_slot()) {
            (Some(number), Some(slot)) => {
                programs.slots[slot] = WindowSlot { owner: SlotOwner::Rank { seat, token }, begun: Some(at) };
                Ok((*number, slot as u8))
            }
            (None, _) => Err(RequestError::NoStore),
            (Some(_), None) => Err(RequestError::TooMany),
        };
        match number {
            Ok((number, slot)) => {
                let (header, value) = match put {
                    Some(value) => (KeyValueHeader::Put { slot, key }, value),
                    None => (KeyValueHeader::Get { slot, key }, Bytes::ZERO),
                };
                let bytes = parameters.stores[number as usize].key + value;
                context.send(message(store, bytes, header, at), at);
            }
            Err(error) => programs.answers.push_back(RankAnswer { seat, token, outcome: Err(error) }),
        }
    }

    /// The next end of a request of which a rank is to be told.
    #[inline]
    pub(crate) fn next_answer(&mut self) -> Option<RankAnswer> {
        self.programs.as_mut()?.answers.pop_front()
    }
}

/// A message between two endpoints that go by the same virtual interface.
fn message(to: EndpointId, bytes: Bytes, header: KeyValueHeader, now: Time) -> Message<KeyValueHeader> {
    let (is_reply, token) = match header {
        KeyValueHeader::Get { slot, .. } | KeyValueHeader::Put { slot, .. } => (false, Some(slot.into())),
        KeyValueHeader::Answer { .. } => (true, None),
    };
    Message {
        header: Some(header),
        token,
        purpose: Purpose { is_reply, is_service: true, ..Purpose::PLAIN },
        ..Message::new(to, bytes, now)
    }
}

impl Programs {
    /// A slot for a request of a rank; `None`: all are in use.
    fn free_slot(&mut self) -> Option<usize> {
        let is_free =
            |slot: &WindowSlot| matches!(slot.owner, SlotOwner::Rank { .. }) && slot.begun.is_none();
        let free = self.slots.iter().position(is_free);
        if free.is_none() && self.slots.len() < KeyValue::MOST_SLOTS {
            self.slots.push(WindowSlot { owner: SlotOwner::Rank { seat: 0, token: 0 }, begun: None });
            return Some(self.slots.len() - 1);
        }
        free
    }

    /// A slot of a client asks, if there is time and its client has a request left.
    fn ask(&mut self, slot: u8, parameters: &KeyValueParameters, context: &mut impl HostContext<KeyValue>) {
        let (now, place) = (context.now(), &mut self.slots[usize::from(slot)]);
        let SlotOwner::Client(client) = place.owner else { return };
        let client = &mut self.clients[usize::from(client)];
        let plan = &parameters.clients[client.plan as usize];
        if now >= plan.stop || plan.requests.is_some_and(|most| client.begun >= most) {
            return;
        }
        client.begun += 1;
        place.begun = Some(now);
        let key = client.rng.below(plan.keys);
        let key_bytes = parameters.stores[plan.store as usize].key;
        let (header, bytes) = match client.rng.below(MILLION) < plan.gets {
            true => (KeyValueHeader::Get { slot, key: key as u16 }, key_bytes),
            false => {
                let value = plan.sizes.draw(&mut client.rng);
                (KeyValueHeader::Put { slot, key: key as u16 }, key_bytes + value)
            }
        };
        context.output().clients.entry(client.plan).or_default().begun += 1;
        context.send(message(plan.at[key as usize % plan.at.len()], bytes, header, now), now);
    }

    /// An answer has come.
    fn answered(
        &mut self,
        slot: u8,
        come: ComeAnswer,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<KeyValue>,
    ) {
        let ComeAnswer { bytes, noticed } = come;
        let place = &mut self.slots[usize::from(slot)];
        // One that was given up may have been answered all the same.
        let Some(begun) = place.begun.take() else { return };
        let client = match place.owner {
            SlotOwner::Client(client) => client,
            SlotOwner::Rank { seat, token } => {
                return self.answers.push_back(RankAnswer { seat, token, outcome: Ok(bytes) });
            }
        };
        let plan = self.clients[usize::from(client)].plan;
        let tally = context.output().clients.entry(plan).or_default();
        tally.answered += 1;
        tally.last = tally.last.max(noticed);
        tally.counted += u64::from(noticed >= parameters.counted_from);
        if begun >= parameters.counted_from {
            tally.latency.record(noticed - begun);
        }
        let again = noticed.saturating_add(parameters.clients[plan as usize].gap);
        if again > context.now() {
            context.set_timer(again, KeyValueTimer::Ask(slot));
        } else {
            self.ask(slot, parameters, context);
        }
    }
}

impl Store {
    /// A request comes, now or later: a thread takes it, or it waits.
    fn take(
        &mut self,
        request: PendingRequest,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<KeyValue>,
    ) {
        let threads = parameters.stores[self.plan as usize].threads as usize;
        let mut idle = self.threads.iter().position(Option::is_none);
        if idle.is_none() && self.threads.len() < threads {
            idle = Some(self.threads.len());
            self.threads.push(None);
        }
        match idle {
            Some(thread) => self.serve(thread, request, parameters, context),
            None => self.queue.push_back(request),
        }
    }

    /// A thread takes a request that has come, or that it knows to come.
    fn serve(
        &mut self,
        thread: usize,
        request: PendingRequest,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<KeyValue>,
    ) {
        let begins = request.came.max(context.now());
        if request.came >= parameters.counted_from {
            let tally = context.output().stores.entry(self.plan).or_default();
            tally.waits.record(begins - request.came);
        }
        self.threads[thread] = Some(request);
        let service_time = parameters.stores[self.plan as usize].service_time;
        context.set_timer(begins.saturating_add(service_time), KeyValueTimer::Served(thread as u32));
    }

    /// A thread answers its request, and takes the next.
    fn served(
        &mut self,
        thread: usize,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<KeyValue>,
    ) {
        let Some(PendingRequest { from, slot, key, value, .. }) = self.threads[thread].take() else { return };
        let known = match value {
            Some(bytes) => {
                self.values.insert(key, bytes);
                None
            }
            None => self.values.get(&key).copied().or(parameters.stores[self.plan as usize].value),
        };
        let now = context.now();
        let tally = context.output().stores.entry(self.plan).or_default();
        tally.served += 1;
        tally.counted += u64::from(now >= parameters.counted_from);
        tally.misses += u64::from(value.is_none() && known.is_none());
        // A queue is longest when a thread is about to take from it. Its last requests may be yet to come: a
        // host without ranks is told of them ahead of time.
        let to_come = self.queue.iter().rev().take_while(|request| request.came >= now).count();
        tally.longest_queue = tally.longest_queue.max((self.queue.len() - to_come) as u64);
        let bytes = known.unwrap_or(BARE_ANSWER);
        context.send(message(from, bytes, KeyValueHeader::Answer { slot }, now), now);
        if let Some(next) = self.queue.pop_front() {
            self.serve(thread, next, parameters, context);
        }
    }
}

impl Host for KeyValue {
    type Parameters = KeyValueParameters;
    type Timer = KeyValueTimer;
    type Header = KeyValueHeader;
    type Output = KeyValueOutput;

    const PASSIVE: bool = true;

    fn is_active(&self) -> bool {
        self.programs.is_some()
    }

    fn start(&mut self, parameters: &KeyValueParameters, context: &mut impl HostContext<Self>) {
        let Some(Programs { clients, slots, .. }) = self.programs.as_deref() else { return };
        for (slot, number) in slots.iter().zip(0..) {
            let SlotOwner::Client(client) = slot.owner else { continue };
            let start = parameters.clients[clients[usize::from(client)].plan as usize].start;
            context.set_timer(start.max(context.now()), KeyValueTimer::Ask(number));
        }
    }

    fn timer(
        &mut self,
        timer: KeyValueTimer,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let Some(programs) = &mut self.programs else { return };
        match (timer, &mut programs.store) {
            (KeyValueTimer::Ask(slot), _) => programs.ask(slot, parameters, context),
            (KeyValueTimer::Served(thread), Some(store)) => {
                store.served(thread as usize, parameters, context);
            }
            (KeyValueTimer::Served(_), None) => {}
        }
    }

    fn sent(&mut self, _: u32, _: &KeyValueParameters, _: &mut impl HostContext<Self>) {}

    fn delivered(
        &mut self,
        message: &Delivered<KeyValueHeader>,
        parameters: &KeyValueParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let Delivered { from, bytes, noticed: came, header, .. } = *message;
        let (Some(programs), Some(header)) = (&mut self.programs, header) else { return };
        let output = context.output();
        output.messages += 1;
        output.payload += bytes;
        let (slot, key, is_put) = match header {
            KeyValueHeader::Answer { slot } => {
                return programs.answered(slot, ComeAnswer { bytes, noticed: came }, parameters, context);
            }
            KeyValueHeader::Get { slot, key } => (slot, key, false),
            KeyValueHeader::Put { slot, key } => (slot, key, true),
        };
        if let Some(store) = &mut programs.store {
            let value = is_put.then(|| bytes - parameters.stores[store.plan as usize].key);
            store.take(PendingRequest { from, came, slot, key, value }, parameters, context);
        }
    }

    /// A request has a token, its slot; an answer has none.
    fn failed(&mut self, failure: &Failure, _: &KeyValueParameters, context: &mut impl HostContext<Self>) {
        let Some(programs) = &mut self.programs else { return };
        match (failure.token, &programs.store) {
            (Some(slot), _) => {
                let WindowSlot { owner, begun } = &mut programs.slots[slot as usize];
                // One that was answered is no failure.
                match (begun.take(), *owner) {
                    (None, _) => {}
                    (Some(_), SlotOwner::Client(client)) => {
                        let plan = programs.clients[usize::from(client)].plan;
                        context.output().clients.entry(plan).or_default().failed += 1;
                    }
                    (Some(_), SlotOwner::Rank { seat, token }) => {
                        let outcome = Err(RequestError::Lost);
                        programs.answers.push_back(RankAnswer { seat, token, outcome });
                    }
                }
            }
            (None, Some(store)) => context.output().stores.entry(store.plan).or_default().failed += 1,
            (None, None) => {}
        }
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &KeyValueParameters, _: Time) -> Offer<KeyValueHeader> {
        Offer::Nothing
    }
}

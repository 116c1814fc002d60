//! Calls of a rank into its operations.
//!
//! The time between two calls is computation. A blocking call becomes its parts. A receive from anybody is
//! held back until the call that completes it tells whose message it took, or until too many operations
//! would wait behind it.

use super::call::{
    CallTime, CommRef, Completed, Creation, EMPTY_GROUP, GroupMaking, Manner, Matched, MessageEnd, MpiCall,
    NewComm, OtherSide, RequestKey, TimedCall,
};
use super::communicators::{CommTable, Created, FIRST_MADE, OWN, RankedMembers, WORLD};
use super::group::RankGroup;
use super::requests::{OpenRequest, Persistent, RECEIVE_INSIDE, RequestNames, SEND_INSIDE, WaitEnd};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use weft_trace::op::{Collective, CollectiveBuffers, CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

/// Operations that wait behind a receive from anybody, at most.
const MAX_HELD: usize = 4096;

/// Requests, communicators or groups that a rank has at once, at most: more are taken for damage.
const MAX_CREATED: usize = 1 << 20;

/// Counts made while the calls of a rank are read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CallTally {
    /// Calls that are not read, by name.
    pub(crate) unread: BTreeMap<String, u64>,
    /// How the reader has helped itself where the trace does not say, or says what cannot be.
    pub(crate) notes: BTreeMap<&'static str, u64>,
}

impl CallTally {
    fn note(&mut self, note: &'static str) {
        *self.notes.entry(note).or_default() += 1;
    }
}

/// The place of a rank among all, and what is known of communicators.
pub(crate) struct Seat {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// `None`: not found out yet. Ranks are those of the world then, right or wrong.
    pub(crate) communicators: Option<Arc<CommTable>>,
    /// A request of a name that is open has completed: the format does not tell which tests succeed.
    pub(crate) reuse_completes: bool,
}

/// Makes operations of the calls of one rank.
pub(crate) struct Translator {
    seat: Seat,
    requests: RequestNames,
    /// The number of each communicator that has a handle.
    handles: BTreeMap<u64, usize>,
    groups: BTreeMap<u64, Arc<RankGroup>>,
    /// The creations so far.
    created: Vec<Created>,
    /// Whether MPI_COMM_SELF has been told of.
    own_told: bool,
    /// The end of the last call.
    clock: Option<Span>,
    /// Computation that no operation has followed yet.
    computation: Span,
    queue: VecDeque<Op>,
    /// Operations that have left the queue.
    gone: u64,
    /// Receives from anybody whose message is not known yet: where they are, and in which communicator.
    held: BTreeMap<RequestId, (u64, CommRef)>,
    tally: CallTally,
}

impl Translator {
    pub(crate) fn new(seat: Seat) -> Translator {
        Translator {
            seat,
            requests: RequestNames::default(),
            handles: BTreeMap::new(),
            groups: BTreeMap::from([(EMPTY_GROUP, RankGroup::empty())]),
            created: Vec::new(),
            own_told: false,
            clock: None,
            computation: Span::ZERO,
            queue: VecDeque::new(),
            gone: 0,
            held: BTreeMap::new(),
            tally: CallTally::default(),
        }
    }

    /// The creations of communicators, and what was counted.
    pub(crate) fn into_found(self) -> (Vec<Created>, CallTally) {
        (self.created, self.tally)
    }

    /// The next operation that is ready.
    pub(crate) fn pop(&mut self) -> Option<Op> {
        if !self.held.is_empty()
            && let Some(Op::Irecv { request, .. }) = self.queue.front()
            && self.held.get(request).is_some_and(|(place, _)| *place == self.gone)
        {
            if self.queue.len() <= MAX_HELD {
                return None;
            }
            self.held.remove(request);
        }
        let op = self.queue.pop_front()?;
        self.gone += 1;
        Some(op)
    }

    /// The rank has no more calls.
    pub(crate) fn end(&mut self) {
        let requests = self.requests.complete_open();
        if !requests.is_empty() {
            self.tally.note("ranks whose last requests no call waits for: they are waited for at their end");
            self.wait_for(requests);
        }
        self.flush_computation();
        self.held.clear();
    }

    /// Adds a call. The reason of an error ends with the mend.
    pub(crate) fn call(&mut self, timed: TimedCall) -> Result<(), String> {
        if let Some(interval) = timed.interval {
            self.compute_until(interval);
        }
        match timed.call {
            MpiCall::Nothing => {}
            MpiCall::Compute(span) => self.compute(span),
            MpiCall::Send { envelope, mode, manner } => {
                let op = self.send(&envelope, mode)?;
                self.begin(op, manner, envelope.comm)?;
            }
            MpiCall::Receive { envelope, matched, manner } => {
                let op = self.receive(&envelope, matched)?;
                self.begin(op, manner, envelope.comm)?;
            }
            MpiCall::Exchange { send, receive, matched } => self.exchange([send, receive], matched)?,
            MpiCall::Probe { comm, found, tested } => {
                let communicator = self.known(comm)?;
                let from = self.member(communicator.as_deref(), found.source)?;
                let comm = id(communicator.as_deref());
                self.push(Op::Probe { from, tag: found.tag, comm, tested });
            }
            MpiCall::Start(keys) => keys.into_iter().try_for_each(|key| self.start(key))?,
            MpiCall::Complete { requests, completed, matched } => {
                self.complete(&requests, &completed, &matched)?;
            }
            MpiCall::CompleteOpen => {
                let requests = self.requests.complete_open();
                self.wait_for(requests);
            }
            MpiCall::CompleteFound { requests, completed } => self.complete_found(&requests, &completed)?,
            MpiCall::Release(key) => {
                if !self.requests.release(key) {
                    self.tally.note("requests given up that no call has begun: left out");
                }
            }
            MpiCall::Cancel(key) => {
                self.requests.release(key);
                // Its wait is over at once, however often it is asked for.
                self.requests.begin(key, OpenRequest::Nothing);
                self.tally.note("requests cancelled: begun, and not waited for");
            }
            MpiCall::Collective { kind, comm, root, mut sizes } => {
                let communicator = self.known(comm)?;
                if kind == Collective::ReduceScatter {
                    let block =
                        self.place(communicator.as_deref()).and_then(|place| sizes.receive_counts.get(place));
                    sizes.receive = Bytes::new(block.copied().unwrap_or(0));
                }
                let root = root.map(|root| self.member(communicator.as_deref(), root)).transpose()?;
                let comm = id(communicator.as_deref());
                let buffers = CollectiveBuffers::default();
                self.push(Op::Collective { kind, comm, root, sizes, buffers, request: None });
            }
            MpiCall::Create { from, how, new } => self.create(from, how, new)?,
            MpiCall::CreateByGroup { from, group, new } => {
                let group = self.group(group)?;
                self.create(from, Creation::Group(group), new)?;
            }
            MpiCall::GroupOf { comm, new } => {
                let group = RankGroup::of(self.number(comm)?);
                self.keep_group(new, group)?;
            }
            MpiCall::GroupFrom { make, new } => {
                let group = self.group_from(make)?;
                self.keep_group(new, group)?;
            }
            MpiCall::UnreadRequest(name, key) => {
                *self.tally.unread.entry(name).or_default() += 1;
                self.requests.begin(key, OpenRequest::Nothing);
            }
            MpiCall::Unread(name) => *self.tally.unread.entry(name).or_default() += 1,
        }
        Ok(())
    }

    /// Computes from the end of the last call to the begin of this one.
    fn compute_until(&mut self, interval: CallTime) {
        if let Some(clock) = self.clock {
            match interval.start.as_ps().checked_sub(clock.as_ps()) {
                Some(gap) => self.compute(Span::from_ps(gap)),
                None => self.tally.note("calls that begin before the one before them ended: no computation"),
            }
        }
        if interval.end < interval.start {
            self.tally.note("calls that end before they begin: their end is their begin");
        }
        let end = interval.end.max(interval.start);
        self.clock = Some(self.clock.map_or(end, |clock| clock.max(end)));
    }

    fn compute(&mut self, span: Span) {
        self.computation = Span::from_ps(self.computation.as_ps().saturating_add(span.as_ps()));
    }

    fn flush_computation(&mut self) {
        let span = std::mem::replace(&mut self.computation, Span::ZERO);
        if span > Span::ZERO {
            self.queue.push_back(Op::Compute { span });
        }
    }

    fn push(&mut self, op: Op) {
        self.flush_computation();
        self.queue.push_back(op);
    }

    fn wait_for(&mut self, requests: Vec<RequestId>) {
        match requests.as_slice() {
            [] => {}
            [request] => self.push(Op::Wait { request: *request }),
            _ => self.push(Op::Waitall { requests }),
        }
    }

    /// The number of a communicator; a handle that was never given is refused.
    fn number(&mut self, comm: CommRef) -> Result<usize, String> {
        match comm {
            CommRef::World => Ok(WORLD),
            CommRef::Own => Ok(OWN),
            CommRef::Made(handle) => self.handles.get(&handle).copied().ok_or_else(|| {
                format!(
                    "communicator {handle}, which no call that is read has made; the file is damaged, or the \
                     program makes it by a call that its tracer does not know: trace it without"
                )
            }),
            CommRef::Seen { handle, rank, size } => self.number_of_seen(handle, rank, size),
        }
    }

    /// The number of a communicator whose handle no creation tells: the oldest that nothing else was taken
    /// for and that has this size and this place for the rank.
    fn number_of_seen(&mut self, handle: u64, rank: u32, size: u32) -> Result<usize, String> {
        if let Some(&number) = self.handles.get(&handle) {
            return Ok(number);
        }
        let number = if size == 1 {
            OWN
        } else if self.handles.is_empty() && (rank, size) == (self.seat.rank, self.seat.ranks) {
            WORLD
        } else {
            // Which one it is can be told when the members of all are known.
            let Some(known) = &self.seat.communicators else { return Ok(WORLD) };
            let fits = |&number: &usize| {
                let taken = self.handles.values().any(|&other| other == number);
                let members =
                    known.communicator(self.seat.rank, number).map(|found| Arc::clone(&found.members));
                !taken
                    && members.is_ok_and(|members| {
                        members.len() == size as usize
                            && members.get(rank as usize).is_some_and(|&member| member == self.seat.rank)
                    })
            };
            (FIRST_MADE..FIRST_MADE + self.created.len()).find(fits).ok_or_else(|| {
                format!(
                    "communicator {handle} of {size} ranks, which no call that is read has made so far; \
                     trace the program without it"
                )
            })?
        };
        self.handles.insert(handle, number);
        Ok(number)
    }

    /// A communicator; `None`: its members are not found out yet.
    fn known(&mut self, comm: CommRef) -> Result<Option<Arc<RankedMembers>>, String> {
        let number = self.number(comm)?;
        let table = self.seat.communicators.as_ref();
        let communicator = table.map(|known| known.communicator(self.seat.rank, number)).transpose()?;
        if number == OWN && !self.own_told {
            self.own_told = true;
            self.tell_of(communicator.as_deref());
        }
        Ok(communicator)
    }

    /// The communicator exists from here on.
    fn tell_of(&mut self, communicator: Option<&RankedMembers>) {
        let members = communicator.map(RankedMembers::ranges).unwrap_or_default();
        self.push(Op::Communicator { comm: id(communicator), members });
    }

    /// The place of this rank in a communicator.
    fn place(&self, communicator: Option<&RankedMembers>) -> Option<usize> {
        communicator?.members.iter().position(|&member| member == self.seat.rank)
    }

    fn member(&self, communicator: Option<&RankedMembers>, rank: u32) -> Result<RankId, String> {
        let Some(communicator) = communicator else { return Ok(RankId(0)) };
        communicator.world(rank).ok_or_else(|| {
            format!(
                "rank {rank} of a communicator of {} ranks; copy the file again, or trace the program again",
                communicator.members.len()
            )
        })
    }

    /// A send; `None`: to nobody.
    fn send(&mut self, envelope: &MessageEnd, mode: SendMode) -> Result<Option<Op>, String> {
        let communicator = self.known(envelope.comm)?;
        let to = match envelope.peer {
            OtherSide::Rank(rank) => self.member(communicator.as_deref(), rank)?,
            OtherSide::Nobody => return Ok(None),
            OtherSide::Any => {
                return Err("sends to any rank; copy the file again, or trace the program again".to_owned());
            }
        };
        let (comm, tag, bytes) = (id(communicator.as_deref()), envelope.tag.unwrap_or(0), envelope.bytes);
        Ok(Some(Op::Isend { to, tag, comm, bytes, mode, buffer: None, request: SEND_INSIDE }))
    }

    /// A receive; `None`: from nobody.
    fn receive(&mut self, envelope: &MessageEnd, matched: Option<Matched>) -> Result<Option<Op>, String> {
        let communicator = self.known(envelope.comm)?;
        let from = match envelope.peer {
            OtherSide::Rank(rank) => Some(self.member(communicator.as_deref(), rank)?),
            OtherSide::Any => None,
            OtherSide::Nobody => return Ok(None),
        };
        let (comm, tag, bytes) = (id(communicator.as_deref()), envelope.tag, envelope.bytes);
        let matched = matched.filter(|_| from.is_none() || tag.is_none());
        let matched = matched
            .map(|found| self.member(communicator.as_deref(), found.source).map(|rank| (rank, found.tag)))
            .transpose()?;
        Ok(Some(Op::Irecv { from, tag, comm, bytes, matched, buffer: None, request: RECEIVE_INSIDE }))
    }

    /// Begins a send or a receive, and ends it where it is blocking.
    fn begin(&mut self, op: Option<Op>, manner: Manner, comm: CommRef) -> Result<(), String> {
        match manner {
            Manner::Blocking => {
                let Some(op) = op else { return Ok(()) };
                let request = if matches!(op, Op::Isend { .. }) { SEND_INSIDE } else { RECEIVE_INSIDE };
                self.push(op);
                self.push(Op::Wait { request });
                Ok(())
            }
            Manner::Request(key) => self.open(key, op, comm),
            Manner::Persistent(key) => {
                self.requests.keep(key, Persistent { op, comm });
                Ok(())
            }
        }
    }

    /// Begins a send or a receive that a later call waits for.
    fn open(&mut self, key: RequestKey, op: Option<Op>, comm: CommRef) -> Result<(), String> {
        if self.seat.reuse_completes && self.requests.is_open(key) {
            self.tally
                .note("requests that a test has completed, not said which: waited for when begun again");
            self.complete(&[key], &Completed::All, &[])?;
        }
        let Some(mut op) = op else {
            self.requests.begin(key, OpenRequest::Nothing);
            return Ok(());
        };
        let number = self.requests.number();
        if number.0 as usize > MAX_CREATED {
            return Err(format!("more than {MAX_CREATED} requests are open; add the waits that are missing"));
        }
        let mut is_held = false;
        match &mut op {
            Op::Isend { request, .. } => *request = number,
            Op::Irecv { request, from, tag, matched, .. } => {
                *request = number;
                is_held = matched.is_none() && (from.is_none() || tag.is_none());
            }
            _ => {}
        }
        self.push(op);
        self.requests.begin(key, OpenRequest::Pending(number));
        if is_held {
            self.held.insert(number, (self.gone + self.queue.len() as u64 - 1, comm));
        }
        Ok(())
    }

    fn start(&mut self, key: RequestKey) -> Result<(), String> {
        let Some(persistent) = self.requests.persistent(key).cloned() else {
            return Err(format!(
                "starts request {key}, which no call that is read has made; copy the file again, or trace \
                 the program again"
            ));
        };
        self.open(key, persistent.op, persistent.comm)
    }

    fn exchange(&mut self, [send, receive]: [MessageEnd; 2], matched: Option<Matched>) -> Result<(), String> {
        let ops = [self.send(&send, SendMode::Standard)?, self.receive(&receive, matched)?];
        let mut requests = Vec::new();
        for (op, request) in ops.into_iter().zip([SEND_INSIDE, RECEIVE_INSIDE]) {
            if let Some(op) = op {
                self.push(op);
                requests.push(request);
            }
        }
        self.wait_for(requests);
        Ok(())
    }

    fn complete(
        &mut self,
        keys: &[RequestKey],
        completed: &Completed,
        matched: &[Option<Matched>],
    ) -> Result<(), String> {
        if matches!(completed, Completed::Unknown) {
            self.tally.note("waits for one of several that do not say which: taken for the first");
        }
        let WaitEnd { op, done } = self.requests.complete(keys, completed)?;
        for (place, request) in done {
            let Some((at, comm)) = self.held.remove(&request) else { continue };
            let Some(found) = matched.get(place).copied().flatten() else { continue };
            let communicator = self.known(comm)?;
            let from = self.member(communicator.as_deref(), found.source)?;
            if let Some(Op::Irecv { matched, .. }) = self.queue.get_mut((at - self.gone) as usize) {
                *matched = Some((from, found.tag));
            }
        }
        if let Some(op) = op {
            self.push(op);
        }
        Ok(())
    }

    fn complete_found(&mut self, keys: &[RequestKey], completed: &Completed) -> Result<(), String> {
        let found: Vec<RequestKey> = keys.iter().copied().filter(|&key| self.requests.is_open(key)).collect();
        if !found.is_empty() || keys.len() < 2 {
            if found.is_empty() && !keys.is_empty() {
                self.tally.note("waits for a request that no call has begun: taken for one that is none");
            }
            return self.complete(&found, completed, &[]);
        }
        let oldest = self.requests.oldest(keys.len());
        if !oldest.is_empty() {
            self.tally.note("waits for a list whose requests are not told: the oldest were taken");
        }
        self.complete(&oldest, completed, &[])
    }

    fn create(&mut self, from: CommRef, how: Creation, new: Option<NewComm>) -> Result<(), String> {
        if let CommRef::Seen { handle, .. } = from
            && self.seat.communicators.is_none()
            && self.number(from)? == WORLD
            && self.handles.get(&handle) != Some(&WORLD)
        {
            return Err(format!(
                "makes a communicator of communicator {handle}, and which one that is cannot be told; trace \
                 the program with another tracer, such as `weft record`"
            ));
        }
        let from = self.number(from)?;
        let number = FIRST_MADE + self.created.len();
        if number > MAX_CREATED {
            return Err(format!("more than {MAX_CREATED} communicators; trace a shorter run"));
        }
        let is_known = !matches!(how, Creation::Unknown(_));
        // Groups are big, and of no use once the members are known.
        let how = if self.seat.communicators.is_some() { Creation::Duplicate } else { how };
        self.created.push(Created { from, how, member: new.is_some() });
        if let Some(NewComm::Handle(handle)) = new {
            self.handles.insert(handle, number);
        }
        // One of unknown members is refused where it is used.
        if new.is_none() || !is_known {
            return Ok(());
        }
        let table = self.seat.communicators.as_ref();
        let made = table.map(|known| known.communicator(self.seat.rank, number)).transpose()?;
        self.tell_of(made.as_deref());
        Ok(())
    }

    fn group(&self, handle: u64) -> Result<Arc<RankGroup>, String> {
        // Once the members are known, groups are not followed.
        if self.seat.communicators.is_some() {
            return Ok(RankGroup::empty());
        }
        self.groups.get(&handle).cloned().ok_or_else(|| {
            format!(
                "group {handle}, which no call that is read has made; copy the file again, or trace it again"
            )
        })
    }

    fn keep_group(&mut self, handle: u64, group: Arc<RankGroup>) -> Result<(), String> {
        if self.groups.len() > MAX_CREATED {
            return Err(format!("more than {MAX_CREATED} groups at once; trace a shorter run"));
        }
        self.groups.insert(handle, group);
        Ok(())
    }

    fn group_from(&self, make: GroupMaking) -> Result<Arc<RankGroup>, String> {
        if self.seat.communicators.is_some() {
            return Ok(RankGroup::empty());
        }
        match make {
            GroupMaking::Union(a, b) => RankGroup::union(self.group(a)?, self.group(b)?),
            GroupMaking::Intersection(a, b) => RankGroup::intersection(self.group(a)?, self.group(b)?),
            GroupMaking::Difference(a, b) => RankGroup::difference(self.group(a)?, self.group(b)?),
            GroupMaking::Include(of, places) => RankGroup::include(self.group(of)?, places),
            GroupMaking::Exclude(of, places) => RankGroup::exclude(self.group(of)?, places),
        }
    }
}

fn id(communicator: Option<&RankedMembers>) -> CommId {
    communicator.map_or(CommId::WORLD, |communicator| communicator.id)
}

//! The requests of a rank: which of a trace's names stands for which number of ours.

use super::call::{CommRef, Completed, RequestKey};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use weft_trace::op::{Op, RequestId};

/// The request of the send within a blocking call.
pub(crate) const SEND_INSIDE: RequestId = RequestId(0);

/// The request of the receive within a blocking call.
pub(crate) const RECEIVE_INSIDE: RequestId = RequestId(1);

/// A request that has been begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenRequest {
    Pending(RequestId),
    /// Of a message to or from nobody: it is complete.
    Nothing,
}

/// The open requests of one name. Several: libraries give one handle to all sends that are complete at once.
struct OpenName {
    first: OpenRequest,
    /// Begun after it, in order.
    others: VecDeque<OpenRequest>,
    /// The number of the call that began the last of them.
    begun: u64,
}

impl OpenName {
    /// The request that was begun after so many others.
    fn get(&self, place: usize) -> Option<OpenRequest> {
        match place {
            0 => Some(self.first),
            later => self.others.get(later - 1).copied(),
        }
    }
}

/// The operation that each start of a persistent request begins. Its request is set then.
#[derive(Clone, Debug)]
pub(crate) struct Persistent {
    /// `None`: a message to or from nobody.
    pub(crate) op: Option<Op>,
    pub(crate) comm: CommRef,
}

/// The end of some requests by a wait.
#[derive(Default)]
pub(crate) struct WaitEnd {
    /// The operation that waits, if one must.
    pub(crate) op: Option<Op>,
    /// The numbers of those that it completes, with their place in the list of the wait.
    pub(crate) done: Vec<(usize, RequestId)>,
}

/// The requests of a rank.
#[derive(Default)]
pub(crate) struct RequestNames {
    open: BTreeMap<RequestKey, OpenName>,
    /// Requests begun so far.
    begun: u64,
    persistent: BTreeMap<RequestKey, Persistent>,
    free: Vec<u32>,
    next: u32,
}

impl RequestNames {
    /// A number that no open request has.
    pub(crate) fn number(&mut self) -> RequestId {
        RequestId(self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            RECEIVE_INSIDE.0 + self.next
        }))
    }

    pub(crate) fn begin(&mut self, key: RequestKey, request: OpenRequest) {
        self.begun += 1;
        match self.open.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(OpenName { first: request, others: VecDeque::new(), begun: self.begun });
            }
            Entry::Occupied(mut entry) => {
                let name = entry.get_mut();
                name.others.push_back(request);
                name.begun = self.begun;
            }
        }
    }

    /// The names of the `count` open requests that were begun first.
    pub(crate) fn oldest(&self, count: usize) -> Vec<RequestKey> {
        let mut open: Vec<_> = self.open.iter().map(|(key, name)| (name.begun, *key)).collect();
        open.sort_unstable();
        open.into_iter().take(count).map(|(_, key)| key).collect()
    }

    pub(crate) fn is_open(&self, key: RequestKey) -> bool {
        self.open.contains_key(&key)
    }

    pub(crate) fn keep(&mut self, key: RequestKey, persistent: Persistent) {
        self.persistent.insert(key, persistent);
    }

    pub(crate) fn persistent(&self, key: RequestKey) -> Option<&Persistent> {
        self.persistent.get(&key)
    }

    /// The oldest open request of this name, which is open no longer.
    fn end(&mut self, key: RequestKey) -> Option<OpenRequest> {
        let Entry::Occupied(mut entry) = self.open.entry(key) else { return None };
        let open = entry.get().first;
        match entry.get_mut().others.pop_front() {
            Some(next) => entry.get_mut().first = next,
            None => {
                entry.remove();
            }
        }
        if let OpenRequest::Pending(request) = open {
            self.free.push(request.0);
        }
        Some(open)
    }

    /// Gives up a request. Its number is not used again: nobody waits for it.
    pub(crate) fn release(&mut self, key: RequestKey) -> bool {
        let was_persistent = self.persistent.remove(&key).is_some();
        let open = self.end(key);
        if let Some(OpenRequest::Pending(_)) = open {
            self.free.pop();
        }
        was_persistent || open.is_some()
    }

    /// Ends the requests of a wait.
    pub(crate) fn complete(&mut self, keys: &[RequestKey], completed: &Completed) -> Result<WaitEnd, String> {
        let places: Vec<usize> = match completed {
            Completed::All => (0..keys.len()).collect(),
            Completed::One(place) => return self.complete_one(keys, *place),
            Completed::Some(places) => places.clone(),
            Completed::Unknown => {
                let oldest = keys.iter().position(|&key| self.is_open(key));
                return oldest.map_or(Ok(WaitEnd::default()), |place| self.complete_one(keys, place));
            }
        };
        let mut done = Vec::with_capacity(places.len());
        for place in places {
            let key = *keys.get(place).ok_or_else(|| beyond(place, keys.len()))?;
            match self.end(key) {
                Some(OpenRequest::Pending(request)) => done.push((place, request)),
                Some(OpenRequest::Nothing) => {}
                None if self.persistent.contains_key(&key) => {}
                None => return Err(never_begun(key)),
            }
        }
        let op = match done.as_slice() {
            [] => None,
            [(_, request)] => Some(Op::Wait { request: *request }),
            several => Some(Op::Waitall { requests: several.iter().map(|&(_, request)| request).collect() }),
        };
        Ok(WaitEnd { op, done })
    }

    /// Ends the one request of several that has completed.
    fn complete_one(&mut self, keys: &[RequestKey], place: usize) -> Result<WaitEnd, String> {
        let key = *keys.get(place).ok_or_else(|| beyond(place, keys.len()))?;
        let mut requests = Vec::new();
        let mut ours = None;
        let mut named: BTreeMap<RequestKey, usize> = BTreeMap::new();
        for (at, &key) in keys.iter().enumerate() {
            let occurrence = named.entry(key).or_default();
            let open = self.open.get(&key).and_then(|name| name.get(*occurrence));
            *occurrence += 1;
            if at == place {
                ours = open;
            }
            if let Some(OpenRequest::Pending(request)) = open {
                requests.push((at, request));
            }
        }
        let Some(ours) = ours else {
            return if self.persistent.contains_key(&key) {
                Ok(WaitEnd::default())
            } else {
                Err(never_begun(key))
            };
        };
        self.take(key, ours);
        let OpenRequest::Pending(request) = ours else { return Ok(WaitEnd::default()) };
        self.free.push(request.0);
        let done = vec![(place, request)];
        let op = match requests.len() {
            1 => Op::Wait { request },
            _ => Op::Waitany {
                completed: requests.iter().position(|&(at, _)| at == place).unwrap_or(0) as u32,
                requests: requests.into_iter().map(|(_, request)| request).collect(),
            },
        };
        Ok(WaitEnd { op: Some(op), done })
    }

    /// Takes out one of the open requests of a name.
    fn take(&mut self, key: RequestKey, request: OpenRequest) {
        let Entry::Occupied(mut entry) = self.open.entry(key) else { return };
        let name = entry.get_mut();
        if name.first != request {
            name.others.retain(|&other| other != request);
        } else if let Some(next) = name.others.pop_front() {
            name.first = next;
        } else {
            entry.remove();
        }
    }

    /// Ends all requests that are open.
    pub(crate) fn complete_open(&mut self) -> Vec<RequestId> {
        let names = std::mem::take(&mut self.open).into_values();
        let open = names.flat_map(|name| std::iter::once(name.first).chain(name.others));
        let mut requests: Vec<_> = open
            .filter_map(|open| match open {
                OpenRequest::Pending(request) => Some(request),
                OpenRequest::Nothing => None,
            })
            .collect();
        requests.sort_unstable();
        self.free.extend(requests.iter().rev().map(|request| request.0));
        requests
    }
}

fn beyond(place: usize, requests: usize) -> String {
    format!("request {place} of a list of {requests} has completed; copy the file again, or trace it again")
}

fn never_begun(key: RequestKey) -> String {
    format!(
        "waits for request {key}, which no call that is read has begun; the file is damaged, or the program \
         calls what its tracer does not know: trace it without"
    )
}

//! The program's pending operations, and what a wait waits for.
//!
//! A blocked wait keeps no list: the requests it waits for carry a mark, and a count of them says
//! when it is over.
//!
//! Waitany: the recorded program went on with one particular request. With recorded wildcards the
//! replay waits for that one. With free wildcards any of them will do; if it is another than the
//! recorded one, the two exchange names, so that the program's later waits still find one pending
//! operation each.

use crate::error::MsgError;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_trace::op::{RequestId, StreamId};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum RequestState {
    /// Under way.
    Pending,
    /// Under way, and waited for by this stream.
    Waited(StreamId),
    /// Complete, and not yet waited for.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Request {
    id: RequestId,
    state: RequestState,
}

/// The blocked wait of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct BlockedWait {
    /// The number of requests that carry its mark.
    waited: u32,
    mode: WaitMode,
}

/// The waits of a rank's streams while one is at work.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct ParkedWaits {
    /// The stream at work.
    stream: StreamId,
    /// That of the stream at work is of no meaning.
    waits: Vec<BlockedWait>,
}

/// The condition that ends a blocked wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum WaitMode {
    /// All requests with the mark.
    #[default]
    All,
    /// One of the requests with the mark, to be known by this name from then on.
    Any(RequestId),
}

/// The pending operation `pending` is known as `name` from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Renamed {
    pub pending: RequestId,
    pub name: RequestId,
}

/// The requests of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    /// In ascending order of id: numbers are dense in real traces, but a table indexed by number
    /// would let one wild number take all memory.
    table: VecDeque<Request>,
    /// That of the stream at work.
    wait: BlockedWait,
    /// Of a rank that has changed its stream.
    parked: Option<Box<ParkedWaits>>,
}

impl Requests {
    /// Another stream is at work from now on.
    pub fn switch_to(&mut self, stream: StreamId) {
        let ParkedWaits { stream: at_work, waits } = &mut **self.parked.get_or_insert_default();
        let most = at_work.index().max(stream.index());
        if waits.len() <= most {
            waits.resize(most + 1, BlockedWait::default());
        }
        waits[at_work.index()] = std::mem::replace(&mut self.wait, waits[stream.index()]);
        *at_work = stream;
    }

    /// The stream at work.
    #[inline]
    pub fn stream(&self) -> StreamId {
        self.parked.as_ref().map_or(StreamId::FIRST, |parked| parked.stream)
    }

    /// The wait of a stream.
    fn wait_of(&mut self, stream: StreamId) -> &mut BlockedWait {
        match &mut self.parked {
            Some(parked) if parked.stream != stream => &mut parked.waits[stream.index()],
            _ => &mut self.wait,
        }
    }

    /// An operation starts. Errors where its number is in use.
    pub fn open(&mut self, id: RequestId) -> Result<(), MsgError> {
        let request = Request { id, state: RequestState::Pending };
        match self.find(id) {
            Ok(_) => return Err(MsgError::RequestInUse { request: id }),
            Err(place) if place == self.table.len() => self.table.push_back(request),
            Err(place) => self.table.insert(place, request),
        }
        Ok(())
    }

    /// An operation has completed. A waitany that this ends may have to rename another.
    pub fn complete(&mut self, id: RequestId) -> Option<Renamed> {
        let place = self.find(id).ok()?;
        let RequestState::Waited(stream) = self.table[place].state else {
            self.table[place].state = RequestState::Done;
            return None;
        };
        match self.wait_of(stream).mode {
            WaitMode::All => {
                self.table.remove(place);
                self.wait_of(stream).waited -= 1;
                None
            }
            WaitMode::Any(name) => {
                let mark = RequestState::Waited(stream);
                for request in self.table.iter_mut().filter(|request| request.state == mark) {
                    request.state = RequestState::Pending;
                }
                *self.wait_of(stream) = BlockedWait::default();
                self.consume(place, name)
            }
        }
    }

    /// Waits for `id`, beside what is waited for already.
    pub fn wait(&mut self, id: RequestId) -> Result<(), MsgError> {
        let place = self.find(id).map_err(|_| MsgError::UnknownRequest { request: id })?;
        match self.table[place].state {
            RequestState::Done => drop(self.table.remove(place)),
            RequestState::Waited(_) => return Err(MsgError::UnknownRequest { request: id }),
            RequestState::Pending => {
                self.table[place].state = RequestState::Waited(self.stream());
                self.wait.waited += 1;
            }
        }
        Ok(())
    }

    /// Waits for any of `ids`, of which the recorded program got `recorded`. Those not in use are
    /// passed over, as MPI does with null requests; `recorded` must be in use.
    pub fn wait_any(&mut self, ids: &[RequestId], recorded: RequestId) -> Result<Option<Renamed>, MsgError> {
        let own = self.find(recorded).map_err(|_| MsgError::UnknownRequest { request: recorded })?;
        let done = |place: &usize| self.table[*place].state == RequestState::Done;
        let others = ids.iter().filter_map(|id| self.find(*id).ok());
        if let Some(place) = std::iter::once(own).chain(others).find(done) {
            return Ok(self.consume(place, recorded));
        }
        for id in ids {
            let Ok(place) = self.find(*id) else { continue };
            if self.table[place].state == RequestState::Pending {
                self.table[place].state = RequestState::Waited(self.stream());
                self.wait.waited += 1;
            }
        }
        self.wait.mode = WaitMode::Any(recorded);
        Ok(None)
    }

    /// Whether a wait is blocked.
    pub fn is_waiting(&self) -> bool {
        self.wait.waited > 0
    }

    /// The number of requests that blocked waits still wait for.
    pub fn waited(&self) -> u32 {
        let parked = self.parked.iter().flat_map(|parked| parked.waits.iter().enumerate());
        let of_others = parked.filter(|(stream, _)| *stream != self.stream().index());
        self.wait.waited + of_others.map(|(_, wait)| wait.waited).sum::<u32>()
    }

    /// Whether the blocked wait waits for `id`.
    pub fn is_waited(&self, id: RequestId) -> bool {
        self.find(id).is_ok_and(|place| self.table[place].state == RequestState::Waited(self.stream()))
    }

    /// The number of requests that have not been waited for.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The complete request at `place` ends a waitany under the name `name`.
    fn consume(&mut self, place: usize, name: RequestId) -> Option<Renamed> {
        let completed = self.table[place].id;
        if completed == name {
            self.table.remove(place);
            return None;
        }
        // The one that the program believes complete goes on under the other's name.
        self.table[place].state = RequestState::Pending;
        let own = self.find(name).ok()?;
        self.table.remove(own);
        Some(Renamed { pending: name, name: completed })
    }

    #[inline]
    fn find(&self, id: RequestId) -> Result<usize, usize> {
        let Some(front) = self.table.front() else { return Err(0) };
        // Numbers mostly follow each other.
        let place = id.0.wrapping_sub(front.id.0) as usize;
        match self.table.get(place) {
            Some(request) if request.id == id => Ok(place),
            None if self.table.back().is_some_and(|back| back.id < id) => Err(self.table.len()),
            _ => self.table.binary_search_by_key(&id, |request| request.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RequestId = RequestId(0);
    const B: RequestId = RequestId(1);

    #[test]
    fn a_waitall_ends_with_the_last_of_its_requests() {
        let mut requests = Requests::default();
        for id in [B, A] {
            requests.open(id).unwrap();
        }
        requests.complete(A);
        requests.wait(A).unwrap();
        requests.wait(B).unwrap();
        assert!(requests.is_waiting() && requests.is_waited(B));
        assert_eq!(requests.waited(), 1);
        requests.complete(B);
        assert!(!requests.is_waiting());
        assert_eq!(requests.len(), 0);
    }

    #[test]
    fn a_number_is_free_again_only_after_its_wait() {
        let mut requests = Requests::default();
        requests.open(A).unwrap();
        requests.complete(A);
        assert_eq!(requests.open(A), Err(MsgError::RequestInUse { request: A }));
        requests.wait(A).unwrap();
        assert_eq!(requests.wait(A), Err(MsgError::UnknownRequest { request: A }));
        requests.open(A).unwrap();
    }

    /// Catches a waitany that consumes one request and leaves the program waiting for it again.
    #[test]
    fn a_free_waitany_exchanges_names_with_the_recorded_request() {
        for before in [true, false] {
            let mut requests = Requests::default();
            requests.open(A).unwrap();
            requests.open(B).unwrap();
            let renamed = if before {
                requests.complete(B);
                requests.wait_any(&[A, B], A).unwrap()
            } else {
                assert_eq!(requests.wait_any(&[A, B], A).unwrap(), None);
                assert!(requests.is_waiting());
                requests.complete(B)
            };
            assert_eq!(renamed, Some(Renamed { pending: A, name: B }));
            assert!(!requests.is_waiting());
            requests.wait(B).unwrap();
            assert!(requests.is_waiting());
            requests.complete(B);
            assert!(!requests.is_waiting());
        }
    }
}

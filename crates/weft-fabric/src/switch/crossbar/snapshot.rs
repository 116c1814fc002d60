//! A crossbar switch as a snapshot of the run has it.

use super::{Crossbar, InputBuffers};
use crate::arbiter::islip::Islip;
use crate::build::MOST_CHANNELS;
use crate::switch::Ports;
use crate::switch::patience::{Debt, Patience};
use crate::switch::pool::{Buffered, Pool};
use serde::{Deserialize, Serialize, Serializer};

/// How a switch is written: packets by their queues, since their places in the pool depend on which of those
/// that came before were [passed on](Crossbar::pass) without one.
#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot<Ports, Islip, Requests, Debts> {
    ports: Ports,
    queued: Vec<(u32, Vec<Buffered>)>,
    requests_per_output: u32,
    islip: Islip,
    requests: Requests,
    debts: Debts,
}

impl<B: InputBuffers> Serialize for Crossbar<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let queues = self.buffers.queues().iter().zip(0..).filter(|(queue, _)| !queue.is_empty());
        Snapshot {
            ports: &self.ports,
            queued: queues.map(|(queue, place)| (place, queue.packets(&self.pool).collect())).collect(),
            requests_per_output: self.requests_per_output,
            islip: &self.islip,
            requests: &self.requests,
            debts: self.patience.debts(),
        }
        .serialize(serializer)
    }
}

/// A snapshot that is none of a switch.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    #[error("a packet in queue {0}, which the switch does not have")]
    Queue(u32),
    #[error("{found} words of requests instead of {expected}")]
    Requests { found: usize, expected: usize },
    #[error("outputs that owe something to nobody, or keep the same input")]
    Debts,
    #[error("{requests} requests for an output of a switch of {ports} ports")]
    Channels { requests: u32, ports: usize },
}

impl<B: InputBuffers> TryFrom<Snapshot<Ports, Option<Box<Islip>>, Box<[u64]>, Vec<Option<Debt>>>>
    for Crossbar<B>
{
    type Error = SnapshotError;

    fn try_from(
        snapshot: Snapshot<Ports, Option<Box<Islip>>, Box<[u64]>, Vec<Option<Debt>>>,
    ) -> Result<Crossbar<B>, SnapshotError> {
        let Snapshot { ports, queued, requests_per_output, islip, requests, debts } = snapshot;
        let outputs = ports.port.len();
        // At most as many virtual channels as a network may have: what follows takes memory for all of them.
        if requests_per_output as usize > outputs * MOST_CHANNELS as usize {
            return Err(SnapshotError::Channels { requests: requests_per_output, ports: outputs });
        }
        let words = requests_per_output.div_ceil(64);
        let expected = outputs * words as usize;
        if requests.len() != expected {
            return Err(SnapshotError::Requests { found: requests.len(), expected });
        }
        let mut buffers = B::new(requests_per_output as usize, outputs);
        let mut pool = Pool::new();
        for (place, packets) in queued {
            let queue = buffers.queues_mut().get_mut(place as usize).ok_or(SnapshotError::Queue(place))?;
            for packet in packets {
                if queue.push(&mut pool, &packet) {
                    (queue.head_room, queue.head_vc) = (packet.room, packet.packet.vc);
                }
            }
        }
        let waits = |(output, debt): (usize, &Option<Debt>)| {
            debt.is_none_or(|Debt { request, .. }| {
                u32::from(request) < requests_per_output && !buffers.queue(request.into(), output).is_empty()
            })
        };
        let vc_shift = (requests_per_output / (outputs as u32).max(1)).max(1).ilog2();
        let patience = (debts.len() == outputs && debts.iter().enumerate().all(waits))
            .then(|| Patience::of(debts, vc_shift))
            .flatten()
            .ok_or(SnapshotError::Debts)?;
        Ok(Crossbar { ports, pool, buffers, islip, requests, patience, requests_per_output, words })
    }
}

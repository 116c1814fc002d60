//! A crossbar switch as a snapshot of the run has it.

use super::{Crossbar, InputBuffers};
use crate::arbiter::ArbiterState;
use crate::build::MAX_CHANNELS;
use crate::channel::ChannelNumbers;
use crate::switch::SwitchState;
use crate::switch::buffer::{Buffered, PacketBuffer};
use crate::switch::starvation::{PassedOver, Starvation};
use serde::{Deserialize, Serialize, Serializer};

/// How a switch is written: packets by their queues, since their places in the buffer depend on which of
/// those that came before were [passed on](Crossbar::pass) without one.
#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot<SwitchState, Arbiter, Requests, PassedOver> {
    state: SwitchState,
    queued: Vec<(u32, Vec<Buffered>)>,
    requests_per_output: u32,
    arbiter: Arbiter,
    requests: Requests,
    passed_over: PassedOver,
}

impl<B: InputBuffers> Serialize for Crossbar<B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let queues = self.queues.queues().iter().zip(0..).filter(|(queue, _)| !queue.is_empty());
        Snapshot {
            state: &self.state,
            queued: queues.map(|(queue, place)| (place, queue.packets(&self.buffer).collect())).collect(),
            requests_per_output: self.requests_per_output,
            arbiter: &self.arbiter,
            requests: &self.requests,
            passed_over: self.starvation.all_passed_over(),
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
    #[error("outputs that have passed over nobody, or reserve the same input")]
    PassedOver,
    #[error("{requests} requests for an output of a switch of {ports} ports")]
    Channels { requests: u32, ports: usize },
}

impl<B: InputBuffers>
    TryFrom<Snapshot<SwitchState, Option<Box<ArbiterState>>, Box<[u64]>, Vec<Option<PassedOver>>>>
    for Crossbar<B>
{
    type Error = SnapshotError;

    fn try_from(
        snapshot: Snapshot<SwitchState, Option<Box<ArbiterState>>, Box<[u64]>, Vec<Option<PassedOver>>>,
    ) -> Result<Crossbar<B>, SnapshotError> {
        let Snapshot { state, queued, requests_per_output, arbiter, requests, passed_over } = snapshot;
        let (inputs, outputs) = (state.ports.len(), state.links());
        // At most as many virtual channels as a network may have: what follows takes memory for all of them.
        if requests_per_output as usize > inputs * MAX_CHANNELS as usize || outputs > inputs {
            return Err(SnapshotError::Channels { requests: requests_per_output, ports: inputs });
        }
        let words = requests_per_output.div_ceil(64);
        let expected = outputs * words as usize;
        if requests.len() != expected {
            return Err(SnapshotError::Requests { found: requests.len(), expected });
        }
        let mut queues = B::new(requests_per_output as usize, outputs);
        let mut buffer = PacketBuffer::new();
        for (place, packets) in queued {
            let queue = queues.queues_mut().get_mut(place as usize).ok_or(SnapshotError::Queue(place))?;
            for packet in packets {
                if queue.push(&mut buffer, &packet) {
                    (queue.head_space, queue.head_vc) = (packet.space, packet.packet.channel().vc);
                }
            }
        }
        let waits = |(output, entry): (usize, &Option<PassedOver>)| {
            entry.is_none_or(|PassedOver { request, .. }| {
                output < outputs
                    && u32::from(request) < requests_per_output
                    && !queues.queue(request.into(), output).is_empty()
            })
        };
        let channels = ChannelNumbers::new((requests_per_output / (inputs as u32).max(1)).max(1));
        let starvation = (passed_over.len() == inputs && passed_over.iter().enumerate().all(waits))
            .then(|| Starvation::resume(passed_over, channels))
            .flatten()
            .ok_or(SnapshotError::PassedOver)?;
        Ok(Crossbar { state, buffer, queues, arbiter, requests, starvation, requests_per_output, words })
    }
}

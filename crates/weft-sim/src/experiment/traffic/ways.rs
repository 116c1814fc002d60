//! `--breakdown`: how much of the latency of a pattern's messages went into each leg of their way.
//!
//! ```text
//!  hops, stages of an epoch ─┐
//!  messages delivered in it ─┴─► pieces of each message ──► sums by leg
//! ```
//! A pattern has no program, so a message is posted when it arrives at its source, and waits for the
//! interface from then on. Records of messages that are under way are kept for the next epoch, all others
//! are let go.

use crate::experiment::ExperimentError;
use crate::experiment::path::{leg_times, pace};
use std::collections::BTreeSet;
use weft_fabric::HopRecord;
use weft_machine::Machine;
use weft_msg::EnvelopeKind;
use weft_nic::Stage;
use weft_topo::Layout;
use weft_units::RankId;
use weft_workload::path::{LegTimes, PathTrace, way_time};
use weft_workload::replay::{MessageId, PostedMessage, Record};
use weft_workload::traffic::{MessageReport, TrafficOutput};

/// Memory that records of messages under way may take.
const LIMIT_BYTES: usize = 4 << 30;

/// The ways of the messages of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    /// Of messages that are under way.
    hops: Vec<HopRecord>,
    stages: Vec<Stage>,
    /// Over all messages that count.
    times: LegTimes,
    messages: u64,
}

impl Ways {
    /// Takes what a part of the network has recorded.
    pub fn take(&mut self, output: &mut TrafficOutput) {
        self.hops.extend(output.hops.drain(..).filter(|hop| hop.is_watched));
        self.stages.append(&mut output.stages);
    }

    /// These messages were delivered. Whether they count: they do not while the network warms up.
    ///
    /// # Errors
    /// More memory for what is under way than may be.
    pub fn deliver(
        &mut self,
        messages: &[MessageReport],
        counts: bool,
        (machine, layout): (&Machine, &Layout),
    ) -> Result<(), ExperimentError> {
        let id = |message: &MessageReport| MessageId { source: message.source, number: message.number };
        let delivered: BTreeSet<MessageId> = messages.iter().map(id).collect();
        let is_over = |source, number| delivered.contains(&MessageId { source, number });
        let over = |hop: &mut HopRecord| is_over(hop.source, hop.message);
        let hops = self.hops.extract_if(.., over).collect();
        let stages = self.stages.extract_if(.., |stage| is_over(stage.source, stage.message)).collect();
        if counts {
            let post = |message: &MessageReport| PostedMessage {
                message: id(message),
                rank: RankId(message.source.0),
                to: RankId(message.destination.0),
                kind: EnvelopeKind::Eager,
                payload: message.bytes,
                at: message.created_at,
                after: 0,
            };
            let record = Record { posts: messages.iter().map(post).collect(), ..Record::default() };
            let trace = PathTrace::new(record, hops, stages, pace(machine));
            for message in messages {
                if let Some(way) = way_time(&trace, id(message), message.delivered) {
                    self.times += leg_times(&way, layout);
                    self.messages += 1;
                }
            }
        }
        let bytes = size_of::<HopRecord>() * self.hops.len() + size_of::<Stage>() * self.stages.len();
        if bytes > LIMIT_BYTES {
            return Err(ExperimentError::input(format!(
                "--breakdown: the records of messages under way take more than {} GiB; take a lower --load, \
                 or leave it out",
                LIMIT_BYTES >> 30
            )));
        }
        Ok(())
    }

    /// The sums by leg, and the messages that they are of.
    pub fn sums(&self) -> (LegTimes, u64) {
        (self.times, self.messages)
    }
}

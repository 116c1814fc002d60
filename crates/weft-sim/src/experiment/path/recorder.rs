//! Collects what a run records, within a limit of memory.

use crate::experiment::ExperimentError;
use weft_fabric::HopRecord;
use weft_machine::{Fabric, InterfacePace, Machine};
use weft_nic::Stage;
use weft_units::{Span, Time};
use weft_workload::path::{Pace, PathTrace};
use weft_workload::replay::{Finish, PostedMessage, RankStep, Record, ReplayOutput};

/// Memory that a record may take: sorted, it takes no more.
const LIMIT_BYTES: usize = 4 << 30;

/// The record so far.
#[derive(Default)]
pub(crate) struct PathRecorder {
    record: Record,
    hops: Vec<HopRecord>,
    stages: Vec<Stage>,
}

impl PathRecorder {
    /// Takes what a part of the run has recorded by the virtual time `now`.
    ///
    /// # Errors
    /// A record that takes too much memory.
    pub fn take(&mut self, output: &mut ReplayOutput, now: Time) -> Result<(), ExperimentError> {
        self.record.append(std::mem::take(&mut output.record));
        self.hops.extend(output.hops.drain(..).filter(|hop| hop.is_watched));
        self.stages.append(&mut output.stages);
        if self.bytes() > LIMIT_BYTES {
            let us = (now - Time::ZERO).as_us_f64();
            return Err(ExperimentError::input(format!(
                "at {us:.1} us of virtual time the record of the critical path takes more than {} GiB; \
                 explain the last part of the run with --last, such as --last 1ms",
                LIMIT_BYTES >> 30
            )));
        }
        Ok(())
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        let Record { steps, posts, finishes } = &self.record;
        size_of::<RankStep>() * steps.len()
            + size_of::<PostedMessage>() * posts.len()
            + size_of::<Finish>() * finishes.len()
            + size_of::<HopRecord>() * self.hops.len()
            + size_of::<Stage>() * self.stages.len()
    }

    /// Sorts it.
    pub fn finish(self, pace: Pace) -> PathTrace {
        PathTrace::new(self.record, self.hops, self.stages, pace)
    }
}

/// At what pace packets of one message follow each other on a machine.
pub(crate) fn pace(machine: &Machine) -> Pace {
    let interface = machine.nic.model().pace(machine.packet.payload);
    let InterfacePace { send_packet, receive_packet, cycle: interface_cycle } = interface;
    let switch_cycle = match &machine.fabric {
        Fabric::Packet { switch, .. } => switch.clock.cycles(1),
        Fabric::Ideal(_) => Span::ZERO,
    };
    Pace {
        packet_payload: machine.packet.payload,
        receive_packet,
        send_packet,
        switch_cycle,
        interface_cycle,
    }
}

//! The tables of a result: what each row says.
//!
//! The first column of every table is `run`: a command that measures several loads and seeds makes
//! several runs, each with a virtual time of its own, and lists them in `run.json` under `rows`.
//! Quantities come from the checked types, so a column's unit cannot be another than its type's.

use crate::row::{Row, row};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_units::{BitRate, Bytes, EndpointId, Energy, PacketCounts, PortId, RankId, Span, SwitchId, Time};

/// Levels of the tables [`RateRow`] and [`QueueRow`]: the coarsest has intervals 10,000 times as long as the
/// finest.
pub const TELEMETRY_LEVELS: u32 = 5;
/// Intervals of a level that make one of the next.
pub const INTERVALS_PER_COARSER: u32 = 10;

row! {
    /// One message that was delivered, in the order of delivery.
    MessageRow in "messages" version 2
        ordered by |row| (row.run, row.delivered_ps, row.source_endpoint.0.into(), row.sequence);
    /// Index of the run in `run.json`.
    run: u32,
    /// Time at which its last byte was delivered.
    delivered_ps: Time,
    /// The endpoint that sent it.
    source_endpoint: EndpointId,
    /// The endpoint that received it.
    destination_endpoint: EndpointId,
    /// Counts the messages of the source endpoint: with it, it names the message.
    sequence: u64,
    /// The rank that sent it; null for traffic patterns.
    source_rank: Option<RankId>,
    /// The rank that received it; null for traffic patterns.
    destination_rank: Option<RankId>,
    /// The tag; null for traffic patterns and for messages of collectives.
    tag: Option<i32>,
    /// The kind of traffic: `pattern`, `flow` (of a scenario), `point-to-point`, `collective` or `one-sided`.
    class: String,
    /// The group of flows in the scenario's file; null elsewhere.
    group: Option<String>,
    /// Bytes of the program or pattern, without headers.
    payload_bytes: Bytes,
    /// When it was handed to the messaging layer or, for a pattern, generated.
    posted_ps: Time,
    /// Links that its last packet crossed, injection and ejection included.
    hops: u32,
}

row! {
    /// One flow: all messages of a run from one endpoint to another; of a scenario, those of one group.
    FlowRow in "flows" version 2
        ordered by |row| {
            let destination = row.destination_endpoint.map_or(0, |to| u64::from(to.0) + 1);
            (row.run, Time::ZERO, row.source_endpoint.0.into(), destination)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint that sent its messages.
    source_endpoint: EndpointId,
    /// The endpoint that received them; null where the pattern draws a new destination for every message.
    destination_endpoint: Option<EndpointId>,
    /// The group of flows in the scenario's file; null elsewhere.
    group: Option<String>,
    /// Messages delivered.
    messages: u64,
    /// Bytes delivered, without headers.
    payload_bytes: Bytes,
    /// Time at which the first of them was posted.
    first_start_ps: Time,
    /// Time at which the last of them was delivered.
    last_completion_ps: Time,
    /// Mean of the completion times (from posted to delivered), rounded down.
    completion_mean_ps: Span,
    /// 99th percentile of the completion times.
    completion_p99_ps: Span,
    /// The longest completion time.
    completion_max_ps: Span,
}

row! {
    /// One direction of one link, from an endpoint or a switch to an endpoint or a switch. Links that
    /// leave endpoints come first, by endpoint; then those that leave switches, by switch and port.
    LinkRow in "links" version 4
        ordered by |row| {
            let from = match (row.from_endpoint, row.from_switch) {
                (Some(endpoint), _) => u64::from(endpoint.0),
                (None, switch) => 1 << 32 | switch.map_or(0, |switch| u64::from(switch.0)),
            };
            (row.run, Time::ZERO, from, row.from_port.map_or(0, |port| port.0.into()))
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint it leaves; null where it leaves a switch.
    from_endpoint: Option<EndpointId>,
    /// The switch it leaves; null where it leaves an endpoint.
    from_switch: Option<SwitchId>,
    /// The port of that switch.
    from_port: Option<PortId>,
    /// The endpoint it ends at; null where it ends at a switch.
    to_endpoint: Option<EndpointId>,
    /// The switch it ends at; null where it ends at an endpoint.
    to_switch: Option<SwitchId>,
    /// The port of that switch.
    to_port: Option<PortId>,
    /// The kind of link, as the topology calls it.
    class: String,
    /// Bits per second on the line, coding included.
    rate_bits_per_second: BitRate,
    /// Packets that it carried, those that it lost included.
    packets: u64,
    /// Bytes of these packets: header, payload and footer.
    packet_bytes: Bytes,
    /// Time in which it was sending.
    busy_ps: Span,
    /// `busy_ps` as a share of the measured time.
    utilization: f64,
    /// Time in which a packet stood ready for it while the buffer behind it was full.
    stall_ps: Span,
    /// Time in which the sender of one of its virtual channels was paused.
    paused_ps: Span,
    /// Pause frames that told its sender to stop or to go on.
    pause_frames: u64,
    /// The most that one virtual channel's buffer behind it has held, under pause and drop; 0 under credits.
    most_held_bytes: Bytes,
    /// Packets to which it did something: the columns of [`LinkColumns`](weft_units::ledger::LinkColumns).
    counts: PacketCounts,
    /// Energy that it took; null where the machine says nothing of its power, as in the columns that follow.
    energy_pj: Option<Energy>,
    /// Time in which it slept, in low power.
    low_power_ps: Option<Span>,
    /// Time in which it slept deeper, off.
    power_off_ps: Option<Span>,
    /// Time in which it woke.
    waking_ps: Option<Span>,
    /// Wake-ups.
    wake_ups: Option<u64>,
}

row! {
    /// One switch or interface of which the machine says the power. Interfaces come first, by endpoint; then
    /// switches. Written where `--tables` names it.
    PartRow in "parts" version 1
        ordered by |row| {
            let part = match (row.endpoint, row.switch) {
                (Some(endpoint), _) => u64::from(endpoint.0),
                (None, switch) => 1 << 32 | switch.map_or(0, |switch| u64::from(switch.0)),
            };
            (row.run, Time::ZERO, part, 0)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint of the interface; null for a switch.
    endpoint: Option<EndpointId>,
    /// The switch; null for an interface.
    switch: Option<SwitchId>,
    /// Packets that have passed: those that a switch has sent on, that an interface has sent or that its link
    /// has carried to it.
    packets: u64,
    /// Bytes of these packets: header, payload and footer.
    packet_bytes: Bytes,
    /// Energy that it took.
    energy_pj: Energy,
}

row! {
    /// One rank of a replayed program.
    RankRow in "ranks" version 1
        ordered by |row| (row.run, Time::ZERO, row.rank.0.into(), 0);
    /// Index of the run in `run.json`.
    run: u32,
    /// The rank.
    rank: RankId,
    /// The endpoint of the host it sat on.
    endpoint: EndpointId,
    /// Time at which its last operation ended.
    end_ps: Time,
    /// Time in computation.
    computation_ps: Span,
    /// Time in the software of the messaging layer.
    communication_ps: Span,
    /// Time waiting for messages and requests.
    wait_ps: Span,
    /// `computation_ps` as a share of the time from its program's start to `end_ps`.
    computation_share: f64,
    /// `communication_ps` as a share of the same.
    communication_share: f64,
    /// `wait_ps` as a share of the same.
    wait_share: f64,
    /// Messages it sent, those of collectives included.
    messages_sent: u64,
    /// Messages it received, those of collectives included.
    messages_received: u64,
    /// Bytes it sent, without headers.
    sent_bytes: Bytes,
    /// Bytes it received, without headers.
    received_bytes: Bytes,
}

row! {
    /// The calls of one operation by one rank.
    CallRow in "calls" version 1
        ordered by |row| (row.run, Time::ZERO, row.rank.0.into(), 0);
    /// Index of the run in `run.json`.
    run: u32,
    /// The rank.
    rank: RankId,
    /// The operation: as traces name it, such as `isend`, and of `weft run` the MPI call, such as `MPI_Send`.
    operation: String,
    /// Calls that have begun. Of `weft run`: those in which the library had something to do.
    calls: u64,
    /// Time in them, waiting included.
    time_ps: Span,
}

row! {
    /// One piece of the time of a message that was delivered, from when it was posted. The pieces of a
    /// message are in the order of time, and the next begins where one ends: their times add up to the
    /// message's `delivered_ps` - `posted_ps`. Written where `--breakdown` is given.
    MessagePieceRow in "pieces" version 2
        ordered by |row| (row.run, row.delivered_ps, row.source_endpoint.0.into(), row.sequence);
    /// Index of the run in `run.json`.
    run: u32,
    /// Time at which the message's last byte was delivered.
    delivered_ps: Time,
    /// The endpoint that sent the message.
    source_endpoint: EndpointId,
    /// Counts the messages of the source endpoint: with it, it names the message.
    sequence: u64,
    /// The message's bytes of the program, without headers.
    payload_bytes: Bytes,
    /// Time at which the piece begins.
    begin_ps: Time,
    /// Duration of the piece.
    time_ps: Span,
    /// The leg of the message's way: `host`, `injection`, `fabric` or `ejection`; `not recorded`.
    leg: String,
    /// The category, as in `weft explain`.
    category: String,
    /// The activity that the time is spent on.
    what: String,
    /// The place: a rank, an interface, a link or a switch.
    place: String,
}

row! {
    /// One link that one packet crossed, with the times at the block before it: an interface, or an input of
    /// a switch. Written where `--tables` names it.
    PacketRow in "packets" version 1
        ordered by |row| (row.run, row.began_ps, row.source_endpoint.0.into(), row.sequence);
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint that sent the packet.
    source_endpoint: EndpointId,
    /// Counts the messages of the source endpoint: with it, it names the packet's message.
    sequence: u64,
    /// The endpoint that the link leaves; null where it leaves a switch.
    from_endpoint: Option<EndpointId>,
    /// The switch that it leaves; null where it leaves an endpoint.
    from_switch: Option<SwitchId>,
    /// The port of that switch.
    from_port: Option<PortId>,
    /// The switch that it ends at; null where it ends at an endpoint.
    to_switch: Option<SwitchId>,
    /// Time at which its head came to the switch; at an endpoint, at which the interface handed the packet
    /// over.
    came_ps: Time,
    /// Time at which enough of it had come to go on: all of it where packets are stored.
    ready_ps: Time,
    /// Time at which its head could have been on the line had nothing else been there.
    could_ps: Time,
    /// Time at which its head was in the output buffer of a switch that has some; elsewhere as `began_ps`.
    crossed_ps: Time,
    /// Time at which its head was on the line.
    began_ps: Time,
    /// Time at which its tail was.
    ended_ps: Time,
    /// Time at which its head was at the far end of the line.
    arrived_ps: Time,
}

row! {
    /// The traffic of one direction of one link in one interval of telemetry; intervals in which it had none
    /// are left out, unless the machine says what its links take. Coarser levels have intervals ten times as
    /// long each, made of the finer ones. Rows are in the order of the ends of intervals. Written where
    /// `--telemetry` is given.
    RateRow in "rates" version 2
        ordered by |row| {
            let from = match (row.from_endpoint, row.from_switch) {
                (Some(endpoint), _) => u64::from(endpoint.0),
                (None, switch) => 1 << 32 | switch.map_or(0, |switch| u64::from(switch.0)),
            };
            let from = u64::from(row.level) << 40 | from;
            (row.run, row.end_ps, from, row.from_port.map_or(0, |port| port.0.into()))
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends.
    end_ps: Time,
    /// The endpoint that the link leaves; null where it leaves a switch.
    from_endpoint: Option<EndpointId>,
    /// The switch that it leaves; null where it leaves an endpoint.
    from_switch: Option<SwitchId>,
    /// The port of that switch.
    from_port: Option<PortId>,
    /// Packets that it began to carry.
    packets: u64,
    /// Bytes of these packets: header, payload and footer.
    packet_bytes: Bytes,
    /// Time in which it was sending. A packet counts when it begins.
    busy_ps: Span,
    /// Time in which a packet stood ready for it while the buffer behind it was full.
    stall_ps: Span,
    /// Time in which the sender of one of its virtual channels was paused.
    paused_ps: Span,
    /// Energy that it took; null where the machine says nothing of its power.
    energy_pj: Option<Energy>,
    /// Time in which it slept, in low power or off; likewise.
    asleep_ps: Option<Span>,
}

row! {
    /// One queue of a switch at the end of an interval of telemetry; empty queues are left out. In coarser
    /// levels it is that of the ten intervals below. Written where `--telemetry` is given.
    QueueRow in "queues" version 1
        ordered by |row| {
            let side = u64::from(row.side != "input");
            let queue = side << 40 | u64::from(row.port.0) << 8 | u64::from(row.virtual_channel);
            (row.run, row.end_ps, u64::from(row.level) << 40 | u64::from(row.switch.0), queue)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends, and at which level 0 looks at the queue.
    end_ps: Time,
    /// The switch.
    switch: SwitchId,
    /// The port.
    port: PortId,
    /// The virtual channel.
    virtual_channel: u32,
    /// `input`: packets that came by the port; `output`: packets that will leave by it.
    side: String,
    /// Packets in it, the most of all looks.
    most_packets: u32,
    /// Bytes of its buffer that they hold, the most of all looks.
    most_held_bytes: Bytes,
    /// Bytes that were held, the mean of all looks.
    mean_held_bytes: Bytes,
}

row! {
    /// One flow in one interval of telemetry: the packets that came. Intervals in which none came are left
    /// out. A flow is all that one endpoint sends another in one traffic class. Coarser levels have intervals
    /// ten times as long each. Written where `--telemetry` is given and `--tables` names it, and for
    /// scenarios.
    FlowRateRow in "flow_rates" version 1
        ordered by |row| {
            let source = u64::from(row.level) << 40 | u64::from(row.source_endpoint.0);
            let destination = u64::from(row.destination_endpoint.0) << 8 | u64::from(row.traffic_class);
            (row.run, row.end_ps, source, destination)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends.
    end_ps: Time,
    /// The endpoint that sends.
    source_endpoint: EndpointId,
    /// The endpoint that receives.
    destination_endpoint: EndpointId,
    /// The traffic class, by its place in `[[switch.classes]]`; 0 where there is none.
    traffic_class: u32,
    /// Packets that came.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
    /// The rate that congestion control allows the flow at the end of the interval; null without control, and
    /// for a flow of which the source has forgotten the rate.
    allowed_bits_per_second: Option<BitRate>,
}

row! {
    /// One job in one interval of telemetry: the packets that came to endpoints of its ranks. Intervals in
    /// which none came are left out. Coarser levels have intervals ten times as long each. Written where
    /// `--telemetry` is given and several traces are replayed; the network counts packets by the endpoints
    /// that send and receive them.
    JobRateRow in "job_rates" version 1
        ordered by |row| {
            let job = row.job.map_or(0, |job| u64::from(job) + 1);
            // Jobs that run alone do so one after another, after all have run together.
            let alone = if row.jobs == 1 { job as u32 } else { 0 };
            (row.run + alone, row.end_ps, row.level.into(), job)
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// Jobs on the machine: 1 in the rows of a job that ran alone, for `--isolated`.
    jobs: u32,
    /// The job, by its place in `rows` of `run.json`; null for packets between endpoints that several jobs
    /// share.
    job: Option<u32>,
    /// 0 for the intervals asked for; each level above has intervals ten times as long.
    level: u32,
    /// Time at which the interval begins.
    begin_ps: Time,
    /// Time at which it ends.
    end_ps: Time,
    /// Packets that came.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
}

row! {
    /// One direction of one link as one job used it. Links that a job did not use are left out. Written where
    /// `--links-by-job` is given.
    JobLinkRow in "job_links" version 1
        ordered by |row| {
            let from = match (row.from_endpoint, row.from_switch) {
                (Some(endpoint), _) => u64::from(endpoint.0),
                (None, switch) => 1 << 32 | switch.map_or(0, |switch| u64::from(switch.0)),
            };
            let port = row.from_port.map_or(0, |port| u64::from(port.0));
            (row.run, Time::ZERO, from, port << 32 | row.job.map_or(0, |job| u64::from(job) + 1))
        };
    /// Index of the run in `run.json`.
    run: u32,
    /// The endpoint that the link leaves; null where it leaves a switch.
    from_endpoint: Option<EndpointId>,
    /// The switch that it leaves; null where it leaves an endpoint.
    from_switch: Option<SwitchId>,
    /// The port of that switch.
    from_port: Option<PortId>,
    /// The switch that it ends at; null where it ends at an endpoint.
    to_switch: Option<SwitchId>,
    /// The job, by its place in `rows` of `run.json`; null for packets between endpoints that several jobs
    /// share.
    job: Option<u32>,
    /// Packets of the job that it carried, acknowledgements included.
    packets: u64,
    /// Their payload.
    payload_bytes: Bytes,
    /// Time in which it was sending them.
    busy_ps: Span,
    /// `busy_ps` as a share of the job's run time; of the longest where the job is null.
    utilization: f64,
}

/// The tables, in the order in which they are listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    /// [`MessageRow`]: large, and not written by default.
    Messages,
    /// [`FlowRow`].
    Flows,
    /// [`LinkRow`].
    Links,
    /// [`RankRow`].
    Ranks,
    /// [`CallRow`].
    Calls,
    /// [`PartRow`]: not written by default.
    Parts,
    /// [`MessagePieceRow`]: very large; `--breakdown` writes it.
    Pieces,
    /// [`PacketRow`]: the largest, and not written by default.
    Packets,
    /// [`RateRow`]; `--telemetry` writes it.
    Rates,
    /// [`QueueRow`]; `--telemetry` writes it.
    Queues,
    /// [`FlowRateRow`]: a row for each pair of endpoints; goes with `--telemetry`.
    #[serde(rename = "flow_rates")]
    FlowRates,
    /// [`JobRateRow`]; `--telemetry` writes it where several traces are replayed.
    #[serde(rename = "job_rates")]
    JobRates,
    /// [`JobLinkRow`]; `--links-by-job` writes it.
    #[serde(rename = "job_links")]
    JobLinks,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 13] = [
        Table::Messages,
        Table::Flows,
        Table::Links,
        Table::Ranks,
        Table::Calls,
        Table::Parts,
        Table::Pieces,
        Table::Packets,
        Table::Rates,
        Table::Queues,
        Table::FlowRates,
        Table::JobRates,
        Table::JobLinks,
    ];
    /// Those that can be asked for by name.
    pub const NAMED: [Table; 8] = [
        Table::Messages,
        Table::Flows,
        Table::Links,
        Table::Ranks,
        Table::Calls,
        Table::Parts,
        Table::Packets,
        Table::FlowRates,
    ];
    /// Those written unless others are asked for.
    pub const DEFAULT: [Table; 4] = [Table::Flows, Table::Links, Table::Ranks, Table::Calls];

    /// As it is written in options; its file is `NAME.parquet`.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Messages => MessageRow::TABLE,
            Table::Flows => FlowRow::TABLE,
            Table::Links => LinkRow::TABLE,
            Table::Ranks => RankRow::TABLE,
            Table::Calls => CallRow::TABLE,
            Table::Parts => PartRow::TABLE,
            Table::Pieces => MessagePieceRow::TABLE,
            Table::Packets => PacketRow::TABLE,
            Table::Rates => RateRow::TABLE,
            Table::Queues => QueueRow::TABLE,
            Table::FlowRates => FlowRateRow::TABLE,
            Table::JobRates => JobRateRow::TABLE,
            Table::JobLinks => JobLinkRow::TABLE,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = String;
    fn from_str(text: &str) -> Result<Table, String> {
        let known = Table::NAMED.map(Table::name).join(", ");
        match Table::ALL.into_iter().find(|table| table.name() == text.trim()) {
            Some(Table::Pieces) => Err(format!("--breakdown writes `pieces`; choose from {known} here")),
            Some(Table::JobLinks) => {
                Err(format!("--links-by-job writes `job_links`; choose from {known} here"))
            }
            Some(table @ (Table::Rates | Table::Queues | Table::JobRates)) => {
                Err(format!("--telemetry writes `{table}`; choose from {known} here"))
            }
            Some(table) => Ok(table),
            None => Err(format!("there is no table `{text}`; choose from {known}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Column;

    /// Catches a column whose unit is not in its name, such as `busy: Span`.
    #[test]
    fn units_end_the_names_of_columns() {
        let all: Vec<Column> = [
            MessageRow::columns(),
            FlowRow::columns(),
            LinkRow::columns(),
            RankRow::columns(),
            CallRow::columns(),
            PartRow::columns(),
            MessagePieceRow::columns(),
            PacketRow::columns(),
            RateRow::columns(),
            QueueRow::columns(),
            JobRateRow::columns(),
            JobLinkRow::columns(),
        ]
        .concat();
        for column in all.iter().filter(|c| !c.unit.is_empty()) {
            assert!(column.name.ends_with(&format!("_{}", column.unit)), "{}", column.name);
        }
        assert!(all.iter().filter(|c| !c.unit.is_empty()).count() > 15);
    }

    #[test]
    fn a_wrong_table_names_the_right_ones() {
        assert_eq!("links".parse(), Ok(Table::Links));
        assert!("hosts".parse::<Table>().unwrap_err().contains("messages, flows, links, ranks"));
        assert!("queues".parse::<Table>().unwrap_err().contains("--telemetry"));
        assert!("pieces".parse::<Table>().unwrap_err().contains("--breakdown"));
    }
}

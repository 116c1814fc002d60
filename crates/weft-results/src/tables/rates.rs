//! The table `rates`.

use crate::row::{entity, row};
use weft_units::{BitRate, Bytes, EndpointId, Energy, PortId, Span, SwitchId, Time};

/// Levels of the tables `rates` and `queues`: the coarsest has intervals 10,000 times as long as the
/// finest.
pub const TELEMETRY_LEVELS: u32 = 5;
/// Intervals of a level that make one of the next.
pub const INTERVALS_PER_COARSER: u32 = 10;

row! {
    /// The traffic of one direction of one link in one interval of telemetry; intervals in which it had none
    /// are left out, unless the machine says what its links take. Coarser levels have intervals ten times as
    /// long each, made of the finer ones. Rows are in the order of the ends of intervals. Written where
    /// `--telemetry` is given.
    RateRow version 3
        written by Option: "--telemetry, such as --telemetry 10us"
        ordered by |row| {
            let from = u64::from(row.level) << 40 | entity(row.from_endpoint, row.from_switch);
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
    /// The rate that the link offers each flow at the end of the interval. Null before a flow has asked for
    /// one, and where congestion control knows no rates of links: only ACC does.
    fair_bits_per_second: Option<BitRate>,
}

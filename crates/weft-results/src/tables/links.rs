//! The table `links`.

use crate::row::{entity, row};
use weft_units::{BitRate, Bytes, EndpointId, Energy, PacketCounts, PortId, Span, SwitchId, Time};

row! {
    /// One direction of one link, from an endpoint or a switch to an endpoint or a switch. Links that
    /// leave endpoints come first, by endpoint; then those that leave switches, by switch and port.
    LinkRow version 4
        written by Default: "--tables links"
        ordered by |row| {
            let port = row.from_port.map_or(0, |port| port.0.into());
            (row.run, Time::ZERO, entity(row.from_endpoint, row.from_switch), port)
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

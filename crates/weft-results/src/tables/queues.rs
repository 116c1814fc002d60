//! The table `queues`.

use crate::row::row;
use weft_units::{Bytes, PortId, SwitchId, Time};

row! {
    /// One queue of a switch in an interval of telemetry; those in which no packet stood are left out. In
    /// coarser levels it is that of the ten intervals below. Written where `--telemetry` is given.
    QueueRow version 2
        written by Option: "--telemetry, such as --telemetry 10us"
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
    /// Time at which it ends.
    end_ps: Time,
    /// The switch.
    switch: SwitchId,
    /// The port.
    port: PortId,
    /// The virtual channel.
    virtual_channel: u32,
    /// `input`: packets that came by the port; `output`: packets that will leave by it.
    side: String,
    /// Packets in it, the most within the interval. One that was granted its output as it came has not stood.
    most_packets: u32,
    /// Bytes of its buffer that packets held, the most within the interval.
    most_held_bytes: Bytes,
    /// Bytes that were held at the ends of the finest intervals, the mean.
    mean_held_bytes: Bytes,
}

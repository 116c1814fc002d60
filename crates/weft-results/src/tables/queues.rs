//! The table `queues`.

use crate::row::row;
use weft_units::{Bytes, PortId, SwitchId, Time};

row! {
    /// One queue of a switch at the end of an interval of telemetry; empty queues are left out. In coarser
    /// levels it is that of the ten intervals below. Written where `--telemetry` is given.
    QueueRow version 1
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

//! The table `packets`.

use crate::row::row;
use weft_units::{EndpointId, PortId, SwitchId, Time};

row! {
    /// One link that one packet crossed, with the times at the block before it: an interface, or an input of
    /// a switch. Written where `--tables` names it.
    PacketRow version 1
        written by Name: "--tables packets"
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
    /// The virtual channel on which it crossed the link.
    virtual_channel: u32,
    /// Links that it had crossed before, injection included.
    hops: u32,
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

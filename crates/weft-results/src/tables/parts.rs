//! The table `parts`.

use crate::row::{entity, row};
use weft_units::{Bytes, EndpointId, Energy, SwitchId, Time};

row! {
    /// One switch or interface of which the machine says the power. Interfaces come first, by endpoint; then
    /// switches. Written where `--tables` names it.
    PartRow version 1
        written by Name: "--tables links,parts"
        ordered by |row| (row.run, Time::ZERO, entity(row.endpoint, row.switch), 0);
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

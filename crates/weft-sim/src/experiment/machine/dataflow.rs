//! A machine with the Communication IP, as programs of dataflow kernels see it.

use super::super::{ExperimentError, MachineInput};
use super::checked;
use weft_machine::{Machine, Nic};
use weft_nic::CommunicationIpParameters;
use weft_nic::communication_ip::HostSync;
use weft_units::Bytes;

/// The machine, as its kernels see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataflowMachine {
    /// Nodes along x, y and z.
    pub nodes: [u32; 3],
    /// Cycles from a packet's footer until its kernel has it.
    pub dispatcher: u32,
    /// Cycles from a request of a kernel to the first word of DDR, wherever the model has its buffers.
    pub ddr_latency: u32,
    /// Payload of the largest packet.
    pub payload: Bytes,
    /// Copies of buffers between host and card; `None`: they take no time.
    pub sync: Option<HostSync>,
}

/// The Communication IP of a machine.
///
/// # Errors
/// Everything that is wrong with the machine, and one with another interface.
pub fn dataflow(input: &MachineInput) -> Result<DataflowMachine, ExperimentError> {
    let machine = checked(input)?;
    let ip = communication_ip(&machine)?;
    let sync = match &machine.nic {
        Nic::CommunicationIp(ip) => ip.sync,
        _ => None,
    };
    let mut in_ddr = input.clone();
    in_ddr.sets.push("nic.buffers=ddr".to_owned());
    let ddr = communication_ip(&checked(&in_ddr)?)?;
    Ok(DataflowMachine {
        nodes: ip.lattice.sizes,
        dispatcher: ip.intra_node.dispatcher,
        ddr_latency: ddr.memory.latency,
        payload: ip.payload,
        sync,
    })
}

fn communication_ip(machine: &Machine) -> Result<CommunicationIpParameters, ExperimentError> {
    match &machine.nic {
        Nic::CommunicationIp(ip) => Ok(ip.parameters(&machine.topology)),
        _ => Err(ExperimentError::input(
            "kernels need the Communication IP: leave nic.model = \"communication-ip\" as it is",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::machine::input;
    use weft_units::{BitRate, Span};

    /// Catches constants of the memory that is not in use, and coordinates that are exchanged.
    #[test]
    fn kernels_see_their_machine() {
        let sets = ["topology.dims=[4,3]", "nic.ddr.latency=7 cycles"].map(str::to_owned);
        let seen = dataflow(&input("communication-ip", &sets).unwrap()).unwrap();
        let sync = HostSync { latency: Span::from_us(8), rate: BitRate::from_gigabits(96) };
        let payload = Bytes::new(4096);
        let expected =
            DataflowMachine { nodes: [4, 3, 1], dispatcher: 13, ddr_latency: 7, payload, sync: Some(sync) };
        assert_eq!(seen, expected);
        let error = dataflow(&input("exanest", &[]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("nic.buffers") || error.contains("Communication IP"), "{error}");
    }
}

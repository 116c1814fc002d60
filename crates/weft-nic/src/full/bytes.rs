//! Real bytes in the interface: what it tells memory of packets, and what it tells its host of memory.

use super::{Due, FullNic, Hardware};
use crate::data::{DataError, DataFault, Memory};
use crate::host::{Host, HostContext as _};
use crate::observer::Observer;
use serde::{Deserialize, Serialize};
use weft_fabric::{InterfaceContext, Packet};
use weft_units::EndpointId;

/// The memory of a host, and what is wrong in it that the host has not been told of.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Serialize + serde::de::DeserializeOwned")]
pub(super) struct DataOfHost<H> {
    pub memory: Memory,
    wrong: Vec<(DataError, Option<H>)>,
}

impl<H: Copy> DataOfHost<H> {
    /// Of a host in a run with this seed.
    pub fn new(seed: u64) -> DataOfHost<H> {
        DataOfHost { memory: Memory::new(seed), wrong: Vec::new() }
    }

    /// Notes a fault of a message, with what its sender said with it.
    fn note(
        &mut self,
        (from, message): (EndpointId, u32),
        at: EndpointId,
        fault: DataFault,
        header: Option<H>,
    ) {
        let error = DataError { source_endpoint: from, message, destination: at, fault };
        self.wrong.push((error, header));
    }

    /// A message is whole.
    fn whole(&mut self, due: &Due<H>, here: EndpointId, output: &mut impl Observer) {
        let Due { from, number, bytes, header, .. } = *due;
        match self.memory.compare(from, number) {
            Ok(()) => output.compared(bytes),
            Err(fault) => self.note((from, number), here, fault, header),
        }
    }

    /// A reduction among boards of `board` members is done.
    pub fn reduced(
        &mut self,
        token: u32,
        values: &[u8],
        board: u32,
        here: EndpointId,
        output: &mut impl Observer,
    ) {
        match self.memory.reduced(token, values, board) {
            (_, Ok(bytes)) => output.compared(bytes),
            (number, Err(fault)) => self.note((here, number), here, fault, None),
        }
    }
}

impl<H: Host> Hardware<H> {
    /// The packet of a small message is written into the entry that the mailbox has found for it.
    pub(super) fn write_small(&mut self, packet: &Packet) {
        if let Some(data) = &mut self.data {
            let (message, bytes) = ((packet.source, packet.message), packet.payload().get());
            data.memory.write(message, (0, 0), bytes, packet.bad);
        }
    }

    /// A cell is written at `offset` of where its message goes.
    pub(super) fn write_cell(&mut self, packet: &Packet, offset: u64, here: EndpointId) {
        let Some(data) = &mut self.data else { return };
        let Packet { source, message, bad, .. } = *packet;
        let cell = (source, message, packet.born.as_ps());
        data.memory.write_cell(cell, offset, packet.payload().get(), bad);
        // A message that is not expected any more will not be compared either.
        if !self.headers.contains_key(&(source, message))
            && let Some(fault) = data.memory.wrong(source, message)
        {
            data.memory.forget(source, message);
            data.note((source, message), here, fault, None);
        }
    }

    /// A message has come whole: its bytes are compared.
    pub(super) fn compare(
        &mut self,
        due: &Due<H::Header>,
        context: &mut InterfaceContext<'_, '_, FullNic<H>>,
    ) {
        if let Some(data) = &mut self.data {
            data.whole(due, context.endpoint(), context.output());
        }
    }
}

impl<H: Host> FullNic<H> {
    /// Tells the host what is wrong in its memory.
    #[inline]
    pub(super) fn tell_of_data(
        &mut self,
        parameters: &(super::FullParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Some(data) = &mut self.hardware.data else { return };
        for (error, header) in std::mem::take(&mut data.wrong) {
            self.with_host(parameters, context, |host, _, at_host| {
                debug_assert_eq!(error.destination, at_host.endpoint());
                host.damaged(&error, header.as_ref(), at_host);
            });
        }
    }
}

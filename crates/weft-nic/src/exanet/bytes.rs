//! Real bytes in the interface: the memory of its host, and the errors in it that the host does not know yet.

use crate::data::{DataError, DataFault, Memory};
use crate::host::Delivered;
use crate::observer::Observer;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// The memory of a host, with the errors that the host has not been told of.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Serialize + serde::de::DeserializeOwned")]
pub(super) struct DataOfHost<H> {
    pub(super) memory: Memory,
    wrong: Vec<(DataError, Option<H>)>,
}

/// The result of a reduction.
pub(super) struct Reduced<'a> {
    pub(super) token: u32,
    pub(super) values: &'a [u8],
    /// Endpoints of a board.
    pub(super) board: u32,
}

impl<H: Copy> DataOfHost<H> {
    /// The memory of a host in a run with this seed.
    pub(super) fn new(seed: u64) -> DataOfHost<H> {
        DataOfHost { memory: Memory::new(seed), wrong: Vec::new() }
    }

    /// Keeps an error for the host, with the header of its message.
    pub(super) fn keep(&mut self, error: DataError, header: Option<H>) {
        self.wrong.push((error, header));
    }

    /// The errors that the host has not been told of.
    pub(super) fn take_errors(&mut self) -> Vec<(DataError, Option<H>)> {
        std::mem::take(&mut self.wrong)
    }

    /// Compares a message that has come whole to `here` with its source's bytes.
    pub(super) fn compare(&mut self, message: &Delivered<H>, here: EndpointId, output: &mut impl Observer) {
        let Delivered { from, number, bytes, header, .. } = *message;
        match self.memory.compare(from, number) {
            Ok(()) => output.compared(bytes),
            Err(fault) => self.keep(error((from, number), here, fault), header),
        }
    }

    /// Compares the result of a reduction at `here` with the order that is written down.
    pub(super) fn reduced(&mut self, result: &Reduced<'_>, here: EndpointId, output: &mut impl Observer) {
        match self.memory.reduced(result.token, result.values, result.board) {
            (_, Ok(bytes)) => output.compared(bytes),
            (number, Err(fault)) => self.keep(error((here, number), here, fault), None),
        }
    }

    /// A write into a message that is not expected any more: it will not be compared either.
    pub(super) fn check_late(&mut self, message: (EndpointId, u32), here: EndpointId) {
        if let Some(fault) = self.memory.wrong(message.0, message.1) {
            self.memory.forget(message.0, message.1);
            self.keep(error(message, here, fault), None);
        }
    }
}

fn error((from, message): (EndpointId, u32), here: EndpointId, fault: DataFault) -> DataError {
    DataError { source_endpoint: from, message, destination: here, fault }
}

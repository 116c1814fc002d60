//! Whether a block was built for a machine: what differs is refused, with the mend.

use crate::library::{RtlError, RtlLibrary};
use crate::words::cycles;
use std::fmt::{self, Display};
use weft_nic::ExanetParameters;
use weft_nic::iommu::FaultModel;
use weft_units::{Bytes, Clock, Span};

/// The clocks at which the time-outs of the RTL are those of the machines, in MHz: that of TR-488 §4.2, and
/// that of §9 for wider buses.
const CLOCKS: [u64; 2] = [150, 200];
/// Bytes of a word of the host port there.
pub(crate) const WORD: u64 = 16;
/// The factor by which the time-outs of all blocks grow.
pub(crate) const BACKOFF: u32 = 2;
/// Blocks of a transfer that are under way at a time.
pub(crate) const OUTSTANDING_BLOCKS: u32 = 2;

/// Checks that header and footer of packets are a word each, as in all blocks.
///
/// # Errors
/// The machine has others.
pub fn check_packet_words(header: Bytes, footer: Bytes) -> Result<(), RtlError> {
    let words = [("packet.header", header), ("packet.footer", footer)];
    let other = words.into_iter().find(|(_, bytes)| *bytes != Bytes::new(WORD));
    other.map_or(Ok(()), |(key, bytes)| Err(RtlError::PacketWord { key, bytes, word: Bytes::new(WORD) }))
}

/// A number of cycles, as machine files write it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycles(pub u64);

impl Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.0)
    }
}

/// A block of the library, beside that of a machine.
pub(crate) struct Fit<'a> {
    pub library: &'a RtlLibrary,
    pub block: &'static str,
    /// `nic.clock`.
    pub clock: &'a Clock,
}

impl<'a> Fit<'a> {
    /// A block and a machine.
    pub fn new(
        library: &'a RtlLibrary,
        block: &'static str,
        parameters: &'a ExanetParameters,
    ) -> Result<Fit<'a>, RtlError> {
        library.check_bus(block, parameters)?;
        Ok(Fit { library, block, clock: &parameters.mailbox.clock })
    }

    /// A number that is a parameter of the RTL.
    ///
    /// # Errors
    /// The machine has another.
    pub fn same(&self, key: &'static str, machine: u64, parameter: &'static str) -> Result<(), RtlError> {
        let rtl = self.library.parameter(self.block, parameter)?;
        if machine == rtl { Ok(()) } else { Err(self.differs(key, parameter, [&machine, &rtl])) }
    }

    /// A number that is a parameter of the RTL, and that machines need not have.
    ///
    /// # Errors
    /// The machine has another, or none.
    pub fn same_or_none(
        &self,
        key: &'static str,
        machine: Option<u32>,
        parameter: &'static str,
    ) -> Result<(), RtlError> {
        match machine {
            Some(machine) => self.same(key, machine.into(), parameter),
            None => {
                let rtl = self.library.parameter(self.block, parameter)?;
                let why = format!("{key} is not given, and {rtl} in the RTL");
                Err(self.unfit(why, &format!("add --set {key}={rtl}")))
            }
        }
    }

    /// A number that is a parameter of the RTL, and one for all machines in the model.
    ///
    /// # Errors
    /// The model has another.
    pub fn same_as_model(&self, what: &str, model: usize, parameter: &'static str) -> Result<(), RtlError> {
        let rtl = self.library.parameter(self.block, parameter)?;
        if model as u64 == rtl {
            return Ok(());
        }
        let (block, why) = (self.block, format!("the model has {model} {what}, and the RTL {rtl}"));
        Err(self
            .unfit(why, &format!("build it with {model} (rtl/{block}/{block}.sv, parameter {parameter})")))
    }

    /// Cycles that are a parameter of the RTL, and that machines have in cycles.
    ///
    /// # Errors
    /// The machine has others.
    pub fn same_cycles(
        &self,
        key: &'static str,
        machine: u32,
        parameter: &'static str,
    ) -> Result<(), RtlError> {
        let rtl = self.library.parameter(self.block, parameter)?;
        let (machine, rtl) = (Cycles(machine.into()), Cycles(rtl));
        if machine == rtl { Ok(()) } else { Err(self.differs(key, parameter, [&machine, &rtl])) }
    }

    /// Cycles that are a parameter of the RTL, and that machines have as a time.
    ///
    /// # Errors
    /// The machine has another time, or a clock of which it is no whole number of cycles.
    pub fn same_time(
        &self,
        key: &'static str,
        machine: Span,
        parameter: &'static str,
    ) -> Result<(), RtlError> {
        let rtl = self.library.parameter(self.block, parameter)?;
        let equal = cycles(self.clock, machine) == Some(rtl);
        // Of other clocks such a time may be no whole number of cycles.
        let clock = CLOCKS[usize::from(self.library.is_wide())];
        if !equal && self.clock.hertz() != Some(clock * 1_000_000) {
            let why = format!("{key} of {machine} is not the {rtl} cycles of the RTL at nic.clock");
            return Err(self.unfit(why, &format!("add --set nic.clock={clock}MHz")));
        }
        if equal { Ok(()) } else { Err(self.differs(key, parameter, [&machine, &self.clock.cycles(rtl)])) }
    }

    /// A value that the RTL has without a parameter.
    ///
    /// # Errors
    /// The machine has another.
    pub fn fixed<T: PartialEq + Display>(&self, key: &str, machine: T, rtl: T) -> Result<(), RtlError> {
        if machine == rtl {
            return Ok(());
        }
        let why = format!("{key} is {machine}, and {rtl} in the RTL");
        Err(self.unfit(why, &format!("add --set '{key}={rtl}'")))
    }

    /// A time that the RTL needs for cycles of its own.
    ///
    /// # Errors
    /// The machine has a shorter one.
    pub fn at_least(&self, key: &str, machine: Span, least: Span) -> Result<(), RtlError> {
        if machine >= least {
            return Ok(());
        }
        let why = format!("{key} is {machine}, and the RTL needs {least}");
        Err(self.unfit(why, &format!("add --set {key}={least}, or more")))
    }

    /// A time in which the RTL has nothing else to do.
    ///
    /// # Errors
    /// The machine has a longer one.
    pub fn at_most(&self, key: &str, machine: Span, most: Span) -> Result<(), RtlError> {
        if machine <= most {
            return Ok(());
        }
        let why = format!("{key} is {machine}, and {most} at most in the RTL");
        Err(self.unfit(why, &format!("add --set {key}={most}, or less")))
    }

    /// The RTL has pages to which processes store a word of 16 bytes per cycle.
    ///
    /// # Errors
    /// The machine's processors store other words, or at another clock.
    pub fn stores_words(&self, parameters: &ExanetParameters) -> Result<(), RtlError> {
        let port = &parameters.host_port;
        let path = port.store_path();
        if path.word == Bytes::new(WORD) && path.clock == *self.clock {
            return Ok(());
        }
        if port.stores.is_some() {
            let why = format!("pages are stored to by words of {WORD} bytes in the RTL, and here by others");
            return Err(self.unfit(why, "use a machine with nic.model=exanet, such as exanest"));
        }
        self.fixed("nic.host_port.word", port.word, Bytes::new(WORD))
    }

    /// The RTL has channels in pages of processes, to which these store words.
    ///
    /// # Errors
    /// The machine has contexts instead, or other words.
    pub fn has_pages(&self, parameters: &ExanetParameters) -> Result<(), RtlError> {
        if parameters.rdma.send.contexts.is_some() {
            let why = "the units of RDMA have contexts here, and in the RTL channels of pages".to_owned();
            return Err(self.unfit(why, "use a machine with nic.model=exanet, such as exanest"));
        }
        self.stores_words(parameters)
    }

    /// The RTL does not know which pages are mapped.
    ///
    /// # Errors
    /// Pages of the machine may not be.
    pub fn maps_all(&self, parameters: &ExanetParameters) -> Result<(), RtlError> {
        if parameters.iommu.faults == FaultModel::Off {
            return Ok(());
        }
        let why = "the RTL is not told which pages are mapped".to_owned();
        Err(self.unfit(why, "add --set nic.iommu.faults=off"))
    }

    /// A reason why it does not fit, and the mend.
    pub fn unfit(&self, why: String, mend: &str) -> RtlError {
        RtlError::Unfit { block: self.block, why, mend: mend.to_owned() }
    }

    /// A key whose value for the machine is not that of the RTL.
    fn differs(&self, key: &'static str, parameter: &'static str, values: [&dyn Display; 2]) -> RtlError {
        let [machine, rtl] = values.map(|value| value.to_string());
        RtlError::Parameter { block: self.block, key, machine, rtl, parameter }
    }
}

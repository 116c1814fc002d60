//! The blocks that there is RTL of: a row of `blocks!` and a file of its name for each.

use crate::difference::Difference;
use crate::endpoint::BlockPlace;
use crate::library::{Instance, RtlError, RtlLibrary};
use std::str::FromStr;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::ports::PortEvent;

/// A block of the RTL beside its model.
pub(crate) trait BlockInStep: Send {
    /// Checks that the RTL was built for the block of a machine.
    ///
    /// # Errors
    /// The key to change, or the parameter of the RTL.
    fn check(library: &RtlLibrary, parameters: &ExanetParameters) -> Result<(), RtlError>
    where
        Self: Sized;

    /// The block of an endpoint, after its reset.
    ///
    /// # Errors
    /// The library has not what it needs.
    fn begin(library: &Arc<RtlLibrary>, place: BlockPlace) -> Result<Self, RtlError>
    where
        Self: Sized;

    /// Cycles by which it is stepped behind the run: what happens at a time is reported up to a packet later.
    fn behind() -> u64
    where
        Self: Sized,
    {
        32
    }

    /// Takes what has crossed a port of the model's block.
    fn take(&mut self, event: &PortEvent);

    /// The next cycle in which something may happen; `None`: the block is idle.
    fn next_cycle(&self) -> Option<u64>;

    /// The next cycle.
    ///
    /// # Errors
    /// An output that differs.
    fn step(&mut self) -> Result<(), Difference>;

    /// The RTL.
    fn rtl(&self) -> &Instance;
}

macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident $word:literal $in_step:path;)*) => {
        /// A block that there is RTL of.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum BlockName {
            $($(#[$doc])* $name,)*
        }

        impl BlockName {
            /// All of them.
            pub const ALL: &[BlockName] = &[$(BlockName::$name,)*];

            /// The name, as in `rtl/`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(BlockName::$name => $word,)*
                }
            }

            /// Cycles by which it is stepped behind the run.
            pub(crate) fn behind(self) -> u64 {
                match self {
                    $(BlockName::$name => <$in_step>::behind(),)*
                }
            }

            pub(crate) fn check(
                self,
                library: &RtlLibrary,
                parameters: &ExanetParameters,
            ) -> Result<(), RtlError> {
                match self {
                    $(BlockName::$name => <$in_step>::check(library, parameters),)*
                }
            }

            pub(crate) fn begin(
                self,
                library: &Arc<RtlLibrary>,
                place: BlockPlace,
            ) -> Result<Box<dyn BlockInStep>, RtlError> {
                Ok(match self {
                    $(BlockName::$name => Box::new(<$in_step>::begin(library, place)?),)*
                })
            }
        }
    };
}

blocks! {
    /// TR-488 §4.7.
    Allreduce "allreduce" crate::allreduce::AllreduceInStep;

    /// TR-488 §4.4.
    Mailbox "mailbox" crate::mailbox::MailboxInStep;

    /// TR-488 §4.4.
    Packetizer "packetizer" crate::packetizer::PacketizerInStep;

    /// The receive unit of TR-488 §4.5.
    RdmaReceive "rdma_receive" crate::rdma_receive::RdmaReceiveInStep;

    /// The send unit of TR-488 §4.5.
    Segmentation "segmentation" crate::segmentation::SegmentationInStep;
}

impl FromStr for BlockName {
    type Err = RtlError;

    fn from_str(text: &str) -> Result<BlockName, RtlError> {
        let found = BlockName::ALL.iter().find(|block| block.name() == text);
        found.copied().ok_or_else(|| RtlError::UnknownBlock(text.to_owned(), known()))
    }
}

/// The names of all blocks, in words.
fn known() -> String {
    let names: Vec<_> = BlockName::ALL.iter().map(|block| block.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

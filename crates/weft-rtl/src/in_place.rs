//! The RTL of blocks in the place of the model's.

use crate::block::BlockName;
use crate::library::{RtlError, RtlLibrary};
use crate::mailbox::MailboxInPlace;
use crate::packetizer::PacketizerInPlace;
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_nic::ExanetParameters;
use weft_nic::edge_form::{EdgeBlockSource, EdgeBlocks};
use weft_units::{Clock, EndpointId};

/// The blocks whose model has [edge form](weft_nic::edge_form).
const EDGE_FORM: [BlockName; 2] = [BlockName::Mailbox, BlockName::Packetizer];

/// The blocks of a library that decide in the place of the model's, at some endpoints or at all.
pub struct RtlInPlace {
    library: Arc<RtlLibrary>,
    blocks: BTreeSet<BlockName>,
    at: Option<BTreeSet<EndpointId>>,
    clock: Clock,
}

impl RtlInPlace {
    /// The blocks of a machine, for which the library was built.
    ///
    /// # Errors
    /// A library that has not what its blocks need, or a block whose model is in no edge form.
    pub fn new(
        library: &Arc<RtlLibrary>,
        blocks: &BTreeSet<BlockName>,
        parameters: &ExanetParameters,
        at: Option<BTreeSet<EndpointId>>,
    ) -> Result<RtlInPlace, RtlError> {
        if let Some(other) = blocks.iter().find(|block| !EDGE_FORM.contains(block)) {
            return Err(RtlError::NotInPlace(other.name()));
        }
        let (library, blocks) = (Arc::clone(library), blocks.clone());
        let in_place = RtlInPlace { library, blocks, at, clock: parameters.mailbox.clock };
        // What is there for one endpoint is there for all.
        in_place.begin(EndpointId(0))?;
        Ok(in_place)
    }

    fn begin(&self, endpoint: EndpointId) -> Result<EdgeBlocks, RtlError> {
        let RtlInPlace { library, blocks, clock, .. } = self;
        let mut begun = EdgeBlocks::default();
        if blocks.contains(&BlockName::Mailbox) {
            begun.mailbox = Some(Box::new(MailboxInPlace::new(library, endpoint, *clock)?));
        }
        if blocks.contains(&BlockName::Packetizer) {
            begun.packetizer = Some(Box::new(PacketizerInPlace::new(library, endpoint, *clock)?));
        }
        Ok(begun)
    }
}

impl EdgeBlockSource for RtlInPlace {
    fn blocks(&self, endpoint: EndpointId) -> EdgeBlocks {
        if self.at.as_ref().is_some_and(|at| !at.contains(&endpoint)) {
            return EdgeBlocks::default();
        }
        self.begin(endpoint).expect("the library has what the first endpoint's blocks needed")
    }
}

//! The machine that was last made of a graph. Its distances take long, and whoever checks a machine file asks
//! for its size, its virtual channels and the machine itself one after the other.

use super::{GraphLayout, GraphParameters};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A memory of one machine, shared by all copies of a description. It follows from the rest: it is no part of
/// what makes two descriptions equal.
#[derive(Clone, Default)]
pub struct Built(Arc<Mutex<Option<Remembered>>>);

/// A machine, and the parameters that it was made of.
struct Remembered {
    parameters: GraphParameters,
    layout: Arc<GraphLayout>,
}

impl Built {
    /// The machine of some parameters: the one that is remembered, where it is theirs.
    pub(super) fn get_or<E>(
        &self,
        parameters: &GraphParameters,
        build: impl FnOnce() -> Result<GraphLayout, E>,
    ) -> Result<Arc<GraphLayout>, E> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remembered) = &*last
            && remembered.parameters == *parameters
        {
            return Ok(remembered.layout.clone());
        }
        let layout = Arc::new(build()?);
        // The copy has a memory of its own: with this one it would hold itself.
        let mut parameters = parameters.clone();
        parameters.file.built = Built::default();
        *last = Some(Remembered { parameters, layout: layout.clone() });
        Ok(layout)
    }
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Built")
    }
}

impl PartialEq for Built {
    fn eq(&self, _: &Built) -> bool {
        true
    }
}

impl Eq for Built {}

//! A result with the map of its machine, and what has been read of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weft_analysis::view::{Frames, LinkNumbers, Quantity};
use weft_results::{ResultsError, StoredResult};
use weft_sim::experiment::machine::MachineMap;
use weft_sim::experiment::read_request;

/// Frames that are kept: each has up to 64 MB.
const KEPT_FRAMES: usize = 4;

/// A number per link, by run and quantity.
type LinkTotals = BTreeMap<(u32, Quantity), Arc<Vec<f32>>>;

/// Frames by run and quantity, the one that was used last at the end.
type KeptFrames = Vec<((u32, Quantity), Arc<Frames>)>;

/// The map of a machine, made when it is first asked for; or why there is none.
pub(crate) type SharedMap = Arc<OnceLock<Result<MachineMap, String>>>;

/// A result that is shown.
pub struct Shown {
    /// The result.
    pub result: StoredResult,
    /// A timeline of its ranks, as `--timeline` of the run wrote it.
    pub timeline: Option<PathBuf>,
    map: SharedMap,
    frames: Mutex<KeptFrames>,
    totals: Mutex<LinkTotals>,
}

impl Shown {
    /// A result with its timeline, where there is one.
    pub fn new(result: StoredResult, timeline: Option<PathBuf>) -> Shown {
        Shown::with_map(result, timeline, SharedMap::default())
    }

    /// The same on a machine of which there may be a map.
    pub(crate) fn with_map(result: StoredResult, timeline: Option<PathBuf>, map: SharedMap) -> Shown {
        let (frames, totals) = (Mutex::default(), Mutex::default());
        Shown { result, timeline, map, frames, totals }
    }

    /// The map, for another result on the same machine.
    pub(crate) fn share_map(&self) -> SharedMap {
        self.map.clone()
    }

    /// The map of its machine, made when it is first asked for; or why there is none.
    pub fn map(&self) -> Result<&MachineMap, String> {
        let made = || {
            let request = read_request(&self.result.directory).map_err(|error| error.to_string())?;
            MachineMap::of(request.machine()).map_err(|error| error.to_string())
        };
        self.map.get_or_init(made).as_ref().map_err(String::clone)
    }

    /// A quantity over time.
    ///
    /// # Errors
    /// As of [`Frames::of`].
    pub fn frames(&self, of: (u32, Quantity), numbers: &LinkNumbers) -> Result<Arc<Frames>, ResultsError> {
        // Held while they are read, so that two requests do not read them twice.
        let mut kept = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|(known, _)| *known == of) {
            let used = kept.remove(place);
            let frames = used.1.clone();
            kept.push(used);
            return Ok(frames);
        }
        let frames = Arc::new(Frames::of(&self.result, of, numbers)?);
        if kept.len() == KEPT_FRAMES {
            kept.remove(0);
        }
        kept.push((of, frames.clone()));
        Ok(frames)
    }

    /// A quantity of a whole run.
    ///
    /// # Errors
    /// As of [`weft_analysis::view::totals`].
    pub fn totals(&self, of: (u32, Quantity), numbers: &LinkNumbers) -> Result<Arc<Vec<f32>>, ResultsError> {
        let mut kept = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&of) {
            return Ok(known.clone());
        }
        let totals = Arc::new(weft_analysis::view::totals(&self.result, of, numbers)?);
        // Those of another run are not looked at again.
        kept.retain(|(run, _), _| *run == of.0);
        kept.insert(of, totals.clone());
        Ok(totals)
    }
}

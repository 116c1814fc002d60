//! Regions of interest: the parts of a program that `MPI_Pcontrol` marks.
//!
//! ```text
//!   MPI_Pcontrol(1) ─── region 1 ─── MPI_Pcontrol(2) ─── region 2 ─── MPI_Pcontrol(0)
//! ```
//! A rank is in one region at most: a level above 0 opens that region, and closes another that is open. Level
//! 0 closes. Levels below 0 have no meaning here. A region that is open already goes on.
//!
//! A trace has the level as the text of a marker, `pcontrol 1`.

use crate::kind::Kind;
use crate::op::Op;
use crate::source::{ReadError, TraceSource, streams};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use weft_units::RankId;

/// The text of a marker before the level.
const PREFIX: &str = "pcontrol ";

/// A region of interest, by the level that opens it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Region(NonZeroU32);

impl Region {
    /// The region that a level of `MPI_Pcontrol` opens; `None`: it opens none.
    pub fn of_level(level: i32) -> Option<Region> {
        u32::try_from(level).ok().and_then(NonZeroU32::new).map(Region)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Text that is not the number of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotARegion(String);

impl fmt::Display for NotARegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotARegion(text) = self;
        write!(f, "`{text}` is not a region; write the level that opens it, a number from 1 to 2147483647")
    }
}

impl std::error::Error for NotARegion {}

impl FromStr for Region {
    type Err = NotARegion;

    fn from_str(text: &str) -> Result<Region, NotARegion> {
        let level = text.parse().ok().and_then(Region::of_level);
        level.ok_or_else(|| NotARegion(text.chars().take(40).collect()))
    }
}

/// The effect of a call of `MPI_Pcontrol` on the regions of its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionMark {
    /// Opens a region; another that is open is closed.
    Opens(Region),
    /// Closes the region that is open, if one is.
    Closes,
}

impl RegionMark {
    /// The mark of a level; `None`: levels below 0 have no meaning.
    pub fn of_level(level: i32) -> Option<RegionMark> {
        match level {
            0 => Some(RegionMark::Closes),
            level => Region::of_level(level).map(RegionMark::Opens),
        }
    }

    /// The text of a marker for a call with this level.
    pub fn text(level: i32) -> String {
        format!("{PREFIX}{level}")
    }

    /// The mark that the text of a marker stands for; `None`: it is of no level of `MPI_Pcontrol`.
    pub fn of_text(text: &str) -> Option<RegionMark> {
        RegionMark::of_level(text.strip_prefix(PREFIX)?.parse().ok()?)
    }
}

/// The regions that ranks of a trace open. A trace without markers is not read.
///
/// # Errors
/// A trace that cannot be read.
pub fn regions(trace: &dyn TraceSource) -> Result<BTreeSet<Region>, ReadError> {
    let mut regions = BTreeSet::new();
    if trace.operations_of(Kind::Marker) == 0 {
        return Ok(regions);
    }
    for rank in (0..trace.ranks()).map(RankId) {
        for stream in streams(trace, rank) {
            for op in trace.stream(rank, stream)? {
                let Op::Marker { text } = op? else { continue };
                if let Some(RegionMark::Opens(region)) = RegionMark::of_text(&text) {
                    regions.insert(region);
                }
            }
        }
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a level that is taken for another, and text of a program that is taken for a level.
    #[test]
    fn levels_open_and_close() {
        let one = Region::of_level(1).unwrap();
        assert_eq!(RegionMark::of_text("pcontrol 1"), Some(RegionMark::Opens(one)));
        assert_eq!(RegionMark::of_text(&RegionMark::text(0)), Some(RegionMark::Closes));
        for other in ["pcontrol -1", "pcontrol", "pcontrol ", "pcontrol one", "step 1", "1", ""] {
            assert_eq!(RegionMark::of_text(other), None, "{other}");
        }
        assert_eq!("1".parse(), Ok(one));
        assert_eq!("2147483647".parse::<Region>().unwrap().to_string(), "2147483647");
        for wrong in ["0", "-1", "2147483648", "one", ""] {
            assert!(wrong.parse::<Region>().unwrap_err().to_string().contains("1 to 2147483647"), "{wrong}");
        }
    }
}

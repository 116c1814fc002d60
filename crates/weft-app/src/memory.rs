//! The memory that the ranks of a kernel need, and the largest box of points for which a host has enough.

use crate::app::AppError;
use crate::apps;
use crate::kernel::Kernel;
use crate::name::KernelName;
use crate::options::Options;
use weft_units::Bytes;

/// The bytes that a rank of a kernel keeps in memory; `None`: no law says.
///
/// # Errors
/// There is no such kernel.
pub fn rank_memory(name: &KernelName) -> Result<Option<Bytes>, AppError> {
    let app = apps::find(&name.app)?;
    let Some(memory) = app.memory else { return Ok(None) };
    let options = Options::new(app, name.ranks, &name.options)?;
    memory(&options).map(Some)
}

/// Lengths below the largest that fits which are tried: applications take multiples of a few points.
const TRIED_LENGTHS: u64 = 64;

/// The option that makes the box of points of a kernel as large as `limit` bytes a rank allow, in the same
/// shape; `None`: none does.
pub fn largest_box(name: &KernelName, limit: Bytes) -> Option<String> {
    let app = apps::find(&name.app).ok()?;
    let option = if name.options.contains_key("global") { "global" } else { "local" };
    let default = || app.options.iter().find(|known| known.name == option).map(|known| known.default);
    let text = name.options.get(option).map(String::as_str).or_else(default)?;
    let extents: Vec<u64> = text.split('x').map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let longest = extents.iter().copied().max()?;
    let of_length = |length: u64| {
        let extents = extents.iter().map(|extent| (extent * length / longest).max(1).to_string());
        extents.collect::<Vec<_>>().join("x")
    };
    let smaller = |length: u64| {
        let mut smaller = name.clone();
        smaller.options.insert(option.to_owned(), of_length(length));
        smaller
    };
    let is_enough =
        |length: u64| rank_memory(&smaller(length)).ok().flatten().is_some_and(|needed| needed <= limit);
    let lengths = (1..longest).collect::<Vec<_>>();
    // Fewer points need less memory, whatever else is wrong with them.
    let most = lengths.partition_point(|length| {
        rank_memory(&smaller(*length)).map_or(true, |needed| needed.is_none_or(|needed| needed <= limit))
    });
    let tried = lengths[..most].iter().rev().take(TRIED_LENGTHS as usize);
    let found = tried.copied().find(|length| is_enough(*length) && Kernel::new(&smaller(*length)).is_ok())?;
    Some(format!("{option}={}", of_length(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a box that does not fit, or a larger one that does.
    #[test]
    fn the_largest_box_fits_and_the_next_does_not() {
        let limit = Bytes::new(4 << 30);
        for (text, expected) in [
            // 2 x 8 x 645^3 are less than 4 GiB, 646^3 are not.
            ("halo3d@4,local=1000x1000x1000", "local=645x645x645"),
            // 714.7 bytes a row, multiples of 8.
            ("hpcg@8,local=256x256x256", "local=176x176x176"),
            ("hpcg@8,global=512x512x512", "global=352x352x352"),
            // 372 bytes a node: 226 on a side of a rank.
            ("minife@8,global=600x600x600", "global=450x450x450"),
        ] {
            let name: KernelName = text.parse().unwrap();
            assert!(rank_memory(&name).unwrap().unwrap() > limit, "{text}");
            assert_eq!(largest_box(&name, limit).as_deref(), Some(expected), "{text}");
        }
        let storm: KernelName = "broadcast-storm@8".parse().unwrap();
        assert_eq!(rank_memory(&storm).unwrap(), None);
    }
}

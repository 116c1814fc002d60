//! The memory that the ranks of a kernel need, and the largest problem for which a host has enough.

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
/// Options that say how large a problem is: those that are only there where they are given, and the others.
const GIVEN_SIZES: [&str; 2] = ["global", "total"];
const SIZES: [&str; 3] = ["local", "atoms", "records"];

/// The option that makes the problem of a kernel as large as `limit` bytes a rank allow, a box in the same
/// shape; `None`: none does.
pub fn largest_problem(name: &KernelName, limit: Bytes) -> Option<String> {
    let app = apps::find(&name.app).ok()?;
    let default_of =
        |option: &str| app.options.iter().find(|known| known.name == option).map(|known| known.default);
    let given = GIVEN_SIZES.into_iter().find(|option| name.options.contains_key(*option));
    let option = given.or_else(|| SIZES.into_iter().find(|option| default_of(option).is_some()))?;
    let text = name.options.get(option).map(String::as_str).or_else(|| default_of(option))?;
    let extents: Vec<u64> = text.split('x').map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let longest = extents.iter().copied().max()?;
    let of_length = |length: u64| {
        let by = |extent: u64| (u128::from(extent) * u128::from(length) / u128::from(longest)).max(1);
        extents.iter().map(|extent| by(*extent).to_string()).collect::<Vec<_>>().join("x")
    };
    let smaller = |length: u64| {
        let mut smaller = name.clone();
        smaller.options.insert(option.to_owned(), of_length(length));
        smaller
    };
    let needed = |length: u64| rank_memory(&smaller(length)).ok().flatten();
    // Less of it needs less memory, whatever else is wrong with it.
    let (mut most, mut too_much) = (0, longest);
    while too_much - most > 1 {
        let middle = most + (too_much - most) / 2;
        match needed(middle).is_none_or(|needed| needed <= limit) {
            true => most = middle,
            false => too_much = middle,
        }
    }
    // Atoms of all ranks are copies of a benchmark's: those of a rank are multiples of one of its divisors.
    let steps = (1..=apps::LAMMPS_ATOMS).filter(|step| apps::LAMMPS_ATOMS.is_multiple_of(*step));
    let multiples = steps.map(|step| most / step * step).filter(|length| *length > 0);
    let mut tried: Vec<u64> = (1..=most).rev().take(TRIED_LENGTHS as usize).chain(multiples).collect();
    tried.sort_unstable_by(|one, other| other.cmp(one));
    tried.dedup();
    let is_enough = |length: u64| needed(length).is_some_and(|needed| needed <= limit);
    let found =
        tried.into_iter().find(|length| is_enough(*length) && Kernel::new(&smaller(*length)).is_ok())?;
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
            // 1,604 bytes an atom.
            ("lammps@8,atoms=320000000", "atoms=2676000"),
            ("lammps@8,total=32000000000", "total=21408000"),
            // A batch of 100, 16 numbers of 8 bytes a record, and two maps.
            ("som@8,records=100000000000", "records=26843136000"),
        ] {
            let name: KernelName = text.parse().unwrap();
            assert!(rank_memory(&name).unwrap().unwrap() > limit, "{text}");
            assert_eq!(largest_problem(&name, limit).as_deref(), Some(expected), "{text}");
        }
        let storm: KernelName = "broadcast-storm@8".parse().unwrap();
        assert_eq!(rank_memory(&storm).unwrap(), None);
    }
}

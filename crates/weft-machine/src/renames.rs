//! Names that machine files had once: an error for one of them says the new name.

/// A name that has changed.
struct Renamed {
    /// The kind of thing that it names, as [`names!`](crate::read::names) and the tables of `weft-topo` say
    /// it.
    what: &'static str,
    /// The old name.
    old: &'static str,
    /// The new name.
    new: &'static str,
}

/// All of them.
const RENAMED: [Renamed; 2] = [
    Renamed { what: "a model of the interface", old: "simple", new: "overheads" },
    Renamed { what: "a model of the interface", old: "full", new: "exanet" },
];

/// The new name of what `old` once named.
pub(super) fn new_name(what: &str, old: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|renamed| renamed.what == what && renamed.old == old);
    renamed.map(|renamed| renamed.new)
}

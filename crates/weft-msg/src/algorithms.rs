//! Which algorithm carries out which collective: the machine's table.

use crate::collective;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_trace::op::Collective;
use weft_units::Bytes;

/// A way to carry out collectives. Each is described in the file of its name under `collective/`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Algorithm {
    /// Binomial tree.
    Binomial,
    /// Pairwise exchange with partners at distance 1, 2, 4 …
    RecursiveDoubling,
    /// Pairwise exchange of halves with partners at half the distance each time.
    RecursiveHalving,
    /// Neighbour to neighbour around a ring.
    Ring,
    /// Reduce-scatter by halving, then the reverse.
    Rabenseifner,
    /// Distances 1, 2, 4 … with blocks that pass through others.
    Bruck,
    /// Every pair exchanges its block directly, one partner at a time.
    Pairwise,
    /// Everybody directly, many partners at a time.
    Linear,
    /// Tokens at distance 1, 2, 4 …
    Dissemination,
    /// Scatter by a binomial tree, then allgather around a ring.
    ScatterRing,
    /// Scatter by a binomial tree, then allgather by recursive doubling.
    ScatterDoubling,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 11] = [
        Algorithm::Binomial,
        Algorithm::RecursiveDoubling,
        Algorithm::RecursiveHalving,
        Algorithm::Ring,
        Algorithm::Rabenseifner,
        Algorithm::Bruck,
        Algorithm::Pairwise,
        Algorithm::Linear,
        Algorithm::Dissemination,
        Algorithm::ScatterRing,
        Algorithm::ScatterDoubling,
    ];

    /// Its name in machine files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Binomial => "binomial",
            Algorithm::RecursiveDoubling => "recursive-doubling",
            Algorithm::RecursiveHalving => "recursive-halving",
            Algorithm::Ring => "ring",
            Algorithm::Rabenseifner => "rabenseifner",
            Algorithm::Bruck => "bruck",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Linear => "linear",
            Algorithm::Dissemination => "dissemination",
            Algorithm::ScatterRing => "scatter-ring",
            Algorithm::ScatterDoubling => "scatter-doubling",
        }
    }

    /// Whether it can carry out `collective`.
    pub fn performs(self, collective: Collective) -> bool {
        collective::schedule(self).performs().contains(&collective)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;
    fn from_str(name: &str) -> Result<Algorithm, AlgorithmError> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| AlgorithmError::unknown("algorithm", name, Algorithm::ALL.map(Algorithm::name)))
    }
}

/// An entry of a table of algorithms that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// A name that is not known.
    #[error("unknown {what} `{name}`: did you mean `{near}`? ({known})")]
    Unknown {
        /// What was named: "algorithm", "collective" or "table of algorithms".
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest known name.
        near: &'static str,
        /// All known names.
        known: String,
    },
    /// An algorithm that does not carry out the collective.
    #[error("{algorithm} cannot carry out {}: expected one of {expected}", collective_name(*.collective))]
    CannotPerform {
        /// The algorithm.
        algorithm: Algorithm,
        /// The collective.
        collective: Collective,
        /// The names of those that can.
        expected: String,
    },
}

impl AlgorithmError {
    fn unknown(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
    ) -> AlgorithmError {
        let known = known.into_iter();
        let near = known.clone().min_by_key(|candidate| strsim::damerau_levenshtein(candidate, name));
        AlgorithmError::Unknown {
            what,
            name: name.to_owned(),
            near: near.expect("there is at least one known name"),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}

/// The collectives by the names that they have in machine files and on the command line.
pub const COLLECTIVE_NAMES: [(Collective, &str); 20] = [
    (Collective::Barrier, "barrier"),
    (Collective::Broadcast, "broadcast"),
    (Collective::Reduce, "reduce"),
    (Collective::Allreduce, "allreduce"),
    (Collective::Gather, "gather"),
    (Collective::Gatherv, "gatherv"),
    (Collective::Scatter, "scatter"),
    (Collective::Scatterv, "scatterv"),
    (Collective::Allgather, "allgather"),
    (Collective::Allgatherv, "allgatherv"),
    (Collective::Alltoall, "alltoall"),
    (Collective::Alltoallv, "alltoallv"),
    (Collective::ReduceScatter, "reduce-scatter"),
    (Collective::ReduceScatterBlock, "reduce-scatter-block"),
    (Collective::Scan, "scan"),
    (Collective::Exscan, "exscan"),
    (Collective::NeighborAllgather, "neighbor-allgather"),
    (Collective::NeighborAllgatherv, "neighbor-allgatherv"),
    (Collective::NeighborAlltoall, "neighbor-alltoall"),
    (Collective::NeighborAlltoallv, "neighbor-alltoallv"),
];

/// The name of a collective.
pub fn collective_name(collective: Collective) -> &'static str {
    let entry = COLLECTIVE_NAMES.iter().find(|(known, _)| *known == collective);
    entry.map(|(_, name)| *name).expect("every collective has a name")
}

/// The collective of a name.
pub fn collective_of(name: &str) -> Result<Collective, AlgorithmError> {
    let entry = COLLECTIVE_NAMES.iter().find(|(_, known)| *known == name);
    entry
        .map(|(collective, _)| *collective)
        .ok_or_else(|| AlgorithmError::unknown("collective", name, COLLECTIVE_NAMES.map(|(_, known)| known)))
}

/// One line of the table: `algorithm` carries out `collective` where all conditions hold.
///
/// What the bytes are that a rule asks for, all members must know alike:
/// the vector (broadcast, reduce, allreduce, scan, exscan, reduce-scatter), the sum of all blocks
/// (allgather, allgatherv), one block (gather, scatter, alltoall), and 0 for barrier, gatherv, scatterv
/// and alltoallv, whose members do not know each other's sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The collective.
    pub collective: Collective,
    /// At least so many members.
    pub min_ranks: u32,
    /// At most so many members.
    pub max_ranks: u32,
    /// At least so many bytes.
    pub min_bytes: Bytes,
    /// At most so many bytes.
    pub max_bytes: Bytes,
    /// Only where the number of members is a power of two.
    pub power_of_two: bool,
    /// Only where the vector has an element for each of the largest power of two of members.
    pub enough_elements: bool,
    /// The algorithm.
    pub algorithm: Algorithm,
}

impl Rule {
    /// `algorithm` for every `collective`, to be narrowed.
    pub const fn always(collective: Collective, algorithm: Algorithm) -> Rule {
        Rule {
            collective,
            min_ranks: 0,
            max_ranks: u32::MAX,
            min_bytes: Bytes::ZERO,
            max_bytes: Bytes::new(u64::MAX),
            power_of_two: false,
            enough_elements: false,
            algorithm,
        }
    }

    const fn up_to(self, bytes: u64) -> Rule {
        Rule { max_bytes: Bytes::new(bytes), ..self }
    }

    const fn on_at_most(self, ranks: u32) -> Rule {
        Rule { max_ranks: ranks, ..self }
    }

    const fn on_at_least(self, ranks: u32) -> Rule {
        Rule { min_ranks: ranks, ..self }
    }

    const fn on_powers_of_two(self) -> Rule {
        Rule { power_of_two: true, ..self }
    }

    const fn with_enough_elements(self) -> Rule {
        Rule { enough_elements: true, ..self }
    }
}

/// The size of a collective, as the rules ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveSize {
    /// How many members.
    pub members: u32,
    /// Bytes, as [`Rule`] says.
    pub bytes: Bytes,
    /// Elements of the vector; 0 where there is none.
    pub elements: u64,
}

/// The table: the first rule whose conditions hold says the algorithm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AlgorithmTable {
    rules: Vec<Rule>,
}

impl AlgorithmTable {
    /// A table of these rules. Errors where a rule's algorithm does not carry out its collective.
    /// Collectives that no rule speaks of go by [`AlgorithmTable::mpich`].
    pub fn new(rules: Vec<Rule>) -> Result<AlgorithmTable, AlgorithmError> {
        for Rule { collective, algorithm, .. } in &rules {
            if !algorithm.performs(*collective) {
                let able = Algorithm::ALL.into_iter().filter(|able| able.performs(*collective));
                return Err(AlgorithmError::CannotPerform {
                    algorithm: *algorithm,
                    collective: *collective,
                    expected: able.map(Algorithm::name).collect::<Vec<_>>().join(", "),
                });
            }
        }
        Ok(AlgorithmTable { rules: [rules, mpich_rules()].concat() })
    }

    /// The fixed choices of MPICH 3.2.1.
    ///
    /// # Source
    /// `src/mpi/coll/*.c` and the control variables `MPIR_CVAR_*_SHORT_MSG_SIZE` of MPICH 3.2.1.
    pub fn mpich() -> AlgorithmTable {
        AlgorithmTable { rules: mpich_rules() }
    }

    /// ExaNet-MPI: binomial broadcast and recursive-doubling allreduce for every size, else MPICH's.
    ///
    /// # Source
    /// TR-488 §6.1.3 for the two, §5.2.1 for MPICH 3.2.1.
    pub fn exanest() -> AlgorithmTable {
        let own = vec![
            Rule::always(Collective::Broadcast, Algorithm::Binomial),
            Rule::always(Collective::Allreduce, Algorithm::RecursiveDoubling),
        ];
        AlgorithmTable { rules: [own, mpich_rules()].concat() }
    }

    /// The table of a name: `mpich-3.2.1` or `exanest`.
    pub fn named(name: &str) -> Result<AlgorithmTable, AlgorithmError> {
        match name {
            "mpich-3.2.1" => Ok(AlgorithmTable::mpich()),
            "exanest" => Ok(AlgorithmTable::exanest()),
            _ => Err(AlgorithmError::unknown("table of algorithms", name, ["mpich-3.2.1", "exanest"])),
        }
    }

    /// Puts a rule before all others.
    pub fn prefer(&mut self, rule: Rule) -> Result<(), AlgorithmError> {
        let mut table = AlgorithmTable::new(vec![rule])?;
        table.rules.truncate(1);
        self.rules.splice(0..0, table.rules);
        Ok(())
    }

    /// The rules, first match first.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The algorithm for a collective of this size; `None` where messaging has none.
    pub fn choose(&self, collective: Collective, size: CollectiveSize) -> Option<Algorithm> {
        let holds = |rule: &&Rule| {
            rule.collective == collective
                && (rule.min_ranks..=rule.max_ranks).contains(&size.members)
                && (rule.min_bytes..=rule.max_bytes).contains(&size.bytes)
                && (!rule.power_of_two || size.members.is_power_of_two())
                && (!rule.enough_elements || size.elements >= 1 << size.members.max(1).ilog2())
        };
        self.rules.iter().find(holds).map(|rule| rule.algorithm)
    }
}

/// Every collective ends with a rule without conditions, so that one always holds.
fn mpich_rules() -> Vec<Rule> {
    use Algorithm as A;
    use Collective as C;
    let always = Rule::always;
    vec![
        always(C::Barrier, A::Dissemination),
        always(C::Broadcast, A::Binomial).up_to(12_287),
        always(C::Broadcast, A::Binomial).on_at_most(7),
        always(C::Broadcast, A::ScatterDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Broadcast, A::ScatterRing),
        always(C::Reduce, A::Binomial).up_to(2_048),
        always(C::Reduce, A::Rabenseifner).with_enough_elements(),
        always(C::Reduce, A::Binomial),
        always(C::Allreduce, A::RecursiveDoubling).up_to(2_048),
        always(C::Allreduce, A::Rabenseifner).with_enough_elements(),
        always(C::Allreduce, A::RecursiveDoubling),
        always(C::Gather, A::Binomial),
        always(C::Gatherv, A::Linear),
        always(C::Scatter, A::Binomial),
        always(C::Scatterv, A::Linear),
        always(C::Allgather, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgather, A::Bruck).up_to(81_919),
        always(C::Allgather, A::Ring),
        always(C::Allgatherv, A::RecursiveDoubling).up_to(524_287).on_powers_of_two(),
        always(C::Allgatherv, A::Bruck).up_to(81_919),
        always(C::Allgatherv, A::Ring),
        always(C::Alltoall, A::Bruck).up_to(256).on_at_least(8),
        always(C::Alltoall, A::Linear).up_to(32_768),
        always(C::Alltoall, A::Pairwise),
        always(C::Alltoallv, A::Linear),
        always(C::ReduceScatter, A::RecursiveHalving).up_to(524_287),
        always(C::ReduceScatter, A::Pairwise),
        always(C::ReduceScatterBlock, A::RecursiveHalving).up_to(524_287),
        always(C::ReduceScatterBlock, A::Pairwise),
        always(C::Scan, A::RecursiveDoubling),
        always(C::Exscan, A::RecursiveDoubling),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(members: u32, bytes: u64) -> CollectiveSize {
        CollectiveSize { members, bytes: Bytes::new(bytes), elements: bytes / 8 }
    }

    /// Catches a rule that names an algorithm which cannot do it, and a collective without any.
    #[test]
    fn the_tables_can_be_carried_out_and_leave_nothing_open() {
        for table in [AlgorithmTable::mpich(), AlgorithmTable::exanest()] {
            AlgorithmTable::new(table.rules().to_vec()).unwrap();
            for (collective, name) in &COLLECTIVE_NAMES[..16] {
                for bytes in [0, 100, 3_000, 100_000, 1 << 30] {
                    for members in [1, 2, 7, 8, 1000] {
                        assert!(table.choose(*collective, size(members, bytes)).is_some(), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn mpich_changes_where_its_source_says() {
        let table = AlgorithmTable::mpich();
        let choose = |collective, members, bytes| table.choose(collective, size(members, bytes)).unwrap();
        assert_eq!(choose(Collective::Broadcast, 16, 12_287), Algorithm::Binomial);
        assert_eq!(choose(Collective::Broadcast, 16, 12_288), Algorithm::ScatterDoubling);
        assert_eq!(choose(Collective::Broadcast, 12, 12_288), Algorithm::ScatterRing);
        assert_eq!(choose(Collective::Broadcast, 16, 524_288), Algorithm::ScatterRing);
        assert_eq!(choose(Collective::Broadcast, 7, 1 << 20), Algorithm::Binomial);
        assert_eq!(choose(Collective::Allreduce, 16, 2_048), Algorithm::RecursiveDoubling);
        assert_eq!(choose(Collective::Allreduce, 16, 2_056), Algorithm::Rabenseifner);
        // 257 elements are fewer than the 512 members.
        assert_eq!(choose(Collective::Allreduce, 600, 2_056), Algorithm::RecursiveDoubling);
        assert_eq!(choose(Collective::Alltoall, 8, 256), Algorithm::Bruck);
        assert_eq!(choose(Collective::Alltoall, 7, 256), Algorithm::Linear);
    }

    #[test]
    fn errors_name_the_near_and_the_able() {
        let error = "recursive-dobling".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("did you mean `recursive-doubling`"), "{error}");
        let error = collective_of("all-reduce").unwrap_err().to_string();
        assert!(error.contains("did you mean `allreduce`"), "{error}");
        let error = AlgorithmTable::named("mpich").unwrap_err().to_string();
        assert!(error.contains("mpich-3.2.1"), "{error}");
        let rule = Rule::always(Collective::Broadcast, Algorithm::Bruck);
        let error = AlgorithmTable::mpich().prefer(rule).unwrap_err().to_string();
        assert_eq!(
            error,
            "bruck cannot carry out broadcast: expected one of binomial, linear, scatter-ring, scatter-doubling"
        );
    }

    #[test]
    fn a_preferred_rule_goes_first() {
        let mut table = AlgorithmTable::exanest();
        table.prefer(Rule::always(Collective::Allreduce, Algorithm::Ring)).unwrap();
        assert_eq!(table.choose(Collective::Allreduce, size(4, 8)), Some(Algorithm::Ring));
    }
}

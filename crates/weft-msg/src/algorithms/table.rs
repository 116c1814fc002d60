//! The table: rules, of which the first that holds says the algorithm.

use super::algorithm::{Algorithm, AlgorithmError};
use super::rule::{CollectiveSize, Rule};
use super::{exanest, mpich, openmpi};
use crate::collective::linear::is_neighbourhood;
use serde::{Deserialize, Serialize};
use weft_trace::op::Collective;

/// The table: the first rule whose conditions hold says the algorithm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AlgorithmTable {
    /// Chosen by name, whatever the rules say.
    forced: Option<(Collective, Algorithm)>,
    rules: Vec<Rule>,
    /// Whether calls that do not block are started as MPICH's schedules are.
    as_schedules: bool,
}

impl AlgorithmTable {
    /// The names of the tables that ship.
    pub const NAMES: [&'static str; 4] = ["exanest", "mpich-3.2.1", "mpich-5", "openmpi-4.1"];

    /// A table of these rules. Errors where a rule's algorithm does not carry out its collective.
    /// Collectives that no rule speaks of go by [`AlgorithmTable::mpich`].
    pub fn new(rules: Vec<Rule>) -> Result<AlgorithmTable, AlgorithmError> {
        for Rule { collective, algorithm, .. } in &rules {
            able(*collective, *algorithm)?;
        }
        Ok(AlgorithmTable::of([rules, mpich::rules_3_2_1()].concat()))
    }

    /// The fixed choices of MPICH 3.2.1: see the book's page on profiles for what is left out.
    pub fn mpich() -> AlgorithmTable {
        AlgorithmTable::of(mpich::rules_3_2_1())
    }

    /// The choices of MPICH 5.0 without tuning files.
    pub fn mpich_5() -> AlgorithmTable {
        AlgorithmTable { as_schedules: true, ..AlgorithmTable::of(mpich::rules_5()) }
    }

    /// The fixed choices of Open MPI 4.1's component `tuned`.
    pub fn openmpi() -> AlgorithmTable {
        AlgorithmTable::of(openmpi::rules())
    }

    /// ExaNet-MPI: its own choices, else MPICH 3.2.1's.
    pub fn exanest() -> AlgorithmTable {
        AlgorithmTable::of([exanest::rules(), mpich::rules_3_2_1()].concat())
    }

    /// The table of a name: one of [`AlgorithmTable::NAMES`].
    pub fn named(name: &str) -> Result<AlgorithmTable, AlgorithmError> {
        match name {
            "exanest" => Ok(AlgorithmTable::exanest()),
            "mpich-3.2.1" => Ok(AlgorithmTable::mpich()),
            "mpich-5" => Ok(AlgorithmTable::mpich_5()),
            "openmpi-4.1" => Ok(AlgorithmTable::openmpi()),
            _ => Err(AlgorithmError::unknown("table of algorithms", name, AlgorithmTable::NAMES)),
        }
    }

    fn of(rules: Vec<Rule>) -> AlgorithmTable {
        AlgorithmTable { forced: None, rules, as_schedules: false }
    }

    /// Puts a rule before all others.
    pub fn prefer(&mut self, rule: Rule) -> Result<(), AlgorithmError> {
        able(rule.collective, rule.algorithm)?;
        self.rules.insert(0, rule);
        Ok(())
    }

    /// This table, but every `collective` goes by `algorithm`. Errors where it cannot carry it out. Where
    /// [`Algorithm::Accelerator`] or [`Algorithm::Multicast`] is outside the limits of the hardware, the
    /// collective then fails, rather than going by another rule.
    pub fn forced(
        mut self,
        collective: Collective,
        algorithm: Algorithm,
    ) -> Result<AlgorithmTable, AlgorithmError> {
        able(collective, algorithm)?;
        self.forced = Some((collective, algorithm));
        Ok(self)
    }

    /// Whether `collective` goes by an algorithm that was chosen by name.
    pub fn is_forced(&self, collective: Collective) -> bool {
        self.forced.is_some_and(|(forced, _)| forced == collective)
    }

    /// The rules, first match first.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The algorithm for a collective of this size; `None` where messaging has none.
    pub fn choose(&self, collective: Collective, size: CollectiveSize) -> Option<Algorithm> {
        match self.forced {
            Some((forced, algorithm)) if forced == collective => Some(algorithm),
            // MPI libraries have one way to exchange with neighbours.
            _ => self.by_rules(collective, size).next().or_else(|| neighbours(collective)),
        }
    }

    /// Whether anything may go by this algorithm.
    pub fn names(&self, algorithm: Algorithm) -> bool {
        let forced = self.forced.is_some_and(|(_, forced)| forced == algorithm);
        forced || self.rules.iter().any(|rule| rule.algorithm == algorithm)
    }

    /// Whether anything may go by an algorithm that [follows the topology](Algorithm::follows_topology).
    pub fn follows_topology(&self) -> bool {
        Algorithm::ALL.into_iter().any(|algorithm| algorithm.follows_topology() && self.names(algorithm))
    }

    /// The algorithm where the hardware cannot do it.
    pub fn choose_software(&self, collective: Collective, size: CollectiveSize) -> Option<Algorithm> {
        let mut software = self.by_rules(collective, size).filter(|it| !it.is_by_hardware());
        software.next().or_else(|| neighbours(collective))
    }

    /// The algorithm of a collective that is a stage of another: one that asks nothing of the machine.
    pub(crate) fn choose_stage(&self, collective: Collective, size: CollectiveSize) -> Option<Algorithm> {
        let is_plain = |it: &Algorithm| !it.is_by_hardware() && !it.follows_topology();
        let chosen = self.choose(collective, size).filter(is_plain);
        chosen.or_else(|| self.by_rules(collective, size).find(is_plain))
    }

    /// Whether a round of a collective that does not block starts its sends before its receives.
    pub(crate) fn sends_first(&self, collective: Collective, algorithm: Algorithm) -> bool {
        self.as_schedules && mpich::schedule_sends_first(collective, algorithm)
    }

    fn by_rules(&self, collective: Collective, size: CollectiveSize) -> impl Iterator<Item = Algorithm> + '_ {
        self.rules.iter().filter(move |rule| rule.holds(collective, size)).map(|rule| rule.algorithm)
    }
}

fn neighbours(collective: Collective) -> Option<Algorithm> {
    is_neighbourhood(collective).then_some(Algorithm::Linear)
}

fn able(collective: Collective, algorithm: Algorithm) -> Result<(), AlgorithmError> {
    if algorithm.performs(collective) {
        return Ok(());
    }
    let able: Vec<&str> = Algorithm::performing(collective).map(Algorithm::name).collect();
    Err(AlgorithmError::CannotPerform { algorithm, collective, expected: able.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{COLLECTIVE_NAMES, collective_of};
    use weft_units::Bytes;

    fn size(members: u32, bytes: u64) -> CollectiveSize {
        CollectiveSize { members, bytes: Bytes::new(bytes), elements: bytes / 8, non_blocking: false }
    }

    /// Catches a rule that names an algorithm which cannot do it, and a collective without any.
    #[test]
    fn the_tables_can_be_carried_out_and_leave_nothing_open() {
        for name in AlgorithmTable::NAMES {
            let table = AlgorithmTable::named(name).unwrap();
            AlgorithmTable::new(table.rules().to_vec()).unwrap();
            for (collective, name) in &COLLECTIVE_NAMES {
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
        assert_eq!(choose(Collective::Alltoall, 7, 256), Algorithm::Scattered);
    }

    #[test]
    fn mpich_5_includes_the_sizes_it_names() {
        let table = AlgorithmTable::mpich_5();
        let choose = |collective, members, bytes| table.choose(collective, size(members, bytes)).unwrap();
        assert_eq!(choose(Collective::Broadcast, 16, 12_288), Algorithm::Binomial);
        assert_eq!(choose(Collective::Broadcast, 16, 524_288), Algorithm::ScatterDoubling);
        assert_eq!(choose(Collective::Broadcast, 12, 12_289), Algorithm::ScatterRing);
        assert_eq!(choose(Collective::Broadcast, 7, 1 << 20), Algorithm::Binomial);
        assert_eq!(choose(Collective::Allreduce, 16, 8), Algorithm::RecursiveDoubling);
        assert_eq!(choose(Collective::Allreduce, 2, 16), Algorithm::Rabenseifner);
        assert_eq!(choose(Collective::Allreduce, 16, 64), Algorithm::RecursiveDoubling);
        let iallreduce = CollectiveSize { non_blocking: true, ..size(16, 2_048) };
        assert_eq!(table.choose(Collective::Allreduce, iallreduce), Some(Algorithm::RecursiveDoubling));
        assert_eq!(choose(Collective::Alltoall, 8, 256), Algorithm::Scattered);
        assert_eq!(choose(Collective::Alltoall, 9, 256), Algorithm::Bruck);
        assert_eq!(choose(Collective::Allgather, 16, 524_288), Algorithm::Ring);
        assert_eq!(choose(Collective::Allgather, 12, 81_919), Algorithm::Bruck);
    }

    /// Catches a ladder that is off by one rung or step, and a fall-back that is left out.
    #[test]
    fn open_mpi_changes_where_its_source_says() {
        use Algorithm as A;
        use Collective as C;
        let table = AlgorithmTable::openmpi();
        let choose = |collective, members, bytes| table.choose(collective, size(members, bytes)).unwrap();
        for (collective, members, bytes, algorithm) in [
            (C::Barrier, 3, 0, A::RecursiveDoubling),
            (C::Barrier, 4, 0, A::Linear),
            (C::Barrier, 64, 0, A::Dissemination),
            (C::Barrier, 256, 0, A::Binomial),
            (C::Barrier, 4096, 0, A::Dissemination),
            (C::Broadcast, 3, 31, A::Chain),
            (C::Broadcast, 3, 32, A::BinaryTree),
            (C::Broadcast, 128, 1, A::Binomial),
            (C::Broadcast, 512, 16_384, A::SplitBinaryTree),
            (C::Broadcast, 512, 32_768, A::Knomial),
            (C::Broadcast, 2048, 262_144, A::ScatterDoubling),
            (C::Reduce, 300, 8_192, A::InOrderBinaryTree),
            (C::Reduce, 3, 7, A::Linear),
            (C::Reduce, 100_000, 16, A::InOrderBinaryTree),
            (C::Allreduce, 200, 131_071, A::NonOverlapping),
            (C::Allreduce, 200, 131_072, A::RecursiveDoubling),
            (C::Allreduce, 200, 262_144, A::Rabenseifner),
            // One element: the ring falls back, and so does the reduce-scatter with allgather.
            (C::Allreduce, 4, 8, A::RecursiveDoubling),
            (C::Allreduce, 3, 24, A::RecursiveDoubling),
            (C::Allreduce, 3, 4096, A::Ring),
            (C::Allreduce, 40, 128, A::Linear),
            (C::Allreduce, 40, 256, A::Rabenseifner),
            // The sum of all blocks here, one block there.
            (C::Allgather, 8, 8 << 20, A::RecursiveDoubling),
            (C::Allgather, 12, 12 << 20, A::Bruck),
            (C::Allgather, 32, 32 * 1023, A::RecursiveDoubling),
            (C::Allgather, 32, 32 * 1024, A::NeighborExchange),
            (C::Allgather, 32, 32 * 65_536, A::Ring),
            (C::Alltoall, 16, 4, A::Bruck),
            (C::Alltoall, 16, 512, A::Linear),
            (C::Alltoallv, 64, 0, A::Pairwise),
            (C::ReduceScatter, 32, 2_048, A::Butterfly),
            (C::ReduceScatterBlock, 32, 32 * 16, A::Butterfly),
            (C::ReduceScatterBlock, 32, 32 * 15, A::NonOverlapping),
            (C::Gather, 4, 1_024, A::Linear),
            (C::Scatter, 64, 512, A::Linear),
        ] {
            assert_eq!(choose(collective, members, bytes), algorithm, "{collective:?} {members} {bytes}");
        }
    }

    #[test]
    fn a_forced_algorithm_goes_before_all_rules() {
        let table = AlgorithmTable::mpich().forced(Collective::Broadcast, Algorithm::Chain).unwrap();
        assert_eq!(table.choose(Collective::Broadcast, size(4, 8)), Some(Algorithm::Chain));
        assert!(table.is_forced(Collective::Broadcast) && !table.is_forced(Collective::Reduce));
        assert_eq!(table.choose(Collective::Reduce, size(4, 8)), Some(Algorithm::Binomial));
        AlgorithmTable::mpich().forced(Collective::Barrier, Algorithm::Chain).unwrap_err();
        let able: Vec<Algorithm> = Algorithm::performing(Collective::Scatter).collect();
        assert_eq!(able, [Algorithm::Binomial, Algorithm::Linear]);
        let able: Vec<Algorithm> = Algorithm::performing(Collective::NeighborAlltoall).collect();
        assert_eq!(able, [Algorithm::Linear]);
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
            "bruck cannot carry out broadcast: expected one of binomial, binomial-at-once, linear, \
             scatter-ring, scatter-doubling, chain, binary-tree, split-binary-tree, knomial, local-first, \
             global-first, multicast"
        );
    }

    #[test]
    fn a_preferred_rule_goes_first() {
        let mut table = AlgorithmTable::exanest();
        table.prefer(Rule::always(Collective::Allreduce, Algorithm::Ring)).unwrap();
        assert_eq!(table.choose(Collective::Allreduce, size(4, 8)), Some(Algorithm::Ring));
    }
}

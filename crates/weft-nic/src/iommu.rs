//! Address translation for the interface: TLB, page-table walks, page faults without pinning.
//!
//! ```text
//!  page ─► TLB ── hit ──────────────────────────────► translated
//!           └─ miss ─► page-table walk ── mapped ───► translated, and in the TLB
//!                             └─ not mapped ─► fault: the system maps it, the block is replayed
//! ```
//! # Source
//! TR-488 §4.5.3: the SMMU walks the page tables of user processes, a miss costs no software, a fault
//! raises an interrupt that modules of the operating system handle; no page is pinned, blocks that met a
//! fault are transmitted again.
//!
//! # Not modelled
//! Pages that the system takes away again, several page sizes, walks that share the memory channel, a number
//! of context banks. Translation of notifications' addresses, and of the accelerator's vectors. Of the
//! program's own touches those of memory that it does not send: what it only receives into counts as new to
//! both. The time of a rank whose core runs the handler: faults are handled one after the other, on a core
//! that no rank misses.

use crate::block::{Block, block};
use crate::rdma::Location;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Span, Time};

weft_keys::words! {
    /// The condition under which pages are not mapped.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum FaultModel: "FaultModel", "a model of page faults" {
        /// Never: programs have touched their buffers.
        Off = "off",
        /// Until the interface or [the program](Iommu::map) has touched them.
        FirstTouch = "first-touch",
    }
}

/// Address translation in reports: TR-488 §4.5.3.
pub const IOMMU: Block = block!(Logic "iommu");

weft_keys::keys! {
    /// The section of a machine file on address translation.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct IommuParameters {
        /// Bytes of a page.
        page: Bytes;
        /// Translations that the TLB holds.
        entries: u32;
        /// Entries that a page may be in.
        ways: u32;
        /// A page-table walk.
        walk: Span;
        /// Pages that are not mapped: none (`off`), or each until its `first-touch`.
        faults: FaultModel;
        /// From a page fault to the page's being mapped: interrupt and operating system.
        fault: Span;
    }
}

impl IommuParameters {
    /// Checks that pages are found by bits of an address, and that all sets of the TLB are whole.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        let IommuParameters { page, entries, ways, .. } = *self;
        if !page.get().is_power_of_two() {
            let why = format!("pages of {page} cannot be found by bits of an address");
            return Err(Problem::new(why, "", "write a power of two, such as 4K").of("page"));
        }
        if !entries.is_multiple_of(ways) {
            let why = format!("{entries} entries are not whole sets of {ways}");
            return Err(Problem::new(why, "", "write a divisor of nic.iommu.entries").of("ways"));
        }
        Ok(())
    }
}

/// A page of one address space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Page {
    /// The process: its rank within the node.
    pub space: u32,
    /// The page's number.
    pub number: u64,
}

impl Page {
    /// Whether the addresses from `first` to `last` of its space, which is not before, lie in it.
    #[inline]
    pub fn holds(&self, first: u64, last: u64, parameters: &IommuParameters) -> bool {
        let size = parameters.page.get().max(1);
        let begin = self.number.wrapping_mul(size);
        first >= begin && last - begin < size
    }

    /// The TLB set, of `sets`, that may hold this page.
    ///
    /// All bits of its number take part, so that buffers of several processes at the same distance from a
    /// large power of two do not fall on the same sets. Pages that follow each other are in different sets.
    fn set(&self, sets: usize) -> usize {
        // Odd, so that the spaces of a node spread over all sets.
        const SPACE_DISTANCE: u64 = 0x9E37_79B9;
        let bits = sets.ilog2().max(1);
        let mut folded = self.number ^ (u64::from(self.space) * SPACE_DISTANCE);
        // XOR-fold the number onto its low `bits`, halving the number of groups each round. A number that
        // already fits needs no folding.
        if folded >> bits == 0 {
            return (folded as usize).min(sets - 1);
        }
        for groups in [32, 16, 8, 4, 2, 1] {
            folded ^= folded.checked_shr(groups * bits).unwrap_or(0);
        }
        // One set has a bit all the same.
        (folded as usize & ((1 << bits) - 1)).min(sets - 1)
    }
}

/// How far the system is with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PageState {
    /// Nobody has touched it.
    Unmapped,
    /// The system is at it.
    Faulting,
    /// It can be translated.
    Mapped,
}

/// An event of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageEvent {
    /// The interface wants to access it.
    Access,
    /// The system has mapped it.
    Handled,
    /// The program touches it.
    Touch,
}

impl PageState {
    /// All states.
    pub const ALL: [PageState; 3] = [PageState::Unmapped, PageState::Faulting, PageState::Mapped];

    /// The transition table.
    pub const fn next(self, event: PageEvent) -> PageState {
        match (self, event) {
            (PageState::Unmapped, PageEvent::Access) => PageState::Faulting,
            (PageState::Unmapped, PageEvent::Handled) => PageState::Unmapped,
            (PageState::Faulting, PageEvent::Access) => PageState::Faulting,
            (_, PageEvent::Touch) | (PageState::Faulting, PageEvent::Handled) | (PageState::Mapped, _) => {
                PageState::Mapped
            }
        }
    }
}

/// The outcome of a translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Translation {
    /// The physical address is known at this time.
    At(Time),
    /// The page is not mapped; it will be at this time.
    Fault(Time),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TlbEntry {
    page: Page,
    /// The end of the walk that brought it.
    walked: Time,
    used: u64,
}

/// Entries of the TLB among which a page is looked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Set {
    /// The page that was found last. Mostly it is found again, and the entries are several lines of memory.
    #[serde(skip, default = "no_page")]
    recent: Page,
    /// In no order.
    entries: Vec<TlbEntry>,
}

/// Stands for none: no page is so far up.
const fn no_page() -> Page {
    Page { space: u32::MAX, number: u64::MAX }
}

/// The unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Iommu {
    sets: Vec<Set>,
    /// Counts translations: the clock of least recent use.
    translations: u64,
    /// Pages that are faulting, until when, or have been mapped; empty without faults.
    pages: BTreeMap<Page, (PageState, Time)>,
    /// The time at which the page-table walker is free.
    walker: Time,
    /// The time at which the core that handles faults is.
    handler: Time,
    /// Time in which it has walked.
    worked: Span,
    misses: u64,
    faults: u64,
}

impl Iommu {
    /// TLB misses, and page faults.
    pub fn misses_and_faults(&self) -> (u64, u64) {
        (self.misses, self.faults)
    }

    /// The page of `address` in `space`.
    #[inline]
    pub fn page(space: u32, address: u64, parameters: &IommuParameters) -> Page {
        let size = parameters.page.get();
        let number = match size.is_power_of_two() {
            true => address >> size.trailing_zeros(),
            false => address / size.max(1),
        };
        Page { space, number }
    }

    /// How far the system is with a page.
    pub fn state(&self, page: Page, now: Time, parameters: &IommuParameters) -> PageState {
        if parameters.faults == FaultModel::Off {
            return PageState::Mapped;
        }
        match self.pages.get(&page) {
            None => PageState::Unmapped,
            Some((PageState::Faulting, until)) if *until <= now => {
                PageState::Faulting.next(PageEvent::Handled)
            }
            Some((state, _)) => *state,
        }
    }

    /// The program touches `bytes` at `location`, which maps their pages.
    #[inline]
    pub fn map(&mut self, location: Location, bytes: Bytes, now: Time, parameters: &IommuParameters) {
        if parameters.faults == FaultModel::Off || bytes == Bytes::ZERO {
            return;
        }
        let (space, address) = (location.space, location.address.get());
        let [first, last] = [address, address.saturating_add(bytes.get() - 1)]
            .map(|address| Iommu::page(space, address, parameters).number);
        for number in first..=last {
            let page = Page { space, number };
            let state = self.state(page, now, parameters).next(PageEvent::Touch);
            self.pages.insert(page, (state, now));
        }
    }

    /// The time in which the page-table walker has worked.
    pub(crate) fn worked(&self) -> Span {
        self.worked
    }

    /// Makes the sets of the TLB.
    #[cold]
    fn begin(&mut self, parameters: &IommuParameters) {
        let ways = parameters.ways.clamp(1, parameters.entries.max(1));
        let sets = (parameters.entries / ways).max(1) as usize;
        self.sets.resize(sets, Set { recent: no_page(), entries: Vec::new() });
    }

    /// Translates an address of a page at `now`.
    pub fn translate(&mut self, page: Page, now: Time, parameters: &IommuParameters) -> Translation {
        if self.sets.is_empty() {
            self.begin(parameters);
        }
        let place = page.set(self.sets.len());
        // It is the one used last of its set, and no walk goes on: nothing changes.
        if self.sets[place].recent == page && now >= self.walker {
            return Translation::At(now);
        }
        self.look(page, place, now, parameters)
    }

    /// The same by a look at its set.
    #[inline(never)]
    fn look(&mut self, page: Page, place: usize, now: Time, parameters: &IommuParameters) -> Translation {
        self.translations += 1;
        let used = self.translations;
        let Set { recent, entries } = &mut self.sets[place];
        if let Some(entry) = entries.iter_mut().find(|entry| entry.page == page) {
            entry.used = used;
            *recent = page;
            return Translation::At(now.max(entry.walked));
        }
        self.walk(page, place, now, parameters)
    }

    /// The same of a page that the TLB does not hold.
    #[inline(never)]
    fn walk(&mut self, page: Page, place: usize, now: Time, parameters: &IommuParameters) -> Translation {
        let (used, ways) = (self.translations, parameters.ways.clamp(1, parameters.entries.max(1)));
        self.misses += 1;
        let walked = now.max(self.walker) + parameters.walk;
        self.walker = walked;
        self.worked = self.worked.saturating_add(parameters.walk);
        let before = self.state(page, walked, parameters);
        let state = before.next(PageEvent::Access);
        if state != PageState::Mapped {
            return self.fault(page, (before, state), walked, parameters);
        }
        if parameters.entries > 0 {
            let Set { recent, entries } = &mut self.sets[place];
            let entry = TlbEntry { page, walked, used };
            if entries.len() < ways as usize {
                entries.push(entry);
            } else if let Some(oldest) = entries.iter_mut().min_by_key(|entry| entry.used) {
                *oldest = entry;
            }
            *recent = page;
        }
        Translation::At(walked)
    }

    /// A walk that has ended at `walked` has found that a page is not mapped.
    #[cold]
    fn fault(
        &mut self,
        page: Page,
        (before, state): (PageState, PageState),
        walked: Time,
        parameters: &IommuParameters,
    ) -> Translation {
        let until = match before {
            PageState::Unmapped => {
                self.handler = walked.max(self.handler) + parameters.fault;
                self.handler
            }
            _ => self.pages.get(&page).map_or(walked, |(_, until)| *until),
        };
        self.faults += u64::from(before == PageState::Unmapped);
        self.pages.insert(page, (state, until));
        Translation::Fault(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_units::Address;

    fn parameters(faults: FaultModel) -> IommuParameters {
        IommuParameters {
            page: Bytes::new(4096),
            entries: 2,
            ways: 2,
            walk: Span::from_ns(100),
            faults,
            fault: Span::from_us(10),
        }
    }

    fn page(number: u64) -> Page {
        Page { space: 0, number }
    }

    /// Catches a transition that was forgotten or changed: the whole table is here once more.
    #[test]
    fn every_pair_of_state_and_event_is_as_documented() {
        use PageEvent::*;
        use PageState::*;
        let table = [
            (Unmapped, Access, Faulting),
            (Unmapped, Handled, Unmapped),
            (Unmapped, Touch, Mapped),
            (Faulting, Access, Faulting),
            (Faulting, Handled, Mapped),
            (Faulting, Touch, Mapped),
            (Mapped, Access, Mapped),
            (Mapped, Handled, Mapped),
            (Mapped, Touch, Mapped),
        ];
        assert_eq!(table.len(), PageState::ALL.len() * 3);
        for (state, event, next) in table {
            assert_eq!(state.next(event), next, "{state:?} {event:?}");
        }
    }

    proptest! {
        /// Catches bits of a page's number that have no part in its set, or more than one.
        #[test]
        fn a_set_is_of_all_bits_in_groups(number in any::<u64>(), sets in 1usize..3000) {
            let bits = sets.ilog2().max(1);
            let groups = (0..64).step_by(bits as usize).map(|low| number >> low & ((1 << bits) - 1));
            let folded = groups.fold(0, |one, other| one ^ other) as usize;
            prop_assert_eq!(page(number).set(sets), folded % sets);
        }
    }

    /// Catches a page that ends a byte too early or too late: what it holds has its number.
    #[test]
    fn a_page_holds_what_has_its_number() {
        let parameters = parameters(FaultModel::Off);
        for (first, last) in [(0, 4095), (4095, 4096), (4096, 8191), (4096, 8192), (8191, 8191), (8192, 9000)]
        {
            let pages = [first, last].map(|address| Iommu::page(0, address, &parameters));
            assert_eq!(page(1).holds(first, last, &parameters), pages == [page(1); 2], "{first} to {last}");
        }
        let end = Iommu::page(0, u64::MAX, &parameters);
        assert!(end.holds(u64::MAX - 4095, u64::MAX, &parameters));
    }

    /// Catches a TLB that forgets the page used last, or keeps more than its entries.
    #[test]
    fn the_least_recently_used_page_leaves() {
        let (parameters, mut iommu) = (parameters(FaultModel::Off), Iommu::default());
        let mut now = Time::ZERO + Span::from_us(1);
        let mut misses = |number| {
            now += Span::from_us(1);
            iommu.translate(page(number), now, &parameters) != Translation::At(now)
        };
        assert_eq!([1, 2, 1, 3, 1, 2].map(&mut misses), [true, true, false, true, false, true]);
    }

    /// Catches a TLB of which a part is never used: pages that follow each other are in different sets, and
    /// equal pages of several processes, or of buffers far apart, are not all in one.
    #[test]
    fn pages_spread_over_the_sets() {
        let distinct = |pages: &mut dyn Iterator<Item = Page>| {
            pages.map(|page| page.set(128)).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(distinct(&mut (0..128).map(|number| page(1 << 25 | number))), 128);
        assert_eq!(distinct(&mut (0..4).map(|space| Page { space, number: 1 << 24 })), 4);
        assert_eq!(distinct(&mut (20..27).map(|bit| page(1 << bit))), 7);
        assert!((0..1000).all(|number| page(number).set(1) == 0 && page(number).set(3) < 3));
    }

    proptest! {
        /// Catches a look at the page used last that answers too early, after the page has left, or hides a
        /// use from the order in which pages leave. The reference looks through lists of pages, the one used
        /// last at their ends.
        #[test]
        fn pages_are_found_as_in_lists(
            accesses in prop::collection::vec((0u64..300_000, 0u64..9), 1..200),
            ways in 1u32..4,
        ) {
            let parameters = IommuParameters { entries: 2 * ways, ways, ..parameters(FaultModel::Off) };
            let (mut iommu, mut lists) = (Iommu::default(), [const { Vec::<(Page, Time)>::new() }; 2]);
            let (mut now, mut walker) = (Time::ZERO, Time::ZERO);
            for (later, number) in accesses {
                now += Span::from_ps(later);
                let page = page(number);
                let list = &mut lists[page.set(2)];
                let walked = match list.iter().position(|entry| entry.0 == page) {
                    Some(place) => list.remove(place).1,
                    None => {
                        walker = now.max(walker) + parameters.walk;
                        if list.len() == ways as usize {
                            list.remove(0);
                        }
                        walker
                    }
                };
                list.push((page, walked));
                prop_assert_eq!(iommu.translate(page, now, &parameters), Translation::At(now.max(walked)));
            }
        }
    }

    /// Catches walks that overlap in the one walker.
    #[test]
    fn walks_queue() {
        let (parameters, mut iommu) = (parameters(FaultModel::Off), Iommu::default());
        let ended = [1, 2].map(|number| iommu.translate(page(number), Time::ZERO, &parameters));
        assert_eq!(ended, [100, 200].map(|ns| Translation::At(Time::ZERO + Span::from_ns(ns))));
    }

    /// Catches a translation that is used before its walk has ended.
    #[test]
    fn who_comes_during_a_walk_waits_for_its_end() {
        let (parameters, mut iommu) = (parameters(FaultModel::Off), Iommu::default());
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let mut translate = |ns| iommu.translate(page(1), at(ns), &parameters);
        assert_eq!(
            [0, 50, 100, 150].map(&mut translate),
            [100, 100, 100, 150].map(|ns| Translation::At(at(ns)))
        );
        assert_eq!(iommu.misses_and_faults(), (1, 0));
    }

    /// Catches a fault that is handled twice, never ends, or befalls a page that the program touched.
    #[test]
    fn a_page_faults_once() {
        let (parameters, mut iommu) = (parameters(FaultModel::FirstTouch), Iommu::default());
        let first = iommu.translate(page(7), Time::ZERO, &parameters);
        let mapped = Time::ZERO + Span::from_ns(10_100);
        assert_eq!(first, Translation::Fault(mapped));
        assert_eq!(iommu.translate(page(7), Time::ZERO, &parameters), Translation::Fault(mapped));
        let later = mapped + Span::from_us(1);
        assert_eq!(iommu.translate(page(7), later, &parameters), Translation::At(later + parameters.walk));
        assert_eq!(iommu.misses_and_faults(), (3, 1));
        let location = Location { space: 0, address: Address::new(8 * 4096 + 4095) };
        iommu.map(location, Bytes::new(2), later, &parameters);
        for (walks, number) in [(2, 8), (3, 9)] {
            let end = later + parameters.walk * walks;
            assert_eq!(iommu.translate(page(number), later, &parameters), Translation::At(end));
        }
    }

    /// Catches handlers that run side by side: three pages fault at once, and one core maps them in turn.
    #[test]
    fn one_core_handles_faults_one_after_the_other() {
        let (parameters, mut iommu) = (parameters(FaultModel::FirstTouch), Iommu::default());
        let mapped = [1, 2, 3].map(|number| iommu.translate(page(number), Time::ZERO, &parameters));
        let at = |ns| Translation::Fault(Time::ZERO + Span::from_ns(ns));
        assert_eq!(mapped, [at(10_100), at(20_100), at(30_100)]);
    }
}

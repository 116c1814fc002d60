//! A whole model in virtual time: windows over partitions, save and resume.

use crate::barrier::SpinBarrier;
use crate::event::{Event, SiteId};
use crate::lookahead::{Lookahead, Windows};
use crate::model::Model;
use crate::partition::Partition;
use crate::wheel::{BLOCK, BLOCK_SHIFT, Note, Outgoing};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weft_units::{Span, Time};

/// Below this many events in a window and partition, a barrier costs more than a second thread saves: an allreduce
/// of 512 ranks over the full interface has 23 and takes two thirds of the time, a single transfer has 1 and would take longer.
const EVENTS_WORTH_A_BARRIER: u64 = 16;
/// Windows between two looks at whether threads are worth it.
const STRETCH: u64 = 64;

/// What [`Simulation::run_until`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Every event before the given time has been handled; later ones are pending.
    Reached,
    /// No event is pending at all.
    Dry,
    /// The interrupt flag was raised. Windows are whole, so the run can go on or be saved.
    Interrupted,
}

/// A snapshot that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not a snapshot of this model.
    #[error("the snapshot cannot be read: {0}; it was written by another version of weft or is damaged")]
    Unreadable(postcard::Error),
    /// The snapshot is of a model with another number of sites.
    #[error("the snapshot has {found} sites and the machine has {expected}")]
    OtherModel {
        /// Sites of the snapshot.
        found: usize,
        /// Sites of the model.
        expected: usize,
    },
    /// Something waits where or when nothing can.
    #[error("the snapshot has something for site {} at {time}, of {sites} sites and from {now} on; it is damaged", site.0)]
    Misplaced {
        /// Where.
        site: SiteId,
        /// When.
        time: Time,
        /// Sites of the model.
        sites: usize,
        /// The virtual time that the run had reached.
        now: Time,
    },
}

/// A model, its state, and its pending events.
pub struct Simulation<M: Model> {
    model: M,
    partitions: Vec<Partition<M>>,
    sites: u32,
    windows: Windows,
    threads: usize,
    now: Time,
    /// Whether virtual time stands where nothing is pending.
    stands_when_dry: bool,
}

/// The whole state of a run: independent of partitions and threads.
#[derive(Serialize, Deserialize)]
struct Snapshot<S, P, N> {
    now: Time,
    sites: Vec<S>,
    events: Vec<Event<P>>,
    notes: Vec<Note<N>>,
}

impl<M: Model> Simulation<M> {
    /// A simulation of `sites` under `model`, with `threads` partitions of as many sites each as the
    /// blocks of 64 allow, and `events` to begin with.
    pub fn new(
        model: M,
        sites: Vec<M::Site>,
        events: impl IntoIterator<Item = Event<M::Payload>>,
        lookahead: Lookahead,
        threads: usize,
    ) -> Simulation<M> {
        let windows = lookahead.windows();
        let count = sites.len();
        let blocks = count.div_ceil(BLOCK).max(1);
        let threads = threads.clamp(1, blocks);
        let bounds: Vec<usize> = (0..=threads).map(|i| i * blocks / threads).collect();
        let mut sites = sites.into_iter();
        let partitions = (0..threads)
            .map(|own| {
                let first_site = bounds[own] << BLOCK_SHIFT;
                let end = (bounds[own + 1] << BLOCK_SHIFT).min(count);
                let own_sites = sites.by_ref().take(end - first_site).collect();
                Partition::new(first_site as u32, own_sites, Outgoing::new(windows, &bounds, own))
            })
            .collect();
        let mut simulation = Simulation {
            model,
            partitions,
            sites: count as u32,
            windows,
            threads,
            now: Time::ZERO,
            stands_when_dry: false,
        };
        for event in events {
            simulation.insert(event);
        }
        simulation
    }

    /// Adds an event between runs, at or after the present time.
    pub fn insert(&mut self, event: Event<M::Payload>) {
        assert!(event.time >= self.now, "an event at {} was inserted at {}", event.time, self.now);
        let partition = self.partition_of(event.site);
        self.partitions[partition].pending.push(event);
    }

    /// The virtual time that has been reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// From now on virtual time does not pass without events: a run that ends [dry](Progress::Dry) stands where the window of its last event
    /// ends, for those who go on from there and would not have waited.
    pub fn stand_when_dry(&mut self) {
        self.stands_when_dry = true;
    }

    /// The windows in which it works, from the beginning of virtual time on. Every call of
    /// [`Simulation::run_until`] that ends within one visits the sites of that window once more. `None`:
    /// sites never send each other anything, so that windows are no more than a bound on what is sorted.
    pub fn window(&self) -> Option<Span> {
        self.windows.span()
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Number of partitions, at most the threads asked for.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Events handled so far by this process (decisions are not events).
    pub fn events_handled(&self) -> u64 {
        self.partitions.iter().map(|p| p.events_handled).sum()
    }

    /// All sites in order.
    pub fn sites(&self) -> impl Iterator<Item = (SiteId, &M::Site)> {
        self.partitions.iter().flat_map(|p| &p.sites).enumerate().map(|(i, s)| (SiteId(i as u32), s))
    }

    /// Every event that is pending, in no particular order.
    pub fn pending(&self) -> impl Iterator<Item = &Event<M::Payload>> {
        self.partitions.iter().flat_map(|p| p.pending.pending())
    }

    /// Every note that has not been given to its site, with the time from which it counts.
    pub fn pending_notes(&self) -> impl Iterator<Item = (SiteId, Time, &M::Note)> {
        let notes = self.partitions.iter().flat_map(|p| p.pending.pending_notes());
        notes.map(|note| (note.site, note.time, &note.note))
    }

    /// All sites in order, to be changed at a virtual time that the experiment fixed. A change must not
    /// bring a decision forward.
    pub fn sites_mut(&mut self) -> impl Iterator<Item = (SiteId, &mut M::Site)> {
        let sites = self.partitions.iter_mut().flat_map(|p| &mut p.sites);
        sites.enumerate().map(|(i, s)| (SiteId(i as u32), s))
    }

    /// What each partition has reported since it was last taken, in the order of partitions. What it
    /// holds in total is independent of partitions; its distribution over them is not.
    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut M::Output> {
        self.partitions.iter_mut().map(|p| &mut p.output)
    }

    fn partition_of(&self, site: SiteId) -> usize {
        assert!(site.0 < self.sites, "site {} does not exist", site.0);
        self.partitions.partition_point(|p| p.first_site <= site.0) - 1
    }

    /// Handles every event before `until`, window by window, and stops early when nothing is pending or
    /// `interrupt` is raised.
    pub fn run_until(&mut self, until: Time, interrupt: &AtomicBool) -> Progress {
        let mut threaded = self.threads > 1;
        loop {
            let stretch =
                if threaded { self.run_threads(until, interrupt) } else { self.run_alone(until, interrupt) };
            match stretch {
                Stretch::Ended(progress) => {
                    let passes = match progress {
                        Progress::Reached => true,
                        Progress::Dry => !self.stands_when_dry && until != Time::MAX,
                        Progress::Interrupted => false,
                    };
                    if passes {
                        self.now = self.now.max(until);
                    }
                    return progress;
                }
                Stretch::Busy => threaded = self.threads > 1,
                Stretch::Idle => threaded = false,
            }
        }
    }

    /// Works off one stretch of windows over all partitions on this thread.
    fn run_alone(&mut self, until: Time, interrupt: &AtomicBool) -> Stretch {
        let before = self.events_handled();
        for _ in 0..STRETCH {
            if interrupt.load(Ordering::Relaxed) {
                return Stretch::Ended(Progress::Interrupted);
            }
            let Some(window) = self.partitions.iter().filter_map(|p| p.pending.next_window()).min() else {
                return Stretch::Ended(Progress::Dry);
            };
            if self.windows.start(window) >= until {
                return Stretch::Ended(Progress::Reached);
            }
            for index in 0..self.partitions.len() {
                self.partitions[index].run_window(&self.model, window, self.windows, until);
            }
            self.now = self.windows.start(window + 1).min(until);
            if self.partitions.len() > 1 {
                self.deliver_mail();
            }
            // A window that `until` cuts short stays the next one, with nothing before `until` in it.
            if self.windows.start(window + 1) > until {
                return Stretch::Ended(Progress::Reached);
            }
        }
        let events = self.events_handled() - before;
        let enough = EVENTS_WORTH_A_BARRIER * STRETCH * self.partitions.len() as u64;
        if events >= enough { Stretch::Busy } else { Stretch::Idle }
    }

    fn deliver_mail(&mut self) {
        for from in 0..self.partitions.len() {
            if self.partitions[from].pending.mail_earliest == Time::MAX {
                continue;
            }
            self.partitions[from].pending.mail_earliest = Time::MAX;
            for to in 0..self.partitions.len() {
                let mut mail = std::mem::take(&mut self.partitions[from].pending.mail[to]);
                for event in mail.drain(..) {
                    self.partitions[to].pending.push(event);
                }
                self.partitions[from].pending.mail[to] = mail;
                let mut mail = std::mem::take(&mut self.partitions[from].pending.note_mail[to]);
                for note in mail.drain(..) {
                    self.partitions[to].pending.push_note(note);
                }
                self.partitions[from].pending.note_mail[to] = mail;
            }
        }
    }

    /// Works off windows with a thread per partition, until the end or until a stretch was idle.
    ///
    /// One barrier per window: before it each thread publishes the first window that it or its mail
    /// asks for, and leaves its mail; after it all compute the same minimum and take their mail. All
    /// that is shared has two sets used in turn, so that nobody writes what another still reads.
    fn run_threads(&mut self, until: Time, interrupt: &AtomicBool) -> Stretch {
        let threads = self.partitions.len();
        let barrier = SpinBarrier::new(threads);
        let next: [Vec<AtomicU64>; 2] =
            std::array::from_fn(|_| (0..threads).map(|_| AtomicU64::new(u64::MAX)).collect());
        let handled: [Vec<AtomicU64>; 2] =
            std::array::from_fn(|_| (0..threads).map(|_| AtomicU64::new(0)).collect());
        let mail: [Vec<Mutex<Letters<M>>>; 2] = std::array::from_fn(|_| {
            std::iter::repeat_with(|| Mutex::new((Vec::new(), Vec::new()))).take(threads * threads).collect()
        });
        let stop = [AtomicBool::new(false), AtomicBool::new(false)];
        let (windows, model) = (self.windows, &self.model);
        let work = |own: usize, partition: &mut Partition<M>| -> (Stretch, Time) {
            let _guard = barrier.guard();
            let mut parity = 0;
            let mut reached = Time::ZERO;
            let mut handled_before = 0u64;
            let start = partition.events_handled;
            for round in 0u64.. {
                let first = partition.pending.next_window().unwrap_or(u64::MAX);
                let mailed = partition.pending.mail_earliest;
                let first = if mailed == Time::MAX { first } else { first.min(windows.of(mailed)) };
                partition.pending.mail_earliest = Time::MAX;
                next[parity][own].store(first, Ordering::Relaxed);
                handled[parity][own].store(partition.events_handled - start, Ordering::Relaxed);
                let Outgoing { mail: events, note_mail: notes, .. } = &mut partition.pending;
                for (to, (events, notes)) in events.iter_mut().zip(notes).enumerate() {
                    if !events.is_empty() || !notes.is_empty() {
                        let mut letters = lock(&mail[parity][to * threads + own]);
                        std::mem::swap(events, &mut letters.0);
                        std::mem::swap(notes, &mut letters.1);
                    }
                }
                if own == 0 && interrupt.load(Ordering::Relaxed) {
                    stop[parity].store(true, Ordering::Relaxed);
                }
                barrier.wait();
                for from in 0..threads {
                    let mut letters = lock(&mail[parity][own * threads + from]);
                    for event in letters.0.drain(..) {
                        partition.pending.push(event);
                    }
                    for note in letters.1.drain(..) {
                        partition.pending.push_note(note);
                    }
                }
                let window = next[parity].iter().map(|n| n.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
                let stopped = stop[parity].load(Ordering::Relaxed);
                let total: u64 = handled[parity].iter().map(|h| h.load(Ordering::Relaxed)).sum();
                if window == u64::MAX {
                    return (Stretch::Ended(Progress::Dry), reached);
                }
                if windows.start(window) >= until || reached >= until {
                    return (Stretch::Ended(Progress::Reached), reached);
                }
                if stopped {
                    return (Stretch::Ended(Progress::Interrupted), reached);
                }
                if round > 0 && round % STRETCH == 0 {
                    if total - handled_before < EVENTS_WORTH_A_BARRIER * STRETCH * threads as u64 {
                        return (Stretch::Idle, reached);
                    }
                    handled_before = total;
                }
                partition.run_window(model, window, windows, until);
                reached = windows.start(window + 1).min(until);
                parity ^= 1;
            }
            (Stretch::Busy, reached)
        };
        let mut outcomes = Vec::with_capacity(threads);
        std::thread::scope(|scope| {
            let mut partitions = self.partitions.iter_mut().enumerate();
            let first = partitions.next();
            let others: Vec<_> = partitions.map(|(own, p)| scope.spawn(move || work(own, p))).collect();
            if let Some((own, partition)) = first {
                outcomes.push(work(own, partition));
            }
            for thread in others {
                match thread.join() {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        let (stretch, reached) = outcomes.swap_remove(0);
        self.now = self.now.max(reached);
        stretch
    }

    /// The whole state as bytes. The same for any number of threads.
    ///
    /// # Errors
    /// Never for models whose state can be serialized at all.
    pub fn save(&mut self) -> Result<Vec<u8>, SnapshotError> {
        for site in self.partitions.iter_mut().flat_map(|partition| &mut partition.sites) {
            self.model.settle(site, self.now);
        }
        let mut events: Vec<Event<M::Payload>> =
            self.partitions.iter().flat_map(|p| p.pending.pending()).copied().collect();
        events.sort_by(|a, b| a.site.cmp(&b.site).then_with(|| a.compare(b)));
        let mut notes: Vec<Note<M::Note>> =
            self.partitions.iter().flat_map(|p| p.pending.pending_notes()).copied().collect();
        notes.sort_unstable_by_key(|note| (note.site, note.time, note.note));
        let sites: Vec<&M::Site> = self.partitions.iter().flat_map(|p| &p.sites).collect();
        let snapshot = Snapshot { now: self.now, sites, events, notes };
        postcard::to_stdvec(&snapshot).map_err(SnapshotError::Unreadable)
    }

    /// A simulation that goes on where [`Simulation::save`] was called, on any number of threads.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of this model.
    pub fn resume(
        model: M,
        bytes: &[u8],
        sites: usize,
        lookahead: Lookahead,
        threads: usize,
    ) -> Result<Simulation<M>, SnapshotError> {
        let snapshot: Snapshot<M::Site, M::Payload, M::Note> =
            postcard::from_bytes(bytes).map_err(SnapshotError::Unreadable)?;
        if snapshot.sites.len() != sites {
            return Err(SnapshotError::OtherModel { found: snapshot.sites.len(), expected: sites });
        }
        let now = snapshot.now;
        let events = snapshot.events.iter().map(|event| (event.site, event.time));
        let mut waiting = events.chain(snapshot.notes.iter().map(|note| (note.site, note.time)));
        if let Some((site, time)) = waiting.find(|&(site, time)| site.index() >= sites || time < now) {
            return Err(SnapshotError::Misplaced { site, time, sites, now });
        }
        let mut simulation = Simulation::new(model, snapshot.sites, [], lookahead, threads);
        simulation.now = snapshot.now;
        for event in snapshot.events {
            simulation.insert(event);
        }
        for note in snapshot.notes {
            let partition = simulation.partition_of(note.site);
            simulation.partitions[partition].pending.push_note(note);
        }
        Ok(simulation)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("a thread that panics breaks the barrier before another takes its locks")
}

/// What one partition sends another in a window.
type Letters<M> = (Vec<Event<<M as Model>::Payload>>, Vec<Note<<M as Model>::Note>>);

/// How a stretch of windows ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stretch {
    /// Windows hold enough events for threads.
    Busy,
    /// They do not.
    Idle,
    Ended(Progress),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Order, Payload, Stream};
    use proptest::prelude::*;

    /// PHOLD (Fujimoto 1990) with decisions: each job goes to a random site after a random time, and
    /// each site remembers what came in which order.
    struct Phold {
        sites: u32,
        lookahead: Span,
    }

    /// Jobs from this number on tell a neighbour of a decision, and end there.
    const DECIDED: u32 = 1 << 20;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    struct Job {
        number: u32,
        hops: u32,
    }

    impl Payload for Job {
        fn tie(&self) -> u128 {
            u128::from(self.number) << 32 | u128::from(self.hops)
        }
    }

    #[derive(Serialize, Deserialize)]
    struct Site {
        dice: Stream,
        digest: u64,
        decision: Time,
        /// Notes that do not count yet, with what they say.
        notes: Vec<(Time, u32)>,
    }

    impl Site {
        fn note(&mut self, value: u64) {
            self.digest = (self.digest ^ value).wrapping_mul(0x0100_0000_01B3).rotate_left(17);
        }
    }

    impl Model for Phold {
        type Payload = Job;
        type Note = u32;
        type Site = Site;
        type Output = u64;

        fn handle(
            &self,
            site: &mut Site,
            event: &Event<Job>,
            output: &mut u64,
            context: &mut Context<'_, Job, u32>,
        ) {
            *output += 1;
            site.note(event.time.as_ps() ^ u64::from(event.payload.number) << 40);
            if event.payload.number >= DECIDED {
                return;
            }
            // Coarse times, so that ties are common.
            let to = SiteId(site.dice.below(self.sites));
            let far = if to == context.site() { 0 } else { self.lookahead.as_ps() };
            let spread = [0, 100, 3_000, 1_000_000][site.dice.below(4) as usize];
            let time = context.now() + Span::from_ps(far + spread);
            let job = Job { hops: event.payload.hops + 1, ..event.payload };
            // A job that stays must take some time, or an instant never ends.
            let time = if time == context.now() { time + Span::from_ps(10) } else { time };
            context.send(Event { time, site: to, order: Order::new(0, 0), payload: job });
            let friend = SiteId((context.site().0 + 1) % self.sites);
            context.send_note(context.now() + self.lookahead, friend, event.payload.hops);
            site.decision = site.decision.min(context.now() + Span::from_ps(3_000));
        }

        fn note(&self, site: &mut Site, _: Time, time: Time, note: u32) {
            site.notes.push((time, note));
        }

        fn decision(site: &Site) -> Time {
            site.decision
        }

        fn decide(&self, site: &mut Site, _: &mut u64, context: &mut Context<'_, Job, u32>) {
            site.decision = Time::MAX;
            let due = site.notes.iter().filter(|(time, _)| *time <= context.now());
            let sum = due.map(|(_, note)| u64::from(*note)).sum::<u64>();
            site.notes.retain(|(time, _)| *time > context.now());
            site.note(context.now().as_ps() ^ sum << 32);
            // What is decided is told to a neighbour, as an arbiter does: a decision that is carried out
            // late would be too late for it.
            let site = SiteId((context.site().0 + 1) % self.sites);
            let payload = Job { number: DECIDED + context.site().0, hops: 0 };
            context.send(Event {
                time: context.now() + self.lookahead,
                site,
                order: Order::new(0, 1),
                payload,
            });
        }
    }

    fn sites(count: u32) -> Vec<Site> {
        let site = |i| Site {
            dice: Stream::new(5, u64::from(i), 0),
            digest: 0,
            decision: Time::MAX,
            notes: Vec::new(),
        };
        (0..count).map(site).collect()
    }

    fn phold(count: u32, lookahead: u64, threads: usize) -> Simulation<Phold> {
        let model = Phold { sites: count, lookahead: Span::from_ps(lookahead) };
        let look = Lookahead::across([(model.lookahead, "x")]).unwrap();
        let start = |number| Event {
            time: Time::from_ps(u64::from(number % 3)),
            site: SiteId(number % count),
            order: Order::new(0, 0),
            payload: Job { number, hops: 0 },
        };
        Simulation::new(model, sites(count), (0..count * 2).map(start), look, threads)
    }

    fn digest(simulation: &mut Simulation<Phold>) -> (Vec<u64>, u64) {
        let sites = simulation.sites().map(|(_, s)| s.digest).collect();
        (sites, simulation.outputs_mut().map(|o| *o).sum())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Catches results that depend on partitions, threads, epochs, or on having been saved.
        #[test]
        fn the_same_for_any_number_of_threads_and_after_resume(
            count in 65u32..1_000, lookahead in 1u64..20_000, threads in 2usize..6, epoch in 1u64..9_000_000,
        ) {
            let never = AtomicBool::new(false);
            let end = Time::from_ps(10_000_000);
            let mut alone = phold(count, lookahead, 1);
            alone.run_until(end, &never);
            let expected = digest(&mut alone);

            let mut many = phold(count, lookahead, threads);
            many.run_until(Time::from_ps(epoch), &never);
            let handled = digest(&mut many).1;
            let bytes = many.save().unwrap();
            many.run_until(end, &never);
            prop_assert_eq!(&digest(&mut many), &expected);

            let (model, look) = (Phold { sites: count, lookahead: Span::from_ps(lookahead) },
                Lookahead::across([(Span::from_ps(lookahead), "x")]).unwrap());
            let mut resumed = Simulation::resume(model, &bytes, count as usize, look, 2).unwrap();
            resumed.run_until(end, &never);
            let after = digest(&mut resumed);
            prop_assert_eq!(after.0, expected.0);
            prop_assert_eq!(after.1 + handled, expected.1);
            prop_assert_eq!(resumed.save().unwrap(), many.save().unwrap());
        }
    }

    #[test]
    fn threads_give_up_when_windows_are_nearly_empty_and_still_agree() {
        let never = AtomicBool::new(false);
        let run = |threads| {
            let mut simulation = phold(400, 100, threads);
            simulation.run_until(Time::from_ps(50_000_000), &never);
            digest(&mut simulation)
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn a_foreign_snapshot_is_refused() {
        let bytes = phold(70, 100, 1).save().unwrap();
        let resume = |bytes: &[u8], sites| {
            let model = Phold { sites: 70, lookahead: Span::from_ps(100) };
            Simulation::resume(model, bytes, sites, Lookahead::UNLIMITED, 1).map(|_| ()).unwrap_err()
        };
        assert!(matches!(resume(&bytes, 71), SnapshotError::OtherModel { found: 70, expected: 71 }));
        assert!(matches!(resume(&bytes[..40], 70), SnapshotError::Unreadable(_)));
    }
}

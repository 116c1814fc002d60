//! A whole model in virtual time: windows over partitions, save and resume.
//!
//! ```text
//!   run_until ─┬─ run_alone:  for each window, for each partition: run_window; then hand over mail
//!              └─ threads:    a thread per partition, a barrier per window
//!                   │
//!        stretch of 64 windows ─► enough events for threads? ─► the next stretch, alone or with threads
//! ```
//! Both work off the same windows in the same order. Within a window partitions do not disturb one another,
//! so it does not matter which of the two is chosen.

use crate::event::{Event, SiteId};
use crate::event_queue::{BLOCK, BLOCK_SHIFT, Note, PendingEvents};
use crate::initial::InitialState;
use crate::lookahead::Windows;
use crate::model::{Model, Pulses};
use crate::partition::Partition;
use crate::threads::{self, StretchOutcome, Task, WINDOWS_PER_STRETCH};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use weft_units::{Span, Time};

/// The outcome of [`Simulation::run_until`].
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
    /// Shared state of sites, such as the queues that they publish, that is not of this model.
    #[error("the snapshot does not have what the sites of this machine share; it is damaged")]
    OtherShared,
    /// Something is pending at a site or a time where nothing can be.
    #[error(
        "the snapshot has something for site {} at {time}, of {sites} sites and from {now} on; it is damaged",
        site.0
    )]
    Misplaced {
        /// The site.
        site: SiteId,
        /// The time.
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
    /// The number of the last pulse. Whenever a run stands, this is the last up to the present time.
    pulse: u64,
    /// Whether virtual time stands where nothing is pending.
    stands_when_dry: bool,
}

/// The whole state of a run: independent of partitions and threads.
#[derive(Serialize, Deserialize)]
struct Snapshot<S, P, N> {
    now: Time,
    /// See [`Model::save_shared`].
    shared: Vec<u8>,
    sites: Vec<S>,
    events: Vec<Event<P>>,
    notes: Vec<Note<N>>,
}

impl<M: Model> Simulation<M> {
    /// A simulation that is about to begin, with `threads` partitions of as many sites each as the blocks
    /// of 64 allow.
    pub fn new(initial: InitialState<M>, threads: usize) -> Simulation<M> {
        let InitialState { model, sites, events, lookahead } = initial;
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
                Partition::new(first_site as u32, own_sites, PendingEvents::new(windows, &bounds, own))
            })
            .collect();
        let mut simulation = Simulation {
            model,
            partitions,
            sites: count as u32,
            windows,
            threads,
            now: Time::ZERO,
            pulse: 0,
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

    /// From now on virtual time does not pass without events: a run that ends [dry](Progress::Dry) stands
    /// where the window of its last event ends, for those who go on from there and would not have waited.
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

    /// The reports of each partition since they were last taken, in the order of partitions. Their total
    /// is independent of partitions; their distribution over them is not.
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
        let pulses = self.model.pulses();
        let progress = match pulses {
            None => self.run_windows(until, interrupt, &mut (self.threads > 1)),
            Some(pulses) => self.run_from_pulse_to_pulse(pulses, until, interrupt),
        };
        let passes = match progress {
            Progress::Reached => true,
            Progress::Dry => !self.stands_when_dry && until != Time::NEVER,
            Progress::Interrupted => false,
        };
        if passes {
            self.now = self.now.max(until);
        }
        if let Some(pulses) = pulses {
            self.make_pulses(pulses);
        }
        progress
    }

    /// [`Simulation::run_windows`] with the pulses between.
    fn run_from_pulse_to_pulse(&mut self, pulses: Pulses, until: Time, interrupt: &AtomicBool) -> Progress {
        let interval = pulses.interval.as_ps();
        let mut threaded = self.threads > 1;
        loop {
            let next_window = self.partitions.iter().filter_map(|p| p.pending.next_window()).min();
            let Some(window) = next_window else { return Progress::Dry };
            // Up to the last pulse before which nothing happens, or to the next.
            let quiet_until = self.windows.start(window).max(self.now).min(until);
            let number = (quiet_until.as_ps() / interval).max(self.pulse + 1);
            let pulse = Time::from_ps(number.saturating_mul(interval));
            if pulse > until {
                return self.run_windows(until, interrupt, &mut threaded);
            }
            match self.run_windows(pulse, interrupt, &mut threaded) {
                Progress::Reached => {
                    self.now = self.now.max(pulse);
                    self.make_pulses(pulses);
                }
                ended => return ended,
            }
        }
    }

    /// Makes those of the pulses up to the present time that are still to be made and matter. Nothing has
    /// happened between them.
    fn make_pulses(&mut self, pulses: Pulses) {
        let Pulses { interval, remembered } = pulses;
        let last = self.now.as_ps() / interval.as_ps();
        let first = (self.pulse + 1).max((last + 1).saturating_sub(remembered));
        for number in first..=last {
            let sites = self.partitions.iter_mut().flat_map(|p| &mut p.sites);
            self.model.pulse(Time::from_ps(number * interval.as_ps()), sites);
        }
        self.pulse = last;
    }

    /// Handles every event before `until`, alone or with threads: to begin with as `threaded` says.
    fn run_windows(&mut self, until: Time, interrupt: &AtomicBool, threaded: &mut bool) -> Progress {
        loop {
            let stretch =
                if *threaded { self.run_threads(until, interrupt) } else { self.run_alone(until, interrupt) };
            match stretch {
                StretchOutcome::Ended(progress) => return progress,
                StretchOutcome::Busy => *threaded = self.threads > 1,
                StretchOutcome::Idle => *threaded = false,
            }
        }
    }

    /// Works off one stretch of windows over all partitions on this thread.
    fn run_alone(&mut self, until: Time, interrupt: &AtomicBool) -> StretchOutcome {
        let before = self.events_handled();
        for _ in 0..WINDOWS_PER_STRETCH {
            if interrupt.load(Ordering::Relaxed) {
                return StretchOutcome::Ended(Progress::Interrupted);
            }
            let Some(window) = self.partitions.iter().filter_map(|p| p.pending.next_window()).min() else {
                return StretchOutcome::Ended(Progress::Dry);
            };
            if self.windows.start(window) >= until {
                return StretchOutcome::Ended(Progress::Reached);
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
                return StretchOutcome::Ended(Progress::Reached);
            }
        }
        StretchOutcome::of(self.events_handled() - before, self.partitions.len())
    }

    fn deliver_mail(&mut self) {
        for from in 0..self.partitions.len() {
            if self.partitions[from].pending.mail_earliest == Time::NEVER {
                continue;
            }
            self.partitions[from].pending.mail_earliest = Time::NEVER;
            for to in 0..self.partitions.len() {
                let mut letters = std::mem::take(&mut self.partitions[from].pending.mail[to]);
                self.partitions[to].pending.take_over(&mut letters);
                self.partitions[from].pending.mail[to] = letters;
            }
        }
    }

    /// Works off windows with a thread per partition, until the end or until a stretch was idle.
    fn run_threads(&mut self, until: Time, interrupt: &AtomicBool) -> StretchOutcome {
        let task = Task { model: &self.model, windows: self.windows, until, interrupt };
        let (stretch, reached) = threads::run(&mut self.partitions, &task);
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
        let shared = self.model.save_shared();
        let snapshot = Snapshot { now: self.now, shared, sites, events, notes };
        postcard::to_stdvec(&snapshot).map_err(SnapshotError::Unreadable)
    }

    /// A simulation that goes on where [`Simulation::save`] was called, on any number of threads. `initial`
    /// is the state in which the saved one began.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of this model.
    pub fn resume(
        initial: InitialState<M>,
        bytes: &[u8],
        threads: usize,
    ) -> Result<Simulation<M>, SnapshotError> {
        let InitialState { mut model, sites: unused_sites, events: unused_events, lookahead } = initial;
        let sites = unused_sites.len();
        // The saved ones take their place: both together may not fit the memory.
        drop((unused_sites, unused_events));
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
        if !model.resume_shared(&snapshot.shared) {
            return Err(SnapshotError::OtherShared);
        }
        let pulse = model.pulses().map_or(0, |pulses| now.as_ps() / pulses.interval.as_ps());
        let begun = InitialState { model, sites: snapshot.sites, events: Vec::new(), lookahead };
        let mut simulation = Simulation::new(begun, threads);
        (simulation.now, simulation.pulse) = (snapshot.now, pulse);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Lookahead, Order, Payload, Stream};
    use proptest::prelude::*;

    /// PHOLD (Fujimoto 1990) with decisions: each job goes to a random site after a random time, and
    /// each site remembers what came in which order.
    struct Phold {
        sites: u32,
        lookahead: Span,
        pulses: Option<Pulses>,
        /// Digests of all sites at the last two pulses, by the pulse's number.
        seen: [u64; 2],
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
        rng: Stream,
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
            if let Some(Pulses { interval, .. }) = self.pulses {
                let last = (context.now().as_ps() / interval.as_ps()) as usize;
                site.note(self.seen[last % 2] ^ self.seen[(last + 1) % 2] << 1);
            }
            site.note(event.time.as_ps() ^ u64::from(event.payload.number) << 40);
            if event.payload.number >= DECIDED {
                return;
            }
            // Coarse times, so that ties are common.
            let to = SiteId(site.rng.below(self.sites));
            let far = if to == context.site() { 0 } else { self.lookahead.as_ps() };
            let spread = [0, 100, 3_000, 1_000_000][site.rng.below(4) as usize];
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
            // Notes of one instant come in any order, and a snapshot must not show it.
            let place = site.notes.partition_point(|other| *other <= (time, note));
            site.notes.insert(place, (time, note));
        }

        fn decision(site: &Site) -> Time {
            site.decision
        }

        fn decide(&self, site: &mut Site, _: &mut u64, context: &mut Context<'_, Job, u32>) {
            site.decision = Time::NEVER;
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

        fn pulses(&self) -> Option<Pulses> {
            self.pulses
        }

        fn pulse<'a>(&mut self, at: Time, sites: impl Iterator<Item = &'a mut Site>) {
            let Some(Pulses { interval, .. }) = self.pulses else { unreachable!("no pulses") };
            assert!(at > Time::ZERO && at.as_ps().is_multiple_of(interval.as_ps()));
            let digest = sites.fold(at.as_ps(), |sum, site| sum.rotate_left(5) ^ site.digest);
            self.seen[(at.as_ps() / interval.as_ps()) as usize % 2] = digest;
        }

        fn save_shared(&self) -> Vec<u8> {
            postcard::to_stdvec(&self.seen).unwrap()
        }

        fn resume_shared(&mut self, saved: &[u8]) -> bool {
            postcard::from_bytes(saved).map(|seen| self.seen = seen).is_ok()
        }
    }

    const PULSES: [Option<Pulses>; 4] = [
        None,
        Some(Pulses { interval: Span::from_ps(70_001), remembered: 2 }),
        Some(Pulses { interval: Span::from_ps(200_000), remembered: 2 }),
        Some(Pulses { interval: Span::from_ps(900_000), remembered: 2 }),
    ];

    fn sites(count: u32) -> Vec<Site> {
        let site = |i| Site {
            rng: Stream::new(5, u64::from(i), 0),
            digest: 0,
            decision: Time::NEVER,
            notes: Vec::new(),
        };
        (0..count).map(site).collect()
    }

    fn initial(count: u32, lookahead: u64, pulses: Option<Pulses>) -> InitialState<Phold> {
        let model = Phold { sites: count, lookahead: Span::from_ps(lookahead), pulses, seen: [0; 2] };
        let lookahead = Lookahead::across([(model.lookahead, "x")]).unwrap();
        let start = |number| Event {
            time: Time::from_ps(u64::from(number % 3)),
            site: SiteId(number % count),
            order: Order::new(0, 0),
            payload: Job { number, hops: 0 },
        };
        let events = (0..count * 2).map(start).collect();
        InitialState { model, sites: sites(count), events, lookahead }
    }

    fn phold(count: u32, lookahead: u64, threads: usize) -> Simulation<Phold> {
        Simulation::new(initial(count, lookahead, None), threads)
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
            (count, threads) in (65u32..1_000, 2usize..6), lookahead in 1u64..20_000,
            epoch in 1u64..9_000_000, pulses in prop::sample::select(&PULSES),
        ) {
            let never = AtomicBool::new(false);
            let end = Time::from_ps(10_000_000);
            let mut alone = Simulation::new(initial(count, lookahead, pulses), 1);
            alone.run_until(end, &never);
            let expected = digest(&mut alone);

            let mut many = Simulation::new(initial(count, lookahead, pulses), threads);
            many.run_until(Time::from_ps(epoch), &never);
            let handled = digest(&mut many).1;
            let bytes = many.save().unwrap();
            many.run_until(end, &never);
            prop_assert_eq!(&digest(&mut many), &expected);

            let mut resumed = Simulation::resume(initial(count, lookahead, pulses), &bytes, 2).unwrap();
            resumed.run_until(end, &never);
            let after = digest(&mut resumed);
            prop_assert_eq!(after.0, expected.0);
            prop_assert_eq!(after.1 + handled, expected.1);
            prop_assert_eq!(resumed.save().unwrap(), many.save().unwrap());
        }

        /// Catches pulses that are left out though something happened between them, and those that are made
        /// late, or twice. Few sites and jobs, so that virtual time leaps; events are inserted after a run
        /// has found nothing more.
        #[test]
        fn pulses_that_are_left_out_are_not_missed(
            count in 1u32..4, interval in 3_000u64..400_000,
            epochs in prop::collection::vec(1u64..3_000_000, 1..6),
        ) {
            let never = AtomicBool::new(false);
            let run = |remembered| {
                let pulses = Some(Pulses { interval: Span::from_ps(interval), remembered });
                let mut simulation = Simulation::new(initial(count, 1_000, pulses), 1);
                let mut end = Time::ZERO;
                for epoch in &epochs {
                    end += Span::from_ps(*epoch);
                    simulation.run_until(end, &never);
                }
                (digest(&mut simulation), simulation.save().unwrap())
            };
            prop_assert!(run(2) == run(u64::MAX));
        }
    }

    /// Catches a pulse that is missed or made twice where a run has found nothing more for a while.
    #[test]
    fn pulses_go_on_where_nothing_is_pending() {
        let never = AtomicBool::new(false);
        let pulses = Some(Pulses { interval: Span::from_ps(1_000), remembered: 2 });
        let InitialState { model, sites, lookahead, .. } = initial(2, 100, pulses);
        let mut simulation = Simulation::new(InitialState { model, sites, events: Vec::new(), lookahead }, 1);
        assert_eq!(simulation.run_until(Time::from_ps(5_500), &never), Progress::Dry);
        assert_eq!((simulation.now(), simulation.pulse), (Time::from_ps(5_500), 5));
        simulation.stand_when_dry();
        assert_eq!(simulation.run_until(Time::from_ps(9_500), &never), Progress::Dry);
        assert_eq!((simulation.now(), simulation.pulse), (Time::from_ps(5_500), 5));
        let payload = Job { number: DECIDED, hops: 0 };
        let time = Time::from_ps(7_200);
        simulation.insert(Event { time, site: SiteId(0), order: Order::new(0, 0), payload });
        assert_eq!(simulation.run_until(Time::from_ps(7_201), &never), Progress::Reached);
        assert_eq!(simulation.pulse, 7);
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
            Simulation::resume(initial(sites, 100, None), bytes, 1).map(|_| ()).unwrap_err()
        };
        assert!(matches!(resume(&bytes, 71), SnapshotError::OtherModel { found: 70, expected: 71 }));
        assert!(matches!(resume(&bytes[..40], 70), SnapshotError::Unreadable(_)));
        // What the sites share is missing.
        let mut without = InitialState { ..initial(70, 100, None) };
        without.model.seen = [1, 2];
        let bytes = Simulation::new(without, 1).save().unwrap();
        assert_eq!(Simulation::resume(initial(70, 100, None), &bytes, 1).unwrap().model.seen, [1, 2]);
    }
}

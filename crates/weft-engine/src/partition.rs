//! A partition: neighbouring sites that one thread works off, window by window.

use crate::batch::Batch;
use crate::by_site::{BySite, bits};
use crate::event::SiteId;
use crate::event_queue::{BLOCK, BLOCK_SHIFT, PendingEvents};
use crate::keys::{Key, Sorted};
use crate::lookahead::Windows;
use crate::model::{Context, Model};
use crate::own_events::OwnEvents;
use crate::prefetch::prefetch;
use weft_units::Time;

pub(crate) struct Partition<M: Model> {
    pub(crate) first_site: u32,
    pub(crate) sites: Vec<M::Site>,
    /// For each site the earliest decision that the pending events know of; [`Time::NEVER`]: none.
    armed: Vec<Time>,
    pub(crate) pending: PendingEvents<M::Payload, M::Note>,
    pub(crate) output: M::Output,
    pub(crate) events_handled: u64,
    /// Room for the events of a block by site.
    keys: Vec<Key>,
    /// Room for its notes.
    note_order: Vec<u32>,
    /// Room for those of a site in order.
    sorted: Sorted,
    own: OwnEvents<M::Payload>,
}

/// The work in one block and window.
struct BlockWork<'a, M: Model> {
    model: &'a M,
    /// Index of the block's first site in the partition.
    first: usize,
    batch: &'a Batch<M::Payload, M::Note>,
    /// Beginning of the window.
    start: Time,
    /// End of the window, or of the run within it, exclusive.
    end: Time,
}

/// The place of a site in its block.
#[inline]
fn member(site: SiteId) -> usize {
    site.index() & (BLOCK - 1)
}

impl<M: Model> Partition<M> {
    pub(crate) fn new(
        first_site: u32,
        sites: Vec<M::Site>,
        pending: PendingEvents<M::Payload, M::Note>,
    ) -> Self {
        let mut partition = Partition {
            first_site,
            armed: vec![Time::NEVER; sites.len()],
            sites,
            pending,
            output: M::Output::default(),
            events_handled: 0,
            keys: Vec::new(),
            note_order: Vec::new(),
            sorted: Sorted::new(),
            own: OwnEvents::default(),
        };
        for index in 0..partition.sites.len() {
            partition.arm(index);
        }
        partition
    }

    /// Makes sure that the pending events know of the site's next decision.
    #[inline]
    fn arm(&mut self, index: usize) {
        let decision = M::decision(&self.sites[index]);
        if decision < self.armed[index] {
            self.armed[index] = decision;
            self.pending.push_decision(decision, SiteId(self.first_site + index as u32));
        }
    }

    /// Works off `window` up to `until` (exclusive).
    pub(crate) fn run_window(&mut self, model: &M, window: u64, windows: Windows, until: Time) {
        self.pending.enter(window);
        if !self.pending.is_occupied() {
            return;
        }
        let window_end = windows.start(window + 1);
        let end = window_end.min(until);
        for word in 0..self.pending.words() {
            let mut blocks = self.pending.take_occupied(word);
            while blocks != 0 {
                let block = word * 64 + blocks.trailing_zeros() as usize;
                blocks &= blocks - 1;
                let batch = self.pending.take(block);
                let start = windows.start(window);
                let mut room = std::mem::take(&mut self.sorted);
                let work = BlockWork { model, first: block << BLOCK_SHIFT, batch: &batch, start, end };
                if let Batch { events, notes, decisions } = &batch
                    && let [event] = &events[..]
                    && notes.is_empty()
                    && decisions.is_empty()
                {
                    // So it is in most windows of a job of few ranks.
                    let keys = [Key::new(event, start, 0), Key::END];
                    self.run_site(&work, work.first + member(event.site), &keys);
                } else if let Some(sorted) = room.few_of_block(&batch.events, start) {
                    self.run_sparse_block(&work, sorted);
                } else {
                    self.run_block(&work, &mut room);
                }
                self.sorted = room;
                self.pending.recycle(batch);
            }
        }
        self.pending.leave(end == window_end);
    }

    /// The same as [`Self::run_block`] where little happens: `sorted` holds the events site by site.
    fn run_sparse_block(&mut self, work: &BlockWork<'_, M>, sorted: &[Key]) {
        let BlockWork { model, first, batch: Batch { events, notes, decisions }, start, end } = *work;
        let mut active = 0u64;
        for note in notes {
            active |= 1 << member(note.site);
            model.note(&mut self.sites[first + member(note.site)], start, note.time, note.note);
        }
        for site in decisions {
            active |= 1 << member(*site);
        }
        let mut with_events = 0u64;
        for event in events {
            with_events |= 1 << member(event.site);
        }
        active |= with_events;
        let mut at = 0;
        for member in bits(active) {
            let mut keys = &[Key::END][..];
            if with_events >> member & 1 == 1 {
                let from = at;
                while !sorted[at].is_end() {
                    at += 1;
                }
                at += 1;
                keys = &sorted[from..at];
            } else if M::decision(&self.sites[first + member]) >= end {
                self.rest(first + member);
                continue;
            }
            self.run_site(work, first + member, keys);
        }
    }

    /// Works off the events, notes and decisions of one block, site by site.
    fn run_block(&mut self, work: &BlockWork<'_, M>, sorted: &mut Sorted) {
        let BlockWork { model, first, batch: Batch { events, notes, decisions }, start, end } = *work;
        let far = self.pending.far;
        let mut active = 0u64;
        for site in decisions {
            active |= 1 << member(*site);
        }
        let notes_by_site = far.then(|| {
            // So that the memory of a site is asked for once.
            let sites = notes.iter().map(|note| member(note.site));
            BySite::new(std::mem::take(&mut self.note_order), sites, 0, |number| number)
        });
        if let Some(notes) = &notes_by_site {
            active |= notes.occupied;
        } else {
            for note in notes {
                active |= 1 << member(note.site);
                model.note(&mut self.sites[first + member(note.site)], start, note.time, note.note);
            }
        }
        let sites = events.iter().map(|event| member(event.site));
        let room = std::mem::take(&mut self.keys);
        let keys =
            BySite::new(room, sites, Key::END, |number| Key::new(&events[number as usize], start, number));
        active |= keys.occupied;
        if far && active != 0 {
            model.prefetch(&self.sites[first + active.trailing_zeros() as usize]);
        }
        while active != 0 {
            let member = active.trailing_zeros() as usize;
            active &= active - 1;
            if let Some(notes_by_site) = &notes_by_site {
                // The next site is asked for while this one is worked off, the one after that only where it
                // is.
                if active != 0 {
                    let next = active.trailing_zeros() as usize;
                    let site = &self.sites[first + next];
                    model.prefetch(site);
                    for key in keys.of(next) {
                        model.prefetch_event(site, &events[key.index as usize]);
                    }
                    let later = active & (active - 1);
                    if later != 0 {
                        prefetch(&self.sites[first + later.trailing_zeros() as usize]);
                    }
                }
                for &number in notes_by_site.of(member) {
                    let note = &notes[number as usize];
                    model.note(&mut self.sites[first + member], start, note.time, note.note);
                }
            }
            if keys.occupied >> member & 1 == 0 && M::decision(&self.sites[first + member]) >= end {
                self.rest(first + member);
                continue;
            }
            let in_order = sorted.of_site(keys.of(member), events);
            self.run_site(work, first + member, in_order);
        }
        self.keys = keys.into_room();
        if let Some(notes) = notes_by_site {
            self.note_order = notes.into_room();
        }
    }

    /// Handles the events of one site up to the end, in the order of `keys`, with those it sends itself. On
    /// its own: what it goes by stays in registers.
    #[inline(never)]
    fn run_site(&mut self, work: &BlockWork<'_, M>, index: usize, keys: &[Key]) {
        let BlockWork { model, batch: Batch { events, .. }, start, end, .. } = *work;
        debug_assert!(self.own.is_empty());
        let site = &mut self.sites[index];
        let mut context = Context {
            now: Time::ZERO,
            site: SiteId(self.first_site + index as u32),
            window_end: end,
            undisturbed_until: Time::ZERO,
            first_own: Time::NEVER,
            own: &mut self.own,
            outgoing: &mut self.pending,
        };
        let mut next = 0;
        let mut arrival = keys[0].time(start);
        loop {
            let time = arrival.min(context.first_own);
            // Decisions come after all events of their instant.
            let decision = M::decision(site);
            if decision < time {
                if decision >= end {
                    break;
                }
                context.now = decision;
                model.decide(site, &mut self.output, &mut context);
                continue;
            }
            if time >= end {
                break;
            }
            context.now = time;
            self.events_handled += 1;
            if context.first_own < arrival
                || context.first_own == arrival && {
                    let arrived = &events[keys[next].index as usize];
                    context.own.first().is_some_and(|own| own.compare(arrived).is_lt())
                }
            {
                if let Some(event) = context.take_own() {
                    context.undisturbed_until = arrival.min(context.first_own).min(end);
                    model.handle(site, &event, &mut self.output, &mut context);
                }
            } else {
                let event = &events[keys[next].index as usize];
                next += 1;
                arrival = keys[next].time(start);
                context.undisturbed_until = arrival.min(context.first_own).min(end);
                model.handle(site, event, &mut self.output, &mut context);
            }
        }
        // Only when a window is cut short by an epoch.
        for key in &keys[next..keys.len() - 1] {
            context.outgoing.push(events[key.index as usize]);
        }
        debug_assert!(context.own.is_empty(), "a site's own events lie before the end of the window");
        self.rest(index);
    }

    /// A site has nothing more to do in this window: its next decision goes to the pending events, which have
    /// handed out this window's, also those that an epoch now postpones.
    #[inline]
    fn rest(&mut self, index: usize) {
        if self.armed[index] < self.pending.window_end() {
            self.armed[index] = Time::NEVER;
        }
        self.arm(index);
    }
}

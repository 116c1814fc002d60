//! A partition: neighbouring sites that one thread works off, window by window.

use crate::event::{Earliest, Event, SiteId};
use crate::model::{Context, Model};
use crate::wheel::{BLOCK, BLOCK_SHIFT, Batch, Outgoing};
use std::collections::BinaryHeap;
use weft_units::Time;

pub(crate) struct Partition<M: Model> {
    pub(crate) first_site: u32,
    pub(crate) sites: Vec<M::Site>,
    /// For each site the earliest decision that the wheel knows of; [`Time::MAX`]: none.
    armed: Vec<Time>,
    pub(crate) pending: Outgoing<M::Payload>,
    pub(crate) output: M::Output,
    pub(crate) events_handled: u64,
    /// The events of a block, ordered by site.
    by_site: Vec<Event<M::Payload>>,
    local: BinaryHeap<Earliest<M::Payload>>,
}

impl<M: Model> Partition<M> {
    pub(crate) fn new(first_site: u32, sites: Vec<M::Site>, pending: Outgoing<M::Payload>) -> Self {
        let mut partition = Partition {
            first_site,
            armed: vec![Time::MAX; sites.len()],
            sites,
            pending,
            output: M::Output::default(),
            events_handled: 0,
            by_site: Vec::new(),
            local: BinaryHeap::new(),
        };
        for index in 0..partition.sites.len() {
            partition.arm(index);
        }
        partition
    }

    /// Makes sure that the wheel knows of the site's next decision.
    #[inline]
    fn arm(&mut self, index: usize) {
        let decision = M::decision(&self.sites[index]);
        if decision < self.armed[index] {
            self.armed[index] = decision;
            self.pending.push_decision(decision, SiteId(self.first_site + index as u32));
        }
    }

    /// Works off `window` up to `until` (exclusive).
    pub(crate) fn run_window(&mut self, model: &M, window: u64, shift: u32, until: Time) {
        self.pending.enter(window);
        if !self.pending.is_occupied() {
            return;
        }
        let window_end = Time::from_ps((window + 1) << shift);
        let end = window_end.min(until);
        let blocks = self.sites.len().div_ceil(BLOCK);
        for block in 0..blocks {
            if let Some(batch) = self.pending.take(block) {
                self.run_block(model, block, batch, end);
            }
        }
        self.pending.leave(end == window_end);
    }

    fn run_block(&mut self, model: &M, block: usize, mut batch: Batch<M::Payload>, end: Time) {
        let mut starts = [0u32; BLOCK + 1];
        for event in &batch.events {
            starts[(event.site.0 as usize & (BLOCK - 1)) + 1] += 1;
        }
        let mut active = 0u64;
        for member in 0..BLOCK {
            active |= u64::from(starts[member + 1] != 0) << member;
            starts[member + 1] += starts[member];
        }
        for site in &batch.decisions {
            active |= 1 << (site.0 as usize & (BLOCK - 1));
        }
        let mut by_site = std::mem::take(&mut self.by_site);
        by_site.clear();
        if active.is_power_of_two() {
            std::mem::swap(&mut by_site, &mut batch.events);
        } else if let Some(&filler) = batch.events.first() {
            by_site.resize(batch.events.len(), filler);
            let mut next = starts;
            for event in &batch.events {
                let slot = &mut next[event.site.0 as usize & (BLOCK - 1)];
                by_site[*slot as usize] = *event;
                *slot += 1;
            }
        }
        // Recycled before the sites run, so that what they send can use the memory while it is warm.
        self.pending.recycle(batch);
        while active != 0 {
            let member = active.trailing_zeros() as usize;
            active &= active - 1;
            let events = &mut by_site[starts[member] as usize..starts[member + 1] as usize];
            self.run_site(model, (block << BLOCK_SHIFT) + member, events, end);
        }
        self.by_site = by_site;
    }

    /// Handles the events of one site up to `end`, in order, with those it sends itself.
    fn run_site(&mut self, model: &M, index: usize, events: &mut [Event<M::Payload>], end: Time) {
        if events.len() > 1 {
            events.sort_unstable_by(Event::compare);
        }
        debug_assert!(self.local.is_empty());
        let site = &mut self.sites[index];
        let mut context = Context {
            now: Time::ZERO,
            site: SiteId(self.first_site + index as u32),
            window_end: end,
            local: &mut self.local,
            outgoing: &mut self.pending,
        };
        let mut next = 0;
        let mut handled = 0;
        loop {
            let arrived = events.get(next);
            let mut time = arrived.map_or(Time::MAX, |e| e.time);
            let mut own = false;
            if let Some(Earliest(local)) = context.local.peek() {
                own = arrived.is_none_or(|e| local.compare(e).is_lt());
                if own {
                    time = local.time;
                }
            }
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
            if own {
                if let Some(Earliest(event)) = context.local.pop() {
                    model.handle(site, &event, &mut self.output, &mut context);
                }
            } else {
                model.handle(site, &events[next], &mut self.output, &mut context);
                next += 1;
            }
            handled += 1;
        }
        // Only when a window is cut short by an epoch.
        for event in &events[next..] {
            context.outgoing.push(*event);
        }
        debug_assert!(context.local.is_empty(), "local events lie before the end of the window");
        self.events_handled += handled;
        if self.armed[index] < end {
            self.armed[index] = Time::MAX;
        }
        self.arm(index);
    }
}

//! The host port: the coherent on-chip port between processors and memory on one side and the network
//! interface in programmable logic on the other.
//!
//! ```text
//!   processors ── stores ═══════════════════════► interface      a word per cycle, then half a round trip
//!   memory     ── data of reads ════════════════► interface      a round trip, the memory's latency, then a
//!                                                                word per cycle
//!   memory    ◄═══════════════════ writes ── interface           a word per cycle, then half a round trip
//! ```
//! Each direction carries a word of 128 bits per cycle, one burst after the other. Up to eight bursts of
//! reads are outstanding, which hides the round trip and the latency of the memory. Writes and stores are
//! posted: nobody waits for their completion. Stores of a core that is coupled tightly to the interface take
//! a [path](StorePath) of their own, with the core's clock and the width of its stores.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.2: AXI-4 with separate read and write channels of 128 bit at 150 MHz, 100 to
//! 150 ns per round trip, saturated by eight outstanding bursts of 16 words. That stores of processors have a
//! channel of their own, of the same width, is ours. RED-SEA D1.4 §8.2, item 2 and Fig. 23: the tight
//! coupling of caRVnet, one store of 64 bits per cycle of the processor, a descriptor of four stores at the
//! interface in less than 12 cycles.
//!
//! # Not modelled
//! Snoops of the coherence protocol, and data that is found in a cache (§4.5). Contention with the cores
//! inside the processing system (see the memory channel). Write responses: bursts of writes are not limited
//! in number, of which §4.2 has eight as well. Round trips that differ by request (§4.2). Loads by
//! processors. Stores of several cores at a time: they take one path in turn.

use crate::block::{Block, block};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock, Span, Time};

/// The port between processor and interface in reports: TR-488 §4.2.
pub const HOST_PORT: Block = block!(Logic "host port");

weft_keys::keys! {
    /// The host port's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct HostPortParameters {
        /// The clock of the logic.
        clock: Clock, of("nic.clock");
        /// Bytes of a channel per cycle.
        word: Bytes, not_zero("16 for 128 bits");
        /// From a request to the first word of its answer.
        round_trip: Span;
        /// Words of a burst.
        burst_words: u32;
        /// Bursts of reads that may be outstanding.
        outstanding: u32, key("outstanding_bursts");
        /// The way of stores of processors; `None`: as wide and as fast as the port's channels.
        stores: Option<StorePath>, group();
    }
}

weft_keys::keys! {
    /// The way of a processor's stores to the interface.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct StorePath {
        /// The processor's clock, where its stores have a way of their own: one store per cycle.
        clock: Clock, key("store_clock");
        /// Bytes of a store; needed with `store_clock`.
        word: Bytes, key("store_word"), not_zero("8 for 64 bits");
        /// From the end of a store's cycle to the interface, in cycles of `store_clock`; needed with it.
        latency: Span, key("store_latency"), cycles_of("nic.host_port.store_clock");
    }
}

impl HostPortParameters {
    /// One way without waiting: half of a round trip.
    #[inline]
    pub fn one_way(&self) -> Span {
        Span::from_ps(self.round_trip.as_ps() / 2)
    }

    /// The way of stores of processors.
    #[inline]
    pub fn store_path(&self) -> StorePath {
        let HostPortParameters { clock, word, .. } = *self;
        self.stores.unwrap_or(StorePath { clock, word, latency: self.one_way() })
    }

    /// Words that carry `bytes`; what carries nothing is a word all the same.
    #[inline]
    pub(crate) fn words(&self, bytes: Bytes) -> u64 {
        bytes.div_ceil(self.word).max(1)
    }
}

/// The port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HostPort {
    stores: Server,
    reads: Server,
    writes: Server,
    /// When the last bursts of reads were or will be answered, as many as may be outstanding.
    answers: Vec<Time>,
    /// Which of them is the oldest, once there are so many.
    oldest: usize,
}

/// A transfer over the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The time of the request.
    pub came: Time,
    /// When its first word was on the port, or its first request.
    pub began: Time,
    /// The time at which all its words have been put on the port: its initiator is done.
    pub issued: Time,
    /// The time at which all of it is at the other side.
    pub ended: Time,
}

impl HostPort {
    /// The time in which each direction has carried words, by name.
    pub(crate) fn worked(&self) -> [(&'static str, Span); 3] {
        let HostPort { stores, reads, writes, .. } = self;
        [
            ("host port, stores", stores.worked()),
            ("host port, reads", reads.worked()),
            ("host port, writes", writes.worked()),
        ]
    }

    /// A processor stores `bytes` into a page of the interface.
    pub fn store(&mut self, came: Time, bytes: Bytes, parameters: &HostPortParameters) -> Transfer {
        let StorePath { clock, word, latency } = parameters.store_path();
        let service = self.stores.serve(came, bytes.div_ceil(word).max(1), &clock);
        posted(service, latency)
    }

    /// The interface writes `bytes` into memory, by way of the last-level cache.
    #[inline]
    pub fn write(&mut self, came: Time, bytes: Bytes, parameters: &HostPortParameters) -> Transfer {
        self.write_words(came, parameters.words(bytes), parameters)
    }

    /// The same of so many words.
    #[inline]
    pub(crate) fn write_words(
        &mut self,
        came: Time,
        words: u64,
        parameters: &HostPortParameters,
    ) -> Transfer {
        let service = self.writes.serve(came, words, &parameters.clock);
        posted(service, parameters.one_way())
    }

    /// The interface reads `bytes` of memory, in as many bursts as that takes; the memory answers each after
    /// `latency`.
    #[inline(always)]
    pub fn read(
        &mut self,
        came: Time,
        bytes: Bytes,
        latency: Span,
        parameters: &HostPortParameters,
    ) -> Transfer {
        let (words, most) = (parameters.words(bytes), u64::from(parameters.burst_words));
        let first = self.read_burst(came, words.min(most), latency, parameters);
        if words <= most { first } else { self.read_further(first, words - most, latency, parameters) }
    }

    /// The bursts of a read behind its first.
    #[inline(never)]
    fn read_further(
        &mut self,
        first: Transfer,
        words: u64,
        latency: Span,
        parameters: &HostPortParameters,
    ) -> Transfer {
        let (mut whole, mut left) = (first, words);
        while left > 0 {
            let burst = left.min(u64::from(parameters.burst_words));
            left -= burst;
            let next = self.read_burst(first.came, burst, latency, parameters);
            whole = Transfer { began: first.began, ..next };
        }
        whole
    }

    /// Reads a burst of so many words, as soon as it may be outstanding.
    #[inline(always)]
    fn read_burst(
        &mut self,
        came: Time,
        words: u64,
        latency: Span,
        parameters: &HostPortParameters,
    ) -> Transfer {
        if self.answers.len() < parameters.outstanding.max(1) as usize {
            // As if one that was answered long ago made way for it.
            self.oldest = self.answers.len();
            self.answers.push(Time::ZERO);
        }
        let place = self.oldest;
        let asked = self.answers[place].max(came);
        let service = self.reads.serve(asked + parameters.round_trip + latency, words, &parameters.clock);
        self.answers[place] = service.ended;
        self.oldest = if place + 1 < self.answers.len() { place + 1 } else { 0 };
        Transfer { came, began: asked, issued: service.ended, ended: service.ended }
    }
}

/// A transfer that is put on the port and that nobody waits for; it is there `latency` later.
#[inline]
fn posted(service: Service, latency: Span) -> Transfer {
    let Service { came, began, ended } = service;
    Transfer { came, began, issued: ended, ended: ended + latency }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn port() -> HostPortParameters {
        HostPortParameters {
            clock: Clock::from_hertz(150_000_000).unwrap(),
            word: Bytes::new(16),
            round_trip: Span::from_ns(125),
            burst_words: 16,
            outstanding: 8,
            stores: None,
        }
    }

    /// Catches stores that take the port's clock or width: four of 64 bits are a descriptor of caRVnet, 11
    /// cycles of the core in all, and a core issues the next ones meanwhile.
    #[test]
    fn a_tightly_coupled_core_stores_a_word_per_cycle_of_its_own() {
        let clock = Clock::from_hertz(100_000_000).unwrap();
        let stores = StorePath { clock, word: Bytes::new(8), latency: clock.cycles(7) };
        let parameters = HostPortParameters { stores: Some(stores), ..port() };
        let mut host_port = HostPort::default();
        let transfers = [(); 3].map(|()| host_port.store(Time::ZERO, Bytes::new(32), &parameters));
        assert_eq!(transfers.map(|it| it.issued), [4, 8, 12].map(|cycle| clock.edge(cycle)));
        assert_eq!(transfers.map(|it| it.ended), [11, 15, 19].map(|cycle| clock.edge(cycle)));
        // Writes of the interface go as before.
        let written = host_port.write(Time::ZERO, Bytes::new(16), &parameters);
        assert_eq!(written.issued, port().clock.edge(1));
        assert_eq!(written.ended, written.issued + port().one_way());
    }

    #[test]
    fn a_store_takes_its_words_and_half_a_round_trip() {
        let mut host_port = HostPort::default();
        let first = host_port.store(Time::ZERO, Bytes::new(80), &port());
        assert_eq!(first.issued, port().clock.edge(5));
        assert_eq!(first.ended, port().clock.edge(5) + Span::from_ps(62_500));
        let second = host_port.store(Time::ZERO, Bytes::new(1), &port());
        assert_eq!((second.began, second.issued), (first.issued, port().clock.edge(6)));
        // The other direction is free.
        assert_eq!(host_port.write(Time::ZERO, Bytes::new(16), &port()).began, Time::ZERO);
    }

    /// Catches outstanding bursts that are not counted, a length of theirs that does not matter, and memory
    /// that answers at once: bytes under way over the time that they are, up to the rate of the channel,
    /// which the text's eight bursts of 16 words reach.
    #[test]
    fn the_bytes_under_way_over_the_latency_are_the_rate() {
        for (latency, outstanding, burst_words) in [0, 100, 600]
            .into_iter()
            .flat_map(|latency| [1, 2, 3, 4, 6, 8].map(|bursts| (latency, bursts)))
            .flat_map(|(latency, bursts)| [1, 2, 4, 8, 16].map(|words| (latency, bursts, words)))
        {
            let parameters = HostPortParameters { outstanding, burst_words, ..port() };
            let mut host_port = HostPort::default();
            let bytes = Bytes::new(1 << 20);
            let ended = host_port.read(Time::ZERO, bytes, Span::from_ns(latency), &parameters).ended;
            let rate = bytes.get() as f64 * 8e3 / ended.as_ps() as f64;
            // A cycle is 6.667 ns, and an answer may have to wait for its edge.
            let cycles = ((125 + latency) as f64 / 6.667).ceil() + f64::from(burst_words);
            let under_way = f64::from(outstanding * burst_words) * 128.0;
            let expected = (under_way / (cycles * 6.667)).min(19.2);
            let what = format!("{outstanding} bursts of {burst_words}, {latency} ns");
            assert!((rate / expected - 1.0).abs() < 0.06, "{what}: {rate} Gb/s of {expected}");
            assert!(outstanding * burst_words < 128 || rate > 19.1, "{what}: {rate} Gb/s");
        }
    }

    proptest! {
        /// Catches a transfer that ends before one that came earlier, or faster than its channel.
        #[test]
        fn transfers_of_a_channel_keep_their_order(
            transfers in prop::collection::vec((0u64..10_000_000, 0u64..5_000), 1..40),
        ) {
            let mut host_port = HostPort::default();
            let mut came = Time::ZERO;
            let mut last = Time::ZERO;
            for (gap, bytes) in transfers {
                came += Span::from_ps(gap);
                let read = host_port.read(came, Bytes::new(bytes), Span::ZERO, &port());
                prop_assert!(read.began >= came && read.ended >= last);
                prop_assert!(read.ended >= read.began + port().round_trip);
                prop_assert!(host_port.answers.len() <= 8);
                last = read.ended;
            }
        }
    }
}

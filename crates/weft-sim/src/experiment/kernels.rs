//! Kernels of a dataflow design: where their time went, and which of them, or which FIFO, is the limit.
//!
//! ```text
//!  program ── KernelTime: kernel, activity, stream ──► table `kernels`
//!                                                  └─► KernelFigures ──► KernelLimit ──► weft explain
//! ```
//! A kernel that works all the time is the pace of all others, which wait for it: so the one that works
//! longest is the limit. If that one waits for most of the time too, the limit is what it waits for. A
//! FIFO between two kernels that is now full for the one and now empty for the other holds both up, and
//! more words in it would help. A FIFO behind a port that is full holds packets up in the network, and
//! the kernels that send them.

use serde::{Deserialize, Serialize};
use weft_results::KernelRow;
use weft_units::{RankId, Span};
use weft_workload::replay::Seating;

/// The share of the longest time of a kernel in which one at the limit works at least.
const LIMIT_WORKS: f64 = 0.5;
/// The share of its kernels' time for which a FIFO holds up both, from which on it is named.
const HOLDS_UP_BOTH: f64 = 0.05;
/// The share of its kernel's time for which a FIFO behind a port is full, from which on it is named.
const HOLDS_UP_SENDERS: f64 = 0.05;

/// A way in which a kernel spends its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelActivity {
    /// It computes, and reads and writes words.
    Works,
    /// It waits for a word of an empty stream.
    Reads,
    /// It waits for room in a full stream.
    Writes,
    /// Packets wait for room in a stream that it reads, whatever it does meanwhile.
    Full,
}

impl KernelActivity {
    /// The activity of that number of `weft.h`.
    pub fn of(number: u64) -> Option<KernelActivity> {
        use KernelActivity::{Full, Reads, Works, Writes};
        [Works, Reads, Writes, Full].get(number as usize).copied()
    }

    /// As the table has it.
    pub fn name(self) -> &'static str {
        match self {
            KernelActivity::Works => "works",
            KernelActivity::Reads => "reads",
            KernelActivity::Writes => "writes",
            KernelActivity::Full => "full",
        }
    }
}

/// The time of a kernel in one activity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelTime {
    /// The rank of its host program.
    pub rank: RankId,
    /// The kernel.
    pub kernel: String,
    /// The activity.
    pub activity: KernelActivity,
    /// The stream that it waits for; empty where it works.
    pub stream: String,
    /// The time.
    pub time: Span,
}

impl KernelTime {
    /// The row of the table.
    pub(crate) fn row(&self, run: u32, seating: &Seating) -> KernelRow {
        KernelRow {
            run,
            rank: self.rank,
            endpoint: seating.endpoint(self.rank),
            kernel: self.kernel.clone(),
            activity: self.activity.name().to_owned(),
            stream: Some(self.stream.clone()).filter(|stream| !stream.is_empty()),
            time_ps: self.time,
        }
    }
}

/// A wait of a kernel for a stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StreamWait {
    /// Whether it waits to read or to write.
    pub activity: KernelActivity,
    /// The stream.
    pub stream: String,
    /// Time in us.
    pub time_us: f64,
    /// The same as a share of the kernel's time.
    pub share: f64,
}

/// A kernel and its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelFigures {
    /// The rank of its host program: its node, as `apeiron_own_node` counts them.
    pub rank: u32,
    /// The kernel.
    pub kernel: String,
    /// Time in us.
    pub time_us: f64,
    /// The share of its time in which it works.
    pub works: f64,
    /// Waits, the longest first.
    pub waits: Vec<StreamWait>,
    /// Waits of packets for room in its streams, the longest first: beside its own time.
    pub full: Vec<StreamWait>,
}

/// The limit of a design.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelLimit {
    /// The kernels, by rank and in the order in which their programs tell of them.
    pub kernels: Vec<KernelFigures>,
    /// Sentences that name the kernel and the FIFO.
    pub sentences: Vec<String>,
}

impl KernelLimit {
    /// The limit of these; `None`: no kernel has run.
    pub(crate) fn of(times: &[KernelTime]) -> Option<KernelLimit> {
        let kernels = figures(times);
        let longest = kernels.iter().map(|own| own.time_us).fold(0.0, f64::max);
        let worked = |own: &KernelFigures| own.works * own.time_us;
        let limit = kernels.iter().reduce(|most, own| if worked(own) > worked(most) { own } else { most })?;
        let name = |own: &KernelFigures| format!("{} of node {}", own.kernel, own.rank);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut sentences = vec![match limit.waits.first() {
            Some(wait) if worked(limit) < LIMIT_WORKS * longest => format!(
                "No kernel is the limit: {} works longest, and waits for {} of its time until it {} {}.",
                name(limit),
                percent(wait.share),
                wait.activity.name(),
                wait.stream
            ),
            _ => format!(
                "Kernel {} is the limit: it works longest, and waits for {} of its time.",
                name(limit),
                percent(1.0 - limit.works)
            ),
        }];
        let waits = kernels.iter().flat_map(|own| own.waits.iter().map(move |wait| (own, wait)));
        let longest = waits.reduce(|longest, own| if own.1.share > longest.1.share { own } else { longest });
        sentences.extend(longest.map(|(own, wait)| {
            format!(
                "The FIFO that is waited for longest is {}: {} waits for {} of its time until it {} it.",
                wait.stream,
                name(own),
                percent(wait.share),
                wait.activity.name()
            )
        }));
        for (writer, full) in waiters(&kernels, KernelActivity::Writes) {
            let reader = waiters(&kernels, KernelActivity::Reads)
                .find(|(own, wait)| own.rank == writer.rank && wait.stream == full.stream);
            let Some((reader, empty)) = reader else { continue };
            if full.share.min(empty.share) >= HOLDS_UP_BOTH {
                sentences.push(format!(
                    "FIFO {} holds both of its kernels up: it is full for {} in {} of its time, and empty \
                     for {} in {}; with more words in config.yaml each could go on.",
                    full.stream,
                    name(writer),
                    percent(full.share),
                    name(reader),
                    percent(empty.share)
                ));
            }
        }
        let full = kernels.iter().filter_map(|own| Some((own, own.full.first()?)));
        let fullest = full.reduce(|most, own| if own.1.share > most.1.share { own } else { most });
        sentences.extend(fullest.filter(|(_, full)| full.share >= HOLDS_UP_SENDERS).map(|(own, full)| {
            format!(
                "FIFO {} of {} is full for {} of its time: packets wait for room in it, and their senders \
                 with them.",
                full.stream,
                name(own),
                percent(full.share)
            )
        }));
        Some(KernelLimit { kernels, sentences })
    }
}

/// The kernels that wait for streams in that way.
fn waiters(
    kernels: &[KernelFigures],
    activity: KernelActivity,
) -> impl Iterator<Item = (&KernelFigures, &StreamWait)> {
    let waits = kernels.iter().flat_map(|own| own.waits.iter().map(move |wait| (own, wait)));
    waits.filter(move |(_, wait)| wait.activity == activity)
}

fn figures(times: &[KernelTime]) -> Vec<KernelFigures> {
    let mut kernels: Vec<KernelFigures> = Vec::new();
    for KernelTime { rank, kernel, activity, stream, time } in times {
        let at = kernels.iter().position(|own| own.rank == rank.0 && own.kernel == *kernel);
        let at = at.unwrap_or_else(|| {
            let kernel = kernel.clone();
            let (waits, full) = (Vec::new(), Vec::new());
            kernels.push(KernelFigures { rank: rank.0, kernel, time_us: 0.0, works: 0.0, waits, full });
            kernels.len() - 1
        });
        let own = &mut kernels[at];
        let time_us = time.as_us_f64();
        let wait = StreamWait { activity: *activity, stream: stream.clone(), time_us, share: 0.0 };
        match activity {
            KernelActivity::Works => own.works += time_us,
            KernelActivity::Reads | KernelActivity::Writes => own.waits.push(wait),
            KernelActivity::Full => {
                own.full.push(wait);
                continue; // its own time goes on meanwhile
            }
        }
        own.time_us += time_us;
    }
    for own in &mut kernels {
        let share = |time_us: f64| if own.time_us > 0.0 { time_us / own.time_us } else { 0.0 };
        own.works = share(own.works);
        for waits in [&mut own.waits, &mut own.full] {
            waits.iter_mut().for_each(|wait| wait.share = share(wait.time_us));
            waits.sort_by(|a, b| b.time_us.total_cmp(&a.time_us));
        }
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(kernel: &str, activity: KernelActivity, stream: &str, us: u64) -> KernelTime {
        let (kernel, stream) = (kernel.to_owned(), stream.to_owned());
        KernelTime { rank: RankId(1), kernel, activity, stream, time: Span::from_us(us) }
    }

    /// Catches a limit that is a kernel which waits for others, or that has ended early, and a FIFO that is
    /// too short and not named.
    #[test]
    fn the_kernel_that_works_longest_is_the_limit() {
        use KernelActivity::{Full, Reads, Works, Writes};
        let slow = [
            time("front", Works, "", 20),
            time("front", Writes, "taps", 80),
            time("back", Works, "", 95),
            time("back", Reads, "taps", 5),
            time("last", Works, "", 10),
            time("last", Reads, "in", 85),
            time("last", Writes, "out", 5),
            time("last", Full, "in", 40),
        ];
        let limit = KernelLimit::of(&slow).unwrap();
        assert_eq!(
            limit.sentences,
            [
                "Kernel back of node 1 is the limit: it works longest, and waits for 5.0 % of its time.",
                "The FIFO that is waited for longest is in: last of node 1 waits for 85.0 % of its time \
                 until it reads it.",
                "FIFO taps holds both of its kernels up: it is full for front of node 1 in 80.0 % of its \
                 time, and empty for back of node 1 in 5.0 %; with more words in config.yaml \
                 each could go on.",
                "FIFO in of last of node 1 is full for 40.0 % of its time: packets wait for room in it, and \
                 their senders with them.",
            ]
        );
        assert_eq!(limit.kernels[2].time_us, 100.0);
        assert_eq!(limit.kernels[2].waits[0].stream, "in");
        let idle = [time("own", Works, "", 10), time("own", Reads, "message_data_in[0]", 90)];
        let sentences = KernelLimit::of(&idle).unwrap().sentences;
        assert!(
            sentences[0]
                .starts_with("No kernel is the limit: own of node 1 works longest, and waits for 90.0 %"),
            "{sentences:?}"
        );
        let early =
            [time("early", Works, "", 40), time("long", Works, "", 60), time("long", Reads, "in", 40)];
        let sentences = KernelLimit::of(&early).unwrap().sentences;
        assert!(sentences[0].starts_with("Kernel long of node 1 is the limit"), "{sentences:?}");
        assert_eq!(KernelLimit::of(&[]), None);
    }
}

//! `[queue_board]`: when switches publish their queues, for routings that look beyond their own switch.

use super::read::{Entry, Reader, section};
use super::source::Location;
use weft_fabric::Publishing;
use weft_keys::Problem;
use weft_topo::TopologyParameters;
use weft_units::Span;

section! {
    /// The board on which switches publish their queues, for the routing `ugal-g`.
    struct RawQueueBoard {
        /// Between two virtual times at which all switches publish: at least what a packet takes from one
        /// switch to the next, without its length.
        interval: Entry<Span>,
        /// From there until the other switches know.
        delay: Entry<Span>,
    }
}

/// Checks the section where the routing looks at it, and forgets it where it does not. `None`: a problem was
/// reported.
pub(super) fn check(
    (raw, location): (Option<RawQueueBoard>, Location),
    topology: &TopologyParameters,
    reader: &mut Reader<'_>,
) -> Option<Option<Publishing>> {
    if !topology.needs_published_queues() {
        reader.forget("queue_board");
        return Some(None);
    }
    let Some(raw) = raw else {
        let problem = Problem::new(
            format!(
                "the routing `{}` looks at queues that switches publish, and nothing says when",
                topology.routing()
            ),
            "",
            "add [queue_board] with `interval` and `delay`, such as --set queue_board.interval=1us --set \
             queue_board.delay=500ns",
        );
        reader.report(location, problem);
        return None;
    };
    if raw.interval.value == Span::ZERO {
        let problem =
            Problem::new("`queue_board.interval` is zero", "never ends", "write a time, such as 1us");
        reader.report(raw.interval.location, problem);
        return None;
    }
    Some(Some(Publishing { interval: raw.interval.value, delay: raw.delay.value }))
}

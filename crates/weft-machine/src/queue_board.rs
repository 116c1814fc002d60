//! `[queue_board]`: when switches publish their queues, for routings that look beyond their own switch.

use super::read::{Reader, section_of_keys};
use super::source::Location;
use weft_fabric::Publishing;
use weft_keys::Problem;
use weft_topo::TopologyParameters;

section_of_keys! {
    /// The board on which switches publish their queues, for the routing `ugal-g`.
    struct RawQueueBoard {
        keys {
            publishing: Publishing,
        }
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
    raw.publishing.map(Some)
}

//! Random choice: any eligible request with the same probability.

//! Lines of an output-queued switch take turns: few channels wait there, and none of another input.

use super::{Arbiter, OutputRequests, Properties, next_from};
use serde::{Deserialize, Serialize};

/// A uniformly random request of those that can go.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RandomChoice;

impl Arbiter for RandomChoice {
    const PROPERTIES: Properties = Properties { serves_lines: false, ..Properties::PLAIN };
    const MEMORYLESS: Option<RandomChoice> = Some(RandomChoice);

    #[inline(always)]
    fn choose<'a>(&mut self, _: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        // Reservoir of one: the n-th request that can go replaces the choice with probability 1/n.
        let (mut chosen, mut seen, mut at) = (None, 0, 0);
        while let Some(request) = next_from(requests.all(), at) {
            if requests.can_go(request) {
                seen += 1;
                if requests.random().below(seen) == 0 {
                    chosen = Some(request);
                }
            }
            at = request + 1;
        }
        chosen
    }
}

//! iSLIP (McKeown, "The iSLIP scheduling algorithm for input-queued switches", IEEE/ACM ToN 1999).
//!
//! Each iteration matches free inputs with free outputs in three steps: every input **requests**
//! all outputs it has packets for; every output **grants** the first requesting input from its
//! pointer on; every input **accepts** the first granting output from its pointer on. Pointers move
//! one past the match, and only in the first iteration, so that they drift apart. Lines of an output-queued
//! switch take turns: they have no inputs to match.

use super::{Arbiter, ArbiterKind, Properties, SwitchOutputs};
use serde::{Deserialize, Serialize};

/// The pointers of one switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Islip {
    iterations: u32,
    /// Per output: the request that has priority.
    grant: Vec<u16>,
    /// Per input port: the output that has priority.
    accept: Vec<u16>,
    /// Scratch: per input port the request that the nearest granting output chose, and that output.
    granted: Vec<Option<(u16, u16)>>,
}

impl Arbiter for Islip {
    const PROPERTIES: Properties = Properties { matches_all: true, serves_lines: false, ..Properties::PLAIN };

    fn new(switch: &SwitchOutputs<'_>) -> Option<Islip> {
        let ArbiterKind::Islip(iterations) = switch.arbiter else { return None };
        let ports = switch.links.len();
        Some(Islip { iterations, grant: vec![0; ports], accept: vec![0; ports], granted: vec![None; ports] })
    }

    fn match_all<S>(
        &mut self,
        switch: &mut S,
        port_of: impl Fn(usize) -> usize,
        mut first: impl FnMut(&mut S, usize, usize) -> Option<usize>,
        mut carry_out: impl FnMut(&mut S, usize, usize),
    ) {
        let ports = self.grant.len();
        for iteration in 0..self.iterations {
            let mut any = false;
            for output in 0..ports {
                let Some(request) = first(switch, output, self.grant[output].into()) else { continue };
                let input = port_of(request);
                let distance = |output: usize| (output + ports - usize::from(self.accept[input])) % ports;
                let nearer = self.granted[input].is_none_or(|(_, o)| distance(output) < distance(o.into()));
                if nearer {
                    self.granted[input] = Some((request as u16, output as u16));
                }
                any = true;
            }
            if !any {
                return;
            }
            for input in 0..ports {
                let Some((request, output)) = self.granted[input].take() else { continue };
                if iteration == 0 {
                    self.grant[usize::from(output)] = request + 1;
                    self.accept[input] = (output + 1) % ports as u16;
                }
                carry_out(switch, output.into(), request.into());
            }
        }
    }
}

//! `[congestion]`: the algorithm that controls how much flows send, and its constants.

use super::read::{Entry, Reader, section_of_keys};
use serde::{Deserialize, Serialize};
use weft_congestion::{Congestion, CongestionKeys, CongestionKind, Path};
use weft_fabric::MAX_CLASSES;
use weft_keys::{Misfit, Problem};
use weft_units::{BitRate, Bytes, Span};

weft_keys::keys! {
    /// Congestion control of a machine, and of its traffic classes.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct CongestionRule {
        /// The algorithm and its constants.
        keys: CongestionKeys, group();
        beside {
            /// Of traffic classes that have another: theirs.
            by_class: [Option<CongestionKind>; MAX_CLASSES] = [None; MAX_CLASSES];
        }
    }
}

section_of_keys! {
    /// Congestion control. Each algorithm has keys of its own; what is not given is as its page says.
    struct RawCongestion {
        keys {
            rule: CongestionRule,
        }
    }
}

impl RawCongestion {
    /// The buffer of the class for answers, with its place; `None`: it is not given.
    pub(super) fn answers_buffer(&self) -> Option<Entry<Bytes>> {
        let value = self.rule?.keys.answers_buffer?;
        Some(Entry { value, location: self.locations.of("answers_buffer") })
    }
}

/// The network whose congestion is controlled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlledNetwork {
    Ideal,
    /// Messages are fluids.
    Flows,
    /// Full buffers lose no packets.
    Lossless,
    /// They do.
    Lossy,
}

impl ControlledNetwork {
    fn has_packets(self) -> bool {
        matches!(self, ControlledNetwork::Lossless | ControlledNetwork::Lossy)
    }
}

/// Checks the section. `classes`: the algorithms that traffic classes name. `None`: a problem was reported;
/// of the inner, that congestion is not controlled.
pub(super) fn check(
    raw: Option<RawCongestion>,
    classes: impl Iterator<Item = Option<CongestionKind>>,
    network: ControlledNetwork,
    reader: &mut Reader<'_>,
) -> Option<Option<CongestionRule>> {
    let (rule, locations) = match raw {
        Some(raw) => (raw.rule?, Some(raw.locations)),
        None => (CongestionRule::default(), None),
    };
    let mut by_class = [None; MAX_CLASSES];
    if network.has_packets() {
        by_class.iter_mut().zip(classes).for_each(|(place, kind)| *place = kind);
    }
    let rule = CongestionRule { by_class, ..rule };
    if rule.keys.kind == CongestionKind::None {
        let is_controlled = by_class.iter().flatten().any(|kind| *kind != CongestionKind::None);
        return Some(is_controlled.then_some(rule));
    }
    let is_set = locations.as_ref().is_some_and(|locations| locations.of("kind").is_set());
    if network == ControlledNetwork::Flows && !is_set {
        // What the machine has in packets is not asked of fluids.
        reader.forget("congestion");
        return Some(None);
    }
    match rule.check(network) {
        Ok(()) => Some(Some(rule)),
        Err(misfit) => {
            locations?.report(misfit, reader);
            None
        }
    }
}

impl CongestionRule {
    /// Checks that the constants fit together, and the algorithms what full buffers do.
    fn check(&self, network: ControlledNetwork) -> Result<(), Misfit> {
        if let (Some(low), Some(high)) = (self.keys.mark_low, self.keys.mark_high)
            && low >= high
        {
            let title = format!("`congestion.mark_low` of {low} is not below mark_high, {high}");
            return Err(Problem::new(title, "too large", "write less").of("mark_low"));
        }
        if network == ControlledNetwork::Ideal {
            return Err(Problem::new(
                "the ideal network has no queues, and nothing whose congestion could be controlled",
                "not on this network",
                "write fabric.kind = \"packet\", or congestion.kind = \"none\"",
            )
            .of("kind"));
        }
        if network == ControlledNetwork::Flows {
            return Err(Problem::new(
                "fluids have no queues whose congestion could be controlled; their shares are max-min fair, \
                 which is what acc aims at",
                "not with flows",
                "write fabric.kind = \"packet\", or congestion.kind = \"none\"",
            )
            .of("kind"));
        }
        if self.keys.trim == Some(true) && network == ControlledNetwork::Lossless {
            return Err(Problem::new(
                "full buffers trim packets where they would lose them, and these lose none",
                "nothing to trim",
                "write fabric.flow_control = \"drop\", or leave it out",
            )
            .of("trim"));
        }
        // Which path it is does not matter.
        let path = Path::new(BitRate::from_gigabits(100), Span::from_us(1), Bytes::new(1));
        let mut algorithms = (0..MAX_CLASSES as u8).filter_map(|class| self.algorithm(&path, class));
        let needs_lossless = algorithms.find(|algorithm| algorithm.need().lossless);
        let Some(algorithm) = needs_lossless.filter(|_| network == ControlledNetwork::Lossy) else {
            return Ok(());
        };
        Err(Problem::new(
            format!(
                "congestion control by {} needs a network that loses no packets in full buffers",
                algorithm.name()
            ),
            "fabric.flow_control is \"drop\"",
            "write fabric.flow_control = \"credits\" or \"pause\", or another algorithm",
        )
        .of("kind"))
    }

    /// The algorithm of a traffic class with all its constants, for a path. `None`: congestion of that class
    /// is not controlled.
    pub fn algorithm(&self, path: &Path, class: u8) -> Option<Congestion> {
        self.keys.algorithm(self.by_class[usize::from(class)].unwrap_or(self.keys.kind), path)
    }
}

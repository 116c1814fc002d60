//! Message classes at endpoints: the part of the deadlock proof that the network alone cannot give.
//!
//! The proof of channels takes it that endpoints consume every packet. An endpoint that refuses a message
//! until it can send the answer makes a channel of arriving messages wait for a channel of leaving ones:
//!
//! ```text
//!   endpoint                                     endpoint
//!     ├── RTS ─────────────────────────────────▶ │ consumes at once, or refuses until the CTS is out
//!     │ ◀───────────────────────────────── CTS ──┤
//!     ├── data ────────────────────────────────▶ │
//!     │ ◀─────────────────────────── ACK, NACK ──┤ a NACK causes the data once more
//! ```
//! Classes that share a virtual channel, directly or by way of others, form a *virtual network*: each may
//! stand in any other's way. Where a class is refused until another can be injected, its network waits for
//! the other's. If these waits close no circle, no set of messages waits for itself; a class that is refused
//! for one of its own network closes a circle alone.
//!
//! # Source
//! TR-488 §4.4, §4.5 and §5.2.1 (RTS, CTS, data, ACK, NACK); Dally and Towles, "Principles and Practices of
//! Interconnection Networks", 2004, §14.1.5, on request and reply networks.

use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The part that a message plays in a transfer: which others its arrival causes follows from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageClass {
    /// A request to send.
    Rts,
    /// A clearance to send.
    Cts,
    /// Data, eager or announced, and what is sent again of it.
    Data,
    /// Data has arrived.
    Ack,
    /// Data was refused or never came.
    Nack,
    /// A vector between modules of interfaces that reduce.
    Reduction,
}

impl MessageClass {
    /// Those of messaging.
    pub const OF_MESSAGING: [MessageClass; 5] =
        [MessageClass::Rts, MessageClass::Cts, MessageClass::Data, MessageClass::Ack, MessageClass::Nack];

    /// The classes that its arrival makes an endpoint send.
    pub const fn causes(self) -> &'static [MessageClass] {
        match self {
            MessageClass::Rts => &[MessageClass::Cts],
            MessageClass::Cts | MessageClass::Nack => &[MessageClass::Data],
            MessageClass::Data => &[MessageClass::Ack, MessageClass::Nack],
            MessageClass::Ack => &[],
            // As many as the operation has levels.
            MessageClass::Reduction => &[MessageClass::Reduction],
        }
    }
}

impl fmt::Display for MessageClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MessageClass::Rts => "RTS",
            MessageClass::Cts => "CTS",
            MessageClass::Data => "data",
            MessageClass::Ack => "ACK",
            MessageClass::Nack => "NACK",
            MessageClass::Reduction => "reduction",
        })
    }
}

/// How endpoints treat one class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassUse {
    /// The class.
    pub class: MessageClass,
    /// The virtual channels on which it travels.
    pub virtual_channels: BTreeSet<u32>,
    /// The classes that an endpoint must be able to inject before it consumes a message of this one;
    /// empty: it consumes whatever comes.
    pub refused_until: BTreeSet<MessageClass>,
}

/// How the endpoints of a machine treat messages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct MessageClasses(pub Vec<ClassUse>);

impl MessageClasses {
    /// Endpoints that consume whatever comes, with all classes of messaging on all of so many virtual
    /// channels. An interface can do so if it has a place for every answer that it may owe: bounded by what
    /// its peers may have outstanding, not by what it can send at the moment.
    pub fn consumed(virtual_channels: u32) -> MessageClasses {
        let channels: BTreeSet<u32> = (0..virtual_channels).collect();
        let always =
            |class| ClassUse { class, virtual_channels: channels.clone(), refused_until: BTreeSet::new() };
        MessageClasses(MessageClass::OF_MESSAGING.map(always).to_vec())
    }

    /// The virtual network of every class: the number of the first class that belongs to it.
    fn networks(&self) -> Vec<usize> {
        let uses = &self.0;
        let mut networks: Vec<usize> = (0..uses.len()).collect();
        for one in 0..uses.len() {
            for other in 0..one {
                if !uses[one].virtual_channels.is_disjoint(&uses[other].virtual_channels) {
                    let (keep, give) =
                        (networks[one].min(networks[other]), networks[one].max(networks[other]));
                    networks.iter_mut().filter(|network| **network == give).for_each(|n| *n = keep);
                }
            }
        }
        networks
    }
}

/// No class waits for itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassProof {
    /// Message classes looked at.
    pub classes: u32,
    /// Virtual networks that they form.
    pub networks: u32,
    /// Classes that an endpoint may refuse until it has sent another.
    pub refusals: u32,
}

impl fmt::Display for ClassProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClassProof { classes, networks, refusals } = self;
        match refusals {
            0 => write!(
                f,
                "endpoints consume all {classes} classes of messages, so that none waits for another"
            ),
            _ => write!(
                f,
                "{refusals} of {classes} classes of messages wait for others, over {networks} virtual \
                 networks and in no circle"
            ),
        }
    }
}

/// Classes of messages can wait for each other: each is refused until the next can be injected, which shares
/// channels with the class that is refused for the one after it, and so on in a circle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
pub struct ClassCycle {
    /// (refused class, what must be injected first), in the order in which they wait.
    pub waits: Vec<(MessageClass, MessageClass)>,
}

impl fmt::Display for ClassCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "classes of messages can wait for each other in a circle:")?;
        let next = self.waits.iter().cycle().skip(1);
        for ((refused, needed), (behind, _)) in self.waits.iter().zip(next) {
            write!(f, "\n  {refused} is refused until {needed} can be injected, ")?;
            match needed == behind {
                true => write!(f, "which is refused itself")?,
                false => write!(f, "which shares virtual channels with {behind}")?,
            }
        }
        Ok(())
    }
}

/// Shows that endpoints cannot close a circle of waiting, or one that they can close.
///
/// # Errors
/// The circle, where there is one.
pub fn prove_classes(classes: &MessageClasses) -> Result<ClassProof, ClassCycle> {
    let networks = classes.networks();
    let network = |class| {
        let index = classes.0.iter().position(|known| known.class == class)?;
        Some(networks[index])
    };
    // (network that waits, for which, because of these classes)
    let waits: Vec<(usize, usize, (MessageClass, MessageClass))> = (classes.0.iter().zip(&networks))
        .flat_map(|(known, &from)| {
            let refused = known.refused_until.iter();
            refused.filter_map(move |&needed| Some((from, network(needed)?, (known.class, needed))))
        })
        .collect();
    let count = classes.0.len();
    for &(start, next, first) in &waits {
        if let Some(rest) = way(&waits, next, start, &mut vec![false; count]) {
            return Err(ClassCycle { waits: std::iter::once(first).chain(rest).collect() });
        }
    }
    Ok(ClassProof {
        classes: count as u32,
        networks: networks.iter().copied().collect::<BTreeSet<_>>().len() as u32,
        refusals: classes.0.iter().filter(|known| !known.refused_until.is_empty()).count() as u32,
    })
}

/// The waits by which one network comes to wait for another; none if they are the same.
fn way(
    waits: &[(usize, usize, (MessageClass, MessageClass))],
    from: usize,
    to: usize,
    seen: &mut [bool],
) -> Option<Vec<(MessageClass, MessageClass)>> {
    if from == to {
        return Some(Vec::new());
    }
    if std::mem::replace(&mut seen[from], true) {
        return None;
    }
    waits.iter().filter(|(waiting, _, _)| *waiting == from).find_map(|&(_, next, wait)| {
        let rest = way(waits, next, to, seen)?;
        Some(std::iter::once(wait).chain(rest).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageClass::{Ack, Cts, Data, Nack, Rts};
    use petgraph::algo::tarjan_scc;
    use petgraph::graph::DiGraph;
    use proptest::prelude::*;

    fn refusing(
        mut classes: MessageClasses,
        refusals: &[(MessageClass, MessageClass)],
        channels: impl Fn(MessageClass) -> BTreeSet<u32>,
    ) -> MessageClasses {
        for known in &mut classes.0 {
            known.virtual_channels = channels(known.class);
            let until = refusals.iter().filter(|(refused, _)| *refused == known.class);
            known.refused_until = until.map(|(_, needed)| *needed).collect();
        }
        classes
    }

    #[test]
    fn endpoints_that_consume_are_free_of_deadlock() {
        for channels in 1..4 {
            let proof = prove_classes(&MessageClasses::consumed(channels)).unwrap();
            assert_eq!(proof, ClassProof { classes: 5, networks: 1, refusals: 0 });
            assert!(proof.to_string().contains("consume all 5 classes"));
        }
    }

    /// The textbook case: requests are refused until the reply is out. On channels of their own that is
    /// free of deadlock, on shared ones it is not.
    #[test]
    fn a_refused_request_needs_a_channel_apart_from_its_reply() {
        let answers = [(Rts, Cts), (Cts, Data), (Data, Ack), (Data, Nack)];
        let shared = refusing(MessageClasses::consumed(2), &answers, |_| (0..2).collect());
        let cycle = prove_classes(&shared).unwrap_err();
        assert_eq!(cycle.waits, [(Rts, Cts)]);
        assert_eq!(
            cycle.to_string(),
            "classes of messages can wait for each other in a circle:\n  RTS is refused until CTS can be \
             injected, which shares virtual channels with RTS"
        );
        let own = |class| BTreeSet::from([class as u32]);
        let proof = prove_classes(&refusing(MessageClasses::consumed(1), &answers, own)).unwrap();
        assert_eq!((proof.networks, proof.refusals), (5, 3));
        // A NACK that is refused until the data can go again closes the circle.
        let resend = [&answers[..], &[(Nack, Data)]].concat();
        let cycle = prove_classes(&refusing(MessageClasses::consumed(1), &resend, own)).unwrap_err();
        assert_eq!(cycle.waits, [(Data, Nack), (Nack, Data)]);
        assert!(
            cycle
                .to_string()
                .ends_with("NACK is refused until data can be injected, which is refused itself")
        );
    }

    /// Catches classes that stand in each other's way only by way of a third.
    #[test]
    fn sharing_reaches_further_than_one_channel() {
        let channels = |class| match class {
            Data => BTreeSet::from([0]),
            Ack => BTreeSet::from([1]),
            Nack => BTreeSet::from([0, 1]),
            _ => BTreeSet::from([2]),
        };
        let classes = refusing(MessageClasses::consumed(1), &[(Data, Ack)], channels);
        assert_eq!(prove_classes(&classes).unwrap_err().waits, [(Data, Ack)]);
    }

    proptest! {
        /// Catches a proof where Tarjan's algorithm finds a circle of classes with a refusal in it, and a
        /// circle that is none.
        #[test]
        fn proof_and_oracle_agree(
            channels in prop::array::uniform5(prop::collection::btree_set(0u32..6, 1..3)),
            refusals in prop::collection::vec((0usize..5, 0usize..5), 0..5),
        ) {
            let class = |place: usize| MessageClass::OF_MESSAGING[place];
            let refusals: Vec<_> = refusals.into_iter().map(|(a, b)| (class(a), class(b))).collect();
            let classes =
                refusing(MessageClasses::consumed(1), &refusals, |class| channels[class as usize].clone());
            let mut graph = DiGraph::<(), ()>::new();
            let nodes = [(); 5].map(|()| graph.add_node(()));
            for (one, other) in (0..5).flat_map(|one| (0..5).map(move |other| (one, other))) {
                if !channels[one].is_disjoint(&channels[other]) {
                    graph.add_edge(nodes[one], nodes[other], ());
                }
            }
            for (refused, needed) in &refusals {
                graph.add_edge(nodes[*refused as usize], nodes[*needed as usize], ());
            }
            let components = tarjan_scc(&graph);
            let together = |one, other| {
                let (one, other) = (&nodes[one as usize], &nodes[other as usize]);
                components.iter().any(|component| component.contains(one) && component.contains(other))
            };
            let circle = refusals.iter().any(|&(refused, needed)| together(refused, needed));
            match prove_classes(&classes) {
                Ok(_) => prop_assert!(!circle),
                Err(cycle) => {
                    prop_assert!(circle);
                    for (refused, needed) in cycle.waits {
                        prop_assert!(refusals.contains(&(refused, needed)) && together(refused, needed));
                    }
                }
            }
        }
    }
}

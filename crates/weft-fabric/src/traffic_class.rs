//! Traffic classes: which packets have virtual channels, buffers and credits of their own.
//!
//! ```text
//!   packet ──► first class of the table that takes it ──► the class's virtual channels ──► arbiters
//!              acknowledgements │ data │ all,               (`weft_topo::ChannelPlan`)     priority, weight
//!              whole messages up to a size
//! ```
//! The class of a packet is found once, at injection; from then on its virtual channel says it.
//!
//! # Source
//! None in the documents of our machines, which have one class. InfiniBand maps service levels to virtual
//! lanes with weighted tables of two priorities (IBTA Vol. 1, §7.6.9), Ethernet has eight priorities (IEEE
//! 802.1Q), Slingshot traffic classes (De Sensi et al., SC 2020).
//!
//! # Not modelled
//! Classes by job, operation or flow: [`TrafficClasses::of`] is the place for them. The size of a message of
//! several packets: its packets do not say it.

use crate::packet::{Packet, Part};
use serde::{Deserialize, Serialize};
use weft_units::Bytes;

/// Most traffic classes: the priorities of IEEE 802.1Q.
pub const MAX_CLASSES: usize = 8;

/// Kinds of packets, as a traffic class takes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum TrafficKind {
    /// Packets that only answer others.
    Acknowledgements,
    /// All others.
    Data,
    /// Both.
    #[default]
    All,
}

/// A traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TrafficClass {
    /// The kind of packets that it takes.
    pub kind: TrafficKind,
    /// Of these only packets that are whole messages of at most so many bytes of payload; `None`: all.
    pub up_to: Option<Bytes>,
    /// For strict priority: the larger goes first.
    pub priority: u8,
    /// For weighted round robin: bytes on the line in each round.
    pub weight: u32,
}

impl TrafficClass {
    /// Whether it takes a packet of this kind and payload.
    #[inline]
    fn takes(&self, is_acknowledgement: bool, is_whole: bool, bytes: u32) -> bool {
        let of_kind = match self.kind {
            TrafficKind::Acknowledgements => is_acknowledgement,
            TrafficKind::Data => !is_acknowledgement,
            TrafficKind::All => true,
        };
        of_kind && self.up_to.is_none_or(|most| is_whole && u64::from(bytes) <= most.get())
    }

    /// Whether it takes whatever `other` takes.
    fn covers(&self, other: &TrafficClass) -> bool {
        let of_kind = self.kind == TrafficKind::All || self.kind == other.kind;
        let of_size = match (self.up_to, other.up_to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(most), Some(others)) => others <= most,
        };
        of_kind && of_size
    }
}

/// The table of traffic classes of a machine; the default is one class of all packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrafficClasses {
    count: u8,
    classes: [TrafficClass; MAX_CLASSES],
}

impl Default for TrafficClasses {
    fn default() -> TrafficClasses {
        TrafficClasses { count: 1, classes: [TrafficClass::default(); MAX_CLASSES] }
    }
}

/// A table that is none of traffic classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClassTableError {
    /// Too many or none.
    #[error("{0} traffic classes; there can be 1 to {MAX_CLASSES}")]
    Count(usize),
    /// Packets that no class takes.
    #[error("no class takes all {0}; let the last one take them whatever their size")]
    Uncovered(&'static str),
    /// A class whose packets all go to one before it.
    #[error("class {class} gets no packets: class {before}, before it, takes them all")]
    Empty {
        /// The class, counted from 0.
        class: usize,
        /// The class that takes its packets.
        before: usize,
    },
}

impl TrafficClasses {
    /// The table of `classes`; a packet belongs to the first that takes it.
    ///
    /// # Errors
    /// See [`ClassTableError`].
    pub fn new(classes: &[TrafficClass]) -> Result<TrafficClasses, ClassTableError> {
        if classes.is_empty() || classes.len() > MAX_CLASSES {
            return Err(ClassTableError::Count(classes.len()));
        }
        for (class, later) in classes.iter().enumerate() {
            if let Some(before) = classes[..class].iter().position(|earlier| earlier.covers(later)) {
                return Err(ClassTableError::Empty { class, before });
            }
        }
        for (kind, name) in [(TrafficKind::Data, "data"), (TrafficKind::Acknowledgements, "acknowledgements")]
        {
            let all = TrafficClass { kind, ..TrafficClass::default() };
            if !classes.iter().any(|class| class.covers(&all)) {
                return Err(ClassTableError::Uncovered(name));
            }
        }
        let mut table = TrafficClasses { count: classes.len() as u8, ..TrafficClasses::default() };
        table.classes[..classes.len()].copy_from_slice(classes);
        Ok(table)
    }

    /// The classes.
    pub fn all(&self) -> &[TrafficClass] {
        &self.classes[..usize::from(self.count)]
    }

    /// The number of classes.
    pub fn count(&self) -> u32 {
        u32::from(self.count)
    }

    /// The class of a packet that is to be injected.
    #[inline]
    pub(crate) fn of(&self, packet: &Packet) -> u8 {
        self.find(packet.label.is_acknowledgement(), packet.part() == Part::Whole, packet.bytes)
    }

    /// The class of a packet of which the interface knows so much: whether it only answers, whether it is a
    /// whole message, its payload in bytes.
    #[inline]
    pub(crate) fn find(&self, is_acknowledgement: bool, is_whole: bool, bytes: u32) -> u8 {
        let takes = |class: &TrafficClass| class.takes(is_acknowledgement, is_whole, bytes);
        self.all().iter().position(takes).unwrap_or(0) as u8
    }

    /// The classes that may get packets that only answer, or others.
    pub fn of_kind(&self, is_acknowledgement: bool) -> impl Iterator<Item = u32> {
        let other = if is_acknowledgement { TrafficKind::Data } else { TrafficKind::Acknowledgements };
        (0..).zip(self.all()).filter(move |(_, class)| class.kind != other).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(kind: TrafficKind, up_to: Option<u64>) -> TrafficClass {
        TrafficClass { kind, up_to: up_to.map(Bytes::new), priority: 0, weight: 1 }
    }

    /// Catches a packet in another class than the first that takes it.
    #[test]
    fn a_packet_belongs_to_the_first_class_that_takes_it() {
        use TrafficKind::{Acknowledgements, All, Data};
        let table =
            TrafficClasses::new(&[class(Acknowledgements, None), class(Data, Some(64)), class(All, None)]);
        let table = table.unwrap();
        let found = [(true, true, 0), (false, true, 64), (false, true, 65), (false, false, 8)];
        assert_eq!(found.map(|(answer, whole, bytes)| table.find(answer, whole, bytes)), [0, 1, 2, 2]);
        assert_eq!(table.of_kind(true).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(table.of_kind(false).collect::<Vec<_>>(), [1, 2]);
    }

    /// Catches tables that leave packets without a class or a class without packets.
    #[test]
    fn a_table_is_refused_where_a_class_is_missing_or_empty() {
        use TrafficKind::{Acknowledgements, All, Data};
        let refused = |classes: &[TrafficClass]| TrafficClasses::new(classes).unwrap_err();
        assert_eq!(refused(&[]), ClassTableError::Count(0));
        assert_eq!(refused(&[class(Data, None)]), ClassTableError::Uncovered("acknowledgements"));
        assert_eq!(
            refused(&[class(Acknowledgements, None), class(Data, Some(8))]),
            ClassTableError::Uncovered("data")
        );
        let empty = refused(&[class(All, None), class(Data, Some(8))]);
        assert_eq!(empty, ClassTableError::Empty { class: 1, before: 0 });
        assert!(TrafficClasses::new(&[class(Data, None), class(Acknowledgements, None)]).is_ok());
    }
}

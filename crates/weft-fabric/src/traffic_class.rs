//! Traffic classes: which packets have virtual channels, buffers and credits of their own.
//!
//! ```text
//!   message: operation, job, size, a class by name ──► first class that takes it ──► ClassTag of its packets
//!                                                                                          │
//!   packet of no message: answers, handshakes of blocks ──► first class that takes it ─────┤
//!                                                                                          ▼
//!                        the class's virtual channels (`weft_topo::ChannelPlan`) ──► arbiters: priority,
//!                                                                                    weight, minimum
//! ```
//! The class of a message is found once, when its interface takes it over. Its packets carry the class until
//! they are injected; from then on their virtual channel says it.
//!
//! # Source
//! None in the documents of our machines, which have one class. InfiniBand maps service levels to virtual
//! lanes with weighted tables of two priorities (IBTA Vol. 1, §7.6.9), Ethernet has eight priorities (IEEE
//! 802.1Q), Slingshot traffic classes (De Sensi et al., SC 2020). That requests and replies have channels of
//! their own: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, §14.1.5.
//!
//! # Not modelled
//! The class of the message that a packet answers: a packet that only answers says nothing of that, and goes
//! by its kind alone.

use crate::packet::{MessagePart, Packet};
use serde::{Deserialize, Serialize};
use weft_keys::{KeyType, Problem, Writing, Written};
use weft_units::{BitRate, Bytes};

/// Most traffic classes: the priorities of IEEE 802.1Q.
pub const MAX_CLASSES: usize = 8;

weft_keys::words! {
    /// Kinds of packets, as a traffic class takes them.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum TrafficKind: "TrafficKind", "a kind of packets" {
        /// Packets that only answer others.
        Acknowledgements = "acknowledgements",
        /// All others.
        Data = "data",
        /// Of these the packets of messages that ask for something, or bring what nobody has asked for.
        Requests = "requests",
        /// Packets that only answer others, and those of messages that bring what another has asked for.
        Replies = "replies",
        /// All.
        #[default]
        All = "all",
    }
}

impl TrafficKind {
    /// A bit for each of: packets that only answer, packets of requests, packets of replies.
    const fn bits(self) -> u8 {
        match self {
            TrafficKind::Acknowledgements => ANSWER,
            TrafficKind::Data => REQUEST | REPLY,
            TrafficKind::Requests => REQUEST,
            TrafficKind::Replies => ANSWER | REPLY,
            TrafficKind::All => ANSWER | REQUEST | REPLY,
        }
    }
}

const ANSWER: u8 = 1;
const REQUEST: u8 = 2;
const REPLY: u8 = 4;

/// A set of the operations that a message may be part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operations(u8);

impl Operations {
    /// None of them: of a message whose sender does not say.
    pub const NONE: Operations = Operations(0);
    /// A send that a receive takes.
    pub const TWO_SIDED: Operations = Operations(1);
    /// A collective of several ranks.
    pub const COLLECTIVE: Operations = Operations(2);
    /// A write into a window or into memory of another.
    pub const PUT: Operations = Operations(4);
    /// A read of the same.
    pub const GET: Operations = Operations(8);
    /// A change of the same that is one: accumulate, fetch-and-op, compare-and-swap.
    pub const ATOMIC: Operations = Operations(16);
    /// Put, get and atomic.
    pub const ONE_SIDED: Operations =
        Operations(Operations::PUT.0 | Operations::GET.0 | Operations::ATOMIC.0);

    /// Whether the two sets share an operation.
    pub const fn meets(self, other: Operations) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of `other` is in it.
    const fn covers(self, other: Operations) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The purpose of a message, as far as traffic classes tell messages apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Purpose {
    /// The operation that it is part of; none: its sender does not say.
    pub operation: Operations,
    /// The application that sends it, counted from 0.
    pub job: u16,
    /// Whether it brings what its receiver has asked for.
    pub is_reply: bool,
    /// Whether it is of a service of the system, and not of computing: an interface may keep their flows
    /// apart.
    #[serde(default)]
    pub is_service: bool,
    /// The class that it is to go in, whatever others take; `None`: the first that takes it.
    pub class: Option<u8>,
}

impl Purpose {
    /// A request of the first application, of no operation.
    pub const PLAIN: Purpose =
        Purpose { operation: Operations::NONE, job: 0, is_reply: false, is_service: false, class: None };
}

/// The traffic class that packets of a message carry until they are injected. The default says none: such a
/// packet goes by its label, part and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassTag(u8);

impl ClassTag {
    /// That of a class.
    const fn of(class: u8) -> ClassTag {
        ClassTag(class + 1)
    }

    /// The class; `None`: it says none.
    #[inline]
    pub const fn class(self) -> Option<u8> {
        self.0.checked_sub(1)
    }

    /// As a packet carries it.
    #[inline]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// See [`ClassTag::bits`].
    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> ClassTag {
        ClassTag(bits)
    }
}

/// A traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TrafficClass {
    /// The kind of packets that it takes.
    pub kind: TrafficKind,
    /// Of these only packets of messages of at most so many bytes; `None`: all. A packet of no message counts
    /// as one of its payload if it is whole.
    pub up_to: Option<Bytes>,
    /// Of these only messages of these operations; `None`: all.
    pub operations: Option<Operations>,
    /// Of these only messages of this application; `None`: of all.
    pub job: Option<u16>,
    /// Whether it takes only messages whose sender [names](Purpose::class) it.
    pub by_name: bool,
    /// For strict priority, and for what minimum bandwidth leaves: the larger goes first.
    pub priority: u8,
    /// For weighted round robin: bytes on the line in each round.
    pub weight: u32,
    /// For minimum bandwidth: what it gets of each link at least.
    pub minimum: Minimum,
    /// The input buffer of each of its virtual channels; `None`: as the switch says.
    pub buffer: Option<Bytes>,
}

/// The part of a link that a traffic class gets at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Minimum {
    /// A share, of [`WHOLE_SHARE`].
    Share(u32),
    /// A rate on the line.
    Rate(BitRate),
}

/// A whole link in the unit of shares: a hundredth of a percent.
pub const WHOLE_SHARE: u32 = 10_000;

impl KeyType for Minimum {
    const NAME: &'static str = "MinimumBandwidth";
    const WRITING: Writing = Writing::Described(
        &Writing::AnyOf(&[Writing::Text(r"^[0-9]+(\.[0-9]{1,2})? ?%$"), BitRate::WRITING]),
        "As in 25% of the link, or 50Gb/s.",
    );

    fn read(value: &Written) -> Result<Minimum, Problem> {
        let problem = |label: String| {
            let mend = "write a part of the link such as \"25%\", or a rate such as \"50Gb/s\"";
            Problem::new("this is not a minimum bandwidth", label, mend)
        };
        let Written::Text(text) = value else { return Err(problem(format!("this is {}", value.describe()))) };
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Minimum::Rate).map_err(|_| problem(format!("\"{text}\"")));
        };
        match hundredths(percent.trim_end()) {
            Some(share) if share <= WHOLE_SHARE => Ok(Minimum::Share(share)),
            Some(_) => Err(problem("a link has 100%".to_owned())),
            None => Err(problem("a percentage has at most two digits after the point".to_owned())),
        }
    }

    fn show(&self) -> String {
        match self {
            Minimum::Rate(rate) => rate.to_string(),
            Minimum::Share(share) => percent((*share).into()),
        }
    }
}

/// A number with at most two digits after the point, in hundredths.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let part = part.parse::<u32>().ok()? * if part.len() == 1 { 10 } else { 1 };
    whole.parse::<u32>().ok()?.checked_mul(100)?.checked_add(part)
}

/// Hundredths of a percent as one writes them.
pub fn percent(hundredths: u64) -> String {
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Default for Minimum {
    fn default() -> Minimum {
        Minimum::Share(0)
    }
}

impl Minimum {
    /// The share of a link of this rate, rounded up: more than [`WHOLE_SHARE`] where the link is slower.
    pub fn share(self, link: BitRate) -> u64 {
        match self {
            Minimum::Share(share) => share.into(),
            Minimum::Rate(rate) => {
                let whole = u128::from(rate.bits_per_second()) * u128::from(WHOLE_SHARE);
                let share = whole.div_ceil(u128::from(link.bits_per_second().max(1)));
                u64::try_from(share).unwrap_or(u64::MAX)
            }
        }
    }
}

impl TrafficClass {
    /// Whether it asks for something that only messages have.
    fn is_of_messages(&self) -> bool {
        self.operations.is_some() || self.job.is_some() || self.by_name
    }

    /// Whether it takes a packet of no message, of this kind and payload.
    #[inline]
    fn takes(&self, is_acknowledgement: bool, is_whole: bool, bytes: u32) -> bool {
        let kind = if is_acknowledgement { ANSWER } else { REQUEST };
        self.kind.bits() & kind != 0
            && !self.is_of_messages()
            && self.up_to.is_none_or(|most| is_whole && u64::from(bytes) <= most.get())
    }

    /// Whether it takes a message of so many bytes.
    fn takes_message(&self, purpose: &Purpose, bytes: Bytes) -> bool {
        self.kind.bits() & (if purpose.is_reply { REPLY } else { REQUEST }) != 0
            && !self.by_name
            && self.operations.is_none_or(|operations| operations.meets(purpose.operation))
            && self.job.is_none_or(|job| job == purpose.job)
            && self.up_to.is_none_or(|most| bytes <= most)
    }

    /// Whether it takes messages that name it.
    pub fn takes_named(&self, is_reply: bool) -> bool {
        self.kind.bits() & (if is_reply { REPLY } else { REQUEST }) != 0
    }

    /// Whether it takes whatever `other` takes, by itself.
    fn covers(&self, other: &TrafficClass) -> bool {
        let of_kind = self.kind.bits() & other.kind.bits() == other.kind.bits();
        let of_size = match (self.up_to, other.up_to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(most), Some(others)) => others <= most,
        };
        let of_operation = match (self.operations, other.operations) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => own.covers(others),
        };
        let of_job = self.job.is_none() || self.job == other.job;
        of_kind && of_size && of_operation && of_job && !self.by_name && !other.by_name
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
    /// A class of packets that only answer, which asks for something that only messages have.
    #[error("class {class} gets no packets: those that only answer say nothing of a message")]
    NoMessages {
        /// The class, counted from 0.
        class: usize,
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
            if later.is_of_messages() && later.kind == TrafficKind::Acknowledgements {
                return Err(ClassTableError::NoMessages { class });
            }
            if let Some(before) = classes[..class].iter().position(|earlier| earlier.covers(later)) {
                return Err(ClassTableError::Empty { class, before });
            }
        }
        let is_covered = |kind: u8| {
            let takes_all = |class: &TrafficClass| !class.is_of_messages() && class.up_to.is_none();
            classes.iter().any(|class| class.kind.bits() & kind != 0 && takes_all(class))
        };
        let missing = match (is_covered(REQUEST), is_covered(REPLY), is_covered(ANSWER)) {
            (false, false, _) => Some("data"),
            (false, true, _) => Some("requests"),
            (true, false, _) => Some("replies"),
            (true, true, false) => Some("acknowledgements"),
            (true, true, true) => None,
        };
        if let Some(kind) = missing {
            return Err(ClassTableError::Uncovered(kind));
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

    /// The tag of the packets of a message of so many bytes. Nothing where there is one class.
    #[inline]
    pub fn tag(&self, purpose: &Purpose, bytes: Bytes) -> ClassTag {
        if self.count == 1 { ClassTag::default() } else { self.tag_among(purpose, bytes) }
    }

    #[cold]
    fn tag_among(&self, purpose: &Purpose, bytes: Bytes) -> ClassTag {
        let takes = |class: &TrafficClass| class.takes_message(purpose, bytes);
        let first = || self.all().iter().position(takes).unwrap_or(0) as u8;
        ClassTag::of(purpose.class.filter(|class| *class < self.count).unwrap_or_else(first))
    }

    /// The class of a packet that is to be injected.
    #[inline]
    pub(crate) fn of(&self, packet: &Packet) -> u8 {
        let of_itself = || {
            self.find(packet.label.is_acknowledgement(), packet.part() == MessagePart::Whole, packet.bytes)
        };
        packet.class_tag().class().unwrap_or_else(of_itself)
    }

    /// The class of a packet of no message, of which the interface knows so much: whether it only answers,
    /// whether it is whole, its payload in bytes.
    #[inline]
    pub(crate) fn find(&self, is_acknowledgement: bool, is_whole: bool, bytes: u32) -> u8 {
        let takes = |class: &TrafficClass| class.takes(is_acknowledgement, is_whole, bytes);
        self.all().iter().position(takes).unwrap_or(0) as u8
    }

    /// The classes that may get packets that only answer.
    pub fn of_answers(&self) -> impl Iterator<Item = u32> {
        let takes = |class: &TrafficClass| class.kind.bits() & ANSWER != 0 && !class.is_of_messages();
        (0..).zip(self.all()).filter(move |(_, class)| takes(class)).map(|(number, _)| number)
    }

    /// The classes that may get packets of messages: requests, or replies.
    pub fn of_messages(&self, is_reply: bool) -> impl Iterator<Item = u32> {
        (0..).zip(self.all()).filter(move |(_, class)| class.takes_named(is_reply)).map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(kind: TrafficKind, up_to: Option<u64>) -> TrafficClass {
        TrafficClass { kind, up_to: up_to.map(Bytes::new), weight: 1, ..TrafficClass::default() }
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
        assert_eq!(table.of_answers().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(table.of_messages(false).collect::<Vec<_>>(), [1, 2]);
    }

    /// Catches a message in another class than the first that takes it, and one that does not go where its
    /// sender says.
    #[test]
    fn a_message_belongs_to_the_class_that_it_names_or_to_the_first_that_takes_it() {
        use TrafficKind::{All, Replies};
        let table = [
            TrafficClass { by_name: true, ..class(All, None) },
            TrafficClass { job: Some(1), operations: Some(Operations::GET), ..class(All, None) },
            TrafficClass { operations: Some(Operations::ONE_SIDED), ..class(All, Some(64)) },
            class(Replies, None),
            class(All, None),
        ];
        let table = TrafficClasses::new(&table).unwrap();
        let plain = Purpose::PLAIN;
        let get = Purpose { operation: Operations::GET, ..plain };
        let of = |purpose: Purpose, bytes| table.tag(&purpose, Bytes::new(bytes)).class().unwrap();
        assert_eq!(of(plain, 8), 4);
        assert_eq!(of(Purpose { is_reply: true, ..plain }, 8), 3);
        assert_eq!(of(Purpose { job: 1, ..get }, 1 << 30), 1);
        assert_eq!([of(get, 64), of(get, 65), of(Purpose { is_reply: true, ..get }, 65)], [2, 4, 3]);
        assert_eq!(of(Purpose { operation: Operations::COLLECTIVE, job: 1, ..plain }, 8), 4);
        assert_eq!(of(Purpose { class: Some(0), ..get }, 64), 0);
        // Packets of no message.
        assert_eq!((table.find(true, true, 0), table.find(false, true, 8)), (3, 4));
        assert_eq!(TrafficClasses::default().tag(&get, Bytes::new(8)), ClassTag::default());
    }

    /// Catches tables that leave packets without a class or a class without packets.
    #[test]
    fn a_table_is_refused_where_a_class_is_missing_or_empty() {
        use TrafficKind::{Acknowledgements, All, Data, Replies, Requests};
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
        assert!(TrafficClasses::new(&[class(Requests, None), class(Replies, None)]).is_ok());
        assert_eq!(
            refused(&[class(Requests, None), class(Acknowledgements, None)]),
            ClassTableError::Uncovered("replies")
        );
        let of_job = TrafficClass { job: Some(1), ..class(Acknowledgements, None) };
        assert_eq!(refused(&[of_job, class(All, None)]), ClassTableError::NoMessages { class: 0 });
        let puts = TrafficClass { operations: Some(Operations::PUT), ..class(All, None) };
        let one_sided = TrafficClass { operations: Some(Operations::ONE_SIDED), ..puts };
        let all = class(All, None);
        assert_eq!(refused(&[one_sided, puts, all]), ClassTableError::Empty { class: 1, before: 0 });
        assert_eq!(refused(&[puts]), ClassTableError::Uncovered("data"));
        assert!(TrafficClasses::new(&[puts, one_sided, all]).is_ok());
        // A class that is named gets what names it, whatever stands before it.
        let named = TrafficClass { by_name: true, ..all };
        assert!(TrafficClasses::new(&[all, named]).is_ok());
    }
}

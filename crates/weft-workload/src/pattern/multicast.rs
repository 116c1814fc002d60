//! Multicast traffic: members of groups send to their groups.

use super::{PatternError, PatternInput, TrafficPattern};
use serde::{Deserialize, Serialize};
use weft_fabric::MulticastGroup;
use weft_units::EndpointId;

/// A multicast group of the machine, as traffic uses it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TrafficGroup {
    /// The group's number.
    pub number: u32,
    /// The members, sorted.
    pub members: Vec<EndpointId>,
    /// The member that sends; `None`: all do.
    pub root: Option<EndpointId>,
}

impl TrafficGroup {
    fn has_sender(&self, source: EndpointId) -> bool {
        match self.root {
            Some(root) => root == source,
            None => self.members.binary_search(&source).is_ok(),
        }
    }
}

/// The root of each group sends to it; where a group has none, all its members do. A member that sends to
/// several groups takes them in turn. Whoever is in no group is silent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Multicast {
    groups: Vec<TrafficGroup>,
}

impl Multicast {
    /// Traffic to these groups.
    ///
    /// # Errors
    /// No groups.
    pub fn new(groups: &[TrafficGroup]) -> Result<Multicast, PatternError> {
        if groups.is_empty() {
            return Err(PatternError::NoGroups);
        }
        Ok(Multicast { groups: groups.to_vec() })
    }

    /// The groups.
    pub fn groups(&self) -> &[TrafficGroup] {
        &self.groups
    }
}

impl TrafficPattern for Multicast {
    fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<Multicast, PatternError> {
        Multicast::new(&input.settings.groups)
    }

    fn sends(&self, source: EndpointId) -> bool {
        self.groups.iter().any(|group| group.has_sender(source))
    }

    /// The group, as a destination.
    fn destination(&self, source: EndpointId, message: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
        let own = || self.groups.iter().filter(|group| group.has_sender(source));
        let turn = message % (own().count() as u64).max(1);
        let group = own().nth(turn as usize).expect("a source that sends");
        MulticastGroup::new(group.number).address()
    }

    /// In the order of the senders: one of several groups counts with the mean of them, rounded down.
    fn deliveries(&self) -> Option<u64> {
        let mut senders: Vec<EndpointId> =
            self.groups.iter().flat_map(|group| group.members.clone()).collect();
        senders.sort_unstable();
        senders.dedup();
        let of_sender = |&source: &EndpointId| {
            let own = self.groups.iter().filter(|group| group.has_sender(source));
            let (groups, others) = own.fold((0, 0), |(groups, others), group| {
                (groups + 1, others + group.members.len() as u64 - 1)
            });
            others.checked_div(groups).unwrap_or(0)
        };
        Some(senders.iter().map(of_sender).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a root that does not send alone, groups that do not take turns, and deliveries that are
    /// counted for the sender itself.
    #[test]
    fn roots_and_members_send_to_their_groups() {
        let members = |range: std::ops::Range<u32>| range.map(EndpointId).collect::<Vec<_>>();
        let groups = [
            TrafficGroup { number: 0, members: members(0..4), root: Some(EndpointId(1)) },
            TrafficGroup { number: 1, members: members(1..3), root: None },
        ];
        let pattern = Multicast::new(&groups).unwrap();
        let sends: Vec<bool> = (0..5).map(|e| pattern.sends(EndpointId(e))).collect();
        assert_eq!(sends, [false, true, true, false, false]);
        let to = |source, message| pattern.destination(EndpointId(source), message, &mut || 0);
        let to = |source, message| MulticastGroup::of(to(source, message)).unwrap();
        assert_eq!([0, 1, 2].map(|message| to(1, message)), [0, 1, 0].map(MulticastGroup::new));
        assert_eq!(to(2, 7), MulticastGroup::new(1));
        // Endpoint 1 sends to three others and to one by turns; endpoint 2 to one.
        assert_eq!(pattern.deliveries(), Some(2 + 1));
        assert_eq!(Multicast::new(&[]), Err(PatternError::NoGroups));
    }
}

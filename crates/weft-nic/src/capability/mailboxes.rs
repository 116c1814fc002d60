//! The queues of virtual interfaces, as their processes use them.

use super::Capabilities;
use crate::gvas::Pdid;
use weft_units::Time;

/// Queues in which messages for the processes of an endpoint wait, and take room until they are taken.
pub trait Mailboxes {
    /// The system software gives a virtual interface to a process of protection domain `domain`. Those
    /// that are not opened are of domain 0.
    fn open(&mut self, interface: u16, domain: Pdid);

    /// At `at`, now or later, the process of `interface` takes the oldest message out of its queue, which
    /// makes room for another. Every message that was delivered [there](crate::Delivered::in_mailbox) must be
    /// taken; the interface does it for hosts that are [passive](crate::Host::PASSIVE).
    fn taken(&mut self, interface: u16, at: Time);
}

impl dyn Capabilities + '_ {
    /// As [`Mailboxes::open`], where the interface has mailboxes.
    #[inline]
    pub fn open(&mut self, interface: u16, domain: Pdid) {
        if let Some(mailboxes) = self.mailboxes() {
            mailboxes.open(interface, domain);
        }
    }

    /// As [`Mailboxes::taken`], where the interface has mailboxes.
    #[inline]
    pub fn take(&mut self, interface: u16, at: Time) {
        if let Some(mailboxes) = self.mailboxes() {
            mailboxes.taken(interface, at);
        }
    }
}

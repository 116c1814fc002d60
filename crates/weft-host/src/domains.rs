//! The protection domains of a job, as the system software gives them out.
//!
//! ```text
//!   weft run --pdid 7,8,9     WEFT_DOMAIN_JOB ──► 7         8 ──► 8         10 ──► EPERM
//!                   └ own     WEFT_DOMAIN_PRIVATE ──► 1, 2, … by rank, and none of 7, 8, 9
//! ```
//! Whoever starts a job stands for the system administrator, who makes groups of processes. A process chooses
//! among the domains of its job, and gets no other: a program that could name any would be in every group.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.3: a domain of 16 bits, which the system software sets. Which call asks for it, and
//! how that is answered, is ours.

use std::collections::BTreeSet;
use weft_client::interface::WantedDomain;
use weft_nic::gvas::Pdid;

/// The domain of a job for which none is chosen.
const DEFAULT: Pdid = Pdid(1);

/// The protection domains that a job has been given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    own: Pdid,
    given: BTreeSet<Pdid>,
}

impl Domains {
    /// These, of which the first is the job's own. Without any, the job has domain 1.
    pub fn new(given: &[u16]) -> Domains {
        let own = given.first().copied().map_or(DEFAULT, Pdid);
        Domains { own, given: given.iter().copied().map(Pdid).chain([own]).collect() }
    }

    /// The domain of the job's messaging, and of interfaces that name none.
    pub fn own(&self) -> Pdid {
        self.own
    }

    /// The domain in which a rank's interface is opened.
    ///
    /// # Errors
    /// An errno. EPERM: the job has not been given it. ENOSPC: there is none left for the rank alone.
    pub(crate) fn open(&self, wanted: WantedDomain, rank: u32) -> Result<Pdid, i32> {
        match wanted {
            WantedDomain::Job => Ok(self.own),
            WantedDomain::Numbered(number) => self.given.get(&Pdid(number)).copied().ok_or(libc::EPERM),
            WantedDomain::Private => self.private(rank).ok_or(libc::ENOSPC),
        }
    }

    /// The domain that a rank is alone in. Not 0, of which interfaces are that nobody has opened.
    fn private(&self, rank: u32) -> Option<Pdid> {
        (1..=u16::MAX).map(Pdid).filter(|domain| !self.given.contains(domain)).nth(rank as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a domain that a process gets although its job has not been given it, and a private one that is
    /// another's too.
    #[test]
    fn a_process_gets_its_jobs_domains_and_one_of_its_own() {
        let domains = Domains::new(&[7, 1, 7, 65535]);
        let open = |wanted, rank| domains.open(wanted, rank);
        assert_eq!(open(WantedDomain::Job, 3), Ok(Pdid(7)));
        assert_eq!(open(WantedDomain::Numbered(65535), 3), Ok(Pdid(65535)));
        assert_eq!(open(WantedDomain::Numbered(0), 3), Err(libc::EPERM));
        assert_eq!(open(WantedDomain::Private, 0), Ok(Pdid(2)));
        let private: BTreeSet<Pdid> =
            (0..65532).map(|rank| open(WantedDomain::Private, rank).unwrap()).collect();
        assert_eq!(private.len(), 65532);
        assert!([0, 1, 7, 65535].iter().all(|given| !private.contains(&Pdid(*given))));
        assert_eq!(open(WantedDomain::Private, 65532), Err(libc::ENOSPC));
        assert_eq!(Domains::new(&[]).own(), Pdid(1));
    }
}

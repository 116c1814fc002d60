//! The block that takes no more: host, interface or fabric, as measured.
//!
//! ```text
//!   sources ─► blocks of the interface ─► link ─► switches, links ─► link ─► blocks ─► sources
//!   backlog    worked                     busy, stalled    busy                worked
//! ```
//! Every block that does one thing at a time is measured by the share of time in which it worked. Blocks of
//! the sending side count by the mean of the endpoints that fell behind, others by the busiest of their kind.
//!
//! | a saturated row, in this order | the limit |
//! |---|---|
//! | an `overheads` interface and its endpoint's link, which take turns, had no time left | the interface |
//! | a block or a link worked for nine tenths of the time or more | the busiest of them |
//! | endpoints' links, or one between switches, sent or were held by a full buffer | the switches |
//! | the network is the ideal one | its links |
//! | otherwise | the channels of the interface, which wait for answers |
//!
//! Below saturation the host is the limit: it offers no more. A run is saturated where messages wait longer
//! and longer at their sources, or more and more of them are in the machine.

use super::run::Traffic;
use crate::experiment::busiest::{link_name, share};
use serde::{Deserialize, Serialize};
use weft_fabric::LinkEnd;
use weft_machine::{Fabric, Machine, Nic};
use weft_network::LinkUse;
use weft_nic::segmentation::SEGMENTATION;
use weft_nic::segmentation::SegmentationParameters;
use weft_nic::{Block, BlockWork, Host as _, Side};
use weft_topo::Layout;
use weft_units::{EndpointId, Span};

/// A block that works for this share of the time has none to spare: arrivals are random.
const BUSY: f64 = 0.9;
/// Two blocks that take turns use this share of the time or more where they are the limit.
const NO_TIME_LEFT: f64 = 0.97;
/// Below this share of the time a block is not worth naming.
const LITTLE: f64 = 0.05;

/// A part of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachinePart {
    /// The host: its offer, its memory.
    #[default]
    Host,
    /// The network interface.
    Interface,
    /// Links and switches.
    Fabric,
}

impl MachinePart {
    /// The name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            MachinePart::Host => "host",
            MachinePart::Interface => "interface",
            MachinePart::Fabric => "fabric",
        }
    }
}

/// A block that limits, or is the busiest.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Limit {
    /// The part of the machine that it belongs to.
    pub part: MachinePart,
    /// The name of the block.
    pub block: String,
    /// The ends of a link.
    pub place: Option<String>,
    /// Share of the measured time in which it worked; of switches, in which they took packets or held them.
    pub busy: Option<f64>,
}

impl Limit {
    /// Below saturation.
    pub(super) fn of_offer() -> Limit {
        Limit { part: MachinePart::Host, block: "offered load".to_owned(), place: None, busy: None }
    }

    /// The busiest of several, the first among equals.
    pub(super) fn busiest<'a>(of: impl Iterator<Item = &'a Limit>) -> Limit {
        let more = |best: &'a Limit, other| if best.share() >= Limit::share(other) { best } else { other };
        of.reduce(more).cloned().unwrap_or_default()
    }

    fn share(&self) -> f64 {
        self.busy.unwrap_or(0.0)
    }
}

/// How sources and blocks stood when the measured time began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Before {
    /// How long the oldest message of each source waits, by visit.
    backlogs: Vec<Span>,
    /// Messages that the machine has taken from all sources.
    taken: u64,
    /// How long each block of each endpoint has worked, by visit.
    work: Vec<Span>,
}

impl Before {
    /// Messages that the machine had taken from all sources.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn of(network: &Traffic) -> Before {
        let (now, mut before) = (network.now(), Before::default());
        network.visit_hosts(&mut |_, source| {
            before.backlogs.push(source.backlog(now));
            before.taken += source.taken();
        });
        network.visit_work(&mut |_, work| before.work.push(work.worked));
        before
    }
}

/// The blocks of one name, over the endpoints that count.
#[derive(Clone, Copy)]
struct Worked {
    block: &'static str,
    side: Side,
    sum: f64,
    endpoints: u32,
    most: f64,
}

impl Worked {
    /// The share of time in which it worked: more is work that is still to come.
    fn share(&self) -> f64 {
        let share = match self.side {
            Side::Sender => self.sum / f64::from(self.endpoints.max(1)),
            Side::Receiver => self.most,
        };
        share.min(1.0)
    }
}

/// The measurements of a run that say what limits it.
pub(super) struct Limits {
    /// Growth of the times for which the oldest messages of all sources wait.
    pub grown_ps: u128,
    /// Messages that the machine has taken from all sources meanwhile.
    pub taken: u64,
    blocks: Vec<Worked>,
    busiest_link: Option<(f64, LinkUse)>,
    /// Mean share of time in which the links of endpoints that fell behind were busy.
    sending: f64,
    /// The same, or in which a packet stood ready on them and the buffer behind was full.
    occupied: f64,
    /// The largest share in which that holds of a link between switches.
    held: f64,
}

impl Limits {
    /// Of a measured time that ends now. A source has fallen behind where its oldest message waits longer
    /// than before by more than `tolerance` of the time; where none has, all that send count.
    pub(super) fn new(before: &Before, network: &Traffic, time: Span, tolerance: f64) -> Limits {
        let now = network.now();
        let (mut behind, mut senders): (Vec<EndpointId>, Vec<EndpointId>) = Default::default();
        let (mut grown_ps, mut backlog_before, mut taken) = (0u128, 0u128, 0);
        let mut earlier = before.backlogs.iter().copied();
        network.visit_hosts(&mut |endpoint, source| {
            let (now, then) = (source.backlog(now), earlier.next().unwrap_or_default());
            taken += source.taken();
            grown_ps += u128::from(now.as_ps());
            backlog_before += u128::from(then.as_ps());
            if share(now.saturating_sub(then), time) > tolerance {
                behind.push(endpoint);
            }
            if source.is_active() || source.taken() > 0 {
                senders.push(endpoint);
            }
        });
        let mut counted = if behind.is_empty() { senders } else { behind };
        counted.sort_unstable();
        let counts = |endpoint: EndpointId| counted.binary_search(&endpoint).is_ok();

        let (mut sending, mut occupied, mut held) = (0.0, 0.0, 0.0f64);
        let mut busiest_link: Option<(f64, LinkUse)> = None;
        network.visit_links(&mut |link| {
            let busy = share(link.busy, time).min(1.0);
            let full = (busy + share(link.stalled, time)).min(1.0);
            match link.from {
                LinkEnd::Endpoint(endpoint) if counts(endpoint) => {
                    sending += busy;
                    occupied += full;
                }
                LinkEnd::Endpoint(_) => {}
                LinkEnd::Port(..) => held = held.max(full),
            }
            if busiest_link.as_ref().is_none_or(|(most, _)| busy > *most) {
                busiest_link = Some((busy, link));
            }
        });
        let links = counted.len().max(1) as f64;
        let grown_ps = grown_ps.saturating_sub(backlog_before);
        let blocks = worked(before, network, time, counts);
        let taken = taken - before.taken;
        let (sending, occupied) = (sending / links, occupied / links);
        Limits { grown_ps, taken, blocks, busiest_link, sending, occupied, held }
    }

    /// The block that worked for the largest share of the time.
    pub(super) fn busiest(&self, (machine, layout): (&Machine, &Layout)) -> Limit {
        let block = self.blocks.iter().map(|worked| (worked.share(), *worked));
        let block = block.reduce(|best, other| if best.0 >= other.0 { best } else { other });
        let (link_share, link) = self.busiest_link.clone().unzip();
        match (block, link) {
            (Some((share, worked)), _) if share > link_share.unwrap_or(0.0) => of_block(&worked, machine),
            (_, Some(link)) => Limit {
                part: MachinePart::Fabric,
                block: format!("link {}", link.class),
                place: Some(link_name(layout, &link)),
                busy: link_share,
            },
            _ => Limit::of_offer(),
        }
    }

    /// The limit of a saturated run.
    pub(super) fn limit(&self, busiest: &Limit, machine: &Machine) -> Limit {
        let of = |part, block: &str, busy| Limit { part, block: block.to_owned(), place: None, busy };
        // A slow receiver holds nobody up: its packets wait in it.
        let receives = |worked: &Worked| worked.side == Side::Receiver && worked.share() >= BUSY;
        if matches!(machine.nic, Nic::Overheads(_) | Nic::Portals(_))
            && !self.blocks.iter().any(receives)
            && let Some(sender) = self.blocks.iter().find(|worked| worked.side == Side::Sender)
            && sender.share() >= LITTLE
            && self.sending + sender.share() >= NO_TIME_LEFT
        {
            return of_block(sender, machine);
        }
        if busiest.share() >= BUSY {
            return busiest.clone();
        }
        let held = self.occupied.max(self.held);
        if held >= BUSY {
            return of(MachinePart::Fabric, "switches", Some(held));
        }
        match machine.fabric {
            Fabric::Ideal(_) => of(MachinePart::Fabric, "link ideal", Some(self.sending)),
            Fabric::Packet { .. } => of(MachinePart::Interface, "channels", None),
        }
    }
}

/// The blocks by name; those of senders over the endpoints that count.
fn worked(
    before: &Before,
    network: &Traffic,
    time: Span,
    counts: impl Fn(EndpointId) -> bool,
) -> Vec<Worked> {
    let mut blocks: Vec<Worked> = Vec::new();
    let mut earlier = before.work.iter().copied();
    network.visit_work(&mut |endpoint, BlockWork { block, side, worked }| {
        let share = share(worked.saturating_sub(earlier.next().unwrap_or_default()), time);
        let place = blocks.iter().position(|known| known.block == block).unwrap_or_else(|| {
            blocks.push(Worked { block, side, sum: 0.0, endpoints: 0, most: 0.0 });
            blocks.len() - 1
        });
        let known = &mut blocks[place];
        known.most = known.most.max(share);
        if counts(endpoint) {
            (known.sum, known.endpoints) = (known.sum + share, known.endpoints + 1);
        }
    });
    blocks
}

/// A block, by the name that the machine has for it.
fn of_block(worked: &Worked, machine: &Machine) -> Limit {
    let firmware = |nic: &Nic| match nic {
        Nic::Exanet(nic) => matches!(nic.rdma.engine.segmentation, SegmentationParameters::Firmware { .. }),
        _ => false,
    };
    let (part, block) = match worked.block {
        block if block == Block::MEMORY.name() => (MachinePart::Host, block),
        block if block == SEGMENTATION.name() && firmware(&machine.nic) => {
            (MachinePart::Interface, "co-processor")
        }
        block => (MachinePart::Interface, block),
    };
    Limit { part, block: block.to_owned(), place: None, busy: Some(worked.share()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_machine::load;

    fn limits(shares: &[(&'static str, Side, f64)], sending: f64, occupied: f64) -> Limits {
        let blocks = shares.iter().map(|&(block, side, share)| Worked {
            block,
            side,
            sum: 2.0 * share,
            endpoints: 2,
            most: share,
        });
        Limits {
            grown_ps: 0,
            taken: 0,
            blocks: blocks.collect(),
            busiest_link: None,
            sending,
            occupied,
            held: 0.0,
        }
    }

    fn limit(name: &str, limits: &Limits) -> (MachinePart, String) {
        let machine = load(name, &[] as &[&str]).unwrap();
        let layout = weft_assembly::layout(&machine).unwrap();
        let limit = limits.limit(&limits.busiest((&machine, &layout)), &machine);
        (limit.part, limit.block)
    }

    /// Catches a rule that comes before another, and the memory of the host that is called the interface's.
    #[test]
    fn the_limit_is_where_there_is_no_time_left() {
        let of = |part, block: &str| (part, block.to_owned());
        let agent = SEGMENTATION.name();
        for (shares, sending, occupied, expected) in [
            (&[(agent, Side::Sender, 0.97)][..], 0.1, 0.1, of(MachinePart::Interface, "co-processor")),
            (
                &[("memory", Side::Sender, 0.95), (agent, Side::Sender, 0.93)],
                0.1,
                0.1,
                of(MachinePart::Host, "memory"),
            ),
            (&[(agent, Side::Sender, 0.5)], 0.4, 0.95, of(MachinePart::Fabric, "switches")),
            (&[(agent, Side::Sender, 0.3)], 0.2, 0.3, of(MachinePart::Interface, "channels")),
        ] {
            assert_eq!(limit("exanest", &limits(shares, sending, occupied)), expected, "{shares:?}");
        }
        let pause =
            limits(&[("sending", Side::Sender, 0.25), ("receiving", Side::Receiver, 0.0)], 0.74, 0.74);
        assert_eq!(limit("bxi2-fattree", &pause), of(MachinePart::Interface, "sending"));
    }
}

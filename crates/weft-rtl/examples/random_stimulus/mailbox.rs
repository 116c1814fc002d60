//! Packets for a mailbox: bursts of all sizes from several sources, some damaged, foreign, for nobody, or
//! repeated.

use crate::Bench;
use weft_nic::gvas::Pdid;
use weft_nic::mailbox::{Envelope, Mailbox, MailboxParameters, QueueChange};
use weft_nic::packetizer::ChannelId;
use weft_nic::ports::{Arrival, Crossing, SmallPacket, Verdict};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Interfaces that are used: few, so that queues fill up.
const INTERFACES: u64 = 6;
/// Cycles from the edge of a tail to the answer, at least: the RTL's, which the model does not have.
const BEHIND_TAIL: u64 = 4;

pub(crate) fn run(bench: &mut Bench, parameters: &MailboxParameters, end: Time) -> Result<String, String> {
    let mut mailbox = Mailbox::default();
    for interface in 0..INTERFACES as u16 {
        let domain = Pdid(100 + interface);
        mailbox.open(interface, domain);
        bench.cross(Time::ZERO, Crossing::Opened { interface, domain });
    }
    let clock = bench.clock;
    let (mut tail, mut free, mut burst) = (clock.edge(40), clock.edge(40), 0);
    let (mut count, mut put_count, mut last) = (0u32, 0, None);
    while tail < end {
        if burst == 0 {
            // What has come is checked before the next burst: the RTL has room for 128 packets.
            burst = 1 + bench.below(40);
            tail = tail.max(free) + clock.cycles(bench.below(200));
        }
        burst -= 1;
        let bytes = Bytes::new(bench.below(65));
        let head = clock.edge(clock.edges_before(tail) + 1 + bench.below(8));
        let words = 2 + bytes.div_ceil(Bytes::new(16));
        tail = clock.edge(clock.edges_before(head) + words + bench.below(12));
        let again = last.filter(|_| bench.in_thousand(30));
        let packet = again.map(|packet| SmallPacket { head, target: None, ..packet });
        let packet = packet.unwrap_or_else(|| {
            count += 1;
            let interface = if bench.in_thousand(20) { 64 } else { bench.below(INTERFACES) as u16 };
            let domain = Pdid(if bench.in_thousand(20) { 99 } else { 100 + interface });
            let channel = ChannelId { interface: bench.below(64) as u16, channel: bench.below(4) as u16 };
            let from = EndpointId(1000 + bench.below(9) as u32);
            let target = Some((interface, domain));
            SmallPacket { head, from, message: count, channel, bytes, target, damaged: false, payload: None }
        });
        let bytes = packet.bytes;
        let words = 2 + bytes.div_ceil(Bytes::new(16));
        tail = tail.max(clock.edge(clock.edges_before(head) + words));
        let packet = SmallPacket { damaged: bench.in_thousand(30), ..packet };
        let SmallPacket { target, damaged, .. } = packet;
        let checked = mailbox.check(head, tail, parameters).ended;
        let mut changes: Vec<QueueChange> = Vec::new();
        let refusal = match target {
            Some((interface, domain)) => {
                let envelope = Envelope { interface, domain, damaged };
                mailbox.put(tail, &envelope, parameters, &mut |change| changes.push(change)).err()
            }
            None => damaged.then_some(weft_nic::mailbox::Refusal::Damaged),
        };
        let put = refusal.is_none() && target.is_some();
        changes.into_iter().for_each(|change| bench.cross(tail, Crossing::Queue(change)));
        bench.cross(tail, Crossing::Arrived(Arrival { packet, verdict: Verdict { checked, refusal, put } }));
        // Answers follow each other by a check at least, wherever the footer of one has held it up.
        free = checked.max(tail) + clock.cycles(u64::from(parameters.check) + BEHIND_TAIL);
        if put {
            put_count += 1;
            last = Some(packet);
            let (interface, _) = target.unwrap_or_default();
            if !bench.in_thousand(100) {
                mailbox.take(interface, tail + Span::from_ns(bench.below(20_000)));
            }
        }
        bench.advance(tail)?;
    }
    bench.finish(tail + Span::from_us(2))?;
    Ok(format!("{count} packets, {put_count} put"))
}

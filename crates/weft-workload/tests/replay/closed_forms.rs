//! Times that follow from the parameters, to the picosecond.

use super::support::*;
use weft_fabric::LineRate;
use weft_units::{BitRate, Bytes, LineCode, Span};
use weft_workload::replay::{Activity, ProgressRule, TimelineEvent};

fn ping_pong(rounds: u32, bytes: u64) -> Vec<Vec<weft_trace::op::Op>> {
    let ping = |_| [send(1, 0, bytes, 0), wait(0), receive(1, 0, bytes, 1), wait(1)];
    let pong = |_| [receive(0, 0, bytes, 1), wait(1), send(0, 0, bytes, 0), wait(0)];
    vec![(0..rounds).flat_map(ping).collect(), (0..rounds).flat_map(pong).collect()]
}

/// One way: posting, the interface, the line, the wire, the interface, taking the message.
#[test]
fn an_eager_ping_pong_is_the_sum_of_its_parts() {
    for progress in [ProgressRule::Call, ProgressRule::Background] {
        let mut setup = Setup::costly(progress);
        setup.protocol.eager_buffered = true;
        setup.protocol.matching_entry = Span::ZERO;
        let outcome = setup.run(&[trace_of(&ping_pong(100, 8))], None);
        outcome.assert_finished();
        let (protocol, simple) = (&setup.protocol, &setup.simple);
        let line = LineRate::new(BitRate::from_gigabits(16), LineCode::NONE).unwrap();
        let one_way = protocol.send_call
            + simple.send_message
            + simple.message_gap
            + line.span(Bytes::new(8 + 24))
            + setup.ideal.latency
            + simple.receive_packet
            + simple.receive_message
            + protocol.receive_message;
        assert_eq!(outcome.run_time(), one_way * 200);
        assert!(
            outcome.messages.iter().all(|m| m.delivered - m.posted == one_way - protocol.receive_message)
        );
        assert_eq!(outcome.messages.len(), 200);
    }
}

/// A message above the eager limit goes after a request and a clearance; its time counts from the post.
#[test]
fn a_rendezvous_is_the_sum_of_its_parts() {
    let mut setup = Setup::costly(ProgressRule::Call);
    setup.protocol.matching_entry = Span::ZERO;
    setup.simple.payload = Bytes::new(4096);
    let outcome = setup.run(&[trace_of(&ping_pong(1, 1000))], None);
    outcome.assert_finished();
    let (protocol, simple) = (&setup.protocol, &setup.simple);
    let line = LineRate::new(BitRate::from_gigabits(16), LineCode::NONE).unwrap();
    let through = |bytes| {
        simple.send_message
            + simple.message_gap
            + line.span(Bytes::new(bytes))
            + setup.ideal.latency
            + simple.receive_packet
            + simple.receive_message
    };
    let delivered = protocol.send_call
        + protocol.control_send
        + through(16)
        + protocol.control_receive
        + protocol.control_send
        + through(16)
        + protocol.control_receive
        + protocol.data_send
        + through(1000);
    assert_eq!(outcome.messages[0].delivered - outcome.messages[0].posted, delivered);
    assert_eq!(outcome.messages.len(), 2);
    assert_eq!(outcome.ranks[0].messages_sent, 1);
    assert_eq!(outcome.ranks[0].received, Bytes::new(1000));
}

/// Two ranks of one endpoint share its interface: what is posted later goes later, although the rank
/// that posts it comes first in the program.
#[test]
fn ranks_share_an_interface_in_the_order_of_time() {
    let mut setup = Setup::costly(ProgressRule::Call);
    setup.per_host = 2;
    setup.protocol.eager_buffered = true;
    // Ranks 0 and 1 sit on endpoint 0, ranks 2 and 3 on endpoint 1.
    let late = vec![compute(10), send(2, 0, 200, 0), wait(0)];
    let early = vec![compute(2), send(3, 0, 200, 0), wait(0)];
    let receiver = |from| vec![receive(from, 0, 200, 0), wait(0)];
    let outcome = setup.run(&[trace_of(&[late, early, receiver(0), receiver(1)])], None);
    outcome.assert_finished();
    assert_eq!(outcome.messages[0].source_rank.0, 1);
    let spans: Vec<_> = outcome.messages.iter().map(|m| m.delivered - m.posted).collect();
    assert_eq!(spans[0], spans[1], "neither waits for the other");
}

/// Catches time that is drawn twice or not at all: a rank's slices cover its time without a gap.
#[test]
fn slices_cover_the_time_of_a_rank() {
    for progress in [ProgressRule::Call, ProgressRule::Background] {
        let mut setup = Setup::costly(progress);
        setup.timeline = true;
        let mut programs = ping_pong(20, 500);
        programs[0].insert(17, compute(3));
        let outcome = setup.run(&[trace_of(&programs)], None);
        outcome.assert_finished();
        for rank in &outcome.ranks {
            let mut at = weft_units::Time::ZERO;
            let (mut computed, mut communicated, mut waited) = (Span::ZERO, Span::ZERO, Span::ZERO);
            for event in outcome.timeline.iter().filter(|event| event.rank() == rank.rank) {
                let TimelineEvent::Slice { activity, start, end, .. } = event else { continue };
                assert_eq!(*start, at);
                at = *end;
                let sum = match activity {
                    Activity::Compute => &mut computed,
                    Activity::Communicate => &mut communicated,
                    Activity::Wait => &mut waited,
                };
                *sum += *end - *start;
            }
            assert_eq!(
                (at, computed, communicated, waited),
                (rank.end, rank.computation, rank.communication, rank.wait())
            );
        }
    }
}

//! Drop at the tail: what is lost is counted, and the rest arrives.

use crate::machines::{KINDS, Load, plain, random_script, star, torus};
use crate::scripted::{Planned, assert_counts_are_sums, take_arrivals, until};
use weft_engine::Progress;
use weft_fabric::parameters::FlowControl;
use weft_fabric::{Network, check_credits, check_packets, stuck};
use weft_units::{Bytes, EndpointId, Span, Time};

/// Catches drops that are not counted, counted twice, or counted on another link, and packets that wait for
/// space under drop: a ring without datelines never stands still.
#[test]
fn what_is_lost_is_counted_where_it_was() {
    for kind in KINDS {
        let mut machine = plain(torus(&[6], true, 2, false), kind, 2);
        machine.switch.flow_control = FlowControl::Drop;
        machine.switch.output_buffer = Some(Bytes::new(600));
        let script = random_script(&machine.layout, 256, Load { packets: 400, gap_ps: 100_000, seed: 3 });
        let mut run = machine.begin(&script, 1);
        for step in 1..10 {
            until(&mut run, Time::ZERO + Span::from_us(step));
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
        }
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        assert_eq!(stuck(&run), None);
        assert_eq!(Network::overrun(&run), None, "a drop is no overrun");
        let arrived = take_arrivals(&mut run).len() as u64;
        let lost: u64 = run.sites().map(|(_, site)| site.faults().full).sum();
        assert!(lost > 100, "{kind:?}: {lost}");
        assert_eq!(arrived + lost, 12 * 400);
        assert_eq!(Network::links(&run).map(|link| link.counts.full).sum::<u64>(), lost);
        assert_counts_are_sums(&run);
        assert!(Network::links(&run).all(|link| link.most_held <= machine.switch.buffer));
        assert!(Network::links(&run).all(|link| link.stalled == Span::ZERO && link.pause_frames == 0));
    }
}

/// Catches a buffer that drops a packet that would fit, or takes one that does not. Two endpoints send
/// packets of 144 ns to a third at full rate: each buffer drains at half the rate at which it fills. So it
/// holds at most its three packets, and in the long run half of what comes is lost.
#[test]
fn a_buffer_takes_what_fits() {
    for kind in KINDS {
        let mut machine = plain(star(3), kind, 3);
        machine.switch.flow_control = FlowControl::Drop;
        machine.switch.output_buffer = Some(Bytes::new(288));
        let planned = Planned { at: Time::ZERO, to: EndpointId(2), bytes: 256 };
        let script = vec![vec![planned; 1000], vec![planned; 1000], Vec::new()];
        let mut run = machine.begin(&script, 1);
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        let arrived = take_arrivals(&mut run).len();
        assert!((1000..1010).contains(&arrived), "{kind:?}: {arrived}");
        let most = Network::links(&run).map(|link| link.most_held).max().unwrap();
        assert_eq!(most, Bytes::new(3 * 288), "{kind:?}");
    }
}

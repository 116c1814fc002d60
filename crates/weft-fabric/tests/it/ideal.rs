//! The ideal network against LogGP's closed forms.

use crate::scripted::{Arrived, Planned, Scripted};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use weft_engine::Simulation;
use weft_fabric::Ideal;
use weft_fabric::parameters::IdealParameters;
use weft_units::{BitRate, EndpointId, Span, Time};

fn arrivals(parameters: IdealParameters, script: &[Vec<Planned>], threads: usize) -> Vec<Arrived> {
    let make = |endpoint: EndpointId, _: &()| Scripted::new(script[endpoint.index()].clone());
    let mut run = Simulation::new(Ideal::build(parameters, script.len() as u32, (), make), threads);
    run.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut arrived: Vec<Arrived> = run.outputs_mut().flat_map(std::mem::take).collect();
    arrived.sort_unstable();
    arrived
}

fn any_parameters() -> impl Strategy<Value = IdealParameters> {
    let rate = prop::option::of(1_000_000_000u64..400_000_000_000);
    (0u64..2_000_000, 0u64..500_000, rate).prop_map(|(latency, gap, rate)| IdealParameters {
        latency: Span::from_ps(latency),
        gap: Span::from_ps(gap),
        rate: rate.map(BitRate::from_bits_per_second),
    })
}

proptest! {
    /// Catches a wrong L, g or G: message n of an endpoint starts when it is due, g after the start of
    /// the one before, and when that has left; it arrives L after its last byte. To the picosecond where
    /// the rate divides it, within one where it does not.
    #[test]
    fn messages_take_latency_gap_and_bytes(
        parameters in any_parameters(), sizes in prop::collection::vec((0u32..4096, 0u64..300_000), 1..30),
        endpoints in 1u32..70,
    ) {
        let mut at = 0;
        let mut plan = Vec::new();
        for (n, &(bytes, pause)) in (0u32..).zip(&sizes) {
            at += pause;
            plan.push(Planned { at: Time::from_ps(at), to: EndpointId(n % endpoints), bytes });
        }
        // Every endpoint follows the same script: nothing that one does may slow another.
        let script = vec![plan.clone(); endpoints as usize];
        let (latency, gap) = (parameters.latency.as_ps(), parameters.gap.as_ps());
        let rate = parameters.rate.map(BitRate::bits_per_second);
        let arrived = arrivals(parameters, &script, 1);
        prop_assert_eq!(arrived.len(), plan.len() * endpoints as usize);
        // In units of 1/rate ps, so that nothing is rounded.
        let unit = u128::from(rate.unwrap_or(1));
        let mut free = 0u128;
        for (n, planned) in (0u32..).zip(&plan) {
            let start = free.max(u128::from(planned.at.as_ps()) * unit);
            let left = start + rate.map_or(0, |_| u128::from(planned.bytes) * 8 * 1_000_000_000_000);
            free = left.max(start + u128::from(gap) * unit);
            let exact = left.div_ceil(unit) as u64 + latency;
            for packet in arrived.iter().filter(|a| a.message == n) {
                // The interface asks at whole picoseconds: a start is at most one late.
                let late = packet.at.as_ps().wrapping_sub(exact);
                prop_assert!(late <= u64::from(n), "message {} came {} ps late", n, late);
                prop_assert_eq!(packet.destination, planned.to);
            }
        }
        prop_assert_eq!(arrivals(parameters, &script, 3), arrived);
    }
}

/// By hand: 1000 B at 8 Gb/s leave in 1 µs and arrive after another 2 µs; with a gap of 1.5 µs the
/// second starts then, with none it follows at once.
#[test]
fn two_messages_by_hand() {
    for (gap_ns, second_ns) in [(1_500, 4_500), (0, 4_000)] {
        let parameters = IdealParameters {
            latency: Span::from_us(2),
            gap: Span::from_ns(gap_ns),
            rate: Some(BitRate::from_gigabits(8)),
        };
        let message = Planned { at: Time::ZERO, to: EndpointId(1), bytes: 1_000 };
        let arrived = arrivals(parameters, &[vec![message; 2], Vec::new()], 1);
        let times: Vec<_> = arrived.iter().map(|a| a.at.as_ps()).collect();
        assert_eq!(times, [3_000_000, second_ns * 1_000]);
    }
}

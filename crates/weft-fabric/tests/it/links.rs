//! Reports of links.

use crate::machines::{KINDS, Load, link, plain, random_script, torus};
use crate::scripted::{Planned, Run, Script, until};
use weft_engine::Progress;
use weft_fabric::parameters::{Forwarding, SwitchKind};
use weft_fabric::{LinkEnd, LinkReport};
use weft_units::{Clock, EndpointId, LineCode, Span, Time};

fn links(run: &Run) -> Vec<LinkReport> {
    run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect()
}

/// Catches stalls that are counted from before the reset, or only once they are over. Two endpoints feed
/// a link of 16 Gb/s that leads to one of 1 Gb/s behind a buffer of one packet: with store and forward it
/// sends 144 ns of each 2304 ns and more, and stalls for nearly all of the rest.
#[test]
fn a_link_stalls_for_the_time_that_it_lacks_credits() {
    for kind in KINDS {
        let mut machine = plain(torus(&[2], false, 2, true), kind, 1);
        machine.links = vec![link(1_000, LineCode::NONE, 15_000, 0), link(16_000, LineCode::NONE, 15_000, 0)];
        machine.switch.forwarding = Forwarding::StoreAndForward;
        machine.switch.output_buffer = Some(machine.switch.buffer);
        let packet = Planned { at: Time::ZERO, to: EndpointId(2), bytes: 256 };
        let script: Script = vec![vec![packet; 200], vec![packet; 200], Vec::new(), Vec::new()];
        let mut run = machine.begin(&script, 1);
        // A stall is noted when the output is arbitrated, a pipeline before its line is free.
        for (from, to) in [(50_000_000, 50_700_000), (100_000_123, 200_000_456)] {
            until(&mut run, Time::from_ps(from));
            let now = run.now();
            run.sites_mut().for_each(|(_, site)| site.reset_counters(now));
            assert!(links(&run).iter().all(|link| link.stalled == Span::ZERO));
            until(&mut run, Time::from_ps(to));
            let elapsed = to - from;
            for link in links(&run) {
                assert!(link.stalled.as_ps() <= elapsed, "{kind:?}: {link:?} in {elapsed} ps");
            }
            if elapsed > 50_000_000 {
                let between =
                    |link: &&LinkReport| matches!(link.from, LinkEnd::Port(s, p) if s.0 == 0 && p.0 == 2);
                let reports = links(&run);
                let LinkReport { busy, stalled, .. } = reports.iter().find(between).unwrap();
                let shares = [busy, stalled].map(|span| span.as_ps() as f64 / elapsed as f64);
                assert!((shares[0] - 144.0 / 2304.0).abs() < 0.01, "{kind:?}: {shares:?}");
                let expected = if kind == SwitchKind::OutputQueued { 0.9 } else { 0.85 };
                assert!(shares[1] > expected && shares[0] + shares[1] < 1.01, "{kind:?}: {shares:?}");
            }
        }
    }
}

/// Catches a deadlock whose links look idle.
#[test]
fn the_links_of_a_deadlock_stall_for_ever() {
    let machine = plain(torus(&[5], true, 2, false), SwitchKind::InputQueued, 1);
    let script = random_script(&machine.layout, 256, Load { packets: 300, gap_ps: 0, seed: 4 });
    let mut run = machine.begin(&script, 1);
    let hour = Time::ZERO + Span::from_us(3_600_000_000);
    assert_eq!(until(&mut run, hour), Progress::Dry);
    assert_eq!(run.now(), hour);
    let stalled = links(&run).iter().filter(|link| link.stalled > Span::from_us(3_599_000_000)).count();
    assert!(stalled >= 5, "{stalled}");
}

/// By hand: two packets of 144 ns over two switches at 200 MHz with a pipeline of two cycles, links of
/// 15 ns, buffers of one packet. Catches credits that come sooner or later than a link's latency after
/// the tail has left the buffer.
///
/// ```text
///                    first packet                       second packet
///  endpoint 0        0                                  needs the credit of 174
///  switch 0          in at 15, decided 15, tail gone    in at 189, needs the credit of 199: decided 200,
///                    159: credit back at 174            on the line at 210
///  switch 1          in at 40, decided 40, tail gone    in at 225, decided 225, on the line at 235
///                    184: credit back at 199
///  endpoint 1        50 + 144 + 15 = 209                235 + 144 + 15 = 394
/// ```
#[test]
fn credits_take_the_latency_of_the_link() {
    for kind in KINDS {
        let mut machine = plain(torus(&[2], false, 1, true), kind, 1);
        machine.switch.clock = Clock::from_hertz(200_000_000).unwrap();
        let packet = Planned { at: Time::ZERO, to: EndpointId(1), bytes: 256 };
        let arrived = machine.arrivals(&vec![vec![packet; 2], Vec::new()]);
        let times: Vec<u64> = arrived.iter().map(|a| a.at.as_ps()).collect();
        assert_eq!(times, [209_000, 394_000], "{kind:?}");
    }
}

//! Link layers: lone packets and busy lines of every protocol, and repetition, against arithmetic.

use crate::machines::{layered, plain, star};
use crate::scripted::{Arrived, Machine, Planned, Run, Script, assert_counts_are_sums, take_arrivals, until};
use crate::zero_load::check_lone_packets;
use weft_engine::Progress;
use weft_fabric::{
    ErrorRate, Fec, LinkEnd, LinkLayer, LinkParameters, LinkProtocol, LinkReport, ReplayParameters,
    check_credits, check_packets, stuck,
};
use weft_topo::{Ascent, Layout};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Two endpoints at a switch whose links are all like `link`. Space for many packets, so that credits never
/// matter.
fn pair(link: LinkParameters) -> Machine {
    let mut machine = plain(star(2), crate::machines::KINDS[1], 1);
    machine.format.payload = Bytes::new(4096);
    machine.switch.buffer = Bytes::new(1 << 20);
    machine.links = vec![link; machine.links.len()];
    machine
}

/// Packets of `bytes` from endpoint 0 to 1, all at once.
fn burst(packets: u32, bytes: u32) -> Script {
    let planned = Planned { at: Time::ZERO, to: EndpointId(1), bytes };
    vec![vec![planned; packets as usize], Vec::new()]
}

/// Runs to the end with all checks; the packets that arrived, exactly once and in order.
fn checked(machine: &Machine, script: &Script) -> (Vec<Arrived>, Run<Layout>) {
    let mut run = machine.begin(script, 1);
    let mut arrived = Vec::new();
    for epoch in 1..=20 {
        until(&mut run, Time::from_ps(epoch * 3_000_000));
        assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
        arrived.extend(take_arrivals(&mut run));
    }
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
    assert_eq!(stuck(&run), None);
    assert_counts_are_sums(&run);
    arrived.extend(take_arrivals(&mut run));
    let numbers: Vec<u32> = arrived.iter().map(|packet| packet.message).collect();
    assert_eq!(numbers, (0..script[0].len() as u32).collect::<Vec<_>>(), "each once and in order");
    (arrived, run)
}

/// The link of endpoint 0.
fn injection(run: &Run<Layout>) -> LinkReport {
    let mut reports = run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now()));
    reports.find(|link| matches!(link.from, LinkEnd::Endpoint(EndpointId(0)))).unwrap()
}

fn with_errors(link: LinkParameters, bit_errors: u64) -> LinkParameters {
    let layer = LinkLayer { bit_errors: ErrorRate::new(bit_errors).unwrap(), ..link.layer };
    LinkParameters { layer, ..link }
}

/// Catches a word, a start word or a smallest frame too many or too few anywhere on a path.
#[test]
fn a_lone_packet_takes_what_the_layer_says() {
    for protocol in LinkProtocol::ALL {
        for lanes in 1..=4 {
            let mut machine = plain(crate::machines::tree(3, 3, Ascent::DModK), crate::machines::KINDS[0], 4);
            machine.links = vec![layered(protocol, lanes); machine.links.len()];
            check_lone_packets(&machine, 150_000_000, 20, u64::from(lanes)).unwrap();
        }
    }
}

/// Catches an efficiency that is not the arithmetic's: bytes of 1,000 packets on the line, small and large,
/// by hand. Packets have 32 B of header and footer.
#[test]
fn a_busy_line_carries_what_the_arithmetic_says() {
    use LinkProtocol::*;
    // On the line for 65 B, 256 B and 4 KB of payload, by protocol and lanes; thousandths of a byte for
    // Ethernet, whose 1,000 frames fall behind by less than a word.
    let expected = [
        (Exanet, 1, [112, 288, 4128]),
        (Apelink, 2, [128, 304, 4144]),
        (Aurora, 1, [104, 296, 4136]),
        (Aurora, 2, [112, 304, 4144]),
        (Aurora, 3, [120, 312, 4152]),
        (Aurora, 4, [128, 320, 4160]),
        (Bxi2, 1, [112, 296, 4136]),
        (ApenetBxi2, 1, [112, 304, 4144]),
        (Ethernet, 1, [117, 308, 4148]),
    ];
    for (protocol, lanes, on_line) in expected {
        for (payload, bytes) in [65, 256, 4096].into_iter().zip(on_line) {
            let link = layered(protocol, lanes);
            let (arrived, run) = checked(&pair(link), &burst(1000, payload));
            let whole: u64 = bytes * 1000;
            let whole = if protocol == Ethernet { whole - whole % 8 } else { whole };
            let line = weft_fabric::LineRate::new(link.rate, link.code).unwrap();
            let report = injection(&run);
            assert_eq!(report.busy, line.span(Bytes::new(whole)), "{protocol:?} {lanes} {payload}");
            assert_eq!(link.bytes_on_line(Bytes::new(u64::from(payload) + 32)).get(), bytes);
            // The last arrives when the others have passed: but for a clock edge and a word at the switch.
            let took = (arrived[999].at - arrived[0].at).as_ps();
            let due = line.span(Bytes::new(bytes * 999)).as_ps();
            assert!(took.abs_diff(due) < 20_000, "{protocol:?} {lanes} {payload}: {took} {due}");
        }
    }
}

/// Catches packets that a repetition loses, doubles or overtakes, and a cost that is not that of go-back-N:
/// every attempt that is hit costs its time on the line and a round trip.
#[test]
fn replay_costs_what_the_arithmetic_says() {
    for protocol in
        [LinkProtocol::Exanet, LinkProtocol::Apelink, LinkProtocol::Bxi2, LinkProtocol::ApenetBxi2]
    {
        // A bit of 100,000.
        let link = with_errors(layered(protocol, 1), 10_000_000_000);
        assert!(link.layer.replay.is_some());
        let (_, run) = checked(&pair(link), &burst(2_000, 1024));
        let report = injection(&run);
        let line = weft_fabric::LineRate::new(link.rate, link.code).unwrap();
        let bytes = link.bytes_on_line(Bytes::new(1024 + 32));
        let hit = -(bytes.bits() as f64 * (-1e-5f64).ln_1p()).exp_m1();
        // A geometric number of attempts per packet: five standard deviations.
        let (mean, variance) = (2_000.0 * hit / (1.0 - hit), 2_000.0 * hit / (1.0 - hit).powi(2));
        let replayed = report.counts.replayed;
        assert!((replayed as f64 - mean).abs() < 5.0 * variance.sqrt(), "{protocol:?}: {replayed} {mean}");
        assert_eq!(report.counts.corrupted, 0);
        assert_eq!(report.busy, line.span(bytes * (2_000 + replayed)), "attempts are on the line");
    }
}

/// Catches a round trip that is not waited for: the time of a burst with replays, to the picosecond.
#[test]
fn a_replay_takes_a_round_trip() {
    let link = with_errors(layered(LinkProtocol::Exanet, 1), 20_000_000_000);
    let line = weft_fabric::LineRate::new(link.rate, link.code).unwrap();
    let each = line.span(link.bytes_on_line(Bytes::new(288)));
    let without = plain_arrival(&pair(layered(LinkProtocol::Exanet, 1)));
    for seed in 1..200 {
        let mut machine = pair(link);
        machine.seed = seed;
        let mut run = machine.begin(&burst(1, 256), 1);
        until(&mut run, Time::NEVER);
        let at = take_arrivals(&mut run)[0].at;
        let reports: Vec<LinkReport> =
            run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect();
        let replayed: u64 = reports.iter().map(|link| link.counts.replayed).sum();
        let repeated = (each + link.latency * 2) * replayed;
        // A switch takes what has been repeated at its next clock edge.
        let late = (at - without).as_ps();
        assert!(late.abs_diff(repeated.as_ps()) <= 6_667, "{seed}: {late} {repeated}");
    }
}

fn plain_arrival(machine: &Machine) -> Time {
    machine.arrivals(&burst(1, 256))[0].at
}

/// Catches a replay buffer that throttles nothing, or too much: with space for k packets the line carries k
/// per round trip.
#[test]
fn a_small_replay_buffer_throttles_a_long_link() {
    for held in 1..4u64 {
        let mut link = layered(LinkProtocol::Exanet, 1);
        link.latency = Span::from_ns(2_000);
        let bytes = link.bytes_on_line(Bytes::new(288));
        link.layer.replay = Some(ReplayParameters { buffer: Some(bytes * held) });
        let mut machine = pair(link);
        machine.format.payload = Bytes::new(256);
        let (arrived, _) = checked(&machine, &burst(60, 256));
        let line = weft_fabric::LineRate::new(link.rate, link.code).unwrap();
        // The first of each k waits for the answer to the one k before.
        let round = line.span(bytes) + link.latency * 2;
        let took = arrived[59].at - arrived[59 - 10 * held as usize].at;
        assert!(took.as_ps().abs_diff((round * 10).as_ps()) < 20_000, "{held}: {took} {round}");
    }
}

/// Catches errors that nobody sees where there is no repetition, and chances that are off.
#[test]
fn without_replay_packets_arrive_marked() {
    let link = with_errors(layered(LinkProtocol::Aurora, 1), 10_000_000_000);
    let (_, run) = checked(&pair(link), &burst(3_000, 1024));
    let report = injection(&run);
    let bits = link.bytes_on_line(Bytes::new(1056)).bits() as f64;
    let hit = -(bits * (-1e-5f64).ln_1p()).exp_m1();
    let (mean, deviation) = (3_000.0 * hit, (3_000.0 * hit * (1.0 - hit)).sqrt());
    let corrupted = report.counts.corrupted;
    assert!((corrupted as f64 - mean).abs() < 5.0 * deviation, "{corrupted} {mean}");
    assert_eq!(report.counts.replayed, 0);
}

/// Catches code words that are not counted, or counted more than once, and rates that are off: a busy line of
/// 3,000 packets of 1,024 B.
#[test]
fn code_words_are_corrected_and_lost_at_their_rates() {
    let mut link = layered(LinkProtocol::Ethernet, 1);
    link.rate = BitRate::from_gigabits(100);
    let symbol_errors = ErrorRate::new(10_000_000_000_000).unwrap();
    link.layer = LinkLayer { fec: Some(Fec::Rs528), symbol_errors, ..link.layer };
    let (_, run) = checked(&pair(link), &burst(3_000, 1024));
    let report = injection(&run);
    let words = (3_000 * 1076u64).div_ceil(640) as f64;
    let figures = Fec::Rs528.figures(symbol_errors);
    let near = |found: u64, chance: f64| {
        let (mean, deviation) = (words * chance, (words * chance * (1.0 - chance)).sqrt());
        assert!((found as f64 - mean).abs() < 5.0 * deviation + 1.0, "{found} {mean}");
    };
    near(report.counts.corrected_codewords, figures.corrected());
    near(report.counts.uncorrected_codewords, figures.uncorrected());
    assert!(report.counts.corrupted >= report.counts.uncorrected_codewords, "{report:?}");
}

/// Catches random numbers that depend on partitions: arrivals and counters with errors, replay, throttling
/// and code words.
#[test]
fn threads_change_nothing() {
    for protocol in LinkProtocol::ALL {
        let mut machine = plain(crate::machines::torus(&[4, 4], true, 1, true), crate::machines::KINDS[0], 4);
        let mut link = with_errors(layered(protocol, 2), 30_000_000_000);
        if protocol == LinkProtocol::Ethernet {
            link.rate = BitRate::from_gigabits(100);
            link.layer.fec = Some(Fec::Rs528);
            link.layer.symbol_errors = ErrorRate::new(12_000_000_000_000).unwrap();
        }
        if let Some(replay) = &mut link.layer.replay {
            replay.buffer = Some(Bytes::new(600));
        }
        machine.links = vec![link; machine.links.len()];
        let load = crate::machines::Load { packets: 30, gap_ps: 200_000, seed: 4 };
        let script = crate::machines::random_script(&machine.layout, 256, load);
        let outcome = |threads| {
            let mut run = machine.begin(&script, threads);
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_packets(&run), check_credits(&run)), (Ok(()), Ok(())));
            (take_arrivals(&mut run), run.save().unwrap())
        };
        let alone = outcome(1);
        assert!([2, 3, 8].into_iter().all(|threads| outcome(threads) == alone), "{protocol:?}");
    }
}

/// Catches links that repeat for ever, or whose buffer can never send: they are refused.
#[test]
fn hopeless_links_are_refused() {
    let script = burst(1, 4096);
    let error = |link| pair(link).build(&script).err().unwrap().to_string();
    let often = error(with_errors(layered(LinkProtocol::Exanet, 1), 1_000_000_000_000));
    assert!(often.contains("more often hit by bit errors than not"), "{often}");
    let mut link = layered(LinkProtocol::Exanet, 1);
    link.layer.replay = Some(ReplayParameters { buffer: Some(Bytes::new(4000)) });
    let small = error(link);
    assert!(small.contains("does not hold a packet"), "{small}");
}

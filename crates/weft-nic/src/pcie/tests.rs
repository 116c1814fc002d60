use super::*;
use proptest::prelude::*;
use weft_units::BitRate;

/// Gen3 x16 with round numbers around it.
fn port() -> PcieParameters {
    PcieParameters {
        lanes: PcieLanes::new(PcieGeneration::Gen3, 16),
        request_header: 24,
        completion_header: 20,
        max_payload: 256,
        max_read_request: 512,
        completion_boundary: 64,
        tags: 64,
        posted_headers: 64,
        posted_data: 16 << 10,
        request_headers: 64,
        completion_headers: 256,
        completion_data: 32 << 10,
        link_packet: 8,
        acknowledged: 4,
        one_way: Span::from_ns(150),
    }
}

const HOST: Memory = Memory { read: Span::from_ns(200), write: Span::from_ns(100), rate: None };

fn ns(ns: u64) -> Time {
    Time::from_ps(ns * 1000)
}

fn known(at: Time) -> Time {
    at
}

type Addressed = (u64, u64);

fn read(pcie: &mut Pcie, came: Time, (address, bytes): Addressed, parameters: &PcieParameters) -> Transfer {
    pcie.read(came, AddressRange { address, bytes }, (&HOST, parameters), &mut known)
}

fn write(pcie: &mut Pcie, came: Time, (address, bytes): Addressed, parameters: &PcieParameters) -> Transfer {
    pcie.write(came, AddressRange { address, bytes }, (&HOST, parameters), known)
}

/// 8 GT/s × 16 lanes × 128/130: a byte takes 63.48 ps.
#[test]
fn lines_have_the_rate_of_their_generation() {
    assert_eq!(port().wire(128), Span::from_ps(8125));
    assert_eq!(
        PcieParameters { lanes: PcieLanes::new(PcieGeneration::Gen4, 16), ..port() }.wire(256),
        Span::from_ps(8125)
    );
    assert_eq!(
        PcieParameters { lanes: PcieLanes::new(PcieGeneration::Gen3, 8), ..port() }.wire(64),
        Span::from_ps(8125)
    );
}

/// The latencies in closed form: catches a header, a one-way or a memory that is left out or counted twice.
#[test]
fn transfers_of_an_idle_port() {
    let port = port();
    let mut pcie = Pcie::default();
    let store = pcie.store(ns(0), 4, &port);
    assert_eq!(store.ended, ns(0) + port.wire(28) + port.one_way);
    let wrote = write(&mut pcie, ns(1000), (0, 4096), &port);
    assert_eq!(wrote.left, ns(1000) + port.wire(16 * (256 + 24)));
    assert_eq!(wrote.ended, wrote.left + port.one_way + HOST.write);
    let data = read(&mut pcie, ns(5000), (0, 4096), &port);
    let first = ns(5000) + port.wire(24) + port.one_way + HOST.read;
    assert_eq!(data.ended, first + port.wire(16 * (256 + 20)) + port.one_way);
    // A byte before a boundary is a request of its own. Its data is there before that of the next, which
    // comes as far behind as requests are apart. The last is behind an acknowledgement and a packet with
    // credits.
    let data = read(&mut pcie, ns(9000), (4095, 4096), &port);
    let second = ns(9000) + port.wire(2 * 24) + port.one_way + HOST.read;
    let behind = second + port.wire(16 * 20 + 4095 + 2 * 8) + port.one_way;
    assert!(data.ended >= behind && data.ended <= behind + Span::from_ps(1), "{data:?}");
}

/// The page walk of an address delays a read and what a write shows, and not the line.
#[test]
fn translation_is_at_the_root() {
    let port = port();
    let mut pcie = Pcie::default();
    let mut walk = |at: Time| at + Span::from_ns(70);
    let data = pcie.read(ns(0), AddressRange { address: 0, bytes: 64 }, (&HOST, &port), &mut walk);
    let plain = read(&mut Pcie::default(), ns(0), (0, 64), &port);
    assert_eq!(data.ended, plain.ended + Span::from_ns(70));
    let wrote = pcie.write(ns(1000), AddressRange { address: 0, bytes: 64 }, (&HOST, &port), walk);
    assert_eq!(wrote.left, ns(1000) + port.wire(88));
    assert_eq!(wrote.ended, wrote.left + port.one_way + HOST.write + Span::from_ns(70));
}

/// Catches a completion entry that is seen before the data that it tells of, as its address is known and
/// that of the data takes a walk.
#[test]
fn a_completion_never_passes_its_data() {
    let port = port();
    let mut pcie = Pcie::default();
    let slow = |at: Time| at + Span::from_us(1);
    let data = pcie.write(ns(0), AddressRange { address: 0, bytes: 4096 }, (&HOST, &port), slow);
    let entry = write(&mut pcie, data.left, (0, 64), &port);
    assert!(entry.left > data.left && entry.ended >= data.ended);
}

/// A tag at a time: each read waits for the last completion of the one before. With all of them the line is
/// full.
#[test]
fn tags_bound_the_reads_outstanding() {
    let rate = |tags| {
        let port = PcieParameters { tags, ..port() };
        let mut pcie = Pcie::default();
        let ended = (0..640).map(|piece| read(&mut pcie, ns(0), (piece << 12, 4096), &port).ended).last();
        (640 << 15) as f64 * 1e3 / ended.unwrap().as_ps() as f64
    };
    let round_trip = 0.024 * 63.48 + 150.0 + 200.0 + 552.0 * 0.06348 + 150.0;
    assert!((rate(1) * round_trip / 4096.0 - 1.0).abs() < 0.01, "{} Gb/s", rate(1));
    assert!((rate(64) / (126.03 * 256.0 / 276.0) - 1.0).abs() < 0.02, "{} Gb/s", rate(64));
    assert!((rate(2) / rate(1) - 2.0).abs() < 0.05);
}

/// Credits for one TLP: each waits for the round trip of the one before's.
#[test]
fn posted_credits_bound_the_writes_outstanding() {
    let limited = |posted_headers, posted_data| {
        let port = PcieParameters { posted_headers, posted_data, ..port() };
        write(&mut Pcie::default(), ns(0), (0, 4096), &port).left - ns(0)
    };
    let all = port().wire(16 * 280);
    assert_eq!(limited(16, 4096), all);
    let round_trip = Span::from_ns(400) + port().wire(280);
    for (headers, data) in [(1, 4096), (64, 256), (64, 511)] {
        let expected = round_trip * 15 + port().wire(280);
        let found = limited(headers, data);
        // Each begins anew, and is rounded up.
        assert!(found >= expected && found < expected + Span::from_ps(16), "{found} {expected}");
    }
    assert!(limited(8, 4096) < limited(4, 4096) && limited(8, 4096) > all);
}

/// A memory behind the port that is slower than it bounds both ways.
#[test]
fn a_slow_memory_bounds_its_transfers() {
    let port = port();
    let slow = Memory { rate: Some(BitRate::from_gigabits(16)), ..HOST };
    let mut pcie = Pcie::default();
    let range = AddressRange { address: 0, bytes: 4096 };
    let one = pcie.read(ns(0), range, (&slow, &port), &mut known).ended;
    let two = pcie.read(ns(0), range, (&slow, &port), &mut known).ended;
    assert_eq!(two - one, Span::from_ns(2048));
    let one = pcie.write(ns(9000), range, (&slow, &port), known).ended;
    let two = pcie.write(ns(9000), range, (&slow, &port), known).ended;
    assert_eq!(two - one, Span::from_ns(2048));
}

/// Acknowledgements take their share where both directions are busy, and nothing where one is idle.
#[test]
fn acknowledgements_cost_only_a_busy_line() {
    let port = port();
    let writes = |both: bool| {
        let mut pcie = Pcie::default();
        let mut last = ns(0);
        for piece in 0..256 {
            if both {
                pcie.store(ns(0), 4096, &port);
            }
            last = write(&mut pcie, ns(0), (piece << 12, 4096), &port).left;
        }
        last - ns(0)
    };
    let alone = writes(false);
    let share = (writes(true) - alone).as_ps() as f64 / alone.as_ps() as f64;
    // 16 bytes for four TLPs of 280.
    assert!((share - 16.0 / 1120.0).abs() < 0.002, "{share}");
}

/// A transfer that comes at a later time is booked first, and does not hold up those that come earlier.
#[test]
fn a_gap_before_a_later_transfer_is_used() {
    let port = port();
    let mut pcie = Pcie::default();
    let later = write(&mut pcie, ns(800), (0, 64), &port);
    let earlier = write(&mut pcie, ns(10), (0, 4096), &port);
    assert_eq!((later.began, earlier.began), (ns(800), ns(10)));
    assert_eq!(write(&mut pcie, ns(20), (0, 4096), &port).began, earlier.left);
}

proptest! {
    /// Catches pieces that do not add up, are too long, or lie across a multiple.
    #[test]
    fn pieces_add_up(address in 0u64..1 << 40, bytes in 0u64..1 << 20, size in 6u32..13) {
        let pieces = split(AddressRange { address, bytes }, 1 << size);
        let mut at = address;
        let mut count = 0;
        let mut lies_across = false;
        pieces.visit_runs(|times, length| {
            for _ in 0..times {
                lies_across |= length > 0 && at >> size != (at + length - 1) >> size;
                at += length;
                count += 1;
            }
        });
        prop_assert!(!lies_across);
        prop_assert_eq!((at, count), (address + bytes, pieces.count()));
    }

    /// Catches credits that are lost or invented, a line that is faster than its rate, and posted transfers
    /// that pass each other.
    #[test]
    fn transfers_keep_order_and_credits(
        transfers in prop::collection::vec((0u64..3_000_000, 0u64..9_000, any::<bool>(), 0u64..8192), 1..60),
        headers in 1u32..40,
        units in 16u64..600,
        tags in 1u32..20,
    ) {
        let port = PcieParameters {
            posted_headers: headers, posted_data: units * 16, tags, completion_data: 512 * u64::from(tags),
            ..port()
        };
        let mut pcie = Pcie::default();
        let (mut came, mut seen, mut wire) = (ns(0), ns(0), 0);
        let mut last = ns(0);
        for (gap, bytes, reads, address) in transfers {
            came += Span::from_ps(gap);
            let range = AddressRange { address, bytes };
            let transfer = match reads {
                true => pcie.read(came, range, (&HOST, &port), &mut known),
                false => pcie.write(came, range, (&HOST, &port), known),
            };
            prop_assert!(transfer.began >= came && transfer.left > transfer.began);
            prop_assert!(transfer.ended >= transfer.began + port.one_way);
            if reads {
                let fastest = transfer.began + port.one_way + HOST.read + port.wire(bytes) + port.one_way;
                prop_assert!(transfer.ended >= fastest);
            } else {
                prop_assert!(transfer.ended >= seen);
                seen = transfer.ended;
                wire += bytes + 24 * u64::from(split(range, 256).count());
                last = last.max(transfer.left);
            }
        }
        prop_assert!(last >= ns(0) + Span::from_ps(port.wire(wire).as_ps().saturating_sub(60)));
        let [_, (_, up)] = pcie.worked();
        prop_assert!(up >= port.wire(wire));
        // All credits come back.
        prop_assert!(pcie.writes.take(Time::NEVER, headers, [1, 0, 0], port.posted_limits()));
        prop_assert!(pcie.reads.take(Time::NEVER, tags, [1, 0, 0], port.read_limits()));
    }
}

//! Credits that take words of the opposite line, against arithmetic.

use crate::machines::{KINDS, link, plain, torus};
use crate::scripted::{Machine, Planned, Script, take_arrivals, until};
use weft_fabric::{LineRate, LinkEnd, LinkReport};
use weft_units::{BitRate, Bytes, Clock, EndpointId, LineCode, Span, Time};

/// Bytes of a cell: header, payload and footer.
const CELL: u64 = 288;
const WORD: u64 = 16;
const CELLS: u64 = 2_000;

/// Two switches with an endpoint each, joined by a link of 8 Gb/s whose credits take `credit` bytes. Links of
/// endpoints are ten times as fast. A byte takes a nanosecond, which is a cycle.
fn pair(credit: u64, buffer: u64) -> Machine {
    let mut machine = plain(torus(&[2], false, 1, true), KINDS[0], buffer);
    machine.switch.clock = Clock::from_hertz(1_000_000_000).unwrap();
    machine.links = vec![link(80_000, LineCode::NONE, 15_000, 0), link(8_000, LineCode::NONE, 100_000, 0)];
    machine.links[1].layer.credit = Bytes::new(credit);
    machine
}

/// Cells that an endpoint sends to the other, all at once.
fn cells(to: u32, count: u64) -> Vec<Planned> {
    vec![Planned { at: Time::ZERO, to: EndpointId(to), bytes: 256 }; count as usize]
}

/// Average time between arrivals at endpoint 1 in ns, over the middle half of them, and the reports of the
/// link between the switches there and back, at the end.
fn interval(machine: &Machine, script: &Script) -> (f64, [LinkReport; 2]) {
    let mut run = machine.begin(script, 1);
    until(&mut run, Time::NEVER);
    let came: Vec<Time> = take_arrivals(&mut run)
        .iter()
        .filter(|packet| packet.source == EndpointId(0))
        .map(|p| p.at)
        .collect();
    let (from, to) = (came.len() / 4, came.len() * 3 / 4);
    let between = (came[to] - came[from]).as_ps() as f64 / 1000.0 / (to - from) as f64;
    let reports: Vec<LinkReport> =
        run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect();
    let of = |switch| {
        let leads_over = |link: &&LinkReport| {
            matches!(link.from, LinkEnd::Port(from, _) if from.0 == switch)
                && matches!(link.to, weft_topo::Attachment::Switch(..))
        };
        *reports.iter().find(leads_over).unwrap()
    };
    (between, [of(0), of(1)])
}

/// Catches credits that cost their own direction something, that cost the other nothing or too much, and
/// words that a report of the link leaves out.
#[test]
fn a_direction_gives_a_word_for_each_cell_of_the_other() {
    let one_way = vec![cells(1, CELLS), Vec::new()];
    let both = vec![cells(1, CELLS), cells(0, CELLS)];
    for (credit, script, cell, busy) in [
        (0, &one_way, CELL, [CELL, 0]),
        (WORD, &one_way, CELL, [CELL, WORD]),
        (0, &both, CELL, [CELL, CELL]),
        (WORD, &both, CELL + WORD, [CELL + WORD; 2]),
    ] {
        let (between, reports) = interval(&pair(credit, 16), script);
        assert!((between - cell as f64).abs() < 0.02, "{credit}: {between} ns for {cell} B");
        let line = LineRate::new(BitRate::from_gigabits(8), LineCode::NONE).unwrap();
        let expected = busy.map(|bytes| line.span(Bytes::new(bytes * CELLS)));
        assert_eq!(reports.map(|link| link.busy), expected, "{credit}");
    }
}

/// Catches a credit that is back before its word has passed, or waits for more than that: with space for one
/// cell the link sends again when the credit is back.
#[test]
fn a_credit_is_back_when_its_word_is() {
    let script = vec![cells(1, CELLS), Vec::new()];
    let [without, with] = [0, WORD].map(|credit| interval(&pair(credit, 1), &script).0);
    assert!(without > CELL as f64 + 200.0, "a round trip: {without}");
    assert!((with - without - WORD as f64).abs() < 0.02, "{with} {without}");
}

/// Catches words that delay the only packet on a line that has been idle since.
#[test]
fn words_leave_no_trace_on_an_idle_line() {
    // The answer goes long after the credits.
    let late = |at| vec![Planned { at: Time::ZERO + Span::from_us(at), to: EndpointId(0), bytes: 256 }];
    let arrival = |credit| {
        let mut run = pair(credit, 16).begin(&vec![cells(1, 50), late(500)], 1);
        until(&mut run, Time::NEVER);
        take_arrivals(&mut run).iter().find(|packet| packet.source == EndpointId(1)).unwrap().at
    };
    assert_eq!(arrival(0), arrival(WORD));
}

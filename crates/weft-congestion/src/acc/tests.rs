//! Tests of the contention point's arithmetic, against water filling.

use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// Pulses after which nearly all random flow sets have their max-min rates: what the book states.
const PULSES: u64 = 20;

/// The last pulse of a test.
const LAST: u64 = 2 * PULSES;

fn parameters() -> Parameters {
    Parameters {
        period: Span::from_us(20),
        margin: 50,
        flow_init: true,
        wait_for_feedback: false,
        mind_the_gap: true,
        wait_to_rise: false,
        short_circuit: true,
    }
}

/// A flow of a test: the links on its way, and its demand in bits per second.
#[derive(Clone, Debug)]
struct Given {
    way: Vec<usize>,
    demand: u64,
}

/// Max-min fair rates by water filling: the level rises for all flows until a link or a demand stops some.
fn water_filling(capacities: &[f64], flows: &[Given]) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
    while rates.iter().any(Option::is_none) {
        let level_of = |link: usize| {
            let over = |flow: &&(usize, &Given)| flow.1.way.contains(&link);
            let all: Vec<_> = flows.iter().enumerate().collect();
            let open = all.iter().filter(over).filter(|(number, _)| rates[*number].is_none()).count();
            let taken: f64 = all.iter().filter(over).filter_map(|(number, _)| rates[*number]).sum();
            if open == 0 { f64::INFINITY } else { (capacities[link] - taken).max(0.0) / open as f64 }
        };
        let levels: Vec<f64> = (0..capacities.len()).map(level_of).collect();
        let least =
            |flow: &Given| flow.way.iter().map(|&link| levels[link]).fold(flow.demand as f64, f64::min);
        let open = || (0..flows.len()).filter(|&number| rates[number].is_none());
        let level = open().map(|number| least(&flows[number])).fold(f64::INFINITY, f64::min);
        let stopped: Vec<usize> =
            open().filter(|&number| least(&flows[number]) <= level * (1.0 + 1e-12)).collect();
        stopped.into_iter().for_each(|number| rates[number] = Some(level));
    }
    rates.into_iter().flatten().collect()
}

/// Links and flows without a fabric: flow-rate packets take no time.
struct World {
    rates: Vec<BitRate>,
    links: Vec<Link>,
    flows: Vec<(Given, Flow)>,
    parameters: Parameters,
}

impl World {
    fn new(rates: &[u64], flows: &[Given], parameters: Parameters) -> World {
        let rates: Vec<BitRate> = rates.iter().map(|&rate| BitRate::from_bits_per_second(rate)).collect();
        let open = |given: &Given| {
            let rate = rates[given.way[0]];
            let path = Path::new(rate, Span::from_us(2), Bytes::new(1_000));
            let mut flow = Acc::open(&path, Time::ZERO, &parameters);
            (0..2).for_each(|_| _ = Acc::send(&mut flow, Bytes::new(1_000), Time::ZERO, &parameters));
            (given.clone(), flow)
        };
        let flows = flows.iter().map(open).collect();
        World { links: vec![Link::default(); rates.len()], rates, flows, parameters }
    }

    fn period(&self) -> u64 {
        self.parameters.period.as_ps()
    }

    /// Sends what is due within the period of a pulse.
    fn pulse(&mut self, pulse: u64) {
        let World { rates, links, flows, parameters } = self;
        let now = Time::from_ps(pulse * parameters.period.as_ps() + 1_000_000 * u64::from(pulse > 0));
        for (given, flow) in flows {
            if Acc::due(flow) > now {
                continue;
            }
            let allowed = flow.allowed(now, parameters);
            let rate = given.demand.min(allowed);
            let period = u128::from(parameters.period.as_ps());
            flow.sent = (u128::from(rate) * period / 8_000_000_000_000) as u64;
            let rests = u128::from(allowed - rate) * period / u128::from(allowed);
            flow.rested = Span::from_ps(rests as u64);
            let Some(mut notice) = Acc::step(flow, now, parameters) else { continue };
            for (hop, &link) in given.way.iter().enumerate() {
                let at = Crossing {
                    now,
                    bytes: Bytes::new(64),
                    queue: Bytes::ZERO,
                    rate: rates[link],
                    carries: rates[link],
                    credit_words: Bytes::ZERO,
                    hop: hop as u8,
                    starved: false,
                };
                if let Some(short) = Acc::relay(&mut links[link], &mut notice, &at, parameters) {
                    Acc::learn(flow, &short.notice, now, parameters);
                }
            }
            if let Some(answer) = Acc::reflect(&notice, parameters) {
                Acc::learn(flow, &answer, now, parameters);
            }
        }
    }

    /// The largest error of a rate, against water filling, as a share.
    fn error(&self, pulse: u64) -> f64 {
        let now = Time::from_ps(pulse * self.period() + self.period() - 1);
        let kept = 1.0 - f64::from(self.parameters.margin) / 1e3;
        let capacities: Vec<f64> =
            self.rates.iter().map(|rate| rate.bits_per_second() as f64 * kept).collect();
        let given: Vec<Given> = self.flows.iter().map(|(given, _)| given.clone()).collect();
        let exact = water_filling(&capacities, &given);
        let of = |((given, flow), exact): (&(Given, Flow), f64)| {
            let rate = flow.allowed(now, &self.parameters).min(given.demand) as f64;
            (rate - exact).abs() / exact
        };
        self.flows.iter().zip(exact).map(of).fold(0.0, f64::max)
    }

    /// The first pulse from which on all rates are within a hundredth, up to the last.
    fn converges_at(&mut self) -> Option<u64> {
        let mut since = None;
        for pulse in 0..=LAST {
            self.pulse(pulse);
            since = if self.error(pulse) <= 0.01 { since.or(Some(pulse)) } else { None };
        }
        since
    }
}

/// Random links and flows; a third of the flows are limited by their demand.
fn flow_sets() -> impl Strategy<Value = (Vec<u64>, Vec<Given>)> {
    (2usize..12, 1usize..40).prop_flat_map(|(links, flows)| {
        let rates = prop::collection::vec((1u64..=10).prop_map(|gigabits| gigabits * 10_000_000_000), links);
        let way =
            prop::sample::subsequence((0..links).collect::<Vec<usize>>(), 1..=links.min(5)).prop_shuffle();
        let demand = prop_oneof![
            2 => Just(1_000_000_000_000u64),
            1 => 100_000_000u64..20_000_000_000,
        ];
        let given = (way, demand).prop_map(|(way, demand)| Given { way, demand });
        (rates, prop::collection::vec(given, flows))
    })
}

/// Random sets of a sample, and how many of them may be late: of 200,000 sets 24 were.
const SETS: usize = 400;
const LATE: usize = 3;

/// Rates of links, flows over them, and parameters.
type Set = ((Vec<u64>, Vec<Given>), Parameters);

/// Of [`SETS`] random sets with what `parameters` draws for each, those that do not have their max-min rates
/// after so many pulses.
fn late(parameters: impl Strategy<Value = Parameters>, pulses: u64) -> Vec<Set> {
    let mut runner = TestRunner::default();
    let sets = (flow_sets(), parameters);
    let drawn = (0..SETS).map(|_| sets.new_tree(&mut runner).expect("a set").current());
    let is_late = |((rates, flows), parameters): &Set| {
        World::new(rates, flows, *parameters).converges_at().is_none_or(|at| at > pulses)
    };
    drawn.filter(is_late).collect()
}

/// Catches rates that are not max-min fair, and a convergence slower than stated.
#[test]
fn rates_converge_to_water_filling() {
    let late = late(Just(parameters()), PULSES);
    assert!(late.len() <= LATE, "{} of {SETS}: {late:?}", late.len());
}

/// Catches an enhancement without which, or with which, rates end elsewhere.
#[test]
fn enhancements_change_the_way_and_not_the_end() {
    let any_of_them = any::<[bool; 4]>().prop_map(|enhancements| {
        let [flow_init, wait_to_rise, wait_for_feedback, short_circuit] = enhancements;
        Parameters { flow_init, wait_to_rise, wait_for_feedback, short_circuit, ..parameters() }
    });
    let late = late(any_of_them, LAST);
    assert!(late.len() <= LATE, "{} of {SETS}: {late:?}", late.len());
}

proptest! {
    /// Catches a rate that loses more than its 19 bits, or grows.
    #[test]
    fn packed_rates_are_close(rate in 0u64..4_000_000_000_000) {
        let back = unpack(pack(rate));
        prop_assert!(back <= rate && rate - back <= rate >> 18);
    }
}

/// Catches an incast whose victim does not get what the others leave, and new shares that come late.
#[test]
fn an_incast_converges_within_three_pulses() {
    // Five senders to one link of 10 Gb/s; the fifth's link also has the victim.
    let rates = [10_000_000_000; 7];
    let unlimited = 1_000_000_000_000;
    let mut flows: Vec<Given> =
        (0..5).map(|source| Given { way: vec![source, 5], demand: unlimited }).collect();
    flows.push(Given { way: vec![4, 6], demand: unlimited });
    let mut world = World::new(&rates, &flows, parameters());
    assert!(world.converges_at().is_some_and(|at| at <= 3), "{:?}", world.converges_at());
    let now = Time::from_ps(world.period() * (LAST + 1));
    let rate = |world: &World, flow: usize| Acc::rate(&world.flows[flow].1, now, &world.parameters);
    let close = |rate: BitRate, exact: f64| (rate.bits_per_second() as f64 / exact - 1.0).abs() < 0.001;
    assert!((0..5).all(|flow| close(rate(&world, flow), 1.9e9)));
    assert!(close(rate(&world, 5), 7.6e9), "{}", rate(&world, 5));
}

/// Catches a link that keeps the share of flows that have gone, and one that hears of them only at a pulse.
#[test]
fn flows_that_end_give_their_share_back_at_once() {
    let rates = [10_000_000_000; 5];
    let flows: Vec<Given> =
        (0..4).map(|source| Given { way: vec![source, 4], demand: 1_000_000_000_000 }).collect();
    let mut world = World::new(&rates, &flows, parameters());
    (0..10).for_each(|pulse| world.pulse(pulse));
    assert!(world.error(9) < 0.001);
    world.flows.truncate(3);
    let mut end = FlowRate::new(Purpose::End, (2_375_000_000, 1), 0);
    // It comes with the pulse, in which the flow has reported nothing.
    let now = Time::from_ps(10 * world.period() + 500_000);
    let at = Crossing {
        now,
        bytes: Bytes::new(64),
        queue: Bytes::ZERO,
        rate: world.rates[4],
        carries: world.rates[4],
        credit_words: Bytes::ZERO,
        hop: 1,
        starved: false,
    };
    world.links[4].relay(&mut end, &at, &world.parameters);
    assert_eq!(world.links[4].fair, 9_500_000_000 / 3);
    world.pulse(10);
    assert!(world.error(10) < 0.001, "{}", world.error(10));
}

/// Catches words for credits that are not counted, that count after they are gone, and that are counted of a
/// line in bits of packets where shares are of more.
#[test]
fn words_for_credits_are_not_given_away() {
    let mut link = Link::default();
    let mut fair = |pulse: u64, words: u64| {
        let at = Crossing {
            now: Time::from_ps(pulse * parameters().period.as_ps() + 1),
            bytes: Bytes::new(64),
            queue: Bytes::ZERO,
            rate: BitRate::from_gigabits(8),
            carries: BitRate::from_gigabits(10),
            credit_words: Bytes::new(words),
            hop: 0,
            starved: false,
        };
        let mut packet = FlowRate::new(Purpose::Pulse, (10_000_000_000, EVERYWHERE), 10_000_000_000);
        link.relay(&mut packet, &at, &parameters());
        link.fair
    };
    assert_eq!(fair(1, 0), 9_500_000_000);
    // A line of 8 Gb/s carries 20,000 bytes in 20 us: 1,250 are a sixteenth, also of the 10 Gb/s.
    assert_eq!(fair(2, 1_250), 9_500_000_000 - 625_000_000);
    assert_eq!(fair(3, 1_250), 9_500_000_000);
    assert_eq!(fair(5, 3_750), 9_500_000_000 - 625_000_000, "over two periods");
}

/// Catches a first rate that is not the line's, a wait that ends without an answer, a rise without its steps.
#[test]
fn a_flow_begins_waits_and_rises_as_it_is_told() {
    let path = Path::new(BitRate::from_gigabits(10), Span::from_us(2), Bytes::new(1_000));
    let at = |us| Time::ZERO + Span::from_us(us);
    let bytes = Bytes::new(1_000);
    let mut free = Acc::open(&path, at(5), &parameters());
    assert_eq!(Acc::earliest(&free, bytes, at(5), &parameters()), at(5));
    assert_eq!(Acc::rate(&free, at(5), &parameters()), BitRate::from_gigabits(10));
    let waits = Parameters { wait_for_feedback: true, ..parameters() };
    assert_eq!(Acc::earliest(&free, bytes, at(5), &waits), Time::NEVER);
    let answer = |gigabits: u64| {
        let offered = (gigabits * 1_000_000_000, 1);
        let packet = FlowRate { offered, ..FlowRate::new(Purpose::Pulse, (0, 0), 0) };
        Notice { to_source: true, ..packet.notice() }
    };
    let rising = Parameters { wait_to_rise: true, ..parameters() };
    Acc::learn(&mut free, &answer(1), at(7), &rising);
    assert_eq!(Acc::earliest(&free, bytes, at(7), &waits), at(7));
    Acc::learn(&mut free, &answer(9), at(20), &rising);
    let gigabits = |flow: &Flow, us| Acc::rate(flow, at(us), &rising).bits_per_second() as f64 / 1e9;
    for (us, part) in [(20, 1.0), (24, 3.0), (29, 15.0), (39, 255.0)] {
        assert!(
            (gigabits(&free, us) - (1.0 + 8.0 * part / 255.0)).abs() < 0.001,
            "{us}: {}",
            gigabits(&free, us)
        );
    }
    // The next answer confirms it.
    Acc::learn(&mut free, &answer(9), at(24), &rising);
    assert!((gigabits(&free, 24) - 9.0).abs() < 0.001);
    // FRP-only waits for the pulse, and sends no flow-init message.
    let only = Parameters { flow_init: false, ..parameters() };
    let mut later = Acc::open(&path, at(5), &only);
    let mut sooner = Acc::open(&path, at(5), &parameters());
    assert_eq!(Acc::due(&Acc::open(&path, at(5), &waits)), at(5));
    for flow in [&mut later, &mut sooner] {
        Acc::send(flow, bytes, at(6), &only);
        assert_eq!(Acc::due(flow), at(20), "a single packet is announced by nobody");
    }
    Acc::send(&mut later, bytes, at(7), &only);
    Acc::send(&mut sooner, bytes, at(7), &parameters());
    assert_eq!((Acc::due(&later), Acc::due(&sooner)), (at(20), at(7)));
    let first = Acc::step(&mut later, at(20), &only).unwrap();
    assert_eq!(FlowRate::of(&first).purpose, Purpose::Pulse);
}

/// Catches a switch that answers although it offers enough, twice, or the end of a flow; an answer that comes
/// sooner than its question could be back; and one that does more than lower the rate.
#[test]
fn switches_answer_once_where_they_offer_less() {
    let parameters = Parameters { wait_to_rise: true, ..parameters() };
    let at = |ns: u64, hop: u8| Crossing {
        now: Time::from_ps(ns * 1_000),
        bytes: Bytes::new(64),
        queue: Bytes::ZERO,
        rate: BitRate::from_gigabits(10),
        carries: BitRate::from_gigabits(10),
        credit_words: Bytes::ZERO,
        hop,
        starved: false,
    };
    let mut links = [Link::default(); 4];
    let path = Path::new(BitRate::from_gigabits(10), Span::from_us(2), Bytes::new(1_000));
    let open = || {
        let mut flow = Acc::open(&path, Time::ZERO, &parameters);
        (0..2).for_each(|_| _ = Acc::send(&mut flow, Bytes::new(1_000), Time::ZERO, &parameters));
        flow
    };
    let (mut first, mut flow) = (open(), open());
    // Another flow over the third link, and two over the fourth.
    for place in [2, 3, 3] {
        let mut other = Acc::step(&mut first.clone(), Time::ZERO, &parameters).unwrap();
        let _ = Acc::relay(&mut links[place], &mut other, &at(0, place as u8), &parameters);
    }
    let mut notice = Acc::step(&mut flow, Time::ZERO, &parameters).unwrap();
    let mut relay = |notice: &mut Notice, place: usize, ns: u64| {
        Acc::relay(&mut links[place], notice, &at(ns, place as u8), &parameters)
    };
    assert_eq!(relay(&mut notice, 0, 7), None);
    assert_eq!(relay(&mut notice, 1, 307), None, "9.5 of 10 are enough");
    let short = relay(&mut notice, 2, 707).unwrap();
    assert!(short.way >= Span::from_ns(700) && short.way <= Span::from_ns(703), "{}", short.way);
    assert_eq!(relay(&mut notice, 3, 1_007), None, "the source has been answered");
    let gigabits = |flow: &Flow, ns: u64| {
        let now = Time::from_ps(ns * 1_000);
        Acc::rate(flow, now, &parameters).bits_per_second() as f64 / 1e9
    };
    Acc::learn(&mut flow, &short.notice, Time::from_ps(1_400_000), &parameters);
    assert!((gigabits(&flow, 1_400) - 4.75).abs() < 0.001, "{}", gigabits(&flow, 1_400));
    assert!(!flow.is_answered);
    // The whole answer has the fourth link.
    let answer = Acc::reflect(&notice, &parameters).unwrap();
    Acc::learn(&mut flow, &answer, Time::from_ps(2_000_000), &parameters);
    assert!((gigabits(&flow, 2_000) - 9.5 / 3.0).abs() < 0.001 && flow.is_answered);
    // One that offers more than the flow has is late, and says nothing.
    Acc::learn(&mut flow, &short.notice, Time::from_ps(2_100_000), &parameters);
    assert!((gigabits(&flow, 2_100) - 9.5 / 3.0).abs() < 0.001);
    // A flow that ends is not answered, nor is one where the mechanism is off.
    let mut end = FlowRate::new(Purpose::End, (9_000_000_000, 2), 0).notice();
    assert_eq!(relay(&mut end, 2, 3_000), None);
    let off = Parameters { short_circuit: false, ..parameters };
    let mut notice = Acc::step(&mut first, Time::ZERO, &off).unwrap();
    assert_eq!(Acc::relay(&mut links[3], &mut notice, &at(0, 3), &off), None);
}

/// Catches a time on the way that is lost where its bits begin anew.
#[test]
fn times_on_the_way_survive_the_end_of_their_bits() {
    for ps in [0, 1_023, 17_179_869_183, 17_179_869_184, 1 << 40] {
        let (left, now) = (Time::from_ps(ps), Time::from_ps(ps + 5_000_000));
        let way = Departure::at(left).until(now).as_ps();
        assert!((5_000_000..5_002_048 + 1_024).contains(&way), "{ps}: {way}");
    }
}

/// A source of messages of so many packets at a rate, alone with its limiter, which is offered `offered`.
/// Returns its reports, pulse by pulse.
fn reports(rate: u64, packets: u64, offered: u64, pulses: u64) -> Vec<(u64, u8)> {
    let (parameters, bytes) = (parameters(), Bytes::new(1_000));
    let path = Path::new(BitRate::from_gigabits(100), Span::from_us(2), bytes);
    let interval = BitRate::from_bits_per_second(rate).span(bytes * packets);
    let mut flow = Acc::open(&path, Time::ZERO, &parameters);
    let answer = FlowRate { offered: (offered, 1), ..FlowRate::new(Purpose::Pulse, (0, 0), 0) };
    Acc::learn(&mut flow, &Notice { to_source: true, ..answer.notice() }, Time::ZERO, &parameters);
    let (mut told, mut waiting, mut came) = (Vec::new(), 0u64, Time::ZERO);
    let (mut now, end) = (Time::ZERO, Time::ZERO + parameters.period * pulses);
    while now < end {
        if came <= now {
            if waiting == 0 {
                Acc::rest(&mut flow, now);
            }
            waiting += packets;
            came = came.saturating_add(interval);
        }
        let may_go = Acc::earliest(&flow, bytes, now, &parameters) <= now;
        if waiting > 0 && may_go {
            Acc::send(&mut flow, bytes, now, &parameters);
            waiting -= 1;
        }
        if Acc::due(&flow) <= now {
            if waiting == 0 {
                Acc::rest(&mut flow, now);
            }
            let notice = Acc::step(&mut flow, now, &parameters);
            told.extend(notice.map(|notice| FlowRate::of(&notice)).and_then(|packet| match packet.purpose {
                Purpose::Pulse => Some(packet.reported),
                Purpose::End => Some((0, NOWHERE)),
                _ => None,
            }));
        }
        let next = if waiting > 0 { Acc::earliest(&flow, bytes, now, &parameters) } else { Time::NEVER };
        let next = next.min(came).min(Acc::due(&flow));
        now = if next > now { next } else { now + Span::from_ps(1) };
    }
    told
}

/// Catches a flow that is taken for greedy because packets wait for its limiter, and a demand that is not
/// what it sends: messages of 1 to 64 packets, gaps of up to six periods.
#[test]
fn a_demand_is_what_a_flow_sends_whatever_its_messages() {
    for packets in [1, 2, 4, 64] {
        for gigabits in [5, 10, 20] {
            let rate = gigabits * 1_000_000_000;
            let told = reports(rate, packets, 48_000_000_000, 220);
            let told = &told[20..];
            let sum: u64 = told.iter().map(|(rate, _)| rate).sum();
            let mean = sum as f64 / 200.0;
            let share = mean / rate as f64;
            // A message of 64 packets at 5 Gb/s is one of 40.
            assert!((share - 1.0).abs() < 0.03, "{packets} packets at {gigabits}: {mean}, {told:?}");
        }
    }
}

/// Catches a flow that wants more than it is offered and does not say so.
#[test]
fn a_greedy_flow_names_its_link() {
    for packets in [1, 2, 64] {
        let told = reports(60_000_000_000, packets, 48_000_000_000, 20);
        let offered = unpack(pack(48_000_000_000));
        assert!(told[1..].iter().all(|report| *report == (offered, 1)), "{packets}: {told:?}");
    }
}

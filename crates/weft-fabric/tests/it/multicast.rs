//! Multicast in switches: each member once and in order, on any machine under any load; nothing lost or made
//! beside the copies; the latency of an idle network; links that carry a packet once.

use crate::machines::{
    ARBITERS, KINDS, Load, dragonfly, exanest, plain, random_script, star, torus, tree, ugal,
};
use crate::properties::{largest_payload, loads, machines};
use crate::scripted::{Machine, Planned, Run, Script, take_arrivals, until};
use crate::zero_load::timing;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation, Stream};
use weft_fabric::parameters::{Forwarding, IdealParameters};
use weft_fabric::{
    GroupMembers, Ideal, LinkEnd, MulticastGroup, Network, census, check_credits, check_packets, stuck,
};
use weft_topo::{Ascent, BranchEnd, LaneChoice, Layout, MulticastTree, Topology};
use weft_units::{BitRate, EndpointId, Span, Time};

/// Up to `count` groups of random members that are joined.
fn random_groups(layout: &Layout, count: u32, seed: u64) -> Vec<Vec<EndpointId>> {
    let mut rng = Stream::new(seed, 3, 21);
    let mut group = |_| {
        let first = EndpointId(rng.below(layout.endpoints()));
        let share = 1 + rng.below(8);
        let all = (0..layout.endpoints()).map(EndpointId);
        let members = all.filter(|&e| e == first || layout.reachable(first, e) && rng.below(8) < share);
        members.collect::<Vec<_>>()
    };
    (0..count).map(&mut group).filter(|members| members.len() > 1).collect()
}

/// Sends about half of the packets of a script to groups of their senders instead.
fn send_to_groups(script: &mut Script, groups: &[Vec<EndpointId>], seed: u64) {
    for (endpoint, plan) in script.iter_mut().enumerate() {
        let endpoint = EndpointId::from(endpoint);
        let mut rng = Stream::new(seed, endpoint.0.into(), 22);
        let own: Vec<u32> =
            (0..groups.len() as u32).filter(|&g| groups[g as usize].contains(&endpoint)).collect();
        for planned in plan.iter_mut().filter(|_| !own.is_empty() && rng.below(2) == 0) {
            let mut rng = Stream::new(seed, planned.at.as_ps(), 23);
            let group = own[rng.below(own.len() as u32) as usize];
            planned.to = MulticastGroup::new(group).address();
        }
    }
}

/// Every packet of the script once at its destination or at each other member of its group; in order from
/// each source to each group; as many crossings of links as the trees have.
fn check_deliveries(
    machine: &Machine,
    (script, groups): (&Script, &[Vec<EndpointId>]),
    run: &mut Run,
) -> Result<(), TestCaseError> {
    let mut missing: BTreeMap<(EndpointId, u32, EndpointId), u32> = BTreeMap::new();
    let mut of_groups = 0;
    for (from, plan) in script.iter().enumerate() {
        let from = EndpointId::from(from);
        for (planned, number) in plan.iter().zip(0..) {
            match MulticastGroup::of(planned.to) {
                None => drop(missing.insert((from, number, planned.to), planned.bytes)),
                Some(group) => {
                    let index = (0..groups.len() as u32).find(|&g| MulticastGroup::new(g) == group).unwrap();
                    let members = &groups[index as usize];
                    let tree = MulticastTree::new(&machine.layout, from, members).unwrap();
                    let branches =
                        (0..tree.nodes().len() as u32).map(|node| tree.branches(node).len() as u64);
                    of_groups += 1 + branches.sum::<u64>();
                    let others = members.iter().filter(|&&member| member != from);
                    missing.extend(others.map(|&member| ((from, number, member), planned.bytes)));
                }
            }
        }
    }
    let mut crossed = of_groups;
    // Packets of other classes or lanes may overtake.
    let channels = machine.switch.channels;
    let keeps_order = channels.classes.count() == 1 && channels.lane == LaneChoice::Flow;
    let mut last = BTreeMap::new();
    for packet in take_arrivals(run) {
        let key = (packet.source, packet.message, packet.destination);
        prop_assert_eq!(missing.remove(&key), Some(packet.bytes), "{:?} came twice", packet);
        match MulticastGroup::of(script[packet.source.index()][packet.message as usize].to) {
            Some(group) if !machine.plan().mixes_lanes() => {
                // Classes overtake each other: those of these tables are told by size.
                let flow = (packet.source, group, packet.destination, machine.class_of(packet.bytes));
                let before = last.insert(flow, packet.message);
                prop_assert!(
                    !keeps_order || before.is_none_or(|before| before < packet.message),
                    "{packet:?} overtook {before:?}"
                );
            }
            Some(_) => {}
            None => crossed += u64::from(packet.hops),
        }
    }
    prop_assert!(missing.is_empty(), "lost: {:?}", missing);
    let links = run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now()));
    prop_assert_eq!(links.map(|link| link.packets).sum::<u64>(), crossed, "a link carried a packet twice");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Catches a copy lost, doubled or overtaken, space that is given back too early, twice or never, a
    /// wake-up that is forgotten, and a copy that waits for another in a circle: on every topology, switch
    /// and arbiter, among unicast packets, and with buffers of one packet.
    #[test]
    fn each_member_gets_each_packet_once_and_in_order(
        machine in machines(), load in loads(), groups in 1u32..4,
        looks in prop::collection::vec(0u64..4_000_000, 0..6),
    ) {
        let groups = random_groups(&machine.layout, groups, load.seed);
        let mut script = random_script(&machine.layout, largest_payload(&machine), load);
        send_to_groups(&mut script, &groups, load.seed);
        let mut run = Simulation::new(machine.with_groups(&script, &groups), 1);
        let mut at = Time::ZERO;
        for look in looks {
            at += Span::from_ps(look);
            until(&mut run, at);
            prop_assert_eq!(check_credits(&run), Ok(()));
            prop_assert_eq!(check_packets(&run), Ok(()));
        }
        prop_assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        prop_assert_eq!(stuck(&run), None);
        prop_assert_eq!(run.sites().map(|(_, site)| site.buffered()).sum::<usize>(), 0);
        prop_assert_eq!(check_credits(&run), Ok(()));
        prop_assert_eq!(check_packets(&run), Ok(()));
        prop_assert_eq!(Network::overrun(&run), None);
        check_deliveries(&machine, (&script, &groups), &mut run)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Catches state of replication that a snapshot leaves out, such as space that copies share.
    #[test]
    fn a_resumed_run_ends_as_it_would_have(
        machine in machines(), load in loads(), at in 0u64..20_000_000,
    ) {
        let groups = random_groups(&machine.layout, 2, load.seed);
        let mut script = random_script(&machine.layout, largest_payload(&machine), load);
        send_to_groups(&mut script, &groups, load.seed);
        let mut whole = Simulation::new(machine.with_groups(&script, &groups), 1);
        until(&mut whole, Time::from_ps(at));
        take_arrivals(&mut whole);
        let bytes = whole.save().unwrap();
        let mut resumed = Simulation::resume(machine.with_groups(&script, &groups), &bytes, 1).unwrap();
        prop_assert_eq!(check_credits(&resumed), Ok(()));
        prop_assert_eq!(check_packets(&resumed), Ok(()));
        until(&mut whole, Time::NEVER);
        until(&mut resumed, Time::NEVER);
        prop_assert_eq!(take_arrivals(&mut resumed), take_arrivals(&mut whole));
        prop_assert!(resumed.save().unwrap() == whole.save().unwrap(), "the states differ at the end");
    }

    /// Catches a damaged snapshot of a network with groups that is read with a panic, or with all memory.
    #[test]
    fn a_damaged_snapshot_does_no_harm(
        machine in machines(), load in loads(), at in 0u64..5_000_000,
        (place, byte) in any::<(prop::sample::Index, u8)>(),
    ) {
        let groups = random_groups(&machine.layout, 2, load.seed);
        let mut script = random_script(&machine.layout, largest_payload(&machine), load);
        send_to_groups(&mut script, &groups, load.seed);
        let mut run = Simulation::new(machine.with_groups(&script, &groups), 1);
        until(&mut run, Time::from_ps(at));
        let mut bytes = run.save().unwrap();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        let _ = Simulation::resume(machine.with_groups(&script, &groups), &bytes, 1);
    }
}

/// Catches a result that depends on threads, on epochs, or on having been saved: with groups across many
/// partitions, where trees are made by whichever thread needs one first.
#[test]
fn threads_epochs_and_resumes_change_nothing() {
    use weft_fabric::parameters::SwitchKind::{InputQueued, OutputQueued, VirtualOutputQueued};
    let layouts = [
        (torus(&[8, 8, 8], true, 1, true), InputQueued, 0),
        (exanest(32), OutputQueued, 0),
        (tree(8, 3, Ascent::Random), InputQueued, 1),
        (ugal(2, 8, 4, 33), VirtualOutputQueued, 2),
    ];
    for (index, (layout, kind, arbiter)) in layouts.into_iter().enumerate() {
        let mut machine = plain(layout, kind, 3);
        machine.switch.arbiter = ARBITERS[arbiter];
        let groups = random_groups(&machine.layout, 3, 5);
        assert!(!groups.is_empty());
        let mut script = random_script(&machine.layout, 256, Load { packets: 2, gap_ps: 3_000_000, seed: 9 });
        for (endpoint, plan) in script.iter_mut().enumerate() {
            // A packet to a group of hundreds is worth hundreds.
            plan.truncate(if endpoint % 16 == 0 { 2 } else { 1 });
            if endpoint % 16 != 0 {
                continue;
            }
            for planned in plan.iter_mut() {
                let own = groups.iter().position(|group| group.contains(&EndpointId::from(endpoint)));
                planned.to = own.map_or(planned.to, |own| MulticastGroup::new(own as u32).address());
            }
        }
        let mut alone = Simulation::new(machine.with_groups(&script, &groups), 1);
        assert_eq!(until(&mut alone, Time::NEVER), Progress::Dry);
        let expected = take_arrivals(&mut alone);
        assert!(expected.len() > 2 * script.iter().map(Vec::len).sum::<usize>(), "machine {index}");
        let last = expected[expected.len() - 1].at.as_ps();
        let state = alone.save().unwrap();
        for threads in [2, 3, 8] {
            let mut run = Simulation::new(machine.with_groups(&script, &groups), threads);
            let mut arrived = Vec::new();
            for (epoch, next) in [(1, 3), (2, 1), (3, 8)] {
                until(&mut run, Time::from_ps(last / 5 * epoch + 12_345));
                arrived.extend(take_arrivals(&mut run));
                assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
                let bytes = run.save().unwrap();
                run = Simulation::resume(machine.with_groups(&script, &groups), &bytes, next).unwrap();
            }
            until(&mut run, Time::NEVER);
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert!(arrived == expected, "machine {index} on {threads} threads");
            assert!(run.save().unwrap() == state, "machine {index} on {threads} threads");
        }
    }
}

/// The classes of the links from `root` to each other member, along the tree.
fn links_to_members(machine: &Machine, root: EndpointId, tree: &MulticastTree) -> Vec<(EndpointId, Vec<u8>)> {
    let layout = &machine.layout;
    let (switch, port) = layout.attachment(root);
    let mut open = vec![(0, vec![layout.link_class(switch, port).0])];
    let mut found = Vec::new();
    while let Some((node, classes)) = open.pop() {
        for branch in tree.branches(node) {
            let switch = tree.nodes()[node as usize].switch;
            let mut classes = classes.clone();
            classes.push(layout.link_class(switch, branch.port).0);
            match branch.to {
                BranchEnd::Node(next) => open.push((next, classes)),
                BranchEnd::Member(member) => found.push((member, classes)),
            }
        }
    }
    found
}

/// Catches an edge or a line too many: on an idle network each copy comes when a packet alone on its way
/// would, in closed form, however many copies its switches make. On rings a link may carry two of them, on
/// virtual channels of their own.
#[test]
fn copies_take_no_longer_than_a_packet_alone() {
    let layouts = [torus(&[4, 3], false, 2, true), tree(3, 3, Ascent::DModK), dragonfly(2, 4, 2, 9), star(9)];
    for layout in layouts {
        for kind in KINDS {
            for (forwarding, arbiter) in
                [(Forwarding::VirtualCutThrough, ARBITERS[0]), (Forwarding::StoreAndForward, ARBITERS[2])]
            {
                let mut machine = plain(layout.clone(), kind, 4);
                (machine.switch.forwarding, machine.switch.arbiter) = (forwarding, arbiter);
                let members: Vec<EndpointId> = (0..layout.endpoints()).map(EndpointId).collect();
                let root = EndpointId(layout.endpoints() / 2);
                let mut script: Script = vec![Vec::new(); members.len()];
                let to = MulticastGroup::new(0).address();
                script[root.index()].push(Planned { at: Time::from_ps(12_345), to, bytes: 200 });
                let groups = [members];
                let mut run = Simulation::new(machine.with_groups(&script, &groups), 1);
                until(&mut run, Time::NEVER);
                let tree = MulticastTree::new(&layout, root, &groups[0]).unwrap();
                let mut expected: Vec<(EndpointId, u64, u8)> = links_to_members(&machine, root, &tree)
                    .into_iter()
                    .map(|(member, classes)| {
                        let links: Vec<_> =
                            classes.iter().map(|&class| machine.links[usize::from(class)]).collect();
                        let at = timing(&machine, 150_000_000).delivery(&links, 12_345, 200);
                        (member, at, links.len() as u8)
                    })
                    .collect();
                expected.sort_unstable();
                let arrived = take_arrivals(&mut run);
                let mut arrived: Vec<_> =
                    arrived.iter().map(|a| (a.destination, a.at.as_ps(), a.hops)).collect();
                arrived.sort_unstable();
                assert_eq!(arrived, expected, "{kind:?}");
            }
        }
    }
}

/// Catches a message that is sent more than once: the root's link, and each other link of the tree, carry as
/// many packets as there are, and no other link carries any.
#[test]
fn each_link_of_the_tree_carries_a_packet_once() {
    let machine = plain(dragonfly(2, 4, 2, 9), KINDS[0], 4);
    let members: Vec<EndpointId> = (0..machine.layout.endpoints()).map(EndpointId).collect();
    let root = EndpointId(5);
    let to = MulticastGroup::new(0).address();
    let packets = 10;
    let mut script: Script = vec![Vec::new(); members.len()];
    script[root.index()] = vec![Planned { at: Time::ZERO, to, bytes: 256 }; packets as usize];
    let groups = [members];
    let mut run = Simulation::new(machine.with_groups(&script, &groups), 1);
    until(&mut run, Time::NEVER);
    let links: Vec<_> = run
        .sites()
        .flat_map(|(id, site)| run.model().links_of(id, site, run.now()).collect::<Vec<_>>())
        .collect();
    assert!(links.iter().all(|link| link.packets == 0 || link.packets == packets));
    let used = links.iter().filter(|link| link.packets > 0);
    let of_endpoints = used.clone().filter(|link| matches!(link.from, LinkEnd::Endpoint(_)));
    assert_eq!(of_endpoints.map(|link| link.from).collect::<Vec<_>>(), [LinkEnd::Endpoint(root)]);
    // The root's, one into each other of the 36 switches, one to each other of the 72 endpoints.
    assert_eq!(used.count(), 1 + 35 + 71);
    let counted = census(&run);
    assert_eq!((counted.supplied, counted.copied, counted.delivered), (packets, packets * 70, packets * 71));
    assert_eq!(counted.to_string().split(" and ").next(), Some("10 were supplied, 700 were copies"));
}

/// Catches copies that come at other times than the sender's packet does on the ideal network, or use its
/// line more than once.
#[test]
fn on_the_ideal_network_all_members_get_it_at_the_same_time() {
    let layout = star(5);
    let members: Vec<EndpointId> = (1..5).map(EndpointId).collect();
    let to = MulticastGroup::new(0).address();
    let parameters = IdealParameters {
        latency: Span::from_ns(500),
        gap: Span::ZERO,
        rate: Some(BitRate::from_gigabits(8)),
    };
    let make = |endpoint: EndpointId, _: &()| {
        let plan = vec![Planned { at: Time::ZERO, to, bytes: 100 }; if endpoint.0 == 2 { 2 } else { 0 }];
        crate::scripted::Scripted::new(plan)
    };
    let mut initial = Ideal::build(parameters, 5, (), make);
    initial.model.set_groups(vec![GroupMembers::new(&members, &layout).unwrap()]);
    let mut run = Simulation::new(initial, 1);
    run.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut arrived: Vec<_> = run.outputs_mut().flat_map(std::mem::take).collect();
    arrived.sort_unstable();
    // 100 B take 100 ns on the line.
    let expected =
        [600, 700].into_iter().flat_map(|at| [1, 3, 4].map(|member| (Time::from_ps(at * 1000), member)));
    let arrived: Vec<_> = arrived.iter().map(|a| (a.at, a.destination.0)).collect();
    assert_eq!(arrived, expected.collect::<Vec<_>>());
}

//! The variants of the rendezvous: who moves the data, and whose processor has a part in it.

use super::network::{Delays, Network, Outcome};
use crate::{Access, ClearToSend, EnvelopeKind as E, OneSidedPath, OperationKind, Protocol, Rendezvous};
use weft_trace::op::{
    Collective, CollectiveSizes, CommId, OneSided, Op, RequestId, SendMode, WindowId, WindowSync,
};
use weft_units::{Bytes, RankId, Span};

/// One message of 1000 bytes from rank 0, which computes for long before it waits, to rank 1.
fn message(protocol: &Protocol, busy: u64) -> Outcome {
    let (comm, bytes, request) = (CommId::WORLD, Bytes::new(1000), RequestId(0));
    let sender = vec![
        Op::Isend { to: RankId(1), tag: 0, comm, bytes, mode: SendMode::Standard, request, buffer: None },
        Op::Compute { span: Span::from_ps(busy) },
        Op::Wait { request },
    ];
    let receiver = vec![
        Op::Irecv { from: Some(RankId(0)), tag: None, comm, bytes, matched: None, request, buffer: None },
        Op::Wait { request },
    ];
    let outcome = Network::new(protocol, Delays::Fixed(1000)).run(vec![sender, receiver]).unwrap();
    outcome.assert_clean();
    outcome
}

fn protocol(rendezvous: Rendezvous, clear_to_send: ClearToSend, rendezvous_ack: bool) -> Protocol {
    Protocol {
        rendezvous,
        clear_to_send,
        rendezvous_ack,
        eager_limit: Bytes::ZERO,
        control_bytes: Bytes::new(56),
        control_send: Span::from_ps(10),
        control_receive: Span::from_ps(100),
        data_send: Span::from_ps(1_000),
        receive_message: Span::from_ps(10_000),
        ..Protocol::zero()
    }
}

/// Catches a message too many or too few, and bytes on the wrong one (Fig. 11 of TR-488 and its variants).
#[test]
fn the_messages_of_each_variant() {
    let kinds = |rendezvous, clear, ack| {
        let outcome = message(&protocol(rendezvous, clear, ack), 0);
        outcome.messages.iter().map(|(from, _, e, wire)| (from.0, e.kind(), wire.get())).collect::<Vec<_>>()
    };
    let (write, read) = (Rendezvous::Write, Rendezvous::Read);
    let fig_11 = [(0, E::RequestToSend, 56), (1, E::ClearToSend, 56), (0, E::Data, 1000), (1, E::Ack, 56)];
    for clear in [ClearToSend::Sender, ClearToSend::Interface] {
        assert_eq!(kinds(write, clear, true), fig_11);
        assert_eq!(kinds(write, clear, false), fig_11[..3]);
        for ack in [true, false] {
            let expected = [(0, E::RequestToSend, 56), (1, E::Read, 56), (0, E::Data, 1000), (1, E::Ack, 56)];
            assert_eq!(kinds(read, clear, ack), expected);
        }
    }
}

/// Catches costs on the wrong side, against the table of [`Protocol`].
#[test]
fn the_costs_of_each_variant() {
    let spent = |rendezvous, clear, ack| message(&protocol(rendezvous, clear, ack), 0).spent;
    let (write, read) = (Rendezvous::Write, Rendezvous::Read);
    let (sender, interface) = (ClearToSend::Sender, ClearToSend::Interface);
    assert_eq!(spent(write, sender, true), [10 + 100 + 1_000 + 100, 100 + 10 + 10_000 + 10]);
    assert_eq!(spent(write, sender, false), [10 + 100 + 1_000, 100 + 10 + 10_000]);
    assert_eq!(spent(write, interface, true), [10 + 100, 100 + 10 + 10_000 + 10]);
    assert_eq!(spent(write, interface, false), [10, 100 + 10 + 10_000]);
    assert_eq!(spent(read, sender, true), [10 + 100, 100 + 1_000 + 10_000 + 10]);
    assert_eq!(spent(read, sender, false), [10 + 100, 100 + 1_000 + 10_000 + 10]);
}

/// A broadcast of 1000 bytes from rank 0.
fn broadcast() -> Op {
    let bytes = Bytes::new(1000);
    Op::Collective {
        kind: Collective::Broadcast,
        comm: CommId::WORLD,
        root: Some(RankId(0)),
        sizes: CollectiveSizes { send: bytes, receive: bytes, ..CollectiveSizes::default() },
        buffers: Default::default(),
        request: None,
    }
}

/// Catches a message that is said to be part of another operation than it is: data that follows its
/// announcement, by the rank or its interface, does not say it itself.
#[test]
fn every_message_knows_its_operation() {
    let (write, read) = (Rendezvous::Write, Rendezvous::Read);
    let of = |outcome: &Outcome, kinds: &[E], operation| {
        for kind in kinds {
            let found = outcome.operations.iter().filter(|(own, _)| own == kind);
            let found: Vec<_> = found.map(|(_, operation)| *operation).collect();
            assert_eq!(found, [operation], "{kind:?}");
        }
    };
    for clear in [ClearToSend::Sender, ClearToSend::Interface] {
        for (rendezvous, asks) in [(write, E::ClearToSend), (read, E::Read)] {
            let protocol = protocol(rendezvous, clear, false);
            let kinds = [E::RequestToSend, asks, E::Data];
            of(&message(&protocol, 0), &kinds, OperationKind::TwoSided);
            let all = |_| vec![broadcast()];
            let outcome = Network::new(&protocol, Delays::Fixed(1000)).run((0..4).map(all).collect());
            of(&outcome.unwrap(), &kinds, OperationKind::Collective);
        }
        let window = WindowId(3);
        for (kind, access, operation) in [
            (OneSided::Put, Access::Put, OperationKind::Put),
            (OneSided::Accumulate, Access::Accumulate, OperationKind::Atomic),
        ] {
            let path = OneSidedPath::Emulated;
            let protocol = Protocol { one_sided: path, atomics: path, ..protocol(write, clear, false) };
            let (bytes, comm) = (Bytes::new(1 << 20), CommId::WORLD);
            let open = Op::Window { window, comm, bytes, buffer: None };
            let fence = Op::Sync { kind: WindowSync::Fence, window, target: None };
            let put = Op::OneSided {
                kind,
                window,
                target: RankId(1),
                bytes: Bytes::new(1000),
                request: None,
                buffer: None,
            };
            let origin = vec![open.clone(), fence.clone(), put, fence.clone()];
            let programs = vec![origin, vec![open, fence.clone(), fence]];
            let outcome = Network::new(&protocol, Delays::Fixed(1000)).run(programs).unwrap();
            of(&outcome, &[E::Announce(access), E::Admit, E::Data, E::Answer(access)], operation);
        }
    }
}

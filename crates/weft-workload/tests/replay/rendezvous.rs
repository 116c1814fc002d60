//! The variants of the rendezvous under the progress rules.

use super::support::*;
use weft_msg::{ClearToSend, Rendezvous};
use weft_units::{Span, Time};
use weft_workload::replay::ProgressRule;

const BUSY: u64 = 500;

/// The time at which a long message has arrived whose sender computes after the send.
fn arrival(progress: ProgressRule, rendezvous: Rendezvous, clear_to_send: ClearToSend) -> Span {
    let mut setup = Setup::costly(progress);
    setup.protocol.rendezvous = rendezvous;
    setup.protocol.clear_to_send = clear_to_send;
    let sender = vec![send(1, 0, 5_000, 0), compute(BUSY), wait(0)];
    let receiver = vec![receive(0, 0, 5_000, 0), wait(0)];
    let outcome = setup.run(&[trace_of(&[sender, receiver])], None);
    outcome.assert_finished();
    assert_eq!(outcome.messages.len(), 1);
    assert_eq!(outcome.ranks[0].messages_sent, 1);
    assert_eq!(outcome.messages[0].posted, Time::ZERO, "its time counts from the send");
    outcome.ranks[1].end - Time::ZERO
}

/// Catches a sender's processor that must notice although its interface or the receiver moves the data.
#[test]
fn only_a_clear_to_send_for_the_process_waits_for_it() {
    let (write, read) = (Rendezvous::Write, Rendezvous::Read);
    let (sender, interface) = (ClearToSend::Sender, ClearToSend::Interface);
    let (call, background) = (ProgressRule::Call, ProgressRule::Background);
    let busy = Span::from_us(BUSY);
    assert!(arrival(call, write, sender) > busy);
    assert!(arrival(background, write, sender) < busy);
    for progress in [call, background] {
        assert!(arrival(progress, write, interface) < busy);
        assert!(arrival(progress, read, sender) < busy);
    }
    // The processor's share is saved too.
    let protocol = Setup::costly(background).protocol;
    let saved = protocol.control_receive + protocol.data_send;
    assert_eq!(arrival(background, write, sender) - arrival(background, write, interface), saved);
}

//! Notices from a rank's inbox, handed to messaging or to the operation that they end.

use super::Rank;
use crate::device::{Notice, NoticeKind, Post};
use crate::operation::{Completion, Kept, Operation, endpoint_flags, flag};
use std::io::Write;
use std::num::NonZeroU32;
use weft_msg::{Body, KeptEntry, SendToken, Transport, Work};
use weft_units::Bytes;

/// Exit status of a rank whose device cannot be relied on: EX_SOFTWARE.
const BROKEN: i32 = 70;

impl Rank {
    /// Takes all notices; says whether there were any that were not answered while it waited.
    pub(crate) fn take_notices(&mut self) -> bool {
        let notices = self.port.lists.take_notices();
        let any = notices.iter().any(|(notice, _)| !notice.is_answered());
        for (notice, bytes) in notices {
            self.port.is_answered = notice.is_answered();
            if !self.port.is_answered {
                self.port.catch_up_with(notice.at);
                self.port.takes();
            }
            self.notice(&notice, bytes);
            // Before the next message can match a buffer that has no room for it.
            self.withdraw_exhausted();
        }
        self.port.is_answered = false;
        self.port.pattern.wakes(any);
        any
    }

    fn notice(&mut self, notice: &Notice, bytes: Vec<u8>) {
        let (process, protocol, port) = (&mut self.process, &self.protocol, &mut self.port);
        let data = (notice.flags & Post::WITH_DATA != 0).then_some(notice.data);
        match notice.kind {
            kind if kind == NoticeKind::Message as u32 => {
                let Some(mut envelope) = notice.envelope.envelope() else {
                    return refuse(port.number, "an envelope of no kind");
                };
                if let Err(wrong) = process.check_delivered(&envelope, Bytes::new(bytes.len() as u64)) {
                    return refuse(port.number, wrong);
                }
                match envelope.body {
                    Body::Eager { .. } => {
                        let kept = port.kept.insert(Kept { bytes, data }) as u32;
                        envelope.kept = Some(KeptEntry::new(kept));
                    }
                    Body::RequestToSend { send, .. } => {
                        if let Some(data) = data {
                            port.announced.insert((envelope.source.0, send.index()), data);
                        }
                    }
                    _ => {}
                }
                process.on(protocol, port).delivered(envelope);
            }
            kind if kind == NoticeKind::Sent as u32 => {
                let token = SendToken::from_bits(NonZeroU32::new(notice.token));
                process.on(protocol, port).sent(token);
            }
            kind if kind == NoticeKind::Done as u32 => {
                // Native one-sided operations end by a control message.
                port.spend(Work::ControlReceive, protocol.control_receive);
                let key = notice.token.wrapping_sub(1) as usize;
                match port.operations.try_remove(key) {
                    Some(Operation::Remote { mut completion, reports, .. })
                        if reports || notice.error != 0 =>
                    {
                        completion.error = notice.error;
                        port.completions.push_back(completion);
                    }
                    Some(Operation::Request { mut completion, .. }) => {
                        completion.error = notice.error;
                        completion.length = notice.envelope.bytes as usize;
                        port.completions.push_back(completion);
                    }
                    _ => {}
                }
            }
            kind if NoticeKind::of_interface(kind).is_some() => self.interfaces.notice(notice, bytes),
            // Without data the rank only looks at its memory again.
            _ => {
                if let (Some(data), Some(envelope)) = (data, notice.envelope.envelope()) {
                    let matching = envelope.matching();
                    let at = matching.map_or(0, |matching| endpoint_flags(matching.context.endpoints()));
                    let mut completion = Completion::of(0, flag::REMOTE_WRITE | flag::DATA | at);
                    (completion.data, completion.source) = (data, envelope.source.0);
                    completion.length = envelope.bytes.get() as usize;
                    port.completions.push_back(completion);
                }
            }
        }
    }
}

/// The device holds what the simulator never writes: something has written over it. Nothing in this process
/// can be relied on.
fn refuse(rank: u32, what: impl std::fmt::Display) {
    // The status says it too, where standard error takes nothing.
    let _ = writeln!(
        std::io::stderr(),
        "weft: rank {rank} found {what} in its device; has something written over its memory, or is its \
         library not this weft's?"
    );
    std::process::exit(BROKEN);
}

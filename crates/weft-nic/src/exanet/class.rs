//! Classes of packets, for the proof of freedom from deadlock.
//!
//! ```text
//!   request ─► mailbox ─► answer          the process that a request, RTS or CTS say, makes post another
//!                └─► data, of a read      does so from its own memory: nothing in the network waits for it
//!   data    ─► memory  ─► answer
//! ```

use super::header::Header;

/// A class: packets that play one part in an exchange.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Small messages, those of messaging's handshakes (RTS, CTS, its acknowledgement) among them, and
    /// requests of reads.
    Request,
    /// Cells.
    Data,
    /// Acknowledgements and refusals.
    Answer,
    /// Vectors between reduction modules.
    Reduction,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 4] = [Class::Request, Class::Data, Class::Answer, Class::Reduction];

    /// The class of packets with this header.
    pub const fn of(header: Header) -> Class {
        match header {
            Header::Small(_) | Header::ReadRequest(_) => Class::Request,
            Header::Cell(_) => Class::Data,
            Header::Acknowledgement(_) | Header::Refused(..) | Header::BlockAnswer(..) => Class::Answer,
            Header::Reduction(..) => Class::Reduction,
        }
    }

    /// The classes whose injection at an endpoint must go on for it to consume packets of this one: none.
    ///
    /// A mailbox without space refuses, a send unit without a free channel for a read as well, a damaged
    /// packet is refused, and what has to be answered is remembered in a queue outside the way of what
    /// arrives. That queue is bounded: a channel has one packet outstanding, and nothing is answered but
    /// packets.
    pub const fn waits_for(self) -> &'static [Class] {
        match self {
            Class::Request | Class::Data | Class::Answer | Class::Reduction => &[],
        }
    }

    /// The classes of which an endpoint sends a packet because it has consumed one of this.
    pub const fn sets_off(self) -> &'static [Class] {
        match self {
            // A request of a read starts a transfer in a channel, which holds it until it is over.
            Class::Request => &[Class::Data, Class::Answer],
            Class::Data => &[Class::Answer],
            Class::Answer => &[],
            // A contribution an exchange, the last exchange a result: as many as the operation has levels. To
            // ask for a vector sets off one answer, which sets off nothing.
            Class::Reduction => &[Class::Reduction],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Refusal;
    use crate::packetizer::ChannelId;

    /// Catches answers that are answered, and data that sets off requests: exchanges would never end, and the
    /// answers outstanding not be bounded by the packets outstanding.
    #[test]
    fn exchanges_end() {
        for class in Class::ALL {
            for next in class.sets_off().iter().filter(|_| class != Class::Reduction) {
                assert!(*next > class);
            }
            assert!(class.waits_for().is_empty());
        }
        assert!(Class::Answer.sets_off().is_empty());
        let channel = ChannelId { interface: 0, channel: 0 };
        assert_eq!(Class::of(Header::Refused(channel, Refusal::Full)), Class::Answer);
    }
}

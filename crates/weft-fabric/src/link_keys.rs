//! The keys of `[links.NAME]` in machine files.

use crate::link_layer::{ErrorRate, Fec, LinkProtocol};
use weft_keys::Cost;
use weft_units::{BitRate, Bytes, EnergyPerBit, LineCode, Power, Span};

/// Above this a price is a slip of the unit: a million machines of a million links still fit in 64 bits.
const MAX_PRICE: u32 = 10_000_000;

weft_keys::keys! {
    /// One kind of link, per direction, as a table gives it: what it leaves out is another table's.
    #[derive(Clone, Debug, Default)]
    pub struct LinkKeys {
        /// Bits per second on the line, coding included; of a lane where there are several, of the MAC for
        /// Ethernet.
        rate: Option<BitRate>;
        /// Link layer: the other keys that are not given are as it says.
        protocol: Option<ProtocolName>;
        /// Lanes of that rate; 1 where not given.
        lanes: Option<u32>;
        /// Line code, bits in and bits on the line.
        code: Option<LineCode>;
        /// From the last stage of the sender to the first of the receiver.
        latency: Option<Span>;
        /// Bytes on the line for every packet beside header, payload and footer.
        framing: Option<Bytes>;
        /// Bytes on the line that give the space of one packet back to the sender of the other direction;
        /// none where not given: credits then take no bandwidth.
        credit: Option<Bytes>;
        /// Whether the link sends again what has not come through; as the protocol says where not given.
        replay: Option<bool>;
        /// Bytes on the line that may lack an answer; as many as a round trip needs where not given.
        replay_buffer: Option<Bytes>;
        /// Wrong bits of 10^15; none where not given.
        bit_errors: Option<ErrorRate>;
        /// Forward error correction; that of the rate where not given.
        fec: Option<FecName>;
        /// Wrong symbols of FEC of 10^15 on the line; none where not given.
        symbol_errors: Option<ErrorRate>;
        /// Logic of the switch behind the link that deals with a packet before arbitration, a time or cycles
        /// of the switch's clock; none where not given.
        routing: Option<Cost>;
        /// Price of a link with its cable, in whole units of the file's own currency, such as 120.
        cost: Option<u32>, within(1, MAX_PRICE);
        /// Price of each port of a switch or an interface that such a link ends at, in the same currency.
        port_cost: Option<u32>, within(1, MAX_PRICE);
    }
}

weft_keys::words! {
    /// The link layers by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ProtocolName: "LinkProtocol", "a link layer" {
        /// None: `code` and `framing` say all.
        None = "none",
        /// [`LinkProtocol::Exanet`].
        Exanet = "exanet",
        /// [`LinkProtocol::Apelink`].
        Apelink = "apelink",
        /// [`LinkProtocol::Aurora`].
        Aurora = "aurora",
        /// [`LinkProtocol::Bxi2`].
        Bxi2 = "bxi2",
        /// [`LinkProtocol::Ethernet`].
        Ethernet = "ethernet",
        /// [`LinkProtocol::ApenetBxi2`].
        ApenetBxi2 = "apenet-bxi2",
    }
}

impl ProtocolName {
    /// The link layer; `None`: there is none.
    pub const fn protocol(self) -> Option<LinkProtocol> {
        match self {
            ProtocolName::None => None,
            ProtocolName::Exanet => Some(LinkProtocol::Exanet),
            ProtocolName::Apelink => Some(LinkProtocol::Apelink),
            ProtocolName::Aurora => Some(LinkProtocol::Aurora),
            ProtocolName::Bxi2 => Some(LinkProtocol::Bxi2),
            ProtocolName::Ethernet => Some(LinkProtocol::Ethernet),
            ProtocolName::ApenetBxi2 => Some(LinkProtocol::ApenetBxi2),
        }
    }
}

weft_keys::words! {
    /// The codes of forward error correction by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum FecName: "Fec", "a forward error correction" {
        /// None.
        None = "none",
        /// [`Fec::Rs528`].
        Rs528 = "rs528",
        /// [`Fec::Rs544`].
        Rs544 = "rs544",
    }
}

impl FecName {
    /// The name of a code.
    pub const fn of(fec: Fec) -> FecName {
        match fec {
            Fec::Rs528 => FecName::Rs528,
            Fec::Rs544 => FecName::Rs544,
        }
    }

    /// The code; `None`: there is none.
    pub const fn fec(self) -> Option<Fec> {
        match self {
            FecName::None => None,
            FecName::Rs528 => Some(Fec::Rs528),
            FecName::Rs544 => Some(Fec::Rs544),
        }
    }
}

weft_keys::words! {
    /// Policies of power by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum PowerPolicy: "PowerPolicy", "a power policy" {
        /// It never sleeps.
        AlwaysOn = "always-on",
        /// It sleeps after an idle time.
        IdleTimeout = "idle-timeout",
        /// The same, and a signal wakes the links of a packet's way ahead of it.
        WakeOnInjection = "wake-on-injection",
    }
}

weft_keys::keys! {
    /// Power of one direction of a link, transmitter and receiver together, as a table gives it: what it
    /// leaves out is another table's.
    #[derive(Clone, Debug, Default)]
    pub struct LinkPowerKeys {
        /// Power while it is active, and while it wakes.
        active: Option<Power>;
        /// Energy on top of that, for each bit of packets and framing.
        per_bit: Option<EnergyPerBit>;
        /// When it sleeps: `always-on`, never, which is usual; `idle-timeout`, after an idle time;
        /// `wake-on-injection`, the same, and a signal wakes the links of a packet's way ahead of it.
        policy: Option<PowerPolicy>;
        /// Power while it sleeps.
        low: Option<Power>;
        /// Idle time after which it sleeps.
        idle_after: Option<Span>;
        /// From a packet's head at the sleeping line to the head on the line.
        wake: Option<Span>;
        /// Power while it is off.
        off: Option<Power>;
        /// Idle time after which it is off; never where not given.
        off_after: Option<Span>;
        /// As `wake`, from off.
        wake_from_off: Option<Span>;
        /// With `wake-on-injection`: logic of a switch, from the signal on one link to that on the next.
        signal_delay: Option<Span>;
    }
}

//! The Global Virtual Address Space: what every packet of ExaNet is addressed by.
//!
//! ```text
//!  79          64 63              42 41   39 38                    0
//! ┌──────────────┬──────────────────┬───────┬───────────────────────┐
//! │ PDID      16 │ node          22 │ rank 3│ virtual address    39 │
//! └──────────────┴──────────────────┴───────┴───────────────────────┘
//! ```
//! The protection domain says who may touch the location, the node where it is, the rank which local
//! port or process there, and the rest is that process's own virtual address. Rank and virtual address
//! together are the node-level virtual address, of 42 bits.
//!
//! As text: `domain:node.rank+0xaddress`, such as `7:4100.3+0x7fff0040`.
//!
//! # Source
//! FORTH-ICS / TR-488 §4.3 and Fig. 7. The text form is ours.
//!
//! # Not modelled
//! Virtual node numbers, by which processes could migrate: as in the prototype, a node is an endpoint. Ranks
//! of peripherals and accelerators. The pointers of real processes are longer and do not pass through here:
//! their interface sees their memory laid out anew in 39 bits. Addresses in simulated packets, which name
//! endpoint and message; [`wire::packet`](crate::wire::packet) has the bytes of a packet. The limits of node
//! and rank in replays and traffic, whose nodes are all endpoints of the machine, and whose ranks the
//! interface's pages limit. How an address names one of the 64 virtual interfaces of a node (§4.4) is not in
//! the text: [`wire`](crate::wire) says how it does here.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use weft_units::{Address, Bytes, EndpointId};

/// A protection domain: a group of processes that may read and write each other's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pdid(pub u16);

impl fmt::Display for Pdid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An initiator and a target of different protection domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "protection domain {initiator} may not touch what belongs to domain {target}; \
     open the interface with the domain of its peer"
)]
pub struct ForeignDomain {
    /// Who asks.
    pub initiator: Pdid,
    /// Whose it is.
    pub target: Pdid,
}

impl Pdid {
    /// Whether an initiator of this domain may touch what belongs to `target`.
    ///
    /// # Errors
    /// They differ.
    #[inline]
    pub fn check(self, target: Pdid) -> Result<(), ForeignDomain> {
        if self == target { Ok(()) } else { Err(ForeignDomain { initiator: self, target }) }
    }
}

/// A field of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The protection domain.
    Domain,
    /// The node.
    Node,
    /// The rank within the node.
    Rank,
    /// The virtual address within the rank.
    Address,
}

impl Field {
    /// Width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Field::Domain => Gvas::DOMAIN_BITS,
            Field::Node => Gvas::NODE_BITS,
            Field::Rank => Gvas::RANK_BITS,
            Field::Address => Gvas::ADDRESS_BITS,
        }
    }

    /// The largest value.
    pub const fn most(self) -> u64 {
        (1 << self.bits()) - 1
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Domain => "protection domain",
            Field::Node => "node",
            Field::Rank => "rank",
            Field::Address => "virtual address",
        })
    }
}

/// Why something is no global address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GvasError {
    /// A value beyond the bits of its field.
    #[error(
        "{field} {value} of a global address needs more than {} bits; write at most {}",
        .field.bits(),
        .field.most()
    )]
    TooLarge {
        /// The field.
        field: Field,
        /// The value for the field.
        value: u64,
    },
    /// Text that is no address.
    #[error("`{text}` is no global address; write domain:node.rank+0xaddress, such as 7:4100.3+0x7fff0040")]
    Text {
        /// The text, cut where it is absurdly long.
        text: String,
    },
    /// More than 80 bits.
    #[error("0x{bits:x} has more than the 80 bits of a global address")]
    TooWide {
        /// The number.
        bits: u128,
    },
}

/// A global virtual address of 80 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Gvas {
    domain: Pdid,
    node: u32,
    rank: u8,
    address: u64,
}

impl Gvas {
    /// Width of the protection domain.
    pub const DOMAIN_BITS: u32 = 16;
    /// Width of the node number.
    pub const NODE_BITS: u32 = 22;
    /// Width of the rank within the node.
    pub const RANK_BITS: u32 = 3;
    /// Width of the address within the rank.
    pub const ADDRESS_BITS: u32 = 39;
    /// Width of the whole.
    pub const BITS: u32 = 80;

    /// The address of these fields.
    ///
    /// # Errors
    /// A field beyond its bits.
    pub fn new(domain: Pdid, node: u32, rank: u8, address: u64) -> Result<Gvas, GvasError> {
        let fields =
            [(Field::Node, u64::from(node)), (Field::Rank, u64::from(rank)), (Field::Address, address)];
        match fields.into_iter().find(|(field, value)| *value > field.most()) {
            Some((field, value)) => Err(GvasError::TooLarge { field, value }),
            None => Ok(Gvas { domain, node, rank, address }),
        }
    }

    /// Whether all of a buffer has addresses.
    pub fn reaches(buffer: Address, bytes: Bytes) -> bool {
        let last = buffer.get().checked_add(bytes.get().saturating_sub(1));
        last.is_some_and(|last| last >> Gvas::ADDRESS_BITS == 0)
    }

    /// The protection domain.
    pub fn domain(self) -> Pdid {
        self.domain
    }

    /// The node: the endpoint's number.
    pub fn node(self) -> EndpointId {
        EndpointId(self.node)
    }

    /// The local port or process of the node.
    pub fn rank(self) -> u8 {
        self.rank
    }

    /// The virtual address within the rank.
    pub fn address(self) -> u64 {
        self.address
    }

    /// The 42 bits that mean something within the node: rank, then virtual address.
    pub fn node_level(self) -> u64 {
        u64::from(self.rank) << Gvas::ADDRESS_BITS | self.address
    }

    /// The address `offset` bytes on.
    ///
    /// # Errors
    /// An address beyond its 39 bits: transfers do not run from one rank into the next.
    pub fn plus(self, offset: u64) -> Result<Gvas, GvasError> {
        Gvas::new(self.domain, self.node, self.rank, self.address.saturating_add(offset))
    }

    /// All 80 bits, the domain in the highest.
    pub fn pack(self) -> u128 {
        let node = u128::from(self.node) << (Gvas::RANK_BITS + Gvas::ADDRESS_BITS);
        u128::from(self.domain.0) << (Gvas::BITS - Gvas::DOMAIN_BITS) | node | u128::from(self.node_level())
    }

    /// The address of 80 bits.
    ///
    /// # Errors
    /// More than 80 bits.
    pub fn unpack(bits: u128) -> Result<Gvas, GvasError> {
        if bits >> Gvas::BITS != 0 {
            return Err(GvasError::TooWide { bits });
        }
        let field = |shift: u32, width: u32| (bits >> shift) as u64 & ((1 << width) - 1);
        Ok(Gvas {
            domain: Pdid((bits >> (Gvas::BITS - Gvas::DOMAIN_BITS)) as u16),
            node: field(Gvas::RANK_BITS + Gvas::ADDRESS_BITS, Gvas::NODE_BITS) as u32,
            rank: field(Gvas::ADDRESS_BITS, Gvas::RANK_BITS) as u8,
            address: field(0, Gvas::ADDRESS_BITS),
        })
    }

    /// The ten bytes of a header, most significant first.
    pub fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes.copy_from_slice(&self.pack().to_be_bytes()[6..]);
        bytes
    }

    /// The address in ten bytes of a header. Any ten bytes are one.
    pub fn from_bytes(bytes: [u8; 10]) -> Gvas {
        let mut wide = [0; 16];
        wide[6..].copy_from_slice(&bytes);
        Gvas::unpack(u128::from_be_bytes(wide)).expect("ten bytes are 80 bits")
    }
}

impl fmt::Display for Gvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}.{}+{:#x}", self.domain, self.node, self.rank, self.address)
    }
}

impl FromStr for Gvas {
    type Err = GvasError;

    fn from_str(text: &str) -> Result<Gvas, GvasError> {
        let malformed = || GvasError::Text { text: text.chars().take(60).collect() };
        let (domain, rest) = text.split_once(':').ok_or_else(malformed)?;
        let (node, rest) = rest.split_once('.').ok_or_else(malformed)?;
        let (rank, address) = rest.split_once('+').ok_or_else(malformed)?;
        let address = address.strip_prefix("0x").ok_or_else(malformed)?;
        // `from_str_radix` would take a sign.
        if [domain, node, rank, address].iter().any(|part| part.starts_with('+')) {
            return Err(malformed());
        }
        let decimal = |text: &str| text.parse::<u64>().map_err(|_| malformed());
        let (domain, node, rank) = (decimal(domain)?, decimal(node)?, decimal(rank)?);
        let address = u64::from_str_radix(address, 16).map_err(|_| malformed())?;
        let too_large = |field, value| GvasError::TooLarge { field, value };
        let domain = u16::try_from(domain).map_err(|_| too_large(Field::Domain, domain))?;
        let node = u32::try_from(node).map_err(|_| too_large(Field::Node, node))?;
        let rank = u8::try_from(rank).map_err(|_| too_large(Field::Rank, rank))?;
        Gvas::new(Pdid(domain), node, rank, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_address() -> impl Strategy<Value = Gvas> {
        (any::<u16>(), 0u32..1 << 22, 0u8..8, 0u64..1 << 39)
            .prop_map(|(domain, node, rank, address)| Gvas::new(Pdid(domain), node, rank, address).unwrap())
    }

    /// Catches fields that are swapped or shifted: the layout of Fig. 7 by hand.
    #[test]
    fn the_fields_lie_where_the_figure_has_them() {
        let address = Gvas::new(Pdid(0xABCD), 0x3F_FFFF, 0, 0).unwrap();
        assert_eq!(address.pack(), 0xABCD_FFFF_FC00_0000_0000);
        let address = Gvas::new(Pdid(0), 0, 7, 1).unwrap();
        assert_eq!(address.pack(), 0x0000_0000_0380_0000_0001);
        assert_eq!(address.node_level(), 7 << 39 | 1);
        assert_eq!(address.to_bytes(), [0, 0, 0, 0, 3, 0x80, 0, 0, 0, 1]);
    }

    #[test]
    fn what_does_not_fit_names_its_field() {
        let field = |result: Result<Gvas, GvasError>| result.unwrap_err().to_string();
        assert!(field(Gvas::new(Pdid(0), 1 << 22, 0, 0)).contains("node 4194304"));
        assert!(field(Gvas::new(Pdid(0), 0, 8, 0)).contains("rank 8"));
        assert!(field(Gvas::new(Pdid(0), 0, 0, 1 << 39)).contains("at most 549755813887"));
        assert!(field("65536:0.0+0x0".parse()).contains("protection domain 65536"));
        assert!(field(Gvas::unpack(1 << 80)).contains("80 bits"));
        let end = Gvas::new(Pdid(1), 2, 3, (1 << 39) - 1).unwrap();
        assert!(end.plus(1).is_err() && end.plus(u64::MAX).is_err() && end.plus(0) == Ok(end));
    }

    /// Catches a buffer whose end is not looked at, and sums that wrap around.
    #[test]
    fn a_buffer_must_end_within_the_address() {
        let reaches = |begin, bytes| Gvas::reaches(Address::new(begin), Bytes::new(bytes));
        let last = (1 << 39) - 1;
        assert!(reaches(0, 0) && reaches(0, 1 << 39) && reaches(last, 0) && reaches(last, 1));
        assert!(!reaches(last, 2) && !reaches(1 << 39, 0) && !reaches(1, 1 << 39) && !reaches(u64::MAX, 2));
    }

    #[test]
    fn what_is_no_address_says_how_one_is_written() {
        for text in ["", "7", "7:1", "7:1.2", "7:1.2+3", "7:1.2+0x", "-1:0.0+0x0", "1:2.3+0x+4", "a:b.c+0xd"]
        {
            let error = text.parse::<Gvas>().unwrap_err().to_string();
            assert!(error.contains("7:4100.3+0x7fff0040"), "{text}: {error}");
        }
    }

    #[test]
    fn domains_are_compared() {
        assert_eq!(Pdid(3).check(Pdid(3)), Ok(()));
        let foreign = Pdid(3).check(Pdid(4)).unwrap_err();
        assert_eq!((foreign.initiator, foreign.target), (Pdid(3), Pdid(4)));
    }

    proptest! {
        /// Catches bits that are lost or made up on the way through a header or a text.
        #[test]
        fn every_form_is_read_as_it_was_written(address in any_address(), bytes in any::<[u8; 10]>()) {
            prop_assert_eq!(Gvas::unpack(address.pack()), Ok(address));
            prop_assert_eq!(Gvas::from_bytes(address.to_bytes()), address);
            prop_assert_eq!(Gvas::from_bytes(bytes).to_bytes(), bytes);
            prop_assert_eq!(address.to_string().parse::<Gvas>(), Ok(address));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fx:.+-]{0,40}") {
            if let Ok(address) = text.parse::<Gvas>() {
                prop_assert_eq!(address.to_string().parse::<Gvas>(), Ok(address));
            }
        }
    }
}

//! Quantities, clocks and ids as types, and how they are written.
//!
//! Virtual time is exact: integer picoseconds, no floating point, no rounding that accumulates.
//!
//! | type | unit | written |
//! |---|---|---|
//! | [`Time`] | a point in virtual time, ps since the start | |
//! | [`Span`] | a length of virtual time, ps | `20us`, `1.5ms` |
//! | [`Clock`] | a rational frequency, Hz | `150MHz` |
//! | [`Bytes`] | bytes, binary multiples | `256`, `4K`, `1M` |
//! | [`BitRate`] | bits per second, decimal multiples | `16Gb/s` |
//! | [`Power`] | microwatts | `1.5W`, `300mW` |
//! | [`EnergyPerBit`] | femtojoules | `5pJ/b` |
//! | [`Energy`] | picojoules | |
//! | [`Address`] | a place in the memory of a process, bytes | |
//!
//! [`ledger`] has the counters of links and switches, and where each is shown.
//! [`memory`] has the memory that this process takes and may take.
//!
//! Ids are distinct types, so that a switch never indexes an endpoint:
//!
//! ```
//! use weft_units::{Span, Time};
//! let start = Time::ZERO + Span::from_ns(5);
//! assert_eq!(start - Time::ZERO, Span::from_ps(5_000));
//! ```
//! ```compile_fail
//! use weft_units::Time;
//! let _ = Time::ZERO + Time::ZERO; // a point plus a point means nothing
//! ```

mod address;
mod bytes;
mod clock;
mod id;
pub mod ledger;
pub mod memory;
mod power;
mod rate;
mod text;
mod time;

pub use address::Address;
pub use bytes::Bytes;
pub use clock::Clock;
pub use id::{EndpointId, LinkId, PortId, RankId, SwitchId, VcId};
pub use ledger::{CountLedger, PacketCounts};
pub use power::{Energy, EnergyPerBit, ExactEnergy, Power};
pub use rate::{BitRate, LineCode};
pub use text::{ParseQuantityError, as_text};
pub use time::{Span, Time};

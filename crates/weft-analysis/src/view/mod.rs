//! Contents of the page of `weft view`: figures and history of every link, switch, endpoint and message.
//!
//! ```text
//!  tables ──► totals   a value per link                ──► colours of the machine
//!         ──► Frames   a value per link and interval   ──► the same over time, histories
//!         ──► details  rows of one link, switch, endpoint
//!         ──► messages the slowest, those between two endpoints, their pieces
//! ```
//! Links have numbers here ([`LinkNumbers`]), so that a value per link is an array.

mod details;
mod frames;
mod link_numbers;
mod messages;
mod quantity;
mod totals;

pub use details::{EndpointDetails, LinkDetails, SwitchDetails, endpoint, link, switch};
pub use frames::{Frames, MAX_ENTRIES, MAX_INTERVALS};
pub use link_numbers::LinkNumbers;
pub use messages::{HistogramBar, MessageFilter, Messages, PairPieces, PieceSum, between, messages, pieces};
pub use quantity::Quantity;
pub use totals::{held, totals};

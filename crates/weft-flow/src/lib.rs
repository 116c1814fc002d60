//! A network without packets: messages are fluids that share links max-min fairly.
//!
//! | module | what it is |
//! |---|---|
//! | `lone` | a message that is alone on its path |
//! | `shares` | what each fluid gets of the links that it crosses |
//! | `path` | which lines a fluid crosses |
//! | `messages` | messages under way, and when their fluids end |
//! | `counts` | what lines have carried |
//! | `event` | what happens, and in which order |
//! | `network` | hosts, interfaces and fluids in virtual time |

mod counts;
mod event;
mod lone;
mod messages;
mod network;
mod path;
mod shares;

pub use event::{FlowEvent, MessageHandle};
pub use lone::{DataTaken, LoneCase, LoneMessage, LoneMessages, SharedEngine};
pub use network::{FlowNetwork, FlowSetup, FlowSite, LineUse};
pub use shares::{FluidId, LineId, NewShare, Shares, Wish};

//! A network without packets: messages are fluids that share links max-min fairly.
//!
//! | module | what it is |
//! |---|---|
//! | `lone` | a message that is alone on its path |
//! | `shares` | what each fluid gets of the links that it crosses |
//! | `path` | which lines a fluid crosses |
//! | `network` | hosts, interfaces and fluids in virtual time |

mod lone;
mod network;
mod path;
mod shares;

pub use lone::{DataTaken, LoneCase, LoneMessage, LoneMessages, SharedEngine};
pub use network::{FlowEvent, FlowNetwork, FlowSetup, FlowSite, LineUse, MessageHandle};
pub use shares::{FluidId, LineId, NewShare, Shares};

//! Each interface as a whole: conservation, order, determinism, saved states.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod apenetx;
mod common;
mod portals;
mod rdma;
mod small;

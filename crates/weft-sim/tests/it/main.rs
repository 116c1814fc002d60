//! Experiments as a whole, on the machines that ship.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod communication_ip;
mod exanest_paths;
mod exanet_interface;
mod jobs;
mod osu;
mod osu_wires;
mod rails;
mod replay;
mod validation_page;

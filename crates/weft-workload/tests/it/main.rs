//! The fabric under traffic, against the results of queueing theory and the channel-load bound; services.

#![allow(clippy::unwrap_used)]

mod fairness;
mod machine;
mod md1;
mod saturation;
mod services;

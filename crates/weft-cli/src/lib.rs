//! What the `weft` command does outside of any simulation: it runs real programs.

pub mod record;

//! Properties of all topologies and routings, on random small machines and on the largest in use.

mod deadlock;
mod figures;
mod large;
mod machines;
mod routes;
mod structure;

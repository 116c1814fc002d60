//! Properties of all topologies and routings, on random small machines and on the largest in use.

mod deadlock;
mod dragonfly;
mod families;
mod figures;
mod large;
mod machines;
mod megafly;
mod multicast;
mod own_topology;
mod reroute;
mod routes;
mod structure;
mod tree;

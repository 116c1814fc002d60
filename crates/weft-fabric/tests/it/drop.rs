//! Drop at the tail: what is lost is counted, and the rest arrives.

//! The fields that MPICH packs into the 64 bits by which the interface matches messages.
//!
//! ```text
//!   63          31            30 … 0
//!   ├─ context ─┴ collective ─┼─ tag ─┤      the lowest bit of a communicator's context says
//!      ▲                                     whether the message is one of a collective
//!      └ 51: it says that a synchronous send has been received
//! ```
//! # Source
//! MPICH 5.0, `src/mpid/ch4/netmod/ofi/ofi_impl.h` (31 bits of tag where the source travels apart) and
//! `src/include/mpir_contextid.h` (`MPIR_CONTEXT_COLL_OFFSET`).

const TAG_BITS: u32 = 31;

/// The tag that the program gave the message, or the collective its part.
pub(crate) fn tag(bits: u64) -> i32 {
    (bits & ((1 << TAG_BITS) - 1)) as i32
}

/// The communicator's context; 0: that of the world, between two ranks.
pub(crate) fn context(bits: u64) -> u64 {
    bits >> TAG_BITS
}

/// Whether it is the answer to a synchronous send, as MPICH has been seen to mark it.
pub(crate) fn is_synchronous(bits: u64) -> bool {
    bits >> 51 & 1 == 1
}

/// The tag of a message between two ranks; `None`: it is one of a collective.
pub(crate) fn program_tag(bits: u64) -> Option<i32> {
    (context(bits) & 1 == 0).then(|| tag(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_have_no_tag() {
        assert_eq!((program_tag(17), context(17)), (Some(17), 0));
        assert_eq!(program_tag(1 << 31 | 17), None);
        assert_eq!(program_tag(1 << 32 | 0x7fff_ffff), Some(i32::MAX));
    }
}

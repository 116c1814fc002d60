//! Transpose, tornado and bit complement, as `weft-topo` defines them.

use super::{PatternError, PatternInput, TrafficPattern};
use serde::{Deserialize, Serialize};
use weft_topo::{Pattern, Permutation};
use weft_units::EndpointId;

/// Declares patterns of `weft-topo` that send each endpoint's messages to one other.
macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub struct $name(Permutation);

        impl TrafficPattern for $name {
            const BOUND: Option<Pattern> = Some(Pattern::$name);

            fn on(input: &PatternInput<'_>, _: &mut impl FnMut() -> u64) -> Result<$name, PatternError> {
                Ok($name(Permutation::new(Pattern::$name, input.machine)?))
            }

            /// The diagonal of a transpose does not.
            fn sends(&self, source: EndpointId) -> bool {
                self.0.destination(source) != source
            }

            #[inline]
            fn destination(&self, source: EndpointId, _: u64, _: &mut impl FnMut() -> u64) -> EndpointId {
                self.0.destination(source)
            }
        }
    )*};
}

fixed! {
    /// Rows become columns: [`Pattern::Transpose`].
    Transpose,
    /// Just under half-way input every ring: [`Pattern::Tornado`].
    Tornado,
    /// To the mirror image: [`Pattern::BitComplement`].
    BitComplement,
}

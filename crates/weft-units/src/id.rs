//! Ids: distinct types over `u32`, so that one kind never indexes another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Panics where the index exceeds 32 bits: no table of the model is that long.
            fn from(index: usize) -> $name {
                $name(u32::try_from(index).expect("a table of the model has fewer than 2^32 entries"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// An endpoint: a network interface's attachment to the fabric.
    EndpointId
);
id!(
    /// A switch.
    SwitchId
);
id!(
    /// A port of a switch, counted from 0 in that switch.
    PortId
);
id!(
    /// A link direction in the fabric's table of links.
    LinkId
);
id!(
    /// A virtual channel of a link, counted from 0.
    VcId
);
id!(
    /// A rank of a parallel program: its number in the world communicator.
    RankId
);

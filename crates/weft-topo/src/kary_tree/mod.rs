//! k-ary n-tree: a fat tree of equal switches.
//!
//! ```text
//!   level 2   [000]   [001]   [010]   [011] ...    k^(n-1) switches per level,
//!               |  \ /  |                          k ports down and, below the top, k up
//!   level 1   [000]   [001] ...
//!               |  \ /  |
//!   level 0   [000]   [001] ...
//!              / \     / \
//!             0   1   2   3     k^n endpoints
//! ```
//! A switch is its level and n-1 digits of base k; switch number = level·k^(n-1) + digits. Up port j of a
//! switch of level l leads to the switch of level l+1 that differs only in digit l, which is j; down
//! port i of that one leads back to the switch whose digit l is i. Down ports come first.
//!
//! # Source
//! F. Petrini, M. Vanneschi, "k-ary n-trees: high performance networks for massively parallel
//! architectures", IPPS 1997 (there level 0 is the top; here it has the endpoints).

mod figures;
mod parameters;
mod routing;

pub use parameters::KaryTreeParameters;
pub use routing::{Ascent, UpDown};

use crate::size::{MAX_ENDPOINTS, SizeError, bits_for, check_counts, in_range};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// The lowest bit of the level in a switch's address; digits lie below.
const LEVEL_SHIFT: u32 = 58;

/// A k-ary n-tree.
///
/// Addresses: digit i of an endpoint's number in field i of equal width. A switch has its digits one
/// field higher, where the endpoints below a switch of level 0 have theirs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KaryTree {
    arity: u32,
    levels: u32,
    digit_bits: u32,
    switches_per_level: u32,
}

impl KaryTree {
    /// A k-ary n-tree: switches of 2k ports in n levels.
    ///
    /// # Errors
    /// Where k is below 2, n is zero, or the machine exceeds the limits.
    pub fn new(k: u64, n: u64) -> Result<KaryTree, SizeError> {
        let arity = in_range("ports up (k)", k, 2, MAX_ENDPOINTS)?;
        let power = |exponent: u64| {
            u32::try_from(exponent).ok().and_then(|e| u128::from(k).checked_pow(e)).unwrap_or(u128::MAX)
        };
        let switches = power(n.saturating_sub(1)).saturating_mul(u128::from(n));
        check_counts(power(n), switches, switches.saturating_mul(2 * u128::from(k)))?;
        // At most 24 levels, and digits need at most 30 bits.
        let levels = in_range("the number of levels (n)", n, 1, u64::from(MAX_ENDPOINTS.ilog(k)))?;
        Ok(KaryTree { arity, levels, digit_bits: bits_for(arity), switches_per_level: arity.pow(levels - 1) })
    }

    /// Ports up of a switch below the top, and ports down, k.
    #[inline]
    pub fn arity(&self) -> u32 {
        self.arity
    }

    /// Levels of switches, n.
    #[inline]
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The level of a switch, from its address.
    #[inline]
    pub(crate) fn level(&self, address: Address) -> u32 {
        (address.0 >> LEVEL_SHIFT) as u32
    }

    /// Digit i of an endpoint's address.
    #[inline]
    pub(crate) fn digit(&self, endpoint: Address, i: u32) -> u32 {
        (endpoint.0 >> (i * self.digit_bits)) as u32 & ((1 << self.digit_bits) - 1)
    }

    /// Whether the endpoint lies below the switch.
    #[inline]
    pub(crate) fn is_below(&self, switch: Address, endpoint: Address) -> bool {
        let digits = (1 << LEVEL_SHIFT) - 1;
        ((switch.0 ^ endpoint.0) & digits) >> ((self.level(switch) + 1) * self.digit_bits) == 0
    }

    /// The number of a number's digits as equal fields.
    fn spread(&self, mut number: u32, digits: u32) -> u64 {
        let mut fields = 0;
        for i in 0..digits {
            fields |= u64::from(number % self.arity) << (i * self.digit_bits);
            number /= self.arity;
        }
        fields
    }

    /// The level and the digits, as a number, of a switch.
    fn place(&self, switch: SwitchId) -> (u32, u32) {
        (switch.0 / self.switches_per_level, switch.0 % self.switches_per_level)
    }
}

impl Topology for KaryTree {
    /// The subtree below the top, and the leaf.
    fn parts_of(&self, endpoint: EndpointId) -> [u32; 2] {
        let subtree = if self.levels > 1 { endpoint.0 / self.switches_per_level } else { 0 };
        [subtree, self.attachment(endpoint).0.0]
    }

    fn endpoints(&self) -> u32 {
        self.switches_per_level * self.arity
    }

    fn switches(&self) -> u32 {
        self.switches_per_level * self.levels
    }

    fn ports(&self, switch: SwitchId) -> u32 {
        let top = self.place(switch).0 + 1 == self.levels;
        if top { self.arity } else { 2 * self.arity }
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let (level, digits) = self.place(switch);
        // The switch of `level` that differs from this one in one digit, and that digit here.
        let other = |level: u32, i: u32, value: u32| {
            let weight = self.arity.pow(i);
            let here = digits / weight % self.arity;
            let digits = digits - here * weight + value * weight;
            (SwitchId(level * self.switches_per_level + digits), here)
        };
        if port.0 >= self.arity {
            let (above, here) = other(level + 1, level, port.0 - self.arity);
            Attachment::Switch(above, PortId(here))
        } else if level == 0 {
            Attachment::Endpoint(EndpointId(digits * self.arity + port.0))
        } else {
            let (below, here) = other(level - 1, level - 1, port.0);
            Attachment::Switch(below, PortId(self.arity + here))
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(endpoint.0 / self.arity), PortId(endpoint.0 % self.arity))
    }

    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        LinkClass(u8::from(switch.0 >= self.switches_per_level || port.0 >= self.arity))
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "tree"]
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let (level, digits) = self.place(switch);
        let fields = self.spread(digits, self.levels - 1) << self.digit_bits;
        Address(u64::from(level) << LEVEL_SHIFT | fields)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        Address(self.spread(endpoint.0, self.levels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_8_ary_2_tree_has_16_switches() {
        // D1.4 §12.1: the 16 switches of an 8-ary 2-tree.
        let tree = KaryTree::new(8, 2).unwrap();
        assert_eq!((tree.endpoints(), tree.switches()), (64, 16));
        assert_eq!(tree.peer(SwitchId(3), PortId(8 + 5)), Attachment::Switch(SwitchId(8 + 5), PortId(3)));
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |k, n| KaryTree::new(k, n).unwrap_err().to_string();
        assert!(text(10, 12).contains("1000000000000 endpoints; the limit is 16777216"));
        assert!(text(2, u64::MAX).contains("the limit is"));
        assert_eq!(text(1, 3), "ports up (k) is 1; it must be 2 to 16777216");
        assert_eq!(text(4, 0), "the number of levels (n) is 0; it must be 1 to 12");
        assert!(KaryTree::new(2, 20).is_ok());
    }
}

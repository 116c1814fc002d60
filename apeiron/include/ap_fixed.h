// Not here: fixed point.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no ap_fixed.h (fixed point); see the list in docs/src/commands/apeiron.md"

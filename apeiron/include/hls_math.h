// Not here: hls::math; use <cmath>.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_math.h (hls::math; use <cmath>); see the list in docs/src/commands/apeiron.md"

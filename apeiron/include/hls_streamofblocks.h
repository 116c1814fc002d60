// Not here: streams of blocks.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_streamofblocks.h (streams of blocks); see the list in docs/src/commands/apeiron.md"

// Not here: tasks of hls::task.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_task.h (tasks of hls::task); see the list in docs/src/commands/apeiron.md"

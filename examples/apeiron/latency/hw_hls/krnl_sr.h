// The modes of krnl_sr.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef KRNL_SR_H
#define KRNL_SR_H

enum krnl_sr_mode { KRNL_SEND_RECEIVE, KRNL_PIPE };

#endif

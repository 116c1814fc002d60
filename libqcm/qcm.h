/* qcm.h - LibQCM over weft's virtual device: the user-space library of the APEnetX card.
 *
 *   sender                                      receiver
 *   qcm_register                                qcm_register: a buffer, its completion, and the path of that
 *   qcm_handshake ◄── addresses of buffer and completion ──► qcm_handshake
 *   qcm_send: transmission request ─► tx descriptor ─► packets ─► data, then RX done
 *   qcm_flush: end of transmission              qcm_poll: the completion of a buffer
 *
 * The names of the calls are ours: APX §3.2 and D1.4 §9.2.1 tell what the library does, and print no interface. All
 * calls return 0 or a count, or a negative errno. None may be called by two threads at once.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef QCM_H
#define QCM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The path of a buffer's completions: how its process learns that data has come. */
enum qcm_completion {
    QCM_MACHINE = 0,    /* as nic.completion of the machine file says */
    QCM_KERNEL = 1,     /* the driver copies the completion to the process */
    QCM_REMAPPED = 2,   /* the driver copies it into a buffer that is mapped into the kernel */
    QCM_DIRECT = 3,     /* the card writes it to the address that the handshake has told the sender */
    QCM_USER_QUEUE = 4, /* the card writes it into the completion queue, mapped into the process */
};

/* The memory that a buffer lies in. */
enum qcm_memory {
    QCM_MEMORY_MACHINE = 0,    /* as nic.gpu.source and nic.gpu.target of the machine file say */
    QCM_MEMORY_HOST = 1,       /* that of the host */
    QCM_MEMORY_GPU_DIRECT = 2, /* that of a GPU, which the card reads and writes */
    QCM_MEMORY_GPU_STAGED = 3, /* that of a GPU, copied by way of the host */
};

/* Of qcm_send: waits for the end of this transmission, which is the answer of the peer's card: its data is there, or
 * why it is not. Without it the call returns at once, and the end is that the own card has the data. */
#define QCM_BLOCKING (1u << 0)

/* A process's side of the card: a queue of its own. */
typedef struct qcm qcm;

/* Memory that the card may read and write, with the completion of what is written. */
typedef struct qcm_buffer qcm_buffer;

/* A registered buffer of a peer, as the handshake tells it: plain data, which may be copied and sent. */
typedef struct {
    uint64_t address;    /* of the buffer, in the peer's virtual memory */
    uint64_t length;     /* bytes of it */
    uint64_t completion; /* virtual address of its completion */
    uint32_t node;       /* the card */
    uint16_t queue;      /* the peer's queue there */
    uint8_t path;        /* an enum qcm_completion */
    uint8_t kind;        /* an enum qcm_memory */
} qcm_remote;

/* An RX done event: data has been written. */
typedef struct {
    uint64_t length;   /* bytes */
    uint32_t sequence; /* counts what the sender's buffer has sent, from 1 on; of 24 bits */
} qcm_rx_done;

/* Opens the card. -ENOENT: the process was not started by `weft run`. -ENOSPC: the card has no more queues. */
int qcm_open(qcm **card);

/* Closes it. Buffers are deregistered. */
void qcm_close(qcm *card);

/* This process's number in the job, and the number of processes. */
uint32_t qcm_number(const qcm *card);
uint32_t qcm_count(const qcm *card);

/* The virtual clock in picoseconds. A look takes time, so that a loop which polls until a time ends. */
uint64_t qcm_clock_ps(const qcm *card);

/* Registers memory. -EINVAL: no memory, or no such path. -ENOMEM. */
int qcm_register(qcm *card, void *memory, size_t length, enum qcm_completion path, qcm_buffer **buffer);

/* The same of a buffer in memory of this kind: two buffers of a process may differ. Its bytes lie at `memory` all the
 * same; the kind says what reaching them costs. -EINVAL also: no such kind. That the hosts have no GPU is told by
 * transmissions, as -ENODEV. */
int qcm_register_in(qcm *card, enum qcm_memory kind, void *memory, size_t length, enum qcm_completion path,
                    qcm_buffer **buffer);

/* Deregisters it: it must not be used any more, and what peers still send to it is not written. -EBUSY: a transmission
 * of it has not ended; call qcm_flush. */
int qcm_deregister(qcm_buffer *buffer);

/* Exchange of a buffer with one of a peer's: both call it. -ENXIO: there is no such peer. */
int qcm_handshake(qcm *card, uint32_t peer, const qcm_buffer *own, qcm_remote *theirs);

/* Sends `length` bytes at `offset` of a registered buffer to `to_offset` of a peer's. -EINVAL: beyond either
 * buffer, of another card, or no such path. With QCM_BLOCKING also the error of this transmission, as of qcm_flush,
 * which then does not tell it again. The call takes the time of library and driver. */
int qcm_send(qcm_buffer *from, size_t offset, size_t length, const qcm_remote *to, size_t to_offset, unsigned flags);

/* Waits for the end of all transmissions: the first of their errors since the last call, or 0. -EFAULT: the peer has
 * registered no such memory. -ENODEV: either buffer is in a GPU, and the hosts have none. -ENETUNREACH: no such card.
 * -ENXIO: no such queue. The card of a peer that refuses what was sent without QCM_BLOCKING says so later: the first
 * call after its answer tells it. */
int qcm_flush(qcm *card);

/* Looks at the completion of a buffer: 1 and what has come since it was last looked at, the newest where it was
 * overwritten; or 0. A look that finds none costs virtual time and lets the clock go on. */
int qcm_poll(qcm_buffer *buffer, qcm_rx_done *done);

#ifdef __cplusplus
}
#endif

#endif /* QCM_H */

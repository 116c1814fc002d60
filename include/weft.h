/* weft.h - the user-space interface of a rank under weft.
 *
 * A process that `weft run` has started calls weft_open() once and is a rank of its job from then on: its
 * clock is virtual, and what it sends travels over the simulated machine. There are two levels, and two more:
 *
 *   - messages, tagged or not, and RDMA between ranks, for MPI and other runtimes: weft_send and what follows;
 *   - the machine's virtual interfaces themselves, small messages and RDMA between global addresses, for runtimes of
 *     one's own: weft_interface_allocate and what follows (FORTH-ICS / TR-488, 5.1);
 *   - ports and registers of the interface, for whoever is the hardware behind them: weft_port_open and what follows
 *     (TEXTAROSSA D2.8, 2);
 *   - requests to key-value stores that `weft run --scenario` puts on nodes: weft_service_get, weft_service_put.
 *
 * All calls return 0 or a count, or a negative errno. None may be called by two threads at once. See weft(3).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Made by cbindgen of crates/weft-client: change it there, and run WEFT_BLESS=1 cargo test --test header.
 */


#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_VERSION 6

// A source that a receive may leave open.
#define WEFT_ANY_SOURCE UINT32_MAX

// Of operations: matched by tag; without it, in a space of its own, matched by source alone.
#define WEFT_TAGGED (1 << 0)

// 64 bits travel with the message into the receiver's completion.
#define WEFT_DATA (1 << 1)

// The buffer may be used again on return; never completes.
#define WEFT_INJECT (1 << 2)

// Reports a completion; without it only errors are.
#define WEFT_COMPLETION (1 << 3)

// Complete when the receiver has the data, not when it has left.
#define WEFT_DELIVERY_COMPLETE (1 << 4)

// The buffer takes messages until less than weft_set_min_multi_receive is left.
#define WEFT_MULTI_RECEIVE (1 << 5)

// weft_peek: keeps the message for a receive with the same context.
#define WEFT_CLAIM (1 << 6)

// weft_peek, and weft_receive of a claimed message: drops it.
#define WEFT_DISCARD (1 << 7)

// Of a message: complete when a receive has matched it (a synchronous send).
#define WEFT_MATCH_COMPLETE (1 << 8)

// A rank has so many endpoints, numbered from 0. A message goes from one to another, and matches only
// receives there.
#define WEFT_ENDPOINTS 16

// Of operations: the lowest bit of the number, of 8 bits, of the endpoint of this rank that sends or
// receives. Of what a completion says of a message or a WEFT_REMOTE_WRITE too.
#define WEFT_ENDPOINT_SHIFT 32

// The same of the peer's endpoint: to which it goes, or from which it comes. Of no meaning with
// WEFT_ANY_SOURCE.
#define WEFT_PEER_ENDPOINT_SHIFT 40

// Of a completion, beside the flags of the operation: a message has been sent.
#define WEFT_SENT (1 << 16)

// A message has been received.
#define WEFT_RECEIVED (1 << 17)

// An RDMA write is complete.
#define WEFT_WRITTEN (1 << 18)

// An RDMA read is complete.
#define WEFT_READ (1 << 19)

// An atomic operation is complete.
#define WEFT_ATOMIC (1 << 20)

// A peer has written with WEFT_DATA into registered memory.
#define WEFT_REMOTE_WRITE (1 << 21)

// A multi-receive buffer is the program's again; may come alone.
#define WEFT_BUFFER_RELEASED (1 << 22)

// A service has answered.
#define WEFT_SERVED (1 << 23)

// Of registered memory: peers may read.
#define WEFT_ACCESS_READ (1 << 0)

// Peers may write and update.
#define WEFT_ACCESS_WRITE (1 << 1)

// Of weft_interface_allocate: in the job's own protection domain.
#define WEFT_DOMAIN_JOB UINT32_MAX

// In one that no other process is in.
#define WEFT_DOMAIN_PRIVATE (UINT32_MAX - 1)

// Of weft_interface_deliver: the path of completions that the machine file names.
#define WEFT_PATH_MACHINE 0

// The driver copies the completion to the process.
#define WEFT_PATH_KERNEL 1

// The driver copies it into a buffer that the process polls.
#define WEFT_PATH_REMAPPED 2

// The interface writes it where the process polls.
#define WEFT_PATH_DIRECT 3

// The interface writes it into a queue that the process polls.
#define WEFT_PATH_USER_QUEUE 4

// Of weft_interface_deliver, added to a path: the target answers, and the completion comes with that.
#define WEFT_ANSWERED (1 << 8)

// Of weft_interface_deliver: a buffer lies in the kind of memory that the machine file names.
#define WEFT_MEMORY_MACHINE 0

// In that of the host.
#define WEFT_MEMORY_HOST 1

// In that of a GPU, which the interface reads and writes.
#define WEFT_MEMORY_GPU_DIRECT 2

// In that of a GPU, by way of a buffer in the host.
#define WEFT_MEMORY_GPU_STAGED 3

// The lowest bit of the kind of the buffer that is sent from, added to a path: WEFT_MEMORY_HOST <<
// WEFT_SOURCE_SHIFT.
#define WEFT_SOURCE_SHIFT 9

// The same of the buffer at the target.
#define WEFT_TARGET_SHIFT 11

// Of weft_kernel_time: the kernel computes, and reads and writes words.
#define WEFT_KERNEL_WORKS 0

// It waits for a word of an empty stream.
#define WEFT_KERNEL_READS 1

// It waits for room in a full stream.
#define WEFT_KERNEL_WRITES 2

// Packets wait for room in the stream by which it reads them, whatever it does meanwhile.
#define WEFT_KERNEL_FULL 3

// A rank: this process's side of the job.
typedef struct weft_rank weft_rank;

// A virtual interface of this process.
typedef struct weft_interface weft_interface;

// The outcome of an operation.
typedef struct {
    // As given to the operation.
    void *context;
    // WEFT_SENT, ...
    uint64_t flags;
    // Bytes received; of WEFT_SERVED, of the answer.
    size_t length;
    // Multi-receive: where in the buffer.
    void *buffer;
    // With WEFT_DATA.
    uint64_t data;
    // Of a tagged message.
    uint64_t tag;
    // Who sent it.
    uint32_t source;
    // 0, or an errno: EMSGSIZE (truncated), ECANCELED, ENOMSG, EACCES, EPIPE (peer died). Of a request to a
    // service: ENXIO, no such service there; ENOBUFS, 256 requests of the node are under way; ETIMEDOUT,
    // never acknowledged.
    int32_t error;
    // Bytes that did not fit, with EMSGSIZE.
    size_t overflow;
} weft_completion;

// A place in the global virtual address space (TR-488, 4.3): protection domain, node, process, and virtual
// address there. The process is said by its interface: of all interfaces that a process has, each reaches
// the same memory.
typedef struct {
    // A virtual address in the process that owns the interface, as its pointers are. Small messages go to
    // the interface, and do not use it.
    uint64_t memory;
    // The node, of 22 bits: which network interface of the machine.
    uint32_t node;
    // The virtual interface there. The node knows by it the rank of the address, of 3 bits: which of its
    // processes it is.
    uint16_t interface;
    // The interface's protection domain, of 16 bits, for information. Access is decided by the domains that
    // the system software has noted at both ends.
    uint16_t domain;
} weft_address;

// An operation of a virtual interface that has ended.
typedef struct {
    // As given to the operation.
    void *context;
    // Which it was: WEFT_SENT (told only where it has failed), WEFT_WRITTEN or WEFT_READ.
    uint64_t flags;
    // 0, or an errno, which says the field that is wrong. EACCES: the interface is of another protection
    // domain. ENETUNREACH: no such node. ENXIO: no such interface; or it has no page of RDMA channels, which
    // that of a write's initiator needs, and that which is read from. EFAULT: memory that the target has not
    // mapped, or not for such access, or to read into which the initiator has not: a page fault that no
    // system can handle. Nothing has been written then. ETIMEDOUT: never acknowledged.
    int32_t error;
} weft_interface_completion;

// The arrival of a packet at a port.
typedef struct {
    // When it came, in picoseconds.
    uint64_t at_ps;
    // Links between nodes that it has crossed.
    uint32_t hops;
    // The virtual channel on which it came to the switch of its node.
    uint32_t virtual_channel;
    // The port that sent it.
    weft_address from;
} weft_port_arrival;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Joins the job that the environment names (WEFT_JOB, the same for all its ranks, and WEFT_DEVICE).
// -ENOENT: there is none, the process was not started by `weft run` or weft is gone. -EPROTO: its device is
// of another version.
//
// Does not enter virtual time: the first call that sends, receives or polls does. A second call
// returns the same rank.
int weft_open(weft_rank **rank);

// Leaves. Operations that are under way are forgotten, virtual interfaces freed.
void weft_close(weft_rank *rank);

// This rank's number.
uint32_t weft_number(const weft_rank *rank);

// The number of ranks in the job.
uint32_t weft_count(const weft_rank *rank);

// The virtual clock in picoseconds since the job began. As every look at a clock it takes the machine's
// `host.clock_read`, so that a loop which waits for a time ends.
uint64_t weft_clock_ps(const weft_rank *rank);

// For recorders: the virtual clock in picoseconds, and how much of it the program itself has taken, that is
// computing by the host model of `weft run`, sleeping and looking at the clock. Takes no time and needs no
// rank: 0 before the process is one. Either may be NULL.
//
// # Safety
// Places that are not null have room for a number; no other call is under way.
void weft_times(uint64_t *clock_ps, uint64_t *program_ps);

// The largest message that weft_send carries with WEFT_INJECT.
size_t weft_inject_limit(const weft_rank *rank);

// With multi-receive: how little must be left in a buffer before it is given back, of buffers that are
// posted from now on. Default 64.
void weft_set_min_multi_receive(weft_rank *rank, size_t bytes);

// Sends. With WEFT_INJECT `context` is not used. -EAGAIN: poll and try again. -EINVAL: no such rank, or,
// here as in all calls with flags, an endpoint that no rank has.
int weft_send(weft_rank *rank,
              uint32_t to,
              uint64_t tag,
              const void *buffer,
              size_t length,
              uint64_t data,
              uint64_t flags,
              void *context);

// Posts a receive of a message from `from` (or WEFT_ANY_SOURCE) whose tag equals `tag` outside the bits of
// `ignore`.
int weft_receive(weft_rank *rank,
                 uint32_t from,
                 uint64_t tag,
                 uint64_t ignore,
                 void *buffer,
                 size_t length,
                 uint64_t flags,
                 void *context);

// Looks for a message that has come and no receive has matched: 1 and its description in `found`, or 0.
// Makes progress, never blocks.
int weft_peek(weft_rank *rank,
              uint32_t from,
              uint64_t tag,
              uint64_t ignore,
              uint64_t flags,
              void *context,
              weft_completion *found);

// Cancels the receive with this context: 0 and a completion with ECANCELED follows; -ENOENT: none is posted.
int weft_cancel(weft_rank *rank, void *context);

// Makes progress and takes up to `count` completions, in order. An empty poll costs virtual time and may
// hand over to others.
ptrdiff_t weft_poll(weft_rank *rank, weft_completion *completions, size_t count);

// For libraries that keep completions in queues of their own: whether (not 0) the program has some to read
// there. As long as it has, it does not wait, though its polls find nothing.
void weft_set_unread(weft_rank *rank, uint32_t unread);

// A hint that the program has nothing to do but to wait (what sched_yield says).
void weft_yield(weft_rank *rank);

// For libraries that match messages themselves: charges the search of so many list entries, each at the
// machine's `messaging.matching_entry`.
void weft_search(weft_rank *rank, uint64_t entries);

// Lets peers of the job reach memory. They name it by `key` and virtual address. `key` is
// taken as given where it is not UINT64_MAX, and chosen otherwise.
int weft_register(weft_rank *rank, void *base, size_t length, uint64_t access, uint64_t *key);

// Lets them no more: what comes from now on is refused.
int weft_unregister(weft_rank *rank, uint64_t key);

// RDMA write. `remote` is an address in the peer's virtual memory.
int weft_write(weft_rank *rank,
               uint32_t to,
               const void *local,
               size_t length,
               uint64_t remote,
               uint64_t key,
               uint64_t data,
               uint64_t flags,
               void *context);

// RDMA read. `remote` is an address in the peer's virtual memory.
int weft_read(weft_rank *rank,
              uint32_t from,
              void *local,
              size_t length,
              uint64_t remote,
              uint64_t key,
              uint64_t flags,
              void *context);

// Allocates a virtual interface of this node: a page of the packetizer, a mailbox, and, as long as the node
// has them, a page of RDMA channels. The only call, with weft_interface_free, that goes through the system
// software. `domain` is its protection domain: WEFT_DOMAIN_JOB, WEFT_DOMAIN_PRIVATE, or the number of one
// that the job has been given (`weft run --pdid`). Whoever is in the domain reaches all memory of this
// process. -EINVAL: `domain` is above 65535. -EPERM: the job has not been given it. -ENOSPC: the node has no
// more interfaces, or there is no more private domain. -EOVERFLOW: no global address names this process,
// since its node is numbered above 4194303, or more than seven processes of the job come before it on the
// node.
int weft_interface_allocate(weft_rank *rank, uint32_t domain, weft_interface **interface);

// Gives it back. What is under way is forgotten, and nothing is reached by it any more.
void weft_interface_free(weft_interface *interface);

// From now on peers reach by this interface only memory that weft_register lets them reach, words of
// notifications included: the rest is EFAULT to them, as memory that is not mapped is. So it is on cards
// whose driver registers buffers. -EBADF: the interface is not open any more.
int weft_interface_restrict(weft_interface *interface);

// The global address of memory of this process behind the interface; of the interface itself with NULL.
// Peers learn it by messages.
weft_address weft_interface_address(const weft_interface *interface, const void *memory);

// The largest small message, in bytes.
size_t weft_interface_limit(const weft_interface *interface);

// Sends a small message, as one packet, to the mailbox of another interface. The bytes are taken at once.
// There is no completion unless it fails: then one with WEFT_SENT and the error. -EMSGSIZE: it is too large.
// -EBADF: the interface is not open any more, as of all calls on interfaces.
int weft_interface_send(weft_interface *interface, weft_address to, const void *bytes, size_t length, void *context);

// Takes the oldest message out of the interface's mailbox: its length, and in `from`, unless that is NULL,
// who sent it. What does not fit into `length` bytes is lost. -EAGAIN: there is none; that poll costs
// virtual time and may hand over to others.
ptrdiff_t weft_interface_receive(weft_interface *interface, void *buffer, size_t length, weft_address *from);

// RDMA write: `length` bytes of `local` to the memory that `to` names, any that its process has mapped and
// may write, and behind them, unless `notify` is 0, the eight bytes of `word` to that address in the same
// process, where its owner may wait for them. The buffer must stay as it is until the completion,
// WEFT_WRITTEN. Needs a page of RDMA channels of `interface`.
int weft_interface_write(weft_interface *interface,
                         const void *local,
                         size_t length,
                         weft_address to,
                         uint64_t notify,
                         uint64_t word,
                         void *context);

// As weft_interface_write, but nothing comes back from the target: the completion, WEFT_WRITTEN, comes when
// the interface has the data, and the buffer may be used again. A second one comes with an errno if the
// target cannot carry it out. `path` says how the process at the target learns of it, on machines whose
// interface has several paths: WEFT_PATH_MACHINE, WEFT_PATH_KERNEL, ... With WEFT_ANSWERED added the target
// answers, and there is one completion, which comes with the answer. On machines whose hosts have a GPU,
// the kind of memory that each of the two buffers lies in may be added too: WEFT_MEMORY_GPU_DIRECT <<
// WEFT_SOURCE_SHIFT, and << WEFT_TARGET_SHIFT; where it is not, it is as the machine file says. On a card
// whose host has no GPU the completion has ENODEV. -EINVAL: there is no such path.
int weft_interface_deliver(weft_interface *interface,
                           const void *local,
                           size_t length,
                           weft_address to,
                           uint64_t notify,
                           uint64_t word,
                           uint32_t path,
                           void *context);

// RDMA read: `length` bytes of the memory that `from` names, any that its process has mapped and may read,
// into `local`. They are there with the completion, WEFT_READ. Needs a page of RDMA channels of the
// interface that `from` names, by which the data comes.
int weft_interface_read(weft_interface *interface, void *local, size_t length, weft_address from, void *context);

// Makes progress and takes up to `count` completions of the interface, in order. A poll that finds none
// costs virtual time and may hand over to others: so does one that waits for a word in memory.
ptrdiff_t weft_interface_poll(weft_interface *interface, weft_interface_completion *completions, size_t count);

// Allocates the virtual interface of that number as a port: the process is the hardware behind it, keeps
// its own time, and polls nothing. So are the IntraNode ports of the Communication IP, whose headers carry
// 16 bytes of the program's. A program that sends messages to ranks has port 0 for them. -ENXIO: the node
// has no such port. -EBUSY: somebody has it.
int weft_port_open(weft_rank *rank, uint16_t port, weft_interface **interface);

// Sends a packet by a port now, with 16 bytes at `header` in its header and `length` bytes of payload, at
// most weft_interface_limit. The bytes are taken at once; weft_port_sent says when the port had them.
// -EMSGSIZE: it is too large.
int weft_port_send(weft_interface *interface, weft_address to, const void *header, const void *payload, size_t length);

// Takes the oldest packet that has come to a port: the length of its payload, its header, and when and on
// which way it came. What does not fit into `length` bytes is lost. Waits for nothing and takes no time. The
// packet stays in the receiving FIFOs of its port until weft_port_free. -EAGAIN: there is none.
ptrdiff_t weft_port_take(weft_interface *interface,
                         void *header,
                         void *payload,
                         size_t length,
                         weft_port_arrival *arrival);

// The oldest packet in the receiving FIFOs of a port leaves them now, so that another has room. Call it once
// for each packet taken. While these FIFOs are full, packets for the port wait in the switch. Takes no time.
void weft_port_free(weft_interface *interface);

// Takes the end of the oldest packet that a port has been given: 1, and when the port had all of it in
// picoseconds; 0: there is none. Takes no time. A negative errno: that packet has failed, as
// weft_interface_poll says.
int weft_port_sent(weft_interface *interface, uint64_t *at_ps);

// Waits until something has come for the rank or the clock shows `until_ps`: 1 or 0. With UINT64_MAX until
// something has come, or nothing can any more. Takes no time of its own: the clock shows when it came.
int weft_wait_until(weft_rank *rank, uint64_t until_ps);

// The program has computed until the clock shows `until_ps`, and looks at nothing that comes meanwhile. Does
// nothing if it shows more.
void weft_pass_until(weft_rank *rank, uint64_t until_ps);

// Says that a kernel of this node has spent so many picoseconds on one activity: WEFT_KERNEL_WORKS, or
// WEFT_KERNEL_READS or WEFT_KERNEL_WRITES with the stream that it waited for; or that packets have waited
// so long for a stream of it: WEFT_KERNEL_FULL. Each call makes a row of the table `kernels`, which `weft
// explain` shows. Takes no time. -EINVAL: no such activity, or names of more than 255 bytes.
int weft_kernel_time(weft_rank *rank, const char *kernel, uint32_t activity, const char *stream, uint64_t time_ps);

// Reads the register of the node's network interface at that address. -ENOTSUP: the machine's interface has
// no registers. -EFAULT: none there.
int weft_register_read(weft_rank *rank, uint32_t address, uint32_t *value);

// Writes it. Errors as weft_register_read; -EACCES: it is only read. -EINVAL: it does not take that value.
int weft_register_write(weft_rank *rank, uint32_t address, uint32_t value);

// Asks the key-value store of a node, an endpoint of the machine with one of the services of `weft run
// --scenario`, for the value of a key. weft_poll gives a completion with WEFT_SERVED when the answer has
// come: `length` is the size of the value, or 8 where the key has none. The model knows sizes, and no
// contents. -EINVAL: `key` is above 65535.
int weft_service_get(weft_rank *rank, uint32_t node, uint32_t key, void *context);

// Puts a value of `length` bytes for a key there; the answer has 8. -EINVAL: as of weft_service_get, or
// `length` is above 1 GiB.
int weft_service_put(weft_rank *rank, uint32_t node, uint32_t key, size_t length, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEFT_H */

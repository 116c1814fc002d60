//! Virtual interfaces: the user-space communication API of ExaNet, without messaging above it.
//!
//! ```text
//!   weft_interface_send  ──► packetizer ─────────► mailbox ──► weft_interface_receive
//!   weft_interface_write ──► RDMA ───────────────► any memory there, then the notification word
//!   weft_interface_read  ──► RDMA of the target ─► own memory
//!                              └── ended, refused ──► weft_interface_poll
//! ```
//! Only opening and closing go through the system software; all else are stores and loads of the process's
//! own. A post takes its process the stores and calls by which it is made
//! ([`PostCosts`](weft_msg::PostCosts)), and an empty poll the machine's `host.poll`. No memory is
//! registered: all that a process has mapped can be reached by those of its protection domain, and what it
//! has not is a page fault that the system cannot handle. An interface that is restricted reaches registered
//! memory alone, as cards do whose driver pins buffers.
//!
//! # Source
//! FORTH-ICS / TR-488 §5.1; §4.3 for the address; §4.5.3 for the whole address space.
//!
//! # Not modelled
//! Virtual time of opening and closing, which are system calls. The 39 bits of an address within a process:
//! those of real processes are longer, and [`Address::memory`] has them whole. The simulated interface sees
//! that memory laid out anew. Allocation of packetizer, mailbox and pages apart from each other. Small
//! messages to the address of a process (§5.1): they go to an interface. Operations that find no channel:
//! they wait in the interface, and the call returns. Stores that wait for those of other processes. Status
//! bits of a small message: the sender learns of a failure only.

use crate::device::{Notice, NoticeKind, PostKind};
use crate::operation::flag;
use std::collections::VecDeque;
use std::ffi::c_void;

/// A place in the global virtual address space (TR-488, 4.3): protection domain, node, process, and virtual
/// address there. The process is said by its interface: of all interfaces that a process has, each reaches
/// the same memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Address {
    /// A virtual address in the process that owns the interface, as its pointers are. Small messages go to
    /// the interface, and do not use it.
    pub memory: u64,
    /// The node, of 22 bits: which network interface of the machine.
    pub node: u32,
    /// The virtual interface there. The node knows by it the rank of the address, of 3 bits: which of its
    /// processes it is.
    pub interface: u16,
    /// The interface's protection domain, of 16 bits, for information. Access is decided by the domains that
    /// the system software has noted at both ends.
    pub domain: u16,
}

/// The arrival of a packet at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Arrival {
    /// When it came, in picoseconds.
    pub at_ps: u64,
    /// Links between nodes that it has crossed.
    pub hops: u32,
    /// The virtual channel on which it came to the switch of its node.
    pub virtual_channel: u32,
    /// The port that sent it.
    pub from: Address,
}

/// The way of a message through the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// Links that it has crossed, injection and ejection included.
    pub hops: u8,
    /// The virtual channel on which it came to the switch of its endpoint.
    pub channel: u8,
}

impl Way {
    /// Links that it crosses besides those between nodes: to the first switch and from the last.
    const LINKS_OF_PORTS: u8 = 2;

    /// The arrival of a packet that has gone this way from a port, at `at_ps`.
    pub(crate) fn arrival(self, from: Address, at_ps: u64) -> Arrival {
        let hops = self.hops.saturating_sub(Way::LINKS_OF_PORTS).into();
        Arrival { at_ps, hops, virtual_channel: self.channel.into(), from }
    }
}

impl From<u32> for Way {
    fn from(bits: u32) -> Way {
        Way { hops: bits as u8, channel: (bits >> 8) as u8 }
    }
}

impl From<Way> for u32 {
    fn from(Way { hops, channel }: Way) -> u32 {
        u32::from(channel) << 8 | u32::from(hops)
    }
}

/// A protection domain, as a process that allocates an interface names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WantedDomain {
    /// The job's own.
    Job,
    /// One that no other process is in.
    Private,
    /// The one of this number.
    Numbered(u16),
}

impl WantedDomain {
    /// The domain that `weft_interface_allocate` means by a number; `None`: it has more than 16 bits.
    pub fn of(number: u64) -> Option<WantedDomain> {
        match u32::try_from(number).ok()? {
            flag::DOMAIN_JOB => Some(WantedDomain::Job),
            flag::DOMAIN_PRIVATE => Some(WantedDomain::Private),
            number => u16::try_from(number).ok().map(WantedDomain::Numbered),
        }
    }
}

/// How a write tells both sides of its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The path of the completion at the target.
    pub path: WantedPath,
    /// The memory of the buffer that is sent from, and of that at the target.
    pub memories: [WantedMemory; 2],
    /// Whether the target answers; else the write ends when the interface has its data.
    pub is_answered: bool,
}

impl Delivery {
    /// The delivery that `weft_interface_deliver` means by a number; `None`: there is no such path.
    pub fn of(number: u32) -> Option<Delivery> {
        const SHIFTS: [u32; 2] = [flag::SOURCE_SHIFT, flag::TARGET_SHIFT];
        let kinds: u32 = SHIFTS.iter().map(|shift| flag::MEMORY_GPU_STAGED << shift).sum();
        let path = WantedPath::of(number & !flag::ANSWERED & !kinds)?;
        let memories = SHIFTS.map(|shift| WantedMemory::of(number >> shift));
        Some(Delivery { path, memories, is_answered: number & flag::ANSWERED != 0 })
    }
}

/// The kind of memory that a process says a buffer lies in, on interfaces that tell kinds apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum WantedMemory {
    /// The machine's.
    Machine = flag::MEMORY_MACHINE,
    /// That of the host.
    Host = flag::MEMORY_HOST,
    /// That of a GPU, which the interface reads and writes.
    GpuDirect = flag::MEMORY_GPU_DIRECT,
    /// That of a GPU, by way of a buffer in the host.
    GpuStaged = flag::MEMORY_GPU_STAGED,
}

impl WantedMemory {
    /// The kind that the lowest two bits of a number mean.
    pub const fn of(number: u32) -> WantedMemory {
        match number & flag::MEMORY_GPU_STAGED {
            flag::MEMORY_MACHINE => WantedMemory::Machine,
            flag::MEMORY_HOST => WantedMemory::Host,
            flag::MEMORY_GPU_DIRECT => WantedMemory::GpuDirect,
            _ => WantedMemory::GpuStaged,
        }
    }
}

/// The path of completions that a process chooses for a write, on interfaces that have several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum WantedPath {
    /// The machine's.
    Machine = flag::PATH_MACHINE,
    /// The driver copies the completion to the process.
    Kernel = flag::PATH_KERNEL,
    /// The driver copies it into a buffer that the process polls.
    Remapped = flag::PATH_REMAPPED,
    /// The interface writes it where the process polls.
    Direct = flag::PATH_DIRECT,
    /// The interface writes it into a queue that the process polls.
    UserQueue = flag::PATH_USER_QUEUE,
}

impl WantedPath {
    /// The path that `weft_interface_deliver` means by a number; `None`: there is no such path.
    pub fn of(number: u32) -> Option<WantedPath> {
        Some(match number {
            flag::PATH_MACHINE => WantedPath::Machine,
            flag::PATH_KERNEL => WantedPath::Kernel,
            flag::PATH_REMAPPED => WantedPath::Remapped,
            flag::PATH_DIRECT => WantedPath::Direct,
            flag::PATH_USER_QUEUE => WantedPath::UserQueue,
            _ => return None,
        })
    }
}

impl From<WantedDomain> for u64 {
    fn from(domain: WantedDomain) -> u64 {
        match domain {
            WantedDomain::Job => flag::DOMAIN_JOB.into(),
            WantedDomain::Private => flag::DOMAIN_PRIVATE.into(),
            WantedDomain::Numbered(number) => number.into(),
        }
    }
}

/// An operation of a virtual interface that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct InterfaceCompletion {
    /// As given to the operation.
    pub context: *mut c_void,
    /// Which it was: WEFT_SENT (told only where it has failed), WEFT_WRITTEN or WEFT_READ.
    pub flags: u64,
    /// 0, or an errno, which says the field that is wrong. EACCES: the interface is of another protection
    /// domain. ENETUNREACH: no such node. ENXIO: no such interface; or it has no page of RDMA channels, which
    /// that of a write's initiator needs, and that which is read from. EFAULT: memory that the target has not
    /// mapped, or not for such access, or to read into which the initiator has not: a page fault that no
    /// system can handle. Nothing has been written then. ETIMEDOUT: never acknowledged.
    pub error: i32,
}

/// A small message in the mailbox.
pub(crate) struct Small {
    pub from: Address,
    pub bytes: Vec<u8>,
    /// The time at which the interface had it, in ps.
    pub at: u64,
    /// The way that it came.
    pub way: Way,
}

/// A virtual interface of this rank.
#[derive(Default)]
pub(crate) struct Interface {
    pub own: Address,
    pub mailbox: VecDeque<Small>,
    pub completions: VecDeque<InterfaceCompletion>,
    /// The times, in ps, at which it had all data of messages whose end is told.
    pub sent: VecDeque<u64>,
}

/// The virtual interfaces of a rank.
#[derive(Default)]
pub struct Interfaces {
    pub(crate) open: Vec<Interface>,
    /// Answer of the system software to the last request for one.
    pub(crate) answer: Option<Result<Address, i32>>,
    /// The register that was asked for last.
    pub(crate) register: Option<Result<u32, i32>>,
}

impl Interfaces {
    /// Closes all of them.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// The open interface of this number.
    pub(crate) fn of(&mut self, number: u16) -> Option<&mut Interface> {
        self.open.iter_mut().find(|interface| interface.own.interface == number)
    }

    /// Takes a notice of the network interface.
    pub(crate) fn notice(&mut self, notice: &Notice, bytes: Vec<u8>) {
        let (node, number) = (notice.node, notice.interface as u16);
        match NoticeKind::of_interface(notice.kind) {
            Some(NoticeKind::Opened) => {
                let own = Address { memory: 0, node, interface: number, domain: notice.data as u16 };
                self.answer = Some(if notice.error == 0 { Ok(own) } else { Err(notice.error) });
            }
            Some(NoticeKind::Small) => {
                let (interface, domain) = (notice.from_interface as u16, notice.data as u16);
                let from = Address { memory: 0, node, interface, domain };
                if let Some(interface) = self.of(number) {
                    let way = Way::from(notice.way);
                    interface.mailbox.push_back(Small { from, bytes, at: notice.at, way });
                }
            }
            Some(NoticeKind::Register) => {
                self.register =
                    Some(if notice.error == 0 { Ok(notice.data as u32) } else { Err(notice.error) });
            }
            Some(NoticeKind::Ended) if notice.token == PostKind::Small as u32 && notice.error == 0 => {
                if let Some(interface) = self.of(number) {
                    interface.sent.push_back(notice.at);
                }
            }
            _ => {
                let flags = match notice.token {
                    kind if kind == PostKind::Put as u32 => flag::WRITTEN,
                    kind if kind == PostKind::Get as u32 => flag::READ,
                    _ => flag::SENT,
                };
                let (context, error) = (notice.data as *mut c_void, notice.error);
                if let Some(interface) = self.of(number) {
                    interface.completions.push_back(InterfaceCompletion { context, flags, error });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a number beyond 16 bits that becomes a domain of others.
    #[test]
    fn domains_have_16_bits_or_a_name() {
        use WantedDomain::{Job, Numbered, Private};
        for domain in [Job, Private, Numbered(0), Numbered(u16::MAX)] {
            assert_eq!(WantedDomain::of(domain.into()), Some(domain));
        }
        for number in [1 << 16, u64::from(u32::MAX) - 2, 1 << 32, u64::MAX] {
            assert_eq!(WantedDomain::of(number), None, "{number}");
        }
    }

    /// Catches a kind of memory that is another buffer's.
    #[test]
    fn deliveries_name_the_memories_of_both_buffers() {
        let number = flag::MEMORY_GPU_DIRECT << flag::SOURCE_SHIFT | flag::PATH_DIRECT;
        let delivery = Delivery::of(number | flag::MEMORY_GPU_STAGED << flag::TARGET_SHIFT).unwrap();
        assert_eq!(delivery.path, WantedPath::Direct);
        assert_eq!(delivery.memories, [WantedMemory::GpuDirect, WantedMemory::GpuStaged]);
        let [source, target] = Delivery::of(flag::ANSWERED).unwrap().memories;
        assert_eq!([source, target], [WantedMemory::Machine; 2]);
    }

    /// Catches a path that is another one's, and bits without a meaning that pass.
    #[test]
    fn deliveries_are_a_path_and_a_bit() {
        for number in flag::PATH_MACHINE..=flag::PATH_USER_QUEUE {
            for (bit, is_answered) in [(0, false), (flag::ANSWERED, true)] {
                let delivery = Delivery::of(number | bit).unwrap();
                assert_eq!((delivery.path as u32, delivery.is_answered), (number, is_answered));
            }
        }
        assert!([5, 8, flag::ANSWERED | 5, 1 << 13].map(Delivery::of).iter().all(Option::is_none));
    }

    /// Catches a notice that reaches another interface, or one that has been closed; and an end that is told
    /// as that of another operation.
    #[test]
    fn notices_reach_their_interface() {
        let mut interfaces = Interfaces::default();
        let notice = |kind: NoticeKind| Notice { kind: kind as u32, node: 5, ..Notice::default() };
        interfaces.notice(&Notice { interface: 2, data: 7, ..notice(NoticeKind::Opened) }, Vec::new());
        let own = Address { memory: 0, node: 5, interface: 2, domain: 7 };
        assert_eq!(interfaces.answer.take(), Some(Ok(own)));
        interfaces.notice(&Notice { error: libc::ENOSPC, ..notice(NoticeKind::Opened) }, Vec::new());
        assert_eq!(interfaces.answer, Some(Err(libc::ENOSPC)));
        interfaces.open.push(Interface { own, ..Interface::default() });
        for (interface, byte) in [(2, 1), (3, 2)] {
            let way = Way { hops: 5, channel: 1 }.into();
            let small = Notice { interface, from_interface: 9, data: 7, way, ..notice(NoticeKind::Small) };
            interfaces.notice(&small, vec![byte]);
            for (operation, flags) in
                [(PostKind::Put, flag::WRITTEN), (PostKind::Get, flag::READ), (PostKind::Small, flag::SENT)]
            {
                let token = operation as u32;
                let error = libc::EIO;
                let ended = Notice { interface, token, data: flags, error, ..notice(NoticeKind::Ended) };
                interfaces.notice(&ended, Vec::new());
            }
        }
        let interface = interfaces.of(2).unwrap();
        let small = interface.mailbox.pop_front().unwrap();
        assert_eq!((small.from.node, small.from.interface, small.bytes), (5, 9, vec![1]));
        let from = small.from;
        assert_eq!(small.way.arrival(from, 7), Arrival { at_ps: 7, hops: 3, virtual_channel: 1, from });
        assert!(interface.mailbox.is_empty());
        let ended: Vec<_> =
            interface.completions.iter().map(|ended| (ended.flags, ended.context as u64)).collect();
        assert_eq!(ended, [flag::WRITTEN, flag::READ, flag::SENT].map(|flags| (flags, flags)));
        assert!(interfaces.of(3).is_none());
        let sent = Notice { interface: 2, token: PostKind::Small as u32, at: 7, ..notice(NoticeKind::Ended) };
        interfaces.notice(&sent, Vec::new());
        assert_eq!(interfaces.of(2).map(|interface| interface.sent.pop_front()), Some(Some(7)));
    }
}

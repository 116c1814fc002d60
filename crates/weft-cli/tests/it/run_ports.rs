//! Ports of a node that hang off the switch each by a way of its own, in real processes.

use crate::support::{over_weft, run, texts};

/// Rank 0 opens port 1 of its node and rank 1 port 0: each hangs off the endpoint at which the other sits.
/// Each writes registers, looks at the other's port, and sends it a packet at 2 µs.
const PROGRAM: &str = r#"
#include <errno.h>
#include <stdio.h>
#include <weft.h>

int main(void)
{
    weft_rank *rank;
    weft_interface *port, *other;
    char header[16] = "", payload[32];
    weft_port_arrival arrival = {0};
    uint32_t credit = 0;
    if (weft_open(&rank) != 0)
        return 2;
    const uint32_t me = weft_number(rank);
    if (weft_port_open(rank, (uint16_t)(1 - me), &port) != 0 || weft_port_open(rank, 2, &other) != -ENXIO)
        return 3;
    while (weft_wait_until(rank, 1000000) != 0)
        ;
    if (weft_port_open(rank, (uint16_t)me, &other) != -EBUSY)
        return 4;
    if (me == 0 && weft_register_write(rank, 0x0c, 300) != 0)
        return 5;
    while (weft_wait_until(rank, 2000000) != 0)
        ;
    if (weft_register_read(rank, 0x0c, &credit) != 0)
        return 6;
    weft_address to = weft_interface_address(port, 0);
    to.interface = (uint16_t)me;
    if (weft_port_send(port, to, header, me == 0 ? "from 0" : "from 1", 7) != 0)
        return 7;
    ptrdiff_t length;
    while ((length = weft_port_take(port, header, payload, sizeof payload, &arrival)) == -EAGAIN)
        weft_wait_until(rank, UINT64_MAX);
    printf("port %u of node %u, credit %u: %s after %u ns\n", 1 - me, to.node, credit,
           length == 7 ? payload : "?", (unsigned)((arrival.at_ps - 2000000) / 1000));
    return 0;
}
"#;

/// Two processes of a node. Catches a port that two have, one that only the process at its endpoint can open,
/// registers that the ports of one node do not share, and packets that come late, early or at another node.
/// By hand: aggregator and FIFO take 6 cycles of 100 MHz each, the switch with its links 22, the words 3, and
/// the dispatcher 13.
#[test]
fn processes_of_a_node_open_any_of_its_ports() {
    let program = over_weft("run_ports", PROGRAM, &[]);
    let machine = [
        "topology.dims=[2]",
        "topology.endpoints_per_switch=2",
        "host.endpoints_per_host=2",
        "nic.intra_node.ports=1",
    ];
    let sets = machine.map(|set| ["--set", set]).concat();
    let options = [&["-m", "communication-ip", "-n", "2", "--ppn", "2", "--quiet"], &sets[..]].concat();
    let (printed, said) = texts(&run(&options, &program, &[]));
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let by_hand = 10 * (6 + 6 + 22 + 3 + 13);
    let expected =
        [0, 1].map(|port| format!("port {port} of node 0, credit 300: from {port} after {by_hand} ns"));
    assert_eq!(lines, expected, "{said}");
}

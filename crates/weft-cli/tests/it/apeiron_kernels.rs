//! Kernels of `weft apeiron` that fail: each is named, with its node and what it does.

use crate::apeiron::{Built, HOST, TIMED_HOST, design, has_compiler, kernel, on_two_nodes, printed, refused};

/// Each of these, done by a kernel, ends the run with what is told.
fn each_is_told(test: &str, cases: &[(&str, &str)]) {
    let branches =
        cases.iter().zip(0..).map(|((does, _), what)| format!("    if (what == {what}) {{ {does} }}\n"));
    let body: String = branches.collect();
    let built = Built::of(design(test, &kernel(&body), HOST), (test, "own_host"));
    for ((does, told), what) in cases.iter().zip(0..) {
        let said = refused(1, &built.run(&[], &[&i32::to_string(&what)]));
        assert!(said.contains(told), "{does}: {said}");
    }
}

/// Catches a kernel that waits for ever, faults, or uses what its design does not have, and is not named, or
/// whose run does not end.
#[test]
fn kernels_that_fail_are_named() {
    if !has_compiler() {
        return;
    }
    let cases = [
        (
            "receive(0u);",
            "every kernel waits for a stream:\n  kernel own reads message_data_in[0], which is empty",
        ),
        ("message_data_out[1].write(uint128_t(1));", "kernel own writes message_data_out[1]"),
        ("*(volatile int *)nullptr = 1;", "kernel own uses memory that it does not have"),
        ("send(\"x\", 1, apeiron_node(5), 0, 0); receive(0u);", "is for node (5, 0, 0)"),
        ("send(\"x\", 1, 0, 9, 0); receive(0u);", "IntraNode port that its node does not have"),
    ];
    each_is_told("fails", &cases);
}

/// Catches kernels that end the run in ways of their own, and are not named.
#[test]
fn kernels_that_end_the_process_are_named() {
    if !has_compiler() {
        return;
    }
    let cases = [
        ("std::exit(3);", "node 0: kernel own calls exit"),
        ("std::abort();", "node 0: kernel own aborts"),
        ("throw 5;", "node 0: kernel own throws what is no std::exception"),
        (
            "char *small = new char[1]; for (size_t at = 0;; at++) ((volatile char *)small)[at] = 1;",
            "node 0: kernel own uses memory that it does not have",
        ),
        ("message_data_in[0].write(1);", "kernel own writes message_data_in[0], an input channel"),
        ("message_data_out[-1].write(1);", "kernel own writes message_data_out[-1]"),
    ];
    each_is_told("ends", &cases);
}

/// Catches kernels that fill each other's FIFOs and wait for ever, and a deadlock that names neither them nor
/// the FIFOs.
#[test]
fn kernels_that_fill_each_others_fifos_are_named() {
    if !has_compiler() {
        return;
    }
    let body = "for (int packet = 0; packet < what; packet++) send(\"x\", 1, apeiron_node(1 - node), 0, 0);\n\
                for (int packet = 0; packet < what; packet++) receive(0u);";
    let built = Built::of(design("embrace", &on_two_nodes(body), TIMED_HOST), ("embrace", "own_host"));
    let two = ["--set", "topology.dims=[2]"];
    printed(&built.run(&two, &["50"]));
    let said = refused(1, &built.run(&two, &["5000"]));
    assert!(said.contains("kernel own writes message_data_out[0], which is full"), "{said}");
    assert!(said.contains("a packet waits for message_data_in[0] of kernel own, which is full"), "{said}");
}

/// A host that starts the kernel of its node, with the node's number, and waits for it.
const NODE_HOST: &str = r#"
#include "apeiron_host.h"
int main(int, char **words)
{
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(words[2]);
    xrt::kernel own(device, design, "own");
    own(apeiron_own_node(device), std::atoi(words[3])).wait();
}
"#;

/// Two nodes send to one channel. Catches a message that is put together of packets of both without a word,
/// and messages of one packet that are refused or mixed.
#[test]
fn two_senders_to_one_channel_are_told_apart() {
    if !has_compiler() {
        return;
    }
    let body = "static unsigned char bytes[5000];\n\
                for (int message = 0; node < 2 && message < 10; message++) {\n\
                bytes[0] = bytes[what - 1] = node + 1; send(bytes, what, apeiron_node(2), 0, 0); }\n\
                for (int message = 0; node == 2 && message < 20; message++)\n\
                if (receive(0u, bytes, message_data_in) != size_t(what) || bytes[0] != bytes[what - 1])\n\
                throw std::runtime_error(\"a mixed message\");";
    let source = kernel(body).replace("int what,", "int node, int what,");
    let built = Built::of(design("senders", &source, NODE_HOST), ("senders", "own_host"));
    let three = ["--set", "topology.dims=[3]"];
    printed(&built.run(&three, &["4096"]));
    let said = refused(1, &built.run(&three, &["4097"]));
    let told = "node 2: kernel own receives from message_data_in[0] a message of several packets from task 0 \
                of node ";
    let (_, rest) = said.split_once(told).unwrap_or_else(|| panic!("{said}"));
    let other = if rest.starts_with('0') { 1 } else { 0 };
    assert!(
        rest.contains(&format!("amid it a packet from task 0 of node {other}: give each sender")),
        "{said}"
    );
}

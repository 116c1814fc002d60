//! `portals4.h` against what is exported: functions, and the values of constants.

use super::*;
use std::collections::BTreeMap;

const HEADER: &str = include_str!("../../../../include/portals4.h");

/// The enumerators of the header's enumeration that begins with `first`, in order.
fn enumeration(first: &str) -> Vec<&'static str> {
    let place = HEADER.find(&format!("{first},")).or_else(|| HEADER.find(&format!("{first} ="))).unwrap();
    let body = &HEADER[place..place + HEADER[place..].find('}').unwrap()];
    body.split(',').map(|name| name.split('=').next().unwrap().trim()).collect()
}

/// Catches a function that no test calls, and one that the header does not declare.
#[test]
fn every_exported_function_is_declared_and_tested() {
    let mut functions = 0;
    for source in [include_str!("../calls.rs"), include_str!("../operations.rs")] {
        for rest in source.split("extern \"C\" fn ").skip(1) {
            let call = format!("{}(", rest.split('(').next().unwrap());
            functions += 1;
            let declared =
                HEADER.contains(&format!("int {call}")) || HEADER.contains(&format!("void {call}"));
            assert!(declared, "{call}) is not in portals4.h");
            let tested = ["ok!(", "call!("]
                .iter()
                .any(|by| include_str!("../tests.rs").contains(&(by.to_string() + &call)));
            assert!(tested, "{call}) is called by no test");
        }
    }
    assert_eq!(functions, 55);
}

/// Catches a constant with another value than C's.
#[test]
fn constants_are_those_of_the_header() {
    let defined: BTreeMap<&str, u32> = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("#define PTL_")?.split_once(' '))
        .filter_map(|(name, value)| {
            let value = if value == "(1u << 31)" { "2147483648" } else { value.strip_suffix('u')? };
            Some((name, value.parse().ok()?))
        })
        .collect();
    for (name, value) in [
        ("NI_MATCHING", NI_MATCHING),
        ("NI_NO_MATCHING", NI_NO_MATCHING),
        ("NI_LOGICAL", NI_LOGICAL),
        ("NI_PHYSICAL", NI_PHYSICAL),
        ("IOVEC", IOVEC),
        ("PT_ONLY_USE_ONCE", PT_ONLY_USE_ONCE),
        ("PT_FLOWCTRL", PT_FLOWCTRL),
        ("PT_ONLY_TRUNCATE", PT_ONLY_TRUNCATE),
        ("PT_MATCH_UNORDERED", PT_MATCH_UNORDERED),
        ("PT_ALLOC_DISABLED", PT_ALLOC_DISABLED),
        ("MD_EVENT_SUCCESS_DISABLE", MD_EVENT_SUCCESS_DISABLE),
        ("MD_EVENT_CT_SEND", MD_EVENT_CT_SEND),
        ("MD_EVENT_CT_REPLY", MD_EVENT_CT_REPLY),
        ("MD_EVENT_CT_ACK", MD_EVENT_CT_ACK),
        ("MD_EVENT_CT_BYTES", MD_EVENT_CT_BYTES),
        ("MD_EVENT_SEND_DISABLE", MD_EVENT_SEND_DISABLE),
        ("ME_OP_PUT", ME_OP_PUT),
        ("ME_OP_GET", ME_OP_GET),
        ("ME_USE_ONCE", ME_USE_ONCE),
        ("ME_ACK_DISABLE", ME_ACK_DISABLE),
        ("ME_UNEXPECTED_HDR_DISABLE", ME_UNEXPECTED_HDR_DISABLE),
        ("ME_EVENT_LINK_DISABLE", ME_EVENT_LINK_DISABLE),
        ("ME_EVENT_COMM_DISABLE", ME_EVENT_COMM_DISABLE),
        ("ME_EVENT_FLOWCTRL_DISABLE", ME_EVENT_FLOWCTRL_DISABLE),
        ("ME_EVENT_SUCCESS_DISABLE", ME_EVENT_SUCCESS_DISABLE),
        ("ME_EVENT_OVER_DISABLE", ME_EVENT_OVER_DISABLE),
        ("ME_EVENT_UNLINK_DISABLE", ME_EVENT_UNLINK_DISABLE),
        ("ME_EVENT_CT_COMM", ME_EVENT_CT_COMM),
        ("ME_EVENT_CT_OVERFLOW", ME_EVENT_CT_OVERFLOW),
        ("ME_EVENT_CT_BYTES", ME_EVENT_CT_BYTES),
        ("ME_MANAGE_LOCAL", ME_MANAGE_LOCAL),
        ("ME_NO_TRUNCATE", ME_NO_TRUNCATE),
    ] {
        assert_eq!(defined.get(name), Some(&value), "PTL_{name}");
    }
    for (first, numbers) in [
        (
            "PTL_OK",
            &[
                ("ARG_INVALID", ARG_INVALID),
                ("CT_NONE_REACHED", CT_NONE_REACHED),
                ("EQ_DROPPED", EQ_DROPPED),
                ("EQ_EMPTY", EQ_EMPTY),
                ("FAIL", FAIL),
                ("IGNORED", IGNORED),
                ("IN_USE", IN_USE),
                ("LIST_TOO_LONG", LIST_TOO_LONG),
                ("NO_INIT", NO_INIT),
                ("NO_SPACE", NO_SPACE),
                ("PT_FULL", PT_FULL),
                ("PT_EQ_NEEDED", PT_EQ_NEEDED),
                ("PT_IN_USE", PT_IN_USE),
            ][..],
        ),
        (
            "PTL_EVENT_GET",
            &[
                ("EVENT_PUT", PUT),
                ("EVENT_PUT_OVERFLOW", PUT_OVERFLOW),
                ("EVENT_ATOMIC", ATOMIC),
                ("EVENT_FETCH_ATOMIC", FETCH_ATOMIC),
                ("EVENT_REPLY", REPLY),
                ("EVENT_SEND", SEND),
                ("EVENT_ACK", ACK),
                ("EVENT_PT_DISABLED", PT_DISABLED),
                ("EVENT_LINK", LINK),
                ("EVENT_AUTO_UNLINK", AUTO_UNLINK),
                ("EVENT_AUTO_FREE", AUTO_FREE),
                ("EVENT_SEARCH", SEARCH),
            ],
        ),
        (
            "PTL_NI_OK",
            &[
                ("NI_DROPPED", NI_DROPPED),
                ("NI_PT_DISABLED", NI_PT_DISABLED),
                ("NI_PERM_VIOLATION", NI_PERM_VIOLATION),
                ("NI_OP_VIOLATION", NI_OP_VIOLATION),
                ("NI_UNDELIVERABLE", NI_UNDELIVERABLE),
                ("NI_NO_MATCH", NI_NO_MATCH),
            ],
        ),
        ("PTL_MIN", &[("SUM", SUM), ("SWAP", SWAP), ("CSWAP", CSWAP)]),
        ("PTL_INT8_T", &[("INT32_T", INT32)]),
        ("PTL_NO_ACK_REQ", &[("ACK_REQ", FULL_ACK)]),
        ("PTL_SEARCH_ONLY", &[("SEARCH_DELETE", SEARCH_DELETE)]),
        ("PTL_PRIORITY_LIST", &[("OVERFLOW_LIST", OVERFLOW)]),
    ] {
        let all = enumeration(first);
        for (name, number) in numbers {
            assert_eq!(all.get(*number as usize), Some(&&*format!("PTL_{name}")), "of {all:?}");
        }
    }
    // The last of each is the last that weft computes.
    assert!(atomic(17, 11).is_some() && atomic(18, 0).is_none() && atomic(0, 12).is_none());
    assert!(acknowledgement(3).is_some() && acknowledgement(4).is_none() && acknowledgement(-1).is_none());
}

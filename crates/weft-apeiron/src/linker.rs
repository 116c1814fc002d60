//! `vpp_linker.cfg`: what a design is to the linker of Vitis.
//!
//! # Source
//! TEXTAROSSA D2.8 appendix B for the syntax and the names of the Communication IP's streams; §3, Figure 3.1
//! for dispatcher and aggregator. The names of the streams between these and a kernel are ours.

use crate::config::Design;
use std::fmt::Write as _;

/// The Communication IP in a design: D2.8 appendix B.
pub const SWITCH: &str = "TextaRossa_switch_1";

/// The configuration of a design: frequency and connections.
pub fn config(design: &Design) -> String {
    let mut text = format!("kernel_frequency=0:{}|1:1\n\n[connectivity]\n", design.megahertz);
    let mut connect = |from: String, to: String| {
        let _ = writeln!(text, "stream_connect={from}:{to}"); // into a string: nothing fails
    };
    for kernel in &design.kernels {
        let (name, port) = (&kernel.name, kernel.port);
        connect(format!("{SWITCH}.dtaxisrx{port}"), format!("dispatcher_{port}.dt_in"));
        connect(format!("{SWITCH}.hdaxisrx{port}"), format!("dispatcher_{port}.hd_in"));
        for channel in 0..kernel.inputs {
            connect(
                format!("dispatcher_{port}.message_data_out_{channel}"),
                format!("{name}.message_data_in_{channel}"),
            );
        }
        for channel in 0..kernel.outputs {
            connect(
                format!("{name}.message_data_out_{channel}"),
                format!("aggregator_{port}.message_data_in_{channel}"),
            );
        }
        connect(format!("aggregator_{port}.dt_out"), format!("{SWITCH}.dtaxistx{port}"));
        connect(format!("aggregator_{port}.hd_out"), format!("{SWITCH}.hdaxistx{port}"));
    }
    for stream in &design.streams {
        connect(stream.from.to_string(), format!("{}:{}", stream.to, stream.depth));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{joined, latency};

    /// Catches a connection that is missing, or turned round.
    #[test]
    fn connections_are_those_of_appendix_b() {
        let text = config(&latency());
        assert!(text.starts_with("kernel_frequency=0:100|1:1\n\n[connectivity]\n"));
        for line in [
            "stream_connect=TextaRossa_switch_1.dtaxisrx0:dispatcher_0.dt_in",
            "stream_connect=dispatcher_1.message_data_out_3:krnl_sr_2.message_data_in_3",
            "stream_connect=krnl_sr_2.message_data_out_2:aggregator_1.message_data_in_2",
            "stream_connect=aggregator_1.hd_out:TextaRossa_switch_1.hdaxistx1",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}");
        }
        assert_eq!(text.matches("stream_connect").count(), 2 * 4 + 8 + 7);
        let text = config(&joined());
        assert!(text.ends_with("stream_connect=krnl_sr_2.taps_out:krnl_sr_1.taps_in:16\n"), "{text}");
    }
}

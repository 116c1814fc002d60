//! The headers of kernels and host programs, which are in the command: they need no place of their own.

/// Makes the list of files of `apeiron/include`.
macro_rules! headers {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../../apeiron/include/", $name))),)*
         ("weft.h", include_str!("../../../include/weft.h"))]
    };
}

/// Each by its path, with its text.
pub(crate) const ALL: [(&str, &str); 32] = headers! {
    "ap_axi_sdata.h",
    "ap_fixed.h",
    "ap_int.h",
    "apeiron_host.h",
    "apeiron_options.h",
    "apenet_header.h",
    "hapecom.h",
    "hls_burst_maxi.h",
    "hls_math.h",
    "hls_stream.h",
    "hls_streamofblocks.h",
    "hls_task.h",
    "hls_vector.h",
    "weft_apeiron/card.h",
    "weft_apeiron/clock.h",
    "weft_apeiron/coroutine.h",
    "weft_apeiron/design.h",
    "weft_apeiron/dispatcher.h",
    "weft_apeiron/executor.h",
    "weft_apeiron/faults.h",
    "weft_apeiron/kernel_entry.h",
    "weft_apeiron/message_word.h",
    "weft_apeiron/network.h",
    "weft_apeiron/port.h",
    "weft_apeiron/scheduler.h",
    "weft_apeiron/stream_control.h",
    "weft_apeiron/version.h",
    "weft_apeiron/weft_network.h",
    "xrt/xrt_bo.h",
    "xrt/xrt_device.h",
    "xrt/xrt_kernel.h",
};

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::build::VERSION;
    use std::path::Path;

    /// Catches a header that is in the folder and not in the command.
    #[test]
    fn every_header_of_the_folder_is_in_the_command() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apeiron/include");
        let mut found = Vec::new();
        for inner in ["", "weft_apeiron", "xrt"] {
            for entry in std::fs::read_dir(folder.join(inner)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    found.push(path.strip_prefix(&folder).unwrap().display().to_string());
                }
            }
        }
        found.push("weft.h".to_owned());
        found.sort();
        let mut known: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        known.sort_unstable();
        assert_eq!(found, known);
    }

    /// Catches a version that is raised in the command, and not in the headers.
    #[test]
    fn command_and_headers_have_one_version() {
        let text = ALL.iter().find(|(name, _)| *name == "weft_apeiron/version.h").unwrap().1;
        assert!(text.contains(&format!("VERSION = \"{VERSION}\";")), "{VERSION}: {text}");
    }
}

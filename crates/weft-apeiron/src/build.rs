//! The build of a design: a shared object for each kernel, a program for each host source, and the
//! description that programs take by `-b`.
//!
//! ```text
//!  FILE              the description
//!  FILE.d/include/   the headers
//!  FILE.d/NAME.cpp   a kernel's source with its pragmas as code, and how it is called
//!  FILE.d/NAME.so    the same, compiled: replicas have static data of their own, as they have in hardware
//!  PROGRAM           beside FILE: a host program for each `host/PROGRAM.cpp`
//! ```

use crate::config::{Design, DesignKernel};
use crate::connections::{self, KernelFound};
use crate::error::DesignError;
use crate::linker::SWITCH;
use crate::prototype::KernelParameter;
use crate::streams::{DesignStream, StreamEnd};
use crate::{headers, source};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folders of a kernel's source, beside `config.yaml`: that of appendix C, and the design's own.
const KERNEL_FOLDERS: [&str; 2] = ["hw_hls", "."];

/// The compiler, and the library that programs of a design are linked with.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The C++ compiler: a word, as CXX has it.
    pub compiler: OsString,
    /// Options that come behind those of the build: words, as CXXFLAGS has them.
    pub options: Vec<OsString>,
    /// libweft_client.so, or libweft.so.
    pub library: PathBuf,
    /// Bytes of the largest packet.
    pub payload: u64,
}

/// A command that makes a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The file.
    pub makes: PathBuf,
}

/// The build of a design, step by step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildPlan {
    /// Files to be written first, with their texts.
    pub files: Vec<(PathBuf, String)>,
    /// Commands, in any order.
    pub steps: Vec<Step>,
    /// The description, to be written last, with its text.
    pub description: (PathBuf, String),
}

/// The steps that make a design into `output`.
///
/// # Errors
/// A kernel without a source, or one that cannot be read; streams that do not fit the kernels' parameters.
pub fn plan(design: &Design, toolchain: &Toolchain, output: &Path) -> Result<BuildPlan, DesignError> {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    let parts = with_suffix(output, ".d");
    let include = parts.join("include");
    let mut files: Vec<(PathBuf, String)> =
        headers::ALL.iter().map(|(name, text)| (include.join(name), (*text).to_owned())).collect();
    let mut steps = Vec::new();
    let mut description = format!(
        "weft-apeiron 2\nfrequency {}\npayload {}\nswitch {SWITCH}\n",
        design.megahertz, toolchain.payload
    );
    // Words of 128 bits.
    let largest = toolchain.payload.div_ceil(16);
    let kernels: Result<Vec<_>, _> =
        design.kernels.iter().map(|kernel| KernelFound::of(design, kernel)).collect();
    let kernels = kernels?;
    connections::check_found(design, &kernels)?;
    for found in &kernels {
        let kernel = found.kernel;
        let [generated, object] = ["cpp", "so"].map(|suffix| parts.join(format!("{}.{suffix}", kernel.name)));
        files.push((generated.clone(), entry(design, found)));
        let folders = source_folders(design, &found.source.path);
        let channels = [("INPUT", kernel.inputs), ("OUTPUT", kernel.outputs)]
            .map(|(of, count)| format!("-DN_{of}_CHANNELS={count}"));
        let mut words = compile(toolchain, &include, &folders);
        // Data of replicas is not shared by its name.
        words.extend(["-fPIC", "-shared", "-fvisibility=hidden"].map(OsString::from));
        words.extend(channels.map(OsString::from));
        words.extend([generated.into(), "-o".into(), object.clone().into()]);
        steps.push(Step { words, makes: object });
        let name = parts.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let depth = kernel.depth.map_or(largest, u64::from);
        description.push_str(&described(kernel, depth, &name));
    }
    design.streams.iter().for_each(|stream| description.push_str(&described_stream(stream)));
    for host in sources(&folder.join("host")) {
        let program = output.with_file_name(host.file_stem().unwrap_or_default());
        let mut words = compile(toolchain, &include, &[folder.to_owned(), folder.join("include")]);
        let library = toolchain.library.parent().unwrap_or(Path::new("."));
        let rpath = option("-Wl,-rpath,", library);
        words.extend([host.into(), "-o".into(), program.clone().into(), toolchain.library.clone().into()]);
        words.extend([rpath, "-ldl".into()]);
        steps.push(Step { words, makes: program });
    }
    Ok(BuildPlan { files, steps, description: (output.to_owned(), description) })
}

/// An option that ends with a path.
fn option(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(path);
    word
}

/// The compiler with what all sources are compiled with. C++14: D2.8's tools.
fn compile(toolchain: &Toolchain, include: &Path, folders: &[PathBuf]) -> Vec<OsString> {
    // Loops of HLS have labels.
    let options = ["-std=c++14", "-O2", "-g", "-Wall", "-Wno-unknown-pragmas", "-Wno-unused-label"];
    let mut words = vec![toolchain.compiler.clone()];
    words.extend(options.map(OsString::from));
    words.extend_from_slice(&toolchain.options);
    for folder in std::iter::once(include).chain(folders.iter().map(PathBuf::as_path)) {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        words.push(option("-I", shown));
    }
    words
}

/// The line of a kernel in the description.
fn described(kernel: &DesignKernel, depth: u64, parts: &str) -> String {
    let DesignKernel { name, inputs, outputs, cycles, .. } = kernel;
    let port = kernel.port.map_or("none".to_owned(), |port| port.to_string());
    format!(
        "kernel {name} port {port} inputs {inputs} outputs {outputs} depth {depth} cycles {cycles} \
         code {parts}/{name}.so\n"
    )
}

/// The line of a stream between kernels.
fn described_stream(stream: &DesignStream) -> String {
    let DesignStream { name, from, to, depth, count, .. } = stream;
    let count = count.unwrap_or(0);
    let (writer, reader) =
        (format!("{} {}", from.kernel, from.parameter), format!("{} {}", to.kernel, to.parameter));
    format!("stream {name} from {writer} to {reader} depth {depth} count {count}\n")
}

/// The source of a kernel.
pub(crate) struct KernelSource {
    pub path: PathBuf,
    pub text: String,
    pub function: String,
}

/// The source of a kernel, beside the design's file.
pub(crate) fn find_source(design: &Design, kernel: &DesignKernel) -> Result<KernelSource, DesignError> {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    let mut looked = Vec::new();
    for function in kernel.functions() {
        for inner in KERNEL_FOLDERS {
            let path = if inner == "." { folder.to_owned() } else { folder.join(inner) };
            let path = path.join(format!("{function}.cpp"));
            match std::fs::read_to_string(&path) {
                Ok(text) => return Ok(KernelSource { path, text, function: function.to_owned() }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    looked.push(path.display().to_string());
                }
                Err(error) => return Err(DesignError::Unreadable { path, error }),
            }
        }
    }
    Err(DesignError::NoSource {
        config: design.name(),
        line: kernel.line,
        kernel: kernel.name.clone(),
        looked: looked.join(", "),
    })
}

/// The folders in which a kernel's source has its headers.
pub(crate) fn source_folders(design: &Design, source: &Path) -> [PathBuf; 3] {
    let folder = design.file.parent().unwrap_or(Path::new(""));
    [source.parent().unwrap_or(folder), folder, &folder.join("include")].map(Path::to_owned)
}

/// Checks by the compiler, on its line, that an array of streams has as many as the design.
fn check_of_length(design: &Design, found: &KernelFound<'_>, parameter: &KernelParameter) -> Option<String> {
    let is_end = |end: &StreamEnd| end.kernel == found.kernel.name && end.parameter == parameter.name;
    let stream = design.streams.iter().find(|own| is_end(&own.from) || is_end(&own.to))?;
    let (name, count, length) = (&parameter.name, stream.count?, parameter.length.as_deref()?);
    let line = source::line(parameter.line, &found.source.path.display().to_string());
    Some(format!(
        "{line}static_assert(({length}) == {count}, \"{name} has other than the {count} streams that \
         `count` of {} in config.yaml says: make them equal\");\n",
        stream.name
    ))
}

/// A kernel's source, by which name the host finds it, and what its parameters are called.
fn entry(design: &Design, found: &KernelFound<'_>) -> String {
    let KernelSource { path, text, function } = &found.source;
    let translated = source::translate(text, &path.display().to_string());
    let names: String = found.names().iter().map(|name| format!(", \"{name}\"")).collect();
    let parameters = found.parameters.iter().flatten();
    let lengths: String = parameters.filter_map(|own| check_of_length(design, found, own)).collect();
    format!(
        "{translated}\n{lengths}#include \"weft_apeiron/kernel_entry.h\"\n\
         WEFT_APEIRON_KERNEL({function}{names})\n"
    )
}

/// The C++ sources of a folder, by name; none if it is not there.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cpp"))
        .collect();
    found.sort();
    found
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::LATENCY;

    fn toolchain() -> Toolchain {
        let options = vec!["-O0".into()];
        Toolchain { compiler: "c++".into(), options, library: "/lib/weft/libweft.so".into(), payload: 4096 }
    }

    /// Catches replicas that share an object, hosts that are not built, and paths that only hold here.
    #[test]
    fn every_kernel_and_host_has_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for inner in ["hw_hls", "host"] {
            std::fs::create_dir(at(inner)).unwrap();
        }
        let kernel = "#pragma HLS pipeline II=2\nvoid krnl_sr(int n, hls::stream<int> &there) {}\n";
        std::fs::write(at("hw_hls/krnl_sr.cpp"), kernel).unwrap();
        std::fs::write(at("host/latency_test.cpp"), "").unwrap();
        let stream = "streams: [{name: s, from: krnl_sr_1.there, to: krnl_sr_2.there, depth: 5}]";
        let design = Design::of_text(&at("config.yaml"), &format!("{LATENCY}{stream}\n")).unwrap();
        let plan = plan(&design, &toolchain(), &at("out/latency.xclbin")).unwrap();
        let made: Vec<_> =
            plan.steps.iter().map(|step| step.makes.strip_prefix(at("out")).unwrap()).collect();
        assert_eq!(
            made,
            ["latency.xclbin.d/krnl_sr_1.so", "latency.xclbin.d/krnl_sr_2.so", "latency_test"].map(Path::new)
        );
        for word in ["-DN_OUTPUT_CHANNELS=3", "-fvisibility=hidden", "-O0"] {
            assert!(plan.steps[1].words.contains(&word.into()), "{word}");
        }
        assert_eq!(
            plan.description.1,
            "weft-apeiron 2\nfrequency 100\npayload 4096\nswitch TextaRossa_switch_1\n\
             kernel krnl_sr_1 port 0 inputs 4 outputs 4 depth 256 cycles 1 \
             code latency.xclbin.d/krnl_sr_1.so\n\
             kernel krnl_sr_2 port 1 inputs 4 outputs 3 depth 256 cycles 1 \
             code latency.xclbin.d/krnl_sr_2.so\n\
             stream s from krnl_sr_1 there to krnl_sr_2 there depth 5 count 0\n"
        );
        let generated = plan.files.iter().find(|(path, _)| path.ends_with("krnl_sr_2.cpp")).unwrap();
        assert!(
            generated.1.contains("begin_iteration(2,")
                && generated.1.contains("WEFT_APEIRON_KERNEL(krnl_sr, \"n\", \"there\")")
        );
    }

    /// Catches a kernel without a source whose mend is not told.
    #[test]
    fn a_kernel_without_a_source_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let design = Design::of_text(&folder.path().join("config.yaml"), LATENCY).unwrap();
        let error = plan(&design, &toolchain(), Path::new("out")).unwrap_err().to_string();
        assert!(error.contains("config.yaml:2: kernel krnl_sr_1 has no source"), "{error}");
        assert!(error.contains("hw_hls/krnl_sr.cpp"), "{error}");
    }
}

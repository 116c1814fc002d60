//! Streams between kernels, held against the parameters of their functions.

use crate::build::{KernelSource, find_source};
use crate::config::{Design, DesignKernel};
use crate::error::{DesignError, Mistake};
use crate::prototype::{KernelParameter, parameters};
use crate::streams::StreamEnd;

/// A kernel with the parameters of its function.
pub(crate) struct KernelFound<'d> {
    pub kernel: &'d DesignKernel,
    pub source: KernelSource,
    /// `None`: the function is not defined in the source.
    pub parameters: Option<Vec<KernelParameter>>,
}

impl<'d> KernelFound<'d> {
    pub fn of(design: &Design, kernel: &'d DesignKernel) -> Result<KernelFound<'d>, DesignError> {
        let source = find_source(design, kernel)?;
        let parameters = parameters(&source.text, &source.function);
        Ok(KernelFound { kernel, source, parameters })
    }

    /// Names of the parameters, in order.
    pub fn names(&self) -> Vec<&str> {
        self.parameters.iter().flatten().map(|parameter| parameter.name.as_str()).collect()
    }

    /// A mistake in an end of a stream of this kernel, and its mend.
    fn misfit(&self, end: &StreamEnd) -> Option<(String, String)> {
        let StreamEnd { kernel, parameter, .. } = end;
        let source = self.source.path.display();
        let Some(parameters) = &self.parameters else {
            let function = &self.source.function;
            let what = format!("{source} does not define the function {function}, of which {end} is a part");
            return Some((what, "define it there, under its name".to_owned()));
        };
        match parameters.iter().find(|own| own.name == *parameter) {
            None => {
                let what = format!("kernel {kernel} has no parameter {parameter} in {source}");
                Some((what, format!("it has {}", self.names().join(", "))))
            }
            Some(own) if !own.is_reference => {
                let what = format!("{end} is no stream in {source}:{}", own.line);
                Some((what, format!("declare it as hls::stream<TYPE> &{parameter}")))
            }
            Some(_) => None,
        }
    }
}

/// Checks that every stream joins parameters that are there, and that every parameter that is a stream is
/// joined. Kernels without a source are left out.
///
/// # Errors
/// All mistakes, with their lines.
pub fn check(design: &Design) -> Result<(), DesignError> {
    let found: Vec<_> =
        design.kernels.iter().filter_map(|kernel| KernelFound::of(design, kernel).ok()).collect();
    check_found(design, &found)
}

pub(crate) fn check_found(design: &Design, found: &[KernelFound<'_>]) -> Result<(), DesignError> {
    let mut mistakes = Vec::new();
    for end in design.streams.iter().flat_map(|stream| [&stream.from, &stream.to]) {
        let misfit = found.iter().find(|own| own.kernel.name == end.kernel).and_then(|own| own.misfit(end));
        mistakes.extend(misfit.map(|(what, mend)| Mistake {
            file: design.name(),
            line: end.line,
            what,
            mend,
        }));
    }
    for own in found {
        let name = &own.kernel.name;
        let is_joined = |parameter: &KernelParameter| {
            let ends = design.streams.iter().flat_map(|stream| [&stream.from, &stream.to]);
            ends.into_iter().any(|end| end.kernel == *name && end.parameter == parameter.name)
        };
        let open = own.parameters.iter().flatten().filter(|own| own.is_reference && !is_joined(own));
        mistakes.extend(open.map(|parameter| Mistake {
            file: own.source.path.display().to_string(),
            line: parameter.line,
            what: format!("nothing is joined to the stream {name}.{}", parameter.name),
            mend: format!(
                "add one to `streams` of {}: name, and {name}.{} as its `from` or its `to`",
                design.name(),
                parameter.name
            ),
        }));
    }
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(DesignError::Mistakes(mistakes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
kernels:
  - {name: front, input_channels: 1, output_channels: 1, switch_port: 0}
  - {name: back, input_channels: 1, output_channels: 1, switch_port: 1}
config: {freq: 100, links: 2}
streams:
  - {name: words, from: front.out, to: back.in}
";

    /// Catches streams to parameters that are not there or are none, and parameters that nothing joins.
    #[test]
    fn streams_join_parameters_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let told = |front: &str, back: &str| {
            std::fs::write(folder.path().join("front.cpp"), front).unwrap();
            std::fs::write(folder.path().join("back.cpp"), back).unwrap();
            let design = Design::of_text(&folder.path().join("config.yaml"), CONFIG).unwrap();
            check(&design).map_err(|error| error.to_string())
        };
        let (front, back) = ("void front(hls::stream<int> &out) {}", "void back(hls::stream<int> &in) {}");
        assert_eq!(told(front, back), Ok(()));
        for (front, back, expected) in [
            (
                "void front(hls::stream<int> &to) {}",
                back,
                "config.yaml:6: kernel front has no parameter out in",
            ),
            (
                "void front(hls::stream<int> &to) {}",
                back,
                "front.cpp:1: nothing is joined to the stream front.to; add",
            ),
            (front, "void\nback(int *in) {}", "config.yaml:6: back.in is no stream in"),
            (front, "MACRO(back)", "back.cpp does not define the function back"),
        ] {
            let error = told(front, back).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}

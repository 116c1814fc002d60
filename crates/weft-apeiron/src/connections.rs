//! Streams between kernels, held against the parameters of their functions.

use crate::build::{KernelSource, find_source, source_folders};
use crate::config::{Design, DesignKernel};
use crate::error::{DesignError, Mistake};
use crate::prototype::{KernelParameter, ParameterKind, fields, parameters};
use crate::source::pragmas_without_effect;
use crate::streams::{DesignStream, StreamEnd};

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

    /// A mistake in an end of this stream at this kernel, and its mend.
    fn misfit(&self, end: &StreamEnd, stream: &DesignStream) -> Option<(String, String)> {
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
            Some(own) => match (own.kind, stream.count) {
                (ParameterKind::Stream, None) | (ParameterKind::StreamArray, Some(_)) => None,
                (ParameterKind::Stream, Some(count)) => {
                    let what =
                        format!("{end} is one stream in {source}:{}, and `count` is {count}", own.line);
                    Some((what, format!("declare it as hls::stream<TYPE> {parameter}[{count}]")))
                }
                (ParameterKind::StreamArray, None) => {
                    let what = format!("{end} is an array of streams in {source}:{}", own.line);
                    Some((what, "write `count:`, their number, beside it".to_owned()))
                }
                (ParameterKind::Other, _) => {
                    let what = format!("{end} is no stream in {source}:{}", own.line);
                    Some((what, format!("declare it as hls::stream<TYPE> &{parameter}")))
                }
            },
        }
    }
}

/// The mistake in a stream whose ends have words of one name and other fields: they would be read as others.
fn unlike(design: &Design, stream: &DesignStream, found: &[KernelFound<'_>]) -> Option<Mistake> {
    let word = |end: &StreamEnd| {
        let kernel = found.iter().find(|own| own.kernel.name == end.kernel)?;
        let parameter = kernel.parameters.iter().flatten().find(|own| own.name == end.parameter)?;
        let word = parameter.word.clone()?;
        Some((fields(&kernel.source.text, &word)?, word, kernel.source.path.display()))
    };
    let ((from, name, one), (to, other, two)) = (word(&stream.from)?, word(&stream.to)?);
    (name == other && from != to).then(|| Mistake {
        file: design.name(),
        line: stream.line,
        what: format!("the words of stream {} are {name} at both ends, with other fields", stream.name),
        mend: format!("define {name} in one header that {one} and {two} include"),
    })
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
    let ends = design.streams.iter().flat_map(|stream| [(&stream.from, stream), (&stream.to, stream)]);
    for (end, stream) in ends {
        let kernel = found.iter().find(|own| own.kernel.name == end.kernel);
        let misfit = kernel.and_then(|own| own.misfit(end, stream));
        mistakes.extend(misfit.map(|(what, mend)| Mistake {
            file: design.name(),
            line: end.line,
            what,
            mend,
        }));
    }
    mistakes.extend(design.streams.iter().filter_map(|stream| unlike(design, stream, found)));
    for own in found {
        let source = &own.source;
        let told = pragmas_without_effect(&source.path, &source.text, &source_folders(design, &source.path));
        // Replicas have one source.
        told.into_iter().for_each(|own| {
            if !mistakes.contains(&own) {
                mistakes.push(own);
            }
        });
        let name = &own.kernel.name;
        let is_joined = |parameter: &KernelParameter| {
            let ends = design.streams.iter().flat_map(|stream| [&stream.from, &stream.to]);
            ends.into_iter().any(|end| end.kernel == *name && end.parameter == parameter.name)
        };
        let open =
            own.parameters.iter().flatten().filter(|own| own.kind != ParameterKind::Other && !is_joined(own));
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
            (
                "void front(hls::stream<int> out[2]) {}",
                back,
                "config.yaml:6: front.out is an array of streams in",
            ),
            (front, "MACRO(back)", "back.cpp does not define the function back"),
        ] {
            let error = told(front, back).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        // One name, and other fields.
        let pair = |fields: &str, end: &str| format!("struct pair_t {{ {fields} }};\nvoid {end}) {{}}");
        let (from, to) = ("front(hls::stream<pair_t> &out", "back(hls::stream<pair_t> &in");
        assert_eq!(told(&pair("int a;", from), &pair("int  a; // a", to).replace("// a", "/* a */")), Ok(()));
        let error = told(&pair("ap_uint<7> a;", from), &pair("ap_uint<9> a;", to)).unwrap_err();
        assert!(
            error.contains("config.yaml:6: the words of stream words are pair_t at both ends"),
            "{error}"
        );

        let text = CONFIG.replace("to: back.in", "to: back.in, count: 2");
        let design = Design::of_text(&folder.path().join("config.yaml"), &text).unwrap();
        std::fs::write(folder.path().join("front.cpp"), "void front(hls::stream<int> out[2]) {}").unwrap();
        std::fs::write(folder.path().join("back.cpp"), back).unwrap();
        let error = check(&design).unwrap_err().to_string();
        assert!(error.contains("config.yaml:6: back.in is one stream in "), "{error}");
        assert!(error.contains("`count` is 2; declare it as hls::stream<TYPE> in[2]"), "{error}");
    }
}

//! The costs of messaging in a benchmark, and the choice of its algorithm.

use super::{Benchmark, Layer};
use crate::experiment::ExperimentError;
use weft_assembly as assembly;
use weft_machine::Machine;
use weft_msg::{Algorithm, OneSidedPath, Protocol, RailsBy, Wildcards, collective_name};
use weft_trace::op::Collective;

/// The word that stands for every algorithm of software.
const ALL: &str = "all";

/// The costs of messaging at a layer.
pub(super) fn protocol(machine: &Machine, layer: Layer) -> Result<Protocol, ExperimentError> {
    let mpi = assembly::protocol(machine, Wildcards::Free).map_err(ExperimentError::input)?;
    Ok(match layer {
        Layer::Mpi => mpi,
        // A send is over when the interface has taken it: nobody copies. Of whatever size, it goes by
        // the primitive that suits it, and the memory of others is the interfaces' affair alone.
        Layer::Nic => Protocol {
            eager_buffered: false,
            one_sided: OneSidedPath::Native,
            atomics: OneSidedPath::Native,
            rails: mpi.rails,
            rails_by: RailsBy::Interface,
            stripe_above: mpi.stripe_above,
            algorithms: mpi.algorithms,
            ..Protocol::zero()
        },
    })
}

/// The algorithms to run with: one entry of `None` where the machine's table decides.
pub(super) fn algorithms(
    benchmark: Benchmark,
    wanted: Option<&str>,
) -> Result<Vec<Option<Algorithm>>, ExperimentError> {
    let Some(name) = wanted else { return Ok(vec![None]) };
    let Some(collective) = benchmark.collective() else {
        return Err(ExperimentError::input(format!(
            "--algorithm {name}: {benchmark} is no collective; leave --algorithm out"
        )));
    };
    let able = || Algorithm::performing(collective);
    if name == ALL {
        // Hardware has limits, beyond which there would be no rows at all: it is run by its name.
        return Ok(able().filter(|able| !able.is_by_hardware()).map(Some).collect());
    }
    match able().find(|algorithm| algorithm.name() == name) {
        Some(algorithm) => Ok(vec![Some(algorithm)]),
        None => Err(ExperimentError::input(unknown(name, collective, able()))),
    }
}

fn unknown(name: &str, collective: Collective, able: impl Iterator<Item = Algorithm>) -> String {
    let names: Vec<&str> = able.map(Algorithm::name).collect();
    format!(
        "--algorithm {name}: {} has no such algorithm; there are {} and {ALL}",
        collective_name(collective),
        names.join(", ")
    )
}

/// The protocol with `algorithm` for every `collective`, whatever the machine's table says.
pub(super) fn forced(
    protocol: Protocol,
    collective: Collective,
    algorithm: Algorithm,
) -> Result<Protocol, ExperimentError> {
    let algorithms = protocol.algorithms.forced(collective, algorithm).map_err(ExperimentError::input)?;
    Ok(Protocol { algorithms, ..protocol })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_are_those_of_the_collective() {
        assert_eq!(algorithms(Benchmark::Bcast, None).unwrap(), [None]);
        let one = algorithms(Benchmark::Allreduce, Some("ring")).unwrap();
        assert_eq!(one, [Some(Algorithm::Ring)]);
        let all = algorithms(Benchmark::Bcast, Some("all")).unwrap();
        assert!(all.contains(&Some(Algorithm::Binomial)) && !all.contains(&Some(Algorithm::Bruck)));
        let error = algorithms(Benchmark::Bcast, Some("bruck")).unwrap_err().to_string();
        assert!(error.contains("binomial") && error.contains("all"), "{error}");
        let error = algorithms(Benchmark::Latency, Some("ring")).unwrap_err().to_string();
        assert!(error.contains("latency is no collective"), "{error}");
    }
}

#!/usr/bin/env python3
"""A study over the workers of Dask: here those of a cluster on this computer.

python examples/sweep_dask.py [DIR]

On a cluster, another class takes the place of LocalCluster, such as SLURMCluster of dask-jobqueue.
Needs weft with its extra `dask`.
"""

import sys

import weft
from dask.distributed import Client, LocalCluster

STUDY = {
    "command": "traffic",
    "seeds": 3,
    "fixed": {"machine": "bxi3-fattree", "pattern": "uniform", "time": "10us", "set": {"topology": {"k": 4}}},
    "vary": {"load": [0.2, 0.4, 0.6, 0.8]},
}


def main() -> None:
    """Runs it, and prints latencies over loads."""
    output = sys.argv[1] if len(sys.argv) > 1 else None
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        study = weft.sweep(STUDY, executor=client.get_executor(), output=output)
    columns = ["load", "seeds", "latency_mean_ns", "latency_mean_ns.low", "latency_mean_ns.high"]
    print(study.intervals.select(columns).collect())


# Dask starts its workers as processes that load this file again.
if __name__ == "__main__":
    main()

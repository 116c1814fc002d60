// A balanced random network (N. Brunel, J. Comput. Neurosci. 8 (2000) 183) over NEST's kernel, without Python:
// `nest_network NEURONS SYNAPSES DELAY TIME`, with delay and time in ms, and the simulation between
// MPI_Pcontrol(1) and (0). Every rank prints the spikes of its neurons to FILE.RANK.

#include <mpi.h>

#include <cstdlib>
#include <iostream>

#include "kernel_manager.h"
#include "logging_manager.h"
#include "nest.h"
#include "node_collection.h"

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  const long neurons = atol(argv[1]), synapses = atol(argv[2]);
  const double delay = atof(argv[3]), time = atof(argv[4]);
  int count = 1;
  nest::init_nest(&count, &argv);
  const long excitatory = neurons * 4 / 5;
  auto first = nest::create("iaf_psc_alpha", excitatory);
  auto second = nest::create("iaf_psc_alpha", neurons - excitatory);
  auto noise = nest::create("poisson_generator", 1);
  Dictionary rate;
  rate["rate"] = 15000.0;
  std::vector<Dictionary> rates(1, rate);
  nest::set_nc_status(noise, rates);
  auto synapse = [delay](double weight) {
    Dictionary values;
    values["synapse_model"] = std::string("static_synapse");
    values["weight"] = weight;
    values["delay"] = delay;
    return std::vector<Dictionary>(1, values);
  };
  auto random = [](long indegree) {
    Dictionary rule;
    rule["rule"] = std::string("fixed_indegree");
    rule["indegree"] = indegree;
    return rule;
  };
  Dictionary all;
  all["rule"] = std::string("all_to_all");
  for (auto targets : {first, second}) {
    nest::connect(first, targets, random(synapses * 4 / 5), synapse(20.0));
    nest::connect(second, targets, random(synapses / 5), synapse(-100.0));
    nest::connect(noise, targets, all, synapse(20.0));
  }
  nest::prepare();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  nest::run(time);
  MPI_Pcontrol(0);
  nest::cleanup();
  const auto status = nest::get_kernel_status();
  std::cerr << "spikes " << status.get<long>("local_spike_counter") << "\n";
  MPI_Finalize();
  return 0;
}

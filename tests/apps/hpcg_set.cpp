// One set of HPCG's conjugate gradients: `hpcg_set NX NY NZ ITERATIONS`, between MPI_Pcontrol(1) and (0).
// HPCG's own program decides by its speed how many sets there are; this one is linked with HPCG's sources.

#include <mpi.h>

#include <cstdlib>
#include <fstream>

#include "CG.hpp"
#include "CGData.hpp"
#include "GenerateCoarseProblem.hpp"
#include "GenerateGeometry.hpp"
#include "GenerateProblem.hpp"
#include "Geometry.hpp"
#include "OptimizeProblem.hpp"
#include "SetupHalo.hpp"
#include "SparseMatrix.hpp"
#include "Vector.hpp"

std::ofstream HPCG_fout("/dev/null");

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  int size, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Geometry *geometry = new Geometry;
  GenerateGeometry(size, rank, 1, 0, 0, 0, atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), 0, 0, 0, geometry);
  SparseMatrix matrix;
  InitializeSparseMatrix(matrix, geometry);
  Vector b, x, exact;
  GenerateProblem(matrix, &b, &x, &exact);
  SetupHalo(matrix);
  SparseMatrix *level = &matrix;
  for (int coarser = 1; coarser < 4; coarser++) {
    GenerateCoarseProblem(*level);
    level = level->Ac;
  }
  CGData data;
  InitializeSparseCGData(matrix, data);
  OptimizeProblem(matrix, data, b, x, exact);
  ZeroVector(x);
  int iterations = 0;
  double residual = 0, first = 0, times[9] = {};
  MPI_Pcontrol(1);
  CG(matrix, data, b, x, atoi(argv[4]), 0.0, iterations, residual, first, times, true);
  MPI_Pcontrol(0);
  MPI_Finalize();
  return iterations == atoi(argv[4]) ? 0 : 1;
}

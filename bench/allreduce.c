/* The work of osu_allreduce -i 20 -x 2 over its default sizes, 4 B to 1 MB: each iteration is an allreduce of floats
   and a barrier. Usage: allreduce [ITERATIONS [WARM-UP]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { SMALLEST = 4, LARGEST = 1 << 20 };
    int iterations = argc > 1 ? atoi(argv[1]) : 20, warm_up = argc > 2 ? atoi(argv[2]) : 2, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *mine = calloc(LARGEST, 1), *sum = calloc(LARGEST, 1);
    if (!mine || !sum)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int bytes = SMALLEST; bytes <= LARGEST; bytes *= 2) {
        double spent = 0;
        for (int iteration = -warm_up; iteration < iterations; iteration++) {
            double began = MPI_Wtime();
            MPI_Allreduce(mine, sum, bytes / (int)sizeof *mine, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (iteration >= 0)
                spent += MPI_Wtime() - began;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank == 0)
            printf("%-8d %12.2f us\n", bytes, spent / iterations * 1e6);
    }
    free(mine);
    free(sum);
    MPI_Finalize();
    return 0;
}

/* Round trips of 8 bytes between ranks 0 and 1; the other ranks only start and end. Usage: ping_pong ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    long value = 0;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double began = MPI_Wtime();
    for (long round = 0; round < rounds && rank < 2; round++) {
        if (rank == 0)
            MPI_Send(&value, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_LONG, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0 && rounds > 0)
        printf("one way: %.4f us of virtual time\n", (MPI_Wtime() - began) / (2.0 * (double)rounds) * 1e6);
    MPI_Finalize();
    return 0;
}

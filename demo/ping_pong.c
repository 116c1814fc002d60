/* An MPI program as anybody writes it: round trips between two ranks, and a sum over all. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 10 };

static char buffer[1 << 20];

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int last = ranks - 1;
    for (int bytes = 1; bytes <= (int)sizeof buffer && ranks > 1; bytes *= 16) {
        double began = MPI_Wtime();
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 0) {
                MPI_Send(buffer, bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD);
                MPI_Recv(buffer, bytes, MPI_CHAR, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank == last) {
                MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
            }
        }
        if (rank == 0)
            printf("ranks 0 and %d, %7d bytes: %9.3f us one way\n", last, bytes,
                   (MPI_Wtime() - began) / (2 * ROUNDS) * 1e6);
    }
    double began = MPI_Wtime();
    int own = rank, sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("allreduce over %d ranks: sum %d after %.3f us\n", ranks, sum, (MPI_Wtime() - began) * 1e6);
    MPI_Finalize();
    return 0;
}

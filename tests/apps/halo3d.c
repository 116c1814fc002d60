/* The kernel halo3d as a program: `halo3d X Y Z N STENCIL STEPS` on X x Y x Z ranks with N^3 points each. A step is an
 * exchange of the points at the surface with the neighbours of a stencil of 7 or 27 points, between MPI_Pcontrol(1) and
 * MPI_Pcontrol(0). It computes nothing. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 26 };

int main(int argc, char **argv)
{
    int rank, ranks, extents[3], place[3], neighbours[MOST], tags[2][MOST], lengths[MOST], count = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 7)
        for (int dimension = 0; dimension < 3; dimension++)
            extents[dimension] = atoi(argv[1 + dimension]);
    if (argc != 7 || extents[0] * extents[1] * extents[2] != ranks) {
        fprintf(stderr, "usage: halo3d X Y Z N STENCIL STEPS, on X x Y x Z ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int points = atoi(argv[4]), stencil = atoi(argv[5]), steps = atoi(argv[6]);
    place[0] = rank % extents[0];
    place[1] = rank / extents[0] % extents[1];
    place[2] = rank / extents[0] / extents[1];
    double *sent[MOST], *received[MOST];
    for (int direction = 0; direction < 27; direction++) {
        int way[3] = {direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1}, there = 0, across = 0, size = 1;
        int is_inside = 1;
        for (int dimension = 2; dimension >= 0; dimension--) {
            int to = place[dimension] + way[dimension];
            is_inside &= to >= 0 && to < extents[dimension];
            there = there * extents[dimension] + to;
            across += way[dimension] != 0;
            size *= way[dimension] ? 1 : points;
        }
        if (across == 0 || !is_inside || (stencil == 7 && across > 1))
            continue;
        neighbours[count] = there;
        tags[0][count] = direction;
        tags[1][count] = 26 - direction;
        lengths[count] = size;
        sent[count] = calloc((size_t)size, sizeof(double));
        received[count++] = calloc((size_t)size, sizeof(double));
    }
    MPI_Request requests[2 * MOST];
    MPI_Pcontrol(1);
    for (int step = 0; step < steps; step++) {
        for (int index = 0; index < count; index++)
            MPI_Irecv(received[index], lengths[index], MPI_DOUBLE, neighbours[index], tags[1][index], MPI_COMM_WORLD,
                      &requests[index]);
        for (int index = 0; index < count; index++)
            MPI_Isend(sent[index], lengths[index], MPI_DOUBLE, neighbours[index], tags[0][index], MPI_COMM_WORLD,
                      &requests[count + index]);
        MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Pcontrol(0);
    for (int index = 0; index < count; index++) {
        free(sent[index]);
        free(received[index]);
    }
    MPI_Finalize();
    return 0;
}

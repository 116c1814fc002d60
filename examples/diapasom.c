/* DIAPASOM's algorithm (RED-SEA D1.4, section 7.2): a self-organizing map that is trained in batches, with an update
 * after each batch. The program is ours; the document describes the algorithm and prints none of its code.
 *
 *     mpicc -O2 -o diapasom examples/diapasom.c -lm
 *     cc -O2 -DSERIAL -o diapasom-serial examples/diapasom.c -lm
 *     weft run -m exanest -n 4 --ppn 4 -- ./diapasom 40000 10 map
 *
 * Arguments: records, batches, and the file that takes the map. Records are numbers drawn by their place, so that no
 * file of them is read. Ranks share the records of a batch; each finds the nearest node of each of its records and
 * adds it up there. Two sums over all ranks later, every rank moves the nodes in the same way. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SERIAL
#include <mpi.h>
#endif

enum { SIDE = 16, NODES = SIDE * SIDE, FEATURES = 16 };

static double map[NODES][FEATURES];
static double sums[NODES][FEATURES], counts[NODES];

/* A number from 0 to 1 that depends on nothing but the place (splitmix64). */
static double drawn(uint64_t place)
{
    uint64_t bits = (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((bits ^ bits >> 31) >> 11) / 9007199254740992.0;
}

static int nearest_node(const double *record)
{
    int nearest = 0;
    double least = INFINITY;
    for (int node = 0; node < NODES; node++) {
        double distance = 0;
        for (int feature = 0; feature < FEATURES; feature++) {
            double apart = record[feature] - map[node][feature];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            nearest = node;
        }
    }
    return nearest;
}

static void add_up(uint64_t first, uint64_t end)
{
    memset(sums, 0, sizeof sums);
    memset(counts, 0, sizeof counts);
    for (uint64_t place = first; place < end; place++) {
        double record[FEATURES];
        for (int feature = 0; feature < FEATURES; feature++)
            record[feature] = drawn(place * FEATURES + (uint64_t)feature);
        int node = nearest_node(record);
        for (int feature = 0; feature < FEATURES; feature++)
            sums[node][feature] += record[feature];
        counts[node] += 1;
    }
}

/* Each node becomes the mean of all records, weighted by the distance of their nodes from it on the map. */
static void update(double radius)
{
    for (int node = 0; node < NODES; node++) {
        double weighted[FEATURES] = {0}, weights = 0;
        for (int other = 0; other < NODES; other++) {
            int x = node % SIDE - other % SIDE, y = node / SIDE - other / SIDE;
            double weight = exp(-(x * x + y * y) / (2 * radius * radius));
            for (int feature = 0; feature < FEATURES; feature++)
                weighted[feature] += weight * sums[other][feature];
            weights += weight * counts[other];
        }
        for (int feature = 0; feature < FEATURES && weights > 0; feature++)
            map[node][feature] = weighted[feature] / weights;
    }
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 1;
#ifndef SERIAL
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    uint64_t records = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t batches = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    if (records == 0 || batches == 0 || batches > records) {
        if (rank == 0)
            fprintf(stderr, "usage: diapasom RECORDS BATCHES MAP, with no more batches than records\n");
#ifndef SERIAL
        MPI_Finalize();
#endif
        return 2;
    }
    for (int node = 0; node < NODES; node++)
        for (int feature = 0; feature < FEATURES; feature++)
            map[node][feature] = drawn(UINT64_MAX / 2 + (uint64_t)(node * FEATURES + feature));
#ifndef SERIAL
    MPI_Pcontrol(1);
#endif
    for (uint64_t batch = 0; batch < batches; batch++) {
        uint64_t first = records * batch / batches, size = records * (batch + 1) / batches - first;
        add_up(first + size * (uint64_t)rank / (uint64_t)ranks, first + size * (uint64_t)(rank + 1) / (uint64_t)ranks);
#ifndef SERIAL
        MPI_Allreduce(MPI_IN_PLACE, sums, NODES * FEATURES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, counts, NODES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
        update(SIDE / 2.0 * pow(1.0 / SIDE, (double)batch / (double)batches) + 0.5);
    }
#ifndef SERIAL
    MPI_Pcontrol(0);
#endif
    FILE *file = rank == 0 ? fopen(argv[3], "w") : NULL;
    int is_written = rank != 0 || file != NULL;
    for (int node = 0; file != NULL && node < NODES; node++)
        for (int feature = 0; feature < FEATURES; feature++)
            fprintf(file, "%.12e%c", map[node][feature], feature + 1 < FEATURES ? ' ' : '\n');
    if (file != NULL && fclose(file) != 0)
        is_written = 0;
    if (!is_written)
        perror(argv[3]);
#ifndef SERIAL
    MPI_Finalize();
#endif
    return is_written ? 0 : 1;
}

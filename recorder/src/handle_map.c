#include "handle_map.h"

#include <stdio.h>
#include <stdlib.h>

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fputs("weft record: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *reallocate(void *old, size_t count, size_t size)
{
    void *memory = count <= SIZE_MAX / size ? realloc(old, count * size) : NULL;
    if (!memory) {
        fputs("weft record: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static size_t home(const struct handle_map *map, uintptr_t key)
{
    uint64_t mixed = (uint64_t)key * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio */
    return (size_t)(mixed >> 32) & (map->capacity - 1);
}

uintptr_t *handle_map_find(struct handle_map *map, uintptr_t key)
{
    if (map->capacity == 0)
        return NULL;
    for (size_t at = home(map, key);; at = (at + 1) & (map->capacity - 1)) {
        if (map->slots[at].key == key)
            return &map->slots[at].value;
        if (map->slots[at].key == 0)
            return NULL;
    }
}

static void place(struct handle_map *map, uintptr_t key, uintptr_t value)
{
    size_t at = home(map, key);
    while (map->slots[at].key != 0)
        at = (at + 1) & (map->capacity - 1);
    map->slots[at] = (struct handle_slot){key, value};
}

void handle_map_insert(struct handle_map *map, uintptr_t key, uintptr_t value)
{
    uintptr_t *found = handle_map_find(map, key);
    if (found) {
        *found = value;
        return;
    }
    if (2 * (map->used + 1) > map->capacity) {
        struct handle_map larger = {.capacity = map->capacity ? 2 * map->capacity : 64, .used = map->used};
        larger.slots = allocate(larger.capacity, sizeof *larger.slots);
        for (size_t i = 0; i < map->capacity; i++)
            if (map->slots[i].key != 0)
                place(&larger, map->slots[i].key, map->slots[i].value);
        free(map->slots);
        *map = larger;
    }
    place(map, key, value);
    map->used++;
}

void handle_map_remove(struct handle_map *map, uintptr_t key)
{
    uintptr_t *found = handle_map_find(map, key);
    if (!found)
        return;
    size_t mask = map->capacity - 1;
    size_t hole = (size_t)((struct handle_slot *)((char *)found - offsetof(struct handle_slot, value)) - map->slots);
    /* Close the gap, so that no probe sequence breaks (Knuth, TAOCP 3, 6.4, algorithm R). */
    for (size_t at = (hole + 1) & mask; map->slots[at].key != 0; at = (at + 1) & mask) {
        size_t wanted = home(map, map->slots[at].key);
        if (((at - wanted) & mask) >= ((at - hole) & mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole] = (struct handle_slot){0, 0};
    map->used--;
}

/* From an MPI handle to what the recorder knows of it: open addressing, no allocation but when it grows. */
#ifndef WEFT_RECORDER_HANDLE_MAP_H
#define WEFT_RECORDER_HANDLE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Handles are integers in MPICH and pointers elsewhere; 0 is never a live one. */
#define HANDLE_KEY(handle) ((uintptr_t)(handle))

struct handle_map {
    struct handle_slot {
        uintptr_t key;
        uintptr_t value;
    } *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
};

/* The value slot of `key`, or NULL. Valid until the next insertion or removal. */
uintptr_t *handle_map_find(struct handle_map *map, uintptr_t key);

/* Sets `key` to `value`. Without memory for it, the program ends with a message. */
void handle_map_insert(struct handle_map *map, uintptr_t key, uintptr_t value);

/* Removes `key`; nothing if it is not there. */
void handle_map_remove(struct handle_map *map, uintptr_t key);

/* calloc, realloc that end the program with a message when there is no memory. */
void *allocate(size_t count, size_t size);
void *reallocate(void *old, size_t count, size_t size);

#endif

/* Registered memory, written and read at once by process_vm_writev and process_vm_readv. */
#include "stand_in.h"

static struct region *find_region(struct member *member, uint64_t key)
{
    for (int i = 0; i < MOST_REGIONS; i++)
        if (member->regions[i].used && member->regions[i].key == key)
            return &member->regions[i];
    return NULL;
}

int weft_register(weft_rank *rank, void *base, size_t length, uint64_t access, uint64_t *key)
{
    struct member *member = &rank->job->members[rank->number];
    if (*key == UINT64_MAX)
        *key = rank->next_key++;
    else if (find_region(member, *key))
        return -EEXIST;
    for (int i = 0; i < MOST_REGIONS; i++)
        if (!member->regions[i].used) {
            member->regions[i] = (struct region){true, *key, (uintptr_t)base, length, access};
            return 0;
        }
    return -ENOMEM;
}

int weft_unregister(weft_rank *rank, uint64_t key)
{
    struct region *region = find_region(&rank->job->members[rank->number], key);
    if (!region)
        return -ENOENT;
    region->used = false;
    return 0;
}

static bool allowed(struct member *member, uint64_t key, uint64_t address, size_t length, uint64_t access)
{
    const struct region *region = find_region(member, key);
    return region && region->access & access && address >= region->base && length <= region->length &&
           address - region->base <= region->length - length;
}

static int transfer(weft_rank *rank, uint32_t peer, void *local, size_t length, uint64_t remote, bool writes)
{
    int process = rank->job->members[peer].process;
    for (size_t had = 0; had < length;) {
        struct iovec here = {(char *)local + had, length - had};
        struct iovec there = {(char *)(uintptr_t)remote + had, length - had};
        ssize_t part = writes ? process_vm_writev(process, &here, 1, &there, 1, 0)
                              : process_vm_readv(process, &here, 1, &there, 1, 0);
        if (part <= 0)
            return EFAULT;
        had += (size_t)part;
    }
    return 0;
}

int weft_write(weft_rank *rank, uint32_t to, const void *local, size_t length, uint64_t remote, uint64_t key,
               uint64_t data, uint64_t flags, void *context)
{
    if (to >= rank->count || !has_endpoints(flags))
        return -EINVAL;
    struct member *member = &rank->job->members[to];
    int error = allowed(member, key, remote, length, WEFT_ACCESS_WRITE) ? 0 : EACCES;
    if (!error)
        error = transfer(rank, to, (void *)(uintptr_t)local, length, remote, true);
    struct record record = {.kind = WRITTEN_WITH_DATA,
                            .source = rank->number,
                            .flags = flags,
                            .data = data,
                            .length = length};
    if (!error && flags & WEFT_DATA && !put(&member->inbox, &record, NULL, 0))
        return -EAGAIN;
    if (error || flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_WRITTEN, .error = error});
    return 0;
}

int weft_read(weft_rank *rank, uint32_t from, void *local, size_t length, uint64_t remote, uint64_t key,
              uint64_t flags, void *context)
{
    if (from >= rank->count)
        return -EINVAL;
    int error = allowed(&rank->job->members[from], key, remote, length, WEFT_ACCESS_READ) ? 0 : EACCES;
    if (!error)
        error = transfer(rank, from, local, length, remote, false);
    if (error || flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_READ, .error = error});
    return 0;
}

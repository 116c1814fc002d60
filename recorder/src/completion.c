/* Starting, completing, cancelling and freeing requests. A failed test becomes computation, a successful one a wait. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#include "functions.h"

/* Copies that a completing call works on, as MPI overwrites the program's handles: per thread, grown, never freed. */
static __thread struct {
    MPI_Request *handles;
    MPI_Status *statuses;
    uint32_t *numbers;
    int capacity;
} scratch;

static void reserve(int count)
{
    if (count <= scratch.capacity)
        return;
    size_t capacity = 2 * (size_t)count;
    scratch.handles = reallocate(scratch.handles, capacity, sizeof *scratch.handles);
    scratch.statuses = reallocate(scratch.statuses, capacity, sizeof *scratch.statuses);
    scratch.numbers = reallocate(scratch.numbers, capacity, sizeof *scratch.numbers);
    scratch.capacity = (int)capacity;
}

static void keep_handles(int count, const MPI_Request *handles)
{
    reserve(count);
    if (count > 0)
        memcpy(scratch.handles, handles, (size_t)count * sizeof *handles);
}

/* The status that MPI is to fill: the program's, or our own where it wants none. */
static MPI_Status *given_or(MPI_Status *given, MPI_Status *own)
{
    return given == MPI_STATUS_IGNORE ? own : given;
}

/* The same for several: our own only where a match or a cancellation has to be looked up. */
static MPI_Status *asked_for(MPI_Status *given)
{
    bool needed = requests.wildcards > 0 || requests.cancels > 0;
    return given == MPI_STATUSES_IGNORE && needed ? scratch.statuses : given;
}

/* Statuses to look at after a call with these; not filled where nothing has to be looked up. */
static const MPI_Status *found(const MPI_Status *statuses)
{
    return statuses == MPI_STATUSES_IGNORE ? scratch.statuses : statuses;
}

static void note_match(struct request *request, const MPI_Status *status)
{
    uint32_t source = world_rank(request->comm, status->MPI_SOURCE);
    uint32_t tag = (uint32_t)status->MPI_TAG;
    uint8_t match[MATCH_BYTES];
    for (int byte = 0; byte < 4; byte++) {
        match[byte] = (uint8_t)(source >> (8 * byte));
        match[4 + byte] = (uint8_t)(tag >> (8 * byte));
    }
    part_patch(request->match, match, sizeof match);
}

static void finish_dup(struct request *request)
{
    struct pending_dup *dup = request->dup;
    request->dup = NULL;
    /* Other threads may be in MPI while this one agrees on the new communicator. */
    recorder_unlock();
    PMPI_Wait(&dup->agreed, MPI_STATUS_IGNORE);
    communicator_adopted(*dup->handle, dup->id);
    recorder_lock();
    free(dup);
}

/* The request with this (former) handle has completed. Its number if a wait for it is to be recorded, otherwise 0. */
static uint32_t complete_request(MPI_Request handle, const MPI_Status *status)
{
    uint32_t number = request_find(handle);
    if (!number || !requests.all[number].active)
        return 0;
    struct request *request = &requests.all[number];
    bool waited = request->tag != RECORD_NONE;
    request->active = false;
    if (request->cancelled) {
        int cancelled = 0;
        PMPI_Test_cancelled(status, &cancelled);
        requests.cancels--;
        request->cancelled = false;
        if (cancelled) {
            uint8_t tag = request->tag == RECORD_ISEND ? RECORD_CANCELLED_SEND : RECORD_CANCELLED_RECEIVE;
            part_patch(request->record, &tag, 1);
            waited = false;
        }
    }
    if (request->wildcard) {
        requests.wildcards--;
        if (waited)
            note_match(request, status);
    }
    if (!request->persistent) {
        request_unlink(handle);
        if (request->dup)
            finish_dup(request);
        request_release(number);
    }
    return waited ? number : 0;
}

static void record_wait(uint32_t number)
{
    record_computation();
    uint8_t *at = part_begin(NUMBER_MAX);
    if (at)
        part_commit(RECORD_WAIT, put_number(at, number));
}

static void record_waitall(const uint32_t *numbers, int count)
{
    if (count == 1)
        record_wait(numbers[0]);
    if (count <= 1)
        return;
    record_computation();
    uint8_t *at = part_begin(((size_t)count + 1) * NUMBER_MAX);
    if (!at)
        return;
    at = put_number(at, (uint64_t)count);
    for (int i = 0; i < count; i++)
        at = put_number(at, numbers[i]);
    part_commit(RECORD_WAITALL, at);
}

/* Numbers of the active requests among the kept handles, into scratch.numbers. */
static int list_active(int count)
{
    static uint32_t marks;
    marks++;
    int listed = 0;
    for (int i = 0; i < count; i++) {
        uint32_t number = request_find(scratch.handles[i]);
        /* Requests that share a handle: each once. */
        while (number && requests.all[number].mark == marks)
            number = requests.all[number].next;
        if (!number || !requests.all[number].active || requests.all[number].tag == RECORD_NONE)
            continue;
        requests.all[number].mark = marks;
        scratch.numbers[listed++] = number;
    }
    return listed;
}

/* One of the kept handles has completed while the others, listed too, were waited for. */
static void record_waitany(const uint32_t *numbers, int count, uint32_t completed)
{
    if (count <= 1) {
        record_wait(completed);
        return;
    }
    int index = 0;
    while (index + 1 < count && numbers[index] != completed)
        index++;
    record_computation();
    uint8_t *at = part_begin(((size_t)count + 2) * NUMBER_MAX);
    if (!at)
        return;
    at = put_number(at, (uint64_t)count);
    for (int i = 0; i < count; i++)
        at = put_number(at, numbers[i]);
    part_commit(RECORD_WAITANY, put_number(at, (uint64_t)index));
}

/* All of the kept handles have completed; after an error, those that MPI has taken from the program. */
static void all_completed(int count, const MPI_Request *now, const MPI_Status *statuses, int result)
{
    int waited = 0;
    for (int i = 0; i < count; i++) {
        if (result != MPI_SUCCESS && now[i] != MPI_REQUEST_NULL)
            continue;
        uint32_t number = complete_request(scratch.handles[i], &statuses[i]);
        if (number)
            scratch.numbers[waited++] = number;
    }
    record_waitall(scratch.numbers, waited);
}

/* A call has found this one request complete. */
static void one_completed(MPI_Request handle, const MPI_Status *status)
{
    recorder_lock();
    uint32_t number = complete_request(handle, status);
    if (number)
        record_wait(number);
    recorder_unlock();
    recorder_leave();
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

int MPI_Start(MPI_Request *request)
{
    if (!recorder_enter(F_MPI_Start))
        return PMPI_Start(request);
    int result = PMPI_Start(request);
    recorder_lock();
    if (result == MPI_SUCCESS)
        request_started(*request);
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Startall(int count, MPI_Request handles[])
{
    if (!recorder_enter(F_MPI_Startall))
        return PMPI_Startall(count, handles);
    int result = PMPI_Startall(count, handles);
    recorder_lock();
    if (result == MPI_SUCCESS)
        for (int i = 0; i < count; i++)
            request_started(handles[i]);
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (!recorder_enter(F_MPI_Wait))
        return PMPI_Wait(request, status);
    MPI_Request handle = *request;
    MPI_Status own;
    status = given_or(status, &own);
    int result = PMPI_Wait(request, status);
    one_completed(handle, status);
    return result;
}

int MPI_Waitall(int count, MPI_Request handles[], MPI_Status statuses[])
{
    if (!recorder_enter(F_MPI_Waitall))
        return PMPI_Waitall(count, handles, statuses);
    keep_handles(count, handles);
    statuses = asked_for(statuses);
    int result = PMPI_Waitall(count, handles, statuses);
    recorder_lock();
    all_completed(count, handles, found(statuses), result);
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Waitany(int count, MPI_Request handles[], int *index, MPI_Status *status)
{
    if (!recorder_enter(F_MPI_Waitany))
        return PMPI_Waitany(count, handles, index, status);
    keep_handles(count, handles);
    MPI_Status own;
    status = given_or(status, &own);
    int result = PMPI_Waitany(count, handles, index, status);
    recorder_lock();
    if (result == MPI_SUCCESS && *index != MPI_UNDEFINED) {
        int listed = list_active(count);
        uint32_t number = complete_request(scratch.handles[*index], status);
        if (number)
            record_waitany(scratch.numbers, listed, number);
    }
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Waitsome(int count, MPI_Request handles[], int *out_count, int indices[], MPI_Status statuses[])
{
    if (!recorder_enter(F_MPI_Waitsome))
        return PMPI_Waitsome(count, handles, out_count, indices, statuses);
    keep_handles(count, handles);
    statuses = asked_for(statuses);
    int result = PMPI_Waitsome(count, handles, out_count, indices, statuses);
    recorder_lock();
    if (result == MPI_SUCCESS && *out_count != MPI_UNDEFINED) {
        /* It waited until one had completed, and found the others complete at that time. */
        int listed = list_active(count);
        const MPI_Status *filled = found(statuses);
        bool first = true;
        for (int i = 0; i < *out_count; i++) {
            uint32_t number = complete_request(scratch.handles[indices[i]], &filled[i]);
            if (number && first)
                record_waitany(scratch.numbers, listed, number);
            else if (number)
                record_wait(number);
            first = first && !number;
        }
    }
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (!recorder_enter(F_MPI_Test))
        return PMPI_Test(request, flag, status);
    MPI_Request handle = *request;
    MPI_Status own;
    status = given_or(status, &own);
    int result = PMPI_Test(request, flag, status);
    if (result != MPI_SUCCESS || !*flag) {
        recorder_leave_as_computation();
        return result;
    }
    one_completed(handle, status);
    return result;
}

int MPI_Testall(int count, MPI_Request handles[], int *flag, MPI_Status statuses[])
{
    if (!recorder_enter(F_MPI_Testall))
        return PMPI_Testall(count, handles, flag, statuses);
    keep_handles(count, handles);
    statuses = asked_for(statuses);
    int result = PMPI_Testall(count, handles, flag, statuses);
    if (result != MPI_SUCCESS || !*flag) {
        recorder_leave_as_computation();
        return result;
    }
    recorder_lock();
    all_completed(count, handles, found(statuses), result);
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Testany(int count, MPI_Request handles[], int *index, int *flag, MPI_Status *status)
{
    if (!recorder_enter(F_MPI_Testany))
        return PMPI_Testany(count, handles, index, flag, status);
    keep_handles(count, handles);
    MPI_Status own;
    status = given_or(status, &own);
    int result = PMPI_Testany(count, handles, index, flag, status);
    if (result != MPI_SUCCESS || !*flag || *index == MPI_UNDEFINED) {
        recorder_leave_as_computation();
        return result;
    }
    one_completed(scratch.handles[*index], status);
    return result;
}

int MPI_Testsome(int count, MPI_Request handles[], int *out_count, int indices[], MPI_Status statuses[])
{
    if (!recorder_enter(F_MPI_Testsome))
        return PMPI_Testsome(count, handles, out_count, indices, statuses);
    keep_handles(count, handles);
    statuses = asked_for(statuses);
    int result = PMPI_Testsome(count, handles, out_count, indices, statuses);
    if (result != MPI_SUCCESS || *out_count == MPI_UNDEFINED || *out_count == 0) {
        recorder_leave_as_computation();
        return result;
    }
    recorder_lock();
    const MPI_Status *filled = found(statuses);
    int waited = 0;
    for (int i = 0; i < *out_count; i++) {
        uint32_t number = complete_request(scratch.handles[indices[i]], &filled[i]);
        if (number)
            scratch.numbers[waited++] = number;
    }
    record_waitall(scratch.numbers, waited);
    recorder_unlock();
    recorder_leave();
    return result;
}

int MPI_Cancel(MPI_Request *request)
{
    if (!recorder_enter(F_MPI_Cancel))
        return PMPI_Cancel(request);
    recorder_lock();
    uint32_t number = request_find(*request);
    if (number && requests.all[number].active && !requests.all[number].cancelled) {
        requests.all[number].cancelled = true;
        requests.cancels++;
    }
    recorder_unlock();
    int result = PMPI_Cancel(request);
    recorder_leave();
    return result;
}

int MPI_Request_free(MPI_Request *request)
{
    if (!recorder_enter(F_MPI_Request_free))
        return PMPI_Request_free(request);
    recorder_lock();
    uint32_t number = request_find(*request);
    if (number) {
        request_unlink(*request);
        struct request *freed = &requests.all[number];
        if (freed->active) {
            /* It completes unseen: its number stays taken, and what a wildcard matched stays unknown. */
            requests.wildcards -= freed->wildcard;
            requests.cancels -= freed->cancelled;
            if (freed->comm)
                communicator_release(freed->comm);
            freed->comm = NULL;
        } else {
            request_release(number);
        }
    }
    recorder_unlock();
    int result = PMPI_Request_free(request);
    recorder_leave();
    return result;
}

/* ---- MPI_Comm_idup: the new communicator may be used once its request has completed ------------------------------ */

void idup_posted(MPI_Comm handle, MPI_Comm *new_comm, MPI_Request request)
{
    struct pending_dup *dup = allocate(1, sizeof *dup);
    dup->handle = new_comm;
    int between_groups;
    PMPI_Comm_test_inter(handle, &between_groups);
    if (between_groups) {
        dup->agreed = MPI_REQUEST_NULL;
    } else {
        /* In the old communicator, where it is in order with all other collectives, and does not wait. */
        int rank;
        PMPI_Comm_rank(handle, &rank);
        if (rank == 0)
            dup->id = communicator_next_id();
        PMPI_Ibcast(&dup->id, sizeof dup->id, MPI_BYTE, 0, handle, &dup->agreed);
    }
    recorder_lock();
    uint32_t number = request_add(request);
    requests.all[number].tag = RECORD_NONE;
    requests.all[number].active = true;
    requests.all[number].dup = dup;
    recorder_unlock();
}

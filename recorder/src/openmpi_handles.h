/* Open MPI's predefined handles are the addresses of variables in its library. A library that is preloaded into
 * every process of a command, MPI program or not, must not need them to be loaded: they are looked up at MPI_Init. */
#ifndef WEFT_RECORDER_OPENMPI_HANDLES_H
#define WEFT_RECORDER_OPENMPI_HANDLES_H

struct openmpi_handles {
    void *comm_world, *comm_self, *comm_null, *group_null, *request_null, *message_no_proc, *byte;
};
extern struct openmpi_handles openmpi_handles;

#undef MPI_COMM_WORLD
#undef MPI_COMM_SELF
#undef MPI_COMM_NULL
#undef MPI_GROUP_NULL
#undef MPI_REQUEST_NULL
#undef MPI_MESSAGE_NO_PROC
#undef MPI_BYTE
#define MPI_COMM_WORLD ((MPI_Comm)openmpi_handles.comm_world)
#define MPI_COMM_SELF ((MPI_Comm)openmpi_handles.comm_self)
#define MPI_COMM_NULL ((MPI_Comm)openmpi_handles.comm_null)
#define MPI_GROUP_NULL ((MPI_Group)openmpi_handles.group_null)
#define MPI_REQUEST_NULL ((MPI_Request)openmpi_handles.request_null)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)openmpi_handles.message_no_proc)
#define MPI_BYTE ((MPI_Datatype)openmpi_handles.byte)

#endif

//! The MPI calls that are told by name: those that communicate, complete, or are collective (MPI 4.1).
//!
//! A crate of its own, without code: `weft-client` needs the names and `weft-calls` makes a function of each.
//! Neither may be linked to the other, whose C functions it would bring along.

/// Hands all names to a macro. A call's number is its place, from 1 on. All return int and take at most
/// thirteen arguments, none of them a floating-point number or variadic.
///
/// ```
/// macro_rules! names {
///     ($($name:ident),*) => { [$(stringify!($name)),*] };
/// }
/// assert!(weft_mpi_calls::mpi_calls!(names).contains(&"MPI_Send"));
/// ```
#[macro_export]
macro_rules! mpi_calls {
    ($for_each:ident) => {
        $for_each! {
            MPI_Accumulate, MPI_Accumulate_c, MPI_Allgather, MPI_Allgather_c, MPI_Allgather_init,
            MPI_Allgather_init_c, MPI_Allgatherv, MPI_Allgatherv_c, MPI_Allgatherv_init,
            MPI_Allgatherv_init_c, MPI_Allreduce, MPI_Allreduce_c, MPI_Allreduce_init, MPI_Allreduce_init_c,
            MPI_Alltoall, MPI_Alltoall_c, MPI_Alltoall_init, MPI_Alltoall_init_c, MPI_Alltoallv,
            MPI_Alltoallv_c, MPI_Alltoallv_init, MPI_Alltoallv_init_c, MPI_Alltoallw, MPI_Alltoallw_c,
            MPI_Alltoallw_init, MPI_Alltoallw_init_c, MPI_Barrier, MPI_Barrier_init, MPI_Bcast, MPI_Bcast_c,
            MPI_Bcast_init, MPI_Bcast_init_c, MPI_Bsend, MPI_Bsend_c, MPI_Bsend_init, MPI_Bsend_init_c,
            MPI_Buffer_attach, MPI_Buffer_attach_c, MPI_Buffer_detach, MPI_Buffer_detach_c, MPI_Buffer_flush,
            MPI_Buffer_iflush, MPI_Cancel, MPI_Cart_create, MPI_Cart_sub, MPI_Comm_accept, MPI_Comm_connect,
            MPI_Comm_create, MPI_Comm_create_from_group, MPI_Comm_create_group, MPI_Comm_disconnect,
            MPI_Comm_dup, MPI_Comm_dup_with_info, MPI_Comm_free, MPI_Comm_idup, MPI_Comm_idup_with_info,
            MPI_Comm_join, MPI_Comm_spawn, MPI_Comm_spawn_multiple, MPI_Comm_split, MPI_Comm_split_type,
            MPI_Compare_and_swap, MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent, MPI_Exscan,
            MPI_Exscan_c, MPI_Exscan_init, MPI_Exscan_init_c, MPI_Fetch_and_op, MPI_File_close,
            MPI_File_iread, MPI_File_iread_all, MPI_File_iread_all_c, MPI_File_iread_at,
            MPI_File_iread_at_all, MPI_File_iread_at_all_c, MPI_File_iread_at_c, MPI_File_iread_c,
            MPI_File_iread_shared, MPI_File_iread_shared_c, MPI_File_iwrite, MPI_File_iwrite_all,
            MPI_File_iwrite_all_c, MPI_File_iwrite_at, MPI_File_iwrite_at_all, MPI_File_iwrite_at_all_c,
            MPI_File_iwrite_at_c, MPI_File_iwrite_c, MPI_File_iwrite_shared, MPI_File_iwrite_shared_c,
            MPI_File_open, MPI_File_preallocate, MPI_File_read, MPI_File_read_all, MPI_File_read_all_begin,
            MPI_File_read_all_begin_c, MPI_File_read_all_c, MPI_File_read_all_end, MPI_File_read_at,
            MPI_File_read_at_all, MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c,
            MPI_File_read_at_all_c, MPI_File_read_at_all_end, MPI_File_read_at_c, MPI_File_read_c,
            MPI_File_read_ordered, MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c,
            MPI_File_read_ordered_c, MPI_File_read_ordered_end, MPI_File_read_shared, MPI_File_read_shared_c,
            MPI_File_set_size, MPI_File_set_view, MPI_File_sync, MPI_File_write, MPI_File_write_all,
            MPI_File_write_all_begin, MPI_File_write_all_begin_c, MPI_File_write_all_c,
            MPI_File_write_all_end, MPI_File_write_at, MPI_File_write_at_all, MPI_File_write_at_all_begin,
            MPI_File_write_at_all_begin_c, MPI_File_write_at_all_c, MPI_File_write_at_all_end,
            MPI_File_write_at_c, MPI_File_write_c, MPI_File_write_ordered, MPI_File_write_ordered_begin,
            MPI_File_write_ordered_begin_c, MPI_File_write_ordered_c, MPI_File_write_ordered_end,
            MPI_File_write_shared, MPI_File_write_shared_c, MPI_Finalize, MPI_Gather, MPI_Gather_c,
            MPI_Gather_init, MPI_Gather_init_c, MPI_Gatherv, MPI_Gatherv_c, MPI_Gatherv_init,
            MPI_Gatherv_init_c, MPI_Get, MPI_Get_accumulate, MPI_Get_accumulate_c, MPI_Get_c,
            MPI_Graph_create, MPI_Iallgather, MPI_Iallgather_c, MPI_Iallgatherv, MPI_Iallgatherv_c,
            MPI_Iallreduce, MPI_Iallreduce_c, MPI_Ialltoall, MPI_Ialltoall_c, MPI_Ialltoallv,
            MPI_Ialltoallv_c, MPI_Ialltoallw, MPI_Ialltoallw_c, MPI_Ibarrier, MPI_Ibcast, MPI_Ibcast_c,
            MPI_Ibsend, MPI_Ibsend_c, MPI_Iexscan, MPI_Iexscan_c, MPI_Igather, MPI_Igather_c, MPI_Igatherv,
            MPI_Igatherv_c, MPI_Improbe, MPI_Imrecv, MPI_Imrecv_c, MPI_Ineighbor_allgather,
            MPI_Ineighbor_allgather_c, MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c,
            MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c, MPI_Ineighbor_alltoallv,
            MPI_Ineighbor_alltoallv_c, MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c, MPI_Init,
            MPI_Init_thread, MPI_Intercomm_create, MPI_Intercomm_create_from_groups, MPI_Intercomm_merge,
            MPI_Iprobe, MPI_Irecv, MPI_Irecv_c, MPI_Ireduce, MPI_Ireduce_c, MPI_Ireduce_scatter,
            MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c, MPI_Ireduce_scatter_c, MPI_Irsend,
            MPI_Irsend_c, MPI_Iscan, MPI_Iscan_c, MPI_Iscatter, MPI_Iscatter_c, MPI_Iscatterv,
            MPI_Iscatterv_c, MPI_Isend, MPI_Isend_c, MPI_Isendrecv, MPI_Isendrecv_c, MPI_Isendrecv_replace,
            MPI_Isendrecv_replace_c, MPI_Issend, MPI_Issend_c, MPI_Mprobe, MPI_Mrecv, MPI_Mrecv_c,
            MPI_Neighbor_allgather, MPI_Neighbor_allgather_c, MPI_Neighbor_allgather_init,
            MPI_Neighbor_allgather_init_c, MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c,
            MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c, MPI_Neighbor_alltoall,
            MPI_Neighbor_alltoall_c, MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c,
            MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c, MPI_Neighbor_alltoallv_init,
            MPI_Neighbor_alltoallv_init_c, MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c,
            MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c, MPI_Parrived, MPI_Pready,
            MPI_Pready_list, MPI_Pready_range, MPI_Precv_init, MPI_Probe, MPI_Psend_init, MPI_Put, MPI_Put_c,
            MPI_Raccumulate, MPI_Raccumulate_c, MPI_Recv, MPI_Recv_c, MPI_Recv_init, MPI_Recv_init_c,
            MPI_Reduce, MPI_Reduce_c, MPI_Reduce_init, MPI_Reduce_init_c, MPI_Reduce_local,
            MPI_Reduce_local_c, MPI_Reduce_scatter, MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c,
            MPI_Reduce_scatter_block_init, MPI_Reduce_scatter_block_init_c, MPI_Reduce_scatter_c,
            MPI_Reduce_scatter_init, MPI_Reduce_scatter_init_c, MPI_Request_free, MPI_Request_get_status,
            MPI_Request_get_status_all, MPI_Request_get_status_any, MPI_Request_get_status_some, MPI_Rget,
            MPI_Rget_accumulate, MPI_Rget_accumulate_c, MPI_Rget_c, MPI_Rput, MPI_Rput_c, MPI_Rsend,
            MPI_Rsend_c, MPI_Rsend_init, MPI_Rsend_init_c, MPI_Scan, MPI_Scan_c, MPI_Scan_init,
            MPI_Scan_init_c, MPI_Scatter, MPI_Scatter_c, MPI_Scatter_init, MPI_Scatter_init_c, MPI_Scatterv,
            MPI_Scatterv_c, MPI_Scatterv_init, MPI_Scatterv_init_c, MPI_Send, MPI_Send_c, MPI_Send_init,
            MPI_Send_init_c, MPI_Sendrecv, MPI_Sendrecv_c, MPI_Sendrecv_replace, MPI_Sendrecv_replace_c,
            MPI_Session_finalize, MPI_Session_init, MPI_Ssend, MPI_Ssend_c, MPI_Ssend_init, MPI_Ssend_init_c,
            MPI_Start, MPI_Startall, MPI_Test, MPI_Testall, MPI_Testany, MPI_Testsome, MPI_Wait, MPI_Waitall,
            MPI_Waitany, MPI_Waitsome, MPI_Win_allocate, MPI_Win_allocate_c, MPI_Win_allocate_shared,
            MPI_Win_allocate_shared_c, MPI_Win_attach, MPI_Win_complete, MPI_Win_create, MPI_Win_create_c,
            MPI_Win_create_dynamic, MPI_Win_detach, MPI_Win_fence, MPI_Win_flush, MPI_Win_flush_all,
            MPI_Win_flush_local, MPI_Win_flush_local_all, MPI_Win_free, MPI_Win_lock, MPI_Win_lock_all,
            MPI_Win_post, MPI_Win_start, MPI_Win_sync, MPI_Win_test, MPI_Win_unlock, MPI_Win_unlock_all,
            MPI_Win_wait
        }
    };
}

//! Pause: exact times on a line of two switches, no loss with the head-room, loss without it, deadlock.

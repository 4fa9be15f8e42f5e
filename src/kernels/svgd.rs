//! The Stein variational direction and the loop that follows it.

//! Parse the command line, start MPI where it is needed, hand over.
fn main() {}

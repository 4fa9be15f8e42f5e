//! The distributed methods: a file each, and one line each in the list.

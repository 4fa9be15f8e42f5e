//! Standard normal numbers in bulk, by vector arithmetic on the counter-based generator.

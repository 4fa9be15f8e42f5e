//! OpenBLAS on one thread, whatever the environment says: agents keep the cores busy, and bits depend on its threads.

use std::ffi::{CStr, c_char, c_int};

// The binding of the C library that we link does not have these.
unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_num_threads() -> c_int;
    fn openblas_get_config() -> *const c_char;
}

/// To be called at the start of `main`, before any matrix product.
pub(super) fn hold_to_one_thread() {
    // SAFETY: sets a number of the library, which no other thread uses yet.
    unsafe { openblas_set_num_threads(1) }
}

/// How many threads it takes.
pub(super) fn threads() -> c_int {
    // SAFETY: reads a number of the library.
    unsafe { openblas_get_num_threads() }
}

/// Its version, how it was built, and for which processor it works.
pub(super) fn configuration() -> String {
    // SAFETY: the library gives a text of its own that ends with a zero, or nothing.
    unsafe {
        let text = openblas_get_config();
        if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy().trim().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    #[test]
    fn the_environment_does_not_count() {
        let variable = "OPENBLAS_NUM_THREADS";
        if std::env::var(variable).is_ok_and(|value| value == "2") {
            let cores = std::thread::available_parallelism().unwrap().get();
            assert_eq!(threads(), if cores > 1 { 2 } else { 1 }, "the control: it would count");
            hold_to_one_thread();
            assert_eq!(threads(), 1);
            return;
        }
        // The number is the whole process's, which other tests share.
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "cli::blas::tests::the_environment_does_not_count"]).env(variable, "2");
        let output = again.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed") && output.status.success(), "{output:?}");
    }
}

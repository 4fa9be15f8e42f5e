//! OpenBLAS on one thread, regardless of the environment: agents use all cores, and results depend on the number of BLAS threads.

use std::ffi::{CStr, c_char, c_int};

// The bindings that we link do not declare these functions.
unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_num_threads() -> c_int;
    fn openblas_get_config() -> *const c_char;
}

/// Sets one thread; to be called at the start of `main`, before any matrix product.
pub(super) fn use_one_thread() {
    // SAFETY: sets a global of the library, which no other thread uses yet.
    unsafe { openblas_set_num_threads(1) }
}

/// The number of threads.
pub(super) fn threads() -> c_int {
    // SAFETY: reads a global of the library.
    unsafe { openblas_get_num_threads() }
}

/// Version, build options, and the processor whose kernels are used.
pub(super) fn configuration() -> String {
    // SAFETY: the library returns a static null-terminated string, or a null pointer.
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
    fn the_environment_has_no_effect() {
        let variable = "OPENBLAS_NUM_THREADS";
        if std::env::var(variable).is_ok_and(|value| value == "2") {
            let cores = std::thread::available_parallelism().unwrap().get();
            assert_eq!(threads(), if cores > 1 { 2 } else { 1 }, "the control: it would have an effect");
            use_one_thread();
            assert_eq!(threads(), 1);
            return;
        }
        // The setting is global, and other tests run in this process: use another one.
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "cli::blas::tests::the_environment_has_no_effect"]).env(variable, "2");
        let output = again.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed") && output.status.success(), "{output:?}");
    }
}

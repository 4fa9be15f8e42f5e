//! OpenBLAS on one thread, with kernels for the widest vectors that the processor has.
//!
//! One thread regardless of the environment: agents use all cores, and results depend on the number of BLAS threads. On a processor
//! that is newer than this OpenBLAS, OpenBLAS falls back to kernels for SSE3, and matrix products take six times as long.

use crate::vector::{SimdKernel, SimdLevel, dispatch};
use std::env;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The environment variable that selects the kernels of OpenBLAS by the name of a processor.
pub(super) const CORE_TYPE: &str = "OPENBLAS_CORETYPE";

/// The processors, by their names in OpenBLAS, whose kernels use AVX-512.
const AVX512: [&str; 3] = ["SkylakeX", "Cooperlake", "SapphireRapids"];

/// Those whose kernels use AVX2.
const AVX2: [&str; 3] = ["Haswell", "Zen", "Excavator"];

// The bindings that we link do not declare these functions.
unsafe extern "C" {
    fn openblas_set_num_threads(threads: c_int);
    fn openblas_get_num_threads() -> c_int;
    fn openblas_get_config() -> *const c_char;
}

/// Prepares OpenBLAS; to be called at the start of `main`, before MPI starts.
///
/// OpenBLAS chooses its kernels before `main`. If the processor could use better ones, and `OPENBLAS_CORETYPE` is not set, this program starts
/// itself again with it.
pub fn prepare() {
    if env::var_os(CORE_TYPE).is_none()
        && let Some(kernels) = Kernels::of(&configuration())
        && let Some(better) = kernels.better_on(Instructions::here())
        && let Ok(program) = env::current_exe()
    {
        let mut arguments = env::args_os();
        let name = arguments.next().unwrap_or_else(|| program.clone().into());
        // Returns only if it fails: the program then keeps the kernels that it has.
        let _ = Command::new(program).arg0(name).args(arguments).env(CORE_TYPE, better).exec();
    }
    // SAFETY: sets a global of the library, which no other thread uses yet.
    unsafe { openblas_set_num_threads(1) }
}

/// The number of threads.
pub(super) fn threads() -> c_int {
    // SAFETY: reads a global of the library.
    unsafe { openblas_get_num_threads() }
}

/// Version, build options, and the processor whose kernels are used.
pub fn configuration() -> String {
    // SAFETY: the library returns a static null-terminated string, or a null pointer.
    unsafe {
        let text = openblas_get_config();
        if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy().trim().to_owned() }
    }
}

/// A warning if OpenBLAS uses kernels with narrower vectors than the processor has.
pub(super) fn warning() -> Option<String> {
    Kernels::of(&configuration())?.warning(Instructions::here(), env::var_os(CORE_TYPE).as_deref())
}

/// The instructions for vectors that kernels need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Instructions {
    Sse,
    Avx2,
    Avx512,
}

impl Instructions {
    /// The widest that this machine has.
    fn here() -> Self {
        struct Widest;
        impl SimdKernel for Widest {
            type Output = Instructions;

            #[inline(always)]
            fn compute<U: SimdLevel>(self) -> Instructions {
                match (U::WIDE, U::AVX2) {
                    (true, _) => Instructions::Avx512,
                    (false, true) => Instructions::Avx2,
                    (false, false) => Instructions::Sse,
                }
            }
        }
        dispatch(Widest)
    }

    /// Their name in messages, and the value of [`CORE_TYPE`] whose kernels use exactly these.
    fn name_and_core_type(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Sse => None,
            Self::Avx2 => Some(("AVX2", "Haswell")),
            Self::Avx512 => Some(("AVX-512", "SkylakeX")),
        }
    }
}

/// The kernels that OpenBLAS uses.
#[derive(Debug)]
struct Kernels<'a> {
    /// The processor that they are made for, by its name in OpenBLAS.
    processor: &'a str,
}

impl<'a> Kernels<'a> {
    /// Reads a [`configuration`]. None if OpenBLAS was built for one processor.
    fn of(configuration: &'a str) -> Option<Self> {
        // The processor is the word before MAX_THREADS or SINGLE_THREADED, as in "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell
        // MAX_THREADS=64".
        let ends = [" MAX_THREADS", " SINGLE_THREADED"];
        let end = ends.iter().find_map(|end| configuration.find(end)).filter(|_| configuration.contains("DYNAMIC_ARCH"))?;
        Some(Self { processor: configuration[..end].rsplit(' ').next()? })
    }

    fn instructions(&self) -> Instructions {
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(self.processor));
        if is_one_of(&AVX512) {
            Instructions::Avx512
        } else if is_one_of(&AVX2) {
            Instructions::Avx2
        } else {
            Instructions::Sse
        }
    }

    /// The value of [`CORE_TYPE`] for wider kernels that a processor with these instructions can use.
    fn better_on(&self, here: Instructions) -> Option<&'static str> {
        here.name_and_core_type().filter(|_| self.instructions() < here).map(|(_, processor)| processor)
    }

    fn warning(&self, here: Instructions, core_type: Option<&OsStr>) -> Option<String> {
        let better = self.better_on(here)?;
        let (instructions, _) = here.name_and_core_type()?;
        let remedy = match core_type {
            // Already asked for, and this build does not have them.
            Some(wanted) if wanted.eq_ignore_ascii_case(better) => "another build of OpenBLAS would have faster ones".into(),
            Some(_) => format!("unset {CORE_TYPE} (results then differ in their last bits)"),
            None => format!("set {CORE_TYPE}={better} (results then differ in their last bits)"),
        };
        let times = if self.instructions() == Instructions::Sse { "up to six times" } else { "up to twice" };
        Some(format!(
            "OpenBLAS uses kernels for {} although the processor has {instructions}: matrix products take {times} as long; {remedy}",
            self.processor
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn configuration_for(processor: &str) -> String {
        format!("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY {processor} MAX_THREADS=64")
    }

    #[test]
    fn the_number_of_threads_in_the_environment_has_no_effect() {
        let variable = "OPENBLAS_NUM_THREADS";
        if env::var(variable).is_ok_and(|value| value == "2") {
            let cores = std::thread::available_parallelism().unwrap().get();
            assert_eq!(threads(), if cores > 1 { 2 } else { 1 }, "the control: it would have an effect");
            // May start this process again.
            prepare();
            assert_eq!(threads(), 1);
            return;
        }
        // The setting is global, and other tests run in this process: use another one.
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "cli::blas::tests::the_number_of_threads_in_the_environment_has_no_effect"]).env(variable, "2");
        let output = again.output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed") && output.status.success(), "{output:?}");
    }

    #[test]
    fn better_kernels_are_those_with_the_widest_vectors_of_the_processor() {
        let better = |processor, here| Kernels::of(&configuration_for(processor)).unwrap().better_on(here);
        assert_eq!(better("Prescott", Instructions::Avx512), Some("SkylakeX"));
        assert_eq!(better("Prescott", Instructions::Avx2), Some("Haswell"));
        assert_eq!(better("Prescott", Instructions::Sse), None);
        assert_eq!(better("Zen", Instructions::Avx512), Some("SkylakeX"));
        assert_eq!(better("Zen", Instructions::Avx2), None);
        assert_eq!(better("cooperlake", Instructions::Avx512), None);
        assert_eq!(better("SkylakeX", Instructions::Avx2), None);
        let single_threaded = Kernels::of("OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell SINGLE_THREADED").unwrap();
        assert_eq!((single_threaded.processor, single_threaded.better_on(Instructions::Avx2)), ("Haswell", None));
        assert!(Kernels::of("OpenBLAS 0.3.21 NO_AFFINITY Haswell MAX_THREADS=64").is_none());
        assert!(Kernels::of("OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell").is_none());
        assert!(Kernels::of("unknown").is_none());
    }

    #[test]
    fn narrow_kernels_give_a_warning_with_its_remedy() {
        let warning = |processor, here, set: Option<&str>| {
            Kernels::of(&configuration_for(processor)).unwrap().warning(here, set.map(OsStr::new)).unwrap_or_default()
        };
        let forced = warning("Haswell", Instructions::Avx512, Some("Haswell"));
        assert!(forced.contains("kernels for Haswell") && forced.contains("has AVX-512") && forced.contains("twice"), "{forced}");
        assert!(forced.contains("; unset OPENBLAS_CORETYPE"), "{forced}");
        let unknown = warning("Prescott", Instructions::Avx2, None);
        assert!(unknown.contains("has AVX2") && unknown.contains("six times"), "{unknown}");
        assert!(unknown.contains("; set OPENBLAS_CORETYPE=Haswell"), "{unknown}");
        let missing = warning("Haswell", Instructions::Avx512, Some("skylakex"));
        assert!(missing.contains("; another build of OpenBLAS"), "{missing}");
        assert_eq!(warning("Haswell", Instructions::Avx2, Some("Haswell")), "");
    }
}

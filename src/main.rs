//! Hand over to the library, with everything that comes along.

fn main() -> std::process::ExitCode {
    mpibayes::main_with(&mpibayes::config::Registry::default())
}

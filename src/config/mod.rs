//! From a run file to a validated run: TOML with overrides is parsed once, with every mistake reported at its line.

mod built_in;
mod configured;
mod error;
mod hints;
mod init;
mod other_names;
mod overrides;
mod reference;
mod registry;
mod renamed;
mod run;
mod run_file;
mod run_file_kind;
mod sections;
pub mod sweep;
mod syntax;

pub use configured::{ConfiguredMethod, ConfiguredModel, Precision};
pub use error::{ConfigError, Problem};
pub(crate) use hints::dotted_key;
pub use init::{Choice, template};
pub use overrides::Override;
pub use reference::reference;
pub use registry::Registry;
pub use run::{Run, RunOf, stored_table};
pub use run_file::RunFile;
pub use run_file_kind::{DataWords, RunFileKind};
pub use sections::{
    ClusterSettings, CorpusData, CorpusEvaluation, CorpusPartition, CorpusRunSettings, DrawTransport, Dtype, ReplicatedTableData,
    RunSettings, SWEEP, TableData, TableEvaluation, TableRunSettings, evaluation_interval,
};

//! Bayesian inference on data that is spread over a cluster.
//!
//! With a model of your own, begin with [`guide`].
//!
//! The rooms, and what each may use (`tests/it/rules.rs` checks it):
//!
//! | room | job | may use |
//! | --- | --- | --- |
//! | [`cli`] | the command line: arguments in, text out; a file for each subcommand | everything |
//! | [`report`] | what is shown of results: summaries, posterior tables, comparisons, topics, figures | `job`, `config`, `methods`, `models`, `lda`, `data`, `results`, `plots`, `metrics`, `partial`, `text`, `number` |
//! | [`job`] | a run meets its data: check, start, resume, predict | everything but `cli`, `report` |
//! | [`config`] | run files: parsed once, to a validated run; the registry of models and methods | `methods`, `cluster`, `models`, `lda`, `data`, `settings`, `number` |
//! | [`methods`] | the distributed methods: server half, agent half; transitions of chains on a shard | `cluster`, `models`, `kernels`, `layout`, `lda`, `data`, `metrics`, `quadrature`, `random`, `settings`, `number` |
//! | [`cluster`] | who computes what, and how it travels; knows no statistics | `log`, `partial`, `random`, `text`, `varint`, `number` |
//! | [`models`] | log-densities with gradients, batched over particles | `kernels`, `layout`, `vector`, `quadrature`, `random`, `settings`, `number` |
//! | [`kernels`] | update rules on arrays, and convolutions | `layout`, `vector`, `random`, `settings`, `number` |
//! | [`lda`] | topic models: documents, and what samplers do with them | `vector`, `random`, `settings`, `varint`, `number` |
//! | [`data`] | readers, the HDF5 dataset, shards | `models`, `lda`, `partial`, `random`, `text`, `number` |
//! | [`download`] | the catalog of public data sets and the downloader | `data` |
//! | [`results`] | the HDF5 file of a run | `cluster`, `data`, `log`, `metrics`, `models`, `partial`, `text`, `number` |
//! | [`plots`] | figures of runs as SVG and PNG; with the cargo feature `plots` | `results`, `metrics`, `text`, `number` |
//! | [`guide`] | documentation: from an idea to a run | nothing |
//! | [`metrics`] | accuracy, log-likelihood, calibration; convergence of chains | `number` |
//! | [`partial`] | files that appear whole or not at all | nothing |
//! | [`quadrature`] | expectations under a normal distribution | nothing |
//! | [`layout`] | array views as flat slices and back | `number` |
//! | [`random`] | addressed random numbers | `number` |
//! | [`vector`] | vectorized elementary functions, with dispatch at run time | `number` |
//! | [`log`] | lines on standard error, as text or as JSON | `text` |
//! | [`settings`] | tables of a run file as types: keys, documentation, mistakes | nothing |
//! | [`text`] | numbers, durations, sizes and tables for people | nothing |
//! | [`varint`] | integers in as many bytes as they need | nothing |
//! | [`number`] | the number types that arrays are made of | nothing |

pub mod cli;
pub mod cluster;
pub mod config;
pub mod data;
pub mod download;
pub mod guide;
pub mod job;
pub mod kernels;
pub mod layout;
pub mod lda;
pub mod log;
pub mod methods;
pub mod metrics;
pub mod models;
pub mod number;
pub mod partial;
#[cfg(feature = "plots")]
pub mod plots;
pub mod quadrature;
pub mod random;
pub mod report;
pub mod results;
pub mod settings;
pub mod text;
pub mod varint;
pub mod vector;

pub use cli::main_with;

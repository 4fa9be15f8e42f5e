//! The file of a run: what was written is read back, and other programs understand it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::cluster::record::{Draws, Row};
use crate::models::Part;
use ndarray::Array3;
use std::path::Path;
use std::process::Command;

fn info() -> RunInfo {
    RunInfo::new("dsvgd", "logistic", u64::MAX, "abc", "seed = 1\n[method]\nname = \"dsvgd\" # ä\n")
}

fn row(table: &str, step: u64, agent: Option<u32>, values: &[(&str, f64)]) -> Row {
    let values = values.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    Row { table: table.to_owned(), step, agent, values }
}

fn rows() -> Vec<Row> {
    vec![
        row("trace", 2, Some(1), &[("seconds", 0.5), ("bytes", 7.0)]),
        row("trace", 1, Some(1), &[("seconds", 0.25)]),
        row("metrics", 0, None, &[("accuracy", 0.5), ("ece", f64::NAN)]),
        row("trace", 2, None, &[("bytes", 3.0)]),
    ]
}

fn parts() -> Vec<Part> {
    vec![Part::new("weights", &[2, 3]), Part::new("log_precision", &[])]
}

fn samples() -> Samples {
    let values = Array3::from_shape_fn((2, 4, 7), |(c, d, j)| (100 * c + 10 * d + j) as f32);
    Samples { group: "posterior".into(), kind: SampleKind::Chains, parts: parts(), values: Values::F32(values) }
}

fn sample_file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("run.nc");
    write_run(&path, &info(), &[samples()], &rows()).unwrap();
    path
}

#[test]
fn what_was_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample_file(folder.path());
    let file = RunFile::open(&path).unwrap();
    assert_eq!(*file.info(), RunInfo { created_at: file.info().created_at.clone(), ..info() });
    assert_eq!(file.tables().unwrap(), ["metrics", "trace"]);
    assert_eq!(file.sample_groups().unwrap(), ["posterior"]);
    let trace = file.table("trace").unwrap();
    assert_eq!(trace.step, [1, 2, 2]);
    assert_eq!(trace.agent, [Some(1), None, Some(1)]);
    assert_eq!(trace.columns.iter().map(|column| column.0.as_str()).collect::<Vec<_>>(), ["seconds", "bytes"]);
    let (seconds, bytes) = (trace.column("seconds").unwrap(), trace.column("bytes").unwrap());
    assert!(seconds[0] == 0.25 && seconds[1].is_nan() && seconds[2] == 0.5, "{seconds:?}");
    assert!(bytes[0].is_nan() && bytes[1..] == [3.0, 7.0], "{bytes:?}");
    assert_eq!(file.shape("posterior").unwrap(), (2, 4, parts()));
    let read = file.samples("posterior").unwrap();
    assert_eq!(read, samples());
    let matrix = read.values.matrix();
    assert_eq!(matrix.dim(), (8, 7));
    assert_eq!(matrix[[4 + 3, 6]], 136.0);
    assert!(file.table("none").unwrap_err().to_string().contains("\"none\""));
}

#[test]
fn a_new_file_replaces_the_old_one_and_a_failure_leaves_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample_file(folder.path());
    let mut clash = samples();
    clash.parts[1].name = "chain".into();
    let message = write_run(&path, &info(), &[clash], &[]).unwrap_err().to_string();
    assert!(message.contains("\"chain\""), "{message}");
    let mut short = samples();
    short.parts.pop();
    assert!(write_run(&path, &info(), &[short], &[]).unwrap_err().to_string().contains("6 numbers, its draws 7"));
    assert!(write_run(&path, &info(), &[], &[row("a/b", 0, None, &[])]).is_err());
    assert!(write_run(&path, &info(), &[], &[row("trace", 0, None, &[("step", 1.0)])]).is_err());
    assert_eq!(RunFile::open(&path).unwrap().samples("posterior").unwrap(), samples());
    write_run(&path, &info(), &[], &rows()[..1]).unwrap();
    assert!(RunFile::open(&path).unwrap().sample_groups().unwrap().is_empty());
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["run.nc"], "nothing half written stays");
    assert!(write_run(&folder.path().join("no/run.nc"), &info(), &[], &[]).unwrap_err().to_string().contains("cannot create"));
}

#[test]
fn a_folder_knows_its_run_and_takes_one_job_at_a_time() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("runs/first");
    let folder = || RunFolder::new(&path, std::time::Duration::MAX, false);
    let mut first = folder();
    assert_eq!(first.claim().unwrap(), None);
    let message = folder().claim().unwrap_err().to_string();
    assert!(message.contains("another job works in") && message.contains("--output"), "{message}");
    // A job that is killed here has begun nothing; one that wrote half a digest is no other.
    drop(first);
    std::fs::write(path.join("data.digest"), "half a digest, and longer").unwrap();
    let mut second = folder();
    assert_eq!(second.claim().unwrap(), None);
    second.keep("seed = 1\n", "abc").unwrap();
    drop(second);
    let mut kept = Kept { config: "seed = 1\n".into(), data_digest: "abc".into(), finished: false };
    assert_eq!(folder().claim().unwrap().as_ref(), Some(&kept));
    std::fs::write(result_file(&path), "").unwrap();
    kept.finished = true;
    assert_eq!(folder().claim().unwrap(), Some(kept));
    for (left, gone) in [(result_file(&path), checkpoint_file(&path)), (checkpoint_file(&path), result_file(&path))] {
        drop(std::fs::remove_file(config_file(&path)));
        drop(std::fs::remove_file(gone));
        std::fs::write(left, "state").unwrap();
        let message = folder().claim().unwrap_err().to_string();
        assert!(message.contains("config.toml") && message.contains("--output"), "{message}");
    }
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    assert!(RunFile::open(&path).unwrap_err().to_string().contains("cannot open"));
    std::fs::write(&path, "text").unwrap();
    assert!(RunFile::open(&path).unwrap_err().to_string().contains("no result file"));
    drop(hdf5::File::create(&path).unwrap());
    assert!(RunFile::open(&path).unwrap_err().to_string().contains("no result file"));
}

/// The output of a program that the project's set-up installs.
fn output(program: &str, package: &str, arguments: &[&str], path: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg(path)
        .output()
        .unwrap_or_else(|error| panic!("this test needs {program} (Debian package {package}): {error}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_netcdf_library_sees_named_dimensions_and_their_variables() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample_file(folder.path());
    let dump = output("ncdump", "netcdf-bin", &[], &path);
    for line in [
        "chain = 2 ;",
        "draw = 4 ;",
        "weights_dim_1 = 3 ;",
        "int64 chain(chain) ;",
        "float weights(chain, draw, weights_dim_0, weights_dim_1) ;",
        "float log_precision(chain, draw) ;",
        "row = 3 ;",
        "uint64 step(row) ;",
        "int64 agent(row) ;",
        "double seconds(row) ;",
        "agent = 1, -1, 1 ;",
        ":inference_library = \"mpibayes\" ;",
        ":seed = 18446744073709551615ULL ;",
    ] {
        assert!(dump.contains(line), "{line:?} is missing in:\n{dump}");
    }
    // What the netCDF library calls dimensions that it has to make up.
    assert!(!dump.contains("phony"), "{dump}");
    let structure = output("h5dump", "hdf5-tools", &["-A"], &path);
    assert!(structure.contains("H5T_STR_NULLTERM") && !structure.contains("H5T_STR_NULLPAD"), "{structure}");
}

fn block(chain: u32, first: u64, numbers: &[f64]) -> Draws {
    let bytes = bytemuck::cast_slice(numbers).to_vec();
    Draws { group: "posterior".into(), chain, first, dim: 2, kind: "f64".into(), bytes }
}

#[test]
fn blocks_of_draws_are_put_in_order() {
    let parts = [Part::new("theta", &[2])];
    let blocks = [block(7, 1, &[7.2, 7.3]), block(3, 0, &[3.0, 3.1, 3.2, 3.3]), block(7, 0, &[7.0, 7.1])];
    let samples = Samples::assemble("posterior", &parts, &blocks).unwrap();
    let expected = ndarray::array![[[3.0, 3.1], [3.2, 3.3]], [[7.0, 7.1], [7.2, 7.3]]];
    assert_eq!(samples.values, Values::F64(expected));
    for (blocks, says) in [
        (vec![], "there are none"),
        (vec![block(0, 1, &[1.0, 2.0])], "gap"),
        (vec![block(0, 0, &[1.0, 2.0]), block(0, 0, &[1.0, 2.0])], "overlap"),
        (vec![block(0, 0, &[1.0, 2.0, 3.0])], "half a draw"),
        (vec![block(0, 0, &[1.0, 2.0]), block(1, 0, &[1.0, 2.0, 3.0, 4.0])], "different lengths"),
        (vec![block(0, 0, &[1.0, 2.0]), Draws { kind: "f32".into(), ..block(1, 0, &[1.0, 2.0]) }], "kind"),
        (vec![Draws { kind: "f16".into(), ..block(0, 0, &[1.0, 2.0]) }], "unknown"),
        (vec![Draws { dim: 3, ..block(0, 0, &[1.0, 2.0, 3.0]) }], "not 2"),
    ] {
        let message = Samples::assemble("posterior", &parts, &blocks).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn times_are_iso() {
    assert_eq!(iso(0), "1970-01-01T00:00:00Z");
    assert_eq!(iso(951_782_400 + 86_399), "2000-02-29T23:59:59Z");
    assert_eq!(iso(1_700_000_000), "2023-11-14T22:13:20Z");
}

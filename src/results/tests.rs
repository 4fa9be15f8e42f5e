//! Tests of result files: reading back, growing, truncating, and compatibility with netCDF.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::cluster::record::{DrawBlock, Extents, Row};
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
        row("history", 2, Some(1), &[("seconds", 0.5), ("bytes", 7.0)]),
        row("history", 1, Some(1), &[("seconds", 0.25)]),
        row("metrics", 0, None, &[("accuracy", 0.5), ("ece", f64::NAN)]),
        row("history", 2, None, &[("bytes", 3.0)]),
    ]
}

fn parts() -> Vec<Part> {
    vec![Part::new("weights", &[2, 3]), Part::new("log_precision", &[])]
}

fn samples() -> Samples {
    let values = Array3::from_shape_fn((2, 4, 7), |(c, d, j)| (100 * c + 10 * d + j) as f32);
    Samples { group: "posterior".into(), kind: SampleKind::Particles, parts: parts(), values: Values::F32(values) }
}

fn sample_file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("run.nc");
    write_run(&path, &info(), &[samples()], &rows()).unwrap();
    path
}

#[test]
fn a_file_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = sample_file(folder.path());
    let file = ResultFile::open(&path).unwrap();
    assert_eq!(*file.info(), RunInfo { created_at: file.info().created_at.clone(), ..info() });
    assert_eq!(file.tables().unwrap(), ["history", "metrics"]);
    assert_eq!(file.sample_groups().unwrap(), ["posterior"]);
    let history = file.table("history").unwrap();
    assert_eq!(history.step, [1, 2, 2]);
    assert_eq!(history.agent, [Some(1), None, Some(1)]);
    assert_eq!(history.columns.iter().map(|column| column.0.as_str()).collect::<Vec<_>>(), ["seconds", "bytes"]);
    let (seconds, bytes) = (history.column("seconds").unwrap(), history.column("bytes").unwrap());
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
    assert!(write_run(&path, &info(), &[short], &[]).unwrap_err().to_string().contains("7 values in a draw, not 6"));
    assert!(write_run(&path, &info(), &[], &[row("a/b", 0, None, &[])]).is_err());
    assert!(write_run(&path, &info(), &[], &[row("history", 0, None, &[("step", 1.0)])]).is_err());
    assert_eq!(ResultFile::open(&path).unwrap().samples("posterior").unwrap(), samples());
    write_run(&path, &info(), &[], &rows()[..1]).unwrap();
    assert!(ResultFile::open(&path).unwrap().sample_groups().unwrap().is_empty());
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["run.nc"], "no partial file stays");
    assert!(write_run(&folder.path().join("no/run.nc"), &info(), &[], &[]).unwrap_err().to_string().contains("cannot create"));
}

#[test]
fn a_folder_identifies_its_run_and_admits_one_job() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("runs/first");
    let folder = || RunFolder::new(&path, std::time::Duration::MAX, Reporting::Quiet);
    let mut first = folder();
    assert_eq!(first.claim().unwrap(), None);
    let message = folder().claim().unwrap_err().to_string();
    let job = job_using(&path).unwrap();
    assert!(
        message.contains(&format!("is used by {job}: ")) && message.contains("--output") && job.contains(" on "),
        "{message}"
    );
    // A job that is killed here has not begun a run, even if it has written half a digest.
    drop(first);
    assert!(job_using(&path).is_none() && !path.join("job.txt").exists());
    std::fs::write(path.join("data.digest"), "half a digest, and longer").unwrap();
    // What a killed job has left does not count.
    let host = crate::cluster::placement::host();
    std::fs::write(path.join("job.txt"), format!("process 1 on {host}\nhost: {host}\n")).unwrap();
    let mut second = folder();
    assert_eq!(second.claim().unwrap(), None);
    assert_eq!(job_using(&path), Some(job));
    second.record_run("seed = 1\n", "abc").unwrap();
    drop(second);
    let mut kept = ExistingRun {
        config: "seed = 1\n".into(),
        first_config: None,
        data_digest: "abc".into(),
        results: None,
        finished: false,
        holds_results: false,
    };
    assert_eq!(folder().claim().unwrap().as_ref(), Some(&kept));
    let unfinished = RunInfo { state: RunState { finished: false, ..RunState::over() }, ..info() };
    write_run(&result_file(&path), &unfinished, &[], &[]).unwrap();
    (kept.holds_results, kept.results) = (true, Some(unfinished));
    assert_eq!(folder().claim().unwrap().as_ref(), Some(&kept));
    write_run(&result_file(&path), &info(), &[], &[]).unwrap();
    (kept.finished, kept.results) = (true, Some(info()));
    assert_eq!(folder().claim().unwrap(), Some(kept));
    let whole = std::fs::read(result_file(&path)).unwrap();
    for (left, gone) in [(result_file(&path), checkpoint_file(&path)), (checkpoint_file(&path), result_file(&path))] {
        drop(std::fs::remove_file(config_file(&path)));
        drop(std::fs::remove_file(gone));
        std::fs::write(left, &whole).unwrap();
        let message = folder().claim().unwrap_err().to_string();
        assert!(message.contains("config.toml") && message.contains("--output"), "{message}");
    }
    // Another file of this name is not taken for a run, and is not changed.
    let place = tempfile::tempdir().unwrap();
    std::fs::write(config_file(place.path()), "# mine\n").unwrap();
    let message = RunFolder::new(place.path(), std::time::Duration::MAX, Reporting::Quiet).claim().unwrap_err().to_string();
    assert!(message.contains("there is a config.toml, but data.digest") && message.contains("--output"), "{message}");
    assert_eq!(std::fs::read_to_string(config_file(place.path())).unwrap(), "# mine\n");
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    assert!(ResultFile::open(&path).unwrap_err().to_string().contains("cannot open"));
    std::fs::write(&path, "text").unwrap();
    assert!(ResultFile::open(&path).unwrap_err().to_string().contains("not a result file"));
    drop(hdf5::File::create(&path).unwrap());
    assert!(ResultFile::open(&path).unwrap_err().to_string().contains("not a result file"));
}

/// The output of a program that `jobs/setup.sh` installs.
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
        "chain = UNLIMITED ; // (2 currently)",
        "draw = UNLIMITED ; // (4 currently)",
        "weights_dim_1 = 3 ;",
        "int64 chain(chain) ;",
        "float weights(chain, draw, weights_dim_0, weights_dim_1) ;",
        "float log_precision(chain, draw) ;",
        "row = UNLIMITED ; // (3 currently)",
        "uint64 step(row) ;",
        "int64 agent(row) ;",
        "double seconds(row) ;",
        "agent = 1, -1, 1 ;",
        ":inference_library = \"mpibayes\" ;",
        ":seed = 18446744073709551615ULL ;",
    ] {
        assert!(dump.contains(line), "{line:?} is missing in:\n{dump}");
    }
    // The netCDF library calls dimensions without a name "phony".
    assert!(!dump.contains("phony"), "{dump}");
    let structure = output("h5dump", "hdf5-tools", &["-A"], &path);
    assert!(structure.contains("H5T_STR_NULLTERM") && !structure.contains("H5T_STR_NULLPAD"), "{structure}");
}

fn block(chain: u32, first: u64, numbers: &[f64]) -> DrawBlock {
    let bytes = bytemuck::cast_slice(numbers).to_vec();
    DrawBlock { group: "posterior".into(), chain, first, dim: 2, kind: "f64".into(), bytes }
}

/// A file with one group of draws of two values.
fn growing(path: &Path, extents: Extents) -> RunWriter {
    let group = SampleGroup { name: "posterior".into(), parts: vec![Part::new("theta", &[2])], kind: SampleKind::Chains };
    RunWriter::new(path, info(), vec![group], extents).unwrap()
}

const UNFINISHED: RunState = RunState { finished: false, done: 1, total: 3, seconds: 0.5 };

fn drawn(path: &Path) -> ndarray::Array3<f64> {
    match ResultFile::open(path).unwrap().samples("posterior").unwrap().values {
        Values::F64(values) => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn draws_and_rows_are_appended_and_the_file_is_always_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    let mut writer = growing(&path, Extents::default());
    writer.write(&[row("history", 1, None, &[("a", 1.0)])], UNFINISHED).unwrap();
    assert!(ResultFile::open(&path).unwrap().sample_groups().unwrap().is_empty());
    // Chain 1 has moved between ranks: its second draw arrives before its first.
    [block(0, 0, &[0.0, 0.1, 1.0, 1.1]), block(1, 1, &[11.0, 11.1])].into_iter().for_each(|block| writer.push(block));
    writer.write(&[row("history", 1, None, &[("a", 1.0)]), row("history", 2, None, &[("b", 2.0)])], UNFINISHED).unwrap();
    assert_eq!(drawn(&path), ndarray::array![[[0.0, 0.1], [1.0, 1.1]]]);
    let gap = writer.write_complete(&[], UNFINISHED, std::iter::empty()).unwrap_err().to_string();
    assert!(gap.contains("chain 1 has a gap before draw 1"), "{gap}");
    // A reader that has the file open keeps its version.
    let old = ResultFile::open(&path).unwrap();
    writer.push(block(1, 0, &[10.0, 10.1]));
    writer.push(block(1, 2, &[12.0, 12.1]));
    let over = RunState { done: 2, ..UNFINISHED };
    writer.write_complete(&[row("history", 2, None, &[("b", 2.0)])], over, std::iter::empty()).unwrap();
    assert_eq!(old.shape("posterior").unwrap(), (1, 2, vec![Part::new("theta", &[2])]));
    let values = drawn(&path);
    assert_eq!(values.dim(), (2, 3, 2));
    assert_eq!(values.slice(ndarray::s![1, .., 0]), ndarray::array![10.0, 11.0, 12.0].view());
    assert!(values.slice(ndarray::s![0, 2, ..]).iter().all(|number| number.is_nan()), "chain 0 has two draws");
    let file = ResultFile::open(&path).unwrap();
    assert_eq!(file.info().state, RunState { done: 2, ..UNFINISHED });
    let history = file.table("history").unwrap();
    assert_eq!((history.step.as_slice(), history.column("a"), history.column("b")), (&[2][..], None, Some(&[2.0][..])));
    let dump = output("ncdump", "netcdf-bin", &[], &path);
    for line in [
        "chain = UNLIMITED ; // (2 currently)",
        "draw = UNLIMITED ; // (3 currently)",
        "draws_per_chain = \"2 3\"",
        "draw = 0, 1, 2 ;",
    ] {
        assert!(dump.contains(line), "{line:?} is missing in:\n{dump}");
    }
}

#[test]
fn a_resumed_run_discards_draws_after_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    let mut writer = growing(&path, Extents::default());
    writer.push(block(0, 0, &[0.0, 0.1, 1.0, 1.1]));
    writer.push(block(1, 0, &[10.0, 10.1]));
    writer.write(&[], UNFINISHED).unwrap();
    let checkpoint = writer.extents().clone();
    for late in [block(0, 2, &[-1.0, -1.0]), block(1, 1, &[-1.0, -1.0, -1.0, -1.0]), block(2, 0, &[-1.0, -1.0])] {
        writer.push(late);
    }
    writer.write(&[], UNFINISHED).unwrap();
    assert_eq!(drawn(&path).dim(), (3, 3, 2));
    let mut resumed = growing(&path, checkpoint.clone());
    resumed.write(&[], UNFINISHED).unwrap();
    let values = drawn(&path);
    assert_eq!(values.dim(), (2, 2, 2));
    assert!(values.iter().all(|&number| number != -1.0) && values[(1, 1, 0)].is_nan(), "{values}");
    resumed.push(block(0, 2, &[2.0, 2.1]));
    resumed.write(&[], UNFINISHED).unwrap();
    assert_eq!(drawn(&path).slice(ndarray::s![0, .., 0]), ndarray::array![0.0, 1.0, 2.0].view());
    std::fs::remove_file(&path).unwrap();
    let group = SampleGroup { name: "posterior".into(), parts: vec![Part::new("theta", &[2])], kind: SampleKind::Chains };
    let Err(lost) = RunWriter::new(&path, info(), vec![group], checkpoint) else { panic!("the draws are gone") };
    assert!(lost.to_string().contains("run.nc") && lost.to_string().contains("missing"), "{lost}");
}

/// Changes the lowest bit of the first number in a file that has these bytes.
fn flip(path: &Path, number: f64) {
    let mut bytes = std::fs::read(path).unwrap();
    let place = bytes.windows(8).position(|bytes| bytes == number.to_le_bytes()).unwrap();
    bytes[place] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_bit_that_changes_in_draws_tables_or_arrays_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    let grid = Grid {
        group: "arrays".into(),
        dimensions: vec![("row".into(), 3)],
        variables: vec![("share".into(), vec![0], vec![0.125, 0.375, 0.5])],
        names: Vec::new(),
    };
    let write = || {
        let mut writer = growing(&path, Extents::default());
        writer.push(block(0, 0, &[1.25, 0.1, 1.0, 1.1]));
        writer.push_grid(grid.clone());
        writer.write(&[row("history", 1, None, &[("seconds", 2.75)])], UNFINISHED).unwrap();
        writer
    };
    let group = || SampleGroup { name: "posterior".into(), parts: vec![Part::new("theta", &[2])], kind: SampleKind::Chains };
    let extents = write().extents().clone();
    assert!(RunWriter::new(&path, info(), vec![group()], extents.clone()).is_ok());
    flip(&path, 1.25);
    let Err(refused) = RunWriter::new(&path, info(), vec![group()], extents) else { panic!("a draw is damaged") };
    assert!(refused.to_string().contains("run.nc: this file is damaged") && !refused.may_be_temporary(), "{refused}");
    // Also if the draws are damaged while the run is in progress, and writing fails.
    let writer = write();
    let failed = || ResultsError::hdf5(&path, "write the draws")(hdf5::Error::Internal("of some kind".into()));
    assert!(writer.cause_of(failed()).may_be_temporary());
    flip(&path, 1.25);
    assert!(!writer.cause_of(failed()).may_be_temporary());
    write();
    assert!(ResultFile::open(&path).unwrap().table("history").is_ok());
    flip(&path, 2.75);
    assert!(ResultFile::open(&path).unwrap().table("history").unwrap_err().to_string().contains("run.nc: cannot read the table"));
    write();
    assert_eq!(ResultFile::open(&path).unwrap().grid("arrays").unwrap(), Some(grid.clone()));
    flip(&path, 0.375);
    assert!(ResultFile::open(&path).unwrap().grid("arrays").unwrap_err().to_string().contains("run.nc: cannot read the arrays"));
}

#[test]
fn extents_of_a_damaged_checkpoint_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    let mut writer = growing(&path, Extents::default());
    writer.push(block(0, 0, &[1.0, 2.0]));
    writer.write(&[], UNFINISHED).unwrap();
    // A list of this many chains would take 32 GiB.
    for (chain, draws) in [(u32::MAX, 1), (1, 1), (0, 2), (0, u64::MAX)] {
        let mut extents = writer.extents().clone();
        extents.set("posterior", chain, draws);
        let group = SampleGroup { name: "posterior".into(), parts: vec![Part::new("theta", &[2])], kind: SampleKind::Chains };
        let Err(refused) = RunWriter::new(&path, info(), vec![group], extents) else {
            panic!("chain {chain} has no {draws} draws")
        };
        assert!(refused.to_string().contains("fewer draws than were saved"), "{refused}");
    }
    growing(&path, writer.extents().clone());
}

#[test]
fn files_that_refer_to_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    let mut writer = growing(&path, Extents::default());
    writer.push(block(0, 0, &[1.0, 2.0]));
    writer.write(&[], UNFINISHED).unwrap();
    hdf5::File::open_rw(&path).unwrap().link_external("other.h5", "x", "posterior/link").unwrap();
    let refused = ResultFile::open(&path).unwrap_err().to_string();
    assert!(refused.contains("run.nc: its link 'posterior/link' leads to another file"), "{refused}");
    // Nor is it changed: the copy is opened for writing.
    writer.push(block(0, 1, &[3.0, 4.0]));
    let refused = writer.write(&[], UNFINISHED).unwrap_err().to_string();
    assert!(refused.contains("its link 'posterior/link' leads to another file"), "{refused}");
}

/// A small file could otherwise make a reader read one array any number of times.
#[test]
fn repeated_names_and_columns_of_other_lengths_are_refused() {
    use crate::data::hdf;
    let folder = tempfile::tempdir().unwrap();
    let path = sample_file(folder.path());
    let whole = std::fs::read(&path).unwrap();
    let changed = |change: &dyn Fn(&hdf5::File)| {
        std::fs::write(&path, &whole).unwrap();
        change(&hdf5::File::open_rw(&path).unwrap());
        ResultFile::open(&path).unwrap()
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let file = changed(&|file| hdf::write_text(&file.group("history").unwrap(), "columns", "seconds bytes seconds").unwrap());
    let refused = file.table("history").unwrap_err().to_string();
    assert!(refused.contains("\"seconds\" is listed twice"), "{refused}");
    drop(file);
    let file = changed(&|file| file.dataset("history/seconds").unwrap().resize(1000).unwrap());
    let refused = file.table("history").unwrap_err().to_string();
    assert!(refused.contains("\"seconds\" has shape [1000], not 3"), "{refused}");
    drop(file);
    let file = changed(&|file| {
        let group = file.group("posterior").unwrap();
        group.delete_attr("parts").unwrap();
        hdf::write_names_attribute(&group, "parts", &names(&["weights", ".//weights"])).unwrap();
    });
    let refused = file.samples("posterior").unwrap_err().to_string();
    assert!(refused.contains("weights\" is listed twice"), "{refused}");
    drop(file);
    let grid = Grid {
        group: String::new(),
        dimensions: vec![("topic".into(), 2)],
        variables: vec![("share".into(), vec![0], vec![0.5, 0.5])],
        names: vec![("names".into(), 0, vec!["a".into(), "b".into()])],
    };
    for (attribute, name) in [("dimensions", "topic"), ("variables", "share"), ("lists", "names")] {
        let path = folder.path().join("grid.h5");
        grid.write_file(&path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        file.delete_attr(attribute).unwrap();
        hdf::write_names_attribute(&file, attribute, &names(&[name, name])).unwrap();
        file.close().unwrap();
        let refused = Grid::read_file(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("{name:?} is listed twice")), "{refused}");
    }
}

#[test]
fn inconsistent_blocks_are_refused_and_stay_pending() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.nc");
    for (blocks, says) in [
        (vec![block(0, 0, &[1.0, 2.0]), block(0, 0, &[1.0, 2.0])], "overlaps"),
        (vec![block(0, 0, &[1.0, 2.0, 3.0])], "half a draw"),
        (vec![DrawBlock { kind: "f16".into(), ..block(0, 0, &[1.0, 2.0]) }], "unknown number type"),
        (vec![DrawBlock { dim: 3, ..block(0, 0, &[1.0, 2.0, 3.0]) }], "not 2"),
        (vec![DrawBlock { group: "other".into(), ..block(0, 0, &[1.0, 2.0]) }], "no such group"),
    ] {
        let mut writer = growing(&path, Extents::default());
        blocks.into_iter().for_each(|block| writer.push(block));
        let message = writer.write(&[], UNFINISHED).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
        assert!(!path.exists() && writer.pending() > 0);
    }
}

#[test]
fn an_array_can_be_written_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, rows] = ["whole.h5", "rows.h5"].map(|name| folder.path().join(name));
    let weights: Vec<f64> = (0..21).map(f64::from).collect();
    let mut grid = Grid {
        group: String::new(),
        dimensions: vec![("topic".into(), 3), ("document".into(), 7)],
        variables: vec![("weights".into(), vec![1, 0], weights.clone()), ("share".into(), vec![0], vec![0.5, 0.25, 0.25])],
        names: vec![("names".into(), 0, vec!["a".into(), "b".into(), "c".into()])],
    };
    grid.write_file(&whole).unwrap();
    grid.variables.remove(0);
    assert!(GridFile::create(&rows, &grid, "weights", &[1, 0]).unwrap().finish(&grid).is_err());
    let mut file = GridFile::create(&rows, &grid, "weights", &[1, 0]).unwrap();
    for (number, block) in weights.chunks(6).enumerate() {
        let block = ndarray::ArrayView2::from_shape((block.len() / 3, 3), block).unwrap();
        file.write(&[2 * number, 0], block.into_dyn()).unwrap();
    }
    file.finish(&grid).unwrap();
    assert_eq!(Grid::read_file(&rows).unwrap(), Grid::read_file(&whole).unwrap());
}

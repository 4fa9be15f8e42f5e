//! How far the posteriors of runs are from that of a reference run.

use super::error::{ReportError, Result};
use super::judgment::Judgment;
use super::posterior::{Parameter, PosteriorGroup};
use super::run::RunResults;
use super::text;
use super::trajectories::Trajectories;
use crate::results::POSTERIOR;
use serde::Serialize;
use std::collections::BTreeMap;

/// The posterior of a run beside that of a reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The run.
    pub run: String,
    /// Its draws.
    pub draws: usize,
    /// The largest distance of a mean from that of the reference, in standard deviations of the reference.
    pub shift: f64,
    /// The parameter with this distance.
    pub shifted: String,
    /// The smallest standard deviation over that of the reference.
    pub smallest_sd_ratio: f64,
    /// The parameter with this ratio.
    pub narrowest: String,
    /// The largest standard deviation over that of the reference.
    pub largest_sd_ratio: f64,
    /// The parameter with this ratio.
    pub widest: String,
    /// What the run says of its own draws.
    pub judgment: Option<Judgment>,
}

impl Agreement {
    /// Compares runs, each with its name, with a reference.
    ///
    /// # Errors
    /// When a run has no posterior with the parameters of the reference, or cannot be read.
    pub fn of<'a>(runs: impl IntoIterator<Item = (&'a str, &'a RunResults)>, reference: &RunResults) -> Result<Vec<Self>> {
        let reference = posterior(reference)?;
        runs.into_iter().map(|(name, run)| Self::with(name, run, &reference)).collect()
    }

    fn with(name: &str, run: &RunResults, reference: &PosteriorGroup) -> Result<Self> {
        let group = posterior(run)?;
        let places: BTreeMap<&str, &Parameter> =
            reference.estimates.iter().map(|parameter| (parameter.name.as_str(), parameter)).collect();
        let pairs: Vec<(&Parameter, &Parameter)> =
            group.estimates.iter().filter_map(|parameter| Some((parameter, *places.get(parameter.name.as_str())?))).collect();
        if pairs.len() != group.estimates.len() || pairs.len() != reference.estimates.len() {
            let what = format!("its posterior has other parameters than that of the reference, {}", shape(reference));
            return Err(ReportError::missing(&run.path, what));
        }
        let largest = |value: &dyn Fn(&Parameter, &Parameter) -> f64| {
            let values = pairs.iter().map(|(here, there)| (value(here, there), here.name.clone()));
            values.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, String::new()))
        };
        let (shift, shifted) = largest(&|here, there| ((here.estimate.mean - there.estimate.mean) / there.estimate.sd).abs());
        let (narrowness, narrowest) = largest(&|here, there| there.estimate.sd / here.estimate.sd);
        let (largest_sd_ratio, widest) = largest(&|here, there| here.estimate.sd / there.estimate.sd);
        Ok(Self {
            run: name.to_owned(),
            draws: group.chains * group.draws,
            shift,
            shifted,
            smallest_sd_ratio: narrowness.recip(),
            narrowest,
            largest_sd_ratio,
            widest,
            judgment: Judgment::of(&[group], Trajectories::of(&run.file)?.as_ref()),
        })
    }
}

impl Agreement {
    /// The first words of the judgment.
    fn outcome(&self) -> String {
        let text = self.judgment.as_ref().map_or("-", |judgment| judgment.text.as_str());
        text.split(':').next().unwrap_or(text).to_owned()
    }
}

/// The posterior of a run with the estimates of all parameters.
fn posterior(run: &RunResults) -> Result<PosteriorGroup> {
    let has_posterior = run.file.sample_groups()?.iter().any(|group| group == POSTERIOR);
    let group = if has_posterior { Some(PosteriorGroup::read(&run.file, POSTERIOR, true)?) } else { None };
    group
        .filter(|group| !group.estimates.is_empty())
        .ok_or_else(|| ReportError::missing(&run.path, "it has no draws whose means could be compared".to_owned()))
}

fn shape(group: &PosteriorGroup) -> String {
    let parts: Vec<String> = group.parts.iter().map(|part| format!("{} ({})", part.name, part.size())).collect();
    parts.join(", ")
}

/// Agreements as CSV, with a line for each run.
///
/// # Errors
/// When a record cannot be written.
pub fn csv(agreements: &[Agreement]) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "run",
        "draws",
        "shift",
        "shifted",
        "smallest_sd_ratio",
        "narrowest",
        "largest_sd_ratio",
        "widest",
        "judgment",
    ])?;
    for agreement in agreements {
        writer.write_record([
            agreement.run.clone(),
            agreement.draws.to_string(),
            agreement.shift.to_string(),
            agreement.shifted.clone(),
            agreement.smallest_sd_ratio.to_string(),
            agreement.narrowest.clone(),
            agreement.largest_sd_ratio.to_string(),
            agreement.widest.clone(),
            agreement.outcome(),
        ])?;
    }
    Ok(String::from_utf8_lossy(&writer.into_inner().map_err(|error| error.into_error())?).into_owned())
}

/// The table of agreements with a reference.
pub fn table(agreements: &[Agreement], reference: &str) -> String {
    let cells = |of: &dyn Fn(&Agreement) -> String| agreements.iter().map(of).collect::<Vec<String>>();
    let columns = [
        ("run".to_owned(), cells(&|agreement| agreement.run.clone())),
        ("draws".into(), cells(&|agreement| text::count(agreement.draws))),
        ("shift".into(), cells(&|agreement| format!("{:.2}", agreement.shift))),
        ("of".into(), cells(&|agreement| agreement.shifted.clone())),
        ("least sd".into(), cells(&|agreement| format!("{:.2}", agreement.smallest_sd_ratio))),
        ("of".into(), cells(&|agreement| agreement.narrowest.clone())),
        ("most sd".into(), cells(&|agreement| format!("{:.2}", agreement.largest_sd_ratio))),
        ("of".into(), cells(&|agreement| agreement.widest.clone())),
        ("judgment".into(), cells(&Agreement::outcome)),
    ];
    format!(
        "\nposteriors beside {reference}\n{}  shift: the largest distance of a mean, in its posterior sds; least and most sd: in those of \
         the reference\n",
        text::table(&columns)
    )
}

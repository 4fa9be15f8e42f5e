//! How far the posteriors of runs are from that of a reference run.

use super::error::{ReportError, Result};
use super::evidence::Evidence;
use super::exchangeable::has_exchangeable_units;
use super::judgment::Judgment;
use super::posterior::{Parameter, PosteriorGroup};
use super::run::RunResults;
use crate::config::stored_table;
use crate::methods::chains::hmc::HmcSettings;
use crate::methods::common::settings::MethodSettings;
use crate::results::POSTERIOR;
use crate::text;
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
    /// The Monte Carlo error of this distance, from both runs; particles do not add to it, because theirs is not known.
    pub shift_error: f64,
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
    /// Whether the chains share random numbers with those of the reference, because both have the same seed.
    pub shares_random_numbers: bool,
    /// What the run says of its own draws.
    pub judgment: Option<Judgment>,
}

/// The run whose posterior others are compared with.
pub struct Reference<'a> {
    run: &'a RunResults,
    group: PosteriorGroup,
    /// What the run says of its own draws.
    pub judgment: Option<Judgment>,
}

impl<'a> Reference<'a> {
    /// Reads the posterior of a run.
    ///
    /// # Errors
    /// When it has none, or cannot be read.
    pub fn read(run: &'a RunResults) -> Result<Self> {
        let group = posterior(run)?;
        let judgment = Judgment::of(std::slice::from_ref(&group), &Evidence::of(run)?);
        Ok(Self { run, group, judgment })
    }

    /// Whether the noise of a run's chains comes from the same random numbers. The trajectories of `hmc` depart from each other all the same.
    fn shares_random_numbers(&self, run: &RunResults) -> bool {
        let (here, there) = (run.file.info(), self.run.file.info());
        here.seed == there.seed && [here, there].iter().all(|info| info.method != HmcSettings::NAME)
    }

    /// Whether a run has the posterior of the reference: the same data, model and temperature.
    fn check_same_posterior(&self, run: &RunResults) -> Result<()> {
        let (here, there) = (run.file.info(), self.run.file.info());
        let other = |what: &str| {
            Err(ReportError::missing(
                &run.path,
                format!(
                    "its {what} is not that of the reference: this compares runs with the same posterior; --coefficients compares others"
                ),
            ))
        };
        if here.data_digest != there.data_digest {
            return other("data");
        }
        let (here, there) = (stored_table(&here.config).unwrap_or_default(), stored_table(&there.config).unwrap_or_default());
        let differs = |key: &str| here.get(key) != there.get(key);
        let name = |config: &toml::Table| config.get("model").and_then(|model| model.get("name")).cloned();
        if differs("temperature") {
            return other("temperature");
        }
        match (differs("model"), name(&here) == name(&there)) {
            (false, _) => Ok(()),
            (true, false) => other("model"),
            (true, true) => other("prior, or another key of [model],"),
        }
    }
}

impl Agreement {
    /// Compares runs, each with its name, with a reference.
    ///
    /// # Errors
    /// When a run has another posterior than the reference, or cannot be read.
    pub fn of<'a>(runs: impl IntoIterator<Item = (&'a str, &'a RunResults)>, reference: &Reference) -> Result<Vec<Self>> {
        let one = |(name, run)| {
            reference.check_same_posterior(run)?;
            Self::with(name, run, reference)
        };
        runs.into_iter().map(one).collect()
    }

    fn with(name: &str, run: &RunResults, reference: &Reference) -> Result<Self> {
        let (group, of_reference) = (posterior(run)?, &reference.group);
        let places: BTreeMap<&str, &Parameter> =
            of_reference.estimates.iter().map(|parameter| (parameter.name.as_str(), parameter)).collect();
        let pairs: Vec<(&Parameter, &Parameter)> =
            group.estimates.iter().filter_map(|parameter| Some((parameter, *places.get(parameter.name.as_str())?))).collect();
        if pairs.len() != group.estimates.len() || pairs.len() != of_reference.estimates.len() {
            let what = format!("its posterior has other parameters than that of the reference, {}", shape(of_reference));
            return Err(ReportError::missing(&run.path, what));
        }
        let largest = |value: &dyn Fn(&Parameter, &Parameter) -> f64| {
            // What is not a number is the worst.
            let of = |here, there| Some(value(here, there)).filter(|value| !value.is_nan()).unwrap_or(f64::INFINITY);
            let values = pairs.iter().map(|(here, there)| (of(here, there), here.name.clone()));
            values.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, String::new()))
        };
        let (shift, shifted) = largest(&|here, there| ((here.estimate.mean - there.estimate.mean) / there.estimate.sd).abs());
        let error = |parameter: &Parameter| parameter.estimate.convergence.as_ref().map_or(f64::NAN, |found| found.mcse_mean);
        let pair = pairs.iter().find(|(here, _)| here.name == shifted);
        // That of particles is not known.
        let shift_error = pair.map_or(f64::NAN, |(here, there)| match [error(here), error(there)] {
            [here, other] if here.is_nan() => other / there.estimate.sd,
            [one, other] if other.is_nan() => one / there.estimate.sd,
            [one, other] => one.hypot(other) / there.estimate.sd,
        });
        let (narrowness, narrowest) = largest(&|here, there| there.estimate.sd / here.estimate.sd);
        let (largest_sd_ratio, widest) = largest(&|here, there| here.estimate.sd / there.estimate.sd);
        Ok(Self {
            run: name.to_owned(),
            draws: group.chains * group.draws,
            shift,
            shift_error,
            shifted,
            smallest_sd_ratio: narrowness.recip(),
            narrowest,
            largest_sd_ratio,
            widest,
            shares_random_numbers: reference.shares_random_numbers(run),
            judgment: Judgment::of(&[group], &Evidence::of(run)?),
        })
    }
}

impl Agreement {
    fn shift_with_error(&self) -> String {
        match self.shift_error.is_nan() {
            true => format!("{:.2}", self.shift),
            false => format!("{:.2} ± {:.2}", self.shift, self.shift_error),
        }
    }

    /// The first words of the judgment.
    fn outcome(&self) -> String {
        let text = self.judgment.as_ref().map_or("-", |judgment| judgment.text.as_str());
        text.split(':').next().unwrap_or(text).to_owned()
    }
}

/// The posterior of a run with the estimates of all parameters.
fn posterior(run: &RunResults) -> Result<PosteriorGroup> {
    let group = if run.file.has_posterior()? { Some(PosteriorGroup::read(&run.file, POSTERIOR, true)?) } else { None };
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
        "shift_error",
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
            if agreement.shift_error.is_nan() { String::new() } else { agreement.shift_error.to_string() },
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
pub fn table(agreements: &[Agreement], name: &str, reference: &Reference) -> String {
    let cells = |of: &dyn Fn(&Agreement) -> String| agreements.iter().map(of).collect::<Vec<String>>();
    let columns = [
        ("run".to_owned(), cells(&|agreement| agreement.run.clone())),
        ("draws".into(), cells(&|agreement| text::count(agreement.draws))),
        ("shift".into(), cells(&Agreement::shift_with_error)),
        ("of".into(), cells(&|agreement| agreement.shifted.clone())),
        ("least sd ratio".into(), cells(&|agreement| format!("{:.2}", agreement.smallest_sd_ratio))),
        ("of".into(), cells(&|agreement| agreement.narrowest.clone())),
        ("largest sd ratio".into(), cells(&|agreement| format!("{:.2}", agreement.largest_sd_ratio))),
        ("of".into(), cells(&|agreement| agreement.widest.clone())),
        ("judgment".into(), cells(&Agreement::outcome)),
    ];
    let exchangeable = match has_exchangeable_units(&reference.run.file.info().model) {
        true => {
            "  The units of a network can be exchanged, so its parameters need not agree: compare the metrics of test rows, without \
             --reference\n"
        }
        false => "",
    };
    let sharing: Vec<&str> =
        agreements.iter().filter(|agreement| agreement.shares_random_numbers).map(|agreement| agreement.run.as_str()).collect();
    let shared = if sharing.is_empty() {
        String::new()
    } else {
        format!(
            "  the seed of the reference is also that of {}: with the same random numbers, runs agree better than independent ones, and ± does \
             not hold. Repeat one of them with another --set seed=N\n",
            sharing.join(", ")
        )
    };
    let judgment = reference.judgment.as_ref().map_or_else(String::new, |judgment| format!("  reference: {}\n", judgment.text));
    format!(
        "posteriors beside {name}\n{judgment}\n{}  shift: largest difference of means, in sds of the reference, ± its Monte Carlo error (that of particles is not known)\n  sd ratio: sd of the \
         run over that of the reference\n{shared}{exchangeable}",
        text::table(&columns)
    )
}

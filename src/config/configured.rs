//! A model or a method with its settings, behind one type for all of them.
//!
//! From settings to a running method: `Precision::method` picks the number type of the run, `ConfiguredMethod` calls
//! `MethodSettings::method` in that type, and that gives a `TableMethod` or `TopicMethod`, whose `start` erases the types of the
//! `cluster::Method` inside for the engine.

use crate::methods::tuning::{Found, TuningNeeds};
use crate::methods::{DataKind, Length, MethodSettings, ResourceEstimate, Sharing};
use crate::models::{BuiltModel, DataSchema, Model, ModelSettings};
use crate::number::Real;
use crate::settings::{self, KeyError};
use std::sync::Arc;

/// A method with its settings, for data of this kind.
pub trait ConfiguredMethod<D: DataKind>: Send + Sync {
    /// Its name in the run file.
    fn name(&self) -> &'static str;
    /// Who holds which training rows.
    fn sharing(&self) -> Sharing;
    /// Whether its draws are meant to follow the posterior.
    fn samples(&self) -> bool;
    /// Whether it takes seed words of topics.
    fn seeded_topics(&self) -> bool;
    /// The keys that change no result.
    fn keys_without_effect_on_results(&self) -> &'static [&'static str];
    /// The settings with every default.
    fn table(&self) -> Result<toml::Table, toml::ser::Error>;
    /// The same method with the defaults that depend on the number of agents.
    fn for_agents(&self, agents: u32) -> Arc<dyn ConfiguredMethod<D>>;
    /// Checks the settings for this number of agents.
    fn check_agents(&self, agents: u32) -> Result<(), KeyError>;
    /// Checks that a model for tables provides what the settings need.
    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError>;
    /// What a run needs.
    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate;
    /// Remarks on settings that are allowed but perhaps not meant.
    fn notes(&self, agents: u32) -> Vec<String>;
    /// What must be measured before the run.
    fn tuning(&self) -> Option<TuningNeeds>;
    /// The same method with everything that the run file leaves open.
    ///
    /// # Errors
    /// A given value that does not suit what was found.
    fn tuned(&self, found: Found, agents: u32) -> Result<Arc<dyn ConfiguredMethod<D>>, KeyError>;
    /// How a finished run can be made longer, if it can.
    fn length(&self, agents: u32) -> Option<Length>;
    /// The method in single precision.
    fn float32(&self, problem: D::Problem<f32>) -> D::Method<f32>;
    /// The method in double precision.
    fn float64(&self, problem: D::Problem<f64>) -> D::Method<f64>;
}

impl<S: MethodSettings> ConfiguredMethod<S::Data> for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn sharing(&self) -> Sharing {
        S::SHARING
    }

    fn samples(&self) -> bool {
        S::SAMPLES
    }

    fn seeded_topics(&self) -> bool {
        S::SEEDED_TOPICS
    }

    fn keys_without_effect_on_results(&self) -> &'static [&'static str] {
        S::KEYS_WITHOUT_EFFECT_ON_RESULTS
    }

    fn table(&self) -> Result<toml::Table, toml::ser::Error> {
        settings::table(self)
    }

    fn for_agents(&self, agents: u32) -> Arc<dyn ConfiguredMethod<S::Data>> {
        Arc::new(MethodSettings::for_agents(self, agents))
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        MethodSettings::check_agents(self, agents)
    }

    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError> {
        MethodSettings::check_model(self, model)
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        MethodSettings::estimate(self, agents, parameters)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        MethodSettings::notes(self, agents)
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        MethodSettings::tuning(self)
    }

    fn tuned(&self, found: Found, agents: u32) -> Result<Arc<dyn ConfiguredMethod<S::Data>>, KeyError> {
        let tuned = MethodSettings::tuned(self, found, agents);
        tuned.check()?;
        MethodSettings::check_agents(&tuned, agents)?;
        Ok(Arc::new(tuned))
    }

    fn length(&self, agents: u32) -> Option<Length> {
        MethodSettings::length(self, agents)
    }

    fn float32(&self, problem: <S::Data as DataKind>::Problem<f32>) -> <S::Data as DataKind>::Method<f32> {
        self.method(problem)
    }

    fn float64(&self, problem: <S::Data as DataKind>::Problem<f64>) -> <S::Data as DataKind>::Method<f64> {
        self.method(problem)
    }
}

/// A model for tables with its settings.
pub trait ConfiguredModel: Send + Sync {
    /// Its name in the run file.
    fn name(&self) -> &'static str;
    /// The settings with every default.
    fn table(&self) -> Result<toml::Table, toml::ser::Error>;
    /// The model in single precision.
    fn float32(&self, schema: Option<&DataSchema>) -> Result<BuiltModel<f32>, KeyError>;
    /// The model in double precision.
    fn float64(&self, schema: Option<&DataSchema>) -> Result<BuiltModel<f64>, KeyError>;
}

impl<S: ModelSettings> ConfiguredModel for S {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn table(&self) -> Result<toml::Table, toml::ser::Error> {
        settings::table(self)
    }

    fn float32(&self, schema: Option<&DataSchema>) -> Result<BuiltModel<f32>, KeyError> {
        self.build_model(schema)
    }

    fn float64(&self, schema: Option<&DataSchema>) -> Result<BuiltModel<f64>, KeyError> {
        self.build_model(schema)
    }
}

/// A type that a run can compute in: picks the half of a configured model or method that is in this type.
pub trait Precision: Real {
    /// The model in this type.
    ///
    /// # Errors
    /// A setting that does not suit the data.
    fn model(model: &dyn ConfiguredModel, schema: Option<&DataSchema>) -> Result<BuiltModel<Self>, KeyError>;

    /// The method in this type.
    fn method<D: DataKind>(method: &dyn ConfiguredMethod<D>, problem: D::Problem<Self>) -> D::Method<Self>;
}

impl Precision for f32 {
    fn model(model: &dyn ConfiguredModel, schema: Option<&DataSchema>) -> Result<BuiltModel<Self>, KeyError> {
        model.float32(schema)
    }

    fn method<D: DataKind>(method: &dyn ConfiguredMethod<D>, problem: D::Problem<Self>) -> D::Method<Self> {
        method.float32(problem)
    }
}

impl Precision for f64 {
    fn model(model: &dyn ConfiguredModel, schema: Option<&DataSchema>) -> Result<BuiltModel<Self>, KeyError> {
        model.float64(schema)
    }

    fn method<D: DataKind>(method: &dyn ConfiguredMethod<D>, problem: D::Problem<Self>) -> D::Method<Self> {
        method.float64(problem)
    }
}

//! What an import makes of each column of a table, which the dataset keeps, so that new rows become what a model has seen.

use crate::data::error::listed;
use crate::data::readers::levels::Levels;

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnUse {
    /// The number itself.
    Number,
    /// The number; where it is missing, this mean of the training rows. It is missing in no training row.
    #[serde(rename = "number_with_mean")]
    Filled(f64),
    /// The number; where it is missing, this mean of the training rows. A second feature is 1 where it is missing and 0
    /// elsewhere.
    #[serde(rename = "number_or_mean")]
    FilledAndFlagged(f64),
    /// The days since 1970.
    Date,
    /// For each level but the first, whether it is this one: 1 or 0.
    Indicators(Vec<String>),
    /// The index of the level, for effects of groups.
    Group(Vec<String>),
    /// The number is added to linear predictors.
    Offset,
    /// The logarithm of the number is added to linear predictors.
    Exposure,
    /// The number says how often the row counts.
    Weight,
}

impl ColumnUse {
    /// Whether a mean of the training rows replaces a missing number.
    fn has_mean(&self) -> bool {
        matches!(self, Self::Filled(_) | Self::FilledAndFlagged(_))
    }
}

/// The level of rows that lack a text.
pub(super) const MISSING_LEVEL: &str = "missing";

/// The index of the level of rows that lack a text.
fn missing_level(levels: &[String]) -> Option<usize> {
    levels.iter().position(|level| level == MISSING_LEVEL)
}

/// A column and its use.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct UsedColumn {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub r#use: ColumnUse,
}

/// What becomes of the columns of a table, in their order.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Recipe {
    /// The columns.
    pub columns: Vec<UsedColumn>,
    /// How many rows were left out because a value is missing.
    pub left_out: usize,
    /// Further texts that stand for a missing value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub na: Vec<String>,
    /// Whether a missing text is a level of its own, where training rows lack one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_missing_texts: bool,
    /// Whether numbers have a decimal comma.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decimal_comma: bool,
    /// Whether the classes have an order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ordered_classes: bool,
}

/// A value because of which a row cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnusableValue<'a> {
    /// It is missing, and the recipe does not fill it in.
    #[error("the value of {column:?} is missing")]
    Missing {
        /// The column.
        column: &'a str,
    },
    /// No training row has it.
    #[error("{column:?} has a value that no training row has; they have {}", listed(known))]
    UnknownLevel {
        /// The column.
        column: &'a str,
        /// The levels of training rows.
        known: &'a [String],
    },
    /// The exposure is not positive.
    #[error("the exposure {column:?} is {value}: it must be positive")]
    Exposure {
        /// The column.
        column: &'a str,
        /// The exposure.
        value: f64,
    },
    /// The weight is negative.
    #[error("the weight {column:?} is {value}: it cannot be negative")]
    Weight {
        /// The column.
        column: &'a str,
        /// The weight.
        value: f64,
    },
}

/// The columns after the features, which are not scaled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtraColumns {
    /// Whether there is a column with the offset of the linear predictor.
    pub offset: bool,
    /// Whether there is a column with the weight of the row.
    pub weight: bool,
    /// The names of the groups, whose index is the last column; if there are none, there is no such column.
    pub groups: Vec<String>,
}

impl ExtraColumns {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.offset) + usize::from(self.weight) + usize::from(!self.groups.is_empty())
    }
}

impl Recipe {
    /// Whether every column is a feature as it is.
    pub fn has_plain_columns(&self) -> bool {
        self.columns.iter().all(|column| column.r#use == ColumnUse::Number)
    }

    /// Whether it changes nothing.
    pub fn is_plain(&self) -> bool {
        self.has_plain_columns() && self.left_out == 0 && self.na.is_empty() && !self.decimal_comma && !self.has_ordered_classes
    }

    /// Whether every column is a feature as it is, unless it is missing.
    pub fn has_numbers_only(&self) -> bool {
        self.columns.iter().all(|column| matches!(column.r#use, ColumnUse::Number | ColumnUse::Filled(_)))
    }

    /// The names of the columns of a dataset: features, then the offset, the weight and the group.
    pub fn names(&self) -> Vec<String> {
        let of_features = self.columns.iter().flat_map(|UsedColumn { name, r#use }| match r#use {
            ColumnUse::Number | ColumnUse::Filled(_) | ColumnUse::Date => vec![name.clone()],
            ColumnUse::FilledAndFlagged(_) => vec![name.clone(), format!("{name}[missing]")],
            ColumnUse::Indicators(levels) => levels.iter().skip(1).map(|level| format!("{name}[{level}]")).collect(),
            ColumnUse::Group(_) | ColumnUse::Offset | ColumnUse::Exposure | ColumnUse::Weight => Vec::new(),
        });
        let offset = self.offset().map(|column| match column.r#use {
            ColumnUse::Exposure => format!("log({})", column.name),
            _ => column.name.clone(),
        });
        let weight = self.weight().map(|column| column.name.clone());
        let group = self.group().map(|(name, _)| name.to_owned());
        of_features.chain(offset).chain(weight).chain(group).collect()
    }

    /// The columns after the features.
    pub(crate) fn extra(&self) -> ExtraColumns {
        let groups = self.group().map(|(_, levels)| levels.to_vec()).unwrap_or_default();
        ExtraColumns { offset: self.offset().is_some(), weight: self.weight().is_some(), groups }
    }

    fn offset(&self) -> Option<&UsedColumn> {
        self.columns.iter().find(|column| matches!(column.r#use, ColumnUse::Offset | ColumnUse::Exposure))
    }

    fn weight(&self) -> Option<&UsedColumn> {
        self.columns.iter().find(|column| column.r#use == ColumnUse::Weight)
    }

    /// The column of groups and its levels.
    pub fn group(&self) -> Option<(&str, &[String])> {
        self.columns.iter().find_map(|column| match &column.r#use {
            ColumnUse::Group(levels) => Some((column.name.as_str(), &levels[..])),
            _ => None,
        })
    }

    /// The columns of texts with their levels.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Levels)> {
        self.columns.iter().filter_map(|column| match &column.r#use {
            ColumnUse::Group(levels) | ColumnUse::Indicators(levels) => Some((column.name.as_str(), Levels::known(levels))),
            _ => None,
        })
    }

    /// The columns of dates.
    pub fn dates(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| column.r#use == ColumnUse::Date).map(|column| column.name.as_str())
    }

    /// Whether a missing value of a column is filled in.
    fn fills_in(&self, r#use: &ColumnUse) -> bool {
        match r#use {
            ColumnUse::Indicators(levels) => self.has_missing_texts && missing_level(levels).is_some(),
            r#use => r#use.has_mean(),
        }
    }

    /// Whether a missing number is filled in by a mean of training rows.
    pub fn fills_in_a_mean(&self, values: &[f64]) -> bool {
        self.columns.iter().zip(values).any(|(column, value)| value.is_nan() && column.r#use.has_mean())
    }

    /// The text of the first column whose level training rows do not have; `levels` has the texts of each column of texts.
    pub fn unknown_text<'a>(&self, values: &[f64], levels: &'a [Levels]) -> Option<&'a str> {
        let is_text = |column: &&(&UsedColumn, &f64)| matches!(column.0.r#use, ColumnUse::Indicators(_) | ColumnUse::Group(_));
        let columns: Vec<_> = self.columns.iter().zip(values).collect();
        columns.iter().filter(is_text).zip(levels).find_map(|((UsedColumn { r#use, .. }, value), texts)| match r#use {
            // Codes are whole numbers.
            ColumnUse::Indicators(known) if !value.is_nan() && **value as usize >= known.len() => {
                texts.names().get(**value as usize).map(String::as_str)
            }
            _ => None,
        })
    }

    /// Whether the group of a row is one that training rows do not have.
    pub(crate) fn has_new_group(&self, values: &[f64]) -> bool {
        self.columns.iter().zip(values).any(|(UsedColumn { r#use, .. }, &value)| match r#use {
            // Codes are whole numbers.
            ColumnUse::Group(levels) => value as usize >= levels.len(),
            _ => false,
        })
    }

    /// Overwrites `row` with what becomes of the values of the columns; texts are given as the numbers of their levels.
    ///
    /// # Errors
    /// A missing value that cannot be filled in; if there is none, the first other value that cannot be used.
    pub fn apply(&self, values: &[f64], row: &mut Vec<f64>) -> Result<(), UnusableValue<'_>> {
        row.clear();
        let (mut offset, mut weight, mut group) = (None, None, None);
        let columns = || self.columns.iter().zip(values.iter().copied());
        if let Some((column, _)) = columns().find(|(column, value)| value.is_nan() && !self.fills_in(&column.r#use)) {
            return Err(UnusableValue::Missing { column: &column.name });
        }
        for (UsedColumn { name, r#use }, value) in columns() {
            match r#use {
                ColumnUse::Filled(mean) if value.is_nan() => row.push(*mean),
                ColumnUse::Number | ColumnUse::Filled(_) | ColumnUse::Date => row.push(value),
                ColumnUse::FilledAndFlagged(mean) if value.is_nan() => row.extend([*mean, 1.0]),
                ColumnUse::FilledAndFlagged(_) => row.extend([value, 0.0]),
                ColumnUse::Indicators(levels) => {
                    let missing = missing_level(levels).filter(|_| value.is_nan());
                    let level = missing.map_or_else(|| known_level(name, levels, value), Ok)?;
                    row.extend((1..levels.len()).map(|other| f64::from(u8::from(other == level))));
                }
                // An unknown group comes after the last one.
                ColumnUse::Group(levels) => group = Some(value.min(levels.len() as f64)),
                ColumnUse::Offset => offset = Some(value),
                ColumnUse::Exposure if value > 0.0 => offset = Some(value.ln()),
                ColumnUse::Exposure => return Err(UnusableValue::Exposure { column: name, value }),
                ColumnUse::Weight if value >= 0.0 => weight = Some(value),
                ColumnUse::Weight => return Err(UnusableValue::Weight { column: name, value }),
            }
        }
        row.extend(offset);
        row.extend(weight);
        row.extend(group);
        Ok(())
    }
}

/// The index of a level that the levels have.
fn known_level<'a>(name: &'a str, levels: &'a [String], code: f64) -> Result<usize, UnusableValue<'a>> {
    // Codes are whole numbers below `MAX_LEVELS`.
    let code = code as usize;
    if code < levels.len() { Ok(code) } else { Err(UnusableValue::UnknownLevel { column: name, known: levels }) }
}

//! The columns of a table: how a user names them, and what each is for.

use crate::data::error::{DataError, Result, listed};
use crate::data::readers::fields::Delimiter;

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// The last one.
    #[default]
    Last,
    /// This one, counting from 1.
    Number(usize),
    /// The column with this name in the header.
    Name(String),
    /// No column: rows to predict have no label.
    None,
}

/// Whether the first line of a text names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Yes if none of its features is a number.
    #[default]
    Detect,
    /// Yes.
    Yes,
    /// No: it is a row of data.
    No,
}

/// The layout of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableLayout {
    /// The delimiter of fields in a text; `None` to detect it from the first line.
    pub delimiter: Option<Delimiter>,
    /// Whether the first line of a text names the columns.
    pub header: Header,
    /// The column of the label or target.
    pub label: Column,
    /// Columns that are left out.
    pub drop: Vec<Column>,
    /// Features whose values are texts. A row has the number of the text, see [`Table::levels`](super::table::Table::levels).
    pub texts: Vec<Column>,
    /// Features whose values are dates. A row has the days since 1970.
    pub dates: Vec<Column>,
    /// Features that are numbers and whose places are wanted, see [`Table::located`](super::table::Table::located).
    pub located: Vec<Column>,
    /// Further texts that stand for a missing value.
    pub na: Vec<String>,
    /// Whether numbers have a decimal comma.
    pub decimal_comma: bool,
    /// Whether features may be missing. A row has NaN there.
    pub allow_missing: bool,
    /// Whether messages propose options of `mpibayes import`.
    pub is_import: bool,
}

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A number.
    Feature,
    /// A feature whose values are texts, those of the levels with this index.
    Text(usize),
    /// A feature whose values are dates.
    Date,
    /// The label or target.
    Label,
    /// Left out.
    Dropped,
}

impl Role {
    pub(crate) fn is_feature(self) -> bool {
        matches!(self, Self::Feature | Self::Text(_) | Self::Date)
    }
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Columns {
    pub(crate) roles: Vec<Role>,
    /// The places of the columns that were to be located.
    pub(crate) located: Vec<usize>,
    /// The names of all columns, if they have names.
    pub(crate) names: Option<Vec<String>>,
}

impl TableLayout {
    /// Whether a column is given by its name.
    pub(crate) fn uses_names(&self) -> bool {
        let all = self.drop.iter().chain(&self.texts).chain(&self.dates).chain(&self.located).chain([&self.label]);
        all.into_iter().any(|column| matches!(column, Column::Name(_)))
    }

    /// What each column is for; `fields` are their names, or what stands in the first line. `wrong` is an error of the file.
    pub(crate) fn columns(&self, fields: &[String], wrong: impl Fn(String) -> DataError) -> Result<Columns> {
        let width = fields.len();
        if width < 2 && self.label != Column::None {
            return Err(wrong("only one column: a label and at least one feature are needed".into()));
        }
        if width == 0 {
            return Err(wrong("there are no columns".into()));
        }
        let place_of = |column: &Column| match *column {
            Column::None => Err(DataError::Request("no column is given here: give its number, or its name in the header".into())),
            Column::Last => Ok(width - 1),
            Column::Number(number) if (1..=width).contains(&number) => Ok(number - 1),
            Column::Number(number) => Err(wrong(format!("there is no column {number}: the file has columns 1 to {width}"))),
            Column::Name(_) if self.header == Header::No => {
                let what = "a column can be named only if the file has a header: give its number";
                Err(DataError::Request(what.into()))
            }
            Column::Name(ref name) => fields.iter().position(|field| field == name).ok_or_else(|| {
                let named: Vec<String> = fields.iter().filter(|field| !field.is_empty()).cloned().collect();
                if name.contains(',') {
                    // Options that take several columns have split the text at its commas.
                    let options = if *column == self.label {
                        "--label takes"
                    } else if self.texts.contains(column) {
                        "--group takes"
                    } else {
                        "--exposure, --offset and --weight take"
                    };
                    return wrong(format!(
                        "no column is called {name:?} here: {options} one column; there are {}",
                        listed(&named)
                    ));
                }
                wrong(format!("no column is called {name:?} here; there are {}; or give its number", listed(&named)))
            }),
        };
        let mut roles = vec![Role::Feature; width];
        let label = if self.label == Column::None { None } else { Some(place_of(&self.label)?) };
        for dropped in &self.drop {
            roles[place_of(dropped)?] = Role::Dropped;
        }
        if let Some(label) = label {
            if roles[label] == Role::Dropped {
                let what = "is both the label and in --drop: choose another label with --label, or do not drop it";
                return Err(wrong(format!("column {} ({}) {what}", label + 1, fields[label])));
            }
            roles[label] = Role::Label;
        }
        let free = |place: usize, is_taken: bool, roles: &[Role]| match roles[place] {
            Role::Feature if !is_taken => Ok(place),
            role => {
                let is = match role {
                    Role::Label => "the label: choose another column",
                    Role::Dropped => "left out",
                    Role::Feature | Role::Text(_) | Role::Date => "named twice",
                };
                Err(DataError::Request(format!("column {} ({}) is {is}", place + 1, fields[place])))
            }
        };
        let wanted = self.texts.iter().enumerate().map(|(index, column)| (column, Role::Text(index)));
        for (column, role) in wanted.chain(self.dates.iter().map(|column| (column, Role::Date))) {
            let place = free(place_of(column)?, false, &roles)?;
            roles[place] = role;
        }
        let mut located = Vec::new();
        for column in &self.located {
            let place = place_of(column)?;
            located.push(free(place, located.contains(&place), &roles)?);
        }
        if !roles.iter().any(|role| role.is_feature()) {
            return Err(DataError::Request("all columns but the label are left out: no feature remains".into()));
        }
        Ok(Columns { roles, located, names: None })
    }
}

impl Columns {
    /// With names of all columns.
    pub(crate) fn named(self, names: Vec<String>, wrong: impl Fn(String) -> DataError) -> Result<Self> {
        let used: Vec<&String> =
            names.iter().zip(&self.roles).filter(|&(_, &role)| role != Role::Dropped).map(|(name, _)| name).collect();
        if let Some(place) = names.iter().zip(&self.roles).position(|(name, &role)| name.is_empty() && role != Role::Dropped) {
            let number = place + 1;
            return Err(wrong(format!(
                "column {number} has no name, like the row numbers that pandas and R write: leave it out with --drop {number}, or give it a name"
            )));
        }
        let mut sorted = used.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = pair[0];
            return Err(wrong(format!(
                "two columns are called {name:?}: rename one (an import may leave it out with --drop NUMBER)"
            )));
        }
        Ok(Self { names: Some(names), ..self })
    }

    /// The number of features.
    pub(crate) fn features(&self) -> usize {
        self.roles.iter().filter(|role| role.is_feature()).count()
    }

    /// The place of a column among the features.
    pub(crate) fn feature_place(&self, column: usize) -> usize {
        self.roles[..column].iter().filter(|role| role.is_feature()).count()
    }

    /// The name of a column for messages, and how a user names it in options.
    pub(crate) fn described(&self, column: usize) -> (String, String) {
        let number = (column + 1).to_string();
        let Some(names) = &self.names else { return (format!("column {number}"), number) };
        let name = &names[column];
        // Names with blanks or commas would need quotes.
        let is_plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
            && !["first", "last"].contains(&name.as_str());
        (format!("column {number} ({name})"), if is_plain { name.clone() } else { number })
    }
}

//! Groups of documents by a column of a table, such as the months of their dates, and the shares of topics in them.

use crate::report::error::{ReportError, Result};
use crate::text;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The most groups. Dates are grouped by day, month or year, by the first of these that has so few.
const MAX_DATES: usize = 60;
/// The most groups of other values.
const MAX_GROUPS: usize = 200;
/// The lengths of days, months and years as the beginning of a date: 2024-05-17.
const PERIODS: [usize; 3] = [10, 7, 4];
/// The most groups that have a column each in a text; more have a line of bars.
const COLUMNS: usize = 5;
/// The levels of a line of characters.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The group of each imported document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentGroups {
    column: String,
    /// The names of the groups, in order.
    names: Vec<String>,
    /// The group of each document; none if its value is empty.
    of_documents: Vec<Option<usize>>,
}

impl DocumentGroups {
    /// Reads a CSV file, or TSV by its name, with a header and a row for each imported document in their order. Without a `column`, the file
    /// must have only one.
    ///
    /// # Errors
    /// If the file cannot be read, has no such column, or has too many different values.
    pub fn read(path: &Path, column: Option<&str>) -> Result<Self> {
        let unreadable = |error: csv::Error| ReportError::missing(path, format!("cannot be read: {error}"));
        let is_tsv = path.extension().is_some_and(|extension| extension == "tsv");
        let delimiter = if is_tsv { b'\t' } else { b',' };
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_path(path).map_err(unreadable)?;
        let header = reader.headers().map_err(unreadable)?.clone();
        let all = || header.iter().collect::<Vec<_>>().join(", ");
        let at = match column {
            Some(column) => header.iter().position(|name| name.trim() == column),
            None if header.len() == 1 => Some(0),
            None => {
                return Err(ReportError::missing(path, format!("choose one of its columns with --column: {}", all())));
            }
        };
        let Some(at) = at else {
            return Err(ReportError::missing(
                path,
                format!("there is no column {}; the columns are {}", column.unwrap_or("-"), all()),
            ));
        };
        let mut values = Vec::new();
        for row in reader.records() {
            values.push(row.map_err(unreadable)?.get(at).unwrap_or_default().trim().to_owned());
        }
        let name = header.get(at).unwrap_or_default().trim().to_owned();
        Self::of_values(name, &values).map_err(|what| ReportError::missing(path, what))
    }

    fn of_values(column: String, values: &[String]) -> std::result::Result<Self, String> {
        let given = || values.iter().filter(|value| !value.is_empty());
        let length = match given().all(|value| is_date(value)) {
            true => {
                let shortest = given().map(String::len).min().unwrap_or(0);
                let distinct =
                    |length: usize| given().map(|value| &value[..length]).collect::<std::collections::BTreeSet<_>>().len();
                let mut fitting = PERIODS.into_iter().filter(|&length| length <= shortest);
                fitting.find(|&length| length == 4 || distinct(length) <= MAX_DATES)
            }
            false => None,
        };
        let group = |value: &String| length.and_then(|length| value.get(..length)).unwrap_or(value).to_owned();
        let mut numbers: BTreeMap<String, usize> = given().map(|value| (group(value), 0)).collect();
        if numbers.len() > MAX_GROUPS {
            let many = numbers.len();
            return Err(format!("column {column} has {many} different values, of at most {MAX_GROUPS}: group them first"));
        }
        if numbers.is_empty() {
            return Err(format!("column {column} has no values"));
        }
        numbers.values_mut().enumerate().for_each(|(number, place)| *place = number);
        let of_documents = values.iter().map(|value| numbers.get(&group(value)).copied()).collect();
        Ok(Self { column, names: numbers.into_keys().collect(), of_documents })
    }

    /// The group of the document with this number in the imported files, if it has one.
    ///
    /// # Errors
    /// If there is no row for it.
    pub fn of(&self, document: u64) -> Result<Option<usize>> {
        let row = usize::try_from(document).ok().and_then(|row| self.of_documents.get(row));
        row.copied().ok_or_else(|| {
            ReportError::Missing(format!(
                "the table of --by has {} rows, and there is a document {document}: it needs a row for each imported document",
                self.of_documents.len()
            ))
        })
    }
}

/// Whether a value begins as a date of ISO 8601 does: 2024, 2024-05, 2024-05-17 or 2024-05-17T10:30.
fn is_date(value: &str) -> bool {
    let form = "0000-00-00";
    let begins =
        value.bytes().zip(form.bytes()).all(|(byte, form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form });
    let length = value.len();
    begins && (length == 4 || length == 7 || length == 10 || length > 10 && matches!(value.as_bytes()[10], b'T' | b' '))
}

/// Groups of documents and their sizes.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSizes {
    /// The column that groups the documents.
    pub column: String,
    /// The names of the groups.
    pub names: Vec<String>,
    /// The documents of each group.
    pub documents: Vec<u64>,
    /// The tokens of each group.
    pub tokens: Vec<f64>,
    /// Documents without a group.
    pub without: u64,
}

impl std::fmt::Display for GroupSizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { column, names, documents, without, .. } = self;
        let named = match names.as_slice() {
            names if names.len() <= COLUMNS => names.join(", "),
            names => format!("from {} to {}", names[0], names[names.len() - 1]),
        };
        let sizes = documents.iter().min().zip(documents.iter().max());
        let sizes = sizes.map(|(fewest, most)| format!("{} to {}", text::count(*fewest), text::counted(*most, "document")));
        write!(f, "{} by {column}, {named}: {}", text::counted(names.len(), "group"), sizes.unwrap_or_default())?;
        match without {
            0 => Ok(()),
            without => write!(f, "; {} without", text::counted(*without, "document")),
        }
    }
}

/// The tokens of each topic in each group.
pub(super) struct GroupTokens<'a> {
    groups: &'a DocumentGroups,
    sizes: GroupSizes,
    /// Groups × K.
    tokens: Vec<f64>,
    topics: usize,
}

impl<'a> GroupTokens<'a> {
    pub fn new(groups: &'a DocumentGroups, topics: usize) -> Self {
        let (names, count) = (groups.names.clone(), groups.names.len());
        let sizes =
            GroupSizes { column: groups.column.clone(), names, documents: vec![0; count], tokens: vec![0.0; count], without: 0 };
        Self { groups, sizes, tokens: vec![0.0; count * topics], topics }
    }

    /// Adds a document with this number, so many tokens and these weights of topics.
    pub fn add(&mut self, document: u64, tokens: f64, weights: impl IntoIterator<Item = f64>) -> Result<()> {
        let Some(group) = self.groups.of(document)? else {
            self.sizes.without += 1;
            return Ok(());
        };
        self.sizes.documents[group] += 1;
        self.sizes.tokens[group] += tokens;
        let sums = &mut self.tokens[group * self.topics..(group + 1) * self.topics];
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * tokens);
        Ok(())
    }

    /// The share of a topic in each group; NaN in those without tokens.
    pub fn shares(&self, topic: usize) -> Vec<f64> {
        let of = |(group, tokens): (usize, &f64)| self.tokens[group * self.topics + topic] / tokens;
        self.sizes.tokens.iter().enumerate().map(of).collect()
    }

    pub fn into_sizes(self) -> GroupSizes {
        self.sizes
    }
}

/// The columns of a text table: the shares of topics in each group, or in many groups as bars.
pub(super) fn columns(groups: &GroupSizes, shares: &[&[f64]]) -> Vec<(String, Vec<String>)> {
    if groups.names.len() > COLUMNS {
        return vec![(groups.column.clone(), shares.iter().map(|shares| line(shares)).collect())];
    }
    let of = |(group, name): (usize, &String)| {
        (name.clone(), shares.iter().map(|shares| format!("{:.2} %", 100.0 * shares[group])).collect())
    };
    groups.names.iter().enumerate().map(of).collect()
}

/// Shares as a line of bars, from 0 to the largest of them.
fn line(shares: &[f64]) -> String {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let level = |share: &f64| match (share / largest * LEVELS.len() as f64) as usize {
        _ if share.is_nan() => ' ',
        level => LEVELS[level.min(LEVELS.len() - 1)],
    };
    shares.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(values: &[&str]) -> std::result::Result<DocumentGroups, String> {
        DocumentGroups::of_values("when".into(), &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn dates_are_grouped_by_the_finest_period_with_few_groups() {
        let days = of(&["2024-05-17", "2024-05-17 10:30", "", "2023-12-01"]).unwrap();
        assert_eq!(days.names, ["2023-12-01", "2024-05-17"]);
        assert_eq!(days.of_documents, [Some(1), Some(1), None, Some(0)]);
        let many: Vec<String> = (0..100).map(|n| format!("20{:02}-{:02}-{:02}", n / 50, n % 12 + 1, n % 28 + 1)).collect();
        let months = DocumentGroups::of_values("when".into(), &many).unwrap();
        assert_eq!(months.names.len(), 24);
        assert!(months.names.iter().all(|name| name.len() == 7));
        let years = of(&["2024-05", "2023"]).unwrap();
        assert_eq!(years.names, ["2023", "2024"]);
        // A value that is no date: none is.
        assert_eq!(of(&["2024-05-17", "2024-05-18", "soon"]).unwrap().names, ["2024-05-17", "2024-05-18", "soon"]);
        assert!(!is_date("2024-5-17") && !is_date("20240517") && !is_date("2024-05-17x") && is_date("2024-05-17T10:30:00Z"));
    }

    #[test]
    fn tables_without_groups_for_the_documents_are_errors() {
        let numbers: Vec<String> = (0..201).map(|n| format!("v{n}")).collect();
        let many = DocumentGroups::of_values("when".into(), &numbers).unwrap_err();
        assert_eq!(many, "column when has 201 different values, of at most 200: group them first");
        assert_eq!(of(&["", ""]).unwrap_err(), "column when has no values");
        let message = of(&["a", "b"]).unwrap().of(2).unwrap_err().to_string();
        assert!(message.contains("has 2 rows, and there is a document 2"), "{message}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("by.csv");
        std::fs::write(&path, "id, date\n1,2024\n2,2025\n").unwrap();
        let message = |column| DocumentGroups::read(&path, column).unwrap_err().to_string();
        assert!(message(None).contains("choose one of its columns with --column: id,"), "{}", message(None));
        assert!(message(Some("day")).contains("there is no column day; the columns are id,"), "{}", message(Some("day")));
        assert_eq!(DocumentGroups::read(&path, Some("date")).unwrap().names, ["2024", "2025"]);
    }

    #[test]
    fn lines_show_shares_from_zero_to_the_largest() {
        assert_eq!(line(&[0.0, 0.25, f64::NAN, 0.5]), "▁▅ █");
        assert_eq!(line(&[0.0, 0.0]), "▁▁");
    }

    #[test]
    fn shares_of_a_group_are_means_weighted_by_tokens() {
        let groups = of(&["a", "b", "a", ""]).unwrap();
        let mut tokens = GroupTokens::new(&groups, 2);
        for (document, count, weight) in [(0, 10.0, 0.2), (1, 5.0, 1.0), (2, 30.0, 0.6), (3, 7.0, 0.5)] {
            tokens.add(document, count, [weight, 1.0 - weight]).unwrap();
        }
        assert_eq!((tokens.shares(0), tokens.shares(1)), (vec![0.5, 1.0], vec![0.5, 0.0]));
        let sizes = tokens.into_sizes();
        assert_eq!((sizes.documents, sizes.tokens, sizes.without), (vec![2, 1], vec![40.0, 5.0], 1));
    }
}

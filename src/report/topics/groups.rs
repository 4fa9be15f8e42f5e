//! Groups of documents by a column of a table, such as the months of their dates, and the shares of topics in them.

use crate::data::{Split, is_missing, read_text_column};
use crate::job::topic_model::Adopted;
use crate::report::error::{ReportError, Result};
use crate::text;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The most days or months that dates are grouped by; if there are more between the first and the last date, a longer period is used.
const MAX_PERIODS: usize = 60;
/// The most groups of all.
const MAX_GROUPS: usize = 200;
/// The most groups that have a column each in the text table; for more, a sparkline is printed.
const MAX_COLUMNS: usize = 5;
/// The most characters of a name in the text table.
const NAME_WIDTH: usize = 24;
/// The bars of a sparkline by their height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The group of each imported document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentGroups {
    path: PathBuf,
    column: String,
    /// The names of the groups, in order.
    names: Vec<String>,
    /// The group of each document; none if its value is missing.
    of_documents: Vec<Option<usize>>,
}

impl DocumentGroups {
    /// Reads a text table with a header and a row for each imported document, in their order. Without a `column`, it must have a single one.
    ///
    /// # Errors
    /// If the file cannot be read, has no such column, or has values that cannot be grouped.
    pub fn read(path: &Path, column: Option<&str>) -> Result<Self> {
        let column = read_text_column(path, column)?;
        let wrong = |what: String| ReportError::missing(path, what);
        if Date::parse(&column.name).is_some() {
            return Err(wrong(format!("the first row must be a header, and it has the date {}", column.name)));
        }
        let clean = |value: &String| value.replace(char::is_control, " ");
        let values: Vec<String> = column.rows.iter().map(clean).collect();
        let (names, of_documents) = grouped(&values).map_err(|what| wrong(format!("column {}: {what}", column.name)))?;
        Ok(Self { path: path.to_owned(), column: clean(&column.name), names, of_documents })
    }

    /// Checks that there is a row for each document of a corpus.
    ///
    /// # Errors
    /// If rows are missing, or the corpus cannot be read.
    pub fn check(&self, corpus: &Adopted) -> Result<()> {
        for split in [Split::Train, Split::Test] {
            let numbers = corpus.numbers(split, 0..corpus.documents(split))?;
            if let Some(last) = numbers.into_iter().max() {
                self.of(last)?;
            }
        }
        Ok(())
    }

    /// The group of the document with this number in the imported files, if it has one.
    ///
    /// # Errors
    /// If there is no row for it.
    fn of(&self, document: u64) -> Result<Option<usize>> {
        let row = usize::try_from(document).ok().and_then(|row| self.of_documents.get(row));
        row.copied().ok_or_else(|| {
            let rows = text::counted(self.of_documents.len(), "row");
            let what = format!(
                "it has {rows}, but the corpus has a document number {document} (from 0). It needs a row for each imported document, in the \
                 order of the import"
            );
            ReportError::missing(&self.path, what)
        })
    }
}

/// The names of groups, and the group of each value that is not missing.
fn grouped(values: &[String]) -> std::result::Result<(Vec<String>, Vec<Option<usize>>), String> {
    let given: Vec<&String> = values.iter().filter(|value| !is_missing(value.as_bytes())).collect();
    let dates: Vec<Date> = given.iter().filter_map(|value| Date::parse(value)).collect();
    if given.is_empty() {
        return Err("there are no values".into());
    }
    let spans = if dates.len() == given.len() { periods(&dates) } else { None };
    let (names, length) = if let Some(periods) = spans {
        periods
    } else if dates.len() < given.len() && 2 * dates.len() > given.len() {
        let is_wrong = |value: &String| !is_missing(value.as_bytes()) && Date::parse(value).is_none();
        let row = values.iter().position(is_wrong).unwrap_or_default();
        return Err(format!("row {} has {:?}, and most rows have dates such as 2024-05-17", row + 1, values[row]));
    } else {
        if let Some(value) = given.iter().find(|value| is_date_of_another_form(value)) {
            return Err(format!("{value:?} looks like a date; write dates as 2024-05-17"));
        }
        (distinct(&given), usize::MAX)
    };
    if names.len() > MAX_GROUPS {
        let many = text::count(names.len());
        return Err(format!(
            "it has {many} different values, and at most {MAX_GROUPS} groups are possible: combine some of them"
        ));
    }
    let numbers: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let group = |value: &String| numbers.get(value.get(..length).unwrap_or(value)).copied();
    let of_documents = values.iter().map(group).collect();
    Ok((names, of_documents))
}

/// Whether a value has three numbers between points, slashes or hyphens: 17.05.2024.
fn is_date_of_another_form(value: &str) -> bool {
    let parts: Vec<&str> = value.split(['.', '/', '-']).collect();
    let is_number = |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && parts.iter().any(|part| part.len() == 4)
}

/// Different values: numbers by their size, and others in alphabetical order.
fn distinct(values: &[&String]) -> Vec<String> {
    let mut names: Vec<String> = values.iter().copied().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    let number = |name: &String| name.parse::<f64>().ok();
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|one, other| number(one).unwrap_or_default().total_cmp(&number(other).unwrap_or_default()));
    }
    names
}

/// A date, perhaps without its day or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Date {
    year: u32,
    month: Option<u32>,
    day: Option<u32>,
}

impl Date {
    /// Reads a date as ISO 8601 has it: 2024, 2024-05, 2024-05-17 or 2024-05-17T10:30.
    fn parse(value: &str) -> Option<Self> {
        let date = match value.find(['T', ' ']) {
            Some(10) => &value[..10],
            Some(_) => return None,
            None => value,
        };
        let part = |part: &str, digits: usize| {
            let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { part.parse::<u32>().ok() } else { None }
        };
        let mut parts = date.split('-');
        let year = part(parts.next()?, 4)?;
        let month = parts.next().map(|month| part(month, 2).filter(|month| (1..=12).contains(month)));
        let day = parts.next().map(|day| part(day, 2));
        if month == Some(None) || day == Some(None) || parts.next().is_some() {
            return None;
        }
        let date = Self { year, month: month.flatten(), day: day.flatten() };
        date.day.is_none_or(|day| (1..=date.days_in_month()).contains(&day)).then_some(date)
    }

    fn days_in_month(self) -> u32 {
        let is_leap_year = self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        match self.month {
            Some(2) if is_leap_year => 29,
            Some(2) => 28,
            Some(4 | 6 | 9 | 11) => 30,
            _ => 31,
        }
    }

    /// The next day, month or year: the shortest that the date has.
    fn next(self) -> Self {
        let Self { year, month, day } = self;
        match (month, day) {
            (_, Some(day)) if day < self.days_in_month() => Self { day: Some(day + 1), ..self },
            (Some(month), _) if month < 12 => Self { month: Some(month + 1), day: day.map(|_| 1), ..self },
            _ => Self { year: year + 1, month: month.map(|_| 1), day: day.map(|_| 1) },
        }
    }

    /// The first `length` characters.
    fn name(self, length: usize) -> String {
        let Self { year, month, day } = self;
        let mut name = format!("{year:04}-{:02}-{:02}", month.unwrap_or(1), day.unwrap_or(1));
        name.truncate(length);
        name
    }
}

/// The names of all days, months or years from the first to the last date, and the length of these names: of days if there are at most
/// [`MAX_PERIODS`] and all dates have one, else of months, else of years. None if there are too many: years are then numbers of another kind.
fn periods(dates: &[Date]) -> Option<(Vec<String>, usize)> {
    let (first, last) = (*dates.iter().min()?, *dates.iter().max()?);
    let all = |date: Date, length: usize, most: usize| {
        let last = last.name(length);
        let mut names = vec![date.name(length)];
        let mut date = date;
        while names[names.len() - 1] < last && names.len() <= most {
            date = date.next();
            names.push(date.name(length));
        }
        names
    };
    let has = |part: fn(&Date) -> Option<u32>| dates.iter().all(|date| part(date).is_some());
    if has(|date| date.day) {
        let days = all(first, 10, MAX_PERIODS);
        if days.len() <= MAX_PERIODS {
            return Some((days, 10));
        }
    }
    if has(|date| date.month) {
        let months = all(Date { day: None, ..first }, 7, MAX_PERIODS);
        if months.len() <= MAX_PERIODS {
            return Some((months, 7));
        }
    }
    let years = all(Date { year: first.year, month: None, day: None }, 4, MAX_GROUPS);
    (years.len() <= MAX_GROUPS).then_some((years, 4))
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
    pub ungrouped_documents: u64,
}

impl std::fmt::Display for GroupSizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { column, names, documents, ungrouped_documents, .. } = self;
        let named = match names.as_slice() {
            names if names.len() <= MAX_COLUMNS => names.join(", "),
            names => format!("from {} to {}", names[0], names[names.len() - 1]),
        };
        let sizes = documents.iter().min().zip(documents.iter().max());
        let sizes = sizes.map(|(fewest, most)| format!("{} to {}", text::count(*fewest), text::counted(*most, "document")));
        write!(f, "{} by {column}, {named}: {}", text::counted(names.len(), "group"), sizes.unwrap_or_default())?;
        match ungrouped_documents {
            0 => Ok(()),
            many => write!(f, "; {} without a value", text::counted(*many, "document")),
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
        let sizes = GroupSizes {
            column: groups.column.clone(),
            names,
            documents: vec![0; count],
            tokens: vec![0.0; count],
            ungrouped_documents: 0,
        };
        Self { groups, sizes, tokens: vec![0.0; count * topics], topics }
    }

    /// Adds a document: its number, its token count and its weights of topics.
    pub fn add(&mut self, document: u64, tokens: f64, weights: impl IntoIterator<Item = f64>) -> Result<()> {
        let Some(group) = self.groups.of(document)? else {
            self.sizes.ungrouped_documents += 1;
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

/// The columns of a text table: the shares of topics in each group, or, if there are many, their sparkline and the largest of them.
pub(super) fn columns(groups: &GroupSizes, shares: &[&[f64]]) -> Vec<(String, Vec<String>)> {
    let percent = |share: f64| if share.is_nan() { "-".into() } else { format!("{:.2} %", 100.0 * share) };
    if groups.names.len() > MAX_COLUMNS {
        let largest = |shares: &&[f64]| percent(shares.iter().copied().fold(f64::NAN, f64::max));
        return vec![
            (shortened(&groups.column), shares.iter().map(|shares| sparkline(shares)).collect()),
            ("largest".into(), shares.iter().map(largest).collect()),
        ];
    }
    let of = |(group, name): (usize, &String)| (shortened(name), shares.iter().map(|shares| percent(shares[group])).collect());
    groups.names.iter().enumerate().map(of).collect()
}

/// A name for a text table.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_WIDTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Shares as a sparkline from 0 to the largest of them.
fn sparkline(shares: &[f64]) -> String {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let level = |share: &f64| match (share / largest * BARS.len() as f64) as usize {
        _ if share.is_nan() => ' ',
        level => BARS[level.min(BARS.len() - 1)],
    };
    shares.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(values: &[&str]) -> std::result::Result<DocumentGroups, String> {
        let (names, of_documents) = grouped(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())?;
        Ok(DocumentGroups { path: "by.csv".into(), column: "when".into(), names, of_documents })
    }

    #[test]
    fn dates_are_grouped_by_the_shortest_period_with_few_groups() {
        let days = of(&["2024-03-01", "2024-02-28 10:30", "", "NA", "2024-03-01T08:00:00Z"]).unwrap();
        assert_eq!(days.names, ["2024-02-28", "2024-02-29", "2024-03-01"]);
        assert_eq!(days.of_documents, [Some(2), Some(0), None, None, Some(2)]);
        // 61 days are too many, and months without documents are groups.
        let months = of(&["2023-11-30", "2024-01-29", "2024-02-01"]).unwrap();
        assert_eq!(
            (months.names.join(" "), months.of_documents),
            ("2023-11 2023-12 2024-01 2024-02".into(), vec![Some(0), Some(2), Some(3)])
        );
        assert_eq!(of(&["2024-05", "2023-12"]).unwrap().names.len(), 6);
        assert_eq!(of(&["2024-05-17", "2021"]).unwrap().names, ["2021", "2022", "2023", "2024"]);
        assert_eq!(of(&["2024-12-31", "2010-01-01"]).unwrap().names.len(), 15);
        for wrong in
            ["2024-5-17", "20240517", "2024-05-17x", "2024-13", "2023-02-29", "2024-04-31", "2024-05-17-1", "17.05.2024", "-"]
        {
            assert_eq!(Date::parse(wrong), None, "{wrong}");
        }
        assert!(Date::parse("2000-02-29").is_some() && Date::parse("1900-02-29").is_none());
    }

    #[test]
    fn other_values_are_groups_in_their_order() {
        assert_eq!(of(&["b", "a", "b"]).unwrap().names, ["a", "b"]);
        assert_eq!(of(&["10", "9", "2.5"]).unwrap().names, ["2.5", "9", "10"]);
        // Numbers of four digits that are no years.
        assert_eq!(of(&["1500", "1900", "1701"]).unwrap().names, ["1500", "1701", "1900"]);
        assert_eq!(of(&["10", "9", "x"]).unwrap().names, ["10", "9", "x"]);
    }

    #[test]
    fn values_that_cannot_be_grouped_are_errors() {
        let numbers: Vec<String> = (0..201).map(|n| format!("v{n}")).collect();
        assert_eq!(
            grouped(&numbers).unwrap_err(),
            "it has 201 different values, and at most 200 groups are possible: combine some of them"
        );
        assert_eq!(of(&["17.05.2024", ""]).unwrap_err(), "\"17.05.2024\" looks like a date; write dates as 2024-05-17");
        assert!(["5/17/2024", "2024/05/17", "2024-5-17"].into_iter().all(is_date_of_another_form));
        assert!(!["1.2.3", "2024", "a-b-2024", "10.5"].into_iter().any(is_date_of_another_form));
        assert_eq!(of(&["", "?"]).unwrap_err(), "there are no values");
        let mixed = of(&["2024-05-17", "2024-05-18", "soon"]).unwrap_err();
        assert_eq!(mixed, "row 3 has \"soon\", and most rows have dates such as 2024-05-17");
        let message = of(&["a", "b"]).unwrap().of(2).unwrap_err().to_string();
        assert!(message.starts_with("by.csv: it has 2 rows, but the corpus has a document number 2"), "{message}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("by.csv");
        std::fs::write(&path, "2024-05-17\n2024-05-18\n").unwrap();
        let message = DocumentGroups::read(&path, None).unwrap_err().to_string();
        assert!(message.contains("the first row must be a header, and it has the date 2024-05-17"), "{message}");
    }

    #[test]
    fn sparklines_show_shares_from_zero_to_the_largest() {
        assert_eq!(sparkline(&[0.0, 0.25, f64::NAN, 0.5]), "▁▅ █");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
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
        assert_eq!((sizes.documents, sizes.tokens, sizes.ungrouped_documents), (vec![2, 1], vec![40.0, 5.0], 1));
    }
}

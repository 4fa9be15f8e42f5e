//! Ascending lists of agents or ranks, kept as ranges: thousands in a row take a few bytes in a message.

use serde::{Deserialize, Serialize};

/// An ascending list of numbers of agents or ranks. A number is in it twice only if a method has posted it twice, which is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ranges(Vec<Consecutive>);

/// The numbers from `first` up to, but without, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Consecutive {
    first: u32,
    end: u32,
}

impl Consecutive {
    fn len(self) -> u32 {
        self.end.saturating_sub(self.first)
    }
}

impl Ranges {
    /// Numbers in any order, all below `u32::MAX`: a greater one counts as that.
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().map(|number| number.min(u32::MAX - 1)).collect();
        numbers.sort_unstable();
        let mut ranges: Vec<Consecutive> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(last) if last.end == number => last.end += 1,
                _ => ranges.push(Consecutive { first: number, end: number + 1 }),
            }
        }
        Self(ranges)
    }

    /// The union of ranges from a first number up to, but without, an end. They may overlap.
    pub fn union(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let ranges = ranges.into_iter().filter(|(first, end)| first < end);
        let mut ranges: Vec<Consecutive> = ranges.map(|(first, end)| Consecutive { first, end }).collect();
        ranges.sort_unstable();
        let mut union: Vec<Consecutive> = Vec::new();
        for range in ranges {
            match union.last_mut() {
                Some(last) if range.first <= last.end => last.end = last.end.max(range.end),
                _ => union.push(range),
            }
        }
        Self(union)
    }

    /// The same numbers and this one.
    pub fn with(&self, number: u32) -> Self {
        Self::union(self.bounds().chain([(number, number + 1)]))
    }

    /// First number and end of each range.
    pub fn bounds(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().map(|range| (range.first, range.end))
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|range| range.first..range.end)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|range| range.len() as usize).sum()
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|range| range.first)
    }

    /// A number that is not below this limit, or the beginning of a damaged range.
    pub fn beyond(&self, limit: u32) -> Option<u32> {
        let beyond = self.0.iter().find(|range| range.end > limit || range.end <= range.first)?;
        Some(beyond.first.max(beyond.end.saturating_sub(1)))
    }

    /// The number after the last; 0 if there is none.
    pub fn end(&self) -> u32 {
        self.0.last().map_or(0, |range| range.end)
    }

    pub fn contains(&self, number: u32) -> bool {
        self.has_within(number, u64::from(number) + 1)
    }

    /// Whether any of the numbers is at least `first` and less than `end`.
    pub fn has_within(&self, first: u32, end: u64) -> bool {
        let next = self.0.partition_point(|range| range.end <= first);
        u64::from(first) < end && self.0.get(next).is_some_and(|range| u64::from(range.first) < end)
    }

    /// Whether all of the numbers are at least `first` and less than `end`.
    pub fn is_within(&self, first: u32, end: u64) -> bool {
        self.first().is_none_or(|lowest| lowest >= first) && u64::from(self.end()) <= end
    }

    /// Those of these ascending numbers that are in the list.
    pub fn among<'a>(&'a self, numbers: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let few = self.0.len() < numbers.len();
        let within = |range: &Consecutive| {
            let at = |limit| numbers.partition_point(|&number| number < limit);
            numbers[at(range.first)..at(range.end)].iter().copied()
        };
        let by_range = self.0.iter().filter(move |_| few).flat_map(within);
        by_range.chain(numbers.iter().copied().filter(move |&number| !few && self.contains(number)))
    }

    /// The numbers less `by`, which none of them may be below.
    pub fn lowered(&self, by: u32) -> Self {
        Self::union(self.bounds().map(|(first, end)| (first.saturating_sub(by), end.saturating_sub(by))))
    }

    /// A number that is in the list twice.
    pub fn repeated(&self) -> Option<u32> {
        self.0.windows(2).find(|pair| pair[1].first < pair[0].end).map(|pair| pair[1].first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_numbers_that_it_was_made_of() {
        for numbers in [vec![], vec![7], vec![0, 1, 2, 3], vec![1, 3, 4, 5, 9, 10], vec![4, 2, 0]] {
            let ranges = Ranges::new(numbers.clone());
            let mut sorted = numbers;
            sorted.sort_unstable();
            assert_eq!(ranges.iter().collect::<Vec<_>>(), sorted);
            assert_eq!((ranges.len(), ranges.is_empty()), (sorted.len(), sorted.is_empty()));
            assert_eq!((ranges.first(), ranges.repeated()), (sorted.first().copied(), None));
            let beyond = |limit| sorted.iter().copied().find(|&number| number >= limit);
            assert!((0..12).all(|limit| ranges.beyond(limit).is_some() == beyond(limit).is_some()));
            for number in 0..12 {
                assert_eq!(ranges.contains(number), sorted.contains(&number));
                for end in number..12 {
                    let within = |other: &u32| (number..end).contains(other);
                    assert_eq!(ranges.has_within(number, end.into()), sorted.iter().any(within));
                    assert_eq!(ranges.is_within(number, end.into()), sorted.iter().all(within));
                    let some: Vec<u32> = (number..end).collect();
                    assert!(ranges.among(&some).eq(sorted.iter().copied().filter(within)));
                }
            }
            assert!(ranges.lowered(0) == ranges && ranges.end() == sorted.last().map_or(0, |last| last + 1));
        }
    }

    #[test]
    fn a_number_that_is_there_twice_is_found() {
        assert_eq!(Ranges::new([0, 1, 2, 2, 3]).repeated(), Some(2));
        assert_eq!(Ranges::new([5, 5]).repeated(), Some(5));
    }

    #[test]
    fn damaged_ranges_are_found() {
        for range in [Consecutive { first: 3, end: 3 }, Consecutive { first: 4_000_000_000, end: 1 }] {
            let ranges = Ranges(vec![Consecutive { first: 0, end: 2 }, range]);
            assert_eq!(ranges.beyond(9), Some(range.first));
        }
        assert_eq!(Ranges(vec![Consecutive { first: 0, end: u32::MAX }]).beyond(9), Some(u32::MAX - 1));
    }

    #[test]
    fn a_union_has_every_number_once() {
        let union = Ranges::union([(4, 6), (0, 2), (1, 3), (3, 3), (9, 10)]);
        assert_eq!(union, Ranges::new([0, 1, 2, 4, 5, 9]));
        assert_eq!(union.lowered(0).with(8).with(7).lowered(0).len(), 8);
        assert_eq!(Ranges::new([4, 5, 9]).lowered(4), Ranges::new([0, 1, 5]));
        assert_eq!(union.with(3), Ranges::new([0, 1, 2, 3, 4, 5, 9]));
        assert_eq!(union.with(0), union);
    }
}

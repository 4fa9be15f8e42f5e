//! Fuzzes text tables: the first two bytes choose the layout, the others are the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::{Column, Delimiter, Header, Source, Table, TableLayout};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((&[first, second], file)) = data.split_first_chunk() else { return };
    let column = |choice: u8| match choice % 8 {
        0 => Column::Last,
        1 => Column::Name("y".into()),
        number => Column::Number(usize::from(number) - 1),
    };
    let layout = TableLayout {
        delimiter: [None, Delimiter::named("comma"), Delimiter::named("tab"), Some(Delimiter::Blanks)][usize::from(first % 4)],
        header: [Header::Detect, Header::Yes, Header::No][usize::from(first / 4 % 3)],
        label: column(first / 16),
        drop: (0..second % 3).map(|i| column(second / 3 + i)).collect(),
        decimal_comma: second >= 128,
        ..TableLayout::default()
    };
    let Ok(mut table) = Source::of_bytes(Path::new("x"), file).and_then(|source| Table::of_text(source, &layout)) else { return };
    let features = table.features();
    assert_eq!(table.feature_names().len(), features);
    let mut next = 0;
    let _ = table.rows(|row| {
        assert!(row.features.len() == features && row.features.iter().all(|value| value.is_finite()));
        assert_eq!(row.index, next);
        next += 1;
        Ok(())
    });
});

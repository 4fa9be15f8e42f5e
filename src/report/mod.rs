//! What is shown of results: summaries, posterior tables, comparisons, topics, pictures.

pub(crate) mod text;

//! How to write a model of your own: a page of the book.

#![doc = include_str!("../docs/src/tutorial-model.md")]

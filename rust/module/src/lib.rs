//! The Python module `azpy._core`: azpy-py, and the games that ship with azpy.
//!
//! A crate of its own: Cargo leaves out link-time optimisation where one crate is both a module for Python and a library
//! for Rust (rust-lang/cargo#9672).

azpy_py::export_game!(_core:);

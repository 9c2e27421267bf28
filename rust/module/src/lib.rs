//! The Python module `azpy._core`: azpy-py, and the games that ship with azpy. Compiled for WebAssembly, the program of
//! pages without a server.
//!
//! A crate of its own: Cargo leaves out link-time optimisation where one crate is both a module for Python and a library
//! for Rust (rust-lang/cargo#9672).

azpy_own::export_game!(_core:);

//! The Python module `azpy._core`: azpy-py, and the games that ship with azpy.
//!
//! A crate of its own, as a library that is also linked from Rust gets no link-time optimisation.

azpy_py::export_game!(_core:);

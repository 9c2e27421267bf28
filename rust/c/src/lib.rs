//! azpy for C: a trained player in eight functions. `azpy.h` says what they do.
//!
//! `table` has a game that goes on, and its search by azpy-serve; `door` is what C calls.
#![deny(unsafe_code)]

mod door;
mod table;

#[doc(hidden)]
pub use door::{azpy_error, guarded};

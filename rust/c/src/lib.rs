//! azpy for C: a trained player in eight functions. `azpy.h` says what they do.
//!
//! `game` has a game that goes on, and its search by azpy-serve; `ffi` is what C calls; `error` is why a call failed.
#![deny(unsafe_code)]

mod error;
mod ffi;
mod game;

#[doc(hidden)]
pub use error::Error;
#[doc(hidden)]
pub use ffi::{azpy_error, guarded};

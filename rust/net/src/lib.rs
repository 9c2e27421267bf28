#![doc = include_str!("../README.md")]
//! # As torch has them
//!
//! `azpy/learning/network.py` describes the networks.
#![forbid(unsafe_code)]

mod assemble;
mod error;
mod evaluator;
mod layer;
mod net;
mod read;

pub use crate::error::Error;
pub use crate::evaluator::{Answers, NetEvaluator};
pub use crate::net::{Net, Scratch};

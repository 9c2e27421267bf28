//! The forward pass of azpy's own networks on the CPU: residual towers and MLPs, as `azpy/learning/network.py` has them.
//!
//! A network is read from its weights, the bytes of a safetensors file, and from a small JSON that says its shape. It
//! opens no files and starts no threads, so it runs in a browser as well.
#![forbid(unsafe_code)]

mod assemble;
mod evaluator;
mod layer;
mod net;
mod read;

pub use crate::evaluator::NetEvaluator;
pub use crate::net::{Net, Scratch};

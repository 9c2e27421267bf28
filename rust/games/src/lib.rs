//! The games that ship with azpy, one file each, through one conformance test.
#![forbid(unsafe_code)]

//! The part of a tree worth drawing, handed to the Python module that draws it.

use azpy_core::look::Shown;
use pyo3::prelude::*;

use crate::fault::turn_number;

/// A node in Python: a dict with these keys, the fields of `azpy.reports.tree_picture.Node`.
#[derive(IntoPyObject)]
struct Row {
    parent: Option<usize>,
    depth: usize,
    name: String,
    turn: i32,
    view: usize,
    visits: u32,
    q: f32,
    prior: f32,
    on_principal_variation: bool,
    left_out: usize,
}

impl From<Shown> for Row {
    fn from(shown: Shown) -> Self {
        Self {
            parent: shown.parent,
            depth: shown.depth,
            name: shown.name,
            turn: turn_number(shown.turn),
            view: shown.view.index(),
            visits: shown.visits,
            q: shown.q,
            prior: shown.prior,
            on_principal_variation: shown.on_principal_variation,
            left_out: shown.left_out,
        }
    }
}

/// Calls `azpy.reports.tree_picture.to_svg(title, nodes)`.
pub(crate) fn drawn<'py>(py: Python<'py>, title: &str, shown: Vec<Shown>) -> PyResult<Bound<'py, PyAny>> {
    let rows: Vec<Row> = shown.into_iter().map(Row::from).collect();
    py.import("azpy.reports.tree_picture")?.call_method1("to_svg", (title, rows))
}

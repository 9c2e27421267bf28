//! The part of a tree worth drawing, handed to the Python module that draws it.

use azpy_core::look::Shown;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::turn_number;
use crate::listed::set_fields;

/// Calls `azpy.reports.tree_picture.to_svg(title, nodes)` with dicts that have the fields of its `Node`.
pub(crate) fn drawn<'py>(py: Python<'py>, title: &str, shown: Vec<Shown>) -> PyResult<Bound<'py, PyAny>> {
    let row = |node: Shown| {
        let row = PyDict::new(py);
        row.set_item("turn", turn_number(node.turn))?;
        row.set_item("view", node.view.index())?;
        set_fields!(row, node; parent, depth, name, visits, q, prior, on_principal_variation, left_out);
        Ok(row)
    };
    let rows = shown.into_iter().map(row).collect::<PyResult<Vec<_>>>()?;
    py.import("azpy.reports.tree_picture")?.call_method1("to_svg", (title, rows))
}

//! azpy with a game of one's own: as a Python module, and as the program of a page without a server.
//!
//! A crate that has [`export_game!`] is a Python module. Compiled for `wasm32-unknown-unknown`, it is the program of a
//! page (`az-export --web FOLDER --crate PATH`).

#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub use azpy_py::{Entry, Params, Start, init, pyo3};
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub use azpy_web::{BUILT_IN, Entry, Params, Start, open};

/// Makes the Python module of this crate: all of azpy's core, and games of one's own. Compiled for WebAssembly, the
/// crate is the program of a page, with its own games alone; without any it has those that ship with azpy.
///
/// First the module's name, which is that of the library (`azpy_with_...`: azpy looks for it). Then for each game, with
/// semicolons between them: its name; its type; its parameters and their defaults; and its start, or a sentence that
/// says why there is none, from the `Params` that were asked for.
///
/// ```ignore
/// azpy_own::export_game!(azpy_with_nim: "nim" => Nim, &[("heap", "12")], |p| Nim::new(p.number("heap")?));
/// ```
#[cfg(not(target_family = "wasm"))]
#[macro_export]
macro_rules! export_game {
    ($module:ident: $($name:literal => $game:ty, $params:expr, $make:expr);* $(;)?) => {
        #[$crate::pyo3::pymodule(crate = "::azpy_own::pyo3")]
        fn $module(module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>) -> $crate::pyo3::PyResult<()> {
            const GAMES: &[$crate::Entry] = &$crate::entries!($($name => $game, $params, $make);*);
            $crate::init(module, GAMES)
        }
    };
}

/// The same for WebAssembly.
#[cfg(target_family = "wasm")]
#[macro_export]
macro_rules! export_game {
    ($module:ident:) => {
        $crate::program!($crate::BUILT_IN);
    };
    ($module:ident: $($name:literal => $game:ty, $params:expr, $make:expr);* $(;)?) => {
        $crate::program!(&$crate::entries!($($name => $game, $params, $make);*));
    };
}

#[cfg(target_family = "wasm")]
#[doc(hidden)]
#[macro_export]
macro_rules! program {
    ($games:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn azpy_open(text: usize) -> bool {
            const GAMES: &[$crate::Entry] = $games;
            $crate::open(text, GAMES)
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! entries {
    ($($name:literal => $game:ty, $params:expr, $make:expr);*) => {
        [$($crate::Entry {
            name: $name,
            params: $params,
            make: |params| {
                let make: fn(&$crate::Params<'_>) -> ::core::result::Result<$game, ::std::string::String> = $make;
                Ok($crate::Start::new(make(params)?))
            },
        }),*]
    };
}

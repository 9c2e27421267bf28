//! The header and the library as a program in C meets them.
#![cfg(unix)]

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a program in C says that plays with a folder, once it is compiled; none where there is no compiler.
fn run(source: &Path, folder: &str) -> Option<Output> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler called cc");
        return None;
    }
    let done = |command: &mut Command| {
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done
    };
    let test = std::env::current_exe().unwrap();
    let libraries = test.parent().unwrap();
    let program = test.with_extension(source.file_stem().unwrap());
    let mut compile = Command::new("cc");
    compile.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]).arg(env!("CARGO_MANIFEST_DIR"));
    compile.arg(source).arg("-o").arg(&program).arg("-L").arg(libraries).args(["-lazpy", "-lm"]);
    done(compile.arg(format!("-Wl,-rpath,{}", libraries.display())));
    Some(done(Command::new(&program).arg(repository().join("azpy/players").join(folder))))
}

#[test]
fn a_program_in_c_plays() {
    run(&repository().join("rust/c/tests/azpy.c"), "");
}

#[test]
fn the_program_of_the_docs_plays() {
    let page = fs::read_to_string(repository().join("docs/programs.md")).unwrap();
    let (program, _) = page.split_once("```c\n").unwrap().1.split_once("```").unwrap();
    let source = std::env::current_exe().unwrap().with_extension("docs.c");
    fs::write(&source, program).unwrap();
    let Some(done) = run(&source, "tic_tac_toe") else { return };
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.lines().any(|line| line.ends_with('<')), "{said}");
}

#[test]
fn a_panic_ends_at_the_border() {
    assert_eq!(azpy::guarded(-1, || panic!("as it should")), -1);
    #[expect(unsafe_code, reason = "a text of the library")]
    // SAFETY: it ends with a NUL, and stays as it is until the next failure.
    let said = unsafe { CStr::from_ptr(azpy::azpy_error()) };
    assert!(said.to_string_lossy().starts_with("azpy itself failed"));
}

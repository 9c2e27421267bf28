//! The header and the library as a program in C meets them.
#![cfg(unix)]

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sha2::{Digest, Sha256};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A network of peg solitaire without blocks whose weights are all 0, as safetensors has it: all actions have equal
/// priors, and all positions the value 0.
fn empty_network() -> Vec<u8> {
    let norms = ["trunk.0", "policy.0", "value.0"].into_iter().zip([1, 1, 16]).flat_map(|(name, channels)| {
        let parts = ["0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"];
        parts.map(|part| (format!("{name}.{part}"), vec![channels]))
    });
    let own: [(&str, &[usize]); 9] = [
        ("trunk.0.0.weight", &[1, 2, 3, 3]),
        ("policy.0.0.weight", &[1, 1, 1, 1]),
        ("policy.2.weight", &[4, 1, 1, 1]),
        ("policy.2.bias", &[4]),
        ("value.0.0.weight", &[16, 1, 1, 1]),
        ("value.3.weight", &[64, 784]),
        ("value.3.bias", &[64]),
        ("value.5.weight", &[1, 64]),
        ("value.5.bias", &[1]),
    ];
    let (mut header, mut end) = (serde_json::Map::new(), 0);
    for (name, shape) in norms.chain(own.map(|(name, shape)| (name.to_owned(), shape.to_vec()))) {
        let begin = end;
        end += 4 * shape.iter().product::<usize>();
        header.insert(name, serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}));
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; end]].concat()
}

/// A folder of players that azpy does not bring along: one of ranked rewards, and four damaged ones.
fn made_players() -> PathBuf {
    let made = std::env::current_exe().unwrap().with_extension("players");
    let write = |name: &str, data: &[u8]| {
        let path = made.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, data).unwrap();
    };
    let weights = empty_network();
    let hash: String = Sha256::digest(&weights).iter().map(|byte| format!("{byte:02x}")).collect();
    let manifest = format!(r#"{{"model.safetensors": "{hash}"}}"#);
    let config = fs::read_to_string(repository().join("azpy/players/tic_tac_toe/config.toml")).unwrap();
    let config = config.replace(r#""tic_tac_toe""#, r#""peg_solitaire""#).replace(r#""2x32""#, r#""0x1""#);
    let figures = |iteration: usize, to_beat: f64| {
        format!("{{\"kind\": \"iteration\", \"iteration\": {iteration}, \"score_to_beat\": {to_beat}}}\n")
    };
    let rows = [figures(2, 0.9), figures(3, -0.75), figures(4, 0.9)].concat();
    for player in ["ranked", "changed", "unvouched", "unread", "unset"] {
        write(&format!("{player}/config.toml"), config.as_bytes());
        write(&format!("{player}/metrics.jsonl"), format!("{rows}{{\"kind\": \"iter").as_bytes());
        write(&format!("{player}/checkpoints/000002/model.safetensors"), b"that of an older network");
        write(&format!("{player}/checkpoints/000003/model.safetensors"), &weights);
        if player != "unvouched" {
            write(&format!("{player}/checkpoints/000003/manifest.json"), manifest.as_bytes());
        }
    }
    let mut changed = weights;
    *changed.last_mut().unwrap() ^= 1;
    write("changed/checkpoints/000003/model.safetensors", &changed);
    write("unread/metrics.jsonl", b"no JSON\n");
    write("unset/config.toml", config.replace("\nmatch_solver = ", "\nmatch_solver = 3 # ").as_bytes());
    made
}

/// What a program in C says that plays with folders of players, once it is compiled; none where there is no compiler.
fn run(source: &Path, folders: &[PathBuf]) -> Option<Output> {
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
    // Cargo's path begins with the folder of `cargo build`, where an older library may lie.
    Some(done(Command::new(&program).args(folders).env_remove("LD_LIBRARY_PATH")))
}

#[test]
fn a_program_in_c_plays() {
    run(&repository().join("rust/c/tests/azpy.c"), &[repository().join("azpy/players"), made_players()]);
}

#[test]
fn the_program_of_the_docs_plays() {
    let page = fs::read_to_string(repository().join("docs/guides/programs.md")).unwrap();
    let (program, _) = page.split_once("```c\n").unwrap().1.split_once("```").unwrap();
    let source = std::env::current_exe().unwrap().with_extension("docs.c");
    fs::write(&source, program).unwrap();
    let Some(done) = run(&source, &[repository().join("azpy/players/tic_tac_toe")]) else { return };
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.lines().any(|line| line.ends_with('<')), "{said}");
}

#[test]
fn a_panic_ends_at_the_border() {
    assert_eq!(azpy::guarded(-1, || panic!("as it should")), -1);
    #[expect(unsafe_code, reason = "a text of the library")]
    // SAFETY: it ends with a NUL, and stays as it is until the next failure.
    let said = unsafe { CStr::from_ptr(azpy::azpy_error()) };
    assert!(said.to_string_lossy().contains("a bug in azpy"));
}

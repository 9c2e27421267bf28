//! Games of Go written as SGF, and the marks of its notes as they are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::picture::Mark;
use azpy_core::text::{moves_of, shown};
use azpy_core::written::{Bounds, Moves, Named, Notes, Order, Part, join};

use super::{Go, OWN, cell_of};
use crate::error::{Error, invalid};
use crate::grid;

/// Moves in a line of text.
const WIDTH: usize = 10;

fn point(cell: usize, size: usize) -> String {
    [cell % size, cell / size].map(|line| char::from(b'a' + line as u8)).iter().collect()
}

/// A move as it is written.
struct Ply {
    mover: Player,
    action: Action,
    /// Black's points less White's, if the move ends the game.
    score: Option<f32>,
    notes: Notes,
}

/// The game so far, with its result if it is over.
pub(in crate::go) fn write<const WORDS: usize>(state: &Go<WORDS>) -> String {
    let mut mover = state.setup.as_ref().map_or(Player::Zero, |setup| setup.mover);
    let mut moves = Moves::new(Bounds { moves: usize::MAX, depth: 0 });
    for (ply, action) in state.actions().into_iter().enumerate() {
        // Without a bound that it could pass.
        let _ = moves.push(ply, Ply { mover, action, score: None, notes: Notes::new() });
        mover = mover.opponent();
    }
    text_of(state, "", (state.turn() == Turn::Terminal).then(|| state.score()), &moves)
}

/// See [`azpy_core::text::Notation::write_variations`].
pub(in crate::go) fn write_tree<const WORDS: usize>(
    start: &Go<WORDS>,
    moves: &[Named],
    tags: &[(String, String)],
    notes: &[Notes],
    bounds: Bounds,
) -> Result<String, Error> {
    if start.plies > 0 {
        return Err(invalid!("an SGF needs the moves that led to this position: give them too"));
    }
    let moves = moves_of(
        start,
        moves,
        bounds,
        |state, action, index| {
            let mover = state.mover;
            state.play(action);
            let score = (state.turn() == Turn::Terminal).then(|| state.score());
            Ply { mover, action, score, notes: notes.get(index + 1).cloned().unwrap_or_default() }
        },
        |ply, other| join(&mut ply.notes, other.notes),
    )?;
    for name in tags.iter().map(|(name, _)| name).chain(notes.iter().flat_map(Notes::keys)) {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase()) || OWN.contains(&&name[..]) {
            return Err(invalid!("{} is not a property that can be set", shown(name)));
        }
    }
    let mut text = String::new();
    tags.iter().for_each(|(name, value)| put_property(&mut text, name, std::slice::from_ref(value)));
    notes.iter().take(1).flatten().for_each(|(name, values)| put_property(&mut text, name, values));
    let score = moves.main_line().last().and_then(|ply| ply.score);
    Ok(text_of(start, &text, score.filter(|_| tags.iter().all(|(name, _)| name != "RE")), &moves))
}

/// Empty if it has no values, because a name alone is not valid SGF.
fn put_property(text: &mut String, name: &str, values: &[String]) {
    if values.is_empty() {
        return;
    }
    *text += name;
    for value in values {
        *text += &format!("[{}]", value.replace('\\', "\\\\").replace(']', "\\]"));
    }
}

/// A game of the size, komi and setup of `rules`, with further properties of its root, and with its score if it is
/// over.
fn text_of<const WORDS: usize>(rules: &Go<WORDS>, tags: &str, score: Option<f32>, moves: &Moves<Ply>) -> String {
    let (size, komi) = (rules.size(), rules.komi());
    // With a decimal point, readers do not take the komi for hundredths.
    let komi = if komi.abs() < 100.0 { komi.to_string() } else { format!("{komi:.1}") };
    let mut text = format!("(;FF[4]GM[1]CA[UTF-8]AP[azpy]{tags}SZ[{size}]KM[{komi}]");
    // Cannot fail: a string takes all that is written to it.
    let mut put = |part: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(part);
    };
    if let Some(score) = score {
        match score {
            0.0 => put(format_args!("RE[0]")),
            score => put(format_args!("RE[{}+{}]", if score > 0.0 { "B" } else { "W" }, score.abs())),
        }
    }
    let letter = |player| if player == Player::Zero { "B" } else { "W" };
    if let Some(setup) = &rules.setup {
        for (name, stones) in ["AB", "AW"].into_iter().zip(setup.stones) {
            if !stones.is_empty() {
                put(format_args!("{name}"));
                stones.for_each(|cell| put(format_args!("[{}]", point(cell, size))));
            }
        }
        put(format_args!("PL[{}]", letter(setup.mover)));
    }
    let mut written = 0;
    for part in moves.parts(Order::Beside) {
        let number = match part {
            Part::Open => {
                put(format_args!("("));
                continue;
            }
            Part::Close => {
                put(format_args!(")"));
                continue;
            }
            Part::Move(number) => number,
        };
        if written % WIDTH == 0 {
            put(format_args!("\n"));
        }
        written += 1;
        let Ply { mover, action, notes, .. } = &moves.all()[number - 1].1;
        let cell = *action as usize;
        let point = if cell == rules.num_cells() { String::new() } else { point(cell, size) };
        let mut noted = String::new();
        notes.iter().for_each(|(name, values)| put_property(&mut noted, name, values));
        put(format_args!(";{}[{point}]{noted}", letter(*mover)));
    }
    text + ")\n"
}

/// Shapes that stand on points.
const SHAPES: [&str; 4] = ["triangle", "square", "circle", "cross"];

/// See [`azpy_core::text::Notation::marks`]. However much the notes say, there are few: each shape once on a point, a
/// point's last label, and as many arrows as the board has points.
pub(in crate::go) fn marks<const WORDS: usize>(state: &Go<WORDS>, notes: &Notes) -> Vec<Mark> {
    let size = state.size();
    // Of each shape how many rectangles of points begin and end in each row and column. Their sums say where it stands,
    // whatever the rectangles' sizes.
    let side = size + 1;
    let mut edges = vec![vec![0_i64; side * side]; SHAPES.len()];
    let (mut labels, mut arrows) = (BTreeMap::new(), BTreeSet::new());
    for (name, values) in notes {
        let shape = match &name[..] {
            "TR" => Some(0),
            "SQ" | "SL" => Some(1),
            "CR" => Some(2),
            "MA" => Some(3),
            "LB" | "AR" | "LN" => None,
            _ => continue,
        };
        for value in values {
            let (first, behind) = value.split_once(':').unwrap_or((value, ""));
            let Ok(from) = cell_of(first.trim(), size) else { continue };
            let to = cell_of(behind.trim(), size);
            let Some(shape) = shape else {
                if name == "LB" {
                    labels.insert(from, behind);
                } else if let Ok(to) = to
                    && arrows.len() < state.num_cells()
                {
                    arrows.insert([from, to]);
                }
                continue;
            };
            let to = to.unwrap_or(from);
            let [left, right] = [from % size, to % size + 1];
            let [top, bottom] = [from / size, to / size + 1];
            if left < right && top < bottom {
                for (row, column, begun) in [(top, left, 1), (top, right, -1), (bottom, left, -1), (bottom, right, 1)] {
                    edges[shape][row * side + column] += begun;
                }
            }
        }
    }
    let place = |cell| grid::touch(size, cell, state.cell_name(cell));
    let mark = |shape, text: &str, cells: &[usize]| Mark {
        shape,
        text: text.to_owned(),
        places: cells.iter().copied().map(place).collect(),
    };
    let mut marks: Vec<_> = labels.into_iter().map(|(cell, text)| mark("label", text, &[cell])).collect();
    marks.extend(arrows.iter().map(|cells| mark("arrow", "", cells)));
    for (shape, edges) in SHAPES.into_iter().zip(edges) {
        let mut columns = vec![0; size];
        for row in 0..size {
            let mut begun = 0;
            for (column, sum) in columns.iter_mut().enumerate() {
                begun += edges[row * side + column];
                *sum += begun;
                if *sum > 0 {
                    marks.push(mark(shape, "", &[row * size + column]));
                }
            }
        }
    }
    marks
}

//! Games of Go as SGF, FF[4] (<https://www.red-bean.com/sgf/>): reading the main line, and writing it.
//!
//! What is read: SZ, KM, HA and GM, which must fit the game; AB, AW, AE and PL before the first move; B and W. All other
//! properties are passed over.

use std::fmt::Write as _;

use azpy_core::game::{Game, Player, Turn};
use azpy_core::text::{Unfit, WrittenGame, shown};

use super::Go;

/// Moves in a line of text.
const LINE: usize = 10;

/// A property of a node: its name and its values, escapes resolved.
struct Property {
    name: String,
    values: Vec<String>,
}

impl Property {
    /// The one value there may be.
    fn value(&self) -> Result<&str, String> {
        match &self.values[..] {
            // Errors repeat it.
            [value] if value.len() > 40 || value.trim().contains(char::is_control) => {
                Err(format!("{} has a value that cannot be meant: {}", self.name, shown(value)))
            }
            [value] => Ok(value.trim()),
            values => Err(format!("{} takes one value, got {}", self.name, values.len())),
        }
    }
}

/// The nodes of the main line of the one game in `text`.
fn main_line(text: &str) -> Result<Vec<Vec<Property>>, String> {
    let (nodes, rest) = first_line(text)?;
    match first_line(rest)? {
        (more, _) if !more.is_empty() => Err("the text has a second game; give one".to_owned()),
        _ if nodes.is_empty() => Err("the game ends before its last )".to_owned()),
        _ => Ok(nodes),
    }
}

/// The nodes of the main line of the first game in `text`, none where there is no game, and the text after it. The
/// variations are looked at only as far as brackets go.
fn first_line(text: &str) -> Result<(Vec<Vec<Property>>, &str), String> {
    let bytes = text.as_bytes();
    let (mut nodes, mut at, mut depth, mut ended) = (Vec::new(), 0, 0_usize, false);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            // The first end is that of the main line: what follows are variations of its nodes.
            b')' if depth == 1 && nodes.is_empty() => return Err("the game ends before its last )".to_owned()),
            b')' if depth == 1 => return Ok((nodes, &text[at + 1..])),
            b')' if depth > 1 => (depth, ended) = (depth - 1, true),
            b';' if depth > 0 => {
                if !ended {
                    nodes.push(Vec::new());
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            byte if byte.is_ascii_alphabetic() && depth > 0 => {
                let property;
                (property, at) = read_property(text, at)?;
                match nodes.last_mut() {
                    None => return Err(format!("property {} stands before the first ;", property.name)),
                    Some(_) if ended => {}
                    Some(node) => node.push(property),
                }
                continue;
            }
            _ if text[at..].starts_with('\u{feff}') => at += '\u{feff}'.len_utf8() - 1,
            _ => return Err(format!("{} is no SGF: expected ( ; ) or a property", shown(&text[at..]))),
        }
        at += 1;
    }
    if depth > 0 {
        return Err("the game ends before its last )".to_owned());
    }
    Ok((nodes, ""))
}

/// The property that begins at byte `at`, and where the text goes on.
fn read_property(text: &str, mut at: usize) -> Result<(Property, usize), String> {
    let bytes = text.as_bytes();
    let end = |from: usize, is_in: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|&byte| is_in(byte)).count();
    let name_end = end(at, u8::is_ascii_alphabetic);
    // Older files spell names out: only capitals count.
    let name: String = text[at..name_end].chars().filter(char::is_ascii_uppercase).collect();
    if name.len() > 30 {
        return Err(format!("{} is no property's name", shown(&name)));
    }
    let mut values = Vec::new();
    at = end(name_end, u8::is_ascii_whitespace);
    while bytes.get(at) == Some(&b'[') {
        let mut value = String::new();
        let mut rest = text[at + 1..].char_indices();
        let length = loop {
            match rest.next() {
                None => return Err(format!("a value of {name} has no ]: {}", shown(&text[at..]))),
                Some((length, ']')) => break length,
                // A line that ends in a backslash goes on in the next.
                Some((_, '\\')) => {
                    value.extend(rest.next().map(|(_, escaped)| escaped).filter(|c| !matches!(c, '\r' | '\n')))
                }
                Some((_, character)) => value.push(character),
            }
        };
        values.push(value);
        at = end(at + 1 + length + 1, u8::is_ascii_whitespace);
    }
    if values.is_empty() {
        return Err(format!("property {name} has no value: {}", shown(&text[name_end..])));
    }
    Ok((Property { name, values }, at))
}

/// The game in `text`, of the size, komi and ko rule of `rules`.
pub(super) fn read<const WORDS: usize>(rules: &Go<WORDS>, text: &str) -> Result<Go<WORDS>, String> {
    let nodes = main_line(text)?;
    check_game(&nodes)?;
    play_line(rules, &nodes).map_err(Unfit::into_text)
}

/// See [`azpy_core::text::Notation::read_game`]. The tags are the properties of the first node.
pub(super) fn read_written<'a, const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &'a str,
) -> Result<Option<(WrittenGame, &'a str)>, String> {
    let (nodes, rest) = first_line(text)?;
    let Some(root) = nodes.first() else { return Ok(None) };
    check_game(&nodes)?;
    let tags = root.iter().map(|property| (property.name.clone(), property.values.join(" ").trim().to_owned()));
    let tags = tags.collect();
    let actions = play_line(rules, &nodes).and_then(|state| match &state.setup {
        Some(_) => Err(Unfit::Start("stones are set up, or White is to move".to_owned())),
        None => Ok(state.actions()),
    });
    Ok(Some((WrittenGame { tags, result: None, actions }, rest)))
}

/// Refuses games other than Go.
fn check_game(nodes: &[Vec<Property>]) -> Result<(), String> {
    for property in nodes.iter().flatten().filter(|property| property.name == "GM") {
        let game = property.value()?;
        if game != "1" {
            return Err(format!("GM[{game}] is another game, expected GM[1], Go"));
        }
    }
    Ok(())
}

/// The position that a line leads to, by `rules`.
fn play_line<const WORDS: usize>(rules: &Go<WORDS>, nodes: &[Vec<Property>]) -> Result<Go<WORDS>, Unfit> {
    let mut root = Root { rules, stones: vec![None; rules.num_cells()], mover: None, handicap: 0 };
    if !nodes.iter().flatten().any(|property| property.name == "SZ") {
        check_size("19", rules.size()).map_err(|error| Unfit::Size(format!("{error} (a game without SZ is of 19)")))?;
    }
    let mut state: Option<Go<WORDS>> = None;
    let mut moves = 0;
    for property in nodes.iter().flatten() {
        let player = match &property.name[..] {
            "B" => Player::Zero,
            "W" => Player::One,
            "SZ" => {
                property.value().and_then(|size| check_size(size, rules.size())).map_err(Unfit::Size)?;
                continue;
            }
            "KM" => {
                property.value().and_then(|komi| check_komi(komi, rules.komi())).map_err(Unfit::Komi)?;
                continue;
            }
            "AB" | "AW" | "AE" | "PL" | "HA" => {
                if state.is_some() {
                    let text = format!("{} after move {moves}: a position is set up before the moves", property.name);
                    return Err(Unfit::Start(text));
                }
                root.apply(property).map_err(Unfit::Start)?;
                continue;
            }
            _ => continue,
        };
        moves += 1;
        let point = property.value().map_err(Unfit::Action)?;
        let state = match &mut state {
            Some(state) => state,
            none => none.insert(root.start(player).map_err(Unfit::Start)?),
        };
        let text = format!("move {moves}, {}[{point}],", property.name);
        if state.turn() == Turn::Terminal {
            return Err(Unfit::AfterEnd(format!("{text} comes after the end of the game")));
        }
        play(state, player, point).map_err(|error| Unfit::Action(format!("{text} {error}")))?;
    }
    match state {
        Some(state) => Ok(state),
        None => root.start(root.first()).map_err(Unfit::Start),
    }
}

fn play<const WORDS: usize>(state: &mut Go<WORDS>, player: Player, point: &str) -> Result<(), String> {
    if state.turn() != Turn::Player(player) {
        return Err(format!("is out of turn: {} is to move", colour(player.opponent())));
    }
    let action = if point.is_empty() || point == "tt" { state.num_cells() } else { cell_of(point, state.size())? };
    if action < state.num_cells()
        && let Some(objection) = state.objection(action)
    {
        return Err(format!("at {}, is illegal: {objection}", state.cell_name(action)));
    }
    state.play(action as u32);
    Ok(())
}

/// What stands before the first move.
struct Root<'a, const WORDS: usize> {
    rules: &'a Go<WORDS>,
    stones: Vec<Option<Player>>,
    mover: Option<Player>,
    handicap: usize,
}

impl<const WORDS: usize> Root<'_, WORDS> {
    fn apply(&mut self, property: &Property) -> Result<(), String> {
        let stone = match &property.name[..] {
            "AB" => Some(Player::Zero),
            "AW" => Some(Player::One),
            "AE" => None,
            "PL" => {
                let player = match property.value()?.to_ascii_lowercase().as_str() {
                    "b" | "black" | "1" => Player::Zero,
                    "w" | "white" | "2" => Player::One,
                    other => return Err(format!("PL[{other}] is no colour, expected B or W")),
                };
                self.mover = Some(player);
                return Ok(());
            }
            _ => {
                let value = property.value()?;
                self.handicap = value.parse().map_err(|_| format!("HA[{value}] is no number of stones"))?;
                return Ok(());
            }
        };
        let size = self.rules.size();
        for value in &property.values {
            let value = value.trim();
            let (from, to) = value.split_once(':').unwrap_or((value, value));
            let (from, to) = (cell_of(from, size)?, cell_of(to, size)?);
            let (rows, columns) = (from / size..=to / size, from % size..=to % size);
            if rows.is_empty() || columns.is_empty() {
                return Err(format!(
                    "{}[{value}] is no rectangle, expected its upper left and lower right",
                    property.name
                ));
            }
            for cell in rows.flat_map(|row| columns.clone().map(move |column| row * size + column)) {
                if stone.is_some() && self.stones[cell].is_some() {
                    return Err(format!("{} is set up twice", self.rules.cell_name(cell)));
                }
                self.stones[cell] = stone;
            }
        }
        Ok(())
    }

    /// Who is to move where neither PL nor a move says it: White where Black alone has stones, as with a handicap.
    fn first(&self) -> Player {
        let has = |player| self.stones.contains(&Some(player));
        let first = if has(Player::Zero) && !has(Player::One) { Player::One } else { Player::Zero };
        self.mover.unwrap_or(first)
    }

    /// The start, where `player` makes the first move unless PL says otherwise.
    fn start(&self, player: Player) -> Result<Go<WORDS>, String> {
        let of = |player| (0..self.stones.len()).filter(|&cell| self.stones[cell] == Some(player)).collect();
        let [black, white]: [Vec<usize>; 2] = [of(Player::Zero), of(Player::One)];
        if self.handicap > 1 && black.is_empty() {
            return Err(format!("HA[{}] without the stones: expected them as AB", self.handicap));
        }
        self.rules.with_stones([&black, &white], self.mover.unwrap_or(player))
    }
}

fn check_size(value: &str, size: usize) -> Result<(), String> {
    // Boards that are not square have columns and rows.
    let (columns, rows) = value.split_once(':').unwrap_or((value, value));
    if [columns, rows].iter().all(|side| side.trim().parse() == Ok(size)) {
        return Ok(());
    }
    Err(format!("the game is of size {value}, expected {size}"))
}

fn check_komi(value: &str, komi: f32) -> Result<(), String> {
    if value.parse() == Ok(komi) {
        return Ok(());
    }
    Err(format!("the game has komi {value}, expected {komi}"))
}

/// The cell that two letters name: column from the left, row from the top.
fn cell_of(point: &str, size: usize) -> Result<usize, String> {
    let line = |letter: u8| usize::from(letter.wrapping_sub(b'a'));
    match *point.as_bytes() {
        [column, row] if line(column) < size && line(row) < size => Ok(line(row) * size + line(column)),
        _ => {
            let last = char::from(b'a' + size as u8 - 1);
            Err(format!("{} is no point: expected two letters from a to {last}", shown(point)))
        }
    }
}

fn point(cell: usize, size: usize) -> String {
    [cell % size, cell / size].map(|line| char::from(b'a' + line as u8)).iter().collect()
}

fn colour(player: Player) -> &'static str {
    ["Black", "White"][player.index()]
}

/// The game so far, with its result if it is over.
pub(super) fn write<const WORDS: usize>(state: &Go<WORDS>) -> String {
    let (size, komi) = (state.size(), state.komi());
    let mut text = format!("(;FF[4]GM[1]CA[UTF-8]AP[azpy]SZ[{size}]KM[{komi}]");
    let mut mover = Player::Zero;
    // Cannot fail: a string takes all that is written to it.
    let mut put = |part: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(part);
    };
    if state.turn() == Turn::Terminal {
        let score = state.score();
        match score {
            0.0 => put(format_args!("RE[0]")),
            score => put(format_args!("RE[{}+{}]", if score > 0.0 { "B" } else { "W" }, score.abs())),
        }
    }
    if let Some(setup) = &state.setup {
        for (name, stones) in ["AB", "AW"].into_iter().zip(setup.stones) {
            if !stones.is_empty() {
                put(format_args!("{name}"));
                stones.for_each(|cell| put(format_args!("[{}]", point(cell, size))));
            }
        }
        mover = setup.mover;
        put(format_args!("PL[{}]", if mover == Player::Zero { "B" } else { "W" }));
    }
    for (ply, action) in state.actions().into_iter().enumerate() {
        if ply % LINE == 0 {
            put(format_args!("\n"));
        }
        let cell = action as usize;
        let point = if cell == state.num_cells() { String::new() } else { point(cell, size) };
        put(format_args!(";{}[{point}]", if mover == Player::Zero { "B" } else { "W" }));
        mover = mover.opponent();
    }
    text + ")\n"
}

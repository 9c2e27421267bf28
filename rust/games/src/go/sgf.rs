//! Games of Go as SGF, FF[4] (<https://www.red-bean.com/sgf/>), read and written: the main line, or all variations.
//!
//! What is read: SZ, KM, HA and GM, which must fit the game; AB, AW, AE and PL before the first move; B and W. All other
//! properties are passed over.

use std::fmt::Write as _;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::{moves_of, play_named, shown};
use azpy_core::written::{Bounds, Moves, Named, Order, Part, Unfit, Variations, WrittenGame, Wrong};

use super::Go;

/// Moves in a line of text.
const LINE: usize = 10;

/// A property of a node: where it stands in the text, its name, and its values, escapes resolved.
struct Property {
    at: usize,
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

/// A node of a game.
struct Node {
    /// The number of the node before it, from 1 on; 0 for the root.
    before: usize,
    /// Whether it is of the main line. The nodes of the main line come first.
    is_main: bool,
    properties: Vec<Property>,
}

/// Which nodes are read.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    MainLine,
    Variations,
}

/// The nodes of the one game in `text`.
fn one_game(text: &str, read: Read) -> Result<Vec<Node>, Wrong> {
    let (nodes, rest) = first_game(text, read)?;
    let at = text.len() - rest.len();
    match first_game(rest, Read::MainLine).map_err(|Wrong { at: more, why }| Wrong { at: at + more, why })? {
        (more, _) if !more.is_empty() => Err(Wrong { at, why: "the text has a second game; give one".to_owned() }),
        _ if nodes.is_empty() => Err(Wrong { at, why: "the game ends before its last )".to_owned() }),
        _ => Ok(nodes),
    }
}

/// The nodes of the first game in `text`, none where there is no game, and the text after it. If the main line alone is
/// read, the variations are looked at only as far as brackets go.
fn first_game(text: &str, read: Read) -> Result<(Vec<Node>, &str), Wrong> {
    let mut at = 0;
    scan(text, &mut at, read).map(|nodes| (nodes, &text[at..])).map_err(|why| Wrong { at, why })
}

/// Takes a game from the beginning of a text, and says where the text goes on, or what is wrong.
fn scan(text: &str, at: &mut usize, read: Read) -> Result<Vec<Node>, String> {
    let bytes = text.as_bytes();
    // A count and a list, not a recursion: variations may stand in each other as deep as someone likes. The list has the
    // node before each (.
    let (mut nodes, mut depth, mut open, mut here, mut begin) = (Vec::<Node>::new(), 0_usize, Vec::new(), 0, 0);
    // Whether the main line has ended, and whether a variation of this node has.
    let (mut ended, mut closed) = (false, false);
    let wants = |ended: bool| !ended || read == Read::Variations;
    while *at < bytes.len() {
        match bytes[*at] {
            b'(' => {
                if depth == 0 {
                    begin = *at;
                }
                depth += 1;
                if read == Read::Variations {
                    open.push(here);
                }
            }
            b')' if depth == 1 && nodes.is_empty() => return Err("the game ends before its last )".to_owned()),
            b')' if depth == 1 => {
                *at += 1;
                return Ok(nodes);
            }
            b')' if depth > 1 => {
                // The first end is that of the main line: what follows are variations of its nodes.
                (depth, ended, closed) = (depth - 1, true, true);
                here = open.pop().unwrap_or(here);
            }
            b';' if depth > 0 => {
                closed = false;
                if wants(ended) {
                    if here == 0 && !nodes.is_empty() {
                        return Err("the game has a second root; give one game".to_owned());
                    }
                    nodes.push(Node { before: here, is_main: !ended, properties: Vec::new() });
                    here = nodes.len();
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            byte if byte.is_ascii_alphabetic() && depth > 0 => {
                let (property, next) = read_property(text, *at)?;
                if nodes.is_empty() {
                    return Err(format!("property {} stands before the first ;", property.name));
                }
                // Behind a variation there is no node that it could be of.
                if wants(ended) && !closed && here > 0 {
                    nodes[here - 1].properties.push(property);
                }
                *at = next;
                continue;
            }
            _ if text[*at..].starts_with('\u{feff}') => *at += '\u{feff}'.len_utf8() - 1,
            _ => return Err(format!("{} is no SGF: expected ( ; ) or a property", shown(&text[*at..]))),
        }
        *at += 1;
    }
    if depth > 0 {
        *at = begin;
        return Err("the game ends before its last )".to_owned());
    }
    Ok(nodes)
}

/// The property that begins at byte `at`, and where the text goes on.
fn read_property(text: &str, mut at: usize) -> Result<(Property, usize), String> {
    let (bytes, begin) = (text.as_bytes(), at);
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
    Ok((Property { at: begin, name, values }, at))
}

/// The game in `text`, of the size, komi and ko rule of `rules`.
pub(super) fn read<const WORDS: usize>(rules: &Go<WORDS>, text: &str) -> Result<Go<WORDS>, String> {
    let nodes = one_game(text, Read::MainLine).map_err(|wrong| wrong.why)?;
    check_game(&nodes)?;
    play_main_line(rules, &nodes).map_err(Unfit::into_text)
}

/// See [`azpy_core::text::Notation::read_game`]. The tags are the properties of the first node.
pub(super) fn read_written<'a, const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &'a str,
) -> Result<Option<(WrittenGame, &'a str)>, String> {
    let (nodes, rest) = first_game(text, Read::MainLine).map_err(|wrong| wrong.why)?;
    if nodes.is_empty() {
        return Ok(None);
    }
    check_game(&nodes)?;
    let actions = play_main_line(rules, &nodes).and_then(|state| match &state.setup {
        Some(_) => Err(Unfit::Start("stones are set up, or White is to move".to_owned())),
        None => Ok(state.actions()),
    });
    Ok(Some((WrittenGame { tags: tags_of(&nodes), result: None, actions }, rest)))
}

/// See [`azpy_core::text::Notation::read_variations`].
pub(super) fn read_tree<const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &str,
    bounds: Bounds,
) -> Result<Variations<Go<WORDS>>, String> {
    let nodes = one_game(text, Read::Variations).map_err(|wrong| wrong.in_line_of(text))?;
    check_game(&nodes)?;
    let (start, moves) = read_moves(rules, &nodes, bounds).map_err(Unfit::into_text)?;
    let (moves, left_out) = moves.play(start.clone(), |state, number, said| {
        let action = action_of(state, number, said).map_err(|unfit| unfit.in_line_of(text, said.at))?;
        Ok((action, play_named(state, action)))
    })?;
    Ok(Variations { start, moves, tags: tags_of(&nodes), left_out })
}

fn tags_of(nodes: &[Node]) -> Vec<(String, String)> {
    let tag = |property: &Property| (property.name.clone(), property.values.join(" ").trim().to_owned());
    nodes.iter().take(1).flat_map(|root| &root.properties).map(tag).collect()
}

/// Refuses games other than Go.
fn check_game(nodes: &[Node]) -> Result<(), String> {
    for property in nodes.iter().flat_map(|node| &node.properties).filter(|property| property.name == "GM") {
        let game = property.value()?;
        if game != "1" {
            return Err(format!("GM[{game}] is another game, expected GM[1], Go"));
        }
    }
    Ok(())
}

/// The position that the main line leads to, by `rules`.
fn play_main_line<const WORDS: usize>(rules: &Go<WORDS>, nodes: &[Node]) -> Result<Go<WORDS>, Unfit> {
    let bounds = Bounds { moves: usize::MAX, depth: 0 };
    let (mut state, moves) = read_moves(rules, nodes, bounds)?;
    for (index, said) in moves.main_line().enumerate() {
        let action = action_of(&state, index + 1, said)?;
        state.play(action);
    }
    Ok(state)
}

/// Where the nodes begin by `rules`, and the moves behind, with what is set up between them.
fn read_moves<'a, const WORDS: usize>(
    rules: &Go<WORDS>,
    nodes: &'a [Node],
    bounds: Bounds,
) -> Result<(Go<WORDS>, Moves<&'a Property>), Unfit> {
    let mut root = Root { rules, stones: vec![None; rules.num_cells()], mover: None, handicap: 0 };
    if !nodes.iter().flat_map(|node| &node.properties).any(|property| property.name == "SZ") {
        check_size("19", rules.size()).map_err(|error| Unfit::Size(format!("{error} (a game without SZ is of 19)")))?;
    }
    let (mut moves, mut last) = (Moves::new(bounds), vec![0]);
    for node in nodes {
        // The number of the move before what comes next.
        let mut before = last[node.before];
        for property in &node.properties {
            match &property.name[..] {
                "SZ" => property.value().and_then(|size| check_size(size, rules.size())).map_err(Unfit::Size)?,
                "KM" => property.value().and_then(|komi| check_komi(komi, rules.komi())).map_err(Unfit::Komi)?,
                "AB" | "AW" | "AE" | "PL" | "HA" if before == 0 && node.is_main => {
                    root.apply(property).map_err(Unfit::Start)?;
                }
                "B" | "W" | "AB" | "AW" | "AE" | "PL" | "HA" => {
                    before = moves.push(before, property).map_err(Unfit::Action)?;
                }
                _ => {}
            }
        }
        last.push(before);
    }
    let first = moves.all().first().and_then(|(_, property)| colour_of(property));
    Ok((root.start(first.unwrap_or_else(|| root.first())).map_err(Unfit::Start)?, moves))
}

/// Who plays a move; nobody what is set up.
fn colour_of(property: &Property) -> Option<Player> {
    match &property.name[..] {
        "B" => Some(Player::Zero),
        "W" => Some(Player::One),
        _ => None,
    }
}

/// The legal action that a property means, as move `number` of a line.
fn action_of<const WORDS: usize>(state: &Go<WORDS>, number: usize, property: &Property) -> Result<Action, Unfit> {
    let Some(player) = colour_of(property) else {
        let (name, moves) = (&property.name, number - 1);
        return Err(Unfit::Start(format!("{name} after move {moves}: a position is set up before the moves")));
    };
    let point = property.value().map_err(Unfit::Action)?;
    let text = format!("move {number}, {}[{point}],", property.name);
    if state.turn() == Turn::Terminal {
        return Err(Unfit::AfterEnd(format!("{text} comes after the end of the game")));
    }
    legal_action(state, player, point).map_err(|error| Unfit::Action(format!("{text} {error}")))
}

fn legal_action<const WORDS: usize>(state: &Go<WORDS>, player: Player, point: &str) -> Result<Action, String> {
    if state.turn() != Turn::Player(player) {
        return Err(format!("is out of turn: {} is to move", colour(player.opponent())));
    }
    let action = if point.is_empty() || point == "tt" { state.num_cells() } else { cell_of(point, state.size())? };
    if action < state.num_cells()
        && let Some(objection) = state.objection(action)
    {
        return Err(format!("at {}, is illegal: {objection}", state.cell_name(action)));
    }
    Ok(action as Action)
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

/// A move as it is written.
struct Ply {
    mover: Player,
    action: Action,
    /// Black's points less White's, if the move ends the game.
    score: Option<f32>,
}

/// The game so far, with its result if it is over.
pub(super) fn write<const WORDS: usize>(state: &Go<WORDS>) -> String {
    let mut mover = state.setup.as_ref().map_or(Player::Zero, |setup| setup.mover);
    let mut moves = Moves::new(Bounds { moves: usize::MAX, depth: 0 });
    for (ply, action) in state.actions().into_iter().enumerate() {
        // Without a bound that it could pass.
        let _ = moves.push(ply, Ply { mover, action, score: None });
        mover = mover.opponent();
    }
    text_of(state, "", (state.turn() == Turn::Terminal).then(|| state.score()), &moves)
}

/// See [`azpy_core::text::Notation::write_variations`].
pub(super) fn write_tree<const WORDS: usize>(
    start: &Go<WORDS>,
    moves: &[Named],
    tags: &[(String, String)],
    bounds: Bounds,
) -> Result<String, String> {
    if start.plies > 0 {
        return Err("an SGF begins at a position without a past: give the moves before it too".to_owned());
    }
    let moves = moves_of(start, moves, bounds, |state, action| {
        let mover = state.mover;
        state.play(action);
        Ply { mover, action, score: (state.turn() == Turn::Terminal).then(|| state.score()) }
    })?;
    let mut text = String::new();
    for (name, value) in tags {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase()) || OWN.contains(&&name[..]) {
            return Err(format!("{} is no property to choose", shown(name)));
        }
        text += &format!("{name}[{}]", value.replace('\\', "\\\\").replace(']', "\\]"));
    }
    let score = moves.main_line().last().and_then(|ply| ply.score);
    Ok(text_of(start, &text, score.filter(|_| tags.iter().all(|(name, _)| name != "RE")), &moves))
}

/// The properties that say what is played.
const OWN: [&str; 13] = ["FF", "GM", "CA", "AP", "SZ", "KM", "HA", "AB", "AW", "AE", "PL", "B", "W"];

/// A game of the size, komi and setup of `rules`, with further properties of its root, and with its score if it is over.
fn text_of<const WORDS: usize>(rules: &Go<WORDS>, tags: &str, score: Option<f32>, moves: &Moves<Ply>) -> String {
    let (size, komi) = (rules.size(), rules.komi());
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
        if written % LINE == 0 {
            put(format_args!("\n"));
        }
        written += 1;
        let Ply { mover, action, .. } = moves.all()[number - 1].1;
        let cell = action as usize;
        let point = if cell == rules.num_cells() { String::new() } else { point(cell, size) };
        put(format_args!(";{}[{point}]", letter(mover)));
    }
    text + ")\n"
}

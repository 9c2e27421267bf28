//! Games of Go as SGF, FF[4] (<https://www.red-bean.com/sgf/>), read and written: the main line, or all variations.
//!
//! What is read: SZ, HA and GM, which must fit the game; KM; AB, AW, AE and PL; B and W, one move a node. Other
//! properties are tags of a game that is shown, and notes on its positions. Text before a game and behind it is passed
//! over. An empty value of SZ, KM, HA, GM or PL says nothing. A game that is shown has its own komi, that of its first
//! node, where the rules can have it; one to learn from must have that of the rules.
//!
//! A game that is shown goes on where the rules have no such move: if a colour plays twice, or stones are set up after
//! moves, the position there is set up anew, and the game begins there. A game to learn from must be as the rules have
//! it.

use std::collections::HashSet;

use azpy_core::game::{Action, Game, Player, Turn};
use azpy_core::text::{play_named, shown};
use azpy_core::written::{Bounds, COMMENT, Moves, Notes, ReadMove, Unfit, Variations, WrittenGame, Wrong, join, note};

use super::Go;
use crate::error::{Error, invalid, unfit};
use nodes::{Node, Property, Read, first_game, one_game};

mod nodes;
mod writing;
pub(super) use nodes::is_sgf;
pub(super) use writing::{marks, write, write_tree};

/// The game in `text`, of the size, komi and ko rule of `rules`, up to this number of moves.
pub(super) fn read<const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &str,
    plies: usize,
) -> Result<Go<WORDS>, azpy_core::Error> {
    let nodes = one_game(text, Read::MainLine).map_err(|wrong| wrong.why)?;
    check_game(&nodes)?;
    Ok(Line::read(rules, &nodes, UNBOUNDED, Some(plies))?.play()?)
}

const UNBOUNDED: Bounds = Bounds { moves: usize::MAX, depth: 0 };

/// See [`azpy_core::text::Notation::read_game`]. The tags are the properties of the first node.
pub(super) fn read_written<'a, const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &'a str,
) -> Result<Option<(WrittenGame, &'a str)>, azpy_core::Error> {
    let (nodes, rest) = match first_game(text, Read::MainLine) {
        Ok(found) => found,
        Err((wrong, rest)) => return Ok(Some((WrittenGame::unreadable(wrong.why), rest))),
    };
    if nodes.is_empty() {
        return Ok(None);
    }
    let mut before = Vec::new();
    let actions = check_game(&nodes).map_err(unfit(Unfit::Variant)).and_then(|()| {
        let (state, unfit) = Line::read(rules, &nodes, UNBOUNDED, None)?.play_on()?;
        match (unfit, &state.setup) {
            (None, None) => Ok(state.actions()),
            (None, Some(_)) => Err(Unfit::Start("stones are set up, or White is to move".to_owned())),
            (Some(unfit), setup) => {
                if setup.is_none() && !matches!(unfit, Unfit::Start(_)) {
                    before = state.actions();
                }
                Err(unfit)
            }
        }
    });
    Ok(Some((WrittenGame { tags: tags_of(&nodes[..1]), result: None, actions, before }, rest)))
}

/// See [`azpy_core::text::Notation::read_variations`].
pub(super) fn read_tree<const WORDS: usize>(
    rules: &Go<WORDS>,
    text: &str,
    bounds: Bounds,
) -> Result<Variations<Go<WORDS>>, azpy_core::Error> {
    let nodes = one_game(text, Read::Variations).map_err(|wrong| wrong.in_line_of(text))?;
    check_game(&nodes)?;
    let line = Line::read(rules, &nodes, bounds, Some(usize::MAX))?;
    let Line { root, moves, set_up, notes, komi, late_komi } = line;
    let (start, gone) = (root.start(first_of(&moves))?, moves.forgotten());
    let (moves, unplayed) = moves.play(
        start.clone(),
        |state, number, said| {
            let property = said.property;
            let action =
                action_of(state, gone + number, property).map_err(|unfit| unfit.in_line_of(text, property.at))?;
            Ok((action, ReadMove { notes: said.notes.clone(), ..play_named(state, action) }))
        },
        |told, other| join(&mut told.notes, other.notes),
    )?;
    let set_up = set_up.map(|Wrong { at, why }| {
        let why = format!("{why}: the {gone} moves before are set up as a position");
        Wrong { at, why }.in_line_of(text)
    });
    // Some files have it behind the first node, before the first move. The first value of a name counts.
    let moved = nodes.iter().position(|node| !node.is_main || node.played().is_some()).unwrap_or(nodes.len());
    let mut tags = tags_of(&nodes[..moved.max(1)]);
    let has_handicap = root.handicap > 0 && root.stones.contains(&Some(Player::Zero));
    let mut known = HashSet::new();
    tags.retain(|(name, _)| INFO.contains(&&name[..]) && (name != "HA" || has_handicap) && known.insert(name.clone()));
    let komi = komi.into_iter().chain(late_komi.map(|wrong| wrong.in_line_of(text)));
    Ok(Variations { start, moves, tags, notes, left_out: komi.chain(set_up).chain(unplayed).collect() })
}

/// The properties that say what is played.
const OWN: [&str; 12] = ["FF", "GM", "CA", "AP", "SZ", "KM", "AB", "AW", "AE", "PL", "B", "W"];

/// Properties that say something of the game as a whole (FF[4], "Game Info Properties").
const INFO: [&str; 22] = [
    "AN", "BR", "BT", "CP", "DT", "EV", "GC", "GN", "HA", "ON", "OT", "PB", "PC", "PW", "RE", "RO", "RU", "SO", "TM",
    "US", "WR", "WT",
];

/// Whether a property is a note on its node's position, and not what is played. What the start says of the game is no
/// note, but a tag.
fn is_note(property: &Property, is_start: bool) -> bool {
    let name = &&property.name[..];
    let is_tag = is_start && INFO.contains(name);
    !OWN.contains(name) && !is_tag && !property.says_nothing()
}

fn tags_of(nodes: &[Node]) -> Vec<(String, String)> {
    let tag = |property: &Property| (property.name.clone(), property.values.join(" ").trim().to_owned());
    nodes.iter().flat_map(|node| &node.properties).map(tag).collect()
}

/// Refuses games other than Go.
fn check_game(nodes: &[Node]) -> Result<(), Error> {
    for property in nodes.iter().flat_map(|node| &node.properties).filter(|property| property.name == "GM") {
        let game = property.value()?;
        if !matches!(game, "" | "1") {
            return Err(invalid!("GM[{game}] is another game, expected GM[1], Go"));
        }
    }
    Ok(())
}

/// A move, or what is set up behind moves, with the notes of its node.
struct Said<'a> {
    property: &'a Property,
    notes: Notes,
}

impl<'a> From<&'a Property> for Said<'a> {
    fn from(property: &'a Property) -> Self {
        Self { property, notes: Notes::new() }
    }
}

/// What the nodes of a game say: where it begins, and its moves with their variations.
struct Line<'a, const WORDS: usize> {
    root: Root<WORDS>,
    /// The moves behind the start. Forgotten are those of the main line that are part of the start, because something
    /// was set up anew behind them.
    moves: Moves<Said<'a>>,
    /// What was set up anew, and where.
    set_up: Option<Wrong>,
    /// On the start.
    notes: Notes,
    /// Why the komi is not that of the text, if it is not.
    komi: Option<String>,
    /// The first komi behind the first node.
    late_komi: Option<Wrong>,
}

impl<'a, const WORDS: usize> Line<'a, WORDS> {
    /// Reads the nodes by `rules`. Where a number of plies of a game is `shown`, a position is set up anew where the
    /// rules have no such move.
    fn read(rules: &Go<WORDS>, nodes: &'a [Node], bounds: Bounds, shown: Option<usize>) -> Result<Self, Unfit> {
        let is_shown = shown.is_some();
        let stones = vec![None; rules.num_cells()];
        let root = Root { rules: rules.clone(), stones, mover: None, handicap: 0 };
        let mut line =
            Self { root, moves: Moves::new(bounds), set_up: None, notes: Notes::new(), komi: None, late_komi: None };
        let is_size = |property: &Property| property.name == "SZ" && !property.says_nothing();
        if !nodes.iter().flat_map(|node| &node.properties).any(is_size) {
            check_size("19", rules.size())
                .map_err(|error| Unfit::Size(format!("{error} (a game without SZ is of 19)")))?;
        }
        // The number of the last move of each node; none where the node stands behind one that is before the start.
        let mut last = vec![Some(0)];
        // The nodes below `floor` stand before a position that was set up anew, and so before the start. Only beside
        // the first move from there on, behind the node `joint`, others begin at that position too.
        let (mut floor, mut joint) = (0, None);
        // How many moves the main line has so far, and whose the last one is.
        let (mut played, mut mover) = (0, None);
        for node in nodes {
            // The number of the move before what comes next.
            let is_gone = node.before < floor && joint != Some(node.before);
            let Some(mut before) = last[node.before].filter(|_| !is_gone) else {
                last.push(None);
                continue;
            };
            let is_of_fox =
                node.properties.iter().any(|property| property.name == "AP" && property.values == ["foxwq"]);
            for property in node.properties.iter().filter(|property| !property.says_nothing()) {
                match &property.name[..] {
                    "SZ" => {
                        property.value().and_then(|size| check_size(size, rules.size())).map_err(unfit(Unfit::Size))?
                    }
                    "KM" if is_shown => line.read_komi(property, is_of_fox, last.len() == 1),
                    "KM" => property
                        .value()
                        .and_then(|komi| check_komi(komi, is_of_fox, rules.komi()))
                        .map_err(unfit(Unfit::Komi))?,
                    "AB" | "AW" | "AE" => {
                        if node.is_main && before > 0 && is_shown {
                            let why = format!("{} after move {played}", property.name);
                            line.set_up(Wrong { at: property.at, why }, mover)?;
                            (floor, joint, before) = (last.len(), None, 0);
                        }
                        if node.is_main && before == 0 {
                            line.root.apply(property).map_err(unfit(Unfit::Start))?;
                            line.notes.retain(|name, _| name == COMMENT); // of nodes before: of another board
                        } else {
                            before = line
                                .moves
                                .push(before, property.into())
                                .map_err(|error| Unfit::Action(error.into()))?;
                        }
                    }
                    // Behind moves, the colour of the next move says it too.
                    "PL" | "HA" if before == 0 && node.is_main => {
                        line.root.apply(property).map_err(unfit(Unfit::Start))?
                    }
                    _ => {}
                }
            }
            if let Some(property) = node.played() {
                let player = colour_of(property);
                if node.is_main {
                    if shown == Some(played) {
                        // The nodes of the main line come first: behind this one no other is wanted.
                        line.root.mover = if line.moves.is_empty() { player } else { line.root.mover };
                        break;
                    }
                    if player == mover && before > 0 && is_shown {
                        let why = format!("{} plays move {played} and the next one", player.map_or("", colour));
                        line.set_up(Wrong { at: property.at, why }, mover)?;
                        (floor, joint, before) = (last.len(), Some(node.before), 0);
                        last[node.before] = Some(0);
                    }
                    (played, mover) = (played + 1, player);
                }
                before = line.moves.push(before, property.into()).map_err(|error| Unfit::Action(error.into()))?;
            }
            let notes = if before == 0 { &mut line.notes } else { &mut line.moves.said_mut(before).notes };
            for property in node.properties.iter().filter(|property| is_note(property, before == 0)) {
                property.values.iter().for_each(|value| note(notes, &property.name, value.clone(), "\n\n"));
            }
            last.push(Some(before));
        }
        // Until White plays, the stones can come as moves.
        let goes_on = line.moves.all().iter().any(|(_, said)| colour_of(said.property) == Some(Player::One));
        if goes_on && line.root.handicap > 1 && !line.root.stones.contains(&Some(Player::Zero)) {
            let why = format!("HA[{}] without the stones: expected them as AB", line.root.handicap);
            return Err(Unfit::Start(why));
        }
        Ok(line)
    }

    /// Begins anew at the position to which the moves lead, the last one of `mover`.
    fn set_up(&mut self, why: Wrong, mover: Option<Player>) -> Result<(), Unfit> {
        let state = self.play()?;
        let root = &mut self.root;
        root.stones = (0..state.num_cells()).map(|cell| state.stone(cell)).collect();
        (root.mover, root.handicap) = (mover.map(Player::opponent), 0);
        let noted = self.moves.main_line().filter_map(|said| said.notes.get(COMMENT));
        let comments: Vec<_> = noted.flatten().cloned().collect();
        self.moves.forget();
        self.notes.retain(|name, _| name == COMMENT); // marks are of the board before
        comments.into_iter().for_each(|comment| note(&mut self.notes, COMMENT, comment, "\n\n"));
        self.set_up = Some(why);
        Ok(())
    }

    /// Takes the komi of a game that is shown, where the rules can have it. The game has one, that of its first node.
    fn read_komi(&mut self, property: &Property, is_of_fox: bool, is_first: bool) {
        let rules = &self.root.rules;
        if !is_first {
            let (text, komi) = (shown(&property.values.join(" ")), rules.komi());
            let why = format!("KM[{text}] is ignored, because it comes after the first node: the komi is {komi}");
            self.late_komi.get_or_insert(Wrong { at: property.at, why });
            return;
        }
        let read = |text: &str| Go::new(rules.size(), komi_of(text, is_of_fox)?, rules.superko()).ok();
        let found = property.value().ok().and_then(read);
        let said = || {
            format!(
                "KM[{}] is not a komi under these rules: azpy reads it as {}",
                shown(&property.values.join(" ")),
                rules.komi()
            )
        };
        self.komi = if found.is_none() { Some(said()) } else { None };
        self.root.rules = found.unwrap_or_else(|| self.root.rules.clone());
    }

    /// The position that the main line leads to.
    fn play(&self) -> Result<Go<WORDS>, Unfit> {
        let (state, unfit) = self.play_on()?;
        unfit.map_or(Ok(state), Err)
    }

    /// The position that the main line leads to, or the one before the first move that is unfit, and why it is.
    fn play_on(&self) -> Result<(Go<WORDS>, Option<Unfit>), Unfit> {
        let mut state = self.root.start(first_of(&self.moves)).map_err(unfit(Unfit::Start))?;
        for (number, said) in (self.moves.forgotten() + 1..).zip(self.moves.main_line()) {
            match action_of(&state, number, said.property) {
                Ok(action) => state.play(action),
                Err(unfit) => return Ok((state, Some(unfit))),
            }
        }
        Ok((state, None))
    }
}

/// Whose the first move is.
fn first_of(moves: &Moves<Said<'_>>) -> Option<Player> {
    moves.all().first().and_then(|(_, said)| colour_of(said.property))
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
    let point = property.value().map_err(unfit(Unfit::Action))?;
    let text = format!("move {number}, {}[{point}],", property.name);
    if state.turn() == Turn::Terminal {
        return Err(Unfit::AfterEnd(format!("{text} comes after the end of the game")));
    }
    legal_action(state, player, point).map_err(|error| Unfit::Action(format!("{text} {error}")))
}

fn legal_action<const WORDS: usize>(state: &Go<WORDS>, player: Player, point: &str) -> Result<Action, Error> {
    if state.turn() != Turn::Player(player) {
        return Err(invalid!("is out of turn: {} is to move", colour(player.opponent())));
    }
    let action = if point.is_empty() || point == "tt" { state.num_cells() } else { cell_of(point, state.size())? };
    if action < state.num_cells()
        && let Some(objection) = state.objection(action)
    {
        return Err(invalid!("at {}, is illegal: {objection}", state.cell_name(action)));
    }
    Ok(action as Action)
}

/// What stands before the first move.
struct Root<const WORDS: usize> {
    rules: Go<WORDS>,
    stones: Vec<Option<Player>>,
    mover: Option<Player>,
    handicap: usize,
}

impl<const WORDS: usize> Root<WORDS> {
    fn apply(&mut self, property: &Property) -> Result<(), Error> {
        let stone = match &property.name[..] {
            "AB" => Some(Player::Zero),
            "AW" => Some(Player::One),
            "AE" => None,
            "PL" => {
                let player = match property.value()?.to_ascii_lowercase().as_str() {
                    "b" | "black" | "1" => Player::Zero,
                    "w" | "white" | "2" => Player::One,
                    other => return Err(invalid!("PL[{other}] is not a colour, expected B or W")),
                };
                self.mover = Some(player);
                return Ok(());
            }
            _ => {
                let value = property.value()?;
                self.handicap = value.parse().map_err(|_| invalid!("HA[{value}] is not a number of stones"))?;
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
                return Err(invalid!(
                    "{}[{value}] is not a rectangle, expected its upper left and lower right",
                    property.name
                ));
            }
            for cell in rows.flat_map(|row| columns.clone().map(move |column| row * size + column)) {
                if stone.is_some() && self.stones[cell].is_some_and(|other| stone != Some(other)) {
                    return Err(invalid!("{} is set up twice", self.rules.cell_name(cell)));
                }
                self.stones[cell] = stone;
            }
        }
        Ok(())
    }

    /// The start. The colour of the first move is to move, whatever PL says; without moves that of PL; and without PL
    /// White, where Black alone has stones, as with a handicap.
    fn start(&self, first: Option<Player>) -> Result<Go<WORDS>, Error> {
        let of = |player| (0..self.stones.len()).filter(|&cell| self.stones[cell] == Some(player)).collect();
        let [black, white]: [Vec<usize>; 2] = [of(Player::Zero), of(Player::One)];
        let usual = if white.is_empty() && !black.is_empty() { Player::One } else { Player::Zero };
        self.rules.with_stones([&black, &white], first.or(self.mover).unwrap_or(usual))
    }
}

fn check_size(value: &str, size: usize) -> Result<(), Error> {
    // Boards that are not square have columns and rows.
    let (columns, rows) = value.split_once(':').unwrap_or((value, value));
    if [columns, rows].iter().all(|side| side.trim().parse() == Ok(size)) {
        return Ok(());
    }
    Err(invalid!("the game is of size {value}, expected {size}"))
}

/// The komi that a value says, in points.
///
/// Chinese servers and collections count in stones, each of two points, or write hundredths: 3.75, 375 and 750 all are
/// 7.5 points. KataGo reads the same numbers so, and that of Fox's games with a handicap, 50, is 0.5 there. Some programs
/// write a comma.
fn komi_of(value: &str, is_of_fox: bool) -> Option<f32> {
    const HUNDREDTHS: [&str; 8] = ["275", "325", "350", "375", "550", "650", "700", "750"];
    let text = value.trim().replace(',', ".");
    let number: f32 = text.parse().ok()?;
    let is_hundredths = HUNDREDTHS.contains(&&text[..]) || (is_of_fox && text == "50");
    let number = if is_hundredths { number / 100.0 } else { number };
    // No game has a quarter of a point as its komi.
    let is_in_stones = (is_hundredths && (2.0..4.0).contains(&number)) || (4.0 * number).rem_euclid(2.0) == 1.0;
    Some(if is_in_stones { 2.0 * number } else { number })
}

fn check_komi(value: &str, is_of_fox: bool, komi: f32) -> Result<(), Error> {
    if komi_of(value, is_of_fox) == Some(komi) {
        return Ok(());
    }
    Err(invalid!("the game has komi {value}, expected {komi}"))
}

/// The cell that two letters name: column from the left, row from the top.
fn cell_of(point: &str, size: usize) -> Result<usize, Error> {
    let line = |letter: u8| usize::from(letter.wrapping_sub(b'a'));
    match *point.as_bytes() {
        [column, row] if line(column) < size && line(row) < size => Ok(line(row) * size + line(column)),
        _ => {
            let last = char::from(b'a' + size as u8 - 1);
            Err(invalid!("{} is not a point: expected two letters from a to {last}", shown(point)))
        }
    }
}

fn colour(player: Player) -> &'static str {
    ["Black", "White"][player.index()]
}

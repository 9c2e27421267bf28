//! The rules of `azpy_core::conformance` find the mistakes that a game plants, and nothing in a sound game.

use azpy_core::Error;
use azpy_core::conformance::{Hooks, Walk, check_symmetries, own_images};
use azpy_core::game::{Action, Game, PlayError, Player, Turn, Value};
use azpy_core::text::Notation;

/// Two players mark one of three cells in turn until all are marked. The other fields plant mistakes.
#[derive(Clone)]
struct Bent {
    cells: Vec<Action>,
    plays_illegal: bool,
    text: Option<&'static str>,
    image: fn(usize, Action) -> Action,
    mirrors_planes: bool,
    planes: Vec<f32>,
    divisors: Option<Vec<u16>>,
}

fn mirrored(symmetry: usize, action: Action) -> Action {
    if symmetry == 1 { 2 - action } else { action }
}

fn sound() -> Bent {
    Bent {
        cells: Vec::new(),
        plays_illegal: false,
        text: None,
        image: mirrored,
        mirrors_planes: true,
        planes: Vec::new(),
        divisors: None,
    }
}

impl Game for Bent {
    type Payoff = Value;

    fn num_actions(&self) -> usize {
        3
    }
    fn obs_shape(&self) -> [usize; 3] {
        [1, 1, 3]
    }
    fn max_plies(&self) -> usize {
        3
    }
    fn turn(&self) -> Turn {
        match self.cells.len() {
            3 => Turn::Terminal,
            plies => Turn::Player(if plies % 2 == 0 { Player::Zero } else { Player::One }),
        }
    }
    fn legal_actions(&self, out: &mut Vec<Action>) {
        *out = (0..3).filter(|cell| !self.cells.contains(cell)).collect();
    }
    fn play(&mut self, action: Action) {
        self.cells.push(action);
    }
    fn outcome(&self) -> Value {
        Value(0.0)
    }
    fn encode(&self, row: &mut [f32]) {
        let marked = |cell: usize| f32::from(u8::from(self.cells.contains(&(cell as Action))));
        (0..3).for_each(|cell| row[cell] = self.planes.get(cell).copied().unwrap_or_else(|| marked(cell)));
    }
    fn key(&self) -> u128 {
        self.cells.iter().fold(1, |key, &cell| 4 * key + u128::from(cell))
    }
    fn num_symmetries(&self) -> usize {
        2
    }
    fn symmetric_action(&self, symmetry: usize, action: Action) -> Action {
        (self.image)(symmetry, action)
    }
    fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]) {
        out.copy_from_slice(row);
        if symmetry == 1 && self.mirrors_planes {
            out.reverse();
        }
    }
    fn plane_divisors(&self) -> Option<Vec<u16>> {
        self.divisors.clone()
    }
    fn render(&self) -> String {
        format!("{:?}", self.cells)
    }
    fn try_play(&mut self, action: Action) -> Result<(), PlayError> {
        let mut legal = Vec::new();
        self.legal_actions(&mut legal);
        match self.turn() {
            Turn::Terminal => Err(PlayError::Terminal(action)),
            _ if self.plays_illegal || legal.contains(&action) => {
                self.play(action);
                Ok(())
            }
            _ => Err(PlayError::Illegal { action, legal }),
        }
    }
}

impl Notation for Bent {
    fn to_text(&self) -> Option<String> {
        self.text.map(str::to_owned)
    }
    fn parse(&self, text: &str) -> Result<Self, Error> {
        if text == "start" { Ok(Self { cells: Vec::new(), ..self.clone() }) } else { Err("no start".into()) }
    }
}

/// The rule that is broken after a line, and what came.
fn found(start: &Bent, line: &[Action]) -> String {
    let check = || {
        check_symmetries(start)?;
        let mut walk = Walk::new(start, own_images(start), Hooks::infallible(), true)?;
        for &action in line {
            assert!(walk.play(action)?);
        }
        walk.look(true).map(drop)
    };
    check().map_or_else(|broken| format!("{}: {}", broken.rule, broken.got), |()| "nothing".to_owned())
}

#[test]
fn a_sound_game_breaks_no_rule() {
    for line in [&[] as &[Action], &[1], &[0, 2], &[0, 2, 1]] {
        assert_eq!(found(&sound(), line), "nothing", "{line:?}");
    }
    assert_eq!(own_images(&sound()).len(), 1);
}

#[test]
fn an_illegal_action_that_is_played_is_found() {
    let bent = Bent { plays_illegal: true, ..sound() };
    assert_eq!(found(&bent, &[1]), "refusal: the illegal action 1 was played");
}

#[test]
fn a_notation_of_another_position_is_found() {
    let reads = |text, line| found(&Bent { text: Some(text), ..sound() }, line);
    assert_eq!(reads("start", &[]), "nothing");
    assert!(reads("start", &[0]).starts_with("text: \"start\", read as another position"));
    assert!(reads("nonsense", &[]).starts_with("text: \"nonsense\", which is refused: no start"));
}

#[test]
fn symmetries_that_do_not_fit_are_found() {
    let shifted = Bent { image: |symmetry, action| (action + symmetry as Action) % 3, ..sound() };
    assert_eq!(found(&shifted, &[]), "symmetry: no symmetry undoes symmetry 1");
    let joined = Bent { image: |symmetry, action| if symmetry == 1 { 0 } else { action }, ..sound() };
    assert_eq!(found(&joined, &[]), "symmetry: symmetry 1 leads two actions to one");
    let twice = Bent { image: |_, action| action, mirrors_planes: false, ..sound() };
    assert_eq!(found(&twice, &[]), "symmetry: symmetry 1 is there twice");
    let still = Bent { mirrors_planes: false, ..sound() };
    assert_eq!(found(&still, &[0]), "symmetry: symmetry 1: another observation");
}

#[test]
fn false_claims_about_planes_are_found() {
    let claims = |planes: &[f32], divisors: &[u16]| {
        found(&Bent { planes: planes.to_vec(), divisors: Some(divisors.to_vec()), ..sound() }, &[])
    };
    assert_eq!(claims(&[0.5, -127.5, 0.5], &[2]), "nothing");
    assert_eq!(claims(&[1.0 / 300.0, 65535.0 / 300.0, 1.0 / 300.0], &[300]), "nothing");
    assert_eq!(claims(&[0.0, 0.3, 0.0], &[2]), "planes: 0.3 at row 0, column 1 of plane 0");
    assert_eq!(claims(&[0.0; 3], &[0]), "planes: plane_divisors [0]");
    assert_eq!(claims(&[0.0; 3], &[1, 1]), "planes: plane_divisors [1, 1]");
}

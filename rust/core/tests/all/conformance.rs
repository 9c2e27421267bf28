//! The rules of `azpy_core::conformance` find the mistakes that a game plants, and nothing in a sound game.

use azpy_core::Error;
use azpy_core::conformance::{Hooks, Walk, check_symmetries, own_images};
use azpy_core::game::{Action, Game, PlayError, Player, Sizes, Turn, Value};
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

    fn sizes(&self) -> Sizes {
        Sizes { num_actions: 3, obs_shape: [1, 1, 3], max_plies: 3, num_symmetries: 2 }
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
    assert_eq!(found(&Bent { text: Some("start"), ..sound() }, &[]), "nothing");
    for (planes, divisor) in [([0.5, -127.5, 0.5], 2), ([1.0 / 300.0, 65535.0 / 300.0, 1.0 / 300.0], 300)] {
        assert_eq!(found(&Bent { planes: planes.to_vec(), divisors: Some(vec![divisor]), ..sound() }, &[]), "nothing");
    }
}

#[test]
fn each_broken_rule_is_found_and_named() {
    let reads = |text| Bent { text: Some(text), ..sound() };
    let maps = |image, mirrors_planes| Bent { image, mirrors_planes, ..sound() };
    let claims =
        |planes: [f32; 3], divisors: &[u16]| Bent { planes: planes.into(), divisors: Some(divisors.into()), ..sound() };
    for (bent, line, expected) in [
        (Bent { plays_illegal: true, ..sound() }, &[1][..], "refusal: the illegal action 1 was played"),
        (reads("start"), &[0], "text: \"start\", read as another position"),
        (reads("nonsense"), &[], "text: \"nonsense\", which is refused: no start"),
        (
            maps(|symmetry, action| (action + symmetry as Action) % 3, true),
            &[],
            "symmetry: no symmetry undoes symmetry 1",
        ),
        (
            maps(|symmetry, action| if symmetry == 1 { 0 } else { action }, true),
            &[],
            "symmetry: symmetry 1 maps two actions to one",
        ),
        (maps(|_, action| action, false), &[], "symmetry: symmetry 1 appears twice"),
        (maps(mirrored, false), &[0], "symmetry: symmetry 1: another observation"),
        (claims([0.0, 0.3, 0.0], &[2]), &[], "planes: 0.3 at row 0, column 1 of plane 0"),
        (claims([0.0; 3], &[0]), &[], "planes: plane_divisors [0]"),
        (claims([0.0; 3], &[1, 1]), &[], "planes: plane_divisors [1, 1]"),
    ] {
        let found = found(&bent, line);
        assert!(found.starts_with(expected), "{found}, and not {expected}");
    }
}

//! Lists of what is asked of a position, for crates that put all games behind one type: a question is declared, and
//! handed on to the game, by its one row here.
//!
//! `of_game!(declared)` stands in a trait, and `of_game!(handed_on, inner)` in an `impl` of a type whose field `inner`
//! answers.

/// Calls a macro with the questions of [`Game`](crate::game::Game) that name no type of the game.
#[doc(hidden)]
#[macro_export]
macro_rules! of_game {
    ($each:ident $(, $field:tt)?) => {
        $each! {
            $($field:)?
            fn num_players(&self) -> usize;
            fn is_zero_sum(&self) -> bool;
            fn sizes(&self) -> $crate::game::Sizes;
            fn turn(&self) -> $crate::game::Turn;
            fn legal_actions(&self, out: &mut Vec<$crate::game::Action>);
            fn chance_outcomes(&self, out: &mut Vec<($crate::game::Action, f32)>);
            fn encode(&self, row: &mut [f32]);
            fn plane_divisors(&self) -> Option<Vec<u16>>;
            fn is_slow(&self) -> bool;
            fn action_cells(&self) -> Option<Vec<u16>>;
            fn policy_planes(&self) -> Option<Vec<Option<u32>>>;
            fn key(&self) -> u128;
            fn view_key(&self, player: $crate::game::Player) -> Option<u128>;
            fn symmetric_action(&self, symmetry: usize, action: $crate::game::Action) -> $crate::game::Action;
            fn symmetric_observation(&self, symmetry: usize, row: &[f32], out: &mut [f32]);
            fn render(&self) -> String;
            fn render_view(&self, player: $crate::game::Player) -> String;
        }
    };
}

/// The same of [`Notation`](crate::text::Notation).
#[doc(hidden)]
#[macro_export]
macro_rules! of_notation {
    ($each:ident $(, $field:tt)?) => {
        $each! {
            $($field:)?
            fn action_name(&self, action: $crate::game::Action) -> String;
            fn short_name(&self, action: $crate::game::Action) -> String;
            fn owner(&self, line: usize, glyph: char) -> Option<$crate::game::Player>;
            fn on_board(&self) -> Vec<(String, char)>;
            fn captured(&self, actions: &[$crate::game::Action]) -> Vec<String>;
            fn side_names(&self) -> Option<Vec<&str>>;
            fn counts(&self) -> Vec<String>;
            fn can_rotate(&self) -> bool;
            fn result_text(&self) -> String;
            fn to_svg(&self) -> String;
            fn touches(&self, action: $crate::game::Action) -> Vec<$crate::picture::Touch>;
            fn places(&self) -> Vec<$crate::picture::Touch>;
            fn marks(&self, notes: &$crate::written::Notes) -> Vec<$crate::picture::Mark>;
            fn parse_actions(&self, text: &str) -> Result<Vec<$crate::game::Action>, $crate::Error>;
            fn format_actions(&self, actions: &[$crate::game::Action]) -> Result<String, $crate::Error>;
            fn write_variations(
                &self,
                moves: &[$crate::written::Named],
                tags: &[(String, String)],
                notes: &[$crate::written::Notes],
                bounds: $crate::written::Bounds
            ) -> Result<String, $crate::Error>;
            fn to_text(&self) -> Option<String>;
            fn fen(&self) -> Option<String>;
            fn komi(&self) -> Option<f32>;
            fn payoff_unit(&self) -> (f32, &str);
        }
    };
}

/// Declares questions.
#[doc(hidden)]
#[macro_export]
macro_rules! declared {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $reply:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) $(-> $reply)?;)*
    };
}

/// Has a field answer questions.
#[doc(hidden)]
#[macro_export]
macro_rules! handed_on {
    ($field:tt: $(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $reply:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $kind)*) $(-> $reply)? {
            self.$field.$name($($argument),*)
        })*
    };
}

use azpy_core::batched::{Rounds, Workers};
use azpy_core::evaluator::Uniform;
use azpy_core::rng::Stream;
use azpy_core::search::{Search, SearchConfig};
use azpy_games::ConnectFour;
fn main() {
    let root = ConnectFour::new(7, 6, 4).unwrap();
    let config = SearchConfig { eval_batch: std::env::args().nth(1).map_or(1, |x| x.parse().unwrap()), ..SearchConfig::default() };
    let mut search = Search::new(root, config, 0);
    let mut rounds = Rounds::new(Workers::Serial, None);
    for _ in 0..10_000 {
        search.reset(root);
        search.begin(800, Stream::keyed(&[1])).unwrap();
        while rounds.run(std::slice::from_mut(&mut search), &mut [Uniform]).unwrap() {}
    }
}

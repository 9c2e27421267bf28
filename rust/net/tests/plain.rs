//! Networks against plain loops over torch's own formulas, in its own order of planes: `azpy/learning/network.py`.

use std::collections::BTreeMap;

use azpy_core::rng::Stream;
use azpy_net::{Net, Scratch};
use safetensors::tensor::{Dtype, TensorView};

type Planes = Vec<Vec<f32>>;

const HEAD: usize = 16;

/// The weights of a network by name, with their shapes; made at random when they are first asked for.
struct Weights {
    stream: Stream,
    /// What convolutions and matrices are multiplied by.
    scale: f32,
    made: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Weights {
    fn new(seed: u64) -> Self {
        Self { stream: Stream::keyed(&[seed]), scale: 1.0, made: BTreeMap::new() }
    }

    fn number(&mut self) -> f32 {
        self.stream.below(2001) as f32 / 1000.0 - 1.0
    }

    fn get(&mut self, name: &str, shape: &[usize]) -> Vec<f32> {
        if !self.made.contains_key(name) {
            let fan: usize = shape[1..].iter().product();
            let scale = 1.2 / (fan as f32).sqrt() * if shape.len() > 1 { self.scale } else { 1.0 };
            let is_variance = name.ends_with("running_var");
            let numbers = (0..shape.iter().product()).map(|_| scale * self.number());
            let numbers = numbers.map(|number| if is_variance { number.abs() + 0.3 } else { number }).collect();
            self.made.insert(name.to_owned(), (shape.to_vec(), numbers));
        }
        self.made[name].1.clone()
    }

    /// As a file of safetensors has them.
    fn bytes(&self) -> Vec<u8> {
        let raw = self.made.iter().map(|(name, (shape, numbers))| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            (name, shape.clone(), bytes)
        });
        let raw: Vec<_> = raw.collect();
        let views =
            raw.iter().map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
        safetensors::serialize(views, None).unwrap()
    }

    fn conv(&mut self, name: &str, x: &Planes, outputs: usize, size: usize, [h, w]: [usize; 2]) -> Planes {
        let weight = self.get(&format!("{name}.weight"), &[outputs, x.len(), size, size]);
        let bias = self.get(&format!("{name}.bias"), &[outputs]);
        let mut planes = vec![vec![0.0; h * w]; outputs];
        for (output, plane) in planes.iter_mut().enumerate() {
            for (place, sum) in plane.iter_mut().enumerate() {
                *sum = bias[output];
                for (input, from) in x.iter().enumerate() {
                    for tap in 0..size * size {
                        // Beyond the edge, a number wraps to one that is too large.
                        let row = (place / w + tap / size).wrapping_sub(size / 2);
                        let column = (place % w + tap % size).wrapping_sub(size / 2);
                        if row < h && column < w {
                            let weight = weight[(output * x.len() + input) * size * size + tap];
                            *sum = from[row * w + column].mul_add(weight, *sum);
                        }
                    }
                }
            }
        }
        planes
    }

    /// Batch norm of each channel.
    fn norm(&mut self, name: &str, x: Planes) -> Planes {
        let [weight, bias, mean, variance] = ["weight", "bias", "running_mean", "running_var"]
            .map(|part| self.get(&format!("{name}.{part}"), &[x.len()]));
        let normed = x.into_iter().enumerate().map(|(channel, row)| {
            let deviation = (variance[channel] + 1e-5).sqrt();
            row.into_iter().map(|x| (x - mean[channel]) / deviation * weight[channel] + bias[channel]).collect()
        });
        normed.collect()
    }

    fn conv_norm(&mut self, name: &str, x: &Planes, outputs: usize, size: usize, board: [usize; 2]) -> Planes {
        let x = self.conv(&format!("{name}.0"), x, outputs, size, board);
        self.norm(&format!("{name}.1"), x)
    }

    fn linear(&mut self, name: &str, x: &[f32], outputs: usize) -> Vec<f32> {
        let weight = self.get(&format!("{name}.weight"), &[outputs, x.len()]);
        let bias = self.get(&format!("{name}.bias"), &[outputs]);
        // A product is not rounded before it is added, as in the layers: it may be too large for a float alone.
        let add = |sum: f32, (x, weight): (&f32, &f32)| x.mul_add(*weight, sum);
        (0..outputs).map(|output| x.iter().zip(&weight[output * x.len()..]).fold(bias[output], add)).collect()
    }
}

fn relu(x: Planes) -> Planes {
    // As in torch, NaN stays NaN: `f32::max` would drop it.
    x.into_iter().map(|row| row.into_iter().map(|x| if x <= 0.0 { 0.0 } else { x }).collect()).collect()
}

/// Adds a number to each plane.
fn spread(x: Planes, each: &[f32]) -> Planes {
    x.into_iter().zip(each).map(|(row, each)| row.into_iter().map(|x| x + each).collect()).collect()
}

/// The means of the channels, and then their maxima.
fn pooled(x: &Planes) -> Vec<f32> {
    let mean = x.iter().map(|row| row.iter().sum::<f32>() / row.len() as f32);
    let most = x
        .iter()
        .map(|row| row.iter().fold(f32::NEG_INFINITY, |most, &x| if x > most || x.is_nan() { x } else { most }));
    mean.chain(most).collect()
}

/// A network in words, and what its game says.
struct Case {
    spec: &'static str,
    obs_shape: [usize; 3],
    actions: usize,
    num_values: usize,
    cells: Option<Vec<usize>>,
    places: Option<Vec<Option<usize>>>,
    divisors: Option<Vec<usize>>,
    smoothing: f32,
}

impl Case {
    fn new(spec: &'static str, obs_shape: [usize; 3], actions: usize) -> Self {
        Self { spec, obs_shape, actions, num_values: 1, cells: None, places: None, divisors: None, smoothing: 0.0 }
    }

    fn shape(&self) -> String {
        let shape = serde_json::json!({
            "network": self.spec,
            "obs_shape": self.obs_shape,
            "num_actions": self.actions,
            "num_values": self.num_values,
            "action_cells": self.cells,
            "policy_planes": self.places,
            "plane_divisors": self.divisors,
            "value_smoothing": self.smoothing,
        });
        shape.to_string()
    }

    /// Logits, and the value's numbers before they are brought into [-1, 1].
    fn raw(&self, weights: &mut Weights, observation: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let [_, h, w] = self.obs_shape;
        let (board, area) = ([h, w], h * w);
        let (size, _) = self.spec.split_at(self.spec.find('+').unwrap_or(self.spec.len()));
        let (depth, width) = size.split_once('x').unwrap();
        let (depth, width): (usize, usize) = (depth.parse().unwrap(), width.parse().unwrap());
        let [pools, any_size, wdl] = ["pool", "conv", "wdl"].map(|word| self.spec.contains(word));
        let classes = if wdl { 3 } else { self.num_values };
        if area == 1 {
            let mut x = observation.to_vec();
            for layer in 0..depth {
                x = relu(vec![weights.linear(&format!("trunk.{}", 2 * layer + 1), &x, width)]).concat();
            }
            let hidden = relu(vec![weights.linear("value.0", &x, 64)]).concat();
            return (weights.linear("policy.0", &x, self.actions), weights.linear("value.2", &hidden, classes));
        }
        let mut x: Planes = observation.chunks(area).map(<[f32]>::to_vec).collect();
        if any_size {
            for (plane, _) in self.divisors.iter().flatten().enumerate().filter(|&(_, &divisor)| divisor == area) {
                x[plane].iter_mut().for_each(|number| *number *= area as f32 / 64.0);
            }
            let near = |place: usize, length: usize| 1.0 / (1 + place.min(length - 1 - place)) as f32;
            x.push(vec![1.0; area]);
            x.push((0..area).map(|place| near(place / w, h)).collect());
            x.push((0..area).map(|place| near(place % w, w)).collect());
        }
        x = relu(weights.conv_norm("trunk.0", &x, width, 3, board));
        for block in 0..depth {
            let name = format!("trunk.{}", block + 2);
            let mut y = weights.conv_norm(&format!("{name}.first"), &x, width, 3, board);
            if pools && block % 3 == 1 {
                let taken = HEAD * (width / 48).max(1);
                let found = pooled(&relu(weights.conv_norm(&format!("{name}.pool.taken"), &x, taken, 3, board)));
                y = spread(y, &weights.linear(&format!("{name}.pool.mean"), &found[..taken], width));
                y = spread(y, &weights.linear(&format!("{name}.pool.most"), &found[taken..], width));
            }
            y = weights.conv_norm(&format!("{name}.second"), &relu(y), width, 3, board);
            x = relu(x.iter().zip(y).map(|(x, y)| x.iter().zip(y).map(|(x, y)| x + y).collect()).collect());
        }
        let with_side = |weights: &mut Weights, name: &str, x: &Planes| {
            let normed = weights.norm(name, pooled(x).into_iter().map(|number| vec![number]).collect()).concat();
            let side = ((area as f32).sqrt() - 14.0) / 10.0;
            let means: Vec<f32> = normed[..x.len()].iter().map(|mean| mean * side).collect();
            [normed, means].concat()
        };
        let logits = if any_size {
            let places = self.places.as_ref().unwrap();
            let taken = relu(weights.conv_norm("policy.taken.0", &x, HEAD, 1, board));
            let found = with_side(weights, "policy.taken.2.norm", &taken);
            let y = weights.conv_norm("policy.first", &x, width, 1, board);
            let y = relu(spread(y, &weights.linear("policy.spread", &found, width)));
            let planes = 1 + places.iter().flatten().max().unwrap() / area;
            let flat = weights.conv("policy.last", &y, planes, 1, board).concat();
            let beyond = places.iter().filter(|place| place.is_none()).count();
            let mut free = match beyond {
                0 => Vec::new(),
                _ => weights.linear("policy.free", &found, beyond),
            }
            .into_iter();
            places.iter().map(|place| place.map_or_else(|| free.next().unwrap(), |place| flat[place])).collect()
        } else if let Some(cells) = &self.cells {
            let y = relu(weights.conv_norm("policy.0", &x, width, 1, board));
            let planes = weights.conv("policy.2", &y, self.actions / cells.len(), 1, board);
            cells.iter().flat_map(|&cell| planes.iter().map(move |plane| plane[cell])).collect()
        } else {
            let y = relu(weights.conv_norm("policy.0", &x, HEAD, 1, board)).concat();
            weights.linear("policy.3", &y, self.actions)
        };
        let y = relu(weights.conv_norm("value.0", &x, if any_size { 32 } else { HEAD }, 1, board));
        let y = if any_size { with_side(weights, "value.2.norm", &y) } else { y.concat() };
        let hidden = relu(vec![weights.linear("value.3", &y, 64)]).concat();
        (logits, weights.linear("value.5", &hidden, classes))
    }

    /// Logits and values of one observation.
    fn answer(&self, weights: &mut Weights, observation: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (logits, raw) = self.raw(weights, observation);
        if !self.spec.contains("wdl") {
            return (logits, raw.into_iter().map(f32::tanh).collect());
        }
        let most = raw.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let shares: Vec<f32> = raw.iter().map(|number| (number - most).exp()).collect();
        let win = 1.0 / (1.0 - 4.0 / 3.0 * self.smoothing);
        let value = (shares[0] - shares[2]) / shares.iter().sum::<f32>() * win;
        (logits, vec![value.clamp(-1.0, 1.0)])
    }

    /// Compares the two in batches of several sizes, and a position alone with the same one in a batch.
    fn check(&self, scratch: &mut Scratch) {
        let (mut weights, row) = (Weights::new(7), self.obs_shape.iter().product::<usize>());
        self.answer(&mut weights, &vec![0.0; row]); // makes them
        let net = Net::read(&self.shape(), &weights.bytes()).unwrap();
        for batch in [1, 2, 70] {
            let observations: Vec<f32> = (0..batch * row).map(|_| weights.number()).collect();
            let mut logits = vec![f32::NAN; batch * self.actions];
            let mut values = vec![f32::NAN; batch * self.num_values];
            net.evaluate(scratch, &observations, batch, &mut logits, &mut values);
            for index in [0, batch - 1] {
                let own = &observations[index * row..][..row];
                let mut alone = (vec![0.0; self.actions], vec![0.0; self.num_values]);
                net.evaluate(scratch, own, 1, &mut alone.0, &mut alone.1);
                assert_eq!(alone.0, logits[index * self.actions..][..self.actions], "{}: bits", self.spec);
                assert_eq!(alone.1, values[index * self.num_values..][..self.num_values], "{}: bits", self.spec);
                let (plain, plain_values) = self.answer(&mut weights, own);
                for (found, plain) in alone.0.iter().zip(&plain).chain(alone.1.iter().zip(&plain_values)) {
                    let error = (found - plain).abs() / plain.abs().max(1.0);
                    assert!(error < 1e-5, "{} in a batch of {batch}: {found} and {plain}", self.spec);
                }
            }
        }
    }
}

/// A network of each kind.
fn cases() -> Vec<Case> {
    let places = |count, of: fn(usize) -> Option<usize>| Some((0..count).map(of).collect());
    vec![
        Case::new("2x32", [3, 6, 7], 7),
        Case::new("3x20+pool", [4, 5, 4], 23),
        Case::new("2x48+pool+wdl", [2, 3, 3], 9),
        Case::new("2x96+pool", [1, 2, 3], 6), // 32 of the channels are pooled, and 16 of fewer than 96
        Case { num_values: 3, ..Case::new("1x8", [2, 1, 5], 4) },
        Case { smoothing: 0.1, ..Case::new("0x16+wdl", [2, 3, 3], 9) },
        Case { cells: Some(vec![5, 0, 11]), ..Case::new("1x24", [3, 3, 4], 21) },
        Case {
            places: places(13, |place| (place != 4).then_some((place * 5) % 18)),
            divisors: Some(vec![1, 9, 3]),
            ..Case::new("2x16+pool+conv", [3, 3, 3], 13)
        },
        Case { places: places(9, Some), smoothing: 0.05, ..Case::new("1x16+conv+wdl", [2, 3, 3], 9) },
        Case::new("3x40", [10, 1, 1], 5),
        Case { num_values: 4, ..Case::new("0x8", [6, 1, 1], 70) },
    ]
}

#[test]
fn every_kind_of_network_says_what_plain_loops_say() {
    let scratch = &mut Scratch::default();
    cases().iter().for_each(|case| case.check(scratch));
}

#[test]
fn a_network_overflows_where_plain_loops_do() {
    let (mut compared, mut infinite) = (0, 0);
    for case in cases() {
        // Not each power of ten: at the edge of what a float holds, the order of the sums decides.
        for power in (1..38).step_by(2) {
            let mut weights = Weights { scale: 10_f32.powi(power), ..Weights::new(power as u64) };
            let observation: Vec<f32> = (0..case.obs_shape.iter().product()).map(|_| weights.number()).collect();
            let (plain, plain_values) = case.answer(&mut weights, &observation);
            let Ok(net) = Net::read(&case.shape(), &weights.bytes()) else { continue };
            let (mut logits, mut values) = (vec![0.0; case.actions], vec![0.0; case.num_values]);
            net.evaluate(&mut Scratch::default(), &observation, 1, &mut logits, &mut values);
            for (found, plain) in logits.iter().zip(&plain).chain(values.iter().zip(&plain_values)) {
                assert_eq!(found.is_finite(), plain.is_finite(), "{} at 1e{power}: {found} and {plain}", case.spec);
                infinite += usize::from(!plain.is_finite());
                compared += 1;
            }
        }
    }
    assert!(infinite > compared / 3 && infinite < compared, "{infinite} of {compared} overflow");
}

#[test]
fn what_is_no_network_of_azpy_is_refused_with_the_reason() {
    let (case, mut weights) = (Case::new("1x16", [2, 3, 3], 9), Weights::new(1));
    case.answer(&mut weights, &[0.0; 18]);
    let (shape, bytes) = (case.shape(), weights.bytes());
    let refused = |shape: &str, bytes: &[u8]| Net::read(shape, bytes).unwrap_err().to_string();
    assert!(Net::read(&shape, &bytes).is_ok());
    for (from, to, said) in [
        ("1x16", "1x32", "trunk.0.0.weight is F32 [16, 2, 3, 3], expected float32 [32, 2, 3, 3]"),
        ("1x16", "2x16", "trunk.3.first.0.weight is missing"),
        ("1x16", "my_nets:make", "is a torch module"),
        ("1x16", "1x0", "BLOCKSxCHANNELS"),
        ("1x16", "1x16+wdl+pool", "BLOCKSxCHANNELS"),
        ("1x16", "1x16+pool", "at least two blocks to use +pool"),
        ("1x16", "1x16+conv", "policy_planes"),
        ("[2,3,3]", "[2,0,3]", "no network takes"),
        ("\"value_smoothing\":0.0", "\"value_smoothing\":0.8", "below 0.75"),
        ("\"num_values\":1", "\"num_values\":7", "7 numbers"),
        ("\"action_cells\":null", "\"action_cells\":[9]", "the cell 9"),
        ("\"action_cells\":null", "\"action_cells\":[1,2]", "equal groups"),
        ("{", "", "shape cannot be read"),
    ] {
        let other = shape.replacen(from, to, 1);
        assert_ne!(other, shape, "{from}");
        assert!(refused(&other, &bytes).contains(said), "{}", refused(&other, &bytes));
    }
    for end in [0, 7, 40, bytes.len() - 1] {
        assert!(refused(&shape, &bytes[..end]).contains("safetensors"));
    }
    for (name, number, said) in [
        ("value.5.bias", f32::NAN, "value.5.bias holds NaN"),
        ("trunk.0.1.running_var", -1.0, "trunk.0.1.running_var is below 0"),
        ("trunk.0.1.weight", f32::MAX, "trunk.0 and its batch norm make NaN or infinity"),
    ] {
        let mut damaged = Weights::new(1);
        case.answer(&mut damaged, &[0.0; 18]);
        damaged.made.get_mut(name).unwrap().1.fill(number);
        damaged.made.get_mut("trunk.0.0.bias").unwrap().1.fill(2.0);
        assert!(refused(&shape, &damaged.bytes()).contains(said), "{}", refused(&shape, &damaged.bytes()));
    }
}

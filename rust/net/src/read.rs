//! Reading: the shape of a network from JSON, its weights from safetensors.

use azpy_core::game::MAX_PLAYERS;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::error::Error;

/// The most floats of an observation, and the most actions: far more than any game has.
const MOST: usize = 1 << 24;
/// Of batch norm, torch's default.
const EPSILON: f64 = 1e-5;

/// What a network is, besides its weights. `azpy/evaluators/net.py` writes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Shape {
    /// Such as `4x48+pool`, see `Network` in `azpy/learning/network.py`.
    pub(crate) network: String,
    /// `[C, H, W]`.
    pub(crate) obs_shape: [usize; 3],
    pub(crate) num_actions: usize,
    /// Numbers of a position's value: 1, or one a player.
    #[serde(default = "one")]
    pub(crate) num_values: usize,
    /// As `State.action_cells`.
    #[serde(default)]
    pub(crate) action_cells: Option<Vec<usize>>,
    /// As `State.policy_planes`, for `+conv`.
    #[serde(default)]
    pub(crate) policy_planes: Option<Vec<Option<usize>>>,
    /// As `State.plane_divisors`, for `+conv`.
    #[serde(default)]
    pub(crate) plane_divisors: Option<Vec<usize>>,
    /// Of the targets that it learned from, for `+wdl`.
    #[serde(default)]
    pub(crate) value_smoothing: f64,
}

fn one() -> usize {
    1
}

/// A spec in parts: `BLOCKSxCHANNELS` or `LAYERSxWIDTH`, then `+pool`, `+conv` and `+wdl`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) depth: usize,
    pub(crate) width: usize,
    pub(crate) pools: bool,
    /// No weight depends on the board's size.
    pub(crate) has_any_size: bool,
    /// The value is one of win, draw and loss.
    pub(crate) three_classes: bool,
}

impl Shape {
    /// Reads the JSON, and checks that its numbers can be of one network.
    pub(crate) fn parse(text: &str) -> Result<(Self, Spec), Error> {
        let shape: Self = serde_json::from_str(text).map_err(|error| Error::Json(error.to_string()))?;
        let spec = Spec::parse(&shape.network)?;
        let (area, actions, name) = (shape.area(), shape.num_actions, &shape.network);
        let refused = |why| Err(Error::Shape(why));
        let floats = shape.obs_shape.iter().try_fold(1_usize, |all, &size| all.checked_mul(size));
        if !floats.is_some_and(|floats| (1..=MOST).contains(&floats)) || !(1..=MOST).contains(&actions) {
            return refused(format!("no network takes observations {:?} and gives {actions} logits", shape.obs_shape));
        }
        if (spec.three_classes && shape.num_values != 1) || !(1..=MAX_PLAYERS).contains(&shape.num_values) {
            let values = shape.num_values;
            return refused(format!("network {name:?} cannot give {values} numbers as the value of a position"));
        }
        if !(0.0..0.75).contains(&shape.value_smoothing) {
            return refused(format!("value_smoothing must be from 0 to below 0.75, got {}", shape.value_smoothing));
        }
        if (spec.has_any_size || spec.pools) && area == 1 {
            return refused(format!("network {name:?} needs a board, and the game has flat features"));
        }
        if spec.pools && spec.depth < 2 {
            return refused(format!("network {name:?} needs at least two blocks to use +pool"));
        }
        let cells = shape.action_cells.as_deref().unwrap_or_default();
        if shape.action_cells.is_some() && (cells.is_empty() || !actions.is_multiple_of(cells.len())) {
            return refused(format!("action_cells must be equal groups of the {actions} actions, got {}", cells.len()));
        }
        if let Some(cell) = cells.iter().find(|&&cell| cell >= area) {
            return refused(format!("action_cells has the cell {cell}, expected 0 to {}", area - 1));
        }
        if spec.has_any_size {
            let places = shape.policy_planes.as_deref().unwrap_or_default();
            let most = places.iter().flatten().max();
            if places.len() != actions || most.is_none_or(|&most| most >= MOST) {
                return refused(format!(
                    "network {name:?} needs policy_planes, a place for each of the {actions} actions, got {}",
                    places.len()
                ));
            }
        }
        Ok((shape, spec))
    }

    /// Cells of the board.
    pub(crate) fn area(&self) -> usize {
        self.obs_shape[1].saturating_mul(self.obs_shape[2])
    }
}

impl Spec {
    fn parse(text: &str) -> Result<Self, Error> {
        if text.contains(':') {
            return Err(Error::Module(text.to_owned()));
        }
        let (size, mut rest) = text.split_at(text.find('+').unwrap_or(text.len()));
        let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let sizes = size.split_once('x').and_then(|(depth, width)| Some((number(depth)?, number(width)?)));
        let [pools, has_any_size, three_classes] = ["+pool", "+conv", "+wdl"].map(|word| {
            let found = rest.strip_prefix(word);
            rest = found.unwrap_or(rest);
            found.is_some()
        });
        match sizes {
            Some((depth, width @ 1..10_000)) if depth < 1000 && rest.is_empty() => {
                Ok(Self { depth, width, pools, has_any_size, three_classes })
            }
            _ => Err(Error::Shape(format!(
                "network {text:?} is not of the form BLOCKSxCHANNELS, such as 5x64 or 5x64+pool+conv+wdl"
            ))),
        }
    }
}

fn damaged(name: &str, problem: &'static str) -> Error {
    Error::Damaged { name: name.to_owned(), problem }
}

/// Weights by name, as torch's `state_dict` names them.
pub(crate) struct Weights<'a>(SafeTensors<'a>);

impl<'a> Weights<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        SafeTensors::deserialize(bytes).map(Self).map_err(|error| Error::Safetensors(error.to_string()))
    }

    /// The numbers of one tensor, which must have this shape.
    pub(crate) fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        let wrong = |found| Error::OtherNetwork { name: name.to_owned(), found, expected: shape.to_vec() };
        let tensor = self.0.tensor(name).map_err(|_| wrong("missing".to_owned()))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            return Err(wrong(format!("{:?} {:?}", tensor.dtype(), tensor.shape())));
        }
        let (numbers, _) = tensor.data().as_chunks();
        let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(numbers);
        }
        Err(damaged(name, "holds NaN or infinity"))
    }

    /// A matrix [outputs, inputs] and its bias.
    pub(crate) fn matrix(&self, name: &str, [outputs, inputs]: [usize; 2]) -> Result<Matrix, Error> {
        let weights = self.get(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Matrix { weights, bias: self.get(&format!("{name}.bias"), &[outputs])?, inputs, size: 1 })
    }

    /// A convolution of `size` by `size` cells without batch norm.
    pub(crate) fn bare(&self, name: &str, [outputs, inputs]: [usize; 2], size: usize) -> Result<Matrix, Error> {
        let weights = self.get(&format!("{name}.weight"), &[outputs, inputs, size, size])?;
        Ok(Matrix { weights, bias: self.get(&format!("{name}.bias"), &[outputs])?, inputs, size })
    }

    /// A convolution with the batch norm behind it folded into it.
    pub(crate) fn conv(&self, name: &str, sizes: [usize; 2], size: usize) -> Result<Matrix, Error> {
        let mut matrix = self.bare(&format!("{name}.0"), sizes, size)?;
        let norm = self.norm(&format!("{name}.1"), sizes[0])?;
        let each = sizes[1] * size * size;
        for ((weights, bias), (scale, shift)) in matrix.weights.chunks_mut(each).zip(&mut matrix.bias).zip(norm) {
            weights.iter_mut().for_each(|weight| *weight = (f64::from(*weight) * scale) as f32);
            *bias = (f64::from(*bias) * scale + shift) as f32;
        }
        if matrix.weights.iter().chain(&matrix.bias).all(|number| number.is_finite()) {
            return Ok(matrix);
        }
        Err(damaged(name, "and its batch norm make NaN or infinity"))
    }

    /// What batch norm multiplies each channel by, and adds then.
    pub(crate) fn norm(&self, name: &str, channels: usize) -> Result<Vec<(f64, f64)>, Error> {
        let [weight, bias, mean, variance] = ["weight", "bias", "running_mean", "running_var"]
            .map(|part| self.get(&format!("{name}.{part}"), &[channels]));
        let (weight, bias, mean, variance) = (weight?, bias?, mean?, variance?);
        if variance.iter().any(|&variance| variance < 0.0) {
            return Err(damaged(&format!("{name}.running_var"), "is below 0"));
        }
        let norms = (0..channels).map(|channel| {
            let scale = f64::from(weight[channel]) / (f64::from(variance[channel]) + EPSILON).sqrt();
            (scale, f64::from(bias[channel]) - f64::from(mean[channel]) * scale)
        });
        Ok(norms.collect())
    }
}

/// Weights [outputs, inputs, size, size] as torch has them, and the bias [outputs].
pub(crate) struct Matrix {
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) inputs: usize,
    pub(crate) size: usize,
}

impl Matrix {
    /// The weight of an output, a tap (row by row) and an input.
    pub(crate) fn weight(&self, output: usize, tap: usize, input: usize) -> f32 {
        self.weights[(output * self.inputs + input) * self.size * self.size + tap]
    }

    /// Outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }
}

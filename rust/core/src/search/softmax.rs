//! Priors from the logits of a network.

/// Priors from raw logits; all of them finite.
pub(crate) fn softmax(logits: &[f32], priors: &mut Vec<f32>) {
    priors.clear();
    priors.extend_from_slice(logits);
    softmax_in_place(priors);
}

/// As [`softmax`]: logits become priors.
pub(crate) fn softmax_in_place(logits: &mut [f32]) {
    // Not `f32::max`, which takes care of NaN: there is none.
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    // Eight at once.
    let (eights, rest) = logits.as_chunks::<8>();
    let highest = eights.iter().fold([f32::NEG_INFINITY; 8], |highest, eight| {
        std::array::from_fn(|place| larger(highest[place], eight[place]))
    });
    let highest = highest.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger);
    if logits.iter().all(|&logit| logit == highest) {
        // What the lines below would give, without the exponentials: uniform and rollout evaluators end here.
        return logits.fill(1.0 / logits.len() as f32);
    }
    let mut sum = 0.0;
    for logit in logits.iter_mut() {
        *logit = (*logit - highest).exp();
        sum += *logit;
    }
    // The largest weight is exactly 1, so the sum is never 0.
    let scale = 1.0 / sum;
    logits.iter_mut().for_each(|prior| *prior *= scale);
}

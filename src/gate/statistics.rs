//! Pure functions on slices of numbers. Every one takes its input in any order and says what it does with too little of it.
//!
//! All work on log ratios, so that swapping the arms only changes signs. Sources: Hodges and Lehmann (1963) for the
//! estimator, Wilcoxon's signed-rank distribution for its exact interval, Student for the interval over launches.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// An interval on the log scale, lower end first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// The smallest interval that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Whether a value lies in it, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample standard deviation (n - 1); `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The quantile at `p` in 0..=1, linear between the two neighbours (type 7); `None` of nothing.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), p)
}

fn quantile_of_sorted(values: &[f64], p: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = p.clamp(0.0, 1.0) * last as f64;
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and the last index")]
    let below = position.floor() as usize;
    let (low, high) = (values[below], values[(below + 1).min(last)]);
    let share = position - position.floor();
    // Not `low + share * (high - low)` for equal neighbours: the result must be the value itself, bit for bit.
    Some(if share == 0.0 || low == high { low } else { low + share * (high - low) })
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Minimum, quartiles and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiveNumbers {
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub p75: f64,
    /// Largest value.
    pub max: f64,
}

/// The five numbers of a sample; `None` of nothing.
pub fn five_numbers(values: &[f64]) -> Option<FiveNumbers> {
    let values = sorted(values);
    Some(FiveNumbers {
        min: *values.first()?,
        p25: quantile_of_sorted(&values, 0.25)?,
        median: quantile_of_sorted(&values, 0.5)?,
        p75: quantile_of_sorted(&values, 0.75)?,
        max: *values.last()?,
    })
}

/// The averages of all pairs, each value with itself included, in ascending order: n (n + 1) / 2 of them.
pub fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (first, a) in values.iter().enumerate() {
        averages.extend(values[first..].iter().map(|b| 0.5 * (a + b)));
    }
    averages.sort_by(f64::total_cmp);
    averages
}

/// The Hodges-Lehmann median: the median of all Walsh averages; `None` of nothing.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    quantile_of_sorted(&walsh_averages(values), 0.5)
}

/// Which Walsh average, counted from 1, is the lower end of the exact two-sided signed-rank interval of `n` values at
/// error rate `alpha`; the upper end is the same one counted from above. `None` when `n` values cannot reach `alpha`.
pub fn signed_rank_k(n: usize, alpha: f64) -> Option<usize> {
    // The distribution of the rank sum W under symmetry: each rank i is in the sum or not, with probability 1/2.
    let top = n * (n + 1) / 2;
    let mut probability = vec![0.0; top + 1];
    probability[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..=top).rev() {
            probability[sum] = 0.5 * probability[sum] + 0.5 * probability[sum - rank];
        }
        for unreached in &mut probability[..rank.min(top + 1)] {
            *unreached *= 0.5;
        }
    }
    let mut cumulative = 0.0;
    let within = probability.iter().take_while(|p| {
        cumulative += **p;
        cumulative <= alpha / 2.0
    });
    Some(within.count()).filter(|k| *k > 0)
}

/// The exact signed-rank interval of the centre of symmetry; `None` when there are too few values for `alpha`.
pub fn signed_rank_interval(values: &[f64], alpha: f64) -> Option<Interval> {
    let k = signed_rank_k(values.len(), alpha)?;
    let averages = walsh_averages(values);
    Some(Interval { lo: averages[k - 1], hi: averages[averages.len() - k] })
}

/// Student's quantile for a two-sided interval: the t with `freedom` degrees that leaves `alpha / 2` above it.
pub fn student_t(freedom: usize, alpha: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    let estimate = distribution.inverse_cdf(1.0 - alpha / 2.0);
    // The library's search stops early; two Newton steps bring the last digits.
    let polished = (0..2).fold(estimate, |t, _| {
        let density = statrs::distribution::Continuous::pdf(&distribution, t);
        t - (distribution.cdf(t) - (1.0 - alpha / 2.0)) / density
    });
    Some(polished).filter(|t| t.is_finite())
}

/// Student's interval of the mean. `None` below two values, and when all values are equal: an interval without width
/// is a sign of broken input, not of certainty.
pub fn student_interval(values: &[f64], alpha: f64) -> Option<Interval> {
    let (mean, deviation) = (mean(values)?, standard_deviation(values)?);
    // Equal values have a deviation of a few units in the last place, from rounding in the mean.
    if deviation.is_nan() || deviation <= 1e-12 * mean.abs().max(1.0) {
        return None;
    }
    let half = student_t(values.len() - 1, alpha)? * deviation / (values.len() as f64).sqrt();
    Some(Interval { lo: mean - half, hi: mean + half })
}

/// Ranks from 1; equal values share the mean of their ranks.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|index| values[**index] == values[order[first]]).count().max(1);
        for index in &order[first..first + equal] {
            ranks[*index] = first as f64 + (equal as f64 + 1.0) / 2.0;
        }
        first += equal;
    }
    ranks
}

/// Spearman's rank correlation and its two-sided p-value (Student's approximation). `None` below four pairs, and when
/// either side is constant.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let n = x.len();
    if n != y.len() || n < 4 {
        return None;
    }
    let (x, y) = (ranks(x), ranks(y));
    let (mean_x, mean_y) = (mean(&x)?, mean(&y)?);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(&y) {
        xy += (a - mean_x) * (b - mean_y);
        xx += (a - mean_x).powi(2);
        yy += (b - mean_y).powi(2);
    }
    if xx == 0.0 || yy == 0.0 {
        return None;
    }
    let rho = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
    let rest = 1.0 - rho * rho;
    if rest <= 0.0 {
        return Some((rho, 0.0));
    }
    let freedom = (n - 2) as f64;
    let t = rho.abs() * (freedom / rest).sqrt();
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some((rho, 2.0 * (1.0 - distribution.cdf(t))))
}

/// The least-squares slope of y over x. `None` below two pairs or when x is constant.
pub fn slope(x: &[f64], y: &[f64]) -> Option<f64> {
    if x.len() != y.len() || x.len() < 2 {
        return None;
    }
    let (mean_x, mean_y) = (mean(x)?, mean(y)?);
    let xy: f64 = x.iter().zip(y).map(|(a, b)| (a - mean_x) * (b - mean_y)).sum();
    let xx: f64 = x.iter().map(|a| (a - mean_x).powi(2)).sum();
    (xx > 0.0).then(|| xy / xx)
}

/// The non-decreasing sequence nearest to `values` in weighted least squares, by pooling adjacent violators. Empty when the
/// lengths differ or a weight is not positive.
pub fn isotonic(values: &[f64], weights: &[f64]) -> Vec<f64> {
    if values.len() != weights.len() || weights.iter().any(|weight| weight.is_nan() || *weight <= 0.0) {
        return Vec::new();
    }
    // Each pool: its mean, its weight, how many values it holds.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in values.iter().zip(weights) {
        let mut pool = (*value, *weight, 1);
        while let Some(before) = pools.pop_if(|before| before.0 > pool.0) {
            let weight = before.1 + pool.1;
            pool = ((before.0 * before.1 + pool.0 * pool.1) / weight, weight, before.2 + pool.2);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, _, count)| std::iter::repeat_n(mean, count)).collect()
}

/// How many peaks a histogram has, as Brendan Gregg's m-value: the sum of all rises and falls over the highest bar.
/// 2 for one peak, 4 for two clear ones. `None` when there are too few values, or no spread, to say.
pub fn m_value(values: &[f64]) -> Option<f64> {
    let five = five_numbers(values)?;
    let n = values.len();
    let width = 2.0 * (five.p75 - five.p25) / (n as f64).cbrt();
    if n < 16 || width.is_nan() || width <= 0.0 {
        return None;
    }
    // Far outliers would only add empty bars; they are reported on their own.
    let bars = ((five.max - five.min) / width).ceil().clamp(1.0, 1000.0);
    #[expect(clippy::cast_possible_truncation, reason = "between 1 and 1000")]
    let mut heights = vec![0.0_f64; bars as usize];
    for value in values {
        #[expect(clippy::cast_possible_truncation, reason = "clamped to the last bar")]
        let bar = (((value - five.min) / width) as usize).min(heights.len() - 1);
        heights[bar] += 1.0;
    }
    let highest = heights.iter().copied().fold(0.0, f64::max);
    let inner: f64 = heights.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    Some((heights[0] + inner + heights[heights.len() - 1]) / highest)
}

/// How many values lie beyond the quartiles by more than three times their distance.
pub fn far_outliers(values: &[f64]) -> usize {
    let Some(five) = five_numbers(values) else { return 0 };
    let reach = 3.0 * (five.p75 - five.p25);
    values.iter().filter(|value| **value > five.p75 + reach || **value < five.p25 - reach).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "expected {expected}, found {found}");
    }

    #[test]
    fn signed_rank_orders_are_those_of_the_published_tables() {
        assert_eq!(signed_rank_k(6, 0.05), Some(1));
        assert_eq!(signed_rank_k(20, 0.001), Some(22));
        assert_eq!(signed_rank_k(48, 0.01), Some(340));
        assert_eq!(walsh_averages(&vec![0.0; 48]).len(), 1176);
    }

    #[test]
    fn five_values_cannot_give_a_95_percent_signed_rank_interval() {
        // The most extreme outcome of five signs has probability 1/32 on each side.
        assert_eq!(signed_rank_k(5, 0.05), None);
        assert_eq!(signed_rank_k(5, 1.0 / 16.0), Some(1));
        assert_eq!(signed_rank_k(0, 0.05), None);
        assert_eq!(signed_rank_interval(&[1.0, 2.0], 0.01), None);
    }

    #[test]
    fn signed_rank_probabilities_match_counting_all_sign_patterns() {
        for n in 1..=10_usize {
            for alpha in [0.01, 0.05, 0.2, 0.5] {
                let mut at_most = vec![0_u32; n * (n + 1) / 2 + 1];
                for pattern in 0..1_u32 << n {
                    let sum: usize = (0..n).filter(|bit| pattern >> bit & 1 == 1).map(|bit| bit + 1).sum();
                    at_most[sum..].iter_mut().for_each(|count| *count += 1);
                }
                let limit = alpha / 2.0 * f64::from(1_u32 << n);
                let k = at_most.iter().filter(|count| f64::from(**count) <= limit).count();
                assert_eq!(signed_rank_k(n, alpha), Some(k).filter(|k| *k > 0), "n = {n}, alpha = {alpha}");
            }
        }
    }

    #[test]
    fn student_quantiles_are_those_of_the_published_tables() {
        for (freedom, alpha, expected) in [
            (1, 0.01, 63.657),
            (2, 0.01, 9.925),
            (4, 0.01, 4.604),
            (7, 0.01, 3.499),
            (9, 0.01, 3.250),
            (7, 0.01 / 3.0, 4.355),
            (11, 0.01 / 3.0, 3.728),
            (15, 0.01 / 3.0, 3.484),
        ] {
            close(student_t(freedom, alpha).unwrap(), expected, 6e-4);
        }
        assert_eq!(student_t(0, 0.01), None);
    }

    #[test]
    fn quantiles_do_not_depend_on_the_order_of_the_input() {
        let five = five_numbers(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!(five, FiveNumbers { min: 1.0, p25: 2.0, median: 3.0, p75: 4.0, max: 5.0 });
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[10.0, 0.0], 0.25), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(five_numbers(&[2.0; 9]).unwrap().p75, 2.0);
    }

    #[test]
    fn hodges_lehmann_is_the_median_of_pairwise_averages() {
        // Walsh averages of 1, 2, 9: 1, 1.5, 2, 5, 5.5, 9.
        assert_eq!(hodges_lehmann(&[9.0, 1.0, 2.0]), Some(3.5));
        assert_eq!(walsh_averages(&[9.0, 1.0, 2.0]), [1.0, 1.5, 2.0, 5.0, 5.5, 9.0]);
        assert_eq!(hodges_lehmann(&[-9.0, -1.0, -2.0]), Some(-3.5));
        assert_eq!(hodges_lehmann(&[4.0]), Some(4.0));
        assert_eq!(hodges_lehmann(&[]), None);
    }

    #[test]
    fn one_spike_moves_the_hodges_lehmann_median_by_little() {
        let mut values = vec![1.0; 20];
        values[3] = 1000.0;
        assert_eq!(hodges_lehmann(&values), Some(1.0));
    }

    #[test]
    fn the_signed_rank_interval_takes_order_statistics_from_both_ends() {
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        // k = 1: the extreme averages, 1 and 6.
        assert_eq!(signed_rank_interval(&values, 0.05), Some(Interval { lo: 1.0, hi: 6.0 }));
        let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
        assert_eq!(signed_rank_interval(&mirrored, 0.05), Some(Interval { lo: -6.0, hi: -1.0 }));
    }

    #[test]
    fn the_hull_contains_both_intervals() {
        let hull = Interval { lo: 1.0, hi: 2.0 }.hull(Interval { lo: 1.5, hi: 3.0 });
        assert_eq!(hull, Interval { lo: 1.0, hi: 3.0 });
        assert!(hull.contains(3.0) && !hull.contains(3.1));
    }

    #[test]
    fn equal_launches_give_no_student_interval() {
        assert_eq!(student_interval(&[1.6; 8], 0.01), None);
        assert_eq!(student_interval(&[1.6], 0.01), None);
        let interval = student_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 0.01).unwrap();
        // sd = sqrt(6), half = 3.499483 * sqrt(6) / sqrt(8).
        close(interval.hi - 4.5, 3.030_64, 1e-4);
        close(4.5 - interval.lo, 3.030_64, 1e-4);
    }

    #[test]
    fn not_a_number_gives_no_student_interval() {
        assert_eq!(student_interval(&[1.0, f64::NAN, 2.0], 0.01), None);
        assert_eq!(m_value(&[f64::NAN; 20]), None);
    }

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(ranks(&[30.0, 10.0, 20.0, 10.0]), [4.0, 1.5, 3.0, 1.5]);
        assert_eq!(ranks(&[1.0, 1.0, 1.0]), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn spearman_sees_order_and_nothing_else() {
        let x: Vec<f64> = (0..10).map(f64::from).collect();
        let cubes: Vec<f64> = x.iter().map(|x| x.powi(3)).collect();
        assert_eq!(spearman(&x, &cubes), Some((1.0, 0.0)));
        // Ranks of the second side are 2 1 4 3 5: the squared differences sum to 4, rho = 1 - 6 * 4 / 120.
        let (rho, p) = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 1.0, 4.0, 3.0, 5.0]).unwrap();
        close(rho, 0.8, 1e-12);
        close(p, 0.104_088, 1e-5);
        assert_eq!(spearman(&x, &[1.0; 10]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn the_slope_is_that_of_the_least_squares_line() {
        close(slope(&[0.0, 1.0, 2.0, 3.0], &[1.0, 3.0, 2.0, 4.0]).unwrap(), 0.8, 1e-12);
        assert_eq!(slope(&[1.0, 1.0], &[0.0, 5.0]), None);
    }

    #[test]
    fn adjacent_violators_are_pooled() {
        assert_eq!(isotonic(&[1.0, 2.0, 3.0], &[1.0; 3]), [1.0, 2.0, 3.0]);
        assert_eq!(isotonic(&[3.0, 1.0, 2.0], &[1.0; 3]), [2.0, 2.0, 2.0]);
        assert_eq!(isotonic(&[1.0, 5.0, 3.0, 4.0, 9.0, 7.0], &[1.0; 6]), [1.0, 4.0, 4.0, 4.0, 8.0, 8.0]);
        // A heavy value holds its place: (3 * 3 + 1 * 1) / 4.
        assert_eq!(isotonic(&[3.0, 1.0], &[3.0, 1.0]), [2.5, 2.5]);
        assert!(isotonic(&[], &[]).is_empty());
        assert!(isotonic(&[1.0, 2.0], &[1.0, 0.0]).is_empty());
    }

    #[test]
    fn two_clusters_have_a_larger_m_value_than_one() {
        let one: Vec<f64> = (0..96).map(|i| (f64::from(i) - 47.5).powi(3)).collect();
        let two: Vec<f64> = (0..96).map(|i| f64::from(i % 8) * 0.2 + if i < 48 { 0.0 } else { 10.0 }).collect();
        assert!(m_value(&one).unwrap() < 3.2, "{:?}", m_value(&one));
        assert!(m_value(&two).unwrap() > 3.2, "{:?}", m_value(&two));
        assert_eq!(m_value(&[3.0; 96]), None);
    }

    #[test]
    fn far_outliers_are_counted_on_both_sides() {
        let mut values: Vec<f64> = (0..20).map(f64::from).collect();
        assert_eq!(far_outliers(&values), 0);
        values.extend([500.0, -500.0]);
        assert_eq!(far_outliers(&values), 2);
        assert_eq!(far_outliers(&[]), 0);
    }
}

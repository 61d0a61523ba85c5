//! An axis, logarithmic or linear from zero, and its ticks.

/// Maps a range of values to a length.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// 0 on a linear axis.
    low: f64,
    high: f64,
    start: f64,
    length: f64,
}

/// Maximum number of ticks on a linear axis.
const MAX_TICKS: u32 = 100;
/// Positions of ticks within a decade, from few to many.
const STEPS: [&[f64]; 4] = [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]];

impl Axis {
    /// A linear axis from zero to the largest value.
    pub fn linear(values: impl IntoIterator<Item = f64>, start: f64, length: f64) -> Self {
        let high = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, start, length }
    }

    /// A logarithmic axis with some margin around all positive values. `None` if there are none.
    pub fn over(values: impl IntoIterator<Item = f64>, start: f64, length: f64) -> Option<Self> {
        let good = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = good.map(|v| (v, v)).reduce(|(low, high), (v, _)| (low.min(v), high.max(v)))?;
        // The axis spans at least half a decade, because a narrower one would make small differences look large.
        let missing = (3.2 / (high / low)).max(1.0).sqrt();
        Some(Self { low: low / 1.2 / missing, high: high * 1.2 * missing, start, length })
    }

    /// The position of a value, clamped to the axis.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part =
            if self.is_linear() { value / self.high } else { (value / self.low).ln() / (self.high / self.low).ln() };
        self.start + self.length * part
    }

    fn is_linear(&self) -> bool {
        self.low <= 0.0
    }

    /// The ticks to label, at least `apart` from each other.
    pub fn ticks(&self, apart: f64) -> Vec<f64> {
        let fits = |ticks: &Vec<f64>| {
            let places: Vec<f64> = ticks.iter().map(|tick| self.at(*tick)).collect();
            places.iter().zip(places.iter().skip(1)).all(|(a, b)| (b - a).abs() >= apart)
        };
        if self.is_linear() {
            return self.multiples(apart);
        }
        let all = STEPS.iter().rev().map(|steps| self.tick_at(steps, 1));
        let sparse = (2..6).map(|every| self.tick_at(&[1.0], every));
        let mut fitting = all.chain(sparse).filter(fits);
        fitting.next().unwrap_or_default()
    }

    /// The multiples of a step: the smallest round number that keeps ticks at least `apart` from each other. Zero is
    /// always included.
    fn multiples(&self, apart: f64) -> Vec<f64> {
        let least = apart / self.length.abs() * self.high;
        let decade = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|part| part * decade).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(self.high);
        // Rounding errors must not remove the last tick.
        let multiples = (0..MAX_TICKS).map(|nth| f64::from(nth) * step);
        multiples.take_while(|tick| *tick <= self.high * (1.0 + 1e-9)).collect()
    }

    fn tick_at(&self, steps: &[f64], every: i32) -> Vec<f64> {
        (-12..=15)
            .filter(|decade| decade % every == 0)
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

/// A number with thousands separators. It is rounded to an integer, or to three significant digits if it is below 100,
/// but to at most four decimals.
#[must_use]
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        v if v >= 0.00005 => 4,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let (whole, part) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth) % 3 == 0 && digit.is_ascii_digit() {
            out.push(',');
        }
        out.push(digit);
    }
    out + part
}

/// The label of a tick: no trailing zeros.
#[must_use]
pub fn tick_number(value: f64) -> String {
    let text = number(value);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_in_order_within_the_axis() {
        let axis = Axis::over([0.5, 800.0, f64::NAN, 0.0], 100.0, 400.0).unwrap();
        assert!(axis.at(0.5) > 100.0 && axis.at(800.0) < 500.0);
        assert!((axis.at(0.01) - 100.0).abs() < 1e-9 && (axis.at(1e9) - 500.0).abs() < 1e-9);
        assert!(axis.at(2.0) < axis.at(3.0));
        assert!(Axis::over([0.0], 0.0, 1.0).is_none());
    }

    #[test]
    fn ticks_are_round_and_apart() {
        let over = |low, high| Axis::over([low, high], 0.0, 400.0).unwrap();
        assert_eq!(over(0.5, 800.0).ticks(40.0), [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]);
        assert_eq!(over(3.0, 3.1).ticks(40.0), [1.5, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(over(1e-6, 1e9).ticks(60.0), [1e-6, 1e-3, 1e0, 1e3, 1e6, 1e9]);
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_ends_at_the_largest_value() {
        let axis = Axis::linear([250.0, f64::NAN, 1000.0], 100.0, 400.0);
        let places = [0.0, 250.0, 1000.0, 5000.0].map(|value| axis.at(value));
        assert_eq!(places.map(number), ["100", "200", "500", "500"]);
        assert_eq!(axis.ticks(60.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(Axis::linear([1e-6], 0.0, 400.0).ticks(200.0).len(), 3);
        assert_eq!(Axis::linear([], 0.0, 400.0).ticks(400.0), [0.0, 1.0]);
        assert_eq!(Axis::linear([1.0], 0.0, 10.0).ticks(50.0), [0.0]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.00004, 0.01234, 0.1234, 1.234, 12.34, 123.4, 1234.0, 1_234_567.0].map(number);
        assert_eq!(shown, ["0", "0", "0.0123", "0.123", "1.23", "12.3", "123", "1,234", "1,234,567"]);
        assert_eq!([0.5, 1.0, 1500.0, 0.01].map(tick_number), ["0.5", "1", "1,500", "0.01"]);
    }
}

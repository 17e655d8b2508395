// SPDX-License-Identifier: MIT OR Apache-2.0
//! Eigenvalues of small symmetric matrices. It knows nothing of what the numbers mean.

/// Eigenvalues and eigenvectors of a symmetric matrix: `values[k]` belongs to the unit vector `vectors[k]`; largest
/// value first.
pub(super) struct Eigen {
    pub values: Vec<f64>,
    pub vectors: Vec<Vec<f64>>,
}

/// Sweeps of a Jacobi iteration; a dozen are plenty for matrices of this size.
const SWEEPS: usize = 60;

/// Eigenvalues and eigenvectors by Jacobi rotations.
pub(super) fn eigen(matrix: &[Vec<f64>]) -> Eigen {
    let n = matrix.len();
    let mut a = matrix.to_vec();
    let mut v: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..SWEEPS {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        let diagonal: f64 = (0..n).map(|i| a[i][i] * a[i][i]).sum();
        if off <= 1e-30 * diagonal || off == 0.0 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut v, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[j][j].total_cmp(&a[i][i]));
    Eigen {
        values: order.iter().map(|&k| a[k][k]).collect(),
        vectors: order.iter().map(|&k| v.iter().map(|row| row[k]).collect()).collect(),
    }
}

/// Makes `a[p][q]` zero.
fn rotate(a: &mut [Vec<f64>], v: &mut [Vec<f64>], p: usize, q: usize) {
    if a[p][q] == 0.0 {
        return;
    }
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let t = if theta == 0.0 { 1.0 } else { t };
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    let turn = |x: f64, y: f64| (c * x - s * y, s * x + c * y);
    for row in a.iter_mut() {
        (row[p], row[q]) = turn(row[p], row[q]);
    }
    let (above, below) = a.split_at_mut(q);
    for (x, y) in above[p].iter_mut().zip(below[0].iter_mut()) {
        (*x, *y) = turn(*x, *y);
    }
    for row in v.iter_mut() {
        (row[p], row[q]) = turn(row[p], row[q]);
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `JᵀJ` of a matrix given by rows, each of length `n`.
pub(super) fn gram(rows: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    (0..n).map(|i| (0..n).map(|j| rows.iter().map(|r| r[i] * r[j]).sum()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_diagonal_is_only_sorted() {
        let e = eigen(&[vec![1.0, 0.0, 0.0], vec![0.0, 3.0, 0.0], vec![0.0, 0.0, 2.0]]);
        assert_eq!(e.values, [3.0, 2.0, 1.0]);
        assert_eq!(e.vectors, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]);
    }

    proptest! {
        #[test]
        fn values_and_vectors_make_the_matrix_again(
            n in 1usize..=12,
            seed in prop::collection::vec(-1e3f64..1e3, 144),
        ) {
            let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| seed[i * 12 + j]).collect()).collect();
            let a = gram(&rows, n);
            let e = eigen(&a);
            let scale = e.values[0].max(1e-300);
            for (i, row) in a.iter().enumerate() {
                for (j, x) in row.iter().enumerate() {
                    let again: f64 = (0..n).map(|k| e.values[k] * e.vectors[k][i] * e.vectors[k][j]).sum();
                    prop_assert!((again - x).abs() <= 1e-10 * scale);
                    let one = f64::from(u8::from(i == j));
                    prop_assert!((dot(&e.vectors[i], &e.vectors[j]) - one).abs() <= 1e-10);
                }
            }
            prop_assert!(e.values.windows(2).all(|w| w[0] >= w[1]));
        }
    }
}

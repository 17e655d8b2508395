// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delta debugging: the fewest elements with which something still fails, as far as leaving out one more part of them
//! shows; and the first moment of a failure. It knows no state.

/// Leaves out elements as long as `fails` says that the others suffice; at the end each of them is needed.
///
/// # Errors
/// Those of `fails`.
pub(crate) fn reduce<T: Clone, E>(
    mut elements: Vec<T>,
    mut fails: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<Vec<T>, E> {
    if elements.is_empty() || fails(&[])? {
        return Ok(Vec::new());
    }
    let mut parts = 2;
    while elements.len() > 1 {
        let size = elements.len().div_ceil(parts);
        let mut smaller = None;
        for first in (0..elements.len()).step_by(size) {
            let end = (first + size).min(elements.len());
            // A part alone is much smaller; the others without it are a little.
            let (part, others) = (elements[first..end].to_vec(), [&elements[..first], &elements[end..]].concat());
            if fails(&part)? {
                smaller = Some((part, 2));
                break;
            }
            // Of two parts each is what the other leaves.
            if parts > 2 && fails(&others)? {
                smaller = Some((others, (parts - 1).max(2)));
                break;
            }
        }
        match smaller {
            Some((kept, next)) => (elements, parts) = (kept, next),
            None if size == 1 => break,
            None => parts = (parts * 2).min(elements.len()),
        }
    }
    Ok(elements)
}

/// Of numbers up to `last`, which fails, one that fails while the one before it does not; 0 if all that were looked at
/// fail.
///
/// # Errors
/// Those of `fails`.
pub(crate) fn first<E>(last: usize, mut fails: impl FnMut(usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut from, mut to) = (0, last);
    while from < to {
        let middle = from.midpoint(to);
        if fails(middle)? { to = middle } else { from = middle + 1 }
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_before_does_not_fail() {
        for last in 0..40 {
            for begins in 0..=last {
                assert_eq!(first(last, |n| Ok::<_, ()>(n >= begins)), Ok(begins));
            }
            // It fails here and there.
            let fails = |n: usize| n == last || n % 7 > 3;
            let found = first(last, |n| Ok::<_, ()>(fails(n))).unwrap();
            assert!(fails(found) && (found == 0 || !fails(found - 1)), "{last}: {found}");
        }
    }

    #[test]
    fn what_is_needed_is_left() {
        for needed in [vec![], vec![0], vec![99], vec![17, 19], vec![0, 50, 99], (0..100).step_by(7).collect()] {
            let all: Vec<u32> = (0..100).collect();
            let mut tries = 0;
            let left = reduce(all, |kept| {
                tries += 1;
                Ok::<_, ()>(needed.iter().all(|n| kept.contains(n)))
            });
            assert_eq!(left, Ok(needed));
            assert!(tries < 1000, "{tries}");
        }
    }
}

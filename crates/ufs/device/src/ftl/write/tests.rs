// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write buffer against a plain model: which blocks it holds, what a flush waits for, and which data is dead.

use super::*;
use readpath_kit::Prng;

const SLOTS: u32 = 8;
const UNIT: u32 = 4;

fn tag(tag: u8) -> TagRef {
    TagRef { tag, life: 1 }
}

fn block(lpn: u32, sequence: u32, older: Option<u16>) -> Accepted {
    Accepted { lpn: Lpn(lpn), sequence, older, hot: false, fua: None, zoned: false }
}

/// Random blocks are accepted, overwritten and programmed: each slot holds its newest data, and released data is dead
/// if newer data of the same block was released before or a trim killed it.
#[test]
fn what_leaves_the_buffer_is_dead_exactly_if_it_is_out_of_date() {
    let rng = &mut Prng::new(4);
    let mut buffer = WriteBuffer::new(SLOTS, 0);
    // By slot: block, number, whether it is being programmed. By block: its newest slot, and the number in flash.
    let mut held: Vec<Option<(u32, u32, bool)>> = vec![None; SLOTS as usize];
    let mut newest: [Option<u16>; 6] = [None; 6];
    let mut in_flash = [0; 6];
    let mut programs: Vec<Vec<u16>> = Vec::new();
    let (mut dead, mut overwritten) = (0, 0);
    for number in 1..20_000 {
        let lpn = rng.below(6) as u32;
        match rng.below(10) {
            0..6 => {
                let old = newest[lpn as usize];
                let may = old.is_some_and(|slot| !held[usize::from(slot)].expect("it holds the block").2);
                match old.filter(|&slot| buffer.may_overwrite(slot)) {
                    Some(slot) => {
                        assert!(may, "it is being programmed");
                        buffer.overwrite(slot, number);
                        held[usize::from(slot)] = Some((lpn, number, false));
                        overwritten += 1;
                    }
                    None => {
                        assert!(!may);
                        let Some(slot) = buffer.put(block(lpn, number, old)) else {
                            assert!(held.iter().all(Option::is_some) && buffer.is_full());
                            continue;
                        };
                        assert_eq!(held[usize::from(slot)].replace((lpn, number, false)), None);
                        newest[lpn as usize] = Some(slot);
                    }
                }
            }
            6 => {
                if let Some(slot) = newest[lpn as usize].take() {
                    buffer.kill(slot, 1);
                    in_flash[lpn as usize] = number;
                }
            }
            7 if buffer.filled(false) > 0 => {
                let (first, count) = buffer.take_for_program(false, UNIT, 0);
                let slots: Vec<u16> = buffer.chain(first).collect();
                slots.iter().for_each(|&slot| held[usize::from(slot)].as_mut().expect("filled").2 = true);
                assert_eq!(slots.len(), count as usize);
                programs.push(slots);
            }
            _ if !programs.is_empty() => {
                for slot in programs.swap_remove(rng.below(programs.len() as u64) as usize) {
                    let (lpn, number, _) = held[usize::from(slot)].take().expect("in a program");
                    let freed = buffer.release(slot, |_| ());
                    let is_old = in_flash[lpn as usize] > number;
                    assert_eq!((freed.lpn, freed.sequence, freed.dead), (Lpn(lpn), number, is_old));
                    dead += u32::from(is_old);
                    in_flash[lpn as usize] = in_flash[lpn as usize].max(number);
                    newest[lpn as usize] = newest[lpn as usize].filter(|&newest| newest != slot);
                }
            }
            _ => {}
        }
        let oldest = held.iter().flatten().map(|&(_, number, _)| number).min();
        assert_eq!(buffer.oldest_sequence(), oldest);
    }
    assert!(dead > 100 && overwritten > 100, "{dead} dead, {overwritten} overwritten");
}

/// A flush waits exactly for the data accepted before it.
#[test]
fn a_flush_waits_for_what_came_before_it() {
    let mut write = Write::of(WriteBuffer::new(SLOTS, 0), 0);
    assert!(write.buffer.sync(tag(1)), "there is nothing to wait for");
    let slots: Vec<u16> = (0..3).map(|lpn| write.buffer.put(block(lpn, lpn + 1, None)).unwrap()).collect();
    assert!(!write.has_unit(false, UNIT, false), "a unit does not fill");
    assert!(!write.buffer.sync(tag(2)));
    assert!(write.has_unit(false, UNIT, false), "a flush waits");
    assert_eq!(write.buffer.take_for_program(false, UNIT, 0), (slots[0], 3));
    let later = write.buffer.put(block(9, 9, None)).unwrap();
    assert!(!write.has_unit(false, UNIT, false), "no flush waits for what came later");
    let mut synced = Vec::new();
    for &slot in &slots {
        assert!(synced.is_empty());
        write.buffer.release(slot, |tag| synced.push(tag));
    }
    assert_eq!((synced, write.oldest()), (vec![tag(2)], 0));
    assert_eq!(write.buffer.held().collect::<Vec<_>>(), [(Lpn(9), later)]);
}

/// A full buffer of blocks of both kinds, of which neither fills a unit, still drains.
#[test]
fn a_full_buffer_is_programmed_even_if_no_unit_fills() {
    let mut write = Write::of(WriteBuffer::new(4, 0), 0);
    for lpn in 0..4 {
        assert!(!write.has_unit(true, UNIT, true) || lpn == 4);
        write.buffer.put(Accepted { hot: lpn < 2, ..block(lpn, lpn + 1, None) }).unwrap();
    }
    assert!(write.buffer.is_full() && !write.has_unit(true, UNIT, false), "a program in progress makes room");
    assert!(write.has_unit(true, UNIT, true) && write.has_unit(false, UNIT, true));
    assert!(!write.has_unit(true, 2 * UNIT, false) && write.has_unit(true, 2, false));
}

/// The blocks of a failed program go first, in their order.
#[test]
fn a_failed_program_comes_back_before_all_others() {
    let mut write = Write::of(WriteBuffer::new(SLOTS, 0), 0);
    (0..6).for_each(|lpn| _ = write.buffer.put(block(lpn, lpn + 1, None)));
    let (first, _) = write.buffer.take_for_program(false, UNIT, 0);
    let said: Vec<_> = write.buffer.spares_of(first).collect();
    assert_eq!(said, (0..4).map(|lpn| (Some(Lpn(lpn)), lpn + 1)).collect::<Vec<_>>());
    write.buffer.program_failed(first);
    assert_eq!(write.buffer.take_for_program(false, UNIT, 0), (first, UNIT));
    assert_eq!(write.buffer.spares_of(first).collect::<Vec<_>>(), said);
}

#[test]
fn an_unmap_goes_on_where_it_stopped() {
    let mut unmap = Unmap::new(tag(1), vec![(Lpn(99), 9)], [(Lpn(5), 3), (Lpn(0), 0), (Lpn(20), 2)].into_iter());
    assert_eq!(unmap.next(), Some((Lpn(5), 3)));
    unmap.done(2);
    assert_eq!(unmap.next(), Some((Lpn(7), 1)));
    unmap.done(1);
    assert_eq!(unmap.next(), Some((Lpn(20), 2)), "an empty range is passed over");
    unmap.done(2);
    assert_eq!(unmap.next(), None);
}

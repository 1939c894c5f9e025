// What Rust makes of names: traits, generics, closures, inlines. Each allocation has a size of its own.
#![allow(stable_features)]
#![feature(bench_black_box)] // what it is called before 1.66, Debian's too
use std::hint::black_box;

trait Goods {
    fn take(&self, size: usize) -> Vec<u8>;
}

struct Fish;

impl Goods for Fish {
    #[inline(never)]
    fn take(&self, size: usize) -> Vec<u8> {
        Vec::with_capacity(black_box(size))
    }
}

#[inline(never)]
fn generic<T: Default + Clone>(count: usize) -> Vec<T> {
    vec![T::default(); black_box(count)]
}

mod deep {
    #[inline(always)]
    pub fn inlined(size: usize) -> Box<[u8]> {
        vec![1u8; size].into_boxed_slice()
    }

    #[inline(never)]
    pub fn outer(size: usize) -> Box<[u8]> {
        inlined(size)
    }
}

#[inline(never)]
fn call(what: &dyn Fn(usize) -> String, size: usize) -> String {
    what(size)
}

fn main() {
    let goods: Box<dyn Goods> = black_box(Box::new(Fish));
    std::mem::forget(black_box(goods.take(70001)));
    std::mem::forget(black_box(generic::<u16>(35001)));
    std::mem::forget(black_box(deep::outer(70003)));
    std::mem::forget(black_box(call(&|size| String::with_capacity(black_box(size)), 70004)));
}

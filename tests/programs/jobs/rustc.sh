# rustc
cat >a.rs <<X
use std::collections::HashMap; use std::thread;
fn main(){ let h: Vec<_>=(0..8).map(|t| thread::spawn(move||{let mut m=HashMap::new(); for i in 0..50000u64 {m.insert(format!("{}{}",t,i),vec![i;(i%20) as usize]);} m.len()})).collect(); for j in h {println!("{}",j.join().unwrap());}}
X
$ON rustc -O a.rs -o a && $ON ./a

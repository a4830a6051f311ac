// A layer in which nothing can be split says so, once for each degree, and why.

// RUN: dyna-opt %s -split-input-file -verify-diagnostics -dyna-differentiate -dyna-deduce-layouts="strategy=tp=4" -o /dev/null

// README's block: there is no second linear behind the first.
// expected-warning @+1 {{layer @block is split in nothing at tp=4: each of the 4 ranks keeps all of its parameters and does all of its work}}
dyna.layer @block[%g: tensor<96xf32>, %w: tensor<96x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x96xf32>, tensor<96xf32>
  // expected-note @+1 {{the output features of this linear stay whole, as 'dyna.return' needs them so}}
  %y = dyna.linear %n, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %z = dyna.add %x, %y : tensor<?x96xf32>
  dyna.return %z : tensor<?x96xf32>
}

// -----

// Each linear has a reason of its own.
// expected-warning @+1 {{layer @whole is split in nothing at tp=4}}
dyna.layer @whole[%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>, %d: tensor<8x8xf32>, %g: tensor<8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-note @+1 {{as 'dyna.rms_norm' needs them so}}
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.rms_norm %0, %g {epsilon = 1.0e-6 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-note @+1 {{as 'dyna.add' needs them so}}
  %2 = dyna.linear %1, %b : tensor<?x8xf32>, tensor<8x8xf32>
  %3 = dyna.add %2, %x : tensor<?x8xf32>
  // expected-note @+1 {{as 'dyna.mul' needs them so}}
  %4 = dyna.linear %3, %c : tensor<?x8xf32>, tensor<8x8xf32>
  %5 = dyna.mul %4, %x : tensor<?x8xf32>
  // expected-note @+1 {{as 'dyna.return' needs them so}}
  %6 = dyna.linear %5, %d : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %6 : tensor<?x8xf32>
}

// -----

// expected-warning @+2 {{layer @norm is split in nothing at tp=4}}
// expected-note @+1 {{it has no linear to split}}
dyna.layer @norm[%g: tensor<96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x96xf32>, tensor<96xf32>
  dyna.return %n : tensor<?x96xf32>
}

// -----

// The head's one value, the loss, is whole, but the work is shared. A layer without ops does
// no work.
dyna.layer @head[%w: tensor<24x24xf32>](%x: tensor<?x24xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  %0 = dyna.linear_cross_entropy %x, %w, %t : tensor<?x24xf32>, tensor<24x24xf32>, tensor<?xi32>
  dyna.return %0 : tensor<1xf64>
}
dyna.layer @nothing(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// An MLP with dropout between its linears is split: features are counted over the whole row.
dyna.layer @dropped[%a: tensor<16x8xf32>, %b: tensor<8x16xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<16x8xf32>
  %1 = dyna.gelu %0 tanh : tensor<?x16xf32>
  %2 = dyna.dropout %1, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x16xf32>
  %3 = dyna.linear %2, %b : tensor<?x16xf32>, tensor<8x16xf32>
  dyna.return %3 : tensor<?x8xf32>
}

// -----

// Linears that stay whole beside others that are split.
// expected-warning @+1 {{layer @chain keeps 1 of its 3 linears whole at tp=4: each of the 4 ranks keeps all of their parameters and does all of their work}}
dyna.layer @chain[%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.linear %0, %b : tensor<?x8xf32>, tensor<8x8xf32>
  // expected-note @+1 {{as 'dyna.return' needs them so}}
  %2 = dyna.linear %1, %c : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

// A norm between the linears of the second MLP; the sum of two results, of which the first
// belongs to a linear that is split over its input.
// expected-warning @+1 {{layer @partly keeps 4 of its 6 linears whole at tp=4}}
dyna.layer @partly[%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>, %d: tensor<8x8xf32>, %e: tensor<8x8xf32>, %f: tensor<8x8xf32>, %g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.linear %0, %b : tensor<?x8xf32>, tensor<8x8xf32>
  // expected-note @+1 {{as they meet those of a linear whose input features are split}}
  %2 = dyna.linear %x, %c : tensor<?x8xf32>, tensor<8x8xf32>
  %3 = dyna.add %1, %2 : tensor<?x8xf32>
  // expected-note @+1 {{as 'dyna.rms_norm' needs them so}}
  %4 = dyna.linear %3, %d : tensor<?x8xf32>, tensor<8x8xf32>
  %5 = dyna.rms_norm %4, %g {epsilon = 1.0e-6 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-note @+1 {{as 'dyna.add' needs them so}}
  %6 = dyna.linear %5, %e : tensor<?x8xf32>, tensor<8x8xf32>
  %7 = dyna.add %6, %x : tensor<?x8xf32>
  // expected-note @+1 {{as 'dyna.return' needs them so}}
  %8 = dyna.linear %7, %f : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %8 : tensor<?x8xf32>
}

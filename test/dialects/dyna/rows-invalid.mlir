// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ROWS1: a matrix product mixes the features of a row, but is no row-wise op.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<96x96xf32>)
%r = dyna.rows : tensor<?x96xf32> {
  // expected-error @+1 {{expects only row-wise ops in 'dyna.rows'}}
  %y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  dyna.yield %y : tensor<?x96xf32>
}

// -----

// ROWS2: a result without a value.
%x = "test.values"() : () -> (tensor<?x96xf32>)
// expected-error @+1 {{expects 2 yielded values, one per result, but got 1}}
%r:2 = dyna.rows : tensor<?x96xf32>, tensor<?x96xf32> {
  %y = dyna.relu %x : tensor<?x96xf32>
  dyna.yield %y : tensor<?x96xf32>
}

// -----

// ROWS2: a value of another type.
%x = "test.values"() : () -> (tensor<?x96xf32>)
// expected-error @+1 {{expects yielded value #0 to have type 'tensor<?x64xf32>', that of the result, but got 'tensor<?x96xf32>'}}
%r = dyna.rows : tensor<?x64xf32> {
  %y = dyna.relu %x : tensor<?x96xf32>
  dyna.yield %y : tensor<?x96xf32>
}

// -----

// PLACES1: a sweep has a place per result.
%x = "test.values"() : () -> (tensor<?x96xf32>)
// expected-error @+1 {{expects 1 places, one per result, or 2 with scratch, but got 0}}
%r = dyna.rows : tensor<?x96xf32> {
  %y = dyna.relu %x : tensor<?x96xf32>
  dyna.yield %y : tensor<?x96xf32>
} {places = []}

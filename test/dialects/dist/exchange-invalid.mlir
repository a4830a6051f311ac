// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// EXCHANGE1: a slice exchanges nothing.
%x = "test.value"() : () -> tensor<?x96xf32>
%y = dist.exchange : tensor<?x48xf32> {
  // expected-error @+1 {{stands in 'dist.exchange', which holds only collectives that move data}}
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
  dist.yield %0 : tensor<?x48xf32>
}

// -----

// EXCHANGE1: an op of another dialect.
%x = "test.value"() : () -> tensor<?x96xf32>
%y = dist.exchange : tensor<?x96xf32> {
  // expected-error @+1 {{stands in 'dist.exchange', which holds only collectives that move data}}
  %0 = dyna.relu %x : tensor<?x96xf32>
  dist.yield %0 : tensor<?x96xf32>
}

// -----

// EXCHANGE1: places stand at the exchange.
%x = "test.value"() : () -> tensor<?x96xf32>
%y = dist.exchange : tensor<?x96xf32> {
  // expected-error @+1 {{has places of its own}}
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> {places = [#dyna.place<output>]} : tensor<?x96xf32>
  dist.yield %0 : tensor<?x96xf32>
}

// -----

// EXCHANGE1: nothing to exchange.
// expected-error @+1 {{expects at least one collective}}
"dist.exchange"() ({
  "dist.yield"() : () -> ()
}) : () -> ()

// -----

// EXCHANGE2: two groups.
%x = "test.value"() : () -> tensor<?x96xf32>
%y:2 = dist.exchange : tensor<?x96xf32>, tensor<?x96xf32> {
  %0 = dist.all_reduce %x over <3 [tp:2/1] on <tp=4>> : tensor<?x96xf32>
  // expected-error @+1 {{is over #dist.group<4 [tp:2/2] on <tp=4>>, but the first collective is over #dist.group<3 [tp:2/1] on <tp=4>>}}
  %1 = dist.all_reduce %x over <4 [tp:2/2] on <tp=4>> : tensor<?x96xf32>
  dist.yield %0, %1 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// EXCHANGE3: the second needs the first.
%x = "test.value"() : () -> tensor<?x96xf32>
%y:2 = dist.exchange : tensor<?x96xf32>, tensor<?x96xf32> {
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  // expected-error @+1 {{reads what another collective of the same 'dist.exchange' gives}}
  %1 = dist.all_gather %0 dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
  dist.yield %0, %1 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// EXCHANGE4: a result that nobody can see.
%x = "test.value"() : () -> tensor<?x96xf32>
%y = dist.exchange : tensor<?x96xf32> {
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  %1 = dist.all_reduce %x max over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  // expected-error @+1 {{expects the results of 2 collectives, but got 1 values}}
  dist.yield %1 : tensor<?x96xf32>
}

// -----

// EXCHANGE4: in another order.
%x = "test.value"() : () -> tensor<?x96xf32>
%y:2 = dist.exchange : tensor<?x96xf32>, tensor<?x96xf32> {
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  %1 = dist.all_reduce %x max over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  // expected-error @+1 {{expects value 0 to be the result of collective 0: all of them, in order}}
  dist.yield %1, %0 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// EXCHANGE4: a result of another type.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects results of the types that are yielded, 'tensor<?x96xf32>', but got 'tensor<?x48xf32>'}}
%y = dist.exchange : tensor<?x48xf32> {
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  dist.yield %0 : tensor<?x96xf32>
}

// -----

// An exchange has a place per result.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects 1 places, one per result, or 2 with scratch, but got 0}}
%y = dist.exchange : tensor<?x96xf32> {
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
  dist.yield %0 : tensor<?x96xf32>
} {places = []}

// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// RESHARD1: two meshes.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects layouts on one mesh, but got #dist.mesh<tp=2> and #dist.mesh<tp=4>}}
%y = dist.reshard %x from <[[tp], []] on <tp=2>> to <[[], []] on <tp=4>> : tensor<?x96xf32>

// -----

// RESHARD1: a layout of another rank.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects layouts of 2 dimensions, but got 1}}
%y = dist.reshard %x from <[[tp], []] on <tp=2>> to <[[]] on <tp=2>> : tensor<?x96xf32>

// -----

// RESHARD2: a value does not become partial.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{partial}}
%y = dist.reshard %x from <[[], []] on <tp=2>> to <[[], []] partial [tp] on <tp=2>> : tensor<?x96xf32>

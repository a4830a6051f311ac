// Exchanges that exchange nothing, or undo each other, disappear; ops with places stay.

// RUN: dyna-opt %s -allow-unregistered-dialect -canonicalize | FileCheck %s
// RUN: dyna-opt %s -allow-unregistered-dialect -canonicalize -cse | FileCheck %s

// CHECK: %[[X:.*]] = "test.value"
%x = "test.value"() : () -> tensor<?x96xf32>

// A group of one rank.
// CHECK-NEXT: "test.use"(%[[X]], %[[X]], %[[X]], %[[X]], %[[X]])
%a = dist.all_reduce %x over <1 [tp] on <tp=1>> : tensor<?x96xf32>
%b = dist.all_gather %x dim 1 over <1 [tp] on <tp=1>> : tensor<?x96xf32> -> tensor<?x96xf32>
%c = dist.reduce_scatter %x dim 0 over <1 [tp] on <tp=1>> : tensor<?x96xf32> -> tensor<?x96xf32>
%d = dist.slice %x dim 0 over <1 [tp] on <tp=1>> : tensor<?x96xf32> -> tensor<?x96xf32>
%e = dist.all_to_all %x dim 0 to 1 over <1 [tp] on <tp=1>> : tensor<?x96xf32> -> tensor<?x96xf32>
"test.use"(%a, %b, %c, %d, %e) : (tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>) -> ()

// Reshards between equal layouts, however written, and there and back.
// CHECK-NEXT: "test.use"(%[[X]], %[[X]])
%f = dist.reshard %x from <[[tp], []] on <tp=4>> to <[[tp:2/2, tp:2/1], []] on <tp=4>> : tensor<?x96xf32>
%g = dist.reshard %x from <[[tp], []] on <tp=4>> to <[[], [tp]] on <tp=4>> : tensor<?x96xf32>
%h = dist.reshard %g from <[[], [tp]] on <tp=4>> to <[[tp], []] on <tp=4>> : tensor<?x96xf32>
"test.use"(%f, %h) : (tensor<?x96xf32>, tensor<?x96xf32>) -> ()

// Inverse exchanges.
// CHECK-NEXT: "test.use"(%[[X]], %[[X]], %[[X]])
%i = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
%j = dist.all_gather %i dim 1 over <1 [tp] on <tp=2>> : tensor<?x48xf32> -> tensor<?x96xf32>
%k = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
%l = dist.slice %k dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
%m = dist.all_to_all %x dim 0 to 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
%n = dist.all_to_all %m dim 1 to 0 over <1 [tp] on <tp=2>> : tensor<?x48xf32> -> tensor<?x96xf32>
"test.use"(%j, %l, %n) : (tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>) -> ()

// Not inverse: another dimension, another group; and a value that has its place.
// CHECK-NEXT: dist.slice
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dist.all_reduce
// CHECK-NEXT: "test.use"
%o = dist.slice %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
%p = dist.all_gather %o dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x192xf32>
%q = dist.all_gather %o dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x96xf32> -> tensor<?x96xf32>
%r = dist.all_reduce %x over <1 [tp] on <tp=1>> {places = [#dyna.place<workspace>]} : tensor<?x96xf32>
"test.use"(%p, %q, %r) : (tensor<?x192xf32>, tensor<?x96xf32>, tensor<?x96xf32>) -> ()

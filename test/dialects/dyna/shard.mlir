// RUN: dyna-opt %s -allow-unregistered-dialect --verify-roundtrip | FileCheck %s

// A rank's part of a table of 513 rows, dealt to the ranks of group 1.

%ids, %w, %g, %x = "test.values"() : () -> (tensor<?xi32>, tensor<257x8xf32>, tensor<257x8xf32>, tensor<?x8xf32>)
// CHECK: dyna.embedding %{{.*}}, %{{.*}} shard<group = 1, rows = 513> : tensor<?xi32>, tensor<257x8xf32>
%y = dyna.embedding %ids, %w shard<group = 1, rows = 513> : tensor<?xi32>, tensor<257x8xf32>
// CHECK: dyna.embedding_grad %{{.*}}, %{{.*}}, %{{.*}} shard<group = 1, rows = 513> : tensor<?x8xf32>
%g1 = dyna.embedding_grad %x, %ids, %g shard<group = 1, rows = 513> : tensor<?x8xf32>, tensor<?xi32>, tensor<257x8xf32>
// CHECK: dyna.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} shard<group = 1, rows = 513> {ignore_index = -100 : i64} : tensor<?x8xf32>
%loss = dyna.linear_cross_entropy %x, %w, %ids shard<group = 1, rows = 513> {ignore_index = -100 : i64} : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
// CHECK: dyna.linear_cross_entropy_train %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} shard<group = 1, rows = 513> : tensor<?x8xf32>
%same, %dx, %g2 = dyna.linear_cross_entropy_train %x, %w, %ids, %g1 shard<group = 1, rows = 513> : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>, tensor<257x8xf32>
// CHECK: dyna.linear_cross_entropy_input %{{.*}}, %{{.*}}, %{{.*}} shard<group = 1, rows = 513> : tensor<?x8xf32>
%again, %part = dyna.linear_cross_entropy_input %x, %w, %ids shard<group = 1, rows = 513> : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>

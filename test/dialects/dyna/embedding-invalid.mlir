// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// EMBEDDING1: a result of another width than the table.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x96xf32>' are incompatible with return type(s) of operation 'tensor<?x64xf32>'}}
%x = "dyna.embedding"(%ids, %w) : (tensor<?xi32>, tensor<257x96xf32>) -> tensor<?x64xf32>

// -----

// EMBEDDING1: a result of another element type than the table.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x96xf32>' are incompatible with return type(s) of operation 'tensor<?x96xf64>'}}
%x = "dyna.embedding"(%ids, %w) : (tensor<?xi32>, tensor<257x96xf32>) -> tensor<?x96xf64>

// -----

// Types: ids are 32-bit integers.
%ids, %w = "test.values"() : () -> (tensor<?xi64>, tensor<257x96xf32>)
// expected-error @+1 {{operand #0 must be token ids [?] of i32, but got 'tensor<?xi64>'}}
%x = dyna.embedding %ids, %w : tensor<?xi64>, tensor<257x96xf32>

// -----

// Types: a table has two dimensions; nothing can be inferred from one.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<257xf32>)
// expected-error @+1 {{'dyna.embedding' op expects operand #1 to be a tensor of rank 2, but got 'tensor<257xf32>'}}
%x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257xf32>

// -----

// Types: a table has static sizes.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<257x?xf32>)
// expected-error @+1 {{'dyna.embedding' op expects operand #1 to have a static dimension 1, but got 'tensor<257x?xf32>'}}
%x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x?xf32>

// -----

// Types: a table has elements.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<0x96xf32>)
// expected-error @+1 {{operand #1 must be static matrix of f64, f32 or bf16, but got 'tensor<0x96xf32>'}}
%x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<0x96xf32>

// -----

// Types: the bytes of a table can be counted.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<4611686018427387904x96xf32>)
// expected-error @+1 {{operand #1 must be static matrix of f64, f32 or bf16, but got 'tensor<4611686018427387904x96xf32>'}}
%x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<4611686018427387904x96xf32>

// -----

// Types: nothing can be inferred without operands.
// expected-error @+1 {{'dyna.embedding' op expected 2 operands, but found 0}}
%x = "dyna.embedding"() : () -> tensor<?x96xf32>

// -----

// EMBEDDING2: a part larger than the table.
%ids, %w = "test.values"() : () -> (tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects 'table' to have at most 256 rows, those of the whole table, but got 257}}
%x = dyna.embedding %ids, %w shard<group = 1, rows = 256> : tensor<?xi32>, tensor<257x96xf32>

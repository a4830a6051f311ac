// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// FUNCTION1: a place is missing, which only the generic form can say.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects 1 places, one per argument, but got 0}}
"dyna.function"() <{sym_name = "f", layer = @scale, role = #dyna<role forward>, function_type = (tensor<?x96xf32>) -> tensor<?x96xf32>, arg_places = [], result_places = [#dyna.place<output>]}> ({
^bb0(%x: tensor<?x96xf32>):
  dyna.return %x : tensor<?x96xf32>
}) : () -> ()

// -----

// FUNCTION1: a place too many.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects 1 places, one per result, but got 2}}
"dyna.function"() <{sym_name = "f", layer = @scale, role = #dyna<role forward>, function_type = (tensor<?x96xf32>) -> tensor<?x96xf32>, arg_places = [#dyna.place<input>], result_places = [#dyna.place<output>, #dyna.place<output, index = 1>]}> ({
^bb0(%x: tensor<?x96xf32>):
  dyna.return %x : tensor<?x96xf32>
}) : () -> ()

// -----

// FUNCTION2: there is no such layer.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects layer @nothing to name a 'dyna.layer', but there is no such symbol}}
dyna.function @f of @nothing as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION3: two arguments in one entry.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects argument #1 to have an array entry of its own, but got #dyna.place<input, index = 2>, that of argument #0}}
dyna.function @f of @scale as forward(%y: tensor<?x96xf32> in <input, index = 2>, %x: tensor<?x96xf32> in <input, index = 2>) -> (tensor<?x96xf32> in <output>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION3: two results in one entry.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects result #1 to have an array entry of its own, but got #dyna.place<output>, that of result #0}}
dyna.function @f of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>, tensor<?x96xf32> in <output>) {
  dyna.return %x, %x : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// FUNCTION4: segments elsewhere.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects segments, and nothing else, in the place 'segments', but got argument #1 of type '!dyna.segments' in #dyna.place<input, index = 1>}}
dyna.function @f of @scale as forward(%x: tensor<?x96xf32> in <input>, %s: !dyna.segments in <input, index = 1>) -> (tensor<?x96xf32> in <output>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION4: something else among the segments.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects segments, and nothing else, in the place 'segments', but got argument #0 of type 'tensor<?x96xf32>' in #dyna.place<segments>}}
dyna.function @f of @scale as forward(%x: tensor<?x96xf32> in <segments>) -> (tensor<?x96xf32> in <output>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION5: a scalar.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects argument #1 to be segments, or a ranked tensor of ids, f64, f32 or bf16 whose sizes but the first are static, but got 'f32'}}
dyna.function @f of @scale as forward(%x: tensor<?x96xf32> in <input>, %e: f32 in <input, index = 1>) -> (tensor<?x96xf32> in <output>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION6: a result in workspace is gone after the call.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects result #0 to outlive the call, but got #dyna.place<workspace>}}
dyna.function @f of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <workspace>) {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION6: the workspace lies elsewhere.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects 'workspace' to be a place in workspace, but got #dyna.place<products, tq = 4>}}
dyna.function @f of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) workspace <products, tq = 4> {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION7: a part of a table in the logical graph.
dyna.layer @look[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %y = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
dyna.function @f of @look as forward(%w: tensor<257x8xf32> in <parameter>, %ids: tensor<?xi32> in <input>) -> (tensor<?x8xf32> in <output>) {
  // expected-error @+1 {{expects no 'shard' in a function of a layer without 'dist.mesh', but got a part of 513 rows: write the whole table, --dyna-distribute deals it to ranks}}
  %y = dyna.embedding %ids, %w shard<group = 1, rows = 513> : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// FUNCTION8: entries that do not rise.
dyna.layer @two[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  dyna.return %y : tensor<?x96xf32>
}
// expected-error @+1 {{expects 'sparse' to list rising entries, but got 0 behind 0}}
dyna.function @f of @two as forward(%w: tensor<96x96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) attributes {sparse = array<i64: 0, 0>} {
  %y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  dyna.return %y : tensor<?x96xf32>
}

// -----

// FUNCTION8: a vector.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects 'sparse' to list matrices among the parameters, but got 0}}
dyna.function @f of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) attributes {sparse = array<i64: 0>} {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION8: a parameter that there is not.
dyna.layer @scale[%g: tensor<96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
// expected-error @+1 {{expects 'sparse' to list matrices among the parameters, but got 7}}
dyna.function @f of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) attributes {sparse = array<i64: 7>} {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// FUNCTION8: a table that an embedding reads.
dyna.layer @look[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %y = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
// expected-error @+1 {{expects matrix products alone to use parameter 0 and its gradient, since 'sparse' lists it}}
dyna.function @f of @look as forward(%w: tensor<257x8xf32> in <parameter>, %ids: tensor<?xi32> in <input>) -> (tensor<?x8xf32> in <output>) attributes {sparse = array<i64: 0>} {
  %y = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// FUNCTION8: the gradient of an embedding, too.
dyna.layer @look[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %y = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
// expected-error @+1 {{expects matrix products alone to use parameter 0 and its gradient, since 'sparse' lists it}}
dyna.function @f of @look as backward_weight(%w: tensor<257x8xf32> in <parameter>, %d_w: tensor<257x8xf32> in <gradient>, %ids: tensor<?xi32> in <saved_input>, %dy: tensor<?x8xf32> in <deferred>) -> (tensor<257x8xf32> in <gradient>) attributes {sparse = array<i64: 0>} {
  %0 = dyna.embedding_grad %dy, %ids, %d_w : tensor<?x8xf32>, tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<257x8xf32>
}

// -----

// Syntax: an unknown role.
// expected-error @+1 {{expects a role such as 'forward' or 'backward', but got 'sideways'}}
dyna.function @f of @scale as sideways(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>) -> (tensor<?x96xf32> in <output>) {
}

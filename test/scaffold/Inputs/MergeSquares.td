def MergeSquares : Pass<"dyna-merge-squares", "::mlir::dyna::FunctionOp"> {
  let summary = "Makes squares of products of a value with itself.";
  let description = [{
    In: a function whose sweeps are not made yet. Out: the same function, with
    `dyna.square %x` for `dyna.mul %x, %x`. Other products are left alone.
  }];
}


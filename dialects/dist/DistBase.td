//===- DistBase.td - The dist dialect and its attributes ---*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DIST_DISTBASE_TD
#define DYNA_DIALECTS_DIST_DISTBASE_TD

include "dialects/dyna/DynaBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::mlir::dist";
  let summary = "Layouts of tensors on a mesh of ranks, and the exchanges between layouts.";
  let description = [{
    `dist` stands between the logical graph (`dyna`) and programs of ranks (`exec`). Its
    attributes wrap the algebra of `runtime/layout`: meshes, layouts, groups of ranks.
    While layouts are deduced, values keep their logical types, ops carry the layouts of
    their results (`dist.layouts`), and `dist.reshard` says where a layout changes.
    Afterwards types are those of one rank, and collectives stand where data moves.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Dist_Attr<string name, string attrMnemonic> : AttrDef<Dist_Dialect, name> {
  let mnemonic = attrMnemonic;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "Ranks laid out along named axes.";
  let description = [{
    The last axis runs fastest. `ranks` lists the rank of each position where it is not
    the position itself (`runtime/layout/Mesh.h`).

    Constraints:
    - (MESH1) names of axes are usable and distinct, sizes at least 1, ranks distinct,
      not negative and as many as positions.

    Example: `#dist.mesh<dp=2, tp=4>`, `#dist.mesh<tp=2 ranks [1, 0]>`.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$ranks);
  let extraClassDeclaration = [{
    static MeshAttr get(::mlir::MLIRContext *context, const ::dyna::Mesh &mesh);
    ::dyna::Mesh getMesh() const;
  }];
}

def Dist_LayoutAttr : Dist_Attr<"Layout", "layout"> {
  let summary = "The layout of a tensor on a mesh.";
  let description = [{
    Lists for each dimension the axes over which it is split, major to minor. An entry is an axis or
    a factor of an axis, `name:size/stride`. Then come the axes over which the value is partial: the
    tensor is the sum of the ranks' values. Over all other axes it is replicated
    (`runtime/layout/Layout.h`).

    Constraints:
    - (LAYOUT1) axes and factors are those of the mesh, and none is used twice.

    Example: `#dist.layout<[[tp], []] on <tp=4>>`,
    `#dist.layout<[[tp:2/2], []] partial [tp:2/1] on <tp=4>>`.
  }];
  let parameters = (ins "::mlir::dist::MeshAttr":$mesh, StringRefParameter<"as describeLayout prints">:$text);
  let extraClassDeclaration = [{
    static LayoutAttr get(MeshAttr mesh, const ::dyna::Layout &layout);
    ::dyna::Layout getLayout() const;
    /// Alike in every way that matters: the same mesh, the same placement of
    /// every shape.
    bool isEquivalentTo(LayoutAttr other) const;
  }];
}

def Dist_GroupAttr : Dist_Attr<"Group", "group"> {
  let summary = "The ranks that exchange something with each other.";
  let description = [{
    `index` is the runtime's number of the group: 0 data parallelism, 1 tensor parallelism, 2 the
    pipeline. From 3 on these are factors of the tensor axis, in the order of the module's attribute
    `dist.groups`. Then come the axis parts in which the ranks of a group differ.

    Constraints:
    - (GROUP1) the axis parts are those of the mesh, and there is at least one.
    - (GROUP2) `index` is 0, 1 or 2 for exactly the whole axis `dp`, `tp` or `pp`, and
      larger for everything else.

    Example: `#dist.group<1 [tp] on <tp=4>>`, `#dist.group<3 [tp:2/1] on <tp=4>>`.
  }];
  let parameters = (ins "int64_t":$index, "::mlir::dist::MeshAttr":$mesh,
                        StringRefParameter<"as describeParts prints">:$text);
  let extraClassDeclaration = [{
    static GroupAttr get(int64_t index, MeshAttr mesh, const ::dyna::AxisParts &parts);
    /// 0, 1 or 2 for a whole axis dp, tp or pp.
    static std::optional<int64_t> getAxisIndex(const ::dyna::Mesh &mesh, const ::dyna::AxisParts &parts);
    ::dyna::AxisParts getParts() const;
    /// The number of ranks.
    int64_t getSize() const;
  }];
}
def Dist_LayoutArrayAttr : TypedArrayAttrBase<Dist_LayoutAttr, "array of layouts">;

#endif // DYNA_DIALECTS_DIST_DISTBASE_TD

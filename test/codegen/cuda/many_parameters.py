"""Prints a module with a layer of that many parameters: biases that are added one after another."""
import sys

count = int(sys.argv[1])
names = [f"b{i}" for i in range(count)]
for name in names:
    print(f"dyna.parameter @{name} : tensor<8xf32>")
print("dyna.parameter @wte : tensor<33x8xf32> normal 0.02 decay")
arguments = ", ".join(f"%{name}: tensor<8xf32>" for name in names)
print("dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {")
print("  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>\n  dyna.return %x : tensor<?x8xf32>\n}")
print(f"dyna.layer @many[{arguments}](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {{")
last = "x"
for name in names:
    print(f"  %y{name} = dyna.bias %{last}, %{name} : tensor<?x8xf32>, tensor<8xf32>")
    last = f"y{name}"
print(f"  dyna.return %{last} : tensor<?x8xf32>\n}}")
print("""dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>""")
symbols = ", ".join(f"@{name}" for name in names)
print(f"""  %1 = dyna.call "many" @many[{symbols}](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}}""")

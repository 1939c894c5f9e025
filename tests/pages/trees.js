// What a flame graph around one function holds: its two trees as { "caller/its caller": figure }, without what starts a program.
export const aroundOf = (graph) => {
  const starts = (name) => name.startsWith("_") || name.includes("libc");
  const flat = (list, before = "") => Object.fromEntries(list.filter((node) => !starts(node.name)).flatMap((node) => {
    const path = before + node.name;
    return [[path, node.values[graph.metric]], ...Object.entries(flat(node.sorted, `${path}/`))];
  }));
  return { callers: flat(graph.tree.above), callees: flat(graph.tree.sorted), figures: graph.figuresText(), where: graph.whereText() };
};

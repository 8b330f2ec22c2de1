#!/usr/bin/env python3
"""Writes pod_spec_fields.txt: every field of PodSpec in the API's own Go types, one line each: path and JSON type.

    python3 test/data/generate_pod_spec_fields.py

`[]` in a path is any element of a list, `{}` any key of a map. Types of other packages are leaves, and so are init and
ephemeral containers, which are a Container once more.
"""

import json
import pathlib
import re
import subprocess
import tempfile

MODULE = "k8s.io/api@v0.36.3"
LEAVES = {"spec.initContainers[]", "spec.ephemeralContainers[]"}
SCALARS = {"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer", "byte": "string"}
FOREIGN = {"resource.Quantity": "quantity", "intstr.IntOrString": "integer"}


def load_types():
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["go", "mod", "init", "fields"], cwd=work, check=True, capture_output=True)
        out = subprocess.run(["go", "mod", "download", "-json", MODULE], cwd=work, check=True, capture_output=True)
    source = (pathlib.Path(json.loads(out.stdout)["Dir"]) / "core/v1/types.go").read_text()
    structs, names = {}, {}
    for match in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", source, re.M | re.S):
        fields = re.findall(r"^\t(?:(\w+)[ \t]+)?(\S+)[ \t]+`[^`]*json:\"([^\"]*)\"", match[2], re.M)
        structs[match[1]] = [(kind, tag.split(",")) for _, kind, tag in fields]
    for match in re.finditer(r"^type (\w+) ([\w.\[\]]+)$", source, re.M):
        names[match[1]] = match[2]
    names["ResourceList"] = "map[ResourceName]resource.Quantity"
    return structs, names


def walk(kind, path, structs, names, lines):
    kind = kind.lstrip("*")
    while kind in names and kind not in structs:
        kind = names[kind]
    if kind.startswith("[]") and kind != "[]byte":
        return walk(kind[2:], path + "[]", structs, names, lines)
    if kind.startswith("map["):
        return walk(kind[kind.index("]") + 1 :], path + "{}", structs, names, lines)
    if kind in structs and path not in LEAVES:
        for field, (name, *options) in structs[kind]:
            walk(field, path if "inline" in options else f"{path}.{name}", structs, names, lines)
        return None
    lines.append(f"{path} {SCALARS.get(kind) or FOREIGN.get(kind) or 'object'}")
    return None


def main():
    structs, names = load_types()
    lines = []
    walk("PodSpec", "spec", structs, names, lines)
    target = pathlib.Path(__file__).with_name("pod_spec_fields.txt")
    header = f"# PodSpec of {MODULE}; written by {pathlib.Path(__file__).name}.\n"
    target.write_text(header + "".join(f"{line}\n" for line in sorted(set(lines))))
    print(f"{target}: {len(set(lines))} fields")


if __name__ == "__main__":
    main()
